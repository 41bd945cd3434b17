/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/log.h"
#include "core/wire.h"
#include "core/worker.h"
#include "proto/proto.h"
#include "rma/fence.h"
#include "rma/initiator.h"
#include "rma/rma.h"

/* ------------------------------------------------------------------ calls */

static bool params_ok(const struct weft_op_params *params)
{
	return weft_op_params_allow(params, WEFT_OP_F_FORCE_REQUEST | WEFT_OP_F_DELIVERED |
						    WEFT_OP_F_INJECT | WEFT_OP_F_MORE |
						    WEFT_OP_F_POLLED | WEFT_OP_F_IMM) == 0;
}

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
	/* Another worker's lock protects the references of its keys. */
	if (rkey->worker != ep->worker || rkey->remote_id != ep->remote_id)
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
	weft_rma_req(req)->delivered = params && (params->flags & WEFT_OP_F_DELIVERED);
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

	if (get && params && (params->flags & (WEFT_OP_F_INJECT | WEFT_OP_F_IMM)))
		return -EINVAL;
	rc = check_call(ep, WEFT_FEATURE_RMA, rkey,
			get ? WEFT_MEM_F_REMOTE_READ : WEFT_MEM_F_REMOTE_WRITE, params);
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
	WEFT_PROBE5(post, req, req->op, req->me, remote, req->length);
	if (params && (params->flags & WEFT_OP_F_IMM))
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

static int vector_check(struct weft_ep *ep, const struct weft_atomic_params *a,
			const struct weft_rkey *rkey, uint64_t remote,
			const struct weft_op_params *params)
{
	size_t width = weft_amo_width(a->type);
	int rc;

	if (!weft_amo_known(a->op, a->type) || a->count == 0 || a->count > PTRDIFF_MAX / width ||
	    (a->op != WEFT_ATOMIC_READ && !a->operands) ||
	    (a->op == WEFT_ATOMIC_READ && !a->result) ||
	    (weft_amo_compares(a->op) && !a->compares) ||
	    (params && (params->flags & WEFT_OP_F_INJECT)))
		return -EINVAL;
	rc = check_call(ep, width == 8 ? WEFT_FEATURE_AMO64 : WEFT_FEATURE_AMO32, rkey,
			WEFT_MEM_F_REMOTE_ATOMIC, params);
	if (rc)
		return rc;
	if (remote > rkey->size || a->count * width > rkey->size - remote)
		return -ERANGE;
	if (!rkey->unknown && (remote + rkey->low) % width)
		return -EINVAL;
	return ep->msg->mw->conf.atomic_device ? -EOPNOTSUPP : 0;
}

static int atomic_check(struct weft_ep *ep, const struct weft_atomic_params *a,
			const struct weft_rkey *rkey, uint64_t remote,
			const struct weft_op_params *params)
{
	int rc;

	if (params && (params->flags & WEFT_OP_F_IMM))
		return -EINVAL;
	if (a->type)
		return vector_check(ep, a, rkey, remote, params);
	if ((unsigned int)a->op > WEFT_ATOMIC_CSWAP || (a->width != 4 && a->width != 8))
		return -EINVAL;
	rc = check_call(ep, a->width == 4 ? WEFT_FEATURE_AMO32 : WEFT_FEATURE_AMO64, rkey,
			WEFT_MEM_F_REMOTE_ATOMIC, params);
	if (rc)
		return rc;
	if (remote > rkey->size || a->width > rkey->size - remote)
		return -ERANGE;
	if (!rkey->unknown && (remote + rkey->low) % a->width)
		return -EINVAL;
	/* Devices execute only additions and compare-and-swap of 8 bytes. */
	if (ep->msg->mw->conf.atomic_device &&
	    (a->width != 8 || (a->op != WEFT_ATOMIC_ADD && a->op != WEFT_ATOMIC_CSWAP)))
		return -EOPNOTSUPP;
	return 0;
}

static int atomic_locked(struct weft_ep *ep, const struct weft_atomic_params *a,
			 struct weft_rkey *rkey, uint64_t remote,
			 const struct weft_op_params *params, struct weft_request **out)
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
	WEFT_PROBE5(post, req, req->op, req->me, remote, req->length);
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

int weft_atomic(struct weft_ep *ep, const struct weft_atomic_params *atomic, struct weft_rkey *rkey,
		uint64_t remote_offset, const struct weft_op_params *params,
		struct weft_request **req)
{
	struct weft_atomic_params a;
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

/* ------------------------------------------------------------------ protocols */

/* Times are until the bytes, or the old value, are at their destination. */

/* The costs of native lanes: one way, or (@p back) a round trip. */
static void cost_native(const struct weft_model *m, uint32_t lanes, bool back,
			struct weft_curve *cv)
{
	struct weft_lanes_sum sum;

	weft_curve_lanes(cv, m, lanes);
	weft_cost_native(cv, m, lanes, WEFT_STAGE_SEND_CPU);
	if (!back)
		return;
	weft_lanes_sum(m, lanes, &sum);
	weft_curve_once(cv, WEFT_STAGE_LATENCY, (struct weft_linear){sum.latency, 0}, "request",
			"the slowest lane");
}

static int cost_native_rma(const struct weft_model *m, const struct weft_proto_key *key,
			   uint32_t lanes, struct weft_curve *cv)
{
	if (!(key->buf & WEFT_BUF_REG)) {
		snprintf(cv->why, sizeof(cv->why), "the memory here is not registered");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 0, SIZE_MAX);
	cost_native(m, lanes, key->op == WEFT_OP_GET, cv);
	weft_curve_end(cv);
	return 0;
}

static int cost_put_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	int rc;

	weft_curve_begin(cv, 0, SIZE_MAX);
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_put), key->buf);
	if (rc == 0)
		weft_curve_end(cv);
	return rc;
}

/* The peer's memory is registered and contiguous, whatever the local buffer is. */
static int cost_get_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	int rc;

	weft_curve_begin(cv, 0, SIZE_MAX);
	weft_cost_control(cv, m, "GET");
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_data),
				 WEFT_BUF_CONTIG | WEFT_BUF_REG);
	if (rc == 0)
		weft_curve_end(cv);
	return rc;
}

#define WORD 8 /* bytes; the largest that atomics change */

static int cost_amo_native(const struct weft_model *m, const struct weft_proto_key *key,
			   uint32_t lanes, struct weft_curve *cv)
{
	if (!m->conf.atomic_device) {
		snprintf(cv->why, sizeof(cv->why),
			 "atomics of devices are not atomic with those of CPUs: only with "
			 "WEFT_ATOMIC_MODE=device");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 0, WORD);
	cost_native(m, lanes, key->op == WEFT_OP_AMO_FETCH, cv);
	weft_curve_end(cv);
	return 0;
}

static int cost_amo_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	if (m->conf.atomic_device) {
		snprintf(cv->why, sizeof(cv->why),
			 "WEFT_ATOMIC_MODE=device: atomics of CPUs are not atomic with those of "
			 "devices");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 0, WORD);
	weft_curve_lanes(cv, m, lanes);
	weft_cost_control(cv, m, "AMO");
	if (key->op == WEFT_OP_AMO_FETCH)
		weft_cost_control(cv, m, "AMO_REP");
	weft_curve_end(cv);
	return 0;
}

const struct weft_proto weft_proto_put_native = {
	.name = "put/native",
	.desc = "written by all lanes that write remote memory themselves",
	.ops = WEFT_OP_BIT(WEFT_OP_PUT),
	.classes = 1u << WEFT_DT_CONTIG | 1u << WEFT_DT_IOV,
	.needs = WEFT_NEEDS_NATIVE,
	.lanes = &weft_lanes_put,
	.cost = cost_native_rma,
	.progress = weft_rma_native_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_put_am = {
	.name = "put/am",
	.desc = "messages over all lanes, written by the peer's progress",
	.ops = WEFT_OP_BIT(WEFT_OP_PUT),
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_rndv_am,
	.cost = cost_put_am,
	.progress = weft_rma_put_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_get_native = {
	.name = "get/native",
	.desc = "read by all lanes that read remote memory themselves",
	.ops = WEFT_OP_BIT(WEFT_OP_GET),
	.classes = 1u << WEFT_DT_CONTIG | 1u << WEFT_DT_IOV,
	.needs = WEFT_NEEDS_NATIVE,
	.lanes = &weft_lanes_get,
	.cost = cost_native_rma,
	.progress = weft_rma_native_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_get_am = {
	.name = "get/am",
	.desc = "requested, sent by the peer's progress over all lanes",
	.ops = WEFT_OP_BIT(WEFT_OP_GET),
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_rndv_am,
	.cost = cost_get_am,
	.progress = weft_rma_get_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_amo_native = {
	.name = "amo/native",
	.desc = "by the peer's device",
	.ops = WEFT_OPS_AMO,
	.classes = WEFT_CLASSES_ALL,
	.needs = WEFT_NEEDS_NATIVE,
	.lanes = &weft_lanes_amo,
	.cost = cost_amo_native,
	.progress = weft_rma_native_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_amo_am = {
	.name = "amo/am",
	.desc = "a message, done by the peer's progress",
	.ops = WEFT_OPS_AMO,
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_am,
	.cost = cost_amo_am,
	.progress = weft_rma_amo_step,
	.reset = weft_rma_reset,
};

/* ------------------------------------------------------------------ worker state */

static int worker_init(struct weft_msg_worker *mw)
{
	struct weft_rma_worker *rw = calloc(1, sizeof(*rw));

	if (!rw)
		return -ENOMEM;
	TAILQ_INIT(&rw->gets_waiting);
	weft_share_init(&rw->gets, mw->conf.rma_max_gets);
	mw->rma = rw;
	return 0;
}

static void worker_fini(struct weft_msg_worker *mw)
{
	free(mw->rma);
}

static unsigned int look(struct weft_msg_worker *mw)
{
	weft_rma_gets_look(mw);
	return 0;
}

#define LEVELS(X)                                                                                \
	X(rw->gets.used + rw->gets.stalled, "rma.gets_now",                                      \
	  "Pieces of gets requested, not yet "                                                   \
	  "here, now.")                                                                          \
	X(rw->gets.peak, "rma.gets_peak", "Pieces of gets requested at a time, at most so far.") \
	X(rw->gets.stalled, "rma.gets_stalled", "Pieces of gets now whose peers are stalled.")

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	WEFT_RMA_COUNTERS(WEFT_COUNTER_HELP)
	LEVELS(WEFT_LEVEL_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void counters(const struct weft_msg_worker *mw, weft_lane_counter_cb cb, void *arg)
{
	const struct weft_rma_worker *rw = mw->rma;

#define REPORT(field, name, help) cb(name, rw->field, arg);
	WEFT_RMA_COUNTERS(REPORT)
#undef REPORT
#define REPORT(value, name, help) cb(name, value, arg);
	LEVELS(REPORT)
#undef REPORT
}

/* ------------------------------------------------------------------ endpoint state */

struct weft_rma *weft_rma_of(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;

	if (rma)
		return rma;
	rma = calloc(1, sizeof(*rma));
	if (!rma)
		return NULL;
	TAILQ_INIT(&rma->pending);
	TAILQ_INIT(&rma->waiting);
	TAILQ_INIT(&rma->answers);
	rma->me = me;
	me->rma = rma;
	return rma;
}

static void ep_fini(struct weft_msg_ep *me)
{
	if (!me->rma)
		return;
	weft_rma_gets_leave(me);
	if (me->rma->listed)
		LIST_REMOVE(me->rma, used_link);
	weft_rma_note_drop(me->rma);
	free(me->rma);
	me->rma = NULL;
}

bool weft_rma_ready(struct weft_msg_ep *me)
{
	if (weft_rma_of(me))
		return true;
	weft_msg_fail(me, -ENOMEM, "no memory for a peer's operations on memory here");
	return false;
}

static void fail(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;

	if (!rma)
		return;
	TAILQ_INIT(&rma->pending);
	TAILQ_INIT(&rma->waiting);
	TAILQ_INIT(&rma->answers);
	rma->answers_open = 0;
	weft_rma_gets_leave(me);
	weft_rma_gets_done(me, rma->gets, false);
	rma->running = rma->open = rma->gets = 0;
	rma->confirmed = rma->wanted = rma->sent;
	weft_rma_note_drop(rma);
	weft_rma_moved(me);
}

const struct weft_module weft_rma_module = {
	.name = "rma",
	.worker_init = worker_init,
	.worker_fini = worker_fini,
	.before_queues = look,
	.counters = counters,
	.counter_help = counter_help,
	.ep_fini = ep_fini,
	.serve = weft_rma_serve,
	.has_work = weft_rma_has_work,
	.fail = fail,
	.flushed = weft_rma_flushed,
	.take_status = weft_rma_take_status,
};
