#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Rails that die and come back under running streams, and peers that pause: the failure table of
# doc/raw-lanes.md. Every byte is compared; a rail that died is given up and the stream goes on, and
# where only the peer is silent nothing is given up.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

command -v tc >/dev/null || { echo "tc(8) is not installed (iproute2)"; exit 77; }
link rail0 1500 && link rail1 1500 || exit 1

# Through the qdisc, where hole() is.
packet="blocksz=4096,framesz=4096,framecnt=256,qdisc_bypass=0"
new_pair() {
	free_port
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=rail0,$packet" \
		--vdev="net_af_packet1,iface=rail1,$packet")
	eal_server=("${eal_client[@]}")
	lanes=
}

# hole SIDE RAIL: what this side sends there vanishes, and no link goes down (no frame is as short
# as the bucket). mend SIDE RAIL
hole() {
	ip netns exec "${ns[$1]}" tc qdisc replace dev "$2" root tbf rate 8bit burst 10 limit 1
}
mend() { ip netns exec "${ns[$1]}" tc qdisc del dev "$2" root; }

said() { until_said "$dir/$1.err" "$2" "$client_pid"; }
never() {
	! grep -E -- "$2" "$dir/$1.err" || { echo "$1 has a line with '$2'"; return 1; }
}

# What the stream carries, until there is enough.
head -c 4000000 /dev/urandom >"$dir/block"
feed() {
	until [ -e "$dir/enough" ]; do "$@" || return; done
}
blocks() { cat "$dir/block"; }
trickle() { echo "$SECONDS"; sleep 0.02; }

# stream SIZE [FEEDER]: weft-cat carries it in messages of this size, and compares both ends.
stream() {
	rm -f "$dir/enough"
	new_pair
	start_server "$cat" -l -d || return 1
	: >"$dir/client.err"
	feed "${2:-blocks}" | client "$cat" -b "$1" -W 30 -S LOG_LEVEL=info &
	client_pid=$!
	said client "lane 1 is up" && sleep 0.3
}

ends_well() {
	local rc=0
	touch "$dir/enough"
	wait "$client_pid" || rc=$?
	server_code && [ $rc = 0 ] && never client "error:" && never server "error:"
}

given_up="lane [01] to .* is given up"
back="lane [01] to .* is back"

# The flight recorder's file of it, which can be read.
dump=$build/app/weft-dump
export TMPDIR=$dir
recorded() {
	local file
	for file in "$dir"/weft-*/recorder-*.pcapng; do
		if grep -aqE "the lane to .* is given up" "$file"; then
			"$dump" "$file" >"$dir/recorder.txt"
			return
		fi
	done
	echo "the recorder has no file of the lane that was given up"
	return 1
}

# down_for_good SIZE [FEEDER]
down_for_good() {
	rm -f "$dir"/weft-*/recorder-*
	stream "$@" || return 1
	ip -n "${ns[0]}" link set rail1 down
	said client "$given_up" && ends_well && recorded
}

# holed SIZE SIDE...: without a word of the port
holed() {
	local side
	stream "$1" || return 1
	for side in "${@:2}"; do hole "$side" rail1; done
	said client "$given_up" && ends_well
}

flap() {
	stream 1M || return 1
	ip -n "${ns[0]}" link set rail1 down
	said client "$given_up" && sleep 2 || return 1
	ip -n "${ns[0]}" link set rail1 up
	said client "$back" && said server "$back" && ends_well
}

one_after_the_other() {
	stream 64k || return 1
	ip -n "${ns[0]}" link set rail1 down
	said client "$given_up" || return 1
	ip -n "${ns[0]}" link set rail1 up
	said client "$back" || return 1
	ip -n "${ns[1]}" link set rail0 down
	said client "lane 0 to .* is given up" && ends_well
}

# One is holed a moment before the other, and may be given up for that.
both_holed() {
	local rail
	stream 64k || return 1
	for rail in rail0 rail1; do hole 0 $rail && hole 1 $rail || return 1; done
	sleep 2
	for rail in rail0 rail1; do mend 0 $rail && mend 1 $rail || return 1; done
	ends_well
}

paused() {
	local pid
	stream 64k || return 1
	pid=$(program_pid "$server_pid")
	kill -STOP "$pid" && sleep 3 && kill -CONT "$pid" || return 1
	ends_well && never client "given up" && never server "given up"
}

# row NAME COMMAND...: with all rails as they should be
row() {
	local side rail
	for side in 0 1; do
		for rail in rail0 rail1; do
			ip -n "${ns[$side]}" link set $rail up
			mend $side $rail 2>/dev/null
		done
	done
	check "$@"
	touch "$dir/enough"
	[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null
	wait
	server_pid=
}

row "one rail down for good, messages of 64k" down_for_good 64k
row "one rail down for good, messages of 1M" down_for_good 1M
row "one rail holed for good" holed 64k 0 1
row "one rail holed one way for good" holed 1M 1
row "an idle rail's death disturbs nothing" down_for_good 64k trickle
row "a rail down for 2 s is back" flap
row "one rail after the other" one_after_the_other
row "both rails holed for 2 s" both_holed
row "the peer paused for 3 s: nothing is given up" paused
tap_end
