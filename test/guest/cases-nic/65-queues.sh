# SPDX-License-Identifier: BSD-3-Clause
# Several workers on one port that takes no flow rules: virtio with two queues, on taps of the host.
# One tap spreads frames by a rule of its own (a flow comes to the queue that last sent to it),
# which the driver does not report; the other device hashes as the driver wants (RSS), and reports.
. "$(dirname "$0")/../nic.sh"

queues=$build/test/guest/nic_queues

# way NAME WORDS: so its workers said that frames find them.
way() {
	nic "$1" && [ "$(grep -cE "UDP port .*$2" "$dir/queues.err")" = 2 ]
}

# run OPTIONS: nic_queues between the two.
run() {
	local rc=0 first
	give tap0 tap1 && allow tap0 tap1 && lanes "tap0,queues=2,$1" && first=$list &&
		lanes "tap1,queues=2,$1" || return
	WEFT_LOG_LEVEL=info WEFT_EAL_ARGS="${eal[*]} ${allowed[*]}" "$queues" "$first" "$list" \
		>"$dir/queues" 2>"$dir/queues.err" || rc=$?
	cat "$dir/queues" "$dir/queues.err" >&2
	return $rc
}

if ! has_nic tap0; then
	skip "virtio with two queues on taps" \
		"this host gives no taps: it takes namespaces (unshare -rn), ip, /dev/net/tun and a bridge"
	tap_end
	exit
fi
run mtu=1500
adopt "$dir/queues" 6 $?
check "the tap's own rule is found by trying" way tap0 \
	"does not report how they find it, so ports are tried"
check "RSS: the driver reports it" way tap1 "its hash brings them there, as its driver reports"
check "frames of 9000 bytes, whose UDP checksums the devices make: the same" run mtu=9000,csum=udp
tap_end
