/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, gets and atomics by messages: the peer's replies. */

#include <errno.h>

#include "rma/rma.h"

/* The operation of this endpoint to which @p ref refers, or NULL. */
static struct weft_request *find_request(struct weft_msg_ep *me, struct weft_wire_ref ref)
{
	struct weft_request *req = weft_request_lookup(me->mw, ref);

	if (req && req->ops == &weft_rma_ops && req->me == me && (req->flags & WEFT_REQ_STARTED) &&
	    !weft_rma_req(req)->native && !(req->flags & WEFT_REQ_LATER))
		return req;
	return NULL;
}

/* Requested bytes have come, or will not come. */
static void account_bytes(struct weft_request *req, uint64_t length)
{
	struct weft_msg_ep *me = req->me;
	struct weft_req_rma *r = weft_rma_req(req);

	r->count += length;
	weft_rma_set_pieces(req, req->send.offset - r->count);
	if (!TAILQ_EMPTY(&me->rma->pending))
		weft_tx_kick(me);
	if (r->count == req->send.offset) {
		req->flags &= ~WEFT_REQ_WAIT_ACK;
		weft_rma_check(req);
	}
}

void weft_rma_recv_data(struct weft_msg_ep *me, const void *data, size_t length)
{
	const struct weft_wire_data *hdr = data;
	struct weft_request *req = find_request(me, hdr->rreq);
	uint64_t off = weft_get64(hdr->offset);
	int rc;

	if (!req || weft_rma_req(req)->kind != WEFT_RMA_GET) {
		me->mw->rma->bad_ref++;
		return;
	}
	/*
	 * Not more than is missing, either: the peer may have refused bytes (RMA_NAK), and sent
	 * them too.
	 */
	if (off + length > req->send.offset ||
	    length > req->send.offset - weft_rma_req(req)->count) {
		me->mw->count.mismatch++;
		return;
	}
	if (weft_rx_note(me, &weft_rma_req(req)->got, off, length))
		return;
	if (req->status == WEFT_INPROGRESS) {
		rc = weft_dt_unpack(&req->dt, off, hdr + 1, length);
		if (rc < 0)
			req->status = rc;
	}
	account_bytes(req, length);
}

void weft_rma_recv_amo_rep(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_amo_rep *rep = data;
	struct weft_request *req = find_request(me, rep->ref);
	uint64_t value = weft_get64(rep->value);
	uint32_t half = (uint32_t)value;

	if (!req || weft_rma_req(req)->kind != WEFT_RMA_AMO || weft_rma_req(req)->type ||
	    !(req->flags & WEFT_REQ_WAIT_ACK) || !weft_rma_req(req)->amo.result) {
		me->mw->rma->bad_ref++;
		return;
	}
	memcpy(weft_rma_req(req)->amo.result,
	       weft_rma_req(req)->width == 8 ? (const void *)&value : (const void *)&half,
	       weft_rma_req(req)->width);
	req->flags &= ~WEFT_REQ_WAIT_ACK;
	weft_rma_check(req);
}

/* The user has neither request nor callback: a flush reports the error. */
static bool is_silent(const struct weft_request *req)
{
	return !(req->flags & WEFT_REQ_HELD) && !req->cb;
}

void weft_rma_recv_nak(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_rma_nak *nak = data;
	struct weft_rma *rma = weft_rma_of(me);
	struct weft_request *req = find_request(me, nak->ref);
	int status = -(int)weft_get16(nak->status);
	uint16_t flags = weft_get16(nak->flags);
	uint64_t length = weft_get64(nak->length), op_sn;

	if (!rma)
		return; /* the endpoint has never had an operation */
	if (flags & WEFT_WIRE_RMA_COUNTED)
		rma->naks[!!(flags & WEFT_WIRE_RMA_ODD)]++;
	me->mw->rma->naks++;
	if (!req || is_silent(req)) {
		op_sn = req ? req->send.op_sn : weft_rma_op_sn(me, length);
		weft_rma_error(rma, op_sn, op_sn, status);
	}
	if (req && req->status == WEFT_INPROGRESS)
		req->status = status;
	weft_msg_ep_hold(me);
	if (req && (weft_rma_req(req)->kind == WEFT_RMA_GET ||
		    (weft_rma_req(req)->type && weft_rma_req(req)->amo.result))) {
		if (length <= req->send.offset - weft_rma_req(req)->count)
			account_bytes(req, length);
		else
			me->mw->count.mismatch++;
	} else if (req && weft_rma_req(req)->kind == WEFT_RMA_AMO &&
		   weft_rma_req(req)->amo.result && (req->flags & WEFT_REQ_WAIT_ACK)) {
		req->flags &= ~WEFT_REQ_WAIT_ACK;
		weft_rma_check(req);
	}
	if (!me->failed)
		weft_rma_nak_counted(me);
	weft_msg_ep_release(me);
}

void weft_rma_recv_amov_rep(struct weft_msg_ep *me, const void *data, size_t length)
{
	const struct weft_wire_data *hdr = data;
	struct weft_request *req = find_request(me, hdr->rreq);
	uint64_t off = weft_get64(hdr->offset);

	if (!req || weft_rma_req(req)->kind != WEFT_RMA_AMO || !weft_rma_req(req)->type ||
	    !weft_rma_req(req)->vec.results) {
		me->mw->rma->bad_ref++;
		return;
	}
	if (off + length > req->send.offset ||
	    length > req->send.offset - weft_rma_req(req)->count) {
		me->mw->count.mismatch++;
		return;
	}
	memcpy(weft_rma_req(req)->vec.results + off, hdr + 1, length);
	account_bytes(req, length);
}
