/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file context.h
 * How a context is made, and which lane drivers it has.
 */
#ifndef WEFT_LIB_CONTEXT_H
#define WEFT_LIB_CONTEXT_H

#include "core/worker.h"
#include "lane.h"
#include "lane_tap.h"

/**
 * As weft_context_create(), for the simulator and tests.
 * @param platform  NULL = the host's
 * @param drivers   NULL-terminated table, static storage; NULL = as weft_drivers_list()
 */
int weft_context_create_in(const struct weft_context_params *params,
			   const struct weft_platform *platform,
			   const struct weft_lane_driver *const *drivers,
			   struct weft_context **ctx);

/** All drivers of the build and those added. @return NULL-terminated, to be freed; or NULL */
const struct weft_lane_driver **weft_drivers_list(void);

/**
 * The resources of a driver. The context's first call for a driver calls its query(). If that
 * fails, `num` of the result is the error. The caller has the context's lock.
 */
struct weft_found *weft_context_find(struct weft_context *ctx,
				     const struct weft_lane_driver *driver);

/** Does the driver have lanes to other hosts? True for all drivers but self and shm. */
bool weft_driver_is_network(const struct weft_lane_driver *driver);

/**
 * Operations of the capture writer: they record the messages of lanes whose frames Weft does not
 * see, and execute capture commands.
 * @return NULL: this build has no captures
 */
const struct weft_lane_tap_ops *weft_drivers_tap(void);

/** Operations for greetings with a job key. @return NULL: this build refuses job keys */
const struct weft_greeting_ops *weft_drivers_greeting(void);

#endif /* WEFT_LIB_CONTEXT_H */
