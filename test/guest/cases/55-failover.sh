# SPDX-License-Identifier: BSD-3-Clause
# One of two RoCE rails dies in the middle of a stream whose every byte is compared, and comes back:
# the stream goes on, over the other one, and then over both.
. "$(dirname "$0")/../lib.sh"

link() {
	ip link set v1a "$1"
}

# Nothing passes, and no port tells.
wire() {
	local end
	for end in a b; do
		if [ "$1" = down ]; then
			tc qdisc replace dev "v1$end" root netem loss 100% || return
		else
			tc qdisc del dev "v1$end" root || return
		fi
	done
}

carries() { [ "$(counter rxe1a sent_pkts)" -gt "$1" ]; }

# dies_and_returns WHAT
dies_and_returns() {
	local pid rc=0
	limit=90
	begin_server "roce:rxe0b;roce:rxe1b"
	client "roce:rxe0a;roce:rxe1a" -t tag_bw -s 256k -D 8 -f -V -v &
	pid=$!
	wait_for 60 carries $(($(counter rxe1a sent_pkts) + 400)) || return
	"$1" down || return
	wait_for 20 says "$dir/client.err" 'is given up' || { cat "$dir/client.err"; return 1; }
	"$1" up || return
	wait_for 20 says "$dir/client.err" 'is back' || { cat "$dir/client.err"; return 1; }
	wait_for 20 carries $(($(counter rxe1a sent_pkts) + 300)) || return
	wait $pid || rc=$?
	cat "$dir/client.err"
	[ $rc = 0 ] || { echo "the client's exit code is $rc"; return 1; }
	wait "$server_pid" || {
		echo "the server's exit code is $?"
		cat "$dir/server.err"
		return 1
	}
	all_right tag_bw 1
}

rail 0 && rail 1 || exit
# Both are used for long messages, whatever the machine can do.
slow 0 80 || exit
check "the link of one of two rails is lost and comes back: the stream goes on, over both again" \
	dies_and_returns link
check "one of two rails carries nothing for a while: the same" dies_and_returns wire
tap_end
