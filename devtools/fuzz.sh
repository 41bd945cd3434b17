#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A campaign of the fuzzers: libFuzzer, guided by coverage, with AddressSanitizer and UBSan, each
# for a stated time. (The test command runs a bounded number of blind mutations instead.)
#
#	devtools/fuzz.sh [-s SECONDS] [-j JOBS] [-d DIR] [NAME...]
#
#	-s SECONDS   processor time of each fuzzer (default 1800)
#	-j JOBS      number of fuzzers at a time (default: the number of cores)
#	-d DIR       inputs that increase coverage, findings and logs (default build-fuzz/campaign);
#	             the next campaign continues with them
#	NAME         address, dump, frame, msg, rma, session, wireup (default all)
#
# It needs clang, which it installs. An input that kills a fuzzer is in DIR/NAME-crash-*, an input
# that takes too long in DIR/NAME-timeout-*; "build-fuzz/test/fuzz/fuzz_NAME FILE" runs it again.
# The last line is "N passed, N failed"; the exit code is 0 when no fuzzer failed.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

dir=$weft_root/build-fuzz
seconds=1800
jobs=$(nproc)
out=$dir/campaign
while getopts 's:j:d:h' option; do
	case $option in
	s) seconds=$OPTARG ;;
	j) jobs=$OPTARG ;;
	d) out=$OPTARG ;;
	*)
		sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "$0"
		[ "$option" != h ] || exit 0
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
for number in "$seconds" "$jobs"; do
	[[ $number =~ ^[1-9][0-9]*$ ]] || weft_die "'$number' is not a number above 0; see -h"
done

weft_install build test fuzz
command -v clang >/dev/null || weft_die "clang is not installed, and libFuzzer is part of it"
CC=clang weft_configure "$dir" -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false \
	-Doptimization=1
mapfile -t known < <(ninja -C "$dir" -t targets all |
	sed -n 's|^test/fuzz/fuzz_\([a-z]*\): .*|\1|p' | sort)
[ $# -gt 0 ] || set -- "${known[@]}"
for name; do
	[[ " ${known[*]} " = *" $name "* ]] || weft_die "no fuzzer '$name'; there are ${known[*]}"
done
weft_say "build"
weft_ninja "$dir" "${@/#/test/fuzz/fuzz_}" test/fuzz/seeds-frame
mkdir -p "$out"

# campaign NAME: one fuzzer until its processor time is used up. libFuzzer has a limit of real time
# only, so it runs in slices of the remaining time.
campaign() {
	local name=$1 left=$seconds used=0 before me=$BASHPID
	local corpus=("$out/$name" "$weft_root/test/fuzz/corpus/$name")
	[ "$name" != frame ] || corpus+=("$dir/test/fuzz/seeds-frame")
	[ -d "${corpus[1]}" ] || unset 'corpus[1]'
	mkdir -p "$out/$name"
	: >"$out/$name.log"
	while [ "$left" -gt 0 ]; do
		before=$(spent "$me")
		"$dir/test/fuzz/fuzz_$name" -max_total_time="$left" -timeout=600 \
			-report_slow_units=600 -rss_limit_mb=3000 -verbosity=0 \
			-print_final_stats=1 -artifact_prefix="$out/$name-" "${corpus[@]}" \
			>>"$out/$name.log" 2>&1 </dev/null ||
			return 1
		used=$((used + $(spent "$me") - before))
		left=$((seconds - used))
	done
	echo "$used" >"$out/$name.seconds"
}

# spent PID: processor time of its ended children, in seconds.
spent() { awk -v hz="$(getconf CLK_TCK)" '{ printf "%d", ($16 + $17) / hz }' "/proc/$1/stat"; }

running=()
finish() {
	[ ${#running[@]} -eq 0 ] || pkill -f -P "$(IFS=,; echo "${running[*]}")" fuzz_ || true
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

passed=0
failed=0
weft_say "fuzzers, $seconds s of processor time each, $jobs at once: $*"
names=("$@")
declare -A pid_name=()
reap() { # waits for one fuzzer
	local pid rc=0 name
	wait -n -p pid "${!pid_name[@]}" || rc=$?
	name=${pid_name[$pid]}
	unset "pid_name[$pid]"
	running=("${!pid_name[@]}")
	if [ $rc = 0 ]; then
		passed=$((passed + 1))
		printf '   ok      %s: %s s, %s inputs, %s kept\n' "$name" \
			"$(cat "$out/$name.seconds")" \
			"$(awk '/number_of_executed_units/ { n += $2 } END { print n + 0 }' \
			"$out/$name.log")" \
			"$(find "$out/$name" -type f | wc -l)"
	else
		failed=$((failed + 1))
		printf '   FAILED  %s: its log is %s\n' "$name" "$out/$name.log"
		tail -n 30 "$out/$name.log"
	fi
}
for name in "${names[@]}"; do
	[ ${#pid_name[@]} -lt "$jobs" ] || reap
	campaign "$name" &
	pid_name[$!]=$name
	running=("${!pid_name[@]}")
done
while [ ${#pid_name[@]} -gt 0 ]; do reap; done
printf '%d passed, %d failed\n' $passed $failed
[ $failed = 0 ]
