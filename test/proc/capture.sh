#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# WEFT_CAPTURE, captures by command, the flight recorder: both processes of a weft-perf run write
# their frames, and tshark reads them.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

dump=$build/app/weft-dump
dissector=$build/app/weft.lua
command -v tshark >/dev/null || { echo "tshark is not installed"; exit 77; }

# fields FILTER FIELD...: of the frames of $file that pass the filter.
fields() {
	local filter=$1 args=() field
	shift
	for field; do args+=(-e "$field"); done
	tshark -r "$file" -Y "$filter" -T fields "${args[@]}" 2>/dev/null
}

both_write() {
	export WEFT_CAPTURE="$dir/cap-%p.pcapng"
	perf_pair 2 -t tag_bw -s 64k -n 50 -w 0 -f -v || return 1
	unset WEFT_CAPTURE
	[ "$(find "$dir" -name 'cap-*.pcapng' | wc -l)" = 2 ]
}

# Frames hold secrets and keys.
nobody_else_reads_them() {
	[ "$(stat -c %a "$dir"/cap-*.pcapng | sort -u)" = 600 ]
}

what_was_readable_is_made_private() {
	touch "$dir/old.pcapng"
	chmod 644 "$dir/old.pcapng"
	export WEFT_CAPTURE="$dir/old.pcapng"
	perf_pair 1 -t tag_lat -n 10 -w 0 || return 1
	unset WEFT_CAPTURE
	[ "$(stat -c %a "$dir/old.pcapng")" = 600 ]
}

# A file that its maker can read. To root alone others' files are writable here.
anothers_file_is_refused() {
	[ "$(id -u)" = 0 ] || return 0
	touch "$dir/others.pcapng"
	chown 65534 "$dir/others.pcapng"
	export WEFT_CAPTURE="$dir/others.pcapng"
	perf_pair 1 -t tag_lat -n 10 -w 0 || return 1
	unset WEFT_CAPTURE
	[ ! -s "$dir/others.pcapng" ] &&
		grep -h 'belongs to user 65534' "$dir/server.err" "$dir/client.err"
}

a_link_is_not_followed() {
	ln -s "$dir/elsewhere" "$dir/link.pcapng"
	export WEFT_CAPTURE="$dir/link.pcapng"
	perf_pair 1 -t tag_lat -n 10 -w 0 || return 1
	unset WEFT_CAPTURE
	[ ! -e "$dir/elsewhere" ] && grep -h 'is a symbolic link' "$dir/server.err" \
		"$dir/client.err"
}

reads_without_complaint() {
	for file in "$dir"/cap-*.pcapng; do
		# What is cut short or damaged tshark says on standard error, and exits with an
		# error.
		tshark -r "$file" -o ip.check_checksum:TRUE >/dev/null 2>"$dir/tshark.err" ||
			return 1
		! grep -qiE 'damaged|cut short|malformed' "$dir/tshark.err" || return 1
		[ -z "$(fields '_ws.malformed || ip.checksum.status == 0' frame.number)" ] ||
			return 1
	done
}

names_both_lanes() {
	for file in "$dir"/cap-*.pcapng; do
		[ "$(fields frame frame.interface_name | sort -u | wc -l)" = 2 ] || return 1
		fields frame frame.interface_name | grep -q '^dpdk:1 (net_memif1)$' || return 1
	done
}

tells_directions() {
	for file in "$dir"/cap-*.pcapng; do
		# The low two bits of the flags: 1 = received, 2 = sent.
		[ "$(fields frame frame.packet_flags_direction | sort -u | tr -d '\n')" = \
			0x000000010x00000002 ] || return 1
	done
}

# What one side sent, the other received: memif loses nothing, so the frames are the same, both
# ways. The very last ones may have come after their receiver closed.
both_ends_agree() {
	local files=("$dir"/cap-*.pcapng) sent got
	file=${files[0]} && sent=$(fields 'frame.packet_flags_direction == 2 && ip.len > 5000' \
		ip.len | wc -l)
	file=${files[1]} && got=$(fields 'frame.packet_flags_direction == 1 && ip.len > 5000' \
		ip.len | wc -l)
	echo "sent $sent, received $got"
	[ "$sent" = "$got" ] || return 1
	file=${files[1]} && sent=$(fields 'frame.packet_flags_direction == 2 && ip.len > 5000' \
		ip.len | wc -l)
	file=${files[0]} && got=$(fields 'frame.packet_flags_direction == 1 && ip.len > 5000' \
		ip.len | wc -l)
	echo "sent $sent, received $got"
	[ "$sent" = "$got" ]
}

# weft-dump finds the frames of one capture in the other, over both lanes and both ways. What was
# sent when the other end had closed did not come.
both_ends_are_compared() {
	"$dump" -j "$dir"/cap-*.pcapng >"$dir/both.json"
	python3 - "$dir/both.json" <<-'END'
		import json, sys
		report = json.load(open(sys.argv[1]))
		flows = [f for lane in report['lanes'] for f in lane]
		print(flows, report['captures'])
		ok = {f['from'] for f in flows} == {f['to'] for f in flows} and report['wrong'] == 0
		ok = ok and len({f['from'] for f in flows}) == 2
		ok = ok and len(flows) == 2 * len(report['lanes'])
		ok = ok and all(f['compared'] > 3 and f['lost'] < 20 and f['twice'] == 0 and
		                f['changed'] == 0 for f in flows)
		# One machine, one clock: what differs is the time until a frame is polled.
		sys.exit(not ok or any(abs(c['clock_us']) > 1e6 for c in report['captures']))
	END
}

times_are_of_day() {
	local now
	now=$(date +%s)
	for file in "$dir"/cap-*.pcapng; do
		fields 'frame.number == 1' frame.time_epoch |
			awk -v now="$now" '{ exit !($1 > now - 900 && $1 < now + 1) }' || return 1
	done
}

# weft-dump understands every frame and message of these kinds of traffic, checksums included.
every_frame_reads_as_it_should() {
	local test size kind
	for test in tag_lat,8,EAGER tag_sync_lat,64k,FRAG_SYNC tag_bw,64k,FRAG tag_bw,1M,PULL \
		am_bw,64k,AM_FRAG am_bw,1M,AM_RTS put_bw,64k,PUT \
		get_lat,64k,GET_DATA fadd_lat,8,AMO_REP; do
		IFS=, read -r test size kind <<<"$test"
		rm -f "$dir"/page-*
		export WEFT_CAPTURE="$dir/page-%p.pcapng"
		perf_pair 2 -t "$test" -s "$size" -n 4 -w 0 -f -v || return 1
		unset WEFT_CAPTURE
		for file in "$dir"/page-*.pcapng; do
			"$dump" "$file" >"$dir/page.txt" || {
				"$dump" -w "$file" | head -n 5
				return 1
			}
			grep -q "message ${kind,,}\$" "$dir/page.txt" || {
				echo "no $kind"
				cat "$dir/page.txt"
				return 1
			}
		done
	done
}

# One bit of one head changed: it is seen.
a_changed_frame_is_noticed() {
	local files=("$dir"/page-*.pcapng)
	python3 - "${files[0]}" "$dir/changed.pcapng" <<-'END'
		import re, sys
		data = bytearray(open(sys.argv[1], 'rb').read())
		data[re.search(rb'\x57\x66.\x07', data, re.DOTALL).start() + 3] = 0x77
		open(sys.argv[2], 'wb').write(data)
	END
	! "$dump" -w "$dir/changed.pcapng" >"$dir/page.txt" || return 1
	grep -qE 'WRONG: (the type of the frame is unknown|the CRC32C is wrong)' "$dir/page.txt"
}

# A ring of 256 KiB takes 28 frames: most are dropped. What the lane counts, sent and received, is
# in the file or among those that the file says it lacks, exactly.
what_is_dropped_is_counted_exactly() {
	local side
	new_pair 1
	export WEFT_CAPTURE="$dir/exact-%p.pcapng,ring=256k"
	start_server "$perf" --counters &&
		client "$perf" --counters -t tag_bw -s 64k -n 2000 -w 0 -f || return 1
	unset WEFT_CAPTURE
	server_code || return 1
	"$dump" -j "$dir"/exact-*.pcapng >"$dir/exact.json" 2>/dev/null
	for side in server client; do
		awk '/^ *dpdk:0\.[rt]x\.frames / { sum += $2 } END { print sum }' \
			"$dir/$side.err" "$dir/$side.out"
	done >"$dir/counted"
	python3 - "$dir/exact.json" "$dir/counted" <<-'END'
		import json, sys
		captures = json.load(open(sys.argv[1]))['captures']
		counted = sorted(int(line) for line in open(sys.argv[2]))
		print(captures, counted)
		lost = [c['lost_by_writer'] for c in captures]
		all_of = sorted(c['frames'] + c['lost_by_writer'] for c in captures)
		sys.exit(not (all_of == counted and min(lost) > 0))
	END
}

# Lanes without frames, beside one that has some: message records, in the same files.
shared_memory_is_on_the_same_time_line() {
	new_pair 1
	lanes="shm:host,mix;dpdk:0,mtu=9000"
	export WEFT_CAPTURE="$dir/mix-%p.pcapng"
	start_server "$perf" && client "$perf" -t tag_bw -s 8,1M -n 4 -w 0 -V -W 2 || return 1
	unset WEFT_CAPTURE
	server_code || return 1
	"$dump" -j "$dir"/mix-*.pcapng >"$dir/mix.json" || return 1
	"$dump" -m -j "$dir"/mix-*.pcapng >"$dir/mix.messages" || return 1
	python3 - "$dir/mix.json" "$dir/mix.messages" <<-'END' || return 1
		import json, sys
		report = json.load(open(sys.argv[1]))
		flows = [f for lane in report['lanes'] for f in lane]
		records = [f for f in flows if f['records']]
		lines = [json.loads(line) for line in open(sys.argv[2]) if line.startswith('{')]
		messages = [line for line in lines if 'message' in line]
		large = [m for m in messages if m['size'] == 1 << 20]
		print(flows, report['captures'], large)
		ok = len(records) == 2 and len(flows) > 2 and report['wrong'] == 0
		# Both ends' records of one lane, and which file has which end.
		ok = ok and all(f['from'] == f['to'] == 'shm:host' for f in records)
		ok = ok and all(f['from_file'] != f['to_file'] for f in records)
		ok = ok and sum(f['frames'] for f in records) > 10 and report['stray_pieces'] == 0
		# Every byte is on some lane, at some time.
		ok = ok and len(large) >= 4 and all(
			m['complete'] and m['took_us'] > 0 and
			sum(lane['bytes'] for lane in m['lanes']) == 1 << 20 for m in large)
		names = {lane['lane'] for m in messages for lane in m['lanes']}
		ok = ok and 'shm:host' in names
		sys.exit(not ok)
	END
	for file in "$dir"/mix-*.pcapng; do
		tshark -X "lua_script:$dissector" -r "$file" \
			-Y '_ws.malformed || weft.expert.wrong' \
			>"$dir/malformed" 2>/dev/null || return 1
		[ ! -s "$dir/malformed" ] || { head -n 5 "$dir/malformed"; return 1; }
	done
}

one_file_for_two_is_refused() {
	export WEFT_CAPTURE="$dir/one.pcapng"
	perf_pair 1 -t tag_lat -n 10 -w 0 || return 1
	unset WEFT_CAPTURE
	grep -h 'another capture is being written' "$dir/server.err" "$dir/client.err" |
		grep -q '%p' && "$dump" "$dir/one.pcapng"
}

# during COMMAND...: while a stream of 4k messages is on, with its server's process.
during() {
	local rc=0 prefix=weft-capture-$$
	new_pair 1
	eal_server+=(--file-prefix="$prefix")
	export WEFT_RECORDER_FILE="$dir/recorder-%n.pcapng"
	start_server "$perf" || return 1
	unset WEFT_RECORDER_FILE
	start_client -t tag_bw -s 4k -n 1000000000 -f || return 1
	"$@" || rc=$?
	kill -TERM "$(program_pid "$server_pid")"
	wait $client_pid
	server_code
	return $rc
}

# ask COMMAND...: the answers of the server's process, a line of JSON each.
ask() {
	python3 - "weft-capture-$$" "$@" <<'PYTHON'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("/var/run/dpdk/%s/dpdk_telemetry.v2" % sys.argv[1])
s.settimeout(60)
s.recv(65536)
for command in sys.argv[2:]:
    s.send(command.encode())
    print(s.recv(1 << 20).decode())
PYTHON
}

# Frames in the file, and those that it says were dropped, are those that the answer says.
it_is_started_and_stopped() {
	file=$dir/asked.pcapng
	ask "/weft/capture,start,$file,filter=udp and no such,snaplen=128" /weft/capture \
		"/weft/capture,start,$file,filter=greater 1000,snaplen=128" \
		| tee "$dir/answer"
	grep -q "filter 'udp and no such'" "$dir/answer" || return 1
	grep -q '"captures": *1' "$dir/answer" || return 1
	sleep 0.1
	ask "/weft/capture,filter,less 1000" >/dev/null
	sleep 0.5
	ask /weft/capture,stop /weft/capture,stop | tee "$dir/answer"
	grep -q 'no capture is running' "$dir/answer" || return 1
	tshark -r "$file" -T fields -e frame.len -e frame.cap_len -e frame.comment \
		>"$dir/frames" 2>/dev/null
	python3 - "$dir/answer" "$dir/frames" <<'PYTHON'
import json, sys
told = json.loads(open(sys.argv[1]).readline())["/weft/capture"]
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[2])]
print(told, len(rows), rows[:1])
lengths = [int(r[0]) for r in rows]
ok = [len(rows) == told["frames"], max(lengths) > 1000, min(lengths) < 1000,
      max(int(r[1]) for r in rows) <= 128,
      {r[2].split(", within")[0][:18] for r in rows} <= {"lane dpdk:0, path ", "lane dpdk:0"}]
print(ok)
sys.exit(not all(ok))
PYTHON
}

# The last frames, without a capture.
the_recorder_tells() {
	ask /weft/recorder | tee "$dir/answer"
	grep -q 'recorder-0.pcapng' "$dir/answer" || return 1
	tshark -r "$dir/recorder-0.pcapng" >"$dir/frames" 2>/dev/null || return 1
	[ "$(wc -l <"$dir/frames")" -gt 100 ]
}

it_is_started_and_stopped_and_recorded() {
	it_is_started_and_stopped && the_recorder_tells
}

check "both processes write their own file" both_write
# @behaviour S13: captures, which contain secrets and keys, are readable only by their owner
check "no other user reads them" nobody_else_reads_them
check "tshark reads them without complaint" reads_without_complaint
check "frames are of named lanes" names_both_lanes
check "frames have directions" tells_directions
check "both ends saw the same frames" both_ends_agree
check "both captures are compared, frame by frame" both_ends_are_compared
check "times are of day" times_are_of_day
# @behaviour Y13, Y20
check "every frame reads as it should" every_frame_reads_as_it_should
# @behaviour Y20
check "a changed frame is noticed" a_changed_frame_is_noticed
check "what a capture drops is counted exactly" what_is_dropped_is_counted_exactly
check "started, filtered, stopped while it runs; the flight recorder has the last frames" \
	during it_is_started_and_stopped_and_recorded
# @behaviour Y29
check "messages over shared memory are on the same time line" \
	shared_memory_is_on_the_same_time_line
check "two processes do not share a file" one_file_for_two_is_refused
# @behaviour S13
check "a file that others could read is made private" what_was_readable_is_made_private
# @behaviour S13
check "another user's file is refused" anothers_file_is_refused
# @behaviour S13
check "a symbolic link is not followed" a_link_is_not_followed
tap_end
