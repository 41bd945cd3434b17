/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roof.h
 * Declarations shared by the files of lib/ itself. These files may include headers of every folder;
 * no folder includes theirs.
 */
#ifndef WEFT_ROOF_H
#define WEFT_ROOF_H

#include "core/worker.h"
#include "lane.h"
#include "lane_tap.h"

/** Reports of the worker for its lanes' drivers; report.c. */
struct weft_lane_report weft_worker_report(struct weft_worker *w);

/**
 * Captures of lanes that have no frames of their own: the operations of the capture writer;
 * drivers.c.
 * @return NULL: this build has no captures
 */
const struct weft_lane_tap_ops *weft_drivers_tap(void);

/**
 * Help of the counters of the connection layer and the registration cache; query.c. The table ends
 * with a name that is NULL.
 */
extern const struct weft_lane_counter weft_worker_counter_help[];

#endif /* WEFT_ROOF_H */
