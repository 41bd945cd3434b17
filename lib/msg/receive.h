/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/receive.h
 * The common part of all receives: which bytes have come, where they go, how a receive ends.
 */
#ifndef WEFT_MSG_RECEIVE_H
#define WEFT_MSG_RECEIVE_H

#include "msg/credit.h"
#include "msg/endpoint.h"

/**
 * A received range of bytes with gaps on both sides costs memory that no credit bounds. Every
 * endpoint may have the floor of such ranges. Beyond that it may have up to WEFT_IVAL_MAX, and all
 * endpoints together the limit. At the limit the endpoint with the most ranges fails. So an
 * endpoint with no more than an even share never fails.
 */
#define WEFT_RX_RANGES_LIMIT (1u << 19)
#define WEFT_RX_RANGES_FLOOR 256u

/**
 * Bytes [off, off + len) have come. @return 0: for the first time. Else they are dropped: -EEXIST
 * (counted), or no memory, or the endpoint has more ranges than it may have (WEFT_RX_RANGES_LIMIT);
 * in the last two cases the endpoint fails
 */
int weft_rx_note(struct weft_msg_ep *me, struct weft_ivals *got, uint64_t off, uint64_t len);
static inline uint32_t weft_rx_ranges_above(const struct weft_msg_ep *me)
{
	return me->rx_ranges > WEFT_RX_RANGES_FLOOR ? me->rx_ranges - WEFT_RX_RANGES_FLOOR : 0;
}

/** Count @p more ranges. */
static inline void weft_rx_ranges_add(struct weft_msg_ep *me, int32_t more)
{
	uint32_t before = weft_rx_ranges_above(me);

	me->rx_ranges += (uint32_t)more;
	if (!me->rx_fragmented)
		me->mw->rx_ranges += weft_rx_ranges_above(me) - before;
}

/** No more of these bytes are expected. @param me  the endpoint that counted the ranges */
static inline void weft_rx_forget(struct weft_msg_ep *me, struct weft_ivals *got)
{
	if (me && got->num > 1)
		weft_rx_ranges_add(me, -(int32_t)(got->num - 1));
	weft_ivals_fini(got);
}

/** A message may not begin. Counts why; the endpoint fails unless the message is over already. */
void weft_rx_refused(struct weft_msg_ep *me, const struct weft_seq_window *w, uint32_t seq,
		     const char *what);

/**
 * May message @p seq of a class begin now? Books its credit (@p total as in weft_credit_take()).
 * The lane has acknowledged the message, so the endpoint fails if the message cannot be accepted.
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

/** Record the message that a receive has matched; truncation is known now. */
static inline void weft_recv_matched(struct weft_request *req, struct weft_msg_ep *me, uint64_t tag,
				     uint64_t total)
{
	req->me = me;
	req->source_id = me ? me->ep->remote_id : 0;
	req->tag = tag;
	req->length = total;
	if (__builtin_expect(total > req->dt.length, 0)) {
		req->status = -EMSGSIZE;
		req->mw->count.truncated++;
	}
}

/**
 * Some of the data will not come. This status replaces truncation, because it is more important.
 */
static inline void weft_recv_fail(struct weft_request *req, int status)
{
	if (req->status == WEFT_INPROGRESS || req->status == -EMSGSIZE)
		req->status = status;
}

/** Copy bytes to the user's buffer; bytes past its end are dropped. */
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
 * All data is there. @p now: inside the user's call. The request is then marked WEFT_REQ_NOW, or
 * completes at the next progress.
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

#endif /* WEFT_MSG_RECEIVE_H */
