#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A killed process behind weft-switch, or with lanes over a kernel interface or sealed over UDP
# sockets, is noticed by its peer within a second, while loops use all cores. A stopped one is not
# lost. The programs' TCP connection reports nothing: its link is down.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

switch=$build/app/weft-switch
loops=()
switch_pid=
users=
tidy_gone() {
	[ -z "$switch_pid" ] || kill -KILL "$switch_pid" 2>/dev/null
	end_loops
	[ -z "$users" ] || rm -rf "$users"
	untidy
}
trap tidy_gone EXIT

ms() { echo $(($(date +%s%N) / 1000000)); }

# Two loops for each core.
start_loops() {
	local i
	for ((i = 0; i < 2 * $(nproc); i++)); do
		while :; do :; done &
		loops+=($!)
	done
}

end_loops() {
	[ ${#loops[@]} = 0 ] || kill "${loops[@]}" 2>/dev/null
	loops=()
}

# ---- the two kinds of lanes ---------------------------------------------------------------------

# Processes that find the switch by its socket.
start_switch() {
	: >"$dir/switch.out"
	"$switch" --no-huge -m 64 --no-pci --no-shconf -- -p "$dir/sock" -n 4 -S 50 none \
		>"$dir/switch.out" 2>"$dir/switch.err" &
	switch_pid=$!
	until_said "$dir/switch.out" "^weft-switch: .* ports at" $switch_pid
}

end_switch() {
	kill "$switch_pid"
	wait "$switch_pid"
	switch_pid=
	cat "$dir/switch.out" "$dir/switch.err"
}

new_pair() {
	free_port
	eal_server=(--no-huge -m 256 --no-pci)
	lanes=dpdk
	unset WEFT_SWITCH
	case $kind in
	udp) lanes=udp:rail1 eal_server=() ;;
	switch) export WEFT_SWITCH=$dir/sock ;;
	packet) eal_server+=(--vdev="net_af_packet0,iface=rail0,$packet") ;;
	xdp) eal_server+=("--vdev=net_af_xdp0,iface=xdp") ;;
	esac
	eal_client=("${eal_server[@]}")
}
packet="blocksz=16384,framesz=16384,framecnt=256"

# ---- cases --------------------------------------------------------------------------------------

# until_noticed: the client's log has the sentence within a second.
until_noticed() {
	local begin bound took rc=0
	bound=$(stretch 1000)
	ip -n "${ns[0]}" link set ctl down
	start_loops
	sleep 0.2 # the loops have taken the cores
	begin=$(ms)
	kill -KILL "$(program_pid "$server_pid")"
	until_said "$dir/client.err" "answers that its process has ended" "$client_pid" || rc=1
	took=$(($(ms) - begin))
	end_loops
	echo "noticed after $took of $bound ms"
	return $((rc || took > bound))
}

# The ends of both, whose exit codes do not matter, and the link of their TCP connection.
end_pair() {
	kill "$client_pid" 2>/dev/null
	wait "$client_pid"
	server_code
	ip -n "${ns[0]}" link set ctl up
}

killed_in_a_stream() {
	local rc=0
	new_pair
	start_server "$perf" || return 1
	start_client -t tag_bw -s 64k -D 60 && stream_runs || return 1
	until_noticed || rc=1
	end_pair
	return $rc
}

# Nothing is sent before the end of the server: its peer sleeps.
killed_while_idle() {
	local rc=0
	new_pair
	start_server "$cat" -l || return 1
	rm -f "$dir/slow"
	mkfifo "$dir/slow"
	: >"$dir/client.err"
	client "$cat" <"$dir/slow" &
	client_pid=$!
	exec 9>"$dir/slow"
	echo first >&9
	until_said "$dir/server.out" first $client_pid || return 1
	sleep 1
	until_noticed || rc=1
	exec 9>&-
	end_pair
	return $rc
}

# A process that is stopped is slow, not dead.
stopped() {
	local rc=0 victim
	new_pair
	start_server "$perf" || return 1
	start_client -t tag_bw -s 4k -D 3 -V && stream_runs || return 1
	victim=$(program_pid "$server_pid")
	kill -STOP "$victim"
	sleep 3
	kill -CONT "$victim"
	wait "$client_pid" || rc=$?
	server_code || return 1
	[ $rc = 0 ] && ! grep "has ended" "$dir/client.err"
}

# A switch that is started again knows its clients by their rings only.
killed_behind_the_next_switch() {
	local rc=0
	new_pair
	start_server "$perf" || return 1
	start_client -t tag_bw -s 64k -D 60 && stream_runs || return 1
	kill -KILL "$switch_pid"
	wait "$switch_pid"
	start_switch || return 1
	sleep 2
	kill -0 $client_pid && ! grep "has ended" "$dir/client.err" || rc=1
	until_noticed || rc=1
	end_pair
	return $rc
}

# A process has one helper, which ends with it.
helper_ends() {
	local i during rc=0
	new_pair
	start_server "$perf" || return 1
	start_client -t tag_bw -s 4k -D 2 -V && stream_runs || return 1
	during=$(helpers)
	wait "$client_pid" || rc=$?
	server_code && [ $rc = 0 ] || return 1
	for ((i = 0; i < 100 && $(helpers) > 0; i++)); do sleep 0.05; done
	echo "$during helpers of a process, and $(helpers) after its end"
	[ "$during" = 1 ] && [ "$(helpers)" = 0 ]
}

helpers() {
	local pid n=0
	for pid in $(ip netns pids "${ns[0]}"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != weft-farewell ] || n=$((n + 1))
	done
	echo $n
}

# with_key CASE: the same with sealed frames, whose keys change ten times a second.
with_key() { WEFT_JOB_KEY=$dir/key WEFT_SEAL_REKEY=100ms "$1"; }

if "$info" -v | grep -q '^sealed frames.*libipsec'; then
	head -c 32 /dev/urandom >"$dir/key"
	chmod 600 "$dir/key"
fi

kind=switch
if [ -x "$switch" ]; then
	start_switch || exit 1
	# @behaviour R86: a killed process behind weft-switch is noticed within a second; a stopped
	# one is not lost
	check "weft-switch: a process is killed in a stream" killed_in_a_stream
	# @behaviour R86
	slow check "weft-switch: an idle process is killed" killed_while_idle
	# @behaviour R86
	check "weft-switch: a process that stops for 3 s is not lost" stopped
	# @behaviour R86
	slow check "weft-switch: killed behind a switch that was started again" \
		killed_behind_the_next_switch
	if [ -e "$dir/key" ]; then
		# @behaviour R86
		check "sealed, weft-switch: a process is killed in a stream" \
			with_key killed_in_a_stream
		# @behaviour R86
		slow check "sealed, weft-switch: an idle process is killed" \
			with_key killed_while_idle
		# @behaviour R86
		slow check "sealed, weft-switch: a process that stops for 3 s is not lost" \
			with_key stopped
		# @behaviour R86
		slow check "sealed, weft-switch: killed behind a switch that was started again" \
			with_key killed_behind_the_next_switch
	else
		skip "sealed, weft-switch" "this build cannot seal"
	fi
	end_switch >/dev/null
else
	skip "weft-switch" "it is not in this build"
fi

kind=packet
link rail0 9000 || exit 1
# @behaviour R87
check "af_packet: a process is killed in a stream" killed_in_a_stream
# @behaviour R87
slow check "af_packet: an idle process is killed" killed_while_idle
# @behaviour R87
check "af_packet: a process that stops for 3 s is not lost" stopped
slow check "af_packet: the helper of a process ends with it" helper_ends

if [ -e "$dir/key" ]; then
	# @behaviour R87
	check "sealed, af_packet: a process is killed in a stream" with_key killed_in_a_stream
	# @behaviour R87
	slow check "sealed, af_packet: an idle process is killed" with_key killed_while_idle
	# @behaviour R87
	slow check "sealed, af_packet: a process that stops for 3 s is not lost" with_key stopped
else
	skip "sealed, af_packet" "this build cannot seal"
fi

# as_user CASE: the server has no right, and its helper no packet socket.
as_user() {
	local rc
	users=$(mktemp -d /tmp/weft-gone.XXXXXX) || return 1
	cp "$dir/key" "$users/key" && chown -R 65534 "$users" || return 1
	server_run+=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all
		--no-new-privs env "WEFT_JOB_KEY=$users/key" "TMPDIR=$users")
	with_key "$1"
	rc=$?
	server_run=(ip netns exec "${ns[0]}")
	rm -r "$users"
	return $rc
}

user_can_run() { command -v setpriv >/dev/null && setpriv --reuid=65534 test -x "$perf"; }

kind=udp
link rail1 1500 10.99.2 || exit 1
if [ -e "$dir/key" ]; then
	# @behaviour R92: with a job key a killed process with lanes over UDP sockets is noticed
	# within a second, too, also one of an ordinary user; a stopped one is not lost
	check "sealed, udp: a process is killed in a stream" with_key killed_in_a_stream
	# @behaviour R92
	slow check "sealed, udp: an idle process is killed" with_key killed_while_idle
	# @behaviour R92
	check "sealed, udp: a process that stops for 3 s is not lost" with_key stopped
	# @behaviour R92
	slow check "sealed, udp: the helper of a process ends with it" with_key helper_ends
	if user_can_run; then
		# @behaviour R92
		check "sealed, udp: a process of an ordinary user is killed" \
			as_user killed_in_a_stream
	else
		skip "sealed, udp: a process of an ordinary user is killed" "it can't run here"
	fi
else
	skip "sealed, udp" "this build cannot seal"
fi

# xdp_works RUN...: can a process behind RUN use the interface?
xdp_works() {
	"$@" "$info" --no-huge -m 512 --no-pci \
		--vdev="net_af_xdp0,iface=xdp" -- -d >"$dir/xdp" 2>&1 &&
		grep -q "dpdk:0" "$dir/xdp" && ! grep -q "cannot be opened" "$dir/xdp"
}

# The kernel releases the queue of a process some time after the end of the process.
xdp_is_free() {
	local i
	for ((i = 0; i < 25; i++)); do
		sleep 0.2
		xdp_works "${server_run[@]}" && xdp_works "${client_run[@]}" && break
	done
	sleep 0.5
}

kind=xdp
link xdp 1500 || exit 1
if xdp_works "${server_run[@]}"; then
	# @behaviour R87
	check "AF_XDP: a process is killed in a stream" killed_in_a_stream
	xdp_is_free
	# @behaviour R87
	slow check "AF_XDP: a process that stops for 3 s is not lost" stopped
	xdp_is_free
	if [ -e "$dir/key" ]; then
		# @behaviour R87
		slow check "sealed, AF_XDP: a process is killed in a stream" \
			with_key killed_in_a_stream
	else
		skip "sealed, AF_XDP" "this build cannot seal"
	fi
else
	skip "AF_XDP" "this kernel or machine can't do it"
fi
tap_end
