# SPDX-License-Identifier: BSD-3-Clause
# What CI runs of this guest: a RoCE lane is opened and carries messages. The cases with a number
# are the nightly run.
. "$(dirname "$0")/../lib.sh"

rail 0 || exit
check "a RoCE lane carries messages of 8 B and 64 KiB, every byte" \
	perf_pair roce:rxe0b roce:rxe0a -t tag_lat -s 8,64k -n 4 -w 1 -f -V
tap_end
