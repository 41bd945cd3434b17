/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eager: the whole message in one lane message, with the envelope in front.
 *
 *	sender                          receiver
 *	  | EAGER seq tag payload --------> | matched: copied to the user's buffer; else stored
 *	  |                                 |
 *	  | EAGER_SYNC seq tag req payload >| stored until a receive matches
 *	  | <---------------- SYNC_ACK req  | at the match
 *	  | AM seq id header payload -----> | to its handler, in sequence
 *
 * short: the lane's inline call copies the message. bcopy: it is packed into the lane's buffer.
 * zcopy: it is sent from the user's memory, which the lane owns until it reports completion.
 * Without credit the message goes by rendezvous.
 */

#include <errno.h>
#include <stdio.h>

#include "msg/header.h"
#include "msg/send.h"
#include "proto/proto.h"

static int send_on(struct weft_request *req, const struct weft_head *h, unsigned int lane)
{
	if (req->length > weft_tx_piece_max(req, lane, h->length))
		return WEFT_PROTO_NEXT;
	return weft_tx_piece(req, lane, h->id, h->bytes, h->length, 0, req->length);
}

static int eager_progress(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	uint32_t rest = me->lanes_up & ~(1u << me->am_lane);
	struct weft_head h;
	int rc, other;

	if (!weft_tx_has_credit(me, req->length))
		return weft_tx_uncredited(req);
	weft_head_whole(req, &h);
	/*
	 * One lane while it has room, so that order is the common case. Other lanes only when it is
	 * full.
	 */
	rc = send_on(req, &h, me->am_lane);
	for (; (rc == -EAGAIN || rc == WEFT_PROTO_NEXT) && rest; rest &= rest - 1) {
		other = send_on(req, &h, (unsigned int)__builtin_ctz(rest));
		if (other != WEFT_PROTO_NEXT)
			rc = other;
	}
	if (rc == -EAGAIN || rc == WEFT_PROTO_NEXT)
		return rc;
	/* Also if pack() has failed: the peer receives a message that ends with this error. */
	weft_tx_take_seq(req, true);
	if (rc)
		return rc;
	req->send.offset = req->length;
	if (req->flags & WEFT_REQ_SYNC)
		req->flags |= WEFT_REQ_WAIT_ACK;
	return 0;
}

/* The reply of the peer does not matter any more. */
void weft_eager_abort(struct weft_request *req, int status)
{
	if (!(req->flags & WEFT_REQ_STARTED))
		return;
	req->flags &= ~WEFT_REQ_WAIT_ACK;
	weft_tx_abort(req, (struct weft_wire_ref){{0}, {0}}, status);
}

/* ------------------------------------------------------------------ time */

/* The cost of every whole message; @p post names the sending call. */
static void cost_whole(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv, const char *post, double extra)
{
	const struct weft_model_lane *l = &m->lanes[m->am_lane];

	weft_curve_lanes(cv, m, lanes);
	weft_curve_once(cv, WEFT_STAGE_SEND_CPU, (struct weft_linear){l->send_overhead + extra, 0},
			post, NULL);
	weft_curve_once(cv, WEFT_STAGE_WIRE, (struct weft_linear){0, 1 / l->bandwidth},
			"data on the wire", NULL);
	weft_curve_once(cv, WEFT_STAGE_LATENCY, (struct weft_linear){l->latency, 0}, "data", NULL);
	weft_curve_once(cv, WEFT_STAGE_RECV_CPU, (struct weft_linear){l->recv_overhead, 0},
			"take in", NULL);
	/* A handler gets the bytes in the lane's buffer. */
	if (!(WEFT_OPS_AM >> key->op & 1))
		weft_curve_once(cv, WEFT_STAGE_RECV_COPY,
				(struct weft_linear){0, 1 / m->conf.bcopy_bw},
				"copy to the user's buffer", "one CPU");
}

static void cost_copy(const struct weft_model *m, struct weft_curve *cv)
{
	weft_curve_once(cv, WEFT_STAGE_SEND_COPY, (struct weft_linear){0, 1 / m->conf.bcopy_bw},
			"copy into the frame", "one CPU");
}

static int cost_short(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		      struct weft_curve *cv)
{
	size_t max = m->lanes[m->am_lane].max_short, hdr = weft_head_whole_size(key->op);

	if (max < hdr) {
		snprintf(cv->why, sizeof(cv->why), "the lane has no short messages");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 0, max - hdr);
	cost_copy(m, cv);
	cost_whole(m, key, lanes, cv, "post inline", 0);
	weft_curve_end(cv);
	return 0;
}

static int cost_bcopy(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		      struct weft_curve *cv)
{
	const struct weft_model_lane *l = &m->lanes[m->am_lane];
	size_t hdr = weft_head_whole_size(key->op);

	if (l->max_bcopy < hdr && l->max_short < hdr) {
		snprintf(cv->why, sizeof(cv->why), "the lane has no messages that are packed");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 0, weft_cost_copy_max(m, m->am_lane, hdr));
	cost_copy(m, cv);
	cost_whole(m, key, lanes, cv, "pack and post", WEFT_COST_PACK);
	weft_curve_end(cv);
	return 0;
}

static int cost_zcopy(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		      struct weft_curve *cv)
{
	size_t max = weft_cost_zcopy_max(m, m->am_lane, weft_head_whole_size(key->op), key->buf);

	if (!max) {
		snprintf(cv->why, sizeof(cv->why), "the lane cannot send this memory in place");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 1, max);
	if (!(key->buf & WEFT_BUF_REG))
		weft_cost_register(cv, m, lanes, WEFT_STAGE_SEND_REG);
	cost_whole(m, key, lanes, cv, "describe and post", WEFT_COST_ZCOPY);
	weft_curve_end(cv);
	return 0;
}

const struct weft_proto weft_proto_eager_short = {
	.name = "eager/short",
	.desc = "whole message, copied inline, lowest-latency lane",
	.ops = WEFT_OPS_EAGER,
	.classes = 1u << WEFT_DT_CONTIG,
	.flags = WEFT_PROTO_F_SHORT,
	.lanes = &weft_lanes_am,
	.cost = cost_short,
	.progress = eager_progress,
	.abort = weft_eager_abort,
};

const struct weft_proto weft_proto_eager_bcopy = {
	.name = "eager/bcopy",
	.desc = "whole message, packed into the lane's buffer, lowest-latency lane",
	.ops = WEFT_OPS_EAGER,
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_am,
	.cost = cost_bcopy,
	.progress = eager_progress,
	.abort = weft_eager_abort,
};

const struct weft_proto weft_proto_eager_zcopy = {
	.name = "eager/zcopy",
	.desc = "whole message, sent from user memory, lowest-latency lane",
	.ops = WEFT_OPS_EAGER,
	.classes = 1u << WEFT_DT_CONTIG,
	.flags = WEFT_PROTO_F_ZCOPY,
	.lanes = &weft_lanes_am,
	.cost = cost_zcopy,
	.progress = eager_progress,
	.abort = weft_eager_abort,
};
