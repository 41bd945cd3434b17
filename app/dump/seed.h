/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/seed.h
 * Hashes for tables whose keys stand in captures: others may have written these. With numbers that
 * each run draws again nobody can choose keys that meet in a bucket: of two that differ in what is
 * hashed they do with a probability of 2^-32 times what the buckets are fewer (pair-multiply-shift,
 * M. Thorup, "High speed hashing for integers and strings"). Output depends on no hash: tables are
 * only asked for exact keys.
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
 * Sequences that follow each other are neighbours (fate.c says why): 1024 of them share a hash.
 * @param key  what the sequence is of; @p more: more of that
 */
static inline uint32_t dump_hash_near(uint64_t key, uint32_t more, uint32_t seq)
{
	return dump_hash(key, (uint64_t)more << 32 | seq >> 10) + seq;
}

#endif /* DUMP_SEED_H */
