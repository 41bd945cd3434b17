/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Native operations: lanes that access remote memory themselves. Each piece counts as its lane's
 * load until it has completed. The operation is over with its last piece: a put is then visible at
 * the peer.
 *
 * When a lane dies with a piece (its driver reports -ECANCELED), the whole operation is executed
 * again over the remaining lanes, or by messages. Reading and writing twice does no harm, and no
 * piece of the first attempt is in flight any more. If the device may have executed an atomic, the
 * driver reports -EIO instead, and the operation fails.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "core/lane_show.h"
#include "core/worker.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "rma/fence.h"
#include "rma/initiator.h"
#include "rma/rma.h"

/* ------------------------------------------------------------------ the initiator's buffer */

/*
 * A registration by the user covers any ranges inside it: a lane gets as many at a time as it
 * accepts. Otherwise the cache registers the buffer, each entry of an iov separately, because the
 * memory between entries may not be accessible. A piece of the operation then ends with its entry.
 */

/* Registrations of an iov, one per entry; NULL for empty ones. */
struct weft_rma_regs {
	size_t num;
	struct weft_mem *mem[];
};

/* An iov with a smaller mean entry (bytes), or more entries, is cheaper to copy than to look up. */
#define ENTRY_MIN 4096
#define ENTRIES_MAX 64

static bool covers_all(const struct weft_mem *mem, const struct weft_dt *dt)
{
	if (dt->dt_class == WEFT_DT_CONTIG)
		return weft_mem_covers(mem, dt->buf, dt->length);
	if (dt->dt_class != WEFT_DT_IOV)
		return false;
	for (size_t i = 0; i < dt->iovcnt; i++)
		if (dt->iov[i].iov_len &&
		    !weft_mem_covers(mem, dt->iov[i].iov_base, dt->iov[i].iov_len))
			return false;
	return true;
}

/* Does the cache keep a registration, or does one cost less than the copies at both ends? */
static bool is_worth_it(const struct weft_request *req, uint32_t lanes)
{
	const struct weft_lane_attr *attr =
		&req->me->lanes[__builtin_ctz(lanes)].lane_ep->iface->attr;
	const struct weft_dt *dt = &req->dt;

	if (req->length < req->me->zcopy_from || dt->dt_class == WEFT_DT_GENERIC)
		return false;
	if (dt->dt_class == WEFT_DT_IOV &&
	    (dt->iovcnt > ENTRIES_MAX || req->length / dt->iovcnt < ENTRY_MIN))
		return false;
	return weft_regcache_keeps(req->mw->worker->ctx->regcache) ||
	       attr->reg_cost + attr->reg_growth * (double)req->length <
		       2.0 * (double)req->length / req->mw->conf.model.bcopy_bw;
}

void weft_rma_local_put(struct weft_request *req)
{
	struct weft_rma_regs *regs = weft_rma_req(req)->regs;

	if (req->send.mem && (req->flags & WEFT_REQ_OWN_MEM)) {
		weft_mem_put(req->send.mem);
		req->send.mem = NULL;
		req->flags &= ~WEFT_REQ_OWN_MEM;
	}
	if (!regs)
		return;
	for (size_t i = 0; i < regs->num; i++)
		if (regs->mem[i])
			weft_mem_put(regs->mem[i]);
	free(regs);
	weft_rma_req(req)->regs = NULL;
}

static int register_iov(struct weft_request *req, unsigned int access)
{
	const struct weft_dt *dt = &req->dt;
	struct weft_rma_regs *regs = calloc(1, sizeof(*regs) + dt->iovcnt * sizeof(regs->mem[0]));
	int rc = 0;

	if (!regs)
		return -ENOMEM;
	weft_rma_req(req)->regs = regs;
	for (size_t i = 0; i < dt->iovcnt && rc == 0; i++) {
		regs->num = i + 1;
		if (dt->iov[i].iov_len)
			rc = weft_mem_get(req->mw->worker->ctx, dt->iov[i].iov_base,
					  dt->iov[i].iov_len, access, &regs->mem[i]);
		if (rc)
			regs->mem[i] = NULL;
	}
	if (rc)
		weft_rma_local_put(req);
	return rc;
}

static int register_it(struct weft_request *req, unsigned int access)
{
	int rc;

	if (req->dt.dt_class == WEFT_DT_IOV)
		return register_iov(req, access);
	rc = weft_mem_get(req->mw->worker->ctx, req->dt.buf, req->length, access, &req->send.mem);
	if (rc)
		req->send.mem = NULL;
	else
		req->flags |= WEFT_REQ_OWN_MEM;
	return rc;
}

/* @p lanes: those with a key of the peer's memory */
static bool rma_local_get(struct weft_request *req, uint32_t lanes)
{
	unsigned int access =
		weft_rma_req(req)->kind == WEFT_RMA_GET ? WEFT_LANE_ACCESS_LOCAL_WRITE : 0;
	const struct weft_mem *mem = req->send.mem;

	if (req->length == 0 || !lanes)
		return false;
	/* If the user's registration does not cover the buffer, the operation is not native. */
	if (mem)
		return (weft_mem_access(mem) & access) == access && covers_all(mem, &req->dt);
	if (!is_worth_it(req, lanes))
		return false;
	if (register_it(req, access) == 0)
		return true;
	req->mw->count.register_failed++;
	return false;
}

static bool rma_local_on(const struct weft_request *req, const struct weft_lane_iface *iface)
{
	const struct weft_rma_regs *regs = weft_rma_req(req)->regs;

	if (!regs)
		return req->send.mem && weft_mem_lane_of(req->send.mem, iface);
	for (size_t i = 0; i < regs->num; i++)
		if (regs->mem[i] && !weft_mem_lane_of(regs->mem[i], iface))
			return false;
	return true;
}

/* @param[in,out] len  bytes wanted; bytes described, all in one registration */
static unsigned int rma_local_iov(struct weft_request *req, const struct weft_lane_iface *iface,
				  size_t off, size_t *len, struct iovec *iov, unsigned int max,
				  struct weft_mem_lane **mem)
{
	const struct weft_rma_regs *regs = weft_rma_req(req)->regs;
	unsigned int n = weft_dt_iov_some(&req->dt, off, len, iov, regs ? 1 : max);

	/* The cursor is at the last entry described. */
	*mem = weft_mem_lane_of(regs ? regs->mem[req->dt.pos] : req->send.mem, iface);
	return n;
}

/* ------------------------------------------------------------------ the operation */

#define MAX_IOV 32

static const uint64_t *native_key(const struct weft_request *req, unsigned int lane)
{
	const struct weft_rkey *rkey = weft_rma_req(req)->rkey;
	uint8_t domain = req->me->ep->lanes[lane].remote_domain;

	for (unsigned int i = 0; i < rkey->num_native; i++)
		if (rkey->native[i].domain == domain)
			return &rkey->native[i].key;
	return NULL;
}

static uint32_t lanes_with(const struct weft_request *req, uint64_t feature)
{
	const struct weft_msg_ep *me = req->me;
	uint32_t found = 0;

	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		const struct weft_lane_ep *lane_ep = me->lanes[i].lane_ep;

		if ((lane_ep->iface->attr.features & ~lane_ep->lacks & feature) &&
		    native_key(req, i))
			found |= 1u << i;
	}
	return found;
}

/*
 * A device's atomics are atomic among its own only (IBV_ATOMIC_HCA). So all initiators use the one
 * device of the target with the lowest domain number in the key, whichever lanes they have. An
 * initiator without a lane to that device gets an error.
 */
static uint32_t atomic_lanes(const struct weft_request *req)
{
	const struct weft_rkey *rkey = weft_rma_req(req)->rkey;
	uint32_t lanes = lanes_with(req, WEFT_LANE_F_AMO64);
	uint8_t first = WEFT_NO_DOMAIN;

	for (unsigned int i = 0; i < rkey->num_native; i++)
		if (rkey->native[i].domain < first)
			first = rkey->native[i].domain;
	for (uint32_t m = lanes; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if (req->me->ep->lanes[i].remote_domain != first)
			lanes &= ~(1u << i);
	}
	return lanes;
}

static uint32_t remote_lanes(const struct weft_request *req)
{
	switch (weft_rma_req(req)->kind) {
	case WEFT_RMA_PUT:
		return lanes_with(req, WEFT_LANE_F_PUT);
	case WEFT_RMA_GET:
		return lanes_with(req, WEFT_LANE_F_GET);
	default:
		return req->mw->conf.atomic_device ? atomic_lanes(req) : 0;
	}
}

static uint32_t native_lanes(const struct weft_request *req)
{
	uint32_t lanes = remote_lanes(req);

	if (weft_rma_req(req)->kind == WEFT_RMA_AMO)
		return lanes;
	for (uint32_t m = lanes; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if (!rma_local_on(req, req->me->lanes[i].lane_ep->iface))
			lanes &= ~(1u << i);
	}
	return lanes;
}

bool weft_rma_native_begin(struct weft_request *req)
{
	uint32_t lanes = remote_lanes(req);

	/* A native lane would use the buffer after the call. */
	if (req->flags & WEFT_REQ_INJECT)
		return false;
	if (weft_rma_req(req)->kind == WEFT_RMA_AMO)
		return lanes != 0;
	return rma_local_get(req, lanes) && native_lanes(req) != 0;
}

static enum weft_record_kind record_kind(const struct weft_req_rma *r)
{
	if (r->kind == WEFT_RMA_AMO)
		return r->op == WEFT_ATOMIC_ADD ? WEFT_RECORD_ADD : WEFT_RECORD_CSWAP;
	return r->kind == WEFT_RMA_PUT ? WEFT_RECORD_WRITE : WEFT_RECORD_READ;
}

/* For captures: an operation is posted, or (@p over) has succeeded; its key may be gone then. */
static void show_native(struct weft_request *req, const struct weft_native *p, bool over)
{
	struct weft_lane_ep *lane_ep = req->me->lanes[p->lane].lane_ep;
	const struct weft_req_rma *r = weft_rma_req(req);
	struct weft_shown_native n;

	if (!lane_ep || !weft_lanes_are_shown())
		return;
	n = (struct weft_shown_native){
		.kind = record_kind(r),
		.length = p->length,
		.offset = r->remote + p->offset,
		.key = over ? 0 : *native_key(req, p->lane),
		.local = r->kind == WEFT_RMA_AMO ? r->amo.operand : p->offset,
		.compare = r->kind == WEFT_RMA_AMO ? r->amo.compare : 0,
	};
	weft_shown_native(lane_ep, &n, over);
}

static void native_done(struct weft_lane_comp *comp, int status)
{
	struct weft_native *n = container_of(comp, struct weft_native, comp);
	struct weft_request *req = n->req;

	if (!status)
		show_native(req, n, true);
	weft_native_over(n, status);
	if (weft_rma_req(req)->kind != WEFT_RMA_PUT)
		weft_rma_gets_done(req->me, 1, status == 0);
	if (status == -ECANCELED && req->me->up) {
		weft_rma_req(req)->again = true;
		req->mw->count.native_failed++;
	} else if (status && req->status == WEFT_INPROGRESS) {
		req->status = weft_lane_key_status(req->me, status);
		if (status == -EIO && weft_rma_req(req)->kind == WEFT_RMA_AMO)
			weft_log_ep(req->me->ep, WEFT_LOG_WARN,
				    "a lane died with an atomic operation in flight: it ends with "
				    "an error, but the peer's device may have executed it");
	}
	if (weft_rma_req(req)->again && req->me->up && req->status == WEFT_INPROGRESS) {
		if (req->send.zcopies == 0)
			weft_rma_restart(req);
		return;
	}
	if (weft_rma_req(req)->kind == WEFT_RMA_AMO && weft_rma_req(req)->amo.result && !status)
		memcpy(weft_rma_req(req)->amo.result, &weft_rma_req(req)->amo.old,
		       sizeof(uint64_t));
	weft_rma_check(req);
}

static int post_native(struct weft_request *req, struct weft_native *n, size_t off, size_t *len)
{
	struct weft_lane_ep *lane_ep = req->me->lanes[n->lane].lane_ep;
	uint64_t key = *native_key(req, n->lane), remote = weft_rma_req(req)->remote + off;
	unsigned int max = lane_ep->iface->attr.max_rma_iov, num;
	struct weft_mem_lane *mem;
	struct iovec iov[MAX_IOV];

	num = rma_local_iov(req, lane_ep->iface, off, len, iov, max < MAX_IOV ? max : MAX_IOV,
			    &mem);
	n->comp.done = native_done;
	return (n->dir == WEFT_DIR_TX ? lane_ep->ops->put_zcopy : lane_ep->ops->get_zcopy)(
		lane_ep, iov, num, mem, remote, key, &n->comp);
}

/*
 * A lane that has failed reports this by an event, and appears full until then. A lane that is up
 * refuses the arguments, each time. @return -EAGAIN, or the error of the operation
 */
static int refusal(const struct weft_request *req, unsigned int lane, int rc)
{
	const struct weft_lane_ep *lane_ep = req->me->lanes[lane].lane_ep;

	if (rc == -EAGAIN || !lane_ep->up)
		return -EAGAIN;
	weft_log_limited(&req->mw->rma->limit_refused, WEFT_LOG_WARN,
			 "%s refuses a native operation of %zu bytes on remote memory: %s; "
			 "leave the interface out of WEFT_LANES to do without it",
			 lane_ep->iface->name, req->length, weft_strerror(rc));
	return rc;
}

/* @return bytes of the piece, or as refusal() */
static ssize_t give_piece(struct weft_request *req, unsigned int lane, size_t off, size_t len,
			  enum weft_dir dir)
{
	struct weft_native *n = weft_native_new(req, lane, dir);
	int rc;

	if (!n)
		return -EAGAIN;
	rc = post_native(req, n, off, &len);
	if (rc) {
		weft_native_drop(n);
		return refusal(req, lane, rc);
	}
	weft_native_given(n, off, len);
	show_native(req, n, false);
	req->mw->rma->native_bytes += len;
	return (ssize_t)len;
}

/* The load does not limit a single lane. */
static size_t lane_room(const struct weft_request *req, unsigned int lane, size_t off, size_t rest,
			enum weft_dir dir)
{
	const struct weft_msg_lane *l = &req->me->lanes[lane];
	const struct weft_lane_attr *attr = &l->lane_ep->iface->attr;
	size_t max = dir == WEFT_DIR_TX ? attr->max_put : attr->max_get, part = SIZE_MAX;
	uint32_t lanes = weft_rma_req(req)->lanes;

	if (lanes & (lanes - 1)) {
		part = weft_stripe_part(req->me, lanes, dir, lane, rest);
		rest = weft_load_room(&l->load[dir], rest, req->mw->conf.rndv_min_piece);
	} else if (dir == WEFT_DIR_RX) {
		part = WEFT_RMA_CHUNK * 4; /* pieces are limited by weft_rma_gets_room() */
	}
	return rest ? weft_tx_cut(req->me, off, rest, part < max ? part : max, l->align) : 0;
}

static ssize_t put_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	ssize_t len;

	if (req->status != WEFT_INPROGRESS)
		return 0;
	len = (ssize_t)lane_room(req, lane, off, rest, WEFT_DIR_TX);
	len = len ? give_piece(req, lane, off, (size_t)len, WEFT_DIR_TX) : -EAGAIN;
	if (len > 0)
		weft_lane_wrote(req->me, lane, (size_t)len);
	return len;
}

static ssize_t get_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	ssize_t len;

	if (req->status != WEFT_INPROGRESS)
		return 0;
	if (!weft_rma_gets_room(req->me))
		return -EBUSY; /* the limit of gets, not the lane */
	len = (ssize_t)lane_room(req, lane, off, rest, WEFT_DIR_RX);
	len = len ? give_piece(req, lane, off, (size_t)len, WEFT_DIR_RX) : -EAGAIN;
	if (len > 0) {
		weft_rma_gets_take(req->me, 1);
		weft_lane_read(req->me, lane, (size_t)len);
	}
	return len;
}

static int atomic_step(struct weft_request *req, uint32_t lanes)
{
	struct weft_req_rma *r = weft_rma_req(req);
	struct weft_lane_ep *lane_ep;
	struct weft_native *n;
	int rc;

	if (!lanes || !weft_rma_gets_room(req->me))
		return -EAGAIN;
	n = weft_native_new(req, (unsigned int)__builtin_ctz(lanes), WEFT_DIR_RX);
	if (!n)
		return -EAGAIN;
	lane_ep = req->me->lanes[n->lane].lane_ep;
	n->comp.done = native_done;
	rc = lane_ep->ops->amo64(lane_ep,
				 r->op == WEFT_ATOMIC_ADD ? WEFT_LANE_AMO_ADD : WEFT_LANE_AMO_CSWAP,
				 r->amo.operand, r->amo.compare, &r->amo.old, r->remote,
				 *native_key(req, n->lane), &n->comp);
	if (rc) {
		weft_native_drop(n);
		return refusal(req, n->lane, rc);
	}
	weft_native_given(n, 0, sizeof(r->amo.old));
	show_native(req, n, false);
	weft_rma_gets_take(req->me, 1);
	req->send.offset = req->length;
	return 0;
}

/* @return -EAGAIN: pieces are in flight; -EOPNOTSUPP: no protocol; or the result of progress() */
static int another_way(struct weft_request *req)
{
	if (req->send.zcopies) {
		weft_rma_req(req)->again = true;
		return -EAGAIN;
	}
	weft_rma_restart(req);
	return req->send.proto ? req->send.proto->progress(req) : -EOPNOTSUPP;
}

int weft_rma_native_step(struct weft_request *req)
{
	uint32_t lanes = native_lanes(req);
	int rc;

	weft_rma_req(req)->lanes = (uint16_t)lanes;
	if (__builtin_expect(!lanes || weft_rma_req(req)->again, 0) &&
	    req->status == WEFT_INPROGRESS)
		return another_way(req);
	switch (weft_rma_req(req)->kind) {
	case WEFT_RMA_PUT:
		return weft_stripe(req, lanes, WEFT_DIR_TX, req->length, put_piece);
	case WEFT_RMA_GET:
		rc = weft_stripe(req, lanes, WEFT_DIR_RX, req->length, get_piece);
		return rc == -EBUSY ? -EAGAIN : rc;
	default:
		return atomic_step(req, lanes);
	}
}
