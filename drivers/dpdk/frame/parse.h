/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/parse.h
 * Validation of received frames: the result is a view whose lengths and offsets can be trusted. The
 * functions allocate nothing and have no state; of DPDK they use only header formats and inline
 * checksums.
 */
#ifndef WEFT_FRAME_PARSE_H
#define WEFT_FRAME_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_arp.h>

#include "frame/frame.h"
#include "frame/frame_port.h"
#include "lane.h"

#define WEFT_ICMP_UNREACHABLE 3u
/** code of UNREACHABLE: no socket has the UDP port */
#define WEFT_ICMP_NO_PORT 3u
/** code of UNREACHABLE: a link does not carry a frame of this size */
#define WEFT_ICMP_TOO_LONG 4u

/** Every value but OK, ARP, ND and ICMP is a drop. Another queue may get frames of NOT_OURS. */
enum weft_rx_verdict {
	WEFT_VERDICT_OK,
	WEFT_VERDICT_ARP,        /**< complete ARP for Ethernet/IPv4 */
	WEFT_VERDICT_ND,         /**< neighbour discovery of IPv6, valid by RFC 4861 */
	WEFT_VERDICT_ICMP,       /**< ICMP reports that a datagram from our port did not arrive */
	WEFT_VERDICT_NOT_OURS,   /**< another protocol, address, port or VLAN */
	WEFT_VERDICT_BAD_LENGTH, /**< truncated, or lengths that contradict each other */
	/** IPv4: options, fragment, checksum; IPv6: extension header, source; invalid ND */
	WEFT_VERDICT_BAD_IP,
	WEFT_VERDICT_BAD_MAGIC,
	/** another version; the first 26 bytes of the lane header are valid, for a RESET */
	WEFT_VERDICT_BAD_VERSION,
	/** unknown type or flags, or a body that does not fit the type */
	WEFT_VERDICT_BAD_TYPE,
	/** the messages do not fill the body exactly, or have an unknown am_id or flags */
	WEFT_VERDICT_BAD_MESSAGE,
	WEFT_VERDICT_BAD_CSUM,
	WEFT_VERDICT_COUNT,
};

/** The addresses of the iface; constant while it is open. */
struct weft_rx_filter {
	bool raw_ethertype;
	bool check_ip;     /**< verify the IPv4 header checksum (the NIC does not) */
	uint16_t vlan;     /**< 0 = untagged */
	uint16_t udp_port; /**< UDP port on which the iface listens */
	/** source ports of connections that the iface initiates; mask 0 = none */
	struct weft_port_range range;
	uint32_t ip; /**< our address, host order */
	uint8_t mac[6];
	bool six; /**< frames have IPv6 headers; `ip` is then the number of the host ip6 */
	uint8_t ip6[16];
};

#define WEFT_RX_PATTERN 64u

/**
 * A pattern for the first 64 bytes of DATA frames, up to the beginning of the lane header: required
 * values, and a mask of the bits that matter. Frames match that have no mark (CE) and no flags but
 * ACK_REQ and those of seals. Comparing words takes a quarter of the full validation's time. No
 * frame with IPv6 matches: its UDP checksum is to be verified.
 */
struct weft_rx_pattern {
	_Alignas(16) uint8_t want[WEFT_RX_PATTERN];
	uint8_t mask[WEFT_RX_PATTERN];
	/** bytes of the shortest frame that matches, at least WEFT_RX_PATTERN; 0 = no frame does */
	uint32_t least;
	uint8_t ip, lane; /**< offsets of the IPv4 header (0 = none) and of the lane header */
	bool check_ip;
	uint16_t udp_port;
	struct weft_port_range range;
};

/** @param sealed  only sealed frames match; else only plain ones do */
void weft_rx_pattern_init(struct weft_rx_pattern *p, const struct weft_rx_filter *conf,
			  bool sealed);

static inline bool weft_rx_filter_port_ok(uint16_t port, uint16_t listens,
					  const struct weft_port_range *range)
{
	return port == listens || (range->mask && (port & range->mask) == range->first);
}

/** A neighbour solicitation or advertisement (RFC 4861). Pointers are into the frame. */
struct weft_nd {
	bool solicit;
	bool to_group;
	const uint8_t *src; /**< source; NULL: it is ::, so the sender tests for a duplicate */
	const uint8_t *target;
	const uint8_t *mac; /**< MAC in the message's option, or else the frame's source MAC */
};

/** A valid frame. Pointers are into the frame. */
struct weft_frame_view {
	const struct weft_frame_hdr *hdr;
	const struct weft_frame_sack *sack;         /**< NULL = none */
	const struct weft_frame_ecn *ecn;           /**< NULL = none */
	const struct weft_frame_progress *progress; /**< NULL = none */
	const uint8_t *body;
	uint32_t body_len;
	uint32_t src_ip;   /**< host order; 0 without IPv4. With IPv6 the engine sets a number */
	uint16_t src_port; /**< 0 without UDP */
	/**
	 * Destination port; 0 without UDP. With NOT_OURS: a port of our address that this iface
	 * does not use (the destination, or the source that ICMP quotes), perhaps another queue's;
	 * or 0.
	 */
	uint16_t dst_port;
	uint16_t udp_csum; /**< UDP checksum in host order; 0 = none */
	const uint8_t *src_mac;
	const struct rte_ipv4_hdr *ip;  /**< IPv4 header of a frame with UDP; else NULL */
	const struct rte_ipv6_hdr *ip6; /**< IPv6 header; NULL = none */
	const struct rte_arp_hdr *arp;  /**< with WEFT_VERDICT_ARP */
	struct weft_nd nd;              /**< with WEFT_VERDICT_ND */
	/** with WEFT_VERDICT_ICMP: the quoted UDP header, quote_len bytes, and the quoted target */
	const struct rte_udp_hdr *quote;
	uint32_t quote_len;       /**< at least 8, the UDP header */
	uint32_t quote_ip;        /**< host order; 0 without IPv4 */
	const uint8_t *quote_ip6; /**< on a lane with IPv6 */
	uint8_t icmp_code;        /**< WEFT_ICMP_*, or another code of IPv4; IPv6: WEFT_ICMP_*, 0 */
	uint8_t type;
	bool ce; /**< the frame has a mark (Congestion Experienced) */
	uint16_t flags;
};

/** Do the messages fill the body exactly, and are each am_id and the flags known? */
static inline bool weft_frame_messages_ok(const struct weft_frame_view *view)
{
	const struct weft_frame_msg *msg;
	uint32_t off = 0;

	do {
		if (view->body_len - off < sizeof(*msg))
			return false;
		msg = (const struct weft_frame_msg *)(view->body + off);
		if (msg->am_id >= WEFT_LANE_AM_MAX || msg->flags != 0)
			return false;
		off += (uint32_t)sizeof(*msg) + weft_get16(msg->length);
	} while (off < view->body_len);
	return off == view->body_len;
}

/**
 * Validate a frame of @p len contiguous bytes that begin with the L2 header. A CRC32C is verified
 * when present. The messages of a valid plain DATA frame pass weft_frame_messages_ok(). Of a sealed
 * frame only the lengths, the type and the flags are checked.
 */
enum weft_rx_verdict weft_frame_parse(const struct weft_rx_filter *conf, const void *frame,
				      size_t len, struct weft_frame_view *view);

/** Do the first WEFT_RX_PATTERN bytes of a frame match? gcc makes vector instructions of this. */
static inline bool weft_rx_pattern_matches(const struct weft_rx_pattern *p, const uint8_t *frame)
{
	typedef uint64_t vec __attribute__((vector_size(16)));
	vec differ = {0}, word, want, mask;

	for (unsigned int i = 0; i < WEFT_RX_PATTERN; i += sizeof(vec)) {
		memcpy(&word, frame + i, sizeof(word));
		memcpy(&want, p->want + i, sizeof(want));
		memcpy(&mask, p->mask + i, sizeof(mask));
		differ |= (word ^ want) & mask;
	}
	return (differ[0] | differ[1]) == 0;
}

/**
 * The part of weft_frame_parse() behind the lane header, also for a sealed frame after the
 * decryption.
 * @param view  hdr, type, flags, body and body_len are set as for a plain frame
 */
enum weft_rx_verdict weft_frame_parse_body(struct weft_frame_view *view);

/**
 * Validate the headers of a frame that matches @p p, whose first p->least bytes are contiguous. The
 * messages are not checked.
 * @param tail  bytes behind the length in the lane header: of a sealed frame's tag, else 0
 * @param[out] body_len  bytes behind the lane header, without @p tail
 * @return the lane header; NULL: the frame does not match, or is invalid
 */
static inline const struct weft_frame_hdr *weft_frame_head(const struct weft_rx_pattern *p,
							   const uint8_t *frame, uint32_t len,
							   const uint32_t tail, uint32_t *body_len)
{
	const struct weft_frame_hdr *hdr = (const struct weft_frame_hdr *)(frame + p->lane);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(frame + p->ip);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	uint32_t left = len - p->lane, length, total, udp_len;

	if (len < p->least || p->least == 0 || !weft_rx_pattern_matches(p, frame))
		return NULL;
	if (p->ip) {
		total = weft_be16(ip->total_length);
		udp_len = weft_be16(udp->dgram_len);
		if (!weft_rx_filter_port_ok(weft_be16(udp->dst_port), p->udp_port, &p->range) ||
		    total > len - p->ip || udp_len + sizeof(*ip) > total ||
		    udp_len < sizeof(*udp) || (p->check_ip && !weft_ipv4_header_ok(ip)))
			return NULL;
		left = udp_len - (uint32_t)sizeof(*udp);
	}
	length = weft_get16(hdr->length);
	if (length + tail > left || length < sizeof(*hdr))
		return NULL;
	*body_len = length - (uint32_t)sizeof(*hdr);
	return hdr;
}

/** The view of a frame that weft_frame_head() has found: fields of the lane header and the body. */
static inline void weft_frame_head_view(struct weft_frame_view *view,
					const struct weft_frame_hdr *hdr, uint32_t body_len)
{
	view->hdr = hdr;
	view->sack = NULL;
	view->body = (const uint8_t *)(hdr + 1);
	view->body_len = body_len;
	view->type = WEFT_FRAME_DATA;
	view->flags = weft_get16(hdr->flags); /* at most ACK_REQ, and those of seals */
}

/** weft_frame_head() and weft_frame_head_view(). @return false: another or an invalid frame */
static inline bool weft_frame_parse_head(const struct weft_rx_pattern *p, const uint8_t *frame,
					 uint32_t len, struct weft_frame_view *view)
{
	uint32_t body_len;
	const struct weft_frame_hdr *hdr = weft_frame_head(p, frame, len, 0, &body_len);

	if (hdr)
		weft_frame_head_view(view, hdr, body_len);
	return hdr != NULL;
}

/** weft_frame_parse_head(), and the check of the messages: all @p len bytes are contiguous. */
static inline bool weft_frame_parse_data(const struct weft_rx_pattern *p, const uint8_t *frame,
					 uint32_t len, struct weft_frame_view *view)
{
	return weft_frame_parse_head(p, frame, len, view) && weft_frame_messages_ok(view);
}

/** Is the UDP checksum right? @return false also for a frame without a checksum */
bool weft_frame_udp_csum_ok(const struct weft_frame_view *view);

/** @return name of a verdict: the counter "drop.<name>" counts frames with it */
const char *weft_rx_verdict_name(enum weft_rx_verdict g);

/** Step through the messages of a valid body. @p off starts at 0. @return NULL at the end */
static inline const struct weft_frame_msg *weft_frame_msg_next(const struct weft_frame_view *v,
							       uint32_t *off)
{
	const struct weft_frame_msg *msg;

	if (*off >= v->body_len)
		return NULL;
	msg = (const struct weft_frame_msg *)(v->body + *off);
	*off += (uint32_t)sizeof(*msg) + weft_get16(msg->length);
	return msg;
}

#endif /* WEFT_FRAME_PARSE_H */
