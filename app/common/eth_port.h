/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/eth_port.h
 * Ports of programs that forward frames: drivers/dpdk/port/ethdev.h with error messages and exit
 * codes.
 */
#ifndef APP_ETH_PORT_H
#define APP_ETH_PORT_H

#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "drivers/dpdk/port/ethdev.h"

/** Entries of each ring of a port, or the port's maximum where that is less. */
#define ETH_PORT_RING 1024

/** @param mtu  in bytes; 0 = the port's own. @return APP_OK, or an exit code after a message */
int eth_port_find(uint16_t port, uint16_t mtu, struct weft_passing_limits *limits);

/**
 * The data room of buffers in bytes, headroom included, for frames of an MTU with two VLAN tags.
 * @param mtu  in bytes
 * @param room the largest `room` of the ports' limits
 */
uint16_t eth_port_room(uint16_t mtu, uint16_t room);

/** @return APP_OK or an exit code after an error message */
int eth_port_open(uint16_t port, uint16_t mtu, struct rte_mempool *pool);

/** Frames that a port's receive ring has lost: by the device's counters, or by the kernel's. */
struct eth_port_ring {
	int sock; /**< socket of net_af_packet, whose PMD counts no losses; < 0 = another PMD */
	uint64_t lost;
};

/** Call it after eth_port_open(). */
void eth_port_ring_init(uint16_t port, struct eth_port_ring *r);
uint64_t eth_port_ring_lost(uint16_t port, struct eth_port_ring *r);

/** @param buf  of RTE_ETH_NAME_MAX_LEN bytes @return buf */
const char *eth_port_name(uint16_t port, char *buf);

#endif /* APP_ETH_PORT_H */
