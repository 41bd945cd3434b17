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

struct weft_nic_env {
	const char *sys; /**< "/sys" */
	const char *dev; /**< "/dev" */
	bool hugepages;
	bool noiommu; /**< vfio works without an IOMMU here (enable_unsafe_noiommu_mode) */
};

/** Fill in the folders of this machine, and the state of its EAL, which is up. */
void weft_nic_env_here(struct weft_nic_env *env);

/** Write "05:00.0" or "0000:05:00.0" in the kernel's form. @return false: no PCI address */
bool weft_nic_address(const char *text, char address[16]);

/**
 * @param address  from weft_nic_address()
 * @param[out] why one sentence that names the NIC and the reason why it is no port
 * @return true: a reason was found
 */
bool weft_nic_problem(const struct weft_nic_env *env, const char *address, char *why,
		      size_t why_len);

/** Is a NIC bound to a driver for user space (vfio-pci, uio), so that it should be a port? */
bool weft_nic_is_bound(const struct weft_nic_env *env, const char *address);

/** Is there a network controller that DPDK can use as it is bound now? The EAL need not be up. */
bool weft_nic_any(const struct weft_nic_env *env);

/** @param[out] why  the end of a sentence, if the node lacks hugepages that another has; else "" */
void weft_nic_node_memory(const struct weft_nic_env *env, int node, char *why, size_t why_len);

/**
 * Report why NICs of the EAL's arguments (-a) are no ports, with a sentence for each. If the
 * arguments name none (-a, -b), report on those that are bound to DPDK's drivers. The EAL is up.
 * @return their number
 */
unsigned int weft_nic_explain(const struct weft_nic_env *env, void (*report)(const char *sentence));

struct rte_devargs;

/** Do the EAL's arguments name a virtual Ethernet device, @p da, that made no port? */
bool weft_vdev_is_missing(const struct rte_devargs *da, char *why, size_t why_len);

/**
 * Report each device that the EAL's arguments name and that is no port, with a sentence and the
 * remedy. The EAL is up. @p report NULL = only count. @return their number
 */
unsigned int weft_port_explain_missing(void (*report)(const char *sentence));

/* ---- NICs that the kernel drives, too ------------------------------------------------------- */

/*
 * DPDK's drivers of some NICs (mlx5, mana) use the kernel's RDMA driver and need no vfio-pci. While
 * such a port is started, the kernel's interface gets no unicast frames (DPDK's guide of mlx5:
 * "flow bifurcation"). So such a port is used only on request.
 */

#define WEFT_PORT_RDMA_SYSFS "/sys/bus/pci/devices"

/** @param device  a PCI address. @param[out] rdma  the RDMA device's name, if the NIC has one */
bool weft_port_rdma(const char *sysfs, const char *device, char *rdma, size_t size);

#endif /* WEFT_NIC_STATE_H */
