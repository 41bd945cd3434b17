/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Differences between the DPDK versions that Weft builds with, 22.11 (Debian 12) and 24.11 (Debian
 * 13), under the names of the newer one. No other file of the tree depends on the version.
 */

#ifndef WEFT_DPDK_COMPAT_H
#define WEFT_DPDK_COMPAT_H

#include <rte_config.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)

/* The name in 22.11, rte_tel_data_add_dict_u64(), was deprecated later. */
static inline int rte_tel_data_add_dict_uint(struct rte_tel_data *d, const char *name,
					     uint64_t value)
{
	return rte_tel_data_add_dict_u64(d, name, value);
}

#endif

/*
 * net_memif since 23.03 sends each mbuf of a chain as a descriptor of its own. Up to 26.03 it never
 * clears the flag for chains, and its receiver writes the parts over each other. So a frame must be
 * one mbuf, whatever version the peer runs.
 */
#define WEFT_MEMIF_SPLITS_CHAINS (RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0))

#endif /* WEFT_DPDK_COMPAT_H */
