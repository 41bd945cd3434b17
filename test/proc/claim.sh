#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A port belongs to one process: a second process gets the owner's name, and does no harm.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

link rail 1500 && link rail2 1500 || exit 1

packet="blocksz=4096,framesz=4096,framecnt=256"
new_pair() {
	free_port
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=rail,$packet")
	eal_client=("${eal_server[@]}")
	lanes=dpdk:0
}

# A stream, and in the middle of it another process at the server's end: while_streaming COMMAND...
while_streaming() {
	local rc=0
	new_pair
	start_stream || return 1
	"$@" || rc=1
	echo "the other's case: $rc"
	end_stream && [ $rc = 0 ]
}

# second VDEV: another process there has no lane, says so, and names the owner.
second() {
	local owner rc=0
	owner=$(program_pid "$server_pid")
	timeout 60 "${server_run[@]}" "$perf" --no-huge -m 512 --no-pci --vdev="$1" -- \
		-p $((port + 1)) -W 0 \
		"$host" >"$dir/second" 2>&1 || rc=$?
	timeout 60 "${server_run[@]}" "$info" --no-huge -m 512 --no-pci --vdev="$1" -- \
		-d >>"$dir/second" 2>&1
	cat "$dir/second"
	grep -qE "is in use by process $owner \(weft-cat\): .*interface rail" "$dir/second"
}

second_packet() { while_streaming second "net_af_packet0,iface=rail,$packet"; }
second_xdp() { while_streaming second "net_af_xdp0,iface=rail"; }

memif_second() {
	local owner rc=0 \
		memif="net_memif0,role=$1,id=0,socket-abstract=no,socket=$dir/m,bsize=9216" \
		server_run=() client_run=()
	new_pair
	host=127.0.0.1
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_memif0,role=server,${memif#*,*,}")
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_memif0,role=client,${memif#*,*,}")
	lanes=dpdk:0,mtu=9000
	start_stream || return 1
	[ "$1" = server ] && owner=$(program_pid "$server_pid") ||
		owner=$(program_pid "$(pgrep -P $client_pid timeout)")
	timeout 60 "$info" --no-huge -m 512 --no-pci --vdev="$memif" -- -d >"$dir/second" 2>&1
	cat "$dir/second"
	end_stream || rc=$?
	host=10.99.7.1
	echo "owner $owner"
	[ $rc = 0 ] && grep -q "process $owner (weft-cat)" "$dir/second"
}

# The same interface index in another namespace is another interface.
other_namespace() {
	local a b
	a=$(ip -n "${ns[0]}" -o link show dev rail | cut -d: -f1)
	b=$(ip -n "${ns[1]}" -o link show dev rail | cut -d: -f1)
	echo "indices $a and $b"
	[ "$a" = "$b" ] && perf_pair 1 -t tag_bw -s 64k -n 100 -f -V
}

# A killed process keeps nothing, also while the kernel still closes its sockets.
after_a_kill() {
	local i
	for i in 1 2 3; do
		new_pair
		start_server "$perf" || return 1
		start_client -t tag_bw -s 64k -D 30 -f || return 1
		kill -9 "$(program_pid "$server_pid")"
		timeout 60 "${server_run[@]}" "$info" "${eal_server[@]}" -- -d >"$dir/next" 2>&1
		cat "$dir/next"
		wait $client_pid
		server_code
		! grep -q "in use" "$dir/next" && grep -q "dpdk:0" "$dir/next" || return 1
	done
}

# hold_as_nobody NS: a process without rights listens under the name of an interface's queue
# (claim.c).
hold_as_nobody() {
	ip netns exec "$1" timeout 300 python3 -c "$holder_py" >"$dir/holder.$1" &
	holders+=($!)
	until_said "$dir/holder.$1" holds $!
}
holder_py='
import os, socket, time
index = socket.if_nametoindex("rail")
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
os.setuid(65534)
s.bind(f"\0weft/netdev/{index}/0")
s.listen()
print("holds", flush=True)
time.sleep(300)
'

# A user's claim keeps root from nothing. Then no process knows of the other, and all see all
# frames, with the same addresses: two pairs of processes at the same interfaces, whose workers do
# not know each other's connections.
claimed_by_nobody() {
	local rc=0 holders=()
	hold_as_nobody "${ns[0]}" && hold_as_nobody "${ns[1]}" && while_streaming another_pair ||
		rc=$?
	kill "${holders[@]}"
	wait "${holders[@]}"
	grep "claim is ignored because it is neither root's nor this user's" "$dir/server.err" ||
		rc=1
	return $rc
}

another_pair() {
	local rc=0 first=$server_pid
	: >"$dir/second"
	timeout 60 "${server_run[@]}" "$perf" "${eal_server[@]}" -- -p $((port + 1)) \
		>"$dir/second" 2>&1 &
	until_said "$dir/second" "waiting for a client" $! || return 1
	timeout 60 "${client_run[@]}" "$perf" "${eal_client[@]}" -- -p $((port + 1)) -t tag_bw \
		-s 8,64k -D 1 -f -V --counters \
		"$host" >"$dir/second.client" 2>&1 || rc=$?
	wait $! || rc=$?
	cat "$dir/second" "$dir/second.client"
	# It has seen what was not for it, and has kept quiet.
	[ $rc = 0 ] && [ "$first" = "$server_pid" ] &&
		grep -qE "tx.reset.withheld +[1-9]" "$dir/second.client"
}

# ---- WEFT_PORTS ----------------------------------------------------------------------------

# choose: as many processes with the same environment as there are interfaces.
choose() {
	free_port
	eal_server=(--no-huge -m 256 --no-pci --vdev="net_af_packet0,iface=rail,$packet"
		--vdev="net_af_packet1,iface=rail2,$packet")
	eal_client=("${eal_server[@]}")
	lanes=dpdk
	export WEFT_PORTS='net_af_packet*'
}

# Two pairs of processes, and a fifth process.
two_pairs() {
	local rc=0 first first_client
	start_server "$perf" || return 1
	start_client -t tag_bw -s 64k -D "$(stretch 4 40)" -f -V || return 1
	first=$server_pid
	first_client=$client_pid
	port=$((port + 1))
	# The second pair's files are its own.
	: >"$dir/second"
	timeout 100 "${server_run[@]}" "$perf" "${eal_server[@]}" -- -p $port -L dpdk \
		>"$dir/second" 2>&1 &
	second_pid=$!
	until_said "$dir/second" "waiting for a client" $second_pid || return 1
	timeout 60 "${server_run[@]}" "$info" "${eal_server[@]}" -- -d >"$dir/third" 2>&1
	cat "$dir/third"
	grep -q "all 2 that 'net_af_packet\*' matches have a process (net_af_packet0: process" \
		"$dir/third" || rc=1
	timeout 100 "${client_run[@]}" "$perf" "${eal_client[@]}" -- -p $port -L dpdk -t tag_bw \
		-s 64k -n 100 -f -V "$host" >"$dir/second.client" 2>&1 || rc=$?
	wait $second_pid || rc=$?
	cat "$dir/second" "$dir/second.client"
	wait $first_client || rc=$?
	server_pid=$first
	server_code || rc=$?
	return $rc
}

ports_are_chosen() {
	local rc=0
	choose
	two_pairs || rc=1
	unset WEFT_PORTS
	return $rc
}

# ---- weft-switch ---------------------------------------------------------------------------

# On the interface, by a socket that follows. Its process is what is started here.
switch=("${server_run[@]}" "$build/app/weft-switch" --no-huge -m 64 --no-pci --no-shconf
	--vdev="net_af_packet0,iface=rail,$packet" -- -n 2 -p)

uplink_is_claimed() {
	local rc=0 pid
	: >"$dir/one"
	"${switch[@]}" "$dir/one.sock" >"$dir/one" 2>&1 &
	pid=$!
	until_said "$dir/one" "^weft-switch: .* ports at" $pid || { cat "$dir/one"; return 1; }
	timeout 60 "${switch[@]}" "$dir/two.sock" >"$dir/two" 2>&1 && rc=1
	WEFT_SWITCH=off timeout 60 "${server_run[@]}" "$info" --no-huge -m 256 --no-pci \
		--vdev="net_af_packet0,iface=rail,$packet" -- -d >>"$dir/two" 2>&1
	kill $pid
	wait $pid
	cat "$dir/two"
	grep -q "^weft-switch: the uplink net_af_packet0 is in use by process $pid (weft-switch)" \
		"$dir/two" || rc=1
	grep -q "port 0 (net_af_packet0) is in use by process $pid (weft-switch)" "$dir/two" ||
		rc=1
	return $rc
}

# And it takes nothing from the present owner.
no_uplink_of_others() { while_streaming switch_refused; }
switch_refused() {
	local owner
	owner=$(program_pid "$server_pid")
	timeout 60 "${switch[@]}" "$dir/two.sock" >"$dir/two" 2>&1 && return 1
	cat "$dir/two"
	grep -q "the uplink net_af_packet0 is in use by process $owner (weft-" "$dir/two"
}

check "WEFT_PORTS: processes take a port each, and the third of two is told" ports_are_chosen
check "a switch's uplink is neither another switch's nor a process's" uplink_is_claimed
check "a switch does not take a process's port" no_uplink_of_others
# @behaviour T18: one process for each port: a second process logs the owner, and does no harm
check "a second process on an interface gets the name of the owner, and does no harm" second_packet
# @behaviour T18
check "net_af_xdp on an interface that net_af_packet has: the same" second_xdp
# @behaviour T18
slow check "a second memif client" memif_second client
# @behaviour T18
slow check "a second memif server" memif_second server
# @behaviour T18
slow check "two network namespaces: no conflict" other_namespace
# @behaviour T18
check "a killed owner keeps nothing" after_a_kill
if command -v python3 >/dev/null; then
	# @behaviour T19: where no claim is possible no process resets the connections of another
	check "a claim of another user is ignored; no process resets the other's connections" \
		claimed_by_nobody
else
	skip "a claim of another user is ignored" "python3 is not installed"
fi
tap_end
