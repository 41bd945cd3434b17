/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_qp.h
 * Lane endpoints and their queue pairs: created and connected.
 */
#ifndef WEFT_ROCE_QP_H
#define WEFT_ROCE_QP_H

#include "roce.h"

int roce_ep_create(struct weft_lane_iface *iface, void *user, struct weft_lane_ep **lane_ep);
void roce_ep_get_address(struct weft_lane_ep *lane_ep, void *buf);
void roce_lane_ep_free(struct roce_lane_ep *lane_ep);

int roce_ep_connect_ep(struct weft_lane_ep *lane_ep, const void *dev_addr, size_t dev_len,
		       const void *ep_addr, size_t ep_len);
/** Handle lane_eps that have connected, or failed to. @return events */
unsigned int roce_connect_progress(struct roce_iface *r);

#endif /* WEFT_ROCE_QP_H */
