# SPDX-License-Identifier: BSD-3-Clause
# The whole library over RoCE lanes, as a user starts it: weft-perf and weft-info.
. "$(dirname "$0")/../lib.sh"

info_explains() {
	"$info" "${eal[@]}" -- -d -L "roce:rxe0a;roce:rxe5a;roce:rxe5b" >"$dir/out" 2>"$dir/err" ||
		{
		cat "$dir/out" "$dir/err"
		return 1
	}
	cat "$dir/out"
	grep -q '^roce:rxe0a$' "$dir/out" && grep -q '^roce_ud:rxe0a$' "$dir/out" &&
		grep -qE 'note +GID 1, RoCE v2 over IPv4' "$dir/out"
}

# The ends' network devices have different MTUs, so that the devices' path MTUs are 4096 and 1024.
different_mtus() {
	grep -E 'note' "$dir/out"
	grep -q 'path MTU 4096' "$dir/out" && grep -q 'path MTU 1024' "$dir/out" || return
	perf_pair roce:rxe5b roce:rxe5a -t tag_bw -s 8,4k,256k -n 12 -w 1 -O 4 -f -V &&
		quiet_counters rxe5a rxe5b
}

rail 0 && ip link add v5a mtu 4200 type veth peer name v5b mtu 1500 && rail_up 5 || exit
check "weft-info -d shows the device, its address and why that one" info_explains
check "RoCE alone: ping-pongs and streams, one after the other" \
	perf_pair roce:rxe0b roce:rxe0a -t tag_lat,tag_bw -s 0,8,200,4k,64k,1M -n 6 -w 1 -O 4 -f \
	-V -v
check "RoCE alone: ping-pong of all protocols, every byte" all_right tag_lat 6
check "RoCE alone: a stream, every byte" all_right tag_bw 6
check "no receiver was ever not ready" quiet_counters rxe0a rxe0b
check "ends with different path MTUs use the smaller" different_mtus
tap_end
