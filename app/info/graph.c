/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The curves of a plan, drawn by gnuplot: this file writes the script, with the data, to its
 * standard input.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/gnuplot.h"
#include "info/protocols.h"

#define STEPS 12 /* samples per doubling */
#define MAX_CURVES 16
#define MAX_CROSSINGS 24
#define SMALLEST 1.0
#define DEFAULT_TOP (4.0 * 1024 * 1024)
#define LARGEST (4.0 * 1024 * 1024 * 1024)

struct curve {
	unsigned int index; /* for weft_plan_query() */
	char name[32];
	size_t min, max;
	bool used; /* chosen for at least one size */
};

struct graph {
	const struct weft_plan *plan;
	enum weft_op op;
	struct curve curves[MAX_CURVES];
	unsigned int num;
	size_t crossing[MAX_CROSSINGS]; /* first size of the later protocol */
	double at[MAX_CROSSINGS];       /* its time there, us */
	unsigned int crossings;
	double top;
};

/* The chosen protocol for a size: position in curves, and its time in us. */
static int chosen(const struct graph *g, size_t size, double *us)
{
	struct weft_proto_info t = {.size = sizeof(t)};

	for (unsigned int i = 0; i < g->num; i++) {
		if (weft_plan_query(g->plan, g->op, size, g->curves[i].index, &t) == 0 &&
		    t.chosen) {
			*us = t.time * 1e6;
			return (int)i;
		}
	}
	return -1;
}

static void find_curves(struct graph *g)
{
	struct weft_proto_info t = {.size = sizeof(t)};

	for (unsigned int i = 0; g->num < MAX_CURVES; i++) {
		if (weft_plan_query(g->plan, g->op, 1, i, &t) < 0)
			break;
		if (t.min > t.max)
			continue;
		g->curves[g->num] = (struct curve){.index = i, .min = t.min, .max = t.max};
		snprintf(g->curves[g->num++].name, sizeof(t.name), "%s", t.name);
	}
}

/* The size where the choice changes, between two sizes with different ones. */
static size_t bisect(const struct graph *g, size_t lo, size_t hi, int protocol)
{
	double us;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (chosen(g, mid, &us) == protocol)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

static void find_crossings(struct graph *g)
{
	size_t before = 1, size;
	double us;
	int last = chosen(g, 1, &us), now;

	if (last >= 0)
		g->curves[last].used = true;
	for (double x = 1; x <= LARGEST; x *= exp2(1.0 / STEPS)) {
		size = (size_t)x;
		now = chosen(g, size, &us);
		/* Two changes between samples: each bisection finds one of them. */
		while (now != last && now >= 0 && g->crossings < MAX_CROSSINGS) {
			size_t at = bisect(g, before, size, last);

			last = chosen(g, at, &us);
			g->curves[last].used = true;
			g->crossing[g->crossings] = at;
			g->at[g->crossings++] = us;
			before = at;
		}
		before = size;
	}
	g->top = DEFAULT_TOP;
	while (g->crossings && g->top < 16.0 * (double)g->crossing[g->crossings - 1] &&
	       g->top < LARGEST)
		g->top *= 2;
}

/* ------------------------------------------------------------------ the script */

static void write_data(FILE *out, const struct graph *g)
{
	struct weft_proto_info t = {.size = sizeof(t)};
	double us;

	for (unsigned int i = 0; i < g->num; i++) {
		const struct curve *c = &g->curves[i];

		fprintf(out, "$curve%u << EOD\n", i);
		for (double x = SMALLEST; x <= g->top * 1.001; x *= exp2(1.0 / STEPS)) {
			/* End exactly where the protocol ends. */
			size_t size = (size_t)x;
			bool end = size < c->max && x * exp2(1.0 / STEPS) > (double)c->max;

			if (weft_plan_query(g->plan, g->op, size, c->index, &t) == 0 && t.usable)
				fprintf(out, "%zu %.9g\n", size, t.time * 1e6);
			if (end && weft_plan_query(g->plan, g->op, c->max, c->index, &t) == 0)
				fprintf(out, "%zu %.9g\n", c->max, t.time * 1e6);
		}
		fprintf(out, "EOD\n");
	}
	fprintf(out, "$envelope << EOD\n");
	for (double x = SMALLEST; x <= g->top * 1.001; x *= exp2(1.0 / STEPS))
		if (chosen(g, (size_t)x, &us) >= 0)
			fprintf(out, "%zu %.9g\n", (size_t)x, us);
	fprintf(out, "EOD\n$crossings << EOD\n");
	for (unsigned int i = 0; i < g->crossings; i++)
		fprintf(out, "%zu %.9g\n", g->crossing[i], g->at[i]);
	fprintf(out, "EOD\n");
}

/*
 * Sizes where the choice changes: dotted lines down to the axis, each with its size as a label. The
 * heights of labels alternate, so that close ones do not overlap.
 */
static void write_crossings(FILE *out, const struct graph *g)
{
	for (unsigned int i = 0; i < g->crossings; i++) {
		fprintf(out,
			"set arrow from %zu, graph 0 to %zu, %.9g nohead dt 3 lw 1.2 lc rgb "
			"\"#606060\" back\n",
			g->crossing[i], g->crossing[i], g->at[i]);
		fprintf(out, "set label \"");
		gnuplot_size(out, (double)g->crossing[i]);
		fprintf(out,
			"\" at %zu, graph %.3f rotate by 90 offset character -0.7,0 font \",11\" "
			"tc rgb \"#404040\" front\n",
			g->crossing[i], 0.02);
	}
}

/* A single constant curve, as of atomics, gives gnuplot an empty range, so set one. */
static void write_height(FILE *out, const struct graph *g)
{
	double us, low = INFINITY, high = 0;

	for (double x = SMALLEST; x <= g->top * 1.001; x *= exp2(1.0 / STEPS)) {
		if (chosen(g, (size_t)x, &us) < 0)
			continue;
		low = us < low ? us : low;
		high = us > high ? us : high;
	}
	if (g->num == 1 && high > 0 && low > 0.99 * high)
		fprintf(out, "set yrange [%.9g:%.9g]\n", low / 4, high * 4);
}

static void write_script(FILE *out, const struct graph *g)
{
	write_data(out, g);
	gnuplot_size_time_axes(out, g->top, "predicted time until the receiver has the data");
	write_height(out, g);
	write_crossings(out, g);
	fprintf(out, "plot $envelope using 1:2 with lines lw 9 lc rgb \"#C9C9C9\" title \"what is "
		     "used\"");
	for (unsigned int i = 0; i < g->num; i++)
		fprintf(out,
			", \\\n  $curve%u using 1:2 with lines lw %s dt %d lc rgb \"%s\" title "
			"\"%s%s\" noenhanced",
			i, g->curves[i].used ? "2.4" : "1.6", g->curves[i].used ? 1 : 2,
			gnuplot_colour(i), g->curves[i].name,
			g->curves[i].used ? "" : " (never used)");
	if (g->crossings)
		fprintf(out,
			", \\\n  $crossings using 1:2 with points pt 7 ps 0.9 lc rgb \"#202020\" "
			"title \"change of protocol\"");
	fprintf(out, "\n");
}

int info_graph(const struct weft_plan *plan, enum weft_op op, const char *title, const char *file)
{
	struct graph *g = calloc(1, sizeof(*g));
	char text[300];
	FILE *out;

	if (!g) {
		cli_error("no memory");
		return APP_FAIL;
	}
	g->plan = plan;
	g->op = op;
	find_curves(g);
	find_crossings(g);
	snprintf(text, sizeof(text), "%s over %s", weft_op_name(op), title);
	out = gnuplot_open(file, text);
	if (out)
		write_script(out, g);
	free(g);
	return gnuplot_close(out, file);
}
