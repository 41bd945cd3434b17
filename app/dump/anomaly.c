/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "dump/anomaly.h"
#include "dump/lane_fault.h"
#include "dump/trace.h"

/*
 * Which faults explain the observations: the table in doc/capture.md. Each fault is named, the
 * strongest first. What is too small for a verdict is an observation.
 */

#define CONSEQUENCE_NS 5000000u /* a cause may be seen later than its consequence by this */

/*
 * May @p b be the cause of the delay @p a? A fault of any lane can be: the other lanes then carry
 * more, so their frames wait. A fault of a host can be the cause for frames from or to this host: a
 * host that waits for a core delays them, also by times too short to count as a silence.
 */
static bool may_cause(const struct trace *t, const struct trace_anomaly *b,
		      const struct trace_anomaly *a)
{
	const struct trace_flow *f = &t->flow[a->flow];

	if ((b->observation && !b->reported) || b->fault == FAULT_CAPTURE_GAPS)
		return false;
	if (a->of_path && b->fault == FAULT_DELAY && !b->of_path)
		return false;
	if (b->flow != TRACE_NONE)
		return b->weight > a->weight && b->time < a->time + CONSEQUENCE_NS;
	return !a->of_path && (b->host == f->in.file || (f->out.known && b->host == f->out.file));
}

/*
 * The last frames of a process that was killed are not in its file, and not those of all lanes are
 * missing from the same time on. So they look like losses, or like gaps of the capture.
 */
static bool unwritten(const struct trace *t, const struct trace_anomaly *gone,
		      const struct trace_anomaly *a)
{
	if (gone->fault != FAULT_PEER_GONE || a->time + FAULT_UNWRITTEN_NS < gone->time)
		return false;
	switch (a->fault) {
	case FAULT_CAPTURE_GAPS:
		return a->host == gone->host;
	case FAULT_RANDOM_LOSS:
	case FAULT_BURST_LOSS:
	case FAULT_QUEUE_LOSS:
	case FAULT_BLACKHOLE_ONE_WAY:
	case FAULT_BLACKHOLE_BOTH_WAYS:
	case FAULT_LANE_DOWN:
		return t->flow[a->flow].in.file == gone->host;
	default:
		return false;
	}
}

/* A fault that may be the consequence of another one is an observation. */
static void find_consequences(const struct trace *t, struct fault_list *l)
{
	struct trace_anomaly *a, *b;

	for (a = l->a; a < l->a + l->num; a++)
		for (b = l->a; b < l->a + l->num; b++)
			if ((a->fault == FAULT_DELAY && may_cause(t, b, a)) || unwritten(t, b, a))
				a->observation = true;
}

static int by_strength(const void *x, const void *y)
{
	const struct trace_anomaly *a = x, *b = y;

	if (a->observation != b->observation)
		return a->observation ? 1 : -1;
	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	if (a->time != b->time)
		return a->time > b->time ? 1 : -1;
	return a->flow > b->flow ? 1 : a->flow < b->flow ? -1 : 0;
}

unsigned int trace_verdicts(const struct trace_anomaly *a, unsigned int num)
{
	unsigned int n = 0;

	while (n < num && !a[n].observation)
		n++;
	return n;
}

unsigned int trace_anomalies(const struct trace *t, struct trace_anomaly a[TRACE_ANOMALIES])
{
	struct fault_list l = {.a = a};

	fault_hosts(t, &l);
	fault_lanes(t, &l);
	find_consequences(t, &l);
	qsort(a, l.num, sizeof(*a), by_strength);
	return l.num;
}
