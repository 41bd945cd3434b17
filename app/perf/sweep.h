/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/sweep.h
 * weft-perf --sweep: every usable protocol forced at every size, with predicted and measured times,
 * and the loss of the automatic choice against the best forced protocol.
 *
 * Each size is measured in two rounds, so that chance does not choose the winner. In the first,
 * each candidate is measured a few times in alternation. In the second, the automatic choice and
 * the best of the others are measured again, in pairs. A pair takes some hundredths of a second, so
 * slower changes of the machine's speed (cores that are near or far from each other) affect both
 * alike. The **loss** is the median over the pairs of the extra time of the automatic choice, and
 * the **spread** is the range between its quartiles. A choice is good when the loss is at most 10 %
 * beyond the spread.
 */
#ifndef APP_PERF_SWEEP_H
#define APP_PERF_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#define SWEEP_PROTOS 16u     /**< candidates of one size */
#define SWEEP_TRIALS_MAX 32u /**< trials of one candidate */
#define SWEEP_LIMIT 0.10     /**< loss beyond the spread that is still good */

struct sweep_stat {
	double median, q1, q3; /**< s */
};

struct sweep_proto {
	char name[32];
	double predicted;               /**< s, one way */
	double trial[SWEEP_TRIALS_MAX]; /**< s, one way */
	unsigned int trials;
};

struct sweep_point {
	uint64_t size;
	struct sweep_proto proto[SWEEP_PROTOS];
	unsigned int num;
	unsigned int chosen; /**< the choice of the library */
	unsigned int rival;  /**< best of the others; = chosen when there is none */
	unsigned int best;   /**< chosen or rival */
	double loss, spread; /**< part of the rival's time; a loss below 0 counts as 0 */
};

/** Add a trial; more than SWEEP_TRIALS_MAX are ignored. */
void sweep_add(struct sweep_proto *p, double seconds);
struct sweep_stat sweep_stat(const struct sweep_proto *p);
/** Set `rival`, from the trials so far. */
void sweep_rival(struct sweep_point *pt);
/** Set `best`, `loss` and `spread`: trial N of `chosen` and trial N of `rival` are a pair. */
void sweep_judge(struct sweep_point *pt);
static inline bool sweep_good(const struct sweep_point *pt)
{
	return pt->loss <= SWEEP_LIMIT + pt->spread;
}

/**
 * The size at which @p to overtakes @p from: where the lines through their times meet.
 * @return bytes; -1: not between @p a and @p b, or a protocol has no time at one of them
 */
double sweep_crossing(const struct sweep_point *a, const struct sweep_point *b, const char *from,
		      const char *to, bool predicted);

struct perf_session;

/** Client: --sweep (perf/sweep_run.c). @return APP_OK or an exit code */
int perf_sweep(struct perf_session *s);

#endif /* APP_PERF_SWEEP_H */
