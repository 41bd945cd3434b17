#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The PMD of virtio NICs at native speed: net_virtio_user at one end, net_vhost at the other. The
# virtqueues are those that a NIC of a virtual machine has; nothing is emulated.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# Both ends map the other's memory, which needs files or hugepages behind it.
memory=(--in-memory --single-file-segments -m 256)
free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
if [ -n "${WEFT_TEST_NO_HUGE:-}" ] || [ "$free" -lt 300 ]; then
	memory=(--no-huge -m 256)
fi

switch=$build/app/weft-switch

# new_virtio: fresh TCP port and socket. The server has the virtio NIC, and the socket: its EAL
# waits for vhost.
new_virtio() {
	new_pair 0
	rm -f "$dir/vhost"
	eal_server=("${memory[@]}" --no-pci \
		--vdev="net_virtio_user0,path=$dir/vhost,server=1,queue_size=256")
	eal_client=("${memory[@]}" --no-pci --vdev="net_vhost0,iface=$dir/vhost,client=1")
}

# virtio_server PROGRAM ARGS...: in the background, until vhost can connect.
virtio_server() {
	local program=$1
	shift
	timeout -k 10 100 "${server_run[@]}" "$program" "${eal_server[@]}" -- -p "$port" \
		-L "$lanes" "$@" <"${server_in:-/dev/null}" \
		>"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	until_there "$dir/vhost" $server_pid
}

# virtio_pair LANES ARGS...: a whole run; then no byte is wrong, and each frame came in one buffer.
virtio_pair() {
	local rc=0
	new_virtio
	lanes=$1
	shift
	virtio_server "$perf" --counters || return 1
	client "$perf" --counters -W 60 -V -v -f "$@" || rc=$?
	[ $rc = 0 ] || {
		echo "the client's exit code is $rc"
		kill $server_pid
		server_code
		return 1
	}
	server_code || { echo "the server's exit code is $?"; return 1; }
	! grep -hE 'rx\.chained|drop\.bad' "$dir/server.err" "$dir/client.err"
}

# until_there FILE PID: as long as the process lives.
until_there() {
	local i
	for ((i = 0; i < 1200; i++)); do
		[ ! -e "$1" ] || return 0
		kill -0 "$2" 2>/dev/null || break
		sleep 0.05
	done
	echo "there is no ${1##*/} after $i x 50 ms"
	return 1
}

# column NAME: of weft-perf's CSV in client.out, first row.
column() {
	awk -F, -v name="$1" \
		'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) n = i } NR == 2 { print $n }' \
		"$dir/client.out"
}

# counted FILE NAME: a counter of the lane.
counted() { awk -v name="dpdk:0.$2" '$1 == name { n = $2 } END { print n + 0 }' "$dir/$1"; }

# Both ends sleep between two messages, and frames wake them: virtio_user by its call, vhost by its
# kick. One core for both, or they would find the next message while they still poll. The bound is
# that of wait.sh.
wakes() {
	local core median rc=0 end
	core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	server_run=(taskset -c "$core") client_run=(taskset -c "$core")
	virtio_pair dpdk:0,mtu=1500 -t tag_lat -s 8 -n 2000 -w 200 --sleep || rc=1
	server_run=() client_run=()
	[ $rc = 0 ] || return 1
	median=$(column 50.0_percentile_lat)
	echo "median $median, p99 $(column p99_lat) us"
	for end in server client; do
		echo "$end: $(grep rx_intr "$dir/$end.err" | tr '\n' ' ')"
		[ "$(counted $end.err rx_intr.wakes)" -gt 500 ] || return 1
		[ $(($(counted $end.err rx_intr.missed) * 20)) \
			-lt "$(counted $end.err rx_intr.wakes)" ] || return 1
	done
	awk -v m="$median" -v bound="$(stretch 500)" 'BEGIN { exit !(m > 0 && m < bound) }'
}

# cpu_ticks PID: of all its threads so far.
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# ticks: of both ends' programs, of which there must be two.
ticks() {
	local pid sum=0 n=0
	while read -r pid; do
		[ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$cat")" ] || continue
		sum=$((sum + $(cpu_ticks "$pid")))
		n=$((n + 1))
	done < <(pgrep -f -- "-p $port -L")
	echo $sum
	[ $n = 2 ]
}

# Both ends have all they need and wait for input that does not come.
idles() {
	local hz before after rc=0
	hz=$(getconf CLK_TCK)
	new_virtio
	lanes=dpdk:0,mtu=1500
	rm -f "$dir/input"
	mkfifo "$dir/input"
	exec 8<>"$dir/input"
	server_in=$dir/input virtio_server "$cat" -l 8>&- || return 1
	client "$cat" -W 60 <"$dir/input" 8>&- &
	client_pid=$!
	printf 'x' >&8 # whichever takes it: the lanes are there when it comes out
	for ((i = 0; i < 1200; i++)); do
		[ ! -s "$dir/server.out" ] && [ ! -s "$dir/client.out" ] || break
		sleep 0.05
	done
	sleep 0.5
	before=$(ticks) || rc=1
	sleep 4
	after=$(ticks) || rc=1
	exec 8>&-
	wait $client_pid || return 1
	server_code || return 1
	echo "$((after - before)) ticks of 1/$hz s in 4 s, both ends together"
	[ $rc = 0 ] && [ $((after - before)) -le $((hz * 2 * 4 * 5 / 100)) ]
}

# behind_switch MODE...: a process with a virtio-user port, whose other side is the uplink of a
# weft-switch, as it is OVS-DPDK's vhost port elsewhere; the other process has a port of the switch.
# Every byte, both ways.
behind_switch() {
	local rc=0
	new_virtio
	lanes="dpdk:0,mtu=1500,ip=10.77.0.200/24"
	virtio_server "$perf" || return 1
	: >"$dir/switch.out"
	"$switch" "${memory[@]}" --no-pci --no-telemetry --file-prefix="weft-switch-$$" \
		--vdev="net_vhost0,iface=$dir/vhost,client=1" -- -p "$dir/sock" -n 2 \
		-a 10.77.0.16/24 "$@" >"$dir/switch.out" 2>"$dir/switch.err" &
	switch_pid=$!
	until_said "$dir/switch.out" "^weft-switch: .* ports at" $switch_pid || rc=1
	until_said "$dir/server.err" "waiting for a client" $server_pid || rc=1
	[ $rc = 1 ] || WEFT_SWITCH=$dir/sock WEFT_EAL_ARGS="--no-huge -m 256 --no-pci" \
		timeout -k 10 100 "$perf" -p "$port" -L dpdk -W 60 -V -v \
		-t tag_bibw -s 8,1400,64k -n 20 -w 2 "$host" >"$dir/client.out" \
		2>"$dir/client.err" || rc=1
	[ $rc = 0 ] || kill $server_pid
	server_code || rc=1
	kill $switch_pid
	wait $switch_pid
	cat "$dir/switch.out" "$dir/switch.err" "$dir/client.out"
	[ $rc = 0 ] && grep -Eq "^uplink net_vhost0: rx [1-9].* tx [1-9]" "$dir/switch.out"
}

check "a stream of each size, every byte" virtio_pair dpdk:0,mtu=1500 -t tag_bw -s 0,8,1k,64k,1M \
	-n 40 -w 2
check "streams both ways, every byte" virtio_pair dpdk:0,mtu=1500 -t tag_bibw -s 8,64k,1M -n 40 -w 2
check "frames of 9000, both ways, every byte" virtio_pair dpdk:0,mtu=9000 -t tag_bibw -s 8,64k,1M \
	-n 40 -w 2
check "puts, every byte" virtio_pair dpdk:0,mtu=1500 -t put_bw -s 8,64k,1M -n 40 -w 2
check "paths=4: a stream, every byte" virtio_pair dpdk:0,mtu=1500,paths=4 -t tag_bw -s 1M -n 40 -w 2
check "csum=udp: a stream, every byte" virtio_pair dpdk:0,mtu=1500,csum=udp -t tag_bw -s 1M -n 40 \
	-w 2
check "the bare port" virtio_pair dpdk:0,mtu=1500 -t raw_bw -s 1400 -n 1000 -w 2
check "behind weft-switch, both ways, every byte" behind_switch
check "behind weft-switch with one address for all" behind_switch -1
if command -v taskset >/dev/null; then
	check "--sleep: frames wake both ends, on one core" wakes
else
	skip "--sleep: frames wake both ends, on one core" \
		"taskset(1) is not installed (util-linux)"
fi
check "who waits takes less than 5 % of a CPU" idles
tap_end
