/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intervals are measured by the time stamps of frames, so a file has the same report as the live
 * capture.
 * Frames are judged lost after TRACE_LOST_NS, so their count is late by that.
 */

#include "dump/live.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "dump/anomaly.h"
#include "dump/frames.h"
#include "dump/list.h"
#include "dump/message.h"
#include "dump/options.h"
#include "dump/trace.h"

#define LANES 10u /* lanes that are printed: the busiest ones; all with --all */

/* Counters of a flow when the interval began. */
struct live_flow {
	uint64_t frames, bytes, again, lost;
};

/* A fault that has been printed. */
struct live_fault {
	uint32_t flow;
	uint8_t host;
};

struct live {
	const struct list *l;
	uint64_t interval, begin, next; /* next: the end of this interval; 0 = no frame so far */
	uint64_t messages, frames;
	struct live_flow flow[TRACE_FLOWS];
	struct live_fault fault[FAULT_COUNT][TRACE_ANOMALIES];
	unsigned int num_faults[FAULT_COUNT];
	struct trace_anomaly found[TRACE_ANOMALIES];
	uint32_t order[TRACE_FLOWS]; /* flows with frames in this interval */
	unsigned int num;
};

struct live *live_make(const struct list *l, uint64_t interval)
{
	struct live *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->l = l;
	v->interval = interval;
	return v;
}

void live_free(struct live *v)
{
	free(v);
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static struct live_flow counters(const struct trace_flow *f)
{
	return (struct live_flow){f->frames, f->bytes, f->again, f->lost};
}

static struct live_flow since(const struct live *v, uint32_t flow)
{
	struct live_flow now = counters(&v->l->r->trace->flow[flow]);
	const struct live_flow *before = &v->flow[flow];

	return (struct live_flow){now.frames - before->frames, now.bytes - before->bytes,
				  now.again - before->again, now.lost - before->lost};
}

static const struct live *sorted;

static int by_bytes(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t of_x = since(sorted, x).bytes, of_y = since(sorted, y).bytes;

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return x < y ? -1 : x > y;
}

static void lane_text(const struct live *v, uint32_t flow)
{
	const struct report *r = v->l->r;
	const struct trace_flow *f = &r->trace->flow[flow];
	struct live_flow d = since(v, flow);
	double seconds = (double)v->interval / 1e9;
	char from[200], to[200];

	printf("    %s > %s: %.2f MB/s, %.0f frames/s, %" PRIu64 " sent again",
	       verdict_end(r, f, false, from, sizeof(from)),
	       verdict_end(r, f, true, to, sizeof(to)), (double)d.bytes / 1e6 / seconds,
	       (double)d.frames / seconds, d.again);
	if (f->judged)
		printf(", %" PRIu64 " lost", d.lost);
	if (f->flight_frames)
		printf(", %" PRIu64 " bytes in flight", f->flight_bytes);
	putchar('\n');
}

static void lanes(struct live *v)
{
	const struct trace *t = v->l->r->trace;
	unsigned int i, most = v->l->o->all ? TRACE_FLOWS : LANES;

	v->num = 0;
	for (i = 0; i < t->num_flows; i++)
		if (since(v, i).frames)
			v->order[v->num++] = i;
	sorted = v;
	qsort(v->order, v->num, sizeof(v->order[0]), by_bytes);
	for (i = 0; i < v->num && i < most; i++)
		lane_text(v, v->order[i]);
	if (i < v->num)
		printf("    %u further directions of lanes: see --all\n", v->num - i);
	for (i = 0; i < t->num_flows; i++)
		v->flow[i] = counters(&t->flow[i]);
}

/* ---- faults --------------------------------------------------------------------------------- */

static bool is_new(struct live *v, const struct trace_anomaly *a)
{
	struct live_fault *f = v->fault[a->fault];
	unsigned int i, *n = &v->num_faults[a->fault];

	for (i = 0; i < *n; i++)
		if (f[i].flow == a->flow && (a->flow != TRACE_NONE || f[i].host == a->host))
			return false;
	if (*n < TRACE_ANOMALIES)
		f[(*n)++] = (struct live_fault){a->flow, a->host};
	return true;
}

static void faults(struct live *v)
{
	const struct report *r = v->l->r;
	unsigned int i, n = trace_verdicts(v->found, trace_anomalies(r->trace, v->found));
	const struct trace_anomaly *a;
	char where[400];

	for (i = 0; i < n; i++) {
		a = &v->found[i];
		if (is_new(v, a))
			printf("    fault: %s, %s: %s\n", trace_fault_name(a->fault),
			       verdict_where(r, a, where, sizeof(where)), a->text);
	}
}

/* ---- intervals ------------------------------------------------------------------------------ */

static void interval_over(struct live *v)
{
	const struct report *r = v->l->r;
	uint64_t messages = r->trace->follow->messages;
	char when[40];

	printf("%s (%.3f s): %" PRIu64 " frames, %" PRIu64 " messages\n",
	       dump_time_text(v->next, when, sizeof(when)), (double)(v->next - v->begin) / 1e9,
	       r->counts->frames - v->frames, messages - v->messages);
	v->messages = messages;
	v->frames = r->counts->frames;
	lanes(v);
	faults(v);
}

/* Intervals without frames are one line. */
void live_frame(struct live *v, uint64_t time)
{
	uint64_t empty;
	char when[40];

	if (!v->next) {
		v->begin = time;
		v->next = time + v->interval;
	}
	if (time < v->next)
		return;
	interval_over(v);
	empty = (time - v->next) / v->interval;
	v->next += v->interval * (empty + 1);
	if (empty)
		printf("%s (%.3f s): no frame in %.3f s\n",
		       dump_time_text(v->next - v->interval, when, sizeof(when)),
		       (double)(v->next - v->interval - v->begin) / 1e9,
		       (double)(empty * v->interval) / 1e9);
	fflush(stdout);
}
