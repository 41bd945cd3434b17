# SPDX-License-Identifier: BSD-3-Clause
#
# @behaviour Y27
# Every operation of the library over one RoCE device, every byte compared. Those that may use
# several lanes over two: 40-rails.
. "$(dirname "$0")/../lib.sh"

rail 0 || exit
check "one device: one operation after the other" perf_pair roce:rxe0b roce:rxe0a \
	-t tag_sync_lat,tag_bibw,am_bw,put_bw,get_bw -s 8,4k,256k -n 12 -w 1 -O 4 -f -V -v
check "one device: synchronous sends" all_right tag_sync_lat 3
check "one device: streams both ways" all_right tag_bibw 3
check "one device: active messages" all_right am_bw 3
check "one device: puts" all_right put_bw 3
check "one device: gets" all_right get_bw 3
check "one device: atomics" perf_pair roce:rxe0b roce:rxe0a -t fadd_lat,cswap_lat -s 4,8 -n 40 \
	-w 1 -f -V -v
check "one device: fetch-and-add of 4 and 8 bytes" all_right fadd_lat 2
check "one device: compare-and-swap of 4 and 8 bytes" all_right cswap_lat 2
check "no retry storms" no_storms rxe0a rxe0b
tap_end
