/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem.h
 * Registered memory follows the interfaces that come and go. Called with the context's lock held.
 */
#ifndef WEFT_MEM_H
#define WEFT_MEM_H

#include "core.h"

/** A new iface of a worker: what is registered is registered with its domain, too. */
void weft_mem_iface_opened(struct weft_context *ctx, struct weft_lane_iface *iface);

/**
 * The iface is about to close; it is still open. Its registrations move to another iface of the
 * domain, or end.
 */
void weft_mem_iface_closing(struct weft_context *ctx, struct weft_lane_iface *iface);

#endif /* WEFT_MEM_H */
