/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the time of a cache line from one core to another: two threads or processes, each on a
 * core of its own, pass one word in shared memory back and forth. A one-way time is half a round
 * trip. The smallest of several short batches is used, because an interrupt only adds time.
 */

#ifndef BOUNCE_H
#define BOUNCE_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define BOUNCE_BATCHES 25
#define BOUNCE_ROUNDS 2000

/** Both sides begin with 0, or with the values of the last measurement. */
struct bounce {
	_Alignas(256) _Atomic uint32_t ball;
	_Atomic int failed; /**< do not wait for the other side */
};

static inline double bounce_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The word itself is all that passes, so the orders do not matter for anything else. */
static inline int bounce_wait(struct bounce *b, uint32_t value)
{
	uint64_t spins = 0;

	while (atomic_load_explicit(&b->ball, memory_order_acquire) != value)
		/* The other side may have failed to start, or its core is away for long. */
		if ((++spins & 0xffff) == 0 && atomic_load(&b->failed))
			return -1;
	return 0;
}

static inline int bounce_echo(struct bounce *b)
{
	for (uint32_t i = 0; i < BOUNCE_BATCHES * BOUNCE_ROUNDS; i++) {
		if (bounce_wait(b, 2 * i + 1))
			return -1;
		atomic_store_explicit(&b->ball, 2 * i + 2, memory_order_release);
	}
	return 0;
}

/** The other side of bounce_echo(): one way in seconds, or -1. */
static inline double bounce_time(struct bounce *b)
{
	double best = 1;
	uint32_t i = 0;

	for (int batch = 0; batch < BOUNCE_BATCHES; batch++) {
		double start = bounce_seconds(), t;

		for (int n = 0; n < BOUNCE_ROUNDS; n++, i++) {
			atomic_store_explicit(&b->ball, 2 * i + 1, memory_order_release);
			if (bounce_wait(b, 2 * i + 2))
				return -1;
		}
		t = (bounce_seconds() - start) / BOUNCE_ROUNDS / 2;
		if (t < best)
			best = t;
	}
	return best;
}

#endif /* BOUNCE_H */
