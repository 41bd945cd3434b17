/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file am/am.h
 * Active messages: a message class other than tags, delivered to handlers in send order.
 *
 *	am/am.c  handlers, the send call, data that handlers retain, the hooks (msg/state.h),
 *	         received messages
 *
 * The protocols of tagged messages send them (msg/eager.c, rndv/sender.c), with headers of their
 * own. Both classes share the eager credit: retained data, and messages that are out of order or
 * incomplete, take credit until they are freed.
 */
#ifndef WEFT_AM_H
#define WEFT_AM_H

#include <stddef.h>
#include <stdint.h>

#include "base/container.h"
#include "rndv/rndv.h"

struct weft_am_handler {
	weft_am_cb cb;
	void *arg;
	unsigned int flags;
};

/** State of a worker: mw->am, created when a handler is set. */
struct weft_am_worker {
	/* handlers by id: page id / 256, allocated when a handler of it is set; NULL = none */
	struct weft_am_handler *page[256];
	LIST_HEAD(, weft_am_data) kept;
};

/** State of an endpoint: me->am, created with the first struct weft_am_data. */
struct weft_am {
	struct weft_table ahead;        /* messages that are out of order, or incomplete */
	LIST_HEAD(, weft_am_data) kept; /* messages that handlers retain */
};

/** A message out of order or incomplete, or retained by its handler, or with data at the sender. */
struct weft_am_data {
	struct weft_table_node by_seq; /* while it is in `ahead` */
	/* worker's and endpoint's list, while it is retained */
	LIST_ENTRY(weft_am_data) link, own_link;
	struct weft_msg_ep *me;       /* held */
	struct weft_rndv_offer offer; /* rendezvous */
	uint64_t length;              /* payload */
	struct weft_ext ext;
	struct weft_ivals got; /* ranges that have come, while it is incomplete */
	uint16_t id, header_length;
	int16_t error; /* its sender could not finish it: no handler is called */
	bool rndv;
	bool whole;    /* no more pieces will come */
	bool kept;     /* its handler retains it */
	bool consumed; /* inside its handler: received or released */
	bool calling;
	bool gone;       /* the sender was notified that the data will not be received */
	uint8_t bytes[]; /* header, and payload if it has come */
};

extern const struct weft_module weft_am_module;

/* The handlers (msg/state.h). */
void weft_am_recv_whole(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_am_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_am_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload);
/** Messages behind EXT. @param payload  bytes behind the message's own header */
void weft_am_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		      const struct weft_ext *x);
/** ABORT of a message that its sender cannot finish. */
void weft_am_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);

#endif /* WEFT_AM_H */
