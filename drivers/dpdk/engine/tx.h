/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/tx.h
 * Sends messages: in open frames, which take several, or from user memory (zero-copy).
 */
#ifndef WEFT_ENGINE_TX_H
#define WEFT_ENGINE_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "lane.h"

int raw_am_short(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length);
ssize_t raw_am_bcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, weft_lane_pack_cb pack,
		     void *arg);
bool raw_frame_close(struct raw_conn *c, uint16_t flags);
void raw_frames_close(struct raw_iface *iface);

int raw_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);

int raw_am_zcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		 struct weft_lane_comp *comp);

#endif /* WEFT_ENGINE_TX_H */
