# SPDX-License-Identifier: BSD-3-Clause
#
# @behaviour U89
# Several lanes: two RoCE rails, RoCE beside raw-DPDK, hosts that differ.
. "$(dirname "$0")/../lib.sh"

# both_carry LANE LANE LEAST [TEST]: each has at least LEAST percent of the largest size.
both_carry() {
	echo "shares: $(column lanes "${4:-}")"
	[ "$(column wrong "${4:-}")" = 0 ] && [ "$(share "$1" "${4:-}")" -ge "$3" ] &&
		[ "$(share "$2" "${4:-}")" -ge "$3" ]
}

two_rails() {
	perf_pair "roce:rxe0b;roce:rxe1b" "roce:rxe0a;roce:rxe1a" -t tag_bw,put_bw,get_bw \
		-s 4k,64k,1M -n 8 -w 2 -O 4 -f -V -v
}

# operation TEST: each size was right, and both devices carried the largest one.
operation() {
	all_right "$1" 3 && both_carry roce:rxe0a roce:rxe1a 20 "$1"
}

# What the kernel's devices sent, both ends together, confirms what the library counts: 7500 packets
# of data, of which gets and the receivers' reads come from the other end.
both_devices_worked() {
	local n0 n1
	n0=$(($(counter rxe0a sent_pkts) + $(counter rxe0b sent_pkts)))
	n1=$(($(counter rxe1a sent_pkts) + $(counter rxe1b sent_pkts)))
	echo "packets: $n0 $n1"
	[ $((n0 + n1)) -gt 7000 ] && [ $((n0 * 3)) -gt "$n1" ] && [ $((n1 * 3)) -gt "$n0" ]
}

mixed() {
	server_eal=(--vdev=net_af_packet0,iface=v2b,blocksz=8192,framesz=4096)
	client_eal=(--vdev=net_af_packet0,iface=v2a,blocksz=8192,framesz=4096)
	perf_pair "roce:rxe0b,bw=1Gbps;dpdk:0,ip=10.2.0.2/24,mtu=3000,bw=1Gbps" \
		"roce:rxe0a,bw=1Gbps;dpdk:0,ip=10.2.0.1/24,mtu=3000,bw=1Gbps" "$@"
}

only_one_has_roce() {
	perf_pair "dpdk:0,ip=10.2.0.2/24,mtu=3000" "roce:rxe0a;dpdk:0,ip=10.2.0.1/24,mtu=3000" \
		-t tag_lat -s 8,64k -n 10 -w 2 -f -V -v
}

rail 0 && rail 1 || exit
ip link add v2a mtu 3000 type veth peer name v2b mtu 3000 && ip link set v2a up &&
	ip link set v2b up || exit
# What an emulated device can do is the machine's; what a token bucket lets through is not.
slow 0 80 && slow 1 80 || exit
check "two RoCE rails: messages, puts and gets, one after the other" two_rails
check "two RoCE rails: a stream, every byte" all_right tag_bw 3
check "two RoCE rails: both carry a large message" both_carry roce:rxe0a roce:rxe1a 25 tag_bw
check "two RoCE rails: puts, every byte, over both" operation put_bw
check "two RoCE rails: gets, every byte, over both" operation get_bw
check "two RoCE rails: both devices worked" both_devices_worked
check "no receiver was ever not ready, no retry storms" quiet_counters rxe0a rxe0b rxe1a rxe1b
as_fast_as_it_is 0 && as_fast_as_it_is 1 || exit
# Here a round trip of the raw lane takes 20 ms, as long as a message over RoCE: many messages.
check "RoCE beside raw-DPDK: a stream, every byte" mixed -t tag_bw -s 4k,1M -n 32 -w 2 -O 4 -f -V -v
check "RoCE beside raw-DPDK: both carry a large message" both_carry roce:rxe0a dpdk:0 2
check "a host with RoCE and one without meet over raw-DPDK" only_one_has_roce
tap_end
