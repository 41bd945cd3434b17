/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which bytes are asked for next. Over which lane, msg/stripe.h says.
 *
 * What is asked for over a lane is its load (msg/lane_load.h): at most a window, which is what the
 * lane carries in a round trip and WEFT_LOAD_SLACK, at its measured rate. So every lane is kept
 * busy, yet none has more than about a millisecond of work ahead of it, and a lane that becomes
 * slow holds up little. A worker has a limit over all its peers (base/share.h): with many senders
 * the receiver decides how much comes at a time, and takes turns among them piece by piece. Peers
 * that do not deliver do not hold it; one that has nothing outstanding is asked for a least piece
 * in any case.
 */

#include <errno.h>
#include <stdlib.h>

#include "msg/msg.h"
#include "msg/stripe.h"

/* ------------------------------------------------------------------ lanes */

static struct weft_lane_load *load_of(struct weft_msg_ep *me, unsigned int lane)
{
	return &me->lanes[lane].load[WEFT_DIR_RX];
}

static size_t align_of(const struct weft_msg_ep *me, unsigned int lane)
{
	size_t align = me->mw->conf.rndv_align, own = me->lanes[lane].align;

	return own > align ? own : align;
}

/* Bytes of one DATA message on the lane, cut as the sender will cut it. */
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

/* What is left to ask for begins here. */
static uint64_t next_range(const struct weft_fetch *f, uint64_t *end)
{
	const struct weft_ask *a = TAILQ_FIRST(&f->again);

	*end = a ? a->end : f->length;
	return a ? a->offset : f->next;
}

/*
 * How much of [off, end) shall the lane be asked for at a time: whole frames, a quarter of its
 * window, but towards the end no more than its share of what is left.
 */
static uint64_t cut(struct weft_msg_ep *me, unsigned int lane, bool native, uint64_t off,
		    uint64_t end)
{
	uint64_t min = me->mw->conf.rndv_min_piece;
	uint64_t frame = native ? 1 : frame_of(me, lane), align = align_of(me, lane);
	uint64_t len = weft_stripe_part(me, me->rndv_lanes, WEFT_DIR_RX, lane, me->unasked);

	len = (len + frame - 1) / frame * frame;
	/* A rest that is not worth asking for by itself comes along. */
	if (end - off <= len + min)
		len = end - off;
	if (native && len > me->lanes[lane].max_get)
		len = me->lanes[lane].max_get;
	if (len == end - off)
		return len;
	if (align > 1 && (off + len) / align * align > off + len / 2)
		len = (off + len) / align * align - off;
	return len;
}

/* At most the least piece of @len: there is no room for it but the guarantee. */
static uint64_t least(struct weft_msg_ep *me, unsigned int lane, bool native, uint64_t len)
{
	uint64_t frame = native ? 1 : frame_of(me, lane);
	uint64_t min = (me->mw->conf.rndv_min_piece + frame - 1) / frame * frame;

	return len < min ? len : min;
}

/* Lanes whose window has no room for their next piece. */
static uint32_t full_lanes(struct weft_msg_ep *me, uint32_t native, uint64_t off, uint64_t end)
{
	uint32_t full = 0;

	for (uint32_t m = me->rndv_lanes; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		const struct weft_lane_load *l = load_of(me, i);

		if (l->out && l->out + cut(me, i, native >> i & 1, off, end) > l->window)
			full |= 1u << i;
	}
	return full;
}

/* @return the lane that shall get the next piece now, or -1 */
static int pick_lane(struct weft_msg_ep *me, uint32_t native, uint64_t off, uint64_t end)
{
	const struct weft_pick p = {
		.lanes = me->rndv_lanes,
		.full = full_lanes(me, native, off, end),
		.dir = WEFT_DIR_RX,
		.len = me->mw->conf.rndv_min_piece,
		.left = me->unasked,
	};

	return weft_stripe_pick(me, &p);
}

size_t weft_rndv_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t off, uint64_t rest,
		       size_t max)
{
	uint64_t len = weft_stripe_part(me, me->rndv_lanes, WEFT_DIR_TX, lane, rest);
	uint64_t align = align_of(me, lane);

	if (rest <= len + me->mw->conf.rndv_min_piece)
		len = rest;
	if (len > max)
		len = max;
	if (len < rest && (off + len) / align * align > off + len / 2)
		len = (off + len) / align * align - off;
	return len;
}

/* ------------------------------------------------------------------ asking */

static struct weft_ask *ask_new(struct weft_msg_worker *mw)
{
	struct weft_ask *a = TAILQ_FIRST(&mw->free_asks);

	if (!a)
		return malloc(sizeof(*a));
	TAILQ_REMOVE(&mw->free_asks, a, link);
	return a;
}

static void ask_free(struct weft_msg_worker *mw, struct weft_ask *a)
{
	TAILQ_INSERT_HEAD(&mw->free_asks, a, link);
}

/* @return 0, or -EAGAIN */
static int send_pull(struct weft_fetch *f, unsigned int lane, uint64_t off, uint64_t len)
{
	struct weft_wire_pull pull = {
		.sreq = f->offer.sreq,
		.rreq = weft_request_ref(f->req),
		.offset = weft_put64(off),
		.length = weft_put64(len),
		.lane = weft_put32(lane),
	};

	/* Its own way back is as good as any, and shows that the lane works; else any. */
	if (weft_tx_envelope(f->me, lane, WEFT_WIRE_PULL, &pull, sizeof(pull)) == 0)
		return 0;
	return weft_tx_envelope_any(f->me, WEFT_WIRE_PULL, &pull, sizeof(pull));
}

static void booked(struct weft_fetch *f, struct weft_ask *a)
{
	TAILQ_INSERT_TAIL(&f->asks, a, link);
	a->given = f->me->mw->worker->now;
	weft_load_give(load_of(f->me, a->lane), a->left, a->given);
	weft_share_take(&f->me->mw->pulls, &f->me->pulls, a->left, a->given);
	f->me->last_lane[WEFT_DIR_RX] = a->lane;
}

static void leave_later(struct weft_msg_ep *me)
{
	TAILQ_REMOVE(&me->mw->fetching_later, me, fetching_link);
	me->mw->num_later--;
}

static void unwant(struct weft_msg_ep *me)
{
	if (me->fetching == WEFT_FETCHING)
		TAILQ_REMOVE(&me->mw->fetching, me, fetching_link);
	else if (me->fetching == WEFT_FETCHING_LATER)
		leave_later(me);
	me->fetching = WEFT_FETCHING_NOT;
}

/* In the worker's list of endpoints that may ask. */
static void want(struct weft_msg_ep *me)
{
	if (me->failed || TAILQ_EMPTY(&me->fetches) || me->fetching == WEFT_FETCHING ||
	    (me->fetching == WEFT_FETCHING_LATER && me->pulls.out))
		return;
	unwant(me);
	me->fetching = WEFT_FETCHING;
	TAILQ_INSERT_TAIL(&me->mw->fetching, me, fetching_link);
}

/* Until others have less; one that is stalled, until it delivers. */
static void want_later(struct weft_msg_ep *me)
{
	if (me->pulls.stalled)
		return;
	me->fetching = WEFT_FETCHING_LATER;
	me->mw->num_later++;
	TAILQ_INSERT_TAIL(&me->mw->fetching_later, me, fetching_link);
}

/* Bytes of an ask have come, which measures the lane, or (not @good) will not. */
static void unbook(struct weft_fetch *f, struct weft_ask *a, uint64_t bytes, bool good)
{
	struct weft_msg_ep *me = f->me;
	uint64_t now = me->mw->worker->now;

	if (weft_load_done(load_of(me, a->lane), bytes, good, a->given, now))
		weft_lane_rated(me, a->lane, WEFT_DIR_RX);
	weft_share_done(&me->mw->pulls, &me->pulls, bytes, good, now);
	a->left -= bytes;
	want(me);
}

static void set_asked(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	struct weft_msg_ep *me = f->me;
	struct weft_ask *a = TAILQ_FIRST(&f->again);

	me->unasked -= len;
	if (!a) {
		f->next = off + len;
	} else if ((a->offset += len) == a->end) {
		TAILQ_REMOVE(&f->again, a, link);
		ask_free(me->mw, a);
	}
	if (f->next == f->length && TAILQ_EMPTY(&f->again)) {
		TAILQ_REMOVE(&me->fetches, f, link);
		f->queued = false;
	}
}

/* Native reads from memory that was refused once come by PULL. */
static uint32_t native_of(const struct weft_fetch *f)
{
	return TAILQ_EMPTY(&f->again) ? f->native & f->me->rndv_lanes : 0;
}

/* @return 0, or -EAGAIN: nothing is under way */
static int ask(struct weft_fetch *f, struct weft_ask *a)
{
	int rc;

	if (!a->native)
		return send_pull(f, a->lane, a->offset, a->left);
	rc = weft_rndv_native_read(f, a);
	if (rc == 0 || rc == -EAGAIN)
		return rc;
	/*
	 * Refused: this lane does as the others. The piece may be longer than its own, no matter.
	 */
	f->native &= ~(1u << a->lane);
	f->req->mw->count.native_failed++;
	a->native = false;
	return send_pull(f, a->lane, a->offset, a->left);
}

/* Ask for one piece. @return 1; 0 nothing to ask for, or no window; -EAGAIN no room */
static int ask_one(struct weft_msg_ep *me)
{
	struct weft_fetch *f = TAILQ_FIRST(&me->fetches);
	uint64_t off, end, len;
	struct weft_ask *a;
	int lane;

	if (!f || !me->up)
		return 0;
	if (!STAILQ_EMPTY(&me->ctl))
		return -EAGAIN; /* what waits for room goes first */
	off = next_range(f, &end);
	lane = pick_lane(me, native_of(f), off, end);
	if (lane < 0)
		return 0;
	a = ask_new(me->mw);
	if (!a)
		return -EAGAIN;
	*a = (struct weft_ask){.fetch = f, .offset = off, .lane = (uint8_t)lane};
	a->native = native_of(f) >> lane & 1;
	len = cut(me, (unsigned int)lane, a->native, off, end);
	if (!weft_share_free(&me->mw->pulls, me->mw->worker->now))
		len = least(me, (unsigned int)lane, a->native, len);
	a->end = off + len;
	a->left = len;
	if (ask(f, a)) {
		ask_free(me->mw, a);
		return -EAGAIN;
	}
	if (a->native)
		me->mw->count.gets++;
	else
		me->mw->count.pulls++;
	booked(f, a);
	set_asked(f, off, len);
	return 1;
}

/* The next one that may ask: those that wait for room come behind the others. */
static struct weft_msg_ep *next_ep(struct weft_msg_worker *mw, const struct weft_msg_ep *stuck)
{
	struct weft_msg_ep *me = TAILQ_FIRST(&mw->fetching);

	if (me && me != stuck)
		return me;
	me = TAILQ_FIRST(&mw->fetching_later);
	return me && weft_share_free(&mw->pulls, mw->worker->now) ? me : NULL;
}

unsigned int weft_rndv_pump(struct weft_msg_worker *mw)
{
	struct weft_msg_ep *me, *stuck = NULL;
	unsigned int n = 0;

	while ((me = next_ep(mw, stuck))) {
		int rc;

		unwant(me);
		if (!weft_share_room(&mw->pulls, &me->pulls, mw->worker->now)) {
			want_later(me);
			continue;
		}
		rc = ask_one(me);
		if (rc > 0) {
			n++;
			stuck = NULL;
			want(me);
		} else if (rc < 0) {
			/* Tried again at the next progress; meanwhile others. */
			want(me);
			if (!stuck)
				stuck = me;
		}
	}
	return n;
}

void weft_rndv_pull_add(struct weft_fetch *f)
{
	struct weft_msg_ep *me = f->me;

	f->queued = true;
	TAILQ_INSERT_TAIL(&me->fetches, f, link);
	me->unasked += f->length;
	want(me);
}

/* ------------------------------------------------------------------ what comes */

static struct weft_ask *find_ask(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	struct weft_ask *a;

	TAILQ_FOREACH(a, &f->asks, link) {
		if (off >= a->offset && off < a->end)
			return !a->native && len <= a->end - off ? a : NULL;
	}
	return NULL;
}

bool weft_rndv_pull_asked(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	return find_ask(f, off, len) != NULL;
}

bool weft_rndv_pull_came(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	struct weft_ask *a = find_ask(f, off, len);

	unbook(f, a, len, true);
	if (a->left)
		return false;
	TAILQ_REMOVE(&f->asks, a, link);
	ask_free(f->me->mw, a);
	return true;
}

void weft_rndv_pull_read(struct weft_ask *a, bool good)
{
	struct weft_fetch *f = a->fetch;

	TAILQ_REMOVE(&f->asks, a, link);
	if (good) {
		unbook(f, a, a->left, true);
		ask_free(f->me->mw, a);
		return;
	}
	unbook(f, a, a->left, false);
	if (f->over) {
		ask_free(f->me->mw, a);
		return;
	}
	TAILQ_INSERT_TAIL(&f->again, a, link);
	f->me->unasked += a->end - a->offset;
	if (!f->queued)
		TAILQ_INSERT_TAIL(&f->me->fetches, f, link);
	f->queued = true;
	want(f->me);
}

void weft_rndv_pull_end(struct weft_fetch *f)
{
	struct weft_msg_ep *me = f->me;
	struct weft_ask *a, *next;

	if (f->queued) {
		TAILQ_REMOVE(&me->fetches, f, link);
		me->unasked -= f->length - f->next;
		f->queued = false;
		if (TAILQ_EMPTY(&me->fetches))
			unwant(me);
	}
	while ((a = TAILQ_FIRST(&f->again))) {
		TAILQ_REMOVE(&f->again, a, link);
		me->unasked -= a->end - a->offset;
		ask_free(me->mw, a);
	}
	for (a = TAILQ_FIRST(&f->asks); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (a->native)
			continue;
		unbook(f, a, a->left, false);
		TAILQ_REMOVE(&f->asks, a, link);
		ask_free(me->mw, a);
	}
}

/* ------------------------------------------------------------------ endpoint, worker */

void weft_rndv_ep_init(struct weft_msg_ep *me)
{
	TAILQ_INIT(&me->fetches);
	for (unsigned int i = 0; i < WEFT_MAX_LANES; i++)
		STAILQ_INIT(&me->rndv[i].pulls);
}

void weft_rndv_ep_lanes(struct weft_msg_ep *me)
{
	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		weft_lane_rated(me, i, WEFT_DIR_TX);
		weft_lane_rated(me, i, WEFT_DIR_RX);
	}
	weft_rndv_send_ep_lanes(me);
	want(me);
}

void weft_rndv_ep_fail(struct weft_msg_ep *me)
{
	unwant(me);
}

void weft_rndv_worker_init(struct weft_msg_worker *mw)
{
	STAILQ_INIT(&mw->free_pulls);
	TAILQ_INIT(&mw->free_asks);
	TAILQ_INIT(&mw->free_fetches);
	TAILQ_INIT(&mw->fetching);
	TAILQ_INIT(&mw->fetching_later);
	SLIST_INIT(&mw->free_natives);
}

void weft_rndv_worker_fini(struct weft_msg_worker *mw)
{
	struct weft_fetch *f;
	struct weft_native *n;
	struct weft_pull *p;
	struct weft_ask *a;

	while ((n = SLIST_FIRST(&mw->free_natives))) {
		SLIST_REMOVE_HEAD(&mw->free_natives, link);
		free(n);
	}
	while ((f = TAILQ_FIRST(&mw->free_fetches))) {
		TAILQ_REMOVE(&mw->free_fetches, f, link);
		free(f);
	}
	while ((p = STAILQ_FIRST(&mw->free_pulls))) {
		STAILQ_REMOVE_HEAD(&mw->free_pulls, link);
		free(p);
	}
	while ((a = TAILQ_FIRST(&mw->free_asks))) {
		TAILQ_REMOVE(&mw->free_asks, a, link);
		free(a);
	}
}
