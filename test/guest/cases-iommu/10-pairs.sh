# SPDX-License-Identifier: BSD-3-Clause
# NICs behind an IOMMU: vfio-pci, and DMA by virtual addresses.
. "$(dirname "$0")/../nic.sh"

driver=vfio-pci
# This IOMMU does not remap interrupts.
echo 1 >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts

virtual_addresses() {
	give virtio0 && allow virtio0 && lanes virtio0 || return
	"$info" "${eal[@]}" --log-level=lib.eal:info "${allowed[@]}" -- -d -L "$list" >"$dir/info" \
		2>&1 || {
		cat "$dir/info"
		return 1
	}
	cat "$dir/info"
	grep -q "Selected IOVA mode 'VA'" "$dir/info"
}

check "virtio0 opens, DMA takes virtual addresses" virtual_addresses
duos="virtio0:virtio1 e1000e0:e1000e1 virtio2:vmxnet3-2"
for duo in $duos; do
	one=${duo%:*} two=${duo#*:}
	# Ever smaller: virtio's PMD keeps the receive buffers of a port's last life.
	for mtu in 9000 1500 1300; do
		echo "$one - $two, MTU $mtu|$one,mtu=$mtu|$two,mtu=$mtu"
	done
done >"$dir/matrix"
pairs virtio0 virtio1 e1000e0 e1000e1 virtio2 vmxnet3-2 <"$dir/matrix"
check "virtio - virtio, two processes: a stream, every byte" both virtio0 virtio1 -t tag_bw \
	-s 8,64k,1M -n 8 -w 1 -O 4 -f -V -v
tap_end
