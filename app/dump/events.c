/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The format is a JSON object with a list of events. Messages overlap, and so do the lanes of one,
 * so they are async events, each with an id of its own. A process of the trace is one direction of
 * an endpoint; process 0 has the lanes.
 */

#include "dump/events.h"

#include <inttypes.h>
#include <stdbool.h>

#include "dump/anomaly.h"
#include "dump/frames.h"
#include "dump/list.h"
#include "dump/report.h"
#include "dump/trace.h"
#include "dump/verdict.h"

#define LANES 0 /* process of the lanes */

static bool has_messages[TRACE_FLOWS]; /* index: number of the stream */

static void event(struct json *j, const struct trace *t, char phase, uint64_t time, uint64_t pid)
{
	fputs(",\n", j->out);
	json_begin(j, NULL, '{');
	json_text(j, "ph", (const char[]){phase, '\0'});
	json_real(j, "ts", time > t->begin ? (double)(time - t->begin) / 1e3 : 0);
	json_number(j, "pid", pid);
	json_number(j, "tid", 0);
}

/* A new object has no comma before it: event() has written it. */
static struct json next_in(FILE *out)
{
	return (struct json){.out = out};
}

/* Streams may be joined later: then earlier messages are in another process of the same name. */
static uint64_t pid_of(const struct trace *t, uint32_t flow)
{
	uint32_t stream = stream_of(t, flow);

	has_messages[stream] = true;
	return 1 + (uint64_t)stream;
}

/* The name of a process of the trace: it is shown above all messages of the process. */
static void named(FILE *out, const struct trace *t, uint64_t pid, const char *name)
{
	struct json j = next_in(out);

	event(&j, t, 'M', t->begin, pid);
	json_text(&j, "name", "process_name");
	json_begin(&j, "args", '{');
	json_text(&j, "name", name);
	json_end(&j, '}');
	json_end(&j, '}');
}

void events_begin(FILE *out)
{
	/* An event that shows nothing: each other one begins with a comma. */
	fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
	      "{\"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"name\": \"process_name\", "
	      "\"args\": {\"name\": \"lanes\"}}",
	      out);
}

/* ---- messages ------------------------------------------------------------------------------- */

/* A message, or what one lane carried of it. */
struct row {
	const struct msg *m;
	unsigned int number; /* 0 = the message, else 1 + the lane's place */
	uint64_t from, to;
	const char *name;
};

/* @param phase  'b' or 'e'. @return the open object */
static struct json async(FILE *out, const struct trace *t, const struct row *r, char phase)
{
	struct json j = next_in(out);

	event(&j, t, phase, phase == 'b' ? r->from : r->to, pid_of(t, r->m->flow));
	json_text(&j, "cat", "message");
	json_number(&j, "id", r->m->number * (2 * MSG_LANES) + r->number);
	json_text(&j, "name", r->name);
	return j;
}

static void row(FILE *out, const struct list *l, const struct row *r)
{
	const struct trace *t = l->r->trace;
	struct json j = async(out, t, r, 'b');

	if (r->number == 0) {
		json_begin(&j, "args", '{');
		list_json(&j, l, "message", r->m);
		json_end(&j, '}');
	}
	json_end(&j, '}');
	j = async(out, t, r, 'e');
	json_end(&j, '}');
}

void events_message(FILE *out, const struct list *l, const struct msg *m)
{
	const struct trace *t = l->r->trace;
	uint64_t end = m->done > m->ended ? m->done : m->ended;
	const struct msg_lane *lane;
	char what[40], name[120];

	end = end > m->first ? end : m->touched;
	snprintf(name, sizeof(name), "%s, %" PRIu64 " bytes, %s", list_what(m, what, sizeof(what)),
		 m->total, msg_protocol(m));
	row(out, l, &(struct row){m, 0, m->first, end, name});
	for (lane = m->lane; lane < m->lane + m->num_lanes; lane++)
		if (lane->last >= lane->first)
			row(out, l,
			    &(struct row){m, 1 + (unsigned int)(lane - m->lane), lane->first,
					  lane->last,
					  report_lane_name(l->r, &t->flow[lane->flow])});
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static void counter(FILE *out, const struct trace *t, uint64_t time, const char *name,
		    const char *unit, double value)
{
	struct json j = next_in(out);

	event(&j, t, 'C', time, LANES);
	json_text(&j, "name", name);
	json_begin(&j, "args", '{');
	json_real(&j, unit, value);
	json_end(&j, '}');
	json_end(&j, '}');
}

static void lane(FILE *out, const struct report *r, const struct trace_flow *f)
{
	const struct trace *t = r->trace;
	char from[180], to[180], name[400];
	const struct trace_slot *s;
	unsigned int i, last = 0;
	uint64_t time;
	size_t len;

	len = (size_t)snprintf(name, sizeof(name) - 20, "%s > %s",
			       verdict_end(r, f, false, from, sizeof(from)),
			       verdict_end(r, f, true, to, sizeof(to)));
	for (i = 0; i < TRACE_SERIES; i++)
		last = f->series[i].bytes ? i + 1 : last;
	for (i = 0; i <= last && i < TRACE_SERIES; i++) {
		s = &f->series[i];
		time = t->begin + i * t->interval;
		name[len] = '\0';
		counter(out, t, time, name, "MB/s", (double)s->bytes / ((double)t->interval / 1e3));
		snprintf(name + len, sizeof(name) - len, ", sent again");
		if (f->again)
			counter(out, t, time, name, "frames", s->again);
		snprintf(name + len, sizeof(name) - len, ", round trip");
		if (s->rtt_most > 0)
			counter(out, t, time, name, "us", (double)s->rtt_most);
		snprintf(name + len, sizeof(name) - len, ", in flight");
		if (f->most_bytes)
			counter(out, t, time, name, "bytes", s->in_flight);
	}
}

/* ---- faults --------------------------------------------------------------------------------- */

static void fault(FILE *out, const struct report *r, const struct trace_anomaly *a)
{
	struct json j = next_in(out);
	char where[400];

	event(&j, r->trace, 'i', a->time, LANES);
	json_text(&j, "s", "g");
	json_text(&j, "name", trace_fault_name(a->fault));
	json_begin(&j, "args", '{');
	json_text(&j, "where", verdict_where(r, a, where, sizeof(where)));
	json_text(&j, "evidence", a->text);
	json_end(&j, '}');
	json_end(&j, '}');
}

void events_end(FILE *out, const struct list *l)
{
	static struct trace_anomaly found[TRACE_ANOMALIES];
	const struct report *r = l->r;
	struct trace *t = r->trace;
	unsigned int i, n = trace_verdicts(found, trace_anomalies(t, found));
	char from[80], to[80], name[180];

	for (i = 0; i < n; i++)
		fault(out, r, &found[i]);
	for (i = 0; i < t->num_flows; i++) {
		lane(out, r, &t->flow[i]);
		if (!has_messages[i])
			continue;
		snprintf(name, sizeof(name), "messages %s > %s",
			 stream_end_name(t, &t->flow[i], false, from, sizeof(from)),
			 stream_end_name(t, &t->flow[i], true, to, sizeof(to)));
		named(out, t, 1 + (uint64_t)i, name);
	}
	fputs("\n]}\n", out);
}
