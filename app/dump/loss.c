/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of loss. Queues and policers drop the excess over their rate: lost frames follow many
 * bytes, or frames that had waited. Bursts lose neighbours, independent of the load. All other loss
 * is random.
 */

#include <math.h>

#include "dump/trace.h"

#define RANK_LIMIT 0.62 /* and three times the deviation that chance would give */
#define LONG_RUN 4.5    /* frames lost in a row, on average: queues lose fewer */
#define SHORT_RUN 2.0

/*
 * The probability that a lost frame had more in front of it than a frame that arrived (0.5 = no
 * correlation). Counts frames sent from the first loss on.
 */
static double rank_of(const struct trace_flow *f, bool by_delay)
{
	double better = 0, pairs = 0, a, b;
	unsigned int i, j;

	for (i = 0; i < f->num_gone; i++) {
		for (j = 0; j < f->num_came; j++) {
			if (f->came[j].time < f->first_lost)
				continue;
			a = by_delay ? (double)f->gone[i].delay : f->gone[i].load;
			b = by_delay ? (double)f->came[j].delay : f->came[j].load;
			better += a > b ? 1 : a == b ? 0.5 : 0;
			pairs++;
		}
	}
	return pairs > 0 ? better / pairs : 0.5;
}

enum trace_fault trace_kind_of_loss(const struct trace_flow *f)
{
	double run = (double)f->lost / (double)f->runs, load = rank_of(f, false),
	       delay = rank_of(f, true), limit = 0.5 + 3 / sqrt(12.0 * f->num_gone);

	if (limit < RANK_LIMIT)
		limit = RANK_LIMIT;
	if (run < LONG_RUN && (load >= limit || delay >= limit))
		return FAULT_QUEUE_LOSS;
	return run >= SHORT_RUN ? FAULT_BURST_LOSS : FAULT_RANDOM_LOSS;
}
