/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file am/am.h
 * Active messages: a space of their own beside tags, delivered to handlers in send order.
 *
 *	am/am.c       handlers, the call
 *	am/recv.c  what comes, in order; data that handlers keep
 *
 * They are sent by the protocols that tags have (proto_*.c), with headers of their own
 * (msg/header.c). The eager credit is the tags' one: kept data and what came ahead of its turn, or
 * in part, count in it until they are gone.
 */
#ifndef WEFT_AM_H
#define WEFT_AM_H

#include "msg/msg.h"

struct weft_am_handler {
	weft_am_cb cb;
	void *arg;
	unsigned int flags;
};

/** Handlers by id: pages of 256, made when one is set. */
struct weft_am_table {
	struct weft_am_handler *page[256];
};

/** Active messages of one endpoint, made with the first one. */
struct weft_am {
	uint32_t waiting;                            /* that are ahead, or not all here */
	struct weft_am_data *ahead[WEFT_SEQ_WINDOW]; /* by sequence, from me->rx_am_seq on */
};

/** A message that waits for its turn, is kept by its handler, or whose payload is at the sender. */
struct weft_am_data {
	LIST_ENTRY(weft_am_data) link, own_link; /* worker's and endpoint's, while it is kept */
	struct weft_msg_ep *me;                  /* held */
	struct weft_rndv_offer offer;            /* rendezvous */
	uint64_t length;                         /* payload */
	struct weft_ivals got;                   /* of it, while it comes in pieces */
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

/** What the request has borrowed. */
void weft_am_let_go(struct weft_request *req);
/** A message of the AM space, past the gate. */
void weft_am_recv(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length);
/** Its sender can't finish one that it sends in pieces. */
void weft_am_recv_abort(struct weft_msg_ep *me, const struct weft_wire_abort *abort);
/** The endpoint has failed: what is ahead goes. */
void weft_am_fail(struct weft_msg_ep *me);
/** Its owner has closed it: senders of what handlers keep are told that none will take it. */
void weft_am_closing(struct weft_msg_ep *me);
void weft_am_fini(struct weft_msg_worker *mw);

#endif /* WEFT_AM_H */
