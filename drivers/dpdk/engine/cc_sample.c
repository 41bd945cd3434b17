/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/cc_sample.h"

#include "engine/cc_delay.h"

/* frames of up to 1/4 of a full one count as small, those from 3/4 on as full */
#define SIZES 4u
#define LEAST_PARTS 2u /* no round trip counts as less than half of the handshake's measure */
/* a sample of less than that adds this number to a sum; any other sample takes 1 away */
#define WRONG_EACH 8u
#define WRONG_MOST 64u /* with this sum the handshake's measure counts as wrong */
/* least ns over which the meter counts bytes: longer than most pauses of hosts that lose cores */
#define METER_NS 10000000u

/*
 * Each link needs time for each byte of a frame, and that is no queueing: only frames of one size
 * show the queue. So least round trips are kept of small and of full frames, and each sample is
 * converted to that of a full frame.
 */
static uint32_t as_full(struct weft_cc *cc, const struct weft_cc_ack *a)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t frame = cc->conf.frame, size = min32(a->size, frame), rtt = a->rtt;

	if (size == 0)
		return rtt;
	if (size <= frame / SIZES) {
		d->small = d->small != 0 ? min32(d->small, rtt) : rtt;
	} else if (size >= frame - frame / SIZES && !d->full_seen) {
		d->full_seen = true;
		d->base = rtt;
	}
	if (!d->full_seen || d->small == 0 || d->small >= d->base)
		return rtt;
	return rtt + part(d->base - d->small, frame - size, frame);
}

/*
 * A host that loses its core between reading its clock and using its port reports a hold time that
 * is too long. The round trip is then too short, and a minimum would keep it. So no sample counts
 * as less than half of the handshake's measure. If every eighth sample is below that, the handshake
 * met peers that waited for their cores, or the queue of other flows: its measure is discarded.
 */
static uint32_t at_least(struct weft_cc *cc, uint32_t rtt)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t least = cc->conf.rtt / LEAST_PARTS;

	if (rtt >= least) {
		d->below -= (uint8_t)min32(d->below, 1);
		return rtt;
	}
	d->below_least = d->below != 0 ? min32(d->below_least, rtt) : rtt;
	d->below = (uint8_t)(d->below + WRONG_EACH);
	if (d->below < WRONG_MOST)
		return least;
	cc->conf.rtt = 0;
	d->base = d->below_least;
	d->srtt = 0;
	d->over = 0;
	d->below = 0;
	return rtt;
}

void weft_cc_sample(struct weft_cc *cc, const struct weft_cc_ack *a)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_round *r = &d->round;
	uint32_t rtt = at_least(cc, as_full(cc, a));

	d->srtt = d->srtt == 0 ? rtt : d->srtt - d->srtt / 4 + rtt / 4;
	if (d->srtt == 0)
		d->srtt = 1;
	if (d->base == 0 || (rtt < d->base && (a->size != 0 || !d->full_seen)))
		d->base = rtt;
	r->worst = max32(r->worst, rtt);
	r->least = r->samples != 0 ? min32(r->least, rtt) : rtt;
	r->sum += rtt;
	r->samples++;
	if (a->now - r->at >= rtt - rtt / 4)
		r->late = r->late != 0 ? min32(r->late, rtt) : rtt;
}

/*
 * Measure the time per full frame at the highest rate of the path: the time of two frames is the
 * least queue that can be steered to. A token bucket passes single frames sooner, so round trips do
 * not show its rate. The handshake's train may have met hosts that had lost their cores.
 */
void weft_cc_meter(struct weft_cc *cc, const struct weft_cc_ack *a)
{
	struct weft_cc_delay *d = &cc->delay;
	uint64_t ns = a->now - d->meter_at, each;

	d->meter_acked += a->acked;
	if (ns < METER_NS)
		return;
	each = ns / (d->meter_acked / cc->conf.frame + 1);
	if (d->meter_at != 0 && ns < 2 * METER_NS && (d->frame_ns == 0 || each < d->frame_ns))
		d->frame_ns = (uint32_t)each;
	d->meter_at = a->now;
	d->meter_acked = 0;
}
