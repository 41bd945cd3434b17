# SPDX-License-Identifier: BSD-3-Clause
# The link goes down in the middle of a stream and comes back: nothing is lost.
. "$(dirname "$0")/../nic.sh"

monitor=$(grep -lx monitor /sys/class/virtio-ports/*/name)
monitor=/dev/$(basename "$(dirname "$monitor")")

# link NAME on|off: by QEMU's monitor.
link() {
	echo "set_link nic-$1 $2" >"$monitor"
}

# tells WORDS...: the server's log, however slow the machine is.
tells() { wait_for 60 says "$dir/server.err" "$@"; }

# written: sets bytes, what the source has written.
written() {
	local name value
	while read -r name value; do
		[ "$name" != wchar: ] || bytes=$value
	done <"/proc/$source/io"
}

# flows: of what the source writes more than is in flight (eight messages of 1 MB) has arrived.
flows() {
	local bytes=0 begin
	written && begin=$bytes || return
	wait_for 60 more $((begin + 12000000))
}
more() { written && [ "$bytes" -ge "$1" ]; }

# flap NAME NAME: the first is the server's, whose log must tell. What goes in lasts until all has
# been seen, and is compared at the end.
flap() {
	local server server_pid source client rc=0
	ends "$1" "$2" && nic "$1" || return
	port=$((port + 1))
	rm -f "$dir/in" && mkfifo "$dir/in" && : >"$dir/server.err" || return
	cat_end server "$server" -l -d </dev/null &
	server_pid=$!
	tells 'waiting for a client' || return
	cat_end client "$list" "$host" <"$dir/in" &
	client=$!
	cat /dev/urandom >"$dir/in" &
	source=$!
	flows && link "$1" off && tells "($address): link lost" &&
		link "$1" on && tells "($address): link is back after " && flows || rc=1
	kill $source
	wait $client || { rc=1 && echo "the client's exit code is not 0"; }
	wait $server_pid || { rc=1 && echo "the server's exit code is not 0"; }
	cat "$dir/client.err" "$dir/server.err"
	# Of what was under way something was lost.
	grep -q '^sent again: dpdk:[0-9]* [1-9]' "$dir/client.err" || {
		echo "nothing was sent again"
		return 1
	}
	return $rc
}

# Of the interface that a lane says has no link, when it opens.
no_link() {
	link "$1" off
	give "$1" && allow "$1" && lanes "$1" || return
	"$info" "${eal[@]}" "${allowed[@]}" -- -d -L "$list" >"$dir/info" 2>&1
	link "$1" on
	cat "$dir/info"
	grep -qE '^ *link +down' "$dir/info" && grep -qE 'check the cable|has no link' "$dir/info"
}

check "virtio: link down in the middle of a stream" flap virtio0 virtio1
check "e1000e: link down in the middle of a stream" flap e1000e0 e1000e1
check "no link: weft-info says which port, and what to look at" no_link virtio2
tap_end
