/* SPDX-License-Identifier: BSD-3-Clause */
/* --sweep: measures every candidate of every size, prints and draws; perf/sweep.h evaluates. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/gnuplot.h"
#include "perf/run.h"
#include "perf/sweep.h"
#include "weft_plan.h"

#define MAX_NAMES 16u

struct names {
	const char *name[MAX_NAMES];
	unsigned int num;
};

static void add_name(struct names *n, const char *name)
{
	for (unsigned int i = 0; i < n->num; i++)
		if (strcmp(n->name[i], name) == 0)
			return;
	if (n->num < MAX_NAMES)
		n->name[n->num++] = name;
}

/* Columns: size in bytes; predicted time, median and quartiles in us. */
static void write_proto(FILE *out, const struct sweep_point *pts, unsigned int num,
			const char *name)
{
	for (unsigned int i = 0; i < num; i++) {
		for (unsigned int k = 0; k < pts[i].num; k++) {
			const struct sweep_proto *p = &pts[i].proto[k];
			struct sweep_stat s = sweep_stat(p);

			if (strcmp(p->name, name) == 0)
				fprintf(out, "%" PRIu64 " %.9g %.9g %.9g %.9g\n", pts[i].size,
					p->predicted * 1e6, s.median * 1e6, s.q1 * 1e6, s.q3 * 1e6);
		}
	}
}

static void write_data(FILE *out, const struct sweep_point *pts, unsigned int num,
		       const struct names *n)
{
	for (unsigned int i = 0; i < n->num; i++) {
		fprintf(out, "$proto%u << EOD\n", i);
		write_proto(out, pts, num, n->name[i]);
		fprintf(out, "EOD\n");
	}
	fprintf(out, "$chosen << EOD\n");
	for (unsigned int i = 0; i < num; i++)
		fprintf(out, "%" PRIu64 " %.9g\n", pts[i].size,
			sweep_stat(&pts[i].proto[pts[i].chosen]).median * 1e6);
	fprintf(out, "EOD\n");
}

static int sweep_draw(const struct sweep_point *pts, unsigned int num, const char *path)
{
	FILE *out = gnuplot_open(path, "every protocol at every size: measured (points, quartiles) "
				       "and predicted (dashed)");
	struct names n = {.num = 0};

	if (!out || num == 0)
		return gnuplot_close(out, path);
	for (unsigned int i = 0; i < num; i++)
		for (unsigned int k = 0; k < pts[i].num; k++)
			add_name(&n, pts[i].proto[k].name);
	write_data(out, pts, num, &n);
	gnuplot_size_time_axes(out, (double)pts[num - 1].size, "half round trip");
	fprintf(out, "plot $chosen using 1:2 with lines lw 9 lc rgb \"#D4D4D4\" title \"chosen\"");
	for (unsigned int i = 0; i < n.num; i++)
		fprintf(out,
			", \\\n  $proto%u using 1:2 with lines lw 1.4 dt 2 lc rgb \"%s\" notitle"
			", \\\n  $proto%u using 1:3:4:5 with yerrorlines lw 1.8 pt 7 ps 0.5 lc rgb "
			"\"%s\" title \"%s\" noenhanced",
			i, gnuplot_colour(i), i, gnuplot_colour(i), n.name[i]);
	fprintf(out, "\n");
	return gnuplot_close(out, path);
}

/* ---- output --------------------------------------------------------------------------------- */

static void sweep_print_begin(bool csv)
{
	if (csv)
		printf("size,protocol,predicted_us,measured_us,q1_us,q3_us,trials,chosen,best,"
		       "loss_percent,spread_percent,version\n");
	else
		printf("\nhalf round trips in us: measured (predicted); * = chosen, + = best where "
		       "that is another one\n\n%8s  %7s %7s  %s\n",
		       "size", "loss %", "spread", "protocols");
	fflush(stdout);
}

static void csv_point(const struct sweep_point *pt)
{
	for (unsigned int i = 0; i < pt->num; i++) {
		const struct sweep_proto *p = &pt->proto[i];
		struct sweep_stat s = sweep_stat(p);

		printf("%" PRIu64 ",%s,%.3f,%.3f,%.3f,%.3f,%u,%d,%d,%.2f,%.2f,%d\n", pt->size,
		       p->name, p->predicted * 1e6, s.median * 1e6, s.q1 * 1e6, s.q3 * 1e6,
		       p->trials, i == pt->chosen, i == pt->best, pt->loss * 100, pt->spread * 100,
		       PERF_FORMAT_VERSION);
	}
}

static void sweep_print_point(const struct sweep_point *pt, bool csv)
{
	char size[24];

	if (csv) {
		csv_point(pt);
		fflush(stdout);
		return;
	}
	printf("%8s  %7.1f %7.1f ", cli_size_text(pt->size, size, sizeof(size)), pt->loss * 100,
	       pt->spread * 100);
	for (unsigned int i = 0; i < pt->num; i++) {
		const struct sweep_proto *p = &pt->proto[i];

		printf(" %s%s%s %.2f (%.2f)", i ? "| " : "", p->name,
		       i == pt->chosen ? "*"
		       : i == pt->best ? "+"
				       : "",
		       sweep_stat(p).median * 1e6, p->predicted * 1e6);
	}
	printf("%s\n", sweep_good(pt) ? "" : "  <-- loses");
	fflush(stdout);
}

static void crossings_of(const struct sweep_point *pts, unsigned int num, const char *from,
			 const char *to, bool predicted, char *buf, size_t len)
{
	size_t at = 0;

	snprintf(buf, len, "-");
	for (unsigned int i = 0; i + 1 < num && at < len; i++) {
		double x = sweep_crossing(&pts[i], &pts[i + 1], from, to, predicted);

		if (x >= 0)
			at += (size_t)snprintf(buf + at, len - at, "%s%.0f", at ? ", " : "", x);
	}
}

/* Only crossings of protocols that follow each other in the automatic choice are printed. */
static void print_crossings(const struct sweep_point *pts, unsigned int num)
{
	char measured[128], predicted[128];

	for (unsigned int i = 0; i + 1 < num; i++) {
		const char *from = pts[i].proto[pts[i].chosen].name;
		const char *to = pts[i + 1].proto[pts[i + 1].chosen].name;

		if (strcmp(from, to) == 0)
			continue;
		crossings_of(pts, num, from, to, false, measured, sizeof(measured));
		crossings_of(pts, num, from, to, true, predicted, sizeof(predicted));
		printf("  %s -> %s: the choice changes between %" PRIu64 " and %" PRIu64
		       " bytes; the two cross at %s (measured), %s (predicted)\n",
		       from, to, pts[i].size, pts[i + 1].size, measured, predicted);
	}
}

static void sweep_print_end(const struct sweep_point *pts, unsigned int num, bool csv)
{
	unsigned int good = 0, worst = 0;

	for (unsigned int i = 0; i < num; i++) {
		good += sweep_good(&pts[i]);
		if (pts[i].loss - pts[i].spread > pts[worst].loss - pts[worst].spread)
			worst = i;
	}
	if (csv || num == 0)
		return;
	printf("\ncrossings, bytes:\n");
	print_crossings(pts, num);
	printf("\nthe automatic choice loses at most %.0f %% beyond the spread at %u of %u sizes "
	       "(%.1f %%);\n"
	       "the most at %" PRIu64 " bytes: %.1f %% with a spread of %.1f %%\n",
	       SWEEP_LIMIT * 100, good, num, 100.0 * good / num, pts[worst].size,
	       pts[worst].loss * 100, pts[worst].spread * 100);
	fflush(stdout);
}

/* ---- measurement ---------------------------------------------------------------------------- */

#define FIRST_TRIALS 3u  /* trials of each candidate */
#define SECOND_TRIALS 9u /* trials of the choice and of its best rival, in alternation */
#define TRIAL_SECONDS 0.02
#define MIN_ITERS 4u
#define MAX_ITERS 20000u

/* @param proto  "" = the library's choice. @param[out] seconds  half round trip */
static int trial(struct perf_session *s, uint64_t size, const char *proto, uint64_t iters,
		 double *seconds)
{
	struct perf_run run = {.test = PERF_TAG_LAT,
			       .size = size,
			       .iters = iters,
			       .window = 1,
			       .flags = s->opts->flags};
	struct perf_side side = {.peer = &s->peer, .run = &run, .meter = s->meter};
	struct perf_remote remote = {0};
	struct perf_figures f;
	int ret;

	perf_force_put(&run, proto);
	ret = perf_measure(s, &run, &side, &remote);
	perf_meter_read(s->meter, &f);
	*seconds = f.p50 / 2;
	return ret;
}

static uint64_t iterations(const struct perf_options *o, double half_rtt)
{
	double want = (o->seconds_given ? o->seconds : TRIAL_SECONDS) / (2 * half_rtt + 1e-9);

	if (o->iters)
		return o->iters;
	return want < MIN_ITERS ? MIN_ITERS : want > MAX_ITERS ? MAX_ITERS : (uint64_t)want;
}

static int find_candidates(struct perf_session *s, struct sweep_point *pt)
{
	struct weft_proto_info info = {.size = sizeof(info)};

	struct weft_plan *plan = NULL;

	/* The protocol of the last trial is still forced. */
	weft_ep_force_proto(s->peer.ep, NULL);
	weft_plan_of_ep(s->peer.ep, &plan);
	for (unsigned int i = 0; plan && pt->num < SWEEP_PROTOS; i++) {
		struct sweep_proto *p = &pt->proto[pt->num];

		if (weft_plan_query(plan, WEFT_OP_TAG_SEND, pt->size, i, &info))
			break;
		if (!info.usable)
			continue;
		memcpy(p->name, info.name, sizeof(p->name));
		p->predicted = info.time;
		if (info.chosen)
			pt->chosen = pt->num;
		pt->num++;
	}
	weft_plan_destroy(plan);
	if (pt->num)
		return APP_OK;
	cli_error("the connection has failed, or no protocol carries %llu bytes: check that the "
		  "server runs",
		  (unsigned long long)pt->size);
	return peer_fail(&s->peer, APP_FAIL);
}

static int trials_of(struct perf_session *s, struct sweep_point *pt, const unsigned int *which,
		     unsigned int num, unsigned int rounds, uint64_t iters)
{
	double seconds;
	int ret = APP_OK;

	for (unsigned int r = 0; r < rounds && !ret; r++) {
		for (unsigned int i = 0; i < num && !ret; i++) {
			/* Alternate the order: a drift of the machine's speed favours none. */
			struct sweep_proto *p = &pt->proto[which[r & 1 ? num - 1 - i : i]];

			ret = trial(s, pt->size, p->name, iters, &seconds);
			if (!ret)
				sweep_add(p, seconds);
		}
	}
	return ret;
}

static int sweep_size(struct perf_session *s, struct sweep_point *pt)
{
	unsigned int all[SWEEP_PROTOS], two[2];
	double seconds = 0;
	uint64_t iters;
	int ret = find_candidates(s, pt);

	for (unsigned int i = 0; i < pt->num; i++)
		all[i] = i;
	if (!ret)
		ret = trial(s, pt->size, "", MIN_ITERS, &seconds);
	if (ret)
		return ret;
	iters = iterations(s->opts, seconds);
	ret = trials_of(s, pt, all, pt->num, FIRST_TRIALS, iters);
	sweep_rival(pt);
	two[0] = pt->chosen;
	two[1] = pt->rival;
	if (!ret && two[0] != two[1]) {
		/* The first round's winner may be one by chance: only the second counts. */
		pt->proto[two[0]].trials = pt->proto[two[1]].trials = 0;
		ret = trials_of(s, pt, two, 2, SECOND_TRIALS, iters);
	}
	sweep_judge(pt);
	return ret;
}

int perf_sweep(struct perf_session *s)
{
	const struct perf_options *o = s->opts;
	struct sweep_point *pts = calloc(o->sizes.count, sizeof(*pts));
	double seconds;
	int ret = APP_OK;

	if (!pts)
		return peer_fail(&s->peer, APP_FAIL);
	sweep_print_begin(o->csv);
	ret = trial(s, 8, "", 10000, &seconds);
	for (unsigned int i = 0; i < o->sizes.count && !ret; i++) {
		pts[i].size = o->sizes.size[i];
		ret = sweep_size(s, &pts[i]);
		if (!ret)
			sweep_print_point(&pts[i], o->csv);
	}
	if (!ret)
		sweep_print_end(pts, o->sizes.count, o->csv);
	if (!ret && o->graph)
		ret = sweep_draw(pts, o->sizes.count, o->graph);
	free(pts);
	return ret;
}
