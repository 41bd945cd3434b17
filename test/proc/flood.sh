#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A sealed stream between two processes, through a bridge on which another host forges frames,
# 10,000 in a second (forge.py). The link of each end carries 200 Mb/s (tbf), so that processor time
# does not limit the stream. The forged frames come from the bridge: their bytes take nothing of
# these links.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

"$info" -v | grep -q '^sealed frames.*libipsec' || { echo "this build cannot seal"; exit 77; }
for program in tc python3; do
	command -v $program >/dev/null || { echo "there is no $program here"; exit 77; }
done

# The comparison needs processes that run in time, also where the machine has other work.
echo -20 2>/dev/null >/proc/self/autogroup || renice -n -20 $$ >/dev/null 2>&1

rate=10000
head -c 32 /dev/urandom >"$dir/key"
chmod 600 "$dir/key"
export WEFT_JOB_KEY=$dir/key

between=${ns[2]}
ip -n "$between" link add br0 type bridge && ip -n "$between" link set br0 up || exit 1
for i in 0 1; do
	link "own$i" 9000 "" $i 2 && ip -n "$between" link set "own$i" master br0 || exit 1
	tc -n "${ns[$i]}" qdisc add dev "own$i" root tbf rate 200mbit burst 20000 limit 200000 ||
		{ echo "this kernel has no tbf"; exit 77; }
done

forge_pid=
end_forge() {
	[ -z "$forge_pid" ] || kill "$forge_pid" 2>/dev/null
	[ -z "$forge_pid" ] || wait "$forge_pid"
	forge_pid=
}
trap 'end_forge; untidy' EXIT

# start_forge END KIND: it floods one end as soon as the ends exchange sealed frames.
start_forge() {
	: >"$dir/forge.out"
	ip netns exec "$between" python3 "$(dirname "$0")/forge.py" "own$1" "$2" $rate \
		>"$dir/forge.out" 2>"$dir/forge.err" &
	forge_pid=$!
	until_said "$dir/forge.out" listens $forge_pid || { cat "$dir/forge.err"; return 1; }
}

# stream [END KIND]: two seconds of messages of 64 KiB, each byte compared. goodput is their MB/s.
stream() {
	local rc=0 packet="qdisc_bypass=0,blocksz=16384,framesz=16384,framecnt=1024"
	free_port
	lanes=dpdk:0
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=own0,$packet")
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=own1,$packet")
	start_server "$perf" --counters || return 1
	[ $# = 0 ] || start_forge "$@" || rc=1
	[ $rc != 0 ] || client "$perf" -t tag_bw -s 64k -D 2 -f -V --counters || rc=$?
	end_forge
	[ $rc = 0 ] || kill "$server_pid" 2>/dev/null
	server_code || rc=$?
	goodput=$(awk '$1 == "tag_bw" {print $(NF - 1)}' "$dir/client.out")
	echo "exit code $rc"
	[ $rc = 0 ] && [ -n "$goodput" ] || return 1
	! grep -E 'retired|died|is down|connecting goes on' "$dir/client.err" "$dir/server.err"
}

# counted LOG COUNTER: the sum of a counter over the ifaces of an end.
counted() { awk -v name="$2" '$1 ~ name "$" {n += $2} END {print n + 0}' "$1"; }

# flooded KIND COUNTER: each end in turn. A busy machine slows some streams: the goodput counts that
# is the best of three attempts, each after a stream without forged frames.
quiet=
flooded() {
	local end log sent seconds seen
	for end in 0 1; do
		log=$dir/server.err
		[ $end = 0 ] || log=$dir/client.err
		for _ in 1 2 3; do
			[ -n "$quiet" ] || { stream && quiet=$goodput || return 1; }
			stream $end "$1" || return 1
			read -r sent seconds < <(tail -n 1 "$dir/forge.out")
			seen=$(counted "$log" "$2")
			echo "$1 to end $end: $sent frames in $seconds s, $2 $seen; MB/s: $quiet" \
				"without them, $goodput with them"
			# What the ring of the port had no room for is not counted.
			awk "BEGIN {exit !($sent >= 0.9 * $rate * $seconds && $seconds >= 2 &&
				$seen >= 0.5 * $sent)}" || return 1
			! awk "BEGIN {exit !($goodput >= 0.9 * $quiet)}" || continue 2
			quiet=
		done
		return 1
	done
}

# The same RESETs end a plain connection: they are as an attacker would make them.
plain() {
	! WEFT_JOB_KEY='' stream 0 reset || return 1
	grep 'does not know this connection any more' "$dir/client.err" "$dir/server.err"
}

# @behaviour Y81: between real processes, too, 10,000 forged RESETs, HELLOs, DATA frames, ICMP
# messages, ARP answers or marked frames in a second to either end leave a sealed connection 0.9 of
# its goodput, are delivered to no program, and are counted
check "forged RESETs" flooded reset seal.reset_hints
# @behaviour Y81
slow check "forged HELLOs" flooded hello seal.hello_mac
# @behaviour Y81
check "DATA frames with wrong tags" flooded data drop.seal_tag
# @behaviour Y81
slow check "forged ICMP" flooded icmp icmp.received
# @behaviour Y81
slow check "forged ARP answers" flooded arp arp.received
# @behaviour Y81
check "repeated frames with marks" flooded mark "drop.seal_(replay|old)"
check "forged RESETs end a connection without a key" plain
tap_end
