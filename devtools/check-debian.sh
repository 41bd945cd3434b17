#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the Debian packages (debian/) from the archive of "meson dist", and checks them.
#
#	devtools/check-debian.sh DIR
#
#	DIR	where the archive is unpacked and the packages are made; it must not exist
#
# The committed tree is built. Checked are: the archive has the version of the package and builds
# from nothing; lintian finds no error; each file is in one package, and each package has what it
# is for; libweft0 exports what its symbols file describes; programs of the packages start, and
# find their library without a path of their own; the tests of debian/tests pass with the unpacked
# packages; systemd's tools accept the unit, its exposure, the group and the folder. The packages
# of the groups build, mpi and debian are needed (devtools/setup.sh).
#
# The exit code is 0 when all is right, 1 when not, 77 where a program is missing.
# shellcheck disable=SC2154 # setup.sh sets weft_root
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

dir=${1:-}
[ -n "$dir" ] || weft_die "name the folder for the packages"
[ ! -e "$dir" ] || weft_die "$dir exists"
for program in dpkg-buildpackage dh lintian meson git; do
	command -v $program >/dev/null ||
		{ echo "there is no $program: devtools/setup.sh build mpi debian"; exit 77; }
done
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

wrong=0
# wrong TEXT...: reports what is wrong, and goes on.
wrong() {
	echo "wrong: $*"
	wrong=1
}

# ---- the archive, and the packages from it ---------------------------------------------------

# A clone: "meson dist" of a worktree looks for a folder .git.
git clone -q --no-hardlinks "$weft_root" "$dir/clone"
git -C "$dir/clone" checkout -q --detach "$(git -C "$weft_root" rev-parse HEAD)"
meson setup "$dir/clone/build" "$dir/clone" -Dtests=false -Ddocs=disabled >"$dir/setup.log"
meson dist -C "$dir/clone/build" --no-tests --formats gztar >"$dir/dist.log"
version=$(cd "$dir/clone" && dpkg-parsechangelog -S Version)
archive=$dir/clone/build/meson-dist/weft-$version.tar.gz
[ -f "$archive" ] || weft_die "meson dist made no ${archive##*/}: $(ls "${archive%/*}")"
tar -xzf "$archive" -C "$dir"
(cd "$dir/weft-$version" &&
	DEB_BUILD_OPTIONS="nocheck parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" \
		dpkg-buildpackage -b -us -uc >"$dir/build.log" 2>&1) ||
	{ tail -n 30 "$dir/build.log"; weft_die "the packages were not built"; }
if grep -q "dpkg-gensymbols: warning" "$dir/build.log"; then
	grep "dpkg-gensymbols: warning" "$dir/build.log"
	wrong "libweft0.symbols does not describe the library"
fi

# ---- their contents --------------------------------------------------------------------------

lintian --fail-on error "$dir"/weft_"$version"_*.changes || wrong "lintian"

# debhelper has compared them with what the build installs: nothing is in no package.
packages=(libweft0 libweft-dev weft-tools weft-mpi weft-switch wireshark-weft)
mkdir "$dir/root"
for package in "${packages[@]}"; do
	dpkg-deb -x "$dir/${package}_${version}"_*.deb "$dir/root"
	dpkg-deb --fsys-tarfile "$dir/${package}_${version}"_*.deb | tar -t |
		grep -v '/$' | sed "s,^\.,$package: ," >>"$dir/files"
done
twice=$(sed 's/^[^:]*: //' "$dir/files" | sort | uniq -d)
[ -z "$twice" ] || wrong "in two packages: $twice"

# has PACKAGE PATTERN...: the package has files with these names.
has() {
	local pattern
	for pattern in "${@:2}"; do
		grep -qx "$1: $pattern" "$dir/files" || wrong "$1 has no $pattern"
	done
}

dpkg-deb -f "$dir/libweft0_$version"_*.deb Depends | grep -q librte-mempool-ring ||
	wrong "libweft0 does not require the driver of DPDK's pools"

lib=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
has libweft0 "$lib/libweft.so.0"
has libweft-dev "$lib/libweft.so" "$lib/pkgconfig/weft.pc" /usr/include/weft.h \
	/usr/include/weft/lane.h
has weft-mpi "$lib/libfabric/libweft-fi.so" /usr/bin/weft-mpirun \
	/usr/share/man/man1/weft-mpirun.1.gz /usr/share/bash-completion/completions/weft-mpirun
has wireshark-weft "$lib/wireshark/plugins/weft.lua" "$lib/wireshark/plugins/.*/epan/weft.so" \
	/usr/share/wireshark/profiles/Weft/colorfilters
has weft-tools "/usr/share/doc/weft/wire.md.*" "/usr/share/doc/weft/architecture.md.*" \
	/usr/share/man/man7/weft.7.gz /usr/share/man/man7/weft-config.7.gz
for name in perf cat info dump wire bind; do
	has weft-tools "/usr/bin/weft-$name" "/usr/share/man/man1/weft-$name.1.gz" \
		"/usr/share/bash-completion/completions/weft-$name"
done
has weft-switch /usr/bin/weft-switch /usr/share/man/man1/weft-switch.1.gz \
	"\(/usr\)\?/lib/systemd/system/weft-switch.service" /etc/default/weft-switch \
	/usr/lib/sysusers.d/weft-switch.conf /usr/lib/tmpfiles.d/weft-switch.conf

# ---- they work -------------------------------------------------------------------------------

for name in info perf cat dump wire switch; do
	out=$(LD_LIBRARY_PATH="$dir/root$lib" "$dir/root/usr/bin/weft-$name" --version 2>&1) ||
		wrong "weft-$name does not start"
	[[ $out == *"$version"* ]] || wrong "weft-$name --version prints '$out'"
done
for file in "$dir/root/usr/bin"/weft-* "$dir/root$lib/libfabric/libweft-fi.so"; do
	! readelf -d "$file" 2>/dev/null | grep -qE 'R(UN)?PATH' || wrong "$file has a run path"
done
readelf -d "$dir/root$lib/libfabric/libweft-fi.so" | grep -q 'NEEDED.*libweft\.so\.0' ||
	wrong "the provider does not use libweft.so.0"
if command -v fi_info >/dev/null; then
	LD_LIBRARY_PATH="$dir/root$lib" FI_PROVIDER_PATH="$dir/root$lib/libfabric" \
		fi_info -p weft >/dev/null || wrong "fi_info does not list the provider"
fi

# autopkgtest runs these with installed packages.
usr=$dir/root/usr
for name in demo program mpi; do
	if [ $name = mpi ] && ! { command -v mpicc && command -v mpirun; } >/dev/null; then
		echo "the test mpi is skipped: there is no Open MPI"
		continue
	fi
	# gcc finds what pkg-config names below the folder of the packages.
	PATH=$usr/bin:$PATH LD_LIBRARY_PATH=$dir/root$lib PKG_CONFIG_PATH=$dir/root$lib/pkgconfig \
		PKG_CONFIG_SYSROOT_DIR=$dir/root timeout 300 \
		"$weft_root/debian/tests/$name" >"$dir/test-$name.log" 2>&1 ||
		{ tail -n 20 "$dir/test-$name.log"; wrong "debian/tests/$name"; }
done

unit=$(find "$dir/root" -name weft-switch.service)
if command -v systemd-analyze >/dev/null; then
	sed "s,/usr/bin/weft-switch,$dir/root&," "$unit" >"$dir/weft-switch.service"
	systemd-analyze verify --man=no "$dir/weft-switch.service" || wrong "${unit##*/}"
	# What it needs (root, the NIC, raw sockets) is most of the exposure.
	systemd-analyze security --offline=true --threshold=50 "$dir/weft-switch.service" \
		>"$dir/security.log" 2>&1 || { tail -n 1 "$dir/security.log"; wrong "exposure"; }
fi
if command -v systemd-sysusers >/dev/null; then
	mkdir -p "$dir/root/etc"
	systemd-sysusers --root="$dir/root" weft-switch.conf >/dev/null || wrong "sysusers"
	grep -q '^weft:' "$dir/root/etc/group" || wrong "there is no group weft"
fi
if command -v systemd-tmpfiles >/dev/null; then
	systemd-tmpfiles --root="$dir/root" --create weft-switch.conf || wrong "tmpfiles"
	[ -d "$dir/root/run/weft" ] || wrong "there is no /run/weft"
fi
[ $wrong = 0 ] && echo "${#packages[@]} packages of $(wc -l <"$dir/files") files are right"
