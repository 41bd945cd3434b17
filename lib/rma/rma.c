/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, gets and atomics: the calls of weft.h. */

#include <errno.h>

#include "base/copy.h"
#include "base/log.h"
#include "core/amo.h"
#include "core/context.h"
#include "rma/rma.h"

/* ------------------------------------------------------------------ calls */

static bool params_ok(const struct weft_op_params *params)
{
	return weft_op_params_allow(params, WEFT_OP_FORCE_REQUEST | WEFT_OP_DELIVERED |
						    WEFT_OP_INJECT | WEFT_OP_MORE | WEFT_OP_IMM) ==
	       0;
}

/* May this endpoint execute such an operation, with this key? */
static int check_call(struct weft_ep *ep, uint64_t feature, const struct weft_rkey *rkey,
		      unsigned int right, const struct weft_op_params *params)
{
	struct weft_rma *rma;
	int rc;

	if (!rkey || !params_ok(params))
		return -EINVAL;
	rc = weft_msg_ep_check(ep);
	if (rc)
		return rc;
	rma = weft_rma_of(ep->msg);
	if (!rma)
		return -ENOMEM;
	if (!(ep->worker->ctx->features & feature)) {
		if (!rma->warned)
			weft_error("an operation on remote memory needs WEFT_FEATURE_%s when the "
				   "context is created",
				   feature == WEFT_FEATURE_RMA     ? "RMA"
				   : feature == WEFT_FEATURE_AMO32 ? "AMO32"
								   : "AMO64");
		rma->warned = true;
		return -EOPNOTSUPP;
	}
	if (rkey->remote_id != ep->remote_id)
		return -EINVAL;
	return rkey->rights & right ? 0 : -EACCES;
}

static struct weft_request *new_request(struct weft_ep *ep, enum weft_rma_kind kind,
					struct weft_rkey *rkey, uint64_t remote,
					const struct weft_op_params *params, bool held)
{
	struct weft_request *req = weft_request_alloc(ep->msg->mw, &weft_rma_ops, params, held);

	if (!req)
		return NULL;
	req->me = ep->msg;
	req->op = kind == WEFT_RMA_PUT ? WEFT_OP_PUT : WEFT_OP_GET;
	req->tag = 0;
	req->send.proto = NULL;
	req->send.mem = NULL;
	req->send.inject = NULL;
	req->send.zcopies = 0;
	req->send.offset = 0;
	*weft_rma_req(req) =
		(struct weft_req_rma){.rkey = rkey, .remote = remote, .kind = (uint8_t)kind};
	weft_rma_req(req)->delivered = params && (params->flags & WEFT_OP_DELIVERED);
	rkey->refs++;
	return req;
}

static int transfer_new(struct weft_ep *ep, enum weft_rma_kind kind, void *buffer, size_t count,
			struct weft_rkey *rkey, uint64_t remote,
			const struct weft_op_params *params, struct weft_request **out)
{
	bool get = kind == WEFT_RMA_GET;
	struct weft_request *req;
	int rc;

	if (get && params && (params->flags & (WEFT_OP_INJECT | WEFT_OP_IMM)))
		return -EINVAL;
	rc = check_call(ep, WEFT_FEATURE_RMA, rkey,
			get ? WEFT_MEM_REMOTE_READ : WEFT_MEM_REMOTE_WRITE, params);
	if (rc)
		return rc;
	req = new_request(ep, kind, rkey, remote, params, out != NULL);
	if (!req)
		return -ENOMEM;
	rc = weft_send_data(req, params, buffer, count, get);
	if (rc == 0 && (remote > rkey->size || req->dt.length > rkey->size - remote))
		rc = -ERANGE;
	if (rc) {
		weft_request_drop(req);
		return rc;
	}
	req->length = req->dt.length;
	if (params && (params->flags & WEFT_OP_IMM))
		weft_ext_of_send(&req->ext, params);
	if (get)
		weft_ivals_init(&weft_rma_req(req)->got);
	rc = weft_rma_start(req);
	if (out && rc == WEFT_INPROGRESS)
		*out = req;
	return rc;
}

static int transfer_locked(struct weft_ep *ep, enum weft_rma_kind kind, void *buffer, size_t count,
			   struct weft_rkey *rkey, uint64_t remote,
			   const struct weft_op_params *params, struct weft_request **out)
{
	int rc;

	if (out)
		*out = NULL;
	if (!ep)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse(kind == WEFT_RMA_PUT ? "weft_put" : "weft_get");
	weft_worker_lock(ep->worker);
	rc = transfer_new(ep, kind, buffer, count, rkey, remote, params, out);
	weft_worker_posted(ep->worker, params);
	weft_worker_unlock(ep->worker);
	return rc;
}

int weft_put(struct weft_ep *ep, const void *buffer, size_t count, struct weft_rkey *rkey,
	     uint64_t remote_offset, const struct weft_op_params *params, struct weft_request **req)
{
	return transfer_locked(ep, WEFT_RMA_PUT, (void *)(uintptr_t)buffer, count, rkey,
			       remote_offset, params, req);
}

int weft_get(struct weft_ep *ep, void *buffer, size_t count, struct weft_rkey *rkey,
	     uint64_t remote_offset, const struct weft_op_params *params, struct weft_request **req)
{
	return transfer_locked(ep, WEFT_RMA_GET, buffer, count, rkey, remote_offset, params, req);
}

/* Checks an atomic on an array. */
static int vector_check(struct weft_ep *ep, const struct weft_atomic *a,
			const struct weft_rkey *rkey, uint64_t remote,
			const struct weft_op_params *params)
{
	size_t width = weft_amo_width(a->type);
	int rc;

	if (!weft_amo_known(a->op, a->type) || a->count == 0 || a->count > PTRDIFF_MAX / width ||
	    (a->op != WEFT_ATOMIC_READ && !a->operands) ||
	    (a->op == WEFT_ATOMIC_READ && !a->result) ||
	    (weft_amo_compares(a->op) && !a->compares) ||
	    (params && (params->flags & WEFT_OP_INJECT)))
		return -EINVAL;
	rc = check_call(ep, width == 8 ? WEFT_FEATURE_AMO64 : WEFT_FEATURE_AMO32, rkey,
			WEFT_MEM_REMOTE_ATOMIC, params);
	if (rc)
		return rc;
	if (remote > rkey->size || a->count * width > rkey->size - remote)
		return -ERANGE;
	if (!rkey->unknown && (remote + rkey->low) % width)
		return -EINVAL;
	return ep->msg->mw->conf.atomic_device ? -EOPNOTSUPP : 0;
}

static int atomic_check(struct weft_ep *ep, const struct weft_atomic *a,
			const struct weft_rkey *rkey, uint64_t remote,
			const struct weft_op_params *params)
{
	int rc;

	if (params && (params->flags & WEFT_OP_IMM))
		return -EINVAL;
	if (a->type)
		return vector_check(ep, a, rkey, remote, params);
	if ((unsigned int)a->op > WEFT_ATOMIC_CSWAP || (a->width != 4 && a->width != 8))
		return -EINVAL;
	rc = check_call(ep, a->width == 4 ? WEFT_FEATURE_AMO32 : WEFT_FEATURE_AMO64, rkey,
			WEFT_MEM_REMOTE_ATOMIC, params);
	if (rc)
		return rc;
	if (remote > rkey->size || a->width > rkey->size - remote)
		return -ERANGE;
	if (!rkey->unknown && (remote + rkey->low) % a->width)
		return -EINVAL;
	/* Only operations that are atomic among all those of the device. */
	if (ep->msg->mw->conf.atomic_device &&
	    (a->width != 8 || (a->op != WEFT_ATOMIC_ADD && a->op != WEFT_ATOMIC_CSWAP)))
		return -EOPNOTSUPP;
	return 0;
}

static int atomic_locked(struct weft_ep *ep, const struct weft_atomic *a, struct weft_rkey *rkey,
			 uint64_t remote, const struct weft_op_params *params,
			 struct weft_request **out)
{
	struct weft_request *req;
	int rc = atomic_check(ep, a, rkey, remote, params);

	if (rc)
		return rc;
	req = new_request(ep, WEFT_RMA_AMO, rkey, remote, params, out != NULL);
	if (!req)
		return -ENOMEM;
	req->op = a->result ? WEFT_OP_AMO_FETCH : WEFT_OP_AMO;
	req->length = a->width;
	weft_rma_req(req)->op = (uint8_t)a->op;
	weft_rma_req(req)->width = (uint8_t)a->width;
	weft_rma_req(req)->amo.operand = a->operand;
	weft_rma_req(req)->amo.compare = a->op == WEFT_ATOMIC_CSWAP ? a->compare : 0;
	weft_rma_req(req)->amo.result = a->result;
	if (a->type) {
		weft_rma_req(req)->type = (uint8_t)a->type;
		weft_rma_req(req)->width = (uint8_t)weft_amo_width(a->type);
		weft_rma_req(req)->vec.operands = a->operands;
		weft_rma_req(req)->vec.compares = a->compares;
		req->length = a->count * weft_amo_width(a->type);
	}
	rc = weft_rma_start(req);
	if (out && rc == WEFT_INPROGRESS)
		*out = req;
	return rc;
}

int weft_atomic(struct weft_ep *ep, const struct weft_atomic *atomic, struct weft_rkey *rkey,
		uint64_t remote_offset, const struct weft_op_params *params,
		struct weft_request **req)
{
	struct weft_atomic a;
	int rc;

	if (req)
		*req = NULL;
	if (!ep || !atomic || weft_struct_in(&a, sizeof(a), atomic))
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_atomic");
	weft_worker_lock(ep->worker);
	rc = atomic_locked(ep, &a, rkey, remote_offset, params, req);
	weft_worker_posted(ep->worker, params);
	weft_worker_unlock(ep->worker);
	return rc;
}
