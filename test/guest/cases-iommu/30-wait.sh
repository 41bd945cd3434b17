# SPDX-License-Identifier: BSD-3-Clause
# Workers that sleep: RX interrupts by vfio-pci, and NICs that have none.
. "$(dirname "$0")/../nic.sh"

driver=vfio-pci
# This IOMMU does not remap interrupts.
echo 1 >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts

# counted NAME: of the last run's client
counted() { awk -v name="dpdk:0.$1" '$1 == name { n = $2 } END { print n + 0 }' "$dir/client.err"; }

asleep() { both "$1" "$2" -t tag_lat -s 8 -n 300 -w 20 -V -v --sleep; }

# Whose client is woken, and by nothing else: sleeps that ran out beside a frame are few.
wakes() {
	asleep "$1" "$2" || return
	echo "# median $(column 50.0_percentile_lat) us; wakes $(counted rx_intr.wakes)," \
		"empty $(counted rx_intr.empty), missed $(counted rx_intr.missed)," \
		"late $(counted rx_intr.late)"
	[ "$(counted rx_intr.wakes)" -gt 100 ] &&
		[ $(($(counted rx_intr.missed) * 10)) -lt "$(counted rx_intr.wakes)" ]
}

# Its interrupts don't come: the port does not rely on them.
none() {
	asleep "$1" "$2" || return
	! grep -q rx_intr "$dir/client.err"
}

check "virtio: frames wake, every byte" wakes virtio0 virtio1
check "vmxnet3: frames wake, every byte" wakes virtio2 vmxnet3-2
check "e1000e: without interrupts, every byte" none e1000e0 e1000e1
tap_end
