/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file am.h
 * Active messages: a space of their own beside tags, delivered to handlers in send order.
 *
 *	am.c       handlers, sends
 *	am_recv.c  what comes, in order; data that handlers keep
 *
 * A message that fits into one lane message, payload and header together, goes eager; a longer one
 * by rendezvous (rndv.h), its header in the RTS. The eager credit is the tags' one: kept data and
 * what came ahead of its turn count in it until they are gone.
 */
#ifndef WEFT_AM_H
#define WEFT_AM_H

#include "msg.h"

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
	uint32_t waiting;                            /* that are ahead of me->rx_am_seq */
	struct weft_am_data *ahead[WEFT_SEQ_WINDOW]; /* by sequence */
};

/** A message that waits for its turn, is kept by its handler, or whose payload is at the sender. */
struct weft_am_data {
	LIST_ENTRY(weft_am_data) link; /* of the worker, while a handler has it */
	struct weft_msg_ep *me;        /* held */
	struct weft_rndv_offer offer;  /* rendezvous */
	uint64_t length;               /* payload */
	uint16_t id, header_length;
	bool rndv;
	bool kept;     /* the handler's */
	bool consumed; /* inside its handler: received or released */
	bool calling;
	bool gone;       /* the sender was told that nobody will take it */
	uint8_t bytes[]; /* header, payload if it is here */
};

/** One step of an AM send at the head of its endpoint's line. @return as weft_proto.progress() */
int weft_am_step(struct weft_request *req);
/** What the request has borrowed. */
void weft_am_let_go(struct weft_request *req);
/** A message of the AM space, past the gate. */
void weft_am_recv(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length);
/** The endpoint has failed: what is ahead goes. */
void weft_am_fail(struct weft_msg_ep *me);
/** Its owner has closed it: senders of what handlers keep are told that none will take it. */
void weft_am_closing(struct weft_msg_ep *me);
void weft_am_fini(struct weft_msg_worker *mw);

#endif /* WEFT_AM_H */
