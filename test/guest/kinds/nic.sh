# SPDX-License-Identifier: BSD-3-Clause
#
# A guest with emulated PCI NICs for DPDK's physical PMDs. It has no IOMMU: PMDs get their NICs by
# uio_pci_generic, and DMA takes physical addresses. QEMU's monitor
# is at the other end of a virtio serial port: by it the cases take links down.
# shellcheck shell=bash disable=SC2034 # read by run.sh

. "$here/kinds/pairs.sh"
modules=("${modules_root[@]}" virtio_console failover net_failover virtio_net af_packet stp llc \
	garp mrp 8021q uio uio_pci_generic)
needs=uio_pci_generic
cases_dir=cases-nic
cmdline="hugepages=300"
pmds="net_virtio net_e1000 net_vmxnet3 net_af_packet"

# Without its older half, as the clouds offer it.
virtio=virtio-net-pci,disable-legacy=on
pair virtio0 $virtio virtio1 $virtio
pair e1000e0 e1000e e1000e1 e1000e
# From QEMU 8.0 on.
if qemu-system-x86_64 -device help 2>/dev/null | grep -q '^name "igb"'; then
	pair igb0 igb igb1 igb
fi
pair 82545em0 e1000-82545em 82545em1 e1000-82545em
pair vmxnet3-0 vmxnet3 vmxnet3-1 vmxnet3
pair virtio2 $virtio e1000e2 e1000e
pair vmxnet3-2 vmxnet3 82545em2 e1000-82545em
# The guest's kernel keeps the second one.
pair virtio3 $virtio kernel $virtio
# Two queues each, where this host gives taps to a user with a namespace.
taps=(unshare -n "$here/taps.sh" weft0 weft1)
[ "$(id -u)" = 0 ] || taps=(unshare -rn "$here/taps.sh" weft0 weft1)
if "${taps[@]}" >/dev/null 2>&1; then
	around=("${taps[@]}" --)
	tap tap0 weft0 $virtio,mq=on,vectors=6
	tap tap1 weft1 $virtio,mq=on,vectors=6,rss=on
fi
machine=(-machine q35 "${devices[@]}" -device "virtio-serial-pci,addr=0x3"
	-chardev "socket,id=monitor,path=$sockets/monitor,server=on,wait=off" \
		-mon "chardev=monitor,mode=readline"
	-chardev "socket,id=guest,path=$sockets/monitor" \
		-device "virtserialport,chardev=guest,name=monitor")
