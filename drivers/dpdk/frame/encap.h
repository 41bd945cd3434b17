/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/encap.h
 * The bytes in front of a lane header: Ethernet, VLAN tag, IPv4, UDP. Built once per connection; a
 * send copies them and patches lengths, ports and checksums. Pure.
 */
#ifndef WEFT_ENCAP_H
#define WEFT_ENCAP_H

#include <stdbool.h>
#include <stdint.h>

#include "frame/csum.h"
#include "frame/frame.h"

/** The two bits of ECN (RFC 3168) in the IPv4 header's type of service, and values of them. */
#define WEFT_IP_ECN 0x3u
#define WEFT_IP_ECT0 0x2u /**< the sender is ECN-capable and respects marks */
#define WEFT_IP_CE 0x3u   /**< a queue has marked the packet */

struct weft_encap_hdr {
	uint8_t bytes[WEFT_ENCAP_MAX];
	uint8_t len;      /**< bytes in use; the lane header follows */
	uint8_t l2_len;   /**< Ethernet, with tag */
	bool ip;          /**< the headers contain IPv4 and UDP */
	uint16_t ip_sum;  /**< raw sum of the IPv4 header without total length and checksum */
	uint16_t udp_sum; /**< weft_pseudo_sum() */
};

struct weft_encap_addr {
	uint8_t src_mac[6], dst_mac[6];
	uint16_t vlan; /**< 0 = untagged */
	bool raw_ethertype;
	uint8_t tos;             /**< DSCP and ECN */
	uint32_t src_ip, dst_ip; /**< host order */
	uint16_t src_port, dst_port;
};

/**
 * Ethernet header, with a tag unless @p vlan is 0.
 *
 * @return its length
 */
uint8_t weft_encap_l2(void *frame, const uint8_t dst[6], const uint8_t src[6], uint16_t vlan,
		      uint16_t type);

void weft_encap_build(struct weft_encap_hdr *e, const struct weft_encap_addr *a);

/**
 * Patch the copy of a template at @p frame for @p lane_len bytes of lane frame (CRC included): IPv4
 * total length and header checksum, UDP length and ports. The UDP checksum stays 0, which means
 * none.
 */
static inline void weft_encap_patch(const struct weft_encap_hdr *e, uint8_t *frame,
				    uint32_t lane_len, uint16_t src_port, uint16_t dst_port)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + e->l2_len);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	if (!e->ip)
		return;
	ip->total_length = weft_be16((uint16_t)(WEFT_IP_UDP_LEN + lane_len));
	ip->hdr_checksum = (uint16_t)~weft_csum_fold(e->ip_sum + ip->total_length);
	udp->src_port = weft_be16(src_port);
	udp->dst_port = weft_be16(dst_port);
	udp->dgram_len = weft_be16((uint16_t)(sizeof(*udp) + lane_len));
}

#endif /* WEFT_ENCAP_H */
