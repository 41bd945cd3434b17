/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/cc_delay.h
 * The delay algorithm: what cc_delay.c and cc_cause.c share.
 */
#ifndef WEFT_CC_DELAY_H
#define WEFT_CC_DELAY_H

#include "engine/cc.h"

/** The algorithm, for the table in cc.c. */
extern const struct weft_cc_ops weft_cc_delay;

#define TARGET_MIN 16000u /* ns of queueing: the jitter of software alone reaches this */
#define TARGET_MAX 1000000u
#define HOPS 3u
#define METER_TIMES 8u
/* ns per byte: a metered rate below 100 Mb/s counts as 100 Mb/s, as other flows take the rest */
#define METER_NS_BYTE 80u
/* One rule begins mode SHARE when the window is 1/16 of what it was, or 1/8 of a frame if more. */
#define OVER_CUT 8u

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

	for (; num > UINT32_MAX; num /= 2) /* so that no product overflows */
		den /= 2;
	v = of * num / (den != 0 ? den : 1);
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static inline uint32_t plus(const struct weft_cc *cc, uint64_t more)
{
	return (uint32_t)(cc->window + more < UINT32_MAX ? cc->window + more : UINT32_MAX);
}

#define JITTER_MIN (2 * TARGET_MIN) /* ns: round trips of a round that differ by less are steady */

/* Do the round trips of a round differ by JITTER_MIN or more? */
static inline bool weft_cc_jitter(const struct weft_cc *cc)
{
	return cc->delay.jitter.range >= JITTER_MIN;
}

/* The round trip of a full frame without a queue, noise included: no window makes it shorter. */
static inline uint32_t without_queue(const struct weft_cc *cc)
{
	return cc->delay.base + min32(cc->delay.jitter.noise, UINT32_MAX / 4);
}

/* The round trip of a small frame without queueing, as far as it is known; 0 = unknown. */
static inline uint32_t least_small(const struct weft_cc *cc)
{
	return cc->conf.rtt != 0 ? cc->conf.rtt : cc->delay.small;
}

/*
 * The time of a full frame on the slowest link, as far as it is known. The meter shows the rate
 * that this path achieves, which may be less than the link carries. So the meter counts up to
 * METER_TIMES the time that the port or the handshake gave.
 */
static inline uint32_t narrowest(const struct weft_cc *cc)
{
	uint32_t known = cc->conf.frame_ns;
	uint32_t seen = min32(cc->delay.frame_ns, METER_NS_BYTE * cc->conf.frame);

	return known == 0 ? seen : max32(known, min32(seen, METER_TIMES * known));
}

/*
 * @return ns: the target for the queueing delay before target_queue() adapts it; at least the time
 * of two full frames on the slowest link, at most TARGET_MAX
 */
static inline uint32_t target_plain(const struct weft_cc *cc)
{
	const struct weft_cc_delay *d = &cc->delay;
	uint32_t small = least_small(cc), longer, t;

	if (small == 0 || small > d->base)
		small = d->base;
	longer = d->base - small;
	/*
	 * A full frame takes `longer` than a small one. HOPS links as fast as the port would share
	 * that time equally. A longer time is nearly all that of one slow link.
	 */
	if (longer / HOPS <= cc->conf.frame_ns || cc->conf.frame_ns == 0)
		longer /= HOPS;
	/* A token bucket passes single frames sooner than at its rate: the meter counts, too. */
	longer = max32(longer, narrowest(cc));
	t = max32(max32(small / 2 * 3, TARGET_MIN), min32(longer, TARGET_MAX) * 2);
	return min32(t, TARGET_MAX);
}

/** Set cc->window to @p window bytes, within its bounds; and cc->limit and cc->gap to match. */
void weft_cc_apply(struct weft_cc *cc, uint32_t window);

#endif /* WEFT_CC_DELAY_H */
