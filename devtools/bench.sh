#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The measurements: Weft against the bare port and against UCX, alternating in one run, sorted by
# the distance of the two cores. This is no test: it reports figures.
#
#	devtools/bench.sh [--no-install] [OPTION of devtools/bench.py...]		see --help
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

# The build of the commit $at, made once: weft-perf, and the provider where that commit has one.
other_build() {
	local dir=$weft_build/against/$at
	if [ "$(git -C "$dir" rev-parse HEAD 2>/dev/null)" != "$at" ]; then
		rm -rf "$dir"
		git clone -q --no-checkout "$weft_root" "$dir"
		git -C "$dir" checkout -q "$at"
	fi
	weft_root=$dir weft_configure "$dir/build"
	set -- app/weft-perf
	! ninja -C "$dir/build" -t query provider/libweft-fi.so >/dev/null 2>&1 ||
		set -- "$@" provider/libweft-fi.so
	weft_ninja "$dir/build" "$@"
	against=$dir/build
}

args=() against='' at=''
while [ $# -gt 0 ]; do
	case $1 in
	--no-install) WEFT_NO_INSTALL=1 ;;
	-h | --help) exec python3 "$weft_root/devtools/bench.py" --help ;;
	--against=*) against=${1#*=} ;;
	--against)
		against=${2:?a commit or a build folder}
		shift
		;;
	*) args+=("$1") ;;
	esac
	shift
done

[ -z "$against" ] || [ -d "$against" ] ||
	at=$(git -C "$weft_root" rev-parse --verify --quiet "$against^{commit}") ||
	weft_die "there is no build folder and no commit '$against'"
weft_install build bench
weft_hugepages 1024
weft_say "build"
weft_compile "$weft_build"
[ -z "$at" ] || other_build
exec python3 "$weft_root/devtools/bench.py" --build "$weft_build" "--memory=${weft_memory[*]}" \
	${against:+"--against=$against"} "${args[@]}"
