# SPDX-License-Identifier: BSD-3-Clause
# Two processes as two hosts: each in a network namespace of its own.
. "$(dirname "$0")/../lib.sh"

# rdma_rxe of this kernel (6.1) looks for routes, and listens, in the first namespace only: over a
# network device of another one a RoCE device can be made and has addresses, and its first request
# ends with "local QP operation error". Nor can one be moved: `rdma dev set NAME netns` says
# "Operation not supported". So the devices stay there and the processes with their sockets and DPDK
# ports go: neither sees the network devices below its RoCE device.
namespaces() {
	ip netns add left && ip netns add right || return
	ip link add n0 type veth peer name n1 || return
	ip link set n0 netns left && ip link set n1 netns right || return
	ip -n left addr add 10.9.0.1/24 dev n0
	ip -n right addr add 10.9.0.2/24 dev n1
	ip -n left link set n0 up && ip -n right link set n1 up || return
	server_run=(ip netns exec right)
	client_run=(ip netns exec left)
	host=10.9.0.2
	perf_pair "roce:rxe0b" "roce:rxe0a" -t tag_lat -s 8,64k -n 10 -w 2 -f -V
}

rail 0 || exit
check "two processes in network namespaces of their own" namespaces
tap_end
