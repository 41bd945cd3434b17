/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/switch_wire.h
 * The answer of weft-switch to a process that requests a port (doc/switch.md). The process connects
 * to the well-known socket (SOCK_SEQPACKET) and gets one grant. It owns the port as long as it
 * keeps that connection, or the memif connection that it then makes.
 */
#ifndef WEFT_SWITCH_WIRE_H
#define WEFT_SWITCH_WIRE_H

#include <assert.h>
#include <stdint.h>

/** The socket of a switch, unless WEFT_SWITCH contains another one. */
#define WEFT_SWITCH_SOCKET "/run/weft/switch.sock"

#define WEFT_SWITCH_MAGIC 0x77536657u /* "WfSw" */
#define WEFT_SWITCH_VERSION 1u
/** Ports of a switch at most: each has a bit of a word, and a share of the UDP ports. */
#define WEFT_SWITCH_PORTS 64u

/** All share one MAC and one IP address: a frame belongs to the owner of its UDP port. */
#define WEFT_SWITCH_F_SINGLE 0x1u
/** The switch has an uplink to a network: frames leave the host. */
#define WEFT_SWITCH_F_UPLINK 0x2u

/** In the host's byte order: both ends are on the same host. */
struct weft_switch_grant {
	uint32_t magic;
	uint16_t version, size;
	int32_t error; /**< 0, or a negative errno with a sentence in text */
	uint32_t flags;
	uint16_t port, ports; /**< number of this port; number of ports of the switch */
	uint16_t udp_port;    /**< single: port 0 listens on it, the others on the following ones */
	uint16_t mtu;
	uint32_t ip, gw; /**< 0 = none: a link-local address of the MAC */
	uint8_t prefix;
	uint8_t log2_ring; /**< memif's rsize */
	uint8_t mac[6];
	uint32_t bsize;   /**< memif's */
	char socket[108]; /**< memif's; its id is the port's number */
	char secret[24];  /**< memif's */
	char text[256];
};

static_assert(sizeof(struct weft_switch_grant) == 432, "a grant has no holes");

#endif /* WEFT_SWITCH_WIRE_H */
