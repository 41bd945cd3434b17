/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/hist.h
 * A histogram of times with buckets of growing width: quantiles to within an eighth, in constant
 * memory.
 */
#ifndef DUMP_HIST_H
#define DUMP_HIST_H

#include <stdint.h>

#define HIST_SUB 8u /**< buckets of a power of two */

struct hist {
	uint64_t count, max;
	uint32_t bucket[(64 - 2) * HIST_SUB];
};

void hist_add(struct hist *h, uint64_t ns);
/** @param q  0 .. 1. @return the middle of the bucket in which it lies, at most the maximum */
uint64_t hist_quantile(const struct hist *h, double q);

#endif /* DUMP_HIST_H */
