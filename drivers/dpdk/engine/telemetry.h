/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/telemetry.h
 * Workers with raw lanes answer on DPDK's telemetry socket (/weft/help, weft(7)). Requests arrive
 * in threads of DPDK. Those about one worker are posted to it (base/question.h).
 */
#ifndef WEFT_TELEMETRY_H
#define WEFT_TELEMETRY_H

#include "base/question.h"
#include "lane.h"

/**
 * An iface was opened.
 * @return its question, for weft_question_poll() in progress(). NULL: no memory, or @p open has no
 * functions that report: then the iface is not shown
 */
struct weft_question *weft_telemetry_add(const struct weft_lane_iface *iface,
					 const struct weft_lane_open *open);
/** The iface closes. @p q may be NULL. To be called by the worker's thread. */
void weft_telemetry_remove(struct weft_question *q);

#endif /* WEFT_TELEMETRY_H */
