# SPDX-License-Identifier: BSD-3-Clause
# Every operation of the library over one RoCE device, and those that may use several over two, every byte compared.
. "$(dirname "$0")/../lib.sh"

one() {
	perf_pair roce:rxe0b roce:rxe0a -f -V "$@"
}

# Both devices of the side that has the data worked: each sent a fifth at least of what was sent. Both
# are slow, or which one gets more would be the machine's choice; more of that is in 37-unequal.
two() {
	local a0 a1 b0 b1 n0 n1
	a0=$(counter rxe0a sent_pkts) && a1=$(counter rxe1a sent_pkts) && b0=$(counter rxe0b sent_pkts) && b1=$(counter rxe1b sent_pkts)
	perf_pair "roce:rxe0b;roce:rxe1b" "roce:rxe0a;roce:rxe1a" -f -V "$@" || return
	n0=$(($(counter rxe0a sent_pkts) - a0 + $(counter rxe0b sent_pkts) - b0))
	n1=$(($(counter rxe1a sent_pkts) - a1 + $(counter rxe1b sent_pkts) - b1))
	echo "packets: $n0 $n1"
	[ $((n0 * 5)) -gt $((n0 + n1)) ] && [ $((n1 * 5)) -gt $((n0 + n1)) ]
}

rail 0 && rail 1 || exit
check "one device: synchronous sends" one -t tag_sync_lat -s 8,64k -n 10 -w 1
check "one device: streams both ways" one -t tag_bibw -s 8,4k,256k -n 12 -w 1 -O 4
check "one device: active messages" one -t am_bw -s 8,4k,256k -n 12 -w 1 -O 4
check "one device: puts" one -t put_bw -s 8,4k,256k -n 12 -w 1 -O 4
check "one device: gets" one -t get_bw -s 8,4k,256k -n 12 -w 1 -O 4
check "one device: fetch-and-add of 8 bytes" one -t fadd_lat -s 8 -n 50 -w 1
check "one device: compare-and-swap of 4 bytes" one -t cswap_lat -s 4 -n 50 -w 1
slow 0 80 && slow 1 80 || exit
check "two devices: puts" two -t put_bw -s 1M -n 6 -w 1 -O 2
check "two devices: gets" two -t get_bw -s 1M -n 6 -w 1 -O 2
check "no retry storms" no_storms rxe0a rxe0b rxe1a rxe1b
tap_end
