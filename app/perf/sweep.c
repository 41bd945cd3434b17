/* SPDX-License-Identifier: BSD-3-Clause */
/* Evaluation of a sweep: medians, losses, crossings. Pure. */

#include <stdlib.h>
#include <string.h>

#include "perf/sweep.h"

void sweep_add(struct sweep_proto *p, double seconds)
{
	if (p->trials < SWEEP_TRIALS_MAX)
		p->trial[p->trials++] = seconds;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const double *sorted, unsigned int num, double q)
{
	double at = q * (double)(num - 1);
	unsigned int i = (unsigned int)at;

	if (i + 1 >= num)
		return sorted[num - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static struct sweep_stat stat_of(const double *values, unsigned int num)
{
	double sorted[SWEEP_TRIALS_MAX];

	if (num == 0)
		return (struct sweep_stat){0};
	memcpy(sorted, values, num * sizeof(sorted[0]));
	qsort(sorted, num, sizeof(sorted[0]), by_value);
	return (struct sweep_stat){
		.median = quantile(sorted, num, 0.5),
		.q1 = quantile(sorted, num, 0.25),
		.q3 = quantile(sorted, num, 0.75),
	};
}

struct sweep_stat sweep_stat(const struct sweep_proto *p)
{
	return stat_of(p->trial, p->trials);
}

void sweep_rival(struct sweep_point *pt)
{
	pt->rival = pt->chosen;
	for (unsigned int i = 0; i < pt->num; i++) {
		if (i == pt->chosen || pt->proto[i].trials == 0)
			continue;
		if (pt->rival == pt->chosen ||
		    sweep_stat(&pt->proto[i]).median < sweep_stat(&pt->proto[pt->rival]).median)
			pt->rival = i;
	}
}

void sweep_judge(struct sweep_point *pt)
{
	const struct sweep_proto *c = &pt->proto[pt->chosen], *r = &pt->proto[pt->rival];
	unsigned int pairs = c->trials < r->trials ? c->trials : r->trials;
	double ratio[SWEEP_TRIALS_MAX];
	struct sweep_stat s;

	pt->best = pt->chosen;
	pt->loss = pt->spread = 0;
	if (pt->chosen == pt->rival || pairs == 0)
		return;
	for (unsigned int i = 0; i < pairs; i++)
		ratio[i] = c->trial[i] / r->trial[i];
	s = stat_of(ratio, pairs);
	pt->spread = s.q3 - s.q1;
	if (s.median > 1) {
		pt->loss = s.median - 1;
		pt->best = pt->rival;
	}
}

/* @return -1: the protocol can't carry that size, or was not measured */
static double time_at(const struct sweep_point *pt, const char *name, bool predicted)
{
	for (unsigned int i = 0; i < pt->num; i++)
		if (strcmp(pt->proto[i].name, name) == 0 && (predicted || pt->proto[i].trials))
			return predicted ? pt->proto[i].predicted
					 : sweep_stat(&pt->proto[i]).median;
	return -1;
}

double sweep_crossing(const struct sweep_point *a, const struct sweep_point *b, const char *from,
		      const char *to, bool predicted)
{
	double fa = time_at(a, from, predicted), fb = time_at(b, from, predicted);
	double ta = time_at(a, to, predicted), tb = time_at(b, to, predicted);
	double before = ta - fa, after = tb - fb;

	if (fa < 0 || fb < 0 || ta < 0 || tb < 0 || before <= 0 || after > 0)
		return -1;
	return (double)a->size + (double)(b->size - a->size) * before / (before - after);
}
