/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/eal_start.h
 * Starting the EAL for a program: with the arguments before "--", else with those of WEFT_EAL_ARGS.
 */
#ifndef APP_EAL_START_H
#define APP_EAL_START_H

struct weft_config;

/**
 * Start the EAL; where it stays silent is drivers/dpdk/port/eal.h's business.
 *
 * The EAL would pin the thread to its first core, and so all programs of a host to core 0. Here the
 * thread keeps the cores that it had, unless the arguments choose some.
 * @param count, words  from weft_eal_split_args(); count < 0 = WEFT_EAL_ARGS
 * @param core          core to pin the calling thread to afterwards, -1 = none
 * @return APP_OK or the exit code, after an error message
 */
int eal_start(int count, char **words, const struct weft_config *config, int core);

/**
 * After no lane reached a peer: print how to get one, where lanes are not named and there is no
 * DPDK port and no RDMA device.
 */
void eal_hint_ports(const struct weft_config *config);

/** All ports, but none that its PMD left unfit to be closed. */
void eal_close_ports(void);

/**
 * What main() returns with. Once the EAL is up the process ends in here, and on the EAL's interrupt
 * thread: only there nothing happens to ports meanwhile. memif serves peers that connect and hang
 * up on that thread, and would do it on memory that rte_eal_cleanup() or a destructor has just
 * taken away. Closed ports leave no sockets behind, and the cleanup no hugepages.
 */
int eal_exit(int code);

#endif /* APP_EAL_START_H */
