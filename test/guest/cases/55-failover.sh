# SPDX-License-Identifier: BSD-3-Clause
# One of two RoCE rails dies in the middle of a stream with a CRC over all, and comes back:
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

# dies_and_returns WHAT: what goes in lasts until all has been seen, however slow the machine is.
dies_and_returns() {
	local source server client rc=0
	port=$((port + 1))
	rm -f "$dir/in" && mkfifo "$dir/in" || return
	cat_end server "roce:rxe0b;roce:rxe1b" -l -d </dev/null &
	server=$!
	wait_for 60 listening "$port" || return
	cat_end client "roce:rxe0a;roce:rxe1a" 127.0.0.1 <"$dir/in" &
	client=$!
	cat /dev/urandom >"$dir/in" &
	source=$!
	wait_for 60 carries $(($(counter rxe1a sent_pkts) + 400)) && "$1" down &&
		wait_for 20 says "$dir/client.err" 'is given up' && "$1" up &&
		wait_for 30 says "$dir/client.err" 'is back' &&
		wait_for 20 carries $(($(counter rxe1a sent_pkts) + 300)) || rc=1
	kill $source
	wait $client || { rc=1 && echo "the client's exit code is not 0"; }
	wait $server || { rc=1 && echo "the server's exit code is not 0"; }
	cat "$dir/client.err" "$dir/server.err"
	return $rc
}

rail 0 && rail 1 || exit
# Both are used for long messages, whatever the machine can do.
slow 0 80 || exit
check "the link of one of two rails is lost and comes back: the stream goes on, over both again" \
	dies_and_returns link
check "one of two rails carries nothing for a while: the same" dies_and_returns wire
tap_end
