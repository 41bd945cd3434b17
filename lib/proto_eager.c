/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eager: the whole message in one lane message, with the envelope in front.
 *
 *	sender                          receiver
 *	  | EAGER seq tag payload --------> | matched: copied to the user's buffer; else kept
 *	  |                                 |
 *	  | EAGER_SYNC seq tag req payload >| kept until a receive matches
 *	  | <---------------- SYNC_ACK req  | at the match
 *
 * short: copied by the lane's inline call; bcopy: packed into the lane's buffer; zcopy: sent from
 * the user's memory, which is the lane's until it says so. Without credit the message goes as a
 * rendezvous.
 */

#include <errno.h>

#include "msg.h"

static int send_on(struct weft_request *req, unsigned int lane)
{
	struct weft_wire_eager_sync hdr = {
		.e = {weft_put32(req->me->tx_seq), weft_put64(req->tag)},
	};
	uint8_t id = WEFT_WIRE_EAGER;
	size_t hdr_len = sizeof(hdr.e);

	if (req->flags & WEFT_REQ_SYNC) {
		hdr.req = weft_request_ref(req);
		id = WEFT_WIRE_EAGER_SYNC;
		hdr_len = sizeof(hdr);
	}
	if (req->length > weft_tx_piece_max(req, lane, hdr_len))
		return -EAGAIN;
	return weft_tx_piece(req, lane, id, &hdr, hdr_len, 0, req->length);
}

static int eager_progress(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	uint32_t rest = me->lanes_up & ~(1u << me->am_lane);
	int rc;

	if (!weft_tx_has_credit(me, req->length)) {
		me->mw->count.no_eager_credit++;
		req->send.proto = &weft_proto_rndv;
		return weft_proto_rndv.progress(req);
	}
	/*
	 * One lane while it has room, so that order is the common case; another rather than none.
	 */
	rc = send_on(req, me->am_lane);
	for (; rc == -EAGAIN && rest; rest &= rest - 1)
		rc = send_on(req, (unsigned int)__builtin_ctz(rest));
	if (rc)
		return rc;
	weft_tx_take_seq(req, true);
	req->send.offset = req->length;
	if (req->flags & WEFT_REQ_SYNC)
		req->flags |= WEFT_REQ_WAIT_ACK;
	return 0;
}

static uint32_t eager_lanes(const struct weft_msg_ep *me)
{
	return 1u << me->am_lane;
}

const struct weft_proto weft_proto_eager_short = {
	.name = "eager/short",
	.desc = "whole message, copied inline, lowest-latency lane",
	.progress = eager_progress,
	.lanes = eager_lanes,
};

const struct weft_proto weft_proto_eager_bcopy = {
	.name = "eager/bcopy",
	.desc = "whole message, packed into the lane's buffer, lowest-latency lane",
	.progress = eager_progress,
	.lanes = eager_lanes,
};

const struct weft_proto weft_proto_eager_zcopy = {
	.name = "eager/zcopy",
	.desc = "whole message, sent from user memory, lowest-latency lane",
	.progress = eager_progress,
	.lanes = eager_lanes,
};
