#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A peer that dies, stops or never was: the other end says so in a message within 2 s (of a core of
# its own) and ends with its exit code.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

export TMPDIR=$dir # of the flight recorder's files

ms() { echo $(($(date +%s%N) / 1000000)); }

# told_at_once FILE PID: the message comes in time; then the process ends, its exit code in rc.
told_at_once() {
	local begin took bound
	bound=$(stretch 2000)
	begin=$(ms)
	until_said "$1" "^weft-(perf|cat): .*($expect)" "$2"
	took=$(($(ms) - begin))
	rc=0
	wait "$2" || rc=$?
	echo "took $took of $bound ms, exit code $rc"
	[ $took -le "$bound" ]
}

# recorded FILE: the message names a file of the flight recorder, which only its owner can read and
# weft-dump reads.
recorded() {
	local file
	file=$(grep -oE "$dir/weft-[0-9]+/recorder-[0-9]+-[0-9a-f]{16}.pcapng" "$1") || {
		echo "no file of the flight recorder:"
		cat "$1"
		return 1
	}
	"$build/app/weft-dump" "$file" >"$dir/recorder.txt" 2>&1
	grep -q "frames" "$dir/recorder.txt" && [ "$(stat -c %a "$file")" = 600 ]
}

# victim SIGNAL END CLIENT_ARGS...: weft-perf runs, END (server or client) gets SIGNAL; the other
# one must notice.
victim() {
	local signal=$1 end=$2
	shift 2
	new_pair 2
	start_server "$perf" || return 1
	start_client "$@" || return 1
	sleep 0.5
	if [ "$end" = server ]; then
		kill "-$signal" "$(program_pid "$server_pid")" || return 1
		told_at_once "$dir/client.err" $client_pid || return 1
		[ $rc = 3 ] && sentence "$dir/client.err" "$expect" || return 1
		[ "$signal" != KILL ] || recorded "$dir/client.err"
	else
		kill "-$signal" "$(pgrep -f -- "-p $port -L.*127.0.0.1" | while read -r p; do
			[ "$(cat "/proc/$p/comm")" = weft-perf ] && echo "$p"
		done)" || return 1
		told_at_once "$dir/server.err" "$server_pid" || return 1
		server_pid=
		wait "$client_pid"
		[ $rc = 3 ] && grep -v waiting "$dir/server.err" >"$dir/said" &&
			sentence "$dir/said" "$expect" || return 1
		[ "$signal" != KILL ] || recorded "$dir/server.err"
	fi
}

interrupted_code() {
	local rc=0 pid
	new_pair 1
	start_server "$perf" || return 1
	pid=$(program_pid "$server_pid")
	kill -TERM "$pid"
	server_code || rc=$?
	echo "exit code $rc"
	[ $rc = 143 ]
}

cat_killed() {
	local pid rc
	new_pair 2
	server_in=/dev/zero
	start_server "$cat" -l || return 1
	server_in=
	: >"$dir/client.out"
	client "$cat" </dev/null &
	pid=$!
	while [ ! -s "$dir/client.out" ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
	kill -9 "$(program_pid "$server_pid")"
	told_at_once "$dir/client.err" $pid || return 1
	[ "$rc" = 3 ] && sentence "$dir/client.err" "died" && recorded "$dir/client.err"
}

# A process that is stopped is slow, not dead.
stopped_and_woken() {
	local victim rc=0
	new_pair 1
	start_server "$perf" || return 1
	start_client -t tag_bw -s 4k -D 3 -V && stream_runs || return 1
	victim=$(program_pid "$server_pid")
	kill -STOP "$victim"
	sleep 3
	kill -CONT "$victim"
	wait $client_pid || rc=$?
	server_code || return 1
	[ $rc = 0 ]
}

expect="died"
# @behaviour X10: a peer killed during a run: 2 s by the TCP connection, WEFT_PEER_TIMEOUT by the
# library
check "server killed in a stream" victim KILL server -t tag_bw -s 64k -D 30 -f
# @behaviour X10
slow check "server killed in a ping-pong" victim KILL server -t tag_lat -s 8 -D 30 -f
# @behaviour X10
check "client killed in a stream" victim KILL client -t tag_bw -s 64k -D 30 -f
# @behaviour X10
slow check "client killed in a stream both ways" victim KILL client -t tag_bibw -s 1M -D 30 -f
expect="gave up: interrupted by signal 15"
slow check "server interrupted" victim TERM server -t tag_bw -s 1k -D 30 -f
slow check "client interrupted" victim TERM client -t tag_bw -s 1k -D 30 -f
check "a waiting server ends by its signal" interrupted_code
# @behaviour X10
check "weft-cat: peer killed" cat_killed
# @behaviour Y3, R40
check "a server that stops for 3 s is not lost" stopped_and_woken
tap_end
