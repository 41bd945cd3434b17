/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/credit.h
 * How much a peer may send unasked (msg/credit.c says what counts as what).
 */
#ifndef WEFT_CREDIT_H
#define WEFT_CREDIT_H

#include "msg/endpoint.h"

/**
 * Has the peer credit for a message of @p total bytes, of which nobody has told before? Books it.
 */
static inline bool weft_credit_take(struct weft_msg_ep *me, uint64_t total)
{
	if (total <= WEFT_EAGER_FREE) {
		if (me->rx_small == me->rx_small_told)
			return false;
		me->rx_small++;
		return true;
	}
	if (total > me->rx_told - me->rx_used)
		return false;
	me->rx_used += total;
	return true;
}

/** An eager message of @p total bytes is matched, or dropped: another one may come. */
static inline void weft_credit_give(struct weft_msg_ep *me, uint64_t total)
{
	if (total > WEFT_EAGER_FREE)
		me->rx_allowed += total;
	else
		me->rx_small_allowed++;
}

/** The same of one that is announced only. */
static inline void weft_credit_give_rts(struct weft_msg_ep *me)
{
	me->rx_small_allowed++;
}

/**
 * A message stays here that took a message credit. Is so much of the window used that the peer is
 * about to wait, and the pool has no more for it?
 */
static inline bool weft_credit_short(const struct weft_msg_ep *me)
{
	uint32_t used = me->rx_small + me->rx_small_window - me->rx_small_allowed;

	return used > me->rx_small_window / 2;
}

/**
 * It gives its credit back now, and @p bytes of WEFT_UNEXP_MEMORY are booked for it. At the bound
 * the endpoint fails, soon, if it has more than an even share.
 * @return false: it keeps its credit
 */
bool weft_credit_spill(struct weft_msg_ep *me, uint64_t bytes);
/** It goes. @param me  NULL = its endpoint is gone */
void weft_credit_unspill(struct weft_msg_worker *mw, struct weft_msg_ep *me, uint64_t bytes);

void weft_credit_worker_init(struct weft_msg_worker *mw);
/** Send what may be sent by now, or when there is room. */
void weft_credit_send(struct weft_msg_ep *me);
/** Much is used, or has come back: fit the windows, and tell the peer. */
void weft_credit_look(struct weft_msg_ep *me);

/** Tell the peer when enough has become free. */
static inline void weft_credit_update(struct weft_msg_ep *me)
{
	if (__builtin_expect(weft_seq_due(&me->rx_seq), 0) ||
	    __builtin_expect(weft_seq_due(&me->rx_am_seq), 0) ||
	    __builtin_expect(me->rx_small_allowed - me->rx_small_told > me->rx_small_window / 4,
			     0) ||
	    __builtin_expect(me->rx_allowed - me->rx_told > me->rx_window / 4, 0))
		weft_credit_look(me);
}

/** A message waits here: much may be used. */
static inline void weft_credit_kept(struct weft_msg_ep *me)
{
	if ((int64_t)(me->rx_used - me->rx_low) >= 0 ||
	    (int32_t)(me->rx_small - me->rx_small_low) >= 0)
		weft_credit_look(me);
}

/** The handler of CREDIT; records are its payload. */
void weft_credit_recv(struct weft_msg_ep *me, const void *data, size_t payload);
/** Give the peer's windows back to the worker. */
void weft_credit_fini(struct weft_msg_ep *me);
/**
 * A message that an ended endpoint has left (@p more), or that it had left and that goes now,
 * counts in the pools. @param total  as in weft_credit_take()
 */
void weft_credit_left(struct weft_msg_worker *mw, uint64_t total, bool more);

#endif /* WEFT_CREDIT_H */
