#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Waiting without spinning: two processes on one core answer each other soon, and those that wait
# for nothing take no CPU time.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

command -v taskset >/dev/null || { echo "taskset(1) is not installed (util-linux)"; exit 77; }
link rail0 9000 || exit 1

netns_server=("${server_run[@]}")
netns_client=("${client_run[@]}")
netns_host=$host

# over KIND: fresh lanes of this kind.
over() {
	server_run=() client_run=() host=127.0.0.1
	case $1 in
	veth)
		server_run=("${netns_server[@]}") client_run=("${netns_client[@]}") host=$netns_host
		free_port
		eal_server=(--no-huge -m 512 --no-pci \
			--vdev="net_af_packet0,iface=rail0,blocksz=16384,framesz=16384,framecnt=256")
		eal_client=("${eal_server[@]}")
		lanes="dpdk:0"
		;;
	memif) new_pair 1 ;;
	esac
}

# column NAME: of weft-perf's CSV in client.out, first row.
column() {
	awk -F, -v name="$1" \
		'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) n = i } NR == 2 { print $n }' \
		"$dir/client.out"
}

# The bound is 50 times what a quiet machine takes, and a fiftieth of what two processes that poll
# on one core take (a time slice).
answers_soon() {
	local core median
	over "$1"
	core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	server_run=(taskset -c "$core" "${server_run[@]}")
	client_run=(taskset -c "$core" "${client_run[@]}")
	start_server "$perf" || return 1
	client "$perf" -t "$2" -s 8 -n 2000 -w 200 -v --sleep || return 1
	server_code || return 1
	median=$(column 50.0_percentile_lat)
	echo "$1, $2: half a round trip of 8 B: median $median, p99 $(column p99_lat) us" |
		tee -a "$dir/figures"
	awk -v m="$median" -v bound="$(stretch 500)" 'BEGIN { exit !(m > 0 && m < bound) }'
}

# A stream that sleeps whenever its window is full, and every byte.
streams() {
	over "$1"
	start_server "$perf" || return 1
	client "$perf" -t "$2" -s 8,64k,1M -n 300 -w 20 -f -V --sleep || return 1
	server_code
}

# cpu_ticks PID...: of all their threads so far.
cpu_ticks() {
	local p sum=0
	for p in "$@"; do sum=$((sum + $(awk '{ print $14 + $15 }' "/proc/$p/stat"))); done
	echo $sum
}

# Both ends have all they need and wait for input that does not come: each takes 1 % of a CPU at
# most. CPU time hardly grows with what else the machine does.
idles() {
	local hz ticks pid i span=5
	hz=$(getconf CLK_TCK)
	over "$1"
	rm -f "$dir/input"
	mkfifo "$dir/input"
	exec 8<>"$dir/input"
	server_in=$dir/input start_server "$cat" -l 8>&- || return 1
	client "$cat" <"$dir/input" 8>&- &
	client_pid=$!
	printf 'x' >&8 # whichever takes it: the lanes are there when it comes out
	for ((i = 0; i < 600; i++)); do
		[ ! -s "$dir/server.out" ] && [ ! -s "$dir/client.out" ] || break
		sleep 0.05
	done
	sleep 3 # what belongs to connecting, its measuring too, is over
	mapfile -t pid < <(pgrep -f -- "-p $port -L" | while read -r p; do
		[ "$(readlink "/proc/$p/exe")" != "$(readlink -f "$cat")" ] || echo "$p"
	done)
	ticks=$(cpu_ticks "${pid[@]}")
	sleep $span
	ticks=$(($(cpu_ticks "${pid[@]}") - ticks))
	exec 8>&-
	wait $client_pid || return 1
	server_code || return 1
	echo "$1: ${#pid[@]} processes: $ticks ticks of 1/$hz s in $span s" | tee -a "$dir/figures"
	[ ${#pid[@]} = 2 ] && [ $ticks -le $((2 * span * hz / 100)) ]
}

# @behaviour T38: two processes on one core answer each other in tens of microseconds, and sleeping
# streams lose nothing
check "veth: two processes on one core answer each other soon" answers_soon veth tag_lat
# @behaviour T38
slow check "veth: active messages, too" answers_soon veth am_lat
# @behaviour T38
check "veth: a stream, every byte" streams veth tag_bw
# @behaviour T44: measurement: a waiting process takes 1 % of a CPU at most
check "veth: a waiting process takes 1 % of a CPU at most" idles veth
# @behaviour T38
check "memif: two processes on one core answer each other soon" answers_soon memif tag_lat
# @behaviour T38
slow check "memif: active messages, too" answers_soon memif am_lat
# @behaviour T38
slow check "memif: a stream, every byte" streams memif tag_bw
# @behaviour T44
check "memif: a waiting process takes 1 % of a CPU at most" idles memif
[ ! -s "$dir/figures" ] || sed 's/^/# /' "$dir/figures"
tap_end
