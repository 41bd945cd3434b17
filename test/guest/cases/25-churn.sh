# SPDX-License-Identifier: BSD-3-Clause
#
# @behaviour U85
# The whole library connects and disconnects, two hundred times: test/guest/roce_churn.c. (A
# thousand times the lanes alone: 20-lane.)
. "$(dirname "$0")/../lib.sh"

rail 0 || exit
# Without a cache of freed memory, which would count as memory in use, and without a heap for each
# thread.
GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1 \
	"$build/test/guest/roce_churn" rxe0a rxe0b 4
