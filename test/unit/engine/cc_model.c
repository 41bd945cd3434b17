/* SPDX-License-Identifier: BSD-3-Clause */

#include "cc_model.h"

#include <stdlib.h>

#define MS 1000000ull

struct event {
	uint64_t at, sent;
	unsigned int sender;
	bool lost, marked, blind;
};

/* Acknowledgements and losses come in the order in which frames reached the queue. */
struct line {
	struct event *ev;
	size_t size, head, count;
};

static uint64_t rnd(struct model *m)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return m->seed;
}

/* A sender off its core does not delay the events of others. */
static void push(struct line *l, struct event e)
{
	struct event *before;
	size_t at = l->count++;

	if (at == l->size)
		abort();
	for (; at > 0; at--) {
		before = &l->ev[(l->head + at - 1) % l->size];
		if (before->at <= e.at)
			break;
		if (before->sender == e.sender) {
			e.at = before->at;
			break;
		}
		l->ev[(l->head + at) % l->size] = *before;
	}
	l->ev[(l->head + at) % l->size] = e;
}

#define AWAY_MIN (1 * MS)
#define AWAY_MAX (10 * MS)

/* Each has a pause in each stretch of time, somewhere. @return its end; 0 = @p at is in none */
static uint64_t away(const struct model *m, unsigned int sender, uint64_t at)
{
	uint64_t every = m->away_every + AWAY_MAX, nth, dice, from, until;

	if (m->away_every == 0)
		return 0;
	nth = at / every;
	dice = (nth * MODEL_SENDERS + sender + 1) * 0x9e3779b97f4a7c15ull;
	dice ^= dice >> 29;
	dice *= 0xbf58476d1ce4e5b9ull;
	from = nth * every + (dice >> 32) % m->away_every;
	until = from + AWAY_MIN + (dice & 0xffffff) % (AWAY_MAX - AWAY_MIN);
	return at >= from && at < until ? until : 0;
}

static uint64_t window(const struct model *m, const struct model_sender *s)
{
	return s->reno ? (uint64_t)(s->cwnd * m->frame) : s->cc.limit;
}

/* When may it send? UINT64_MAX: not before something is acknowledged. */
static uint64_t may_send(const struct model *m, struct model_sender *s, uint64_t now)
{
	uint64_t t = s->start > now ? s->start : now, until;

	if (s->stop != 0 && t >= s->stop)
		return UINT64_MAX;
	if (s->inflight != 0 && s->inflight + m->frame > window(m, s)) {
		s->full = true;
		return UINT64_MAX;
	}
	if (s->link > t)
		t = s->link;
	if (!s->reno && s->cc.gap != 0 && s->next > t) {
		s->full = true;
		t = s->next;
	}
	until = s->reno ? 0 : away(m, (unsigned int)(s - m->s), t);
	return until != 0 ? until : t;
}

/* When its sender hears of a frame that left the queue at @p left. */
static void acknowledged(const struct model *m, struct event *e, uint64_t left)
{
	uint64_t until;

	e->at = left + m->base;
	if (m->s[e->sender].reno)
		return;
	until = away(m, MODEL_SENDERS, e->at);
	if (until != 0) {
		e->at = until;
		e->blind = true;
	}
	until = away(m, e->sender, e->at);
	if (until != 0) {
		e->at = until;
		e->blind = true;
	}
}

static void send(struct model *m, struct line *l, unsigned int sender, uint64_t now,
		 uint64_t *free_at, uint64_t *found, uint64_t *finds)
{
	struct model_sender *s = &m->s[sender];
	uint64_t each = m->frame * 8000000000ull / m->rate;
	uint64_t bucket = m->burst * 8000000000ull / m->rate;
	uint64_t ahead = *free_at > now ? *free_at - now : 0;
	uint64_t wait = ahead > bucket ? ahead - bucket : 0;
	struct event e = {.sender = sender, .sent = now};

	s->inflight += m->frame;
	s->link = now + (m->access != 0 ? m->frame * 8000000000ull / m->access : 0);
	s->next = (s->next + s->cc.gap > now ? s->next : now) + s->cc.gap;
	if (now >= m->from) {
		s->sent += m->frame;
		*found += wait;
		(*finds)++;
	}
	if (wait * m->rate / 8000000000ull + m->frame > m->queue) {
		e.lost = true;
	} else {
		e.marked = m->mark != 0 && wait * m->rate / 8000000000ull > m->mark;
		*free_at = now + ahead + each;
		ahead += each;
		e.lost = (double)(rnd(m) % 1000000) < m->loss * 1e6;
	}
	acknowledged(m, &e, now + (ahead > bucket ? ahead - bucket : 0));
	push(l, e);
}

static void reno_event(struct model *m, struct model_sender *s, const struct event *e)
{
	if (!e->lost) {
		s->cwnd += 1 / s->cwnd;
	} else if (e->sent >= s->cut_at) {
		/* Cubic's factor, once per round trip. */
		s->cwnd = s->cwnd * 0.7 > 1 ? s->cwnd * 0.7 : 1;
		s->cut_at = e->at;
	}
	(void)m;
}

static void take(struct model *m, const struct event *e)
{
	struct model_sender *s = &m->s[e->sender];
	struct weft_cc_ack a = {.now = e->at, .limited = s->full, .inflight = s->inflight};

	s->inflight -= m->frame;
	if (e->at >= m->from) {
		s->delivered += e->lost ? 0 : m->frame;
		s->lost += e->lost ? m->frame : 0;
	}
	if (s->reno) {
		reno_event(m, s, e);
		return;
	}
	if (e->lost) {
		s->cc.ops->on_loss(&s->cc, m->frame, e->at);
		return;
	}
	a.acked = a.size = m->frame;
	a.marked = e->marked ? m->frame : 0;
	if (!m->blind && !e->blind)
		a.rtt = (uint32_t)(e->at - e->sent + (m->noise != 0 ? rnd(m) % m->noise : 0));
	s->full = false;
	s->cc.ops->on_ack(&s->cc, &a);
}

void model_run(struct model *m, unsigned int number, uint64_t ns)
{
	const struct weft_cc_conf conf = {.frame = m->frame,
					  .most = m->most,
					  .rtt = (uint32_t)m->hint,
					  .frame_ns = m->frame_ns,
					  .meter = m->meter};
	struct line l = {.size = 1 << 16};
	uint64_t now = 1000000000ull, end = now + ns, free_at = 0, t, best, found = 0, finds = 0;
	unsigned int sender, first = 0;

	l.ev = calloc(l.size, sizeof(*l.ev));
	if (m->seed == 0)
		m->seed = 88172645463325252ull;
	m->from += now;
	for (unsigned int i = 0; i < m->senders; i++) {
		weft_cc_init(&m->s[i].cc, weft_cc_ops(number), &conf);
		m->s[i].cwnd = 10;
		m->s[i].start += now;
		if (m->s[i].stop != 0)
			m->s[i].stop += now;
	}
	while (now < end) {
		best = l.count != 0 ? l.ev[l.head].at : UINT64_MAX;
		sender = MODEL_SENDERS;
		first = (first + 1) % m->senders;
		for (unsigned int k = 0; k < m->senders; k++) {
			t = may_send(m, &m->s[(first + k) % m->senders], now);
			if (t < best) {
				best = t;
				sender = (first + k) % m->senders;
			}
		}
		if (best == UINT64_MAX)
			break;
		now = best;
		if (sender < MODEL_SENDERS) {
			send(m, &l, sender, now, &free_at, &found, &finds);
		} else {
			struct event e = l.ev[l.head];

			l.head = (l.head + 1) % l.size;
			l.count--;
			take(m, &e);
		}
	}
	m->mean_queue = finds != 0 ? (double)found / (double)finds : 0;
	m->from -= 1000000000ull;
	free(l.ev);
}

double model_share(const struct model *m, int i, uint64_t ns)
{
	double sum = 0;

	for (unsigned int k = 0; k < m->senders; k++)
		if (i < 0 || (unsigned int)i == k)
			sum += (double)m->s[k].delivered;
	return sum * 8 / ((double)m->rate * (double)(ns - m->from) / 1e9);
}

double model_dropped(const struct model *m)
{
	double sent = 0, lost = 0;

	for (unsigned int k = 0; k < m->senders; k++) {
		sent += (double)m->s[k].sent;
		lost += (double)m->s[k].lost;
	}
	return sent > 0 ? lost / sent : 0;
}

double model_jain(const struct model *m)
{
	double sum = 0, squares = 0;

	for (unsigned int k = 0; k < m->senders; k++) {
		sum += (double)m->s[k].delivered;
		squares += (double)m->s[k].delivered * (double)m->s[k].delivered;
	}
	return squares > 0 ? sum * sum / (m->senders * squares) : 0;
}
