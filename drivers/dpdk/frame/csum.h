/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/csum.h
 * Checksums: CRC32C (Castagnoli) of lane frames, and what DPDK lacks for those of IPv4 and UDP.
 */
#ifndef WEFT_CSUM_H
#define WEFT_CSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_ip.h>

#include "base/hash.h"

/** As weft_crc32c_soft(), with the processor's instruction if it has one. */
uint32_t weft_crc32c(uint32_t crc, const void *data, size_t len);

/** Is the checksum of an IPv4 header without options right? rte_ipv4_cksum() is half as fast. */
static inline bool weft_ipv4_header_ok(const struct rte_ipv4_hdr *ip)
{
	const uint8_t *p = (const uint8_t *)ip;
	uint64_t a, b, sum;
	uint32_t c;

	memcpy(&a, p, 8);
	memcpy(&b, p + 8, 8);
	memcpy(&c, p + 16, 4);
	/* Halves in native order: a sum that is all ones is so in any order. */
	sum = (a & 0xffffffffu) + (a >> 32) + (b & 0xffffffffu) + (b >> 32) + c;
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/** Fold a sum of up to 2^16 16-bit words into 16 bits: DPDK's function is internal. */
static inline uint16_t weft_csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/** Sum of UDP's pseudo header without the length; to be added to that of rte_raw_cksum(). */
static inline uint16_t weft_pseudo_sum(const struct rte_ipv4_hdr *ip)
{
	return rte_ipv4_phdr_cksum(ip, RTE_MBUF_F_TX_TCP_SEG);
}

#endif /* WEFT_CSUM_H */
