#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The checks that take too long for each change. The times are estimates for 2 idle cores, 10.3
# hours in all; most of the steps have run alone, never all of them in one run.
#
#	devtools/nightly.sh [--smoke] [--against COMMIT] [STEP...]
#
# --smoke runs the least of each step, to check that the step works: 10 minutes besides the builds.
# It measures this build against itself, so its figures mean nothing.
#
#	tests      devtools/test.sh --nightly: whole guests, valgrind, ThreadSanitizer with all
#	           rounds, the slow programs of sim and proc, also sanitized (40 minutes)
#	mutants    100 mutations of the engine, lib/msg, lib/wireup and shm, which unit and sim must
#	           detect (devtools/mutate.py; 40 minutes)
#	against    this build against COMMIT (default b8f6610, version 0.1.0): 9 alternating pairs
#	           each of the measures of "bench.sh against": memif, shm, virtio, af_packet,
#	           MPI. A ratio of medians that is 3 % worse in two runs fails (25 minutes)
#	soak       3,000 seeds of random traffic and calls in the simulator; 2,300 runs of random
#	           calls over real lanes (40 minutes)
#	matrix     the day's tenth of all networks of "sim_net_bench matrix": those of 10 days in
#	           turn are all 35,280. Rows, with their seeds, go to BUILD/nightly/matrix-DATE.txt.
#	           A row that misses a goal fails no step (45 minutes)
#	network    streams of real processes over af_packet and UDP sockets, faults of the network,
#	           processes that are stopped; memory and descriptors must not grow
#	           (devtools/soak_net.py); needs root (2 hours)
#	fuzz       each fuzzer with libFuzzer for 300 s of processor time (20 minutes)
#	stress     unit and sim on one core, together with three busy processes (30 minutes)
#	mpi        netpipe, hpcc and 8 ranks over the provider (20 minutes)
#	mpich      MPICH as ch4:ofi, built once from Debian's source package, and its test programs
#	           over the provider, those that fail also over tcp;ofi_rxm (90 minutes)
#	debian     the Debian packages, from the archive of "meson dist", and what they contain
#	           (10 minutes)
#	rpm        the RPM packages, from the same archive (5 minutes)
#	debian12   new Debian 12 systems (devtools/fresh.sh): the packages and their tests by
#	           autopkgtest, the main job, unit and sim; needs root and a mirror (40 minutes)
#	debian13   the same with Debian 13; also the provider's tests with Open MPI 5 and
#	           libfabric 2.1 (60 minutes)
#	captures   5 runs of each of 24 kinds of fault, and what weft-dump names; needs root.
#	           A false alarm in a run without a fault fails (30 minutes)
#
# Each step's output is in BUILD/nightly/STEP.log. The last line is "N passed, N failed, N skipped";
# the exit code is 0 when no step failed. A step without its program is skipped, with the reason.
set -uo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

commit=b8f6610
smoke=
steps=()
while [ $# -gt 0 ]; do
	case $1 in
	--against)
		commit=${2:?a commit}
		shift
		;;
	--smoke) smoke=1 ;;
	-h | --help)
		sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	tests | mutants | against | soak | matrix | network | fuzz | stress | mpi | mpich | \
		debian | rpm | debian12 | debian13 | captures)
		steps+=("$1")
		;;
	*) weft_die "no option or step '$1'; see --help" ;;
	esac
	shift
done
[ ${#steps[@]} -gt 0 ] ||
	steps=(tests mutants against soak matrix network fuzz stress mpi mpich debian rpm \
		debian12 debian13 captures)

logs=$weft_build/nightly
passed=0 failed=0 skipped=0

# amount WHOLE SMOKE: SMOKE with --smoke, else WHOLE.
amount() { [ -n "$smoke" ] && echo "$2" || echo "$1"; }

# One disturbed run proves nothing, so the step fails only after two.
step_against() {
	local run rc
	if [ -n "$smoke" ]; then
		"$weft_root/devtools/bench.sh" --no-install --trials 1 --seconds 10 \
			--out "$logs" --against "$weft_build" against
		return
	fi
	git -C "$weft_root" rev-parse --verify --quiet "$commit^{commit}" >/dev/null ||
		{ echo "there is no commit $commit in this repository"; return 77; }
	for run in 1 2; do
		echo "run $run"
		"$weft_root/devtools/bench.sh" --no-install --strict --trials 9 --seconds 60 \
			--out "$logs" --against "$commit" against
		rc=$?
		[ $rc != 0 ] || return 0
	done
	return $rc
}

step_tests() {
	"$weft_root/devtools/test.sh" --no-install --nightly -k "$(amount . '^(threads|lock)$')"
}

step_mutants() {
	"$weft_root/devtools/mutate.py" --mutants "$(amount 100 3)" --goal "$(amount 85 0)"
}

step_soak() {
	"$weft_root/devtools/soak.sh" --seeds "1:$(amount 2000 20)" &&
		"$weft_root/devtools/soak.sh" --seeds "1:$(amount 1000 10)" --kind calls &&
		"$weft_build/test/random/random_shm" -n "$(amount 2000 20)" &&
		"$weft_build/test/random/random_memif" -n "$(amount 150 3)"
}

step_network() {
	local tool
	[ "$(id -u)" = 0 ] || { echo "network namespaces need root"; return 77; }
	for tool in ip tc nft setpriv; do
		command -v $tool >/dev/null || { echo "$tool is not installed"; return 77; }
	done
	"$weft_root/devtools/soak_net.py" --seconds "$(amount 7200 40)"
}

# matrix_done: how many of all networks a result file of this build has a row for.
matrix_done() {
	cat "$logs"/matrix-*.txt 2>/dev/null |
		awk '$1 ~ /^[0-9]+$/ && NF > 12 && $2 != "rows" { n += !seen[$1 % 35280]++ }
			END { print n + 0 }'
}

# A message that does not arrive, or twice, fails the step.
step_matrix() {
	local part rows seed day file
	rows=$(amount 1764 1)
	day=$(($(date +%s) / 86400))
	seed=$((day * 3528))
	file=$logs/matrix-$(date -d "@$((day * 86400))" -u +%F).txt
	for part in 0 1; do
		"$weft_build/test/sim/sim_net_bench" matrix $((seed + part * rows)) "$rows" \
			>"$logs/matrix.$part" &
	done
	wait
	{
		echo "commit $(git -C "$weft_root" rev-parse HEAD)"
		cat "$logs"/matrix.[01]
	} | tee "$file"
	echo "$(matrix_done) of 35280 networks have a row in $logs/matrix-*.txt"
	[ "$(grep -c 'runs missed a goal' "$file")" = 2 ] && ! grep -q 'violated:' "$file"
}

step_fuzz() {
	command -v clang >/dev/null || { echo "there is no clang here"; return 77; }
	"$weft_root/devtools/fuzz.sh" -s "$(amount 300 5)"
}

step_stress() {
	"$weft_root/devtools/stress.sh" -k "$(amount . '^(json|rate|text|sys_path)$')" unit sim
}

step_mpi() {
	command -v mpirun >/dev/null || { echo "there is no mpirun here"; return 77; }
	[ -f "$weft_build/provider/libweft-fi.so" ] ||
		{ echo "there is no provider in $weft_build"; return 77; }
	# shellcheck disable=SC2046 # steps
	"$weft_root/devtools/mpi-soak.sh" $(amount "netpipe hpcc crowd" crowd)
}

step_mpich() {
	# shellcheck disable=SC2046 # folders
	"$weft_root/devtools/mpich.sh" "$logs/mpich" $(amount "" datatype)
}

step_debian() {
	rm -rf "$logs/debian"
	"$weft_root/devtools/check-debian.sh" "$logs/debian"
}

step_rpm() {
	rm -rf "$logs/rpm"
	"$weft_root/devtools/check-rpm.sh" "$logs/rpm"
}

# new_system SUITE: the committed tree's packages, and the commands of README.md.
new_system() {
	local fresh=$weft_root/devtools/fresh.sh
	rm -rf "${logs:?}/$1"
	# shellcheck disable=SC2046 # no argument, or one
	"$weft_root/devtools/check-clean.sh" "$1" "$logs/$1" $(amount "" demo) || return
	"$fresh" "$1" devtools/demo.sh || return
	[ -n "$smoke" ] || "$fresh" "$1" devtools/test.sh --quick
}

step_debian12() { new_system bookworm; }

step_debian13() {
	new_system trixie || return
	"$weft_root/devtools/fresh.sh" trixie devtools/mpi-any.sh "$(amount "" provider_messages)"
}

# Load decides how many faults are named, so their number does not fail the step.
step_captures() {
	# shellcheck disable=SC2046 # kinds
	"$weft_root/devtools/capture-corpus.sh" "$weft_build" \
		$(amount 5 "1 clean_stream loss_2 killed")
}

mkdir -p "$logs"
weft_say "build"
weft_compile "$weft_build" || exit 1
for step in "${steps[@]}"; do
	begin=$SECONDS
	weft_say "$step"
	(set -o pipefail && "step_$step" 2>&1 | tee "$logs/$step.log")
	rc=$?
	case $rc in
	0) passed=$((passed + 1)) result=passed ;;
	77) skipped=$((skipped + 1)) result="skipped: $(tail -n 1 "$logs/$step.log")" ;;
	*) failed=$((failed + 1)) result="failed, see $logs/$step.log" ;;
	esac
	printf '   %s: %s (%d s)\n' "$step" "$result" $((SECONDS - begin))
done
printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed = 0 ]
