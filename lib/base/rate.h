/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/rate.h
 * Measured rate of a lane: bytes that arrived per time while the lane had a backlog. No clock, no
 * allocation.
 *
 * The estimate begins with the nominal rate. It then follows the bytes that the lane delivers while
 * it is *backlogged*, that is, while its sender has more for it than it takes. Bytes are counted
 * over spans of at least #WEFT_RATE_SPAN, and the estimate follows them with a time constant of
 * #WEFT_RATE_TAU. A span in which the lane may have waited for work (*limited*) gives only a lower
 * bound of the rate.
 *
 * An estimate that was not confirmed for #WEFT_RATE_STALE drifts back to the nominal rate, by a
 * factor of two per #WEFT_RATE_STALE. So a lane that was slow, and was not used because of it, is
 * tried again.
 *
 * A span begins with the first bytes that arrive after the lane got work, not with the work itself.
 * So a long round trip does not look like a low rate. Bytes that arrive at the same time as the
 * first ones are not counted, because their transfer time is unknown. A long silence counts as at
 * most #WEFT_RATE_MAX, because a peer that did not poll for a second has not become slow. If work
 * ends within a span, the next work continues the span, and the time between is not counted.
 */
#ifndef WEFT_RATE_H
#define WEFT_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_RATE_SPAN 1000000ull    /**< ns; shortest span that counts */
#define WEFT_RATE_TAU 8000000ull     /**< ns */
#define WEFT_RATE_MAX 8000000ull     /**< ns; longest time by which one span is weighted */
#define WEFT_RATE_STALE 500000000ull /**< ns */

struct weft_rate {
	double rate;    /**< estimate, bytes/s */
	double nominal; /**< bytes/s */
	uint64_t first; /**< time of the first bytes after the start, ns; 0 = none yet */
	uint64_t last;  /**< time of the last bytes, ns */
	uint64_t span;  /**< length of the span, ns */
	uint64_t bytes; /**< in the span */
	uint64_t seen;  /**< when the estimate was last confirmed, ns; 0 = never */
	bool running;   /**< backlogged */
	bool limited;   /**< in this span the lane may have waited for work */
};

/** @param nominal  bytes/s; not above 0 = 1e9 */
void weft_rate_init(struct weft_rate *r, double nominal);

/** The lane has work from now on. No effect if it already had. */
static inline void weft_rate_start(struct weft_rate *r)
{
	if (r->running)
		return;
	r->running = true;
	r->first = 0;
}

/** For some time the lane had less work than it could have carried. */
static inline void weft_rate_limited(struct weft_rate *r)
{
	r->limited = true;
}

/** @p bytes have arrived. @return true when the estimate has changed */
bool weft_rate_add(struct weft_rate *r, uint64_t bytes, uint64_t now);

/** The lane has finished all its work. @return true when the estimate has changed */
bool weft_rate_pause(struct weft_rate *r, uint64_t now);

/**
 * The lane has no work any more; the time at which it ended is not known. @return true when the
 * estimate has changed
 */
bool weft_rate_stop(struct weft_rate *r, uint64_t now);

/** The estimate, drifting back to the nominal rate when it is old; bytes/s, > 0 */
double weft_rate_get(struct weft_rate *r, uint64_t now);

#endif /* WEFT_RATE_H */
