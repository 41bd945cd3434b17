/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/reap.h
 * The end of a connection whose messages shall not be lost: each side first stops and says what it
 * has received, then takes back what the other has not. doc/failover.md has the whole.
 */
#ifndef WEFT_RAW_REAP_H
#define WEFT_RAW_REAP_H

#include <stddef.h>
#include <stdint.h>

#include "frame/frame.h"
#include "lane.h"

/** What a side has received, as LANE_DOWN carries it: all before next, and bit i: next + 1 + i. */
struct raw_rx_state {
	weft_le32 next;
	weft_le16 words; /**< 0 .. WEFT_FRAME_SACK_WORDS */
	weft_le16 reserved;
	weft_le64 word[WEFT_FRAME_SACK_WORDS];
} __attribute__((packed));

/**
 * Nothing is received, sent or timed any more over a lane ep that was up; the sends that are not
 * acknowledged stay. To be followed by raw_ep_reap() or ep_destroy().
 * @param[out] state  final: what the peer needs for its raw_ep_reap()
 * @return bytes of it that matter; -ENOTCONN: the lane ep is not up
 */
int raw_ep_quiesce(struct weft_lane_ep *lane_ep, struct raw_rx_state *state);

/**
 * One message that the peer has not got, to be copied; or, with @p msg NULL, only a completion: of
 * a flush, due when all messages before it have arrived.
 * @param comp  of the message, due when it has arrived; NULL = nobody waits
 */
typedef void (*raw_reap_cb)(void *arg, uint8_t am_id, const void *msg, size_t length,
			    struct weft_lane_comp *comp);

/**
 * After raw_ep_quiesce(): hand out, in the order of sending, what the peer has not received.
 * Completions of what it has received run as ever. Once.
 * @param state  of the peer, @p length bytes from the wire: not trusted
 * @return 0; -EPROTO: the state contradicts what the peer has acknowledged, or what was sent, and
 *   nothing was handed out
 */
int raw_ep_reap(struct weft_lane_ep *lane_ep, const void *state, size_t length, raw_reap_cb cb,
		void *arg);

#endif /* WEFT_RAW_REAP_H */
