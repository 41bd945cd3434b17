#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two rails of real processes through weft-wire, which has an interface on either side of each rail:
# paths that only short packets pass, and long ones. The simulator has the same cases
# (test/sim/sys_path.c, test/sim/sys_distance.c).

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

wire=$build/app/weft-wire
[ -x "$wire" ] || { echo "there is no weft-wire in this build"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
wire_pid=
packet="blocksz=4096,framesz=4096,framecnt=256"

# no_offload SIDE RAIL: the box gets frames with checksums, and none that are merged.
no_offload() {
	ip netns exec "${ns[$1]}" python3 "$(dirname "$0")/../../devtools/no_offloads.py" "$2"
}

# rail NUMBER: pair NUMBER of the box.
rail() {
	local side
	for side in 0 1; do
		ip -n "${ns[$side]}" link add name "rail$1" type veth peer name "box$1$side" \
			netns "${ns[2]}" &&
			ip -n "${ns[$side]}" addr add "10.99.1$1.$((side + 1))/24" dev "rail$1" &&
			ip -n "${ns[$side]}" link set "rail$1" up &&
			ip -n "${ns[2]}" link set "box$1$side" up &&
			no_offload $side "rail$1" || return 1
	done
}

# The box, which lives until the end of the test; its commands go to descriptor 7.
start_box() {
	local vdevs=() port number=0
	rail 0 && rail 1 || return 1
	for port in box00 box01 box10 box11; do
		vdevs+=(--vdev="net_af_packet$number,iface=$port,$packet")
		number=$((number + 1))
	done
	mkfifo "$dir/commands"
	ip netns exec "${ns[2]}" "$wire" --no-huge -m 256 --no-pci --file-prefix="weft-box-$$" \
		"${vdevs[@]}" -- -S 50 <"$dir/commands" >>"$dir/wire.out" 2>"$dir/wire.err" &
	wire_pid=$!
	exec 7>"$dir/commands"
	until_said "$dir/wire.out" "^1 back " "$wire_pid" || { cat "$dir/wire.err"; return 1; }
}

# box LINK: changes both rails; returns when the change is in force.
box() {
	: >"$dir/wire.out"
	echo "clear,$1" >&7
	until_said "$dir/wire.out" "^1 back .*$1" "$wire_pid"
}

# ends LANE: both rails, by sockets (udp) or by af_packet (raw).
ends() {
	free_port
	eal_server=()
	eal_client=()
	lanes="udp:rail0;udp:rail1"
	[ "$1" = raw ] || return 0
	lanes=
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=rail0,$packet" \
		--vdev="net_af_packet1,iface=rail1,$packet")
	eal_server=("${eal_client[@]}")
}

# narrow_rails LANE: both rails carry 1500, and then packets of 600 bytes at most. Data goes on, and
# the log reports which frames do not pass. One of the rails may be given up first, by either end.
narrow_rails() {
	local rc=0 used="frames of 15[01][0-9] bytes do not reach .*, so [56][0-9][0-9] are used"
	box mtu=1500 && ends "$1" || return 1
	start_stream -b 64k -W 30 || return 1
	box mtu=600 || rc=1
	[ $rc != 0 ] || until_said "$dir/client.err" "$used" "$client_pid" || rc=1
	[ $rc != 0 ] || more_arrives || rc=1
	end_stream && [ $rc = 0 ] && ! grep "error:" "$dir"/{client,server}.err
}

# more_arrives: of start_stream's bytes, more than what the sockets of the shell hold.
more_arrives() {
	local i from
	from=$(sed -n 's/^wchar: //p' "/proc/$stream_pid/io")
	for ((i = 0; i < 600; i++)); do
		[ "$(sed -n 's/^wchar: //p' "/proc/$stream_pid/io")" -lt $((from + 2000000)) ] ||
			return 0
		sleep 0.05
	done
	echo "nothing more arrived"
	return 1
}

# repeats: frames that either end sent again, and times that it took a lane for a bad one.
repeats() {
	awk '$1 ~ /(tx\.retransmit\.(fast|rto|probe)|conn\.suspect|ep\.lanes_lost)$/ {
		print FILENAME ": " $0
		sum += $2
	}
	END { exit sum != 0 }' "$dir"/{server,client}.err
}

# far LANE MS: round trips of so many ms, one message at a time. A busy machine that takes the
# programs from their cores for longer than their timers may cause a repetition, so there are three
# attempts; a timer shorter than the round trip causes one in each.
far() {
	local i
	box "delay=$(($2 / 2))ms" || return 1
	for i in 1 2 3; do
		ends "$1"
		start_server "$perf" --counters || return 1
		client "$perf" -t tag_lat -s 8 -n 5 -w 0 -f -V --counters || return 1
		server_code || return 1
		grep -h "tx\.data_frames\|tx\.messages" "$dir"/{server,client}.err
		! repeats || return 0
	done
	return 1
}

if start_box >"$dir/box.log" 2>&1; then
	# @behaviour R46
	check "af_packet: a path of 600 bytes on both rails" narrow_rails raw
	# @behaviour R46
	check "udp: a path of 600 bytes on both rails" narrow_rails udp
	for trip in 20 60 150 300; do
		# @behaviour R6
		check "udp: a lone message over $trip ms is sent once" far udp "$trip"
	done
	slow check "af_packet: a lone message over 20 ms is sent once" far raw 20
	slow check "af_packet: a lone message over 300 ms is sent once" far raw 300
else
	cat "$dir/box.log"
	check "the box between the processes" false
fi
[ -z "$wire_pid" ] || kill "$wire_pid"
tap_end
