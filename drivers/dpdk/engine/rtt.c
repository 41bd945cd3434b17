/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/rtt.h"

void weft_rtt_sample(struct weft_rtt *r, uint32_t ns)
{
	uint32_t err;

	if (ns == 0)
		ns = 1;
	r->last = ns;
	if (r->srtt == 0) {
		r->srtt = ns;
		r->var = ns / 2;
		r->min = ns;
		return;
	}
	if (ns < r->min)
		r->min = ns;
	err = ns > r->srtt ? ns - r->srtt : r->srtt - ns;
	r->var = r->var - r->var / 4 + err / 4;
	r->srtt = r->srtt - r->srtt / 8 + ns / 8;
	if (r->srtt == 0)
		r->srtt = 1;
}

uint64_t weft_rtt_rto(const struct weft_rtt *r, unsigned int backoff)
{
	uint64_t rto = r->srtt == 0 ? WEFT_RTO_INITIAL : (uint64_t)r->srtt + 4ull * r->var;

	if (rto < WEFT_RTO_MIN)
		rto = WEFT_RTO_MIN;
	if (backoff > 16)
		backoff = 16;
	rto <<= backoff;
	return rto > WEFT_RTO_MAX ? WEFT_RTO_MAX : rto;
}

uint64_t weft_rtt_probe(const struct weft_rtt *r, uint64_t ack_delay)
{
	uint64_t t;

	if (r->srtt == 0)
		return WEFT_RTO_INITIAL;
	t = 2ull * r->srtt + ack_delay;
	if (t < WEFT_PROBE_MIN)
		t = WEFT_PROBE_MIN;
	return t > WEFT_RTO_MAX ? WEFT_RTO_MAX : t;
}
