/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous by active messages: the data is sent only when a receive has matched, directly to its
 * buffer.
 *
 *	sender                                      receiver
 *	  | RTS seq tag total sreq ------------------> | matched in sequence
 *	  | <------------- RTR sreq rreq offset length | requests these bytes
 *	  | DATA rreq offset --------------- lane 0 -> | direct to the user's buffer
 *	  | DATA rreq offset --------------- lane 1 -> |
 *	  | <------------------------- ATS sreq status | all there, or not wanted
 *
 * One RTR requests one range; a further one must continue at its end. Our receivers request the
 * whole message at once; the lanes' windows are the flow control. A buffer that is too small gets
 * the bytes that fit: the receive ends with -EMSGSIZE, and ATS completes the send with success.
 */

#include <errno.h>

#include "proto/proto.h"
#include "rndv/rndv.h"

/* ------------------------------------------------------------------ sender */

static int rts_progress(struct weft_request *req)
{
	struct weft_head h;
	weft_le32 *flags;

	if (!weft_tx_has_small(req->me))
		return -EAGAIN; /* CREDIT kicks the queue */
	flags = weft_head_rts(req, &h);
	h.length = (uint16_t)(h.length + weft_rndv_offer(req, flags, h.bytes + h.length));
	/* No data of this endpoint must precede it, so any lane with room is as good as another. */
	if (weft_tx_envelope_any(req->me, h.id, h.bytes, h.length))
		return -EAGAIN;
	weft_tx_take_seq(req, false);
	weft_rndv_offered(req);
	return 0;
}

/* Remove its pieces from all queues, and notify a receiver that has requested bytes. */
static void rndv_abort(struct weft_request *req, int status)
{
	if (!(req->flags & WEFT_REQ_RNDV))
		return;
	weft_rndv_send_end(req);
	if (req->flags & WEFT_REQ_RTR)
		weft_tx_abort(req, req->send.peer, status);
}

/*
 * All rendezvous sends begin in the same manner: the sender offers what it supports, and the
 * receiver decides how the data is transferred (rndv/rndv.h). The sender's table predicts this
 * decision by the same rules; the times are those of proto/cost.c.
 */

const struct weft_proto weft_proto_rndv_get = {
	.name = "rndv/get",
	.desc = "rendezvous: the receiver reads user memory over all lanes that can",
	.ops = WEFT_OPS_RNDV,
	.classes = 1u << WEFT_DT_CONTIG,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_get,
	.cost = weft_rndv_cost_get,
	.progress = rts_progress,
	.abort = rndv_abort,
};

const struct weft_proto weft_proto_rndv_pull = {
	.name = "rndv/pull",
	.desc = "rendezvous: the receiver pulls pieces over all lanes",
	.ops = WEFT_OPS_RNDV,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_am,
	.cost = weft_rndv_cost_pull,
	.progress = rts_progress,
	.abort = rndv_abort,
};

const struct weft_proto weft_proto_rndv_put = {
	.name = "rndv/put",
	.desc = "rendezvous: written to the receiver's memory over all lanes that can",
	.ops = WEFT_OPS_RNDV,
	.classes = 1u << WEFT_DT_CONTIG,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_put,
	.cost = weft_rndv_cost_put,
	.progress = rts_progress,
	.abort = rndv_abort,
};

const struct weft_proto weft_proto_rndv_am = {
	.name = "rndv/am",
	.desc = "rendezvous: sent over all lanes when the receive is posted",
	.ops = WEFT_OPS_RNDV,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_am,
	.cost = weft_rndv_cost_am,
	.progress = rts_progress,
	.abort = rndv_abort,
};
