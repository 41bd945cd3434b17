/* SPDX-License-Identifier: BSD-3-Clause */

#include "rate.h"

/* Slower than this share of what it claims no lane counts: it would never be tried again. */
#define FLOOR (1.0 / 1024)

void weft_rate_init(struct weft_rate *r, double nominal)
{
	*r = (struct weft_rate){.nominal = nominal > 0 ? nominal : 1e9};
	r->rate = r->nominal;
}

/* The stretch is over: what does it say? */
static bool sample(struct weft_rate *r, uint64_t now)
{
	uint64_t span = now - r->begin, weight = span < WEFT_RATE_MAX ? span : WEFT_RATE_MAX;
	double is = (double)r->bytes * 1e9 / (double)span;
	double share = (double)weight / (double)(weight + WEFT_RATE_TAU);

	r->begin = now;
	r->bytes = 0;
	if (r->limited && is <= r->rate) {
		r->limited = false;
		return false;
	}
	r->limited = false;
	/* The first one replaces a claim, not a measurement. */
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
	if (r->begin == 0) {
		r->begin = now;
		return false;
	}
	r->bytes += bytes;
	if (now - r->begin < WEFT_RATE_SPAN)
		return false;
	return sample(r, now);
}

bool weft_rate_stop(struct weft_rate *r, uint64_t now)
{
	bool enough = r->running && r->begin != 0 && now - r->begin >= WEFT_RATE_SPAN;

	/* The end of the work lay somewhere in this stretch. */
	r->limited = true;
	r->running = false;
	return enough && sample(r, now);
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
