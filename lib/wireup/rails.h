/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/rails.h
 * Links of ports and devices that go down and come up, in the log; rails that are missing, slower
 * than comparable ones, or have a smaller MTU.
 */
#ifndef WEFT_RAILS_H
#define WEFT_RAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/worker.h"
#include "lane.h"

/** Are lanes of the interface rails: lanes to other hosts? */
bool weft_is_rail(const struct weft_lane_iface *iface);

/**
 * All lanes of an endpoint are attached or left out, and its connecting state still exists: log the
 * rails without a lane. An endpoint inside the host needs no rails.
 * @return false: there are fewer lanes than WEFT_MIN_LANES; wireup->reason has the reason
 */
bool weft_rails_settled(struct weft_ep *ep);

/** An interface of a new worker is missing: store the reason for weft_rails_opened()'s message. */
void weft_rails_missing(struct weft_worker *w, const char *name, const char *why);
/**
 * All possible interfaces are open: log those that are slower or have smaller frames than others.
 * @param wants_rails  the worker's list of lanes names a driver of networks
 * @return 0, or -ENODEV: there are fewer rails than WEFT_MIN_LANES, which has been logged. A worker
 *   without rails is allowed if WEFT_MIN_LANES is 1 or @p wants_rails is false
 */
int weft_rails_opened(struct weft_worker *w, bool wants_rails);

/* ------------------------------------------------------------------ links */

/**
 * ifaces[@p index] was opened: note the state of its link. If the link is down, enum weft_lane_link
 * decides whether a line is logged at once, after a wait, or not.
 */
void weft_iface_link_init(struct weft_worker *w, unsigned int index);
/** Log an event of a port or device. @return true: its link has come up */
bool weft_rails_event(struct weft_worker *w, struct weft_lane_iface *iface,
		      enum weft_lane_iface_event ev, const char *text);
void weft_iface_link_text(struct weft_lane_iface *iface, char *buf, size_t size);
void weft_iface_timers(struct weft_worker *w);
/** A lane of @p iface may be dead. @return the time of the lane's check, which may be now */
uint64_t weft_iface_suspect_at(struct weft_worker *w, const struct weft_lane_iface *iface);
/**
 * A lane of @p iface is given up, or (@p back) has come back. @return true: the caller logs it in a
 * line of its own; false: the next summary line of the interface counts it
 */
bool weft_iface_lane_line(struct weft_worker *w, const struct weft_lane_iface *iface, bool back);

#endif /* WEFT_RAILS_H */
