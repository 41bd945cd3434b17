#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds a libfabric that starts fast, for weft-mpirun to put before the system's.
#
#	devtools/libfabric-lean.sh SOURCE DIR
#
#	SOURCE	a folder with libfabric's source: that of a release, or of `apt-get source
#		libfabric`; "apt" fetches the latter
#	DIR	gets libfabric.so.1. weft-mpirun looks into LIBDIR/libfabric/lean of its own prefix,
#		such as /usr/local/lib/x86_64-linux-gnu/libfabric/lean
#
# Distributions link libfabric to the libraries of PSM adapters, whose constructors calibrate a
# clock by 500 sleeps whatever provider is used, and build in the verbs provider, which reads
# /proc/kallsyms twice. This one has the providers tcp, shm and ofi_rxm alone, and loads others from
# FI_PROVIDER_PATH as any libfabric does. Code, symbols and version are those of the source; take
# the release that the system has. The script refuses a library that lacks a symbol version of the
# system's.
set -euo pipefail

die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# versions FILE: the symbol versions that it defines.
versions() {
	objdump -p "$1" | awk '/^Version definitions/ { on = 1; next } /^$/ { on = 0 } on' |
		grep -o 'FABRIC_[0-9.]*' | sort -u
}

[ $# = 2 ] || die "SOURCE and DIR are needed; see the top of this file"
for program in gcc make objdump; do
	command -v $program >/dev/null || die "there is no $program: install build-essential"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$2"
target=$(cd "$2" && pwd)
if [ "$1" = apt ]; then
	(cd "$work" && apt-get -q source libfabric) ||
		die "apt-get source libfabric failed: apt needs a line deb-src of this release"
	source=$(find "$work" -maxdepth 1 -type d -name 'libfabric-*' | head -n 1)
else
	[ -f "$1/configure.ac" ] || die "$1 has no source of libfabric"
	cp -a "$1" "$work/source"
	source=$work/source
fi

cd "$source"
if [ ! -x configure ]; then
	command -v libtoolize >/dev/null ||
		die "there is no configure: install autoconf, automake and libtool"
	./autogen.sh >"$work/log" 2>&1 || { tail -n 20 "$work/log"; die "autogen.sh failed"; }
fi
./configure --prefix="$work/root" --libdir="$work/root/lib" --disable-static --enable-only \
	--enable-tcp --enable-rxm --enable-shm >"$work/log" 2>&1 ||
	{ tail -n 20 "$work/log"; die "configure failed"; }
make -j"$(nproc)" install >"$work/log" 2>&1 || { tail -n 20 "$work/log"; die "make failed"; }

built=$(readlink -f "$work/root/lib/libfabric.so.1")
system=$(ldconfig -p | sed -n 's/.*libfabric\.so\.1 .*=> //p' | head -n 1)
if [ -n "$system" ]; then
	lacks=$(comm -13 <(versions "$built") <(versions "$system") | tr '\n' ' ')
	[ -z "$lacks" ] || die "$system has ${lacks}and this source has not: take its release"
fi
if ldd "$built" | grep -E 'psm|ibverbs|rdmacm|efa'; then
	die "these libraries would be loaded by it"
fi
cp "$built" "$target/"
ln -sf "$(basename "$built")" "$target/libfabric.so.1"
echo "$target/libfabric.so.1: $(basename "$built"), for weft-mpirun"
