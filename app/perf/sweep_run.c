/* SPDX-License-Identifier: BSD-3-Clause */
/* --sweep: measures every candidate of every size; perf/sweep.h describes the evaluation. */

#include <stdlib.h>
#include <string.h>

#include "perf/session.h"
#include "perf/sweep.h"
#include "weft_plan.h"

#define FIRST_TRIALS 3u  /* of each candidate */
#define SECOND_TRIALS 9u /* of the chosen one and its best rival, in alternation */
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
	cli_error("no protocol can be forced for %llu bytes", (unsigned long long)pt->size);
	return peer_fail(&s->peer, APP_FAIL);
}

static int trials_of(struct perf_session *s, struct sweep_point *pt, const unsigned int *which,
		     unsigned int num, unsigned int rounds, uint64_t iters)
{
	double seconds;
	int ret = APP_OK;

	for (unsigned int r = 0; r < rounds && !ret; r++) {
		for (unsigned int i = 0; i < num && !ret; i++) {
			/* Alternate the order, so that each order is as frequent as the other. */
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
		/*
		 * The winner of the first round may be one by chance: only the second round counts.
		 */
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
	/* Warm-up. */
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
