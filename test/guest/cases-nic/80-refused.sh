# SPDX-License-Identifier: BSD-3-Clause
# What can't work is said in a sentence with the port and what to do.
. "$(dirname "$0")/../nic.sh"

# refused WORDS ARGS...: weft-info fails, and says so.
refused() {
	local words=$1 rc=0
	shift
	"$info" "$@" >"$dir/out" 2>"$dir/err" || rc=$?
	cat "$dir/err"
	[ $rc != 0 ] && grep -qiE "$words" "$dir/err"
}

no_hugepages() {
	local pages=/proc/sys/vm/nr_hugepages had rc=0
	had=$(cat $pages)
	echo 0 >$pages
	refused "hugepages" "${eal[@]}" "${allowed[@]}" -- -d -L "$list" || rc=1
	echo "$had" >$pages
	return $rc
}

still_the_kernels() {
	nic kernel || return
	refused "$address.*(kernel|bound|driver)|bind" "${eal[@]}" -a "$address" -- -d -L "dpdk:$address"
}

too_long() {
	give vmxnet3-0 && allow vmxnet3-0 && lanes vmxnet3-0,mtu=9100 || return
	refused "carries frames of at most 9014 bytes" "${eal[@]}" "${allowed[@]}" -- -d -L "$list"
}

give virtio0 && allow virtio0 && lanes virtio0 || exit
check "no hugepages and a NIC behind uio: the sentence says that it needs some" no_hugepages
check "a NIC that its kernel driver still has: the sentence says how to bind it" still_the_kernels
check "an MTU beyond the NIC's: the sentence names what it takes" too_long
tap_end
