/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/plot_draw.h
 * Frames of lanes over time, as SVG and as CSV.
 */
#ifndef DUMP_PLOT_DRAW_H
#define DUMP_PLOT_DRAW_H

#include <stdio.h>

struct list;

/** Draw the numbers of frames over time, for each direction of a lane. */
void svg_sequences(FILE *out, const struct list *l);

/** Write all points as CSV, with a head. */
void plot_csv(FILE *out, struct list *l);

#endif /* DUMP_PLOT_DRAW_H */
