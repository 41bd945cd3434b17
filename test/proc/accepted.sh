#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A server replaces the error callback and the user data of the endpoints that accept_cb reports
# (weft_ep_modify). Of three clients one closes, one is killed, and one stays until it is killed,
# too: the replaced callback runs for each, at its own time.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

accepted=$build/test/proc/proc_accepted
[ -x "$accepted" ] || { echo "there is no proc_accepted in this build"; exit 77; }
export WEFT_CONNECT_TIMEOUT=20s WEFT_PEER_TIMEOUT=4s WEFT_RECORDER=off
number=0
pids=()

# serve COUNT: a server for COUNT clients, which has written its address.
serve() {
	number=$((number + 1))
	address=$dir/address.$number
	: >"$dir/server.out"
	timeout -k 10 100 "$accepted" server "$address" "$1" >"$dir/server.out" \
		2>"$dir/server.err" &
	server_pid=$!
	until_exists "$address" $server_pid
}

# visit stay|close: a client in the background, whose callback is replaced at the server.
visit() {
	"$accepted" client "$address" "$1" 2>>"$dir/client.err" &
	pids+=($!)
	until_said "$dir/server.out" "^ready $!\$" $server_pid
}

# ended PID REASON: the callback of this client has run, for this reason.
ended() { until_said "$dir/server.out" "^ended $1: -[0-9]+: .*($2)" $server_pid; }

# no_more PID...: no callback of these clients has run.
no_more() {
	local pid
	for pid in "$@"; do
		! grep "^ended $pid:" "$dir/server.out" || return 1
	done
}

# each_in_turn LANES REASON: REASON is that of a killed peer.
each_in_turn() {
	local rc=0
	export WEFT_LANES=$1
	pids=()
	: >"$dir/client.err"
	serve 3 && visit stay && visit stay && visit close || return 1
	ended "${pids[2]}" "closed" && wait "${pids[2]}" && no_more "${pids[@]:0:2}" || rc=1
	kill -KILL "${pids[0]}"
	ended "${pids[0]}" "$2" && no_more "${pids[1]}" || rc=1
	kill -KILL "${pids[1]}"
	ended "${pids[1]}" "$2" || rc=1
	server_code || rc=1
	cat "$dir/server.out"
	return $rc
}

# @behaviour Y36: the error callback of an accepted endpoint, replaced in use, runs once with its
# new user data when the peer closes, and when it is killed
check "over shared memory" each_in_turn shm "its process has ended without closing"
# @behaviour Y36
check "over UDP sockets" each_in_turn udp:lo "the process of .* is gone"
tap_end
