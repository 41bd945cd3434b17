/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/lane_link.h
 * Lanes whose two ends need each other's address, when they come back: wireup/lane_link.c.
 * wireup/lane_return.c calls it, and decides when.
 */
#ifndef WEFT_LANE_LINK_H
#define WEFT_LANE_LINK_H

#include "wireup/failover.h"

bool weft_lane_link_needed(const struct weft_lane_iface *iface);
/**
 * The leader makes its end of lane @p n, and sends its address. @return 0, or an error: there is no
 * end
 */
int weft_lane_link_begin(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface);
/**
 * The timer of lane @p n has expired. @return false: there is nothing to send, and the attempt has
 * failed
 */
bool weft_lane_link_timer(struct weft_ep *ep, unsigned int n);
/** LANE_LINK has arrived for lane @p n. @return false: it is not expected */
bool weft_lane_link_recv(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface,
			 const struct weft_wireup_msg *m);
/** Is @p lane_ep, over which ATTACH number @p epoch arrived, the connection that LANE_LINK made? */
bool weft_lane_link_attaches(const struct weft_ep *ep, const struct weft_lane_ep *lane_ep,
			     unsigned int n, uint16_t epoch);

#endif /* WEFT_LANE_LINK_H */
