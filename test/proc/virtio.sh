#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The PMD of virtio NICs at native speed: net_virtio_user at one end, net_vhost at the other. The
# virtqueues are those that a NIC of a virtual machine has; nothing is emulated.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# Both ends map the other's memory, which needs files or hugepages behind it.
memory=(--in-memory --single-file-segments -m 256)
free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
if [ -n "${WEFT_TEST_NO_HUGE:-}" ] || [ "$free" -lt 300 ]; then
	memory=(--no-huge -m 256)
fi

# new_virtio: fresh TCP port and socket. The server has the virtio NIC, and the socket: its EAL
# waits for vhost.
new_virtio() {
	new_pair 0
	rm -f "$dir/vhost"
	eal_server=("${memory[@]}" --no-pci --vdev="net_virtio_user0,path=$dir/vhost,server=1,queue_size=256")
	eal_client=("${memory[@]}" --no-pci --vdev="net_vhost0,iface=$dir/vhost,client=1")
}

# virtio_pair LANES ARGS...: a whole run; then no byte is wrong, and each frame came in one buffer.
virtio_pair() {
	local rc=0
	new_virtio
	lanes=$1
	shift
	timeout -k 10 100 "$perf" "${eal_server[@]}" -- -p "$port" -L "$lanes" --counters </dev/null >"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	until_there "$dir/vhost" $server_pid || return 1
	client "$perf" --counters -W 60 -V -v -f "$@" || rc=$?
	[ $rc = 0 ] || { echo "the client's exit code is $rc"; kill $server_pid; server_code; return 1; }
	server_code || { echo "the server's exit code is $?"; return 1; }
	! grep -hE 'rx\.chained|drop\.bad' "$dir/server.err" "$dir/client.err"
}

# until_there FILE PID: as long as the process lives.
until_there() {
	local i
	for ((i = 0; i < 1200; i++)); do
		[ ! -e "$1" ] || return 0
		kill -0 "$2" 2>/dev/null || break
		sleep 0.05
	done
	echo "there is no ${1##*/} after $i x 50 ms"
	return 1
}

check "a stream of each size, every byte" virtio_pair dpdk:0,mtu=1500 -t tag_bw -s 0,8,1k,64k,1M -n 40 -w 2
check "streams both ways, every byte" virtio_pair dpdk:0,mtu=1500 -t tag_bibw -s 8,64k,1M -n 40 -w 2
check "puts, every byte" virtio_pair dpdk:0,mtu=1500 -t put_bw -s 8,64k,1M -n 40 -w 2
check "paths=4: a stream, every byte" virtio_pair dpdk:0,mtu=1500,paths=4 -t tag_bw -s 1M -n 40 -w 2
check "csum=udp: a stream, every byte" virtio_pair dpdk:0,mtu=1500,csum=udp -t tag_bw -s 1M -n 40 -w 2
check "the bare port" virtio_pair dpdk:0,mtu=1500 -t raw_bw -s 1400 -n 1000 -w 2
tap_end
