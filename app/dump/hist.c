/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/hist.h"

/* Below HIST_SUB each has its own bucket; then HIST_SUB for each power of two. */
static unsigned int bucket_of(uint64_t v)
{
	unsigned int power;

	if (v < HIST_SUB)
		return (unsigned int)v;
	power = 63 - (unsigned int)__builtin_clzll(v);
	return (power - 2) * HIST_SUB + (unsigned int)(v >> (power - 3) & (HIST_SUB - 1));
}

static uint64_t middle_of(unsigned int bucket)
{
	unsigned int power = bucket / HIST_SUB + 2;
	uint64_t width;

	if (bucket < HIST_SUB)
		return bucket;
	width = 1ull << (power - 3);
	return (1ull << power) + bucket % HIST_SUB * width + width / 2;
}

void hist_add(struct hist *h, uint64_t ns)
{
	uint32_t *bucket = &h->bucket[bucket_of(ns)];

	h->count++;
	if (ns > h->max)
		h->max = ns;
	*bucket += *bucket < UINT32_MAX;
}

uint64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t want = (uint64_t)(q * (double)h->count), before = 0, v;
	unsigned int i;

	for (i = 0; i < sizeof(h->bucket) / sizeof(h->bucket[0]); i++) {
		before += h->bucket[i];
		if (before > want) {
			v = middle_of(i);
			return v < h->max ? v : h->max;
		}
	}
	return h->max;
}
