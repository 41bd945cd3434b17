/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/forward.h
 * The destination of a frame, and whether its sender may send it. Pure: headers in, ports out.
 *
 * Two plans of addresses (doc/switch.md):
 *
 *	each    a MAC and an IP address for each port; frames go by MAC
 *	single  one MAC and one IP address for all; frames from outside go by UDP port, as a NIC's
 *	        flow rules would bring them to queues (frame/frame_port.h)
 */
#ifndef APP_SWITCH_FORWARD_H
#define APP_SWITCH_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/dpdk/frame/frame.h"
#include "drivers/dpdk/port/ports.h"

/** Bytes of a frame that are parsed. UDP ports that ICMP quotes end at byte 70 or before it. */
#define SW_HEAD 128u

enum sw_drop {
	SW_PASS,
	SW_DROP_SHORT,   /**< shorter than its headers require, or IPv4 options, or a fragment */
	SW_DROP_SOURCE,  /**< the sender's addresses are not its own */
	SW_DROP_KIND,    /**< a frame of a type that this plan of addresses does not carry */
	SW_DROP_VLAN,    /**< a VLAN tag that is not allowed (--vlan) */
	SW_DROP_UNKNOWN, /**< for no port that has a process, nor for the uplink */
	SW_DROP_FULL,    /**< the receiver has no free buffer */
	/** an invalid index of a ring; a descriptor in a chain, or not in the client's memory */
	SW_DROP_BAD,
	SW_DROP_LONG, /**< longer than the switch's MTU, or than the receiver's buffers */
	SW_DROP_KINDS
};

struct sw_plan {
	bool single, uplink;
	uint16_t ports;
	uint16_t udp_port; /**< single: UDP port of port 0; that of port N is N higher */
	uint8_t prefix;
	uint8_t mac[6]; /**< single: of all. Else the last byte is 1 + the port's number */
	uint32_t gw;
	uint32_t ip[WEFT_SWITCH_PORTS]; /**< single: all the same */
	uint64_t vlans[4096 / 64]; /**< bit N: frames with tag N pass; untagged ones always do */
	uint64_t up;               /**< bit N: port N has a process */
	uint64_t gone;             /**< bit N: the last process of port N has ended */
};

/** A destination: ports, the uplink, both, or neither with a reason. */
struct sw_route {
	uint64_t ports;
	bool uplink;
	bool gone; /**< dropped: the process of the destination's port has ended */
	enum sw_drop drop;
};

void sw_plan_mac(const struct sw_plan *p, unsigned int port, uint8_t mac[6]);

/** @param head, len  a private copy of the first bytes of a frame, at most #SW_HEAD */
struct sw_route sw_from_port(const struct sw_plan *p, unsigned int port, const uint8_t *head,
			     uint32_t len);
struct sw_route sw_from_uplink(const struct sw_plan *p, const uint8_t *head, uint32_t len);

/* ---- ports whose process has ended */

/** Bytes of the longest frame of this section. */
#define SW_FAREWELL_MAX WEFT_FAREWELL_MAX

/**
 * @param head, len  as for sw_from_port(), of a frame whose route is gone
 * @param out  SW_FAREWELL_MAX bytes
 * @return length of the answer; 0 = the frame gets none
 */
uint32_t sw_farewell(const uint8_t *head, uint32_t len, uint8_t *out);

/** An ARP probe for the address of a port. @return its length, at most SW_FAREWELL_MAX */
uint32_t sw_probe(const struct sw_plan *p, unsigned int port, uint8_t *out);

#endif /* APP_SWITCH_FORWARD_H */
