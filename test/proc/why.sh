#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-info --why: two real processes, one of which is slowed down in a known way, and the sentence
# that names it. Other work on this machine adds findings of its own, so each case looks for the
# sentence about its own cause, and for that of no other case that the cause excludes.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# The client runs below a shell and timeout(1).
client_program() { program_pid "$(program_pid "$client_pid")"; }

# why: of the client. The file "line" has it in one line with single blanks.
why() {
	"$info" --why --pid "$(client_program)" >"$dir/why" 2>"$dir/why.err" || {
		cat "$dir/why" "$dir/why.err"
		return 1
	}
	cat "$dir/why"
	tr -s '\n ' ' ' <"$dir/why" >"$dir/line"
}

# share SENTENCE: the percent in front of it; 0 = it is not there.
share() {
	local n
	n=$(grep -oE "[0-9]+ %: $1" "$dir/line" | head -n 1)
	echo "${n%% *}" | grep . || echo 0
}

# finds LEAST SENTENCE: with at least this share.
finds() {
	local n
	n=$(share "$2")
	echo "'$2': $n %, at least $1 expected"
	[ "$n" -ge "$1" ]
}

# stream ARGS...: a stream that goes on until end.
stream() {
	new_pair 1
	start_server "$perf" || return 1
	start_client -t tag_bw -n 1000000000 -f "$@"
}

end() {
	kill -TERM "$(program_pid "$server_pid")"
	wait "$client_pid"
	server_code
	return 0
}

# A window of 16 kB holds nearly every frame back; one of the default does not.
small_window() {
	local rc=0
	stream -s 64k -S WINDOW=16k || return 1
	why && finds 30 "the configured window" || rc=1
	grep -qE "sends of up to 64 KiB that ended after their call: [1-9]" "$dir/why" || rc=1
	end
	return $rc
}

# The server is stopped: the client's sends wait for it, and its own CPU is not the reason.
stopped_peer() {
	local rc=0 sum server
	stream -s 1M || return 1
	server=$(program_pid "$server_pid")
	kill -STOP "$server"
	why || rc=1
	sum=$(share "announced messages waited")
	sum=$((sum + $(share "the limit of frames for a peer's receive ring")))
	sum=$((sum + $(share "the configured window")))
	sum=$((sum + $(share "a peer on dpdk:0 acknowledged nothing")))
	echo "the peer's share: $sum"
	[ $sum -ge 90 ] || rc=1
	kill -CONT "$server"
	end
	return $rc
}

# The same core for the client and for a loop of the shell.
cpu_hog() {
	local rc=0 core hog
	core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	taskset -c "$core" bash -c 'while :; do :; done' &
	hog=$!
	client_run=(taskset -c "$core")
	stream -s 8 || rc=1
	client_run=()
	[ $rc != 0 ] || { why && finds 20 "its thread was ready to run"; } || rc=1
	# The server polls, too, and so may others of this machine: one of them had most of it.
	grep -oE "\(run queue\), most of it process [0-9]+, [^ ]+" "$dir/line" >"$dir/other" || rc=1
	! grep -q " $(client_program)," "$dir/other" || rc=1
	[ "$(nproc)" = 1 ] || finds 20 "its placement: it may run on 1 of [0-9]+ CPUs only" || rc=1
	kill $hog
	end
	return $rc
}

# The server posts each receive after its message has come.
unexpected_messages() {
	local rc=0
	stream -s 64 -U || return 1
	server_why() { "$info" --why --pid "$(program_pid "$server_pid")"; }
	server_why >"$dir/why" || rc=1
	cat "$dir/why"
	tr -s '\n ' ' ' <"$dir/why" >"$dir/line"
	finds 50 "messages came before their receive was posted" || rc=1
	end
	return $rc
}

# The same, and a peer may send two messages unrequested: nearly all are announced.
little_credit() {
	local rc=0
	WEFT_EAGER_CREDIT=4k stream -s 2k -U || return 1
	why && finds 20 "[0-9]+ sends were announced for want of credit" || rc=1
	end
	return $rc
}

# wire_pair LINK LANES: a pair whose port dpdk:1 goes through a weft-wire with this link. Sets
# wire_pid; commands for the weft-wire go to descriptor 7.
wire_pair() {
	local memif
	new_pair 1
	memif="role=server,id=0,socket-abstract=no,rsize=10,bsize=9216,socket=$dir/w$pair_number"
	rm -f "$dir/commands"
	mkfifo "$dir/commands"
	"$build/app/weft-wire" --no-huge -m 256 --no-pci --file-prefix="why-wire-$$" \
		--vdev="net_memif0,$memif.0" --vdev="net_memif1,$memif.1" -- -m 9000 -l "$1" \
		<"$dir/commands" >"$dir/wire.out" 2>"$dir/wire.err" &
	wire_pid=$!
	exec 7>"$dir/commands"
	until_said "$dir/wire.out" "^0 back  net_memif1 -> net_memif0: " $wire_pid || {
		cat "$dir/wire.err"
		return 1
	}
	memif="net_memif1,role=client,id=0,socket-abstract=no,rsize=10,bsize=9216"
	eal_server+=(--vdev="$memif,socket=$dir/w$pair_number.0")
	eal_client+=(--vdev="$memif,socket=$dir/w$pair_number.1")
	lanes=$2
}

end_wire() {
	exec 7>&-
	kill "$wire_pid"
	wait "$wire_pid"
}

# Two lanes, one of them through weft-wire, which delays each frame by 50 ms:
# time slices of busy machines are shorter.
slow_rail() {
	local rc=0
	wire_pair delay=50ms "dpdk:0,mtu=9000;dpdk:1,mtu=9000" || return 1
	start_server "$perf" || rc=1
	[ $rc != 0 ] || start_client -t tag_bw -n 1000000000 -f -s 4M || rc=1
	sleep 1
	# Three programs poll: on two cores each waits at times, also for most of a measurement.
	for _ in 1 2 3 4 5; do
		why && finds 5 "dpdk:1 is a slow rail: a round trip takes [0-9]+ us there" && break
	done || rc=1
	[ "$(share "dpdk:0 is a slow rail")" = 0 ] || rc=1
	end
	end_wire
	return $rc
}

# The path loses everything: no receive, no credit and no CPU is the reason.
dead_path() {
	local rc=0
	wire_pair clear "dpdk:1,mtu=9000" || return 1
	start_server "$perf" || rc=1
	[ $rc != 0 ] || start_client -t tag_bw -n 1000000000 -f -s 64k || rc=1
	sleep 0.5
	why && [ "$(share "dpdk:1 sends nothing new")" = 0 ] || rc=1
	echo "blackout=yes" >&7
	sleep 1
	why && finds 95 "dpdk:1 sends nothing new" || rc=1
	echo "blackout=no" >&7
	end
	end_wire
	return $rc
}

# Connected, and not used: the bytes that weft-cat is to send do not come.
nothing_to_send() {
	local rc=0 free
	new_pair 1
	mkfifo "$dir/input"
	server_out=/dev/null
	start_server "$cat" -l -d || return 1
	server_out=
	exec 8<>"$dir/input"
	client "$cat" -s <"$dir/input" 8>&- &
	client_pid=$!
	head -c 100000 /dev/zero >&8
	until_alive || rc=1
	why || rc=1
	free=$(awk '$1 ~ /^dpdk:0/ { print $NF }' "$dir/why")
	echo "nothing to send: $free %"
	[ "${free:-0}" -ge 90 ] || rc=1
	[ "$(share "the configured window")" = 0 ] || rc=1
	exec 8>&-
	rm "$dir/input"
	kill "$(client_program)"
	wait $client_pid
	kill "$(program_pid "$server_pid")"
	server_code
	return $rc
}

# until_alive: the client's process answers, and has an endpoint.
until_alive() {
	local i
	for ((i = 0; i < 100; i++)); do
		"$info" --show endpoints --pid "$(client_program)" 2>/dev/null |
			grep -q ": up, [1-9]" && return 0
		sleep 0.1
	done
	return 1
}

# The user's threshold is far below the model's, and one at the model's is no finding.
wrong_threshold() {
	local rc=0
	stream -s 16k -S RNDV_THRESH=64 || return 1
	why && finds 90 "WEFT_RNDV_THRESH=64 makes sends of 16384 bytes go by rndv/[a-z]+, " || rc=1
	end
	[ $rc = 0 ] && stream -s 16k -S RNDV_THRESH=model || return 1
	why && [ "$(share "WEFT_RNDV_THRESH")" = 0 ] || rc=1
	end
	return $rc
}

# Two processes that sleep. The client's is never woken by its port: each sleep lasts until a timer.
lost_wake_up() {
	local rc=0
	new_pair 1
	start_server "$perf" || return 1
	client_run=(env LD_PRELOAD="$build/test/proc/libproc_deaf_port.so")
	start_client -t tag_lat -s 8 -n 1000000000 --sleep || rc=1
	client_run=()
	[ $rc != 0 ] || {
		why && finds 30 "frames came, and no port woke the sleeping program"
	} || rc=1
	end
	[ $rc = 0 ] || return 1
	new_pair 1
	start_server "$perf" && start_client -t tag_lat -s 8 -n 1000000000 --sleep || return 1
	why && [ "$(share "frames came, and no port woke")" = 0 ] || rc=1
	end
	return $rc
}

# The server is stopped for 0.3 s of each second: its own acknowledgements report this.
peer_without_cpu() {
	local rc=0 i server stops
	stream -s 64k || return 1
	server=$(program_pid "$server_pid")
	for ((i = 0; i < 100; i++)); do
		kill -STOP "$server" || break
		sleep 0.3
		kill -CONT "$server"
		sleep 0.7
	done &
	stops=$!
	why && finds 20 "peers on dpdk:0 did not poll" || rc=1
	kill $stops
	kill -CONT "$server"
	end
	return $rc
}

# A sysfs of the test's: a known counter of its device grows, and so does an unknown one.
roce_counters() {
	local rc=0 at="$dir/class/infiniband/mlx5_0/ports/1/hw_counters" writer
	mkdir -p "$at"
	echo 5 >"$at/rnr_nak_retry_err"
	(for ((i = 10; i < 2000; i += 10)); do
		echo $i >"$at/new" && mv "$at/new" "$at/out_of_sequence"
		echo $i >"$at/lifespan"
		sleep 0.1
	done) &
	writer=$!
	stream -s 64k || rc=1
	# shellcheck disable=SC2016
	[ $rc != 0 ] || unshare -m bash -c \
		'mount --bind "$1" /sys/class && exec "$2" --why --pid "$3"' - \
		"$dir/class" "$info" "$(client_program)" >"$dir/why" || rc=1
	cat "$dir/why"
	grep -qE "^RoCE device mlx5_0, port 1, .*: [1-9][0-9]* packets out of sequence$" \
		"$dir/why" || rc=1
	kill $writer
	end
	return $rc
}

# ticks SHARE: the test's /proc/stat. Steal grows by this percent of the time, idle by the rest.
# All writes have the same length, so a reader finds a whole line.
ticks() {
	local from=${EPOCHREALTIME/[.,]/} cpus us
	cpus=$(getconf _NPROCESSORS_ONLN)
	while :; do
		us=$(((${EPOCHREALTIME/[.,]/} - from) * cpus))
		printf 'cpu  500 0 500 %012d 0 0 0 %012d 0 0\n' $((us * (100 - $1) / 1000000)) \
			$((700000 + us * $1 / 1000000)) 1<>"$dir/stat"
		sleep 0.02
	done
}

# steal LEAST MOST SHARE: the percent that is printed while the hypervisor has the CPUs for this
# share of the time. It had them for hours before.
steal() {
	local rc=0 n writer
	ticks "$3" &
	writer=$!
	until_said "$dir/stat" "^cpu  500 0 500 " || rc=1
	# shellcheck disable=SC2016
	unshare -m bash -c 'mount --bind "$1" /proc/stat && exec "$2" --why --pid "$3"' - \
		"$dir/stat" "$info" "$(client_program)" >"$dir/why" || rc=1
	kill $writer
	cat "$dir/why"
	tr -s '\n ' ' ' <"$dir/why" >"$dir/line"
	n=$(share "the hypervisor ran other machines on this one's CPUs .steal.")
	echo "steal: $n %, $1 to $2 expected"
	[ $rc = 0 ] && [ "$n" -ge "$1" ] && [ "$n" -le "$2" ]
}

other_machines() {
	local rc=0
	stream -s 64k || return 1
	# The file stands still while its writer waits for a core.
	for _ in 1 2 3 4 5; do
		steal 30 50 40 && break
	done && steal 0 0 0 || rc=1
	end
	return $rc
}

no_process() {
	! "$info" --why --pid $$ >"$dir/why" 2>"$dir/why.err" &&
		sentence "$dir/why.err" "no process of that id responds"
}

# @behaviour T47: `weft-info --why` names what limits a running process
check "a small window is named, and latencies are printed" small_window
# @behaviour T47
check "a stopped peer is named" stopped_peer
if command -v taskset >/dev/null; then
	# @behaviour T47
	check "another process on the CPU is named" cpu_hog
else
	skip "another process on the CPU is named" "taskset(1) is not installed (util-linux)"
fi
# @behaviour T47
check "messages without a receive are named" unexpected_messages
# @behaviour T47
check "sends without credit have their share" little_credit
# @behaviour T47
check "a threshold that the model would place elsewhere is named" wrong_threshold
# @behaviour T47
slow check "a port that wakes no sleeping program is named" lost_wake_up
# @behaviour T47
check "a slow rail is named" slow_rail
# @behaviour T47
slow check "a path that loses everything is named" dead_path
# @behaviour T47
check "a process without work has nothing to send" nothing_to_send
# @behaviour T47
slow check "a peer that did not poll is named" peer_without_cpu
if unshare -m true 2>/dev/null; then
	# @behaviour T47
	check "a hypervisor that runs other machines is named" other_machines
	# @behaviour T47
	check "counters of RoCE devices that grow are named" roce_counters
else
	skip "a hypervisor that runs other machines is named" "mounts need root"
	skip "counters of RoCE devices that grow are named" "mounts need root"
fi
check "a process that does not answer is an error" no_process
tap_end
