/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes requested over a lane are its load (msg/state.h). At most a window, or one piece, is
 * outstanding. A window is what the lane carries in a few round trips and WEFT_LOAD_SLACK, at its
 * measured rate (msg/transmit.h). So a lane that becomes slow delays little. A port has a window
 * for all its senders (rndv/rndv.h), and a worker a limit for all its peers (base/pacing.h). With
 * many senders the receiver serves them in turn, piece by piece (rndv/rndv.c).
 */

#include <errno.h>
#include <stdlib.h>

#include "msg/msg.h"
#include "rndv/fetch.h"
#include "rndv/pull.h"
#include "rndv/rndv.h"
#include "rndv/sender.h"

#define SHARED_PARTS 8u

/* ------------------------------------------------------------------ lanes */

static struct weft_lane_load *load_of(struct weft_msg_ep *me, unsigned int lane)
{
	return &me->lanes[lane].load[WEFT_DIR_RX];
}

/* Bytes of one DATA message on the lane, at the size to which the sender will cut it. */
static size_t frame_of(const struct weft_msg_ep *me, unsigned int lane)
{
	const struct weft_msg_lane *l = &me->lanes[lane];
	size_t max = l->max_bcopy > l->max_zcopy ? l->max_bcopy : l->max_zcopy;

	if (l->max_short > max)
		max = l->max_short;
	max = max > sizeof(struct weft_wire_data) ? max - sizeof(struct weft_wire_data) : 1;
	return max > l->align ? max / l->align * l->align : max;
}

/* ------------------------------------------------------------------ pieces */

static uint64_t next_range(const struct weft_fetch *f, uint64_t *end)
{
	const struct weft_pull_range *a = TAILQ_FIRST(&f->again);

	*end = a ? a->end : f->length;
	return a ? a->offset : f->next;
}

static uint64_t piece_len(const struct weft_msg_ep *me, unsigned int lane, uint64_t off,
			  uint64_t rest, uint64_t len, uint64_t max)
{
	uint64_t align = me->lanes[lane].align;

	if (rest <= len + me->mw->conf.rndv_min_piece)
		len = rest;
	if (len > max)
		len = max;
	if (len < rest && align > 1 && (off + len) / align * align > off + len / 2)
		len = (off + len) / align * align - off;
	return len;
}

static uint64_t shared_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t len)
{
	uint64_t most = me->rndv->lanes[lane].port->pull.window / SHARED_PARTS;

	if (most < me->mw->conf.rndv_min_piece)
		most = me->mw->conf.rndv_min_piece;
	return len < most ? len : most;
}

static uint64_t pull_len(struct weft_msg_ep *me, unsigned int lane, bool native, uint64_t off,
			 uint64_t end)
{
	uint64_t frame = native ? 1 : frame_of(me, lane);
	uint64_t len =
		weft_stripe_part(me, me->rndv_lanes, WEFT_DIR_RX, lane, me->rndv->unrequested);

	if (weft_rndv_port_shared(me->rndv, lane))
		len = shared_piece(me, lane, len);
	len = (len + frame - 1) / frame * frame;
	return piece_len(me, lane, off, end - off, len,
			 native ? me->lanes[lane].max_get : UINT64_MAX);
}

/* The worker's limit is exhausted: one guaranteed piece is left. @return its size */
static uint64_t least_piece(struct weft_msg_ep *me, unsigned int lane, bool native, uint64_t len)
{
	uint64_t frame = native ? 1 : frame_of(me, lane);
	uint64_t min = (me->mw->conf.rndv_min_piece + frame - 1) / frame * frame;

	return len < min ? len : min;
}

/* @return mask of the lanes without room. @p held: those of them that only their port limits */
static uint32_t full_lanes(struct weft_msg_ep *me, uint32_t native, uint64_t off, uint64_t end,
			   uint32_t *held)
{
	uint32_t full = 0;

	*held = 0;
	for (uint32_t m = me->rndv_lanes; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		const struct weft_lane_load *l = load_of(me, i);

		if (me->rndv->lanes[i].late ||
		    (l->out && l->out + pull_len(me, i, native >> i & 1, off, end) > l->window))
			full |= 1u << i;
		else if (weft_rndv_port_full(me->rndv, i))
			*held |= 1u << i;
	}
	return full | *held;
}

/* @return -1: no lane has room */
static int pick_lane(struct weft_msg_ep *me, uint32_t native, uint64_t off, uint64_t end,
		     uint32_t *held)
{
	const struct weft_pick p = {
		.lanes = me->rndv_lanes,
		.full = full_lanes(me, native, off, end, held),
		.dir = WEFT_DIR_RX,
		.len = me->mw->conf.rndv_min_piece,
		.left = me->rndv->unrequested,
	};

	return weft_stripe_pick(me, &p);
}

size_t weft_rndv_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t off, uint64_t rest,
		       size_t max)
{
	uint64_t len = weft_stripe_part(me, me->rndv_lanes, WEFT_DIR_TX, lane, rest);

	return piece_len(me, lane, off, rest, len, max);
}

/* ------------------------------------------------------------------ requests */

static struct weft_pull_range *range_new(struct weft_msg_worker *mw)
{
	struct weft_pull_range *a = TAILQ_FIRST(&mw->rndv->free_ranges);

	if (!a)
		return malloc(sizeof(*a));
	TAILQ_REMOVE(&mw->rndv->free_ranges, a, link);
	return a;
}

static void range_free(struct weft_msg_worker *mw, struct weft_pull_range *a)
{
	TAILQ_INSERT_HEAD(&mw->rndv->free_ranges, a, link);
}

/* @return 0, or -EAGAIN */
static int send_pull(struct weft_fetch *f, unsigned int lane, uint64_t off, uint64_t len)
{
	const struct weft_rndv_port *port = f->me->rndv->lanes[lane].port;
	bool contended = port && port->waiting;
	struct weft_wire_pull pull = {
		.sreq = f->offer.sreq,
		.rreq = weft_request_ref(f->req),
		.offset = weft_put64(off),
		.length = weft_put64(len),
		.lane = weft_put16((uint16_t)lane),
		.flags = weft_put16(contended ? WEFT_PULL_F_CONTENDED : 0),
	};

	/* Preferably over the lane itself, which also shows that it works; else over any lane. */
	if (weft_tx_envelope(f->me, lane, WEFT_WIRE_PULL, &pull, sizeof(pull)) == 0)
		return 0;
	return weft_tx_envelope_any(f->me, WEFT_WIRE_PULL, &pull, sizeof(pull));
}

static void range_booked(struct weft_fetch *f, struct weft_pull_range *a)
{
	TAILQ_INSERT_TAIL(&f->ranges, a, link);
	a->given = f->me->mw->worker->now;
	weft_load_give(load_of(f->me, a->lane), a->left, a->given);
	weft_share_take(&f->me->mw->rndv->pulls, &f->me->rndv->pulls, a->left, a->given);
	a->ahead = f->me->mw->rndv->pulls.used;
	weft_rndv_port_requested(f->me->rndv, a);
	f->me->rndv->turns++;
	f->me->last_lane[WEFT_DIR_RX] = a->lane;
}

void weft_rndv_pull_limit(struct weft_msg_ep *me)
{
	struct weft_share *pulls = &me->mw->rndv->pulls;
	uint64_t sum = 0, most = me->mw->conf.rndv_limit;

	for (uint32_t m = me->rndv_lanes; m; m &= m - 1)
		sum += load_of(me, (unsigned int)__builtin_ctz(m))->window;
	if (sum > most)
		sum = most;
	if (sum > pulls->limit)
		pulls->limit = sum;
}

static void lane_rated(struct weft_msg_ep *me, unsigned int lane)
{
	weft_lane_rated(me, lane, WEFT_DIR_RX);
	weft_rndv_pull_limit(me);
}

/* Bytes of a request have come, which measures the lane, or (not @p good) will not come. */
static void range_unbook(struct weft_fetch *f, struct weft_pull_range *a, uint64_t bytes, bool good)
{
	struct weft_msg_ep *me = f->me;
	uint64_t now = me->mw->worker->now;

	if (weft_load_done(load_of(me, a->lane), bytes, good, a->given, now))
		lane_rated(me, a->lane);
	weft_share_done(&me->mw->rndv->pulls, &me->rndv->pulls, bytes, good, now);
	weft_rndv_port_came(me->rndv, a, bytes, good);
	a->left -= bytes;
	weft_rndv_want(me->rndv);
}

static void fetch_queue(struct weft_fetch *f)
{
	struct weft_rndv *r = f->me->rndv;

	f->size = f->length - f->next <= WEFT_RNDV_SHORT ? WEFT_RNDV_IS_SHORT : WEFT_RNDV_IS_LONG;
	TAILQ_INSERT_TAIL(&r->fetches[f->size], f, link);
	f->queued = true;
}

static void fetch_unqueue(struct weft_fetch *f)
{
	TAILQ_REMOVE(&f->me->rndv->fetches[f->size], f, link);
	f->queued = false;
}

static void mark_requested(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	struct weft_msg_ep *me = f->me;
	struct weft_pull_range *a = TAILQ_FIRST(&f->again);

	me->rndv->unrequested -= len;
	if (!a) {
		f->next = off + len;
	} else if ((a->offset += len) == a->end) {
		TAILQ_REMOVE(&f->again, a, link);
		range_free(me->mw, a);
	}
	if (f->next == f->length && TAILQ_EMPTY(&f->again)) {
		fetch_unqueue(f);
	} else if (f->size == WEFT_RNDV_IS_LONG && f->length - f->next <= WEFT_RNDV_SHORT) {
		fetch_unqueue(f);
		fetch_queue(f);
	}
}

/* Lanes that may read the next range: none if the range's native read has failed before. */
static uint32_t native_of(const struct weft_fetch *f)
{
	return TAILQ_EMPTY(&f->again) ? f->native & f->me->rndv_lanes : 0;
}

/* @return 0, or -EAGAIN: nothing was requested */
static int request_range(struct weft_fetch *f, struct weft_pull_range *a)
{
	int rc;

	if (!a->native)
		return send_pull(f, a->lane, a->offset, a->left);
	rc = weft_rndv_native_read(f, a);
	if (rc == 0 || rc == -EAGAIN)
		return rc;
	/* Refused: the lane pulls this fetch from now on, even a piece longer than a pulled one. */
	f->native &= ~(1u << a->lane);
	f->req->mw->count.native_failed++;
	a->native = false;
	return send_pull(f, a->lane, a->offset, a->left);
}

static void wait_in_line(struct weft_msg_ep *me, uint32_t held)
{
	struct weft_rndv_port *best = NULL;

	for (; held; held &= held - 1) {
		struct weft_rndv_port *p = me->rndv->lanes[__builtin_ctz(held)].port;

		if (!best || p->waiting < best->waiting)
			best = p;
	}
	if (best)
		weft_rndv_want_port(me->rndv, best);
}

/*
 * Request one piece. @return 1; 0: nothing to request, not connected, or no lane has room in its
 * window or its port's (the endpoint then waits in the port's queue); -EAGAIN: a lane does not
 * accept the request, control messages wait, or no memory
 */
static int request_next(struct weft_msg_ep *me)
{
	struct weft_fetch *f = weft_rndv_next_fetch(me->rndv);
	uint64_t off, end, len;
	struct weft_pull_range *a;
	uint32_t held;
	int lane;

	if (!f || !me->up)
		return 0;
	if (!STAILQ_EMPTY(&me->ctl))
		return -EAGAIN; /* control messages that wait for room go first */
	off = next_range(f, &end);
	lane = pick_lane(me, native_of(f), off, end, &held);
	if (lane < 0) {
		wait_in_line(me, held);
		return 0;
	}
	a = range_new(me->mw);
	if (!a)
		return -EAGAIN;
	*a = (struct weft_pull_range){.fetch = f, .offset = off, .lane = (uint8_t)lane};
	a->native = native_of(f) >> lane & 1;
	len = pull_len(me, (unsigned int)lane, a->native, off, end);
	if (!weft_share_free(&me->mw->rndv->pulls, me->mw->worker->now))
		len = least_piece(me, (unsigned int)lane, a->native, len);
	a->end = off + len;
	a->left = len;
	if (request_range(f, a)) {
		range_free(me->mw, a);
		return -EAGAIN;
	}
	if (a->native)
		me->mw->count.gets++;
	else
		me->mw->count.pulls++;
	range_booked(f, a);
	mark_requested(f, off, len);
	return 1;
}

unsigned int weft_rndv_pump(struct weft_msg_worker *mw)
{
	struct weft_rndv *r, *stuck = NULL;
	unsigned int n = 0, fruitless = 0;

	while ((r = weft_rndv_next(mw, stuck))) {
		bool turn = r->turn != NULL;
		int rc;

		weft_rndv_unwant(r);
		if (!weft_share_room(&mw->rndv->pulls, &r->pulls, mw->worker->now)) {
			r->turn = NULL;
			weft_rndv_want_later(r);
			continue;
		}
		rc = request_next(r->me);
		r->turn = NULL;
		/* The port had room, but not on the lane that this endpoint would use. */
		if (turn && rc == 0 && ++fruitless > mw->rndv->waiting)
			break;
		if (rc > 0) {
			n++;
			stuck = NULL;
			fruitless = 0;
			weft_rndv_want(r);
		} else if (rc < 0) {
			/* Try again at the next progress; continue with others. */
			weft_rndv_want(r);
			if (!stuck)
				stuck = r;
		}
	}
	return n;
}

void weft_rndv_pull_add(struct weft_fetch *f)
{
	struct weft_rndv *r = f->me->rndv;

	fetch_queue(f);
	r->unrequested += f->length;
	/* An endpoint that gets a short message moves to the port's queue of short ones. */
	if (r->fetching == WEFT_FETCHING_LINE && f->size < r->line_size)
		weft_rndv_want_port(r, r->line);
	else
		weft_rndv_want(r);
}

/* ------------------------------------------------------------------ what comes */

static struct weft_pull_range *find_range(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	struct weft_pull_range *a;

	TAILQ_FOREACH(a, &f->ranges, link) {
		if (off >= a->offset && off < a->end)
			return !a->native && len <= a->end - off ? a : NULL;
	}
	return NULL;
}

bool weft_rndv_pull_requested(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	return find_range(f, off, len) != NULL;
}

/*
 * Two cores copy a pulled message, and one core a read one. Which is faster depends on the caches
 * between these two cores, and changes when the hypervisor or the kernel moves one of the
 * processes. So each pull is compared with the time in which the kernel reads the same bytes.
 */
static void note_pull(struct weft_fetch *f, const struct weft_pull_range *a)
{
	double rate = f->me->lanes[a->lane].lane_ep->iface->attr.get_bandwidth;
	uint64_t now = f->me->mw->worker->now;

	weft_promptness_note(&f->me->promptness, a->given, now);
	weft_promptness_compare(&f->me->rndv->pulling, a->given, now,
				(uint64_t)((double)a->ahead * 1e9 / rate));
}

bool weft_rndv_pull_came(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	struct weft_pull_range *a = find_range(f, off, len);

	range_unbook(f, a, len, true);
	if (a->left)
		return false;
	if (f->me->slow_reads >> a->lane & 1)
		note_pull(f, a);
	TAILQ_REMOVE(&f->ranges, a, link);
	range_free(f->me->mw, a);
	return true;
}

void weft_rndv_pull_read(struct weft_pull_range *a, bool good)
{
	struct weft_fetch *f = a->fetch;

	TAILQ_REMOVE(&f->ranges, a, link);
	if (good) {
		range_unbook(f, a, a->left, true);
		range_free(f->me->mw, a);
		return;
	}
	range_unbook(f, a, a->left, false);
	if (f->over) {
		range_free(f->me->mw, a);
		return;
	}
	TAILQ_INSERT_TAIL(&f->again, a, link);
	f->me->rndv->unrequested += a->end - a->offset;
	if (!f->queued)
		fetch_queue(f);
	weft_rndv_want(f->me->rndv);
}

void weft_rndv_pull_end(struct weft_fetch *f)
{
	struct weft_msg_ep *me = f->me;
	struct weft_pull_range *a, *next;

	if (f->queued) {
		fetch_unqueue(f);
		me->rndv->unrequested -= f->length - f->next;
		if (!weft_rndv_wants(me->rndv))
			weft_rndv_unwant(me->rndv);
	}
	while ((a = TAILQ_FIRST(&f->again))) {
		TAILQ_REMOVE(&f->again, a, link);
		me->rndv->unrequested -= a->end - a->offset;
		range_free(me->mw, a);
	}
	for (a = TAILQ_FIRST(&f->ranges); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (a->native)
			continue;
		range_unbook(f, a, a->left, false);
		TAILQ_REMOVE(&f->ranges, a, link);
		range_free(me->mw, a);
	}
}

/* ------------------------------------------------------------------ endpoint */

void weft_rndv_ep_lanes(struct weft_msg_ep *me)
{
	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		weft_lane_rated(me, i, WEFT_DIR_TX);
		weft_lane_rated(me, i, WEFT_DIR_RX);
	}
	if (me->rndv)
		weft_rndv_send_ep_lanes(me);
	weft_rndv_port_lanes(me);
	if (!me->rndv)
		return;
	weft_rndv_pull_limit(me);
	/* The port for which the endpoint waits may be gone. */
	if (me->rndv->fetching == WEFT_FETCHING_LINE)
		weft_rndv_unwant(me->rndv);
	weft_rndv_want(me->rndv);
}

void weft_rndv_ep_fail(struct weft_msg_ep *me)
{
	if (me->rndv)
		weft_rndv_unwant(me->rndv);
}
