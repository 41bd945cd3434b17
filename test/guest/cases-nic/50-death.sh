# SPDX-License-Identifier: BSD-3-Clause
# A process is killed in the middle of a stream: the other end tells and ends, and the next process
# has the NIC as if nothing had been.
. "$(dirname "$0")/../nic.sh"

# killed WHO NAMES NAMES: the client or the server.
killed() {
	local who=$1 one=$2 two=$3 rc=0 pid child
	ends "$one" "$two" && server "$server" || return
	client "$list" -t tag_bw -s 256k -D 60 -V >"$dir/out" 2>&1 &
	pid=$!
	wait_for 60 grep -q '^test ' "$dir/client.out" || return
	sleep 1
	if [ "$who" = client ]; then
		child=$(pgrep -P "$(pgrep -P $pid timeout)")
		kill -9 "$child"
		wait $pid
		wait "$server_pid" || rc=$?
		cat "$dir/server.err"
	else
		kill -9 "$(pgrep -P "$server_pid")"
		wait "$server_pid"
		wait $pid || rc=$?
		cat "$dir/client.err"
	fi
	[ $rc = 3 ] || { echo "the exit code of the other end is $rc"; return 1; }
}

for duo in "virtio0 virtio1" "e1000e0 e1000e1"; do
	one=${duo% *} two=${duo#* }
	[ "$one" = virtio0 ] && who=client || who=server
	check "$one - $two: a killed $who, the other end tells and ends" killed $who "$one" "$two"
	check "$one - $two: after the killed $who, every byte" both "$one" "$two" -t tag_bw -s 8,1M -n 8 -w 1 -f -V -v
done
tap_end
