#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The Debian packages (debian/) in new systems that have nothing else.
#
#	devtools/check-clean.sh SUITE DIR [TEST...]
#
#	SUITE	bookworm (Debian 12), trixie (13), ...
#	DIR	where packages and logs are put; packages that are there are not built again
#	TEST	of debian/tests/control; all by default
#
# The committed tree is built in a new system (devtools/fresh.sh) with only its Build-Depends, and
# lintian of that system finds no error. Then each test has another new system, in which autopkgtest
# installs only the packages that the test declares, and runs it.
#
# The exit code is 0 when all is right, 1 when not, 77 where no system can be made
# or the mirror is not reachable.
# shellcheck disable=SC2154 # setup.sh sets weft_root
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

# build_packages DIR: in the new system; fresh.sh calls this script again for it.
build_packages() {
	local root=$FRESH_ROOT in=(chroot "$FRESH_ROOT" sh -euc)
	# shellcheck disable=SC2016 # the new system's shell expands it
	"${in[@]}" 'cd /root/weft; export DEBIAN_FRONTEND=noninteractive
		apt-get -q update
		apt-get -q -y --no-install-recommends build-dep ./
		DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage -b -us -uc
		apt-get -q -y --no-install-recommends install lintian' \
		</dev/null >"$1/build.log" 2>&1 ||
		{ tail -n 30 "$1/build.log"; weft_die "the packages were not built"; }
	"${in[@]}" 'cd /root; lintian --allow-root --fail-on error weft_*.changes' </dev/null ||
		weft_die "lintian found errors in the packages"
	rm -f "$root"/root/*-dbgsym_*.deb
	cp "$root"/root/*.deb "$1/"
}

if [ "${1:-}" = --build ]; then
	build_packages "$2"
	exit 0
fi
[ $# -ge 2 ] || weft_die "a suite of Debian and a folder are needed"
suite=$1
dir=$2
shift 2
tests=("$@")
[ $# -gt 0 ] ||
	mapfile -t tests < <(sed -n 's/^Tests: *//p' "$weft_root/debian/tests/control")
for test in "${tests[@]}"; do
	[ -f "$weft_root/debian/tests/${test:-.}" ] || weft_die "debian/tests has no test '$test'"
done
[ "$(id -u)" = 0 ] || { echo "only root can make another system"; exit 77; }
[ -n "$(weft_mirror)" ] || { echo "apt of this machine has no mirror"; exit 77; }
weft_install clean
command -v autopkgtest >/dev/null || { echo "there is no autopkgtest"; exit 77; }
"$weft_root/devtools/fresh.sh" "$suite" apt-get -q -o APT::Update::Error-Mode=any update ||
	{ echo "no new $suite can be made, or it has no network"; exit 77; }
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
fresh=("$weft_root/devtools/fresh.sh" --outside "$suite")

compgen -G "$dir/*.deb" >/dev/null || "${fresh[@]}" devtools/check-clean.sh --build "$dir"
wrong=0
for test in "${tests[@]}"; do
	rm -rf "${dir:?}/test-$test"
	rc=0
	# The root is known only to the command.
	# shellcheck disable=SC2016
	"${fresh[@]}" sh -c 'test=$1 out=$2; shift 2
		exec autopkgtest -q --apt-upgrade --no-built-binaries --test-name="$test" \
			--output-dir="$out" "$@" ./ -- chroot "$FRESH_ROOT"' sh \
		"$test" "$dir/test-$test" "$dir"/*.deb >"$dir/test-$test.log" 2>&1 || rc=$?
	if [ $rc = 0 ]; then
		echo "$suite: $test passed"
	else
		tail -n 30 "$dir/test-$test.log"
		echo "wrong: $suite: $test: exit code $rc of autopkgtest, see $dir/test-$test.log"
		wrong=1
	fi
done
[ $wrong = 0 ] && echo "${#tests[@]} tests of the packages pass in a new $suite"
