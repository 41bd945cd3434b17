/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/transmit.h
 * Pieces of messages and control messages onto lanes: by which call, at which length, and from
 * which memory.
 */
#ifndef WEFT_MSG_TRANSMIT_H
#define WEFT_MSG_TRANSMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "msg/state.h"

/** The longest piece after a header of @p hdr_len that lane @p lane takes of this request. */
size_t weft_tx_piece_max(const struct weft_request *req, unsigned int lane, size_t hdr_len);
/**
 * Send bytes [off, off + len) on one lane, by the most suitable call. @return 0, -EAGAIN, or the
 * pack error
 */
int weft_tx_piece(struct weft_request *req, unsigned int lane, uint8_t id, const void *hdr,
		  size_t hdr_len, size_t off, size_t len);
/** The length of the next piece: @p max, or less for alignment or to avoid a tiny last piece. */
size_t weft_tx_cut(const struct weft_msg_ep *me, size_t off, size_t rest, size_t max, size_t align);
/**
 * Request one more completion of @p req, when the lane has delivered all that it has got so far.
 * @return 0, or -EAGAIN: the lane has no room. Errors go to the request's status.
 */
int weft_tx_flush_lane(struct weft_request *req, struct weft_lane_ep *lane_ep);

/* ------------------------------------------------------------------ control messages */

/** Send a control message now or as soon as a lane has room. */
void weft_tx_ctl(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length);
#define WEFT_TX_ANY_LANE (-1)
/**
 * The same over lane @p lane, while that is up: the message is valid only after earlier messages of
 * this lane.
 */
void weft_tx_ctl_on(struct weft_msg_ep *me, int lane, uint8_t id, const void *data, size_t length);
/** Send the control messages that wait. @return events */
unsigned int weft_tx_serve_ctl(struct weft_msg_ep *me);
void weft_tx_drop_ctl(struct weft_msg_ep *me);
/** Send a message without payload on one lane. @return 0 or -EAGAIN */
int weft_tx_envelope(struct weft_msg_ep *me, unsigned int lane, uint8_t id, const void *data,
		     size_t length);
/** The same on the lowest-latency lane if it has room, else on any that has. */
int weft_tx_envelope_any(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length);

/* ------------------------------------------------------------------ load of a lane */

/** @p per_byte, @p latency: nominal values. Outstanding bytes stay. */
void weft_load_init(struct weft_lane_load *l, float per_byte, float latency);

/**
 * The rate or the round trip has changed: set the window, between 64 KiB and @p max.
 * @param rtt_ns  0 = unknown
 */
void weft_load_set_window(struct weft_lane_load *l, uint32_t rtt_ns, uint64_t max, uint64_t now);

/**
 * @p bytes are done, or (@p good false) have failed. @param given  time when the lane got them, ns
 * @return true when the rate has changed
 */
bool weft_load_done(struct weft_lane_load *l, uint64_t bytes, bool good, uint64_t given,
		    uint64_t now);

/** Update the rate. It returns slowly to the nominal rate when no completion confirms it. */
void weft_load_refresh(struct weft_lane_load *l, uint64_t now);

#endif /* WEFT_MSG_TRANSMIT_H */
