#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The provider's tests with this system's MPI and libfabric. It installs what they need, and builds
# only that. For another Debian than this machine's:
#
#	devtools/fresh.sh trixie devtools/mpi-any.sh [TEST...]
#
# TEST: provider_mpi, provider_rma, ...; all of the suite that are not for the night by default.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

# targets: of the build, by name: meson would compile all programs.
targets() {
	ninja -C "$weft_build" -t targets all | sed -n 's/: .*//p' | grep -xE \
		-e 'test/provider/(provider_[a-z_]*|mpi_ranks|libweft-fi\.so)' \
		-e 'app/weft-(switch|perf|cat|info|dump)|weft-mpirun|provider/libweft-fi\.so'
}

weft_install build mpi mpitest
printf 'Debian %s, libfabric %s, %s\n' "$(cat /etc/debian_version)" \
	"$(fi_info --version | sed -n 's/^libfabric: //p')" "$(mpirun --version | head -n 1)"
[ -f "$weft_build/build.ninja" ] || meson setup "$weft_build" "$weft_root" -Dwerror=true >/dev/null
targets | xargs ninja --quiet -C "$weft_build"
tests=("$@")
[ -n "${tests[*]}" ] || tests=(--suite provider --no-suite nightly)
meson test -C "$weft_build" --no-rebuild -t 3 --print-errorlogs "${tests[@]}"
