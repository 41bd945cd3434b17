# SPDX-License-Identifier: BSD-3-Clause
#
# A guest with emulated PCI NICs behind an emulated IOMMU (VT-d): PMDs get their NICs by vfio-pci,
# and DMA takes virtual addresses.
# shellcheck shell=bash disable=SC2034 # read by run.sh

. "$here/kinds/pairs.sh"
modules=("${modules_root[@]}" af_packet irqbypass vfio vfio_virqfd vfio_iommu_type1 vfio_pci_core \
	vfio_pci uio uio_pci_generic)
needs=vfio_pci
cases_dir=cases-iommu
cmdline="hugepages=300 intel_iommu=on iommu=nopt"
pmds="net_virtio net_e1000 net_vmxnet3"

virtio=virtio-net-pci,disable-legacy=on,iommu_platform=on,ats=on
pair virtio0 $virtio virtio1 $virtio
pair e1000e0 e1000e e1000e1 e1000e
pair virtio2 $virtio vmxnet3-2 vmxnet3
machine=(-machine "q35,kernel-irqchip=split" \
	-device "intel-iommu,aw-bits=48,intremap=off,caching-mode=on,device-iotlb=on" \
	"${devices[@]}")
