/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/context.h
 * What a context knows of its drivers' resources.
 */
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include "core/core.h"

/** What a driver found. */
struct weft_found {
	bool asked;
	int num; /* or the error of query() */
	struct weft_lane_resource *list;
};

/**
 * Resources of a driver, asked for once. The context's lock is held, or the context is not shared
 * yet.
 */
struct weft_found *weft_context_find(struct weft_context *ctx,
				     const struct weft_lane_driver *driver);

#endif /* WEFT_CONTEXT_H */
