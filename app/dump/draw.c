/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/frames.h"
#include "dump/list.h"
#include "dump/message.h"
#include "dump/plot_draw.h"
#include "dump/report.h"
#include "dump/state_draw.h"
#include "dump/timeline.h"
#include "dump/trace.h"

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

double svg_x(const struct svg_scale *s, double ns)
{
	return SVG_LEFT +
	       (SVG_WIDTH - SVG_LEFT - SVG_RIGHT) * (ns - s->begin) / (s->end - s->begin);
}

void svg_label(FILE *out, double x, double y, const char *anchor, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	svg_text(out, text);
	fputs("</text>\n", out);
}

void svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *color,
	      double width)
{
	fprintf(out,
		"<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" stroke=\"%s\" "
		"stroke-width=\"%.1f\"/>\n",
		x1, y1, x2, y2, color, width);
}

void svg_begin(FILE *out, double height, const char *title)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		SVG_WIDTH, height, SVG_WIDTH, height);
	fputs("<g font-size=\"14\">\n", out);
	svg_label(out, 12, 22, "start", title);
	fputs("</g>\n", out);
}

/* With three digits 999.5 is printed as 1000: from it on the next unit is used. */
#define ROUNDS 999.5

const char *svg_time(double us, char buf[24])
{
	double most = fabs(us);

	if (most < ROUNDS)
		snprintf(buf, 24, "%.3g us", us);
	else if (most < ROUNDS * 1e3)
		snprintf(buf, 24, "%.3g ms", us / 1e3);
	else if (most < ROUNDS * 1e6)
		snprintf(buf, 24, "%.3g s", us / 1e6);
	else
		snprintf(buf, 24, "%.0f s", us / 1e6);
	return buf;
}

const char *svg_bytes(double bytes, char buf[24])
{
	if (bytes < ROUNDS)
		snprintf(buf, 24, "%.0f B", bytes);
	else if (bytes < ROUNDS * 1e3)
		snprintf(buf, 24, "%.3g kB", bytes / 1e3);
	else if (bytes < ROUNDS * 1e6)
		snprintf(buf, 24, "%.3g MB", bytes / 1e6);
	else
		snprintf(buf, 24, "%.4g GB", bytes / 1e9);
	return buf;
}

/* A step of 1, 2 or 5 times a power of ten that divides the time into at most ten parts. */
static double step_of(double span)
{
	double power = pow(10, floor(log10(span / 10)));

	if (span / power <= 10)
		return power;
	if (span / power <= 20)
		return 2 * power;
	return span / power <= 50 ? 5 * power : 10 * power;
}

void svg_axis(FILE *out, const struct svg_scale *s, double top, double bottom)
{
	double step = step_of(s->end - s->begin), at;
	char text[24];

	for (at = s->begin; at <= s->end; at += step) {
		svg_line(out, svg_x(s, at), top, svg_x(s, at), bottom, "#e4e4e4", 1);
		svg_label(out, svg_x(s, at), bottom + 16, "middle",
			  svg_time((at - s->begin) / 1e3, text));
	}
}

void svg_short(char buf[SVG_NAME], const char *name)
{
	weft_text_copy(buf, SVG_NAME, name, strnlen(name, SVG_NAME - 1));
}

/* ---- lanes ---------------------------------------------------------------------------------- */

#define LANES_DRAWN 16u
#define BANDS 3u
#define BAND 74.0 /* a curve, and the space above it */
#define CURVE 56.0
#define PANEL (BANDS * BAND + 26.0)
#define ZONE 4u /* intervals that have one text under the mouse */

enum { RATE, ROUND_TRIP, IN_FLIGHT };

static const char *const colors[2] = {"#2b6cb0", "#2f855a"};

/* The value of an interval in a band; negative = there is none. */
static double value_of(const struct trace_slot *s, unsigned int band)
{
	switch (band) {
	case RATE:
		return (double)s->bytes;
	case ROUND_TRIP:
		return s->rtt_most > 0 ? (double)s->rtt_most : -1;
	default:
		return s->bytes ? (double)s->in_flight : -1;
	}
}

static double most_of(const struct trace *t, unsigned int band)
{
	double most = 1e-9;
	unsigned int i, n;

	for (i = 0; i < t->num_flows; i++)
		for (n = 0; n < TRACE_SERIES; n++)
			most = fmax(most, value_of(&t->flow[i].series[n], band));
	return most;
}

/* The greatest value of a band over all lanes, with its unit. @return buf */
static const char *most_text(const struct trace *t, unsigned int band, double most, char buf[40])
{
	char text[24];

	if (band == RATE)
		snprintf(buf, 40, "%.3g MB/s", most / (double)t->interval * 1e3);
	else if (band == ROUND_TRIP)
		snprintf(buf, 40, "rtt %s", svg_time(most, text));
	else
		snprintf(buf, 40, "%s out", svg_bytes(most, text));
	return buf;
}

/* A line connects the values of neighbours; an interval without a value interrupts it. */
static void curve(FILE *out, const struct trace *t, const struct trace_flow *f,
		  const struct svg_scale *s, unsigned int band, double bottom, double most,
		  const char *color)
{
	bool open = false;
	unsigned int n;
	double value;

	for (n = 0; n < TRACE_SERIES && (double)n * (double)t->interval < s->end; n++) {
		value = value_of(&f->series[n], band);
		if (value < 0) {
			fputs(open ? "\"/>\n" : "", out);
			open = false;
			continue;
		}
		if (!open)
			fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" points=\"", color);
		open = true;
		fprintf(out, "%.1f,%.1f ", svg_x(s, (n + 0.5) * (double)t->interval),
			bottom - CURVE * value / most);
	}
	fputs(open ? "\"/>\n" : "", out);
}

/* Bars at the bottom of the band of the rate: frames sent again, and lost ones. */
static void marks(FILE *out, const struct trace *t, const struct trace_flow *f,
		  const struct svg_scale *s, double bottom)
{
	unsigned int n;
	double x;

	for (n = 0; n < TRACE_SERIES; n++) {
		x = svg_x(s, (n + 0.5) * (double)t->interval);
		if (f->series[n].again)
			svg_line(out, x, bottom, x, bottom - fmin(4 + 2.0 * f->series[n].again, 24),
				 "#dd6b20", 2);
		if (f->series[n].lost)
			svg_line(out, x + 2, bottom, x + 2,
				 bottom - fmin(4 + 2.0 * f->series[n].lost, 24), "#e53e3e", 2);
	}
}

/* The text of ZONE intervals, which the mouse shows. */
static void zone_text(FILE *out, const struct trace *t, const struct trace_flow *f, unsigned int at)
{
	struct trace_slot sum = {0};
	const struct trace_slot *s;
	char text[24], other[24];

	for (s = f->series + at; s < f->series + at + ZONE; s++) {
		sum.bytes += s->bytes;
		sum.again += s->again;
		sum.lost += s->lost;
		if (s->rtt_most > 0 && (sum.rtt_least <= 0 || s->rtt_least < sum.rtt_least))
			sum.rtt_least = s->rtt_least;
		sum.rtt_most = fmaxf(sum.rtt_most, s->rtt_most);
		sum.in_flight = s->in_flight > sum.in_flight ? s->in_flight : sum.in_flight;
	}
	if (!sum.bytes)
		return;
	fprintf(out, "%.3g MB/s", (double)sum.bytes / (ZONE * (double)t->interval) * 1e3);
	if (sum.rtt_most > 0)
		fprintf(out, ", round trip %s to %s", svg_time(sum.rtt_least, text),
			svg_time(sum.rtt_most, other));
	if (sum.in_flight)
		fprintf(out, ", up to %s in flight", svg_bytes(sum.in_flight, text));
	if (sum.again)
		fprintf(out, ", %u sent again", sum.again);
	if (sum.lost)
		fprintf(out, ", %u lost", sum.lost);
}

static void zones(FILE *out, const struct report *r, const struct trace_flow *const both[2],
		  const struct svg_scale *s, double top)
{
	const struct trace *t = r->trace;
	unsigned int n, d;
	double from, to;
	char text[24];

	for (n = 0; n < TRACE_SERIES && (double)n * (double)t->interval < s->end; n += ZONE) {
		from = svg_x(s, n * (double)t->interval);
		to = svg_x(s, fmin((n + ZONE) * (double)t->interval, s->end));
		fprintf(out, "<g><title>%s", svg_time(n * (double)t->interval / 1e3, text));
		for (d = 0; d < 2 && both[d]; d++) {
			fputs("&#10;", out);
			svg_text(out, report_lane_name(r, both[d]));
			fputs(": ", out);
			zone_text(out, t, both[d], n);
		}
		fprintf(out,
			"</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
			"fill=\"white\" fill-opacity=\"0\"/></g>\n",
			from, top, to - from, BANDS * BAND);
	}
}

static void lane(FILE *out, const struct report *r, const struct trace_flow *f,
		 const struct svg_scale *s, const double most[BANDS], double top)
{
	const struct trace_flow *both[2] = {f, trace_other(r->trace, f)};
	char name[SVG_NAME], text[40];
	unsigned int band, d;
	double bottom;

	for (band = 0; band < BANDS; band++) {
		bottom = top + BAND * (band + 1);
		svg_line(out, SVG_LEFT, bottom, SVG_WIDTH - SVG_RIGHT, bottom, "#a0aec0", 1);
		svg_label(out, SVG_LEFT - 8, bottom - CURVE + 10, "end",
			  most_text(r->trace, band, most[band], text));
		for (d = 0; d < 2 && both[d]; d++)
			curve(out, r->trace, both[d], s, band, bottom, most[band], colors[d]);
	}
	for (d = 0; d < 2 && both[d]; d++) {
		marks(out, r->trace, both[d], s, top + BAND);
		fprintf(out, "<g fill=\"%s\">", colors[d]);
		svg_short(name, report_lane_name(r, both[d]));
		svg_label(out, SVG_LEFT - 8, top + BAND - 20 + 16 * d, "end", name);
		fputs("</g>\n", out);
	}
	zones(out, r, both, s, top);
}

void svg_lanes(FILE *out, const struct list *l)
{
	const struct trace *t = l->r->trace;
	struct svg_scale s = {0, 1};
	unsigned int i, n = 0, lanes = 0;
	double most[BANDS];
	char text[24], title[200];

	for (i = 0; i < t->num_flows; i++)
		lanes += report_lane(l->r, i) != NULL;
	lanes = lanes < LANES_DRAWN ? lanes : LANES_DRAWN;
	for (i = 0; i < BANDS; i++)
		most[i] = most_of(t, i);
	if (t->now > t->begin)
		s.end = (double)(t->now - t->begin);
	snprintf(title, sizeof(title),
		 "lanes, in intervals of %s: rate, round trip, bytes in flight; orange: sent "
		 "again; red: lost",
		 svg_time((double)t->interval / 1e3, text));
	svg_begin(out, SVG_TOP + PANEL * lanes + 30, title);
	svg_axis(out, &s, SVG_TOP, SVG_TOP + PANEL * lanes);
	for (i = 0; i < t->num_flows && n < lanes; i++)
		if (report_lane(l->r, i))
			lane(out, l->r, &t->flow[i], &s, most, SVG_TOP + PANEL * n++);
	fputs("</svg>\n", out);
}

/* ---- report for a browser ------------------------------------------------------------------- */

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" "
	"content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	"<title>Weft captures</title>\n<style>\n"
	"body{font-family:sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}\n"
	"table{border-collapse:collapse;font-size:13px}\n"
	"td,th{padding:3px 9px;border-bottom:1px solid #ddd;text-align:right}\n"
	"td.t,th.t{text-align:left}\n"
	"li{margin:4px 0}\n"
	/* A picture in a window of its own; text and lines keep their size when it grows. */
	".v{overflow:auto;max-height:95vh;border:1px solid #ddd}\n"
	".v svg{width:100%;height:auto;display:block}\n"
	".v line,.v polyline,.v path{vector-effect:non-scaling-stroke}\n"
	".v g:hover line,.v g:hover polyline{stroke-width:3}\n"
	".v path:hover{stroke-width:10}\n"
	".p input:nth-of-type(2):checked~.v svg{width:200%}\n"
	".p input:nth-of-type(2):checked~.v text{font-size:6px}\n"
	".p input:nth-of-type(3):checked~.v svg{width:400%}\n"
	".p input:nth-of-type(3):checked~.v text{font-size:3px}\n"
	".p input:nth-of-type(4):checked~.v svg{width:800%}\n"
	".p input:nth-of-type(4):checked~.v text{font-size:1.5px}\n"
	".p input:nth-of-type(5):checked~.v svg{width:1600%}\n"
	".p input:nth-of-type(5):checked~.v text{font-size:.75px}\n"
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

/* A cell with a time; the mouse shows its exact value. */
static void cell_time(FILE *out, double us)
{
	char text[24];

	fprintf(out, "<td title=\"%.3f us\">%s</td>", us, svg_time(us, text));
}

static void cell_bytes(FILE *out, double bytes)
{
	char text[24];

	fprintf(out, "<td title=\"%.0f bytes\">%s</td>", bytes, svg_bytes(bytes, text));
}

/* Begin a picture, with the buttons of its zoom; picture_end() ends it. */
static void picture_begin(FILE *out, unsigned int n)
{
	fputs("<div class=\"p\">zoom", out);
	for (unsigned int i = 0; i < 5; i++)
		fprintf(out,
			"<input type=\"radio\" name=\"z%u\" id=\"z%u-%u\"%s>"
			"<label for=\"z%u-%u\">%u</label>",
			n, n, i, i == 0 ? " checked" : "", n, i, 1u << i);
	fputs("<div class=\"v\">\n", out);
}

static void picture_end(FILE *out)
{
	fputs("</div></div>\n", out);
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
		"capture", "begins", "frames", "lost by writer", "clock ahead", "drift, ppm", NULL};
	char when[40];
	unsigned int i;

	table(out, columns, 2);
	for (i = 0; i < r->trace->num_files; i++) {
		fputs("<tr>", out);
		cell(out, r->file[i]->name);
		cell(out, dump_time_text(r->trace->host[i].first, when, sizeof(when)));
		number(out, (double)r->file[i]->frames, 0);
		number(out, (double)dump_file_dropped(r->file[i]), 0);
		cell_time(out, (double)r->clock[i].offset / 1e3);
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

static void device(void *arg, const char *text)
{
	fputs("<li>", arg);
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
	verdict_devices(r, device, out);
	report_roce(r, device, out);
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
		cell_bytes(out, (double)c.bytes);
		number(out, c.lanes, 0);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void lanes(FILE *out, const struct report *r)
{
	static const char *const columns[] = {"from",       "to",   "frames",    "bytes", "MB/s",
					      "again",      "lost", "twice",     "late",  "changed",
					      "round trip", "p99",  "in flight", "most",  NULL};
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
		cell_bytes(out, (double)f->bytes);
		number(out, report_rate(f), 2);
		number(out, (double)f->again, 0);
		number(out, (double)f->lost, 0);
		number(out, (double)f->twice, 0);
		number(out, (double)f->late, 0);
		number(out, (double)f->changed, 0);
		cell_time(out, (double)hist_quantile(&f->rtt, 0.5) / 1e3);
		cell_time(out, (double)hist_quantile(&f->rtt, 0.99) / 1e3);
		cell_bytes(out, report_flight(f));
		cell_bytes(out, (double)f->most_bytes);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void protocols(FILE *out, const struct trace_follow *fo)
{
	static const char *const columns[] = {"protocol", "messages", "bytes", "median",
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
		cell_bytes(out, (double)s->bytes);
		cell_time(out, (double)hist_quantile(&s->took, 0.5) / 1e3);
		cell_time(out, (double)hist_quantile(&s->took, 0.99) / 1e3);
		cell_time(out, (double)s->took.max / 1e3);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void states(FILE *out, const struct list *l)
{
	if (!state_any(l->r))
		return;
	picture_begin(out, MSG_WATCHED + 2);
	svg_states(out, l);
	picture_end(out);
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
	picture_begin(out, 0);
	svg_lanes(out, l);
	picture_end(out);
	picture_begin(out, MSG_WATCHED + 1);
	svg_sequences(out, l);
	picture_end(out);
	states(out, l);
	fputs("<h2>Messages</h2>\n", out);
	protocols(out, fo);
	fputs("<h2>The slowest messages</h2>\n", out);
	for (i = 0; i < fo->num_watched; i++) {
		if (!fo->watch[i].found)
			continue;
		picture_begin(out, i + 1);
		svg_message(out, l, &fo->watch[i]);
		picture_end(out);
	}
	fputs("</body></html>\n", out);
}
