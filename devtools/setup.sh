#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Makes a Debian 12 or 13 ready for Weft: packages, hugepages, the build. Other scripts source it;
# called as a program it installs the groups named:
#
#	devtools/setup.sh [--hugepages] [GROUP...]
#
#	GROUP		build test mpi mpitest mpich cluster debian rpm demo bench fuzz fresh clean
#			arm64 (default: build)
#
# As root it installs only the missing packages; as another user it only lists them.
# WEFT_NO_INSTALL=1 installs nothing. WEFT_HUGEPAGES=N requests N pages of 2 MiB (default 512), 0
# none. WEFT_WERROR=1 makes the compiler's warnings errors, for continuous integration and for
# developers of Weft: another compiler or DPDK may warn where there is no fault.

weft_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # read by the scripts that source this one
weft_build=${WEFT_BUILD:-$weft_root/build}

# Weft's own programs would report it as an unknown variable of the library.
weft_werror=${WEFT_WERROR:-}
unset WEFT_WERROR

weft_say() { printf '== %s\n' "$*"; }
weft_die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# weft_packages GROUP...: the packages of these groups, one per line.
weft_packages() {
	local group
	for group; do
		case $group in
		build) printf '%s\n' gcc libc6-dev binutils dpkg-dev meson ninja-build pkgconf \
			python3 git libdpdk-dev \
			libpcap-dev libibverbs-dev ibverbs-providers libmicrohttpd-dev \
			libssl-dev libipsec-mb-dev systemtap-sdt-dev ;;
		test) printf '%s\n' libcmocka-dev iproute2 procps tshark valgrind doxygen \
			abigail-tools clang-format make dpdk-dev chromium-headless-shell \
			man-db gnuplot-nox qemu-system-x86 busybox-static cpio libibverbs-dev \
			ibverbs-utils ibverbs-providers rdma-core \
			libwireshark-dev libglib2.0-dev perftest libjemalloc2 ;;
		# libfabric's provider for MPI, and the programs of its tests.
		mpi) printf '%s\n' libfabric-dev libfabric-bin openmpi-bin libopenmpi-dev hpcc ;;
		# What test/provider needs besides, of the group test.
		mpitest) printf '%s\n' libcmocka-dev iproute2 procps ;;
		# To build MPICH over libfabric, which the linker wants with all its adapters.
		mpich) printf '%s\n' build-essential libfabric-dev libpsm2-dev \
			libpsm-infinipath1-dev librdmacm-dev ;;
		# A Slurm cluster of namespaces. A system with systemd also starts their services.
		cluster) printf '%s\n' slurmctld slurmd slurm-client munge iproute2 util-linux \
			hpcc netpipe-openmpi ;;
		# To build and check the Debian packages, besides the groups build and mpi.
		debian) printf '%s\n' debhelper lintian systemd libwireshark-dev \
			libglib2.0-dev ;;
		# The same, for the RPM packages.
		rpm) printf '%s\n' rpm rpm2cpio rpmlint cpio ;;
		demo) printf '%s\n' tar coreutils ;;
		bench) printf '%s\n' ucx-utils iperf3 libfabric-bin iproute2 gnuplot-nox dpdk-dev ;;
		fuzz) printf '%s\n' clang libclang-rt-dev ;;
		fresh) printf '%s\n' debootstrap debian-archive-keyring git mount util-linux ;;
		# The tests of the Debian packages, in systems that fresh.sh makes.
		clean) printf '%s\n' autopkgtest ;;
		arm64) printf '%s\n' gcc-aarch64-linux-gnu libc6-dev:arm64 meson ninja-build \
			pkgconf python3 git qemu-user-static \
			libdpdk-dev:arm64 libpcap-dev:arm64 libibverbs-dev:arm64 \
			ibverbs-providers:arm64 libcmocka-dev:arm64 ;;
		*) weft_die \
			"no package group called '$group'; there are build, test, mpi," \
			"mpitest, mpich, cluster, debian, rpm, demo, bench, fuzz, fresh," \
			"clean and arm64" ;;
		esac
	done | sort -u
}

weft_missing() {
	local package state
	weft_packages "$@" | while read -r package; do
		state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || true
		[ "$state" = installed ] ||
			printf '%s\n' "$package"
	done
}

# weft_install GROUP...: installs the missing packages.
weft_install() {
	local missing log
	if [ -n "${WEFT_NO_INSTALL:-}" ]; then
		weft_say "packages: not installed (WEFT_NO_INSTALL)"
		return 0
	fi
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		weft_say "packages: this is no Debian; these are needed (Debian's names):" \
			"$(weft_packages "$@" | tr '\n' ' ')"
		return 0
	fi
	missing=$(weft_missing "$@" | tr '\n' ' ')
	if [ -z "$missing" ]; then
		weft_say "packages: all are installed"
		return 0
	fi
	if [ "$(id -u)" != 0 ]; then
		weft_die "these packages are missing and only root can install them: $missing"
	fi
	weft_say "packages: installing $missing"
	log=$(mktemp "${TMPDIR:-/tmp}/weft-apt.XXXXXX")
	# Package lists may be absent, or older than the mirror: fetch them when the first try
	# fails.
	# shellcheck disable=SC2086
	if ! weft_apt install $missing >"$log" 2>&1; then
		# shellcheck disable=SC2086
		if ! weft_apt update >>"$log" 2>&1 ||
			! weft_apt install $missing >>"$log" 2>&1; then
			tail -n 30 "$log" >&2
			weft_die "apt-get could not install the packages; its log is $log"
		fi
	fi
	rm -f "$log"
}

weft_apt() {
	local action=$1
	shift
	[ "$action" = install ] && set -- --no-install-recommends "$@"
	DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -q -y -o Dpkg::Use-Pty=0 \
		-o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$action" "$@" </dev/null
}

# weft_mirror: the mirror that this machine's apt uses for Debian itself; nothing where there is
# none. WEFT_FRESH_MIRROR names another one.
weft_mirror() {
	if [ -n "${WEFT_FRESH_MIRROR:-}" ]; then
		printf '%s\n' "$WEFT_FRESH_MIRROR"
		return
	fi
	# A path of .../debian/ is the archive; security updates and others' packages have other
	# paths.
	# shellcheck disable=SC2016
	apt-get indextargets --no-release-info --format '$(REPO_URI)' 'Created-By: Packages' \
		2>/dev/null |
		grep -m 1 '^[a-z]*://.*/debian/*$' || true
}

# weft_apt_of DIR KIND MIRROR SUITE ARGUMENT...: apt-get with a state of its own, in DIR. KIND is
# deb or deb-src. The system's packages and sources stay as they are.
weft_apt_of() {
	local dir=$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	printf '%s [signed-by=%s] %s %s main\n' "$2" "$keys" "$3" "$4" >"$dir/sources.list"
	: >"$dir/status"
	shift 4
	timeout 120 apt-get -q -o Dir::Etc::SourceList="$dir/sources.list" \
		-o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$dir/lists" \
		-o Dir::State::status="$dir/status" -o Dir::Cache="$dir" \
		-o APT::Sandbox::User=root \
		-o Acquire::Languages=none -o Acquire::Retries=1 -o APT::Update::Error-Mode=any \
		"$@" </dev/null
}

# weft_hugepages [PAGES]: reserves 2 MiB pages when they are available; sets weft_memory to the EAL
# arguments for memory and prints which. In both cases processes share nothing, and no files remain
# in the file system.
# shellcheck disable=SC2120,SC2034
weft_hugepages() {
	local want=${WEFT_HUGEPAGES:-${1:-512}} dir=/sys/kernel/mm/hugepages/hugepages-2048kB have \
		free why=
	weft_memory=(--in-memory)
	if [ "$want" = 0 ]; then
		why="not wanted (WEFT_HUGEPAGES=0)"
	elif [ ! -r $dir/nr_hugepages ]; then
		why="this kernel has no 2 MiB pages"
	else
		free=$(cat $dir/free_hugepages)
		if [ "$free" -lt "$want" ]; then
			have=$(cat $dir/nr_hugepages)
			# A kernel short of memory reserves fewer pages than requested, and returns
			# no error.
			echo $((have + want - free)) 2>/dev/null >$dir/nr_hugepages || true
			free=$(cat $dir/free_hugepages)
		fi
		if [ "$free" -lt "$want" ]; then
			why="only $free of $want pages of 2 MiB are available"
		elif ! weft_hugetlbfs; then
			why="hugetlbfs is not mounted and can't be mounted"
		fi
	fi
	if [ -z "$why" ]; then
		weft_say "hugepages: used ($free pages of 2 MiB are free)"
	else
		# EAL refuses --in-memory together with --no-huge.
		weft_memory=(--no-huge --no-shconf -m "${WEFT_NO_HUGE_MB:-512}")
		weft_say "hugepages: not used, EAL runs with --no-huge: $why"
	fi
}

weft_hugetlbfs() {
	grep -q ' hugetlbfs ' /proc/mounts && return 0
	mkdir -p /dev/hugepages 2>/dev/null &&
		mount -t hugetlbfs hugetlbfs /dev/hugepages 2>/dev/null
}

# weft_configure DIR [MESON OPTION...]: configures DIR unless it is configured.
weft_configure() {
	local dir=$1 log werror=false option options=()
	shift
	[ -z "$weft_werror" ] || werror=true
	if [ ! -f "$dir/build.ninja" ]; then
		log=$(mktemp "${TMPDIR:-/tmp}/weft-build.XXXXXX")
		# meson would treat an interrupted configuration as a complete one.
		rm -rf "$dir/meson-private" "$dir/meson-info"
		if ! meson setup "$dir" "$weft_root" -Dwerror=$werror "$@" >"$log" 2>&1; then
			tail -n 30 "$log" >&2
			rm -f "$log"
			printf '%s: meson could not configure %s\n' "${0##*/}" "$dir" >&2
			return 1
		fi
		rm -f "$log"
	elif [ $werror = true ]; then
		# Files for a cross compiler can be named only once; other options may change.
		for option; do
			[[ $option != -D* ]] || options+=("$option")
		done
		meson configure "$dir" -Dwerror=true "${options[@]}" >/dev/null
	fi
}

# weft_ninja DIR [TARGET...]: builds; output only when it fails, or warnings.
weft_ninja() {
	local dir=$1 log
	log=$(mktemp "${TMPDIR:-/tmp}/weft-build.XXXXXX")
	if ! ninja -C "$@" >"$log" 2>&1; then
		grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 60 >&2
		rm -f "$log"
		printf '%s: ninja could not build %s\n' "${0##*/}" "$dir" >&2
		return 1
	fi
	grep 'warning: ' "$log" | sort -u >&2 || true
	rm -f "$log"
}

weft_compile() { weft_configure "$@" && weft_ninja "$1"; }

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	set -euo pipefail
	huge=
	groups=()
	for arg; do
		case $arg in
		--hugepages) huge=1 ;;
		-h | --help) sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
		-*) weft_die "no option '$arg'; see --help" ;;
		*) groups+=("$arg") ;;
		esac
	done
	[ ${#groups[@]} -gt 0 ] || groups=(build)
	weft_install "${groups[@]}"
	[ -z "$huge" ] || weft_hugepages
fi
