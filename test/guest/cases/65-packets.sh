# SPDX-License-Identifier: BSD-3-Clause
# Packets of RoCE v2 in a capture of the network device, by weft-dump, and what the device counted.
. "$(dirname "$0")/../lib.sh"

# neighbours: the kernel's address resolution is not what is tested here.
neighbours() {
	ip neigh replace 10.0.0.2 lladdr \
		"$(cat /sys/class/net/v0b/address)" dev v0a nud permanent &&
		ip neigh replace 10.0.0.1 lladdr \
			"$(cat /sys/class/net/v0a/address)" dev v0b nud permanent
}

# flows FILE: one a line, as JSON.
flows() {
	"$build/app/weft-dump" "$dir/$1" && "$build/app/weft-dump" -j "$dir/$1" >"$dir/json" ||
		return
	sed 's/{"file"/\n&/g' "$dir/json" >"$dir/flows"
	grep . /sys/class/infiniband/rxe0?/ports/1/hw_counters/*
}

# sum ADDRESS FIELD: of the flows from this address.
sum() {
	local line value total=0
	while read -r line; do
		[[ $line == *"\"from\":\"$1\""* ]] || continue
		value=${line#*\"$2\":}
		total=$((total + ${value%%[,\}]*}))
	done <"$dir/flows"
	echo $total
}

# counts: what the devices have counted until now.
counts() {
	local device name
	for device in rxe0a rxe0b; do
		for name in duplicate_request out_of_seq_request send_rnr_err rcvd_rnr_err; do
			before[$device.$name]=$(counter $device $name)
		done
	done
}

# same WHAT NUMBER DEVICE NAME: the device has counted as many since counts.
same() {
	local now
	now=$(($(counter "$3" "$4") - ${before[$3.$4]}))
	echo "$1: $2 in the capture, $now by the device"
	[ "$2" = "$now" ]
}

# captured FILE COMMAND...: what passes v0b.
captured() {
	local file=$1 rc=0 pid
	shift
	counts
	dumpcap -q -i v0b -f 'udp port 4791' -s 128 -w "$dir/$file" 2>"$dir/dumpcap.err" &
	pid=$!
	wait_for 60 says "$dir/dumpcap.err" 'File:' && "$@" || rc=1
	# What has arrived is in the file when dumpcap has read its ring.
	read -rt 2 -u 9
	kill -INT $pid
	wait $pid || rc=1
	cat "$dir/dumpcap.err"
	cp "$dir/$file" "/run/weft-guest/$file"
	return $rc
}

# Only what leaves v0a is lost, so each answer of rxe0b is in the capture.
with_loss() {
	local rc=0
	tc qdisc replace dev v0a root netem loss 5% limit 10000 || return
	perf_pair roce:rxe0b roce:rxe0a -t tag_lat -s 8,4k,1M -n 5 -w 1 -f -V || rc=1
	tc -s qdisc show dev v0a
	tc qdisc del dev v0a root
	return $rc
}

faults_are_counted() {
	flows packets.pcapng || return
	[ "$(sum 10.0.0.1 sent_again)" -gt 0 ] && [ "$(sum 10.0.0.2 naks_sequence)" -gt 0 ] &&
		same NAKs "$(sum 10.0.0.2 naks_sequence)" rxe0b out_of_seq_request && duplicates
}

duplicates() {
	same 'duplicates to rxe0b' "$(sum 10.0.0.1 arrived_before)" rxe0b duplicate_request &&
		same 'duplicates to rxe0a' "$(sum 10.0.0.2 arrived_before)" rxe0a duplicate_request
}

# The answers of rxe0b come after the time-out of its peer, 134 ms, which repeats requests before it
# gets their NAK.
with_late_answers() {
	local rc=0
	tc qdisc replace dev v0a root netem loss 10% limit 10000 &&
		tc qdisc replace dev v0b root netem delay 250ms limit 10000 || return
	perf_pair roce:rxe0b,timeout=15 roce:rxe0a,timeout=15 -t tag_lat -s 8,4k -n 10 -w 1 -f \
		-V || rc=1
	tc qdisc del dev v0a root
	tc qdisc del dev v0b root
	return $rc
}

late_naks_change_no_count() {
	flows late.pcapng || return
	[ "$(sum 10.0.0.2 naks_sequence)" -gt 0 ] && duplicates
}

three_queue_pairs() {
	perf_pair roce:rxe0b,qps=3 roce:rxe0a,qps=3 -t tag_bw -s 8,4k -n 20 -w 1 -f -V
}

# Datagrams are no requests.
each_has_its_lane() {
	local line named=0
	flows lane.pcapng || return
	while read -r line; do
		line=${line%%\}*}
		[[ $line == *'"to_qp"'* && $line != *'"requests":0,"responses":0,'* ]] || continue
		[[ $line == *'"lane":'* ]] || { echo "without a lane: $line"; return 1; }
		named=$((named + 1))
	done <"$dir/flows"
	[ $named = 6 ] || { echo "$named directions"; return 1; }
}

without_buffers() {
	"$build/test/guest/roce_lane" rxe0a rxe0b a_shared_queue_that_ran_dry
}

rnr_naks_are_counted() {
	flows rnr.pcapng || return
	grep -q 'to do: let the receiver post more receive buffers' "$dir/check.log" &&
		[ "$(sum 10.0.0.2 rnr_naks)" -gt 0 ] &&
		same 'RNR NAKs of rxe0b' "$(sum 10.0.0.2 rnr_naks)" rxe0b send_rnr_err &&
		same 'RNR NAKs to rxe0a' "$(sum 10.0.0.2 rnr_naks)" rxe0a rcvd_rnr_err
}

if ! type -P dumpcap >/dev/null; then
	skip "weft-dump counts the faults of RoCE connections" "dumpcap is not installed"
	tap_end
	exit
fi
declare -A before
rail 0 1500 && neighbours || exit
check "a capture of the network device while packets are lost" captured packets.pcapng with_loss
check "NAKs and duplicates are as the devices counted them" faults_are_counted
check "a capture of answers that come after a time-out" captured late.pcapng with_late_answers
check "duplicates are as the devices counted them then" late_naks_change_no_count
check "a capture of a lane with three queue pairs" captured lane.pcapng three_queue_pairs
check "each queue pair has the name of the lane" each_has_its_lane
check "a capture of a receiver without buffers" captured rnr.pcapng without_buffers
check "RNR NAKs are as the devices counted them" rnr_naks_are_counted
tap_end
