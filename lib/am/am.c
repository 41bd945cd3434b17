/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "am/am.h"
#include "base/bytes.h"
#include "base/log.h"
#include "core/worker.h"
#include "rndv/rndv.h"

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

	if (!worker || id > UINT16_MAX || (flags & ~WEFT_AM_HANDLER_F_PERSISTENT_DATA))
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

static void release_send(struct weft_request *req)
{
	weft_send_release(req);
	free(req->send.am.copy);
	req->send.am.copy = NULL;
}

static int describe_send(const struct weft_request *req, char *buf, size_t size)
{
	return weft_send_describe(req, "active message", "id", buf, size);
}

static const struct weft_request_ops send_ops = {
	.release = release_send,
	.cancel = weft_send_cancel,
	.describe = describe_send,
	.check = weft_send_check,
};

/* A send that outlives its call copies the header, because the caller may reuse the memory. */
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

static int am_send(struct weft_ep *ep, const struct weft_am_send_params *a, const void *buffer,
		   size_t count, const struct weft_op_params *params, struct weft_request **out)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_request *req;
	int rc;

	rc = weft_msg_ep_check(ep);
	if (rc)
		return rc;
	req = weft_request_alloc(me->mw, &send_ops, params, out != NULL);
	if (!req)
		return -ENOMEM;
	req->flags |= WEFT_REQ_AM;
	req->send.am = (struct weft_req_am){.id = (uint16_t)a->id,
					    .header = a->header,
					    .header_length = (uint16_t)a->header_length};
	rc = weft_send_data(req, params, buffer, count, false);
	/* The send cannot begin in this call, so it needs a copy of the header. */
	if (rc == 0 && (!me->up || !TAILQ_EMPTY(&me->pending)))
		rc = copy_header(req);
	if (rc) {
		weft_request_drop(req);
		return rc;
	}
	req->me = me;
	req->op = a->flags & WEFT_AM_SEND_F_EAGER  ? WEFT_OP_AM_EAGER
		  : a->flags & WEFT_AM_SEND_F_RNDV ? WEFT_OP_AM_RNDV
						   : WEFT_OP_AM_SEND;
	req->tag = a->id;
	weft_ext_of_send(&req->ext, params);
	req->length = req->dt.length;
	req->send.proto = NULL;
	req->send.peer = (struct weft_wire_ref){{0}, {0}};
	req->send.zcopies = 0;
	req->send.offset = 0;
	rc = weft_tx_start(req);
	/*
	 * Without memory for a copy of the header the send is undone. A message that has begun is
	 * not undone. It needs no copy: its first piece, which contains the header, has been sent.
	 */
	if (rc == WEFT_INPROGRESS && (req->flags & WEFT_REQ_PENDING) && !req->send.am.copy &&
	    copy_header(req) && weft_tx_undo(req))
		return -ENOMEM;
	if (out)
		*out = rc == WEFT_INPROGRESS ? req : NULL;
	return rc;
}

int weft_am_send(struct weft_ep *ep, const struct weft_am_send_params *am, const void *buffer,
		 size_t count, const struct weft_op_params *params, struct weft_request **req)
{
	const unsigned int known = WEFT_AM_SEND_F_EAGER | WEFT_AM_SEND_F_RNDV;
	struct weft_am_send_params a;
	int rc;

	if (req)
		*req = NULL;
	if (!ep || !am || weft_struct_in(&a, sizeof(a), am) ||
	    weft_op_params_allow(params, WEFT_OPS_SEND) || a.id > UINT16_MAX ||
	    (a.flags & ~known) || a.flags == known || (a.header_length && !a.header))
		return -EINVAL;
	if (a.header_length > WEFT_AM_HEADER_MAX)
		return -EMSGSIZE;
	if (!(ep->worker->ctx->features & WEFT_FEATURE_AM)) {
		weft_error("active messages need WEFT_FEATURE_AM when the context is created");
		return -EOPNOTSUPP;
	}
	if (weft_dt_calls)
		return weft_dt_refuse("weft_am_send");
	weft_worker_lock(ep->worker);
	rc = am_send(ep, &a, buffer, count, params, req);
	weft_worker_posted(ep->worker, params);
	weft_worker_unlock(ep->worker);
	return rc;
}

/* ------------------------------------------------------------------ retained data */

static void give_credit(struct weft_msg_ep *me, const struct weft_am_data *d)
{
	if (!me->failed)
		weft_credit_give(me, d->rndv ? 0 : d->length);
}

static void am_data_free(struct weft_am_data *d)
{
	struct weft_msg_ep *me = d->me;

	give_credit(me, d);
	if (!me->failed)
		weft_credit_update(me);
	weft_rx_forget(me, &d->got);
	free(d);
	weft_msg_ep_release(me);
}

static void am_keep(struct weft_am_data *d)
{
	d->kept = true;
	LIST_INSERT_HEAD(&d->me->mw->am->kept, d, link);
	LIST_INSERT_HEAD(&d->me->am->kept, d, own_link);
	if (!d->me->failed)
		weft_credit_kept(d->me);
}

static void data_consumed(struct weft_am_data *d)
{
	d->consumed = true;
	if (d->calling)
		return; /* after_call() frees the message */
	if (d->kept) {
		LIST_REMOVE(d, link);
		LIST_REMOVE(d, own_link);
	}
	am_data_free(d);
}

int weft_am_data_release(struct weft_worker *worker, struct weft_am_data *desc)
{
	if (!worker || !desc || desc->consumed)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_am_data_release");
	weft_worker_lock(worker);
	if (desc->rndv && !desc->me->failed && !desc->gone)
		weft_rndv_refuse(desc->me, desc->offer.sreq, 0);
	data_consumed(desc);
	weft_worker_unlock(worker);
	return 0;
}

static int describe_recv(const struct weft_request *req, char *buf, size_t size)
{
	return weft_recv_describe(req, "active message", "id", buf, size);
}

static const struct weft_request_ops recv_ops = {.describe = describe_recv};

static int recv_data(struct weft_worker *worker, struct weft_am_data *d, void *buffer, size_t count,
		     const struct weft_op_params *params, struct weft_request **out)
{
	struct weft_msg_ep *me = d->me;
	struct weft_request *req;
	int rc;

	if (!d->rndv || d->consumed)
		return -EINVAL;
	if (me->failed || d->gone) {
		data_consumed(d);
		return -ECONNRESET;
	}
	req = weft_request_alloc(worker->msg, &recv_ops, params, out != NULL);
	if (!req)
		return -ENOMEM;
	req->flags |= WEFT_REQ_AM;
	rc = weft_dt_init(&req->dt, params ? params->datatype : NULL, buffer, count, true);
	if (rc) {
		weft_request_drop(req);
		return rc;
	}
	weft_recv_matched(req, me, d->id, d->length);
	req->ext = d->ext;
	weft_rndv_fetch(me, req, &d->offer, true);
	data_consumed(d);
	return weft_recv_return(req, params, out);
}

int weft_am_recv_data(struct weft_worker *worker, struct weft_am_data *desc, void *buffer,
		      size_t count, const struct weft_op_params *params, struct weft_request **req)
{
	int rc;

	if (req)
		*req = NULL;
	if (!worker || !desc || weft_op_params_check(params))
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_am_recv_data");
	weft_worker_lock(worker);
	rc = recv_data(worker, desc, buffer, count, params, req);
	weft_worker_unlock(worker);
	return rc;
}

/* ------------------------------------------------------------------ ends */

/* Refuse retained messages whose data is still at the peer: their sends end with -ECONNRESET. */
static void am_closing(struct weft_msg_ep *me)
{
	struct weft_am_data *d;

	if (!me->am)
		return;
	LIST_FOREACH(d, &me->am->kept, own_link) {
		me->mw->count.looks++;
		if (!d->rndv || d->gone)
			continue;
		d->gone = true;
		weft_rndv_refuse(me, d->offer.sreq, -ECONNRESET);
	}
}

static void am_drop_kept(struct weft_am_worker *aw)
{
	struct weft_am_data *d;

	while ((d = LIST_FIRST(&aw->kept))) {
		LIST_REMOVE(d, link);
		LIST_REMOVE(d, own_link);
		am_data_free(d);
	}
}

/* ------------------------------------------------------------------ module */

static void worker_stop(struct weft_msg_worker *mw)
{
	struct weft_am_worker *aw = mw->am;

	if (!aw)
		return;
	am_drop_kept(aw);
	for (unsigned int i = 0; i < 256; i++)
		free(aw->page[i]);
	free(aw);
	mw->am = NULL;
}

static void am_fail(struct weft_msg_ep *me)
{
	struct weft_table_node *node;
	struct weft_am_data *d;

	for (uint32_t i = 0; me->am && (node = weft_table_any(&me->am->ahead, &i));) {
		d = container_of(node, struct weft_am_data, by_seq);
		weft_table_remove(&me->am->ahead, node);
		am_data_free(d);
	}
}

static void ep_fini(struct weft_msg_ep *me)
{
	if (!me->am)
		return;
	weft_table_fini(&me->am->ahead);
	free(me->am);
}

const struct weft_module weft_am_module = {
	.name = "am",
	.worker_stop = worker_stop,
	.ep_fini = ep_fini,
	.fail = am_fail,
	.closing = am_closing,
};

/* ------------------------------------------------------------------ received messages */

/*
 * A message that arrives whole and in sequence goes to its handler from the lane's buffer. Others
 * are copied, and wait until they are complete and in sequence. A message to an id without a
 * handler is dropped and counted, and its send succeeds.
 *
 * Data that a handler may retain is copied before the handler is called, because its address must
 * not change afterwards. So no lane's buffer is ever retained.
 */

static const struct weft_am_handler *find_handler(const struct weft_msg_worker *mw, uint16_t id)
{
	const struct weft_am_handler *page = mw->am ? mw->am->page[id >> 8] : NULL;

	return page && page[id & 255].cb ? &page[id & 255] : NULL;
}

static struct weft_am *am_of(struct weft_msg_ep *me)
{
	const struct weft_platform *platform = me->mw->worker->ctx->platform;
	struct weft_am *am = me->am;
	uint64_t seed;

	if (am)
		return am;
	am = calloc(1, sizeof(*am));
	if (!am || platform->random(platform->arg, &seed, sizeof(seed))) {
		free(am);
		return NULL;
	}
	am->ahead.seed = seed;
	LIST_INIT(&am->kept);
	me->am = am;
	return am;
}

/* A parsed message: its bytes are in the lane's buffer, or in @c d. */
struct am {
	uint16_t id, header_length;
	const uint8_t *header, *payload;
	uint64_t length;
	size_t room; /* bytes of header and payload that a copy stores; rendezvous: of the header */
	bool rndv;
	struct weft_ext ext;
	struct weft_rndv_offer offer;
};

static const struct weft_ext no_ext;

/* Allocate a message. Header and payload are copied unless their pointers in @p a are NULL. */
static struct weft_am_data *data_new(struct weft_msg_ep *me, const struct am *a)
{
	struct weft_am_data *d = am_of(me) ? malloc(sizeof(*d) + a->room) : NULL;

	if (!d) {
		weft_msg_fail(me, -ENOMEM, "no memory for an active message of %llu bytes",
			      (unsigned long long)a->length);
		return NULL;
	}
	d->me = me;
	d->offer = a->offer;
	d->ext = a->ext;
	d->length = a->length;
	d->id = a->id;
	d->header_length = a->header_length;
	d->rndv = a->rndv;
	weft_ivals_init(&d->got);
	d->error = 0;
	d->kept = d->consumed = d->calling = d->gone = false;
	d->whole = true;
	if (a->header_length && a->header)
		memcpy(d->bytes, a->header, a->header_length);
	if (!a->rndv && a->length && a->payload)
		memcpy(d->bytes + a->header_length, a->payload, a->length);
	weft_msg_ep_hold(me);
	return d;
}

/* ------------------------------------------------------------------ to the handler */

static void after_call(struct weft_am_data *d, int rc)
{
	struct weft_msg_ep *me = d->me;

	d->calling = false;
	if (d->consumed) {
		am_data_free(d);
		return;
	}
	if (rc == WEFT_INPROGRESS) {
		am_keep(d);
		return;
	}
	if (d->rndv && !me->failed && !d->gone)
		weft_rndv_refuse(me, d->offer.sreq, rc < 0 && rc > -4096 ? rc : 0);
	am_data_free(d);
}

static void not_wanted(struct weft_msg_ep *me, const struct am *a, struct weft_am_data *d)
{
	if (me->closing)
		me->mw->count.am_closed++;
	else
		me->mw->count.am_unknown++;
	if (a->rndv)
		weft_rndv_refuse(me, a->offer.sreq, me->closing ? -ECONNRESET : 0);
	if (d)
		am_data_free(d);
	else
		weft_credit_give(me, a->rndv ? 0 : a->length);
}

/* @param d  the copy of a message that has waited, or NULL */
static void am_deliver(struct weft_msg_ep *me, const struct am *a, struct weft_am_data *d)
{
	const struct weft_am_handler *h = find_handler(me->mw, a->id);
	struct weft_am_msg msg = {
		.size = sizeof(msg),
		.id = a->id,
		.header = a->header,
		.header_length = a->header_length,
		.length = a->length,
		.source_id = me->ep->remote_id,
		.ep = me->ep,
		.imm = a->ext.imm,
		.channel = a->ext.channel,
		.source_channel = a->ext.source_channel,
		.flags = a->ext.has_imm ? WEFT_AM_F_IMM : 0,
	};
	int rc;

	if (!h || me->closing) {
		not_wanted(me, a, d);
		return;
	}
	me->mw->count.am_received++;
	if (!d && (a->rndv || (h->flags & WEFT_AM_HANDLER_F_PERSISTENT_DATA))) {
		d = data_new(me, a);
		if (!d)
			return;
	}
	if (!d) {
		msg.data = a->payload;
		rc = h->cb(me->mw->worker, &msg, h->arg);
		if (rc == WEFT_INPROGRESS)
			/* the handler cannot retain a message without a descriptor */
			me->mw->count.am_not_kept++;
		if (!me->failed)
			weft_credit_give(me, a->length);
		return;
	}
	d->calling = true;
	msg.header = d->bytes;
	msg.data = d->rndv ? NULL : d->bytes + d->header_length;
	msg.flags |= d->rndv ? WEFT_AM_F_RNDV : WEFT_AM_F_KEEPABLE;
	msg.desc = d;
	after_call(d, h->cb(me->mw->worker, &msg, h->arg));
}

static void deliver_kept(struct weft_msg_ep *me, struct weft_am_data *d)
{
	struct am a = {
		.id = d->id,
		.header_length = d->header_length,
		.header = d->bytes,
		.payload = d->bytes + d->header_length,
		.length = d->length,
		.rndv = d->rndv,
		.ext = d->ext,
		.offer = d->offer,
	};

	am_deliver(me, &a, d);
}

/* ------------------------------------------------------------------ in order */

static struct weft_am_data *am_waiting(const struct weft_msg_ep *me, uint32_t seq)
{
	struct weft_table_node *node = me->am ? weft_table_find(&me->am->ahead, seq) : NULL;

	return node ? container_of(node, struct weft_am_data, by_seq) : NULL;
}

static void drain_ahead(struct weft_msg_ep *me)
{
	struct weft_am_data *d;

	while (!me->failed && (d = am_waiting(me, me->rx_am_seq.next)) && d->whole) {
		weft_table_remove(&me->am->ahead, &d->by_seq);
		me->rx_am_seq.next++;
		if (d->error)
			am_data_free(d);
		else
			deliver_kept(me, d);
	}
}

/* The credit of an accepted message is booked, and a duplicate is counted. */
static bool may_come(struct weft_msg_ep *me, const struct am *a, uint32_t seq)
{
	if (am_waiting(me, seq)) {
		me->mw->count.old_seq++;
		return false;
	}
	return weft_rx_may_begin(me, &me->rx_am_seq, seq, a->rndv ? 0 : a->length,
				 "active message");
}

/* @return NULL: the endpoint has failed */
static struct weft_am_data *put_ahead(struct weft_msg_ep *me, const struct am *a, uint32_t seq)
{
	struct weft_am_data *d = data_new(me, a);

	if (!d)
		return NULL;
	if (weft_table_add(&me->am->ahead, &d->by_seq, seq)) {
		am_data_free(d);
		weft_msg_fail(me, -ENOMEM, "no memory for messages that are out of order");
		return NULL;
	}
	if (seq != me->rx_am_seq.next)
		me->mw->count.out_of_order++;
	weft_credit_kept(me);
	return d;
}

static void go_on(struct weft_msg_ep *me)
{
	if (me->am && !me->failed)
		drain_ahead(me);
	if (!me->failed)
		weft_credit_update(me);
}

static void message_came(struct weft_msg_ep *me, const struct am *a, uint32_t seq)
{
	if (!may_come(me, a, seq))
		return;
	if (seq != me->rx_am_seq.next) {
		put_ahead(me, a, seq);
		return;
	}
	me->rx_am_seq.next++;
	am_deliver(me, a, NULL);
	go_on(me);
}

/* ------------------------------------------------------------------ in pieces */

static struct weft_am_data *of_piece(struct weft_msg_ep *me, const struct weft_wire_am_frag *f,
				     const struct weft_ext *x)
{
	struct am a = {
		.ext = *x,
		.id = weft_get16(f->am.id),
		.header_length = weft_get16(f->am.header_length),
		.length = weft_get64(f->total),
	};
	uint32_t seq = weft_get32(f->am.seq);
	struct weft_am_data *d = am_waiting(me, seq);

	if (d) {
		if (!d->whole && d->length == a.length && d->id == a.id &&
		    d->header_length == a.header_length)
			return d;
		/*
		 * Pieces of an aborted message are no error. Others are surplus or contradictory.
		 */
		if (!d->error)
			me->mw->count.mismatch++;
		return NULL;
	}
	if (!may_come(me, &a, seq))
		return NULL;
	a.room = a.header_length + a.length;
	d = put_ahead(me, &a, seq);
	if (d)
		d->whole = false;
	return d;
}

static void recv_frag(struct weft_msg_ep *me, const struct weft_wire_am_frag *f, size_t length,
		      const struct weft_ext *x)
{
	struct weft_am_data *d = of_piece(me, f, x);
	const uint8_t *from = (const uint8_t *)(f + 1);
	uint64_t off = weft_get64(f->offset);

	if (!d)
		return;
	if (off == 0)
		length -= d->header_length;
	if (weft_rx_note(me, &d->got, off, length))
		return;
	if (off == 0) {
		memcpy(d->bytes, from, d->header_length);
		from += d->header_length;
	}
	memcpy(d->bytes + d->header_length + off, from, length);
	if (d->got.covered < d->length)
		return;
	d->whole = true;
	go_on(me);
}

void weft_am_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_abort *abort = data;
	struct am a = {.length = weft_get64(abort->total),
		       .id = (uint16_t)weft_get64(abort->e.tag)};
	uint32_t seq = weft_get32(abort->e.seq);
	struct weft_am_data *d = am_waiting(me, seq);

	if (d && (d->whole || d->length != a.length)) {
		me->mw->count.mismatch++;
		return;
	}
	/* ABORT may arrive before any piece of its message. */
	if (!d && (!may_come(me, &a, seq) || !(d = put_ahead(me, &a, seq))))
		return;
	d->error = (int16_t)-weft_get32(abort->status);
	d->whole = true;
	me->mw->count.am_aborted++;
	go_on(me);
}

/* ------------------------------------------------------------------ messages from lanes */

static void recv_whole(struct weft_msg_ep *me, const struct weft_wire_am *w, size_t payload,
		       const struct weft_ext *x)
{
	struct am a = {
		.ext = *x,
		.id = weft_get16(w->id),
		.header_length = weft_get16(w->header_length),
		.header = (const uint8_t *)(w + 1),
		.room = payload,
	};

	a.payload = a.header + a.header_length;
	a.length = payload - a.header_length;
	message_came(me, &a, weft_get32(w->seq));
}

static void recv_rts(struct weft_msg_ep *me, const struct weft_wire_am_rts *rts, size_t payload,
		     const struct weft_ext *x)
{
	struct am a = {
		.ext = *x,
		.id = weft_get16(rts->id),
		.header_length = weft_get16(rts->header_length),
		.header = (const uint8_t *)(rts + 1),
		.length = weft_get64(rts->total),
		.rndv = true,
	};

	a.room = a.header_length;
	weft_rndv_offer_read(&a.offer, rts->req, rts->flags, a.header + a.header_length,
			     payload - a.header_length);
	me->mw->count.rts++;
	message_came(me, &a, weft_get32(rts->seq));
}

void weft_am_recv_whole(struct weft_msg_ep *me, const void *data, size_t payload)
{
	recv_whole(me, data, payload, &no_ext);
}

void weft_am_recv_frag(struct weft_msg_ep *me, const void *data, size_t payload)
{
	recv_frag(me, data, payload, &no_ext);
}

void weft_am_recv_rts(struct weft_msg_ep *me, const void *data, size_t payload)
{
	recv_rts(me, data, payload, &no_ext);
}

void weft_am_recv_ext(struct weft_msg_ep *me, uint8_t id, const void *data, size_t payload,
		      const struct weft_ext *x)
{
	if (id == WEFT_WIRE_AM)
		recv_whole(me, data, payload, x);
	else if (id == WEFT_WIRE_AM_FRAG)
		recv_frag(me, data, payload, x);
	else
		recv_rts(me, data, payload, x);
}
