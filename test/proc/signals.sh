#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each program ends soon after SIGINT, SIGTERM and SIGHUP, in each state, with the exit code of its
# manual. A supervisor's grace and a user's patience are short.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

export WEFT_LANES=shm
limit_ms=200

# ends SIGNAL CODE TEXT PROGRAM...: once it has written TEXT. The best of three tries
# counts: others may have the processors.
ends() {
	local signal=$1 code=$2 text=$3 pid begin ms best=99999 rc try
	shift 3
	for try in 1 2 3; do
		rc=0
		: >"$dir/err" # of the program before
		"$@" <"${input:-/dev/zero}" >"$dir/err" 2>&1 &
		pid=$!
		until_said "$dir/err" "$text" $pid || { cat "$dir/err"; kill -9 $pid; return 1; }
		sleep 0.3
		begin=$(date +%s%N)
		kill -s "$signal" $pid
		wait $pid || rc=$?
		ms=$((($(date +%s%N) - begin) / 1000000))
		echo "try $try: exit code $rc after $ms ms"
		[ $rc = "$code" ] || { cat "$dir/err"; return 1; }
		[ $ms -ge $best ] || best=$ms
		[ $best -gt $limit_ms ] || return 0
	done
	return 1
}

free_port() { port=$((20000 + RANDOM % 12000)); }

for signal in INT:2 TERM:15 HUP:1; do
	name=${signal%:*}
	code=$((128 + ${signal#*:}))
	free_port
	# @behaviour X25: SIGINT, SIGTERM, SIGHUP to a program that waits for its peer: it ends
	# within 0.2 s
	check "weft-cat that waits for a client: SIG$name" \
		ends "$name" $code "waiting for a client" "$cat" -l -p $port
	free_port
	# @behaviour X25
	check "weft-perf that waits for a client: SIG$name" \
		ends "$name" $code "waiting for a client" "$perf" -p $port
	check "weft-switch that serves: SIG$name" ends "$name" 0 "ports at" \
		"$build/app/weft-switch" --no-huge -m 64 --no-pci --no-shconf -- \
		-p "$dir/switch" -n 4 none
	input=/dev/null
	check "weft-wire that bridges: SIG$name" ends "$name" $code "net_ring1: clear" \
		"$build/app/weft-wire" --no-huge -m 128 --no-pci --no-shconf \
		--vdev=net_ring0 --vdev=net_ring1 -- -S 100
	input=
	free_port
	if "$info" --help | grep -q -- --listen && ldd "$info" | grep -q microhttpd; then
		check "weft-info --metrics --listen: SIG$name" ends "$name" $code "metrics at" \
			"$info" --metrics --listen $port
	fi
done

# A program that looks for its server prints nothing, so its start is waited for by time.
looks_for_a_server() {
	local signal=$1 code=$2 pid begin ms rc=0
	shift 2
	"$@" </dev/zero >"$dir/out" 2>"$dir/err" &
	pid=$!
	sleep 3
	begin=$(date +%s%N)
	kill -s "$signal" $pid
	wait $pid || rc=$?
	ms=$((($(date +%s%N) - begin) / 1000000))
	cat "$dir/err"
	echo "exit code $rc after $ms ms"
	[ $rc = "$code" ] && [ $ms -le $((5 * limit_ms)) ] && grep -q interrupted "$dir/err"
}
free_port
# @behaviour X25
check "weft-cat that looks for its server" \
	looks_for_a_server TERM 143 "$cat" -W 60 -p $port 127.0.0.1
# @behaviour X25
check "weft-perf that looks for its server" \
	looks_for_a_server INT 130 "$perf" -W 60 -p $port 127.0.0.1
tap_end
