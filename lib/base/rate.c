/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/rate.h"

/*
 * Lower bound of the estimate, as a share of the nominal rate: a slower lane would never be tried
 * again.
 */
#define FLOOR (1.0 / 1024)

void weft_rate_init(struct weft_rate *r, double nominal)
{
	*r = (struct weft_rate){.nominal = nominal > 0 ? nominal : 1e9};
	r->rate = r->nominal;
}

/* Begin a new span. */
static void clear(struct weft_rate *r)
{
	r->span = 0;
	r->bytes = 0;
	r->limited = false;
}

/* The span is over: update the estimate. */
static bool sample(struct weft_rate *r, uint64_t now)
{
	uint64_t weight = r->span < WEFT_RATE_MAX ? r->span : WEFT_RATE_MAX;
	double is = (double)r->bytes * 1e9 / (double)r->span;
	double share = (double)weight / (double)(weight + WEFT_RATE_TAU);
	bool counts = !r->limited || is > r->rate;

	clear(r);
	if (!counts)
		return false;
	/* The first sample replaces the nominal rate, which is no measurement. */
	if (r->seen == 0 && share < 0.5)
		share = 0.5;
	r->rate += (is - r->rate) * share;
	if (r->rate < r->nominal * FLOOR)
		r->rate = r->nominal * FLOOR;
	r->seen = now;
	return true;
}

bool weft_rate_add(struct weft_rate *r, uint64_t bytes, uint64_t now)
{
	if (!r->running)
		return false;
	if (r->first == 0)
		r->first = r->last = now;
	if (now == r->first)
		return false;
	r->span += now - r->last;
	r->last = now;
	r->bytes += bytes;
	return r->span >= WEFT_RATE_SPAN && sample(r, now);
}

bool weft_rate_pause(struct weft_rate *r, uint64_t now)
{
	bool enough = r->running && r->span >= WEFT_RATE_SPAN;

	r->running = false;
	if (enough)
		return sample(r, now);
	if (r->limited)
		clear(r);
	return false;
}

bool weft_rate_stop(struct weft_rate *r, uint64_t now)
{
	/* The work ended at an unknown time in this span. */
	r->limited = true;
	if (r->running && r->first != 0)
		r->span += now - r->last;
	return weft_rate_pause(r, now);
}

double weft_rate_get(struct weft_rate *r, uint64_t now)
{
	if (r->seen && now - r->seen > WEFT_RATE_STALE) {
		double ratio = r->nominal / r->rate;

		r->seen = now;
		if (ratio > 2)
			ratio = 2;
		if (ratio < 0.5)
			ratio = 0.5;
		r->rate *= ratio;
	}
	return r->rate;
}
