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

# ---- a capture at the uplink ----------------------------------------------------------------

# local_process NAME ARGS...: of the switch. Its peer is the remote process.
local_process() {
	local name=$1
	shift
	WEFT_SWITCH=$dir/sock WEFT_EAL_ARGS="--no-huge -m 256 --no-pci" \
		WEFT_CAPTURE=$dir/$name.pcapng timeout -k 10 100 "${server_run[@]}" "$perf" \
		-p "$port" -L dpdk -W 60 -f "$@" 10.99.7.2 >"$dir/$name.out" 2>"$dir/$name.err"
}

# Two processes of the switch and one of another host, which has no switch. The first one's port
# gets another owner, so the second one has another address.
two_talk() {
	local rc=0 owner
	local_process first -t tag_bw -s 8k -n 60 || return 1
	WEFT_SWITCH='' "${server_run[@]}" python3 "$(dirname "$0")/switch_client.py" "$dir/sock" \
		idle >"$dir/owner" 2>&1 &
	owner=$!
	until_said "$dir/owner" "^connected as port 0" $owner &&
		local_process second -t tag_lat -s 64 -n 40 || rc=1
	kill $owner
	cat "$dir/owner" "$dir/first.err" "$dir/second.err"
	return $rc
}

# dumpcap at the uplink, which sees what its PMD sends without qdisc_bypass only.
listen() {
	local rc=0 remote dumpcap packet=$packet,qdisc_bypass=0
	uplink 9000 jumbo || { end_switch; return 1; }
	free_port
	WEFT_CAPTURE=$dir/remote.pcapng timeout -k 10 200 "${client_run[@]}" "$perf" --no-huge \
		-m 256 --no-pci --vdev="net_af_packet0,iface=jumbo,$packet" -- -k -p "$port" \
		-L "dpdk:0,ip=10.77.0.200/24" >"$dir/remote.out" 2>"$dir/remote.err" &
	remote=$!
	"${server_run[@]}" dumpcap -q -i jumbo -B 64 -w "$dir/uplink.pcapng" 2>"$dir/dumpcap.err" &
	dumpcap=$!
	until_said "$dir/dumpcap.err" 'File:' $dumpcap &&
		until_said "$dir/remote.err" "waiting for a client" $remote && two_talk || rc=1
	kill "$(program_pid $remote)"
	wait $remote
	# Its ring has been read.
	sleep 2
	kill -INT $dumpcap
	wait $dumpcap
	end_switch
	cat "$dir/remote.err" "$dir/dumpcap.err"
	return $rc
}

# report FILE...: as JSON in file "json".
report() { (cd "$dir" && "$build/app/weft-dump" -j "$@" >json) && cat "$dir/json"; }

# Lanes lead from the uplink to the remote host and back. Nothing is wrong with the network, though
# hosts may be busy. The uplink shows all messages that the processes' own captures show.
processes_behind_it() {
	listen || return 1
	report first.pcapng second.pcapng remote.pcapng >"$dir/ends" &&
		report uplink.pcapng remote.pcapng >"$dir/uplink" &&
		report uplink.pcapng >"$dir/alone" &&
		report uplink.pcapng first.pcapng second.pcapng remote.pcapng >"$dir/all" ||
		return 1
	python3 - "$dir" <<-'END'
		import json, os, sys
		ends, uplink, alone, every = [
		    json.load(open(os.path.join(sys.argv[1], name)))
		    for name in ('ends', 'uplink', 'alone', 'all')]
		def messages(report):
		    return sorted((c['from'], c['to'], c['messages'], c['bytes'])
		                  for c in report['conversations'] if c['messages'])
		def flows(report):
		    return [f for lane in report['lanes'] for f in lane]
		def files(report):
		    return {(f['from_file'], f['to_file']) for f in flows(report)}
		def frames(report):
		    return sum(f['frames'] for f in flows(report))
		def faults(*reports):
		    return {a['class'] for r in reports for a in r['anomalies']}
		print(messages(ends), faults(ends), faults(uplink), faults(every))
		print(files(uplink), files(alone), alone['not_judged'], every['not_judged'])
		assert len(messages(ends)) >= 3
		assert messages(uplink) == messages(alone) == messages(every) == messages(ends)
		assert faults(ends, uplink, every) <= {'slow receiver', 'stopped peer'}
		assert not faults(alone) and files(alone) == {('?', '?')}
		way = 'uplink.pcapng', 'remote.pcapng'
		assert files(uplink) == {way, way[::-1]}
		assert files(every) == files(ends) and frames(every) == frames(ends)
	END
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
if command -v dumpcap >/dev/null && command -v python3 >/dev/null; then
	check "a capture at the uplink shows its processes and the remote host" processes_behind_it
else
	skip "a capture at the uplink shows its processes and the remote host" "dumpcap or python3"
fi
tap_end
