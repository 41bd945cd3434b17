#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The uplink of weft-switch: one that is absent is an error, and the kernel interface's MTU counts.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

switch=$build/app/weft-switch
[ -x "$switch" ] || { echo "there is no weft-switch in this build"; exit 77; }
small=(--no-huge -m 160 --no-shconf --no-telemetry)
packet="blocksz=16384,framesz=16384,framecnt=256"
switch_pid=

end_switch() {
	[ -z "$switch_pid" ] || kill -KILL "$switch_pid" 2>/dev/null
	switch_pid=
}
trap 'end_switch; untidy' EXIT

# refused CODE SENTENCE ARGS...: it ends by itself and prints no "ports at".
refused() {
	local code=$1 words=$2 rc=0
	shift 2
	timeout -k 10 30 "${server_run[@]}" "$switch" "${small[@]}" "$@" \
		>"$dir/out" 2>"$dir/err" || rc=$?
	cat "$dir/out" "$dir/err"
	[ $rc = "$code" ] && grep -qF -- "$words" "$dir/err" && [ ! -s "$dir/out" ]
}

# started PATTERN COMMAND...: until it serves; the first line ends with the pattern.
started() {
	local line=$1
	shift
	: >"$dir/switch.out"
	"$@" >"$dir/switch.out" 2>"$dir/switch.err" &
	switch_pid=$!
	until_said "$dir/switch.out" "^weft-switch: .* ports at" $switch_pid
	cat "$dir/switch.out" "$dir/switch.err"
	head -n 1 "$dir/switch.out" | grep -qE -- "$line\$"
}

without_an_uplink() {
	local rc=0
	started "; no uplink, MTU 9000" "$switch" "${small[@]}" --no-pci -- \
		-p "$dir/sock" none || rc=1
	end_switch
	return $rc
}

# uplink MTU IFACE ARGS...: over an interface of the first namespace.
uplink() {
	local mtu=$1 iface=$2
	shift 2
	started "; uplink net_af_packet net_af_packet0, MTU $mtu" "${server_run[@]}" "$switch" \
		"${small[@]}" --no-pci --vdev="net_af_packet0,iface=$iface,$packet" -- \
		-p "$dir/sock" -n 2 -a 10.77.0.16/24 "$@"
}

mtu_of() {
	local rc=0
	uplink "$@" || rc=1
	end_switch
	return $rc
}

# A process behind the switch sends whole frames of MTU 9000 to one at the veth's other end.
jumbo_frames_pass() {
	local rc=0
	uplink 9000 jumbo || { end_switch; return 1; }
	free_port
	eal_client=(--no-huge -m 256 --no-pci
		--vdev="net_af_packet0,iface=jumbo,$packet")
	lanes="dpdk:0,ip=10.77.0.200/24"
	WEFT_SWITCH=$dir/sock WEFT_EAL_ARGS="--no-huge -m 256 --no-pci" timeout -k 10 100 \
		"${server_run[@]}" "$perf" -p "$port" -L dpdk >"$dir/server.out" \
		2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for a client" $server_pid || rc=1
	client "$perf" -W 60 -V -t tag_bw -s 8,64k -n 50 -f || rc=1
	server_code || rc=1
	end_switch
	cat "$dir/client.out" "$dir/client.err"
	[ $rc = 0 ] && grep -q "frames of 9014" "$dir/client.out" &&
		! grep -q "do not reach" "$dir/client.err"
}

link plain 1500 && link jumbo 9000 || exit 1
if [ -d /sys/bus/pci/devices ]; then
	check "a PCI address that is absent" refused 1 \
		"ffff:ff:1f.7 is no PCI device of this machine" -a ffff:ff:1f.7 -- -p "$dir/sock"
	check "a PCI address that is absent, and named as the uplink" refused 2 \
		"ffff:ff:1f.7 is no PCI device of this machine" -a ffff:ff:1f.7 -- \
		-p "$dir/sock" ffff:ff:1f.7
else
	skip "a PCI address that is absent" "this machine has no PCI bus"
fi
check "an interface that is absent" refused 1 "--vdev=net_af_packet0 made no port" \
	--no-pci --vdev=net_af_packet0,iface=nosuch -- -p "$dir/sock"
check "neither a port nor the word none" refused 1 "the word 'none' starts a switch" \
	--no-pci -- -p "$dir/sock"
check "no uplink by the word none" without_an_uplink
check "the MTU is the kernel interface's: 1500" mtu_of 1500 plain
check "the MTU is the kernel interface's: 9000" mtu_of 9000 jumbo
check "an MTU below the interface's" mtu_of 4000 jumbo -m 4000
check "an MTU over the interface's" refused 2 "raise the MTU of the kernel interface" --no-pci \
	--vdev=net_af_packet0,iface=plain,"$packet" -- -p "$dir/sock" -m 9000
check "frames of MTU 9000 pass over the uplink" jumbo_frames_pass
tap_end
