/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/ep.h
 * Operations of an endpoint that are not on the hot path. lane.h has their contracts.
 */
#ifndef WEFT_ENGINE_EP_H
#define WEFT_ENGINE_EP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane.h"

int raw_ep_connect(struct weft_lane_iface *iface, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **lane_ep);
void raw_ep_destroy(struct weft_lane_ep *lane_ep);
void raw_ep_check(struct weft_lane_ep *lane_ep);
bool raw_ep_is_from(struct weft_lane_ep *lane_ep, const void *addr, size_t len);
uint64_t raw_ep_host(const struct weft_lane_ep *lane_ep);
void raw_ep_print(struct weft_lane_ep *lane_ep, char *buf, size_t size);

struct raw_iface;
/** A line of text for each path of each connection that is up. */
void raw_paths_print(const struct raw_iface *iface, void (*cb)(const char *text, void *arg),
		     void *arg);

#endif /* WEFT_ENGINE_EP_H */
