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

args=()
for arg; do
	case $arg in
	--no-install) WEFT_NO_INSTALL=1 ;;
	-h | --help) exec python3 "$weft_root/devtools/bench.py" --help ;;
	*) args+=("$arg") ;;
	esac
done

weft_install build bench
weft_hugepages 1024
weft_say "build"
weft_compile "$weft_build"
exec python3 "$weft_root/devtools/bench.py" --build "$weft_build" "--memory=${weft_memory[*]}" \
	"${args[@]}"
