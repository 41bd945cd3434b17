/* SPDX-License-Identifier: BSD-3-Clause */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump/delay.h"
#include "dump/trace.h"

/* ---- delays --------------------------------------------------------------------------------- */

/*
 * A path that got longer. A low quantile of delays is the path's: the median has the sender's own
 * queue, and the receiver's pauses. A sender with much in flight queues frames in its own port, so
 * a part of the growth is explained by what it had sent just before.
 */

#define DELAY_NS 50000   /* smaller changes are no fault */
#define DELAY_FRAMES 10u /* before the change, and after it */
#define LOW 0.1          /* quantile that is compared */
#define OWN_NS 4         /* per byte sent just before: a port of 2 Gbit/s */

static int by_delay(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

#define SAMPLES (8u * TRACE_SAMPLES)

static int64_t quantile(const struct trace_sample *s, unsigned int n, double q)
{
	static int64_t d[SAMPLES];
	unsigned int i;

	for (i = 0; i < n; i++)
		d[i] = s[i].delay;
	qsort(d, n, sizeof(d[0]), by_delay);
	return d[(unsigned int)(q * (n - 1))];
}

static int64_t own_queue(const struct trace_sample *s, unsigned int n)
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		sum += s[i].load;
	return (int64_t)(sum / n) * OWN_NS;
}

/*
 * Find the sample from which on the delay is greater: the sum of the differences below the mean has
 * its maximum there. Delays are clipped at the quantile @clip. @return the sample, 0 = none
 */
static unsigned int change(const struct trace_sample *s, unsigned int n, double clip)
{
	unsigned int i, best = 0;
	double mean = 0, sum = 0, most = 0;
	int64_t most_of_all;

	if (n < 2 * DELAY_FRAMES)
		return 0;
	most_of_all = quantile(s, n, clip);
	for (i = 0; i < n; i++)
		mean += (double)RTE_MIN(s[i].delay, most_of_all) / n;
	for (i = 0; i < n; i++) {
		sum += mean - (double)RTE_MIN(s[i].delay, most_of_all);
		if (sum <= most)
			continue;
		most = sum;
		best = i + 1;
	}
	return best < DELAY_FRAMES || best + DELAY_FRAMES > n ? 0 : best;
}

/* @return the sample from which on the delay is greater, 0 = no growth */
static unsigned int grows(const struct trace_flow *f, double clip, struct trace_delay *d)
{
	unsigned int n = f->num_came, best = change(f->came, n, clip);
	int64_t own;

	if (!best)
		return 0;
	d->before = quantile(f->came, best, LOW);
	d->after = quantile(f->came + best, n - best, LOW);
	own = own_queue(f->came + best, n - best) - own_queue(f->came, best);
	if (own < 0)
		own = 0;
	return d->after - d->before - own > DELAY_NS && d->after > 2 * d->before ? best : 0;
}

/* ---- floors --------------------------------------------------------------------------------- */

/*
 * The least delay of each slot of time. A host without a core makes frames late by times that
 * differ, and some frame of a slot is fast nevertheless. A longer path has a floor: no frame is
 * faster, and some are little slower. So floors show what the quantiles of busy hosts hide.
 */

#define SLOTS_BEFORE 2u /* that are fast */
#define SLOTS_LONG 4u   /* in a row, with a floor */
#define SLOTS_NEAR 3u   /* of these, within a quarter of the floor */
#define SLOTS_OTHER 4u  /* of another lane, in this time */
#define TIMES_OTHER 10  /* faster than the floor: the median of these slots */
#define TIMES_LONG 3    /* the same for a row of a quarter of all slots or more */
#define TIMES_ROW 2u    /* longer than the other rows of such slots: hosts make these */
#define CHANCE 6.9      /* exponent: a row of slow slots is no chance, 1 in 1000 */

static void halve(struct trace_floors *s)
{
	struct trace_floor *a, *b;
	unsigned int i;

	for (i = 0; i < TRACE_FLOORS / 2; i++) {
		a = &s->slot[2 * i];
		b = a + 1;
		if (!a->frames || (b->frames && b->least < a->least))
			s->slot[i] = (struct trace_floor){a->frames ? a->first : b->first, b->least,
							  b->load, a->frames + b->frames};
		else
			s->slot[i] = (struct trace_floor){a->first, a->least, a->load,
							  a->frames + b->frames};
	}
	memset(s->slot + TRACE_FLOORS / 2, 0, sizeof(s->slot) / 2);
	s->interval *= 2;
}

void trace_floor_add(const struct trace *t, struct trace_flow *f, uint64_t sent, int64_t delay,
		     uint32_t load)
{
	uint64_t at = sent > t->begin ? sent - t->begin : 0;
	struct trace_floors *s = f->floors;
	struct trace_floor *slot;

	while (at / s->interval >= TRACE_FLOORS)
		halve(s);
	slot = &s->slot[at / s->interval];
	if (!slot->frames++)
		slot->first = sent;
	else if (delay >= slot->least)
		return;
	slot->least = delay;
	slot->load = load;
}

/* Slots from @p from to before @p to: a row in which no frame is faster than its floor. */
struct row {
	unsigned int from, to;
	int64_t floor;
};

/* The longest row of slots with at least this delay. */
static struct row longest(const struct trace_floor *s, unsigned int n, int64_t floor)
{
	struct row best = {0, 0, floor};
	unsigned int i, from = 0;

	for (i = 0; i <= n; i++) {
		if (i < n && s[i].least >= floor)
			continue;
		if (i - from > best.to - best.from)
			best = (struct row){from, i, floor};
		from = i + 1;
	}
	return best;
}

/* Slots in the longest row with at least this delay before or after @p r. */
static unsigned int longest_besides(const struct trace_floor *s, unsigned int n,
				    const struct row *r)
{
	struct row before = longest(s, r->from, r->floor);
	struct row after = longest(s + r->to, n - r->to, r->floor);

	return RTE_MAX(before.to - before.from, after.to - after.from);
}

/* @return a measure of the rise, 0 = there is none */
static double rise(const struct trace_floor *s, unsigned int n, const struct row *r,
		   struct trace_delay *d)
{
	unsigned int i, fast = 0, near = 0, frames = 0, lower = 0, len = r->to - r->from;
	int64_t before = INT64_MAX, own = 0;
	double load[2] = {0, 0};

	for (i = 0; i < n; i++) {
		if (i >= r->from && i < r->to) {
			near += s[i].least <= r->floor + r->floor / 4;
			frames += s[i].frames;
			load[1] += (double)s[i].load / len;
			continue;
		}
		lower += s[i].least < r->floor;
		if (i > r->from || s[i].least > r->floor / 2)
			continue;
		fast++;
		load[0] += s[i].load;
		before = s[i].least < before ? s[i].least : before;
	}
	if (fast < SLOTS_BEFORE || len < SLOTS_LONG || near < SLOTS_NEAR || frames < DELAY_FRAMES)
		return 0;
	if (load[1] > load[0] / fast)
		own = (int64_t)(load[1] - load[0] / fast) * OWN_NS;
	if (r->floor - before - own < DELAY_NS || r->floor - own < 2 * before ||
	    len * -log1p(-(double)lower / (n - len + 1)) < CHANCE + log(n) ||
	    len < TIMES_ROW * longest_besides(s, n, r))
		return 0;
	*d = (struct trace_delay){.before = before, .after = r->floor, .time = s[r->from].first};
	return len * log((double)r->floor / (double)(before > 1000 ? before : 1000));
}

/* The median of the least delays of @p g in this time, INT64_MAX if it has too few slots. */
static int64_t median_floor(const struct trace_flow *g, uint64_t from, uint64_t to)
{
	const struct trace_floor *s;
	int64_t d[TRACE_FLOORS];
	unsigned int k, n = 0;

	for (k = 0; k < TRACE_FLOORS; k++) {
		s = &g->floors->slot[k];
		if (s->frames && s->first >= from && s->first <= to)
			d[n++] = s->least;
	}
	if (n < SLOTS_OTHER)
		return INT64_MAX;
	qsort(d, n, sizeof(d[0]), by_delay);
	return d[n / 2];
}

/*
 * Were frames of another lane between the two hosts fast in this time? Then the hosts were not
 * late. @p most is a small part of the slow lane's delay, since busy hosts also poll one lane later
 * than another.
 */
static bool others_are_fast(const struct trace *t, const struct trace_flow *f, uint64_t from,
			    uint64_t to, int64_t most)
{
	const struct trace_flow *g;
	unsigned int i;

	for (i = 0; i < t->num_flows; i++) {
		g = &t->flow[i];
		if (g->record || !g->in.known || !g->out.known || g->in.file != f->in.file ||
		    g->out.file != f->out.file || g->in.iface == f->in.iface)
			continue;
		if (median_floor(g, from, to) <= most)
			return true;
	}
	return false;
}

static bool rises(const struct trace *t, const struct trace_flow *f, struct trace_delay *d)
{
	static struct trace_floor s[TRACE_FLOORS];
	struct trace_delay one;
	unsigned int i, n = 0, to = 0, len = 0;
	double best = 0, size;
	struct row r;

	for (i = 0; i < TRACE_FLOORS; i++)
		if (f->floors->slot[i].frames)
			s[n++] = f->floors->slot[i];
	for (i = 0; i < n; i++) {
		r = longest(s, n, s[i].least);
		size = rise(s, n, &r, &one);
		if (size <= best)
			continue;
		best = size;
		*d = one;
		to = r.to;
		len = r.to - r.from;
	}
	if (best > 0)
		return others_are_fast(t, f, d->time, s[to - 1].first,
				       d->after / (4 * len >= n ? TIMES_LONG : TIMES_OTHER));
	return false;
}

/* ---- floors that last ----------------------------------------------------------------------- */

/*
 * All flows between two ports are taken together: a slow path is used less, and its connections end
 * and begin again, so one flow may have few frames. A host without a core makes frames late too, by
 * times that differ: over many of its time slices it has no floor.
 */

#define FLOOR_TIMES 12u /* and more have frames near the floor */
#define FLOOR_APART_NS 30000000

static int by_time(const void *a, const void *b)
{
	const struct trace_sample *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static bool same_ports(const struct trace_flow *f, const struct trace_flow *g)
{
	return !g->record && g->in.known && g->out.known && g->in.file == f->in.file &&
	       g->out.file == f->out.file && g->in.iface == f->in.iface &&
	       g->out.iface == f->out.iface;
}

/*
 * Frames that came, of all flows between the ports of @p f, in the order of time.
 * @return their number; 0 if another flow has given them already
 */
static unsigned int gather(const struct trace *t, const struct trace_flow *f,
			   struct trace_sample *s)
{
	const struct trace_flow *g;
	unsigned int n = 0, most;

	for (g = t->flow; g < t->flow + t->num_flows; g++) {
		if (!same_ports(f, g))
			continue;
		if (g < f)
			return 0;
		most = RTE_MIN(g->num_came, SAMPLES - n);
		if (most)
			memcpy(s + n, g->came, most * sizeof(s[0]));
		n += most;
	}
	qsort(s, n, sizeof(s[0]), by_time);
	return n;
}

/* Is a frame near the floor in many times? */
static bool lasts(const struct trace_sample *s, unsigned int n, int64_t floor)
{
	unsigned int i, times = 0;
	uint64_t last = 0;

	for (i = 0; i < n; i++) {
		if (s[i].delay > floor + floor / 4 || s[i].time < last + FLOOR_APART_NS)
			continue;
		last = s[i].time;
		times++;
	}
	return times >= FLOOR_TIMES;
}

static bool has_floor(const struct trace *t, const struct trace_flow *f, struct trace_delay *d)
{
	static struct trace_sample s[SAMPLES];
	unsigned int i, n = gather(t, f, s), at = change(s, n, 0.9);

	if (!at)
		return false;
	d->before = quantile(s, at, LOW);
	for (i = 0; i < n; i++)
		s[i].delay -= (int64_t)s[i].load * OWN_NS;
	d->after = quantile(s + at, n - at, 0);
	while (at && s[at - 1].delay > (d->before + d->after) / 2)
		at--;
	d->time = s[at].time;
	return d->after > 2 * d->before && d->after - d->before > DELAY_NS &&
	       lasts(s + at, n - at, d->after);
}

/* ---- either -------------------------------------------------------------------------------- */

bool trace_delayed(const struct trace *t, const struct trace_flow *f, struct trace_delay *d)
{
	unsigned int at;

	if (rises(t, f, d) || has_floor(t, f, d)) {
		d->of_path = true;
		return true;
	}
	d->of_path = false;
	at = grows(f, 0.9, d);

	/* Senders whose window follows the delay use the lane less: it may have few slow frames. */
	if (!at)
		at = grows(f, 0.98, d);
	if (at)
		d->time = f->came[at].time;
	return at != 0;
}
