#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A lane over UDP sockets of one host, and a raw lane over net_af_packet of another, over veths of
# MTU 1500 and 9000, in either direction; and with every hundredth frame dropped between the hosts.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

link rail1500 1500 10.99.1 && link rail9000 9000 10.99.2 || exit 1

packet="blocksz=16384,framesz=16384,framecnt=256"

# raw RAIL IP: what the end with the raw lane gets. Its address is not the kernel's.
raw() {
	eal=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=$1,$packet" --)
	lane="dpdk:0,ip=$2"
}
sockets() {
	eal=()
	lane="udp:$1"
}

# ends RAIL NET SERVER: "raw" or "sockets" at the server, the other kind at the client.
ends() {
	free_port
	if [ "$3" = raw ]; then
		raw "$1" "$2.11/24"
	else
		sockets "$1"
	fi
	server_eal=("${eal[@]}") server_lane=$lane
	if [ "$3" = raw ]; then
		sockets "$1"
	else
		raw "$1" "$2.12/24"
	fi
	client_eal=("${eal[@]}") client_lane=$lane
}

start_server() {
	local program=$1
	shift
	: >"$dir/server.err"
	timeout -k 10 100 "${server_run[@]}" "$program" "${server_eal[@]}" -p "$port" \
		-L "$server_lane" "$@" <"${server_in:-/dev/null}" \
		>"${server_out:-$dir/server.out}" 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for a client" "$server_pid"
}
client() {
	local program=$1
	shift
	timeout -k 10 100 "${client_run[@]}" "$program" "${client_eal[@]}" -p "$port" \
		-L "$client_lane" "$@" "$host" >"$dir/client.out" 2>"$dir/client.err"
}

# sizes RAIL NET SERVER: tag messages, rendezvous, put and get, both ways at once, every byte. No
# frame arrives merged with others, which would be too long.
sizes() {
	ends "$1" "$2" "$3"
	start_server "$perf" --counters || return 1
	client "$perf" -t tag_bibw,put_bw,get_bw -s 8,1449,64k,1M -n 5 -f -V --counters ||
		return 1
	server_code || return 1
	cat "$dir/client.out"
	! grep -hE "drop\.bad_length" "$dir/client.err" "$dir/server.err"
}

ms() { echo $(($(date +%s%N) / 1000000)); }

# killed SERVER: the server is killed in a stream, while the programs' TCP connection has no link.
killed() {
	local begin took bound rc=0
	ends rail9000 10.99.2 "$1"
	start_server "$perf" || return 1
	: >"$dir/client.out"
	client "$perf" -t tag_bw -s 64k -D 60 &
	client_pid=$!
	until_said "$dir/client.out" '^test ' $client_pid && stream_runs || return 1
	ip -n "${ns[0]}" link set ctl down
	begin=$(ms)
	kill -KILL "$(program_pid "$server_pid")"
	until_said "$dir/client.err" "the process of .* is gone|its process has ended" \
		"$client_pid" || rc=1
	took=$(($(ms) - begin))
	bound=$(stretch 1000)
	echo "noticed after $took of $bound ms"
	wait "$client_pid"
	server_code
	ip -n "${ns[0]}" link set ctl up
	cat "$dir/client.err"
	[ $rc = 0 ] && [ $took -le "$bound" ]
}

# over_ipv6 SERVER
over_ipv6() {
	if [ "$1" = raw ]; then
		ends six fd00:98: raw
		server_lane="dpdk:0,ip=fd00:98::11/64"
	else
		ends six fd00:98: sockets
		client_lane="dpdk:0,ip=fd00:98::12/64"
	fi
	start_server "$perf" || return 1
	client "$perf" -t tag_bibw -s 8,1449,64k -n 5 -f -V || { cat "$dir/client.err"; return 1; }
	server_code && cat "$dir/client.out"
}

# sealed_over_ipv6 SERVER: sealed frames have no CRC-32C beside the checksum that a veth leaves out.
sealed_over_ipv6() {
	local rc=0
	export WEFT_JOB_KEY=$dir/key
	over_ipv6 "$1" || rc=1
	unset WEFT_JOB_KEY
	return $rc
}

# A bridge joins the hosts, and drops every hundredth frame of either direction at random.
lossy() {
	local side
	ip -n "${ns[2]}" link add name bridge type bridge &&
		ip -n "${ns[2]}" link set dev bridge up || return 1
	for side in 0 1; do
		ip -n "${ns[$side]}" link add name lossy mtu 1500 type veth \
			peer name "side$side" mtu 1500 netns "${ns[2]}" &&
			ip -n "${ns[$side]}" addr add "10.99.3.$((side + 1))/24" dev lossy &&
			ip -n "${ns[$side]}" link set dev lossy up &&
			ip -n "${ns[2]}" link set dev "side$side" master bridge up || return 1
	done
	ip netns exec "${ns[2]}" nft "add table bridge weft
		add chain bridge weft c { type filter hook forward priority 0; }
		add rule bridge weft c iifname side0 ip protocol udp numgen random mod 100 == 0 \
			counter drop
		add rule bridge weft c iifname side1 ip protocol udp numgen random mod 100 == 0 \
			counter drop"
}

# drops: the frames that the bridge has dropped, of each direction.
drops() {
	ip netns exec "${ns[2]}" nft list chain bridge weft c |
		sed -n 's/.*counter packets \([0-9]*\).*/\1/p'
}

# sizes_with_loss SERVER: as sizes(), and frames of both directions are dropped meanwhile.
sizes_with_loss() {
	local before after i
	mapfile -t before < <(drops)
	sizes lossy 10.99.3 "$1" || return 1
	mapfile -t after < <(drops)
	echo "dropped: ${before[*]} before, ${after[*]} after"
	for i in 0 1; do [ "${after[$i]}" -gt "${before[$i]}" ] || return 1; done
}

for server in sockets raw; do
	# @behaviour R90: a lane over UDP sockets and a raw lane of another host carry messages, and
	# the end of either process is noticed within a second
	check "every size, MTU 1500, server: $server" sizes rail1500 10.99.1 $server
	slow check "every size, MTU 9000, server: $server" sizes rail9000 10.99.2 $server
	check "a killed server: $server" killed $server
done
if command -v nft >/dev/null && lossy 2>"$dir/ip.log"; then
	# @behaviour R90
	check "every hundredth frame lost, server: sockets" sizes_with_loss sockets
	slow check "every hundredth frame lost, server: raw" sizes_with_loss raw
else
	skip "lost frames" "no bridge or nft(8) here, or a kernel without them"
fi
if [ -e /proc/sys/net/ipv6 ] && link six 1500 &&
	ip -n "${ns[0]}" addr add fd00:98::1/64 dev six nodad &&
	ip -n "${ns[1]}" addr add fd00:98::2/64 dev six nodad; then
	check "IPv6, server: sockets" over_ipv6 sockets
	slow check "IPv6, server: raw" over_ipv6 raw
	if "$info" -v | grep -q '^sealed frames.*libipsec'; then
		(umask 077 && head -c 32 /dev/urandom >"$dir/key")
		slow check "IPv6, sealed, server: sockets" sealed_over_ipv6 sockets
		check "IPv6, sealed, server: raw" sealed_over_ipv6 raw
	else
		skip "IPv6, sealed" "this build cannot seal"
	fi
else
	skip "IPv6" "the kernel has no IPv6"
fi
tap_end
