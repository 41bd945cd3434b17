/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multi-eager: pieces over all eager lanes, at once, without asking.
 *
 *	sender                                    receiver
 *	  | FRAG seq tag total offset=0 ---- lane 0 --> | the first to arrive matches,
 *	  | FRAG seq tag total offset=n ---- lane 1 --> | whichever it is; the others go
 *	  | FRAG ...                                    | to the same place
 *	  | <------------------------- SYNC_ACK req     | FRAG_SYNC only, at the match
 *
 * Each piece goes to the lane that can take it soonest. The message stays at the head of its
 * endpoint's line until the last piece is handed over.
 */

#include <errno.h>
#include <stdio.h>

#include "cost.h"
#include "msg.h"

static int send_piece(struct weft_request *req, unsigned int lane)
{
	struct weft_msg_ep *me = req->me;
	bool sync = req->flags & WEFT_REQ_SYNC;
	uint8_t id = sync ? WEFT_WIRE_FRAG_SYNC : WEFT_WIRE_FRAG;
	size_t hdr_len = sync ? sizeof(struct weft_wire_frag_sync) : sizeof(struct weft_wire_frag);
	size_t rest = req->length - req->send.offset, max = weft_tx_piece_max(req, lane, hdr_len),
	       len;
	struct weft_wire_frag_sync hdr = {
		.f =
			{
				.e = {weft_put32(req->flags & WEFT_REQ_STARTED ? req->send.seq
									       : me->tx_seq),
				      weft_put64(req->tag)},
				.total = weft_put64(req->length),
				.offset = weft_put64(req->send.offset),
			},
		.req = weft_request_ref(req),
	};
	int rc;

	if (max == 0)
		return -EAGAIN;
	len = weft_tx_cut(me, req->send.offset, rest, max, me->lanes[lane].align);
	rc = weft_tx_piece(req, lane, id, &hdr, hdr_len, req->send.offset, len);
	if (rc)
		return rc;
	if (!(req->flags & WEFT_REQ_STARTED)) {
		weft_tx_take_seq(req, true);
		if (sync)
			req->flags |= WEFT_REQ_WAIT_ACK;
	}
	req->send.offset += len;
	return 0;
}

static int multi_eager_progress(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	uint32_t mask = me->eager_lanes;
	float limit = WEFT_TX_NO_LIMIT;

	if (!(req->flags & WEFT_REQ_STARTED) && !weft_tx_has_credit(me, req->length)) {
		return weft_tx_uncredited(req);
	}
	while (req->send.offset < req->length) {
		size_t rest = req->length - req->send.offset;
		size_t look = rest < 4096 ? rest : 4096;
		int lane = weft_tx_pick(me, mask, look, limit), rc;

		if (lane < 0)
			return -EAGAIN;
		rc = send_piece(req, (unsigned int)lane);
		if (rc == -EAGAIN) {
			/* Full: the others may have room. */
			limit = weft_tx_limit(me, lane, look, limit);
			mask &= ~(1u << lane);
		} else if (rc) {
			return rc;
		}
	}
	return 0;
}

/* ------------------------------------------------------------------ time */

/*
 * The longest message: shorter than the limit, in which a threshold set by hand has the last word
 * unless there shall be no multi-eager at all.
 */
static size_t longest(const struct weft_model_conf *conf)
{
	size_t end = conf->multi_eager_limit, fixed = conf->rndv_thresh;

	if (!end)
		return 0;
	if (fixed != WEFT_CONF_AUTO && fixed != WEFT_CONF_MODEL && fixed > end)
		end = fixed;
	return end == SIZE_MAX ? SIZE_MAX : end - 1;
}

static int multi_eager_cost(const struct weft_model *m, const struct weft_proto_key *key,
			    uint32_t lanes, struct weft_curve *cv)
{
	bool sync = key->op == WEFT_OP_TAG_SEND_SYNC;
	size_t hdr = sync ? sizeof(struct weft_wire_frag_sync) : sizeof(struct weft_wire_frag);
	size_t whole = weft_cost_copy_max(m, m->am_lane,
					  sync ? sizeof(struct weft_wire_eager_sync)
					       : sizeof(struct weft_wire_eager));
	size_t limit = longest(&m->conf);
	int rc;

	if (!limit) {
		snprintf(cv->why, sizeof(cv->why), "WEFT_MULTI_EAGER_LIMIT is 0");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 1, limit);
	rc = weft_cost_fragments(cv, m, lanes, hdr, key->buf);
	if (rc)
		return rc;
	/* What fits one lane message goes whole. */
	cv->min = whole + 1;
	weft_curve_end(cv);
	return 0;
}

const struct weft_proto weft_proto_multi_eager = {
	.name = "multi-eager",
	.desc = "pieces over all eager lanes at once",
	.ops = WEFT_OPS_TAG,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_MULTI,
	.lanes = &weft_lanes_eager,
	.cost = multi_eager_cost,
	.progress = multi_eager_progress,
};
