/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy_bw.h"
#include "base/platform_host.h"

/*
 * Pieces as long as a frame, taken from buffers larger than the first-level caches: what packing a
 * message does. A round is short, 64 KiB / 7 GB/s = 9 us, so that on a machine with other work most
 * rounds lie between two preemptions, which last for milliseconds; the fastest one counts. 64 of
 * them take 0.6 ms. Where they take longer than LIMIT_NS together, ENOUGH of them have to do: never
 * fewer, or a single preemption would make the result.
 */
#define BUFFER (512u << 10)
#define PIECE 4096u
#define ROUND (64u << 10)
#define ROUNDS 64
#define ENOUGH 16
#define LIMIT_NS 5000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double measured;

/* Copies cannot be optimised away: what they write is checked. */
static unsigned char copy_round(unsigned char *dst, const unsigned char *src, size_t at)
{
	for (size_t n = 0; n < ROUND; n += PIECE)
		memcpy(dst + (at + n) % BUFFER, src + (at + n) % BUFFER, PIECE);
	__asm__ volatile("" : : "r"(dst) : "memory");
	return dst[at % BUFFER];
}

double weft_bcopy_bw_measure(const struct weft_platform *platform)
{
	unsigned char *mem = malloc(2 * BUFFER);
	uint64_t start, before, now, best = UINT64_MAX;
	double bw;

	if (!mem)
		return WEFT_BCOPY_BW_DEFAULT;
	memset(mem, 1, 2 * BUFFER); /* pages are there before the clock runs */
	start = platform->now(platform->arg);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		before = platform->now(platform->arg);
		copy_round(mem + BUFFER, mem, i * ROUND);
		now = platform->now(platform->arg);
		if (now - before < best)
			best = now - before;
		if (now - start > LIMIT_NS && i + 1 >= ENOUGH)
			break;
	}
	free(mem);
	bw = best > 0 ? ROUND / ((double)best * 1e-9) : 0;
	if (bw <= 0 || bw > 1e13)
		return WEFT_BCOPY_BW_DEFAULT;
	return bw > WEFT_BCOPY_BW_LEAST ? bw : WEFT_BCOPY_BW_LEAST;
}

double weft_bcopy_bw(const struct weft_platform *platform)
{
	double bw;

	/* A replaced platform has its own time: what it measures must not leak into others. */
	if (!platform || platform->now != weft_platform_host.now)
		return WEFT_BCOPY_BW_DEFAULT;
	pthread_mutex_lock(&lock);
	if (!(measured > 0))
		measured = weft_bcopy_bw_measure(platform);
	bw = measured;
	pthread_mutex_unlock(&lock);
	return bw;
}
