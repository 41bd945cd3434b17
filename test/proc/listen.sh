#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/server and examples/pingpong: two processes that connect by host and port, over shared
# memory and over UDP sockets, also with a job key.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

server_pid=
relay_pid=
here=$(dirname "$0")
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

# ---- with a job key ------------------------------------------------------------------------------

# relay [AT]: what is behind $port is behind another port, and $dir/seen has all bytes.
relay() {
	: >"$dir/relay.out"
	python3 "$here/relay.py" "$port" "$dir/seen" "$@" >"$dir/relay.out" 2>"$dir/relay.err" &
	relay_pid=$!
	for _ in $(seq 200); do
		port=$(cat "$dir/relay.out")
		[ -z "$port" ] || return 0
		sleep 0.05
	done
	echo "the relay did not start"
	return 1
}

# The greeting of an address has the name of the process, and that of its lane's driver.
in_clear() { grep -a -q -e proc_server -e "$(printf 'udp\001')" "$dir/seen"; }

address_is_sealed() {
	local -x WEFT_LANES=udp:lo
	serve && port_of_server && relay && pass 127.0.0.1 && wait "$relay_pid" || return 1
	in_clear || { echo "the address of a listener without a key is not found"; return 1; }
	export WEFT_JOB_KEY=$dir/key
	serve && port_of_server && relay && pass 127.0.0.1 && wait "$relay_pid" || return 1
	unset WEFT_JOB_KEY
	[ "$(stat -c %s "$dir/seen")" -gt 200 ] && ! in_clear
}

# not_alike SERVER CLIENT REASON REFUSAL: a client with this key and a server with that one; "" =
# none. Afterwards the server accepts a client that has its key.
not_alike() {
	WEFT_LOG_LEVEL=info WEFT_JOB_KEY=$1 serve && port_of_server || return 1
	! WEFT_JOB_KEY=$2 timeout 30 "$pingpong" 127.0.0.1 "$port" 2>"$dir/client.err" &&
		grep "127.0.0.1 port $port $3: give both ends the same WEFT_JOB_KEY" \
			"$dir/client.err" &&
		grep "listener: refused 127.0.0.1 port [0-9]*: $4" "$dir/server.err" &&
		WEFT_JOB_KEY=$1 pass 127.0.0.1
}

other_ends_are_refused() {
	not_alike "$dir/key" "" "has a job key, and this end has none" "it has no job key" &&
		not_alike "" "$dir/key" "has no job key, and this end has one" "it has a job key" &&
		not_alike "$dir/key" "$dir/key2" "has another job key" "it has another job key"
}

changed_address() {
	local server_port
	export WEFT_JOB_KEY=$dir/key
	serve && port_of_server && server_port=$port && relay 100 || return 1
	! timeout 30 "$pingpong" 127.0.0.1 "$port" 2>"$dir/client.err" &&
		grep "sent an address that was changed on its way" "$dir/client.err" || return 1
	port=$server_port
	pass 127.0.0.1 || return 1
	unset WEFT_JOB_KEY
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
if "$info" -v | grep -q '^sealed frames.*libipsec'; then
	for file in key key2; do
		head -c 32 /dev/urandom >"$dir/$file"
		chmod 600 "$dir/$file"
	done
	# @behaviour Y89
	check "with a job key: nothing of the address is readable on the path" address_is_sealed
	# @behaviour Y89
	check "a client without the key, with another one, and a listener without one" \
		other_ends_are_refused
	# @behaviour Y90
	check "with a job key: an address that is changed on the path" changed_address
else
	skip "with a job key" "this build cannot seal"
fi
if unshare -n true 2>/dev/null; then
	check "without a server, on a port that the kernel gives to clients" meets_itself
else
	skip "without a server, on a port that the kernel gives to clients" \
		"no network namespace can be made"
fi
tap_end
