/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages: handlers, sends, retained data, and the end of the state of a worker and of an
 * endpoint.
 */

#include <errno.h>
#include <stdlib.h>

#include "am/am.h"
#include "base/copy.h"
#include "base/log.h"
#include "core/context.h"
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

/* The header belongs to the caller: a message that is sent later has a copy of it. */
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
	/*
	 * Whether it is sent at once is known only after weft_tx_start(). A copy of a header is
	 * cheap.
	 */
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
	/* If the message has begun, its first piece, with the header, is sent. */
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

/* Data of active messages that handlers retain, or that is still at the sender. */

/* Free the message's credit. */
static void give_credit(struct weft_msg_ep *me, const struct weft_am_data *d)
{
	if (!me->failed)
		weft_credit_give(me, d->rndv ? 0 : d->length);
}

void weft_am_data_free(struct weft_am_data *d)
{
	struct weft_msg_ep *me = d->me;

	give_credit(me, d);
	if (!me->failed)
		weft_credit_update(me);
	weft_rx_forget(me, &d->got);
	free(d);
	weft_msg_ep_release(me);
}

void weft_am_keep(struct weft_am_data *d)
{
	d->kept = true;
	LIST_INSERT_HEAD(&d->me->mw->am->kept, d, link);
	LIST_INSERT_HEAD(&d->me->am->kept, d, own_link);
	if (!d->me->failed)
		weft_credit_kept(d->me);
}

/* The handler, or the user of the retained data, is done with it. */
static void data_consumed(struct weft_am_data *d)
{
	d->consumed = true;
	if (d->calling)
		return; /* after_call() frees it */
	if (d->kept) {
		LIST_REMOVE(d, link);
		LIST_REMOVE(d, own_link);
	}
	weft_am_data_free(d);
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

/* Hook: the user has closed the endpoint, so that retained messages' data will not be received. */
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
		weft_am_data_free(d);
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

/* Messages that are out of order or incomplete are dropped. */
static void am_fail(struct weft_msg_ep *me)
{
	struct weft_table_node *node;
	struct weft_am_data *d;

	for (uint32_t i = 0; me->am && (node = weft_table_any(&me->am->ahead, &i));) {
		d = container_of(node, struct weft_am_data, by_seq);
		weft_table_remove(&me->am->ahead, node);
		weft_am_data_free(d);
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
