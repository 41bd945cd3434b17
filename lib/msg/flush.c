/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flush. First every send before it must be with the lanes, and every put, get and atomic must be
 * over. Then each lane reports when everything it has got is acknowledged. Sends that wait for a
 * receive or a handler at the peer (parked: rendezvous, synchronous sends) delay a close only.
 * Control messages are flushed, too: otherwise a close right after an ATS would leave the peer
 * waiting.
 */

#include <errno.h>
#include <stdlib.h>

#include "msg/lane_status.h"
#include "msg/layer.h"
#include "msg/send.h"

/* A flush that waits until everything before it is at the peer. */
struct weft_flush {
	STAILQ_ENTRY(weft_flush) link;
	struct weft_msg_ep *me;
	uint64_t op_sn;                  /* sends with a lower number must be over, or parked */
	bool all;                        /* the endpoint closes: all sends must be over */
	uint64_t mark[WEFT_MODULES_MAX]; /* weft_module.flushed() */
	/* lanes that have not replied, + 1 while requests are sent */
	uint32_t lanes;
	int status;
	void (*done)(void *arg, int status);
	void *arg;
	struct weft_flush_lane {
		struct weft_lane_comp comp;
		struct weft_flush *flush;
	} lane[WEFT_MAX_LANES];
};

static void flush_end(struct weft_flush *f)
{
	void (*done)(void *arg, int status) = f->done;
	void *arg = f->arg;
	int status = f->status;

	free(f);
	if (done)
		done(arg, status);
}

static void lane_flushed(struct weft_lane_comp *comp, int status)
{
	struct weft_flush *f = container_of(comp, struct weft_flush_lane, comp)->flush;

	if (status && !f->status)
		f->status = weft_lane_status(f->me, status);
	if (--f->lanes == 0)
		flush_end(f);
}

/*
 * Everything is with the lanes: request their flushes. @return true when nothing is outstanding
 * there, or the flush has ended
 */
static bool flush_lanes(struct weft_msg_ep *me, struct weft_flush *f)
{
	uint32_t mask;
	int rc;

	f->lanes = 1;
	for (mask = me->lanes_up; mask; mask &= mask - 1) {
		int i = __builtin_ctz(mask);
		struct weft_lane_ep *lane_ep = me->lanes[i].lane_ep;

		f->lane[i].flush = f;
		f->lane[i].comp.done = lane_flushed;
		f->lanes++;
		rc = lane_ep->ops->ep_flush(lane_ep, &f->lane[i].comp);
		if (rc == 0)
			continue;
		f->lanes--;
		if (rc < 0 && !f->status)
			f->status = rc;
	}
	return --f->lanes == 0;
}

static bool is_ready(struct weft_msg_ep *me, struct weft_flush *f)
{
	const struct weft_request *req = TAILQ_FIRST(&me->ops);

	if ((req && req->send.op_sn < f->op_sn) || (f->all && !TAILQ_EMPTY(&me->parked)) ||
	    !STAILQ_EMPTY(&me->ctl) || !STAILQ_EMPTY(&me->replay) || me->ep->lanes_closing)
		return false;
	WEFT_EACH_MODULE(m, me->mw, flushed) {
		if (!m->flushed(me, &f->mark[m_at - me->mw->modules]))
			return false;
	}
	return true;
}

/* A close has no caller to which it could report this, and must not end early for it. */
static void take_status(struct weft_msg_ep *me, struct weft_flush *f)
{
	int status;

	WEFT_EACH_MODULE(m, me->mw, take_status) {
		status = m->take_status(me, f->op_sn);
		if (status && !f->status && !f->all)
			f->status = status;
	}
}

int weft_msg_ep_flush(struct weft_ep *ep, void (*done)(void *arg, int status), void *arg)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_flush *f;
	int status;

	if (me->failed)
		return weft_msg_ep_why(ep);
	if ((ep->state == WEFT_EP_CLOSING || ep->closing) && !me->closing) {
		me->closing = true;
		weft_tx_update(me);
		WEFT_EACH_MODULE(m, me->mw, closing)
			m->closing(me);
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->me = me;
	f->done = done;
	f->arg = arg;
	f->op_sn = me->op_sn;
	f->all = me->closing;
	if (!is_ready(me, f) || !STAILQ_EMPTY(&me->flushes)) {
		STAILQ_INSERT_TAIL(&me->flushes, f, link);
		return 0;
	}
	take_status(me, f);
	if (me->up && !flush_lanes(me, f))
		return 0;
	status = f->status;
	free(f);
	return status ? status : WEFT_LANE_IDLE;
}

void weft_flush_check(struct weft_msg_ep *me)
{
	struct weft_flush *f;

	/* Its lanes are being destroyed: weft_flush_fail() will end the flushes. */
	if (me->ep && me->ep->state == WEFT_EP_FAILED)
		return;
	while (!me->failed && (f = STAILQ_FIRST(&me->flushes)) && is_ready(me, f)) {
		STAILQ_REMOVE_HEAD(&me->flushes, link);
		take_status(me, f);
		if (flush_lanes(me, f))
			flush_end(f);
	}
}

void weft_flush_fail(struct weft_msg_ep *me, int status)
{
	struct weft_flush *f;

	while ((f = STAILQ_FIRST(&me->flushes))) {
		STAILQ_REMOVE_HEAD(&me->flushes, link);
		f->status = status;
		flush_end(f);
	}
}
