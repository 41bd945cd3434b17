/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/samples.h
 * The counters of all workers of running processes, at one time.
 */
#ifndef INFO_SAMPLES_H
#define INFO_SAMPLES_H

#include "info/query.h"

#define SAMPLES_MAX 32768u
#define LANES_MAX 64u

/** A counter of a lane, or of its worker (lane ""). */
struct sample {
	long pid;
	char worker[20], lane[64], name[80];
	double value;
};

struct samples {
	unsigned int num;
	struct sample of[SAMPLES_MAX];
};

/** The answer to /weft/workers. */
struct lanes {
	unsigned int num;
	char text[LANES_MAX][96]; /**< "ID dpdk:0 device" */
};

/** @return false: the process gave no answer */
bool lanes_take(struct query_process *p, struct lanes *lanes);
/** Is lane @p i the first of its worker? */
bool lanes_first(const struct lanes *lanes, unsigned int i);
void samples_take(struct query_process *list, unsigned int n, struct samples *to);
/** The counter of that name of the lane, or worker, of @p like; 0 where there is none. */
double samples_value(const struct samples *s, const struct sample *like, const char *name);

#endif /* INFO_SAMPLES_H */
