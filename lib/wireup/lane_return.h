/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/lane_return.h
 * Lanes that died come back: when they are connected again, and the exchange of addresses for lanes
 * whose two ends need them.
 */
#ifndef WEFT_LANE_RETURN_H
#define WEFT_LANE_RETURN_H

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"

struct weft_ep;
struct weft_wireup_msg;
struct weft_worker;

/** The new connection of lane @p n has failed: destroy it; the leader tries again later. */
void weft_lane_return_drop(struct weft_ep *ep, unsigned int n);
/** Handle LANE_LINK. @return false: the message is not expected */
bool weft_lane_return_linked(struct weft_ep *ep, unsigned int n, const struct weft_wireup_msg *m);
/** Lane @p n is gone: the leader schedules the first attempt to connect it again. */
void weft_lane_return_begin(struct weft_ep *ep, unsigned int n);
void weft_lane_return_timer(struct weft_ep *ep, unsigned int n);
/** The link of @p iface is back: the leader connects the gone lanes over it at once. */
void weft_lane_return_link(struct weft_worker *w, const struct weft_lane_iface *iface);
/** @return false: @p lane_ep does not replace a dead connection */
bool weft_lane_return_event(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			    enum weft_lane_event ev, const char *text);
/** @return false: the ATTACH is of the lane's first connection, or no lane may come back */
bool weft_lane_return_attach(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			     const struct weft_wireup_msg *m);
/** ATTACHED or data has arrived over @p lane_ep: if ATTACHED is awaited, the lane is back. */
void weft_lane_return_attached(struct weft_ep *ep, struct weft_lane_ep *lane_ep);

#endif /* WEFT_LANE_RETURN_H */
