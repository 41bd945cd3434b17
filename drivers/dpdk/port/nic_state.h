/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/nic_state.h
 * Why a NIC is no DPDK port, or its memory is not there: what the kernel's folders say, in one
 * sentence with the way out. Reads files only.
 */
#ifndef WEFT_NIC_STATE_H
#define WEFT_NIC_STATE_H

#include <stdbool.h>
#include <stddef.h>

/** Where to look, and what the EAL has. */
struct weft_nic_env {
	const char *sys; /**< "/sys" */
	const char *dev; /**< "/dev" */
	bool hugepages;  /**< the EAL runs on hugepages */
	bool noiommu;    /**< vfio works without an IOMMU here (enable_unsafe_noiommu_mode) */
};

/** The machine we run on. The EAL is up. */
void weft_nic_env_here(struct weft_nic_env *env);

/** A PCI address as the kernel writes it ("0000:05:00.0"), from that or "05:00.0". */
bool weft_nic_address(const char *text, char address[16]);

/**
 * What is between DPDK and a NIC?
 *
 * @param address  as weft_nic_address() makes it
 * @param[out] why one sentence; it names the NIC
 * @return whether something was found that explains why there is no port
 */
bool weft_nic_problem(const struct weft_nic_env *env, const char *address, char *why,
		      size_t why_len);

/** Is a NIC bound to a driver that only DPDK uses: did somebody want a port? */
bool weft_nic_is_bound(const struct weft_nic_env *env, const char *address);

/**
 * Could the EAL find a port by itself? False where no bus has a network controller that DPDK can
 * use as it is bound now. The EAL need not be up.
 */
bool weft_nic_any(const struct weft_nic_env *env);

/**
 * Is the memory of a NUMA node used up while others have hugepages?
 * @param[out] why the end of a sentence, beginning with "; "; "" = no
 */
void weft_nic_node_memory(const struct weft_nic_env *env, int node, char *why, size_t why_len);

/**
 * Say to @p tell why NICs that somebody wanted are no ports: those that the EAL was given (-a) and
 * those that are bound to DPDK's drivers. The EAL is up. @return how many
 */
unsigned int weft_nic_tell(const struct weft_nic_env *env, void (*tell)(const char *sentence));

struct rte_devargs;

/** Is it an Ethernet device in software that the EAL was given, and that made no port? */
bool weft_vdev_is_missing(const struct rte_devargs *da, char *why, size_t why_len);

/**
 * Report each device that the EAL was given by name and that is no port. The EAL is up.
 *
 * @param tell  gets a sentence for each, with the remedy; NULL = they are counted only
 * @return how many
 */
unsigned int weft_port_tell_missing(void (*tell)(const char *sentence));

#endif /* WEFT_NIC_STATE_H */
