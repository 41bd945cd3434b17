#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-cat between two processes over two net_memif lanes: what goes in at one end comes out at the
# other.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

head -c 20000003 /dev/urandom >"$dir/big"
head -c 300001 /dev/urandom >"$dir/small"

same() { cmp "$1" "$2"; }

both_ways() {
	new_pair 2
	server_in=$dir/small
	start_server "$cat" -l || return 1
	server_in=
	client "$cat" "$@" <"$dir/big" || return 1
	server_code || return 1
	[ "$(sha256sum <"$dir/big")" = "$(sha256sum <"$dir/server.out")" ] &&
		[ "$(sha256sum <"$dir/small")" = "$(sha256sum <"$dir/client.out")" ]
}

# one_way SENDER...: a shell pipeline whose output goes through to the server.
one_way() {
	new_pair 2
	start_server "$cat" -l || return 1
	eval "$1" | client "$cat" || return 1
	server_code || return 1
}

# open_input: $dir/input is input that goes on until descriptor 8 is closed.
open_input() {
	rm -f "$dir/input"
	mkfifo "$dir/input"
	exec 8<>"$dir/input"
}

# Half-close: the answer comes long after the question's end.
half_close() {
	new_pair 2
	timeout 100 "$cat" "${eal_server[@]}" -- -p "$port" -L "$lanes" -l 2>"$dir/server.err" \
		< <(sleep 2; echo answer) >"$dir/server.out" &
	server_pid=$!
	echo question | client "$cat" -W 30 || return 1
	server_code || return 1
	[ "$(cat "$dir/server.out")" = question ] && [ "$(cat "$dir/client.out")" = answer ]
}

# The reader of the server's output sees its end when the client's input ends, though the server's
# own input goes on.
output_ends_with_input() {
	local i pid begin=$SECONDS ended=0
	new_pair 2
	open_input
	# Without timeout, which would hold the pipe open.
	"$cat" "${eal_server[@]}" -- -p "$port" -L "$lanes" -l 2>"$dir/server.err" <"$dir/input" \
		8>&- |
		{ cat >"$dir/server.out"; touch "$dir/ended"; } 8>&- &
	echo all | client "$cat" -W 30 8>&- &
	pid=$!
	for ((i = 0; i < 600 && !ended; i++)); do
		[ ! -e "$dir/ended" ] || ended=1
		sleep 0.05
	done
	exec 8>&- # the server's own input
	[ $ended = 1 ] || echo "not ended after $((SECONDS - begin)) s"
	wait $pid && [ $ended = 1 ] && [ "$(cat "$dir/server.out")" = all ]
}

output_closed() {
	new_pair 2
	{
		timeout 100 "$cat" "${eal_server[@]}" -- -p "$port" -L "$lanes" -l </dev/null \
			2>"$dir/server.err"
		echo $? >"$dir/server.code"
	} | head -c 10 >/dev/null &
	local rc=0
	client "$cat" -W 30 <"$dir/big" || rc=$?
	wait
	[ $rc = 3 ] && [ "$(cat "$dir/server.code")" = 1 ] &&
		sentence "$dir/server.err" "output was closed" &&
			sentence "$dir/client.err" "output was closed"
}

output_full() {
	local rc=0
	new_pair 2
	timeout 100 "$cat" "${eal_server[@]}" -- -p "$port" -L "$lanes" -l </dev/null \
		2>"$dir/server.err" >/dev/full &
	server_pid=$!
	client "$cat" -W 30 <"$dir/small" || rc=$?
	server_code && return 1
	[ $rc = 3 ] && sentence "$dir/server.err" "No space left"
}

ticks() { # PID...: CPU time of these processes, in 10 ms
	local pid
	for pid; do
		awk '{ print $14 + $15 }' "/proc/$pid/stat"
	done | awk '{ sum += $1 } END { print sum }'
}

# CPU time of both programs over ten seconds without data: 1 % at most.
idle_cpu() {
	local pids=() pid before after hz
	hz=$(getconf CLK_TCK)
	new_pair 2
	start_server "$cat" -l || return 1
	open_input
	client "$cat" <"$dir/input" 8>&- &
	client_pid=$!
	echo hello >&8
	until_said "$dir/server.out" hello "$server_pid" || return 1
	sleep 3 # what belongs to connecting, its measuring too, is over
	for pid in $(pgrep -f -- "-p $port -L"); do
		[ "$(<"/proc/$pid/comm")" != weft-cat ] || pids+=("$pid")
	done
	[ ${#pids[@]} = 2 ] || { echo "${#pids[@]} processes"; return 1; }
	before=$(ticks "${pids[@]}")
	sleep 10
	after=$(ticks "${pids[@]}")
	exec 8>&-
	wait $client_pid || return 1
	server_code || return 1
	echo "$((after - before)) ticks of 1/$hz s in 10 s each"
	[ $((after - before)) -le $((2 * 10 * hz / 100)) ]
}

# With standard error on a terminal (script makes one) how much has passed is shown while it passes,
# on one line.
progress_line() {
	command -v script >/dev/null || return 0
	new_pair 1
	start_server "$cat" -l || return 1
	cat >"$dir/on_a_terminal" <<-END
		{ head -c 300000 "$dir/big"; sleep 1.5; head -c 100 "$dir/big"; } |
			${client_run[*]} "$cat" ${eal_client[*]@Q} -- \\
				-p $port -L "$lanes" -W 10 $host >/dev/null
	END
	script -qec "bash $dir/on_a_terminal" /dev/null </dev/null >"$dir/terminal" 2>&1 || return 1
	server_code || return 1
	tr '\r' '\n' <"$dir/terminal" | grep -c 'sent 293\.0 KiB' | { read -r n && [ "$n" -ge 2 ]; }
}

summary_line() {
	local losses="^sent again: dpdk:0 [0-9]+ frames(, dpdk:1 [0-9]+)?"
	losses+="; dropped here: dpdk:0 [0-9]+"
	new_pair 1
	start_server "$cat" -l || return 1
	client "$cat" -s <"$dir/small" || return 1
	tail -n 1 "$dir/client.err" | grep -qE "$losses" || return 1
	server_code && grep -qE '^sent 293\.0 KiB .*received 0 B' "$dir/client.err"
}

# -d at one end or both: nothing is read, all else goes on.
no_stdin() { # SERVER_OPTION CLIENT_OPTION EXPECTED_AT_CLIENT EXPECTED_AT_SERVER
	new_pair 2
	server_in=$dir/small
	# shellcheck disable=SC2086
	start_server "$cat" -l $1 || return 1
	server_in=
	# shellcheck disable=SC2086
	client "$cat" $2 <"$dir/big" || return 1
	server_code || return 1
	cmp "$dir/client.out" "$3" && cmp "$dir/server.out" "$4"
}

# A peer that announces pieces of 1 KiB and sends one of 1 MiB: not a byte of it is written, and
# nothing behind the buffer.
liar() {
	local rc=0 code=0
	new_pair 1
	start_server "$cat" -l || return 1
	timeout -k 10 100 "$build/test/proc/proc_cat_liar" "${eal_client[@]}" -- "$host" "$port" \
		"$lanes" >"$dir/client.out" \
		2>"$dir/client.err" || rc=$?
	server_code || code=$?
	echo "exit codes: liar $rc, server $code"
	[ $code = 3 ] && [ $rc = 3 ] && [ ! -s "$dir/server.out" ] &&
		sentence "$dir/server.err" \
			"a message of 1048576 bytes; it had announced at most 1024"
}

host_and_port() {
	new_pair 1
	start_server "$cat" -l || return 1
	echo question | timeout -k 10 100 "$cat" "${eal_client[@]}" -- -L "$lanes" "$1:$port" \
		>"$dir/client.out" 2>"$dir/client.err" || return 1
	server_code && [ "$(cat "$dir/server.out")" = question ]
}

# A client comes through though silent connections have taken every place at the server's door.
silent_strangers() {
	local fds=() fd i begin bound
	bound=$(stretch 5)
	new_pair 1
	start_server "$cat" -l || return 1
	for ((i = 0; i < 20; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port" && fds+=("$fd")
	done
	begin=$SECONDS
	echo question | client "$cat" || return 1
	[ $((SECONDS - begin)) -lt "$bound" ] || { echo "after $((SECONDS - begin)) s"; return 1; }
	server_code || return 1
	for fd in "${fds[@]}"; do
		exec {fd}>&-
	done
	[ "$(cat "$dir/server.out")" = question ]
}

check "a file each way, SHA-256" both_ways
# @behaviour T9
check "-d at the server: its input is not read" no_stdin -d "" /dev/null "$dir/big"
# @behaviour T9
check "-d at the client: its input is not read" no_stdin "" --no-stdin "$dir/small" /dev/null
# @behaviour T9
check "-d at both ends: nothing, and a good end" no_stdin -d -d /dev/null /dev/null
# @behaviour T9: weft-cat writes nothing beyond its buffer and checks the error before the data;
# `-d` works at either end
check "a peer that sends more than it announced" liar
# @behaviour T14
slow check "HOST:PORT" host_and_port 127.0.0.1
# @behaviour T14
check "[IPV6]:PORT" host_and_port "[::1]"
# @behaviour T11
check "silent connections keep no peer out" silent_strangers
slow check "pieces of 100 bytes, one in flight" both_ways -b 100 -O 1
slow check "pieces of 3 MB" both_ways -b 3000000
check "nothing at all" one_way true
check "an empty output for it" test ! -s "$dir/server.out"
# shellcheck disable=SC2016
check "input that comes in drops" one_way 'for i in 1 2 3; do echo $i; sleep 0.2; done'
check "the drops are there" same "$dir/server.out" <(seq 3)
# shellcheck disable=SC2016
check "slow input in odd pieces" one_way \
	'for i in $(seq 40); do head -c $((i * 777)) "$dir/big"; done'
check "the odd pieces are there" same "$dir/server.out" \
	<(for i in $(seq 40); do head -c $((i * 777)) "$dir/big"; done)
slow check "an answer after the question's end" half_close
check "output ends when the peer's input does" output_ends_with_input
# @behaviour Y21
check "output closed by its reader: exit codes 1 and 3" output_closed
check "output full: a sentence" output_full
# @behaviour Y21, T44
check "idle without a busy core" idle_cpu
check "one line at the end with -s" summary_line
# @behaviour Y21: weft-cat: progress on a terminal, no busy core while idle, exit codes
check "how much has passed, on a terminal" progress_line

tap_end
