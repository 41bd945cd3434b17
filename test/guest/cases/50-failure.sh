# SPDX-License-Identifier: BSD-3-Clause
# What goes wrong is said in a message with the device and what to do, and ends in bounded time.
. "$(dirname "$0")/../lib.sh"

# refused WORDS COMMAND...: it fails and says so.
refused() {
	local words=$1 rc=0
	shift
	"$@" >"$dir/out" 2>"$dir/err" || rc=$?
	cat "$dir/err"
	[ $rc != 0 ] && grep -q "$words" "$dir/err"
}

# As a user without the right to lock more memory than the limit.
limited() {
	(
		ulimit -l 64
		exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock -- "$info" "${eal[@]}" \
			-- -d -L roce:rxe0a
	)
}

# The same for another user, with no rights but to the device. The build may lie where that user
# may not look.
another_user() {
	cp "$info" "$build/libweft.so.0" "$dir/" && chmod 755 "$dir" "$dir"/* || return
	(
		ulimit -l 64
		mkdir -p /run/nobody && chown 65534:65534 /run/nobody
		export XDG_RUNTIME_DIR=/run/nobody LD_LIBRARY_PATH=$dir
		exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$dir/weft-info" \
			"${eal[@]}" -- -d -L roce:rxe0a
	)
}

# link_down END: the device's link goes down in the middle of a stream; both ends tell, and end.
link_down() {
	local rc=0 pid begin=$SECONDS
	limit=120
	server "roce:rxe0b,timeout=14" || return 1
	client "roce:rxe0a,timeout=14" -t tag_bw -s 256k -D 40 -v &
	pid=$!
	wait_for 60 eval '[ "$(counter rxe0a sent_pkts)" -gt 2000 ]' || return 1
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
	# The end that finds out first notifies the other one, whose final message is then that of
	# the first one.
	grep -q 'rxe0a' "$dir/client.err" && grep -qE '10\.0\.0\.[12]|port 1' "$dir/client.err"
}

gone() { ! rdma link show | grep -q "$1"; }

# The network device is removed in the middle of a stream, and the RoCE device with it. The kernel
# keeps both until the last user has let go, so that has to happen without anybody's help.
device_removed() {
	local rc=0 pid remover begin=$SECONDS
	limit=120
	rail 2 || return
	server "roce:rxe2b,timeout=14" || return 1
	client "roce:rxe2a,timeout=14" -t tag_bw -s 256k -D 40 -v &
	pid=$!
	wait_for 60 eval '[ "$(counter rxe2a sent_pkts)" -gt 1000 ]' || return 1
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

# The RoCE device is deleted in the middle of a stream. rdma_rxe of this kernel notifies no process:
# the device is not listed any more, the kernel's command waits for its users, and their objects
# work on, so nothing fails: the stream ends as if nothing had happened, and then the device goes.
device_deleted() {
	local rc=0 pid remover begin=$SECONDS n
	limit=120
	rail 3 || return
	server "roce:rxe3b" || return 1
	client "roce:rxe3a" -t tag_bw -s 64k -D 8 -v &
	pid=$!
	wait_for 60 eval '[ "$(counter rxe3a sent_pkts)" -gt 500 ]' || return 1
	timeout 60 rdma link del rxe3a &
	remover=$!
	wait_for 10 gone rxe3a || return 1
	n=$(counter rxe3b rcvd_pkts)
	wait_for 8 eval "[ \"\$(counter rxe3b rcvd_pkts)\" -gt $((n + 200)) ]" || return 1
	refused "there is no RDMA device 'rxe3a'" "$info" "${eal[@]}" -- -d -L roce:rxe3a ||
		return 1
	wait $pid || rc=$?
	cat "$dir/client.err"
	[ $rc = 0 ] || { echo "the client's exit code is $rc"; return 1; }
	wait "$server_pid" || {
		echo "the server's exit code is $?"
		cat "$dir/server.err"
		return 1
	}
	echo "took $((SECONDS - begin)) s"
	wait $remover || { echo "the device could not be deleted"; return 1; }
	[ ! -e /sys/class/infiniband/rxe3a ]
}

# Nothing in common: one has RoCE only, the other a raw-DPDK lane only.
peer_without_roce() {
	local rc=0
	limit=30
	ip link add v6a mtu 3000 type veth peer name v6b mtu 3000 && ip link set v6a up &&
		ip link set v6b up || return
	server_eal=(--vdev=net_af_packet0,iface=v6b,blocksz=8192,framesz=4096)
	server "dpdk:0,ip=10.6.0.2/24,mtu=2900" || return 1
	client "roce:rxe0a" -t tag_lat -n 5 || rc=$?
	kill "$server_pid" 2>/dev/null
	wait "$server_pid"
	server_eal=()
	cat "$dir/client.err"
	[ $rc != 0 ] && [ $rc != 124 ] && grep -q 'roce:rxe0a' "$dir/client.err"
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
check "no such device: the sentence names those there are" refused \
	"there is no RDMA device 'rxe7'; there are rxe" \
	"$info" "${eal[@]}" -- -d -L roce:rxe7
check "a limit of locked memory: the sentence says how to raise it" refused \
	"limit of locked memory is 64 KiB" limited
chmod 666 /dev/infiniband/uverbs*
check "a limit of locked memory, as another user: the sentence says how to raise it" refused \
	"limit of locked memory is 64 KiB" another_user
check "link down in the middle of a stream: both ends tell and end" link_down
check "a peer in a network without a route: the sentence says so" unreachable_subnet
check "a peer without RoCE and nothing else in common: the sentence says so" peer_without_roce
ip addr flush dev v1a
sleep 1
check "no address: the sentence says what to do" refused \
	"give its network device an IP address\|no RoCE v2 GID\|GID" \
	"$info" "${eal[@]}" -- -d -L roce:rxe1a,subnet=10.0.1.0/24
check "device deleted in the middle of a stream: it goes on, and the device goes after it" \
	device_deleted
check "device removed in the middle of a stream: both ends tell and end, and it goes" device_removed
tap_end
