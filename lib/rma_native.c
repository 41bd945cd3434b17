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

static uint32_t lanes_with(const struct weft_request *req, uint64_t feature)
{
	const struct weft_msg_ep *me = req->me;
	uint32_t found = 0;

	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if ((me->lanes[i].lep->iface->attr.features & feature) && native_key(req, i))
			found |= 1u << i;
	}
	return found;
}

/*
 * A device's atomics are atomic among its own only (IBV_ATOMIC_HCA). So all who ask use the same device of the target, whichever lanes they have: the
 * first that the key has; who has no lane there is refused.
 */
static uint32_t atomic_lanes(const struct weft_request *req)
{
	const struct weft_rkey *rkey = req->send.rma.rkey;
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

/* Lanes that could, as far as the peer's memory is concerned. */
static uint32_t remote_lanes(const struct weft_request *req)
{
	switch (req->send.rma.kind) {
	case WEFT_RMA_PUT:
		return lanes_with(req, WEFT_LANE_F_PUT);
	case WEFT_RMA_GET:
		return lanes_with(req, WEFT_LANE_F_GET);
	default:
		return req->mw->conf.atomic_device ? atomic_lanes(req) : 0;
	}
}

/* And as far as ours is. */
static uint32_t native_lanes(const struct weft_request *req)
{
	uint32_t lanes = remote_lanes(req);

	if (req->send.rma.kind == WEFT_RMA_AMO)
		return lanes;
	for (uint32_t m = lanes; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if (!weft_rma_local_on(req, req->me->lanes[i].lep->iface))
			lanes &= ~(1u << i);
	}
	return lanes;
}

bool weft_rma_native_begin(struct weft_request *req)
{
	uint32_t lanes = remote_lanes(req);

	if (req->send.rma.kind == WEFT_RMA_AMO)
		return lanes != 0;
	return weft_rma_local_get(req, lanes) && native_lanes(req) != 0;
}

static void native_done(struct weft_lane_comp *comp, int status)
{
	struct weft_request *req = container_of(comp, struct weft_request, send.comp);

	req->send.zcopies--;
	if (req->send.rma.kind != WEFT_RMA_PUT)
		weft_rma_gets_add(req->mw, -1);
	if (status && req->status == WEFT_INPROGRESS)
		req->status = status;
	if (req->send.rma.kind == WEFT_RMA_AMO && req->send.rma.amo.result && !status)
		memcpy(req->send.rma.amo.result, &req->send.rma.amo.old, sizeof(uint64_t));
	weft_rma_check(req);
}

/* @return bytes of the piece, or the lane's error */
static ssize_t piece(struct weft_request *req, unsigned int lane, size_t off, size_t len)
{
	struct weft_lane_ep *lep = req->me->lanes[lane].lep;
	uint64_t key = *native_key(req, lane), remote = req->send.rma.remote + off;
	unsigned int max = lep->iface->attr.max_rma_iov, n;
	struct weft_mem_lane *mem;
	struct iovec iov[MAX_IOV];
	int rc;

	n = weft_rma_local_iov(req, lep->iface, off, &len, iov, max < MAX_IOV ? max : MAX_IOV,
			       &mem);
	if (req->send.rma.kind == WEFT_RMA_PUT) {
		rc = lep->ops->put_zcopy(lep, iov, n, mem, remote, key, &req->send.comp);
		if (rc == 0)
			weft_lane_wrote(req->me, lane, len);
	} else {
		rc = lep->ops->get_zcopy(lep, iov, n, mem, remote, key, &req->send.comp);
		if (rc == 0)
			weft_lane_read(req->me, lane, len);
	}
	return rc ? rc : (ssize_t)len;
}

static size_t piece_max(const struct weft_request *req, uint32_t mask, unsigned int lane)
{
	const struct weft_lane_attr *attr = &req->me->lanes[lane].lep->iface->attr;
	bool put = req->send.rma.kind == WEFT_RMA_PUT;
	size_t max = put ? attr->max_put : attr->max_get;

	/* With several lanes a share each, or the first would get it all; gets are bounded by their number. */
	if ((!put || (mask & (mask - 1))) && max > WEFT_RMA_CHUNK * 4)
		max = WEFT_RMA_CHUNK * 4;
	return max;
}

/* Seconds until the lane is done with what it was given, and @p len bytes more. */
static float done_in(const struct weft_msg_ep *me, unsigned int lane, size_t len)
{
	const struct weft_msg_lane *l = &me->lanes[lane];
	uint64_t now = me->mw->worker->now;
	float busy = l->native_until > now ? (float)(l->native_until - now) * 1e-9f : 0;

	return busy + (float)(l->lep->queued + len) * l->per_byte + l->latency;
}

/* The lane of @p mask that is done sooner than @p limit, which follows. @return @p best = none */
static int sooner(const struct weft_msg_ep *me, uint32_t mask, size_t len, float *limit, int best)
{
	for (; mask; mask &= mask - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(mask);
		float t = done_in(me, i, len);

		if (t < *limit) {
			best = (int)i;
			*limit = t;
		}
	}
	return best;
}

/*
 * The lane of @p mask that is done soonest, if sooner than @p limit; of equal ones, those behind the last one come first. Where the devices are slower than
 * they say, equal lanes look idle again each time, and the first one would get everything.
 * @return -1 = none
 */
static int pick(const struct weft_msg_ep *me, uint32_t mask, size_t len, float limit)
{
	uint32_t behind = mask & ~((2u << me->native_last) - 1);
	int best;

	if ((mask & (mask - 1)) == 0 && limit >= WEFT_TX_NO_LIMIT)
		return mask ? __builtin_ctz(mask) : -1;
	best = sooner(me, behind, len, &limit, -1);
	return sooner(me, mask & ~behind, len, &limit, best);
}

/* It has taken @p len bytes. */
static void given(struct weft_msg_ep *me, unsigned int lane, size_t len)
{
	struct weft_msg_lane *l = &me->lanes[lane];
	uint64_t now = me->mw->worker->now;

	me->native_last = (uint8_t)lane;
	l->native_until = (l->native_until > now ? l->native_until : now) +
			  (uint64_t)((float)len * l->per_byte * 1e9f);
}

/* It has no room. With some slack, as in weft_tx_limit(): others only if they are done sooner than it will be. */
static float refused(const struct weft_msg_ep *me, unsigned int lane, size_t len, float limit)
{
	float t = done_in(me, lane, len) * 1.25f + 50e-6f;

	return t < limit ? t : limit;
}

static int transfer(struct weft_request *req, uint32_t mask)
{
	struct weft_msg_ep *me = req->me;
	bool get = req->send.rma.kind == WEFT_RMA_GET;
	float limit = WEFT_TX_NO_LIMIT;

	while (req->send.offset < req->length && req->status == WEFT_INPROGRESS) {
		size_t off = req->send.offset, rest = req->length - off, len;
		int lane = pick(me, mask, rest < 4096 ? rest : 4096, limit);
		ssize_t rc;

		if (lane < 0 || (get && !weft_rma_gets_room(me)))
			return -EAGAIN;
		len = weft_tx_cut(me, off, rest, piece_max(req, mask, (unsigned int)lane),
				  me->lanes[lane].align);
		req->send.zcopies++;
		rc = piece(req, (unsigned int)lane, off, len);
		if (rc < 0) {
			req->send.zcopies--;
			/* A lane that fails says so by an event; until then it has no room. */
			limit = refused(me, (unsigned int)lane, rest < 4096 ? rest : 4096, limit);
			mask &= ~(1u << lane);
			continue;
		}
		if (get)
			weft_rma_gets_add(me->mw, 1);
		given(me, (unsigned int)lane, (size_t)rc);
		req->send.offset += (size_t)rc;
		me->mw->rma.native_bytes += (size_t)rc;
	}
	return 0;
}

int weft_rma_native_step(struct weft_request *req)
{
	uint32_t mask = native_lanes(req);
	struct weft_lane_ep *lep;
	unsigned int lane;
	int rc;

	req->send.comp.done = native_done;
	if (req->send.rma.kind != WEFT_RMA_AMO)
		return transfer(req, mask);
	if (!mask || !weft_rma_gets_room(req->me))
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
	weft_rma_gets_add(req->mw, 1);
	req->send.offset = req->length;
	return 0;
}
