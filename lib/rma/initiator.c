/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/wire.h"
#include "core/worker.h"
#include "msg/msg.h"
#include "rma/fence.h"
#include "rma/initiator.h"
#include "rma/rma.h"
#include "rma/target.h"

/* ------------------------------------------------------------------ end of an operation */

static bool is_over(const struct weft_request *req)
{
	return (req->flags & WEFT_REQ_HANDED) && req->send.zcopies == 0 &&
	       !(req->flags & (WEFT_REQ_PENDING | WEFT_REQ_WAIT_ACK));
}

static void take_out(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	TAILQ_REMOVE(&me->ops, req, send.ops_link);
	if (me->failed)
		return;
	weft_rma_set_pieces(req, 0);
	me->rma->running--;
}

void weft_rma_check(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (!is_over(req))
		return;
	take_out(req);
	weft_msg_ep_hold(me);
	weft_request_complete(req, req->status == WEFT_INPROGRESS ? 0 : req->status);
	weft_rma_moved(me);
	weft_msg_ep_release(me);
}

static void rma_release(struct weft_request *req)
{
	struct weft_req_rma *r = weft_rma_req(req);

	weft_send_release(req);
	if (r->kind == WEFT_RMA_GET)
		weft_rx_forget(req->me, &r->got);
	weft_rma_local_put(req);
	if (r->rkey && --r->rkey->refs == 0)
		weft_rkey_free(r->rkey);
	r->rkey = NULL;
}

static int rma_describe(const struct weft_request *req, char *buf, size_t size)
{
	static const char *const names[] = {"put", "get", "atomic"};
	const struct weft_proto *proto = req->flags & WEFT_REQ_DONE ? NULL : req->send.proto;
	const struct weft_req_rma *r = weft_rma_req(req);
	const bool over = req->flags & (WEFT_REQ_DONE | WEFT_REQ_LATER | WEFT_REQ_PENDING);

	return snprintf(buf, size,
			"%s, %s, %zu bytes at remote offset %" PRIu64 ", %zu handed to lanes, %s",
			names[r->kind], proto ? proto->name : "no protocol yet", req->length,
			r->remote, req->send.offset,
			!over && (req->flags & WEFT_REQ_WAIT_ACK) ? "waiting for the peer"
								  : weft_send_state(req));
}

const struct weft_request_ops weft_rma_ops = {
	.release = rma_release,
	.describe = rma_describe,
	.check = weft_rma_check,
};

/* ------------------------------------------------------------------ atomics on arrays */

/*
 * Atomics on arrays of typed elements, by messages: AMOV with a few elements each, which the peer's
 * CPU processes one by one. Without a result they are counted like PUTs. With one, AMOV_REP returns
 * the old values, and the initiator counts their bytes, as those of GET_DATA.
 */

struct amov {
	struct weft_wire_amov head;
	uint8_t bytes[2 * WEFT_WIRE_AMOV_BYTES];
} __attribute__((packed));

/* Bytes of elements that an AMOV may have: both AMOV and reply must fit the largest message. */
static size_t most_bytes(const struct weft_msg_ep *me, unsigned int op, size_t width)
{
	size_t max = 0, arrays = weft_amo_arrays(op), n;

	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		const struct weft_msg_lane *l = &me->lanes[__builtin_ctz(m)];

		max = l->max_short > max ? l->max_short : max;
		max = l->max_bcopy > max ? l->max_bcopy : max;
	}
	n = WEFT_WIRE_AMOV_BYTES;
	if (max < sizeof(struct weft_wire_amov) + arrays * n)
		n = max > sizeof(struct weft_wire_amov)
			    ? (max - sizeof(struct weft_wire_amov)) / (arrays ? arrays : 1)
			    : 0;
	else if (max < sizeof(struct weft_wire_data) + n)
		n = max - sizeof(struct weft_wire_data);
	return n / width ? n / width * width : width;
}

static size_t fill_elements(struct amov *a, const struct weft_request *req, size_t n)
{
	const struct weft_req_rma *r = weft_rma_req(req);
	const bool fetch = r->vec.results != NULL;
	size_t off = req->send.offset, length = 0;

	a->head = (struct weft_wire_amov){
		.key = weft_put64(r->rkey->key),
		.offset = weft_put64(r->remote + off),
		.ref = weft_request_ref(req),
		.local = weft_put64(off),
		.op = r->op,
		.type = r->type,
		.flags = weft_put16(fetch               ? WEFT_WIRE_AMO_FETCH
				    : req->me->rma->odd ? WEFT_WIRE_RMA_ODD
							: 0),
		.number = weft_put32(fetch ? 0 : req->send.op_sn & WEFT_WIRE_RMA_NUMBER),
		.count = weft_put32((uint32_t)(n / r->width)),
	};
	if (r->op != WEFT_ATOMIC_READ) {
		memcpy(a->bytes, r->vec.operands + off, n);
		length = n;
	}
	if (weft_amo_compares(r->op)) {
		memcpy(a->bytes + length, r->vec.compares + off, n);
		length += n;
	}
	return sizeof(a->head) + length;
}

/*
 * May the operation send one more message that needs a reply? At most WEFT_RMA_OPEN operations have
 * three such messages each, which is less than half of the replies that the peer stores.
 */
static bool has_room_for_replies(const struct weft_request *req, size_t max)
{
	const struct weft_req_rma *r = weft_rma_req(req);

	if (r->pieces == 0 && req->me->rma->open >= WEFT_RMA_OPEN)
		return false;
	return req->send.offset - r->count < 3 * max;
}

static int rma_vec_step(struct weft_request *req)
{
	struct weft_req_rma *r = weft_rma_req(req);
	struct weft_rma *rma = req->me->rma;
	const bool fetch = r->vec.results != NULL;
	size_t max = most_bytes(req->me, r->op, r->width), n, length;
	struct amov a;

	while (req->send.offset < req->length && req->status == WEFT_INPROGRESS) {
		n = req->length - req->send.offset < max ? req->length - req->send.offset : max;
		if (fetch && !has_room_for_replies(req, max))
			return -EAGAIN;
		length = fill_elements(&a, req, n);
		if (weft_tx_envelope_any(req->me, WEFT_WIRE_AMOV, &a, length))
			return -EAGAIN;
		req->send.offset += n;
		if (fetch)
			weft_rma_set_pieces(req, req->send.offset - r->count);
		else
			weft_rma_count(rma, rma->odd);
	}
	return 0;
}

/* ------------------------------------------------------------------ by messages */

struct weft_wire_put weft_rma_put_head(const struct weft_request *req, size_t off)
{
	return (struct weft_wire_put){
		.key = weft_put64(weft_rma_req(req)->rkey->key),
		.offset = weft_put64(weft_rma_req(req)->remote + off),
		.ref = weft_request_ref(req),
		.flags = weft_put32((uint32_t)req->send.op_sn << WEFT_WIRE_RMA_SHIFT |
				    (req->me->rma->odd ? WEFT_WIRE_RMA_ODD : 0)),
	};
}

ssize_t weft_rma_put_piece(struct weft_request *req, unsigned int lane, uint8_t id, const void *hdr,
			   size_t hdr_len, size_t off, size_t rest)
{
	struct weft_msg_ep *me = req->me;
	size_t len = weft_tx_piece_max(req, lane, hdr_len);
	int rc;

	if (req->status != WEFT_INPROGRESS)
		return 0;
	if (len == 0)
		return -EAGAIN;
	len = weft_tx_cut(me, off, rest, len, me->lanes[lane].align);
	rc = weft_tx_piece(req, lane, id, hdr, hdr_len, off, len);
	if (rc)
		return rc;
	weft_rma_count(me->rma, me->rma->odd);
	return (ssize_t)len;
}

static ssize_t put_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	const struct weft_wire_put hdr = weft_rma_put_head(req, off);

	return weft_rma_put_piece(req, lane, WEFT_WIRE_PUT, &hdr, sizeof(hdr), off, rest);
}

int weft_rma_put_step(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (req->ext.any)
		return weft_rma_note_step(req);
	return weft_stripe(req, me->rndv_lanes | 1u << me->am_lane, WEFT_DIR_TX, req->length,
			   put_piece);
}

int weft_rma_get_step(struct weft_request *req)
{
	struct weft_rma *rma = req->me->rma;
	struct weft_req_rma *r = weft_rma_req(req);

	while (req->send.offset < req->length && req->status == WEFT_INPROGRESS) {
		size_t off = req->send.offset, len = req->length - off;
		struct weft_wire_get get = {
			.key = weft_put64(r->rkey->key),
			.offset = weft_put64(r->remote + off),
			.local = weft_put64(off),
			.ref = weft_request_ref(req),
		};

		if (rma->open >= WEFT_RMA_OPEN || !weft_rma_gets_room(req->me))
			return -EAGAIN;
		len = len < WEFT_RMA_CHUNK ? len : WEFT_RMA_CHUNK;
		get.length = weft_put64(len);
		if (weft_tx_envelope_any(req->me, WEFT_WIRE_GET, &get, sizeof(get)))
			return -EAGAIN;
		req->send.offset += len;
		weft_rma_set_pieces(req, req->send.offset - r->count);
	}
	return 0;
}

int weft_rma_amo_step(struct weft_request *req)
{
	struct weft_rma *rma = req->me->rma;
	struct weft_req_rma *r = weft_rma_req(req);
	bool fetch = r->amo.result != NULL, odd = rma->odd;
	struct weft_wire_amo amo = {
		.key = weft_put64(r->rkey->key),
		.offset = weft_put64(r->remote),
		.operand = weft_put64(r->amo.operand),
		.compare = weft_put64(r->amo.compare),
		.ref = weft_request_ref(req),
		.op = r->op,
		.width = r->width,
		.flags = weft_put16(fetch ? WEFT_WIRE_AMO_FETCH
				    : odd ? WEFT_WIRE_RMA_ODD
					  : 0),
		.number = weft_put32(fetch ? 0 : req->send.op_sn & WEFT_WIRE_RMA_NUMBER),
	};

	if (r->type)
		return rma_vec_step(req);
	if (fetch && rma->open >= WEFT_RMA_OPEN)
		return -EAGAIN;
	if (weft_tx_envelope_any(req->me, WEFT_WIRE_AMO, &amo, sizeof(amo)))
		return -EAGAIN;
	req->send.offset = req->length;
	if (fetch)
		weft_rma_set_pieces(req, req->length);
	else
		weft_rma_count(rma, odd);
	return 0;
}

/* ------------------------------------------------------------------ handing over */

static const struct weft_proto *choose_proto(struct weft_request *req)
{
	/*
	 * weft_rma_native_begin() comes first, because it may register the buffer. A put that
	 * notifies goes by messages: the target does not notice native writes.
	 */
	bool can = !req->ext.any && weft_rma_native_begin(req);
	struct weft_proto_key key = {
		.op = (enum weft_op)req->op,
		.buf = weft_buf_make(req->dt.dt_class,
				     req->dt.dt_class == WEFT_DT_IOV ? req->dt.iovcnt : 0,
				     req->send.mem || weft_rma_req(req)->regs),
		.lacks = can ? 0 : WEFT_NEEDS_NATIVE,
	};
	const struct weft_proto_range *r = weft_ep_config_range(req->me->config, &key, req->length);

	return r ? r->proto : NULL;
}

static void choose_way(struct weft_request *req)
{
	struct weft_req_rma *r = weft_rma_req(req);

	if (__builtin_expect(r->rkey->unknown, 0))
		weft_rkey_query(req->me, r->rkey);
	/* Only CPUs execute atomics on arrays. */
	req->send.proto = r->type ? &weft_proto_amo_am : choose_proto(req);
	r->native = req->send.proto && (req->send.proto->needs & WEFT_NEEDS_NATIVE);
	if (!r->native)
		weft_rma_local_put(req);
}

static int op_begin(struct weft_request *req)
{
	struct weft_req_rma *r = weft_rma_req(req);

	if (!weft_rma_may_start(req))
		return -EAGAIN;
	req->me->rma->running++;
	req->me->rma->epoch = r->epoch;
	req->flags |= WEFT_REQ_STARTED;
	if (req->ext.any)
		weft_rma_note_begin(req);
	choose_way(req);
	return 0;
}

/* An operation handed over goes to the head of the queue: those not begun must not overtake it. */
void weft_rma_restart(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	weft_rma_req(req)->again = false;
	req->send.offset = 0;
	weft_rma_local_put(req);
	choose_way(req);
	if (req->flags & WEFT_REQ_HANDED) {
		req->flags = (req->flags & ~WEFT_REQ_HANDED) | WEFT_REQ_PENDING;
		TAILQ_INSERT_HEAD(&me->rma->pending, req, link);
	}
	weft_tx_kick(me);
}

int weft_rma_reset(struct weft_request *req)
{
	if (req->send.offset || req->send.zcopies || weft_rma_req(req)->again ||
	    req->status != WEFT_INPROGRESS)
		return 1;
	req->me->rma->running--; /* op_begin() counts it again */
	weft_rma_local_put(req); /* choose_way() registers the buffer again if lanes need it */
	return 0;
}

/* Also called when the operation has failed. */
static void op_handed_over(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	struct weft_rma *rma = me->rma;
	struct weft_req_rma *r = weft_rma_req(req);
	bool fetch = r->kind == WEFT_RMA_AMO && r->amo.result;

	req->flags |= WEFT_REQ_HANDED;
	if (r->native)
		return;
	if (r->kind == WEFT_RMA_GET || fetch) {
		if (r->pieces)
			req->flags |= WEFT_REQ_WAIT_ACK;
	} else if (r->delivered && rma->sent != rma->confirmed) {
		req->flags |= WEFT_REQ_WAIT_ACK;
		r->count = rma->sent;
		TAILQ_INSERT_TAIL(&rma->waiting, req, link);
		weft_rma_want(me, rma->sent);
	}
}

/* @return 0: everything is handed over, or the operation has failed (req->status); or -EAGAIN */
static int op_step(struct weft_request *req)
{
	int rc;

	if (!(req->flags & WEFT_REQ_STARTED) && op_begin(req))
		return -EAGAIN;
	rc = req->send.proto ? req->send.proto->progress(req) : -EOPNOTSUPP;
	if (rc == -EAGAIN)
		return rc;
	if (rc && req->status == WEFT_INPROGRESS)
		req->status = rc;
	return 0;
}

int weft_rma_start(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	struct weft_rma *rma = me->rma;
	int rc = -EAGAIN, status;

	req->send.op_sn = me->op_sn++;
	weft_rma_req(req)->epoch = me->mw->rma->fence_sn;
	weft_rma_req(req)->fence = rma->fence;
	rma->fence = false;
	weft_rma_use(rma);
	TAILQ_INSERT_TAIL(&me->ops, req, send.ops_link);
	if (me->up && TAILQ_EMPTY(&rma->pending))
		rc = op_step(req);
	if (rc == -EAGAIN) {
		weft_send_keep(req);
		req->flags |= WEFT_REQ_PENDING;
		TAILQ_INSERT_TAIL(&rma->pending, req, link);
		weft_tx_kick(me);
		return WEFT_INPROGRESS;
	}
	op_handed_over(req);
	if (!is_over(req))
		return WEFT_INPROGRESS;
	take_out(req);
	status = req->status == WEFT_INPROGRESS ? 0 : req->status;
	if ((req->flags & WEFT_REQ_FORCE) || (status && req->send.offset)) {
		weft_request_complete_later(req, status);
		return WEFT_INPROGRESS;
	}
	weft_request_drop(req);
	return status;
}

static unsigned int serve_pending(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;
	struct weft_request *req;
	unsigned int n = 0;

	while (n < WEFT_TX_BURST && me->up && (req = TAILQ_FIRST(&rma->pending))) {
		if (op_step(req))
			break;
		n++;
		TAILQ_REMOVE(&rma->pending, req, link);
		req->flags &= ~WEFT_REQ_PENDING;
		/* the next operation in the queue may need other resources */
		weft_rma_gets_leave(me);
		op_handed_over(req);
		weft_rma_check(req);
	}
	return n;
}

unsigned int weft_rma_serve(struct weft_msg_ep *me)
{
	unsigned int n;

	if (!me->rma || !me->up)
		return 0;
	n = weft_rma_serve_answers(me);
	n += serve_pending(me);
	if (me->rma->flush_due)
		weft_rma_flush_send(me);
	return n;
}

/* Operations that wait for room, a fence or a reply are no work: its arrival kicks the queue. */
bool weft_rma_has_work(const struct weft_msg_ep *me)
{
	const struct weft_rma *rma = me->rma;
	const struct weft_request *req;

	if (!rma)
		return false;
	if (!TAILQ_EMPTY(&rma->answers) || rma->flush_due || weft_rma_peer_flush_done(rma))
		return true;
	req = TAILQ_FIRST(&rma->pending);
	if (!req)
		return false;
	if (!(req->flags & WEFT_REQ_STARTED))
		return !weft_rma_blocked(req);
	if (rma->gets_wait && req->status == WEFT_INPROGRESS)
		return false;
	return rma->open < WEFT_RMA_OPEN || weft_rma_req(req)->kind == WEFT_RMA_PUT ||
	       weft_rma_req(req)->native || req->status != WEFT_INPROGRESS;
}

/* ------------------------------------------------------------------ replies of the peer */

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

void weft_rma_recv_data_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				 size_t length)
{
	const struct weft_wire_data *hdr = header;
	struct weft_request *req = find_request(me, hdr->rreq);
	uint64_t off = weft_get64(hdr->offset);
	int rc;

	if (!req || weft_rma_req(req)->kind != WEFT_RMA_GET) {
		me->mw->rma->bad_ref++;
		return;
	}
	/*
	 * The message must not have more bytes than are missing, either: a faulty peer may refuse
	 * bytes by RMA_NAK and send them as well.
	 */
	if (off + length > req->send.offset ||
	    length > req->send.offset - weft_rma_req(req)->count) {
		me->mw->count.mismatch++;
		return;
	}
	if (weft_rx_note(me, &weft_rma_req(req)->got, off, length))
		return;
	if (req->status == WEFT_INPROGRESS) {
		rc = weft_dt_unpack(&req->dt, off, payload, length);
		if (rc < 0)
			req->status = rc;
	}
	account_bytes(req, length);
}

void weft_rma_recv_data(struct weft_msg_ep *me, const void *data, size_t length)
{
	weft_rma_recv_data_in_place(me, data, (const struct weft_wire_data *)data + 1, length);
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
		return; /* no memory: this endpoint has had no operation that could be refused */
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
