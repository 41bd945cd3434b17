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

/*
 * The timeout before backoff. It is never less than the round trip and a quarter: the variance of a
 * quiet path falls to nothing, and the peer still delays its acknowledgement.
 */
static uint64_t first_rto(const struct weft_rtt *r)
{
	uint64_t rto;

	if (r->srtt == 0)
		rto = 2ull * r->first > WEFT_RTO_INITIAL ? 2ull * r->first : WEFT_RTO_INITIAL;
	else
		rto = r->srtt + (r->var > r->srtt / 16 ? 4ull * r->var : r->srtt / 4);
	if (rto < WEFT_RTO_MIN)
		rto = WEFT_RTO_MIN;
	return rto > WEFT_RTO_ROOF ? WEFT_RTO_ROOF : rto;
}

/*
 * Only the backoff has a limit: a path that carries nothing is tried again often. A timeout below
 * the round trip would retransmit each frame of a long path.
 */
uint64_t weft_rtt_rto(const struct weft_rtt *r, unsigned int backoff)
{
	uint64_t first = first_rto(r), most = first > WEFT_RTO_MAX ? first : WEFT_RTO_MAX, rto;

	rto = first << (backoff > 16 ? 16 : backoff);
	return rto > most ? most : rto;
}

uint64_t weft_rtt_probe(const struct weft_rtt *r, uint64_t ack_delay)
{
	uint64_t t, most = first_rto(r);

	if (r->srtt == 0)
		return most;
	if (most < WEFT_RTO_MAX)
		most = WEFT_RTO_MAX;
	t = 2ull * r->srtt + ack_delay;
	if (t < WEFT_PROBE_MIN)
		t = WEFT_PROBE_MIN;
	return t > most ? most : t;
}
