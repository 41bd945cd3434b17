/* SPDX-License-Identifier: BSD-3-Clause */

#include <math.h>
#include <stdlib.h>

#include "dump/clock.h"
#include "dump/host.h"
#include "dump/past.h"
#include "dump/trace.h"

/* ---- delays --------------------------------------------------------------------------------- */

/*
 * The frames of a flight recorder's file may all be newer than the change, but its history is of a
 * minute. The least delays of slots behind a change have a floor, near which some of them are. Most
 * slots before it were faster, and those of another flow to the same host, or of the other
 * direction, still are.
 */

#define RISE_NS 700000 /* ns; the floor is above the least delay before it by this, at least */
#define CHANCE 6.9     /* ln(1000), as in delay.c */
#define PAST_BEFORE 4u /* slots before the change, at least */
#define PAST_AFTER 8u  /* slots behind the change, at least */
#define PAST_NEAR 3u   /* slots within a quarter of the rise above the floor, at least */
#define NEAR_PARTS 4u  /* at least one in NEAR_PARTS slots behind the change is as near */
#define PAST_OTHER 3u  /* fast slots of another flow behind the change, at least */

/* The least delays of a flow over all paths, by slots of time. Empty slots are left out. */
struct floors {
	unsigned int num;
	uint64_t each;
	struct {
		uint64_t time; /* begin, common clock */
		int64_t least;
	} at[HISTORY_SLOTS];
};

static const struct history *history_of(const struct trace *t, const struct trace_flow *f)
{
	if (!f->in.known || !trace_is_recorder(t, f->in.file))
		return NULL;
	return &t->survey->file[f->in.file].history;
}

static bool is_series_of(const struct history_series *s, const struct trace_flow *f, bool coarse)
{
	return !s->counts && s->conn == f->dst_conn && s->token == f->token &&
	       s->iface == f->in.iface && (s->each >= 1u << 28) == coarse;
}

/* Delays are modulo 2^32: @return the one next to @p to. */
static int64_t next_to(int64_t to, int64_t delay)
{
	return to + (int32_t)(uint32_t)(delay - to);
}

/* Take the slots of a series into those of the flow. Slots of a lane's series have one grid. */
static void add_series(const struct history_series *s, uint64_t from, struct floors *all,
		       const struct history_series *first)
{
	uint64_t k = s->from >= from ? (s->from - from) / s->each : UINT64_MAX;
	unsigned int i;
	int64_t delay;

	for (i = 0; i < s->num && k < HISTORY_SLOTS; i++, k++) {
		if (!s->slot[i].known)
			continue;
		delay = next_to(first->slot[0].delay, s->slot[i].delay);
		if (!all->at[k].time || delay < all->at[k].least)
			all->at[k].least = delay;
		all->at[k].time = from + k * s->each;
	}
}

static bool floors_of(const struct trace *t, const struct trace_flow *f, bool coarse,
		      struct floors *all)
{
	const struct history *h = history_of(t, f);
	const struct history_series *s, *first = NULL;
	unsigned int i, n = 0;
	uint64_t end = 0, from;

	*all = (struct floors){0};
	for (s = h ? h->series : NULL; s && s < h->series + h->num; s++) {
		if (!is_series_of(s, f, coarse) || (first && s->each != first->each))
			continue;
		first = first ? first : s;
		end = s->from + s->num * s->each > end ? s->from + s->num * s->each : end;
	}
	if (!first)
		return false;
	from = end - HISTORY_SLOTS * first->each;
	for (s = h->series; s < h->series + h->num; s++)
		if (is_series_of(s, f, coarse) && s->each == first->each)
			add_series(s, from, all, first);
	for (i = 0; i < HISTORY_SLOTS; i++)
		if (all->at[i].time)
			all->at[n++] = all->at[i];
	all->num = n;
	all->each = first->each;
	for (i = 0; i < n; i++)
		all->at[i].time = trace_time(&t->clock[f->in.file], all->at[i].time);
	return true;
}

static int64_t least_in(const struct floors *s, unsigned int from, unsigned int to)
{
	int64_t least = INT64_MAX;

	for (; from < to; from++)
		least = s->at[from].least < least ? s->at[from].least : least;
	return least;
}

/* The number of slots from @p from to before @p to with a frame that was faster than @p limit. */
static unsigned int fast_in(const struct floors *s, unsigned int from, unsigned int to,
			    int64_t limit)
{
	unsigned int n = 0;

	for (; from < to; from++)
		n += s->at[from].least < limit;
	return n;
}

/*
 * @return -ln of the chance that of slots in any order the @p fast fastest ones all come first.
 * @param before, after  slots before the change, and behind it
 */
static double surprise(unsigned int before, unsigned int after, unsigned int fast)
{
	return lgamma(before + after + 1.0) - lgamma(before + after - fast + 1.0) -
	       lgamma(before + 1.0) + lgamma(before - fast + 1.0);
}

/* A way to measure a rise. */
struct measure {
	bool near;          /* some slots behind the change are near the floor; jitter has none */
	unsigned int parts; /* slots before count that are faster than 1 / parts of the rise */
};

/* @return a measure of the rise at slot @p i, 0 = there is none */
static double past_rise(const struct floors *s, unsigned int i, struct measure m,
			struct trace_delay *d)
{
	unsigned int len = s->num - i, close, before;
	int64_t least = least_in(s, 0, i), floor = least_in(s, i, s->num);
	double chance;

	if (i < PAST_BEFORE || len < PAST_AFTER || floor - least < RISE_NS)
		return 0;
	close = fast_in(s, i, s->num, floor + (floor - least) / 4 + 1);
	before = fast_in(s, 0, i, least + (floor - least) / m.parts);
	chance = m.parts == 1 ? surprise(i, len, before) : len * -log1p(-(double)before / (i + 1));
	if ((m.near && (close < PAST_NEAR || NEAR_PARTS * close < len)) ||
	    chance < CHANCE + log(s->num))
		return 0;
	*d = (struct trace_delay){
		.before = 0, .after = floor - least, .time = s->at[i].time, .of_path = true};
	return chance;
}

/*
 * Were frames of @p g fast in the time from @p d on?
 * @param slow  0, or slots of a slow flow in that time: then as many are slow by chance in at most
 *              one of 1000 flows that are as fast as @p g
 */
static bool stays_fast(const struct trace *t, const struct trace_flow *g, bool coarse,
		       const struct trace_delay *d, unsigned int slow)
{
	static struct floors s;
	unsigned int i = 0, fast, num;

	if (!floors_of(t, g, coarse, &s))
		return false;
	while (i < s.num && s.at[i].time < d->time)
		i++;
	num = s.num - i;
	fast = fast_in(&s, i, s.num, least_in(&s, 0, s.num) + d->after / 2);
	if (!slow)
		return fast >= PAST_OTHER;
	return 2 * num >= slow && slow * -log1p(-(double)fast / (num + 1)) >= CHANCE + log(s.num);
}

static bool others_stay_fast(const struct trace *t, const struct trace_flow *f, bool coarse,
			     const struct trace_delay *d, unsigned int slow)
{
	const struct trace_flow *g;

	for (g = t->flow; g < t->flow + t->num_flows; g++) {
		if (g->record || !g->in.known || trace_same_ports(f, g))
			continue;
		if ((g == trace_other(t, f) ||
		     (g->in.file == f->in.file && g->in.iface != f->in.iface)) &&
		    stays_fast(t, g, coarse, d, slow))
			return true;
	}
	return false;
}

/* The greatest rise of a flow. @return its slots from the rise on; 0 = there is no rise */
static unsigned int greatest_rise(const struct floors *s, struct measure m, struct trace_delay *d)
{
	struct trace_delay one;
	unsigned int i, slow = 0;
	double size, best = 0;

	for (i = 0; i < s->num; i++) {
		size = past_rise(s, i, m, &one);
		if (size <= best)
			continue;
		best = size;
		slow = s->num - i;
		*d = one;
	}
	return slow;
}

/* ---- against another lane */

/*
 * A host that waits for its core is late on all of its lanes: the difference of two lanes in one
 * slot is that of their paths. Ranks of the differences show when it grew.
 */

#define RANK_LIMIT 5.0 /* standard deviations; chance: one in 3 million for each slot */

/* The slots that both flows have, and how much later frames of the first flow are there. */
static void subtract(struct floors *s, const struct floors *other)
{
	unsigned int i, k = 0, n = 0;

	for (i = 0; i < s->num; i++) {
		while (k < other->num && other->at[k].time + s->each / 2 < s->at[i].time)
			k++;
		if (k == other->num || other->at[k].time > s->at[i].time + s->each / 2)
			continue;
		s->at[n].time = s->at[i].time;
		s->at[n++].least = s->at[i].least - other->at[k].least;
	}
	s->num = n;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int64_t median_of(const struct floors *s, unsigned int from, unsigned int to)
{
	int64_t d[HISTORY_SLOTS];
	unsigned int i;

	for (i = from; i < to; i++)
		d[i - from] = s->at[i].least;
	qsort(d, to - from, sizeof(d[0]), by_value);
	return d[(to - from) / 2];
}

/* The slot from which on the slots rank higher than before, by the most; 0 = by too little. */
static unsigned int ranks_rise(const struct floors *s)
{
	unsigned int i, k, below, best = 0, n = s->num;
	double sum = 0, most = RANK_LIMIT, mean, size;

	for (i = 1; i < n; i++) {
		for (k = 0, below = 0; k < n; k++)
			below += s->at[k].least < s->at[i - 1].least ||
				 (k < i && s->at[k].least == s->at[i - 1].least);
		sum += below;
		mean = i * (n + 1.0) / 2;
		size = (mean - sum) / sqrt(mean * (n - i) / 6);
		if (i < PAST_BEFORE || n - i < PAST_AFTER || size <= most)
			continue;
		most = size;
		best = i;
	}
	return best;
}

/* Does the flow differ more from @p g than before, by its own rise? */
static bool differs(const struct trace *t, const struct trace_flow *f, const struct trace_flow *g,
		    struct trace_delay *d)
{
	static struct floors own, s, other;
	unsigned int at, i = 0;
	int64_t rise;

	if (!floors_of(t, f, false, &own) || !floors_of(t, g, false, &other) ||
	    own.each != other.each)
		return false;
	s = own;
	subtract(&s, &other);
	at = ranks_rise(&s);
	if (!at)
		return false;
	rise = median_of(&s, at, s.num) - median_of(&s, 0, at);
	while (own.at[i].time < s.at[at].time)
		i++;
	if (rise < RISE_NS || least_in(&own, i, own.num) - least_in(&own, 0, i) < RISE_NS)
		return false;
	*d = (struct trace_delay){.after = rise, .time = s.at[at].time, .of_path = true};
	return true;
}

static bool differs_from_another(const struct trace *t, const struct trace_flow *f,
				 struct trace_delay *d)
{
	const struct trace_flow *g;

	for (g = t->flow; g < t->flow + t->num_flows; g++)
		if (!g->record && g->in.known && g->out.known && g->in.file == f->in.file &&
		    g->out.file == f->out.file && g->in.iface != f->in.iface && differs(t, f, g, d))
			return true;
	return false;
}

bool past_delayed(const struct trace *t, const struct trace_flow *f, struct trace_delay *d)
{
	static const struct measure measures[] = {{true, 2}, {false, 2}, {true, 1}, {false, 1}};
	static struct floors s;
	unsigned int k, m, slow;

	for (k = 0; k < 2; k++) {
		if (!floors_of(t, f, k, &s))
			continue;
		for (m = 0; m < sizeof(measures) / sizeof(*measures); m++) {
			slow = greatest_rise(&s, measures[m], d);
			if (slow && others_stay_fast(t, f, k, d, measures[m].near ? 0 : slow))
				return true;
		}
	}
	return differs_from_another(t, f, d);
}

/* ---- counts --------------------------------------------------------------------------------- */

#define CONNS_MOST 2u /* connections of a lane whose counts are those of one peer, at most */
#define EVENTS 4u     /* events behind the change, at least */
#define RATE_TIMES 4  /* their rate is this multiple of the rate before, at least */

/* Is this the series of short slots of the lane's counts, and has the lane one peer? */
static bool is_counts(const struct history_series *s, uint16_t iface)
{
	unsigned int i;

	if (!s->counts || s->iface != iface || s->each >= 1u << 28)
		return false;
	for (i = 0; i < s->num; i++)
		if (s->slot[i].known && s->slot[i].count[HISTORY_CONNS] > CONNS_MOST)
			return false;
	return true;
}

/*
 * The slot behind which events are more frequent: there the sum of the events falls behind their
 * mean by the most. @return s->num: there is none
 */
static unsigned int change_of(const struct history_series *s, enum history_count what)
{
	double mean = 0, sum = 0, most = 0, before = 0, all = 0;
	unsigned int i, best = s->num;

	for (i = 0; i < s->num; i++)
		all += s->slot[i].count[what];
	mean = all / s->num;
	for (i = 0; i < s->num; i++) {
		sum += mean - s->slot[i].count[what];
		if (sum <= most)
			continue;
		most = sum;
		best = i + 1;
	}
	for (i = 0; i < best && i < s->num; i++)
		before += s->slot[i].count[what];
	if (best >= s->num || all - before < EVENTS ||
	    (all - before) / (s->num - best) < RATE_TIMES * before / best)
		return s->num;
	return best;
}

static const struct history_series *counts_of(const struct trace *t, const struct trace_port *port)
{
	const struct history_series *s;
	const struct history *h;

	if (!port->known || !trace_is_recorder(t, port->file))
		return NULL;
	h = &t->survey->file[port->file].history;
	for (s = h->series; s && s < h->series + h->num; s++)
		if (is_counts(s, port->iface))
			return s;
	return NULL;
}

static uint64_t time_of(const struct trace *t, const struct trace_port *port,
			const struct history_series *s, unsigned int slot)
{
	return trace_time(&t->clock[port->file], s->from + slot * s->each);
}

uint64_t past_since(const struct trace *t, const struct trace_port *port, enum history_count what)
{
	const struct history_series *s = counts_of(t, port);
	unsigned int i = s ? change_of(s, what) : 0;

	return s && i < s->num ? time_of(t, port, s, i) : 0;
}

uint64_t past_lowered(const struct trace *t, const struct trace_port *port)
{
	const struct history_series *s = counts_of(t, port);
	unsigned int i = 0;

	while (s && i < s->num && !s->slot[i].count[HISTORY_LOWERED])
		i++;
	return s && i < s->num ? time_of(t, port, s, i) : 0;
}

#define LOST 6u                 /* lost frames, at least */
#define LOST_SHARE 0.005        /* least lost share of the frames that were sent since the change */
#define UNSETTLED_NS 100000000u /* ns; frames sent so shortly before the end may still come twice */

bool past_lost(const struct trace *t, const struct trace_flow *f, struct past_loss *loss)
{
	const struct history_series *s = counts_of(t, &f->out), *r = counts_of(t, &f->in);
	unsigned int i, k, again = 0, sent = 0, twice = 0;
	uint64_t end;

	k = s && r ? change_of(s, HISTORY_AGAIN) : 0;
	if (!s || !r || k >= s->num)
		return false;
	loss->since = time_of(t, &f->out, s, k);
	end = time_of(t, &f->in, r, r->num);
	for (i = k, loss->slots = 0; i < s->num; i++) {
		if (time_of(t, &f->out, s, i + 1) + UNSETTLED_NS > end)
			break;
		again += s->slot[i].count[HISTORY_AGAIN];
		sent += s->slot[i].count[HISTORY_SENT];
		loss->slots += s->slot[i].count[HISTORY_AGAIN] > 0;
	}
	for (i = 0; i < r->num; i++)
		if (time_of(t, &f->in, r, i + 1) > loss->since)
			twice += r->slot[i].count[HISTORY_TWICE];
	loss->frames = again > twice ? again - twice : 0;
	loss->again = again;
	loss->sent = sent;
	return loss->frames >= LOST && loss->frames >= LOST_SHARE * sent;
}

/* ---- hosts ---------------------------------------------------------------------------------- */

#define PAUSED_SLOTS 10u         /* slots in which the host did not poll for PAUSED_US, at least */
#define PAUSED_US 1000u          /* us */
#define PAUSED_WINDOW 250000000u /* ns from the first to the last of a lane's slots, at least */
#define STOP_SLACK 50000000u     /* ns between a stop and the slots next to it, at most */

static bool is_of_host(const struct history_series *s)
{
	return s->counts && s->each < 1u << 28;
}

/* The lane's slots from the first to the last one with counts. */
static struct past_pauses pauses_in(const struct history_series *s)
{
	struct past_pauses p = {0};
	uint64_t us = 0, first = 0, last = 0;
	unsigned int i;

	for (i = 0; i < s->num; i++) {
		if (!s->slot[i].known)
			continue;
		last = s->from + i * s->each;
		if (!first) {
			first = last;
			continue;
		}
		us += s->slot[i].count[HISTORY_LATE];
		p.slots += s->slot[i].count[HISTORY_LATE] >= PAUSED_US;
	}
	p.since = first;
	p.ns = last - first;
	p.share = p.ns ? (double)us * 1000 / (double)p.ns : 0;
	p.share = p.share < 1 ? p.share : 1;
	return p;
}

bool past_paused(const struct trace *t, uint8_t file, struct past_pauses *p)
{
	const struct history *h;
	struct past_pauses one;
	unsigned int i;

	*p = (struct past_pauses){0};
	if (!trace_is_recorder(t, file))
		return false;
	h = &t->survey->file[file].history;
	for (i = 0; i < h->num; i++) {
		if (!is_of_host(&h->series[i]))
			continue;
		one = pauses_in(&h->series[i]);
		if (one.ns >= PAUSED_WINDOW && one.slots > p->slots)
			*p = one;
	}
	p->since = trace_time(&t->clock[file], p->since);
	return p->slots >= PAUSED_SLOTS;
}

/* The stop that ended in slot @p i; @p before is the last slot with counts. to = 0: none */
static struct trace_gap stop_in(const struct history_series *s, unsigned int before, unsigned int i)
{
	const struct history_slot *a = &s->slot[before], *b = &s->slot[i];
	uint64_t ns = b->count[HISTORY_STOPPED] * 1000ull, begin = s->from + before * s->each;
	uint64_t end = s->from + i * s->each + s->each / 2;
	struct trace_gap gap = {.from = end - ns, .to = end};

	if (ns < TRACE_STOP_NS || !a->count[HISTORY_CONNS] || end - begin > ns + STOP_SLACK ||
	    a->count[HISTORY_SENT] + a->count[HISTORY_RECEIVED] == 0)
		return (struct trace_gap){0};
	if (gap.from < begin)
		gap = (struct trace_gap){.from = begin, .to = begin + ns};
	return gap;
}

bool past_stopped(const struct trace *t, uint8_t file, struct trace_gap *stop)
{
	const struct history_series *s;
	struct trace_gap one;
	const struct history *h;
	unsigned int i, before;

	*stop = (struct trace_gap){0};
	if (!trace_is_recorder(t, file))
		return false;
	h = &t->survey->file[file].history;
	for (s = h->series; s && s < h->series + h->num; s++) {
		for (i = 0, before = HISTORY_SLOTS; is_of_host(s) && i < s->num; i++) {
			if (!s->slot[i].known)
				continue;
			one = before < i ? stop_in(s, before, i) : (struct trace_gap){0};
			before = i;
			if (one.to - one.from > stop->to - stop->from)
				*stop = one;
		}
	}
	if (!stop->to)
		return false;
	stop->from = trace_time(&t->clock[file], stop->from);
	stop->to = trace_time(&t->clock[file], stop->to);
	return true;
}
