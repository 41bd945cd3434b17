#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs in the guest, chrooted into the host's root: cases one after the other, each with a time
# limit, each with results of its own in /run/weft-guest (a folder of the host): NAME.tap, NAME.log,
# NAME.rc.
. /run/settings
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
	TMPDIR=/tmp
out=/run/weft-guest
export weft_rounds weft_nics
ulimit -l unlimited
ip link set lo up
# The kernel's RoCE stack takes its packets from what is free at once.
sysctl -qw vm.min_free_kbytes=65536
if [ "$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)" -gt 0 ]; then
	mkdir -p /dev/hugepages
	mount -t hugetlbfs hugetlbfs /dev/hugepages
fi

if [ "${1:-}" = shell ]; then
	export weft_source weft_build
	cd "$weft_source/test/guest" || exit
	exec /bin/bash -i
fi

# The drivers that are needed here, instead of all.
for folder in /usr/lib/*/dpdk/pmds-*; do
	[ ! -d "$folder" ] || mount --bind /run/pmds "$folder"
done

echo 1 >"$out/booted"
for name in $weft_cases; do
	begin=$SECONDS
	dmesg -C
	timeout -k 5 "${weft_case_limit:-240}" bash "$weft_cases_dir/$name.sh" "$weft_build" \
		>"/run/$name.tap" 2>"/run/$name.log" </dev/null
	rc=$?
	dmesg | grep -E 'BUG|WARNING|Oops|soft lockup|blocked for' >>"/run/$name.log"
	printf '# case %s: %d s\n' "$name" $((SECONDS - begin)) >>"/run/$name.tap"
	cp "/run/$name.tap" "/run/$name.log" "$out/"
	echo $rc >"$out/$name.rc"
	# The next case begins with nothing of this one.
	for pid in $(ip netns list 2>/dev/null | cut -d' ' -f1); do ip netns del "$pid"; done
	for link in $(rdma link show 2>/dev/null | sed -n 's/^link \([^/]*\).*/\1/p'); do rdma \
		link del "$link"; done
	for link in $(ip -o link show type veth | sed -n 's/^[0-9]*: \([^@:]*\).*/\1/p'); do ip \
		link del "$link" 2>/dev/null; done
done
echo 1 >"$out/finished"
