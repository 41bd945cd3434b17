/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/eth_port.h
 * A port of DPDK with one queue, that takes all frames: of programs that pass them on.
 */
#ifndef APP_ETH_PORT_H
#define APP_ETH_PORT_H

#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mempool.h>

/** Entries of each of its rings, if it has as many. */
#define ETH_PORT_RING 1024

/** Configure and start it. @return APP_OK or an exit code after a sentence */
int eth_port_open(uint16_t port, uint16_t mtu, struct rte_mempool *pool);

/** @param buf  of RTE_ETH_NAME_MAX_LEN bytes @return buf */
const char *eth_port_name(uint16_t port, char *buf);

#endif /* APP_ETH_PORT_H */
