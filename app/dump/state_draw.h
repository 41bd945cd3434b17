/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/state_draw.h
 * States of paths over time, as SVG, CSV and JSON.
 */
#ifndef DUMP_STATE_DRAW_H
#define DUMP_STATE_DRAW_H

#include <stdbool.h>
#include <stdio.h>

#include "dump/json.h"
#include "dump/report.h"

struct list;

/** Has a capture states of paths that carried frames? */
bool state_any(const struct report *r);
/** Draw window, round trips and mode of each path. */
void svg_states(FILE *out, const struct list *l);
/** Write rows of --points: the states of a flow's paths. */
void state_csv(FILE *out, const struct report *r, const struct trace_flow *f);
/** Write the last state of a path as a member of the object that is open, if there is one. */
void state_json(struct json *j, const struct report *r, const struct trace_flow *f,
		unsigned int path);

#endif /* DUMP_STATE_DRAW_H */
