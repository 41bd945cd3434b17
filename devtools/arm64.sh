#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds for arm64 by Debian's cross compiler, and runs the unit and sim suites under QEMU's user
# emulation; ends with "N passed, N failed, N skipped".
#
#	devtools/arm64.sh [-k PATTERN] [SUITE]	SUITE of Debian: bookworm (default) or trixie
#	devtools/arm64.sh --here [-k PATTERN]		on this machine, which gets arm64 packages
#
#	-k PATTERN     only tests whose name matches this extended regular expression
#
# It runs in a debootstrapped system of its own (devtools/fresh.sh), so that this machine's packages
# are unchanged. Emulated time is not real time: no test asserts on speed, and the suites take some
# ten times as long.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

suite=
here=
pattern=
while [ $# -gt 0 ]; do
	case $1 in
	--here) here=1 ;;
	-k)
		[ $# -gt 1 ] || weft_die "-k needs a pattern"
		pattern=$2
		shift
		;;
	-h | --help)
		sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	-*) weft_die "no option '$1'; see --help" ;;
	*)
		[ -z "$suite" ] || weft_die "one suite of Debian, not '$suite' and '$1'"
		suite=$1
		;;
	esac
	shift
done

if [ -z "$here" ]; then
	exec "$weft_root/devtools/fresh.sh" "${suite:-bookworm}" devtools/arm64.sh --here \
		${pattern:+-k "$pattern"}
fi
[ -z "$suite" ] || weft_die "--here runs on this machine's system, so '$suite' has no meaning"

run_limit=86400

# shellcheck source=devtools/suites.sh
. "$weft_root/devtools/suites.sh"

add_architecture() {
	[ -z "${WEFT_NO_INSTALL:-}" ] || return 0
	dpkg --print-foreign-architectures | grep -qx arm64 || dpkg --add-architecture arm64
}

step packages add_architecture
step packages weft_install arm64

arm=$weft_build-arm64
step_limit=$run_limit
if step "build" build "build for arm64" "$arm" --cross-file "$weft_root/devtools/arm64.cross"; then
	step "unit" suites arm64 "$arm" 10 unit
	step "sim" suites arm64-sim "$arm" 20 sim
fi

printf '\n   all in all: %d s\n' $((SECONDS - begin))
count sum "$records"
