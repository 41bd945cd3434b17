/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/parse.h
 * Validation of received frames: the result is a view whose lengths and offsets can be trusted. The
 * receive path, unit tests and the fuzzer all use these functions. They allocate nothing and have
 * no state; of DPDK they use header formats only.
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

/** Result of the validation. Every value but OK, ARP, ND and ICMP is the reason of a drop. */
enum weft_rx_verdict {
	WEFT_VERDICT_OK,
	WEFT_VERDICT_ARP,        /**< complete ARP for Ethernet/IPv4 */
	WEFT_VERDICT_ND,         /**< neighbour discovery of IPv6, valid by RFC 4861 */
	WEFT_VERDICT_ICMP,       /**< ICMP: a UDP datagram from a port of ours did not arrive */
	WEFT_VERDICT_NOT_OURS,   /**< another protocol, address, port or VLAN */
	WEFT_VERDICT_BAD_LENGTH, /**< truncated, or lengths that contradict each other */
	/** options, fragment, header checksum; IPv6: extension header, group, hop limit */
	WEFT_VERDICT_BAD_IP,
	WEFT_VERDICT_BAD_MAGIC,
	/** another version; the first 26 bytes of the lane header are valid, for a RESET */
	WEFT_VERDICT_BAD_VERSION,
	/** unknown type or flags, or a body that does not fit the type */
	WEFT_VERDICT_BAD_TYPE,
	/** messages do not fill the body exactly, unknown am_id or flags */
	WEFT_VERDICT_BAD_MESSAGE,
	WEFT_VERDICT_BAD_CSUM,
	WEFT_VERDICT_COUNT,
};

/** The addresses of the iface; constant while it is open. */
struct weft_rx_filter {
	bool raw_ethertype;
	bool check_ip;     /**< verify the IPv4 header checksum (the NIC does not) */
	uint16_t vlan;     /**< 0 = untagged */
	uint16_t udp_port; /**< our port */
	/** our ports of connections that we initiate: (port & mask) == first; mask 0 = none */
	struct weft_port_range range;
	uint32_t ip; /**< our address, host order */
	uint8_t mac[6];
	bool six; /**< frames have IPv6 headers, for this address; ip is its number at the port */
	uint8_t ip6[16];
};

/** Bytes of a pattern. */
#define WEFT_RX_PATTERN 64u

/**
 * The first 64 bytes of a DATA frame without a mark and without flags other than ACK_REQ and those
 * of seals: required values, and a mask of the bits that matter. They include the beginning of the
 * lane header. Most frames match, and comparing words takes a quarter of the full validation's
 * time. No frame with IPv6 matches: all of those have a UDP checksum that is to be verified.
 */
struct weft_rx_pattern {
	_Alignas(16) uint8_t want[WEFT_RX_PATTERN];
	uint8_t mask[WEFT_RX_PATTERN];
	/** bytes of the shortest such frame, at least WEFT_RX_PATTERN; 0 = no frame matches */
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
	bool solicit;       /**< solicitation; else advertisement */
	bool to_group;      /**< its destination is a group address */
	const uint8_t *src; /**< address; NULL: unspecified, so the sender tests for duplicates */
	const uint8_t *target;
	const uint8_t *mac; /**< that it states, or else the source of the frame */
};

/** A valid frame. Pointers are into the frame. */
struct weft_frame_view {
	const struct weft_frame_hdr *hdr;
	const struct weft_frame_sack *sack;         /**< NULL = none */
	const struct weft_frame_ecn *ecn;           /**< NULL = none */
	const struct weft_frame_progress *progress; /**< with WEFT_FRAME_F_PROGRESS */
	const uint8_t *body;
	uint32_t body_len;
	uint32_t src_ip;   /**< host order; 0 without IPv4 */
	uint16_t src_port; /**< 0 without UDP */
	/**
	 * Destination port; 0 without UDP. With NOT_OURS the frame may be another queue's: this is
	 * a port of our address that this iface does not use (the destination, or the source that
	 * ICMP quotes), or 0.
	 */
	uint16_t dst_port;
	uint16_t udp_csum; /**< as on the wire; 0 = none */
	const uint8_t *src_mac;
	const struct rte_ipv4_hdr *ip;  /**< for the UDP checksum */
	const struct rte_ipv6_hdr *ip6; /**< instead of ip, on a lane with IPv6 */
	const struct rte_arp_hdr *arp;  /**< with WEFT_VERDICT_ARP */
	struct weft_nd nd;              /**< with WEFT_VERDICT_ND */
	/**
	 * with WEFT_VERDICT_ICMP: the quoted datagram, from its UDP header on, its quoted bytes,
	 * and the address to which it was sent
	 */
	const struct rte_udp_hdr *quote;
	uint32_t quote_len;       /**< at least the UDP header */
	uint32_t quote_ip;        /**< host order; 0 without IPv4 */
	const uint8_t *quote_ip6; /**< on a lane with IPv6 */
	uint8_t icmp_code;        /**< WEFT_ICMP_*, also with IPv6; others: IPv4's, or 0 */
	uint8_t type;
	bool ce; /**< the frame has a mark (Congestion Experienced) */
	uint16_t flags;
};

/** Do the messages fill the body exactly, and are they known? */
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
 * when present. In a valid DATA frame the messages fill the body exactly and every am_id is known.
 */
enum weft_rx_verdict weft_frame_parse(const struct weft_rx_filter *conf, const void *frame,
				      size_t len, struct weft_frame_view *view);

/** Do the first bytes of a frame match? gcc makes vector instructions of it. */
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
 * The part of weft_frame_parse() behind the lane header. A sealed frame takes it after it has been
 * opened: until then its view has type and flags as they came, and the sealed body.
 * @param view  hdr, type, flags, body and body_len are set, those of a plain frame
 */
enum weft_rx_verdict weft_frame_parse_body(struct weft_frame_view *view);

/**
 * Validate the headers of the most frequent frames, whose first p->least bytes are contiguous. The
 * messages are not checked.
 * @param tail  bytes behind the length that the lane header states: the tag's
 * @param[out] body_len  bytes of messages behind the header
 * @return the lane header; NULL: another frame, or an invalid one; weft_frame_parse() finds out
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
	view->flags = weft_get16(hdr->flags); /* at most ACK_REQ */
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

/** Verify the UDP checksum in software; only for views with an IP header. */
bool weft_frame_udp_csum_ok(const struct weft_frame_view *view);

/** Name of a drop, as in the counter "drop.<name>". */
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
