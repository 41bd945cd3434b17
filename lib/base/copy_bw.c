/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy_bw.h"
#include "base/platform_host.h"

/*
 * Pieces as long as a frame, copied from buffers larger than the first-level caches, as packing a
 * message does. A round is short, 64 KiB / 7 GB/s = 9 us. On a machine with other work most rounds
 * therefore lie between two preemptions, which last for milliseconds; the fastest round counts. 64
 * rounds take 0.6 ms. If they take longer than LIMIT_NS together, the measurement ends after ENOUGH
 * rounds, never after fewer, because a single preemption could then decide the result.
 */
#define BUFFER (512u << 10)
#define PIECE 4096u
#define ROUND (64u << 10)
#define ROUNDS 64
#define ENOUGH 16
#define LIMIT_NS 5000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double measured;

/* The compiler cannot remove the copies, because their result is used. */
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
	memset(mem, 1, 2 * BUFFER); /* the pages exist before the measurement starts */
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

	/*
	 * A replaced platform has its own time, and its measurement must not be used with other
	 * platforms.
	 */
	if (!platform || platform->now != weft_platform_host.now)
		return WEFT_BCOPY_BW_DEFAULT;
	pthread_mutex_lock(&lock);
	if (!(measured > 0))
		measured = weft_bcopy_bw_measure(platform);
	bw = measured;
	pthread_mutex_unlock(&lock);
	return bw;
}
