/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/credit.h
 * The common part of all receives: how much a peer may send unrequested (credit), which bytes have
 * come, where they go, how a receive ends. msg/credit.c defines which credit a message takes.
 */
#ifndef WEFT_MSG_CREDIT_H
#define WEFT_MSG_CREDIT_H

#include "base/log.h"
#include "msg/state.h"

/* ------------------------------------------------------------------ credit of a peer */

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

/** The credit of an eager message of @p total bytes is free, and may be advertised again. */
static inline void weft_credit_give(struct weft_msg_ep *me, uint64_t total)
{
	if (total > WEFT_EAGER_FREE)
		me->rx_allowed += total;
	else
		me->rx_small_allowed++;
}

/** The message credit of an announced message (RTS) is free, and may be advertised again. */
static inline void weft_credit_give_rts(struct weft_msg_ep *me)
{
	me->rx_small_allowed++;
}

/**
 * To be called when a message stays unmatched, after weft_credit_kept(). @return true when the peer
 * has used more than half of its window of messages. The peer may then soon have to wait, since
 * weft_credit_kept() has not enlarged the window: the pool is exhausted, the window has its maximum
 * size, or a CREDIT message is due.
 */
static inline bool weft_credit_short(const struct weft_msg_ep *me)
{
	uint32_t used = me->rx_small + me->rx_small_window - me->rx_small_allowed;

	return used > me->rx_small_window / 2;
}

/**
 * Free the message credit of a stored message now, and book @p bytes of WEFT_UNEXP_MEMORY for it
 * instead. When that memory is full, the endpoint fails at the end of progress if it has more than
 * an even share of it.
 * @return false: the memory is full, or WEFT_UNEXP_MEMORY is 0: the message keeps its credit
 */
bool weft_credit_spill(struct weft_msg_ep *me, uint64_t bytes);
/**
 * A message that weft_credit_spill() has booked is removed: free its @p bytes.
 * @param me  NULL = its endpoint is gone
 */
void weft_credit_unspill(struct weft_msg_worker *mw, struct weft_msg_ep *me, uint64_t bytes);

void weft_credit_worker_init(struct weft_msg_worker *mw);
/**
 * Send a CREDIT message now, or as soon as a lane has room and at most WEFT_CTL_HELD control
 * messages wait. No effect if the endpoint has failed.
 */
void weft_credit_send(struct weft_msg_ep *me);
/**
 * Enlarge windows that are used, or else shrink them if the pool is nearly empty. Send CREDIT if
 * there is anything new to advertise. No effect while CREDIT is due.
 */
void weft_credit_look(struct weft_msg_ep *me);

/**
 * Check the windows when a quarter of one can be advertised: of sequence numbers, messages or
 * bytes.
 */
static inline void weft_credit_update(struct weft_msg_ep *me)
{
	if (__builtin_expect(weft_seq_due(&me->rx_seq), 0) ||
	    __builtin_expect(weft_seq_due(&me->rx_am_seq), 0) ||
	    __builtin_expect(
		    me->rx_small_allowed - me->rx_small_advertised > me->rx_small_window / 4, 0) ||
	    __builtin_expect(me->rx_allowed - me->rx_advertised > me->rx_window / 4, 0))
		weft_credit_look(me);
}

/** weft_credit_update() after a short tagged message. */
static inline void weft_credit_update_small(struct weft_msg_ep *me)
{
	if (__builtin_expect(weft_seq_due(&me->rx_seq), 0) ||
	    __builtin_expect(
		    me->rx_small_allowed - me->rx_small_advertised > me->rx_small_window / 4, 0))
		weft_credit_look(me);
}

/** A message stays unmatched: check the windows when half of one is used. */
static inline void weft_credit_kept(struct weft_msg_ep *me)
{
	if ((int64_t)(me->rx_used - me->rx_low) >= 0 ||
	    (int32_t)(me->rx_small - me->rx_small_low) >= 0)
		weft_credit_look(me);
}

/** The handler of CREDIT. @param payload  length of the records behind struct weft_wire_credit */
void weft_credit_recv(struct weft_msg_ep *me, const void *data, size_t payload);
/** Give the peer's windows back to the pools of the worker. */
void weft_credit_fini(struct weft_msg_ep *me);
/**
 * The pools count messages that an ended endpoint has left unmatched. @p more true: there is one
 * more; false: one of them is removed. @param total  as in weft_credit_take()
 */
void weft_credit_left(struct weft_msg_worker *mw, uint64_t total, bool more);

/**
 * Fill the record CREDIT of a wire-up message: the credit that this end grants the peer at connect.
 * The first call takes the peer's windows from the pools.
 */
void weft_msg_ep_grant(struct weft_ep *ep, struct weft_wire_credit *credit);

/* ------------------------------------------------------------------ received bytes */

/**
 * Each received range of a message beyond its first one costs memory that no credit bounds. Every
 * endpoint may have WEFT_RX_RANGES_FLOOR such ranges. An endpoint with more than WEFT_IVAL_MAX
 * fails. WEFT_RX_RANGES_LIMIT bounds the sum of what the endpoints of a worker have above the
 * floor. At this limit the endpoint with the most ranges fails, so never one with less than an even
 * share.
 */
#define WEFT_RX_RANGES_LIMIT (1u << 19)
#define WEFT_RX_RANGES_FLOOR 256u

/**
 * Bytes [off, off + len) have come. @return 0: for the first time. Else they are to be dropped:
 * -EEXIST: some have come before (counted); -ENOMEM: no memory for their range; -EPROTO: more
 * ranges than the endpoint may have. With -ENOMEM and -EPROTO the endpoint fails.
 */
int weft_rx_note(struct weft_msg_ep *me, struct weft_ivals *got, uint64_t off, uint64_t len);
static inline uint32_t weft_rx_ranges_above(const struct weft_msg_ep *me)
{
	return me->rx_ranges > WEFT_RX_RANGES_FLOOR ? me->rx_ranges - WEFT_RX_RANGES_FLOOR : 0;
}

/**
 * Add @p more, which may be negative, to the ranges of the endpoint. Its worker counts those above
 * the floor.
 */
static inline void weft_rx_ranges_add(struct weft_msg_ep *me, int32_t more)
{
	uint32_t before = weft_rx_ranges_above(me);

	me->rx_ranges += (uint32_t)more;
	if (!me->rx_fragmented)
		me->mw->rx_ranges += weft_rx_ranges_above(me) - before;
}

/** A message ends: free its ranges. @param me  the endpoint that has counted them; NULL = gone */
static inline void weft_rx_forget(struct weft_msg_ep *me, struct weft_ivals *got)
{
	if (me && got->num > 1)
		weft_rx_ranges_add(me, -(int32_t)(got->num - 1));
	weft_ivals_fini(got);
}

/** Count why message @p seq may not begin. The endpoint fails, unless the message is over. */
void weft_rx_refused(struct weft_msg_ep *me, const struct weft_seq_window *w, uint32_t seq,
		     const char *what);

/**
 * May message @p seq of a class begin now? Books its credit (@p total as in weft_credit_take()).
 * If it may not, weft_rx_refused() has been called: the lane will not deliver the message again.
 * @p what names the class: "message".
 */
static inline bool weft_rx_may_begin(struct weft_msg_ep *me, const struct weft_seq_window *w,
				     uint32_t seq, uint64_t total, const char *what)
{
	if (__builtin_expect(weft_seq_inside(w, seq) && weft_credit_take(me, total), 1))
		return true;
	weft_rx_refused(me, w, seq, what);
	return false;
}

/** Record the message that a receive has matched. If it is longer than the buffer: -EMSGSIZE. */
static inline void weft_recv_matched(struct weft_request *req, struct weft_msg_ep *me, uint64_t tag,
				     uint64_t total)
{
	WEFT_PROBE4(match, req, me, tag, total);
	req->me = me;
	req->source_id = me ? me->ep->remote_id : 0;
	req->tag = tag;
	req->length = total;
	if (__builtin_expect(total > req->dt.length, 0)) {
		req->status = -EMSGSIZE;
		req->mw->count.truncated++;
	}
}

/** Some of the data is lost. @p status replaces that of truncation, but no other error. */
static inline void weft_recv_fail(struct weft_request *req, int status)
{
	if (req->status == WEFT_INPROGRESS || req->status == -EMSGSIZE)
		req->status = status;
}

/** Copy bytes to the user's buffer. Bytes past its end, or after a failed unpack, are dropped. */
static inline void weft_recv_place(struct weft_request *req, uint64_t off, const void *src,
				   size_t len)
{
	int rc;

	if (off >= req->dt.length || (req->flags & WEFT_REQ_UNPACKERR))
		return;
	if (len > req->dt.length - off)
		len = req->dt.length - off;
	if (len == 0)
		return;
	/* This counter is in the same cache line as those of matched messages. */
	req->mw->count.rx_copied_bytes += len;
	rc = weft_dt_unpack(&req->dt, off, src, len);
	if (__builtin_expect(rc >= 0, 1))
		return;
	req->flags |= WEFT_REQ_UNPACKERR;
	weft_recv_fail(req, rc);
}

/**
 * All data is there, or no more will come. @p now: inside the posting call. The request is then
 * marked WEFT_REQ_NOW, or, with an error or WEFT_REQ_FORCE, completes at the next progress.
 */
static inline void weft_recv_done(struct weft_request *req, bool now)
{
	int status = req->status == WEFT_INPROGRESS ? 0 : req->status;

	if (!now)
		weft_request_complete(req, status);
	else if (status || (req->flags & WEFT_REQ_FORCE))
		weft_request_complete_later(req, status);
	else
		req->flags |= WEFT_REQ_NOW;
}

/**
 * The end of the call that posted the receive. Its data may have been there already (WEFT_REQ_NOW:
 * the request is freed). @return the result of the call
 */
static inline int weft_recv_return(struct weft_request *req, const struct weft_op_params *params,
				   struct weft_request **out)
{
	bool now = req->flags & WEFT_REQ_NOW;

	if (out)
		*out = now ? NULL : req;
	if (!now)
		return WEFT_INPROGRESS;
	if (params && params->completion) {
		weft_request_settle(req);
		weft_request_result(req, params->completion);
	}
	weft_request_drop(req);
	return 0;
}

#endif /* WEFT_MSG_CREDIT_H */
