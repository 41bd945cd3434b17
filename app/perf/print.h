/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/print.h
 * The output of weft-perf at the client; perf_print_lanes() is also for the server.
 */
#ifndef APP_PERF_PRINT_H
#define APP_PERF_PRINT_H

#include "perf/flow.h"

void perf_print_lanes(struct peer *p);
void perf_print_begin(const struct perf_options *opts, struct peer *p);
void perf_print_run(const struct perf_options *opts, const struct perf_report *report);

/** The argument of perf_print_tick(), which prints a line per second. */
struct perf_ticker {
	const struct perf_options *opts;
	const struct perf_run *run;
	struct perf_side *side;
	uint64_t before; /**< messages that the server had received at the last line */
};

void perf_print_tick(const struct perf_meter *meter, void *arg);

void perf_print_table(const struct perf_report *lat, const struct perf_report *bw);
void perf_print_flood(const struct perf_options *opts, const struct perf_report *report);
void perf_print_end(const struct perf_options *opts, const struct perf_report *last);

#endif /* APP_PERF_PRINT_H */
