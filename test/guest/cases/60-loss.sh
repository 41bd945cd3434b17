# SPDX-License-Identifier: BSD-3-Clause
# A network that loses packets: connecting over roce_ud, for which no layer retransmits, and data
# over RC.
. "$(dirname "$0")/../lib.sh"

# The kernel's address resolution is not what is tested here.
neighbours() {
	ip neigh replace 10.0.0.2 lladdr \
		"$(cat /sys/class/net/v0b/address)" dev v0a nud permanent &&
		ip neigh replace 10.0.0.1 lladdr \
			"$(cat /sys/class/net/v0a/address)" dev v0b nud permanent
}

# lose PERCENT: of what goes either way.
lose() {
	tc qdisc replace dev v0a root netem loss "$1%" limit 10000 &&
		tc qdisc replace dev v0b root netem loss "$1%" limit 10000
}

lose_nothing() {
	tc qdisc del dev v0a root
	tc qdisc del dev v0b root
}

# lost DEVICE: packets so far.
lost() { tc -s qdisc show dev "$1" | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p' | head -n 1; }

# Nothing arrives until several attempts were lost.
first_words_lost() {
	local pid rc=0
	server roce:rxe0b || return 1
	lose 100 || return 1
	client roce:rxe0a -t tag_lat -s 8 -n 5 -w 1 -f -V &
	pid=$!
	wait_for 90 eval '[ "$(lost v0a)" -ge 4 ]' || rc=1
	echo "lost: $(lost v0a)"
	lose_nothing
	wait $pid || { echo "the client's exit code is $?"; cat "$dir/client.err"; rc=1; }
	wait "$server_pid" || { echo "the server's exit code is $?"; cat "$dir/server.err"; rc=1; }
	return $rc
}

some_lost() {
	local rc=0
	lose 3 || return 1
	perf_pair roce:rxe0b roce:rxe0a -t tag_lat -s 8,4k,64k -n 12 -w 2 -f -V || rc=1
	echo "lost: $(lost v0a) and $(lost v0b)"
	[ $(($(lost v0a) + $(lost v0b))) -gt 0 ] || rc=1
	lose_nothing
	return $rc
}

rail 0 && neighbours || exit
check "the first attempts to connect over roce_ud are lost: it asks again" first_words_lost
check "three in a hundred packets are lost: connected, and every byte is right" some_lost
tap_end
