/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker's gets (and atomics of lanes that have them) have asked for and not got, over all its peers: at most
 * WEFT_RMA_MAX_GETS pieces, and one for each peer that has none of them, since its answer may be what the others wait for. With many peers the asker decides so how much arrives at a time. Endpoints
 * that want more wait in line, and take turns.
 */

#include "rma.h"

bool weft_rma_gets_room(struct weft_msg_ep *me)
{
	struct weft_msg_worker *mw = me->mw;

	if (mw->rma.gets_open < mw->conf.rma_max_gets)
		return true;
	mw->rma.gets_limited++;
	if (!me->rma->gets_wait) {
		me->rma->gets_wait = true;
		TAILQ_INSERT_TAIL(&mw->rma.gets_waiting, me->rma, gets_link);
	}
	return false;
}

void weft_rma_gets_leave(struct weft_msg_ep *me)
{
	if (me->rma->gets_wait)
		TAILQ_REMOVE(&me->mw->rma.gets_waiting, me->rma, gets_link);
	me->rma->gets_wait = false;
}

void weft_rma_gets_add(struct weft_msg_worker *mw, int pieces)
{
	struct weft_rma *rma;

	mw->rma.gets_open += (uint32_t)pieces;
	if (mw->rma.gets_open > mw->rma.gets_peak)
		mw->rma.gets_peak = mw->rma.gets_open;
	if (pieces >= 0 || mw->rma.gets_open >= mw->conf.rma_max_gets)
		return;
	/* All of them: the first may wait for something else by now. */
	while ((rma = TAILQ_FIRST(&mw->rma.gets_waiting))) {
		TAILQ_REMOVE(&mw->rma.gets_waiting, rma, gets_link);
		rma->gets_wait = false;
		weft_tx_kick(rma->me);
	}
}
