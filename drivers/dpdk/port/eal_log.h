/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/eal_log.h
 * DPDK's log lines while the EAL starts. A process that requested no port gets a line for each NIC
 * that a PMD probes and cannot use, even if the process then works over shared memory. Such lines
 * are held back, and printed if the start fails.
 *
 * Threads: the one that starts the EAL. Needs DPDK and libc only.
 */
#ifndef WEFT_EAL_LOG_H
#define WEFT_EAL_LOG_H

#include <stdbool.h>

/**
 * Is a NIC bound to DPDK's kernel drivers (vfio, uio) by its administrator? Lines about it are of
 * use.
 * @param sys  "/sys"
 */
bool weft_eal_log_nic_bound(const char *sys);

/** Before rte_eal_init(): hold the lines back. Without memory they are printed as usual. */
void weft_eal_log_hold(void);

/**
 * After it: later lines are printed as usual.
 * @param show  print the lines that were held back, to standard error
 */
void weft_eal_log_release(bool show);

#endif /* WEFT_EAL_LOG_H */
