/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/cc_delay.h
 * Inside of the delay algorithm: what cc_delay.c, cc_sample.c and cc_share.c have in common.
 */
#ifndef WEFT_CC_DELAY_H
#define WEFT_CC_DELAY_H

#include "engine/cc.h"

#define TARGET_MIN 16000u /* ns of queueing: below, software alone is that unsteady */
#define TARGET_MAX 1000000u
#define HOPS 3u
#define METER_TIMES 8u
#define METER_NS_BYTE 80u /* 100 Mb/s: below, it is others who take the rest */
#define OVER_CUT 8u       /* and our window fell to this part in the meantime */

static inline uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline uint32_t part(uint32_t of, uint64_t num, uint64_t den)
{
	uint64_t v;

	for (; num > UINT32_MAX; num /= 2) /* no product overflows */
		den /= 2;
	v = of * num / (den != 0 ? den : 1);
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static inline uint32_t plus(const struct weft_cc *cc, uint64_t more)
{
	return (uint32_t)(cc->window + more < UINT32_MAX ? cc->window + more : UINT32_MAX);
}

/* Round trip of a small frame that waits nowhere, as far as is known; 0 = not at all. */
static inline uint32_t least_small(const struct weft_cc *cc)
{
	return cc->conf.rtt != 0 ? cc->conf.rtt : cc->delay.small;
}

/*
 * Time of a full frame where the way is narrowest, as far as is known. The meter shows what we get
 * through, not what the link could, so it counts up to a few times what somebody has measured.
 */
static inline uint32_t narrowest(const struct weft_cc *cc)
{
	uint32_t known = cc->conf.frame_ns;
	uint32_t seen = min32(cc->delay.frame_ns, METER_NS_BYTE * cc->conf.frame);

	return known == 0 ? seen : max32(known, min32(seen, METER_TIMES * known));
}

/*
 * Queueing delay that is aimed at by whoever has a few frames in flight, ns: two frames' time at
 * least.
 */
static inline uint32_t target_plain(const struct weft_cc *cc)
{
	const struct weft_cc_delay *d = &cc->delay;
	uint32_t small = least_small(cc), longer, t;

	if (small == 0 || small > d->base)
		small = d->base;
	longer = d->base - small;
	/* More than links as fast as ours take: nearly all of it is a slow one's. */
	if (longer / HOPS <= cc->conf.frame_ns || cc->conf.frame_ns == 0)
		longer /= HOPS;
	/* A bucket of tokens lets single frames through sooner. */
	longer = max32(longer, narrowest(cc));
	t = max32(max32(small / 2 * 3, TARGET_MIN), min32(longer, TARGET_MAX) * 2);
	return min32(t, TARGET_MAX);
}

/** Set the window, and the limit and gap that follow from it. */
void weft_cc_apply(struct weft_cc *cc, uint32_t window);

/** A round trip is told: goes to the least ones and to the round. */
void weft_cc_sample(struct weft_cc *cc, const struct weft_cc_ack *a);
/**
 * What a full frame takes of the path when it gets most through: two of them are the least queue
 * that can be steered to. A bucket of tokens lets single frames through sooner, so round trips do
 * not tell it, and the handshake's train may have met hosts that were off their cores.
 */
void weft_cc_meter(struct weft_cc *cc, const struct weft_cc_ack *a);

/** For a moment the window is small, so that the queue is seen without us; then it is @p back. */
void weft_cc_dip(struct weft_cc *cc, uint32_t to_part, uint32_t back);
/** A round ends. @return it was one of a dip */
bool weft_cc_in_dip(struct weft_cc *cc, uint32_t queue);
/** A round of mode DELAY ends: may begin mode SHARE. */
void weft_cc_look_for_others(struct weft_cc *cc, uint32_t queue);
/** A round of mode SHARE ends, with frames lost to a full queue, and without. */
void weft_cc_share_loss(struct weft_cc *cc);
void weft_cc_share_round(struct weft_cc *cc, uint32_t queue);
/** @return too much is lost in mode SHARE for those whom we share with to be TCP */
bool weft_cc_share_crowd(struct weft_cc *cc);

#endif /* WEFT_CC_DELAY_H */
