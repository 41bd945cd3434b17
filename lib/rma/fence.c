/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order among operations on remote memory. Lanes deliver in any order, so fences are implemented at
 * the initiator: operations posted after a fence start when those posted before it are confirmed.
 *
 * A worker's fences are numbered. An operation's epoch is the number of fences before it. It starts
 * when that number of fences is passed, that is when no operation of an earlier epoch is in
 * progress on any endpoint. So all operations in progress on one endpoint have the same epoch.
 *
 * A fence scans the worker's list of endpoints that have operations. An endpoint joins the list
 * with its first operation; a scan removes endpoints without operations. Endpoints with the
 * oldest epoch hold the fence, and are counted. The next scan takes place when the last of them has
 * finished that epoch.
 */

#include <errno.h>

#include "msg/msg.h"
#include "rma/fence.h"
#include "rma/initiator.h"
#include "rma/rma.h"

/* ------------------------------------------------------------------ confirmation */

void weft_rma_flush_send(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;
	struct weft_wire_rma_flush flush = {
		.count = weft_put64(rma->half[rma->odd]),
		.flags = weft_put32(rma->odd ? WEFT_WIRE_RMA_ODD : 0),
	};

	rma->flush_due = false;
	if (rma->flush_outstanding || rma->wanted <= rma->confirmed || me->failed)
		return;
	if (weft_tx_envelope_any(me, WEFT_WIRE_RMA_FLUSH, &flush, sizeof(flush))) {
		rma->flush_due = true;
		weft_tx_kick(me);
		return;
	}
	rma->flush_outstanding = true;
	rma->flush_answered = false;
	rma->flush_sent = rma->sent;
	/*
	 * The last reply confirmed all messages of the other half, so its count can be used again.
	 */
	rma->odd = !rma->odd;
}

void weft_rma_want(struct weft_msg_ep *me, uint64_t count)
{
	struct weft_rma *rma = me->rma;

	if (count > rma->wanted)
		rma->wanted = count;
	weft_rma_flush_send(me);
}

static void confirm_count(struct weft_msg_ep *me, uint64_t count)
{
	struct weft_rma *rma = me->rma;
	struct weft_request *req;

	if (count > rma->confirmed)
		rma->confirmed = count;
	while (!me->failed && (req = TAILQ_FIRST(&rma->waiting)) &&
	       weft_rma_req(req)->count <= rma->confirmed) {
		TAILQ_REMOVE(&rma->waiting, req, link);
		req->flags &= ~WEFT_REQ_WAIT_ACK;
		weft_rma_check(req);
	}
	if (!me->failed)
		weft_rma_moved(me);
}

/* A reply takes effect when all the NAKs that it counts have come. */
static void take_answer(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;

	if (!rma->flush_outstanding || !rma->flush_answered ||
	    rma->naks[!rma->odd] < rma->flushed_naks)
		return;
	rma->flush_outstanding = false;
	confirm_count(me, rma->flush_sent);
	if (!me->failed)
		weft_rma_flush_send(me);
}

void weft_rma_nak_counted(struct weft_msg_ep *me)
{
	take_answer(me);
}

void weft_rma_error(struct weft_rma *rma, uint64_t first, uint64_t last, int status)
{
	struct weft_rma_error *e;

	for (uint32_t i = 0; i < rma->num_errors; i++)
		if (rma->error[i].first <= first && last <= rma->error[i].last)
			return;
	if (rma->num_errors < WEFT_RMA_ERRORS) {
		rma->error[rma->num_errors++] = (struct weft_rma_error){first, last, status};
		return;
	}
	/* A flush in between may report an error of other operations, but no error is lost. */
	e = &rma->error[WEFT_RMA_ERRORS - 1];
	if (first < e->first)
		e->first = first;
	if (last > e->last)
		e->last = last;
}

/*
 * Some of the operations from @p first to @p last were refused, and it is unknown which. All
 * requests that wait for one of them get the error, and a flush reports it, too.
 */
static void refuse_range(struct weft_rma *rma, uint64_t first, uint64_t last, int status)
{
	struct weft_request *req;

	weft_rma_error(rma, first, last, status);
	TAILQ_FOREACH(req, &rma->waiting, link) {
		if (req->status == WEFT_INPROGRESS && req->send.op_sn >= first &&
		    req->send.op_sn <= last)
			req->status = status;
	}
	/*
	 * A put in the queue may have begun: the pieces already sent may be among those refused,
	 * and no later reply counts them again. The loop relies on the order of the queue:
	 * operations that have begun are at its head, where weft_rma_restart() inserts them, too.
	 */
	TAILQ_FOREACH(req, &rma->pending, link) {
		if (!(req->flags & WEFT_REQ_STARTED))
			break;
		if (weft_rma_req(req)->kind == WEFT_RMA_PUT && !weft_rma_req(req)->native &&
		    req->status == WEFT_INPROGRESS && req->send.op_sn >= first &&
		    req->send.op_sn <= last)
			req->status = status;
	}
}

void weft_rma_recv_flushed(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_rma_flushed *f = data;
	struct weft_rma *rma = me->rma;
	uint64_t count = weft_get64(f->count), errors = weft_get64(f->errors);

	if (!rma || !rma->flush_outstanding || rma->flush_answered ||
	    count != rma->half[!rma->odd]) {
		me->mw->count.mismatch++;
		return;
	}
	if (errors > rma->errors && weft_get32(f->status)) {
		rma->errors = errors;
		refuse_range(rma, weft_rma_op_sn(me, weft_get32(f->first)),
			     weft_rma_op_sn(me, weft_get32(f->last)), -(int)weft_get32(f->status));
	}
	rma->flush_answered = true;
	rma->flushed_naks = weft_get64(f->naks);
	take_answer(me);
}

/* ------------------------------------------------------------------ fences */

bool weft_rma_blocked(const struct weft_request *req)
{
	const struct weft_msg_ep *me = req->me;

	return (weft_rma_req(req)->fence && !weft_rma_quiet(me->rma)) ||
	       (req->ext.any && !weft_rma_note_room(me->rma)) ||
	       (int32_t)(weft_rma_req(req)->epoch - me->mw->rma->fence_done) > 0;
}

bool weft_rma_may_start(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (!weft_rma_blocked(req))
		return true;
	if (me->rma->running == 0 && me->rma->sent != me->rma->confirmed)
		weft_rma_want(me, me->rma->sent);
	return false;
}

static bool has_any(const struct weft_rma *rma)
{
	return !rma->me->failed && (!weft_rma_quiet(rma) || !TAILQ_EMPTY(&rma->pending));
}

/* The number of fences before the oldest operation of an endpoint, which has one. */
static uint32_t epoch_of(const struct weft_rma *rma)
{
	return weft_rma_quiet(rma) ? weft_rma_req(TAILQ_FIRST(&rma->pending))->epoch : rma->epoch;
}

/* The oldest epoch in progress. Endpoints without operations are removed from the list. */
static uint32_t oldest_epoch(struct weft_msg_worker *mw)
{
	uint32_t oldest = mw->rma->fence_sn;
	struct weft_rma *rma, *next;

	for (rma = LIST_FIRST(&mw->rma->used); rma; rma = next) {
		next = LIST_NEXT(rma, used_link);
		mw->count.looks++;
		rma->holds = false;
		if (!has_any(rma)) {
			LIST_REMOVE(rma, used_link);
			rma->listed = false;
		} else if ((int32_t)(epoch_of(rma) - oldest) < 0) {
			oldest = epoch_of(rma);
		}
	}
	return oldest;
}

/* A fence waits for this endpoint, which has nothing more to send: request confirmation. */
static void want_all(struct weft_rma *rma)
{
	if (epoch_of(rma) != rma->me->mw->rma->fence_sn && rma->running == 0)
		weft_rma_want(rma->me, rma->sent);
}

/* Pass the fences of the worker before which no operation is left. */
static void pass_fences(struct weft_msg_worker *mw)
{
	uint32_t oldest = oldest_epoch(mw);
	bool passed = oldest != mw->rma->fence_done;
	struct weft_rma *rma;

	mw->rma->fence_done = oldest;
	mw->rma->fence_holders = 0;
	LIST_FOREACH(rma, &mw->rma->used, used_link) {
		mw->count.looks++;
		if (oldest != mw->rma->fence_sn && epoch_of(rma) == oldest) {
			rma->holds = true;
			mw->rma->fence_holders++;
		}
		want_all(rma);
		if (passed && !TAILQ_EMPTY(&rma->pending))
			weft_tx_kick(rma->me);
	}
}

/*
 * An operation of the endpoint is over, or the endpoint has failed: a fence may have waited for it.
 */
static void fence_moved(struct weft_rma *rma)
{
	struct weft_msg_worker *mw = rma->me->mw;
	bool any = has_any(rma);

	if (any)
		want_all(rma);
	if (!rma->holds || (any && epoch_of(rma) == mw->rma->fence_done))
		return;
	rma->holds = false;
	if (--mw->rma->fence_holders == 0)
		pass_fences(mw);
}

void weft_rma_moved(struct weft_msg_ep *me)
{
	struct weft_request *req;

	if (me->mw->rma->fence_done != me->mw->rma->fence_sn)
		fence_moved(me->rma);
	if (me->failed)
		return;
	weft_flush_check(me);
	if (me->failed || !(req = TAILQ_FIRST(&me->rma->pending)))
		return;
	if ((req->flags & WEFT_REQ_STARTED) || weft_rma_may_start(req))
		weft_tx_kick(me);
}

int weft_ep_fence(struct weft_ep *ep)
{
	int rc = 0;

	if (!ep)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_ep_fence");
	weft_worker_lock(ep->worker);
	if (ep->msg->failed || ep->state == WEFT_EP_FAILED)
		rc = weft_msg_ep_why(ep);
	else if (ep->msg->rma && has_any(ep->msg->rma))
		ep->msg->rma->fence = true;
	weft_worker_unlock(ep->worker);
	return rc;
}

int weft_worker_fence(struct weft_worker *worker)
{
	struct weft_msg_worker *mw;

	if (!worker)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_worker_fence");
	weft_worker_lock(worker);
	mw = worker->msg;
	oldest_epoch(mw);
	if (!LIST_EMPTY(&mw->rma->used))
		mw->rma->fence_sn++;
	pass_fences(mw);
	weft_worker_unlock(worker);
	return 0;
}

/* ------------------------------------------------------------------ for flush */

bool weft_rma_flushed(struct weft_msg_ep *me, uint64_t *count)
{
	struct weft_rma *rma = me->rma;

	if (!rma)
		return true;
	if (*count == 0)
		*count = rma->sent;
	if (rma->confirmed >= *count)
		return true;
	weft_rma_want(me, *count);
	return false;
}

int weft_rma_take_status(struct weft_msg_ep *me, uint64_t op_sn)
{
	struct weft_rma *rma = me->rma;
	uint32_t i, left = 0;
	int status = 0;

	for (i = 0; rma && i < rma->num_errors; i++) {
		struct weft_rma_error e = rma->error[i];

		if (e.first < op_sn && !status)
			status = e.status;
		if (e.last < op_sn)
			continue;
		/* The rest of its range may contain the failed operation, too. */
		if (e.first < op_sn)
			e.first = op_sn;
		rma->error[left++] = e;
	}
	if (rma)
		rma->num_errors = left;
	return status;
}

/* ------------------------------------------------------------------ gets outstanding */

/*
 * Limits the pieces of gets (and of native atomics) that a worker has outstanding with all its
 * peers. The limit is WEFT_RMA_MAX_GETS pieces, plus one for each peer without any, because other
 * operations may depend on its reply. So with many peers the initiator decides how much arrives at
 * a time. Endpoints that need more wait in a queue. Peers that do not deliver do not occupy the
 * limit (base/pacing.h).
 */

bool weft_rma_gets_room(struct weft_msg_ep *me)
{
	struct weft_msg_worker *mw = me->mw;
	struct weft_rma *rma = me->rma;

	if (weft_share_room(&mw->rma->gets, &rma->share, mw->worker->now))
		return true;
	mw->rma->gets_limited++;
	rma->gets_wait = true;
	/* A stalled endpoint continues when its own pieces come. */
	if (rma->gets_listed || rma->share.stalled)
		return false;
	rma->gets_listed = true;
	mw->work++;
	TAILQ_INSERT_TAIL(&mw->rma->gets_waiting, rma, gets_link);
	return false;
}

void weft_rma_gets_leave(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;

	rma->gets_wait = false;
	if (!rma->gets_listed)
		return;
	rma->gets_listed = false;
	me->mw->work--;
	TAILQ_REMOVE(&me->mw->rma->gets_waiting, rma, gets_link);
}

static void go_on(struct weft_rma *rma)
{
	weft_rma_gets_leave(rma->me);
	weft_tx_kick(rma->me);
}

void weft_rma_gets_look(struct weft_msg_worker *mw)
{
	struct weft_rma *rma;

	if (TAILQ_EMPTY(&mw->rma->gets_waiting) ||
	    !weft_share_free(&mw->rma->gets, mw->worker->now))
		return;
	/* All of them: the first may wait for something else now. */
	while ((rma = TAILQ_FIRST(&mw->rma->gets_waiting)))
		go_on(rma);
}

void weft_rma_gets_take(struct weft_msg_ep *me, uint32_t pieces)
{
	weft_share_take(&me->mw->rma->gets, &me->rma->share, pieces, me->mw->worker->now);
}

void weft_rma_gets_done(struct weft_msg_ep *me, uint32_t pieces, bool good)
{
	struct weft_rma *rma = me->rma;

	if (!pieces)
		return;
	weft_share_done(&me->mw->rma->gets, &rma->share, pieces, good, me->mw->worker->now);
	if (rma->gets_wait && !rma->share.stalled && (rma->share.out == 0 || !rma->gets_listed))
		go_on(rma);
	weft_rma_gets_look(me->mw);
}

void weft_rma_set_pieces(struct weft_request *req, uint64_t left)
{
	uint16_t now = (uint16_t)((left + WEFT_RMA_CHUNK - 1) / WEFT_RMA_CHUNK);

	req->me->rma->open -= weft_rma_req(req)->pieces;
	req->me->rma->open += now;
	if (weft_rma_req(req)->kind == WEFT_RMA_GET) {
		req->me->rma->gets += now - weft_rma_req(req)->pieces;
		if (now > weft_rma_req(req)->pieces)
			weft_rma_gets_take(req->me, now - weft_rma_req(req)->pieces);
		else
			weft_rma_gets_done(req->me, weft_rma_req(req)->pieces - now, true);
	}
	weft_rma_req(req)->pieces = now;
}
