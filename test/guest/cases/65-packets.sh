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

# same WHAT NUMBER NUMBER
same() {
	echo "$1: $2 in the capture, $3 by the device"
	[ "$2" = "$3" ]
}

# Only what leaves v0a is lost, so each answer of rxe0b is in the capture.
captured() {
	local rc=0 pid
	dumpcap -q -i v0b -f 'udp port 4791' -s 128 -w "$dir/b.pcapng" 2>"$dir/dumpcap.err" &
	pid=$!
	wait_for 60 says "$dir/dumpcap.err" 'File:' &&
		tc qdisc replace dev v0a root netem loss 5% limit 10000 || rc=1
	perf_pair roce:rxe0b roce:rxe0a -t tag_lat -s 8,4k,1M -n 5 -w 1 -f -V || rc=1
	tc -s qdisc show dev v0a
	tc qdisc del dev v0a root
	# What has arrived is in the file when dumpcap has read its ring.
	read -rt 2 -u 9
	kill -INT $pid
	wait $pid || rc=1
	cat "$dir/dumpcap.err"
	cp "$dir/b.pcapng" /run/weft-guest/packets.pcapng
	return $rc
}

faults_are_counted() {
	"$build/app/weft-dump" "$dir/b.pcapng" &&
		"$build/app/weft-dump" -j "$dir/b.pcapng" >"$dir/json" || return
	sed 's/{"file"/\n&/g' "$dir/json" >"$dir/flows"
	grep . /sys/class/infiniband/rxe0?/ports/1/hw_counters/*
	[ "$(sum 10.0.0.1 sent_again)" -gt 0 ] && [ "$(sum 10.0.0.2 naks_sequence)" -gt 0 ] &&
		same NAKs "$(sum 10.0.0.2 naks_sequence)" "$(counter rxe0b out_of_seq_request)" &&
		same 'duplicates to rxe0b' "$(sum 10.0.0.1 arrived_before)" \
			"$(counter rxe0b duplicate_request)" &&
		same 'duplicates to rxe0a' "$(sum 10.0.0.2 arrived_before)" \
			"$(counter rxe0a duplicate_request)"
}

if ! type -P dumpcap >/dev/null; then
	skip "weft-dump counts the faults of RoCE connections" "dumpcap is not installed"
	tap_end
	exit
fi
rail 0 1500 && neighbours || exit
check "a capture of the network device while packets are lost" captured
check "NAKs and duplicates are as the devices counted them" faults_are_counted
tap_end
