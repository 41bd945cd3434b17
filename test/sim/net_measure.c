/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "net_measure.h"
#include "sim.h"

void net_samples_add(struct net_samples *s, uint64_t value)
{
	if (s->num == s->max) {
		s->max = s->max ? 2 * s->max : 1024;
		s->value = realloc(s->value, s->max * sizeof(*s->value));
		if (!s->value)
			abort();
	}
	s->value[s->num++] = value;
}

uint64_t net_samples_at(struct net_samples *s, double share)
{
	unsigned int i = (unsigned int)(share * s->num);

	if (!s->num)
		return 0;
	qsort(s->value, s->num, sizeof(*s->value), sim_by_value);
	return s->value[i < s->num ? i : s->num - 1];
}

void net_samples_free(struct net_samples *s)
{
	free(s->value);
	*s = (struct net_samples){0};
}

double net_jain(const double *share, unsigned int n)
{
	double sum = 0, squares = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		sum += share[i];
		squares += share[i] * share[i];
	}
	return squares > 0 ? sum * sum / (n * squares) : 0;
}

static int by_double(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct net_spread net_spread(double *v, unsigned int n)
{
	if (!n)
		return (struct net_spread){0};
	qsort(v, n, sizeof(*v), by_double);
	return (struct net_spread){
		.median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2,
		.min = v[0],
		.max = v[n - 1],
	};
}
