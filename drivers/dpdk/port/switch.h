/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/switch.h
 * A port of weft-switch (doc/switch.md): found by a well-known socket, made with one call, and kept
 * until the process ends; a child that is forked has none.
 */
#ifndef WEFT_SWITCH_H
#define WEFT_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Name of the DPDK device that is a port of weft-switch. */
#define WEFT_SWITCH_DEVICE "net_memif_switch"

/** What the switch has said of the port: its addresses, and which frames are for it. */
struct weft_switch_place {
	uint16_t port_id; /**< DPDK's */
	uint16_t mtu;
	uint32_t ip, gw; /**< 0 = none */
	uint8_t prefix;
	uint16_t udp_port;      /**< single address: that it listens on; else 0 */
	uint16_t queue, queues; /**< single address: as of a NIC's queue (frame/steering.h) */
	bool uplink;            /**< frames leave the host */
};

/**
 * Where is a switch?
 * @param conf  WEFT_SWITCH: "auto", "off", or a path
 * @return its socket, if one is there or a path was given; NULL
 */
const char *weft_switch_socket(const char *conf);

/**
 * Ask for a port and make it. The EAL is up. Once: a second call finds what the first one made.
 * @return 0 or a negative error with a sentence
 */
int weft_switch_join(const char *socket, char *why, size_t why_len);

/** Of a DPDK port that is the switch's; NULL: another one. */
const struct weft_switch_place *weft_switch_place(uint16_t port_id);
/** The same by number or device name. */
const struct weft_switch_place *weft_switch_place_of(const char *resource);

#endif /* WEFT_SWITCH_H */
