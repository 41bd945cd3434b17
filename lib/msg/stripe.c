/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing lanes, and counting what they have outstanding. */

#include <stdlib.h>

#include "msg/stripe.h"
#include "msg/transmit.h"

#define NEVER 1e30f
#define PART_MAX (256u << 10)

/* ------------------------------------------------------------------ which lane */

static float time_of(const struct weft_msg_ep *me, unsigned int lane, const struct weft_pick *p,
		     uint64_t now)
{
	const struct weft_msg_lane *l = &me->lanes[lane];

	return weft_load_time(&l->load[p->dir], p->dir == WEFT_DIR_TX ? l->lane_ep->queued : 0,
			      p->len, now);
}

/* The lane of @lanes that is done first; of equal ones the next behind the last one used. */
static int soonest_lane(const struct weft_msg_ep *me, uint32_t lanes, const struct weft_pick *p,
			uint64_t now, float *time)
{
	uint32_t behind = lanes & ~((2u << me->last_lane[p->dir]) - 1);
	uint32_t parts[2] = {behind, lanes & ~behind};
	int best = -1;

	*time = NEVER;
	for (int k = 0; k < 2; k++) {
		for (uint32_t m = parts[k]; m; m &= m - 1) {
			unsigned int i = (unsigned int)__builtin_ctz(m);
			float t = time_of(me, i, p, now);

			if (t < *time) {
				best = (int)i;
				*time = t;
			}
		}
	}
	return best;
}

/* Seconds until the lanes except @lane could finish everything that is left. */
static float seconds_without(const struct weft_msg_ep *me, int lane, const struct weft_pick *p,
			     uint64_t now)
{
	float rates = 0, bytes = (float)p->left, stall = NEVER;

	for (uint32_t m = p->lanes & ~(1u << lane); m; m &= m - 1) {
		const struct weft_msg_lane *l = &me->lanes[__builtin_ctz(m)];
		const struct weft_lane_load *load = &l->load[p->dir];
		float late = weft_load_stall(load, now);

		rates += 1 / load->per_byte;
		bytes += (float)load->out;
		if (p->dir == WEFT_DIR_TX)
			bytes += (float)l->lane_ep->queued;
		if (late < stall)
			stall = late;
	}
	return bytes / rates + stall;
}

/* A lane that was too slow to get pieces is tried again after a while. */
static void retry_slow_lanes(struct weft_msg_ep *me, const struct weft_pick *p, uint64_t now)
{
	for (uint32_t m = p->lanes; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		struct weft_lane_load *load = &me->lanes[i].load[p->dir];

		if (!load->rate.seen || now - load->rate.seen <= WEFT_RATE_STALE)
			continue;
		weft_load_refresh(load, now);
		weft_lane_rated(me, i, p->dir);
	}
}

int weft_stripe_pick_of(struct weft_msg_ep *me, const struct weft_pick *p)
{
	uint64_t now = me->mw->worker->now;
	float time, full;
	int lane;

	retry_slow_lanes(me, p, now);
	lane = soonest_lane(me, p->lanes & ~p->full, p, now, &time);
	if (lane < 0 || !p->full)
		return lane;
	soonest_lane(me, p->full, p, now, &full);
	/* A tolerance: rates are not exact, and a lane that stalls must not stop the others. */
	if (time <= full * 1.25f + 50e-6f || time <= seconds_without(me, lane, p, now))
		return lane;
	return -1;
}

uint64_t weft_stripe_part(const struct weft_msg_ep *me, uint32_t lanes, enum weft_dir dir,
			  unsigned int lane, uint64_t left)
{
	const struct weft_lane_load *l = &me->lanes[lane].load[dir];
	uint64_t min = me->mw->conf.rndv_min_piece, len = l->window / 4;
	float rates = 0, part;

	for (uint32_t m = lanes; m; m &= m - 1)
		rates += 1 / me->lanes[__builtin_ctz(m)].load[dir].per_byte;
	part = (float)left / (rates * l->per_byte);
	if (len > PART_MAX)
		len = PART_MAX;
	if ((float)len > part)
		len = (uint64_t)part + 1;
	return len < min ? min : len;
}

/* ------------------------------------------------------------------ how fast they are */

void weft_lane_rated(struct weft_msg_ep *me, unsigned int lane, enum weft_dir dir)
{
	struct weft_msg_lane *l = &me->lanes[lane];

	if (me->up && (me->lanes_up & 1u << lane))
		weft_load_set_window(&l->load[dir], l->lane_ep->rtt_ns, me->mw->conf.rndv_window,
				     me->mw->worker->now);
}

void weft_stripe_full(struct weft_msg_ep *me, unsigned int lane)
{
	struct weft_msg_lane *l = &me->lanes[lane];
	struct weft_lane_load *load = &l->load[WEFT_DIR_TX];

	weft_lane_took(l, true);
	if (load->full || !l->lane_ep->queued)
		return;
	load->full = true;
	me->tx_full |= (uint16_t)(1u << lane);
	l->sent = 0;
	l->queued_seen = l->lane_ep->queued;
	weft_rate_start(&load->rate);
}

/* Measure the bytes acknowledged since: sent, and not in flight any more. */
static void measure_lane(struct weft_msg_ep *me, unsigned int lane, uint64_t now)
{
	struct weft_msg_lane *l = &me->lanes[lane];
	int64_t acked = (int64_t)(l->sent + l->queued_seen) - (int64_t)l->lane_ep->queued;

	if (acked <= 0)
		return;
	l->sent = 0;
	l->queued_seen = l->lane_ep->queued;
	if (!weft_rate_add(&l->load[WEFT_DIR_TX].rate, (uint64_t)acked, now))
		return;
	weft_load_refresh(&l->load[WEFT_DIR_TX], now);
	weft_lane_rated(me, lane, WEFT_DIR_TX);
}

void weft_stripe_measure(struct weft_msg_ep *me)
{
	uint64_t now = me->mw->worker->now;

	for (uint32_t m = me->tx_full; m; m &= m - 1)
		measure_lane(me, (unsigned int)__builtin_ctz(m), now);
}

void weft_stripe_measure_end(struct weft_msg_ep *me)
{
	for (uint32_t m = me->tx_full; m; m &= m - 1) {
		struct weft_lane_load *load = &me->lanes[__builtin_ctz(m)].load[WEFT_DIR_TX];

		load->full = false;
		if (load->out)
			weft_rate_limited(&load->rate);
		else
			weft_rate_stop(&load->rate, me->mw->worker->now);
	}
	me->tx_full = 0;
}

/* ------------------------------------------------------------------ native operations */

struct weft_native *weft_native_new(struct weft_request *req, unsigned int lane, enum weft_dir dir)
{
	struct weft_native *n = SLIST_FIRST(&req->mw->free_natives);

	if (__builtin_expect(n != NULL, 1))
		SLIST_REMOVE_HEAD(&req->mw->free_natives, link);
	else if (!(n = malloc(sizeof(*n))))
		return NULL;
	n->req = req;
	n->lane = (uint8_t)lane;
	n->dir = (uint8_t)dir;
	return n;
}

void weft_native_fini(struct weft_msg_worker *mw)
{
	struct weft_native *n;

	while ((n = SLIST_FIRST(&mw->free_natives))) {
		SLIST_REMOVE_HEAD(&mw->free_natives, link);
		free(n);
	}
}

void weft_native_drop(struct weft_native *n)
{
	SLIST_INSERT_HEAD(&n->req->mw->free_natives, n, link);
}

void weft_native_given(struct weft_native *n, size_t offset, size_t length)
{
	struct weft_msg_ep *me = n->req->me;

	n->offset = offset;
	n->length = length;
	n->given = me->mw->worker->now;
	n->req->send.zcopies++;
	weft_load_give(&me->lanes[n->lane].load[n->dir], length, n->given);
}

void weft_native_over(struct weft_native *n, int status)
{
	struct weft_msg_ep *me = n->req->me;
	struct weft_msg_lane *l = &me->lanes[n->lane];

	n->req->send.zcopies--;
	/*
	 * Messages that share the lane are not counted here, so the rate is a lower bound. (The
	 * endpoint of a lane that is down may be freed already.)
	 */
	if (n->dir == WEFT_DIR_TX && me->up && (me->lanes_up & 1u << n->lane) && l->lane_ep->queued)
		weft_rate_limited(&l->load[WEFT_DIR_TX].rate);
	if (weft_load_done(&l->load[n->dir], n->length, status == 0, n->given, me->mw->worker->now))
		weft_lane_rated(me, n->lane, (enum weft_dir)n->dir);
	weft_native_drop(n);
}
