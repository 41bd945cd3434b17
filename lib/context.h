/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file context.h
 * Making a context, and the drivers of this build.
 */
#ifndef WEFT_LIB_CONTEXT_H
#define WEFT_LIB_CONTEXT_H

#include "core/worker.h"
#include "lane.h"
#include "lane_tap.h"

/**
 * As weft_context_create(), with a platform, for the simulator and tests; NULL = the real one.
 * @param drivers  NULL-terminated table, static storage; NULL = all drivers of the build
 */
int weft_context_create_in(const struct weft_context_params *params,
			   const struct weft_platform *platform,
			   const struct weft_lane_driver *const *drivers,
			   struct weft_context **ctx);

/** All drivers, also those added, NULL-terminated. @return to be freed; NULL = no memory */
const struct weft_lane_driver **weft_drivers_list(void);

/**
 * Resources of a driver. The first call for a driver calls its query(). If that failed, `num` of
 * the result is the error. The context's lock is held, or the context is not shared yet.
 */
struct weft_found *weft_context_find(struct weft_context *ctx,
				     const struct weft_lane_driver *driver);

/** Does the driver have lanes to other hosts? True for all drivers but self and shm. */
bool weft_driver_is_network(const struct weft_lane_driver *driver);

/**
 * Captures of lanes that have no frames of their own: the operations of the capture writer.
 * @return NULL: this build has no captures
 */
const struct weft_lane_tap_ops *weft_drivers_tap(void);

/** Greetings with a job key. @return NULL: this build cannot seal, and refuses job keys */
const struct weft_greeting_ops *weft_drivers_greeting(void);

#endif /* WEFT_LIB_CONTEXT_H */
