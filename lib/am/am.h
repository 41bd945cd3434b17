/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file am/am.h
 * Active messages: a message class of their own beside tags, delivered to handlers in send order.
 *
 *	am/am.c      handlers, the call
 *	am/recv.c    what comes, in order
 *	am/kept.c    data that handlers keep
 *	am/module.c  the hooks (msg/module.h)
 *
 * They are sent by the protocols that tags have (msg/eager.c, msg/multi_eager.c, rndv/proto.c),
 * with headers of their own (msg/header.c). The eager credit is the tags' one: kept data and what
 * came out of order, or in part, count in it until they are gone.
 */
#ifndef WEFT_AM_H
#define WEFT_AM_H

#include "base/seq_table.h"
#include "rndv/rndv.h"

struct weft_am_handler {
	weft_am_cb cb;
	void *arg;
	unsigned int flags;
};

/** Of a worker: mw->am, made when a handler is set. */
struct weft_am_worker {
	struct weft_am_handler *page[256]; /* by id: pages of 256, made when one is set */
	LIST_HEAD(, weft_am_data) kept;
};

/** Of an endpoint: me->am, made with the first message that waits or is kept. */
struct weft_am {
	struct weft_seq_table ahead;    /* messages that wait for their turn, or are not all here */
	LIST_HEAD(, weft_am_data) kept; /* those that handlers have kept */
};

/** A message that waits for its turn, is kept by its handler, or whose payload is at the sender. */
struct weft_am_data {
	struct weft_seq_node by_seq;             /* while it is ahead */
	LIST_ENTRY(weft_am_data) link, own_link; /* worker's and endpoint's, while it is kept */
	struct weft_msg_ep *me;                  /* held */
	struct weft_rndv_offer offer;            /* rendezvous */
	uint64_t length;                         /* payload */
	struct weft_ext ext;
	struct weft_ivals got; /* of it, while it comes in pieces */
	uint16_t id, header_length;
	int16_t error; /* its sender could not finish it: nobody hears of it */
	bool rndv;
	bool whole;    /* all is here that will come */
	bool kept;     /* the handler's */
	bool consumed; /* inside its handler: received or released */
	bool calling;
	bool gone;       /* the sender was told that nobody will take it */
	uint8_t bytes[]; /* header, payload if it is here */
};

extern const struct weft_module weft_am_module;

/* The handlers (msg/module.h). */
void weft_am_recv_whole(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_am_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_am_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload);
/** Those with EXT in front. @param payload  bytes behind the message's own header */
void weft_am_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		      const struct weft_ext *x);
/** ABORT of one that its sender can't finish. */
void weft_am_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload);

/* am/kept.c */

/** A copy of the message is over: its credit comes back. */
void weft_am_data_free(struct weft_am_data *d);
/** Its handler keeps it. */
void weft_am_keep(struct weft_am_data *d);
/** The hooks: the owner of the endpoint has closed it, so nobody will take what handlers keep. */
void weft_am_closing(struct weft_msg_ep *me);
void weft_am_drop_kept(struct weft_am_worker *aw);

#endif /* WEFT_AM_H */
