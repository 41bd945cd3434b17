#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-wire between two real processes: each has a memif port of its own to it, and the frames pass
# through links with faults.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

wire=$build/app/weft-wire
[ -x "$wire" ] || { echo "there is no weft-wire in this build"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }

prefix=weft-wire-$$
wire_pid=
bsize=2048
mtu=1500

# memif lanes take the memory between for true, and here bits flip.
export WEFT_CSUM=crc32c

head -c 3000017 /dev/urandom >"$dir/data"

tidy_wire() {
	[ -z "$wire_pid" ] || kill -KILL "$wire_pid" 2>/dev/null
	tidy
}
trap tidy_wire EXIT

# start_wire ARGS...: a bridge between two memif ports, until it bridges; its commands go to
# descriptor 7. The two ends of new_pair hang on it.
start_wire() {
	local end memif
	[ -z "$wire_pid" ] || kill -KILL "$wire_pid" # of a case that failed
	new_pair 0
	eal_wire=(--no-huge -m 256 --no-pci --file-prefix="$prefix")
	for end in 0 1; do
		memif="id=0,socket-abstract=no,socket=$dir/w$pair_number.$end,rsize=10,bsize=$bsize"
		eal_wire+=(--vdev="net_memif$end,role=server,$memif")
	done
	memif="net_memif0,role=client,id=0,socket-abstract=no,rsize=10,bsize=$bsize"
	eal_server+=(--vdev="$memif,socket=$dir/w$pair_number.0")
	eal_client+=(--vdev="$memif,socket=$dir/w$pair_number.1")
	lanes=dpdk:0,mtu=$mtu
	# Otherwise until_said could find the line of the case before, and a signal could reach the
	# shell that has not started the program yet.
	rm -f "$dir/commands" "$dir/wire.out"
	mkfifo "$dir/commands"
	# Without timeout: a signal shall be the program's.
	"$wire" "${eal_wire[@]}" -- -S 50 "$@" <"$dir/commands" >"$dir/wire.out" 2>"$dir/wire.err" &
	wire_pid=$!
	exec 7>"$dir/commands"
	until_said "$dir/wire.out" "^0 back  net_memif1 -> net_memif0: " $wire_pid ||
		{ cat "$dir/wire.err"; return 1; }
}

# end_wire CODE: by the command quit; its exit code.
end_wire() {
	local rc=0
	echo quit >&7
	exec 7>&-
	wait $wire_pid || rc=$?
	wire_pid=
	cat "$dir/wire.out" "$dir/wire.err"
	[ $rc = 0 ]
}

# counter DIRECTION NAME: of the last table.
counter() {
	awk -v dir="$1" -v name="$2" '
		$2 == dir { for (i = 6; i < NF; i++) if ($i == name) n = $(i + 1) }
		END { print n + 0 }' "$dir/wire.out"
}

# carry: a file from the client to the server.
carry() {
	start_server "$cat" -l || return 1
	client "$cat" -W 30 <"$dir/data" || return 1
	server_code || return 1
	cmp "$dir/data" "$dir/server.out"
}

faults_are_survived() {
	start_wire -s 3 -l loss=2%,dup=1%,reorder=3%:50us,corrupt=1%,delay=100us -b bursts=1%:5 ||
		return 1
	carry || return 1
	end_wire || return 1
	# The client's end is the second one: its data goes back.
	[ "$(counter back lost)" -gt 5 ] && [ "$(counter back duplicated)" -gt 2 ] &&
		[ "$(counter back corrupted)" -gt 2 ] &&
		[ "$(counter back lost_in_bursts)" -gt 0 ] &&
		[ "$(counter forth lost_in_bursts)" = 0 ] && [ "$(counter back rx)" -gt 2000 ]
}

# lines DIRECTION WORD: of the trace.
lines() {
	awk -v dir="$1" -v word="$2" '
		$3 == dir { for (i = 5; i <= NF; i++) if ($i == word) n++ }
		END { print n + 0 }' "$dir/trace"
}

# The trace has each frame that a counter has, and times of the run.
the_trace_has_each_frame() {
	local begin word
	begin=$(date +%s)
	start_wire -s 5 -t "$dir/trace" -b loss=2%,dup=1%,reorder=3%:50us,corrupt=1% || return 1
	carry || return 1
	end_wire || return 1
	head -n 5 "$dir/trace"
	for word in lost duplicated reordered corrupted; do
		[ "$(counter back $word)" -gt 2 ] || return 1
		[ "$(counter back $word)" = "$(lines back $word)" ] || return 1
	done
	[ "$(lines back delay)" -gt 2 ] || return 1
	grep -q ' forth ' "$dir/trace" && return 1
	awk -v begin="$begin" -v end="$(date +%s)" '
		$1 < begin || $1 > end + 1 || $1 < last || $2 != 0 || $4 < 14 { wrong++ }
		{ last = $1 }
		END { exit wrong || !NR }' "$dir/trace"
}

# Frames of an MTU of 9000 fit one buffer of the port, and none is cut to Ethernet's 1500.
jumbo_frames_pass() {
	local rc=0 bsize=9216 mtu=9000
	start_wire -m 9000 || return 1
	carry || rc=1
	end_wire || rc=1
	cat "$dir/client.err"
	[ $rc = 0 ] && ! grep -q "do not reach" "$dir/client.err" &&
		[ "$(counter back tx)" -gt 300 ] && [ "$(counter back tx)" -lt 1000 ]
}

# A queue is as long as it is said, and what goes beyond is dropped.
a_narrow_link_drops() {
	start_wire -b rate=200M,queue=40k || return 1
	carry || return 1
	end_wire || return 1
	[ "$(counter back queue_full)" -gt 0 ] && [ "$(counter forth queue_full)" = 0 ]
}

# A link that marks what waits: the receiver counts it, and the sender hears of it.
marks_are_counted_and_told() {
	start_wire -b rate=200M,queue=200k,ecn=10k || return 1
	export WEFT_CC=delay
	start_server "$perf" --counters || return 1
	client "$perf" --counters -t tag_bw -s 64k -D 1 -f || return 1
	unset WEFT_CC
	server_code || return 1
	end_wire || return 1
	[ "$(counter back marked)" -gt 0 ] && cat "$dir"/server.err "$dir"/client.err &&
		grep -qE 'rx\.marked +[1-9]' "$dir/server.err" &&
		grep -qE 'tx\.marked +[1-9]' "$dir/client.err"
}

ask() {
	python3 - "$prefix" "$@" <<'PYTHON'
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 20, 0))
s.connect("/var/run/dpdk/%s/dpdk_telemetry.v2" % sys.argv[1])
s.settimeout(20)
s.recv(65536)
for command in sys.argv[2:]:
    s.send(command.encode())
    print(s.recv(1 << 20).decode())
PYTHON
}

# told DIRECTION/COUNTER: by telemetry.
told() {
	ask /weft_wire/counters | grep -oE "\"$1\":[0-9]+" | grep -oE '[0-9]+$'
}

# Blackout by a command, its end by telemetry: the transfer stops and goes on.
a_blackout_in_the_middle() {
	local i rc=0
	start_wire -l rate=100M,queue=100k || return 1
	start_server "$cat" -l || return 1
	{ cat "$dir/data"; until_said "$dir/dark" yes; cat "$dir/data"; } | client "$cat" -W 30 &
	client_pid=$!
	rm -f "$dir/dark"
	for ((i = 0; i < 1200 && $(told back/rx) < 1000; i++)); do sleep 0.05; done
	echo "blackout=yes" >&7
	until_said "$dir/wire.out" "^0 forth .*blackout=yes" $wire_pid || return 1
	echo yes >"$dir/dark"
	for ((i = 0; i < 1200 && $(told back/blackout) < 3; i++)); do sleep 0.05; done
	ask /weft_wire/links "/weft_wire/set,0 blackout=no" "/weft_wire/set,7 loss=1%" \
		/weft_wire/links | tee "$dir/answers"
	wait $client_pid || rc=1
	server_code || rc=1
	end_wire || rc=1
	[ $rc = 0 ] && cmp <(cat "$dir/data" "$dir/data") "$dir/server.out" &&
		[ "$(counter back blackout)" -ge 3 ] &&
		grep -q '"0/back":"rate=100M,queue=100k,blackout=yes"' "$dir/answers" &&
		grep -q "\"error\":\"there is no pair '7'; the last one is 0\"" "$dir/answers" &&
		tail -n 1 "$dir/answers" | grep -q '"0/back":"rate=100M,queue=100k"'
}

# shrinks SIZE FRAMES: when so many frames have passed back.
shrinks() {
	local i
	for ((i = 0; i < 1200 && $(told back/rx) < $2; i++)); do sleep 0.02; done
	echo "mtu=$1" >&7
	until_said "$dir/wire.out" "^0 back  .*mtu=$1" $wire_pid
}

# A path that carries 1500, then 1400, 1300, and 1000, which is too little for a new connection.
# Each change comes after the one before was noticed, and data follows it, however slow the computer
# is.
a_path_that_becomes_narrow() {
	local rc=0
	start_wire -l rate=100M,queue=200k || return 1
	start_server "$cat" -l || return 1
	rm -f "$dir/more" "$dir/less" "$dir/last"
	{
		cat "$dir/data"
		until_said "$dir/more" yes
		cat "$dir/data"
		until_said "$dir/less" yes
		cat "$dir/data"
		until_said "$dir/last" yes
		cat "$dir/data"
	} | client "$cat" -W 30 &
	client_pid=$!
	shrinks 1400 300 || return 1
	echo yes >"$dir/more"
	until_said "$dir/client.err" "so 1414 are used" $client_pid || return 1
	shrinks 1300 300 || return 1
	echo yes >"$dir/less"
	until_said "$dir/client.err" "so 13[01][0-9] are used" $client_pid || return 1
	shrinks 1000 300 || return 1
	echo yes >"$dir/last"
	wait $client_pid || rc=1
	server_code || rc=1
	end_wire || rc=1
	[ $rc = 0 ] && cmp <(cat "$dir/data"{,,,}) "$dir/server.out" &&
		grep -q "of 1514 bytes do not reach .*, so 1414 are used" "$dir/client.err" &&
		grep -q "of 1414 bytes do not reach .*, so 13[01][0-9] are" "$dir/client.err" &&
		grep -q "so 10[01][0-9] are used: .* New connections need" "$dir/client.err"
}

commands_have_answers() {
	start_wire || return 1
	printf '%s\n' "0 forth loss=1%" "# nothing" "back delay=1us, mtu=1400" "loss=2" \
		"5 loss=1%" "0 forth" "show me" "quit" >&7
	exec 7>&-
	wait $wire_pid || return 1
	wire_pid=
	cat "$dir/wire.out" "$dir/wire.err"
	grep -q '^0 forth net_memif0 -> net_memif1: loss=1%$' "$dir/wire.out" &&
		grep -q '^0 back  net_memif1 -> net_memif0: delay=1us,mtu=1400$' "$dir/wire.out" &&
		grep -q "^weft-wire: loss takes a share of frames from 0 to 1, or in %, not '2'$" \
			"$dir/wire.err" &&
		grep -q "^weft-wire: there is no pair '5'; the last one is 0$" "$dir/wire.err" &&
		grep -q "^weft-wire: the change is missing, e.g. loss=5%$" "$dir/wire.err" &&
		grep -q "^weft-wire: unexpected text after the command: 'me'$" "$dir/wire.err"
}

# refused CODE SENTENCE ARGS...
refused() {
	local code=$1 words=$2 rc=0
	shift 2
	timeout -k 10 60 "$wire" "$@" </dev/null >"$dir/wire.out" 2>"$dir/wire.err" || rc=$?
	cat "$dir/wire.err"
	[ $rc = "$code" ] && grep -qF -- "$words" "$dir/wire.err"
}

a_signal_ends_it() {
	local rc=0
	start_wire || return 1
	kill -TERM $wire_pid
	wait $wire_pid || rc=$?
	wire_pid=
	exec 7>&-
	[ $rc = 143 ] && grep -q "^0 forth .* rx 0 tx 0$" "$dir/wire.out"
}

tidy_rings() {
	ip netns del "$prefix" 2>/dev/null
	tidy_wire
}

# rings: two veths in a namespace; the bridge has one end of each.
rings() {
	local i
	ip netns add "$prefix" 2>/dev/null || return 1
	trap tidy_rings EXIT
	ip netns exec "$prefix" sysctl -qw net.ipv6.conf.default.disable_ipv6=1 2>/dev/null
	for i in 0 1; do
		ip -n "$prefix" link add "near$i" type veth peer name "far$i" 2>/dev/null ||
			return 1
		ip -n "$prefix" link set "near$i" up || return 1
		ip -n "$prefix" link set "far$i" up || return 1
	done
}

# What net_af_packet's ring has lost is no loss of the link: each frame is either received or there.
losses_of_its_own_ring_are_counted() {
	local i packet=framecnt=64,framesz=2048,blocksz=4096 lost
	rm -f "$dir/commands" "$dir/wire.out"
	mkfifo "$dir/commands"
	ip netns exec "$prefix" "$wire" --no-huge -m 256 --no-pci --file-prefix="$prefix" \
		--vdev="net_af_packet0,iface=near0,$packet" \
		--vdev="net_af_packet1,iface=near1,$packet" -- -S 50 -t "$dir/trace" \
		<"$dir/commands" >"$dir/wire.out" 2>"$dir/wire.err" &
	wire_pid=$!
	exec 7>"$dir/commands"
	until_said "$dir/wire.out" "^0 back  net_af_packet1 -> net_af_packet0: " $wire_pid ||
		return 1
	kill -STOP $wire_pid
	ip netns exec "$prefix" python3 - <<'PYTHON' || return 1
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('far0', 0))
for _ in range(1000):
    s.send(bytes([0xff] * 6 + [2, 0, 0, 0, 0, 1, 0x88, 0xb5]) + bytes(100))
PYTHON
	kill -CONT $wire_pid
	for ((i = 0; i < 200 && $(counter forth rx) + $(counter forth ring_full) < 1000; i++)); do
		echo counters >&7
		sleep 0.05
	done
	end_wire || return 1
	lost=$(awk '$2 == 0 && $3 == "forth" && $4 == 0 && $5 == "ring_full" { n += $6 }
		END { print n + 0 }' "$dir/trace")
	echo "$lost of them are in the trace"
	[ "$(counter forth ring_full)" -gt 500 ] && [ "$(counter back ring_full)" = 0 ] &&
		[ $(($(counter forth rx) + $(counter forth ring_full))) = 1000 ] &&
		[ "$lost" = "$(counter forth ring_full)" ]
}

eal=(--no-huge -m 64 --no-pci)
one=("--vdev=net_memif0,role=server,socket-abstract=no,socket=$dir/one")

check "loss, bursts, duplicates, disorder and flipped bits are survived" faults_are_survived
check "the trace has each frame that a link drops or changes" the_trace_has_each_frame
check "a trace that cannot be written" refused 1 "/no/folder/trace: No such file" \
	--no-huge -m 256 --no-pci "${one[@]}" \
	--vdev=net_memif1,role=server,socket-abstract=no,socket="$dir/two" -- -t /no/folder/trace
check "frames of an MTU of 9000 pass over memif" jumbo_frames_pass
check "a memif buffer that is too small for the MTU: the remedy" refused 2 "give a larger bsize=" \
	"${eal[@]}" "${one[@]}" --vdev=net_memif1,role=server,socket-abstract=no,socket="$dir/two" \
	-- -m 9000
check "a narrow link with a short queue drops" a_narrow_link_drops
# @behaviour R15
check "a link marks: the receiver counts and reports it" marks_are_counted_and_told
check "a blackout by a command, its end by telemetry" a_blackout_in_the_middle
# @behaviour X20, R46
check "the path becomes narrow three times, at last below 1280" a_path_that_becomes_narrow
check "commands have answers, mistakes sentences" commands_have_answers
check "a signal ends it, with counters" a_signal_ends_it
if [ "$(id -u)" = 0 ] && command -v ip >/dev/null && rings; then
	check "what its own ring loses is counted, and in the trace" \
		losses_of_its_own_ring_are_counted
else
	skip "what its own ring loses" "no network namespace can be made here"
fi
check "one port is no pair" refused 2 "ports are bridged in pairs" "${eal[@]}" "${one[@]}" --
check "a port that is not there" refused 2 "there is no port 'eth7'" \
	"${eal[@]}" "${one[@]}" -- net_memif0 eth7
check "a port twice" refused 2 "port 'net_memif0' is named twice" \
	"${eal[@]}" "${one[@]}" -- net_memif0 net_memif0
check "a link that is none" refused 2 \
	"-b 'delay=5': delay takes a time up to 100s, in ns, us, ms or s, not '5'" \
	"${eal[@]}" -- -b delay=5
check "no memory for so many frames" refused 1 "give more to the EAL (-m), or fewer with --mbufs" \
	"${eal[@]}" "${one[@]}" --vdev=net_memif1,role=server,socket-abstract=no,socket="$dir/two" \
	-- -n 1M

tap_end
