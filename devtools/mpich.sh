#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# MPICH over the provider: builds the release of this machine's Debian as ch4:ofi, which no package
# of Debian's is, and runs MPICH's own test programs (devtools/mpi-soak.sh, step mpich).
#
#	devtools/mpich.sh DIR [FOLDER...]
#
#	DIR	gets source and build, about 1 GB; the next run uses them
#	FOLDER	of test/mpi: pt2pt, rma, datatype, coll (default: all four)
#
# The build takes half an hour on two busy cores, and all programs about an hour on idle ones. apt
# downloads the source package from the mirror that this machine's apt uses, with lists of its own:
# no line deb-src is needed. The exit code is 0 when no program failed with Weft alone, 77 when the
# source or a package cannot be had.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

missing() {
	echo "$*"
	exit 77
}

# fetch: $dir/source, of the suite that this machine has.
fetch() {
	local mirror suite
	mirror=$(weft_mirror)
	suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	if [ -z "$mirror" ] || [ -z "$suite" ] || ! command -v dpkg-source >/dev/null; then
		missing "apt of this machine has no mirror of Debian's packages"
	fi
	if ! { weft_apt_of "$dir/apt" deb-src "$mirror" "$suite" update &&
		(cd "$dir" && weft_apt_of "$dir/apt" deb-src "$mirror" "$suite" --download-only \
			source mpich) && rm -rf "$dir/source" &&
		dpkg-source --no-check -x "$dir"/mpich_*.dsc "$dir/source"; } >"$dir/log" 2>&1; then
		missing "the source package mpich cannot be downloaded:" \
			"$(grep -m 1 '^E:' "$dir/log" || echo "after 120 s")"
	fi
}

# of_mpich COMMAND...: finds the headers and libraries that are built here.
of_mpich() {
	env CPATH="$dir/prefix/include" LIBRARY_PATH="$dir/prefix/lib" \
		LD_LIBRARY_PATH="$dir/prefix/lib" PATH="$dir/prefix/bin:$PATH" "$@"
}

# Without Fortran, C++ and MPI-IO. MPICH's own engine for datatypes compiles in minutes, the other
# one in an hour.
build() {
	local without=(--disable-fortran --disable-cxx --disable-romio)
	cd "$dir/source" &&
		./configure --prefix="$dir/prefix" --with-device=ch4:ofi --with-libfabric=/usr \
			--without-ucx --with-datatype-engine=dataloop --with-hwloc=embedded \
			--enable-fast=O1 --disable-static --disable-dependency-tracking \
			"${without[@]}" &&
		make -j"$(nproc)" && make install &&
		cd test/mpi && ./configure --with-mpi="$dir/prefix" "${without[@]}" &&
		of_mpich make -C util && of_mpich make -C dtpools && touch "$dir/built"
}

case ${1:-} in
"" | -h | --help) sed -n '4,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
[ -f "$weft_build/provider/libweft-fi.so" ] || missing "there is no provider in $weft_build"
lacks=$(weft_missing mpich | tr '\n' ' ')
if [ -n "$lacks" ]; then
	[ "$(id -u)" = 0 ] && [ -z "${WEFT_NO_INSTALL:-}" ] ||
		missing "packages are missing: $lacks(devtools/setup.sh mpich)"
	weft_install mpich
fi
if [ ! -f "$dir/built" ]; then
	weft_say "MPICH: source and build"
	[ -x "$dir/source/configure" ] || fetch
	if ! (build) >"$dir/log" 2>&1; then
		tail -n 20 "$dir/log"
		weft_die "the build failed; its log is $dir/log"
	fi
fi
cd "$weft_root"
folders=$(IFS=,; echo "$*")
of_mpich devtools/mpi-soak.sh --mpich "$dir/source/test/mpi${folders:+:$folders}" mpich
