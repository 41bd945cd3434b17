/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/credit.h
 * Credit: how much a peer may send unrequested. msg/credit.c defines which credit a message takes.
 */
#ifndef WEFT_CREDIT_H
#define WEFT_CREDIT_H

#include "msg/endpoint.h"

/** Has the peer credit for a new message of @p total bytes (an RTS: 0)? Books it. */
static inline bool weft_credit_take(struct weft_msg_ep *me, uint64_t total)
{
	if (total <= WEFT_EAGER_FREE) {
		if (me->rx_small == me->rx_small_advertised)
			return false;
		me->rx_small++;
		return true;
	}
	if (total > me->rx_advertised - me->rx_used)
		return false;
	me->rx_used += total;
	return true;
}

/**
 * An eager message of @p total bytes is matched or dropped: its credit is free for another message.
 */
static inline void weft_credit_give(struct weft_msg_ep *me, uint64_t total)
{
	if (total > WEFT_EAGER_FREE)
		me->rx_allowed += total;
	else
		me->rx_small_allowed++;
}

/** The same for a message that is announced only (RTS). */
static inline void weft_credit_give_rts(struct weft_msg_ep *me)
{
	me->rx_small_allowed++;
}

/**
 * A message that took a message credit stays unmatched here. @return true when the peer has used
 * more than half of its window. The window has not grown, so the pool is empty and the peer will
 * wait soon.
 */
static inline bool weft_credit_short(const struct weft_msg_ep *me)
{
	uint32_t used = me->rx_small + me->rx_small_window - me->rx_small_allowed;

	return used > me->rx_small_window / 2;
}

/**
 * Free the credit of a message now, and book @p bytes of WEFT_UNEXP_MEMORY for the message instead.
 * When that memory is full, the endpoint fails at the end of progress if it has more than an even
 * share of it.
 * @return false: the message keeps its credit
 */
bool weft_credit_spill(struct weft_msg_ep *me, uint64_t bytes);
/** The message is removed: free its bytes. @param me  NULL = its endpoint is gone */
void weft_credit_unspill(struct weft_msg_worker *mw, struct weft_msg_ep *me, uint64_t bytes);

void weft_credit_worker_init(struct weft_msg_worker *mw);
/** Send a CREDIT message now, or as soon as a lane has room. */
void weft_credit_send(struct weft_msg_ep *me);
/**
 * Much credit is used, or much is free again: resize the windows, and advertise them to the peer.
 */
void weft_credit_look(struct weft_msg_ep *me);

/** Advertise credit to the peer when enough has become free. */
static inline void weft_credit_update(struct weft_msg_ep *me)
{
	if (__builtin_expect(weft_seq_due(&me->rx_seq), 0) ||
	    __builtin_expect(weft_seq_due(&me->rx_am_seq), 0) ||
	    __builtin_expect(
		    me->rx_small_allowed - me->rx_small_advertised > me->rx_small_window / 4, 0) ||
	    __builtin_expect(me->rx_allowed - me->rx_advertised > me->rx_window / 4, 0))
		weft_credit_look(me);
}

/** A message stays unmatched here: check the windows when much of them is used. */
static inline void weft_credit_kept(struct weft_msg_ep *me)
{
	if ((int64_t)(me->rx_used - me->rx_low) >= 0 ||
	    (int32_t)(me->rx_small - me->rx_small_low) >= 0)
		weft_credit_look(me);
}

/** The handler of CREDIT. Records are in its payload. */
void weft_credit_recv(struct weft_msg_ep *me, const void *data, size_t payload);
/** Give the peer's windows back to the worker. */
void weft_credit_fini(struct weft_msg_ep *me);
/**
 * The pools count messages that an ended endpoint has left unmatched. @p more true: there is one
 * more; false: one of them is removed. @param total  as in weft_credit_take()
 */
void weft_credit_left(struct weft_msg_worker *mw, uint64_t total, bool more);

/**
 * The credit that this side grants the peer at connect. Called once per connection, before
 * CONNECTED is sent to the peer.
 */
void weft_msg_ep_grant(struct weft_ep *ep, struct weft_wire_credit *credit);

#endif /* WEFT_CREDIT_H */
