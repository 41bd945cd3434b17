/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/cc_cause.h
 * The delay algorithm's tests for the cause of a delay. A smaller window shortens the queue of this
 * path, but neither the jitter of the network (noise) nor the queue of flows that fill it until it
 * overflows, as TCP does (mode SHARE). The file also has the growth on long paths, next to other
 * flows.
 */
#ifndef WEFT_CC_CAUSE_H
#define WEFT_CC_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/cc.h"

/**
 * To be called when a round ends. @p queue: delay beyond `base`, noise included.
 * @return true: the round was one of a test, and the window is to be left as it is
 */
bool weft_cc_noise_round(struct weft_cc *cc, uint32_t queue, uint32_t target);

/**
 * Begins a test if one is due: the delay may be noise, or what counts as noise may be a queue.
 * @p queue: as above. @return true: a test has begun
 */
bool weft_cc_noise_test(struct weft_cc *cc, uint32_t queue, uint32_t target);

/** @return true: a round of mode DELAY with this @p queue may be more of the noise: do not cut */
bool weft_cc_noise_spares(struct weft_cc *cc, uint32_t queue, uint32_t target);

/**
 * Reduce the window to 1 / @p to_part for two rounds, to observe the queue without this path's
 * frames. Afterwards the window is @p back, unless the dip has shortened `base` by over an eighth.
 */
void weft_cc_dip(struct weft_cc *cc, uint32_t to_part, uint32_t back);

/** To be called when a round ends. @return true: weft_cc_dip() had set its window */
bool weft_cc_in_dip(struct weft_cc *cc, uint32_t queue);

/** To be called when a round of mode DELAY ends. May begin mode SHARE. */
void weft_cc_look_for_others(struct weft_cc *cc, uint32_t queue);

/**
 * To be called when a round of mode SHARE ends for which weft_cc_in_dip() returns false. If the
 * losses of the round cut the window, weft_cc_share_loss() is called. Else, and if the round had a
 * round-trip sample, weft_cc_share_round() is called.
 */
void weft_cc_share_loss(struct weft_cc *cc, bool by_queue);
void weft_cc_share_round(struct weft_cc *cc, uint64_t now, uint32_t queue);

/** @return true: mode SHARE loses too many frames for its competitors to be TCP */
bool weft_cc_share_contended(struct weft_cc *cc);

/* ------------------------------------------------------------------ growth next to other flows */

#define WEFT_CC_LONG_NS 1000000u

static inline bool weft_cc_long(const struct weft_cc *cc)
{
	return cc->delay.base >= WEFT_CC_LONG_NS;
}

/** To be called when mode SHARE begins. */
void weft_cc_climb_begin(struct weft_cc *cc);

/** @return true: in the last minute mode SHARE has observed that a queue overflowed */
bool weft_cc_overflowed(const struct weft_cc *cc, uint64_t now);

/** To be called when a round ends. Updates the rate of a long path, if the window limited it. */
void weft_cc_rate_round(struct weft_cc *cc, uint64_t now);

/**
 * To be called when a round of mode START ends. @p queue: a delay that would end the mode, or 0.
 * @return true: the mode goes on nevertheless
 */
bool weft_cc_start_on(struct weft_cc *cc, uint64_t now, uint32_t queue);

/** @return true: a long path's window grows until the rate stops growing, despite rare losses */
bool weft_cc_climbs(const struct weft_cc *cc);

#endif /* WEFT_CC_CAUSE_H */
