#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles the provider against libfabric's headers of several Debian releases: the build uses only
# those of its own machine.
#
#	devtools/check-libfabric.sh DIR [SUITE...]
#
#	DIR	where packages are kept for the next run
#	SUITE	default: bookworm (libfabric 1.17) trixie (2.1)
#
# apt downloads each suite's libfabric-dev from the mirror that this machine's apt uses, with lists
# of its own: the system's packages and sources stay as they are. The exit code is 0 when all suites
# passed, 1 when a file does not compile, 77 when a suite's headers cannot be had.
# shellcheck disable=SC2154 # setup.sh sets weft_root
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

# apt_of DIR SUITE ARGUMENT...: apt-get with a state of its own.
apt_of() {
	local dir=$1 suite=$2 keys=/usr/share/keyrings/debian-archive-keyring.gpg
	shift 2
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	printf 'deb [signed-by=%s] %s %s main\n' "$keys" "$mirror" "$suite" >"$dir/sources.list"
	: >"$dir/status"
	timeout 120 apt-get -q -o Dir::Etc::SourceList="$dir/sources.list" \
		-o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$dir/lists" \
		-o Dir::State::status="$dir/status" -o Dir::Cache="$dir" \
		-o APT::Sandbox::User=root \
		-o Acquire::Languages=none -o Acquire::Retries=1 -o APT::Update::Error-Mode=any \
		"$@" </dev/null
}

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

# compile HEADERS: every file of the provider; warnings are errors.
compile() {
	local source rc=0
	for source in "$weft_root"/provider/*.c; do
		${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-parameter \
			-Wno-missing-field-initializers -Wno-format-truncation -fsyntax-only \
			-I "$weft_root" -I "$weft_root/lib" -isystem "$1" "$source" || rc=1
	done
	return $rc
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
		echo "$suite: the provider compiles against libfabric $(version_of "$headers")"
	else
		echo "$suite: the provider does not compile against libfabric" \
			"$(version_of "$headers")"
		rc=1
	fi
done
exit $rc
