/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/hash.h"

/* ------------------------------------------------------------------ CRC-32C */

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

/* ------------------------------------------------------------------ SipHash */

static inline uint64_t rotate_left(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static void sip_rounds(uint64_t v[4], unsigned int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_left(v[1], 13) ^ v[0];
		v[3] = rotate_left(v[3], 16) ^ v[2];
		v[0] = rotate_left(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate_left(v[1], 17) ^ v[2];
		v[3] = rotate_left(v[3], 21) ^ v[0];
		v[2] = rotate_left(v[2], 32);
	}
}

static void sip_word(struct weft_siphash *s, uint64_t m)
{
	s->v[3] ^= m;
	sip_rounds(s->v, 2);
	s->v[0] ^= m;
}

void weft_siphash_init(struct weft_siphash *s, const struct weft_siphash_key *key)
{
	*s = (struct weft_siphash){
		.v = {key->k0 ^ 0x736f6d6570736575ull, key->k1 ^ 0x646f72616e646f6dull,
		      key->k0 ^ 0x6c7967656e657261ull, key->k1 ^ 0x7465646279746573ull},
	};
}

void weft_siphash_add(struct weft_siphash *s, const void *data, size_t length)
{
	const uint8_t *p = data;

	for (; length > 0; length--) {
		s->tail |= (uint64_t)*p++ << 8 * (s->length % 8);
		if (++s->length % 8 == 0) {
			sip_word(s, s->tail);
			s->tail = 0;
		}
	}
}

uint64_t weft_siphash_end(struct weft_siphash *s)
{
	sip_word(s, s->tail | s->length << 56);
	s->v[2] ^= 0xff;
	sip_rounds(s->v, 4);
	return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

uint64_t weft_siphash(const struct weft_siphash_key *key, const void *data, size_t length)
{
	struct weft_siphash s;

	weft_siphash_init(&s, key);
	weft_siphash_add(&s, data, length);
	return weft_siphash_end(&s);
}
