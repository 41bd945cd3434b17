/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/switch.h
 * A port of weft-switch (doc/switch.md): found by a well-known socket, created by one call, and
 * kept until the process ends; a forked child has none.
 */
#ifndef WEFT_SWITCH_H
#define WEFT_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Name of the DPDK device that is a port of weft-switch. */
#define WEFT_SWITCH_DEVICE "net_memif_switch"

/** The port's grant from the switch: its addresses, and the frames that it receives. */
struct weft_switch_place {
	uint16_t port_id; /**< DPDK's */
	uint16_t mtu;
	uint32_t ip, gw; /**< 0 = none */
	uint8_t prefix;
	uint16_t udp_port;      /**< single address: the port that it listens on; else 0 */
	uint16_t queue, queues; /**< single address: as for a NIC's queue (frame/steering.h) */
	bool uplink;            /**< frames leave the host */
};

/**
 * Find the socket of a switch.
 * @param conf  WEFT_SWITCH: "auto", "off", or a path
 * @return its socket, if one exists or a path was given; NULL
 */
const char *weft_switch_socket(const char *conf);

/**
 * Request a port and create it. The EAL is up. Once: a second call uses the port of the first one.
 * @return 0 or a negative error with a sentence
 */
int weft_switch_join(const char *socket, char *why, size_t why_len);

/** @return the place of a DPDK port that is the switch's; NULL: another port */
const struct weft_switch_place *weft_switch_place(uint16_t port_id);
/** The same by number or device name. */
const struct weft_switch_place *weft_switch_place_of(const char *resource);

#endif /* WEFT_SWITCH_H */
