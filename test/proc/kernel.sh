#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What a network in between asks for, over real interfaces: VLAN tags, a router, AF_XDP.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

link flat 2000 && link xdp 1500 || exit 1
# A router: its own namespace, an interface in the network of each side.
link left 1500 "" 0 2 && link right 1500 "" 1 2 || exit 1
ip -n "${ns[2]}" addr add 10.1.0.254/24 dev left
ip -n "${ns[2]}" addr add 10.2.0.254/24 dev right
ip netns exec "${ns[2]}" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'

packet="blocksz=4096,framesz=4096,framecnt=256"

# pair SERVER_IFACE CLIENT_IFACE SERVER_LANE CLIENT_LANE [CLIENT_ARGS...]: a run of weft-perf whose
# ends differ. A server whose client has failed is not waited for.
pair() {
	local rc=0 client_lane=$4
	free_port
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=$1,$packet")
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=$2,$packet")
	lanes=$3
	shift 4
	start_server "$perf" -S CONNECT_TIMEOUT=$connect_timeout || return 1
	lanes=$client_lane
	client "$perf" -S CONNECT_TIMEOUT=$connect_timeout "$@" || rc=$?
	[ $rc = 0 ] || kill "$server_pid" 2>/dev/null
	server_code || [ $rc != 0 ] || rc=99
	return $rc
}
connect_timeout=5s

# no_pair ARGUMENTS OF PAIR...: the ends do not meet, and give up soon.
no_pair() {
	local connect_timeout=2s
	! pair "$@"
}

# tagged [VLAN]: a lane with this tag, or with none.
tagged() { printf 'dpdk:0%s' "${1:+,vlan=$1}"; }

vlan() { pair flat flat "$(tagged "$1")" "$(tagged "$2")" -t tag_bw -s 8,4k,256k -n 200 -f -V; }

# What is on the wire, as another program than Weft sees it.
vlan_seen() {
	command -v tshark >/dev/null || return 77
	ip netns exec "${ns[0]}" timeout 60 tshark -q -i flat -w "$dir/wire.pcapng" >/dev/null \
		2>&1 &
	local sniffer=$!
	while [ ! -s "$dir/wire.pcapng" ] && kill -0 $sniffer 2>/dev/null; do sleep 0.1; done
	sleep 0.5
	vlan 77 77 || return 1
	sleep 1
	kill -INT $sniffer
	wait $sniffer
	tagged=$(tshark -r "$dir/wire.pcapng" -Y 'vlan.id == 77 && udp.dstport == 9338' \
		2>/dev/null | wc -l)
	others=$(tshark -r "$dir/wire.pcapng" -Y '!vlan && udp.dstport == 9338' 2>/dev/null | wc -l)
	echo "$tagged frames with the tag, $others without"
	[ "$tagged" -gt 100 ] && [ "$others" = 0 ]
}

vlans_differ() {
	no_pair flat flat "$(tagged "$1")" "$(tagged "$2")" -t tag_bw -n 10 &&
		grep -qi "vlan" "$dir/client.err" && ! grep -q "cannot be opened" "$dir/client.err"
}

# Neither end is in the other's network: all goes to the router's MAC address, which ARP tells.
routed() {
	pair left right "dpdk:0,ip=10.1.0.1/24,gw=10.1.0.254" \
		"dpdk:0,ip=10.2.0.1/24,gw=10.2.0.254" \
		-t "$1" -s 8,4k,256k -n 200 -f -V
}

# As clouds have it: a network of one address each, and a gateway outside of it.
routed_on_link() {
	pair left right "dpdk:0,ip=10.1.0.1/32,gw=10.1.0.254" \
		"dpdk:0,ip=10.2.0.1/32,gw=10.2.0.254" \
		-t tag_bw -s 8,4k,256k -n 200 -f -V
}

# The router has done it: it counts the packets that it passed on.
through_the_router() {
	local before after
	before=$(ip netns exec "${ns[2]}" awk '/^Ip: [0-9]/ { print $7 }' /proc/net/snmp)
	routed tag_bibw || return 1
	after=$(ip netns exec "${ns[2]}" awk '/^Ip: [0-9]/ { print $7 }' /proc/net/snmp)
	echo "$((after - before)) packets passed on"
	[ $((after - before)) -gt 200 ]
}

without_gateway() {
	no_pair left right "dpdk:0,ip=10.1.0.1/24" "dpdk:0,ip=10.2.0.1/24" -t tag_bw -n 10 &&
		grep -q "gave up: .*gw=\|weft error .*gw=" "$dir/client.err"
}

gateway_silent() {
	no_pair left right "dpdk:0,ip=10.1.0.1/24,gw=10.1.0.99" \
		"dpdk:0,ip=10.2.0.1/24,gw=10.2.0.99" -t tag_bw -n 10 &&
		grep -q "10\.2\.0\.99" "$dir/client.err"
}

xdp() {
	local rc=0
	free_port
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_xdp0,iface=xdp")
	eal_client=("${eal_server[@]}")
	lanes=dpdk:0
	start_server "$perf" || return 1
	client "$perf" "$@" || rc=$?
	server_code || return 1
	return $rc
}

# The port has found its socket; two processes on one core then answer each other as in wait.sh.
xdp_wakes() {
	local core median bound rc=0
	ip netns exec "${ns[0]}" timeout 60 "$info" --no-huge -m 512 --no-pci \
		--vdev="net_af_xdp0,iface=xdp" -- -d >"$dir/xdp" 2>&1
	grep -q 'waiting  *an arrival wakes' "$dir/xdp" || { cat "$dir/xdp"; return 1; }
	core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	netns_server=("${server_run[@]}") netns_client=("${client_run[@]}")
	server_run=(taskset -c "$core" "${server_run[@]}") \
		client_run=(taskset -c "$core" "${client_run[@]}")
	xdp -t tag_lat -s 8 -n 1000 -w 100 -v --sleep || rc=1
	server_run=("${netns_server[@]}") client_run=("${netns_client[@]}")
	median=$(awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == "50.0_percentile_lat") n = i }
		NR == 2 { print $n }' "$dir/client.out")
	bound=$(stretch 500)
	echo "median $median, at most $bound us"
	[ $rc = 0 ] && awk -v m="$median" -v bound="$bound" 'BEGIN { exit !(m > 0 && m < bound) }'
}

# no_room MTU PEER_MTU PATTERN: AF_XDP does not take the interface: a message, and an end in good
# order.
no_room() {
	local rc=0
	link xdp2 1500
	ip -n "${ns[0]}" link set xdp2 mtu "$1"
	ip -n "${ns[1]}" link set xdp2 mtu "$2"
	ip netns exec "${ns[0]}" timeout 60 "$info" --no-huge -m 512 --no-pci \
		--vdev="net_af_xdp0,iface=xdp2" -- -L dpdk -d >"$dir/xdp" 2>&1 || rc=$?
	ip -n "${ns[0]}" link del xdp2
	cat "$dir/xdp"
	[ $rc = 1 ] && grep -qE "$3" "$dir/xdp"
}

# xdp_works: can this kernel and this machine do it at all?
xdp_works() {
	ip netns exec "${ns[0]}" timeout 60 "$info" --no-huge -m 512 --no-pci \
		--vdev="net_af_xdp0,iface=xdp" -- -d >"$dir/xdp" 2>&1 &&
		grep -q "dpdk:0" "$dir/xdp" && ! grep -q "cannot be opened" "$dir/xdp"
}

check "one VLAN at both ends, every byte" vlan 5 5
if command -v tshark >/dev/null; then
	check "a sniffer sees the tag on every frame" vlan_seen
else
	skip "a sniffer sees the tag on every frame" "tshark is not installed"
fi
slow check "different VLANs do not meet, and the error says so" vlans_differ 5 6
slow check "a VLAN at one end only does not meet, and the error says so" vlans_differ 5 ''
check "through a router, a stream" routed tag_bw
check "through a router, ping-pong" routed tag_lat
slow check "through a router outside the prefix" routed_on_link
check "the router has passed them on" through_the_router
# @behaviour X8
check "another network without a gateway: a sentence" without_gateway
# @behaviour X8
check "a gateway that does not answer: a sentence that names it" gateway_silent
# @behaviour T12
check "AF_XDP: an interface of MTU 9000 is refused with a sentence" no_room 9000 9000 \
	"interface xdp2 has an MTU of 9000, and AF_XDP takes 3506 at most"
if xdp_works; then
	# @behaviour T12
	check "AF_XDP: so it is when the PMD finds that out" no_room 1500 9000 \
		"dpdk:0 cannot be opened: .*does not take receive queue"
	check "AF_XDP: a stream, every byte" xdp -t tag_bw -s 8,4k,256k,1M -n 100 -f -V
	slow check "AF_XDP: ping-pong, every byte" xdp -t tag_lat -s 8,4k,256k -n 100 -f -V
	if command -v taskset >/dev/null; then
		check "AF_XDP: --sleep: frames wake, on one core" xdp_wakes
	else
		skip "AF_XDP: --sleep: frames wake, on one core" \
			"taskset(1) is not installed (util-linux)"
	fi
else
	skip "AF_XDP" "no AF_XDP socket can be made here: $(tail -n 1 "$dir/xdp" | cut -c1-200)"
fi
tap_end
