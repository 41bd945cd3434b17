#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Boots a small guest that has what this machine may lack: RoCE devices, or PCI NICs. In it the
# test programs of this build run, over the host's own root file system (read-only, with an
# overlay in the guest's memory). Nothing of the host is changed.
#
#	test/guest/run.sh BUILDDIR [KIND [CASE...]]
#
# KIND is a file of test/guest/kinds: roce (the default), nic or iommu; CASE a file of the folder
# of cases that the kind names, without .sh (default: all). Prints TAP, one line per behaviour.
# Logs stay in BUILDDIR/guest/KIND/out: console.log, and CASE.log of each case. Exit code 77: QEMU
# can't run here.
#
# WEFT_GUEST_KERNEL=DIR names an unpacked linux-image package (DIR/boot, and modules in DIR/lib or
# DIR/usr/lib) to use instead of fetching Debian's. WEFT_GUEST_TIMEOUT and
# WEFT_GUEST_CASE_TIMEOUT: seconds for all, and for each. WEFT_GUEST_ROUNDS: of the case figures.
# WEFT_GUEST_SHELL=1 gives a shell on the console instead of running cases.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
source_root=$(cd "$here/../.." && pwd)
[ $# -ge 1 ] || { sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }
build=$(cd "$1" && pwd)
kind=${2:-roce}
shift $(($# > 1 ? 2 : 1))
[ -f "$here/kinds/$kind.sh" ] || {
	echo "there is no kind of guest '$kind' in $here/kinds"
	exit 2
}
kernels=$build/guest
work=$kernels/$kind
out=$work/out
# Half of the first is enough on two quiet cores; a machine with other work needs several times as
# much.
time_limit=${WEFT_GUEST_TIMEOUT:-600}
case_limit=${WEFT_GUEST_CASE_TIMEOUT:-240}
boot_limit=$((time_limit / 6))

skip() { printf '# %s\n' "$*"; exit 77; }
fail() { printf 'not ok 1 - the guest boots\n# %s\n1..1\n' "$*"; exit 1; }

# What each kind needs for its root, in the order in which they must be loaded.
modules_root=(netfs fscache 9pnet 9p virtio virtio_ring 9pnet_virtio virtio_pci_modern_dev \
	virtio_pci_legacy_dev virtio_pci overlay)

can_run() {
	local kb
	[ "$(uname -m)" = x86_64 ] || skip "the guest is for x86_64, this machine is $(uname -m)"
	command -v qemu-system-x86_64 >/dev/null || skip "qemu-system-x86_64 is not installed"
	for tool in cpio /bin/busybox; do
		command -v $tool >/dev/null ||
			skip "$tool is not installed (Debian: cpio, busybox-static)"
	done
	kb=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
	[ "$kb" -ge 2600000 ] ||
		skip "the guest wants 2 GiB of memory, $((kb / 1024)) MiB are available"
}

# find_kernel: sets kernel (image) and modules_dir. Debian's generic image is fetched and unpacked
# once per build folder; nothing is installed. The cloud flavour has neither rdma_rxe nor uio.
# From Debian 13 on modules are in usr/lib.
find_kernel() {
	local dir=${WEFT_GUEST_KERNEL:-$kernels/kernel} version
	[ -n "${WEFT_GUEST_KERNEL:-}" ] || [ -d "$dir" ] || fetch_kernel "$dir"
	kernel=$(find "$dir/boot" -name 'vmlinuz-*' 2>/dev/null | sort -V | tail -n 1)
	[ -n "$kernel" ] || fail "there is no boot/vmlinuz-* in $dir"
	version=${kernel##*/vmlinuz-}
	for modules_dir in "$dir/lib/modules/$version" "$dir/usr/lib/modules/$version"; do
		[ ! -d "$modules_dir" ] || break
	done
	[ -d "$modules_dir" ] ||
		fail "there is neither lib/modules/$version nor usr/lib/modules/$version in $dir"
	[ -n "$(find "$modules_dir" -name "${needs//_/[-_]}.ko*")" ] ||
		fail "the kernel in $dir has no $needs"
	plain_kernel "$kernel" "$version"
}

# plain_kernel IMAGE VERSION: sets kernel to what IMAGE holds, unpacked, for an emulated processor
# takes seconds to do that. It boots where it was made for PVH; else, or when it can't be unpacked,
# IMAGE stays.
plain_kernel() {
	local plain=$kernels/vmlinux-$2 tool magic at
	kernel=$1
	grep -qx CONFIG_PVH=y "${1%/*}/config-$2" 2>/dev/null || return 0
	if [ ! "$plain" -nt "$1" ]; then
		for tool in xz:'\xfd7zXZ\x00' zstd:'\x28\xb5\x2f\xfd'; do
			magic=${tool#*:}
			at=$(LC_ALL=C grep -aboP -m 1 "$magic" "$1" | head -n 1 | cut -d: -f1) ||
				true
			{ [ -n "$at" ] && command -v "${tool%%:*}" >/dev/null; } || continue
			# What follows the data makes the tool complain.
			tail -c +$((at + 1)) "$1" | "${tool%%:*}" -dc >"$plain.$$" 2>/dev/null ||
				true
			# Not one that is cut short: of that readelf complains.
			[ "$(head -c 4 "$plain.$$" | tr -d '\0')" != $'\x7fELF' ] ||
				[ -n "$(readelf -hSW "$plain.$$" 2>&1 >/dev/null)" ] ||
					mv "$plain.$$" "$plain"
			rm -f "$plain.$$"
			[ ! "$plain" -nt "$1" ] || break
		done
	fi
	[ ! "$plain" -nt "$1" ] || kernel=$plain
}

fetch_kernel() {
	local dir=$1 package log=$kernels/fetch.log
	mkdir -p "$kernels"
	rm -rf "$kernels/deb" "$kernels/kernel.new"
	mkdir "$kernels/deb"
	command -v apt-get >/dev/null ||
		fail "no apt-get to fetch Debian's kernel with; unpack a linux-image and set" \
			"WEFT_GUEST_KERNEL"
	package=$(kernel_package)
	if [ -z "$package" ] || ! (cd "$kernels/deb" && apt-get -q download "$package") >"$log" \
		2>&1; then
		# Package lists may be absent or older than the mirror.
		[ "$(id -u)" != 0 ] || apt-get -q update >>"$log" 2>&1 || true
		package=$(kernel_package)
		[ -n "$package" ] || fail \
			"apt knows no linux-image-amd64; unpack one and set WEFT_GUEST_KERNEL" \
			"to its folder"
		(cd "$kernels/deb" && apt-get -q download "$package") >>"$log" 2>&1 ||
			fail "apt-get could not download $package: $(tail -n 1 "$log")"
	fi
	dpkg -x "$kernels"/deb/*.deb "$kernels/kernel.new" || fail "dpkg could not unpack $package"
	rm -rf "$kernels/deb"
	mv "$kernels/kernel.new" "$dir"
}

# The versioned image that linux-image-amd64 stands for.
kernel_package() {
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -n 1
}

# in_memory: what the cases start again and again, with the libraries and symbolic links on the way.
# Each time one of them is opened the guest would ask this host several times.
in_memory() {
	local file name
	{
		for name in bash sh sleep timeout grep sed awk cat cut tr tail head sort wc tee ls \
			cp rm mkdir mktemp chmod chown \
			basename dirname dmesg pgrep ip tc ss rdma sysctl setpriv \
			ibv_rc_pingpong; do
			type -P $name || true
		done
		for file in "$build"/app/weft-{perf,info,cat} \
			"$build"/test/guest/{nic_pair,nic_queues,roce_lane,roce_churn}; do
			[ ! -x "$file" ] || echo "$file"
		done
		find /usr/lib/*/libibverbs/ /etc/libibverbs.d -type f -name '*rxe*' 2>/dev/null ||
			true
	} >"$work/programs"
	{
		printf '%s\n' /bin /sbin /lib /lib64 /etc/ld.so.cache
		cat "$work/programs"
		# What is no dynamic program makes ldd complain.
		(xargs -d '\n' ldd <"$work/programs" 2>/dev/null || true) |
			sed -n 's/^.*[ \t]\(\/[^ ]*\) (0x[0-9a-f]*)$/\1/p'
	} | sort -u | while read -r file; do
		# The links of a path, and what it comes to.
		while [ -L "$file" ]; do
			echo "$file"
			name=$(readlink "$file")
			case $name in
			/*) file=$name ;;
			*) file=${file%/*}/$name ;;
			esac
		done
		[ ! -f "$file" ] || echo "$file"
	done | sort -u
}

make_initramfs() {
	local root=$work/initramfs module file
	rm -rf "$root"
	mkdir -p "$root"/{bin,proc,sys,dev,host,lower,upper,new,modules}
	cp /bin/busybox "$root/bin/"
	cp "$here/init" "$root/init"
	chmod 755 "$root/init"
	in_memory >"$root/in_memory"
	# DPDK loads every driver of its folder, two hundred, of which a few are needed here; that
	# was two thirds of what a program with DPDK took under emulation.
	mkdir "$root/pmds"
	for module in bus_vdev bus_pci mempool_ring mempool_stack $pmds; do
		cp -a /usr/lib/*/dpdk/pmds-*/"librte_$module".so* "$root/pmds/" || true
	done
	: >"$root/modules/list"
	for module in "${modules[@]}"; do
		file=$(find "$modules_dir" -name "${module//_/[-_]}.ko*" | head -n 1)
		[ -n "$file" ] || continue # built into this kernel
		case $file in
		*.xz) xz -dc "$file" >"$root/modules/$module.ko" ;;
		*.zst) zstd -qdc "$file" >"$root/modules/$module.ko" ;;
		*) cp "$file" "$root/modules/$module.ko" ;;
		esac
		echo "$module.ko" >>"$root/modules/list"
	done
	# What init hands to inside.sh; it lies in the host's root, which the guest sees.
	{
		printf 'weft_source=%q\nweft_build=%q\nweft_cases=%q\n' "$source_root" "$build" "$*"
		printf 'weft_cases_dir=%q\nweft_nics=%q\n' "$here/$cases_dir" "$nics"
		printf 'weft_shell=%q\nweft_case_limit=%q\nweft_rounds=%q\n' \
			"${WEFT_GUEST_SHELL:-}" "$case_limit" "${WEFT_GUEST_ROUNDS:-3}"
	} >"$root/settings"
	(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >"$work/initramfs.gz"
}

boot() {
	local console=(-display none -serial "file:$out/console.log") append
	local shared=security_model=none,multidevs=remap
	[ -z "${WEFT_GUEST_SHELL:-}" ] || { console=(-nographic); time_limit=36000; }
	# Not KVM: where /dev/kvm opens inside a virtual machine a guest may nevertheless never
	# start under it. Without ERMS and FSRM the kernel and libc do not copy by "rep movsb",
	# which is emulated byte by byte. The kernel's tests of its ciphers take seconds, and have
	# hung. Copying and clearing by "rep movsq" is emulated word by word as well (clearcpuid:
	# REP_GOOD); clearing all memory that is allocated costs more than it finds here.
	append="console=ttyS0 quiet panic=1 no_timer_check mitigations=off tsc=reliable"
	append+=" cryptomgr.notests clearcpuid=112 init_on_alloc=0 selinux=0 apparmor=0"
	append+=" rdinit=/init $cmdline"
	exec timeout -k 5 "$time_limit" "${around[@]}" qemu-system-x86_64 -accel tcg,thread=multi \
		-cpu max,erms=off,fsrm=off -smp 2 -m 2048 -no-reboot -nodefaults \
		"${console[@]}" "${machine[@]}" -kernel "$kernel" -initrd "$work/initramfs.gz" \
		-append "$append" \
		-virtfs "local,path=/,mount_tag=host,readonly=on,$shared" \
		-virtfs "local,path=$out,mount_tag=out,$shared" \
		>"$out/qemu.log" 2>&1
}

# run_guest: to its end. Two emulated processors have been seen to wait for each other for ever
# before the first program ran, and a late timer interrupt to make the kernel panic, which says
# nothing about Weft: a guest that has not come to its cases after a while (5 s are usual), or has
# panicked before, is begun anew, twice at most.
run_guest() {
	local try end rc
	if [ -n "${WEFT_GUEST_SHELL:-}" ]; then
		(boot) || true
		return
	fi
	for try in 1 2 3; do
		rm -rf "$out"
		mkdir -p "$out"
		rm -f "$sockets"/*
		(boot) &
		guest_pid=$!
		end=$((SECONDS + boot_limit))
		while [ ! -f "$out/booted" ] && [ $SECONDS -lt $end ] &&
			kill -0 $guest_pid 2>/dev/null; do
			sleep 0.2
		done
		# report prints another end of QEMU's.
		if [ -f "$out/booted" ] || [ "$try" = 3 ] ||
			{ ! kill -0 $guest_pid 2>/dev/null &&
				! grep -qa 'Kernel panic' "$out/console.log" 2>/dev/null; }; then
			rc=0
			wait $guest_pid || rc=$?
			guest_pid=
			# QEMU itself has crashed, in 1 of dozens of runs.
			[ $rc = 139 ] && [ "$try" != 3 ] || return 0
			printf '# QEMU ended by a segmentation fault (try %s)\n' "$try"
			continue
		fi
		printf '# the guest had not come to its cases (try %s, limit %s s): %s\n' "$try" \
			"$boot_limit" \
			"$(tail -n 1 "$out/console.log" 2>/dev/null | tr -d '\0\r' | cut -c1-200)"
		kill $guest_pid 2>/dev/null || true
		wait $guest_pid || true
		guest_pid=
	done
}

# report CASES...: the TAP of all cases, numbered through; a case that did not end counts as failed.
report() {
	local name
	{
		for name; do
			if [ -f "$out/$name.tap" ]; then
				sed "s/^\(\(not \)\{0,1\}ok\) [0-9]* - /\1 - $name: /" \
					"$out/$name.tap"
			fi
			if [ "$(cat "$out/$name.rc" 2>/dev/null)" != 0 ]; then
				if ! grep -q '^not ok' "$out/$name.tap" 2>/dev/null; then
					printf 'not ok - %s: it ends well\n' "$name"
				fi
				printf '# exit code: %s\n' \
					"$(cat "$out/$name.rc" 2>/dev/null ||
					echo 'none, the guest was gone before')"
				(tail -n 12 "$out/$name.log" 2>/dev/null || true) | cut -c1-300 |
					tr -d '\0\r' | sed 's/^/# /'
			fi
		done
		if [ ! -f "$out/finished" ]; then
			printf 'not ok - the guest comes to its end within %s s\n' "$time_limit"
			(cat "$out/console.log" "$out/qemu.log" 2>/dev/null || true) |
				tr -d '\0\r' | tail -n 15 | cut -c1-300 | sed 's/^/# /'
		fi
	} | awk '/^(not )?ok - / { n++; sub(/ok - /, "ok " n " - ") } { print; fflush() }
		/^not ok/ { bad++ } END { print "1.." n + 0; exit bad > 0 || n == 0 }'
}

can_run
mkdir -p "$work"
# Their paths are short, wherever the build lies.
sockets=$(mktemp -d "${TMPDIR:-/tmp}/weft-guest.XXXXXX")
guest_pid=
trap '[ -z "$guest_pid" ] || kill "$guest_pid" 2>/dev/null; rm -rf "$sockets"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
# What QEMU runs in.
around=()
# shellcheck source=test/guest/kinds/nic.sh
. "$here/kinds/$kind.sh"
# Of kinds that begin at the same time one fetches the kernel.
exec 8>"$kernels/lock"
flock 8
find_kernel
exec 8>&-
cases=("$@")
if [ ${#cases[@]} -eq 0 ]; then
	# Those with a number; the others are run by name only.
	for file in "$here/$cases_dir"/[0-9]*.sh; do
		file=${file##*/}
		cases+=("${file%.sh}")
	done
fi
rm -rf "$out"
mkdir -p "$out"
make_initramfs "${cases[*]}"
begin=$SECONDS
run_guest
printf '# the guest ran for %d s; its logs are in %s\n' $((SECONDS - begin)) "$out"
report "${cases[@]}"
