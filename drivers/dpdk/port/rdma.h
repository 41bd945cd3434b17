/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/rdma.h
 * NICs that the kernel and DPDK drive at the same time.
 *
 * DPDK's drivers of some NICs (mlx5, mana) stand on the kernel's RDMA driver and need no vfio-pci.
 * While such a port is started, the kernel's interface gets no unicast frames any more (DPDK's
 * guide of mlx5: "flow bifurcation"). So nobody gets such a port who has not requested it.
 */
#ifndef WEFT_PORT_RDMA_H
#define WEFT_PORT_RDMA_H

#include <stdbool.h>
#include <stddef.h>

/** Where devices of the PCI bus have their folders. */
#define WEFT_PORT_RDMA_SYSFS "/sys/bus/pci/devices"

/**
 * Does the kernel drive the NIC for RDMA?
 * @param sysfs   folder with one folder per device
 * @param device  the device's name: a PCI address
 * @param[out] rdma  the RDMA device's name
 */
bool weft_port_rdma(const char *sysfs, const char *device, char *rdma, size_t size);

#endif /* WEFT_PORT_RDMA_H */
