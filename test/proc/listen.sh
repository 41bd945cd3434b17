#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/server and examples/pingpong: two processes that connect by host and port, over shared
# memory and over UDP sockets.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

server_pid=
server=$build/test/proc/proc_server
pingpong=$build/test/proc/proc_pingpong
export WEFT_LANES=shm WEFT_CONNECT_TIMEOUT=10s

# The server of a check that failed is ended. Its output is emptied here, since the shell of the new
# one may do this later than port_of_server() reads it.
serve() {
	[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null
	: >"$dir/server.out"
	"$server" "$@" >"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
}

port_of_server() {
	for _ in $(seq 200); do
		port=$(sed -n 's/^server: port //p' "$dir/server.out")
		[ -z "$port" ] || return 0
		sleep 0.05
	done
	echo "the server did not start"
	return 1
}

# pass HOST: both ends exit with 0.
pass() {
	timeout 30 "$pingpong" "$1" "$port" >"$dir/client.out" 2>"$dir/client.err" || return 1
	wait $server_pid || return 1
	grep -q "100 messages returned" "$dir/client.out" &&
		grep -q "has connected" "$dir/server.out"
}

by_host() {
	serve && port_of_server && pass "$1"
}

over_udp() { WEFT_LANES=udp:lo by_host 127.0.0.1; }

# The client runs first, and tries again until the server listens.
client_first() {
	local pid
	serve && port_of_server && kill $server_pid
	wait $server_pid 2>/dev/null
	timeout 30 "$pingpong" 127.0.0.1 "$port" >"$dir/client.out" 2>"$dir/client.err" &
	pid=$!
	sleep 0.5
	kill -0 $pid || return 1
	serve "$port"
	wait $pid && wait $server_pid
}

# A client without a greeting holds no other.
beside_garbage() {
	serve && port_of_server || return 1
	exec 7<>"/dev/tcp/127.0.0.1/$port" 8<>"/dev/tcp/127.0.0.1/$port"
	echo "GET / HTTP/1.0" >&8
	pass 127.0.0.1
	local rc=$?
	exec 7>&- 8>&-
	return $rc
}

# A client that dies ends the server's receive; a second client is closed, and the first goes on.
second_and_dead() {
	serve && port_of_server || return 1
	"$pingpong" 127.0.0.1 "$port" 1000000000 >"$dir/first.out" 2>&1 &
	local first=$!
	until grep -q "has connected" "$dir/server.out"; do
		kill -0 $first || return 1
		sleep 0.05
	done
	! timeout 30 "$pingpong" 127.0.0.1 "$port" >"$dir/client.out" 2>"$dir/client.err" ||
		return 1
	kill -0 $first && kill -0 $server_pid || return 1
	kill -KILL $first
	! wait $server_pid && grep -q "^server: \(receive\|send\): " "$dir/server.err"
}

refused() {
	serve && port_of_server && kill $server_pid
	wait $server_pid 2>/dev/null
	! timeout 30 "$pingpong" 127.0.0.1 "$port" 2>"$dir/client.err" &&
		grep -q "no server listens on 127.0.0.1 port $port: start it" "$dir/client.err"
}

check "by IPv4 address" by_host 127.0.0.1
# The kernel gives the client's socket the very port that it connects to.
meets_itself() {
	# shellcheck disable=SC2016
	unshare -n bash -c 'ip link set lo up
		echo "5000 5000" >/proc/sys/net/ipv4/ip_local_port_range
		! timeout 30 "$1" 127.0.0.1 5000' _ "$pingpong" 2>"$dir/client.err" &&
		grep -q "no server listens on 127.0.0.1 port 5000: start it" "$dir/client.err"
}

if [ -e /proc/net/if_inet6 ] && grep -q " lo$" /proc/net/if_inet6; then
	check "by IPv6 address" by_host ::1
else
	skip "by IPv6 address" "the loopback has none"
fi
check "by a name" by_host localhost
check "over UDP sockets" over_udp
check "the client starts first" client_first
check "beside silent clients and garbage" beside_garbage
check "a second client, and one that dies" second_and_dead
check "without a server: host, port and remedy" refused
if unshare -n true 2>/dev/null; then
	check "without a server, on a port that the kernel gives to clients" meets_itself
else
	skip "without a server, on a port that the kernel gives to clients" \
		"no network namespace can be made"
fi
tap_end
