/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/sweep.h
 * weft-perf --sweep: every usable protocol forced at every size, what the model predicted and what
 * was measured, and what the automatic choice loses against the best forced one.
 *
 * One size is judged in two rounds, so that luck does not pick the winner: each candidate is
 * measured a few times in alternation, then the automatic choice and the best of the others again,
 * in pairs. A pair is over in some hundredths of a second, so what changes the machine's speed for
 * longer (cores that are near or far from each other) changes both alike: the **loss** is the
 * median over the pairs of how much longer the automatic choice took than its rival, the **spread**
 * the range between the quartiles of that. A choice is good when the loss is at most 10 % beyond
 * the spread.
 */
#ifndef APP_PERF_SWEEP_H
#define APP_PERF_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#define SWEEP_PROTOS 16u     /**< candidates of one size */
#define SWEEP_TRIALS_MAX 32u /**< of one candidate */
#define SWEEP_LIMIT 0.10     /**< loss beyond the spread that is still good */

/** Median and quartiles of some trials. */
struct sweep_stat {
	double median, q1, q3; /**< s */
};

/** One protocol at one size. */
struct sweep_proto {
	char name[32];
	double predicted; /**< s, one way */
	double trial[SWEEP_TRIALS_MAX];
	unsigned int trials;
};

/** One size. */
struct sweep_point {
	uint64_t size;
	struct sweep_proto proto[SWEEP_PROTOS];
	unsigned int num;
	unsigned int chosen; /**< what the library uses by itself */
	unsigned int rival;  /**< best of the others; = chosen when there is none */
	unsigned int best;   /**< chosen or rival */
	double loss, spread; /**< part of the rival's time; a loss below 0 counts as 0 */
};

/** Add a trial; more than SWEEP_TRIALS_MAX are ignored. */
void sweep_add(struct sweep_proto *p, double seconds);
struct sweep_stat sweep_stat(const struct sweep_proto *p);
/** Find the rival by what has been measured so far. */
void sweep_rival(struct sweep_point *pt);
/** From trials in pairs: which one is best, and what the chosen one loses. */
void sweep_judge(struct sweep_point *pt);
static inline bool sweep_good(const struct sweep_point *pt)
{
	return pt->loss <= SWEEP_LIMIT + pt->spread;
}

/**
 * A size at which one protocol overtakes another, between two neighbouring sizes: where the
 * straight lines through both points meet.
 * @return bytes, or -1 when they don't cross between @p a and @p b
 */
double sweep_crossing(const struct sweep_point *a, const struct sweep_point *b, const char *from,
		      const char *to, bool predicted);

/* ---- printing (perf/sweep_print.c) */

void sweep_print_begin(bool csv);
void sweep_print_point(const struct sweep_point *pt, bool csv);
/** Crossings and the verdict. */
void sweep_print_end(const struct sweep_point *pts, unsigned int num, bool csv);
/**
 * Draw predicted and measured times with gnuplot into @p path (.svg or .png). @return APP_OK or an
 * exit code after an error message
 */
int sweep_draw(const struct sweep_point *pts, unsigned int num, const char *path);

#endif /* APP_PERF_SWEEP_H */
