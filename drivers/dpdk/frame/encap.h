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

#include "frame/frame.h"

struct weft_encap_hdr {
	uint8_t bytes[WEFT_ENCAP_MAX];
	uint8_t len;      /**< bytes in use; the lane header follows */
	uint8_t l2_len;   /**< Ethernet, with tag */
	bool ip;          /**< IPv4 and UDP are there */
	uint32_t ip_sum;  /**< sum of the IPv4 header without its total length and checksum */
	uint32_t udp_sum; /**< sum of the pseudo header without the length */
};

struct weft_encap_addr {
	uint8_t src_mac[6], dst_mac[6];
	uint16_t vlan; /**< 0 = untagged */
	bool raw_ethertype;
	uint32_t src_ip, dst_ip; /**< host order */
	uint16_t src_port, dst_port;
};

void weft_encap_build(struct weft_encap_hdr *e, const struct weft_encap_addr *a);

/**
 * Patch the copy of a template at @p frame for @p lane_len bytes of lane frame (CRC included): IPv4
 * total length and header checksum, UDP length and ports. The UDP checksum is left 0: none.
 */
static inline void weft_encap_patch(const struct weft_encap_hdr *e, uint8_t *frame,
				    uint32_t lane_len, uint16_t src_port, uint16_t dst_port)
{
	uint8_t *ip = frame + e->l2_len;
	uint32_t total = WEFT_IPV4_LEN + WEFT_UDP_LEN + lane_len, sum;

	if (!e->ip)
		return;
	sum = e->ip_sum + total;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	weft_put_be16(ip + 2, (uint16_t)total);
	weft_put_be16(ip + 10, (uint16_t)~sum);
	weft_put_be16(ip + 20, src_port);
	weft_put_be16(ip + 22, dst_port);
	weft_put_be16(ip + 24, (uint16_t)(WEFT_UDP_LEN + lane_len));
}

#endif /* WEFT_ENCAP_H */
