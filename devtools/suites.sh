#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Functions of the scripts that run and count tests; they source it after setup.sh. Records are kept
# in a folder that is removed at the end. Only tests whose names match $pattern run; an empty
# pattern matches all. The run may take $run_limit seconds.
# shellcheck disable=SC2034,SC2154 # setup.sh sets some, and scripts that source this read some

# A part of a run (below) has the folder of the run.
if [ -n "${TEST_PART:-}" ]; then
	work=$TEST_WORK
	records=$work/records.$TEST_PART
	# Killed tests leave their files, which are removed with the run.
	export TMPDIR=$work/tmp
else
	work=$(mktemp -d "${TMPDIR:-/tmp}/weft-test.XXXXXX")
	records=$work/records
	mkdir "$work/tmp"
	trap run_clean EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	TEST_UNTIL=$(($(date +%s) + run_limit))
fi
: >"$records"
begin=$SECONDS

# ---- limits ---------------------------------------------------------------------------------
#
# A run that hangs would report nothing. Each test has its limit in meson; a step has step_limit
# seconds, and the run ends at TEST_UNTIL. At the limit of a step or of the run, the tests that run
# are ended. They are failed tests, and so are those that have not begun. Whatever still runs a
# minute after the end of the run is killed, and its part of the run is a failed test.

step_limit=2400
guard_pid=

# seconds_left: the time that this step may take; 0 = none.
seconds_left() {
	local left=$((TEST_UNTIL - $(date +%s)))
	[ $left -lt $step_limit ] || left=$step_limit
	echo $((left > 0 ? left : 0))
}

# limited SECONDS COMMAND...: runs a command or a function, with its processes in a group of their
# own, for at most so many seconds.
limited() {
	local pid rc=0 guard
	set -m
	("${@:2}") &
	pid=$!
	(
		sleep "$1"
		echo "it was ended after $1 s"
		kill -TERM -- -$pid
		sleep 5
		kill -KILL -- -$pid
	) 2>/dev/null &
	guard=$!
	set +m
	wait $pid || rc=$?
	kill -TERM -- -$guard 2>/dev/null || true
	wait $guard 2>/dev/null || true
	return $rc
}

# guard: ends the parts that still run a minute after the end of the run.
guard() {
	local pids
	while sleep 5; do
		[ "$(date +%s)" -ge $((TEST_UNTIL + 60)) ] || continue
		pids=$(started) || continue
		# shellcheck disable=SC2086 # one argument each
		kill -TERM $pids
		sleep 10
		pids=$(started) || continue
		# shellcheck disable=SC2086
		kill -KILL $pids
	done >/dev/null 2>&1
}

# ---- parts ----------------------------------------------------------------------------------
#
# Parts of a run execute in parallel. Each is the same script again, with its name in TEST_PART, in
# a session of its own. Where the kernel shares processors by sessions (autogroup) a part can lower
# its priority. Processes that it started are found at the end by TEST_WORK in their environment.

part_names=() # in the order in which their tests are counted
part_pids=()

# part NAME [ARGUMENT...]: starts a part; part_wait waits for all.
part() {
	if [ -z "$guard_pid" ]; then
		guard </dev/null &
		guard_pid=$!
	fi
	part_names+=("$1")
	# A background process of a shell would ignore SIGINT, and so would its children.
	WEFT_WERROR=$weft_werror TEST_PART=$1 TEST_WORK=$work TEST_UNTIL=$TEST_UNTIL setsid \
		env --default-signal=INT,QUIT bash "$0" "${@:2}" </dev/null &
	part_pids+=($!)
}

# part_wait [NAME]: waits for this part or for all, and counts their tests. A part that was killed
# is a failed test.
part_wait() {
	local i rc name
	for i in "${!part_names[@]}"; do
		name=${part_names[i]}
		[ -z "${1:-}" ] || [ "$name" = "$1" ] || continue
		rc=0
		wait "${part_pids[i]}" || rc=$?
		cat "$work/records.$name" >>"$records"
		if [ $rc != 0 ]; then
			echo "it ended in its step: $(cat "$work/step.$name" 2>/dev/null)" \
				>"$work/log"
			count check "part of the run: $name" $rc "$work/log" "$records"
		fi
		unset "part_names[i]" "part_pids[i]"
	done
}

# started: the processes of this run's parts that still run, in any session and group.
started() { grep -lzxsF "TEST_WORK=$work" /proc/[0-9]*/environ | cut -d/ -f3; }

# run_clean: ends the remaining processes, by SIGTERM and then SIGKILL, and removes the files.
run_clean() {
	local pid try
	trap '' HUP INT TERM
	[ -z "$guard_pid" ] || kill "$guard_pid" 2>/dev/null || true
	for pid in "${part_pids[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
	for ((try = 0; try < 30; try++)); do
		pid=$(started) || true
		[ -n "$pid" ] || break
		# shellcheck disable=SC2086 # one argument each
		[ $try -lt 20 ] || kill -KILL $pid 2>/dev/null || true
		sleep 0.5
	done
	rm -rf "$work"
}

# stand_back: this part uses only the processor time that the others leave. Its builds get even
# less: at a nice value of 10, tests of two polling processes took two to three times as long.
# (meson gives each test a session of its own.)
stand_back() {
	renice -n 10 -p $$ >/dev/null 2>&1 || true
	(echo 19 >/proc/$$/autogroup) 2>/dev/null || true
	printf '#!/bin/sh\n(echo 10 >/proc/$$/autogroup) 2>/dev/null\nexec "$@"\n' \
		>"$work/low-$TEST_PART"
	chmod 755 "$work/low-$TEST_PART"
	wrapper=$work/low-$TEST_PART
}

# await_processes: until no test of processes runs. Tests with times of their own would fail if they
# got only what those leave.
await_processes() {
	while [ ! -e "$work/no-processes" ]; do sleep 1; done
}
wrapper=

# step NAME COMMAND...: a step of the run, with its time by the clock and of processors. It may fail
# without ending the run. In a part its output is printed at its end, in one piece.
step() {
	local name=$1 rc=0
	shift
	if [ -n "${TEST_PART:-}" ]; then
		echo "$name" >"$work/step.$TEST_PART"
		step_run "$@" >"$work/out.$TEST_PART" 2>&1 || rc=$?
		flock "$work" cat "$work/out.$TEST_PART"
	else
		step_run "$@" || rc=$?
	fi
	return $rc
}

step_run() {
	local rc=0 TIMEFORMAT="   $name: %0R s, of processors %0U s + %0S s for the kernel"
	weft_say "$name"
	time "$@" || rc=$?
	return $rc
}

count() { python3 "$weft_root/devtools/testcount.py" "$@"; }

# check NAME COMMAND...: one test that is a command. Its exit code 77 means skipped; its last line
# is then the reason.
check() {
	local name=$1 start=$SECONDS rc=0
	shift
	[[ -z $pattern || $name =~ $pattern ]] || return 0
	limited "$(seconds_left)" "$@" >"$records.log" 2>&1 </dev/null || rc=$?
	count check "$name" $rc "$records.log" "$records"
	case $rc in
	0) printf '   ok      %s (%d s)\n' "$name" $((SECONDS - start)) ;;
	77) printf '   skipped %s\n' "$name" ;;
	*) printf '   FAILED  %s (%d s)\n' "$name" $((SECONDS - start)) ;;
	esac
}

# suites LABEL BUILDDIR TIMES SUITE... [-- COMMAND...]: runs these suites (-SUITE excludes one, with
# +SUITE a test must also belong to that one) and counts them, each program by COMMAND (valgrind
# ...). Time limits are multiplied by TIMES.
suites() {
	local label=$1 dir=$2 times=$3 log args=() names=() of=() name by=$wrapper left first
	shift 3
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	[ $# -lt 2 ] || by="$by ${*:2}"
	mapfile -t names < <(count names "$dir" "${args[@]}" 2>"$records.log")
	# A name may be that of a program of another suite, too.
	for name in "${args[@]}"; do
		case $name in
		-*) of+=(--no-suite "${name#-}") ;;
		+*) ;;
		*) of+=(--suite "$name") ;;
		esac
	done
	# Without this check a suite without tests would pass.
	if [ ${#names[@]} -eq 0 ]; then
		count check "$label: a list of its tests" 1 "$records.log" "$records"
		return 0
	fi
	if [ -n "$pattern" ]; then
		mapfile -t names < <(for name in "${names[@]}"; do
			[[ ! $name =~ $pattern ]] || printf '%s\n' "$name"
		done)
	fi
	if [ ${#names[@]} -eq 0 ]; then
		printf '   no test here\n'
		return 0
	fi
	# meson adds the wrapper's name to that of the log.
	read -r first _ <<<"$by" || true
	log=$dir/meson-logs/weft-$label${first:+-${first##*/}}.json
	rm -f "$log"
	# meson's own output goes to a file: the end of this script prints failures with their logs.
	# There is no pipe: meson ends its tests on a signal, but not when the reader of its output
	# has ended before.
	left=$(seconds_left)
	[ "$left" = 0 ] || timeout -k 30 "$left" meson test -C "$dir" --no-rebuild \
		--logbase "weft-$label" --timeout-multiplier "$times" \
		${by:+--wrapper "$by"} "${of[@]}" "${names[@]}" >"$records.log" 2>&1 </dev/null ||
		true
	grep -E '^ *[0-9]+/[0-9]+ ' "$records.log" | sed 's/^/   /' || true
	count meson "$label" "$log" "$records" "${names[@]}"
}

# build LABEL DIR [MESON OPTION...] [-- SUITE...]: a build that counts as a test. When suites are
# named, only the programs of these suites are built.
build() {
	local label=$1 dir=$2 rc=0 options=()
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	{
		weft_configure "$dir" "${options[@]}" &&
			mapfile -t targets < <([ $# -eq 0 ] || count targets "$dir" "$@") &&
			weft_ninja "$dir" "${targets[@]}"
	} >"$records.log" 2>&1 || rc=$?
	count check "$label" $rc "$records.log" "$records"
	# The log is empty, or has warnings, when the build succeeded.
	tail -n 40 "$records.log"
	return $rc
}
