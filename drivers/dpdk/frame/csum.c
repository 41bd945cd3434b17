/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "frame/csum.h"

#ifdef __SSE4_2__

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/*
 * The effect of LANE_BYTES zeros on a CRC. It is linear, so 32 columns give the table of all bytes.
 * They are computed once, from the definition.
 */
#define LANE_BYTES 1024u

static uint32_t shift_table[4][256];

__attribute__((constructor)) static void shift_table_init(void)
{
	uint32_t column;

	for (unsigned int bit = 0; bit < 32; bit++) {
		column = 1u << bit;
		for (unsigned int i = 0; i < LANE_BYTES / 8; i++)
			column = (uint32_t)__builtin_ia32_crc32di(column, 0);
		for (unsigned int v = 0; v < 256; v++) {
			if (v >> (bit % 8) & 1)
				shift_table[bit / 8][v] ^= column;
		}
	}
}

static inline uint32_t shift_lane(uint32_t crc)
{
	return shift_table[0][crc & 255] ^ shift_table[1][(crc >> 8) & 255] ^
	       shift_table[2][(crc >> 16) & 255] ^ shift_table[3][crc >> 24];
}

/*
 * The CRC instruction takes 3 cycles, but one can start in each cycle. So three independent runs
 * over thirds of a block are joined by the linearity of the CRC.
 */
static uint32_t crc_block(uint32_t crc, const uint8_t *p)
{
	uint64_t a = crc, b = 0, c = 0;

	for (unsigned int i = 0; i < LANE_BYTES; i += 8) {
		a = __builtin_ia32_crc32di(a, load64(p + i));
		b = __builtin_ia32_crc32di(b, load64(p + LANE_BYTES + i));
		c = __builtin_ia32_crc32di(c, load64(p + 2 * LANE_BYTES + i));
	}
	return shift_lane(shift_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
}

uint32_t weft_crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (; len >= 3 * LANE_BYTES; p += 3 * LANE_BYTES, len -= 3 * LANE_BYTES)
		crc = crc_block(crc, p);
	for (; len >= 8; p += 8, len -= 8)
		crc = (uint32_t)__builtin_ia32_crc32di(crc, load64(p));
	for (; len > 0; p++, len--)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}

#else

uint32_t weft_crc32c(uint32_t crc, const void *data, size_t len)
{
	return weft_crc32c_soft(crc, data, len);
}

#endif
