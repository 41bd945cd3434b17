# SPDX-License-Identifier: BSD-3-Clause
# Processes that sleep on a RoCE device until its completion channel wakes them. What they wait for
# is 20 ms away, so that there is something to sleep through.
. "$(dirname "$0")/../lib.sh"

# rests PID: does it sleep now? What polls never does. (Processor time would not tell on a busy
# machine: an emulated processor's own pauses count as its program's.)
rests() {
	local stat
	read -ra stat <"/proc/$1/stat" && [ "${stat[2]}" = S ]
}

# sleeping LEAST ARGS...: of a hundred looks at each end of a ping-pong so many at least find it
# asleep.
sleeping() {
	local least=$1 pid one two looks=0 client_rests=0 server_rests=0 rc=0
	shift
	: >"$dir/client.out"
	server roce:rxe0b || return 1
	client roce:rxe0a -t tag_lat -s 8 -n 150 -w 1 -f -V -v "$@" &
	pid=$!
	wait_for 60 says "$dir/client.out" iterations, || rc=1
	one=$(pgrep -P "$(pgrep -P $pid timeout)") && two=$(pgrep -P "$server_pid") || rc=1
	while [ $rc = 0 ] && [ $looks -lt 40 ] && [ -d "/proc/$one" ] && [ -d "/proc/$two" ]; do
		! rests "$one" || client_rests=$((client_rests + 1))
		! rests "$two" || server_rests=$((server_rests + 1))
		looks=$((looks + 1))
		read -rt 0.07 -u 9
	done
	wait $pid || { echo "the client's exit code is $?"; cat "$dir/client.err"; rc=1; }
	wait "$server_pid" || { echo "the server's exit code is $?"; cat "$dir/server.err"; rc=1; }
	echo "of $looks looks the client slept in $client_rests, the server in $server_rests"
	[ $rc = 0 ] && all_right tag_lat 1 && [ $looks -ge 10 ] &&
		[ $((client_rests * 100)) -ge $((looks * least)) ] &&
			[ $((server_rests * 100)) -ge $((looks * least)) ]
}

rail 0 && far 0 20 80 || exit
check "weft-perf --sleep: every byte, and both ends sleep until they are woken" sleeping 25 --sleep
tap_end
