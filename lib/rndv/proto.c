/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous by active messages: the data moves only once a receive is there, straight to its
 * place.
 *
 *	sender                                      receiver
 *	  | RTS seq tag total sreq ------------------> | matched at its turn in the sequence
 *	  | <------------- RTR sreq rreq offset length | "send these bytes"
 *	  | DATA rreq offset --------------- lane 0 -> | direct to the user's buffer
 *	  | DATA rreq offset --------------- lane 1 -> |
 *	  | <------------------------- ATS sreq status | all there, or not wanted
 *
 * Who may send what: one RTR covers one stretch; a further one must continue where the one before
 * ends. Our receivers request the whole message at once, the lanes' windows are the flow control. A
 * buffer that is too small takes nothing: the receive ends with -EMSGSIZE, ATS releases the sender,
 * which sees success.
 */

#include <errno.h>

#include "rndv/rndv.h"
#include "proto/proto.h"

/* ------------------------------------------------------------------ sender */

static int rts_progress(struct weft_request *req)
{
	struct weft_head h;
	weft_le32 *flags;

	if (!weft_tx_has_small(req->me))
		return -EAGAIN; /* credit kicks */
	flags = weft_head_rts(req, &h);
	h.length = (uint16_t)(h.length + weft_rndv_offer(req, flags, h.bytes + h.length));
	/* Never behind data of its own endpoint, so a lane with room is as good as the next. */
	if (weft_tx_envelope_any(req->me, h.id, h.bytes, h.length))
		return -EAGAIN;
	weft_tx_take_seq(req, false);
	weft_rndv_offered(req);
	return 0;
}

/* Nothing of it waits here any more, and a receiver that has requested bytes is notified. */
static void rndv_abort(struct weft_request *req, int status)
{
	if (!(req->flags & WEFT_REQ_RNDV))
		return;
	weft_rndv_send_end(req);
	if (req->flags & WEFT_REQ_RTR)
		weft_tx_abort(req, req->send.peer, status);
}

/*
 * What the sender does first is the same for all: it offers what it can, and the receiver decides
 * how the data moves (rndv/rndv.h). The sender's table says what the receiver is going to do by the
 * same rules; the times are proto/rndv_cost.c's.
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
