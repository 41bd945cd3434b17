/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/cc_climb.h
 * The part of the delay algorithm for long paths: growth next to other flows.
 */
#ifndef WEFT_CC_CLIMB_H
#define WEFT_CC_CLIMB_H

#include "engine/cc.h"

#define WEFT_CC_LONG_NS 1000000u

static inline bool weft_cc_long(const struct weft_cc *cc)
{
	return cc->delay.base >= WEFT_CC_LONG_NS;
}

/** To be called when mode SHARE begins. */
void weft_cc_climb_begin(struct weft_cc *cc);

/** To be called in mode SHARE before a loss cuts the window. */
void weft_cc_cubic_cut(struct weft_cc *cc);

/** The window grows, at the end of a round of mode SHARE. */
void weft_cc_share_grow(struct weft_cc *cc, uint64_t now, uint32_t queue);

/** To be called when a round of mode DELAY ends. @return true: others have taken the link */
bool weft_cc_starved(struct weft_cc *cc);

/** @return true: in the last minute mode SHARE has observed that a queue overflowed */
bool weft_cc_overflowed(const struct weft_cc *cc, uint64_t now);

/** To be called when a round ends: the rate of a long path. */
void weft_cc_rate_round(struct weft_cc *cc, uint64_t now);

/**
 * To be called when a round of mode START ends with a delay of @p queue. @return true: the delay is
 * no reason to end the mode
 */
bool weft_cc_start_on(struct weft_cc *cc, uint64_t now, uint32_t queue);

/** @return true: the window grows until it carries no more, and rare losses do not end that */
bool weft_cc_climbs(const struct weft_cc *cc);

#endif /* WEFT_CC_CLIMB_H */
