# SPDX-License-Identifier: BSD-3-Clause
# Two RoCE devices that are slower than they say, unequal, or far away: how they share. The rates are
# those of token buckets, far below what an emulated processor can do, so that the shares are the
# scheduler's and not the machine's.
. "$(dirname "$0")/../lib.sh"

# both LEAST MOST ARGS...: percent of the packets that the first device sent, both ends together.
both() {
	local least=$1 most=$2 a0 a1 b0 b1 n0 n1
	shift 2
	a0=$(counter rxe0a sent_pkts) && a1=$(counter rxe1a sent_pkts) || return
	b0=$(counter rxe0b sent_pkts) && b1=$(counter rxe1b sent_pkts) || return
	perf_pair "roce:rxe0b;roce:rxe1b" "roce:rxe0a;roce:rxe1a" -f -V -v "$@" || return
	n0=$(($(counter rxe0a sent_pkts) - a0 + $(counter rxe0b sent_pkts) - b0))
	n1=$(($(counter rxe1a sent_pkts) - a1 + $(counter rxe1b sent_pkts) - b1))
	echo "packets: $n0 $n1; wrong: $(column wrong)"
	[ "$(column wrong)" = 0 ] && [ $((n0 * 100)) -ge $(((n0 + n1) * least)) ] &&
		[ $((n0 * 100)) -le $(((n0 + n1) * most)) ]
}

# What a lane may have outstanding takes no longer than a tenth of a second, or rdma_rxe sends it again.
export WEFT_RNDV_WINDOW=256k
rail 0 && rail 1 || exit
slow 0 20 && slow 1 80 || exit
check "one has a quarter of the other's rate: puts" both 5 45 -t put_bw -s 1M -n 24 -w 2 -O 4
check "one has a quarter of the other's rate: gets" both 5 45 -t get_bw -s 1M -n 24 -w 2 -O 4
check "one has a quarter of the other's rate: messages" both 5 45 -t tag_bw -s 1M -n 24 -w 2 -O 4
export WEFT_RNDV_SCHEME=put
check "one has a quarter of the other's rate: the sender writes" both 5 45 -t tag_bw -s 1M -n 24 -w 2 -O 4
unset WEFT_RNDV_SCHEME
far 0 20 80 || exit
check "one is 20 ms away: puts" both 5 60 -t put_bw -s 1M -n 24 -w 2 -O 4
tap_end
