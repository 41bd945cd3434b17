/* SPDX-License-Identifier: BSD-3-Clause */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump/delay.h"
#include "dump/host.h"
#include "dump/trace.h"

/* ---- delays --------------------------------------------------------------------------------- */

/*
 * A path that got longer. A low quantile of delays is the path's: the median includes the sender's
 * own queue, and the receiver's pauses. A sender with much in flight queues frames in its port, so
 * a part of the growth is explained by what it had sent just before.
 */

#define DELAY_NS 50000   /* ns; a smaller growth is no fault */
#define DELAY_FRAMES 10u /* frames before the change, and after it, at least */
#define DELAY_TIMES 10u  /* times at which frames are slow after the change, at least */
#define LOW 0.1          /* quantile that is compared */
#define OWN_NS 4         /* ns for each byte sent just before: a port of 2 Gbit/s */
#define OWN_FREE 3000u   /* bytes sent just before that still are no queue */

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
 * its maximum there. Delays are clipped at the quantile @p clip. @return the sample, 0 = none
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

/*
 * How often frames took @p least ns or more. Frames that were under way at one time count once,
 * since one pause of a host makes all of them late.
 */
static unsigned int times_of(const struct trace_sample *s, unsigned int n, int64_t least)
{
	unsigned int i, num = 0;
	uint64_t until = 0;

	for (i = 0; i < n; i++) {
		if (s[i].delay < least || s[i].time < until)
			continue;
		until = s[i].time + (uint64_t)s[i].delay;
		num++;
	}
	return num;
}

/* @return the sample from which on the delay is greater, 0 = no growth */
static unsigned int grows(const struct trace_flow *f, double clip, struct trace_delay *d)
{
	unsigned int n = f->num_came, best = change(f->came, n, clip);
	int64_t own, before, after;

	if (!best)
		return 0;
	before = quantile(f->came, best, LOW);
	after = quantile(f->came + best, n - best, LOW);
	own = own_queue(f->came + best, n - best) - own_queue(f->came, best);
	if (own < 0)
		own = 0;
	if (after - before - own <= DELAY_NS || after <= 2 * before ||
	    times_of(f->came + best, n - best, after) < DELAY_TIMES)
		return 0;
	d->before = before;
	d->after = after;
	return best;
}

/* ---- floors --------------------------------------------------------------------------------- */

/*
 * The least delay of each slot of time. A host without a core makes frames late by times that
 * differ, and some frame of a slot is fast nevertheless. A longer path has a floor: no frame is
 * faster, and some are little slower. So floors show what the quantiles of busy hosts hide.
 */

#define SLOTS_BEFORE 2u /* fast slots before the row, at least */
#define SLOTS_LONG 4u   /* slots in the row, at least */
#define SLOTS_NEAR 3u   /* slots of these at most a quarter above the floor, at least */
#define SLOTS_OTHER 4u  /* slots of another lane in the time of the row, at least */
#define TIMES_OTHER 10  /* the median of these slots is below the floor by this factor, at least */
#define TIMES_LONG 3    /* TIMES_OTHER for a row of a quarter of all slots or more */
#define TIMES_ROW 2u    /* least ratio of the row to any other: busy hosts make several rows */
#define CHANCE 6.9      /* ln(1000): chance makes such a row in less than 1 of 1000 flows */

/* Take slot @p b into the earlier slot @p a. */
static void merge(struct trace_floor *a, const struct trace_floor *b)
{
	if (!a->frames)
		a->first = b->first;
	if (!a->frames || (b->frames && b->least < a->least)) {
		a->least = b->least;
		a->load = b->load;
	}
	a->frames += b->frames;
	if (b->proved > a->proved)
		a->proved = b->proved;
}

static void halve(struct trace_floors *s)
{
	struct trace_floor *a, *b;
	unsigned int i;

	for (i = 0; i < TRACE_FLOORS / 2; i++) {
		a = &s->slot[2 * i];
		b = a + 1;
		merge(a, b);
		s->slot[i] = *a;
	}
	memset(s->slot + TRACE_FLOORS / 2, 0, sizeof(s->slot) / 2);
	s->interval *= 2;
}

void trace_floor_add(const struct trace *t, struct trace_flow *f, uint64_t sent, int64_t delay,
		     uint64_t proved, uint32_t load)
{
	/* Behind OWN_FREE bytes of its own flow, a frame proves nothing about the path. */
	int64_t longer = load < OWN_FREE ? (int64_t)proved - (int64_t)load * OWN_NS : 0;
	uint64_t at = sent > t->begin ? sent - t->begin : 0;
	struct trace_floors *s = f->floors;
	struct trace_floor *slot;

	while (at / s->interval >= TRACE_FLOORS)
		halve(s);
	slot = &s->slot[at / s->interval];
	if (longer > slot->proved)
		slot->proved = longer;
	if (!slot->frames++)
		slot->first = sent;
	else if (delay >= slot->least)
		return;
	slot->least = delay;
	slot->load = load;
}

/*
 * The number of slots from @p from to before @p to. Slots whose frames were under way at one time
 * count once, since one pause of a host or of its kernel makes all of them late.
 */
static unsigned int times_in(const struct trace_floor *s, unsigned int from, unsigned int to)
{
	unsigned int i, num = 0;
	uint64_t until = 0;

	for (i = from; i < to; i++) {
		if (!s[i].frames || s[i].first < until)
			continue;
		until = s[i].first + (uint64_t)RTE_MAX(s[i].least, (int64_t)0);
		num++;
	}
	return num;
}

/* Slots from @p from to before @p to: a row in which no frame is faster than its floor. */
struct row {
	unsigned int from, to;
	int64_t floor;
};

/* The longest row of slots whose least delay is @p floor or more. */
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

/* Slots of the longest row before or after @p r whose least delays are its floor or more. */
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
	if (fast < SLOTS_BEFORE || times_in(s, r->from, r->to) < SLOTS_LONG || near < SLOTS_NEAR ||
	    frames < DELAY_FRAMES)
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

#define FLOOR_TIMES 12u         /* times with a frame near the floor, at least */
#define FLOOR_APART_NS 30000000 /* ns between two of these times, at least */

static int by_time(const void *a, const void *b)
{
	const struct trace_sample *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
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
		if (!trace_same_ports(f, g))
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

/* Are frames near the floor at FLOOR_TIMES times or more? */
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

/* ---- proofs --------------------------------------------------------------------------------- */

/*
 * In a slot of time a path was fast if a frame came at once. It was slow if none did, and polls of
 * the receiver prove for one that it was still on its way. Other slots show nothing: the host may
 * have been late. Slots are also slow if a sender lost its core between time stamp and port, or if
 * the kernel of a busy host passed frames on late. Such times are those of all lanes. So the path
 * got longer if slots are slow in a row while those of another lane are fast. In the short time of
 * a flight recorder's file another lane may have no frames. Then the other way of the lane is
 * compared: it shows less, as kernels may pass on late the frames of one way only.
 */

#define PROVED_SLOTS 3u  /* slow slots in a row, at least */
#define PROVED_BACK 4u   /* PROVED_SLOTS if the other way is compared */
#define PROVED_OTHERS 4u /* fast slots of other lanes, at least: in all, and for each slow slot */
#define LIMITS 9u        /* delays between fast and slow that are tried, each twice the last */

enum flows { SAME_PORTS, OTHER_LANES, OTHER_WAY };

static bool is_swapped(const struct trace_flow *f, const struct trace_flow *g)
{
	return g->in.file == f->out.file && g->in.iface == f->out.iface &&
	       g->out.file == f->in.file && g->out.iface == f->in.iface;
}

/* Is @p g at the ports of @p f, or at another interface of its receiver, or the other way? */
static bool is_between_hosts(const struct trace_flow *f, const struct trace_flow *g,
			     enum flows which)
{
	if (which == SAME_PORTS)
		return trace_same_ports(f, g);
	if (g->record || !g->in.known || !g->out.known)
		return false;
	return which == OTHER_WAY ? is_swapped(f, g)
				  : g->in.file == f->in.file && g->out.file == f->out.file &&
					    g->in.iface != f->in.iface;
}

/*
 * Merge the slots of all flows for which is_between_hosts() is true.
 * @return their least delay; INT64_MAX = there is none, or an earlier flow had the same slots
 */
static int64_t gather_slots(const struct trace *t, const struct trace_flow *f, enum flows which,
			    struct trace_floors *all)
{
	static struct trace_floors one;
	const struct trace_flow *g;
	int64_t least = INT64_MAX;
	unsigned int i;

	*all = (struct trace_floors){.interval = TRACE_FLOOR_NS};
	for (g = t->flow; g < t->flow + t->num_flows; g++) {
		if (!is_between_hosts(f, g, which))
			continue;
		if (which == SAME_PORTS && g < f)
			return INT64_MAX; /* the flow before has been judged with these slots */
		one = *g->floors;
		while (one.interval < all->interval)
			halve(&one);
		while (all->interval < one.interval)
			halve(all);
		for (i = 0; i < TRACE_FLOORS; i++)
			merge(&all->slot[i], &one.slot[i]);
		least = g->min_delay < least ? g->min_delay : least;
	}
	return least;
}

static bool is_fast(const struct trace_floor *s, int64_t limit)
{
	return s->frames && s->least < limit;
}

static bool is_slow(const struct trace_floor *s, int64_t limit)
{
	return s->frames && s->least >= limit && s->proved >= limit;
}

/*
 * The longest row of slow slots behind a fast one. Slots that show nothing do not end a row.
 * @return number of slow slots in it
 */
static unsigned int longest_slow(const struct trace_floor *s, int64_t limit, struct row *best)
{
	unsigned int i, from = 0, len = 0, most = 0;
	bool fast = false;

	for (i = 0; i < TRACE_FLOORS; i++) {
		if (is_fast(&s[i], limit)) {
			fast = true;
			len = 0;
		} else if (fast && is_slow(&s[i], limit)) {
			from = len++ ? from : i;
			if (len > most)
				*best = (struct row){from, i + 1, limit};
			most = len > most ? len : most;
		}
	}
	return most;
}

static bool other_slots_are_fast(const struct trace_floor *s, const struct row *r)
{
	unsigned int i, fast = 0, slow = 0;

	for (i = r->from; i < r->to; i++) {
		fast += is_fast(&s[i], r->floor);
		slow += is_slow(&s[i], r->floor);
	}
	return fast >= PROVED_OTHERS && fast >= PROVED_OTHERS * slow;
}

static void begin_of(const struct trace_floor *own, const struct trace_floor *others, struct row r,
		     struct trace_delay *d)
{
	unsigned int i;

	d->after = INT64_MAX;
	for (i = r.from; i < r.to; i++)
		if (own[i].frames && own[i].least < d->after)
			d->after = own[i].least;
	/* Slots before it are of the longer path, too, if the host was not late in them. */
	for (i = r.from; i > 0 && (!own[i - 1].frames || own[i - 1].least >= d->after); i--)
		if (own[i - 1].frames && is_fast(&others[i - 1], r.floor))
			r.from = i - 1;
	d->time = own[r.from].first;
}

/* @param slots  slow slots in a row, at least */
static bool is_proved(const struct trace *t, const struct trace_flow *f, enum flows witnesses,
		      unsigned int slots, struct trace_delay *d)
{
	static struct trace_floors own, others;
	unsigned int i, len, most = slots - 1;
	int64_t least = gather_slots(t, f, SAME_PORTS, &own), limit;
	struct row r = {0, 0, 0};

	if (least == INT64_MAX)
		return false;
	gather_slots(t, f, witnesses, &others);
	while (own.interval < others.interval)
		halve(&own);
	while (others.interval < own.interval)
		halve(&others);
	d->before = least > 0 ? least : 0;
	limit = 2 * d->before + DELAY_NS;
	for (i = 0; i < LIMITS; i++, limit *= 2) {
		len = longest_slow(own.slot, limit, &r);
		if (len <= most || times_in(own.slot, r.from, r.to) < slots ||
		    !other_slots_are_fast(others.slot, &r))
			continue;
		most = len;
		begin_of(own.slot, others.slot, r, d);
	}
	return most >= slots;
}

/* ---- floors from the begin on --------------------------------------------------------------- */

/*
 * A flight recorder's file may begin behind the change. Then the lane is compared with others
 * between the two hosts: none of its frames is fast, and some without a queue of their own are near
 * its floor.
 */

#define STANDS_NS 1000000 /* ns; a lower floor is no fault */

static bool stands(const struct trace *t, const struct trace_flow *f, struct trace_delay *d)
{
	static struct trace_floors own, others;
	const struct trace_floor *s;
	unsigned int times = 0;
	uint64_t until = 0;

	if (!trace_is_recorder(t, f->in.file))
		return false;
	d->after = gather_slots(t, f, SAME_PORTS, &own);
	d->before = gather_slots(t, f, OTHER_LANES, &others);
	if (d->after == INT64_MAX || d->before == INT64_MAX || d->after < STANDS_NS ||
	    d->after / TIMES_OTHER < d->before)
		return false;
	d->before = RTE_MAX(d->before, (int64_t)0);
	d->time = f->first;
	for (s = own.slot; s < own.slot + TRACE_FLOORS; s++) {
		if (!s->frames || s->load >= OWN_FREE || s->least > d->after + d->after / 4 ||
		    s->first < until)
			continue;
		until = s->first + (uint64_t)s->least;
		times++;
	}
	return times >= DELAY_TIMES;
}

/* ---- either -------------------------------------------------------------------------------- */

#define BACKLOG 0.75 /* share of the time without polls from which on sockets may have a backlog */

/*
 * A thread that has little of a core reads one message of a socket, and loses its core. The other
 * datagrams then wait, while those of another lane's socket do not: that is not the path.
 */
static bool may_wait_in_socket(const struct trace *t, const struct trace_flow *f)
{
	return trace_poll_of(t, &f->in)->sockets && trace_host_pauses(t, f->in.file) >= BACKLOG;
}

bool trace_delayed(const struct trace *t, const struct trace_flow *f, struct trace_delay *d)
{
	bool waits = may_wait_in_socket(t, f);
	unsigned int at;

	if (!waits && (rises(t, f, d) || has_floor(t, f, d) || stands(t, f, d))) {
		d->of_path = true;
		return true;
	}
	d->of_path =
		!waits &&
		(is_proved(t, f, OTHER_LANES, PROVED_SLOTS, d) ||
		 (trace_is_recorder(t, f->in.file) && is_proved(t, f, OTHER_WAY, PROVED_BACK, d)));
	at = grows(f, 0.9, d);
	/* Senders whose window follows the delay use the lane less: it may have few slow frames. */
	if (!at)
		at = grows(f, 0.98, d);
	/* Slots with a fast frame may be of the longer path, too: jitter. */
	if (at && (!d->of_path || f->came[at].time < d->time))
		d->time = f->came[at].time;
	return at != 0 || d->of_path;
}
