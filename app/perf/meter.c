/* SPDX-License-Identifier: BSD-3-Clause */

#include "perf/meter.h"

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "common/sys.h"

static uint64_t origin_tsc;
static double origin_seconds;

/*
 * The EAL may have the TSC's rate only to within 10 MHz. So measure it against the kernel's clock:
 * the longer the program runs, the more accurate this is.
 */
static double tsc_rate(void)
{
	double seconds = sys_seconds() - origin_seconds;

	return seconds < 0.02 ? (double)rte_get_tsc_hz()
			      : (double)(rte_rdtsc() - origin_tsc) / seconds;
}

void perf_meter_start(struct perf_meter *m)
{
	memset(m, 0, sizeof(*m));
	if (!origin_tsc) {
		origin_seconds = sys_seconds();
		origin_tsc = rte_rdtsc();
	}
	m->start = rte_rdtsc();
	m->last = m->start;
	m->report_time = m->start;
	m->next_tick = m->start + rte_get_tsc_hz();
}

void perf_meter_mark(struct perf_meter *m)
{
	m->report_time = m->last;
	m->report_iters = m->iters;
	m->next_tick = m->last + rte_get_tsc_hz();
}

/* Middle of a histogram bucket. */
static double bucket_value(unsigned int index)
{
	unsigned int shift = index >> PERF_HIST_BITS;
	uint64_t low = index & ((1u << PERF_HIST_BITS) - 1);

	if (!shift)
		return (double)low;
	low |= 1u << PERF_HIST_BITS;
	return ((double)low + 0.5) * (double)(1ull << (shift - 1));
}

static double percentile(const struct perf_meter *m, double part)
{
	double want = part * (double)m->iters;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < PERF_HIST_SIZE; i++) {
		sum += m->hist[i];
		if (sum && (double)sum >= want)
			return bucket_value(i);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double recent_median(const struct perf_meter *m)
{
	uint64_t sorted[PERF_RECENT];
	uint32_t count = m->recent_at < PERF_RECENT ? m->recent_at : PERF_RECENT;

	if (!count)
		return 0;
	memcpy(sorted, m->recent, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare);
	return (double)sorted[count / 2];
}

void perf_meter_read(const struct perf_meter *m, struct perf_figures *f)
{
	uint64_t since = m->iters - m->report_iters;
	double hz = tsc_rate();

	memset(f, 0, sizeof(*f));
	f->iters = m->iters;
	if (!m->iters)
		return;
	f->recent_median = recent_median(m) / hz;
	f->overall = (double)(m->last - m->start) / (double)m->iters / hz;
	f->average = since ? (double)(m->last - m->report_time) / (double)since / hz : f->overall;
	f->p50 = percentile(m, 0.5) / hz;
	f->p99 = percentile(m, 0.99) / hz;
	f->p999 = percentile(m, 0.999) / hz;
}
