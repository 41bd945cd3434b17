#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Three processes on one bridge: one of two peers is stopped or killed in the middle of rendezvous
# both ways, and 1 MiB to and from the other one takes at most 0.1 s, or, on a machine with other
# work, five times what it took in the same run before. That the hub has found the bad one stalled
# shows that it was what is tested: a peer that holds what may be asked for.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

stall=$build/test/proc/proc_stall
[ -x "$stall" ] || { echo "there is no proc_stall in this build"; exit 77; }

# Hub, good and bad each have a namespace, the bridge stands in the third one. (Two processes in one
# may get the same PACKET_FANOUT group, which net_af_packet makes of pid and interface.)
ns+=("weft-$$-bad")
ip netns add "${ns[3]}" &&
	link hub 9000 "" 0 2 && link good 9000 "" 1 2 && link bad 9000 "" 3 2 &&
	ip -n "${ns[2]}" link add name br0 type bridge &&
	ip -n "${ns[2]}" link set br0 mtu 9000 up || exit 77
for i in hub good bad; do
	ip -n "${ns[2]}" link set "$i" master br0 || exit 77
done

packet="blocksz=16384,framesz=16384,framecnt=256"
# One peer can hold all that may be asked for.
export WEFT_LANES="dpdk:0" WEFT_CONNECT_TIMEOUT=100s WEFT_RNDV_LIMIT=256k

# run NAMESPACE NAME ARGS...: one of the three, in the background.
run() {
	local where=$1 name=$2
	shift 2
	WEFT_EAL_ARGS="--no-huge -m 256 --no-pci --vdev=net_af_packet0,iface=$name,$packet" \
		ip netns exec "${ns[$where]}" "$stall" "$name" "$@" >"$dir/$name.out" \
		2>"$dir/$name.err" &
}

# spoilt SIGNAL: the bad one gets it when all are at work. Stopped between two messages it holds
# nothing that was requested, and the hub has no reason to find it stalled: another run is needed.
spoilt() {
	local hub_pid good_pid bad_pid rc=0 stalled
	rm -f "$dir/address"
	run 0 hub "$dir/address" 3000
	hub_pid=$!
	until_exists "$dir/address" $hub_pid || return 1
	run 1 good "$dir/address"
	good_pid=$!
	run 3 bad "$dir/address"
	bad_pid=$!
	until_said "$dir/hub.out" ready $hub_pid || rc=1
	kill "-$1" "$bad_pid" || rc=1
	wait $hub_pid || rc=1
	kill -9 $good_pid $bad_pid
	wait $good_pid $bad_pid 2>/dev/null
	cat "$dir"/{good,bad,hub}.err "$dir/hub.out"
	stalled=$(sed -n 's/^stalled \([0-9]*\),.*/\1/p' "$dir/hub.out")
	[ $rc = 0 ] && [ -n "$stalled" ] || return 1
	[ "$1" != STOP ] || [ "$stalled" -ge 1 ] || return 2
}

# Of three runs the first one in which the hub has found the stopped peer stalled counts.
stopped() {
	local rc
	for _ in 1 2 3; do
		spoilt STOP && return 0 || rc=$?
		[ $rc = 2 ] || return 1
	done
	return 1
}

# @behaviour T5, T39
check "one of two peers is stopped in a rendezvous: the other one goes on" stopped
sed -n 's/^1 MiB/# &/p' "$dir/hub.out"
# @behaviour T5, R43
check "one of two peers is killed in a rendezvous: the other one goes on" spoilt KILL
sed -n 's/^1 MiB/# &/p' "$dir/hub.out"
tap_end
