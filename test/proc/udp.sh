#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Lanes over UDP sockets (doc/ports.md): the programs as an ordinary user without any right, between
# network namespaces over one and two veths. Only the namespaces themselves need root.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

command -v setpriv >/dev/null || { echo "setpriv(1) is not installed (util-linux)"; exit 77; }
user=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs)
"${user[@]}" test -x "$perf" || { echo "user 65534 may not read the build"; exit 77; }
link rail0 9000 10.99.1 && link rail1 9000 10.99.2 || exit 1
netns_client=("${client_run[@]}")
server_run+=("${user[@]}")
client_run+=("${user[@]}")
# A folder that the ordinary user reaches: those above $dir may be private.
shared=$(mktemp -d /tmp/weft-udp.XXXXXX) || exit 1
chmod 777 "$shared"
tidy_shared() {
	rm -rf "$shared"
	untidy
}
trap tidy_shared EXIT
dump=$build/app/weft-dump
export TMPDIR=$shared

# No argument for the EAL, and no "--".
start_server() {
	local program=$1
	shift
	free_port
	: >"$dir/server.err"
	timeout -k 10 100 "${server_run[@]}" "$program" -p "$port" -L "$lanes" "$@" \
		<"${server_in:-/dev/null}" >"${server_out:-$dir/server.out}" 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for a client" "$server_pid"
}
client() {
	local program=$1
	shift
	timeout -k 10 100 "${client_run[@]}" "$program" -p "$port" -L "$lanes" "$@" "$host" \
		>"$dir/client.out" 2>"$dir/client.err"
}
new_pair() { :; }

# pair ARGS...: a server, and a client to its end.
pair() {
	start_server "$perf" || return 1
	client "$perf" "$@" || return 1
	server_code && cat "$dir/client.out"
}

# sizes LANES SIZES NUMBER: every byte is compared.
sizes() {
	lanes=$1
	pair -t tag_bw,am_bw -s "$2" -n "$3" -f -V --counters || return 1
	grep -E "udp\.(tx_calls|rx_datagrams)" "$dir/client.err"
}

all_sizes() {
	sizes "$1" 1,7,64,500,1k,1449,4k,9k,30k,64k,250k 10 && sizes "$1" 1M,4M 3
}

# Some message went over both. A busy machine measures them as unlike, so their rates are given.
two_rails_carry() {
	sizes "udp:rail0,bw=10Gbps;udp:rail1,bw=10Gbps" 8,32k,64k,128k,1M 10 || return 1
	grep -qE "^[a-z]+_bw .* [1-9][0-9]?:[1-9][0-9]? " "$dir/client.out"
}

remote_memory() {
	lanes="udp:rail0;udp:rail1"
	pair -t put_bw,get_bw,fadd_lat,cswap_lat -s 8 -n 50 -f -V &&
		pair -t put_bw,get_bw -s 100,64k,1M -n 20 -f -V
}

# start_box NAME PREFIX LOSS DUPLICATES DISORDER: a rail through a program that spoils it.
start_box() {
	local i
	rm -f "$dir/box.in" "$dir/box.out"
	mkfifo "$dir/box.in"
	python3 "$(dirname "$0")/udp_box.py" "${ns[0]}" "${ns[1]}" "$1" "$3" "$4" "$5" \
		<"$dir/box.in" >"$dir/box.out" 2>"$dir/box.err" &
	box_pid=$!
	exec 8>"$dir/box.in"
	until_said "$dir/box.out" ready $box_pid || { cat "$dir/box.err"; return 1; }
	for i in 0 1; do
		ip -n "${ns[$i]}" addr add "$2.$((i + 1))/24" dev "$1" &&
			ip -n "${ns[$i]}" link set "$1" up || return 1
	done
}

bad_network() {
	local rc=0
	start_box bad 10.99.5 0.02 0.02 0.05 || return 1
	lanes=$1
	pair -t tag_bw,am_bw -s 8,1k,9k,64k -n 30 -f -V --counters || rc=$?
	exec 8>&-
	wait $box_pid
	cat "$dir/box.out"
	[ $rc = 0 ] && log_has "tx\.retransmit" || return 1
	# The bad one of two rails carries so little that none of it may be doubled.
	[ "$1" = udp:bad ] || { grep -qE "[1-9][0-9]* lost" "$dir/box.out"; return; }
	log_has "drop\.duplicate" &&
		grep -qE "[1-9][0-9]* lost [1-9][0-9]* doubled [1-9][0-9]* disord" "$dir/box.out"
}

# A rail goes down under a stream: it is given up, and taken back when the link is up again.
rail_dies() {
	local rc=0
	lanes="udp:rail0;udp:rail1"
	start_stream -b 64k -S LOG_LEVEL=info || return 1
	ip -n "${ns[1]}" link set rail1 down
	until_said "$dir/client.err" "lane [01] to .* is given up" "$client_pid" || rc=1
	ip -n "${ns[1]}" link set rail1 up
	[ $rc != 0 ] || until_said "$dir/client.err" "lane [01] to .* is back" "$client_pid" || rc=1
	end_stream && [ $rc = 0 ]
}

ms() { echo $(($(date +%s%N) / 1000000)); }

# killed LANES BYTES: the server is killed in a stream. The programs' TCP connection cannot report
# it: its link is down.
killed() {
	local begin took bound rc=0
	lanes=$1
	start_server "$perf" || return 1
	start_client -t tag_bw -s "$2" -D 60 && stream_runs || return 1
	ip -n "${ns[0]}" link set ctl down
	begin=$(ms)
	kill -KILL "$(program_pid "$server_pid")"
	until_said "$dir/client.err" "the process of .* is gone: its host reports" "$client_pid" ||
		rc=1
	took=$(($(ms) - begin))
	bound=$(stretch 1000)
	echo "noticed after $took of $bound ms"
	wait "$client_pid"
	server_code
	ip -n "${ns[0]}" link set ctl up
	[ $rc = 0 ] && [ $took -le "$bound" ]
}

# A process that is stopped is slow, not dead.
stopped() {
	local rc=0 victim
	lanes="udp:rail0;udp:rail1"
	start_server "$perf" || return 1
	start_client -t tag_bw -s 4k -D 3 -V && stream_runs || return 1
	victim=$(program_pid "$server_pid")
	kill -STOP "$victim"
	sleep 3
	kill -CONT "$victim"
	wait "$client_pid" || rc=$?
	server_code || return 1
	[ $rc = 0 ] && ! grep "is gone" "$dir/client.err"
}

# weft-cat sleeps while nothing comes, and wakes for what comes: five lines in a second and a half
# of waiting, with the server's CPU time below a fifth of that.
sleeps() {
	local ticks pid
	lanes="udp:rail0;udp:rail1"
	start_server "$cat" -l || return 1
	pid=$(program_pid "$server_pid")
	mkfifo "$dir/slow"
	client "$cat" <"$dir/slow" &
	client_pid=$!
	exec 9>"$dir/slow"
	echo first >&9
	until_said "$dir/server.out" first "$client_pid" || return 1
	ticks=$(awk '{print $14 + $15}' "/proc/$pid/stat")
	for i in 1 2 3 4 5; do
		sleep 0.3
		echo "line $i" >&9
		until_said "$dir/server.out" "line $i" "$client_pid" || return 1
	done
	ticks=$(($(awk '{print $14 + $15}' "/proc/$pid/stat") - ticks))
	exec 9>&-
	wait $client_pid && server_code || return 1
	echo "$ticks ticks of $(getconf CLK_TCK) in a second"
	[ $ticks -lt $((3 * $(getconf CLK_TCK) / 10)) ]
}

# Both ends' captures are complete, and nothing in them is wrong.
captured() {
	lanes="udp:rail0"
	start_server "$perf" -S "CAPTURE=$shared/server.pcapng" || return 1
	client "$perf" -S "CAPTURE=$shared/client.pcapng" -t tag_bw -s 8,64k -n 100 -f || return 1
	server_code || return 1
	"$dump" "$shared/server.pcapng" "$shared/client.pcapng" >"$dir/dump.txt" || return 1
	cat "$dir/dump.txt"
	grep -q "udp:rail0" "$dir/dump.txt" && ! grep -qi "malformed\|checksum" "$dir/dump.txt"
}

# A capture over IPv6 has the addresses and checksums of the network, not the engine's numbers.
captured_over_ip6() {
	lanes="udp:six"
	start_server "$perf" -S "CAPTURE=$shared/six.pcapng" || return 1
	client "$perf" -t tag_bw -s 8,64k -n 100 -f || return 1
	server_code || return 1
	"$dump" --all "$shared/six.pcapng" >"$dir/dump.txt" || return 1
	cat "$dir/dump.txt"
	grep -q "fd00:99::1 > fd00:99::2" "$dir/dump.txt" || return 1
	command -v tshark >/dev/null || return 0
	tshark -r "$shared/six.pcapng" -o udp.check_checksum:TRUE -T fields -e eth.type \
		-e udp.checksum.status -e icmpv6.checksum.status 2>/dev/null | sort | uniq -c |
		tee "$dir/fields"
	# IPv6 only, and each checksum is good.
	awk '$2 != "0x86dd" || $3 != 1 {bad = 1} END {exit bad || NR == 0}' "$dir/fields"
}

# The ports of both ends are in the range: the one on which the lane listens, and those of paths.
ports_in_range() {
	local seen
	lanes="udp:rail0,ports=21000-21999,paths=4"
	start_server "$perf" -S "CAPTURE=$shared/range.pcapng" || return 1
	client "$perf" -t tag_bw -s 64k -n 100 -f || return 1
	server_code || return 1
	seen=$("$dump" -F "$shared/range.pcapng" | grep -oE "10\.99\.1\.[12]:[0-9]+" | sort -u)
	echo "$seen"
	[ "$(echo "$seen" | grep -c "10.99.1.2")" -ge 3 ] &&
		! echo "$seen" | grep -vE ":21[0-9]{3}$"
}

# Lanes of one host have blocks of 32 ports of their own, also where the kernel has three blocks.
own_blocks() {
	local i pids=() seen
	lanes="udp:rail0"
	ip netns exec "${ns[0]}" sysctl -qw net.ipv4.ip_local_port_range="40960 41055"
	for i in 1 2 3; do
		start_server "$perf" || return 1
		pids+=("$server_pid")
		timeout 60 "${client_run[@]}" "$perf" -p "$port" -L "$lanes" -t tag_lat -s 8 \
			-n 100000000 "$host" >"$dir/own$i.out" 2>&1 &
		pids+=($!)
		until_said "$dir/own$i.out" "lane udp:rail0 up" $! || break
	done
	seen=$(ip netns exec "${ns[0]}" ss -Huan | grep -oE "10\.99\.1\.1:[0-9]+" | sort -u)
	kill "${pids[@]}"
	wait "${pids[@]}"
	server_pid=
	ip netns exec "${ns[0]}" sysctl -qw net.ipv4.ip_local_port_range="32768 60999"
	echo "$seen"
	for i in 40960 40992 41024; do
		echo "$seen" | grep -q ":$i$" || return 1
	done
}

# Several processes of one host share its interface and address.
three_pairs() {
	local rc=0 i pids=() servers=() ports=()
	lanes="udp:rail0"
	for i in 1 2 3; do
		start_server "$perf" || return 1
		servers+=("$server_pid")
		ports+=("$port")
	done
	for i in 0 1 2; do
		timeout 60 "${client_run[@]}" "$perf" -p "${ports[$i]}" -L "$lanes" \
			-t tag_bw -s 64k -n 300 -f -V "$host" >"$dir/three$i.out" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}" "${servers[@]}"; do
		wait "$i" || rc=$?
	done
	server_pid=
	cat "$dir"/three?.out
	return $rc
}

# Both processes on one host, over its own address: the kernel sends that through loopback.
one_host() {
	local rc=0 run=("${client_run[@]}") to=$host
	client_run=("${server_run[@]}")
	host=127.0.0.1
	lanes=$1
	ip -n "${ns[0]}" link set lo up
	pair -t tag_bw -s 8,64k -n 100 -f -V || rc=$?
	client_run=("${run[@]}")
	host=$to
	return $rc
}

# A peer behind a router: the kernel's routes decide.
through_a_router() {
	local r=${ns[2]} rc=0
	link left 1500 10.99.3 0 2 && link right 1500 10.99.4 1 2 || return 1
	ip -n "$r" link set lo up
	ip netns exec "$r" sysctl -qw net.ipv4.ip_forward=1 || return 1
	ip -n "${ns[0]}" route add 10.99.4.0/24 via 10.99.3.2 &&
		ip -n "${ns[1]}" route add 10.99.3.0/24 via 10.99.4.2 || return 1
	lanes="udp:left"
	start_server "$perf" || return 1
	lanes="udp:right"
	client "$perf" -t tag_bw -s 8,64k,1M -n 50 -f -V || rc=$?
	server_code || rc=$?
	return $rc
}

# A smaller MTU on the way than at the ends: frames have it.
small_mtu_between() {
	ip -n "${ns[2]}" link set right mtu 1400
	lanes="udp:left"
	start_server "$perf" || return 1
	lanes="udp:right"
	client "$perf" -t tag_bw -s 8,64k -n 50 -f -V && server_code || return 1
	cat "$dir/client.out" "$dir/client.err"
	grep -q "1414 are used" "$dir/client.err" "$dir/server.err"
}

no_route() {
	local rc=0
	lanes="udp:rail0"
	start_server "$perf" -S CONNECT_TIMEOUT=2s || return 1
	lanes="udp:right"
	client "$perf" -S CONNECT_TIMEOUT=2s || rc=$?
	server_code
	[ $rc != 0 ] && log_has "no route leads from interface right to 10.99.1.1"
}

# refused LANES PATTERN: the client does not start, with such a sentence.
refused() {
	local rc=0
	lanes="udp:rail0"
	start_server "$perf" || return 1
	lanes=$1
	client "$perf" || rc=$?
	kill "$server_pid" 2>/dev/null
	server_code
	[ $rc != 0 ] && log_has "$2"
}

# Loopback, and interfaces without an address, only when named.
listed() {
	lanes=
	ip -n "${ns[1]}" link add bare type dummy && ip -n "${ns[1]}" link set bare up
	"${client_run[@]}" "$info" -d -L "udp:*" >"$dir/client.out" 2>"$dir/client.err" ||
		WEFT_LANES="udp:*" "${client_run[@]}" "$info" -d >"$dir/client.out" \
			2>"$dir/client.err" || return 1
	cat "$dir/client.out"
	grep -q rail0 "$dir/client.out" && grep -q rail1 "$dir/client.out" &&
		! grep -qE "udp:(lo|bare)" "$dir/client.out"
}

# A rail without an IPv4 address.
ipv6_rail() {
	local side
	link six 1500 || return 1
	for side in 0 1; do
		ip -n "${ns[$side]}" addr add "fd00:99::$((side + 1))/64" dev six nodad || return 1
	done
}

# Forged addresses without number send to all ports that the server may have, while a stream runs
# and while the next client connects.
spoofed() {
	local rc=0 sent
	lanes=udp:six,ports=23008-23039
	start_stream -b 64k || return 1
	rm -f "$dir/spoof.in"
	mkfifo "$dir/spoof.in"
	"${netns_client[@]}" python3 "$(dirname "$0")/udp_spoof.py" fd00:99::/64 fd00:99::1 \
		23008 23039 <"$dir/spoof.in" >"$dir/spoof.out" 2>"$dir/spoof.err" &
	spoof_pid=$!
	exec 8>"$dir/spoof.in"
	until_said "$dir/spoof.out" sends $spoof_pid || { cat "$dir/spoof.err"; rc=1; }
	sleep 3
	end_stream || rc=1
	[ $rc != 0 ] || sizes "$lanes" 8,64k 10 || rc=1
	exec 8>&-
	wait $spoof_pid || rc=1
	sent=$(tail -n 1 "$dir/spoof.out")
	echo "$sent forged datagrams"
	[ $rc = 0 ] && [ "$sent" -gt 3000 ]
}

check "every size over one rail, MTU 9000" all_sizes udp:rail0
if [ -e /proc/sys/net/ipv6 ] && ipv6_rail 2>/dev/null; then
	slow check "every size over IPv6" all_sizes udp:six
	check "a capture over IPv6" captured_over_ip6
	slow check "every size over IPv6 and IPv4" sizes "udp:six;udp:rail0" 8,64k,1M 10
	# @behaviour R85
	check "a killed process over IPv6" killed udp:six 64k
	# @behaviour R88: datagrams from forged IPv6 addresses without number neither end nor stop a
	# connection over UDP sockets, nor keep a client out
	slow check "forged IPv6 addresses without number" spoofed
	check "two processes of one host, over IPv6" one_host udp:six
	check "an IPv6 address of another interface" refused udp:six,ip=fd00:99::7 \
		"is not an address of this"
else
	skip "IPv6" "the kernel has no IPv6"
fi
check "two rails carry a large message" two_rails_carry
slow check "remote memory over two rails" remote_memory
if [ -e /dev/net/tun ] && command -v python3 >/dev/null; then
	check "loss, duplicates, disorder" bad_network udp:bad
	check "loss on one of two rails" bad_network "udp:bad;udp:rail0"
else
	skip "loss, duplicates, disorder" "this needs /dev/net/tun and python3"
fi
check "a rail goes down and comes back under a stream" rail_dies
# @behaviour R85
check "a killed process over one rail" killed udp:rail0 64k
# @behaviour R85
slow check "a killed process over two rails" killed "udp:rail0;udp:rail1" 1M
# @behaviour R85
check "a process that stops for 3 s is not lost" stopped
check "a process sleeps and is woken" sleeps
check "captures of both ends" captured
check "ports of a range" ports_in_range
check "lanes of one host share no block of ports" own_blocks
slow check "three pairs of processes over one interface" three_pairs
check "two processes of one host, over its interface" one_host udp:rail0
check "two processes of one host, over loopback" one_host udp:lo
check "a peer behind a router" through_a_router
check "a smaller MTU between" small_mtu_between
check "no route to the peer" no_route
check "no such interface" refused udp:nothing "there is no interface of this name"
check "a malformed range of ports" refused udp:rail0,ports=5-x "expected a range of UDP ports"
check "a range without a whole block" refused udp:rail0,ports=20001-20031 "the range has none"
check "an address of another interface" refused udp:rail0,ip=10.99.2.2 "is not an address of this"
check "a MTU larger than the interface's" refused udp:rail0,mtu=9100 "is more than the interface's"
check "which interfaces are lanes by default" listed
tap_end
