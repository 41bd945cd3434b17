/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/crc32c.h"

/*
 * Bytewise with a table of 16 entries: slow and small, and close to the definition (reflected
 * polynomial 0x82f63b78).
 */
uint32_t weft_crc32c_soft(uint32_t crc, const void *data, size_t len)
{
	static const uint32_t nibble[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	const uint8_t *p = data;

	while (len--) {
		crc ^= *p++;
		crc = nibble[crc & 15] ^ (crc >> 4);
		crc = nibble[crc & 15] ^ (crc >> 4);
	}
	return crc;
}

uint32_t weft_crc32c_of(const void *data, size_t length, size_t at)
{
	static const uint8_t zero[4];
	const uint8_t *p = data;
	uint32_t crc = weft_crc32c_soft(WEFT_CRC32C_INIT, p, at);

	crc = weft_crc32c_soft(crc, zero, sizeof(zero));
	return ~weft_crc32c_soft(crc, p + at + sizeof(zero), length - at - sizeof(zero));
}
