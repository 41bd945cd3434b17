/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/rate.h
 * How fast a lane really is: bytes that arrived per time while it had more to carry. No clock, no
 * allocation.
 *
 * Nominal rates are the start, and the truth is what a lane delivers while it is *backlogged*:
 * while whoever feeds it had more for it than it took. Bytes are counted over stretches of at least
 * #WEFT_RATE_SPAN, the estimate follows them with a time constant of #WEFT_RATE_TAU. A stretch in
 * which the lane may have waited for work (*limited*) says only that it is at least so fast.
 *
 * An estimate that nothing has confirmed for #WEFT_RATE_STALE drifts back to the nominal rate, by a
 * factor of two per #WEFT_RATE_STALE: a lane that was slow, and got nothing because of it, is tried
 * again.
 *
 * A stretch begins with the first bytes after work was given, not with the giving, so a long round
 * trip does not look like a low rate. What comes at the same time as these is not counted, for
 * nobody knows how long it took. One long silence counts for no more than #WEFT_RATE_MAX: a peer
 * that did not poll for a second has not become slow. Work that ends within a stretch is continued
 * by the next one, the time between left out.
 */
#ifndef WEFT_RATE_H
#define WEFT_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_RATE_SPAN 1000000ull    /**< ns; shortest stretch that counts */
#define WEFT_RATE_TAU 8000000ull     /**< ns */
#define WEFT_RATE_MAX 8000000ull     /**< ns; longest time that one stretch is weighed with */
#define WEFT_RATE_STALE 500000000ull /**< ns */

struct weft_rate {
	double rate;    /**< estimate, bytes/s */
	double nominal; /**< what was claimed */
	uint64_t first; /**< bytes after the start, ns; 0 = they have yet to come */
	uint64_t last;  /**< bytes, ns */
	uint64_t span;  /**< of the stretch, ns */
	uint64_t bytes; /**< in it */
	uint64_t seen;  /**< when the estimate was last confirmed, ns; 0 = never */
	bool running;   /**< backlogged */
	bool limited;   /**< in this stretch the lane may have waited for work */
};

/** @param nominal  bytes/s; not above 0 = 1e9 */
void weft_rate_init(struct weft_rate *r, double nominal);

/** The lane has work from now on. No effect when it has had. */
static inline void weft_rate_start(struct weft_rate *r)
{
	if (r->running)
		return;
	r->running = true;
	r->first = 0;
}

/** For a while there was less to do than the lane could have done. */
static inline void weft_rate_limited(struct weft_rate *r)
{
	r->limited = true;
}

/** @p bytes have arrived. @return true when the estimate has changed */
bool weft_rate_add(struct weft_rate *r, uint64_t bytes, uint64_t now);

/** The lane is done with all its work. @return true when the estimate has changed */
bool weft_rate_pause(struct weft_rate *r, uint64_t now);

/**
 * The lane has no work any more, since when is not known. @return true when the estimate has
 * changed
 */
bool weft_rate_stop(struct weft_rate *r, uint64_t now);

/** The estimate, drifting back to the nominal rate when it is old; bytes/s, > 0 */
double weft_rate_get(struct weft_rate *r, uint64_t now);

#endif /* WEFT_RATE_H */
