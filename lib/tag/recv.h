/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/recv.h
 * Received messages: their sequence, their pieces, and short messages of a frame, in one call.
 */
#ifndef WEFT_TAG_RECV_H
#define WEFT_TAG_RECV_H

#include <stddef.h>
#include <stdint.h>

struct weft_ext;
struct weft_lane_msg;
struct weft_msg_ep;
struct weft_wire_ext;

/**
 * The handlers (msg/state.h). The handler of EAGER, the most common message, is called without the
 * table: only its length needs validation.
 */
void weft_tag_recv_eager(struct weft_msg_ep *me, const void *data, size_t payload);
/**
 * EAGER behind EXT, validated; @p payload is the number of bytes behind both headers. The endpoint
 * may have ended afterwards. @return 0, for the lane
 */
int weft_tag_recv_eager_ext(struct weft_msg_ep *me, const struct weft_wire_ext *w, size_t payload);
/**
 * Messages of one frame, as weft_tag_recv_eager() receives each (tag/recv.c).
 * @return how many were received, from the first one on: the caller receives the others one by one;
 * the endpoint may have ended
 */
unsigned int weft_tag_recv_batch(struct weft_msg_ep *me, unsigned int lane,
				 const struct weft_lane_msg *msgs, unsigned int num);
void weft_tag_recv_eager_sync(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_eager_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				  size_t length);
void weft_tag_recv_frag_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				 size_t length);
void weft_tag_recv_frag_sync(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_tag_recv_withdraw(struct weft_msg_ep *me, const void *data, size_t payload);
/** Messages behind EXT. @param payload  bytes behind the message's own header */
void weft_tag_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		       const struct weft_ext *x);
/** Match at most @p budget messages that waited and are in sequence now. @return how many */
unsigned int weft_rx_drain(struct weft_msg_ep *me, unsigned int budget);

#endif /* WEFT_TAG_RECV_H */
