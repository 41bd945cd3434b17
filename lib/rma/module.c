/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory as a module: the state of a worker and of an endpoint. */

#include <errno.h>
#include <stdlib.h>

#include "rma/rma.h"

/* ------------------------------------------------------------------ worker */

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

/* ------------------------------------------------------------------ endpoint */

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
