/* SPDX-License-Identifier: BSD-3-Clause */
/* Data of active messages that handlers retain, or that is still at the sender. */

#include <errno.h>
#include <stdlib.h>

#include "am/am.h"

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

void weft_am_closing(struct weft_msg_ep *me)
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

void weft_am_drop_kept(struct weft_am_worker *aw)
{
	struct weft_am_data *d;

	while ((d = LIST_FIRST(&aw->kept))) {
		LIST_REMOVE(d, link);
		LIST_REMOVE(d, own_link);
		weft_am_data_free(d);
	}
}
