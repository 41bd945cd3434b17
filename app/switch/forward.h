/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/forward.h
 * The destination of a frame, and whether its sender may send it. Pure: headers in, ports out. Also
 * the server's end of memif's rings.
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
#include "drivers/dpdk/port/switch.h"

/** Bytes of a frame that are parsed. The ports that ICMP quotes end at byte 70 or before it. */
#define SW_HEAD 128u

enum sw_drop {
	SW_PASS,
	SW_DROP_SHORT,   /**< shorter than its headers require */
	SW_DROP_SOURCE,  /**< the sender's addresses are not its own */
	SW_DROP_KIND,    /**< a frame of a type that this plan of addresses does not carry */
	SW_DROP_VLAN,    /**< a VLAN tag that is not allowed (--vlan) */
	SW_DROP_UNKNOWN, /**< for no port that has a process, nor for the uplink */
	SW_DROP_FULL,    /**< the receiver has no free buffer */
	/**
	 * an invalid index of a ring, or a descriptor that is in a chain or points outside the
	 * client's memory
	 */
	SW_DROP_BAD,
	SW_DROP_LONG, /**< longer than the switch's MTU, or than the receiver's buffers */
	SW_DROP_KINDS
};

struct sw_plan {
	bool single, uplink;
	uint16_t ports;
	uint16_t udp_port; /**< single: of port 0 */
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
	bool gone; /**< dropped: the process of its port has ended */
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
 * The farewell of a process that has ended, as the answer to a frame for it.
 * @param head, len  as for sw_from_port(), of a frame whose route is gone
 * @param out  SW_FAREWELL_MAX bytes
 * @return its length; 0 = the frame gets no answer
 */
uint32_t sw_farewell(const uint8_t *head, uint32_t len, uint8_t *out);

/**
 * An ARP probe for the address of a port, to all.
 * @return its length, at most SW_FAREWELL_MAX
 */
uint32_t sw_probe(const struct sw_plan *p, unsigned int port, uint8_t *out);

/* ---- memif's rings */

/*
 * The server's end of memif's rings. They are in memory of the client, which can change it at any
 * time, so no value in it is trusted: an index, offset or length is read once, checked, and used as
 * it was read. DPDK's PMD trusts these values, and would access any address that a client names.
 */

#define SW_RING_LOG2_MAX 14u
#define SW_RING_COOKIE 0x3E31F20u
#define SW_RING_MASK_INT 1u
#define SW_DESC_NEXT 1u

/** A descriptor, in memif's layout. */
struct sw_ring_desc {
	uint16_t flags, region;
	uint32_t length, offset, metadata;
};

struct sw_ring_shm {
	uint32_t cookie;
	uint16_t flags, head;
	uint8_t pad0[56];
	uint16_t tail;
	uint8_t pad1[62];
	struct sw_ring_desc desc[];
};

struct sw_ring {
	struct sw_ring_shm *shm; /**< NULL = not connected */
	uint8_t *base;           /**< the begin of the region */
	size_t len;
	uint16_t size, last; /**< entries; the next one for us */
	int event;           /**< eventfd that wakes the client; -1 = none */
};

/** A frame in a client's memory, or a buffer for one. */
struct sw_buf {
	uint8_t *at; /**< NULL = the descriptor is invalid */
	uint32_t len;
};

/** @return 0; -EINVAL: the ring is malformed or exceeds the region, and @p r is unchanged */
int sw_ring_attach(struct sw_ring *r, void *region, size_t len, uint64_t offset,
		   unsigned int log2_size, int event);

/**
 * Query the number of entries that the client has handed over and that were not used yet.
 * @return the number; -EPROTO: the client's index is invalid
 */
int sw_ring_ready(const struct sw_ring *r);

/** Entry @p i of those that sw_ring_ready() counts. */
struct sw_buf sw_ring_at(const struct sw_ring *r, unsigned int i);

/** Set the length of a frame that was written into the buffer of sw_ring_at(). */
void sw_ring_fill(const struct sw_ring *r, unsigned int i, uint32_t len);

/** Return the first @p n entries to the client. */
void sw_ring_done(struct sw_ring *r, unsigned int n);

/** Does the client sleep until it is woken? Call it after sw_ring_done(). */
bool sw_ring_sleeps(const struct sw_ring *r);

#endif /* APP_SWITCH_FORWARD_H */
