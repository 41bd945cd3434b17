#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The provider and libfabric's releases: the build uses the headers of its own machine, and the
# library that loads the provider may be another.
#
#	devtools/check-libfabric.sh DIR [SUITE...]
#
#	DIR	where packages are kept for the next run
#	SUITE	default: bookworm (libfabric 1.17) trixie (2.1)
#
# For each Debian suite it
#	- compiles the provider, and its tests where cmocka is installed, against the suite's
#	  headers, with warnings as errors;
#	- runs the provider of this build (WEFT_BUILD), which has the headers of this machine, under
#	  the suite's library, in the suite's C library: fi_info of that release, which requests the
#	  release's version, fi_pingpong, and the provider's own tests that are built.
#
# apt downloads packages from the mirror that this machine's apt uses, with lists of its own: the
# system's packages and sources stay as they are. The exit code is 0 when all suites passed, 1 when
# one failed, 77 when a suite's packages cannot be had. Without a provider in the build the second
# part is skipped, with the reason.
# shellcheck disable=SC2154 # setup.sh sets weft_root
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

# apt_of DIR SUITE ARGUMENT...
apt_of() { weft_apt_of "$1" deb "$mirror" "$2" "${@:3}"; }

# headers_of SUITE: prints the folder that has rdma/fabric.h of this suite.
headers_of() {
	local suite=$1 dir=$cache/$1
	if [ ! -f "$dir/root/usr/include/rdma/fabric.h" ]; then
		mkdir -p "$dir"
		if ! { apt_of "$dir" "$suite" update && cd "$dir" &&
			apt_of "$dir" "$suite" download libfabric-dev &&
			dpkg-deb -x libfabric-dev_*.deb root; } >"$dir/log" 2>&1; then
			rm -rf "$dir/root"
			return 1
		fi
	fi
	printf '%s\n' "$dir/root/usr/include"
}

# sources: of the provider, and those of its tests whose other headers are here.
sources() {
	local name
	printf '%s\n' "$weft_root"/provider/*.c
	for name in "$weft_root"/test/provider/*.c; do
		case $name in
		*/mpi_*) ;; # they use MPI, not libfabric
		*) [ ! -f /usr/include/cmocka.h ] || printf '%s\n' "$name" ;;
		esac
	done
}

# compile HEADERS: warnings are errors.
compile() {
	local source rc=0
	for source in $(sources); do
		${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-parameter \
			-Wno-missing-field-initializers -Wno-format-truncation -fsyntax-only \
			-I "$weft_root" -I "$weft_root/lib" -I "$weft_root/app" \
			-I "$weft_root/test" -isystem "$1" "$source" || rc=1
	done
	return $rc
}

# library_of SUITE: prints the folder that has the suite's fi_info and all libraries that it needs.
library_of() {
	local suite=$1 dir=$cache/$1 packages
	if [ ! -x "$dir/run/usr/bin/fi_info" ]; then
		rm -rf "$dir/run" "$dir/run.debs"
		mkdir -p "$dir/run.debs"
		# An empty status file: apt names every package that fi_info depends on.
		packages=$(apt_of "$dir" "$suite" -s install --no-install-recommends libfabric-bin \
			2>"$dir/log" | sed -nE 's/^Inst ((lib|ibverbs)[^ ]*).*/\1/p')
		# shellcheck disable=SC2086 # a list
		if [ -z "$packages" ] || ! { cd "$dir/run.debs" &&
			apt_of "$dir" "$suite" download $packages; } >"$dir/log" 2>&1; then
			return 1
		fi
		for deb in "$dir"/run.debs/*.deb; do
			dpkg-deb -x "$deb" "$dir/run" >>"$dir/log" 2>&1 || return 1
		done
	fi
	printf '%s\n' "$dir/run"
}

# under ROOT COMMAND...: with the libraries of ROOT; what it lacks (DPDK) is this machine's.
under() {
	local root=$1 arch loader
	shift
	arch=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
	loader=$(find "$root" -name 'ld-linux-*.so.*' | head -n 1)
	FI_PROVIDER=weft FI_PROVIDER_PATH=$weft_build/provider WEFT_LANES=shm timeout 120 \
		"$loader" --library-path \
		"$root/usr/lib/$arch:$root/lib/$arch:/usr/lib/$arch:/lib/$arch" "$@"
}

# pingpong ROOT: two processes; the second one finds the first when that listens.
pingpong() {
	local root=$1 port=$((30000 + $$ % 20000)) server rc=1
	under "$root" "$root/usr/bin/fi_pingpong" -p weft -e rdm -B "$port" -I 100 -S 4096 \
		>/dev/null 2>&1 &
	server=$!
	for _ in $(seq 20); do
		kill -0 "$server" 2>/dev/null || break
		under "$root" "$root/usr/bin/fi_pingpong" -p weft -e rdm -P "$port" -I 100 \
			-S 4096 127.0.0.1 && rc=0 && break
		sleep 0.5
	done >"$cache/pingpong.log" 2>&1
	[ $rc = 0 ] || { tail -n 3 "$cache/pingpong.log"; kill "$server" 2>/dev/null; }
	wait "$server" || rc=1
	[ $rc = 0 ] && grep -q '^4k  *100 ' "$cache/pingpong.log"
}

# run ROOT: the provider of this build under this library.
run() {
	local root=$1 test
	under "$root" "$root/usr/bin/fi_info" -p weft >"$cache/info.log" 2>&1 &&
		grep -q '^provider: weft' "$cache/info.log" ||
		{ echo "fi_info -p weft:"; tail -n 3 "$cache/info.log"; return 1; }
	pingpong "$root" || { echo "fi_pingpong -p weft failed"; return 1; }
	for test in info messages queues rma tagged atomic; do
		test=$weft_build/test/provider/provider_$test
		[ -x "$test" ] || continue
		under "$root" "$test" >"$cache/test.log" 2>&1 ||
			{ tail -n 20 "$cache/test.log"; return 1; }
	done
}

# check_run SUITE: sets rc.
check_run() {
	local suite=$1 root version
	if [ ! -f "$weft_build/provider/libweft-fi.so" ]; then
		echo "$suite: not run: $weft_build has no provider"
		return
	fi
	if ! root=$(library_of "$suite"); then
		echo "$suite: not run: libfabric-bin cannot be downloaded:" \
			"$(grep -m 1 '^E:' "$cache/$suite/log" || echo "after 120 s")"
		[ $rc = 1 ] || rc=77
		return
	fi
	version=$(under "$root" "$root/usr/bin/fi_info" --version 2>&1 |
		sed -n 's/^libfabric: //p')
	if run "$root"; then
		echo "$suite: the provider of this build runs under libfabric $version"
	else
		echo "$suite: the provider of this build fails under libfabric ${version:-there}"
		rc=1
	fi
}

version_of() {
	sed -nE 's/^#define FI_(MAJOR|MINOR)_VERSION +([0-9]+).*/\2/p' "$1/rdma/fabric.h" |
		paste -sd.
}

[ $# -ge 1 ] || weft_die "a folder for packages is needed; see the top of this file"
mkdir -p "$1"
cache=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- bookworm trixie
mirror=$(weft_mirror)
if [ -z "$mirror" ] || ! command -v dpkg-deb >/dev/null; then
	echo "apt of this machine has no mirror of Debian's packages"
	exit 77
fi

rc=0
for suite; do
	if ! headers=$(headers_of "$suite"); then
		echo "$suite: libfabric-dev cannot be downloaded:" \
			"$(grep -m 1 '^E:' "$cache/$suite/log" || echo "after 120 s")"
		[ $rc = 1 ] || rc=77
		continue
	fi
	if compile "$headers"; then
		echo "$suite: the provider and its tests compile against libfabric" \
			"$(version_of "$headers")"
	else
		echo "$suite: the provider or its tests do not compile against libfabric" \
			"$(version_of "$headers")"
		rc=1
	fi
	check_run "$suite"
done
exit $rc
