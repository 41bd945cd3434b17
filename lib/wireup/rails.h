/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/rails.h
 * Rails that are missing, slower than comparable ones, or have a smaller MTU.
 */
#ifndef WEFT_RAILS_H
#define WEFT_RAILS_H

#include "core/endpoint.h"

/** Are lanes of the interface rails: lanes to other hosts? */
bool weft_is_rail(const struct weft_lane_iface *iface);

/** A link has come up, or has another speed. */
void weft_rails_changed(struct weft_worker *w, const struct weft_lane_iface *iface);
/**
 * All lanes of an endpoint are attached or left out; its connecting state still exists.
 * @return false: there are fewer than WEFT_MIN_LANES; wireup->reason has the reason
 */
bool weft_rails_settled(struct weft_ep *ep);

/**
 * An interface of a worker that is being created is missing: store the reason for the message of
 * weft_rails_opened().
 */
void weft_rails_missing(struct weft_worker *w, const char *name, const char *why);
/**
 * All possible interfaces are open. @return 0, or -ENODEV: fewer than WEFT_MIN_LANES, which has
 * been logged
 */
int weft_rails_opened(struct weft_worker *w, bool wants_rails);

#endif /* WEFT_RAILS_H */
