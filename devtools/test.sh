#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs the packages that the tests need, builds, runs the tests of a set, and prints
# "N passed, N failed, N skipped" at the end.
#
#	devtools/test.sh [--quick | --nightly | --all] [--list] [-k PATTERN]
#			 [--no-install] [--clean]
#
#	               merge, which CI runs: presubmit, processes, checks, sanitizers, a short
#	               guest; at most 20 minutes on two idle cores
#	--quick        presubmit: unit and sim of the normal build; at most 150 s
#	--nightly      what takes too long for merge: whole guests, valgrind, ThreadSanitizer, slow
#	               tests; 40 minutes
#	--all          merge and nightly
#	--list         prints the tests of the build after their set, and ends
#	-k PATTERN     only tests and checks whose name matches this extended regular expression
#	--no-install   install no packages
#	--clean        remove the builds first
#
# The exit code is 0 when no test failed and at least one passed.
#
# After the build "processes" (proc) runs alone, since two polling ends take many times as long
# where other processes use the cores. Then "guests", one after the other, and "logic" (unit, sim,
# and the tests of proc that hardly poll) run in parallel. In all of this time "tools" and "threads"
# use the processor time that the others leave; their tests wait until proc has ended. The output of
# a step is printed in one piece at its end. An interrupted or killed run ends all processes that it
# started. A run of merge ends after 85 minutes at most; tests that have not ended by then are
# failed tests.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

set_=merge
list=
pattern=
clean=
arguments=("$@")
while [ $# -gt 0 ]; do
	case $1 in
	--quick) set_=presubmit ;;
	--nightly | --all) set_=${1#--} ;;
	--list) list=1 ;;
	--no-install) WEFT_NO_INSTALL=1 ;;
	--clean) clean=1 ;;
	-k)
		[ $# -gt 1 ] || weft_die "-k needs a pattern"
		pattern=$2
		shift
		;;
	-h | --help)
		sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	*) weft_die "no option '$1'; see --help" ;;
	esac
	shift
done

# CI ends a run after 5400 s.
case $set_ in
presubmit | merge) run_limit=5100 ;;
*) run_limit=14400 ;;
esac

# shellcheck source=devtools/suites.sh
. "$weft_root/devtools/suites.sh"

# ---- checks ---------------------------------------------------------------------------------

check_symbols() {
	"$weft_root/devtools/check-symbols.sh" "$weft_build/libweft.so" \
		"$weft_root/lib/libweft.abi" "$weft_root"/lib/{weft,weft_listen,weft_plan,lane}.h
}

check_layout() {
	"$weft_root/devtools/check-layout.sh" "$weft_build/libweft.so" \
		"$weft_root/lib/libweft.layout" "$weft_root"/lib/weft*.h
}

check_style() { "$weft_root/devtools/check-style.py"; }

check_words() { "$weft_root/devtools/check-words.py"; }

# Other versions of clang-format break lines elsewhere: that of Debian 12 decides.
check_format() {
	command -v clang-format >/dev/null || { echo "clang-format is not installed"; return 77; }
	if ! clang-format --version | grep -q 'version 14\.'; then
		echo "clang-format is not version 14, whose output the tree follows"
		return 77
	fi
	(cd "$weft_root" && git ls-files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror)
}

check_layers() { "$weft_root/devtools/check-layers.py" --build "$weft_build"; }

check_unused() { "$weft_root/devtools/check-unused.py" --build "$weft_build"; }

# Slower code must be detected before it is merged, on any machine: by counts, not by time.
check_instructions() { "$weft_root/devtools/check-instructions.py" "$weft_build"; }

check_headers() { "$weft_root/devtools/check-headers.py" --build "$weft_build"; }

check_behaviours() { python3 "$weft_root/devtools/check-behaviours.py"; }

check_performance() { python3 "$weft_root/devtools/bench_report.py" --check; }

check_libfabric() { "$weft_root/devtools/check-libfabric.sh" "$weft_build/libfabric"; }

check_doxygen() {
	command -v doxygen >/dev/null || { echo "doxygen is not installed"; return 77; }
	ninja -C "$weft_build" doc/api.stamp
}

check_man() {
	local page out pages=0
	command -v man >/dev/null || { echo "man is not installed"; return 77; }
	for page in "$weft_root"/doc/man/*.[1-8] "$weft_build"/doc/*.[17]; do
		[ -e "$page" ] || continue
		pages=$((pages + 1))
		out=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 \
			-Z "$page" 2>&1 >/dev/null)
		[ -z "$out" ] || { printf '%s: %s\n' "$page" "$out"; return 1; }
	done
	printf '%d pages\n' $pages
	[ $pages -gt 0 ]
}

check_install() {
	local prefix=$work/prefix pc name other
	rm -rf "$prefix"
	meson introspect "$weft_build" --buildoptions |
		grep -q '"name": "prefix", "value": "/usr/local"' ||
		meson configure "$weft_build" -Dprefix=/usr/local >/dev/null
	DESTDIR=$prefix meson install -C "$weft_build" --no-rebuild --quiet || return 1
	pc=$(find "$prefix" -name weft.pc)
	[ -n "$pc" ] || { echo "weft.pc is not installed"; return 1; }
	# The pages name files of share/doc/weft.
	for name in $(grep -ohE '[a-z-]+\.md' "$prefix"/usr/local/share/man/man*/weft* |
		sort -u); do
		[ -f "$prefix/usr/local/share/doc/weft/$name" ] || {
			echo "a page names $name, which is not installed"
			return 1
		}
	done
	for name in $(cd "$prefix/usr/local/include" && find . -name '*.h' -printf '%P\n'); do
		echo "#include <$name>" |
			cc -std=c11 -Wall -Wextra -Werror -fsyntax-only \
				-I "$prefix/usr/local/include" -xc - ||
			{ echo "a program cannot include <$name> alone"; return 1; }
	done
	# The pages and weft.h name other files by their paths in the sources, and must state this.
	for name in "$prefix"/usr/local/share/doc/weft/*.md \
		$(find "$prefix/usr/local/include" -name '*.h'); do
		! grep -qE '(^|[^a-z])(lib|doc|test|devtools|drivers|app|examples)/[a-z]' "$name" ||
			grep -q 'are those of the sources' "$name" ||
			{
				echo "${name##*/} names paths without the sentence that they" \
					"are those of the sources"
				return 1
			}
		for other in $(sed -E 's,\]\([^)]*\)|[a-z_.-]+/[A-Za-z0-9_/.-]*,,g' "$name" |
			grep -ohE '[A-Za-z_-]+\.md' | sort -u); do
			[ -f "$prefix/usr/local/share/doc/weft/$other" ] || {
				echo "${name##*/} names $other, which is not installed"
				return 1
			}
		done
	done
	[ -f "$prefix/usr/local/share/doc/weft/profiles/ena-4.ini" ] || {
		echo "no profile is installed"
		return 1
	}
	[ -f "$prefix/usr/local/include/weft.h" ] || { echo "weft.h is not installed"; return 1; }
	[ -n "$(find "$prefix" -name 'libweft.so.0')" ] || {
		echo "libweft.so.0 is not installed"
		return 1
	}
	# Without LD_LIBRARY_PATH and ldconfig: the programs find their library by their run path.
	env -u LD_LIBRARY_PATH "$prefix/usr/local/bin/weft-info" --version || return 1
	if [ -n "$(find "$prefix" -name '*.a')" ]; then
		echo "static archives are installed"
		return 1
	fi
}

# An example as a user builds it: out of tree, from the installed files, by pkg-config.
check_example() { # NAME make|meson
	local dir=$work/example-$1-$2 pcdir libdir
	pcdir=$(dirname "$(find "$work/prefix" -name weft.pc)")
	libdir=$(dirname "$pcdir")
	rm -rf "$dir"
	cp -r "$weft_root/examples/$1" "$dir"
	export PKG_CONFIG_PATH=$pcdir PKG_CONFIG_SYSROOT_DIR=$work/prefix LD_LIBRARY_PATH=$libdir
	if [ "$2" = make ]; then
		make -C "$dir" || return 1
		timeout 60 "$dir/$1" || return 1
	else
		meson setup "$dir/b" "$dir" || return 1
		ninja -C "$dir/b" || return 1
		timeout 60 "$dir/b/$1" || return 1
	fi
}

# ---- the parts ------------------------------------------------------------------------------

# Each test may take three times its time alone.
times=3
san=$weft_build-asan
tsan=$weft_build-tsan

# The tests of a suite that are in this set.
case $set_ in
nightly) of_set=+nightly ;;
all) of_set= ;;
*) of_set=-nightly ;;
esac

# in_set SET...: does this run include one of these sets?
in_set() {
	local one
	[ "$set_" != all ] || return 0
	for one; do [ "$set_" != "$one" ] || return 0; done
	return 1
}

# run_suites LABEL BUILDDIR TIMES SUITE...: the tests of this set. Not every suite has a nightly
# one.
run_suites() {
	[ -z "$of_set" ] || set -- "$@" "$of_set"
	[ "$set_" != nightly ] || [ -n "$(count names "$2" "${@:4}")" ] || return 0
	suites "$@"
}

part_build() {
	step "build" build "build" "$weft_build" || return 0
	touch "$work/built"
	! in_set merge || step "API reference" check \
		"API reference without a warning" check_doxygen
}

part_processes() {
	step "proc" run_suites release-proc "$weft_build" $times proc -aside
}

part_logic() {
	step "unit" run_suites release "$weft_build" $times unit
	step "sim" run_suites release-sim "$weft_build" $times sim
	# Random calls: a third of the rounds, with new seeds in each run; all of them in nightly.
	! in_set merge nightly || TEST_ROUNDS=3 \
		step "proc, in parallel" run_suites release-aside "$weft_build" $times aside
	! in_set nightly || step "random calls over real lanes" suites release-random \
		"$weft_build" $times random
}

# The guests run one after the other: an emulated guest keeps a core busy, and a second one would
# leave no core to the other parts.
part_guests() {
	export WEFT_GUEST_TIMEOUT=${WEFT_GUEST_TIMEOUT:-1500}
	export WEFT_GUEST_CASE_TIMEOUT=${WEFT_GUEST_CASE_TIMEOUT:-600}
	step "guest with RoCE devices" run_suites release-guest "$weft_build" $times guest
	in_set nightly || return 0
	step "guest with NICs" run_suites release-guest-nic "$weft_build" $times guest-nic
	step "guest with NICs and an IOMMU" run_suites release-guest-iommu \
		"$weft_build" $times guest-iommu
}

checks() {
	local example
	check "exported symbols are those of the headers and of libweft.abi" check_symbols
	check "layout of public structs is that of libweft.layout" check_layout
	check "one dialect, 100 columns, and every file names its licence" check_style
	check "no more words to be replaced than devtools/words.limit" check_words
	check "every source file is formatted by .clang-format" check_format
	check "includes and calls run down the layers" check_layers
	check "what is external is used" check_unused
	check "every header compiles alone" check_headers
	check "no more instructions per message than devtools/instructions.limit" \
		check_instructions
	check "every behaviour has a test, as doc/behaviours.md lists them" check_behaviours
	check "doc/performance.md has the figures of doc/results" check_performance
	check "manual pages without a warning" check_man
	check "install" check_install
	for example in hello rma; do
		check "example $example by pkg-config and make" check_example $example make
		check "example $example by pkg-config and meson" check_example $example meson
	done
}

# Builds here contain only the programs that run. Random tests run a part of their rounds
# (TEST_ROUNDS): the release build has run them all, and the tools check the code.
part_tools() {
	stand_back
	times=$((2 * times)) # they get only the processor time that the others leave
	[ ! -f "$work/built" ] || ! in_set merge || step "checks" checks
	[ ! -f "$work/built" ] || ! in_set nightly || step "libfabric" check \
		"the provider compiles against libfabric 1.17 and 2.x" check_libfabric
	tools_sanitized
	[ ! -f "$work/built" ] || ! in_set nightly || tools_valgrind
}

part_threads() {
	stand_back
	times=$((2 * times))
	export TEST_ROUNDS=7
	tools_threads
}

tools_sanitized() {
	local programs=()
	! in_set merge || programs+=(unit random fuzz)
	export TEST_ROUNDS=7
	case $set_ in
	merge) programs+=(sim -slow) ;;
	nightly) programs+=(sim +slow) ;;
	all) programs+=(sim) ;;
	esac
	# With the debug information that a trace needs for line numbers.
	step "build with AddressSanitizer and UBSan" build "sanitizer build" "$san" \
		-Db_sanitize=address,undefined -Doptimization=1 -Ddebug=false -Dc_args=-g1 \
		-Dwerror=false -Db_pch=true -- "${programs[@]}" || return 0
	await_processes
	if in_set merge; then
		step "unit, sanitized" suites asan "$san" $((4 * times)) unit
		step "sim, sanitized" suites asan-sim "$san" $((2 * times)) sim -slow
		step "random calls over real lanes, sanitized" suites asan-random "$san" \
			$((2 * times)) random
		step "fuzz, sanitized" suites asan-fuzz "$san" $((2 * times)) fuzz
	fi
	! in_set nightly || step "slow programs of sim, sanitized" suites asan-slow "$san" \
		$((6 * times)) sim +slow
}

# Without DPDK and rdma-core, and with ThreadSanitizer, which does not support DPDK's own threads;
# without randomised addresses, some of which it can't use. (It does not support fences either,
# which GCC warns about.) A child of a process with threads starts threads of its own.
tools_threads() {
	! in_set nightly || unset TEST_ROUNDS
	step "build without DPDK and rdma-core, with ThreadSanitizer" build \
		"build without DPDK and rdma-core, with ThreadSanitizer" "$tsan" \
		-Db_sanitize=thread -Db_lundef=false -Doptimization=1 -Ddebug=false \
		-Dc_args='-g1 -Wno-tsan' -Ddpdk=disabled -Droce=disabled \
		-- threads bare || return 0
	await_processes
	step "threads, and what sees that DPDK is not there" suites tsan "$tsan" \
		$((10 * times)) threads bare -- \
		env TSAN_OPTIONS=die_after_fork=0 setarch -R
}

# valgrind checks for uninitialised memory; the sanitizers have checked for all other errors, also
# leaks, with more rounds.
tools_valgrind() {
	export TEST_ROUNDS=41
	step "unit, valgrind" suites valgrind "$weft_build" $((20 * times)) unit -long -plain -- \
		valgrind -q --error-exitcode=99 --leak-check=no --read-inline-info=no
}

case ${TEST_PART:-} in
build | processes | logic | guests | tools | threads)
	"part_$TEST_PART"
	exit
	;;
esac

# ---- the run --------------------------------------------------------------------------------

if [ -n "$list" ]; then
	weft_configure "$weft_build"
	count sets "$weft_build"
	exit
fi

case $set_ in
presubmit) step packages weft_install build test ;;
*) step packages weft_install build test mpi cluster ;;
esac
weft_hugepages
[ "${weft_memory[0]}" = --in-memory ] || export WEFT_TEST_NO_HUGE=1
[ -z "$clean" ] || rm -rf "$weft_build" "$san" "$tsan"

part build "${arguments[@]}"
part_wait
if in_set merge nightly; then
	part tools "${arguments[@]}"
	part threads "${arguments[@]}"
fi
if [ -f "$work/built" ]; then
	if in_set merge nightly; then
		part processes "${arguments[@]}"
		part_wait processes
		touch "$work/no-processes"
		part guests "${arguments[@]}"
	fi
	part logic "${arguments[@]}"
fi
touch "$work/no-processes"
part_wait

printf '\n   all in all: %d s\n' $((SECONDS - begin))
count sum "$records"
