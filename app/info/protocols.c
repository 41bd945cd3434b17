/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/gnuplot.h"
#include "info/commands.h"
#include "weft_plan.h"

/* ---- the graph ------------------------------------------------------------------------------ */

#define STEPS 12 /* samples for each doubling of the size */
#define MAX_CURVES 16
#define MAX_CROSSINGS 24
#define SMALLEST 1.0
#define DEFAULT_TOP (4.0 * 1024 * 1024)
#define LARGEST (4.0 * 1024 * 1024 * 1024)

struct curve {
	unsigned int index; /* argument of weft_plan_query() */
	char name[32];
	size_t min, max;
	bool used; /* chosen for at least one size */
};

struct graph {
	const struct weft_plan *plan;
	enum weft_op op;
	struct curve curves[MAX_CURVES];
	unsigned int num;
	size_t crossing[MAX_CROSSINGS]; /* size from which another protocol is chosen */
	double at[MAX_CROSSINGS];       /* predicted time at that size, us */
	unsigned int crossings;
	double top;
};

/* @return position in g->curves of the chosen protocol; -1 = none. @param[out] us  its time */
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
		/* Between two samples there may be several changes: a bisection finds one. */
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
			/* The curve ends exactly at the largest size of the protocol. */
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

/* Draw a dotted line down to the axis, and a label there, at each size where the choice changes. */
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

/* For a single constant curve, as of atomics, the range of gnuplot would be empty. */
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

/* @param file  ends in .svg or .png. @return 0, or an exit code after an error message */
static int info_graph(const struct weft_plan *plan, enum weft_op op, const char *title,
		      const char *file)
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

/* ---- options and tables --------------------------------------------------------------------- */

struct options {
	const char *lanes, *graph;
	enum weft_op op;
	enum weft_plan_format format;
	bool format_given, explain;
	uint64_t size;
	struct weft_config *config;
};

static int set_lanes(void *options, const char *option, const char *text)
{
	(void)option;
	((struct options *)options)->lanes = text;
	return APP_OK;
}

static int set_format(void *options, const char *option, const char *text)
{
	static const char *const names[] = {"table", "csv", "text"};
	struct options *o = options;

	(void)option;
	o->format_given = true;
	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			o->format = (enum weft_plan_format)i;
			return APP_OK;
		}
	}
	cli_error("--format '%s': expected table, csv or text", text);
	return APP_USAGE;
}

static int set_op(void *options, const char *option, const char *text)
{
	int op = weft_op_find(text);

	(void)option;
	if (op >= 0) {
		((struct options *)options)->op = (enum weft_op)op;
		return APP_OK;
	}
	cli_error("--op '%s': expected tag_send, tag_send_sync, am_send, put, get, amo, amo_fetch, "
		  "fadd, cswap or rndv_data",
		  text);
	return APP_USAGE;
}

static int set_size(void *options, const char *option, const char *text)
{
	struct options *o = options;

	(void)option;
	o->explain = true;
	return cli_size("--explain", text, &o->size) ? APP_USAGE : APP_OK;
}

static int set_config(void *options, const char *option, const char *text)
{
	const char *eq = strchr(text, '=');
	char name[64];
	int rc;

	(void)option;
	if (!eq || (size_t)(eq - text) >= sizeof(name)) {
		cli_error("--set '%s': expected NAME=VALUE", text);
		return APP_USAGE;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
	rc = weft_config_modify(((struct options *)options)->config, name, eq + 1);
	/* The library has logged the error. */
	return rc < 0 ? APP_USAGE : APP_OK;
}

static int set_graph(void *options, const char *option, const char *text)
{
	(void)option;
	((struct options *)options)->graph = text;
	return gnuplot_check_name(text);
}

static const struct cli_option table[] = {
	{"lanes", 'L', "FILE",
	 "profile of the lanes ('-': standard input); see weft-info(1) and "
	 "PREFIX/share/doc/weft/profiles",
	 .set = set_lanes},
	{"op", 'o', "OPERATION",
	 "tag_send (default), tag_send_sync, am_send, put, get, amo, amo_fetch (or fadd, cswap), "
	 "rndv_data",
	 .set = set_op},
	{"format", 'f', "FORMAT", "table (default), csv or text", .set = set_format},
	{"explain", 'e', "SIZE", "the time of each protocol for this size, term by term",
	 .set = set_size},
	{"graph", 'g', "FILE", "draw the curves with gnuplot into FILE (.svg or .png)",
	 .set = set_graph},
	{"set", 'S', "NAME=VALUE", "set a configuration variable, e.g. RNDV_THRESH=model",
	 .set = set_config},
	{0},
};

static const struct cli_command command = {
	.name = "weft-info protocols",
	.usage = "usage: weft-info protocols --lanes FILE [options]\n"
		 "\n"
		 "Prints which protocol Weft would use for which message size over some lanes, and "
		 "why. The lanes come\n"
		 "from a file: no port, no EAL and no rights are needed. Running programs print "
		 "the same about their own\n"
		 "lanes with WEFT_PROTO_INFO=y.\n"
		 "\n",
	.options = table,
	.after = {"\nExit code: 0 all well, 1 the lanes do not carry the operation or nothing "
		  "could be written, 2 wrong usage\n"
		  "or profile.\n"},
};

static int parse(struct options *o, int argc, char **argv)
{
	int ret = cli_options_parse(&command, o, argc, argv);

	if (ret)
		return ret;
	if (optind < argc) {
		cli_error("'%s' is no option of protocols; see weft-info protocols --help",
			  argv[optind]);
		return APP_USAGE;
	}
	if (o->lanes)
		return APP_OK;
	cli_error("give --lanes FILE, a file that describes the lanes; there are examples in "
		  "PREFIX/share/doc/weft/profiles (PREFIX: of the installation). A running program "
		  "prints the choice for its own lanes with WEFT_PROTO_INFO=y");
	return APP_USAGE;
}

static int read_plan(const struct options *o, struct weft_plan **plan)
{
	bool input = strcmp(o->lanes, "-") == 0;
	FILE *in = input ? stdin : fopen(o->lanes, "re");
	char why[512];
	int rc;

	if (!in) {
		cli_error("--lanes %s: %s", o->lanes, strerror(errno));
		return APP_USAGE;
	}
	rc = weft_plan_read(o->config, in, input ? "standard input" : o->lanes, plan, why,
			    sizeof(why));
	if (!input)
		fclose(in);
	if (rc == 0)
		return APP_OK;
	cli_error("%s", why);
	return rc == -EINVAL || rc == -EIO ? APP_USAGE : APP_FAIL;
}

static int show(const struct options *o, const struct weft_plan *plan)
{
	int rc = 0;

	if (o->format_given || (!o->explain && !o->graph))
		rc = weft_plan_print(plan, stdout, o->op, o->format);
	if (rc == 0 && o->explain)
		rc = weft_plan_explain(plan, stdout, o->op, (size_t)o->size);
	if (fflush(stdout) || ferror(stdout)) {
		cli_error("standard output: %s", strerror(errno));
		return APP_FAIL;
	}
	if (rc == 0 && o->graph)
		return info_graph(plan, o->op, o->lanes, o->graph);
	return rc ? APP_FAIL : APP_OK;
}

int info_protocols(int argc, char **argv)
{
	struct options o = {.op = WEFT_OP_TAG_SEND};
	struct weft_plan *plan = NULL;
	int ret;

	if (!cli_wants_help(argc, argv) && weft_config_read(&o.config) < 0) {
		cli_error("the configuration is invalid (see above); weft-info -c lists all "
			  "variables");
		return APP_USAGE;
	}
	optind = 1;
	ret = parse(&o, argc, argv);
	if (ret == APP_OK)
		ret = read_plan(&o, &plan);
	if (ret == APP_OK)
		ret = show(&o, plan);
	weft_plan_destroy(plan);
	weft_config_release(o.config);
	return ret < 0 ? APP_OK : ret;
}
