/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages: handlers and sends. */

#include <errno.h>
#include <stdlib.h>

#include "am.h"
#include "log.h"

/* ------------------------------------------------------------------ handlers */

static int set_handler(struct weft_msg_worker *mw, uint16_t id, const struct weft_am_handler *h)
{
	struct weft_am_handler **page;

	if (!mw->am) {
		mw->am = calloc(1, sizeof(*mw->am));
		if (!mw->am)
			return -ENOMEM;
	}
	page = &mw->am->page[id >> 8];
	if (!*page) {
		*page = calloc(256, sizeof(**page));
		if (!*page)
			return -ENOMEM;
	}
	(*page)[id & 255] = *h;
	return 0;
}

int weft_worker_set_am_handler(struct weft_worker *worker, unsigned int id, weft_am_cb cb,
			       void *arg, unsigned int flags)
{
	const struct weft_am_handler h = {cb, arg, flags};
	int rc;

	if (!worker || id > UINT16_MAX || (flags & ~WEFT_AM_PERSISTENT_DATA))
		return -EINVAL;
	if (!(worker->ctx->features & WEFT_FEATURE_AM)) {
		weft_error("active messages need WEFT_FEATURE_AM when the context is created");
		return -EOPNOTSUPP;
	}
	weft_worker_lock(worker);
	rc = set_handler(worker->msg, (uint16_t)id, &h);
	weft_worker_unlock(worker);
	return rc;
}

/* ------------------------------------------------------------------ sending */

/* Header of ours and header of the user, as they go over the wire. */
struct headers {
	union {
		struct weft_wire_am am;
		struct weft_wire_am_rts rts;
	};
	uint8_t rest[WEFT_AM_HEADER_MAX + WEFT_RNDV_RECORDS_MAX];
} __attribute__((packed));

static bool has_room_ahead(const struct weft_msg_ep *me)
{
	return me->tx_am_seq != me->tx_am_seq_end;
}

static void take_seq(struct weft_request *req, bool eager)
{
	struct weft_msg_ep *me = req->me;

	me->tx_am_seq++;
	req->flags |= WEFT_REQ_STARTED;
	if (!eager)
		return;
	if (req->length > WEFT_EAGER_FREE)
		me->tx_used += req->length;
	else
		me->tx_small++;
}

static int send_eager(struct weft_request *req, unsigned int lane)
{
	struct weft_msg_ep *me = req->me;
	const struct weft_req_am *am = &req->send.am;
	struct headers h;
	size_t hdr_len = sizeof(h.am) + am->header_length;
	int rc;

	h.am = (struct weft_wire_am){weft_put32(me->tx_am_seq), weft_put16(am->id),
				     weft_put16(am->header_length)};
	if (am->header_length)
		memcpy((uint8_t *)&h + sizeof(h.am), am->header, am->header_length);
	if (req->length)
		rc = weft_tx_piece(req, lane, WEFT_WIRE_AM, &h, hdr_len, 0, req->length);
	else
		rc = weft_tx_envelope(me, lane, WEFT_WIRE_AM, &h, hdr_len);
	if (rc)
		return rc;
	take_seq(req, true);
	req->send.offset = req->length;
	return 0;
}

static int send_rts(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	const struct weft_req_am *am = &req->send.am;
	struct headers h;
	uint8_t *p = (uint8_t *)&h + sizeof(h.rts);
	size_t records = weft_rndv_offer(req, &h.rts.flags, p + am->header_length);

	h.rts.seq = weft_put32(me->tx_am_seq);
	h.rts.id = weft_put16(am->id);
	h.rts.header_length = weft_put16(am->header_length);
	h.rts.total = weft_put64(req->length);
	h.rts.req = weft_request_ref(req);
	if (am->header_length)
		memcpy(p, am->header, am->header_length);
	if (weft_tx_envelope_any(me, WEFT_WIRE_AM_RTS, &h,
				 sizeof(h.rts) + am->header_length + records))
		return -EAGAIN;
	take_seq(req, false);
	weft_rndv_offered(req);
	return 0;
}

/* A lane that takes the message whole: the lowest-latency one if it does. @return -1: none */
static int whole_lane(const struct weft_request *req, size_t hdr_len)
{
	const struct weft_msg_ep *me = req->me;
	int found = -1;

	if (weft_tx_piece_max(req, me->am_lane, hdr_len) >= req->length)
		return me->am_lane;
	for (uint32_t m = me->lanes_up; m && found < 0; m &= m - 1)
		if (weft_tx_piece_max(req, (unsigned int)__builtin_ctz(m), hdr_len) >= req->length)
			found = __builtin_ctz(m);
	return found;
}

int weft_am_step(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	const struct weft_req_am *am = &req->send.am;
	size_t hdr_len = sizeof(struct weft_wire_am) + am->header_length;
	bool rndv = am->flags & WEFT_AM_SEND_RNDV;
	int lane;

	if (!has_room_ahead(me))
		return -EAGAIN;
	if (!rndv && !(am->flags & WEFT_AM_SEND_EAGER))
		rndv = req->length && req->length >= me->am_rndv_from;
	lane = rndv ? -1 : whole_lane(req, hdr_len);
	if (lane < 0)
		return (am->flags & WEFT_AM_SEND_EAGER) ? -EMSGSIZE : send_rts(req);
	if (!weft_tx_has_credit(me, req->length)) {
		if (req->length == 0 || (am->flags & WEFT_AM_SEND_EAGER))
			return -EAGAIN; /* credit kicks */
		me->mw->count.no_eager_credit++;
		return send_rts(req);
	}
	return send_eager(req, (unsigned int)lane);
}

void weft_am_let_go(struct weft_request *req)
{
	free(req->send.am.copy);
	req->send.am.copy = NULL;
}

/* The header is the caller's: what goes later goes from a copy. */
static int copy_header(struct weft_request *req)
{
	struct weft_req_am *am = &req->send.am;

	if (am->header_length == 0)
		return 0;
	am->copy = malloc(am->header_length);
	if (!am->copy)
		return -ENOMEM;
	memcpy(am->copy, am->header, am->header_length);
	am->header = am->copy;
	return 0;
}

static int am_send(struct weft_ep *ep, const struct weft_am_send *a, const void *buffer,
		   size_t count, const struct weft_op_params *params, struct weft_request **out)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_request *req;
	int rc;

	if (me->failed || ep->state == WEFT_EP_FAILED)
		return ep->status < 0 ? ep->status : -ECONNRESET;
	if (ep->state == WEFT_EP_CLOSING)
		return -ENOTCONN;
	req = weft_request_alloc(me->mw, WEFT_REQ_SEND, params, out != NULL);
	if (!req)
		return -ENOMEM;
	req->flags |= WEFT_REQ_AM;
	req->send.mem = NULL;
	req->send.am = (struct weft_req_am){.id = (uint16_t)a->id,
					    .flags = (uint16_t)a->flags,
					    .header = a->header,
					    .header_length = (uint16_t)a->header_length};
	rc = weft_dt_init(&req->dt, params ? params->datatype : NULL, buffer, count, false);
	/* Whether it goes at once is known only then; a copy of so few bytes costs less than a rule. */
	if (rc == 0 && (!me->up || !TAILQ_EMPTY(&me->pending) || !has_room_ahead(me)))
		rc = copy_header(req);
	if (rc) {
		weft_request_drop(req);
		return rc;
	}
	if (params && params->mem) {
		req->send.mem = params->mem;
		params->mem->refs++;
	}
	req->me = me;
	req->tag = a->id;
	req->length = req->dt.length;
	req->send.proto = NULL;
	req->send.peer = (struct weft_wire_ref){{0}, {0}};
	req->send.zcopies = 0;
	req->send.offset = 0;
	rc = weft_tx_start(req);
	if (rc == WEFT_INPROGRESS && (req->flags & WEFT_REQ_PENDING) && !req->send.am.copy &&
	    copy_header(req)) {
		weft_ep_fail(ep, -ENOMEM, "no memory for the header of an active message");
		return -ENOMEM;
	}
	if (out)
		*out = rc == WEFT_INPROGRESS ? req : NULL;
	return rc;
}

int weft_am_send(struct weft_ep *ep, const struct weft_am_send *am, const void *buffer,
		 size_t count, const struct weft_op_params *params, struct weft_request **req)
{
	const unsigned int known = WEFT_AM_SEND_EAGER | WEFT_AM_SEND_RNDV;
	struct weft_am_send a;
	int rc;

	if (req)
		*req = NULL;
	if (!ep || !am || weft_struct_in(&a, sizeof(a), am) || weft_op_params_check(params) ||
	    a.id > UINT16_MAX || (a.flags & ~known) || a.flags == known ||
	    (a.header_length && !a.header))
		return -EINVAL;
	if (a.header_length > WEFT_AM_HEADER_MAX)
		return -EMSGSIZE;
	if (!(ep->worker->ctx->features & WEFT_FEATURE_AM)) {
		weft_error("active messages need WEFT_FEATURE_AM when the context is created");
		return -EOPNOTSUPP;
	}
	weft_worker_lock(ep->worker);
	rc = am_send(ep, &a, buffer, count, params, req);
	weft_worker_unlock(ep->worker);
	return rc;
}
