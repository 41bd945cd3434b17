#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the RPM packages (packaging/weft.spec) from the archive of "meson dist", and checks them.
#
#	devtools/check-rpm.sh DIR
#
#	DIR	where the packages are made; it must not exist
#
# The committed tree is built. Checked are: the version is that of the archive; rpmlint finds no
# error in the spec and the packages; each file is in one package, and each package has what it is
# for; scriptlets are valid; programs of the packages start, and find their library without a path
# of their own. On Debian the names of the required packages mean nothing, so rpmbuild does not look
# for them: the groups build, mpi and rpm are needed (devtools/setup.sh).
#
# The exit code is 0 when all is right, 1 when not, 77 where a program is missing.
# shellcheck disable=SC2154 # setup.sh sets weft_root
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

dir=${1:-}
[ -n "$dir" ] || weft_die "name the folder for the packages"
[ ! -e "$dir" ] || weft_die "$dir exists"
for program in rpmbuild rpmspec rpmlint rpm2cpio cpio meson git; do
	command -v $program >/dev/null ||
		{ echo "there is no $program: devtools/setup.sh build mpi rpm"; exit 77; }
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
spec=$dir/clone/packaging/weft.spec
version=$(rpmspec -q --srpm --qf '%{version}' "$spec")
archive=$dir/clone/build/meson-dist/weft-$version.tar.gz
[ -f "$archive" ] || weft_die "meson dist made no ${archive##*/}: $(ls "${archive%/*}")"
mkdir "$dir/SOURCES"
cp "$archive" "$dir/SOURCES"
nodeps=()
[ ! -e /etc/debian_version ] || nodeps=(--nodeps)
rpmbuild -bb "${nodeps[@]}" --define "_topdir $dir" "$spec" >"$dir/build.log" 2>&1 ||
	{ tail -n 30 "$dir/build.log"; weft_die "the packages were not built"; }

# ---- their contents --------------------------------------------------------------------------

packages=(weft weft-libs weft-devel weft-mpi weft-switch weft-wireshark)
mapfile -t rpms < <(printf "$dir/RPMS/$(rpm --eval '%{_arch}')/%s-$version-1.$(rpm --eval \
	'%{_arch}').rpm\n" "${packages[@]}")
mkdir "$dir/root"
for i in "${!packages[@]}"; do
	[ -f "${rpms[i]}" ] || { wrong "there is no ${rpms[i]##*/}"; continue; }
	rpm -qp --qf "[%{FILEMODES:perms} ${packages[i]}: %{FILENAMES}\n]" "${rpms[i]}" |
		sed '/^d/d; s/^[^ ]* //' >>"$dir/files"
	rpm2cpio "${rpms[i]}" | (cd "$dir/root" && cpio -idm --quiet)
done
[ "$(find "$dir/RPMS" -name '*.rpm' | wc -l)" = ${#packages[@]} ] ||
	wrong "other packages: $(find "$dir/RPMS" -name '*.rpm')"
# The licence is in several, under the name of each.
twice=$(sed 's/^[^:]*: //' "$dir/files" | sort | uniq -d)
[ -z "$twice" ] || wrong "in two packages: $twice"

rpmlint -c "$dir/clone/packaging/rpmlint.toml" "$spec" "${rpms[@]}" >"$dir/rpmlint.log" 2>&1 ||
	{ grep ' E: ' "$dir/rpmlint.log"; wrong "rpmlint"; }

# has PACKAGE FILE...: the package has these files.
has() {
	local file
	for file in "${@:2}"; do
		grep -qxF "$1: $file" "$dir/files" || wrong "$1 has no $file"
	done
}

lib=$(rpm --eval '%{_libdir}')
bin=$(rpm --eval '%{_bindir}')
has weft-libs "$lib/libweft.so.0"
has weft-devel "$lib/libweft.so" "$lib/pkgconfig/weft.pc" /usr/include/weft.h \
	/usr/include/weft/lane.h
has weft-mpi "$lib/libfabric/libweft-fi.so" "$bin/weft-mpirun"
has weft-wireshark "$lib/wireshark/plugins/weft.lua"
grep -q "^weft-wireshark: $lib/wireshark/plugins/.*/epan/weft.so$" "$dir/files" ||
	wrong "weft-wireshark has no plugin"
for name in perf cat info dump wire bind; do has weft "$bin/weft-$name"; done
has weft-switch "$bin/weft-switch" /usr/lib/systemd/system/weft-switch.service \
	/etc/sysconfig/weft-switch
grep -q "^EnvironmentFile=-/etc/sysconfig/weft-switch$" \
	"$dir/root/usr/lib/systemd/system/weft-switch.service" ||
	wrong "the unit reads another file than the package has"
for name in bind cat dump info mpirun perf switch wire; do
	[ -f "$dir/root/usr/share/bash-completion/completions/weft-$name" ] ||
		wrong "weft-$name has no completion"
	# Not each system compresses pages.
	compgen -G "$dir/root/usr/share/man/man1/weft-$name.1*" >/dev/null ||
		wrong "weft-$name has no page"
done

# ---- they work -------------------------------------------------------------------------------

rpm -qp --qf '%{PREIN}\n' "$dir/RPMS"/*/weft-switch-[0-9]*.rpm | sh -n || wrong "a scriptlet"
for name in info perf cat dump wire switch; do
	out=$(LD_LIBRARY_PATH="$dir/root$lib" "$dir/root$bin/weft-$name" --version 2>&1) ||
		wrong "weft-$name does not start"
	[[ $out == *"$version"* ]] || wrong "weft-$name --version prints '$out'"
done
python3 "$dir/root$bin/weft-bind" --help >/dev/null || wrong "weft-bind does not start"
for file in "$dir/root$bin"/weft-* "$dir/root$lib/libfabric/libweft-fi.so"; do
	! readelf -d "$file" 2>/dev/null | grep -qE 'R(UN)?PATH' || wrong "$file has a run path"
done
if command -v fi_info >/dev/null; then
	LD_LIBRARY_PATH="$dir/root$lib" FI_PROVIDER_PATH="$dir/root$lib/libfabric" \
		fi_info -p weft >/dev/null || wrong "fi_info does not list the provider"
fi
[ $wrong = 0 ] && echo "${#packages[@]} packages of $(wc -l <"$dir/files") files are right"
