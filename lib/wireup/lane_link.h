/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/lane_link.h
 * Lanes whose two ends need each other's address, when they come back: wireup/lane_link.c. A part
 * of wireup/lane_return.c, which says when.
 */
#ifndef WEFT_LANE_LINK_H
#define WEFT_LANE_LINK_H

#include "wireup/failover.h"

bool weft_lane_link_needed(const struct weft_lane_iface *iface);
/** The leader makes its end of lane @p n, and tells. @return 0, or an error: there is none */
int weft_lane_link_begin(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface);
/** Its time has come. @return false: nothing is to be said, the try has failed */
bool weft_lane_link_timer(struct weft_ep *ep, unsigned int n);
/** LANE_LINK has come for lane @p n. @return false: it is not due */
bool weft_lane_link_recv(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface,
			 const struct weft_wireup_msg *m);
/** Is it the connection that LANE_LINK made, which ATTACH number @p epoch comes over? */
bool weft_lane_link_attaches(const struct weft_ep *ep, const struct weft_lane_ep *lane_ep,
			     unsigned int n, uint16_t epoch);

#endif /* WEFT_LANE_LINK_H */
