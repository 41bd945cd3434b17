/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <math.h>

#include "dump/clock.h"
#include "dump/draw.h"
#include "dump/list.h"
#include "dump/plot_draw.h"
#include "dump/report.h"
#include "dump/state.h"
#include "dump/state_draw.h"

#define PATHS_DRAWN 24u
#define PANEL 190.0
#define BAND 70.0
#define STRIP 8.0
#define ZONES 128u /* texts of a path */

static const struct curve {
	const char *color;
	unsigned int band; /* 0: bytes, 1: ns */
} curves[] = {
	{"#2b6cb0", 0}, /* window */
	{"#90cdf4", 0}, /* in flight */
	{"#dd6b20", 1}, /* round trip */
	{"#2f855a", 1}, /* the least round trip */
	{"#805ad5", 1}, /* base and noise */
	{"#e53e3e", 1}, /* target */
};
#define CURVES (sizeof(curves) / sizeof(*curves))

static const char *const mode_colors[STATE_MODES] = {"#e2e8f0", "#90cdf4", "#68d391", "#f6ad55"};

struct panel {
	const struct report *r;
	const struct trace_flow *f;
	const struct state_path *path;
	const struct svg_scale *time;
	double top, most[2];
};

/* Negative = not known. */
static double value_of(const struct state_point *s, unsigned int curve)
{
	switch (curve) {
	case 0:
		return s->window;
	case 1:
		return s->in_flight;
	case 2:
		return s->rtt ? s->rtt : -1.0;
	case 3:
		return s->least ? s->least : -1.0;
	case 4:
		return s->base ? (double)s->base + s->noise : -1;
	default:
		return s->target ? s->target : -1.0;
	}
}

/* ns since the first frame */
static double time_of(const struct panel *p, uint64_t time)
{
	uint64_t at = trace_time(&p->r->clock[p->f->out.file], time);
	uint64_t begin = p->r->trace->begin, end = p->r->trace->now;

	at = at < begin ? begin : at > end ? end : at;
	return (double)(at - begin);
}

/* A state lasts until the next one. */
static double end_of(const struct panel *p, unsigned int i)
{
	return i < p->path->num ? time_of(p, p->path->point[i].time) : p->time->end;
}

static void curve(FILE *out, const struct panel *p, unsigned int n)
{
	double bottom = p->top + BAND * (curves[n].band + 1), value;
	bool open = false;
	unsigned int i;

	for (i = 0; i < p->path->num; i++) {
		value = value_of(&p->path->point[i], n);
		if (value < 0)
			continue;
		if (!open)
			fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" points=\"",
				curves[n].color);
		open = true;
		fprintf(out, "%.2f,%.1f ", svg_x(p->time, time_of(p, p->path->point[i].time)),
			bottom - (BAND - 16) * value / p->most[curves[n].band]);
	}
	fputs(open ? "\"/>\n" : "", out);
}

/* Rectangles below the curves: states with one mode after the other. */
static void strip(FILE *out, const struct panel *p)
{
	const struct state_point *s = p->path->point;
	unsigned int i, next;
	double from;

	for (i = 0; i < p->path->num; i = next) {
		for (next = i + 1; next < p->path->num && s[next].mode == s[i].mode;)
			next++;
		from = svg_x(p->time, time_of(p, s[i].time));
		fprintf(out,
			"<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" "
			"fill=\"%s\"/>\n",
			from, p->top + 2 * BAND + 4, svg_x(p->time, end_of(p, next)) - from, STRIP,
			mode_colors[s[i].mode]);
	}
}

static void known_time(FILE *out, const char *name, uint32_t ns)
{
	char text[24];

	if (ns)
		fprintf(out, ", %s %s", name, svg_time(ns / 1e3, text));
}

static void zones(FILE *out, const struct panel *p)
{
	unsigned int i, step = 1 + p->path->num / ZONES;
	const struct state_point *s;
	char text[24], other[24];
	double from;

	for (i = 0; i < p->path->num; i += step) {
		s = &p->path->point[i];
		from = svg_x(p->time, time_of(p, s->time));
		fprintf(out, "<g><title>%.6f s: window %s, %s in flight", time_of(p, s->time) / 1e9,
			svg_bytes(s->window, text), svg_bytes(s->in_flight, other));
		known_time(out, "round trip", s->rtt);
		known_time(out, "least", s->least);
		known_time(out, "base", s->base);
		known_time(out, "noise", s->base ? s->noise : 0);
		known_time(out, "target", s->target);
		if (s->mode != STATE_NONE)
			fprintf(out, ", mode %s", state_mode_name(s->mode));
		fprintf(out,
			"</title><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" "
			"fill=\"white\" fill-opacity=\"0\"/></g>\n",
			from, p->top, svg_x(p->time, end_of(p, i + step)) - from,
			2 * BAND + 4 + STRIP);
	}
}

static void labels(FILE *out, const struct panel *p)
{
	char from[200], title[260], text[24];

	snprintf(title, sizeof(title), "%s, path %u",
		 verdict_end(p->r, p->f, false, from, sizeof(from)), p->path->path);
	svg_label(out, SVG_LEFT, p->top + 4, "start", title);
	svg_label(out, SVG_LEFT - 8, p->top + 26, "end", svg_bytes(p->most[0], text));
	svg_label(out, SVG_LEFT - 8, p->top + BAND + 26, "end", svg_time(p->most[1] / 1e3, text));
	svg_label(out, SVG_LEFT - 8, p->top + 2 * BAND + 12, "end", "mode");
}

static void panel(FILE *out, struct panel *p)
{
	unsigned int i, n;

	p->most[0] = p->most[1] = 1;
	for (i = 0; i < p->path->num; i++)
		for (n = 0; n < CURVES; n++)
			p->most[curves[n].band] =
				fmax(p->most[curves[n].band], value_of(&p->path->point[i], n));
	labels(out, p);
	for (i = 1; i <= 2; i++)
		svg_line(out, SVG_LEFT, p->top + BAND * i, SVG_WIDTH - SVG_RIGHT, p->top + BAND * i,
			 "#a0aec0", 1);
	for (n = 0; n < CURVES; n++)
		curve(out, p, n);
	strip(out, p);
	zones(out, p);
}

/* @param last  NULL = the first path. @return a path of the flow's sender; NULL: no other */
static const struct state_path *state_of(const struct report *r, const struct trace_flow *f,
					 const struct state_path *last)
{
	const struct trace_flow *g = trace_other(r->trace, f);
	const struct state_path *s;
	const struct states *all;

	if (!g || !f->out.known)
		return NULL;
	all = &r->file[f->out.file]->states;
	for (s = last ? last + 1 : all->path; s && s < all->path + all->num; s++)
		if (s->conn == g->dst_conn && s->token == g->token && s->iface == f->out.iface)
			return s;
	return NULL;
}

/* A path without a round trip has carried nothing. */
static bool is_used(const struct state_path *p)
{
	return p->last.rtt != 0;
}

static unsigned int panels(const struct report *r, struct panel panel[PATHS_DRAWN])
{
	const struct trace *t = r->trace;
	const struct trace_flow *f;
	const struct state_path *s;
	unsigned int n = 0;

	for (f = t->flow; f < t->flow + t->num_flows; f++)
		for (s = state_of(r, f, NULL); s && n < PATHS_DRAWN; s = state_of(r, f, s))
			if (is_used(s))
				panel[n++] = (struct panel){.r = r, .f = f, .path = s};
	return n;
}

bool state_any(const struct report *r)
{
	static struct panel panel[PATHS_DRAWN];

	return panels(r, panel) > 0;
}

void svg_states(FILE *out, const struct list *l)
{
	static struct panel all[PATHS_DRAWN];
	const struct trace *t = l->r->trace;
	unsigned int i, n = panels(l->r, all);
	struct svg_scale s = {0, 1};

	if (t->now > t->begin)
		s.end = (double)(t->now - t->begin);
	svg_begin(out, SVG_TOP + PANEL * n + 30,
		  "paths: window (blue), in flight (light); round trip (orange), the least "
		  "(green), base and noise (violet), target (red)");
	svg_axis(out, &s, SVG_TOP, SVG_TOP + PANEL * n);
	for (i = 0; i < n; i++) {
		all[i].time = &s;
		all[i].top = SVG_TOP + PANEL * i + 8;
		panel(out, &all[i]);
	}
	svg_label(out, SVG_LEFT, SVG_TOP - 8, "start",
		  "modes: start (blue), delay (green), share (orange)");
	fputs("</svg>\n", out);
}

/* ---- CSV and JSON --------------------------------------------------------------------------- */

static void row(FILE *out, const struct report *r, const struct trace_flow *f,
		const struct state_path *p, const struct state_point *s, const char *what,
		const char *value)
{
	uint64_t time = trace_time(&r->clock[f->out.file], s->time);

	plot_csv_row(out, r, f, time, what);
	fprintf(out, "%u,,,,,%" PRIu64 ",%s,%d\n", p->path, p->each, value, DUMP_FORMAT_VERSION);
}

static void number(FILE *out, const struct report *r, const struct trace_flow *f,
		   const struct state_path *p, const struct state_point *s, const char *what,
		   uint32_t bytes)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu32, bytes);
	row(out, r, f, p, s, what, text);
}

static void us(FILE *out, const struct report *r, const struct trace_flow *f,
	       const struct state_path *p, const struct state_point *s, const char *what,
	       uint32_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%.3f", ns / 1e3);
	row(out, r, f, p, s, what, text);
}

void state_csv(FILE *out, const struct report *r, const struct trace_flow *f)
{
	const struct state_point *s;
	const struct state_path *p;

	for (p = state_of(r, f, NULL); p; p = state_of(r, f, p)) {
		for (s = p->point; s < p->point + p->num; s++) {
			number(out, r, f, p, s, "window_bytes", s->window);
			number(out, r, f, p, s, "in_flight_bytes", s->in_flight);
			if (s->rtt)
				us(out, r, f, p, s, "rtt_us", s->rtt);
			if (s->least)
				us(out, r, f, p, s, "least_us", s->least);
			if (s->base)
				us(out, r, f, p, s, "base_us", s->base);
			if (s->base)
				us(out, r, f, p, s, "noise_us", s->noise);
			if (s->target)
				us(out, r, f, p, s, "target_us", s->target);
			if (s->mode != STATE_NONE)
				row(out, r, f, p, s, "mode", state_mode_name(s->mode));
		}
	}
}

void state_json(struct json *j, const struct report *r, const struct trace_flow *f,
		unsigned int path)
{
	const struct state_path *p = state_of(r, f, NULL);

	while (p && p->path != path)
		p = state_of(r, f, p);
	if (!p)
		return;
	json_begin(j, "state", '{');
	json_number(j, "states", p->seen);
	json_number(j, "time", trace_time(&r->clock[f->out.file], p->last.time));
	json_number(j, "window_bytes", p->last.window);
	json_number(j, "in_flight_bytes", p->last.in_flight);
	json_real(j, "rtt_us", p->last.rtt / 1e3);
	json_real(j, "least_us", p->last.least / 1e3);
	json_real(j, "base_us", p->last.base / 1e3);
	json_real(j, "noise_us", p->last.noise / 1e3);
	json_real(j, "target_us", p->last.target / 1e3);
	json_text(j, "mode", state_mode_name(p->last.mode));
	json_end(j, '}');
}
