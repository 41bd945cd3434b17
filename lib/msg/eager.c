/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eager messages, and the headers that sends put in front of their bytes: of a whole message, of a
 * piece, and of an announcement. core/wire.c makes those of the parts of a message that is split.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/wire.h"
#include "msg/eager.h"
#include "msg/send.h"
#include "msg/transmit.h"
#include "proto/proto.h"

/* ------------------------------------------------------------------ headers */

/* The message's sequence number, or the one that it would take with its first piece. */
static uint32_t seq_of(const struct weft_request *req)
{
	if (req->flags & WEFT_REQ_STARTED)
		return req->send.seq;
	return req->flags & WEFT_REQ_AM ? req->me->tx_am_seq : req->me->tx_seq;
}

static struct weft_wire_eager tagged_header(const struct weft_request *req)
{
	return (struct weft_wire_eager){weft_put32(seq_of(req)), weft_put64(req->tag)};
}

/* The first fields of AM, AM_FRAG and AM_RTS, which are equal. */
static struct weft_wire_am am_header(const struct weft_request *req)
{
	const struct weft_req_am *a = &req->send.am;

	return (struct weft_wire_am){weft_put32(seq_of(req)), weft_put16(a->id),
				     weft_put16(a->header_length)};
}

/* Append the user's header. */
static void add_user(const struct weft_request *req, struct weft_head *h)
{
	const struct weft_req_am *a = &req->send.am;

	if (a->header_length)
		memcpy(h->bytes + h->length, a->header, a->header_length);
	h->length = (uint16_t)(h->length + a->header_length);
}

/* Put EXT in front of the header, if the message needs it. @return length of EXT, or 0 */
static size_t add_ext(const struct weft_request *req, struct weft_head *h)
{
	struct weft_wire_ext x;

	if (__builtin_expect(!req->ext.any, 1))
		return 0;
	x = weft_ext_to_wire(&req->ext, h->id);
	memmove(h->bytes + sizeof(x), h->bytes, h->length);
	memcpy(h->bytes, &x, sizeof(x));
	h->id = WEFT_WIRE_EXT;
	h->length = (uint16_t)(h->length + sizeof(x));
	return sizeof(x);
}

static void put_whole_header(const struct weft_request *req, struct weft_head *h)
{
	if (req->flags & WEFT_REQ_AM) {
		h->id = WEFT_WIRE_AM;
		h->length = sizeof(h->am);
		h->am = am_header(req);
		add_user(req, h);
		return;
	}
	h->id = WEFT_WIRE_EAGER;
	h->length = sizeof(h->eager.e);
	h->eager.e = tagged_header(req);
	if (req->flags & WEFT_REQ_SYNC) {
		h->id = WEFT_WIRE_EAGER_SYNC;
		h->length = sizeof(h->eager);
		h->eager.req = weft_request_ref(req);
	}
}

static void head_whole(const struct weft_request *req, struct weft_head *h)
{
	put_whole_header(req, h);
	add_ext(req, h);
}

static void put_fragment_header(const struct weft_request *req, struct weft_head *h)
{
	const weft_le64 total = weft_put64(req->length), offset = weft_put64(req->send.offset);

	if (req->flags & WEFT_REQ_AM) {
		h->id = WEFT_WIRE_AM_FRAG;
		h->length = sizeof(h->am_frag);
		h->am_frag = (struct weft_wire_am_frag){am_header(req), total, offset};
		if (req->send.offset == 0)
			add_user(req, h);
		return;
	}
	h->id = WEFT_WIRE_FRAG;
	h->length = sizeof(h->frag.f);
	h->frag.f = (struct weft_wire_frag){tagged_header(req), total, offset};
	if (req->flags & WEFT_REQ_SYNC) {
		h->id = WEFT_WIRE_FRAG_SYNC;
		h->length = sizeof(h->frag);
		h->frag.req = weft_request_ref(req);
	}
}

void weft_head_piece(const struct weft_request *req, struct weft_head *h)
{
	put_fragment_header(req, h);
	add_ext(req, h);
}

static weft_le32 *put_rts_header(const struct weft_request *req, struct weft_head *h)
{
	if (req->flags & WEFT_REQ_AM) {
		const struct weft_wire_am begin = am_header(req);

		h->id = WEFT_WIRE_AM_RTS;
		h->length = sizeof(h->am_rts);
		h->am_rts.seq = begin.seq;
		h->am_rts.id = begin.id;
		h->am_rts.header_length = begin.header_length;
		h->am_rts.total = weft_put64(req->length);
		h->am_rts.req = weft_request_ref(req);
		add_user(req, h);
		return &h->am_rts.flags;
	}
	h->id = WEFT_WIRE_RTS;
	h->length = sizeof(h->rts);
	h->rts.e = tagged_header(req);
	h->rts.total = weft_put64(req->length);
	h->rts.req = weft_request_ref(req);
	return &h->rts.flags;
}

weft_le32 *weft_head_rts(const struct weft_request *req, struct weft_head *h)
{
	uint8_t *flags = (uint8_t *)put_rts_header(req, h);

	return (weft_le32 *)(flags + add_ext(req, h));
}

/* The length of headers for estimates, without EXT and the user's header. */
static size_t head_whole_size(enum weft_op op)
{
	if (WEFT_OPS_AM >> op & 1)
		return sizeof(struct weft_wire_am);
	return op == WEFT_OP_TAG_SEND_SYNC ? sizeof(struct weft_wire_eager_sync)
					   : sizeof(struct weft_wire_eager);
}

static size_t head_piece_size(enum weft_op op)
{
	if (WEFT_OPS_AM >> op & 1)
		return sizeof(struct weft_wire_am_frag);
	return op == WEFT_OP_TAG_SEND_SYNC ? sizeof(struct weft_wire_frag_sync)
					   : sizeof(struct weft_wire_frag);
}

/* ------------------------------------------------------------------ eager */

/*
 * Eager: the whole message in one lane message, with the envelope in front.
 *
 *	sender                          receiver
 *	  | EAGER seq tag payload --------> | matched: copied to the user's buffer; else stored
 *	  |                                 |
 *	  | EAGER_SYNC seq tag req payload >| matched or stored, as EAGER
 *	  | <---------------- SYNC_ACK req  | at the match
 *	  | AM seq id header payload -----> | to its handler, in sequence
 *
 * short: the lane's inline call copies the message. bcopy: it is packed into the lane's buffer.
 * zcopy: it is sent from the user's memory, which the lane owns until it reports completion.
 * Without credit the message is announced or waits (weft_tx_uncredited()).
 */

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
	head_whole(req, &h);
	/*
	 * One lane carries messages while it has room, so that most arrive in order. Other lanes do
	 * so only when it is full, or the message is too long for it.
	 */
	rc = send_on(req, &h, me->am_lane);
	for (; (rc == -EAGAIN || rc == WEFT_PROTO_NEXT) && rest; rest &= rest - 1) {
		other = send_on(req, &h, (unsigned int)__builtin_ctz(rest));
		if (other != WEFT_PROTO_NEXT)
			rc = other;
	}
	if (rc == -EAGAIN || rc == WEFT_PROTO_NEXT)
		return rc;
	/* A message whose pack() has failed takes a number, too: the peer receives ABORT for it. */
	weft_tx_take_seq(req, true);
	if (rc)
		return rc;
	req->send.offset = req->length;
	if (req->flags & WEFT_REQ_SYNC)
		req->flags |= WEFT_REQ_WAIT_ACK;
	return 0;
}

/*
 * A send without rendezvous has failed. Notify the peer, which would otherwise wait for the rest.
 * The reply of the peer does not matter any more.
 */
static void eager_abort(struct weft_request *req, int status)
{
	if (!(req->flags & WEFT_REQ_STARTED))
		return;
	req->flags &= ~WEFT_REQ_WAIT_ACK;
	weft_tx_abort(req, (struct weft_wire_ref){{0}, {0}}, status);
}

/* ------------------------------------------------------------------ time of eager */

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
	/* Active messages are not copied: a handler gets the bytes in the lane's buffer. */
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
	size_t max = m->lanes[m->am_lane].max_short, hdr = head_whole_size(key->op);

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
	size_t hdr = head_whole_size(key->op);

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
	size_t max = weft_cost_zcopy_max(m, m->am_lane, head_whole_size(key->op), key->buf);

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
	.flags = WEFT_PROTO_F_SHORT | WEFT_PROTO_F_COPIED,
	.lanes = &weft_lanes_am,
	.cost = cost_short,
	.progress = eager_progress,
	.abort = eager_abort,
};

const struct weft_proto weft_proto_eager_bcopy = {
	.name = "eager/bcopy",
	.desc = "whole message, packed into the lane's buffer, lowest-latency lane",
	.ops = WEFT_OPS_EAGER,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_COPIED,
	.lanes = &weft_lanes_am,
	.cost = cost_bcopy,
	.progress = eager_progress,
	.abort = eager_abort,
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
	.abort = eager_abort,
};

/* ------------------------------------------------------------------ multi-eager */

/*
 * Multi-eager: pieces over all eager lanes at once, unrequested.
 *
 *	sender                                    receiver
 *	  | FRAG seq tag total offset=0 ---- lane 0 --> | the first piece to arrive is
 *	  | FRAG seq tag total offset=n ---- lane 1 --> | matched; the others go to the
 *	  | FRAG ...                                    | same place
 *	  | <------------------------- SYNC_ACK req     | FRAG_SYNC only, at the match
 *
 * The pieces of an active message are AM_FRAG. Its handler runs in sequence, when all have arrived.
 *
 * Each piece goes to the lane that will be done with it first (weft_stripe_pick()). The message
 * stays at the head of its endpoint's queue until the last piece is handed over.
 */

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
	int rc;

	if (!(req->flags & WEFT_REQ_STARTED) && !weft_tx_has_credit(me, req->length))
		return weft_tx_uncredited(req);
	if (!(req->flags & WEFT_REQ_STARTED) && req->length > me->mw->conf.rndv_min_piece &&
	    weft_tx_contended(req))
		return weft_tx_announce(req);
	rc = weft_stripe(req, me->eager_lanes, WEFT_DIR_TX, req->length, send_piece);
	/* Only lanes through memory count: a network's full lane does not show a late peer. */
	if (!(me->eager_lanes & ~me->slow_reads))
		weft_promptness_room(&me->promptness, rc == -EAGAIN, me->mw->worker->now);
	return rc;
}

/* ------------------------------------------------------------------ time of multi-eager */

/*
 * @return the longest multi-eager message: WEFT_MULTI_EAGER_LIMIT - 1. A larger configured
 * rendezvous threshold replaces the limit, unless the limit is 0.
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
	size_t whole = weft_cost_copy_max(m, m->am_lane, head_whole_size(key->op));
	size_t limit = longest_message(&m->conf);
	int rc;

	if (!limit) {
		snprintf(cv->why, sizeof(cv->why), "WEFT_MULTI_EAGER_LIMIT is 0");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 1, limit);
	rc = weft_cost_fragments(cv, m, lanes, head_piece_size(key->op), key->buf);
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
	.abort = eager_abort,
};
