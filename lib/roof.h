/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roof.h
 * What the files of lib/ itself share: they know every folder, and no folder knows them.
 */
#ifndef WEFT_ROOF_H
#define WEFT_ROOF_H

#include "core/worker.h"
#include "lane.h"
#include "lane_tap.h"

/** What the worker tells its lanes' drivers about itself; report.c. */
struct weft_lane_report weft_worker_report(struct weft_worker *w);

/**
 * What captures see of lanes that have no frames of their own: open() of it; drivers.c.
 * @return NULL: this build captures nothing
 */
const struct weft_lane_tap_ops *weft_drivers_tap(void);

/** Of the connection layer and the registration cache; query.c. Ends with a name that is NULL. */
extern const struct weft_lane_counter weft_worker_counter_help[];

#endif /* WEFT_ROOF_H */
