/* SPDX-License-Identifier: BSD-3-Clause */

#include "msg/lane_load.h"

#define WINDOW_MIN (64u << 10)
#define SLACK_MAX (1u << 20) /* bytes: more for a fast lane on a short path only fills caches */

void weft_load_init(struct weft_lane_load *l, float per_byte, float latency)
{
	uint64_t out = l->out;

	*l = (struct weft_lane_load){.out = out, .per_byte = per_byte, .latency = latency};
	weft_rate_init(&l->rate, 1 / (double)per_byte);
	if (out)
		weft_rate_start(&l->rate);
}

void weft_load_set_window(struct weft_lane_load *l, uint32_t rtt_ns, uint64_t max, uint64_t now)
{
	double window, rate, slack;

	if (rtt_ns && (!l->min_rtt_ns || rtt_ns < l->min_rtt_ns))
		l->min_rtt_ns = rtt_ns;
	else
		l->min_rtt_ns += l->min_rtt_ns >> 10; /* the path's round trip may have grown */
	rate = weft_rate_get(&l->rate, now);
	slack = rate * WEFT_LOAD_SLACK;
	if (slack > SLACK_MAX)
		slack = SLACK_MAX;
	window = rate * (2e-9 * l->min_rtt_ns + 2 * (double)l->latency) + slack;
	/* A floating-point comparison: the peer's numbers may be larger than any integer. */
	if (window >= (double)max)
		l->window = max;
	else
		l->window = window < WINDOW_MIN ? WINDOW_MIN : (uint64_t)window;
}

void weft_load_refresh(struct weft_lane_load *l, uint64_t now)
{
	l->per_byte = (float)(1 / weft_rate_get(&l->rate, now));
}

static uint64_t round_trip(const struct weft_lane_load *l)
{
	return l->min_rtt_ns ? l->min_rtt_ns : (uint64_t)(2e9f * l->latency);
}

bool weft_load_done(struct weft_lane_load *l, uint64_t bytes, bool good, uint64_t given,
		    uint64_t now)
{
	bool changed = false;

	if (given != l->since && given + round_trip(l) > l->moved)
		weft_rate_limited(&l->rate);
	l->out -= bytes;
	l->moved = now;
	if (good)
		changed = weft_rate_add(&l->rate, bytes, now);
	if (l->out == 0 && !l->full)
		changed |= weft_rate_pause(&l->rate, now);
	if (changed)
		weft_load_refresh(l, now);
	return changed;
}
