/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/pattern.h
 * Contents of test messages in every harness: byte @p i of message @p id. Any piece can be made and
 * checked by itself.
 */
#ifndef TEST_PATTERN_H
#define TEST_PATTERN_H

#include <endian.h>
#include <string.h>

#include "link/link.h"

static inline uint8_t pattern_byte(uint64_t id, size_t i)
{
	/*
	 * One mixing for each 8 bytes: dear enough to tell neighbours apart, cheap enough for
	 * megabytes.
	 */
	return (uint8_t)(sim_mix64(id + (i >> 3) * 0x9e3779b97f4a7c15ull) >> ((i & 7) * 8));
}

static inline void pattern_fill(uint64_t id, size_t offset, void *buf, size_t len)
{
	uint8_t *p = buf;
	uint64_t word;
	size_t i = 0;

	for (; i < len && ((offset + i) & 7); i++)
		p[i] = pattern_byte(id, offset + i);
	for (; i + 8 <= len; i += 8) {
		word = htole64(sim_mix64(id + ((offset + i) >> 3) * 0x9e3779b97f4a7c15ull));
		memcpy(p + i, &word, sizeof(word));
	}
	for (; i < len; i++)
		p[i] = pattern_byte(id, offset + i);
}

/** @return offset of the first wrong byte, or @p len */
static inline size_t pattern_check(uint64_t id, size_t offset, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	uint8_t want[256];
	size_t i, n, j;

	for (i = 0; i < len; i += n) {
		n = len - i < sizeof(want) ? len - i : sizeof(want);
		pattern_fill(id, offset + i, want, n);
		if (!memcmp(p + i, want, n))
			continue;
		for (j = 0; j < n && p[i + j] == want[j]; j++)
			;
		return i + j;
	}
	return len;
}

#endif /* TEST_PATTERN_H */
