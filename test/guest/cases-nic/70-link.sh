# SPDX-License-Identifier: BSD-3-Clause
# The link goes down in the middle of a stream and comes back: nothing is lost.
. "$(dirname "$0")/../nic.sh"

monitor=$(grep -lx monitor /sys/class/virtio-ports/*/name)
monitor=/dev/$(basename "$(dirname "$monitor")")

# link NAME on|off: by QEMU's monitor.
link() {
	echo "set_link nic-$1 $2" >"$monitor"
}

# flap NAME NAME: the first is the server's, whose log must tell.
flap() {
	local pid rc=0
	ends "$1" "$2" && server "$server" || return
	client "$list" -t tag_bw -s 256k -D 6 -V -v >"$dir/out" 2>&1 &
	pid=$!
	# Its first line with figures: the time runs.
	wait_for 60 grep -q '^[0-9]' "$dir/client.out" || return
	link "$1" off
	sleep 2
	link "$1" on
	wait $pid || rc=$?
	cat "$dir/client.err" "$dir/client.out"
	[ $rc = 0 ] || { echo "the client's exit code is $rc"; return 1; }
	wait "$server_pid" || {
		echo "the server's exit code is $?"
		cat "$dir/server.err"
		return 1
	}
	[ "$(column wrong)" = 0 ] || { echo "wrong messages: $(column wrong)"; return 1; }
	cat "$dir/server.err"
	nic "$1" && grep -q "($address): link lost" "$dir/server.err" || {
		echo "the server does not tell of the loss"
		return 1
	}
	grep -qE "\($address\): link is back after [0-9.]+ s" "$dir/server.err" || {
		echo "nor that the link is back"
		return 1
	}
	[ "$(column retransmits)" -gt 0 ] || {
		echo "nothing was sent again: the stream was over"
		return 1
	}
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

check "virtio: link down for 2 s in the middle of a stream" flap virtio0 virtio1
check "e1000e: link down for 2 s in the middle of a stream" flap e1000e0 e1000e1
check "no link: weft-info says which port, and what to look at" no_link virtio2
tap_end
