# SPDX-License-Identifier: BSD-3-Clause
# A NIC's PMD, and at the other end the kernel's driver of such a NIC with net_af_packet above it.
. "$(dirname "$0")/../nic.sh"

# of NAME: the kernel's interface of a NIC.
of() {
	nic "$1" && ls "/sys/bus/pci/devices/$address"/virtio*/net
}

# kernel INTERFACE OPTIONS ARGS...: the PMD is the client.
kernel() {
	local interface=$1 options=$2
	shift 2
	give virtio3 && allow virtio3 && lanes "virtio3${options:+,$options}" || return
	client_eal=("${allowed[@]}")
	server_eal=(--no-pci --vdev="net_af_packet0,iface=$interface,blocksz=8192,framesz=4096")
	perf_pair "dpdk:0${options:+,${options#vlan=5,}}" "$list" "$@" && whole
}

interface=$(of kernel)
ip link set "$interface" mtu 3000 up && ip link add link \
	"$interface" name tagged mtu 2900 type vlan id 5 && ip link set tagged up || exit
stream=(-t tag_bw -s 8,64k,1M -n 8 -w 1 -O 4 -f -V -v)
check "csum=udp: what the PMD leaves to the NIC the other end finds right" kernel \
	"$interface" mtu=3000,csum=udp "${stream[@]}"
check "csum=auto, vlan=5: every byte, and the kernel sees the tag" kernel tagged vlan=5,mtu=2900 \
	"${stream[@]}"
tap_end
