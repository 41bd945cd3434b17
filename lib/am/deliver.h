/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file am/deliver.h
 * Active messages as they come: their order, their pieces, and their handlers.
 */
#ifndef WEFT_AM_DELIVER_H
#define WEFT_AM_DELIVER_H

#include <stddef.h>
#include <stdint.h>

struct weft_ext;
struct weft_msg_ep;

/* The handlers (msg/module.h). */
void weft_am_recv_whole(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_am_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_am_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload);
/** Messages behind EXT. @param payload  bytes behind the message's own header */
void weft_am_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		      const struct weft_ext *x);
/** ABORT of a message that its sender cannot finish. */
void weft_am_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);

#endif /* WEFT_AM_DELIVER_H */
