/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/plot_draw.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dump/draw.h"
#include "dump/list.h"
#include "dump/plot.h"
#include "dump/report.h"
#include "dump/state_draw.h"

#define FLOWS_DRAWN 32u
#define PANEL 196.0
#define CURVE 160.0
#define DRAWN 16384u /* points of all flows, without marks */
/* Texts of a flow and kind. With more marks, neighbours share one. */
#define TEXTS 4096u

static const struct look {
	const char *name, *color;
	double width;
} looks[PLOT_KINDS] = {
	[PLOT_SENT] = {"sent", "#2b6cb0", 2.5},
	[PLOT_ACKED] = {"acknowledged", "#2f855a", 1},
	[PLOT_AGAIN] = {"sent again", "#dd6b20", 5},
	[PLOT_LOST] = {"lost", "#e53e3e", 7},
};

/* A flow and its points, and where they are in the picture. */
struct panel {
	const struct report *r;
	const struct trace_flow *f;
	const struct plot_list *list; /* by kind */
	const struct svg_scale *time;
	double bottom;
	uint32_t zero; /* sequence of the first frame */
	double least, most;
};

/* Sequences wrap. */
static double seq_of(const struct panel *p, const struct plot_point *point)
{
	return (double)(int32_t)(point->seq - p->zero);
}

static double x_of(const struct panel *p, uint64_t time)
{
	uint64_t begin = p->r->trace->begin;

	return svg_x(p->time, time > begin ? (double)(time - begin) : 0);
}

/* A frame of another type than DATA may have any sequence: it is drawn at the edge. */
static double y_of(const struct panel *p, const struct plot_point *point)
{
	double seq = fmin(fmax(seq_of(p, point), p->least), p->most);

	return p->bottom - 4 - (CURVE - 8) * (seq - p->least) / (p->most - p->least);
}

/* @return there is a point of a DATA frame */
static bool set_range(struct panel *p)
{
	static const enum plot_kind kinds[] = {PLOT_SENT, PLOT_AGAIN};
	const struct plot_list *l;
	unsigned int i, n;
	bool any = false;

	for (i = 0; i < 2; i++) {
		l = &p->list[kinds[i]];
		for (n = 0; n < l->num; n++) {
			if (!any)
				p->zero = l->point[n].seq;
			any = true;
			p->least = fmin(p->least, seq_of(p, &l->point[n]));
			p->most = fmax(p->most, seq_of(p, &l->point[n]));
		}
	}
	p->most = p->most > p->least ? p->most : p->least + 1;
	return any;
}

static double seconds(const struct panel *p, uint64_t time)
{
	return ((double)time - (double)p->r->trace->begin) / 1e9;
}

/* The text under the mouse, for @p n points. */
static void text(FILE *out, const struct panel *p, enum plot_kind kind,
		 const struct plot_point *point, unsigned int n)
{
	const char *seen = p->f->out.known ? "" : ", as it came";

	fprintf(out, "<title>");
	if (n > 1)
		fprintf(out, "%u frames ", n);
	fprintf(out, "%s: frame %" PRIu32 ", %.6f s", looks[kind].name, point->seq,
		seconds(p, point->time));
	if (n > 1)
		fprintf(out, " to frame %" PRIu32 ", %.6f s", point[n - 1].seq,
			seconds(p, point[n - 1].time));
	else if (point->message)
		fprintf(out, ", message %" PRIu64, point->message);
	if (n == 1)
		fprintf(out, ", path %u%s&#10;frame %" PRIu64 " of ", point->path, seen,
			point->number);
	if (n == 1)
		svg_text(out, p->r->file[point->file]->name);
	fputs("</title>", out);
}

/* A point is a line of length 0 with round ends, which keeps its size when the picture grows. */
static void points(FILE *out, const struct panel *p, enum plot_kind kind, unsigned int step,
		   unsigned int together)
{
	const struct plot_list *l = &p->list[kind];
	unsigned int i, k, n;

	if (!l->num)
		return;
	fprintf(out,
		"<g class=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" "
		"stroke-linecap=\"round\">\n",
		kind == PLOT_LOST    ? "lost"
		: kind == PLOT_AGAIN ? "again"
				     : "sent",
		looks[kind].color, looks[kind].width);
	for (i = 0; i<l->num; i += together> 1 ? together : step) {
		n = l->num - i < together ? l->num - i : together;
		fputs("<path d=\"", out);
		for (k = i; k < i + n; k++)
			fprintf(out, "M%.2f %.2fh.01", x_of(p, l->point[k].time),
				y_of(p, &l->point[k]));
		fputs("\">", out);
		text(out, p, kind, &l->point[i], n);
		fputs("</path>\n", out);
	}
	fputs("</g>\n", out);
}

/* A step for each acknowledgement. */
static void acked(FILE *out, const struct panel *p, unsigned int step)
{
	const struct plot_list *l = &p->list[PLOT_ACKED];
	double y = 0, next;
	unsigned int i;

	if (!l->num)
		return;
	fprintf(out, "<polyline class=\"acked\" fill=\"none\" stroke=\"%s\" points=\"",
		looks[PLOT_ACKED].color);
	for (i = 0; i < l->num; i += step) {
		next = y_of(p, &l->point[i]);
		if (i)
			fprintf(out, "%.2f,%.2f ", x_of(p, l->point[i].time), y);
		fprintf(out, "%.2f,%.2f ", x_of(p, l->point[i].time), next);
		y = next;
	}
	fputs("\"/>\n", out);
}

static void labels(FILE *out, const struct panel *p)
{
	char from[200], to[200], title[460], seq[24];
	const struct plot_list *l = p->list;

	verdict_end(p->r, p->f, false, from, sizeof(from));
	verdict_end(p->r, p->f, true, to, sizeof(to));
	snprintf(title, sizeof(title), "%s > %s", from, to);
	svg_label(out, SVG_LEFT, p->bottom - CURVE - 8, "start", title);
	snprintf(title, sizeof(title), "%" PRIu64 " sent again, %" PRIu64 " lost",
		 l[PLOT_AGAIN].seen, l[PLOT_LOST].seen);
	svg_label(out, SVG_WIDTH - SVG_RIGHT, p->bottom - CURVE - 8, "end", title);
	snprintf(seq, sizeof(seq), "%" PRIu32, p->zero + (uint32_t)(int32_t)p->most);
	svg_label(out, SVG_LEFT - 6, p->bottom - CURVE + 12, "end", seq);
	snprintf(seq, sizeof(seq), "%" PRIu32, p->zero + (uint32_t)(int32_t)p->least);
	svg_label(out, SVG_LEFT - 6, p->bottom - 2, "end", seq);
}

static void panel(FILE *out, const struct panel *p, unsigned int step)
{
	enum plot_kind kind;

	svg_line(out, SVG_LEFT, p->bottom, SVG_WIDTH - SVG_RIGHT, p->bottom, "#a0aec0", 1);
	labels(out, p);
	acked(out, p, step);
	points(out, p, PLOT_SENT, step, 1);
	for (kind = PLOT_AGAIN; kind < PLOT_KINDS; kind++)
		points(out, p, kind, 1, 1 + p->list[kind].num / TEXTS);
}

/* The panels of flows with DATA frames, the two directions of a lane one after the other. */
static unsigned int panels(const struct list *l, struct panel panel[FLOWS_DRAWN])
{
	const struct trace *t = l->r->trace;
	const struct trace_flow *f, *both[2];
	unsigned int i, d, n = 0;

	for (i = 0; i < t->num_flows; i++) {
		f = report_lane(l->r, i);
		both[0] = f;
		both[1] = f ? trace_other(t, f) : NULL;
		for (d = 0; d < 2 && n < FLOWS_DRAWN; d++) {
			if (!both[d] || trace_index(t, both[d]) >= PLOT_FLOWS)
				continue;
			panel[n] = (struct panel){.r = l->r,
						  .f = both[d],
						  .list = t->plot->list[trace_index(t, both[d])]};
			n += set_range(&panel[n]);
		}
	}
	return n;
}

void svg_sequences(FILE *out, const struct list *l)
{
	static struct panel all[FLOWS_DRAWN];
	const struct trace *t = l->r->trace;
	unsigned int i, n = panels(l, all), step = 0;
	struct svg_scale s = {0, 1};
	double bottom;

	if (t->now > t->begin)
		s.end = (double)(t->now - t->begin);
	for (i = 0; i < n; i++)
		step += all[i].list[PLOT_SENT].num + all[i].list[PLOT_ACKED].num;
	step = 1 + step / DRAWN;
	svg_begin(out, SVG_TOP + PANEL * n + 30,
		  "numbers of frames over time; blue: sent; green: acknowledged; orange: sent "
		  "again; red: lost");
	bottom = SVG_TOP + PANEL * n;
	svg_axis(out, &s, SVG_TOP, bottom);
	for (i = 0; i < n; i++) {
		all[i].time = &s;
		all[i].bottom = SVG_TOP + PANEL * (i + 1) - 4;
		panel(out, &all[i], step);
	}
	fputs("</svg>\n", out);
}

/* ---- CSV ------------------------------------------------------------------------------------ */

static const char *iface_name(const struct report *r, const struct trace_port *p)
{
	return p->known ? r->file[p->file]->iface[p->iface].name : "?";
}

void plot_csv_row(FILE *out, const struct report *r, const struct trace_flow *f, uint64_t time,
		  const char *what)
{
	uint32_t flow = trace_index(r->trace, f);

	fprintf(out, "%u,", f->other < flow ? f->other : flow);
	csv_text(out, iface_name(r, &f->out));
	putc(',', out);
	csv_text(out, iface_name(r, &f->in));
	fprintf(out, ",%" PRIu64 ",%s,", time, what);
}

static void rows(FILE *out, const struct report *r, const struct trace_flow *f, enum plot_kind kind)
{
	static const char *const names[PLOT_KINDS] = {"sent", "acknowledged", "again", "lost"};
	const struct plot_list *l = &r->trace->plot->list[trace_index(r->trace, f)][kind];
	const struct plot_point *p;

	for (p = l->point; p < l->point + l->num; p++) {
		plot_csv_row(out, r, f, p->time, names[kind]);
		if (kind == PLOT_ACKED) {
			fprintf(out, ",%" PRIu32 ",,,,", p->seq);
		} else {
			fprintf(out, "%u,%" PRIu32 ",", p->path, p->seq);
			if (p->message)
				fprintf(out, "%" PRIu64, p->message);
			fprintf(out, ",%" PRIu64 ",", p->number);
			csv_text(out, r->file[p->file]->name);
			putc(',', out);
		}
		fprintf(out, "%" PRIu64 ",,%d\n", l->each, DUMP_FORMAT_VERSION);
	}
}

void plot_csv(FILE *out, struct list *l)
{
	const struct trace *t = l->r->trace;
	unsigned int i, kind;

	fputs("lane,from,to,time_ns,what,path,frame,message,number,file,each,value,version\n", out);
	for (i = 0; i < t->num_flows && i < PLOT_FLOWS; i++) {
		for (kind = 0; kind < PLOT_KINDS; kind++)
			rows(out, l->r, &t->flow[i], kind);
		state_csv(out, l->r, &t->flow[i]);
	}
}
