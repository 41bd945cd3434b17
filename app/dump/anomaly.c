/* SPDX-License-Identifier: BSD-3-Clause */
/* Which fault explains the observations: the table in doc/capture.md, strongest evidence first. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "dump/trace.h"

#define STOP_NS 5000000u /* a silence from this length on is a stop */
#define SLOW_GAPS 10u    /* this number of silences is slowness */
#define HOLE_NS 2500000u /* longer than one retransmission takes */
#define LONG_NS 10000000u
#define HOLE_FRAMES 4u
#define DOWN_NS 1500000u /* an end without a link is silent from then on */
#define LEFT_NS 18000000u
#define SEVERAL 4u /* frames, from which on it is a fault */
#define MTU_FRAMES 3u
#define DELAY_NS 30000 /* smaller changes of the delay are no fault */
#define DELAY_FRAMES 10u
#define CONSEQUENCE_NS 5000000u

static const char *const names[FAULT_COUNT] = {
	[FAULT_NONE] = "none",
	[FAULT_RANDOM_LOSS] = "random loss",
	[FAULT_BURST_LOSS] = "burst loss",
	[FAULT_QUEUE_LOSS] = "queue or policer loss",
	[FAULT_DUPLICATION] = "duplication",
	[FAULT_REORDERING] = "reordering",
	[FAULT_CORRUPTION] = "corruption",
	[FAULT_DELAY] = "delay or jitter",
	[FAULT_BLACKHOLE_ONE_WAY] = "blackhole one way",
	[FAULT_BLACKHOLE_BOTH_WAYS] = "blackhole both ways",
	[FAULT_LANE_DOWN] = "lane down",
	[FAULT_PATH_MTU] = "path MTU",
	[FAULT_MOVED_MAC] = "moved MAC",
	[FAULT_STOPPED_PEER] = "stopped peer",
	[FAULT_SLOW_RECEIVER] = "slow receiver",
};

const char *trace_fault_name(enum trace_fault fault)
{
	return names[fault];
}

struct list {
	struct trace_anomaly *a;
	unsigned int num;
};

__attribute__((format(printf, 6, 7))) static void name(struct list *l, enum trace_fault fault,
						       uint32_t flow, uint8_t host, uint64_t time,
						       const char *fmt, ...)
{
	struct trace_anomaly *a = &l->a[l->num];
	va_list ap;

	if (l->num == TRACE_ANOMALIES)
		return;
	l->num++;
	*a = (struct trace_anomaly){.fault = fault, .flow = flow, .host = host, .time = time};
	va_start(ap, fmt);
	vsnprintf(a->text, sizeof(a->text), fmt, ap);
	va_end(ap);
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* ---- hosts ---------------------------------------------------------------------------------- */

/* @return whether a fault of the host explains the symptoms of its lanes */
static bool host_fault(struct trace *t, uint8_t file, struct list *l)
{
	const struct trace_host *h = &t->host[file];
	const struct trace_gap *longest = NULL;
	uint64_t all = 0;
	unsigned int i;

	for (i = 0; i < h->num_gaps; i++) {
		all += h->gap[i].to - h->gap[i].from;
		if (!longest || h->gap[i].to - h->gap[i].from > longest->to - longest->from)
			longest = &h->gap[i];
	}
	/* A slow host is silent repeatedly. A stopped host is silent once, for much longer. */
	if (h->num_gaps >= SLOW_GAPS && 3 * (longest->to - longest->from) < all) {
		name(l, FAULT_SLOW_RECEIVER, TRACE_NONE, file, h->gap[0].from,
		     "polls seldom: %u silences of up to %.3f ms on all lanes while frames came",
		     h->num_gaps, ms(longest->to - longest->from));
		l->a[l->num - 1].weight = (int64_t)all;
		return true;
	}
	if (longest && longest->to - longest->from >= STOP_NS) {
		name(l, FAULT_STOPPED_PEER, TRACE_NONE, file, longest->from,
		     "silent for %.3f ms on all lanes while %u frames were sent to it",
		     ms(longest->to - longest->from), longest->frames);
		return true;
	}
	return false;
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* The run has most of the lost frames, and lasts long or until the end. */
static bool is_hole(const struct trace_flow *f)
{
	const struct trace_run *r = &f->longest;
	bool open = f->run.count && f->run.from == r->from;

	return r->count >= HOLE_FRAMES && r->to - r->from >= (open ? HOLE_NS : LONG_NS) &&
	       2 * r->count >= f->lost;
}

/* From the first loss on, no frame as long as the lost ones came, and shorter frames did. */
static bool is_mtu(const struct trace_flow *f)
{
	return f->lost >= MTU_FRAMES && f->large_came_at == 0 &&
	       f->came_max_before >= f->lost_min && f->num_came > 0 &&
	       f->came[f->num_came - 1].time > f->first_lost;
}

/* Did the sender of the flow send frames in this time? */
static bool spoke(const struct trace_flow *f, uint64_t from, uint64_t to)
{
	unsigned int i;

	for (i = 0; i < f->num_came; i++)
		if (f->came[i].time > from && f->came[i].time < to)
			return true;
	for (i = 0; i < f->num_gone; i++)
		if (f->gone[i].time > from && f->gone[i].time < to)
			return true;
	return false;
}

/*
 * Both ends stopped sending at once. An end that finds a dead lane by silence sends for more than
 * 20 ms (doc/failover.md). When a device reports that its link is down, both ends stop earlier.
 */
static bool left_at_once(const struct trace *t, const struct trace_flow *f,
			 const struct trace_flow *g)
{
	uint64_t last = f->last > g->last ? f->last : g->last;

	return last < f->longest.from + LEFT_NS && last < g->longest.from + LEFT_NS &&
	       last + LEFT_NS < t->now;
}

static void hole(struct trace *t, struct trace_flow *f, struct trace_flow *g, struct list *l)
{
	uint32_t index = (uint32_t)(f - t->flow);
	const struct trace_run *r = &f->longest;

	if (g && !is_hole(g) && !spoke(g, r->from, r->from + DOWN_NS)) {
		name(l, FAULT_LANE_DOWN, index, f->in.file, r->from,
		     "%" PRIu64 " frames lost in a row, and the receiver sends nothing on this "
		     "lane from then on",
		     r->count);
	} else if (g && is_hole(g) && left_at_once(t, f, g)) {
		name(l, FAULT_LANE_DOWN, index, f->in.file,
		     r->from < g->longest.from ? r->from : g->longest.from,
		     "no frames arrive, and both ends have left the lane after %.3f ms: earlier "
		     "than silence would have shown it",
		     ms((f->last > g->last ? f->last : g->last) - r->from));
	} else if (g && is_hole(g) && g->longest.from < r->to && r->from < g->longest.to) {
		name(l, FAULT_BLACKHOLE_BOTH_WAYS, index, f->in.file,
		     r->from < g->longest.from ? r->from : g->longest.from,
		     "%" PRIu64 " and %" PRIu64 " frames lost in a row, both ways at once",
		     r->count, g->longest.count);
	} else {
		name(l, FAULT_BLACKHOLE_ONE_WAY, index, f->in.file, r->from,
		     "%" PRIu64 " frames lost in a row in %.3f ms, none the other way", r->count,
		     ms(r->to - r->from));
	}
}

static int by_delay(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int64_t quantile(const struct trace_sample *s, unsigned int n, double q)
{
	static int64_t d[TRACE_SAMPLES];
	unsigned int i;

	for (i = 0; i < n; i++)
		d[i] = s[i].delay;
	qsort(d, n, sizeof(d[0]), by_delay);
	return d[(unsigned int)(q * (n - 1))];
}

/*
 * Find the sample from which on the delay is greater: the sum of the differences below the mean has
 * its maximum there. Delays are clipped at the quantile @clip. @return the sample, 0 = no growth
 */
static unsigned int delay_grows(const struct trace_flow *f, double clip, int64_t *before,
				int64_t *after)
{
	unsigned int i, best = 0, n = f->num_came;
	double mean = 0, sum = 0, most = 0;
	int64_t most_of_all;

	if (n < 2 * DELAY_FRAMES)
		return 0;
	most_of_all = quantile(f->came, n, clip);
	for (i = 0; i < n; i++)
		mean += (double)RTE_MIN(f->came[i].delay, most_of_all) / n;
	for (i = 0; i < n; i++) {
		sum += mean - (double)RTE_MIN(f->came[i].delay, most_of_all);
		if (sum <= most)
			continue;
		most = sum;
		best = i + 1;
	}
	if (best < DELAY_FRAMES || best + DELAY_FRAMES > n)
		return 0;
	*before = quantile(f->came, best, 0.5);
	*after = quantile(f->came + best, n - best, 0.5);
	return *after - *before > DELAY_NS && *after > 2 * *before ? best : 0;
}

static bool delayed(struct trace *t, const struct trace_flow *f, struct list *l)
{
	int64_t before = 0, after = 0;
	unsigned int at = delay_grows(f, 0.9, &before, &after);

	/* Senders whose window follows the delay use the lane less: it may have few slow frames. */
	if (!at)
		at = delay_grows(f, 0.98, &before, &after);
	if (!at)
		return false;
	name(l, FAULT_DELAY, (uint32_t)(f - t->flow), f->in.file, f->came[at].time,
	     "frames take %.3f ms instead of %.3f (medians)", (double)after / 1e6,
	     (double)before / 1e6);
	if (l->num)
		l->a[l->num - 1].weight = after - before;
	return true;
}

static void counted(struct trace *t, const struct trace_flow *f, enum trace_fault fault,
		    uint64_t count, uint64_t first, const char *what, struct list *l)
{
	name(l, fault, (uint32_t)(f - t->flow), f->in.file, first,
	     "%" PRIu64 " of %" PRIu64 " frames %s", count, f->judged, what);
}

/* Faults that one direction alone shows. @return whether there is one */
static bool flow_fault(struct trace *t, const struct trace_flow *f, struct list *l)
{
	if (f->changed >= 2)
		counted(t, f, FAULT_CORRUPTION, f->changed, f->first_changed,
			"came changed, or match no sent frame", l);
	else if (f->twice >= SEVERAL)
		counted(t, f, FAULT_DUPLICATION, f->twice, f->first_twice, "came twice", l);
	else if (f->lost >= SEVERAL)
		counted(t, f, trace_kind_of_loss(f), f->lost, f->first_lost, "did not come", l);
	else if (f->late >= SEVERAL)
		counted(t, f, FAULT_REORDERING, f->late, f->first_late,
			"came after later ones of their path", l);
	else
		return delayed(t, f, l);
	return true;
}

static uint64_t moved(const struct trace_flow *f)
{
	return f->lost && f->first_lost < f->moved_at ? f->first_lost : f->moved_at;
}

/* Both directions of a lane, which together have at most one fault. */
static void lane_fault(struct trace *t, struct trace_flow *f, struct list *l)
{
	struct trace_flow *g = trace_other(t, f);
	struct trace_flow *both[2] = {f, g};
	unsigned int i, n = g ? 2 : 1;

	for (i = 0; i < n; i++) {
		if (both[i]->moved_at) {
			name(l, FAULT_MOVED_MAC, (uint32_t)(both[i] - t->flow), both[i]->in.file,
			     moved(both[i]), "frames go to another MAC address than before");
			return;
		}
	}
	for (i = 0; i < n; i++) {
		if (is_mtu(both[i])) {
			name(l, FAULT_PATH_MTU, (uint32_t)(both[i] - t->flow), both[i]->in.file,
			     both[i]->first_lost,
			     "frames of %u bytes and more no longer arrive, shorter ones do",
			     both[i]->lost_min);
			return;
		}
	}
	for (i = 0; i < n; i++) {
		if (is_hole(both[i])) {
			hole(t, both[i], both[1 - i], l);
			return;
		}
	}
	for (i = 0; i < n; i++)
		if (flow_fault(t, both[i], l))
			return;
}

/* Sort key: a fault that explains others precedes them. */
static int strength(const struct trace_anomaly *a)
{
	if (a->fault == FAULT_STOPPED_PEER)
		return 5;
	if (a->fault == FAULT_SLOW_RECEIVER)
		return 4;
	if (a->fault == FAULT_DELAY)
		return 1;
	return a->fault == FAULT_RANDOM_LOSS || a->fault == FAULT_REORDERING ? 2 : 3;
}

static bool stronger(const struct trace_anomaly *a, const struct trace_anomaly *b)
{
	if (strength(a) != strength(b))
		return strength(a) > strength(b);
	return a->weight > b->weight;
}

/*
 * When a lane carries less, others carry more, so their frames wait. A host that polls rarely
 * delays its peer. So an anomaly that begins with a stronger one, or after it, is its consequence.
 */
static bool is_consequence(const struct list *l, const struct trace_anomaly *a)
{
	unsigned int i;

	if (a->fault != FAULT_DELAY && a->fault != FAULT_SLOW_RECEIVER)
		return false;
	for (i = 0; i < l->num; i++)
		if (stronger(&l->a[i], a) && l->a[i].time < a->time + CONSEQUENCE_NS)
			return true;
	return false;
}

static void leave_out_consequences(struct list *l)
{
	struct trace_anomaly kept[TRACE_ANOMALIES];
	unsigned int i, n = 0;

	for (i = 0; i < l->num; i++)
		if (!is_consequence(l, &l->a[i]))
			kept[n++] = l->a[i];
	memcpy(l->a, kept, n * sizeof(kept[0]));
	l->num = n;
}

unsigned int trace_anomalies(struct trace *t, struct trace_anomaly a[TRACE_ANOMALIES])
{
	bool explained[DUMP_FILES] = {false};
	struct list l = {.a = a};
	struct trace_flow *f, *g;
	unsigned int i;

	for (i = 0; i < t->num_files; i++)
		explained[i] = host_fault(t, (uint8_t)i, &l);
	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		g = trace_other(t, f);
		if (g && g < f)
			continue;
		if ((f->in.known && explained[f->in.file]) ||
		    (f->out.known && explained[f->out.file]))
			continue;
		lane_fault(t, f, &l);
	}
	leave_out_consequences(&l);
	return l.num;
}
