/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame_parse.h
 * The gate: bytes from the wire become a view whose lengths and offsets can be trusted. Receive
 * path, unit tests and fuzzer all come through here. No allocation, no state, no DPDK.
 */
#ifndef WEFT_FRAME_PARSE_H
#define WEFT_FRAME_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

/** What the gate says; everything but OK and ARP is a drop with its reason. */
enum weft_gate {
	WEFT_GATE_OK,
	WEFT_GATE_ARP,        /**< ARP for Ethernet/IPv4, whole */
	WEFT_GATE_NOT_OURS,   /**< another protocol, address, port or VLAN */
	WEFT_GATE_BAD_LENGTH, /**< truncated, or lengths that contradict each other */
	WEFT_GATE_BAD_IP,     /**< options, fragment, or header checksum */
	WEFT_GATE_BAD_MAGIC,
	/** the first 26 bytes of the lane header are there and can be answered */
	WEFT_GATE_BAD_VERSION,
	WEFT_GATE_BAD_TYPE,    /**< unknown type or flags, or a body that does not fit the type */
	WEFT_GATE_BAD_MESSAGE, /**< messages do not tile the body, unknown am_id or flags */
	WEFT_GATE_BAD_CSUM,
	WEFT_GATE_COUNT,
};

/** What is "ours"; fixed while the iface is open. */
struct weft_gate_conf {
	bool raw_ethertype;
	bool check_ip;     /**< verify the IPv4 header checksum (the NIC does not) */
	uint16_t vlan;     /**< 0 = untagged */
	uint16_t udp_port; /**< our port */
	uint32_t ip;       /**< our address, host order */
	uint8_t mac[6];
};

/** A frame that passed. Pointers go into the frame. */
struct weft_frame_view {
	const struct weft_frame_hdr *hdr;
	const struct weft_frame_sack *sack; /**< NULL = none */
	const uint8_t *body;
	uint32_t body_len;
	uint32_t src_ip;   /**< host order; 0 without IP */
	uint16_t src_port; /**< 0 without UDP */
	uint16_t udp_csum; /**< as on the wire; 0 = none */
	const uint8_t *src_mac;
	const uint8_t *l3;                /**< IPv4 header, for the UDP checksum */
	const struct weft_frame_arp *arp; /**< with WEFT_GATE_ARP */
	uint8_t type;
	uint16_t flags;
};

/**
 * Check a frame of @p len contiguous bytes, L2 header first. A CRC32C is verified when present.
 * DATA: afterwards the messages tile the body exactly and every am_id is known.
 */
enum weft_gate weft_frame_parse(const struct weft_gate_conf *conf, const void *frame, size_t len,
				struct weft_frame_view *view);

/** Verify the UDP checksum in software; only for views with src_port != 0. */
bool weft_frame_udp_csum_ok(const struct weft_frame_view *view);

/** Name of a drop, as in the counter "drop.<name>". */
const char *weft_gate_name(enum weft_gate g);

/** Step through the messages of a checked body. @p off starts at 0. @return NULL at the end */
static inline const struct weft_frame_msg *weft_frame_msg_next(const struct weft_frame_view *v,
							       uint32_t *off)
{
	const struct weft_frame_msg *msg;

	if (*off >= v->body_len)
		return NULL;
	msg = (const struct weft_frame_msg *)(v->body + *off);
	*off += (uint32_t)sizeof(*msg) + weft_le16(msg->length);
	return msg;
}

#endif /* WEFT_FRAME_PARSE_H */
