#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The life of memif connections: one server and many clients, killed, stopped, too early, too late.
# Each end has a port of net_memif, or one of Weft's own.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

reconnect=$build/test/proc/proc_reconnect
[ -x "$reconnect" ] || { echo "there is no proc_reconnect in this build"; exit 77; }

export WEFT_CONNECT_TIMEOUT=20s WEFT_PEER_TIMEOUT=2s
number=0
# The port of each end: pmd or own.
declare -A port_of=([server]=pmd [client]=pmd)

# new_socket: a fresh path; sets address (a file) and memif (device arguments without the role).
new_socket() {
	number=$((number + 1))
	address=$dir/address.$number
	memif="id=0,socket-abstract=no,socket=$dir/s$number,rsize=10,bsize=9216"
}

eal_args() {
	local vdev=
	[ "${port_of[$1]}" = own ] || vdev=" --vdev=net_memif0,role=$1,$memif"
	echo "--no-huge -m 128 --no-pci$vdev"
}

lanes() {
	if [ "${port_of[$1]}" = own ]; then
		echo "dpdk:$dir/s$number,role=$1,rsize=10,mtu=9000"
	else
		echo "dpdk:0,mtu=9000"
	fi
}

serve() {
	rm -f "$address"
	WEFT_LANES=$(lanes server) WEFT_EAL_ARGS=$(eal_args server) "$reconnect" server \
		"$address" >"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	until_exists "$address" $server_pid
}

# ask COUNT: a client that has COUNT messages answered.
ask() {
	WEFT_LANES=$(lanes client) WEFT_EAL_ARGS=$(eal_args client) timeout 60 "$reconnect" \
		client "$address" "$1" 2>"$dir/client.err"
}

# doomed MS: a client that is killed after so long.
doomed() {
	WEFT_LANES=$(lanes client) WEFT_EAL_ARGS=$(eal_args client) "$reconnect" client \
		"$address" 0 2>/dev/null &
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

# What clients that gave up or died meanwhile have left in its backlog must not hurt the server.
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
	WEFT_LANES=$(lanes server) WEFT_EAL_ARGS=$(eal_args server) timeout 20 "$reconnect" \
		server "$address.2" >/dev/null 2>"$dir/client.err" &&
		return 1
	cat "$dir/client.err"
	grep -q "socket $dir/s$number is taken\|socket $dir/s$number: the server's end of id=0 is in use" \
		"$dir/client.err" || return 1
	ask 5 && served 1
}

# ---- other users ------------------------------------------------------------------------------

# Another user connects to the abstract or the named socket, and prints what happens.
visitor_py='
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(10)
try:
    s.connect(sys.argv[1].replace("@", "\0"))
    print("sent away" if s.recv(128) == b"" else "served")
except ConnectionResetError:
    print("sent away")
except OSError as e:
    print("refused", e.errno)
'
# The same user listens there before the server does, and waits for a message of the client.
squatter_py='
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\0" + sys.argv[1])
s.listen(8)
print("listens", flush=True)
while True:
    c, _ = s.accept()
    c.send((b"\2\0" + b"evil").ljust(128, b"\0"))
    c.settimeout(5)
    try:
        print("got", len(c.recv(128)), flush=True)
    except OSError:
        print("got 0", flush=True)
'

# Without socket-abstract= the socket has a name in a folder, and so the folder's permissions.
default_is_private() {
	new_socket
	memif=${memif/socket-abstract=no,/}
	serve || return 1
	grep "$dir/s$number" /proc/net/unix
	! grep -q "@$dir/s$number" /proc/net/unix || return 1
	python3 -c "$visitor_py" "@$dir/s$number" | tee "$dir/visit"
	grep -q "refused 111" "$dir/visit" || return 1
	python3 -c "$visitor_py" "$dir/s$number" | tee "$dir/visit"
	grep -q "refused 13" "$dir/visit" || return 1
	ask 5 && served 1
}

# At an abstract name the relay stands between a stranger and the PMD.
stranger_is_sent_away() {
	new_socket
	memif=${memif/socket-abstract=no,/socket-abstract=yes,}
	serve || return 1
	python3 -c "$visitor_py" "@$dir/s$number" | tee "$dir/visit"
	grep -q "sent away" "$dir/visit" && grep "is refused as a peer" "$dir/server.err" &&
		ask 5 && served 1
}

visitor_is_refused() {
	serve || return 1
	chmod 711 "$dir"
	chmod 666 "$dir/s$number"
	python3 -c "$visitor_py" "$dir/s$number" | tee "$dir/visit"
	grep -q "sent away" "$dir/visit" && grep "is refused as a peer" "$dir/server.err" &&
		ask 5 && served 1
}

# A port of Weft's own checks each client itself. The folder is one that other users can enter.
stranger_of_own_port() {
	local private=$dir rc=0
	dir=$(mktemp -d /tmp/weft-memif.XXXXXX)
	new_socket
	visitor_is_refused || rc=1
	rm -rf "$dir"
	dir=$private
	return $rc
}

squatter_gets_nothing() {
	local rc=0 squatter
	new_socket
	memif=${memif/socket-abstract=no,/socket-abstract=yes,}
	echo 0 >"$address"
	: >"$dir/squatter"
	python3 -c "$squatter_py" "$dir/s$number" >"$dir/squatter" &
	squatter=$!
	until_said "$dir/squatter" listens $squatter || return 1
	WEFT_LANES=$(lanes client) WEFT_EAL_ARGS=$(eal_args client) timeout 4 \
		"$build/app/weft-info" -d >/dev/null 2>"$dir/client.err" || rc=$?
	kill $squatter
	wait $squatter 2>/dev/null
	cat "$dir/squatter" "$dir/client.err"
	echo "exit code $rc"
	[ $rc != 139 ] && ! grep -q "got [1-9]" "$dir/squatter" &&
		grep -q "is refused as a peer" "$dir/client.err"
}

slow check "15 clients one after the other" one_after_the_other
check "killed clients at any time of their lives" killed_clients
slow check "a server stopped for 3 s in a handshake goes on with it" stopped_server_waits_for
slow check "clients that die while the server is stopped" stopped_server_survives
check "a killed server's socket is used again" dead_servers_socket
check "a living server's socket is not" living_servers_socket
port_of=([server]=own [client]=own)
check "own ports: 15 clients one after the other" one_after_the_other
check "own ports: killed clients at any time of their lives" killed_clients
check "own ports: a server stopped for 3 s in a handshake goes on with it" stopped_server_waits_for
check "own ports: clients that die while the server is stopped" stopped_server_survives
check "own ports: a killed server's socket is used again" dead_servers_socket
check "own ports: a living server's socket is not" living_servers_socket
port_of=([server]=own [client]=pmd)
slow check "clients of net_memif, killed at any time, at a server's own port" killed_clients
check "the socket of a killed own server, with a client of net_memif" dead_servers_socket
port_of=([server]=pmd [client]=own)
check "clients with own ports, killed at any time, at a server of net_memif" killed_clients
check "a killed server of net_memif, with a client's own port" dead_servers_socket
# dead_switch: a killed weft-switch has left its socket at the default place.
dead_switch() {
	local bind="import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind('/run/weft/switch.sock')"
	unshare -m bash -c 'mount -t tmpfs none /run && mkdir /run/weft && python3 -c "$1" &&
		exec timeout 60 "$2" -L "dpdk:$3,role=server" -d' - "$bind" "$build/app/weft-info" \
		"$dir/alone" >"$dir/check.log" 2>&1 &&
		grep -q "no weft-switch listens there" "$dir/check.log"
}

if [ "$(id -u)" = 0 ] && command -v python3 >/dev/null; then
	port_of=([server]=own [client]=own)
	check "own port: a dead switch hinders no lane" dead_switch
	# @behaviour S23: a memif lane refuses peers of another user
	check "own port: another user is no client" stranger_of_own_port
	port_of=([server]=pmd [client]=pmd)
	# @behaviour S23
	check "a socket is private by default" default_is_private
	# @behaviour S23
	check "another user is no client" stranger_is_sent_away
	# @behaviour S23
	check "another user is no server" squatter_gets_nothing
else
	skip "another user is no peer" "needs root and python3"
fi
tap_end
