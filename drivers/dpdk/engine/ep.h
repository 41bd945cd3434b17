/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/ep.h
 * Operations of an endpoint that are not on the hot path. lane.h has their contracts.
 *
 * raw_ep_quiesce() and raw_ep_reap() end a connection whose messages must not be lost. Each side
 * first stops and reports what it has received, then takes back the messages that the other has
 * not received. doc/raw-lanes.md describes the whole procedure.
 */
#ifndef WEFT_ENGINE_EP_H
#define WEFT_ENGINE_EP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame/frame.h"
#include "lane.h"

int raw_ep_connect(struct weft_lane_iface *iface, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **lane_ep);
int raw_ep_connect_key(struct weft_lane_iface *iface, const void *addr, size_t len, void *user,
		       const struct weft_lane_key *key, uint8_t lane,
		       struct weft_lane_ep **lane_ep);
void raw_ep_destroy(struct weft_lane_ep *lane_ep);
void raw_ep_check(struct weft_lane_ep *lane_ep);
bool raw_ep_is_from(struct weft_lane_ep *lane_ep, const void *addr, size_t len);
uint64_t raw_ep_seen(const struct weft_lane_ep *lane_ep);
uint64_t raw_ep_host(const struct weft_lane_ep *lane_ep);
void raw_ep_print(struct weft_lane_ep *lane_ep, char *buf, size_t size);

struct raw_iface;
struct weft_tap;
/** Calls @p cb with one or two lines of text for each path of each connection that is up. */
void raw_paths_print(const struct raw_iface *iface, void (*cb)(const char *text, void *arg),
		     void *arg);

/** See weft_tap.paths. @param arg  the iface */
unsigned int raw_paths_record(const void *arg, struct weft_tap *tap, unsigned int from);

/** As in LANE_DOWN: all frames before `next` have arrived; bit i of `word`: next + 1 + i has. */
struct raw_rx_state {
	weft_le32 next;
	weft_le16 words; /**< 0 .. WEFT_FRAME_SACK_WORDS */
	weft_le16 reserved;
	weft_le64 word[WEFT_FRAME_SACK_WORDS];
} __attribute__((packed));

static_assert(sizeof(struct raw_rx_state) == WEFT_LANE_STATE_MAX, "state of LANE_DOWN");

int raw_ep_quiesce(struct weft_lane_ep *lane_ep, void *state);
int raw_ep_reap(struct weft_lane_ep *lane_ep, const void *state, size_t length,
		weft_lane_reap_cb cb, void *arg);

#endif /* WEFT_ENGINE_EP_H */
