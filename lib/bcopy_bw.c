/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bcopy_bw.h"

/*
 * Pieces as long as a frame, taken from buffers larger than the first-level caches: what packing a
 * message does. 16 rounds of 256 KiB take 16 * 256 KiB / 7 GB/s = 0.6 ms, and some milliseconds on
 * a machine that is slow or busy.
 */
#define BUFFER (512u << 10)
#define PIECE 4096u
#define ROUND (256u << 10)
#define ROUNDS 16
#define LIMIT_NS 5000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double measured;

/* Copies cannot be optimised away: what they write is looked at. */
static unsigned char copy_round(unsigned char *dst, const unsigned char *src, size_t at)
{
	for (size_t n = 0; n < ROUND; n += PIECE)
		memcpy(dst + (at + n) % BUFFER, src + (at + n) % BUFFER, PIECE);
	__asm__ volatile("" : : "r"(dst) : "memory");
	return dst[at % BUFFER];
}

static double measure(const struct weft_platform *platform)
{
	unsigned char *mem = malloc(2 * BUFFER);
	uint64_t start, before, now, best = UINT64_MAX;

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
		if (now - start > LIMIT_NS)
			break;
	}
	free(mem);
	return best > 0 ? ROUND / ((double)best * 1e-9) : 0;
}

double weft_bcopy_bw(const struct weft_platform *platform)
{
	double bw;

	/* A replaced platform has its own time: what it measures must not leak into others. */
	if (!platform || platform->now != weft_platform_host.now)
		return WEFT_BCOPY_BW_DEFAULT;
	pthread_mutex_lock(&lock);
	if (!(measured > 0))
		measured = measure(platform);
	bw = measured;
	pthread_mutex_unlock(&lock);
	return bw > 1e6 && bw < 1e13 ? bw : WEFT_BCOPY_BW_DEFAULT;
}
