/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/multi.h"

#include <errno.h>

#include "provider/process.h"

/*
 * A buffer for one process only does not wait in the queue for others, which may never be filled.
 */
static bool is_queued(const struct wfi_op *op)
{
	return !(op->params.flags & WEFT_OP_SOURCE_ID);
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
 * Process one message. When the rest of the buffer is too short, or no further completion can be
 * reserved, the application gets the buffer back. @return has it got it back?
 */
static bool one(struct wfi_op *op, const struct weft_completion *c)
{
	int error = wfi_op_error(op, c->status);
	size_t left = error == 0 ? op->length - c->length : 0;
	char *rest = (char *)op->buf + (error == 0 ? c->length : 0);
	bool last;

	last = error != 0 || left < op->ep->min_multi_recv || wfi_cq_reserve(op->cq) < 0;
	if (last)
		op->flags |= FI_MULTI_RECV;
	if (op->cntr)
		wfi_cntr_count(op->cntr, error != 0);
	if (last || op->report)
		wfi_op_message(op, c, error);
	else
		wfi_cq_release(op->cq);
	op->buf = rest;
	op->length = left;
	return last;
}

/* Process the message in @p c, then post the next receives. */
static void run(struct wfi_op *op, struct weft_completion *c)
{
	struct wfi_ep *ep = op->ep;
	bool queued = is_queued(op);
	int rc;

	for (;;) {
		if (one(op, c)) {
			if (queued)
				STAILQ_REMOVE_HEAD(&ep->multi, waiting);
			wfi_op_release(op);
			op = queued ? STAILQ_FIRST(&ep->multi) : NULL;
		}
		if (!op)
			return;
		rc = next_receive(op, c);
		if (rc == WEFT_INPROGRESS)
			return;
		if (rc < 0) /* the error goes to the reserved completion */
			c->status = rc;
	}
}

void wfi_multi_received(struct wfi_op *op, const struct weft_completion *c)
{
	struct weft_completion copy = *c;

	run(op, &copy);
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
		run(op, &c);
	else if (rc < 0 && is_queued(op))
		STAILQ_REMOVE_HEAD(&op->ep->multi, waiting);
	return rc < 0 ? rc : WEFT_INPROGRESS;
}

bool wfi_multi_cancel(struct wfi_ep *ep, const void *context)
{
	struct weft_completion c = {.size = sizeof(c), .status = -ECANCELED};
	struct wfi_op *op;

	STAILQ_FOREACH(op, &ep->multi, waiting) {
		if (op->context != context || op->req)
			continue;
		STAILQ_REMOVE(&ep->multi, op, wfi_op, waiting);
		op->cancelled = true;
		one(op, &c);
		wfi_op_release(op);
		return true;
	}
	return false;
}

void wfi_multi_close(struct wfi_ep *ep)
{
	struct wfi_op *op;

	while ((op = STAILQ_FIRST(&ep->multi))) {
		STAILQ_REMOVE_HEAD(&ep->multi, waiting);
		if (!op->req) /* the first one has a receive, which is cancelled with all others */
			wfi_op_drop(op);
	}
}
