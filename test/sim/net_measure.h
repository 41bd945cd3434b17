/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net_measure.h
 * Figures of a run under congestion: shares, quantiles, spread over seeds.
 */
#ifndef SIM_NET_MEASURE_H
#define SIM_NET_MEASURE_H

#include <stdint.h>

/** Samples of a time, in ns. */
struct net_samples {
	uint64_t *value;
	unsigned int num, max;
};

void net_samples_add(struct net_samples *s, uint64_t value);
/** The value below which @p share of all are (0.5 = median), in ns; 0 without samples. Sorts. */
uint64_t net_samples_at(struct net_samples *s, double share);
void net_samples_free(struct net_samples *s);

/** Jain's fairness index: 1 = all equal, 1/n = one has all, 0 = none has anything. */
double net_jain(const double *share, unsigned int n);

/** Median, least and greatest of a figure over seeds; sorts @p v. */
struct net_spread {
	double median, min, max;
};

struct net_spread net_spread(double *v, unsigned int n);

#endif /* SIM_NET_MEASURE_H */
