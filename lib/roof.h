/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roof.h
 * What the files of lib/ itself share: they know every folder, and no folder knows them.
 */
#ifndef WEFT_ROOF_H
#define WEFT_ROOF_H

#include "core/worker.h"
#include "lane.h"

/** What the worker tells its lanes' drivers about itself; report.c. */
struct weft_lane_report weft_worker_report(struct weft_worker *w);

#endif /* WEFT_ROOF_H */
