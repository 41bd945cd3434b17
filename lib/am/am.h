/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file am/am.h
 * Active messages: a message class other than tags, delivered to handlers in send order.
 *
 *	am/am.c  handlers, sends, data that handlers retain, hooks, received messages
 *
 * The protocols of tagged messages (msg/eager.c, rndv/sender.c) also send active messages, with
 * other headers. Both classes share the eager credit: retained data, and messages that are out of
 * order or incomplete, take credit until they are freed.
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

/** State of a worker: mw->am, created with the first handler. */
struct weft_am_worker {
	/* handlers by id: page id / 256, allocated when a handler of it is set; NULL = none */
	struct weft_am_handler *page[256];
	LIST_HEAD(, weft_am_data) kept; /* retained messages of all endpoints */
};

/** State of an endpoint: me->am, created with the first struct weft_am_data. */
struct weft_am {
	struct weft_table ahead; /* messages that are out of order, or incomplete */
	LIST_HEAD(, weft_am_data) kept;
};

/** A message that is out of order, incomplete, retained by its handler, or sent by rendezvous. */
struct weft_am_data {
	struct weft_table_node by_seq;
	/* links of the worker's and the endpoint's `kept` */
	LIST_ENTRY(weft_am_data) link, own_link;
	struct weft_msg_ep *me;       /* this message has a reference to it */
	struct weft_rndv_offer offer; /* with `rndv` */
	uint64_t length;              /* of the payload, bytes */
	struct weft_ext ext;
	struct weft_ivals got; /* payload ranges that have arrived, while it is incomplete */
	uint16_t id, header_length;
	int16_t error; /* negative errno: the sender aborted the message; no handler is called */
	bool rndv;
	bool whole; /* no more pieces will come */
	bool kept;
	bool consumed; /* its data was received or released, perhaps while the handler runs */
	bool calling;
	bool gone;       /* the application closed the endpoint, so the offer was refused */
	uint8_t bytes[]; /* header, then the payload unless `rndv` */
};

extern const struct weft_module weft_am_module;

/* Wire messages that dispatch.c passes here. @param payload  bytes behind the fixed header */
void weft_am_recv_whole(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_am_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_am_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload);
/** A message of the wire id @p id that follows EXT (doc/wire.md), whose fields are in @p x. */
void weft_am_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		      const struct weft_ext *x);
void weft_am_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);

#endif /* WEFT_AM_H */
