#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What an ordinary user gets by default: no -L, no WEFT_LANES, no argument for the EAL, no right.
# Between hosts (network namespaces) lanes run over UDP sockets, within one over shared memory.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

command -v setpriv >/dev/null || { echo "setpriv(1) is not installed (util-linux)"; exit 77; }
user=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs)
"${user[@]}" test -x "$perf" || { echo "user 65534 may not read the build"; exit 77; }
link rail0 1500 10.99.1 && link rail1 9000 10.99.2 || exit 1
ip -n "${ns[0]}" link set lo up && ip -n "${ns[1]}" link set lo up || exit 1
server_run+=("${user[@]}")
client_run+=("${user[@]}")
remote=("${client_run[@]}")
shared=$(mktemp -d /tmp/weft-user.XXXXXX) || exit 1
chmod 777 "$shared"
tidy_shared() {
	rm -rf "$shared"
	untidy
}
trap tidy_shared EXIT
export TMPDIR=$shared

# start_server PROGRAM ARGS...
start_server() {
	local program=$1
	shift
	free_port
	: >"$dir/server.err"
	timeout -k 10 100 "${server_run[@]}" "$program" -p "$port" "$@" \
		<"${server_in:-/dev/null}" >"${server_out:-$dir/server.out}" 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for a client" "$server_pid"
}
client() {
	local program=$1
	shift
	timeout -k 10 100 "${client_run[@]}" "$program" -p "$port" "$@" "$host" \
		>"$dir/client.out" 2>"$dir/client.err"
}

# perf_runs ARGS...: both ends get them.
perf_runs() {
	start_server "$perf" "$@" || return 1
	client "$perf" "$@" -t tag_bw -s 8,64k,1M -n 20 -f -V --counters || return 1
	server_code && cat "$dir/client.out" || return 1
	! grep -qi "error" "$dir/server.err"
}

# Every interface that is up and has an address is a rail; loopback is none.
between_hosts() {
	perf_runs || return 1
	log_has "udp\.tx_datagrams +[1-9]" || return 1
	timeout 20 "${remote[@]}" "$info" -d >"$dir/devices" 2>&1 || return 1
	cat "$dir/devices"
	[ "$(grep -cE "^udp:(ctl|rail0|rail1)$" "$dir/devices")" = 3 ] &&
		! grep -q "^udp:lo" "$dir/devices"
}

# The bytes of one process reach the other, in the words of README's second example.
copies() {
	head -c 3000000 /dev/urandom >"$dir/bytes"
	server_out=$dir/copy
	start_server "$cat" -l -d || return 1
	server_out=
	client "$cat" <"$dir/bytes" && server_code && cmp "$dir/bytes" "$dir/copy"
}

# weft_listen() and weft_connect(): the programs of examples/.
listens() {
	local rc=0
	: >"$dir/server.out"
	timeout -k 10 60 "${server_run[@]}" "$build/test/proc/proc_server" "$@" \
		>"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.out" "port [0-9]+" "$server_pid" || return 1
	port=$(grep -oE "port [0-9]+" "$dir/server.out" | head -n 1 | cut -d' ' -f2)
	timeout -k 10 60 "${client_run[@]}" "$build/test/proc/proc_pingpong" "$host" "$port" \
		>"$dir/client.out" 2>"$dir/client.err" || rc=$?
	cat "$dir/server.out" "$dir/client.out"
	kill "$server_pid" 2>/dev/null
	server_code
	return $rc
}

# local_pair ARGS...: both processes in one namespace.
local_pair() {
	local rc=0 to=$host
	client_run=("${server_run[@]}")
	host=127.0.0.1
	perf_runs "$@" || rc=$?
	client_run=("${remote[@]}")
	host=$to
	return $rc
}

# Shared memory carries all messages of two processes of one host.
within_a_host() {
	local_pair || return 1
	grep -q "^sent again: shm:host " "$dir/client.out" &&
		! grep -E "udp\.tx_datagrams +[1-9]" "$dir/client.err"
}

# Rails that the user has named are the only ones.
named_rails_suffice() {
	timeout 20 "${remote[@]}" "$info" -d -L "udp:rail1;*" >"$dir/devices" 2>&1 || return 1
	grep "^[a-z]*:" "$dir/devices"
	[ "$(grep "^udp:" "$dir/devices")" = udp:rail1 ] && grep -q "^shm" "$dir/devices"
}

left_out_by_name() {
	timeout 20 "${remote[@]}" "$info" -d -L "*;-udp" >"$dir/devices" 2>&1 || return 1
	grep "^[a-z]*:" "$dir/devices"
	! grep -q "^udp:" "$dir/devices" && grep -q "^shm" "$dir/devices"
}

# A host without a network, and peers that may not share memory: loopback is what is left.
loopback_alone() {
	local rc=0 run=("${server_run[@]}")
	ip -n "${ns[2]}" link set lo up || return 1
	server_run=(ip netns exec "${ns[2]}" "${user[@]}")
	local_pair -L "*;-shm" || rc=$?
	server_run=("${run[@]}")
	[ $rc = 0 ] && log_has "udp\.tx_datagrams +[1-9]"
}

check "weft-perf between hosts" between_hosts
check "weft-cat between hosts" copies
check "weft_listen() and weft_connect() between hosts" listens
check "two processes of one host keep shared memory" within_a_host
check "named rails suffice" named_rails_suffice
check "udp is left out by name" left_out_by_name
check "loopback where there is no other lane" loopback_alone
tap_end
