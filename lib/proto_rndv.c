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
 * ends. Our receivers ask for the whole message at once, the lanes' windows are the flow control. A
 * buffer that is too small takes nothing: the receive ends with -EMSGSIZE, ATS releases the sender,
 * which sees success.
 */

#include <errno.h>

#include "cost.h"
#include "msg.h"

/* ------------------------------------------------------------------ sender */

static int rts_progress(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	struct weft_wire_rts rts = {
		.e = {weft_put32(me->tx_seq), weft_put64(req->tag)},
		.total = weft_put64(req->length),
		.req = weft_request_ref(req),
	};
	uint32_t lanes = me->lanes_up;
	unsigned int lane = me->am_lane;

	/* Never behind data of its own endpoint, so a lane with room is as good as the next. */
	for (;;) {
		if (weft_tx_envelope(me, lane, WEFT_WIRE_RTS, &rts, sizeof(rts)) == 0)
			break;
		lanes &= ~(1u << lane);
		if (!lanes)
			return -EAGAIN;
		lane = (unsigned int)__builtin_ctz(lanes);
	}
	weft_tx_take_seq(req, false);
	req->send.offset = 0;
	req->send.end = 0;
	req->flags |= WEFT_REQ_WAIT_ACK;
	return 0;
}

int weft_rndv_data_progress(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	uint32_t mask = me->rndv_lanes;
	float limit = WEFT_TX_NO_LIMIT;

	while (req->send.offset < req->send.end) {
		size_t off = req->send.offset, rest = req->send.end - off, max;
		struct weft_wire_data hdr = {.rreq = req->send.peer, .offset = weft_put64(off)};
		size_t look = rest < 4096 ? rest : 4096;
		int lane = weft_tx_pick(me, mask, look, limit), rc;

		if (lane < 0)
			return -EAGAIN;
		max = weft_tx_piece_max(req, (unsigned int)lane, sizeof(hdr));
		rc = -EAGAIN;
		if (max) {
			max = weft_tx_cut(me, off, rest, max, me->lanes[lane].align);
			rc = weft_tx_piece(req, (unsigned int)lane, WEFT_WIRE_DATA, &hdr,
					   sizeof(hdr), off, max);
		}
		if (rc == -EAGAIN) {
			limit = weft_tx_limit(me, lane, look, limit);
			mask &= ~(1u << lane);
		} else if (rc) {
			return rc;
		} else {
			req->send.offset += max;
		}
	}
	return 0;
}

/* A request of this endpoint that waits for an acknowledgement, or NULL (counted). */
static struct weft_request *find_send(struct weft_msg_ep *me, struct weft_wire_ref ref)
{
	struct weft_request *req = weft_request_lookup(me->mw, ref);

	if (req && req->kind == WEFT_REQ_SEND && req->me == me && (req->flags & WEFT_REQ_WAIT_ACK))
		return req;
	me->mw->count.bad_ref++;
	return NULL;
}

void weft_rndv_recv_rtr(struct weft_msg_ep *me, const struct weft_wire_rtr *rtr)
{
	struct weft_request *req = find_send(me, rtr->sreq);
	uint64_t offset = weft_get64(rtr->offset), length = weft_get64(rtr->length);

	if (!req)
		return;
	if (!(req->send.proto->flags & WEFT_PROTO_F_RNDV) || offset != req->send.end ||
	    length > req->length - offset) {
		me->mw->count.mismatch++;
		return;
	}
	if (req->status != WEFT_INPROGRESS)
		return; /* the pack callback has failed: ABORT is on its way */
	req->send.peer = rtr->rreq;
	req->send.end = offset + length;
	req->flags |= WEFT_REQ_RTR;
	if (req->flags & WEFT_REQ_DATA)
		return;
	req->flags |= WEFT_REQ_DATA;
	TAILQ_INSERT_TAIL(&me->data, req, link);
	weft_tx_kick(me);
}

void weft_rndv_recv_ats(struct weft_msg_ep *me, uint8_t id, const struct weft_wire_ats *ats)
{
	struct weft_request *req = find_send(me, ats->sreq);

	if (!req)
		return;
	if ((id == WEFT_WIRE_ATS) != ((req->send.proto->flags & WEFT_PROTO_F_RNDV) != 0)) {
		me->mw->count.mismatch++;
		return;
	}
	if (weft_get32(ats->status) && req->status == WEFT_INPROGRESS)
		req->status = -(int)weft_get32(ats->status);
	if (req->flags & WEFT_REQ_DATA)
		TAILQ_REMOVE(&me->data, req, link);
	req->flags &= ~(WEFT_REQ_WAIT_ACK | WEFT_REQ_DATA);
	weft_send_check(req);
}

/* ------------------------------------------------------------------ receiver */

void weft_rndv_send_ats(struct weft_msg_ep *me, uint8_t id, struct weft_wire_ref sreq, int status)
{
	struct weft_wire_ats ats = {.sreq = sreq, .status = weft_put32((uint32_t)-status)};

	weft_tx_ctl(me, id, &ats, sizeof(ats));
}

static void recv_over(struct weft_msg_ep *me, struct weft_request *req, bool now)
{
	weft_rndv_send_ats(me, WEFT_WIRE_ATS, req->recv.peer, 0);
	weft_recv_done(req, now);
}

void weft_rndv_bind(struct weft_msg_ep *me, struct weft_request *req, struct weft_wire_ref sreq,
		    bool now)
{
	struct weft_wire_rtr rtr = {
		.sreq = sreq,
		.rreq = weft_request_ref(req),
		.length = weft_put64(req->length),
	};

	req->recv.peer = sreq;
	if (req->length == 0 || req->status != WEFT_INPROGRESS) {
		recv_over(me, req, now);
		return;
	}
	weft_ivals_init(&req->recv.got);
	req->recv.msg = NULL;
	req->flags |= WEFT_REQ_ACTIVE;
	TAILQ_INSERT_TAIL(&me->rx_active, req, link);
	weft_tx_ctl(me, WEFT_WIRE_RTR, &rtr, sizeof(rtr));
}

/*
 * The receive of this endpoint that @ref names and that waits for rendezvous data, or NULL
 * (counted).
 */
static struct weft_request *find_recv(struct weft_msg_ep *me, struct weft_wire_ref ref)
{
	struct weft_request *req = weft_request_lookup(me->mw, ref);

	if (req && req->kind == WEFT_REQ_RECV && (req->flags & WEFT_REQ_ACTIVE) && !req->recv.msg &&
	    req->me == me)
		return req;
	me->mw->count.bad_ref++;
	return NULL;
}

void weft_rndv_recv_data(struct weft_msg_ep *me, const struct weft_wire_data *hdr, size_t length)
{
	struct weft_request *req = find_recv(me, hdr->rreq);
	uint64_t off = weft_get64(hdr->offset);
	int rc;

	if (!req)
		return;
	if (off + length > req->length) {
		me->mw->count.mismatch++;
		return;
	}
	rc = weft_ivals_add(&req->recv.got, off, off + length);
	if (rc == -EEXIST) {
		me->mw->count.overlap++;
		return;
	}
	if (rc) {
		weft_ep_fail(me->ep, rc, "no memory to keep track of the pieces of a message");
		return;
	}
	weft_recv_place(req, off, hdr + 1, length);
	if (req->recv.got.covered != req->length)
		return;
	TAILQ_REMOVE(&me->rx_active, req, link);
	req->flags &= ~WEFT_REQ_ACTIVE;
	weft_ivals_fini(&req->recv.got);
	recv_over(me, req, false);
}

void weft_rndv_recv_abort(struct weft_msg_ep *me, const struct weft_wire_abort *abort)
{
	struct weft_request *req = find_recv(me, abort->rreq);

	if (!req)
		return;
	/* Pieces that other lanes still carry find nobody, and are dropped. */
	TAILQ_REMOVE(&me->rx_active, req, link);
	req->flags &= ~WEFT_REQ_ACTIVE;
	weft_ivals_fini(&req->recv.got);
	if (req->status == WEFT_INPROGRESS)
		req->status = -(int)weft_get32(abort->status);
	recv_over(me, req, false);
}

/* ------------------------------------------------------------------ time */

/*
 * Until the receiver has the data: RTS, RTR, DATA. The ATS that ends it is only work for its CPU;
 * the sender's buffer is free one way later.
 */
static int rndv_cost(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		     struct weft_curve *cv)
{
	const struct weft_model_lane *l = &m->lanes[m->am_lane];
	int rc;

	weft_curve_begin(cv, 0, SIZE_MAX);
	weft_cost_control(cv, m, "RTS");
	weft_cost_control(cv, m, "RTR");
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_data), key->buf);
	if (rc)
		return rc;
	weft_curve_once(cv, WEFT_STAGE_SEND_CPU, (struct weft_linear){WEFT_COST_RNDV, 0},
			"keep the request", NULL);
	weft_curve_once(cv, WEFT_STAGE_RECV_CPU,
			(struct weft_linear){WEFT_COST_RNDV + l->send_overhead, 0}, "end, ATS",
			NULL);
	cv->scale = 1 - m->conf.perf_diff / 100;
	weft_curve_end(cv);
	return 0;
}

const struct weft_proto weft_proto_rndv = {
	.name = "rndv/am",
	.desc = "asks first; data over all lanes when the receive is there",
	.ops = WEFT_OPS_TAG,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_am,
	.cost = rndv_cost,
	.progress = rts_progress,
};
