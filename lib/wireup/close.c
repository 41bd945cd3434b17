/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Closing and flushing. A close without force flushes the messages first, and sends CLOSING to the
 * peer if this takes time. Then it flushes every lane, sends CLOSE over one of them, flushes the
 * lanes again, and destroys all connections.
 */

#include <errno.h>
#include <stdlib.h>

#include "msg/msg.h"
#include "wireup/ep.h"
#include "wireup/exchange.h"

/* Longest time in which CLOSE is sent and acknowledged: all messages are delivered before it. */
#define CLOSE_LINGER_NS 1000000000ull
#define REPLAY_LOOK_NS 1000000ull

enum closing_step {
	CLOSING_FLUSH, /* messages are being flushed */
	CLOSING_LANES, /* lanes are being flushed */
	CLOSING_SEND,  /* CLOSE is to be sent */
	CLOSING_SENT,  /* CLOSE is sent: all lanes are being flushed again */
};

struct closing_comp {
	struct weft_lane_comp base; /* first member, for the cast in lane_flushed() */
	struct weft_ep *ep;
	bool pending;
	bool done;
};

struct weft_ep_closing {
	enum closing_step step;
	bool announced; /* CLOSING was sent, or is not needed */
	struct weft_request *req;
	uint64_t deadline;
	struct closing_comp lanes[WEFT_MAX_LANES];
};

void weft_ep_closing_end(struct weft_ep *ep, int status)
{
	struct weft_request *req = ep->closing->req;

	ep->closing->req = NULL;
	if (req)
		weft_msg_request_done(req, status);
}

int weft_ep_closing_status(const struct weft_ep *ep, int status)
{
	return ep->closing->step == CLOSING_FLUSH ? status : 0;
}

static void lane_flushed(struct weft_lane_comp *base, int status)
{
	struct closing_comp *c = (struct closing_comp *)base;

	(void)status; /* failed lanes are reported by their event */
	c->pending = false;
	c->done = true;
	if (c->ep->state != WEFT_EP_FAILED)
		weft_ep_timer_at(c->ep, 0);
}

/* @return true when the flush of lane @p n has ended */
static bool flush_lane(struct weft_ep *ep, unsigned int n)
{
	struct closing_comp *c = &ep->closing->lanes[n];
	int rc;

	if (c->done || c->pending)
		return c->done;
	c->base.done = lane_flushed;
	c->ep = ep;
	c->pending = true;
	rc = ep->lanes[n].lane_ep->ops->ep_flush(ep->lanes[n].lane_ep, &c->base);
	if (rc == 0)
		return c->done;
	c->pending = false;
	if (rc == -EAGAIN) {
		weft_ep_timer_at(ep, 0);
		return false;
	}
	c->done = true; /* the lane is idle, or has failed, which an event reports */
	return true;
}

static bool flush_lanes(struct weft_ep *ep)
{
	bool all = true;
	unsigned int i;

	/* First other lanes send the messages of a lane that died; then those lanes are flushed. */
	if (ep->lanes_closing || weft_msg_replaying(ep)) {
		weft_ep_timer_at(ep, ep->worker->now + REPLAY_LOOK_NS);
		return false;
	}
	for (i = 0; i < ep->num_lanes; i++)
		/* A pending flush of a lane that died ends when another lane has delivered. */
		if ((ep->lanes[i].up || ep->closing->lanes[i].pending) && !flush_lane(ep, i))
			all = false;
	return all;
}

void weft_ep_closing_lanes(struct weft_ep *ep)
{
	unsigned int i;

	for (i = 0; i < ep->num_lanes; i++)
		ep->closing->lanes[i].done = false;
}

/*
 * Send CLOSING. Delivery may take long, for example if the peer posts its receive late. In this
 * time weft_ep_create() at the peer must not claim the endpoint at its end of this connection.
 */
static void announce_close(struct weft_ep *ep)
{
	struct weft_ep_closing *c = ep->closing;

	if (c->announced || ep->state != WEFT_EP_CLOSING)
		return;
	c->announced = ep->peer == NULL || !ep->lanes_up ||
		       weft_wireup_send_close(ep, WEFT_WIREUP_CLOSING) != -EAGAIN;
	if (!c->announced)
		weft_ep_timer_at(ep, 0);
}

static void closing_over(struct weft_ep *ep)
{
	weft_ep_retire(ep, -ECANCELED);
	weft_ep_closing_end(ep, 0);
}

void weft_ep_closing_step(struct weft_ep *ep)
{
	struct weft_ep_closing *c = ep->closing;
	unsigned int i;
	int rc;

	if (ep->state != WEFT_EP_CLOSING)
		return;
	if (c->step == CLOSING_FLUSH)
		announce_close(ep);
	if (c->step == CLOSING_LANES) {
		if (!flush_lanes(ep))
			return;
		if (!ep->peer) { /* loopback: there is no peer */
			closing_over(ep);
			return;
		}
		c->step = CLOSING_SEND;
		c->deadline = ep->worker->now + CLOSE_LINGER_NS;
	}
	if (c->step == CLOSING_SEND) {
		rc = weft_wireup_send_close(ep, WEFT_WIREUP_CLOSE);
		if (rc == -EAGAIN && ep->worker->now < c->deadline) {
			weft_ep_timer_at(ep, 0);
			return;
		}
		if (rc < 0) {
			closing_over(ep);
			return;
		}
		c->step = CLOSING_SENT;
		/* Replies and credits went over any lane in the meantime: flush all lanes again. */
		for (i = 0; i < ep->num_lanes; i++)
			c->lanes[i].done = false;
	}
	if (c->step == CLOSING_SENT) {
		if (flush_lanes(ep) || ep->worker->now >= c->deadline)
			closing_over(ep);
		else
			weft_ep_timer_at(ep, c->deadline);
	}
}

static void messages_flushed(void *arg, int status)
{
	struct weft_ep *ep = arg;

	if (!ep->closing || ep->closing->step != CLOSING_FLUSH)
		return;
	ep->closing->step = CLOSING_LANES;
	if (status < 0)
		return; /* the ep has failed or is about to, and its failure ends the close */
	/* At the next progress: the message layer is in the middle of an operation. */
	weft_ep_timer_at(ep, 0);
}

static void force_close(struct weft_ep *ep, int status)
{
	if (ep->state == WEFT_EP_UP && ep->peer)
		weft_wireup_send_close(ep, WEFT_WIREUP_CLOSE);
	weft_ep_retire(ep, status);
}

/* There is a request only if the caller has set WEFT_OP_F_FORCE_REQUEST. */
static int close_at_once(struct weft_ep *ep, int status, const struct weft_op_params *params,
			 struct weft_request **req)
{
	bool force = params != NULL && (params->flags & WEFT_OP_F_FORCE_REQUEST);
	struct weft_request *r = NULL;

	if (force)
		r = weft_msg_request_new(ep->worker, "endpoint close", params, req != NULL);
	force_close(ep, status);
	if (!r)
		return force ? -ENOMEM : 0;
	if (req)
		*req = r;
	return weft_msg_request_at_once(r, 0);
}

static int flush_close(struct weft_ep *ep, const struct weft_op_params *params,
		       struct weft_request **req)
{
	struct weft_worker *w = ep->worker;
	struct weft_request *r;
	int rc;

	ep->closing = calloc(1, sizeof(*ep->closing));
	if (ep->closing)
		ep->closing->req = weft_msg_request_new(w, "endpoint close", params, req != NULL);
	if (!ep->closing || !ep->closing->req) {
		force_close(ep, -ECANCELED);
		return -ENOMEM;
	}
	if (req)
		*req = ep->closing->req;
	if (ep->state == WEFT_EP_UP)
		ep->state = WEFT_EP_CLOSING;
	rc = weft_msg_ep_flush(ep, messages_flushed, ep);
	if (rc < 0 || (rc == WEFT_LANE_IDLE && ep->state == WEFT_EP_CONNECTING)) {
		/* The flush has failed, or the ep is connecting and no message waits. */
		r = ep->closing->req;
		ep->closing->req = NULL;
		weft_ep_retire(ep, -ECANCELED);
		rc = weft_msg_request_at_once(r, rc < 0 ? rc : 0);
		if (rc != WEFT_INPROGRESS && req)
			*req = NULL;
		return rc;
	}
	if (rc == WEFT_LANE_IDLE) {
		ep->closing->step = CLOSING_LANES;
		weft_ep_timer_at(ep, 0);
	} else {
		announce_close(ep);
	}
	return WEFT_INPROGRESS;
}

int weft_ep_close(struct weft_ep *ep, unsigned int flags, const struct weft_op_params *params,
		  struct weft_request **req)
{
	struct weft_worker *w;
	bool was;
	int rc;

	if (req)
		*req = NULL;
	if (!ep || (flags & ~WEFT_EP_CLOSE_F_FORCE) || weft_op_params_check(params))
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_ep_close");
	w = ep->worker;
	if (!weft_context_is_ours(w->ctx))
		return 0;
	weft_worker_lock(w);
	was = weft_worker_enter(w);
	if (!ep->owned || ep->closing || ep->generation == 0)
		rc = -EINVAL;
	else if (ep->state == WEFT_EP_FAILED)
		rc = close_at_once(ep, ep->status, params, req);
	else if (flags & WEFT_EP_CLOSE_F_FORCE)
		rc = close_at_once(ep, -ECANCELED, params, req);
	else
		rc = flush_close(ep, params, req);
	weft_worker_leave(w, was);
	weft_worker_unlock(w);
	return rc;
}

struct flush {
	struct weft_ep *ep;
	struct weft_request *req;
};

static void flush_done(void *arg, int status)
{
	struct flush *f = arg;
	struct weft_request *req = f->req;

	/* A destroyed lane reports -ECANCELED; the endpoint's own status has the reason. */
	if (status < 0 && f->ep->state == WEFT_EP_FAILED)
		status = f->ep->status;
	free(f);
	weft_msg_request_done(req, status);
}

static int ep_flush(struct weft_ep *ep, const struct weft_op_params *params,
		    struct weft_request **req)
{
	struct flush *f = malloc(sizeof(*f));
	struct weft_request *r;
	int rc;

	r = f ? weft_msg_request_new(ep->worker, "endpoint flush", params, req != NULL) : NULL;
	if (!r) {
		free(f);
		return -ENOMEM;
	}
	*f = (struct flush){ep, r};
	rc = weft_msg_ep_flush(ep, flush_done, f);
	if (rc != 0) {
		free(f);
		rc = weft_msg_request_at_once(r, rc == WEFT_LANE_IDLE ? 0 : rc);
	} else {
		rc = WEFT_INPROGRESS;
	}
	if (rc == WEFT_INPROGRESS && req)
		*req = r;
	return rc;
}

int weft_ep_flush(struct weft_ep *ep, const struct weft_op_params *params,
		  struct weft_request **req)
{
	int rc;

	if (req)
		*req = NULL;
	if (!ep || weft_op_params_check(params))
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_ep_flush");
	weft_worker_lock(ep->worker);
	rc = ep->state == WEFT_EP_FAILED ? ep->status : ep_flush(ep, params, req);
	weft_worker_unlock(ep->worker);
	return rc;
}
