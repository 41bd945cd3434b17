/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/report.h
 * What captures tell together, as text or as JSON.
 */
#ifndef DUMP_REPORT_H
#define DUMP_REPORT_H

#include <stdio.h>

#include "dump/frames.h"
#include "dump/trace.h"

struct report {
	struct trace *trace;
	struct dump_file *const *file;
	const struct trace_clock *clock;
	const struct dump_counts *counts;
};

void report_text(FILE *out, const struct report *r);
/** One object, on one line. */
void report_json(FILE *out, const struct report *r);

#endif /* DUMP_REPORT_H */
