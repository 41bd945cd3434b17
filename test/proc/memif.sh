#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The life of memif connections: one server and many clients, killed, stopped, too early, too late.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

reconnect=$build/test/proc/proc_reconnect
[ -x "$reconnect" ] || { echo "there is no proc_reconnect in this build"; exit 77; }

export WEFT_LANES="dpdk:0,mtu=9000" WEFT_CONNECT_TIMEOUT=20s WEFT_PEER_TIMEOUT=2s
number=0

# new_socket: a fresh path; sets address (a file) and memif (device arguments without the role).
new_socket() {
	number=$((number + 1))
	address=$dir/address.$number
	memif="id=0,socket-abstract=no,socket=$dir/s$number,rsize=10,bsize=9216"
}

eal_args() { echo "--no-huge -m 128 --no-pci --vdev=net_memif0,role=$1,$memif"; }

serve() {
	rm -f "$address"
	WEFT_EAL_ARGS=$(eal_args server) "$reconnect" server "$address" >"$dir/server.out" \
		2>"$dir/server.err" &
	server_pid=$!
	for _ in $(seq 1200); do
		[ ! -e "$address" ] || return 0
		kill -0 $server_pid 2>/dev/null || break
		sleep 0.05
	done
	echo "the server did not start"
	return 1
}

# ask COUNT: a client that has COUNT messages answered.
ask() {
	WEFT_EAL_ARGS=$(eal_args client) timeout 60 "$reconnect" client "$address" "$1" \
		2>"$dir/client.err"
}

# doomed MS: a client that is killed after so long.
doomed() {
	WEFT_EAL_ARGS=$(eal_args client) "$reconnect" client "$address" 0 2>/dev/null &
	local pid=$!
	sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	return 0
}

# served CLIENTS: the server has lived, and has served so many whole.
served() {
	local rc=0
	kill -TERM $server_pid
	wait $server_pid || rc=$?
	server_pid=
	cat "$dir/server.out"
	[ $rc = 0 ] && grep -q "^served $1 clients whole, .* 0 wrong" "$dir/server.out"
}

one_after_the_other() {
	local i
	new_socket
	serve || return 1
	for ((i = 0; i < 15; i++)); do
		ask 20 || { echo "client $i"; return 1; }
	done
	served 15
}

# Killed before, in and after the handshake, and in the stream; each time the next one is served.
killed_clients() {
	local i
	new_socket
	serve || return 1
	for ((i = 0; i < 12; i++)); do
		doomed $((60 + i * 35))
		ask 5 || { echo "after the one killed at $((60 + i * 35)) ms"; return 1; }
	done
	served 12
}

# Nothing is read of the control socket while the server is stopped: a client waits in its
# handshake.
stopped_server_waits_for() {
	local pid rc=0
	new_socket
	serve || return 1
	kill -STOP $server_pid
	ask 5 &
	pid=$!
	sleep 3
	kill -CONT $server_pid
	wait $pid || rc=$?
	[ $rc = 0 ] && served 1
}

# What those who gave up or died meanwhile have left in its backlog must not hurt the server.
stopped_server_survives() {
	local i
	new_socket
	serve || return 1
	for ((i = 0; i < 3; i++)); do
		kill -STOP $server_pid
		doomed 500
		doomed 1300
		kill -CONT $server_pid
		ask 5 || return 1
	done
	served 3
}

# A client is patient: its server comes later, and when that one is killed, the next has its socket
# again.
dead_servers_socket() {
	new_socket
	serve || return 1
	ask 5 || return 1
	kill -9 $server_pid
	wait $server_pid 2>/dev/null
	[ -S "$dir/s$number" ] || { echo "no socket is left behind"; return 1; }
	serve || return 1
	ask 5 && served 1
}

living_servers_socket() {
	new_socket
	serve || return 1
	WEFT_EAL_ARGS=$(eal_args server) timeout 20 "$reconnect" server "$address.2" >/dev/null \
		2>"$dir/client.err" &&
		return 1
	grep -q "socket $dir/s$number is taken" "$dir/client.err" || return 1
	ask 5 && served 1
}

check "15 clients one after the other" one_after_the_other
check "killed clients at any time of their lives" killed_clients
check "a server stopped for 3 s in a handshake goes on with it" stopped_server_waits_for
check "clients that die while the server is stopped" stopped_server_survives
check "a killed server's socket is used again" dead_servers_socket
check "a living server's socket is not" living_servers_socket
tap_end
