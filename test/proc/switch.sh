#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-switch between real processes: they find it by its socket, without a word about ports.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

switch=$build/app/weft-switch
[ -x "$switch" ] || { echo "there is no weft-switch in this build"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }

switch_pid=
tidy_switch() {
	[ -z "$switch_pid" ] || kill -KILL "$switch_pid" 2>/dev/null
	tidy
}
trap tidy_switch EXIT

head -c 3000017 /dev/urandom >"$dir/data"
export WEFT_EAL_ARGS="--no-huge -m 256 --no-pci"

# start_switch ARGS...: until it serves.
start_switch() {
	[ -z "$switch_pid" ] || kill -KILL "$switch_pid" # of a case that failed
	: >"$dir/switch.out"
	"$switch" --no-huge -m 64 --no-pci --no-shconf -- -p "$dir/sock" -n 4 -S 50 "$@" none \
		>"$dir/switch.out" 2>"$dir/switch.err" &
	switch_pid=$!
	until_said "$dir/switch.out" "^weft-switch: .* ports at" $switch_pid ||
		{ cat "$dir/switch.err"; return 1; }
}

# Its own telemetry, in a folder that a switch with shared files has.
metrics() {
	local pid rc=0
	: >"$dir/switch.out"
	"$switch" --no-huge -m 64 --no-pci --file-prefix="metrics$$" -- -p "$dir/metrics.sock" \
		-n 4 none >"$dir/switch.out" 2>"$dir/switch.err" &
	pid=$!
	until_said "$dir/switch.out" "^weft-switch: .* ports at" $pid &&
		"$info" --metrics --pid $pid >"$dir/metrics" || rc=1
	kill $pid
	wait $pid
	cat "$dir/metrics"
	[ $rc = 0 ] &&
		grep -q "^weft_build_info{pid=\"$pid\",host=\"[^\"]*\",program=\"weft-switch\"" \
			"$dir/metrics" &&
		grep -q "^weft_switch_drop_full_total{.*,port=\"uplink\"} 0$" "$dir/metrics"
}

end_switch() {
	kill "$switch_pid"
	wait "$switch_pid"
	switch_pid=
	cat "$dir/switch.out" "$dir/switch.err"
}

# Two programs whose only port is the switch's.
new_pair() {
	port=$((20000 + RANDOM % 12000))
	eal_server=()
	eal_client=()
	export WEFT_SWITCH=$dir/sock
	lanes=dpdk
}
# Without EAL arguments on the command line.
start_server() {
	local program=$1
	shift
	: >"$dir/server.err"
	timeout -k 10 300 "$program" -p "$port" -L "$lanes" "$@" <"${server_in:-/dev/null}" \
		>"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for a client" "$server_pid"
}
client() {
	local program=$1
	shift
	timeout -k 10 300 "$program" -p "$port" -L "$lanes" "$@" "$host" \
		>"$dir/client.out" 2>"$dir/client.err"
}

# carry: a file from the client to the server, which both sleep while nothing comes.
carry() {
	new_pair
	start_server "$cat" -l || return 1
	client "$cat" -W 60 <"$dir/data" || { cat "$dir/client.err"; return 1; }
	server_code || return 1
	cmp "$dir/data" "$dir/server.out"
}

# A stream runs while another process does something, and ends well.
while_streaming() {
	local rc=0 other=0
	new_pair
	start_server "$perf" || return 1
	start_client -t tag_bw -s 8k -D 2 -V || return 1
	stream_runs || return 1
	"$@" || other=$?
	wait $client_pid || rc=$?
	server_code || rc=$?
	echo "the stream's exit code is $rc, the other's case $other"
	[ $rc = 0 ] && [ $other = 0 ]
}

finds_it() {
	start_switch || return 1
	carry || return 1
	end_switch >"$dir/end"
	cat "$dir/end"
	[ "$(grep -c '^port [01] ' "$dir/end")" = 2 ]
}

restart() {
	kill -KILL "$switch_pid"
	wait "$switch_pid"
	switch_pid=
	start_switch
}

switch_restarted() {
	start_switch && while_streaming restart && carry && end_switch
}

# stranger WHAT: a client of its own, test/proc/switch_client.py, in the background.
stranger() {
	: >"$dir/stranger.out"
	python3 "$(dirname "$0")/switch_client.py" "$dir/sock" "$@" >"$dir/stranger.out" 2>&1 &
	stranger_pid=$!
	until_said "$dir/stranger.out" "^connected" $stranger_pid
}

kill_stranger() {
	stranger idle && kill -KILL $stranger_pid
	wait "$stranger_pid"
	[ $? = 137 ]
}

# Its port is another's afterwards.
client_killed() {
	start_switch -n 3 || return 1
	while_streaming kill_stranger && stranger idle || return 1
	grep -q "^connected as port 0" "$dir/stranger.out"
	kill "$stranger_pid"
	wait "$stranger_pid"
	end_switch
}

# foreign KIND: what it sends is counted at its port, and harms no other.
foreign() {
	stranger "$1" || return 1
	wait "$stranger_pid"
	kill -USR1 "$switch_pid"
	until_said "$dir/switch.out" "$2"
}

bad_frames() {
	flood_idle &&
		foreign addresses "drop.source [1-9]" &&
		foreign memory "drop.bad [1-9]" &&
		foreign long "drop.long [1-9]"
}

hostile_frames() {
	start_switch && while_streaming bad_frames && carry && end_switch
}

# does WHAT [PATTERN]: it ends well, which is that the switch has done as it should.
does() {
	stranger "$1" && wait $stranger_pid && grep -qE -- "${2:-}" "$dir/stranger.out" && return 0
	echo "$1:"
	cat "$dir/stranger.out"
	return 1
}

# A key of its own: no switch was there before, whose clients may come again.
hostile_clients() {
	rm -f "$dir/sock.key"
	start_switch || return 1
	does unsealed "not sealed" && does file "not sealed" && does shrunk "shorter" &&
		does known "from the switch" && does cookie "does not fit" &&
		does many "has granted" && does full &&
		does table "farewells does not fit" || return 1
	does rubbish && kill -USR1 "$switch_pid" &&
		until_said "$dir/switch.out" "drop.source [1-9]" || return 1
	does huge "ordinary pages" || grep -q "OSError" "$dir/stranger.out" || return 1
	grep -q "its eventfd is full" "$dir/switch.err" || return 1
	does lingering "served" && carry && end_switch
}

switch_descriptors() {
	local i=0
	while [ "$(find "/proc/$switch_pid/fd" -type l | wc -l)" -gt "$1" ]; do
		i=$((i + 1))
		[ $i -lt 1200 ] || return 1
		sleep 0.05
	done
}

# What is sent to the switch without need is closed there.
spare_descriptors() {
	local before
	start_switch || return 1
	before=$(find "/proc/$switch_pid/fd" -type l | wc -l)
	does spare && switch_descriptors "$before" && end_switch
}

# One that never reads, and one that floods it: the stream beside them goes on.
flood_idle() {
	local idle rc=0
	stranger idle || return 1
	idle=$stranger_pid
	stranger flood || rc=1
	wait $stranger_pid || rc=1
	cat "$dir/stranger.out"
	kill -USR1 "$switch_pid"
	until_said "$dir/switch.out" "drop.full [1-9]" || rc=1
	kill "$idle"
	wait "$idle"
	return $rc
}

# No port is left, and what the program says.
no_port_left() {
	start_switch -n 1 || return 1
	stranger idle || return 1
	WEFT_SWITCH=$dir/sock timeout 60 "$info" -L dpdk -d >"$dir/out" 2>&1
	cat "$dir/out"
	kill "$stranger_pid"
	wait "$stranger_pid"
	grep -q "weft-switch has 1 ports, and all are in use" "$dir/out" && end_switch
}

nobody_there() {
	WEFT_SWITCH=$dir/nobody timeout 60 "$info" -L dpdk -d >"$dir/out" 2>&1
	cat "$dir/out"
	grep -q "weft-switch at $dir/nobody: no weft-switch listens there" "$dir/out"
}

# 16 ports, all with full rings, one of which hardly takes anything: each of the others gets its
# share of the switch.
many_ports() {
	start_switch -n 16 || return 1
	python3 "$(dirname "$0")/../../devtools/switch_share.py" --seconds 1 --at-least 0.8 \
		"$dir/sock" || return 1
	end_switch >/dev/null
}

second_switch() {
	start_switch || return 1
	"$switch" --no-huge -m 64 --no-pci --no-shconf -- -p "$dir/sock" none >"$dir/out" 2>&1
	local rc=$?
	cat "$dir/out"
	end_switch
	[ $rc = 1 ] && grep -q "^weft-switch: another weft-switch uses $dir/sock" "$dir/out"
}

# Two containers of an ordinary user, which has no number for root: each has its own user, PID and
# mount namespace. The switch is root's, in a folder of root's; one in a folder of another user's
# is not accepted.
containers() {
	local public rc=0
	public=$(mktemp -d /tmp/weft-switch.XXXXXX)
	chmod 755 "$public"
	mkdir "$public/root" "$public/other" "$public/build"
	cp -L "$build/libweft.so.0" "$public/build/"
	mkdir "$public/build/app"
	cp "$cat" "$public/build/app/weft-cat"
	cp "$dir/data" "$public/data"
	chmod -R a+rX "$public"
	chmod 777 "$public/other"
	run_containers "$public" || rc=1
	rm -rf "$public" /tmp/weft-12345
	return $rc
}

run_containers() {
	local cat=$1/build/app/weft-cat dir_before=$dir rc=0
	local wrap=(setpriv --reuid 12345 --regid 12345 --clear-groups env -u XDG_RUNTIME_DIR
		HOME="$1" unshare --user --map-current-user --pid --fork --mount-proc)
	"${wrap[@]}" true || { echo "no user namespaces"; return 77; }
	dir=$1/root
	start_switch -M 666 || return 1
	new_pair
	export WEFT_SWITCH=$1/root/sock
	timeout -k 10 60 "${wrap[@]}" "$cat" -p "$port" -L dpdk -l </dev/null \
		>"$dir_before/server.out" 2>"$dir_before/server.err" &
	server_pid=$!
	until_said "$dir_before/server.err" "waiting for a client" "$server_pid" || rc=1
	timeout -k 10 60 "${wrap[@]}" "$cat" -p "$port" -L dpdk -W 30 127.0.0.1 <"$1/data" \
		2>"$dir_before/client.err" || rc=1
	server_code || rc=1
	cat "$dir_before/client.err"
	cmp "$1/data" "$dir_before/server.out" || rc=1
	end_switch || rc=1
	dir=$1/other
	start_switch -M 666 || rc=1
	WEFT_SWITCH=$1/other/sock timeout 60 "${wrap[@]}" "$cat" -p "$port" -L dpdk -l </dev/null \
		>"$dir_before/out" 2>&1 && rc=1
	cat "$dir_before/out"
	grep -q "is neither root nor this user" "$dir_before/out" || rc=1
	end_switch || rc=1
	dir=$dir_before
	return $rc
}

# notified ADDRESS: one that awaits systemd's message gets it when the sockets are there.
notified() {
	local listener rc=0
	rm -f "$dir/notify"
	: >"$dir/notified"
	python3 - "$1" "$dir/sock" >"$dir/notified" 2>&1 <<-'EOF' &
		import os, socket, stat, sys
		name = sys.argv[1].replace('@', '\0', 1)
		with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
		    s.bind(name)
		    s.settimeout(200)
		    print('listens', flush=True)
		    print(s.recv(64), stat.S_ISSOCK(os.stat(sys.argv[2]).st_mode))
	EOF
	listener=$!
	until_said "$dir/notified" "^listens$" $listener || return 1
	NOTIFY_SOCKET=$1 start_switch && wait $listener || rc=1
	cat "$dir/notified"
	end_switch
	[ $rc = 0 ] && ! grep -q systemd "$dir/switch.err" &&
		grep -qx "b'READY=1' True" "$dir/notified"
}

# Where systemd does not listen the switch reports this and serves all the same.
not_notified() {
	NOTIFY_SOCKET=$dir/nothing start_switch || return 1
	end_switch
	grep -q "systemd is not notified at NOTIFY_SOCKET: No such file" "$dir/switch.err"
}

# refuses PATTERN ADDRESS PORTS: such addresses of ports are wrong usage.
refuses() {
	local rc=0
	timeout 60 "$switch" --no-huge -m 64 --no-pci --no-shconf -- -p "$dir/sock" -a "$2" \
		-n "$3" none >"$dir/switch.out" 2>"$dir/switch.err" || rc=$?
	cat "$dir/switch.err"
	[ $rc = 2 ] && grep -q "$1" "$dir/switch.err"
}

has_addresses() {
	start_switch -a "$@" || return 1
	end_switch
}

check "ports whose addresses leave the network" refuses \
	"network of 10.0.0.250/24 cannot have all addresses up to 10.0.1.25" 10.0.0.250/24 32
check "a port with the broadcast address" refuses "up to 10.0.0.255" 10.0.0.240/24 16
check "a port with the gateway's address" refuses "the gateway 10.0.0.17 is" \
	10.0.0.16/24,10.0.0.17 4
check "the last addresses of a network" has_addresses 10.0.0.251/24
check "a network for each port" has_addresses 10.0.0.251/32,10.0.0.1
check "systemd is notified when ports can be requested" notified "$dir/notify"
check "the same at an abstract address" notified "@weft-test-$$"
check "a switch that cannot notify systemd serves" not_notified
check "weft-info --metrics: counters of the uplink and of each port" metrics
check "two processes find it and sleep while nothing comes" finds_it
check "a switch that is killed and started anew" switch_restarted
check "a client that is killed gives its port back" client_killed
check "addresses of others, memory anywhere, a flood: a stream beside them goes on" hostile_frames
check "memory that may go, old secrets, rings and eventfds that are none" hostile_clients
check "descriptors that nobody asked for are closed" spare_descriptors
check "16 ports with full rings and a slow one: all others have their share" many_ports
if [ "$(id -u)" = 0 ] && unshare --user true 2>/dev/null; then
	check "two containers, root's switch" containers
else
	skip "two containers, root's switch" \
		"only root can become another user, in a user namespace"
fi
check "no port is left" no_port_left
check "nobody listens" nobody_there
check "a second switch at one place" second_switch
tap_end
