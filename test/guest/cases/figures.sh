# SPDX-License-Identifier: BSD-3-Clause
# Weft beside perftest over one RoCE rail, in alternation. Time is emulated: only ratios mean something. Not a test: run by name,
#	test/guest/run.sh BUILDDIR figures
. "$(dirname "$0")/../lib.sh"

# perftest PROGRAM ARGS...: the last line of its table.
perftest() {
	local program=$1 pid
	shift
	"$program" -d rxe0b -x "$(gid rxe0b)" -F "$@" >"$dir/pt.server" 2>&1 &
	pid=$!
	wait_for 30 listening 18515 >&2
	"$program" -d rxe0a -x "$(gid rxe0a)" -F "$@" 127.0.0.1 2>/dev/null | grep -E '^ *[0-9]' | tail -n 1
	wait $pid
}

weft() {
	perf_pair roce:rxe0b roce:rxe0a -f -v -w 50 "$@" >&2 || echo "weft-perf failed" >&2
}

rail 0 || exit
for round in 1 2; do
	echo "# round $round"
	perftest ib_send_bw -s 4096 -n 3000 | awk '{ print "# ib_send_bw 4 KiB:        " $4 " MB/s" }'
	weft -t tag_bw -s 4k -n 3000
	echo "# weft tag_bw 4 KiB:       $(column overall_bw) MB/s"
	perftest ib_read_bw -s 1048576 -n 60 | awk '{ print "# ib_read_bw 1 MiB:        " $4 " MB/s" }'
	weft -t tag_bw -s 1M -n 60 -w 4
	echo "# weft tag_bw 1 MiB:       $(column overall_bw) MB/s"
	weft -t tag_bw -s 1M -n 60 -w 4 -z
	echo "# weft tag_bw 1 MiB (-z):  $(column overall_bw) MB/s"
	perftest ib_send_lat -s 8 -n 1000 | awk '{ print "# ib_send_lat 8 B:         " $5 " us" }'
	weft -t tag_lat -s 8 -n 1000
	echo "# weft tag_lat 8 B:        $(awk -F, 'END { print $2 }' "$dir/client.out") us"
done
tap=1
echo "ok 1 - figures were taken"
tap_end
