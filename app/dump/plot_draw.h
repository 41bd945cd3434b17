/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/plot_draw.h
 * Frames of lanes over time, as SVG and as CSV.
 */
#ifndef DUMP_PLOT_DRAW_H
#define DUMP_PLOT_DRAW_H

#include <stdint.h>
#include <stdio.h>

#include "dump/report.h"

struct list;

/** Draw the numbers of frames over time, for each direction of a lane. */
void svg_sequences(FILE *out, const struct list *l);

/** Begin a row of plot_csv(): the columns up to `path`. */
void plot_csv_row(FILE *out, const struct report *r, const struct trace_flow *f, uint64_t time,
		  const char *what);
/** Write all points and states as CSV, with a head. */
void plot_csv(FILE *out, struct list *l);

#endif /* DUMP_PLOT_DRAW_H */
