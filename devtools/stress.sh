#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the tests on a machine that is too small for them: on few cores, which they share with
# processes that never sleep. A test that fails here depends on the speed of the machine, and must
# be fixed.
#
#	devtools/stress.sh [-n ROUNDS] [-j BUSY] [-c CORES] [-k PATTERN] [SUITE...]
#
#	-n ROUNDS    number of rounds (default 1)
#	-j BUSY      processes that are busy all the time (default 3)
#	-c CORES     cores that all of them share (default 1; 0 = all cores)
#	-k PATTERN   only tests whose name matches this extended regular expression
#	SUITE        unit, sim, proc, guest, guest-nic, guest-iommu (default unit sim proc)
#
# Time limits are twenty times the usual ones. The last line is "N passed, N failed"; the exit code
# is 0 when no test failed and at least one passed. The logs of failed tests are in
# BUILD/meson-logs/stress-ROUND.txt.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

rounds=1
busy=3
cores=1
pattern=
while getopts 'n:j:c:k:h' option; do
	case $option in
	n) rounds=$OPTARG ;;
	j) busy=$OPTARG ;;
	c) cores=$OPTARG ;;
	k) pattern=$OPTARG ;;
	*)
		sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "$0"
		[ "$option" != h ] || exit 0
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
for number in "$rounds" "$busy" "$cores"; do
	[[ $number =~ ^[0-9]+$ ]] || weft_die "'$number' is not a number; see -h"
done
[ $# -gt 0 ] || set -- unit sim proc

[ -f "$weft_build/build.ninja" ] || weft_die \
	"there is no build in $weft_build; devtools/test.sh --quick makes one"

pids=()
quiet() {
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
	pids=()
}
trap quiet EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ "$cores" -gt 0 ]; then
	# The first cores of those that this shell may use.
	list=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
		awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }' |
			head -n "$cores" | paste -sd,)
	taskset -cp "$list" $$ >/dev/null
fi
for ((i = 0; i < busy; i++)); do
	(while :; do :; done) &
	pids+=($!)
done

args=()
for suite; do args+=(--suite "$suite"); done
mapfile -t names < <(meson test -C "$weft_build" --no-rebuild --list "${args[@]}" 2>/dev/null |
	sed -n '/^ninja:\|^No suitable tests/!{ s/^.* \/ //; p }' | grep -E -- "$pattern" || true)
[ ${#names[@]} -gt 0 ] || weft_die "no test of $* matches '$pattern'"

passed=0
failed=0
for ((round = 1; round <= rounds; round++)); do
	while read -r line; do
		case $line in
		*' OK '*) passed=$((passed + 1)) ;;
		*' FAIL '* | *' TIMEOUT '* | *' ERROR '*)
			failed=$((failed + 1))
			printf 'round %d: %s\n' $round "$line"
			;;
		esac
	done < <(meson test -C "$weft_build" --no-rebuild --logbase "stress-$round" \
		--num-processes 2 \
		--timeout-multiplier 20 "${args[@]}" "${names[@]}" 2>&1 </dev/null |
		grep -E '^ *[0-9]+/[0-9]+ ')
done
quiet
printf '%d passed, %d failed\n' $passed $failed
[ $failed = 0 ] && [ $passed -gt 0 ]
