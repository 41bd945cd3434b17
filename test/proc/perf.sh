#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-perf between two processes over net_memif: every test, all sizes with every byte compared,
# both output formats.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# column NAME: the value in the last line of the CSV.
column() {
	awk -F, -v name="$1" \
		'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } END { print $c }' \
		"$dir/client.out"
}

ping_pong() {
	perf_pair 1 -t tag_lat -n 1000 -f -v || return 1
	[ "$(column iterations)" = 1000 ] && [ "$(column test)" = tag_lat ] || return 1
	# Half a round trip counts for two messages: rate x latency is 1.
	awk -v l="$(column overall_lat)" \
		-v r="$(column overall_mr)" \
		'BEGIN { p = l * r / 1e6; exit !(p > 0.99 && p < 1.01) }'
}

both_lanes_carry() {
	perf_pair 2 -t tag_bw -s 1M -n 200 -f -v || return 1
	[ "$(column lanes | tr ';' '\n' | grep -cE '^dpdk:[01]=([2-7][0-9])\.')" = 2 ] ||
		{ echo "shares: $(column lanes)"; return 1; }
}

ucx_columns() {
	[ "$(head -n 1 "$dir/client.out" | cut -d, -f1-8)" = \
		"iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr" ]
}

# Of a test that would go on for hours: the server's end ends it.
line_per_second() {
	local pid i begin
	new_pair 1
	start_server "$perf" || return 1
	begin=$SECONDS
	: >"$dir/client.out"
	client "$perf" -t tag_bw -s 64 -n 1000000000000 -v &
	pid=$!
	for ((i = 0; i < 600 && $(wc -l <"$dir/client.out") < 4; i++)); do
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	kill "$server_pid"
	wait $pid
	server_code
	echo "$(wc -l <"$dir/client.out") lines after $((SECONDS - begin)) s"
	# The columns' names, and a line for each second; not more of them than seconds.
	[ "$(wc -l <"$dir/client.out")" -ge 4 ] && [ $((SECONDS - begin)) -ge 2 ]
}

# On a host that is busy with other things, too, and whatever the rate was before.
deadline() {
	local begin=$EPOCHREALTIME took
	perf_pair 1 -t tag_bw,tag_lat,put_bw -s 64k -D 0.5 -f || return 1
	took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
	echo "three runs of 0.5 s: $took s, programs and connections included"
	awk -v t="$took" 'BEGIN { exit !(t >= 1.5 && t < 8) }' &&
		[ "$(grep -cE '^[a-z]+_[a-z]+ +64k ' "$dir/client.out")" = 3 ]
}

# The rate falls to a thousandth in the middle of a run: the server is stopped for 1.5 s.
deadline_of_a_stall() {
	local pid begin
	new_pair 1
	start_server "$perf" || return 1
	: >"$dir/client.out"
	begin=$SECONDS
	client "$perf" -t tag_bw -s 1k -D 3 &
	pid=$!
	until_said "$dir/client.out" '^tag_bw +' $pid || return 1
	kill -STOP "$(program_pid "$server_pid")"
	sleep 1.5
	kill -CONT "$(program_pid "$server_pid")"
	wait $pid || return 1
	server_code || return 1
	echo "$((SECONDS - begin)) s"
	[ $((SECONDS - begin)) -le 8 ]
}

# The server sends: the client's figures are of what came, and both ends know the lanes.
reverse() {
	perf_pair 1 -t tag_bw,am_bw -s 8,64k -D 0.1 -f -R -V || return 1
	[ "$(grep -cE '^(tag|am)_bw +(8|64k) ' "$dir/client.out")" = 4 ] &&
		grep -q '^  lane dpdk:0 .*up' "$dir/server.out"
}

json_lines() {
	perf_pair 1 -t tag_bw,tag_lat -s 8,64k -D 1.2 --json -P "$1" || return 1
	python3 - "$dir/client.out" <<-'END'
		import json, sys
		lines = [json.loads(line) for line in open(sys.argv[1])]
		kinds = [line["type"] for line in lines]
		assert kinds[0] == "begin" and lines[0]["lanes"][0]["state"] == "up", lines[0]
		results = [line for line in lines if line["type"] == "result"]
		assert len(results) == 4, kinds
		assert {r["test"] for r in results} == {"tag_bw", "tag_lat"}
		assert all(r["bytes_per_second"] > 0 and r["wrong"] == 0 for r in results)
		seconds = [line for line in lines if line["type"] == "second"]
		# What has arrived in a second is no more than a tenth above what the run carried.
		for s in seconds:
		    r = [r for r in results if (r["test"], r["size_bytes"]) ==
		         (s["test"], s["size_bytes"])][0]
		    assert s["iterations"] <= r["iterations"], (s, r)
		assert seconds
	END
}

several_connections() {
	perf_pair 1 -t tag_bw,am_bw -s 8,64k -n 3000 -P 5 --json -f || return 1
	[ "$(grep -c '"type":"result"' "$dir/client.out")" = 4 ]
}

table() {
	perf_pair 2 -t table -s 8,64k,1M -D 0.05 || return 1
	[ "$(grep -cE '^ +(8|64k|1M)  [a-z/-]+ +[0-9]+:[0-9]+ ' "$dir/client.out")" = 3 ]
}

# One connection for all of them, one row a test and size.
several() {
	perf_pair 2 -t tag_sync_lat,am_bw,put_bw,get_bw,tag_bibw -s 8,64k -n 20 -f -V -v || return 1
	[ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
		{ print $c["size"], $c["test"], $c["wrong"] }' "$dir/client.out" | tr '\n' ' ')" = \
		"8 tag_sync_lat 0 8 am_bw 0 8 put_bw 0 8 get_bw 0 8 tag_bibw 0 65536 tag_sync_lat 0 65536 am_bw 0 65536 put_bw 0 65536 get_bw 0 65536 tag_bibw 0 " ]
}

# For programs: two rows a size.
table_csv() {
	perf_pair 1 -t table -v -f -s 8,64k -n 20 || return 1
	[ "$(sed 1d "$dir/client.out" | cut -d, -f12,13 | tr '\n' ' ')" = \
		"tag_lat,8 tag_bw,8 tag_lat,65536 tag_bw,65536 " ]
}

# A server that stays: two clients one after the other. A third one meanwhile gets the name of the
# served one.
keeps() {
	local pid rc=0
	new_pair 1
	start_server "$perf" -k || return 1
	client "$perf" -t tag_lat -n 100 -f || return 1
	until_said "$dir/server.err" "(waiting for a client.*\n?){1}" "$server_pid" || return 1
	for ((i = 0; i < 1200 && $(grep -c "waiting for a client" "$dir/server.err") < 2; i++))
	do sleep 0.05; done
	: >"$dir/client.out"
	client "$perf" -t tag_bw -s 64 -n 1000000000000 &
	pid=$!
	until_said "$dir/client.out" '^test ' $pid || return 1
	timeout -k 10 100 "$perf" --no-huge -m 64 --no-pci --file-prefix=third$$ -- -p "$port" \
		-L self "$host" >"$dir/third.out" 2>"$dir/third.err" || rc=$?
	[ $rc != 0 ] && grep -q "busy with" "$dir/third.err" || { cat "$dir/third.err"; return 1; }
	kill "$(program_pid "$server_pid")"
	wait $pid
	rc=0
	server_code || rc=$?
	echo "the server's exit code is $rc"
	[ $rc = 143 ]
}

# WEFT_PROTO_INFO: the ends choose by the same numbers, so they print the same tables, for every
# kind of operation. Of each other they name the other one.
same_tables() {
	local end op
	export WEFT_PROTO_INFO=y
	perf_pair 2 -t tag_lat -n 100
	local rc=$?
	unset WEFT_PROTO_INFO
	[ $rc = 0 ] || return 1
	for end in server client; do
		grep -E '^[|+]|one way|measured|^  (Closed|Rendezvous|A CPU)' "$dir/$end.err" |
			sed 's/lanes to worker .*//; s/^ *[a-z ]*; //; /A CPU copies/s/ (.*)//' \
				>"$dir/$end.tables"
	done
	for op in tag_send tag_send_sync am_send put get amo_fetch rndv_data; do
		grep -q "^| $op from " "$dir/client.tables" || { echo "no table of $op"; return 1; }
	done
	grep -q '1:dpdk:1' "$dir/client.tables" && diff "$dir/server.tables" "$dir/client.tables"
}

# --counters: each end prints its own, none that is 0, and they count what went over the lane.
counters_at_the_end() {
	perf_pair 1 -t tag_lat -n 1000 --counters || return 1
	grep -q '^weft-perf: counters' "$dir/client.err" &&
		! grep -qE '^  [a-z].* 0$' "$dir/client.err" || return 1
	awk '$1 == "dpdk:0.rx.messages" && $2 >= 1000 { found = 1 } END { exit !found }' \
		"$dir/client.err"
}

nothing_wrong() { [ "$(column wrong)" = 0 ]; }

flood_arrives() {
	perf_pair 1 -t tag_flood -s "$1" -n "$2" -v || return 1
	[ "$(column messages)" = "$2" ] && [ "$(column wrong)" = 0 ]
}

# whole TEST SIZES: over two lanes, with every byte (or the counter) compared; a line for each size,
# nothing wrong.
whole() {
	perf_pair 2 -t "$1" -s "$2" -n 150 -w 2 -f -v -V || return 1
	awk -F, -v sizes="$2" -v test="$1" \
		'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; n = split(sizes, s, ","); next }
		$c["iterations"] != 150 || $c["test"] != test { bad = 1 }
		$c["wrong"] != 0 || $c["overall_lat"] <= 0 { bad = 1 }
		END { exit bad || NR != n + 1 }' "$dir/client.out"
}

# figure TEST: the latency is of one message or operation, and the rate counts as many.
figure() {
	perf_pair 1 -t "$1" -n 500 -f -v || return 1
	awk -v l="$(column overall_lat)" -v r="$(column overall_mr)" \
		-v p50="$(column 50.0_percentile_lat)" \
		'BEGIN { p = l * r / 1e6; exit !(p > 0.99 && p < 1.01 && p50 > 0) }'
}

# am_way SIZE NAME: active messages of this size go this way.
am_way() {
	perf_pair 2 -t am_bw -s "$1" -n 100 -f -v || return 1
	[ "$(column protocol)" = "$2" ] || { echo "by $(column protocol)"; return 1; }
}

# What a get brings is counted by lane, and both carry a large one.
get_shares() {
	perf_pair 2 -t get_bw -s 1M -n 50 -f -v || return 1
	[ "$(column protocol)" = get/am ] || return 1
	[ "$(column lanes | tr ';' '\n' | grep -cE '^dpdk:[01]=([2-7][0-9])\.')" = 2 ] ||
		{ echo "shares: $(column lanes)"; return 1; }
}

# Every protocol of 64 bytes and of 20 kB is there with its times, one of them chosen, and a
# picture.
sweep() {
	local out=$dir/client.out

	perf_pair 2 --sweep -s 64,20k -n 20 -v --graph "$dir/sweep.svg" || return 1
	grep -q "^size,protocol,predicted_us,measured_us" "$out" || return 1
	grep -qE "^64,eager/short,[0-9.]+,[0-9.]+," "$out" || return 1
	grep -qE "^20480,multi-eager,[0-9.]+,[0-9.]+," "$out" || return 1
	grep -qE "^20480,rndv/[a-z]+,[0-9.]+,[0-9.]+," "$out" || return 1
	awk -F, 'NR > 1 { n[$1] += $8; if ($3 <= 0 || $4 <= 0 || $7 < 3) bad = 1 }
		END { exit bad || n[64] != 1 || n[20480] != 1 }' "$out" || return 1
	grep -q "<svg" "$dir/sweep.svg"
}

# At both ends, and the words of the counters.
last_lines() {
	local end losses="^sent again: dpdk:[01] [0-9]+ frames, dpdk:[01] [0-9]+"
	losses+="; dropped here: dpdk:[01] [0-9]+, dpdk:[01] [0-9]+$"
	perf_pair 2 -t tag_bw -s 64k -n 100 -f --counters || return 1
	for end in client server; do
		tail -n 1 "$dir/$end.out"
		tail -n 1 "$dir/$end.out" | grep -qE "$losses" || return 1
	done
}

check "-D is a deadline" deadline
check "-D is a deadline when the server stalls" deadline_of_a_stall
slow check "-R: the server sends" reverse
check "--json: objects that add up" json_lines 1
check "-P: several connections" several_connections
# @behaviour T17: the last lines contain the retransmissions of each lane
check "the last lines contain what was sent again and dropped, for each lane" last_lines
check "tag_lat: half round trips" ping_pong
check "CSV has ucx_perftest's columns first" ucx_columns
check "tag_lat: 0 bytes" perf_pair 1 -t tag_lat -s 0 -n 100 -f -V
check "tag_lat: all sizes over two lanes, every byte" perf_pair 2 -t tag_lat -s 1:4M -n 20 -w 2 -f \
	-V
check "tag_lat: odd sizes, every byte" perf_pair 2 -t tag_lat \
	-s 3,255,256,257,1500,8999,9001,65537,262143,262145,1000003 -n 20 -w 2 -f -V
check "tag_lat: unexpected, every byte" perf_pair 2 -t tag_lat -s 8,1k,64k,1M -n 50 -w 2 -f -V -U
check "tag_sync_lat: every byte" perf_pair 2 -t tag_sync_lat -s 0,8,4k,256k,2M -n 50 -w 2 -f -V
check "tag_bw: all sizes over two lanes, every byte" perf_pair 2 -t tag_bw -s 1:4M -n 100 -w 2 -f \
	-V -v
check "tag_bw: no message came wrong" nothing_wrong
slow check "tag_bw: unexpected, every byte" perf_pair 2 -t tag_bw -s 8,1k,64k,1M -n 200 -w 2 \
	-f -V -U
check "tag_bw: both lanes carry a large message" both_lanes_carry
check "tag_bibw: every byte" perf_pair 2 -t tag_bibw -s 8,1k,64k,1M -n 200 -w 2 -f -V
check "tag_bw: a window of one and of a thousand" perf_pair 1 -t tag_bw -s 64 -n 5000 -O 1000 -f -V
slow check "tag_bw: registered memory" perf_pair 2 -t tag_bw -s 64k,1M -n 100 -f -V -z
slow check "tag_bw: multi-eager is off" perf_pair 2 -t tag_bw -s 8k:512k -n 50 -f -V \
	-S MULTI_EAGER_LIMIT=0
slow check "a line per second" line_per_second
check "the table: size, protocol, shares, latency, bandwidth" table
check "the table as CSV" table_csv
check "several tests over one connection: a row for each test and size" several
# @behaviour T11
check "-k: one client after the other, and a third one gets the name of the served one" keeps
check "WEFT_PROTO_INFO: both ends print the same tables" same_tables
check "--counters: what went over the lane" counters_at_the_end
check "tag_flood: 64 KiB messages late and in reverse order" flood_arrives 64k 500
check "tag_flood: 8 B messages late and in reverse order" flood_arrives 8 20000
check "raw_lat" perf_pair 1 -t raw_lat -n 1000 -f -v
check "raw_bw" perf_pair 1 -t raw_bw -s 64k -n 1000 -f -v
check "am_lat: every byte" whole am_lat 0,1,255,8k,64k,1M
check "am_bw: every byte" whole am_bw 0,1,255,8k,64k,1M
check "am_bw: short ones at once" am_way 64 eager/short
slow check "am_bw: long ones by rendezvous" am_way 1M rndv/pull
slow check "am_bw: a window of a thousand, registered memory" perf_pair 2 -t am_bw -s 64,64k \
	-n 3000 \
	-O 1000 -f -V -z
check "put_lat: every byte" whole put_lat 1,8,9,8k,64k,1M
check "put_bw: every byte of every put" whole put_bw 1,8,9,8k,64k,1M
check "get_lat: every byte" whole get_lat 1,8,9,8k,64k,1M
check "get_bw: every byte" whole get_bw 1,8,9,8k,64k,1M
check "fadd_lat: what it returns, and the sum" whole fadd_lat 4,8
check "cswap_lat: what it returns, and the last value" whole cswap_lat 4,8
slow check "put_bw, registered memory" perf_pair 2 -t put_bw -s 64,1M -n 100 -f -V -z
slow check "get_bw, registered memory" perf_pair 2 -t get_bw -s 64,1M -n 100 -f -V -z
check "put_lat: half round trips" figure put_lat
check "get_lat: whole operations" figure get_lat
check "fadd_lat: whole operations" figure fadd_lat
check "get_bw: both lanes carry a large one" get_shares
check "--sweep: every protocol at every size, and a picture" sweep
tap_end
