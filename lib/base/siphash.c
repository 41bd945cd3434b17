/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/siphash.h"

static inline uint64_t rotate(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static void rounds(uint64_t v[4], unsigned int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void word(struct weft_siphash *s, uint64_t m)
{
	s->v[3] ^= m;
	rounds(s->v, 2);
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
			word(s, s->tail);
			s->tail = 0;
		}
	}
}

uint64_t weft_siphash_end(struct weft_siphash *s)
{
	word(s, s->tail | s->length << 56);
	s->v[2] ^= 0xff;
	rounds(s->v, 4);
	return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

uint64_t weft_siphash(const struct weft_siphash_key *key, const void *data, size_t length)
{
	struct weft_siphash s;

	weft_siphash_init(&s, key);
	weft_siphash_add(&s, data, length);
	return weft_siphash_end(&s);
}
