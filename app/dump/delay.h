/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/delay.h
 * Paths that got longer.
 */
#ifndef DUMP_DELAY_H
#define DUMP_DELAY_H

#include "dump/trace.h"

/**
 * Take the delay of a frame that arrived into the floor, the least delay, of its slot of time.
 * @param proved  ns; its path took longer than this, as a poll of the receiver shows. 0 = not known
 * @param load    as in struct trace_sample
 */
void trace_floor_add(const struct trace *t, struct trace_flow *f, uint64_t sent, int64_t delay,
		     uint64_t proved, uint32_t load);

struct trace_delay {
	int64_t before, after; /**< ns: low quantiles of the delays, or the least delays */
	uint64_t time;         /**< when the delay grew, common clock */
	/** no busy host explains it: other lanes were fast, or delays have a floor (delay.c) */
	bool of_path;
};

/** Did the path get longer? @param[out] d  filled in if it did */
bool trace_delayed(const struct trace *t, const struct trace_flow *f, struct trace_delay *d);

#endif /* DUMP_DELAY_H */
