/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "dump/list.h"
#include "dump/report.h"
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

/* Three digits round to the next unit, so the unit changes a little below it. */
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

/* The value of an interval; negative = there is none. */
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

/* The greatest value of a band, with its unit. */
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

/* Neighbours with values are connected. */
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

/* Frames sent again, and lost ones, at the foot of the rate. */
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

/* What an interval shows, as text under the mouse. */
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
