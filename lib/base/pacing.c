/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/pacing.h"

/* ------------------------------------------------------------------ measured rate of a lane */

/* Lower bound of an estimate, as a share of the nominal rate. */
#define FLOOR (1.0 / 1024)

void weft_rate_init(struct weft_rate *r, double nominal)
{
	*r = (struct weft_rate){.nominal = nominal > 0 ? nominal : 1e9};
	r->rate = r->nominal;
}

static void begin_span(struct weft_rate *r)
{
	r->span = 0;
	r->bytes = 0;
	r->limited = false;
}

static bool end_span(struct weft_rate *r, uint64_t now)
{
	uint64_t weight = r->span < WEFT_RATE_MAX ? r->span : WEFT_RATE_MAX;
	double is = (double)r->bytes * 1e9 / (double)r->span;
	double share = (double)weight / (double)(weight + WEFT_RATE_TAU);
	bool counts = !r->limited || is > r->rate;

	begin_span(r);
	if (!counts)
		return false;
	/* At least half, because the nominal rate is no measurement. */
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
	return r->span >= WEFT_RATE_SPAN && end_span(r, now);
}

bool weft_rate_pause(struct weft_rate *r, uint64_t now)
{
	bool enough = r->running && r->span >= WEFT_RATE_SPAN;

	r->running = false;
	if (enough)
		return end_span(r, now);
	if (r->limited)
		begin_span(r);
	return false;
}

bool weft_rate_stop(struct weft_rate *r, uint64_t now)
{
	/* The lane may have waited since the work ended. */
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

/* ------------------------------------------------------------------ quota of requests */

static void judge_anew(struct weft_share *s, struct weft_share_user *u, uint64_t now)
{
	u->due = u->out / 4 + 1;
	u->since = now;
	u->came = s->came;
	if (u->listed)
		TAILQ_REMOVE(&s->users, u, link);
	TAILQ_INSERT_TAIL(&s->users, u, link);
	u->listed = true;
}

static void unlist_user(struct weft_share *s, struct weft_share_user *u)
{
	if (u->listed)
		TAILQ_REMOVE(&s->users, u, link);
	u->listed = false;
}

static bool is_late(const struct weft_share *s, const struct weft_share_user *u, uint64_t now)
{
	uint64_t came = s->came - u->came;

	if (now - u->since < WEFT_SHARE_STALL)
		return false;
	/* If no other peer delivers, their load is not the reason for the delay. */
	return came == 0 || came >= s->used || now - u->since >= WEFT_SHARE_STALL_MAX;
}

bool weft_share_free(struct weft_share *s, uint64_t now)
{
	struct weft_share_user *u;

	while (s->used >= s->limit && (u = TAILQ_FIRST(&s->users)) && is_late(s, u, now)) {
		unlist_user(s, u);
		u->stalled = true;
		s->used -= u->out;
		s->stalled += u->out;
		s->stalls++;
	}
	return s->used < s->limit;
}

bool weft_share_room(struct weft_share *s, const struct weft_share_user *u, uint64_t now)
{
	return u->out == 0 || (weft_share_free(s, now) && !u->stalled);
}

void weft_share_take(struct weft_share *s, struct weft_share_user *u, uint64_t n, uint64_t now)
{
	bool first = u->out == 0;

	u->out += n;
	if (u->stalled) {
		s->stalled += n;
		return;
	}
	s->used += n;
	if (s->used > s->peak)
		s->peak = s->used;
	if (first)
		judge_anew(s, u, now);
}

void weft_share_done(struct weft_share *s, struct weft_share_user *u, uint64_t n, bool good,
		     uint64_t now)
{
	u->out -= n;
	if (u->stalled)
		s->stalled -= n;
	else
		s->used -= n;
	if (good)
		s->came += n;
	if (u->out == 0) {
		unlist_user(s, u);
		u->stalled = false;
		return;
	}
	if (!good)
		return;
	u->due -= n < u->due ? n : u->due;
	if (u->due)
		return;
	if (u->stalled) {
		u->stalled = false;
		s->stalled -= u->out;
		s->used += u->out;
	}
	judge_anew(s, u, now);
}

/* ------------------------------------------------------------------ promptness of a peer */

static void promptness_late(struct weft_promptness *p, uint64_t now)
{
	p->late = now;
	p->span = p->span < WEFT_PROMPT_LEAST ? WEFT_PROMPT_LEAST : p->span * 2;
	if (p->span > WEFT_PROMPT_MOST)
		p->span = WEFT_PROMPT_MOST;
	p->left = p->span;
}

void weft_promptness_note(struct weft_promptness *p, uint64_t begun, uint64_t now)
{
	if (now - begun <= WEFT_PROMPT_NS)
		p->span /= 2;
	else if (begun >= p->late) /* else it began before the end of the last long wait */
		promptness_late(p, now);
}

void weft_promptness_compare(struct weft_promptness *p, uint64_t begun, uint64_t now,
			     uint64_t alone)
{
	/* Transfers that began before the end of the last long wait do not count twice. */
	if (p->left > 0 || begun < p->late)
		return;
	if (now - begun <= alone) {
		p->slow = 0;
		p->span /= 2;
	} else if (++p->slow == WEFT_PROMPT_SLOW) {
		p->slow = 0;
		promptness_late(p, now);
	}
}

/* ------------------------------------------------------------------ the pool of credit */

/* A floor is the limit / FLOOR_PART. A quarter of the limit is for floors. */
#define FLOOR_PART 2048
#define RESERVE_PART 4
/* A new peer gets at most the remaining pool / FIRST_PART, and its floor. */
#define FIRST_PART 32
/* A growth below the window / WORTH_PART is not worth a CREDIT message. */
#define WORTH_PART 8

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void weft_credit_pool_init(struct weft_credit_pool *p, uint64_t limit, uint64_t least,
			   uint64_t first, uint64_t max)
{
	*p = (struct weft_credit_pool){
		.limit = limit,
		.floor = limit / FLOOR_PART > least ? limit / FLOOR_PART : least,
		.least = less(least, max),
		.first = less(first, max),
		.max = max,
	};
	p->floor = less(p->floor, max);
}

/* Neither granted nor reserved for the floors of future peers. */
static uint64_t credit_left(const struct weft_credit_pool *p)
{
	uint64_t peers = p->limit / RESERVE_PART / p->floor;

	return minus(p->limit, p->granted + minus(peers, p->peers) * p->floor);
}

uint64_t weft_credit_pool_join(struct weft_credit_pool *p)
{
	uint64_t window = p->granted + p->floor <= p->limit ? p->floor : p->least;

	p->peers++;
	p->granted += window;
	if (window < p->first) {
		uint64_t more = less(p->first - window, credit_left(p) / FIRST_PART);

		p->granted += more;
		window += more;
	}
	return window;
}

void weft_credit_pool_leave(struct weft_credit_pool *p, uint64_t window)
{
	p->peers--;
	p->granted -= window;
}

uint64_t weft_credit_pool_grow(struct weft_credit_pool *p, uint64_t window)
{
	uint64_t more = less(window, minus(p->max, window));

	more = less(more, minus(2 * credit_left(p), window) / 3);
	if (more == 0 || more < window / WORTH_PART)
		return 0;
	p->granted += more;
	return more;
}

uint64_t weft_credit_pool_keep(struct weft_credit_pool *p, uint64_t window, uint64_t back)
{
	uint64_t even = (p->limit - p->limit / RESERVE_PART) / (p->peers ? p->peers : 1);

	if (credit_left(p) > p->limit / 16)
		return 0;
	back = less(back, minus(window, even > p->floor ? even : p->floor));
	p->granted -= back;
	return back;
}
