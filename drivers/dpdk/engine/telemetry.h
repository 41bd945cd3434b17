/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/telemetry.h
 * Workers with raw lanes answer on DPDK's telemetry socket: /weft/workers, /weft/lanes,
 * /weft/endpoints, /weft/paths, /weft/thresholds, /weft/counters, /weft/help (see weft(7)).
 *
 * Requests come in threads of DPDK's, and a worker belongs to its own thread. So a request is
 * posted; the worker finds it at its next progress call and writes the answer, and nobody else
 * reads the worker. A worker that does not poll gives no answer, and the request says so after a
 * second.
 */
#ifndef WEFT_TELEMETRY_H
#define WEFT_TELEMETRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lane.h"

struct weft_telemetry;

/** What is checked in every progress call. */
enum weft_telemetry_state { WEFT_TELEMETRY_IDLE, WEFT_TELEMETRY_ASKED, WEFT_TELEMETRY_ANSWERING };

struct weft_telemetry_ask {
	/** IDLE to ASKED by DPDK's thread, on to ANSWERING and back to IDLE by the worker's */
	atomic_uint state;
};

/**
 * An iface has been opened. @return NULL when there is no memory, or nothing to tell: then it is
 * not shown
 */
struct weft_telemetry *weft_telemetry_add(const struct weft_lane_iface *iface,
					  const struct weft_lane_open *open);
/** The iface closes. NULL is allowed. Worker's thread. */
void weft_telemetry_remove(struct weft_telemetry *t);
/** Something was asked: answer it. Worker's thread, inside progress(). */
void weft_telemetry_answer(struct weft_telemetry *t);

/** Costs a load of a line that is written only when somebody asks. */
static inline void weft_telemetry_poll(struct weft_telemetry *t)
{
	if (t && atomic_load_explicit(&((struct weft_telemetry_ask *)t)->state,
				      memory_order_relaxed) == WEFT_TELEMETRY_ASKED)
		weft_telemetry_answer(t);
}

#endif /* WEFT_TELEMETRY_H */
