# SPDX-License-Identifier: BSD-3-Clause
# Lane options and IPv6 on each kind of NIC, and lanes over two kinds at once.
. "$(dirname "$0")/../nic.sh"

all=(virtio0 virtio1 e1000e0 e1000e1 82545em0 82545em1 vmxnet3-0 vmxnet3-1)
duos="virtio0:virtio1 e1000e0:e1000e1 82545em0:82545em1 vmxnet3-0:vmxnet3-1"
if has_nic igb0; then
	all+=(igb0 igb1)
	duos+=" igb0:igb1"
fi

for duo in $duos; do
	one=${duo%:*} two=${duo#*:}
	for options in vlan=5,mtu=9000 vlan=5,csum=none,mtu=1500 csum=udp,paths=4,mtu=1500 \
		csum=crc32c,mtu=1500 encap=ether,mtu=1500 ip=fe80::/64,mtu=1500; do
		case $one:$options in
		*csum=none*) agreed="no checksum" ;;
		*csum=udp*) agreed="UDP checksum" ;;
		*csum=crc32c* | *encap=ether*) agreed="CRC32C" ;;
		# By itself: QEMU offers virtio no checksums on a hub; the other NICs check those of
		# UDP.
		virtio*) agreed="CRC32C" ;;
		*) agreed="UDP checksum" ;;
		esac
		echo "$one - $two, $options|$one,$options|$two,$options|csum=$agreed"
	done
done >"$dir/matrix"
# Shares follow rates that are given: an emulated NIC's own may be measured 50 times too low.
# Four columns each: name, lanes of either end, what is expected.
printf '%s|%s|%s|%s\n' >>"$dir/matrix" \
	"two rails: virtio and e1000e" \
	"virtio0,mtu=1500 e1000e0,mtu=1500" "virtio1,mtu=1500 e1000e1,mtu=1500" rails \
	"two rails: virtio and vmxnet3, MTU 1500" \
	"virtio0,mtu=1500,bw=1Gbps vmxnet3-0,mtu=1500,bw=1Gbps" \
	"virtio1,mtu=1500,bw=1Gbps vmxnet3-1,mtu=1500,bw=1Gbps" both \
	"two rails: 82545em and vmxnet3, MTUs 1500 and 9000" \
	"82545em0,mtu=1500 vmxnet3-0,mtu=9000" "82545em1,mtu=1500 vmxnet3-1,mtu=9000" rails
pairs "${all[@]}" <"$dir/matrix"
tap_end
