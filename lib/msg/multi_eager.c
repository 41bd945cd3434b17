/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multi-eager: pieces over all eager lanes at once, unrequested.
 *
 *	sender                                    receiver
 *	  | FRAG seq tag total offset=0 ---- lane 0 --> | the first piece to arrive is
 *	  | FRAG seq tag total offset=n ---- lane 1 --> | matched; the others go to the
 *	  | FRAG ...                                    | same place
 *	  | <------------------------- SYNC_ACK req     | FRAG_SYNC only, at the match
 *
 * The pieces of an active message are AM_FRAG. Its handler is called in sequence, when all of them
 * have arrived.
 *
 * Each piece goes to the lane that can take it first. The message stays at the head of its
 * endpoint's queue until the last piece is handed over.
 */

#include <errno.h>
#include <stdio.h>

#include "proto/proto.h"
#include "msg/header.h"
#include "msg/send.h"
#include "msg/stripe.h"

static ssize_t send_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	struct weft_msg_ep *me = req->me;
	struct weft_head h;
	size_t len, max;
	int rc;

	weft_head_piece(req, &h);
	max = weft_tx_piece_max(req, lane, h.length);
	if (max == 0)
		return -EAGAIN;
	len = weft_tx_cut(me, off, rest, max, me->lanes[lane].align);
	rc = weft_tx_piece(req, lane, h.id, h.bytes, h.length, off, len);
	if (rc == -EAGAIN)
		return rc;
	if (!(req->flags & WEFT_REQ_STARTED)) {
		weft_tx_take_seq(req, true);
		if (req->flags & WEFT_REQ_SYNC)
			req->flags |= WEFT_REQ_WAIT_ACK;
	}
	return rc ? rc : (ssize_t)len;
}

static int multi_eager_progress(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (!(req->flags & WEFT_REQ_STARTED) && !weft_tx_has_credit(me, req->length))
		return weft_tx_uncredited(req);
	if (!(req->flags & WEFT_REQ_STARTED) && req->length > me->mw->conf.rndv_min_piece &&
	    weft_tx_contended(req))
		return weft_tx_announce(req);
	return weft_stripe(req, me->eager_lanes, WEFT_DIR_TX, req->length, send_piece);
}

/* ------------------------------------------------------------------ time */

/*
 * The longest message is shorter than the limit. A larger configured rendezvous threshold overrides
 * the limit, unless multi-eager is disabled.
 */
static size_t longest_message(const struct weft_model_conf *conf)
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
	size_t whole = weft_cost_copy_max(m, m->am_lane, weft_head_whole_size(key->op));
	size_t limit = longest_message(&m->conf);
	int rc;

	if (!limit) {
		snprintf(cv->why, sizeof(cv->why), "WEFT_MULTI_EAGER_LIMIT is 0");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 1, limit);
	rc = weft_cost_fragments(cv, m, lanes, weft_head_piece_size(key->op), key->buf);
	if (rc)
		return rc;
	/* A message that fits into one lane message is sent whole. */
	cv->min = whole + 1;
	weft_curve_end(cv);
	return 0;
}

const struct weft_proto weft_proto_multi_eager = {
	.name = "multi-eager",
	.desc = "pieces over all eager lanes at once",
	.ops = WEFT_OPS_EAGER,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_MULTI,
	.lanes = &weft_lanes_eager,
	.cost = multi_eager_cost,
	.progress = multi_eager_progress,
	.abort = weft_eager_abort,
};
