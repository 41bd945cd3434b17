/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/frames.h"
#include "dump/timeline.h"
#include "dump/trace.h"
#include "dump/verdict.h"

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
	uint64_t begin, end; /**< of the events */
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

/* @return MSG_LANES: it is not in the list */
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
			/* From 2^55 ns on, rounding of a double can make the column BAR. */
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
		fprintf(out, "%" PRIu64 " further frames are not shown\n", w->missed);
}

void timeline_json(FILE *out, const struct list *l, const struct msg_watch *w)
{
	static const char *const ways[] = {"?", "in", "out"};
	struct json j = {.out = out};
	const struct msg_event *e;
	unsigned int i;

	json_begin(&j, NULL, '{');
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

/* ---- pictures ------------------------------------------------------------------------------- */

/* Pictures as SVG, for separate files and for reports. */

#define NAME 17 /* with its terminator: the length that fits */
#define WIDTH 960.0
#define LEFT 110.0
#define RIGHT 20.0
#define TOP 58.0
#define BAND 96.0  /* a lane: sender above, receiver below */
#define LINES 60.0 /* between sender and receiver */
#define LANES_DRAWN 16u
#define PANEL 120.0

struct scale {
	double begin, end; /* ns */
};

/* Text in HTML and SVG. */
static void svg_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\'':
			fputs("&#39;", out);
			break;
		default:
			putc(*text, out);
		}
	}
}

static double x_of(const struct scale *s, double ns)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (ns - s->begin) / (s->end - s->begin);
}

static void label(FILE *out, double x, double y, const char *anchor, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	svg_text(out, text);
	fputs("</text>\n", out);
}

static void line(FILE *out, double x1, double y1, double x2, double y2, const char *color,
		 double width)
{
	fprintf(out,
		"<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" stroke=\"%s\" "
		"stroke-width=\"%.1f\"/>\n",
		x1, y1, x2, y2, color, width);
}

static void begin(FILE *out, double height, const char *title)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		WIDTH, height, WIDTH, height);
	fputs("<g font-size=\"14\">\n", out);
	label(out, 12, 22, "start", title);
	fputs("</g>\n", out);
}

/* A step of 1, 2 or 5 times a power of ten that divides the time in at most ten. */
static double step_of(double span)
{
	double power = pow(10, floor(log10(span / 10)));

	if (span / power <= 10)
		return power;
	if (span / power <= 20)
		return 2 * power;
	return span / power <= 50 ? 5 * power : 10 * power;
}

static void axis(FILE *out, const struct scale *s, double top, double bottom)
{
	double span = s->end - s->begin, step = step_of(span), at, unit = 1e3;
	const char *name = "us";
	char text[40];

	if (span >= 1e7) {
		unit = 1e6;
		name = "ms";
	}
	if (span >= 1e10) {
		unit = 1e9;
		name = "s";
	}
	for (at = s->begin; at <= s->end; at += step) {
		line(out, x_of(s, at), top, x_of(s, at), bottom, "#e4e4e4", 1);
		snprintf(text, sizeof(text), "%g %s", (at - s->begin) / unit, name);
		label(out, x_of(s, at), bottom + 16, "middle", text);
	}
}

/* ---- a message ------------------------------------------------------------------------------ */

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
	double x = LEFT;
	unsigned int i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		line(out, x, 40, x + 18, 40, all[i]->color, 3);
		label(out, x + 24, 44, "start", all[i]->name);
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

/* A frame from sender to receiver, as far as the captures show it. */
static void frame(FILE *out, const struct list *l, const struct msg_watch *w, unsigned int i,
		  const struct scale *s, double top)
{
	const struct trace_flow *f = &l->r->trace->flow[w->event[i].flow];
	const struct msg_event *e = &w->event[i], *in;
	const struct look *look = e->again ? &look_again : &looks[e->kind];
	bool forth = timeline_forth(l->r->trace, w, e);
	double from = forth ? top : top + LINES, to = forth ? top + LINES : top;
	double x = x_of(s, (double)(int64_t)(e->time - w->msg.first)), half = (from + to) / 2;

	if (e->acked)
		return;
	if (e->way == DUMP_IN) {
		if (!was_drawn(w, i))
			line(out, x, half, x, to, look->color, 1.2);
		return;
	}
	in = arrival(w, i);
	if (in) {
		line(out, x, from, x_of(s, (double)(int64_t)(in->time - w->msg.first)), to,
		     look->color, 1.2);
	} else if (f->in.known) {
		line(out, x, from, x, half, look_lost.color, 1.6);
		line(out, x - 4, half - 4, x + 4, half + 4, look_lost.color, 1.6);
		line(out, x - 4, half + 4, x + 4, half - 4, look_lost.color, 1.6);
	} else {
		line(out, x, from, x, half, look->color, 1.2);
	}
}

static void short_name(char buf[NAME], const char *name)
{
	weft_text_copy(buf, NAME, name, strnlen(name, NAME - 1));
}

static const char *lane_end_name(const struct list *l, const struct msg_watch *w, uint32_t lane,
				 bool to, char buf[NAME])
{
	const struct trace *t = l->r->trace;
	const struct trace_flow *f = &t->flow[lane], *g = trace_other(t, f);
	const struct trace_port *p;

	if (g && stream_of(t, lane) != stream_of(t, w->msg.flow))
		f = g;
	p = to ? &f->in : &f->out;
	/* With the capture of one host, take the other end from the other direction. */
	if (p->known)
		short_name(buf, l->r->file[p->file]->iface[p->iface].lane);
	else
		snprintf(buf, NAME, to ? "receiver" : "sender");
	return buf;
}

void svg_message(FILE *out, const struct list *l, const struct msg_watch *w)
{
	struct timeline_lanes lanes;
	char title[240], what[40], from[80], to[80], name[NAME];
	const struct trace_flow *f = &l->r->trace->flow[w->msg.flow];
	struct scale s = {0, 1};
	double height, top;
	unsigned int n, i;

	timeline_lanes(l->r->trace, w, &lanes);
	if (lanes.end > w->msg.first)
		s.end = (double)(lanes.end - w->msg.first);
	height = TOP + BAND * lanes.num + 40;
	snprintf(title, sizeof(title), "message %" PRIu64 ": %s > %s, %s, %s, %" PRIu64 " bytes",
		 w->msg.number, stream_end_name(l->r->trace, f, false, from, sizeof(from)),
		 stream_end_name(l->r->trace, f, true, to, sizeof(to)),
		 list_what(&w->msg, what, sizeof(what)), msg_protocol(&w->msg), w->msg.total);
	begin(out, height, title);
	legend(out);
	axis(out, &s, TOP, height - 36);
	for (n = 0; n < lanes.num; n++) {
		top = TOP + 14 + BAND * n;
		line(out, LEFT, top, WIDTH - RIGHT, top, "#a0aec0", 1);
		line(out, LEFT, top + LINES, WIDTH - RIGHT, top + LINES, "#a0aec0", 1);
		label(out, LEFT - 8, top + 4, "end",
		      lane_end_name(l, w, lanes.flow[n], false, name));
		label(out, LEFT - 8, top + LINES + 4, "end",
		      lane_end_name(l, w, lanes.flow[n], true, name));
	}
	for (i = 0; i < w->num_events; i++) {
		n = timeline_lane(l->r->trace, &lanes, w->event[i].flow);
		if (n < lanes.num)
			frame(out, l, w, i, &s, TOP + 14 + BAND * n);
	}
	fputs("</svg>\n", out);
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static double most_of(const struct trace *t)
{
	double most = 1;
	unsigned int i, n;

	for (i = 0; i < t->num_flows; i++)
		for (n = 0; n < TRACE_SERIES; n++)
			most = fmax(most, (double)t->flow[i].series.bytes[n]);
	return most;
}

static void curve(FILE *out, const struct trace *t, const struct trace_flow *f,
		  const struct scale *s, double bottom, double most, const char *color)
{
	double x, next;
	unsigned int n;

	fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" points=\"", color);
	for (n = 0; n < TRACE_SERIES && (double)n * (double)t->interval < s->end; n++)
		fprintf(out, "%.1f,%.1f ", x_of(s, (n + 0.5) * (double)t->interval),
			bottom - (PANEL - 40) * (double)f->series.bytes[n] / most);
	fputs("\"/>\n", out);
	for (n = 0; n < TRACE_SERIES; n++) {
		if (!f->series.again[n])
			continue;
		x = x_of(s, (n + 0.5) * (double)t->interval);
		next = fmin(4 + 2 * (double)f->series.again[n], 24);
		line(out, x, bottom, x, bottom - next, look_again.color, 2);
	}
}

void svg_lanes(FILE *out, const struct list *l)
{
	static const char *const colors[2] = {"#2b6cb0", "#2f855a"};
	const struct trace *t = l->r->trace;
	const struct trace_flow *f, *both[2];
	struct scale s = {0, 1};
	double most = most_of(t), bottom;
	unsigned int i, d, n = 0, lanes = 0;
	char text[300], name[NAME];

	for (i = 0; i < t->num_flows; i++)
		lanes += report_lane(l->r, i) != NULL;
	lanes = lanes < LANES_DRAWN ? lanes : LANES_DRAWN;
	if (t->now > t->begin)
		s.end = (double)(t->now - t->begin);
	snprintf(text, sizeof(text),
		 "rates of lanes, up to %.2f MB/s in %.3f ms; orange: frames sent again",
		 most / (double)t->interval * 1e3, (double)t->interval / 1e6);
	begin(out, TOP + PANEL * lanes + 30, text);
	axis(out, &s, TOP, TOP + PANEL * lanes);
	for (i = 0; i < t->num_flows && n < lanes; i++) {
		f = report_lane(l->r, i);
		if (!f)
			continue;
		bottom = TOP + PANEL * ++n - 10;
		both[0] = f;
		both[1] = trace_other(t, f);
		line(out, LEFT, bottom, WIDTH - RIGHT, bottom, "#a0aec0", 1);
		for (d = 0; d < 2 && both[d]; d++) {
			curve(out, t, both[d], &s, bottom, most, colors[d]);
			fprintf(out, "<g fill=\"%s\">", colors[d]);
			short_name(name, report_lane_name(l->r, both[d]));
			label(out, LEFT - 8, bottom - 50 + 16 * d, "end", name);
			fputs("</g>\n", out);
		}
	}
	fputs("</svg>\n", out);
}

/* ---- a report in one file ------------------------------------------------------------------- */

/*
 * A report in one file: no scripts and no external resources, which its content security policy
 * enforces in the browser. svg_text() escapes all text from captures.
 */

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" "
	"content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	"<title>Weft captures</title>\n<style>\n"
	"body{font-family:sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}\n"
	"table{border-collapse:collapse;font-size:13px}\n"
	"td,th{padding:3px 9px;border-bottom:1px solid #ddd;text-align:right}\n"
	"td.t,th.t{text-align:left}\n"
	"li{margin:4px 0}svg{max-width:100%;height:auto}\n"
	"</style></head><body>\n<h1>Weft captures</h1>\n";

static void cell(FILE *out, const char *text)
{
	fputs("<td class=\"t\">", out);
	svg_text(out, text);
	fputs("</td>", out);
}

static void number(FILE *out, double value, int digits)
{
	fprintf(out, "<td>%.*f</td>", digits, value);
}

static void table(FILE *out, const char *const *columns, unsigned int texts)
{
	unsigned int i;

	fputs("<table><tr>", out);
	for (i = 0; columns[i]; i++)
		fprintf(out, "<th%s>%s</th>", i < texts ? " class=\"t\"" : "", columns[i]);
	fputs("</tr>\n", out);
}

static void captures(FILE *out, const struct report *r)
{
	static const char *const columns[] = {
		"capture",         "begins",     "frames", "lost by writer",
		"clock ahead, us", "drift, ppm", NULL};
	char when[40];
	unsigned int i;

	table(out, columns, 2);
	for (i = 0; i < r->trace->num_files; i++) {
		fputs("<tr>", out);
		cell(out, r->file[i]->name);
		cell(out, dump_time_text(r->trace->host[i].first, when, sizeof(when)));
		number(out, (double)r->file[i]->frames, 0);
		number(out, (double)dump_file_dropped(r->file[i]), 0);
		number(out, (double)r->clock[i].offset / 1e3, 3);
		number(out, r->clock[i].drift * 1e6, 3);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void reason(void *arg, const char *text)
{
	fputs("<li>not judged: ", arg);
	svg_text(arg, text);
	fputs("</li>\n", arg);
}

static void anomalies(FILE *out, const struct report *r)
{
	static struct trace_anomaly found[TRACE_ANOMALIES];
	unsigned int i, n = trace_anomalies(r->trace, found), verdicts = trace_verdicts(found, n);
	char when[40], where[400];

	for (i = 0; i < n; i++) {
		fprintf(out, "<li>%s<b>%s</b>, ", found[i].observation ? "observed: " : "",
			trace_fault_name(found[i].fault));
		svg_text(out, verdict_where(r, &found[i], where, sizeof(where)));
		fprintf(out, ", %s: ", dump_time_text(found[i].time, when, sizeof(when)));
		svg_text(out, found[i].text);
		if (!found[i].observation) {
			fputs("; to do: ", out);
			svg_text(out, trace_fault_advice(found[i].fault));
		}
		fputs("</li>\n", out);
	}
	if (!verdicts)
		fputs("<li>no fault of the network is seen</li>\n", out);
	verdict_not_judged(r, reason, out);
}

static void sentence(void *arg, const struct msg *m, const char *text)
{
	(void)m;
	fputs("<li>", arg);
	svg_text(arg, text);
	fputs("</li>\n", arg);
}

static void conversations(FILE *out, const struct report *r)
{
	static const char *const columns[] = {"from", "to", "messages", "bytes", "lanes", NULL};
	struct report_conversation c;
	char name[80];
	unsigned int i;

	table(out, columns, 2);
	for (i = 0; i < r->trace->num_flows; i++) {
		if (!report_conversation(r, i, &c))
			continue;
		fputs("<tr>", out);
		cell(out, stream_end_name(r->trace, &r->trace->flow[i], false, name, sizeof(name)));
		cell(out, stream_end_name(r->trace, &r->trace->flow[i], true, name, sizeof(name)));
		number(out, (double)c.messages, 0);
		number(out, (double)c.bytes, 0);
		number(out, c.lanes, 0);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void lanes(FILE *out, const struct report *r)
{
	static const char *const columns[] = {"from",
					      "to",
					      "frames",
					      "bytes",
					      "MB/s",
					      "again",
					      "lost",
					      "twice",
					      "late",
					      "changed",
					      "round trip, us",
					      "p99",
					      "in flight, bytes",
					      "most",
					      NULL};
	const struct trace_flow *f;
	char name[200];
	unsigned int i;

	table(out, columns, 2);
	for (i = 0; i < r->trace->num_flows; i++) {
		f = &r->trace->flow[i];
		fputs("<tr>", out);
		cell(out, verdict_end(r, f, false, name, sizeof(name)));
		cell(out, verdict_end(r, f, true, name, sizeof(name)));
		number(out, (double)f->frames, 0);
		number(out, (double)f->bytes, 0);
		number(out, report_rate(f), 2);
		number(out, (double)f->again, 0);
		number(out, (double)f->lost, 0);
		number(out, (double)f->twice, 0);
		number(out, (double)f->late, 0);
		number(out, (double)f->changed, 0);
		number(out, (double)hist_quantile(&f->rtt, 0.5) / 1e3, 1);
		number(out, (double)hist_quantile(&f->rtt, 0.99) / 1e3, 1);
		number(out, report_flight(f), 0);
		number(out, (double)f->most_bytes, 0);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void protocols(FILE *out, const struct trace_follow *fo)
{
	static const char *const columns[] = {"protocol", "messages", "bytes", "median, us",
					      "p99",      "most",     NULL};
	const struct msg_sum *s;
	unsigned int i;

	table(out, columns, 1);
	for (i = 0; i < MSG_PROTOCOLS; i++) {
		s = &fo->sum[i];
		if (!s->count)
			continue;
		fputs("<tr>", out);
		cell(out, msg_protocol_name(i));
		number(out, (double)s->count, 0);
		number(out, (double)s->bytes, 0);
		number(out, (double)hist_quantile(&s->took, 0.5) / 1e3, 1);
		number(out, (double)hist_quantile(&s->took, 0.99) / 1e3, 1);
		number(out, (double)s->took.max / 1e3, 1);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

void html_report(FILE *out, struct list *l)
{
	const struct trace_follow *fo = l->r->trace->follow;
	unsigned int i;

	fputs(head, out);
	captures(out, l->r);
	fputs("<h2>What was wrong</h2>\n<ul>\n", out);
	anomalies(out, l->r);
	list_unanswered(l, sentence, out);
	list_sentences(l, sentence, out);
	fputs("</ul>\n<h2>Conversations</h2>\n", out);
	conversations(out, l->r);
	fputs("<h2>Lanes</h2>\n", out);
	lanes(out, l->r);
	svg_lanes(out, l);
	fputs("<h2>Messages</h2>\n", out);
	protocols(out, fo);
	fputs("<h2>The slowest messages</h2>\n", out);
	for (i = 0; i < fo->num_watched; i++)
		if (fo->watch[i].found)
			svg_message(out, l, &fo->watch[i]);
	fputs("</body></html>\n", out);
}
