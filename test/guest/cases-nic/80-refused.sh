# SPDX-License-Identifier: BSD-3-Clause
# What can't work is said in an error message with the port and what to do.
. "$(dirname "$0")/../nic.sh"

# As whom it runs.
as=()

# refused WORDS ARGS...: weft-info fails, and says so.
refused() {
	local words=$1 rc=0
	shift
	"${as[@]}" "$info" "$@" >"$dir/out" 2>"$dir/err" || rc=$?
	cat "$dir/err"
	[ $rc != 0 ] && grep -qiE "$words" "$dir/err"
}

no_hugepages() {
	local pages=/proc/sys/vm/nr_hugepages had rc=0
	had=$(cat $pages)
	nic virtio0 || return
	echo 0 >$pages
	refused "$address is bound to uio_pci_generic, which needs hugepages" "${eal[@]}" \
		"${allowed[@]}" -- -d -L "$list" || rc=1
	echo "$had" >$pages
	return $rc
}

still_the_kernels() {
	nic kernel || return
	refused "$address is still the kernel's .*weft-bind $address" "${eal[@]}" -a "$address" -- \
		-d -L "dpdk:$address"
}

# The guest has no IOMMU.
without_a_driver() {
	nic kernel || return
	local device=/sys/bus/pci/devices/$address rc=0
	echo none >"$device/driver_override" && echo "$address" >"$device/driver/unbind" || return
	refused "$address has no driver: no IOMMU is on, .*weft-bind $address" \
		"${eal[@]}" -a "$address" -- -d -L "dpdk:$address" || rc=1
	echo >"$device/driver_override"
	echo "$address" >/sys/bus/pci/drivers_probe
	return $rc
}

# Root without the right to open others' files; another user could not read the build.
no_permission() {
	local file rc=0 as=(setpriv --bounding-set=-dac_override,-dac_read_search)
	give e1000e0 && allow e1000e0 && lanes e1000e0 || return
	file=/dev/$(ls "/sys/bus/pci/devices/$address/uio")
	chown 65534 "$file" && chmod 600 "$file" || return
	refused "$address is bound to $driver, but you may not open $file: run as root" \
		"${eal[@]}" "${allowed[@]}" -- -d -L "$list" || rc=1
	chown 0 "$file"
	return $rc
}

# A server whose wire has no other end.
asked=virtio0,ip=10.9.0.1/32,gw=10.9.0.254

start_asked() {
	ends $asked virtio2 && server "$server" -k -S CONNECT_TIMEOUT=2s
}

# nobody_answers CLIENT WORDS: to a client with a link, on another wire.
nobody_answers() {
	local rc=0
	ends $asked "$1" || return
	client "$list" -t tag_lat -n 1 -S CONNECT_TIMEOUT=2s || rc=$?
	cat "$dir/client.err"
	[ $rc != 0 ] && grep -qE "$2" "$dir/client.err"
}

end_asked() {
	local rc=0
	kill "$server_pid"
	wait "$server_pid" || rc=$?
	cat "$dir/server.err"
	[ $rc = 143 ]
}

too_long() {
	give vmxnet3-0 && allow vmxnet3-0 && lanes vmxnet3-0,mtu=9100 || return
	refused "carries frames of at most 9014 bytes" "${eal[@]}" "${allowed[@]}" -- -d -L "$list"
}

give virtio0 && allow virtio0 && lanes virtio0 || exit
check "no hugepages and a NIC behind uio: the sentence says that it needs some" no_hugepages
check "a NIC that its kernel driver still has: the sentence says how to bind it" still_the_kernels
check "an MTU beyond the NIC's: the sentence names what it takes" too_long
check "a NIC without driver, and no IOMMU: the sentence does not send to vfio-pci" without_a_driver
check "a NIC whose file is another user's: the sentence names the file" no_permission
check "a server that nobody can reach waits for clients" start_asked
check "ARP that nobody answers: the sentence names who was asked" \
	nobody_answers virtio2,ip=10.9.0.2/24 \
	"dpdk:[^ ]*: no ARP answer from 10.9.0.1 in .*check addresses"
check "a gateway that does not answer: the sentence names it" nobody_answers \
	virtio2,ip=10.7.0.2/32,gw=10.7.0.1 \
	"dpdk:[^ ]*: no ARP answer from the gateway 10.7.0.1 in .*wanted for 10.9.0.1.*check gw="
check "the server outlives its clients, until it is ended" end_asked
tap_end
