/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/nic_state.h
 * The reason why a NIC is no DPDK port, or has no memory, from the kernel's folders, in one
 * sentence with the remedy. Reads files only.
 */
#ifndef WEFT_NIC_STATE_H
#define WEFT_NIC_STATE_H

#include <stdbool.h>
#include <stddef.h>

/** The folders to read, and the state of the EAL. */
struct weft_nic_env {
	const char *sys; /**< "/sys" */
	const char *dev; /**< "/dev" */
	bool hugepages;  /**< the EAL runs on hugepages */
	bool noiommu;    /**< vfio works without an IOMMU here (enable_unsafe_noiommu_mode) */
};

/** Fill in the folders of this machine, and the state of its EAL, which is up. */
void weft_nic_env_here(struct weft_nic_env *env);

/**
 * Write a PCI address in the kernel's form, "0000:05:00.0", also if @p text is "05:00.0".
 * @return false: @p text is no PCI address
 */
bool weft_nic_address(const char *text, char address[16]);

/**
 * Find the reason why a NIC is no port.
 *
 * @param address  from weft_nic_address()
 * @param[out] why one sentence; it names the NIC
 * @return true: a reason was found
 */
bool weft_nic_problem(const struct weft_nic_env *env, const char *address, char *why,
		      size_t why_len);

/** Is a NIC bound to a driver for user space (vfio-pci, uio), so that it should be a port? */
bool weft_nic_is_bound(const struct weft_nic_env *env, const char *address);

/**
 * Could the EAL find a port by itself? False if no bus has a network controller that DPDK can use
 * as it is bound now. The EAL need not be up.
 */
bool weft_nic_any(const struct weft_nic_env *env);

/**
 * Is the memory of a NUMA node used up while other nodes have free hugepages?
 * @param[out] why the end of a sentence, beginning with "; "; "" = no
 */
void weft_nic_node_memory(const struct weft_nic_env *env, int node, char *why, size_t why_len);

/**
 * Report why requested NICs are no ports: those in the EAL's arguments (-a). If the arguments name
 * none (-a, -b), report on those that are bound to DPDK's drivers. The EAL is up. The callback gets
 * a sentence for each.
 * @return their number
 */
unsigned int weft_nic_explain(const struct weft_nic_env *env, void (*report)(const char *sentence));

struct rte_devargs;

/** Do the EAL's arguments name a virtual Ethernet device, @p da, that made no port? */
bool weft_vdev_is_missing(const struct rte_devargs *da, char *why, size_t why_len);

/**
 * Report each device that the EAL's arguments name and that is no port. The EAL is up. The callback
 * gets a sentence for each, with the remedy; NULL = they are only counted.
 *
 * @return their number
 */
unsigned int weft_port_explain_missing(void (*report)(const char *sentence));

/* ---- NICs that the kernel drives, too ------------------------------------------------------- */

/*
 * NICs that the kernel and DPDK drive at the same time.
 *
 * DPDK's drivers of some NICs (mlx5, mana) use the kernel's RDMA driver and need no vfio-pci. While
 * such a port is started, the kernel's interface gets no unicast frames (DPDK's guide of mlx5:
 * "flow bifurcation"). So such a port is used only on request.
 */

/** The folder that contains the folders of PCI devices. */
#define WEFT_PORT_RDMA_SYSFS "/sys/bus/pci/devices"

/**
 * Does the kernel drive the NIC for RDMA?
 * @param sysfs   folder with one folder per device
 * @param device  the device's name: a PCI address
 * @param[out] rdma  the RDMA device's name
 */
bool weft_port_rdma(const char *sysfs, const char *device, char *rdma, size_t size);

#endif /* WEFT_NIC_STATE_H */
