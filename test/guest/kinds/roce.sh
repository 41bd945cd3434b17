# SPDX-License-Identifier: BSD-3-Clause
#
# A guest with the kernel's RoCE stack: its cases make RoCE devices (rdma_rxe) over veths.
# shellcheck shell=bash disable=SC2034 # read by run.sh

# Without crc32_generic no RoCE device can be made, and the kernel's words do not say so.
modules=(crc32_generic udp_tunnel ip6_udp_tunnel ib_core ib_uverbs rdma_rxe configfs ib_cm iw_cm \
	rdma_cm rdma_ucm "${modules_root[@]}"
	failover net_failover virtio_net veth dummy af_packet sch_netem sch_tbf)
needs=rdma_rxe
cases_dir=cases
cmdline=
pmds=net_af_packet
nics=
machine=()
