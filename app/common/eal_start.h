/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/eal_start.h
 * Start of the EAL for a program: with the arguments before "--", else with those of WEFT_EAL_ARGS.
 */
#ifndef APP_EAL_START_H
#define APP_EAL_START_H

struct weft_config;

/**
 * Start the EAL. drivers/dpdk/port/eal.h describes which of its log lines are suppressed.
 *
 * The EAL would pin the thread to its first core, which is core 0 for all programs of a host. Here
 * the thread keeps its CPU affinity, unless the arguments choose cores.
 * @param count, words  from weft_eal_split_args(); count < 0 = WEFT_EAL_ARGS
 * @param core          core to pin the calling thread to afterwards, -1 = none
 * @return APP_OK or the exit code, after an error message
 */
int eal_start(int count, char **words, const struct weft_config *config, int core);

/**
 * No lane reached a peer: print how to get a lane. Prints only where WEFT_LANES names no lanes and
 * there is no DPDK port, no RDMA device and no switch.
 */
void eal_hint_ports(const struct weft_config *config);

/** Close all ports, except those whose PMD crashes when it closes them. */
void eal_close_ports(void);

/**
 * The last call of main(). When the EAL is up, the process ends in this call: the EAL's interrupt
 * thread closes all ports, so that no sockets of ports stay behind, and exits. On another thread,
 * callbacks of ports could run at the same time: memif handles peers that connect and disconnect on
 * the interrupt thread. After rte_eal_cleanup() or a destructor these callbacks would use freed
 * memory. If the interrupt thread does not exit within 2 s, the process ends with open ports.
 * @return @p code, when the EAL is not up
 */
int eal_exit(int code);

#endif /* APP_EAL_START_H */
