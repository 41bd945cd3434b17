# SPDX-License-Identifier: BSD-3-Clause
#
# What the two-process tests share. A test sources this with the build directory in $1, uses pair
# and friends, reports each case with check, and ends with tap_end. Every case has lanes, sockets
# and a TCP port of its own, so nothing is left of the one before.
# shellcheck shell=bash

build=$1
perf=$build/app/weft-perf
cat=$build/app/weft-cat
# shellcheck disable=SC2034
info=$build/app/weft-info

for program in "$perf" "$cat" "$info"; do
	[ -x "$program" ] || { echo "there is no ${program##*/} in this build"; exit 77; }
done

# Nothing of the caller's environment shall decide what is tested.
for variable in "${!WEFT_@}"; do
	[ "$variable" = WEFT_TEST_NO_HUGE ] || unset "$variable"
done
export WEFT_CONFIG=off

dir=$(mktemp -d "${TMPDIR:-/tmp}/weft-proc.XXXXXX")
server_pid=
# What runs the two ends (ip netns exec ...), and where the client finds the server.
server_run=()
client_run=()
host=127.0.0.1
tap=0
tap_failed=0

tidy() {
	local pids
	# To timeout, which hands it on. A case that failed may have left other processes.
	pids=$(jobs -p)
	# shellcheck disable=SC2086 # one argument each
	[ -z "$pids" ] || kill $pids 2>/dev/null
	wait 2>/dev/null
	rm -rf "$dir"
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# guard COMMAND...: runs the command when this script has ended without tidy(). A runner ends a test
# with SIGTERM and soon after with SIGKILL; bash runs no trap before its foreground command ends.
guard() {
	setsid bash -c 'tail --pid="$1" -f /dev/null; "${@:2}"' guard $$ "$@" \
		>/dev/null 2>&1 </dev/null &
	disown
}

# what_went_wrong: the ends of the logs.
what_went_wrong() {
	local log
	for log in check.log server.err client.err client.out; do
		[ ! -s "$dir/$log" ] || tail -c 4000 "$dir/$log" | tr -d "\0" | tail -n 8 |
			sed "s/^/# $log: /"
	done
}

# slow COMMAND...: the cases of this command are those of the nightly set; no other case needs them.
# TEST_CASES=short leaves them out, TEST_CASES=slow runs them alone.
slow() {
	# shellcheck disable=SC2034 # for in_set
	local is_slow=1
	"$@"
}

in_set() {
	case ${TEST_CASES:-} in
	short) [ -z "${is_slow:-}" ] ;;
	slow) [ -n "${is_slow:-}" ] ;;
	esac
}

# check NAME COMMAND...: one case; it passes when the command does. What went wrong is shown. These
# are real processes on a machine that may be busy: cases wait for what they need to see
# (until_said, start_client) and never for a time in which it should have happened.
check() {
	local name=$1
	shift
	in_set || return 0
	tap=$((tap + 1))
	if "$@" >"$dir/check.log" 2>&1; then
		echo "ok $tap - $name"
		return
	fi
	tap_failed=$((tap_failed + 1))
	what_went_wrong
	echo "not ok $tap - $name"
}

skip() {
	in_set || return 0
	tap=$((tap + 1))
	echo "ok $tap - $1 # SKIP $2"
}

tap_end() {
	echo "1..$tap"
	[ $tap_failed = 0 ]
}

# new_pair LANES: fresh TCP port and memif lanes; sets port, eal_server, eal_client.
new_pair() {
	local i memif
	port=$((20000 + RANDOM % 12000))
	while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
		port=$((20000 + RANDOM % 12000))
	done
	pair_number=$((${pair_number:-0} + 1))
	eal_server=(--no-huge -m 512 --no-pci)
	eal_client=(--no-huge -m 512 --no-pci)
	for ((i = 0; i < $1; i++)); do
		memif="id=0,socket-abstract=no,socket=$dir/m$pair_number.$i,rsize=10,bsize=9216"
		eal_server+=(--vdev="net_memif$i,role=server,$memif")
		eal_client+=(--vdev="net_memif$i,role=client,$memif")
	done
	lanes=
	for ((i = 0; i < $1; i++)); do
		lanes+="${lanes:+;}dpdk:$i,mtu=9000"
	done
}

# stretch N [MOST]: a bound in time for a quiet machine, for this one: as many times as long as
# there are processes for each core that want to run, and no more than MOST.
stretch() {
	local load running cores most=${2:-1000000} n
	cores=$(nproc)
	read -r load _ _ running _ </proc/loadavg
	load=$((${load%.*} + 1))
	running=${running%/*}
	[ "$running" -gt $load ] || running=$load
	n=$(($1 * (running > cores ? (running + cores - 1) / cores : 1)))
	echo $((n < most ? n : most))
}

# until_said FILE PATTERN [PID]: waits for such a line in a file, as long as the process lives. The
# caller empties a file of an earlier program before it starts the next: the shell does so only in
# the child, and the old line would be found meanwhile.
until_said() {
	local i
	for ((i = 0; i < 1200; i++)); do
		! grep -qE -- "$2" "$1" 2>/dev/null || return 0
		[ -z "${3:-}" ] || kill -0 "$3" 2>/dev/null || break
		sleep 0.05
	done
	grep -qE -- "$2" "$1" 2>/dev/null || {
		echo "no '$2' in ${1##*/} after $i x 50 ms"
		return 1
	}
}

# until_exists FILE PID: waits for a file that a process makes when it is ready, as long as the
# process lives.
until_exists() {
	local i
	for ((i = 0; i < 1200; i++)); do
		[ ! -e "$1" ] || return 0
		kill -0 "$2" 2>/dev/null || break
		sleep 0.05
	done
	echo "process $2 did not get ready"
	return 1
}

# log_has PATTERN: the client's log has such a line.
log_has() {
	grep -E -- "$1" "$dir/client.err" || {
		cat "$dir/client.err"
		echo "no line with '$1'"
		return 1
	}
}

# start_server PROGRAM ARGS...: in the background, until it waits for its client. Its standard input
# is $server_in, its standard output $server_out.
start_server() {
	local program=$1
	shift
	: >"$dir/server.err"
	timeout -k 10 100 "${server_run[@]}" "$program" "${eal_server[@]}" -- -p "$port" \
		-L "$lanes" "$@" <"${server_in:-/dev/null}" \
		>"${server_out:-$dir/server.out}" 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for a client" "$server_pid" || {
		echo "the server did not start"
		return 1
	}
}

# client PROGRAM ARGS...: to its end; returns its exit code.
client() {
	local program=$1
	shift
	timeout -k 10 100 "${client_run[@]}" "$program" "${eal_client[@]}" -- -p "$port" \
		-L "$lanes" "$@" "$host" \
		>"$dir/client.out" 2>"$dir/client.err"
}

# start_client ARGS...: weft-perf in the background (client_pid), until its test begins.
start_client() {
	: >"$dir/client.out"
	client "$perf" "$@" &
	client_pid=$!
	until_said "$dir/client.out" '^test ' $client_pid
}

# stream_runs: the time of the stream that start_client has begun runs (so long without -f):
# weft-perf has found out how many messages -D takes, and has reported the first second.
stream_runs() { until_said "$dir/client.out" '^[a-z]+_[a-z]+ +[0-9]' "$client_pid"; }

# start_stream ARGS...: random bytes go from the client (client_pid) to the server, by weft-cat with
# these arguments, until end_stream: as long as a case takes, on any machine.
start_stream() {
	local i
	rm -f "$dir/stream"
	mkfifo "$dir/stream"
	server_out=/dev/null
	start_server "$cat" -l -d "$@" || return 1
	server_out=
	client "$cat" -s "$@" <"$dir/stream" &
	client_pid=$!
	cat /dev/urandom >"$dir/stream" &
	stream_pid=$!
	# More than the messages in flight, eight of 1 MB.
	for ((i = 0; i < 1200; i++)); do
		[ "$(sed -n 's/^wchar: //p' "/proc/$stream_pid/io")" -lt 12000000 ] || return 0
		kill -0 $client_pid || break
		sleep 0.05
	done
	echo "the stream did not begin"
	return 1
}

# end_stream: it ends well, and both ends have found the same number of bytes and the same CRC.
end_stream() {
	local rc=0
	kill "$stream_pid"
	wait "$client_pid" || rc=$?
	server_code || rc=$?
	echo "the stream's exit code is $rc"
	return $rc
}

# server_code: waits for the server's end and returns its exit code.
server_code() {
	local rc=0
	wait "$server_pid" || rc=$?
	server_pid=
	return $rc
}

# program_pid PID: the program below the timeout PID. The kernel's list of children comes first;
# some kernels are built without it. On a busy machine pgrep once printed nothing for a process that
# ran, so an empty list is read again.
program_pid() {
	local children
	for _ in $(seq 50); do
		children=$(cat "/proc/$1/task/$1/children" 2>/dev/null || pgrep -P "$1")
		read -r children _ <<<"$children"
		[ -z "$children" ] || break
		sleep 0.1
	done
	echo "$children"
}

# perf_pair LANES CLIENT_ARGS...: a whole run of weft-perf that must end well at both ends.
perf_pair() {
	local count=$1 rc=0
	shift
	new_pair "$count"
	start_server "$perf" || return 1
	client "$perf" "$@" || rc=$?
	[ $rc = 0 ] || {
		echo "the client's exit code is $rc"
		kill $server_pid
		server_code
		return 1
	}
	server_code || { echo "the server's exit code is $?"; return 1; }
}

# sentence FILE PATTERN: is there a line of the program with these words, and are there no more than
# four lines?
sentence() {
	grep -qE "^weft-(perf|cat|info|switch|dump|wire): .*($2)" "$1" || {
		echo "no sentence with '$2':"
		cat "$1"
		return 1
	}
	[ "$(wc -l <"$1")" -le 4 ] || { echo "more than a sentence:"; cat "$1"; return 1; }
}
