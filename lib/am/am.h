/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file am/am.h
 * Active messages: a message class other than tags, delivered to handlers in send order.
 *
 *	am/am.c       handlers, the send call, data that handlers retain, the hooks (msg/module.h)
 *	am/deliver.c  received messages, in order
 *
 * The protocols of tagged messages send them (msg/eager.c, rndv/sender.c), with headers of their
 * own. Both classes share the eager credit: retained data, and messages that are out of order or
 * incomplete, take credit until they are freed.
 */
#ifndef WEFT_AM_H
#define WEFT_AM_H

#include "am/deliver.h"
#include "base/container.h"
#include "rndv/rndv.h"

struct weft_am_handler {
	weft_am_cb cb;
	void *arg;
	unsigned int flags;
};

/** State of a worker: mw->am, created when a handler is set. */
struct weft_am_worker {
	/* by id: pages of 256, allocated when a handler is set */
	struct weft_am_handler *page[256];
	LIST_HEAD(, weft_am_data) kept;
};

/** State of an endpoint: me->am, created with the first message that waits or is retained. */
struct weft_am {
	struct weft_table ahead;        /* messages that are out of order, or incomplete */
	LIST_HEAD(, weft_am_data) kept; /* messages that handlers retain */
};

/**
 * A message that is out of order, incomplete, retained by its handler, or whose payload is at the
 * sender.
 */
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

/** The message is over: free it and its credit. */
void weft_am_data_free(struct weft_am_data *d);
/** Its handler retains it. */
void weft_am_keep(struct weft_am_data *d);

#endif /* WEFT_AM_H */
