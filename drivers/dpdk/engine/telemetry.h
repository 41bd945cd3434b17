/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/telemetry.h
 * Workers with raw lanes answer on DPDK's telemetry socket: /weft/workers, /weft/lanes,
 * /weft/endpoints, /weft/paths, /weft/thresholds, /weft/counters, /weft/help (see weft(7)).
 *
 * Requests arrive in threads of DPDK, and a worker belongs to its own thread. So a request is
 * posted. The worker finds it in its next progress call and writes the answer; no other thread
 * reads the worker. A worker that does not poll gives no answer, and the request reports that after
 * a second.
 */
#ifndef WEFT_TELEMETRY_H
#define WEFT_TELEMETRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lane.h"

struct weft_telemetry;

/** Checked in every progress call. */
enum weft_telemetry_state { WEFT_TELEMETRY_IDLE, WEFT_TELEMETRY_ASKED, WEFT_TELEMETRY_ANSWERING };

struct weft_telemetry_ask {
	/**
	 * DPDK's thread posts a request (WEFT_TELEMETRY_ASKED); the worker's thread sets ANSWERING
	 * and then IDLE
	 */
	atomic_uint state;
};

/**
 * An iface was opened. @return NULL: no memory, or the caller has nothing to report; then the iface
 * is not shown
 */
struct weft_telemetry *weft_telemetry_add(const struct weft_lane_iface *iface,
					  const struct weft_lane_open *open);
/** The iface closes. NULL is allowed. Worker's thread. */
void weft_telemetry_remove(struct weft_telemetry *t);
/** Answer the posted request. Worker's thread, inside progress(). */
void weft_telemetry_answer(struct weft_telemetry *t);

/** Costs a load of a cache line that is written only by requests. */
static inline void weft_telemetry_poll(struct weft_telemetry *t)
{
	if (t && atomic_load_explicit(&((struct weft_telemetry_ask *)t)->state,
				      memory_order_relaxed) == WEFT_TELEMETRY_ASKED)
		weft_telemetry_answer(t);
}

#endif /* WEFT_TELEMETRY_H */
