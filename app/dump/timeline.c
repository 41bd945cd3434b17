/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "dump/anomaly.h"
#include "dump/draw.h"
#include "dump/frames.h"
#include "dump/list.h"
#include "dump/report.h"
#include "dump/timeline.h"
#include "dump/trace.h"

#define COLUMN 28
#define BAR 60

static uint32_t lane_of(const struct trace *t, uint32_t flow)
{
	uint32_t other = t->flow[flow].other;

	return other < flow ? other : flow;
}

/* Lanes of a message, each by the lower number of its two flows, in ascending order. */
struct timeline_lanes {
	uint32_t flow[MSG_LANES];
	unsigned int num;
	uint64_t begin, end; /**< times of the message's first frame and of the last event */
};

static void timeline_lanes(const struct trace *t, const struct msg_watch *w,
			   struct timeline_lanes *lanes)
{
	unsigned int i, n;
	uint32_t lane;

	*lanes = (struct timeline_lanes){.begin = w->msg.first, .end = w->msg.first};
	for (i = 0; i < w->num_events; i++) {
		if (w->event[i].time > lanes->end)
			lanes->end = w->event[i].time;
		lane = lane_of(t, w->event[i].flow);
		for (n = 0; n < lanes->num && lanes->flow[n] < lane; n++)
			;
		if ((n < lanes->num && lanes->flow[n] == lane) || lanes->num == MSG_LANES)
			continue;
		memmove(&lanes->flow[n + 1], &lanes->flow[n],
			(lanes->num++ - n) * sizeof(lanes->flow[0]));
		lanes->flow[n] = lane;
	}
}

/* @return index of the flow's lane in the list; MSG_LANES: it is not there */
static unsigned int timeline_lane(const struct trace *t, const struct timeline_lanes *lanes,
				  uint32_t flow)
{
	unsigned int n;

	for (n = 0; n < lanes->num; n++)
		if (lanes->flow[n] == lane_of(t, flow))
			return n;
	return MSG_LANES;
}

/* Is the frame of this event from the message's sender? */
static bool timeline_forth(const struct trace *t, const struct msg_watch *w,
			   const struct msg_event *e)
{
	return stream_of(t, e->flow) == stream_of(t, w->msg.flow);
}

/* ---- text ----------------------------------------------------------------------------------- */

static const char *lane_name(const struct list *l, const struct msg_watch *w, uint32_t lane)
{
	const struct trace *t = l->r->trace;
	const struct trace_flow *f = &t->flow[lane], *g = trace_other(t, f);

	return report_lane_name(l->r,
				stream_of(t, lane) == stream_of(t, w->msg.flow) || !g ? f : g);
}

static const char *const kind_names[] = {[LINK_BYTES] = "bytes",
					 [LINK_ANNOUNCE] = "announced",
					 [LINK_ANSWER] = "pull",
					 [LINK_END] = "end"};

static void event_text(char *buf, size_t size, const struct msg_event *e, bool forth)
{
	const char *before = "", *behind = "";
	char range[40] = "";

	if (e->kind == LINK_BYTES || e->kind == LINK_ANSWER)
		snprintf(range, sizeof(range), " %" PRIu64 "+%u", e->offset, e->bytes);
	if (e->acked)
		behind = " acked";
	else if (e->way == DUMP_IN)
		*(forth ? &before : &behind) = forth ? "> " : " <";
	else
		*(forth ? &behind : &before) = forth ? " >" : "< ";
	snprintf(buf, size, "%s%s%s%s%s", before, kind_names[e->kind], range,
		 e->again && !e->acked && e->way != DUMP_IN ? " again" : "", behind);
}

/* When each lane delivered bytes: a bar of marks over the time of the message. */
static void bars(FILE *out, const struct list *l, const struct msg_watch *w,
		 const struct timeline_lanes *lanes)
{
	double span = (double)(lanes->end - lanes->begin) + 1;
	const struct msg_event *e;
	char bar[BAR + 1];
	unsigned int n, i, column;
	char *at;

	for (n = 0; n < lanes->num; n++) {
		memset(bar, '.', BAR);
		bar[BAR] = '\0';
		for (i = 0; i < w->num_events; i++) {
			e = &w->event[i];
			if (e->time < lanes->begin || e->kind != LINK_BYTES ||
			    timeline_lane(l->r->trace, lanes, e->flow) != n)
				continue;
			/* From 2^52 ns on, rounding of a double can make the column BAR. */
			column = (unsigned int)((double)(e->time - lanes->begin) * BAR / span);
			at = &bar[column < BAR ? column : BAR - 1];
			if (e->again && e->way != DUMP_IN && !e->acked)
				*at = 'R';
			else if (*at == '.' && (e->way != DUMP_OUT))
				*at = '=';
		}
		fprintf(out, "%12s |%s|\n", lane_name(l, w, lanes->flow[n]), bar);
	}
}

void timeline_text(FILE *out, const struct list *l, const struct msg_watch *w)
{
	const struct trace *t = l->r->trace;
	struct timeline_lanes lanes;
	const struct msg_event *e;
	char text[80];
	unsigned int i, lane;

	timeline_lanes(t, w, &lanes);
	list_line(out, l, &w->msg);
	bars(out, l, w, &lanes);
	fprintf(out, "%12s", "us");
	for (i = 0; i < lanes.num; i++)
		fprintf(out, "  %-*s", COLUMN, lane_name(l, w, lanes.flow[i]));
	fputc('\n', out);
	for (i = 0; i < w->num_events; i++) {
		e = &w->event[i];
		lane = timeline_lane(t, &lanes, e->flow);
		if (lane == MSG_LANES)
			continue;
		event_text(text, sizeof(text), e, timeline_forth(t, w, e));
		fprintf(out, "%12.3f%*s  %s\n", (double)(int64_t)(e->time - lanes.begin) / 1e3,
			(int)lane * (COLUMN + 2), "", text);
	}
	if (w->missed)
		fprintf(out, "%" PRIu64 " further events are not shown\n", w->missed);
}

void timeline_json(FILE *out, const struct list *l, const struct msg_watch *w)
{
	static const char *const ways[] = {"?", "in", "out"};
	struct json j = {.out = out};
	const struct msg_event *e;
	unsigned int i;

	json_begin(&j, NULL, '{');
	json_number(&j, "version", DUMP_FORMAT_VERSION);
	list_json(&j, l, "message", &w->msg);
	json_begin(&j, "events", '[');
	for (i = 0; i < w->num_events; i++) {
		e = &w->event[i];
		json_begin(&j, NULL, '{');
		json_number(&j, "time", e->time);
		json_text(&j, "lane", report_lane_name(l->r, &l->r->trace->flow[e->flow]));
		json_text(&j, "event", e->acked ? "acknowledged" : kind_names[e->kind]);
		json_text(&j, "direction", ways[e->way]);
		json_number(&j, "offset", e->offset);
		json_number(&j, "bytes", e->bytes);
		json_raw(&j, "again", e->again ? "true" : "false");
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_number(&j, "events_missed", w->missed);
	json_end(&j, '}');
	fputc('\n', out);
}

/* ---- a picture ------------------------------------------------------------------------------ */

#define BAND 96.0  /* a lane: sender above, receiver below */
#define LINES 60.0 /* distance between the lines of sender and receiver */

struct look {
	const char *color, *name;
};

static const struct look looks[] = {[LINK_BYTES] = {"#2b6cb0", "bytes"},
				    [LINK_ANNOUNCE] = {"#2f855a", "announced"},
				    [LINK_ANSWER] = {"#718096", "pull"},
				    [LINK_END] = {"#805ad5", "end"}};
static const struct look look_again = {"#dd6b20", "sent again"};
static const struct look look_lost = {"#e53e3e", "lost"};

static void legend(FILE *out)
{
	const struct look *all[] = {&looks[0], &looks[1],   &looks[2],
				    &looks[3], &look_again, &look_lost};
	double x = SVG_LEFT;
	unsigned int i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		svg_line(out, x, 40, x + 18, 40, all[i]->color, 3);
		svg_label(out, x + 24, 44, "start", all[i]->name);
		x += 110;
	}
}

/* The arrival of a transmission: the first one of the frame before its next transmission. */
static const struct msg_event *arrival(const struct msg_watch *w, unsigned int i)
{
	const struct msg_event *out = &w->event[i], *e;

	for (i++; i < w->num_events; i++) {
		e = &w->event[i];
		if (e->flow != out->flow || e->seq != out->seq || e->kind != out->kind ||
		    e->offset != out->offset || e->acked)
			continue;
		return e->way == DUMP_IN ? e : NULL;
	}
	return NULL;
}

static bool was_drawn(const struct msg_watch *w, unsigned int i)
{
	const struct msg_event *in = &w->event[i], *e;

	while (i-- > 0) {
		e = &w->event[i];
		if (e->flow == in->flow && e->seq == in->seq && e->kind == in->kind &&
		    e->offset == in->offset)
			return e->way == DUMP_OUT;
	}
	return false;
}

/* Text under the mouse: what the frame has, when it was sent and when it came. */
static void frame_title(FILE *out, const struct msg_watch *w, const struct msg_event *e,
			const struct msg_event *in, bool lost)
{
	double sent = (double)(int64_t)(e->time - w->msg.first) / 1e3;
	char text[24];

	fprintf(out, "<title>%s", kind_names[e->kind]);
	if (e->kind == LINK_BYTES || e->kind == LINK_ANSWER)
		fprintf(out, " %" PRIu64 "+%u", e->offset, e->bytes);
	fprintf(out, "%s, %s at %s", e->again ? ", sent again" : "",
		e->way == DUMP_IN ? "came" : "sent", svg_time(sent, text));
	if (in)
		fprintf(out, ", came after %s",
			svg_time((double)(int64_t)(in->time - e->time) / 1e3, text));
	fprintf(out, "%s</title>", lost ? ", lost" : "");
}

/* A visible line, and a wider invisible one, which is the area of the mouse. */
static void frame_line(FILE *out, double x1, double y1, double x2, double y2, const char *color)
{
	svg_line(out, x1, y1, x2, y2, color, 1.2);
	fprintf(out,
		"<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" stroke=\"white\" "
		"stroke-opacity=\"0\" stroke-width=\"7\"/>\n",
		x1, y1, x2, y2);
}

/* A frame from sender to receiver, as far as the captures show it. */
static void frame(FILE *out, const struct list *l, const struct msg_watch *w, unsigned int i,
		  const struct svg_scale *s, double top)
{
	const struct trace_flow *f = &l->r->trace->flow[w->event[i].flow];
	const struct msg_event *e = &w->event[i], *in = NULL;
	const struct look *look = e->again ? &look_again : &looks[e->kind];
	bool forth = timeline_forth(l->r->trace, w, e), lost;
	double from = forth ? top : top + LINES, to = forth ? top + LINES : top;
	double x = svg_x(s, (double)(int64_t)(e->time - w->msg.first)), half = (from + to) / 2;

	if (e->acked || (e->way == DUMP_IN && was_drawn(w, i)))
		return;
	if (e->way != DUMP_IN)
		in = arrival(w, i);
	lost = e->way != DUMP_IN && !in && f->in.known;
	fputs("<g>", out);
	frame_title(out, w, e, in, lost);
	if (e->way == DUMP_IN) {
		frame_line(out, x, half, x, to, look->color);
	} else if (in) {
		frame_line(out, x, from, svg_x(s, (double)(int64_t)(in->time - w->msg.first)), to,
			   look->color);
	} else if (lost) {
		svg_line(out, x, from, x, half, look_lost.color, 1.6);
		svg_line(out, x - 4, half - 4, x + 4, half + 4, look_lost.color, 1.6);
		svg_line(out, x - 4, half + 4, x + 4, half - 4, look_lost.color, 1.6);
	} else {
		frame_line(out, x, from, x, half, look->color);
	}
	fputs("</g>\n", out);
}

static const char *lane_end_name(const struct list *l, const struct msg_watch *w, uint32_t lane,
				 bool to, char buf[SVG_NAME])
{
	const struct trace *t = l->r->trace;
	const struct trace_flow *f = &t->flow[lane], *g = trace_other(t, f);
	const struct trace_port *p;

	if (g && stream_of(t, lane) != stream_of(t, w->msg.flow))
		f = g;
	p = to ? &f->in : &f->out;
	if (p->known) /* there is a capture of this end */
		svg_short(buf, l->r->file[p->file]->iface[p->iface].lane);
	else
		snprintf(buf, SVG_NAME, to ? "receiver" : "sender");
	return buf;
}

void svg_message(FILE *out, const struct list *l, const struct msg_watch *w)
{
	struct timeline_lanes lanes;
	char title[240], what[40], from[80], to[80], name[SVG_NAME];
	const struct trace_flow *f = &l->r->trace->flow[w->msg.flow];
	struct svg_scale s = {0, 1};
	double height, top;
	unsigned int n, i;

	timeline_lanes(l->r->trace, w, &lanes);
	if (lanes.end > w->msg.first)
		s.end = (double)(lanes.end - w->msg.first);
	height = SVG_TOP + BAND * lanes.num + 40;
	snprintf(title, sizeof(title), "message %" PRIu64 ": %s > %s, %s, %s, %" PRIu64 " bytes",
		 w->msg.number, stream_end_name(l->r->trace, f, false, from, sizeof(from)),
		 stream_end_name(l->r->trace, f, true, to, sizeof(to)),
		 list_what(&w->msg, what, sizeof(what)), msg_protocol(&w->msg), w->msg.total);
	svg_begin(out, height, title);
	legend(out);
	svg_axis(out, &s, SVG_TOP, height - 36);
	for (n = 0; n < lanes.num; n++) {
		top = SVG_TOP + 14 + BAND * n;
		svg_line(out, SVG_LEFT, top, SVG_WIDTH - SVG_RIGHT, top, "#a0aec0", 1);
		svg_line(out, SVG_LEFT, top + LINES, SVG_WIDTH - SVG_RIGHT, top + LINES, "#a0aec0",
			 1);
		svg_label(out, SVG_LEFT - 8, top + 4, "end",
			  lane_end_name(l, w, lanes.flow[n], false, name));
		svg_label(out, SVG_LEFT - 8, top + LINES + 4, "end",
			  lane_end_name(l, w, lanes.flow[n], true, name));
	}
	for (i = 0; i < w->num_events; i++) {
		n = timeline_lane(l->r->trace, &lanes, w->event[i].flow);
		if (n < lanes.num)
			frame(out, l, w, i, &s, SVG_TOP + 14 + BAND * n);
	}
	fputs("</svg>\n", out);
}

/* ---- a trace for Perfetto ------------------------------------------------------------------- */

/*
 * The format is a JSON object with a list of events. Messages overlap, and so do the lanes of one,
 * so they are async events, each with an id of its own. A process of the trace is one direction of
 * an endpoint; process 0 has the lanes.
 */

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

/* A new object: json_begin() writes no comma, since event() has written one. */
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
	/* The first event, which names process 0: each later one begins with a comma. */
	fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
	      "{\"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"name\": \"process_name\", "
	      "\"args\": {\"name\": \"lanes\"}}",
	      out);
}

/* ---- messages ------------------------------------------------------------------------------- */

/* A message, or what one lane carried of it. */
struct row {
	const struct msg *m;
	unsigned int number; /* 0 = the message, else 1 + index in msg.lane */
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
