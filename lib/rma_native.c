/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory over lanes that access it themselves. Pieces go to the lane that is done soonest;
 * one completion serves them all, and the operation is over with the last: a put is then visible at
 * the peer.
 */

#include <errno.h>

#include "rma.h"

#define MAX_IOV 32

static const uint64_t *native_key(const struct weft_request *req, unsigned int lane)
{
	const struct weft_rkey *rkey = req->send.rma.rkey;
	uint8_t domain = req->me->ep->lanes[lane].remote_domain;

	for (unsigned int i = 0; i < rkey->num_native; i++)
		if (rkey->native[i].domain == domain)
			return &rkey->native[i].key;
	return NULL;
}

static struct weft_mem_lane *local_mem(const struct weft_request *req, unsigned int lane)
{
	return req->send.mem ? weft_mem_lane_of(req->send.mem, req->me->lanes[lane].lep->iface)
			     : NULL;
}

/* A registration that does not cover the buffer is the caller's mistake, and not the lane's to find. */
static bool is_covered(const struct weft_request *req)
{
	const struct weft_mem *mem = req->send.mem;
	uintptr_t base, at = (uintptr_t)req->dt.buf;

	if (!mem || req->dt.dt_class != WEFT_DT_CONTIG)
		return false;
	base = (uintptr_t)mem->address;
	return at >= base && at - base <= mem->length && req->length <= mem->length - (at - base);
}

static uint32_t lanes_with(const struct weft_request *req, uint64_t feature, bool local)
{
	const struct weft_msg_ep *me = req->me;
	uint32_t found = 0;

	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if ((me->lanes[i].lep->iface->attr.features & feature) && native_key(req, i) &&
		    (!local || local_mem(req, i)))
			found |= 1u << i;
	}
	return found;
}

uint32_t weft_rma_native_lanes(const struct weft_request *req)
{
	switch (req->send.rma.kind) {
	case WEFT_RMA_PUT:
		return is_covered(req) ? lanes_with(req, WEFT_LANE_F_PUT, true) : 0;
	case WEFT_RMA_GET:
		return is_covered(req) ? lanes_with(req, WEFT_LANE_F_GET, true) : 0;
	default:
		return req->mw->conf.atomic_device ? lanes_with(req, WEFT_LANE_F_AMO64, false) : 0;
	}
}

static void native_done(struct weft_lane_comp *comp, int status)
{
	struct weft_request *req = container_of(comp, struct weft_request, send.comp);

	req->send.zcopies--;
	if (status && req->status == WEFT_INPROGRESS)
		req->status = status;
	if (req->send.rma.kind == WEFT_RMA_AMO && req->send.rma.amo.result && !status)
		memcpy(req->send.rma.amo.result, &req->send.rma.amo.old, sizeof(uint64_t));
	weft_rma_check(req);
}

static int piece(struct weft_request *req, unsigned int lane, size_t off, size_t len)
{
	struct weft_lane_ep *lep = req->me->lanes[lane].lep;
	struct iovec iov = {req->dt.buf + off, len};
	uint64_t key = *native_key(req, lane), remote = req->send.rma.remote + off;
	struct weft_mem_lane *mem = local_mem(req, lane);
	int rc;

	if (req->send.rma.kind == WEFT_RMA_PUT) {
		rc = lep->ops->put_zcopy(lep, &iov, 1, mem, remote, key, &req->send.comp);
		if (rc == 0)
			weft_lane_wrote(req->me, lane, len);
		return rc;
	}
	rc = lep->ops->get_zcopy(lep, &iov, 1, mem, remote, key, &req->send.comp);
	if (rc == 0)
		weft_lane_read(req->me, lane, len);
	return rc;
}

static int transfer(struct weft_request *req, uint32_t mask)
{
	struct weft_msg_ep *me = req->me;
	float limit = WEFT_TX_NO_LIMIT;

	while (req->send.offset < req->length && req->status == WEFT_INPROGRESS) {
		size_t off = req->send.offset, rest = req->length - off, len;
		int lane = weft_tx_pick(me, mask, rest < 4096 ? rest : 4096, limit), rc;
		const struct weft_lane_attr *attr;

		if (lane < 0)
			return -EAGAIN;
		attr = &me->lanes[lane].lep->iface->attr;
		len = req->send.rma.kind == WEFT_RMA_PUT ? attr->max_put : attr->max_get;
		/* With several lanes a share each, or the first would get it all. */
		if ((mask & (mask - 1)) && len > WEFT_RMA_CHUNK * 4)
			len = WEFT_RMA_CHUNK * 4;
		len = weft_tx_cut(me, off, rest, len, me->lanes[lane].align);
		req->send.zcopies++;
		rc = piece(req, (unsigned int)lane, off, len);
		if (rc) {
			req->send.zcopies--;
			/* A lane that fails says so by an event; until then it has no room. */
			limit = weft_tx_limit(me, lane, rest < 4096 ? rest : 4096, limit);
			mask &= ~(1u << lane);
		} else {
			req->send.offset += len;
			me->mw->rma.native_bytes += len;
		}
	}
	return 0;
}

int weft_rma_native_step(struct weft_request *req)
{
	uint32_t mask = weft_rma_native_lanes(req);
	struct weft_lane_ep *lep;
	unsigned int lane;
	int rc;

	req->send.comp.done = native_done;
	if (req->send.rma.kind != WEFT_RMA_AMO)
		return transfer(req, mask);
	if (!mask)
		return -EAGAIN;
	lane = (unsigned int)__builtin_ctz(mask);
	lep = req->me->lanes[lane].lep;
	req->send.zcopies++;
	rc = lep->ops->amo64(
		lep, req->send.rma.op == WEFT_ATOMIC_ADD ? WEFT_LANE_AMO_ADD : WEFT_LANE_AMO_CSWAP,
		req->send.rma.amo.operand, req->send.rma.amo.compare, &req->send.rma.amo.old,
		req->send.rma.remote, *native_key(req, lane), &req->send.comp);
	if (rc) {
		req->send.zcopies--;
		return -EAGAIN;
	}
	req->send.offset = req->length;
	return 0;
}
