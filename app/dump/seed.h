/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/seed.h
 * Hashes for tables whose keys come from captures, which may be crafted. Each run draws new random
 * numbers, so the author of a capture cannot choose keys that collide. Two different keys share one
 * of N buckets with a probability of 1/N (pair-multiply-shift, M. Thorup, "High speed hashing for
 * integers and strings"). Output does not depend on hashes: tables are searched for exact keys
 * only.
 */
#ifndef DUMP_SEED_H
#define DUMP_SEED_H

#include <stdint.h>

extern uint64_t dump_seed[5];

/** Draws the numbers, once; before the first table is filled. */
void dump_seed_draw(void);

static inline uint32_t dump_hash(uint64_t x, uint64_t y)
{
	uint64_t h = dump_seed[4];

	h += (dump_seed[0] + (uint32_t)x) * (dump_seed[1] + (x >> 32));
	h += (dump_seed[2] + (uint32_t)y) * (dump_seed[3] + (y >> 32));
	return (uint32_t)(h >> 32);
}

/**
 * Consecutive sequences get neighbouring buckets, for the reason in fate.c: 1024 share a hash.
 * @param key  the object that the sequence is of; @p more: a second part of the key
 */
static inline uint32_t dump_hash_near(uint64_t key, uint32_t more, uint32_t seq)
{
	return dump_hash(key, (uint64_t)more << 32 | seq >> 10) + seq;
}

#endif /* DUMP_SEED_H */
