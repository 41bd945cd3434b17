/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/hash.h"
#include "engine/generation.h"

/*
 * A Feistel network over two bytes: a permutation whatever its round function is. Numbers count up,
 * so that a comparison shows whether one was used. Generations look random to a host without the
 * key.
 */
#define ROUNDS 6

static uint8_t mix(const struct weft_siphash_key *key, unsigned int round, uint8_t half)
{
	uint8_t in[] = {(uint8_t)round, half};

	return (uint8_t)weft_siphash(key, in, sizeof(in));
}

uint16_t raw_generation(const struct weft_siphash_key *key, uint16_t number)
{
	uint8_t a = (uint8_t)(number >> 8), b = (uint8_t)number, t;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		t = a ^ mix(key, i, b);
		a = b;
		b = t;
	}
	return (uint16_t)(a << 8 | b);
}

uint16_t raw_generation_number(const struct weft_siphash_key *key, uint16_t generation)
{
	uint8_t a = (uint8_t)(generation >> 8), b = (uint8_t)generation, t;

	for (unsigned int i = ROUNDS; i-- > 0;) {
		t = b ^ mix(key, i, a);
		b = a;
		a = t;
	}
	return (uint16_t)(a << 8 | b);
}
