/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file query.h
 * Queries of a worker, and its reports for lanes' drivers. The files of lib/ itself may include
 * headers of every folder; no folder includes theirs.
 */
#ifndef WEFT_QUERY_H
#define WEFT_QUERY_H

#include "core/worker.h"
#include "lane.h"

/** Reports of the worker for its lanes' drivers. */
struct weft_lane_report weft_worker_report(struct weft_worker *w);

#endif /* WEFT_QUERY_H */
