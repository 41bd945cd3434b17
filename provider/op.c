/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/multi.h"
#include "provider/process.h"

#define CHUNK 64

struct chunk {
	struct chunk *next;
	struct wfi_op ops[CHUNK];
};

const struct weft_datatype wfi_iov_type = {
	.size = sizeof(struct weft_datatype),
	.dt_class = WEFT_DT_IOV,
};

static struct chunk *chunks;
static struct wfi_op *unused;
static unsigned int num_closing;

/* ------------------------------------------------------------------ the pool */

static int grow(void)
{
	struct chunk *c = calloc(1, sizeof(*c));

	if (!c)
		return -FI_ENOMEM;
	c->next = chunks;
	chunks = c;
	for (int i = 0; i < CHUNK; i++) {
		c->ops[i].next = unused;
		unused = &c->ops[i];
	}
	return 0;
}

void wfi_op_release(struct wfi_op *op)
{
	if (__builtin_expect(op->closing, 0)) {
		num_closing--;
		op->closing = false;
	}
	op->ep = NULL;
	op->req = NULL;
	op->next = unused;
	unused = op;
}

struct wfi_op *wfi_op_get(struct wfi_ep *ep, struct wfi_cq *cq)
{
	struct wfi_op *op;

	if (__builtin_expect(!unused, 0) && grow() < 0)
		return NULL;
	if (cq && wfi_cq_reserve(cq) < 0)
		return NULL;
	op = unused;
	unused = op->next;
	op->ep = ep;
	op->cq = cq;
	op->cancelled = false;
	op->multi = false;
	op->peer = NULL;
	op->status = 0;
	return op;
}

void wfi_op_drop(struct wfi_op *op)
{
	if (op->cq)
		wfi_cq_release(op->cq);
	wfi_op_release(op);
}

void wfi_ops_free(void)
{
	struct chunk *c;

	while ((c = chunks)) {
		chunks = c->next;
		free(c);
	}
	unused = NULL;
	num_closing = 0;
}

void wfi_ops_forked(void)
{
	chunks = NULL;
	unused = NULL;
	num_closing = 0;
}

/* ------------------------------------------------------------------ completion */

static struct wfi_completion *report(struct wfi_op *op, int error, int status)
{
	struct wfi_completion *c = wfi_cq_push(op->cq);

	c->entry.op_context = op->context;
	c->entry.flags = op->flags;
	c->entry.len = op->length;
	c->entry.buf = op->buf;
	c->entry.data = op->data;
	c->entry.tag = op->tag;
	c->source = FI_ADDR_NOTAVAIL;
	c->cut = 0;
	c->error = error;
	c->weft_error = status;
	return c;
}

void wfi_op_sent(struct wfi_op *op, int status)
{
	if (op->cntr)
		wfi_cntr_count(op->cntr, status < 0);
	if (op->cq) {
		if (op->report || status < 0) {
			/* Only receives report a buffer and a tag. */
			op->length = 0;
			op->buf = NULL;
			op->data = 0;
			op->tag = 0;
			report(op, status < 0 ? wfi_errno(status) : 0, status);
		} else {
			wfi_cq_release(op->cq);
		}
	}
	wfi_op_release(op);
}

/* Weft cancels a receive from a peer whose connection has ended: report the reason instead. */
int wfi_op_error(const struct wfi_op *op, int status)
{
	if (status >= 0)
		return 0;
	if (status == -ECANCELED && !op->cancelled)
		return op->status ? wfi_errno(op->status) : FI_ECONNRESET;
	return wfi_errno(status);
}

void wfi_op_message(struct wfi_op *op, const struct weft_completion *c, int error)
{
	struct wfi_completion *out;
	size_t room = op->length;

	op->length = c->length < room ? c->length : room;
	op->tag = c->tag;
	out = report(op, error, op->status ? op->status : c->status);
	if (c->flags & WEFT_COMPLETION_IMM) {
		out->entry.flags |= FI_REMOTE_CQ_DATA;
		out->entry.data = c->imm;
	}
	if (__builtin_expect(error == FI_ETRUNC, 0))
		out->cut = c->length - room;
	if (op->ep->source && error == 0)
		out->source = wfi_av_find(op->ep->av, c->source_id, c->source_channel / 2);
}

void wfi_op_received(struct wfi_op *op, const struct weft_completion *c)
{
	int error;

	if (op->multi && op->cq) {
		wfi_multi_received(op, c);
		return;
	}
	error = wfi_op_error(op, c->status);
	if (op->cntr)
		wfi_cntr_count(op->cntr, error != 0);
	if (op->cq && (op->report || error != 0)) {
		wfi_op_message(op, c, error);
		wfi_op_release(op);
	} else {
		wfi_op_drop(op);
	}
}

void wfi_sent_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	wfi_op_sent(arg, c->status);
}

void wfi_received_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	wfi_op_received(arg, c);
	weft_request_free(req);
}

/* ------------------------------------------------------------------ cancelling */

int wfi_ops_cancel(struct wfi_ep *ep, void *context)
{
	struct wfi_op *op;

	if (wfi_multi_cancel(ep, context))
		return 0;
	for (struct chunk *c = chunks; c; c = c->next) {
		for (int i = 0; i < CHUNK; i++) {
			op = &c->ops[i];
			if (op->ep != ep || !op->req || op->context != context)
				continue;
			op->cancelled = true;
			if (weft_request_cancel(op->req) == 0)
				return 0;
			/* It is matched, and completes. */
			op->cancelled = false;
		}
	}
	return -FI_ENOENT;
}

int wfi_op_undo(struct wfi_op *op)
{
	struct wfi_cq *cq = op->cq;
	struct wfi_cntr *cntr = op->cntr;

	op->cq = NULL;
	op->cntr = NULL;
	if (weft_request_cancel(op->req) < 0) {
		op->cq = cq;
		op->cntr = cntr;
		return -EBUSY;
	}
	if (cq)
		wfi_cq_release(cq);
	return 0;
}

bool wfi_ops_await(const struct wfi_peer *peer)
{
	for (struct chunk *c = chunks; c; c = c->next) {
		for (int i = 0; i < CHUNK; i++) {
			if (c->ops[i].ep && c->ops[i].req && c->ops[i].peer == peer)
				return true;
		}
	}
	return false;
}

void wfi_ops_end(const struct wfi_peer *peer, int status)
{
	struct wfi_op *op;

	for (struct chunk *c = chunks; c; c = c->next) {
		for (int i = 0; i < CHUNK; i++) {
			op = &c->ops[i];
			if (!op->ep || !op->req || op->peer != peer)
				continue;
			op->peer = NULL;
			op->status = status;
			/* A matched receive ends with its message. */
			if (weft_request_cancel(op->req) < 0)
				op->status = 0;
		}
	}
}

unsigned int wfi_ops_closing(void)
{
	return num_closing;
}

void wfi_ops_close(struct wfi_ep *ep)
{
	struct wfi_op *op;

	for (struct chunk *c = chunks; c; c = c->next) {
		for (int i = 0; i < CHUNK; i++) {
			op = &c->ops[i];
			if (op->ep != ep)
				continue;
			if (op->cq)
				wfi_cq_release(op->cq);
			op->cq = NULL;
			op->cntr = NULL;
			op->ep = NULL;
			op->closing = true;
			num_closing++;
			if (op->req)
				weft_request_cancel(op->req);
		}
	}
}
