/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A path that got longer. A low quantile of delays is the path's: the median has the sender's own
 * queue, and the receiver's pauses. A sender with much in flight queues frames in its own port, so
 * a part of the growth is explained by what it had sent just before.
 */

#include <math.h>
#include <stdlib.h>

#include "dump/trace.h"

#define DELAY_NS 50000   /* smaller changes are no fault */
#define DELAY_FRAMES 10u /* before the change, and after it */
#define LOW 0.1          /* quantile that is compared */
#define OWN_NS 4         /* per byte sent just before: a port of 2 Gbit/s */

static int by_delay(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int64_t quantile(const struct trace_sample *s, unsigned int n, double q)
{
	static int64_t d[TRACE_SAMPLES];
	unsigned int i;

	for (i = 0; i < n; i++)
		d[i] = s[i].delay;
	qsort(d, n, sizeof(d[0]), by_delay);
	return d[(unsigned int)(q * (n - 1))];
}

static int64_t own_queue(const struct trace_sample *s, unsigned int n)
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		sum += s[i].load;
	return (int64_t)(sum / n) * OWN_NS;
}

/*
 * Find the sample from which on the delay is greater: the sum of the differences below the mean has
 * its maximum there. Delays are clipped at the quantile @clip. @return the sample, 0 = no growth
 */
static unsigned int grows(const struct trace_flow *f, double clip, struct trace_delay *d)
{
	unsigned int i, best = 0, n = f->num_came;
	double mean = 0, sum = 0, most = 0;
	int64_t most_of_all, own;

	if (n < 2 * DELAY_FRAMES)
		return 0;
	most_of_all = quantile(f->came, n, clip);
	for (i = 0; i < n; i++)
		mean += (double)RTE_MIN(f->came[i].delay, most_of_all) / n;
	for (i = 0; i < n; i++) {
		sum += mean - (double)RTE_MIN(f->came[i].delay, most_of_all);
		if (sum <= most)
			continue;
		most = sum;
		best = i + 1;
	}
	if (best < DELAY_FRAMES || best + DELAY_FRAMES > n)
		return 0;
	d->before = quantile(f->came, best, LOW);
	d->after = quantile(f->came + best, n - best, LOW);
	own = own_queue(f->came + best, n - best) - own_queue(f->came, best);
	if (own < 0)
		own = 0;
	return d->after - d->before - own > DELAY_NS && d->after > 2 * d->before ? best : 0;
}

bool trace_delayed(const struct trace_flow *f, struct trace_delay *d)
{
	unsigned int at = grows(f, 0.9, d);

	/* Senders whose window follows the delay use the lane less: it may have few slow frames. */
	if (!at)
		at = grows(f, 0.98, d);
	if (at)
		d->time = f->came[at].time;
	return at != 0;
}
