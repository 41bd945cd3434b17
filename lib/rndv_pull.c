/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which bytes are asked for next, and over which lane.
 *
 * Each lane has a window: what it carries in a round trip and WEFT_RNDV_SLACK, at its measured
 * rate. So what is asked for keeps every lane busy, yet no lane has more than about a millisecond
 * of work ahead of it, and a lane that becomes slow holds up little. A worker has a limit over all
 * its peers: with many senders the receiver decides how much comes at a time, and takes turns
 * among them piece by piece.
 *
 * A piece goes to the lane that is done with it soonest: (asked for + piece) / rate + latency. When
 * that lane's window is full, another one gets a piece only if it is done with it before the others
 * would have finished everything that is left without it; or the slowest lane would keep the end of
 * each message for itself.
 */

#include <errno.h>
#include <stdlib.h>

#include "msg.h"

#define PIECE_MAX (256u << 10)
#define WINDOW_MIN (64u << 10)
#define SLACK 1e-3 /* s; a peer, or a kernel between, looks after its queues every so often */

/* ------------------------------------------------------------------ lanes */

static double rate_of(struct weft_msg_ep *me, unsigned int lane)
{
	return weft_rate_get(&me->rndv[lane].rate, me->mw->worker->now);
}

static void set_window(struct weft_msg_ep *me, unsigned int i)
{
	struct weft_rndv_lane *l = &me->rndv[i];
	uint32_t rtt = me->lanes[i].lep->rtt_ns;
	double window;

	if (rtt && (!l->min_rtt_ns || rtt < l->min_rtt_ns))
		l->min_rtt_ns = rtt;
	else
		l->min_rtt_ns += l->min_rtt_ns >> 10; /* the way may have become longer */
	window = rate_of(me, i) * (2e-9 * l->min_rtt_ns + 2 * me->lanes[i].latency + SLACK);
	/* Compared as it is: the peer's numbers may be larger than any integer. */
	if (window >= (double)me->mw->conf.rndv_window)
		l->window = me->mw->conf.rndv_window;
	else
		l->window = window < WINDOW_MIN ? WINDOW_MIN : (uint64_t)window;
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

	*end = a ? a->end : f->req->length;
	return a ? a->offset : f->next;
}

/*
 * How much of [off, end) shall the lane be asked for at a time: whole frames, a quarter of its
 * window, but towards the end no more than its share of what is left.
 */
static uint64_t cut(struct weft_msg_ep *me, unsigned int lane, bool native, double share,
		    uint64_t off, uint64_t end)
{
	uint64_t min = me->mw->conf.rndv_min_piece, len = me->rndv[lane].window / 4;
	uint64_t frame = native ? 1 : frame_of(me, lane), align = align_of(me, lane);
	double part = share * (double)me->unasked;

	if (len > PIECE_MAX)
		len = PIECE_MAX;
	if ((double)len > part)
		len = (uint64_t)part + 1;
	if (len < min)
		len = min;
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

static bool has_room(const struct weft_rndv_lane *l, uint64_t len)
{
	return l->out == 0 || l->out + len <= l->window;
}

struct pick {
	double rates;  /* sum */
	uint64_t out;  /* sum */
	double best;   /* s, of the soonest lane, with room or without */
	int lane;      /* it */
	double room;   /* s, of the soonest lane with room */
	int with_room; /* it */
};

static double done_in(const struct weft_msg_ep *me, unsigned int lane, uint64_t len, double rate)
{
	return (double)(me->rndv[lane].out + len) / rate + me->lanes[lane].latency;
}

static void look(struct weft_msg_ep *me, uint32_t mask, uint32_t native, uint64_t off, uint64_t end,
		 struct pick *p)
{
	*p = (struct pick){.lane = -1, .with_room = -1};
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		p->rates += rate_of(me, i);
		p->out += me->rndv[i].out;
	}
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		double rate = me->rndv[i].rate.rate;
		uint64_t len = cut(me, i, native >> i & 1, rate / p->rates, off, end);
		double t = done_in(me, i, len, rate);

		if (p->lane < 0 || t < p->best) {
			p->lane = (int)i;
			p->best = t;
		}
		if (has_room(&me->rndv[i], len) && (p->with_room < 0 || t < p->room)) {
			p->with_room = (int)i;
			p->room = t;
		}
	}
}

/* @return the lane that shall get the next piece now, or -1 */
static int pick_lane(struct weft_msg_ep *me, uint32_t native, uint64_t off, uint64_t end,
		     double *share)
{
	double others, without;
	struct pick p;

	look(me, me->rndv_lanes, native, off, end, &p);
	if (p.with_room < 0)
		return -1;
	others = p.rates - me->rndv[p.with_room].rate.rate;
	*share = me->rndv[p.with_room].rate.rate / p.rates;
	if (p.with_room == p.lane || others <= 0)
		return p.with_room;
	without = (double)(p.out - me->rndv[p.with_room].out + me->unasked) / others;
	return p.room <= without ? p.with_room : -1;
}

size_t weft_rndv_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t off, uint64_t rest,
		       size_t max)
{
	uint64_t len = me->rndv[lane].window / 4, align = align_of(me, lane);

	if (len > PIECE_MAX)
		len = PIECE_MAX;
	if (len < me->mw->conf.rndv_min_piece || rest <= len + me->mw->conf.rndv_min_piece)
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

void weft_rndv_ask_free(struct weft_msg_worker *mw, struct weft_ask *a)
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
	struct weft_rndv_lane *l = &f->me->rndv[a->lane];

	TAILQ_INSERT_TAIL(&f->asks, a, link);
	l->out += a->left;
	f->me->mw->pull_out += a->left;
	weft_rate_start(&l->rate);
}

/* In the worker's list of endpoints that may ask. */
static void want(struct weft_msg_ep *me)
{
	if (me->fetching || TAILQ_EMPTY(&me->fetches))
		return;
	me->fetching = true;
	TAILQ_INSERT_TAIL(&me->mw->fetching, me, fetching_link);
}

static void unwant(struct weft_msg_ep *me)
{
	if (me->fetching)
		TAILQ_REMOVE(&me->mw->fetching, me, fetching_link);
	me->fetching = false;
}

/* There is more to ask for than may be: the lanes could do more than they are given. */
static void limited(struct weft_msg_ep *me)
{
	for (uint32_t m = me->rndv_lanes; m; m &= m - 1)
		weft_rate_limited(&me->rndv[__builtin_ctz(m)].rate);
}

/* Bytes of an ask have come, or will not. */
static void unbook(struct weft_fetch *f, struct weft_ask *a, uint64_t bytes)
{
	f->me->rndv[a->lane].out -= bytes;
	f->me->mw->pull_out -= bytes;
	a->left -= bytes;
}

/* And the lane is measured by them. */
static void came(struct weft_fetch *f, struct weft_ask *a, uint64_t bytes)
{
	struct weft_msg_ep *me = f->me;
	struct weft_rndv_lane *l = &me->rndv[a->lane];
	uint64_t now = me->mw->worker->now;
	bool changed = weft_rate_add(&l->rate, bytes, now);

	unbook(f, a, bytes);
	if (l->out == 0)
		changed |= weft_rate_stop(&l->rate, now);
	if (changed && me->up && (me->lanes_up & 1u << a->lane))
		set_window(me, a->lane);
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
		weft_rndv_ask_free(me->mw, a);
	}
	if (f->next == f->req->length && TAILQ_EMPTY(&f->again)) {
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
	/* Refused: this lane does as the others. The piece may be longer than its own, no matter. */
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
	double share = 1;
	int lane;

	if (!f || !me->up)
		return 0;
	if (!STAILQ_EMPTY(&me->ctl))
		return -EAGAIN; /* what waits for room goes first */
	off = next_range(f, &end);
	lane = pick_lane(me, native_of(f), off, end, &share);
	if (lane < 0)
		return 0;
	a = ask_new(me->mw);
	if (!a)
		return -EAGAIN;
	*a = (struct weft_ask){.fetch = f, .offset = off, .lane = (uint8_t)lane};
	a->native = native_of(f) >> lane & 1;
	len = cut(me, (unsigned int)lane, a->native, share, off, end);
	a->end = off + len;
	a->left = len;
	if (ask(f, a)) {
		weft_rndv_ask_free(me->mw, a);
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

unsigned int weft_rndv_pump(struct weft_msg_worker *mw)
{
	struct weft_msg_ep *me, *stuck = NULL;
	unsigned int n = 0;

	while ((me = TAILQ_FIRST(&mw->fetching)) && me != stuck) {
		int rc;

		if (mw->pull_out >= mw->conf.rndv_limit) {
			TAILQ_FOREACH(me, &mw->fetching, fetching_link)
				limited(me);
			break;
		}
		unwant(me);
		rc = ask_one(me);
		if (rc > 0) {
			n++;
			stuck = NULL;
			want(me);
			if (!me->fetching)
				limited(me);
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
	me->unasked += f->req->length;
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

void weft_rndv_pull_came(struct weft_fetch *f, uint64_t off, uint64_t len)
{
	struct weft_ask *a = find_ask(f, off, len);

	came(f, a, len);
	if (a->left)
		return;
	TAILQ_REMOVE(&f->asks, a, link);
	weft_rndv_ask_free(f->me->mw, a);
}

void weft_rndv_pull_read(struct weft_ask *a, bool good)
{
	struct weft_fetch *f = a->fetch;

	TAILQ_REMOVE(&f->asks, a, link);
	if (good) {
		came(f, a, a->left);
		weft_rndv_ask_free(f->me->mw, a);
		return;
	}
	unbook(f, a, a->left);
	if (f->over) {
		weft_rndv_ask_free(f->me->mw, a);
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
		me->unasked -= f->req->length - f->next;
		f->queued = false;
		if (TAILQ_EMPTY(&me->fetches))
			unwant(me);
	}
	while ((a = TAILQ_FIRST(&f->again))) {
		TAILQ_REMOVE(&f->again, a, link);
		me->unasked -= a->end - a->offset;
		weft_rndv_ask_free(me->mw, a);
	}
	for (a = TAILQ_FIRST(&f->asks); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (a->native)
			continue;
		unbook(f, a, a->left);
		TAILQ_REMOVE(&f->asks, a, link);
		weft_rndv_ask_free(me->mw, a);
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

		/* What is known of a lane stays when another one comes. */
		if (me->rndv[i].rate.nominal == 0)
			weft_rate_init(&me->rndv[i].rate, 1.0 / me->lanes[i].per_byte);
		set_window(me, i);
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
	SLIST_INIT(&mw->free_puts);
}

void weft_rndv_worker_fini(struct weft_msg_worker *mw)
{
	struct weft_fetch *f;
	struct weft_put *put;
	struct weft_pull *p;
	struct weft_ask *a;

	while ((put = SLIST_FIRST(&mw->free_puts))) {
		SLIST_REMOVE_HEAD(&mw->free_puts, link);
		free(put);
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
