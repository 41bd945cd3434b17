/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/recv.h
 * What all that arrives shares: which bytes have come (msg/islands.c), where they go, how a receive
 * ends.
 */
#ifndef WEFT_MSG_RECV_H
#define WEFT_MSG_RECV_H

#include "msg/credit.h"
#include "msg/endpoint.h"

/**
 * Islands cost memory that no credit bounds. An endpoint may have its floor whatever the others
 * have, and beyond it up to WEFT_IVAL_MAX, all together as many as the limit. When that is reached
 * who has most ends, so who has no more than an even share never does.
 */
#define WEFT_ISLANDS_LIMIT (1u << 19)
#define WEFT_ISLANDS_FLOOR 256u

/**
 * Bytes [off, off + len) of something have come. @return 0: for the first time; else they are
 * dropped: -EEXIST (counted), or no memory, or more islands than the peer may have in all that is
 * coming from it (WEFT_ISLANDS_LIMIT): then the endpoint fails
 */
int weft_rx_note(struct weft_msg_ep *me, struct weft_ivals *got, uint64_t off, uint64_t len);
static inline uint32_t weft_rx_islands_above(const struct weft_msg_ep *me)
{
	return me->rx_islands > WEFT_ISLANDS_FLOOR ? me->rx_islands - WEFT_ISLANDS_FLOOR : 0;
}

/** So many islands more, or less. */
static inline void weft_rx_islands(struct weft_msg_ep *me, int32_t more)
{
	uint32_t before = weft_rx_islands_above(me);

	me->rx_islands += (uint32_t)more;
	if (!me->rx_torn)
		me->mw->rx_islands += weft_rx_islands_above(me) - before;
}

/** Nothing more of it is awaited. @param me  that noted it */
static inline void weft_rx_forget(struct weft_msg_ep *me, struct weft_ivals *got)
{
	if (me && got->num > 1)
		weft_rx_islands(me, -(int32_t)(got->num - 1));
	weft_ivals_fini(got);
}
/** Why it may not begin: counted, and the endpoint fails unless it is over already. */
void weft_rx_refused(struct weft_msg_ep *me, const struct weft_seq_window *w, uint32_t seq,
		     const char *what);

/**
 * May message @p seq of a class begin now? Books its credit (@p total as in weft_credit_take()).
 * The lane has acknowledged it, so what must not be dropped silently ends the endpoint. @p what
 * names the class: "message".
 */
static inline bool weft_rx_may_begin(struct weft_msg_ep *me, const struct weft_seq_window *w,
				     uint32_t seq, uint64_t total, const char *what)
{
	if (__builtin_expect(weft_seq_inside(w, seq) && weft_credit_take(me, total), 1))
		return true;
	weft_rx_refused(me, w, seq, what);
	return false;
}

/** Note what a matched receive gets; truncation is known now. */
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

/** Some of it will not come, which says more than that the rest has no room. */
static inline void weft_recv_fail(struct weft_request *req, int status)
{
	if (req->status == WEFT_INPROGRESS || req->status == -EMSGSIZE)
		req->status = status;
}

/** Put bytes where the user wants them; past the buffer's end they vanish. */
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
	/* On the line of what counts matched messages. */
	req->mw->count.rx_copied_bytes += len;
	rc = weft_dt_unpack(&req->dt, off, src, len);
	if (__builtin_expect(rc >= 0, 1))
		return;
	req->flags |= WEFT_REQ_UNPACKERR;
	weft_recv_fail(req, rc);
}

/**
 * All there. @p now: inside the call of the user; the request is then marked WEFT_REQ_NOW, or
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
 * The end of the call that started the receive, whose data may have been there (WEFT_REQ_NOW: the
 * request is dropped). @return what the call does
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

#endif /* WEFT_MSG_RECV_H */
