# SPDX-License-Identifier: BSD-3-Clause
#
# @behaviour Y27
# Two RoCE devices that are slower than they say, unequal, or far away: how they share. The rates
# are those of token buckets, far below what an emulated processor can do, so that the shares are
# the scheduler's and not the machine's.
. "$(dirname "$0")/../lib.sh"

# run LEAST MOST ARGS...: percent of the packets that the first device sent, both ends together.
run() {
	local least=$1 most=$2 a0 a1 b0 b1 n0 n1
	shift 2
	a0=$(counter rxe0a sent_pkts) && a1=$(counter rxe1a sent_pkts) || return
	b0=$(counter rxe0b sent_pkts) && b1=$(counter rxe1b sent_pkts) || return
	perf_pair "roce:rxe0b;roce:rxe1b" "roce:rxe0a;roce:rxe1a" -f -V -v -s 1M -n 16 -w 2 -O 4 \
		"$@" || return
	n0=$(($(counter rxe0a sent_pkts) - a0 + $(counter rxe0b sent_pkts) - b0))
	n1=$(($(counter rxe1a sent_pkts) - a1 + $(counter rxe1b sent_pkts) - b1))
	echo "packets: $n0 $n1"
	[ $((n0 * 100)) -ge $(((n0 + n1) * least)) ] && [ $((n0 * 100)) -le $(((n0 + n1) * most)) ]
}

# shared LEAST MOST TEST: percent of the bytes of this test that the first device carried, none
# wrong.
shared() {
	echo "shares: $(column lanes "$3")"
	all_right "$3" 1 && [ "$(share roce:rxe0a "$3")" -ge "$1" ] &&
		[ "$(share roce:rxe0a "$3")" -le "$2" ]
}

# What a lane may have outstanding takes no longer than a tenth of a second, or rdma_rxe sends it
# again.
export WEFT_RNDV_WINDOW=256k
rail 0 && rail 1 || exit
slow 0 20 && slow 1 80 || exit
check "one has a quarter of the other's rate: the devices' packets" run 5 45 -t put_bw,get_bw,tag_bw
check "one has a quarter of the other's rate: puts" shared 5 45 put_bw
check "one has a quarter of the other's rate: gets" shared 5 45 get_bw
check "one has a quarter of the other's rate: messages" shared 5 45 tag_bw
export WEFT_RNDV_SCHEME=put
check "one has a quarter of the other's rate: the sender writes" run 5 45 -t tag_bw
check "one has a quarter of the other's rate: what the sender writes is right, and shared" shared \
	5 45 tag_bw
unset WEFT_RNDV_SCHEME
far 0 20 80 || exit
check "one is 20 ms away: puts" run 5 60 -t put_bw
check "one is 20 ms away: every byte, shared" shared 5 60 put_bw
tap_end
