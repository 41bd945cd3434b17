# SPDX-License-Identifier: BSD-3-Clause
# Weft beside perftest and UCX over one RoCE rail, in alternation. Time is emulated: only ratios
# mean something. Not a test: run by name,
#	WEFT_GUEST_ROUNDS=7 test/guest/run.sh BUILDDIR figures
# Each figure is a line "# figure NAME VALUE"; the last lines are median and quartiles of the ratios
# of each round.
. "$(dirname "$0")/../lib.sh"

# perftest PROGRAM COLUMN ARGS...: a column of the last line of its table.
perftest() {
	local program=$1 column=$2 pid
	shift 2
	"$program" -d rxe0b -x "$(gid rxe0b)" -F "$@" >"$dir/pt.server" 2>&1 &
	pid=$!
	wait_for 30 listening 18515 >&2
	"$program" -d rxe0a -x "$(gid rxe0a)" -F "$@" 127.0.0.1 2>/dev/null |
		awk -v c="$column" '/^ *[0-9]/ { v = $c } END { print v }'
	wait $pid
}

# weft NAME ARGS...: a column of weft-perf's last line.
weft() {
	local name=$1
	shift
	perf_pair roce:rxe0b roce:rxe0a -f -v "$@" >&2 || echo "weft-perf failed" >&2
	column "$name"
}

# ucx COLUMN ARGS...: a column of ucx_perftest's last line. Its rc_verbs connects over ud_verbs,
# which (in 1.13, Debian's) takes a packet's address family from what only mlx5 puts into a
# completion's service level: on rxe it holds every IPv4 packet for one of another host and drops it
# silently, unless a setting disables the check.
ucx() {
	local column=$1 pid
	shift
	export UCX_TLS=rc_verbs,ud_verbs,self UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_LOG_LEVEL=error
	UCX_NET_DEVICES=rxe0b:1 timeout 60 ucx_perftest -p 13400 "$@" -f >"$dir/ucx.server" 2>&1 &
	pid=$!
	wait_for 30 listening 13400 >&2
	UCX_NET_DEVICES=rxe0a:1 timeout 60 ucx_perftest -p 13400 "$@" -f 127.0.0.1 \
		2>"$dir/ucx.err" |
		awk -v c="$column" '/^ *[0-9]/ { v = $c } END { print v }'
	tail -n 5 "$dir/ucx.server" "$dir/ucx.err" >&2
	wait $pid
}

figure() { echo "# figure $1 $2" | tee -a "$dir/figures"; }

# quartiles NAME A B: of A / B over the rounds.
quartiles() {
	# Without <(...): the guest has no /dev/fd.
	sed -n "s/^# figure $2 //p" "$dir/figures" >"$dir/a"
	sed -n "s/^# figure $3 //p" "$dir/figures" >"$dir/b"
	paste "$dir/a" "$dir/b" |
		awk 'NF == 2 && $2 > 0 { print $1 / $2 }' | sort -g |
		awk -v name="$1" '{ v[NR] = $1 }
			function at(q, x, i) {
				x = 1 + (NR - 1) * q
				i = int(x)
				return i < NR ? v[i] + (x - i) * (v[i + 1] - v[i]) : v[NR]
			}
			END {
				if (NR)
					printf "# ratio %s: median %.2f [%.2f..%.2f], %d rounds\n",
						name, at(.5), at(.25), at(.75), NR
				else
					print "# ratio " name ": no figures"
			}'
}

rail 0 || exit
for round in $(seq 1 "${weft_rounds:-3}"); do
	echo "# round $round, $SECONDS s"
	figure ib_send_bw "$(perftest ib_send_bw 4 -s 4096 -n 4000)"
	figure weft_4k "$(weft overall_bw -w 50 -t tag_bw -s 4k -n 4000)"
	figure ib_read_bw "$(perftest ib_read_bw 4 -s 1048576 -n 72)"
	figure weft_1m_z "$(weft overall_bw -w 2 -t tag_bw -s 1M -n 72 -z)"
	figure weft_1m "$(weft overall_bw -w 2 -t tag_bw -s 1M -n 72)"
	figure ib_send_lat "$(perftest ib_send_lat 5 -s 8 -n 500)"
	figure weft_8b "$(weft 50.0_percentile_lat -w 50 -t tag_lat -s 8 -n 500)"
	if [ "$round" = 1 ] || [ -n "$(sed -n 's/^# figure ucx_4k //p' "$dir/figures" |
		tr -d '\n')" ]; then
		figure ucx_4k "$(ucx 6 -t tag_bw -s 4096 -n 4000 -w 50)"
		figure ucx_1m "$(ucx 6 -t tag_bw -s 1048576 -n 72 -w 2)"
		figure ucx_8b "$(ucx 2 -t tag_lat -s 8 -n 500 -w 50)"
	fi
done
quartiles "4 KiB tag_bw / ib_send_bw" weft_4k ib_send_bw
quartiles "1 MiB tag_bw -z / ib_read_bw" weft_1m_z ib_read_bw
quartiles "1 MiB tag_bw / ib_read_bw" weft_1m ib_read_bw
quartiles "8 B tag_lat / ib_send_lat" weft_8b ib_send_lat
quartiles "UCX 4 KiB tag_bw / ib_send_bw" ucx_4k ib_send_bw
quartiles "UCX 1 MiB tag_bw / ib_read_bw" ucx_1m ib_read_bw
quartiles "UCX 8 B tag_lat / ib_send_lat" ucx_8b ib_send_lat
tap=1
echo "ok 1 - figures were taken"
tap_end
