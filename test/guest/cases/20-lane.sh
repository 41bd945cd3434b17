# SPDX-License-Identifier: BSD-3-Clause
# RoCE lanes by their contract, without the protocol layer above them: test/guest/roce_*.c.
. "$(dirname "$0")/../lib.sh"

rail 0 || exit
# Without a cache of freed memory, which would count as memory in use, and without a heap for each
# thread.
GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1 \
	"$build/test/guest/roce_lane" rxe0a rxe0b
