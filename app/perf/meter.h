/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/meter.h
 * Figures of a run: times of iterations by the TSC, their distribution, and rates.
 *
 * The figures have the meaning of those of ucx_perftest, so that they can be compared: "average" is
 * since the last report, "overall" since the start, and the first percentile is the median of the
 * last 2048 times. p50, p99 and p99.9 are of all times, from a histogram with buckets of a relative
 * width of at most 1/64.
 */
#ifndef APP_PERF_METER_H
#define APP_PERF_METER_H

#include <stdint.h>

#define PERF_RECENT 2048u
#define PERF_HIST_BITS 6u
#define PERF_HIST_SIZE ((64u - PERF_HIST_BITS + 1) << PERF_HIST_BITS)

struct perf_meter {
	uint64_t start, last; /* TSC */
	uint64_t iters;
	uint64_t report_time, report_iters; /* at the last report */
	uint64_t next_tick;                 /* TSC */
	uint32_t recent_at;
	uint64_t recent[PERF_RECENT];
	uint64_t hist[PERF_HIST_SIZE];
};

void perf_meter_start(struct perf_meter *m);

static inline unsigned int perf_hist_index(uint64_t v)
{
	unsigned int shift;

	if (v < 1u << PERF_HIST_BITS)
		return (unsigned int)v;
	shift = 63u - (unsigned int)__builtin_clzll(v) - PERF_HIST_BITS;
	return ((shift + 1) << PERF_HIST_BITS) +
	       (unsigned int)((v >> shift) & ((1u << PERF_HIST_BITS) - 1));
}

/**
 * @p count iterations have ended at @p now. @return non-zero when a line of progress is due
 */
static inline int perf_meter_add(struct perf_meter *m, uint64_t now, uint64_t count)
{
	uint64_t each = (now - m->last) / count;

	m->last = now;
	m->iters += count;
	m->recent[m->recent_at++ & (PERF_RECENT - 1)] = each;
	m->hist[perf_hist_index(each)] += count;
	return now >= m->next_tick;
}

/**
 * The figures of one line, in seconds and iterations/second. An iteration of a ping-pong is a round
 * trip.
 */
struct perf_figures {
	uint64_t iters;
	double recent_median;
	double average, overall; /* seconds per iteration */
	double p50, p99, p999;
};

/** Read the present figures. */
void perf_meter_read(const struct perf_meter *m, struct perf_figures *f);

/** The next "average" begins here. */
void perf_meter_mark(struct perf_meter *m);

#endif /* APP_PERF_METER_H */
