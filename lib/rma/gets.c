/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits the pieces of gets (and of native atomics) that a worker has outstanding with all its
 * peers. The limit is WEFT_RMA_MAX_GETS pieces, plus one for each peer without any, because other
 * operations may depend on its reply. So with many peers the initiator decides how much arrives at
 * a time. Endpoints that need more wait in a queue. Peers that do not deliver do not occupy the
 * limit (base/pacing.h).
 */

#include "rma/rma.h"

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

/* Set the pieces of the window that the operation has outstanding; @left bytes have not come. */
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
