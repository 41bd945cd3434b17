/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file reseal.h
 * Lane frames (UDP, untagged) that a test has changed get right checksums again, so that they pass
 * validation as a lying peer's would.
 */
#ifndef SIM_RESEAL_H
#define SIM_RESEAL_H

#include <string.h>

#include "frame/frame.h"

#define RESEAL_LANE (RTE_ETHER_HDR_LEN + WEFT_IP_UDP_LEN) /* where the lane header begins */

static inline struct rte_ipv4_hdr *reseal_ip(uint8_t *f)
{
	return (struct rte_ipv4_hdr *)(f + RTE_ETHER_HDR_LEN);
}

static inline struct weft_frame_hdr *reseal_header(uint8_t *f)
{
	return (struct weft_frame_hdr *)(f + RESEAL_LANE);
}

static inline struct rte_udp_hdr *reseal_udp(uint8_t *f)
{
	return (struct rte_udp_hdr *)(reseal_ip(f) + 1);
}

static inline bool reseal_is_lane(const uint8_t *f, size_t len)
{
	return len >= RESEAL_LANE + sizeof(struct weft_frame_hdr) &&
	       ((const struct rte_ether_hdr *)f)->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4);
}

static inline void reseal(uint8_t *f, size_t len)
{
	struct weft_frame_hdr *h = reseal_header(f);
	struct rte_ipv4_hdr *ip = reseal_ip(f);
	uint16_t body = weft_get16(h->length);
	weft_le32 crc;

	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	reseal_udp(f)->dgram_cksum = 0;
	if ((weft_get16(h->flags) & WEFT_FRAME_F_CRC32C) && RESEAL_LANE + body + 4 <= len) {
		crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, h, body));
		memcpy((uint8_t *)h + body, &crc, 4);
	}
}

#endif /* SIM_RESEAL_H */
