/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file unit/proto/dice.h
 * Dice whose seed is printed: WEFT_TEST_SEED repeats a run.
 */
#ifndef UNIT_PROTO_DICE_H
#define UNIT_PROTO_DICE_H

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t rng;

static inline uint64_t rnd(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng >> 11) % n;
}

static inline void seed(void)
{
	const char *s = getenv("WEFT_TEST_SEED");

	rng = s ? strtoull(s, NULL, 0) : 20261121;
	print_message("# WEFT_TEST_SEED=%llu\n", (unsigned long long)rng);
}

static inline double exp_between(double lo, double hi)
{
	return lo * pow(hi / lo, (double)rnd(1000000) / 1e6);
}

#endif /* UNIT_PROTO_DICE_H */
