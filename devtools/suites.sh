#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What scripts that run and count tests have in common; they source it after setup.sh. Records are kept in a folder
# that goes away at the end. Only tests whose names match $pattern run; empty: all.
# shellcheck disable=SC2034,SC2154 # setup.sh sets some, and who sources this reads some

work=$(mktemp -d "${TMPDIR:-/tmp}/weft-test.XXXXXX")
records=$work/records
: >"$records"
begin=$SECONDS
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# step NAME COMMAND...: a part of the run, with its time; it may fail without ending the run.
step() {
	local name=$1 start=$SECONDS rc=0
	shift
	weft_say "$name"
	"$@" || rc=$?
	printf '   %s: %d s\n' "$name" $((SECONDS - start))
	return $rc
}

count() { python3 "$weft_root/devtools/testcount.py" "$@"; }

# check NAME COMMAND...: one test that is a command; its exit code 77 means skipped, and its last line says why.
check() {
	local name=$1 start=$SECONDS rc=0
	shift
	[[ -z $pattern || $name =~ $pattern ]] || return 0
	("$@") >"$work/check.log" 2>&1 </dev/null || rc=$?
	count check "$name" $rc "$work/check.log" "$records"
	case $rc in
	0) printf '   ok      %s (%d s)\n' "$name" $((SECONDS - start)) ;;
	77) printf '   skipped %s\n' "$name" ;;
	*) printf '   FAILED  %s (%d s)\n' "$name" $((SECONDS - start)) ;;
	esac
}

# suites LABEL BUILDDIR TIMES SUITE... [-- MESON OPTION...]: runs these suites (without one given as -SUITE) and counts
# them. TIMES stretches time limits.
suites() {
	local label=$1 dir=$2 times=$3 log args=() names=() name
	shift 3
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		case $1 in
		-*) args+=(--no-suite "${1#-}") ;;
		*) args+=(--suite "$1") ;;
		esac
		shift
	done
	[ $# -eq 0 ] || shift
	mapfile -t names < <(meson test -C "$dir" --no-rebuild --list "${args[@]}" 2>/dev/null |
		sed -n '/^ninja:\|^No suitable tests/!{ s/^.* \/ //; p }')
	if [ -n "$pattern" ]; then
		mapfile -t names < <(for name in "${names[@]}"; do
			[[ ! $name =~ $pattern ]] || printf '%s\n' "$name"
		done)
	fi
	if [ ${#names[@]} -eq 0 ]; then
		printf '   no test here\n'
		return 0
	fi
	# With a wrapper meson adds the wrapper's name to the log's.
	log=$dir/meson-logs/weft-$label
	rm -f "$log".json "$log"-*.json
	# meson's own output goes by: the end of this script tells failures with their logs.
	meson test -C "$dir" --no-rebuild --logbase "weft-$label" --timeout-multiplier "$times" \
		"${args[@]}" "$@" "${names[@]}" 2>&1 </dev/null |
		grep -E '^ *[0-9]+/[0-9]+ ' | sed 's/^/   /' || true
	for name in "$log".json "$log"-*.json; do
		[ ! -f "$name" ] || log=$name
	done
	count meson "$label" "$log" "$records"
}

build() { # LABEL DIR MESON OPTION...: a build that counts as a test
	local label=$1 dir=$2 rc=0
	shift 2
	weft_compile "$dir" "$@" >"$work/build.log" 2>&1 || rc=$?
	count check "$label" $rc "$work/build.log" "$records"
	# Nothing, or warnings, when it worked.
	tail -n 40 "$work/build.log"
	return $rc
}
