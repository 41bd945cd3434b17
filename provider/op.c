/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/info.h"
#include "provider/name.h"
#include "provider/process.h"

/* ------------------------------------------------------------------ numbers of endpoints */

static struct wfi_ep *numbers[WFI_ENDPOINTS]; /* NULL: free */

/*
 * Numbers are given in a circle: a number is used again after all other free ones. Otherwise
 * messages in flight to a closed endpoint could match receives of a new one.
 */
int wfi_ep_number_take(struct wfi_ep *ep)
{
	static uint16_t next;
	uint16_t n;

	for (uint16_t i = 0; i < WFI_ENDPOINTS; i++) {
		n = (uint16_t)((next + i) % WFI_ENDPOINTS);
		if (numbers[n])
			continue;
		numbers[n] = ep;
		ep->number = n;
		next = (uint16_t)(n + 1);
		return 0;
	}
	return -FI_EMFILE;
}

void wfi_ep_number_put(const struct wfi_ep *ep)
{
	numbers[ep->number] = NULL;
}

struct wfi_ep *wfi_ep_find(unsigned int number)
{
	return number < WFI_ENDPOINTS && numbers[number] && numbers[number]->enabled
		       ? numbers[number]
		       : NULL;
}

/* ------------------------------------------------------------------ operations */

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
struct wfi_op *wfi_ops_unused;

/* ------------------------------------------------------------------ the pool */

int wfi_ops_more(void)
{
	struct chunk *c = calloc(1, sizeof(*c));

	if (!c)
		return -FI_ENOMEM;
	c->next = chunks;
	chunks = c;
	for (int i = 0; i < CHUNK; i++) {
		c->ops[i].next = wfi_ops_unused;
		wfi_ops_unused = &c->ops[i];
	}
	return 0;
}

/* Free the operation; its reserved entry has been used or released. */
static void op_release(struct wfi_op *op)
{
	if (__builtin_expect(op->closing != NULL, 0)) {
		op->closing->busy--;
		op->closing = NULL;
	}
	op->ep = NULL;
	op->req = NULL;
	op->next = wfi_ops_unused;
	wfi_ops_unused = op;
}

void wfi_op_drop(struct wfi_op *op)
{
	if (op->cq)
		wfi_cq_release(op->cq);
	op_release(op);
}

void wfi_ops_free(void)
{
	struct chunk *c;

	while ((c = chunks)) {
		chunks = c->next;
		free(c);
	}
	wfi_ops_unused = NULL;
}

void wfi_ops_forked(void)
{
	memset(numbers, 0, sizeof(numbers));
	chunks = NULL;
	wfi_ops_unused = NULL;
}

/* ------------------------------------------------------------------ completion */

/* Only receives report a buffer and a tag. */
static inline struct wfi_completion *report(const struct wfi_op *op, size_t length, void *buf,
					    uint64_t tag, int error, int status)
{
	struct wfi_completion *c = wfi_cq_push(op->cq);

	c->entry.op_context = op->context;
	c->entry.flags = op->flags;
	c->entry.len = length;
	c->entry.buf = buf;
	c->entry.data = 0;
	c->entry.tag = tag;
	c->source = FI_ADDR_NOTAVAIL;
	c->cut = 0;
	c->error = error;
	c->weft_error = status;
	c->address = NULL;
	return c;
}

__attribute__((noinline)) void wfi_op_source(const struct wfi_ep *ep, struct wfi_completion *c,
					     uint64_t id, uint16_t source_channel)
{
	struct wfi_addr addr;

	c->source = wfi_av_find(ep->av, id, wfi_source_number(source_channel));
	if (c->source != FI_ADDR_NOTAVAIL || !ep->source_err ||
	    !wfi_sender_addr(&addr, id, source_channel))
		return;
	c->address = malloc(WFI_TEXT_MAX);
	if (!c->address)
		return;
	wfi_address_write(ep->domain->addr_format, &addr, c->address);
	c->error = FI_EADDRNOTAVAIL;
}

void wfi_op_sent(struct wfi_op *op, int status)
{
	if (op->cntr)
		wfi_cntr_count(op->cntr, status < 0);
	if (op->cq) {
		if (op->report || status < 0)
			report(op, 0, NULL, 0, status < 0 ? wfi_errno(status) : 0, status);
		else
			wfi_cq_release(op->cq);
	}
	op_release(op);
}

/*
 * The error of a receive, positive; 0: none. If the application has not cancelled the receive,
 * -ECANCELED comes from wfi_ops_end(): the error is then op->status, or FI_ECONNRESET. Locked.
 */
static int op_error(const struct wfi_op *op, int status)
{
	if (status >= 0)
		return 0;
	if (status == -ECANCELED && !op->cancelled)
		return op->status ? wfi_errno(op->status) : FI_ECONNRESET;
	return wfi_errno(status);
}

/* Add an entry for the message, or for the error of its receive, to the completion queue. */
static inline __attribute__((always_inline)) void op_message(struct wfi_op *op,
							     const struct weft_completion *c,
							     int error)
{
	struct wfi_completion *out;
	size_t room = op->length;

	out = report(op, c->length < room ? c->length : room, op->buf, c->tag, error,
		     op->status ? op->status : c->status);
	if (c->flags & WEFT_COMPLETION_F_IMM) {
		out->entry.flags |= FI_REMOTE_CQ_DATA;
		out->entry.data = c->imm;
	}
	if (__builtin_expect(error == FI_ETRUNC, 0))
		out->cut = c->length - room;
	if (op->ep->source && error == 0)
		wfi_op_source(op->ep, out, c->source_id, c->source_channel);
}

/* ------------------------------------------------------------------ from the call */

size_t wfi_post_lengths(const struct iovec *iov, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

void *wfi_post_vector(struct wfi_op *op, const struct iovec *iov, size_t count,
		      struct weft_op_params *params)
{
	if (count == 0)
		return NULL;
	memcpy(op->iov, iov, count * sizeof(*iov));
	params->datatype = &wfi_iov_type;
	return op->iov;
}

int wfi_post_result(int rc)
{
	return rc == -ENOMEM ? -FI_EAGAIN : rc < 0 ? -wfi_errno(rc) : 0;
}

int wfi_post_started(struct wfi_op *op, int rc)
{
	if (rc == 0)
		wfi_op_sent(op, 0);
	else if (rc < 0)
		wfi_op_drop(op);
	return wfi_post_result(rc);
}

/* ------------------------------------------------------------------ buffers for messages */

/*
 * A buffer for messages of one process only is posted at once. In the queue it would wait until the
 * buffers before it are full, and these may get no message.
 */
static bool is_queued(const struct wfi_op *op)
{
	return !(op->params.flags & WEFT_OP_F_SOURCE_ID);
}

/* @return as weft_tag_recv(), which stores its completion in @p c if it completes at once */
static int next_receive(struct wfi_op *op, struct weft_completion *c)
{
	struct weft_op_params params = op->params;

	*c = (struct weft_completion){.size = sizeof(*c)};
	params.completion = c;
	return weft_tag_recv(wfi.worker, NULL, op->buf, op->length, 0, UINT64_MAX, &params,
			     &op->req);
}

/*
 * Process one message. The application gets the buffer back after an error, or if the rest is too
 * short, or if no further completion can be reserved. @return true: the application has it back
 */
static bool multi_message(struct wfi_op *op, const struct weft_completion *c)
{
	int error = op_error(op, c->status);
	size_t left = error == 0 ? op->length - c->length : 0;
	char *rest = (char *)op->buf + (error == 0 ? c->length : 0);
	bool last;

	last = error != 0 || left < op->ep->min_multi_recv || wfi_cq_reserve(op->cq) < 0;
	if (last)
		op->flags |= FI_MULTI_RECV;
	if (op->cntr)
		wfi_cntr_count(op->cntr, error != 0);
	if (last || op->report)
		op_message(op, c, error);
	else
		wfi_cq_release(op->cq);
	op->buf = rest;
	op->length = left;
	return last;
}

/* Process the message in @p c, then post the next receives. */
static void multi_run(struct wfi_op *op, struct weft_completion *c)
{
	struct wfi_ep *ep = op->ep;
	bool queued = is_queued(op);
	int rc;

	for (;;) {
		if (multi_message(op, c)) {
			if (queued)
				STAILQ_REMOVE_HEAD(&ep->multi, waiting);
			op_release(op);
			op = queued ? STAILQ_FIRST(&ep->multi) : NULL;
		}
		if (!op)
			return;
		rc = next_receive(op, c);
		if (rc == WEFT_INPROGRESS)
			return;
		if (rc < 0) /* the next round reports the error by the reserved completion */
			c->status = rc;
	}
}

/* A receive of the buffer has ended, with a message or an error. Locked. */
static __attribute__((noinline)) void multi_received(struct wfi_op *op,
						     const struct weft_completion *c)
{
	struct weft_completion copy = *c;

	multi_run(op, &copy);
}

int wfi_multi_post(struct wfi_op *op)
{
	struct weft_completion c;
	int rc;

	op->req = NULL;
	if (is_queued(op)) {
		STAILQ_INSERT_TAIL(&op->ep->multi, op, waiting);
		if (op != STAILQ_FIRST(&op->ep->multi))
			return WEFT_INPROGRESS;
	}
	rc = next_receive(op, &c);
	if (rc == 0)
		multi_run(op, &c);
	else if (rc < 0 && is_queued(op))
		STAILQ_REMOVE_HEAD(&op->ep->multi, waiting);
	return rc < 0 ? rc : WEFT_INPROGRESS;
}

/* Cancel a buffer with this context that waits in the queue. Locked. @return was there one? */
static bool multi_cancel(struct wfi_ep *ep, const void *context)
{
	struct weft_completion c = {.size = sizeof(c), .status = -ECANCELED};
	struct wfi_op *op;

	STAILQ_FOREACH(op, &ep->multi, waiting) {
		if (op->context != context || op->req)
			continue;
		STAILQ_REMOVE(&ep->multi, op, wfi_op, waiting);
		op->cancelled = true;
		multi_message(op, &c);
		op_release(op);
		return true;
	}
	return false;
}

void wfi_multi_close(struct wfi_ep *ep)
{
	struct wfi_op *op;

	while ((op = STAILQ_FIRST(&ep->multi))) {
		STAILQ_REMOVE_HEAD(&ep->multi, waiting);
		if (!op->req) /* wfi_ops_close() cancels the receive of the first buffer */
			wfi_op_drop(op);
	}
}

/* ------------------------------------------------------------------ received */

void wfi_op_received(struct wfi_op *op, const struct weft_completion *c)
{
	int error;

	if (op->multi && op->cq) {
		multi_received(op, c);
		return;
	}
	error = op_error(op, c->status);
	if (op->cntr)
		wfi_cntr_count(op->cntr, error != 0);
	if (op->cq && (op->report || error != 0)) {
		op_message(op, c, error);
		op_release(op);
	} else {
		wfi_op_drop(op);
	}
}

void wfi_sent_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	bool held = ((struct wfi_op *)arg)->req != NULL;

	wfi_op_sent(arg, c->status);
	if (held)
		weft_request_free(req);
}

void wfi_received_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	wfi_op_received(arg, c);
}

/* ------------------------------------------------------------------ cancelling */

/*
 * A send or receive has ended because its peer is gone. If the application cancels it before it has
 * read the error, FI_ECANCELED replaces the error: Mercury waits for that.
 */
static bool cancel_unread(struct wfi_cq *cq, const void *context)
{
	struct wfi_completion *c;

	for (size_t i = cq->head; i != cq->tail; i++) {
		c = &cq->ring[i & (cq->size - 1)];
		if (c->entry.op_context != context || !(c->entry.flags & (FI_RECV | FI_SEND)) ||
		    (c->error != FI_EHOSTUNREACH && c->error != FI_ECONNRESET))
			continue;
		c->error = FI_ECANCELED;
		c->weft_error = -ECANCELED;
		return true;
	}
	return false;
}

/* Cancel a receive or send with this context. @param kind  FI_RECV or FI_SEND */
static bool cancel_posted(const struct wfi_ep *ep, const void *context, uint64_t kind)
{
	struct wfi_op *op;

	for (struct chunk *c = chunks; c; c = c->next) {
		for (int i = 0; i < CHUNK; i++) {
			op = &c->ops[i];
			if (op->ep != ep || !op->req || op->context != context ||
			    !(op->flags & kind))
				continue;
			op->cancelled = true;
			if (weft_request_cancel(op->req) == 0)
				return true;
			/* The operation is matched or under way, and completes. */
			op->cancelled = false;
		}
	}
	return false;
}

int wfi_ops_cancel(struct wfi_ep *ep, void *context)
{
	if (multi_cancel(ep, context) || cancel_posted(ep, context, FI_RECV) ||
	    cancel_posted(ep, context, FI_SEND) ||
	    (ep->rx.cq && cancel_unread(ep->rx.cq, context)) ||
	    (ep->tx.cq && cancel_unread(ep->tx.cq, context)))
		return 0;
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
			if (op->inject)
				continue;
			op->closing = ep;
			ep->busy++;
			if (op->req && op->flags & FI_RECV)
				weft_request_cancel(op->req);
		}
	}
}

void wfi_ops_withdraw(const struct wfi_ep *ep)
{
	for (struct chunk *c = chunks; c; c = c->next) {
		for (int i = 0; i < CHUNK; i++)
			if (c->ops[i].closing == ep && c->ops[i].req)
				weft_request_cancel(c->ops[i].req);
	}
}
