#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Rails that are missing, down or narrower than their sisters: said in the log, and an error with
# WEFT_MIN_LANES.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

link rail0 1500 && link rail1 1500 || exit 1

packet="blocksz=4096,framesz=4096,framecnt=256"
# new_pair [INTERFACE]: two rails; the second one of the server is on this interface.
new_pair() {
	free_port
	eal_client=(--no-huge -m 512 --no-pci --vdev="net_af_packet0,iface=rail0,$packet" \
		--vdev="net_af_packet1,iface=rail1,$packet")
	eal_server=("${eal_client[@]:0:5}" --vdev="net_af_packet1,iface=${1:-rail1},$packet")
	lanes=
}

said() {
	grep -E -- "$2" "$dir/$1" || { echo "$1 has no line with '$2':"; cat "$dir/$1"; return 1; }
}

# What is missing is said at the end where it is, and at the other end.
misspelt() {
	new_pair rial1
	start_server "$perf" || return 1
	client "$perf" -t tag_bw -s 64k -n 100 -f -V || return 1
	server_code &&
		said server.err \
			"warning: dpdk:net_af_packet1 is left out: --vdev=net_af_packet1 made no port" &&
		said client.err "warning .*dpdk:1 \(net_af_packet1\) carries no lane to "
}

misspelt_is_an_error() {
	local rc=0
	new_pair rial1
	start_server "$perf" -S MIN_LANES=2 || return 1
	client "$perf" -t tag_bw -s 64k -n 100 -f || rc=$?
	server_code && return 1
	[ $rc != 0 ] &&
		said server.err \
			"error: this worker has 1 lane, WEFT_MIN_LANES requires 2; dpdk:net_af_packet1: --vdev"
}

# Which end wants it does not matter: the endpoint is of both.
missing_at_the_peer_is_an_error() {
	local rc=0
	new_pair rial1
	start_server "$perf" || return 1
	client "$perf" -t tag_bw -s 64k -n 100 -f -S MIN_LANES=2 || rc=$?
	server_code && return 1
	[ $rc != 0 ] && said client.err "1 lane to .*, WEFT_MIN_LANES requires 2; dpdk:1: "
}

# Down at the server's end, and what each end says of it, and when it is back. How many frames that
# costs depends on which end notices first: a lane whose link is known to be down may lose none.
down_and_back() {
	local rc=0
	new_pair
	start_stream -S PEER_TIMEOUT=20s || return 1
	ip -n "${ns[0]}" link set rail1 down
	until_said "$dir/client.err" "link lost" $client_pid &&
		until_said "$dir/server.err" "link lost" || rc=1
	ip -n "${ns[0]}" link set rail1 up
	until_said "$dir/client.err" "link is back after" $client_pid &&
		until_said "$dir/server.err" "link is back after" || rc=1
	end_stream && [ $rc = 0 ] &&
		said server.err \
			"dpdk:1 \(net_af_packet1\): link lost: on this side: its kernel interface rail1 is down" &&
		said client.err \
			"dpdk:1 \(net_af_packet1\): link lost: on the other side, or between: its kernel interface rail1 is up" &&
		said client.err "dpdk:1 .*link is back after" &&
			said server.err "dpdk:1 .*link is back after" &&
		tail -n 1 "$dir/client.err" | grep -E \
			"^sent again: dpdk:0 [0-9]+ frames, dpdk:1 [0-9]+; dropped here: "
}

# The kernel tells the other end of a link that went down in up to a second.
until_no_carrier() {
	local i
	for ((i = 0; i < 1200; i++)); do
		! ip -n "$1" link show "$2" | grep -q NO-CARRIER || return 0
		sleep 0.05
	done
	return 1
}

# cut_at_the_start CLIENT_ARGS...
cut_at_the_start() {
	local rc=0
	ip -n "${ns[1]}" link set rail1 down
	until_no_carrier "${ns[0]}" rail1 || return 1
	new_pair
	start_server "$perf" -S CONNECT_TIMEOUT=2s
	client "$perf" -t tag_bw -s 64k -f -V -S CONNECT_TIMEOUT=2s "$@" || rc=$?
	ip -n "${ns[1]}" link set rail1 up
	server_code
	return $rc
}

cut_is_said() {
	cut_at_the_start -n 100 && said client.err \
		"warning .*dpdk:1 .*no link: on this side: .*rail1 is down" &&
		said server.err "warning .*dpdk:1 .*no link: on the other side"
}

cut_is_an_error() {
	# Longer than it takes to find out that the lane does not come up.
	! cut_at_the_start -D "$(stretch 10 40)" -S MIN_LANES=2 &&
		said client.err "1 lane to .*, WEFT_MIN_LANES requires 2; dpdk:1: left out: "
}

mtus_differ() {
	local rc=0
	ip -n "${ns[1]}" link set rail1 mtu 1400
	new_pair
	start_server "$perf" || rc=1
	client "$perf" -t tag_bw -s 8,64k -n 100 -f -V || rc=$?
	ip -n "${ns[1]}" link set rail1 mtu 1500
	server_code || rc=$?
	[ $rc = 0 ] &&
		said client.err \
			"dpdk:1 \(net_af_packet1\) has frames of 1414 bytes, dpdk:0 \(net_af_packet0\) of 1514" &&
		said server.err \
			"dpdk:1 \(net_af_packet1\) has frames of 1414 bytes, dpdk:0 \(net_af_packet0\) of 1514"
}

# @behaviour T15
check "a misspelt --vdev is reported, at both ends" misspelt
# @behaviour T15
check "WEFT_MIN_LANES makes it an error" misspelt_is_an_error
check "WEFT_MIN_LANES: the peer's missing rail is an error" missing_at_the_peer_is_an_error
# @behaviour T16: a link lost and back is a log line with the port's name and the side
check "a link lost and back is reported with the side" down_and_back
# @behaviour T15
check "a rail that is down at the start is reported with the side" cut_is_said
check "WEFT_MIN_LANES makes it an error, which names the lane" cut_is_an_error
check "a rail of smaller MTU is said, at both ends" mtus_differ
tap_end
