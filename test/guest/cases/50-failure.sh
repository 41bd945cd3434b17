# SPDX-License-Identifier: BSD-3-Clause
# What goes wrong is said in a sentence with the device and what to do, and ends in bounded time.
. "$(dirname "$0")/../lib.sh"

# refused WORDS COMMAND...: it fails and says so.
refused() {
	local words=$1 rc=0
	shift
	"$@" >"$dir/out" 2>"$dir/err" || rc=$?
	cat "$dir/err"
	[ $rc != 0 ] && grep -q "$words" "$dir/err"
}

# As somebody without the right to lock more memory than the limit.
limited() {
	(
		ulimit -l 64
		exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock -- "$info" "${eal[@]}" -- -d -L roce:rxe0a
	)
}

# The same for another user, who has no rights but to the device. The build may lie where that user may not look.
another_user() {
	cp "$info" "$build/libweft.so.0" "$dir/" && chmod 755 "$dir" "$dir"/* || return
	(
		ulimit -l 64
		mkdir -p /run/nobody && chown 65534:65534 /run/nobody
		export XDG_RUNTIME_DIR=/run/nobody LD_LIBRARY_PATH=$dir
		exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$dir/weft-info" "${eal[@]}" -- -d -L roce:rxe0a
	)
}

# link_down END: the device's link goes down in the middle of a stream; both ends tell, and end.
link_down() {
	local rc=0 pid begin=$SECONDS
	limit=60
	server "roce:rxe0b,timeout=14" || return 1
	client "roce:rxe0a,timeout=14" -t tag_bw -s 256k -D 40 -v &
	pid=$!
	wait_for 30 eval '[ "$(counter rxe0a sent_pkts)" -gt 2000 ]' || return 1
	ip link set v0a down
	wait $pid || rc=$?
	cat "$dir/client.err"
	[ $rc = 3 ] || { echo "the client's exit code is $rc"; return 1; }
	rc=0
	wait "$server_pid" || rc=$?
	cat "$dir/server.err"
	ip link set v0a up
	[ $rc = 3 ] || { echo "the server's exit code is $rc"; return 1; }
	echo "took $((SECONDS - begin)) s"
	grep -q 'rxe0a' "$dir/client.err" && grep -qE '10\.0\.0\.2|port 1' "$dir/client.err"
}

gone() { ! rdma link show | grep -q "$1"; }

# The network device is removed in the middle of a stream, and the RoCE device with it. The kernel keeps both until the last user has let go, so that has to
# happen without anybody's help. (`rdma link del` tells a device's users nothing: with rdma_rxe it waits for them.)
device_removed() {
	local rc=0 pid remover begin=$SECONDS
	limit=60
	rail 2 || return
	server "roce:rxe2b,timeout=14" || return 1
	client "roce:rxe2a,timeout=14" -t tag_bw -s 256k -D 40 -v &
	pid=$!
	wait_for 30 eval '[ "$(counter rxe2a sent_pkts)" -gt 1000 ]' || return 1
	timeout 60 ip link del v2a &
	remover=$!
	wait $pid || rc=$?
	cat "$dir/client.err"
	[ $rc = 3 ] || { echo "the client's exit code is $rc"; return 1; }
	rc=0
	wait "$server_pid" || rc=$?
	cat "$dir/server.err"
	[ $rc = 3 ] || { echo "the server's exit code is $rc"; return 1; }
	echo "took $((SECONDS - begin)) s"
	wait $remover || { echo "the network device could not be removed"; return 1; }
	grep -q 'rxe2a' "$dir/client.err" && wait_for 20 gone rxe2a && wait_for 20 gone rxe2b
}

unreachable_subnet() {
	local rc=0
	limit=30
	server "roce:rxe1b" || return 1
	client "roce:rxe0a" -t tag_lat -n 5 || rc=$?
	kill "$server_pid" 2>/dev/null
	wait "$server_pid"
	cat "$dir/client.err"
	[ $rc != 0 ] && [ $rc != 124 ] && grep -q 'no route to' "$dir/client.err"
}

rail 0 && rail 1 || exit
check "no such device: the sentence names those there are" refused "there is no RDMA device 'rxe7'; there are rxe" \
	"$info" "${eal[@]}" -- -d -L roce:rxe7
check "a limit of locked memory: the sentence says how to raise it" refused "limit of locked memory is 64 KiB" limited
chmod 666 /dev/infiniband/uverbs*
check "a limit of locked memory, as another user: the sentence says how to raise it" refused "limit of locked memory is 64 KiB" another_user
check "link down in the middle of a stream: both ends tell and end" link_down
check "a peer in a network without a route: the sentence says so" unreachable_subnet
ip addr flush dev v1a
sleep 1
check "no address: the sentence says what to do" refused "give its network device an IP address\|no RoCE v2 GID\|GID" \
	"$info" "${eal[@]}" -- -d -L roce:rxe1a,subnet=10.0.1.0/24
check "device removed in the middle of a stream: both ends tell and end, and it goes" device_removed
tap_end
