# SPDX-License-Identifier: BSD-3-Clause
# Zero-copy sends by a NIC that reads user memory through the IOMMU.
. "$(dirname "$0")/../nic.sh"

driver=vfio-pci
# This IOMMU does not remap interrupts.
echo 1 >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts

# counted NAME: of the last run's client
counted() { awk -v name="dpdk:0.$1" '$1 == name { n = $2 } END { print n + 0 }' "$dir/client.err"; }

from_user_memory() {
	both e1000e0 e1000e1 -t tag_bw -s 1M -n 8 -w 1 -O 4 -f -V -v || return
	echo "# zcopy $(counted tx.zcopy), copied instead $(counted tx.zcopy.copied)," \
		"maps $(counted dma.mapped), failed $(counted dma.failed)"
	# 9 messages of some 740 frames
	[ "$(counted tx.zcopy)" -gt 5000 ] && [ "$(counted tx.zcopy.copied)" = 0 ] &&
		[ "$(counted dma.mapped)" -gt 0 ] && [ "$(counted dma.failed)" = 0 ]
}

no_zero_copy() {
	both virtio0 virtio1 -t tag_bw -s 1M -n 4 -w 1 -O 4 -f -V -v || return
	[ "$(counted tx.zcopy)" = 0 ] && [ "$(counted dma.areas)" = 0 ]
}

check "e1000e: 1 MiB messages go from user memory, every byte" from_user_memory
check "virtio tells nothing of sent buffers: copies" no_zero_copy
tap_end
