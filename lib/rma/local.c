/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator's buffer in native operations: whether it is registered, or worth being registered
 * for this operation, and as which ranges lanes get it.
 *
 * A registration by the user covers any ranges inside it: a lane gets as many at a time as it
 * accepts. Otherwise the cache registers the buffer, each entry of an iov separately, because the
 * memory between entries may not be accessible. A piece of the operation then ends with its entry.
 */

#include <errno.h>
#include <stdlib.h>

#include "mem/mem.h"
#include "rma/rma.h"

/* Registrations of an iov, one per entry; NULL for empty ones. */
struct weft_rma_regs {
	size_t num;
	struct weft_mem *mem[];
};

/* Smaller entries, or more of them, are cheaper to copy than to look up. */
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

/* Does registering, once or for every use, cost less than the copies at both ends? */
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

bool weft_rma_local_get(struct weft_request *req, uint32_t lanes)
{
	unsigned int access =
		weft_rma_req(req)->kind == WEFT_RMA_GET ? WEFT_LANE_ACCESS_LOCAL_WRITE : 0;
	const struct weft_mem *mem = req->send.mem;

	if (req->length == 0 || !lanes)
		return false;
	/*
	 * A registration that does not cover the buffer is the caller's error; a lane must not get
	 * it.
	 */
	if (mem)
		return (weft_mem_access(mem) & access) == access && covers_all(mem, &req->dt);
	if (!is_worth_it(req, lanes))
		return false;
	if (register_it(req, access) == 0)
		return true;
	req->mw->count.register_failed++;
	return false;
}

bool weft_rma_local_on(const struct weft_request *req, const struct weft_lane_iface *iface)
{
	const struct weft_rma_regs *regs = weft_rma_req(req)->regs;

	if (!regs)
		return req->send.mem && weft_mem_lane_of(req->send.mem, iface);
	for (size_t i = 0; i < regs->num; i++)
		if (regs->mem[i] && !weft_mem_lane_of(regs->mem[i], iface))
			return false;
	return true;
}

unsigned int weft_rma_local_iov(struct weft_request *req, const struct weft_lane_iface *iface,
				size_t off, size_t *len, struct iovec *iov, unsigned int max,
				struct weft_mem_lane **mem)
{
	const struct weft_rma_regs *regs = weft_rma_req(req)->regs;
	unsigned int n = weft_dt_iov_some(&req->dt, off, len, iov, regs ? 1 : max);

	/* The cursor is at the last entry described. */
	*mem = weft_mem_lane_of(regs ? regs->mem[req->dt.pos] : req->send.mem, iface);
	return n;
}
