/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/csum.h
 * Checksums: CRC32C (Castagnoli) of lane frames, the Internet checksum of IPv4 and UDP.
 */
#ifndef WEFT_CSUM_H
#define WEFT_CSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/crc32c.h"

/** As weft_crc32c_soft(), by the processor's instruction where it has one. */
uint32_t weft_crc32c(uint32_t crc, const void *data, size_t len);

/** Add to a ones' complement sum of big-endian 16-bit words; @p len odd only for the last piece. */
uint64_t weft_inet_sum(uint64_t sum, const void *data, size_t len);

/** Is the checksum of an IPv4 header without options right? The hot path's version. */
static inline bool weft_ipv4_header_ok(const uint8_t *ip)
{
	uint64_t a, b, sum;
	uint32_t c;

	memcpy(&a, ip, 8);
	memcpy(&b, ip + 8, 8);
	memcpy(&c, ip + 16, 4);
	/* Halves in native order: a sum that is all ones is so in any order. */
	sum = (a & 0xffffffffu) + (a >> 32) + (b & 0xffffffffu) + (b >> 32) + c;
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/** Fold and complement: the checksum in host order, to be stored big-endian. */
static inline uint16_t weft_inet_fold(uint64_t sum)
{
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

#endif /* WEFT_CSUM_H */
