#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two processes over shared memory, without DPDK's arguments and ports: every size whole, clients
# killed at any time, a server killed, another user.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

reconnect=$build/test/proc/proc_reconnect
[ -x "$reconnect" ] || { echo "there is no proc_reconnect in this build"; exit 77; }

export WEFT_LANES=shm WEFT_CONNECT_TIMEOUT=20s
number=0

serve() {
	number=$((number + 1))
	address=$dir/address.$number
	"$reconnect" server "$address" >"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	until_exists "$address" $server_pid
}

# ask COUNT: a client that has COUNT messages answered.
ask() { timeout 60 "$reconnect" client "$address" "$1" 2>"$dir/client.err"; }

# killed_clients: while they connect and in the stream; each time the next one is served.
killed_clients() {
	local i pid rc=0
	serve || return 1
	for ((i = 0; i < 8; i++)); do
		"$reconnect" client "$address" 0 2>/dev/null &
		pid=$!
		sleep "0.0$((i + 1))"
		kill -9 $pid 2>/dev/null
		wait $pid 2>/dev/null
		ask 5 || { echo "after the one killed at ${i}0 ms"; return 1; }
	done
	kill -TERM $server_pid
	wait $server_pid || rc=$?
	server_pid=
	cat "$dir/server.out"
	[ $rc = 0 ] && grep -q "^served 8 clients whole, .* 0 wrong" "$dir/server.out"
}

# killed_server: its client says so.
killed_server() {
	local pid rc=0
	serve || return 1
	"$reconnect" client "$address" 0 2>"$dir/client.err" &
	pid=$!
	sleep 0.5
	kill -9 $server_pid
	wait $server_pid 2>/dev/null
	server_pid=
	until_said "$dir/client.err" "has ended without closing the connection" $pid || rc=1
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $rc = 0 ]
}

# without_descriptors: the server accepts no connection any more, and the next lane is used.
without_descriptors() {
	WEFT_LANES="shm;udp" serve || return 1
	prlimit --pid "$server_pid" --nofile=3: || return 1
	WEFT_LANES="shm;udp" WEFT_LOG_LEVEL=info ask 5 || return 1
	kill -TERM $server_pid
	wait $server_pid
	server_pid=
	grep -q "lane 0 is up: udp:" "$dir/client.err"
}

# perf_whole: with no word for the EAL.
perf_whole() {
	local rc=0
	new_pair 0
	: >"$dir/server.err"
	timeout -k 10 100 "$perf" -p "$port" -L shm >"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for a client" $server_pid || return 1
	timeout -k 10 100 "$perf" -p "$port" -L shm -t tag_bw -s 1,8,100,5000,70000,1M -n 200 -V \
		127.0.0.1 >"$dir/client.out" 2>"$dir/client.err" || rc=$?
	[ $rc = 0 ] || { echo "the client's exit code is $rc"; return 1; }
	server_code || { echo "the server's exit code is $?"; return 1; }
	grep -q "lane shm:host" "$dir/client.out"
}

# containers: of one user and network namespace; PID, mount and IPC namespaces are each one's own.
# The server says that it can't read the other's memory, and every byte comes by copies.
containers() {
	# shellcheck disable=SC2016 # for the other shell
	timeout -k 10 100 unshare --user --map-root-user --net bash -c '
		ip link set lo up
		wrap=(unshare --mount --pid --ipc --fork --mount-proc)
		export WEFT_LOG_LEVEL=info
		"${wrap[@]}" "$1" -p 20001 -L shm >"$2/server.out" 2>"$2/server.err" &
		for ((i = 0; i < 600; i++)); do
			grep -q "waiting for a client" "$2/server.err" && break
			sleep 0.05
		done
		"${wrap[@]}" "$1" -p 20001 -L shm -t tag_bw -s 8,70000,1M -n 50 -V 127.0.0.1 \
			>"$2/client.out" 2>"$2/client.err" && wait $!
		' bash "$perf" "$dir" || return 1
	grep -q "lane shm:host" "$dir/client.out" &&
		grep -q "by copies: its memory cannot be read" "$dir/server.err"
}

# both_lanes LANES: with a memif lane, too. The lanes that the client had are in client.out.
both_lanes() {
	new_pair 1
	lanes=$1
	start_server "$perf" || return 1
	client "$perf" -t tag_bw -s 8,1M -n 100 -V -W 20 || return 1
	server_code
}

chosen_first() {
	both_lanes "*" || return 1
	grep -Eq "lane shm:host +up" "$dir/client.out" && ! grep -q "lane dpdk:0" "$dir/client.out"
}

mixed() {
	both_lanes "shm:host,mix;$lanes" || return 1
	grep -Eq "lane shm:host +up" "$dir/client.out" &&
		grep -Eq "lane dpdk:0 +up" "$dir/client.out"
}

check "every size, whole, by weft-perf" perf_whole
if unshare --user --net true 2>/dev/null; then
	check "two containers of one user and network namespace" containers
else
	skip "two containers of one user and network namespace" "no user namespaces"
fi
if WEFT_LANES="shm;udp" "$info" -d 2>/dev/null | grep -q "^ *udp:"; then
	check "a process without descriptors is reached by the next lane" without_descriptors
else
	skip "a process without descriptors is reached by the next lane" "no lane over UDP"
fi
check "chosen before a port, and alone" chosen_first
lanes="dpdk:0,mtu=9000"
check "beside a port where that is asked for" mixed
check "clients killed at any time; the next is served" killed_clients
# @behaviour R80
check "a killed server is reported" killed_server
tap_end
