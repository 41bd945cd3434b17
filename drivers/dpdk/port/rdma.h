/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/rdma.h
 * NICs that the kernel and DPDK drive at the same time.
 *
 * DPDK's drivers of some NICs (mlx5, mana) use the kernel's RDMA driver and need no vfio-pci. While
 * such a port is started, the kernel's interface gets no unicast frames (DPDK's guide of mlx5:
 * "flow bifurcation"). So such a port is used only on request.
 */
#ifndef WEFT_PORT_RDMA_H
#define WEFT_PORT_RDMA_H

#include <stdbool.h>
#include <stddef.h>

/** The folder that contains the folders of PCI devices. */
#define WEFT_PORT_RDMA_SYSFS "/sys/bus/pci/devices"

/**
 * Does the kernel drive the NIC for RDMA?
 * @param sysfs   folder with one folder per device
 * @param device  the device's name: a PCI address
 * @param[out] rdma  the RDMA device's name
 */
bool weft_port_rdma(const char *sysfs, const char *device, char *rdma, size_t size);

#endif /* WEFT_PORT_RDMA_H */
