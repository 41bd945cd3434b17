#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The programs over two veth rails between two network namespaces, through net_af_packet: the kernel
# in between, real MTUs, frames that are not ours.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

link rail0 9000 && link rail1 9000 || exit 1

packet="blocksz=16384,framesz=16384,framecnt=256"
new_pair() {
	local i
	free_port
	eal_server=(--no-huge -m 512 --no-pci)
	for ((i = 0; i < $1; i++)); do
		eal_server+=(--vdev="net_af_packet$i,iface=rail$i,$packet")
	done
	eal_client=("${eal_server[@]}")
	lanes=
	for ((i = 0; i < $1; i++)); do
		lanes+="${lanes:+;}dpdk:$i"
	done
}

cat_file() {
	head -c 5000001 /dev/urandom >"$dir/big"
	new_pair 2
	start_server "$cat" -l || return 1
	client "$cat" <"$dir/big" || return 1
	server_code && cmp "$dir/big" "$dir/server.out"
}

# The message counts: closing packet sockets may then take the kernel a second each.
server_killed() {
	local i rc=0 bound
	new_pair 2
	start_server "$perf" || return 1
	start_client -t tag_bw -s 64k -D 30 -f || return 1
	sleep 0.5
	bound=$(stretch 40)
	kill -9 "$(program_pid "$server_pid")"
	for ((i = 0; i < bound; i++)); do
		! grep -q died "$dir/client.err" || break
		sleep 0.05
	done
	wait $client_pid || rc=$?
	server_code
	echo "exit code $rc, the sentence after $i of $bound x 50 ms"
	[ $rc = 3 ] && [ $i -lt "$bound" ] && sentence "$dir/client.err" died
}

# Both ends are on a bridge whose ports have a smaller MTU than they. A longer frame would stay at
# the head of the packet socket's ring for ever.
bridged_with_smaller_mtu() {
	local r=${ns[2]}
	link own0 9000 "" 0 2 && link own1 9000 "" 1 2 || return 1
	ip -n "$r" link add br0 type bridge && ip -n "$r" link set br0 up || return 1
	ip -n "$r" link set own0 mtu 4000 master br0 && ip -n "$r" link set own1 mtu 4000 master br0
	new_pair 1
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=own0,$packet")
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=own1,$packet")
	start_server "$perf" || return 1
	client "$perf" -t tag_bw -s 8,64k -n 50 -f -V || return 1
	server_code && cat "$dir/client.out" && grep -q "frames of 4014" "$dir/client.out"
}

# A MTU of 1500 at one end and of 9000 at the other: the smaller one counts.
mtus_differ() {
	new_pair 1
	lanes="dpdk:0,mtu=1500"
	start_server "$perf" || return 1
	lanes="dpdk:0"
	client "$perf" -t tag_bw -s 8,4k,1M -n 100 -f -V || return 1
	server_code
}

link_down() {
	local rc=0
	ip -n "${ns[1]}" link set rail0 down
	new_pair 1
	start_server "$perf" -S CONNECT_TIMEOUT=2s
	client "$perf" -S CONNECT_TIMEOUT=2s || rc=$?
	ip -n "${ns[1]}" link set rail0 up
	server_code && return 1
	[ $rc != 0 ] && grep -qE "no link" "$dir/client.err" "$dir/server.err" &&
		grep -q "rail\|dpdk:0" "$dir/client.err"
}

# Only one of two rails works: the other one is named, and the test goes on over it.
one_rail_cut() {
	ip -n "${ns[1]}" link set rail1 down
	perf_pair 2 -t tag_bw -s 8,64k -n 100 -f -V
	local rc=$?
	ip -n "${ns[1]}" link set rail1 up
	return $rc
}

# flap SECONDS CLIENT_ARGS...: the client's rail goes down in the middle of a stream, for so long.
flap() {
	local down=$1 rc=0
	shift
	new_pair 1
	start_server "$perf" -S PEER_TIMEOUT=4s || return 1
	start_client -S PEER_TIMEOUT=4s "$@" && stream_runs || return 1
	ip -n "${ns[1]}" link set rail0 down
	flapped=$SECONDS
	sleep "$down"
	ip -n "${ns[1]}" link set rail0 up
	wait $client_pid || rc=$?
	server_code
	return $rc
}

link_flaps() { flap 1 -t tag_bw -s "$1" -D 4 -V; }

# Down for longer than the peer timeout: both ends report it in time, and no end sleeps in a send.
link_lost() {
	local rc=0 bound
	flap 9 -t tag_bw -s 64k -D 30 || rc=$?
	# Nine seconds are the flap's own.
	bound=$((9 + $(stretch 3)))
	echo "exit code $rc after $((SECONDS - flapped)) of $bound s"
	[ $rc != 0 ] && [ $((SECONDS - flapped)) -le $bound ] &&
		sentence "$dir/client.err" "no sign of|died|link"
}

# raw_link_lost TEST: the bare port's tests have no connection that would time out.
raw_link_lost() {
	local rc=0
	new_pair 1
	start_server "$perf" || return 1
	start_client -t "$1" -s 64 -n 1000000000 || return 1
	sleep 0.5
	ip -n "${ns[1]}" link set rail0 down
	wait $client_pid || rc=$?
	ip -n "${ns[1]}" link set rail0 up
	server_code && return 1
	echo "exit code $rc"
	[ $rc != 0 ] && sentence "$dir/client.err" "port 0 .net_af_packet0. has lost its link"
}

own_ethertype() {
	local rc=0
	export WEFT_ENCAP=ether
	perf_pair 2 -t tag_bw -s 8,64k -n 100 -f -V || rc=$?
	unset WEFT_ENCAP
	return $rc
}

# UDP at one end, the own ethertype at the other: no lane reaches the other, and the reason is said.
encaps_differ() {
	local rc=0
	new_pair 1
	start_server "$perf" || return 1
	client "$perf" -S ENCAP=ether || rc=$?
	server_code && return 1
	echo "the client ended with $rc"
	[ $rc = 1 ] && grep -q "WEFT_ENCAP" "$dir/client.err" &&
		grep -q "no lane here reaches" "$dir/client.err"
}

# Frames and neighbour discovery as Wireshark reads them: each UDP and ICMPv6 checksum is right.
as_wireshark_reads() {
	local file=$1 lane nd bad
	tshark -r "$file" -o udp.check_checksum:TRUE -T fields -e ipv6.src -e udp.checksum.status \
		-e icmpv6.type -e icmpv6.checksum.status -e ipv6.hlim -e ipv6.flow \
		>"$dir/fields" 2>/dev/null || return 1
	lane=$(awk -F '\t' '$2 == 1 && $5 == 64 && $6 ~ /^0x0+$/' "$dir/fields" | wc -l)
	nd=$(awk -F '\t' '($3 == 135 || $3 == 136) && $4 == 1 && $5 == 255' "$dir/fields" | wc -l)
	bad=$(awk -F '\t' '$2 == 0 || $4 == 0' "$dir/fields" | wc -l)
	echo "$lane frames, $nd of neighbour discovery, $bad with a wrong checksum"
	[ "$lane" -gt 100 ] && [ "$nd" -ge 4 ] && [ "$bad" = 0 ]
}

# ipv6_pair SERVER_LANE CLIENT_LANE CLIENT_ARGS...
ipv6_pair() {
	local theirs=$1 ours=$2
	shift 2
	free_port
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=six,$packet")
	eal_client=("${eal_server[@]}")
	lanes=$theirs
	start_server "$perf" || return 1
	lanes=$ours
	client "$perf" "$@" || { cat "$dir/client.err"; kill $server_pid; server_code; return 1; }
	server_code && cat "$dir/client.out"
}

ipv6_alone() {
	local rc=0 watch
	rm -f "$dir/six.pcapng" "$dir/tshark.err"
	if command -v tshark >/dev/null; then
		"${client_run[@]}" tshark -q -i six -w "$dir/six.pcapng" 2>"$dir/tshark.err" &
		watch=$!
		until_said "$dir/tshark.err" "Capturing on" $watch || return 1
		# The first bytes are there when the socket receives.
		until [ -s "$dir/six.pcapng" ] || ! kill -0 $watch; do sleep 0.05; done
	fi
	ipv6_pair "dpdk:0,ip=fd00:77::1/64$1" "dpdk:0,ip=fd00:77::2/64$1" -t tag_bw \
		-s 8,1k,64k -n 100 -f -V || rc=1
	if [ -n "$watch" ]; then
		sleep 1
		kill -INT $watch && wait $watch
		[ $rc = 0 ] && as_wireshark_reads "$dir/six.pcapng"
	fi
}

# A kernel routes between two networks: it finds the lanes by neighbour discovery, and they find it.
ipv6_through_a_router() {
	local r=${ns[2]} side
	link left 1500 "" 0 2 && link right 1500 "" 1 2 || return 1
	ip netns exec "$r" sysctl -qw net.ipv6.conf.all.forwarding=1 || return 1
	ip -n "$r" addr add fd00:1::fe/64 dev left nodad || return 1
	ip -n "$r" addr add fd00:2::fe/64 dev right nodad || return 1
	free_port
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=left,$packet")
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=right,$packet")
	lanes=dpdk:0,ip=fd00:1::1/64,gw=fd00:1::fe
	start_server "$perf" || return 1
	lanes=dpdk:0,ip=fd00:2::2/64,gw=fd00:2::fe
	client "$perf" -t tag_bw -s 8,1k,64k -n 100 -f -V || {
		cat "$dir/client.err"
		kill $server_pid
		server_code
		return 1
	}
	server_code || return 1
	ip -n "$r" -6 neigh show
	for side in fd00:1::1 fd00:2::2; do
		ip -n "$r" -6 neigh show | grep -q "^$side .*lladdr" || return 1
	done
}

# ipv6_router_reports CLASS ROUTE: the router of ipv6_through_a_router has such a route to the
# server. The client's capture alone names what the router reports to it.
ipv6_router_reports() {
	local class=$1 route=$2 r=${ns[2]} rc=0
	ip -n "$r" -6 route add "$route" fd00:1::1/128 || return 1
	free_port
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=left,$packet")
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=right,$packet")
	lanes=dpdk:0,ip=fd00:1::1/64,gw=fd00:1::fe
	start_server "$perf" || return 1
	lanes=dpdk:0,ip=fd00:2::2/64,gw=fd00:2::fe
	client "$perf" -S "CAPTURE=$dir/router.pcapng" -S CONNECT_TIMEOUT=3s -t tag_bw -s 8 -n 10 \
		-f || rc=$?
	kill $server_pid
	server_code
	ip -n "$r" -6 route del "$route" fd00:1::1/128
	echo "the client ended with $rc"
	[ $rc != 0 ] || return 1
	"$build/app/weft-dump" "$dir/router.pcapng" >"$dir/dump.txt" || return 1
	head -n 24 "$dir/dump.txt"
	grep -q "^$class, " "$dir/dump.txt" &&
		grep -q "fd00:2::fe reports .* for fd00:2::2 > fd00:1::1, .*ICMPv6" "$dir/dump.txt"
}

if [ -e /proc/sys/net/ipv6 ] && link six 1500; then
	# @behaviour R89
	check "IPv6 alone, as Wireshark reads it" ipv6_alone
	slow check "IPv6 alone, in a VLAN" ipv6_alone ,vlan=7
	check "IPv6 alone, addresses from the MAC" ipv6_pair "dpdk:0,ip=fe80::/64" \
		"dpdk:0,ip=fe80::/64" -t tag_bw -s 8,64k -n 100 -f -V
	check "IPv6 through a router" ipv6_through_a_router
	# @behaviour Y96
	check "a router that prohibits it is named" ipv6_router_reports firewall prohibit
	check "a router without a route is named" ipv6_router_reports unreachable unreachable
else
	skip "IPv6" "the kernel has no IPv6"
fi
check "tag_lat: all sizes over two rails, every byte" perf_pair 2 -t tag_lat -s 1:1M -n 20 -w 2 -f \
	-V
slow check "tag_bw: sizes over two rails, every byte" perf_pair 2 -t tag_bw -s 8,1k,64k,1M -n 100 \
	-w 2 -f -V
check "tag_bibw: sizes over two rails, every byte" perf_pair 2 -t tag_bibw -s 8,1k,64k,1M -n 50 \
	-w 2 -f -V
check "own ethertype instead of UDP" own_ethertype
check "UDP at one end, own ethertype at the other: a sentence" encaps_differ
check "CRC32C over every frame" perf_pair 2 -t tag_bw -s 8,64k -n 100 -f -V -S CSUM=crc32c
# @behaviour X7
check "MTU 1500 at one end, 9000 at the other" mtus_differ
# @behaviour X24: a veth whose other end has a smaller MTU
check "ports of a bridge with a smaller MTU" bridged_with_smaller_mtu
slow check "weft-cat: a file" cat_file
check "server killed in a stream" server_killed
# @behaviour X4
check "link down: a sentence" link_down
check "link down for 1 s in a stream of 64 KiB: nothing is lost" link_flaps 64k
slow check "link down for 1 s in a stream of 64 B: nothing is lost" link_flaps 64
# @behaviour X4
check "link down for good in a stream: a sentence in time" link_lost
for test in raw_lat raw_bw; do
	check "$test: link down: a sentence" raw_link_lost $test
done
check "one rail of two is cut before the start" one_rail_cut
tap_end
