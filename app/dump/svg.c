/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures as SVG, for separate files and for reports. */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "dump/timeline.h"

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

void svg_text(FILE *out, const char *text)
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

static const char *lane_name(const struct list *l, const struct msg_watch *w, uint32_t lane,
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
		label(out, LEFT - 8, top + 4, "end", lane_name(l, w, lanes.flow[n], false, name));
		label(out, LEFT - 8, top + LINES + 4, "end",
		      lane_name(l, w, lanes.flow[n], true, name));
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
