/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file link/rng.h
 * Random numbers of simulated networks: splitmix64, with one stream per purpose. So a change in one
 * place of a scenario does not change the random numbers of all others.
 */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sim_rng {
	uint64_t state;
};

static inline uint64_t sim_mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/** A stream of its own for every (seed, purpose). */
static inline struct sim_rng sim_rng_make(uint64_t seed, uint64_t purpose)
{
	return (struct sim_rng){sim_mix64(seed ^ sim_mix64(purpose + 0x9e3779b97f4a7c15ull))};
}

static inline uint64_t sim_rand(struct sim_rng *r)
{
	return sim_mix64(r->state += 0x9e3779b97f4a7c15ull);
}

/** Uniform in [0, n); 0 for n = 0. */
static inline uint64_t sim_below(struct sim_rng *r, uint64_t n)
{
	return n ? sim_rand(r) % n : 0;
}

/** Uniform in [min, max]. */
static inline uint64_t sim_between(struct sim_rng *r, uint64_t min, uint64_t max)
{
	return min + sim_below(r, max - min + 1);
}

static inline bool sim_chance(struct sim_rng *r, double p)
{
	/* For a probability of 0 no number is drawn: a perfect link does not change its stream. */
	return p > 0 && (double)(sim_rand(r) >> 11) * 0x1p-53 < p;
}

static inline void sim_fill(struct sim_rng *r, void *buf, size_t len)
{
	uint8_t *p = buf;
	uint64_t x;
	size_t n;

	for (; len; p += n, len -= n) {
		x = sim_rand(r);
		n = len < 8 ? len : 8;
		memcpy(p, &x, n);
	}
}

#endif /* SIM_RNG_H */
