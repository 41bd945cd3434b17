#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two processes whose only way to each other is an attacker (hostile.py). One end sends a text to
# the other one by weft-cat. What arrives is compared with it, and the counters show the attack.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

"$info" -v | grep -q '^sealed frames.*libipsec' || { echo "this build cannot seal"; exit 77; }
command -v python3 >/dev/null || { echo "there is no python3 here"; exit 77; }

head -c 32 /dev/urandom >"$dir/key"
chmod 600 "$dir/key"
export WEFT_JOB_KEY=$dir/key
rails=("own0,own1" "two0,two1")
for rail in "${rails[@]}"; do
	for i in 0 1; do
		link "${rail:0:3}$i" 1500 "" $i 2 || exit 1
	done
done
# 13 MB, of which no line comes twice.
for ((i = 0; i < 400000; i++)); do echo $i; done | sed 's/^/a line of a secret text: /' >"$dir/text"

box_pid=
end_box() {
	[ -z "$box_pid" ] || kill "$box_pid" 2>/dev/null
	[ -z "$box_pid" ] || wait "$box_pid"
	box_pid=
}
trap 'end_box; untidy' EXIT

# start_box KIND RAILS: it forwards, and attacks.
start_box() {
	: >"$dir/box.out"
	ip netns exec "${ns[2]}" python3 "$(dirname "$0")/hostile.py" "$1" "$dir/frames" \
		"${rails[@]:0:$2}" >"$dir/box.out" 2>"$dir/box.err" &
	box_pid=$!
	until_said "$dir/box.out" listens $box_pid || { cat "$dir/box.err"; return 1; }
}

# text_arrives KIND RAILS: sets attacks, forwarded and readable to what the attacker has done.
text_arrives() {
	local rc=0 packet="blocksz=16384,framesz=16384,framecnt=1024"
	free_port
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=own0,$packet")
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=own1,$packet")
	lanes=dpdk:0
	if [ "$2" = 2 ]; then
		eal_server+=(--vdev="net_af_packet1,iface=two0,$packet")
		eal_client+=(--vdev="net_af_packet1,iface=two1,$packet")
		lanes='dpdk:0;dpdk:1'
	fi
	start_box "$1" "$2" || return 1
	server_out=$dir/arrived
	start_server "$cat" -l -d --counters || rc=1
	server_out=
	[ $rc != 0 ] || client "$cat" --counters <"$dir/text" || rc=$?
	[ $rc = 0 ] || kill "$server_pid" 2>/dev/null
	server_code || rc=$?
	end_box
	echo "exit code $rc"
	read -r attacks forwarded readable < <(tail -n 1 "$dir/box.out")
	echo "$1: $attacks attacks, $forwarded frames, $readable readable"
	[ $rc = 0 ] || { cat "$dir/box.err"; return 1; }
	cmp "$dir/text" "$dir/arrived" || return 1
	! grep -E 'retired|died|is down' "$dir/client.err" "$dir/server.err"
}

# counted COUNTERS: the sum of these counters of both ends.
counted() {
	awk -v name="($1)$" '$1 ~ name {n += $2} END {print n + 0}' "$dir/client.err" \
		"$dir/server.err"
}

# attacked KIND LEAST COUNTERS [RAILS]: the text arrives, the attacker has read none of it, and the
# counters have at least half of its attacks, of which there are at least LEAST.
attacked() {
	text_arrives "$1" "${4:-1}" || return 1
	echo "$3: $(counted "$3")"
	[ "$attacks" -ge "$2" ] && [ "$forwarded" -ge 5000 ] && [ "$readable" = 0 ] &&
		[ $((2 * $(counted "$3"))) -ge "$attacks" ]
}

# auth leaves messages readable: so the attacker does look for the text.
readable_with_auth() { WEFT_SEAL=auth text_arrives none 1 && [ "$readable" -gt 1000 ]; }

# The text arrives, and its frames are those of the earlier processes in the next case.
check "a host between both ends that forwards" text_arrives none 1
# @behaviour Y80
check "all frames of earlier processes" attacked earlier 1000 "drop.(stale_epoch|unknown_sender)"
# @behaviour Y65
check "repeated and reflected frames" attacked replay 1000 "seal_(replay|old)"
# @behaviour Y65
check "frames in a random order, and late ones" attacked reorder 10 drop.seal_old
# @behaviour Y77
slow check "truncated frames" attacked truncate 1000 "drop.(seal_tag|bad_length)"
# @behaviour Y66
check "flipped bits of lane headers, hellos and bodies" attacked flip 1000 \
	"(drop|seal).[a-z_]*"
# @behaviour Y85
check "flipped bits of the headers in front" attacked outer 1000 "(drop|seal).[a-z_]*"
# @behaviour Y67
slow check "frames with the numbers of another connection" attacked splice 1000 drop.seal_tag 2
# @behaviour Y78
slow check "frames without the flag" attacked strip 1000 "drop.(unsealed|bad_message|bad_length)"
# @behaviour Y79
check "an attacker that answers ARP for both ends" attacked arp 100 \
	"(drop.seal_tag|seal.hello_mac)"
check "with auth the attacker reads the text" readable_with_auth
tap_end
