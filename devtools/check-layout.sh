#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# check-layout.sh LIBRARY DESCRIPTION HEADER...: the structs, enums and functions of the headers
# must be those of the description (lib/libweft.layout), as abidiff of libabigail compares them.
# A change of the interface updates the description, and its review shows what changes for programs
# that are already built:
#
#     devtools/check-layout.sh --list build/libweft.so lib/weft*.h >lib/libweft.layout
#
# Exit code 77: abidiff is not installed.
set -euo pipefail

command -v abidw abidiff >/dev/null || {
	echo "abidiff is not installed (package abigail-tools)"
	exit 77
}
[ $# -ge 3 ] || {
	echo "usage: check-layout.sh {LIBRARY DESCRIPTION HEADER... | --list LIBRARY HEADER...}" >&2
	exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Types that other headers declare are private: this folder has the given headers alone.
mkdir "$work/headers"
for header in "${@:3}"; do
	ln -s "$(realpath "$header")" "$work/headers"
done

describe() {
	abidw --headers-dir "$work/headers" --drop-private-types --no-show-locs \
		--no-comp-dir-path --no-corpus-path --no-elf-needed --no-architecture \
		--exported-interfaces-only "$1"
}

if [ "$1" = --list ]; then
	describe "$2"
	exit
fi
describe "$1" >"$work/now"
# FILE differs between releases of libc, and programs use its address only.
printf '[suppress_type]\n\tname_regexp = ^_IO_.*\n' >"$work/libc.suppr"
rc=0
abidiff --suppressions "$work/libc.suppr" --harmless "$2" "$work/now" >"$work/changes" || rc=$?
if [ $rc != 0 ]; then
	cat "$work/changes"
	echo "$2 describes another interface. If the change is intended: check-layout.sh --list"
	exit 1
fi
echo "the layout is that of $2"
