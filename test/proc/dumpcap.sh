#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# WEFT_DUMPCAP: dpdk-dumpcap attaches to a process that runs, and weft-dump reads what it writes.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

dump=$build/app/weft-dump
prefix=weft-dumpcap-$$
command -v dpdk-dumpcap >/dev/null || { echo "dpdk-dumpcap (dpdk-dev) is not installed"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "dpdk-dumpcap wants root"; exit 77; }
free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null)
huge=$(sed -n 's/^[^ ]* \([^ ]*\) hugetlbfs .*/\1/p' /proc/mounts | head -n 1)
if [ "${free:-0}" -lt 160 ] || [ -z "$huge" ]; then
	echo "${free:-0} hugepages of 2 MiB are free: secondary processes need 160"
	exit 77
fi

# EAL's files stay when a process ends, for the next one with the prefix.
tidy_up() {
	tidy
	rm -rf "${huge:?}/$prefix"* "/var/run/dpdk/$prefix"
}
trap tidy_up EXIT

# during MEMORY COMMAND...: while a stream of 4k messages is on. MEMORY goes to the server's EAL.
during() {
	local memory=$1 rc=0
	shift
	new_pair 1
	eal_server=("${eal_server[@]/--no-huge/$memory}")
	eal_server=("${eal_server[@]/#512/256}")
	eal_server+=(--file-prefix="$prefix")
	start_server "$perf" -S DUMPCAP=y -S LOG_LEVEL=info || return 1
	start_client -t tag_bw -s 4k -n 1000000000 -f || return 1
	"$@" || rc=$?
	kill -TERM "$(program_pid "$server_pid")"
	wait $client_pid
	server_code
	return $rc
}

# dumpcap ARGUMENT...
dumpcap() { timeout 30 dpdk-dumpcap --file-prefix="$prefix" -q "$@" 2>&1; }

it_captures() {
	dumpcap -D | tee "$dir/list"
	grep -qx '0. net_memif0' "$dir/list" || return 1
	dumpcap -i net_memif0 -c 500 -s 128 -w "$dir/all.pcapng" || return 1
	dumpcap -i 0 -c 50 -f 'less 200' -w "$dir/short.pcapng" || return 1
	# Its file may end within a block.
	"$dump" -j "$dir/all.pcapng" >"$dir/all.json"
	tshark -r "$dir/short.pcapng" -T fields -e frame.len >"$dir/lengths" 2>/dev/null
	python3 - "$dir/all.json" "$dir/lengths" <<-'END'
		import json, sys
		report = json.load(open(sys.argv[1]))
		flows = [f for lane in report['lanes'] for f in lane]
		lengths = [int(line) for line in open(sys.argv[2])]
		print(report['frames'], flows, len(lengths), max(lengths))
		# Both directions, and which is which.
		ends = {(f['from'], f['to']) for f in flows if f['frames'] > 0}
		ok = report['frames'] >= 500 and report['wrong'] == 0 and len(ends) == 2
		sys.exit(not (ok and len(lengths) >= 50 and max(lengths) < 200))
	END
}

# The log has the command.
it_says_how() {
	during -m256 it_captures || return 1
	grep "dpdk-dumpcap --file-prefix=$prefix -i" "$dir/server.err"
}

without_files_it_says_why() {
	during --in-memory true || return 1
	grep "dpdk-dumpcap can't attach: the EAL shares no files" "$dir/server.err"
}

without_hugepages_it_says_why() {
	during --no-huge true || return 1
	grep "dpdk-dumpcap can't attach: the EAL has no hugepages" "$dir/server.err"
}

check "dpdk-dumpcap captures both directions, and takes a filter" it_says_how
check "with --in-memory a line says why it can't" without_files_it_says_why
check "without hugepages, too" without_hugepages_it_says_why
tap_end
