#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Sealed lanes (doc/sealing.md) between real processes: over memif, and between network namespaces
# over packet sockets and UDP sockets. Every byte of the messages is compared. A reader of its own
# (unseal.py) opens all frames of a capture.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

"$info" -v | grep -q '^sealed frames.*libipsec' || { echo "this build cannot seal"; exit 77; }
here=$(dirname "$0")
head -c 32 /dev/urandom >"$dir/key"
head -c 32 /dev/urandom >"$dir/other"
chmod 600 "$dir/key" "$dir/other"
link rail0 9000 10.98.1 && link rail1 9000 10.98.2 || exit 1

packet="blocksz=16384,framesz=16384,framecnt=256"
memif_pair() { new_pair "$1"; }
packet_pair() {
	free_port
	eal_server=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=rail0,$packet")
	eal_client=("${eal_server[@]}")
	lanes=dpdk:0
}
udp_pair() {
	free_port
	eal_server=()
	eal_client=()
	lanes=udp:rail0
}

# both KIND SETTINGS ARGS...: a server, and a client to its end, both with these settings.
both() {
	local kind=$1 setting rc=0
	for setting in $2; do export "WEFT_${setting?}"; done
	shift 2
	"${kind}_pair" 1
	start_server "$perf" || rc=1
	[ $rc != 0 ] || client "$perf" "$@" || rc=$?
	[ $rc != 0 ] || server_code || rc=$?
	unset WEFT_JOB_KEY WEFT_SEAL WEFT_SEAL_DH WEFT_CAPTURE WEFT_KEYLOG WEFT_SEAL_REKEY
	return $rc
}

# sealed_run KIND SETTINGS: messages of all protocols; the counters name no dropped frame.
sealed_run() {
	both "$1" "JOB_KEY=$dir/key $2" -t tag_bw,tag_lat,am_bw -s 8,5000,300k -n 200 -V \
		--counters || return 1
	! grep -E 'drop\.(seal|unsealed)[a-z_]* +[1-9]' "$dir/client.err"
}

# opens KIND SETTINGS: the reader opens every frame of the client's capture.
opens() {
	rm -f "$dir/frames.pcapng"
	both "$1" "JOB_KEY=$dir/key SEAL_DH=n CAPTURE=$dir/frames.pcapng $2" -t tag_bw,tag_lat \
		-s 8,5000,300k -n 50 -V || return 1
	python3 "$here/unseal.py" "$dir/frames.pcapng" "$dir/key"
}

# rail_returns: two rails of an idle endpoint, of which one is down for a while. The reader opens
# all frames: further lanes, and the lane that is back, have keys that follow from the first lane's.
rail_returns() {
	local rc=0
	udp_pair
	lanes="udp:rail0;udp:rail1"
	rm -f "$dir/frames.pcapng" "$dir/slow"
	mkfifo "$dir/slow"
	export WEFT_JOB_KEY=$dir/key WEFT_SEAL_DH=n
	start_server "$cat" -l || return 1
	: >"$dir/client.err"
	WEFT_CAPTURE=$dir/frames.pcapng client "$cat" <"$dir/slow" &
	client_pid=$!
	exec 9>"$dir/slow"
	unset WEFT_JOB_KEY WEFT_SEAL_DH
	echo first >&9
	until_said "$dir/server.out" first $client_pid || rc=1
	ip -n "${ns[0]}" link set rail1 down
	until_said "$dir/client.err" "udp:rail1 .*link lost" $client_pid || rc=1
	sleep 2 # the lane is given up
	ip -n "${ns[0]}" link set rail1 up
	until_said "$dir/client.err" "lane 1 .* is back" $client_pid || rc=1
	echo second >&9
	exec 9>&-
	wait $client_pid || rc=1
	server_code || rc=1
	cat "$dir/client.err"
	grep -q second "$dir/server.out" && [ $rc = 0 ] || return 1
	python3 "$here/unseal.py" "$dir/frames.pcapng" "$dir/key" | tee "$dir/opened" || return 1
	grep -E '^exchange 2: [12], exchange 3: [2-9]' "$dir/opened"
}

# dumped ARGS...: weft-dump of the client's capture, with the code that it ends with.
dumped() { "$build/app/weft-dump" "$@" "$dir/frames.pcapng" >"$dir/dump" 2>&1; }

# frame_counts: how many frames and messages of each kind weft-dump has found.
frame_counts() { grep -E '^ +[0-9]+ (frame|message|wireup) ' "$dir/dump"; }

# change_a_byte: one bit of the body of a long sealed frame in the capture differs.
change_a_byte() {
	PYTHONPATH=$here python3 - "$dir/frames.pcapng" <<-'END'
		import sys
		from pcapng_edit import Capture
		c = Capture(sys.argv[1])
		r = [r for r in c.records if len(r.data) > 4000 and r.data[42:44] == b'Wf'][3]
		r.data = r.data[:2000] + bytes([r.data[2000] ^ 1]) + r.data[2001:]
		c.write(sys.argv[1], closed=True)
	END
}

# slices: what --slice writes of sealed frames is sealed, and the key log opens it. Its frames are
# those of one message, of the lane, or of an interval.
slices() {
	local key=(--keylog "$dir/keys") whole slice=$dir/slice.pcapng dump=$build/app/weft-dump
	frames_of() { sed -n 's/^ *\([0-9]*\) frame DATA$/\1/p' "$dir/dump"; }
	dumped "${key[@]}" || return 1
	whole=$(frames_of)
	dumped "${key[@]}" --message 60 --slice "$slice" || { cat "$dir/dump"; return 1; }
	"$dump" "${key[@]}" "$slice" >"$dir/dump" || { cat "$dir/dump"; return 1; }
	echo "$(frames_of) of $whole frames"
	[ "$(frames_of)" -ge 1 ] && [ "$(frames_of)" -lt "$whole" ] || return 1
	! grep 'are sealed' "$dir/dump" || return 1
	"$dump" "$slice" >"$dir/dump" || return 1
	grep 'are sealed, and only their headers are known' "$dir/dump" || return 1
	dumped "${key[@]}" --lane "$lanes" --slice "$slice" || { cat "$dir/dump"; return 1; }
	"$dump" "${key[@]}" "$slice" >"$dir/dump" || { cat "$dir/dump"; return 1; }
	[ "$(frames_of)" = "$whole" ] || { cat "$dir/dump"; return 1; }
	dumped "${key[@]}" --time 0.01-0.02 --slice "$slice" || { cat "$dir/dump"; return 1; }
	"$dump" "${key[@]}" -w "$slice" >"$dir/dump" || { cat "$dir/dump"; return 1; }
}

# decrypted: with the key log, --decrypt writes what weft-dump and Wireshark read without it. One
# message of it needs two passes over the capture, and so over the changes of the keys.
decrypted() {
	local key=(--keylog "$dir/keys" --decrypt) plain=$dir/plain.pcapng dump=$build/app/weft-dump
	local tags lua=lua_script:$build/app/weft.lua
	dumped "${key[@]}" --slice "$plain" || { cat "$dir/dump"; return 1; }
	"$dump" "$plain" >"$dir/dump" || { cat "$dir/dump"; return 1; }
	frame_counts | diff "$dir/sealed.counts" - || return 1
	[ "$(stat -c %a "$plain")" = 600 ] || return 1
	dumped "${key[@]}" --message 60 --slice "$plain" || { cat "$dir/dump"; return 1; }
	! grep 'no key opens' "$dir/dump" || return 1
	"$dump" "$plain" >"$dir/dump" || { cat "$dir/dump"; return 1; }
	[ "$(frames_of)" -ge 1 ] && ! grep 'are sealed' "$dir/dump" || return 1
	dumped --keylog "$dir/keys" --html "$dir/report.html" || { cat "$dir/dump"; return 1; }
	dumped --decrypt --slice "$plain" && return 1
	grep 'decrypt needs --slice FILE and --keylog FILE' "$dir/dump" || return 1
	command -v tshark >/dev/null || return 0
	dumped "${key[@]}" --slice "$plain" || { cat "$dir/dump"; return 1; }
	tags=$(tshark -X "$lua" -r "$plain" -Y weft.eager.tag 2>/dev/null | wc -l)
	echo "tshark finds $tags frames with an eager message"
	[ "$tags" -ge 50 ] || return 1
	! tshark -X "$lua" -r "$plain" -Y 'weft.expert.wrong || weft.flags.sealed == 1' \
		2>/dev/null | grep .
}

# key_log KIND SETTINGS: a capture of a lane with X25519. With the key log weft-dump finds the same
# messages as in a plain capture; without it, headers only. A changed byte is found.
key_log() {
	local job="JOB_KEY=$dir/key KEYLOG=$dir/keys CAPTURE=$dir/frames.pcapng"
	rm -f "$dir/frames.pcapng" "$dir/keys"
	both "$1" "$job $2" -t tag_bw,tag_lat -s 8,5000,300k -n 50 -V || return 1
	grep -q 'a reader of this file can read all messages' "$dir/client.err" || return 1
	[ "$(stat -c %a "$dir/keys")" = 600 ] || return 1
	dumped --keylog "$dir/keys" || { cat "$dir/dump"; return 1; }
	frame_counts >"$dir/sealed.counts"
	cat "$dir/sealed.counts"
	! grep 'are sealed' "$dir/dump" || return 1
	grep -qE ' message eager$' "$dir/sealed.counts" &&
		grep -qE ' message rts$' "$dir/sealed.counts" &&
		grep -q ' frame PROBE$' "$dir/sealed.counts" || return 1
	dumped --keylog "$dir/keys" -m || return 1
	[ "$(grep -c ' 307200 bytes ' "$dir/dump")" -ge 50 ] || { tail "$dir/dump"; return 1; }
	dumped || { cat "$dir/dump"; return 1; }
	grep 'are sealed, and only their headers are known' "$dir/dump" || return 1
	! grep -E ' message ' "$dir/dump" || return 1
	slices || return 1
	decrypted || return 1
	change_a_byte || return 1
	dumped --keylog "$dir/keys" -w && { echo "a changed frame was not found"; return 1; }
	grep 'the tag of the sealed frame is wrong' "$dir/dump"
}

# ends SERVER CLIENT REASON REASON: two ends whose settings differ. The client fails, and each log
# has its reason.
ends() {
	local rc=0
	new_pair 1
	export WEFT_CONNECT_TIMEOUT=3s
	env_server=$1
	eval "export $env_server"
	start_server "$perf" || return 1
	unset WEFT_JOB_KEY WEFT_SEAL
	eval "export $2"
	client "$perf" -t tag_lat -s 8 -n 10 || rc=$?
	unset WEFT_JOB_KEY WEFT_SEAL WEFT_CONNECT_TIMEOUT
	kill $server_pid
	server_code
	echo "exit code $rc"
	cat "$dir/client.err" "$dir/server.err"
	[ $rc = 3 ] || [ $rc = 1 ] || return 1
	grep -q "$3" "$dir/server.err" && grep -q "$4" "$dir/client.err"
}

key_for_others() {
	local rc=0
	cp "$dir/key" "$dir/open"
	chmod 644 "$dir/open"
	WEFT_JOB_KEY=$dir/open WEFT_LANES=shm timeout 10 "$perf" 2>"$dir/client.err" || rc=$?
	cat "$dir/client.err"
	[ $rc != 0 ] && grep -q 'other users may use it (mode 0644): chmod 600' "$dir/client.err"
}

for mode in encrypt auth; do
	check "memif, $mode" sealed_run memif "SEAL=$mode"
	check "packet sockets, $mode" sealed_run packet "SEAL=$mode"
	check "UDP sockets, $mode" sealed_run udp "SEAL=$mode"
done
if python3 -c 'import cryptography' 2>/dev/null; then
	check "another reader opens all frames of packet sockets" opens packet SEAL=encrypt
	slow check "another reader opens all frames of UDP sockets, auth" opens udp SEAL=auth
	# @behaviour Y86
	check "further lanes, and one that is back, have keys of the first one" rail_returns
fi
check "weft-dump opens a capture with the key log" key_log packet SEAL=encrypt
slow check "weft-dump opens a capture over changes of the keys" key_log udp \
	"SEAL=auth SEAL_REKEY=100ms"
check "another key is refused" ends "WEFT_JOB_KEY=$dir/key" "WEFT_JOB_KEY=$dir/other" \
	"does not have this job key: give both the same WEFT_JOB_KEY" \
	"does not have this job key: give both the same WEFT_JOB_KEY"
check "a peer without a key is refused" ends "WEFT_JOB_KEY=$dir/key" "WEFT_SEAL=off" \
	"it has no job key, and this program has one" "this program has no job key, and it has one"
check "another mode is refused" ends "WEFT_JOB_KEY=$dir/key" \
	"WEFT_JOB_KEY=$dir/key WEFT_SEAL=auth" "the peer has another mode" \
	"do not seal their frames alike"
check "a key that others can read is refused" key_for_others
tap_end
