/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker's calls that need the inner iface at home. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/container.h"
#include "mock/lane_thread_priv.h"

void lt_cold(struct lt_iface *lt)
{
	lt->cold_at = lt->now;
	/* Relaxed: nothing is passed with it. */
	if (!lt->home)
		atomic_store_explicit(&lt->ask, true, memory_order_relaxed);
}

/* The call is carried out by lt_arrived(). */
static void wait_for_iface(struct lt_ep *ep)
{
	if (!ep->in_cold)
		TAILQ_INSERT_TAIL(&ep->lt->cold, ep, cold);
	ep->in_cold = true;
	lt_cold(ep->lt);
}

/* ------------------------------------------------------------------ connections */

static int ep_begin(struct lt_ep *ep, const void *addr, size_t len)
{
	struct weft_lane_iface *inner = ep->lt->inner;
	int rc = inner->ops->ep_connect(inner, addr, len, ep, &ep->inner);

	if (rc == 0)
		LIST_INSERT_HEAD(&ep->lt->eps, ep, link);
	return rc;
}

static int lt_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
			 struct weft_lane_ep **out)
{
	struct lt_iface *lt = lt_of(base);
	struct lt_ep *ep = len <= WEFT_LANE_ADDR_MAX ? lt_ep_new(lt, user) : NULL;
	int rc;

	if (!ep)
		return -ENOMEM;
	*out = &ep->base;
	if (!lt->home) {
		memcpy(ep->addr, addr, len);
		ep->addr_len = (uint32_t)len;
		wait_for_iface(ep);
		return 0;
	}
	lt_cold(lt);
	rc = ep_begin(ep, addr, len);
	if (rc)
		free(ep);
	return rc;
}

void lt_ep_put(struct lt_ep *ep)
{
	if (--ep->refs == 0)
		LIST_INSERT_HEAD(&ep->lt->graves, ep, link);
}

/* Completions of flushes run here, because the caller may free them; those of sends run later. */
static void lt_ep_destroy(struct weft_lane_ep *base)
{
	struct lt_ep *ep = lt_ep_of(base);
	struct weft_lane_comp *comp;
	struct lt_cmd *c;

	ep->dead = true;
	base->up = false;
	while ((c = LIST_FIRST(&ep->flushes))) {
		LIST_REMOVE(c, flush);
		comp = c->comp;
		c->comp = NULL;
		comp->done(comp, -ECANCELED);
	}
	wait_for_iface(ep);
}

static void cancel_backlog(struct lt_ep *ep)
{
	struct lt_cmd *c;

	while ((c = STAILQ_FIRST(&ep->backlog))) {
		STAILQ_REMOVE_HEAD(&ep->backlog, link);
		lt_cmd_over(ep->lt, c, -ECANCELED);
	}
}

static void finish_destroy(struct lt_ep *ep)
{
	if (ep->inner) {
		LIST_REMOVE(ep, link);
		ep->inner->ops->ep_destroy(ep->inner);
		ep->inner = NULL;
	}
	cancel_backlog(ep);
	lt_ep_put(ep);
}

static void ep_arrived(struct lt_ep *ep)
{
	struct lt_iface *lt = ep->lt;
	int rc;

	if (ep->dead) {
		finish_destroy(ep);
		return;
	}
	if (ep->addr_len) {
		rc = ep_begin(ep, ep->addr, ep->addr_len);
		ep->addr_len = 0;
		if (rc)
			lt_event_in(lt, ep, WEFT_LANE_EV_DOWN, rc, "the address is not usable");
	}
	if (ep->check && ep->inner)
		ep->inner->ops->ep_check(ep->inner);
	ep->check = false;
	if (ep->stopping)
		/* The worker repeats ep_quiesce(), or has changed its mind: the lane goes on. */
		lt_event_in(lt, ep, WEFT_LANE_EV_SUSPECT, -ECONNABORTED, "it was to be stopped");
	ep->stopping = false;
}

void lt_arrived(struct lt_iface *lt)
{
	TAILQ_HEAD(, lt_ep) now = TAILQ_HEAD_INITIALIZER(now);
	struct lt_ep *ep;

	TAILQ_CONCAT(&now, &lt->cold, cold);
	while ((ep = TAILQ_FIRST(&now))) {
		TAILQ_REMOVE(&now, ep, cold);
		ep->in_cold = false;
		ep_arrived(ep);
	}
}

void lt_end_all(struct lt_iface *lt)
{
	struct lt_ep *ep;

	lt_arrived(lt);
	while ((ep = LIST_FIRST(&lt->eps))) {
		if (!ep->dead)
			lt_ep_destroy(&ep->base);
		lt_arrived(lt);
	}
}

static bool lt_ep_is_from(struct weft_lane_ep *base, const void *addr, size_t len)
{
	struct lt_ep *ep = lt_ep_of(base);

	lt_cold(ep->lt);
	return ep->lt->home && ep->inner && ep->inner->ops->ep_is_from(ep->inner, addr, len);
}

static uint64_t lt_ep_host(const struct weft_lane_ep *base)
{
	const struct lt_ep *ep = lt_ep_of(base);

	lt_cold(ep->lt);
	return ep->lt->home && ep->inner ? ep->inner->ops->ep_host(ep->inner) : 0;
}

static void lt_ep_check(struct weft_lane_ep *base)
{
	struct lt_ep *ep = lt_ep_of(base);

	if (!ep->lt->inner->ops->ep_check)
		return;
	ep->check = true;
	wait_for_iface(ep);
}

/* ------------------------------------------------------------------ failover */

static uint64_t lt_ep_seen(const struct weft_lane_ep *base)
{
	struct lt_ep *ep = lt_ep_of(base);

	if (ep->lt->home)
		lt_publish(ep);
	return atomic_load_explicit(&ep->seen, memory_order_relaxed);
}

static int lt_ep_quiesce(struct weft_lane_ep *base, void *state)
{
	struct lt_ep *ep = lt_ep_of(base);
	struct lt_iface *lt = ep->lt;
	uint32_t at;
	int n;

	if (!base->up || ep->dead || ep->stopped || !ep->inner)
		return -ENOTCONN;
	/* Messages in the ring are received: they are delivered first. */
	if (!ep->final &&
	    (!lt->home || lt_may_get(&lt->rec_at, LT_RECS, &at) || !STAILQ_EMPTY(&lt->spill))) {
		lt->count.later++;
		ep->stopping = true;
		wait_for_iface(ep);
		return -EAGAIN;
	}
	lt_cold(lt);
	n = ep->final ? ep->saved_len : ep->inner->ops->ep_quiesce(ep->inner, state);
	if (ep->final)
		memcpy(state, ep->saved, (size_t)n);
	if (n <= 0)
		return n;
	ep->stopped = true;
	base->up = false;
	return n;
}

struct reap {
	struct lt_iface *lt;
	weft_lane_reap_cb cb;
	void *arg;
};

static void reap_inner(void *arg, uint8_t am_id, const void *msg, size_t length,
		       struct weft_lane_comp *comp)
{
	const struct reap *r = arg;
	struct weft_lane_comp *user = NULL;
	struct lt_cmd *c;

	if (comp) {
		c = container_of(comp, struct lt_cmd, own);
		user = c->comp;
		c->comp = NULL;
		if (c->kind == LT_FLUSH && user)
			LIST_REMOVE(c, flush);
		lt_cmd_over(r->lt, c, 0);
	}
	if (msg || user)
		r->cb(r->arg, am_id, msg, length, user);
}

/* Messages that the inner driver has not accepted. */
static int reap_backlog(struct lt_ep *ep, const struct reap *r)
{
	struct lt_cmd *c;
	uint8_t *msg, *at;

	while ((c = STAILQ_FIRST(&ep->backlog))) {
		STAILQ_REMOVE_HEAD(&ep->backlog, link);
		ep->lt->count.reaped++;
		msg = c->iovcnt ? malloc(c->length) : c->data;
		if (!msg)
			return -ENOMEM;
		if (c->iovcnt) {
			memcpy(msg, c->data, c->hdr_len);
			at = msg + c->hdr_len;
			for (uint32_t i = 0; i < c->iovcnt; at += c->iov[i++].iov_len)
				memcpy(at, c->iov[i].iov_base, c->iov[i].iov_len);
		}
		if (c->kind == LT_FLUSH) {
			reap_inner((void *)(uintptr_t)r, 0, NULL, 0, &c->own);
			continue;
		}
		r->cb(r->arg, c->am_id, msg, c->length, c->comp);
		c->comp = NULL;
		if (c->iovcnt)
			free(msg);
		lt_cmd_over(ep->lt, c, 0);
	}
	return 0;
}

static int lt_ep_reap(struct weft_lane_ep *base, const void *state, size_t length,
		      weft_lane_reap_cb cb, void *arg)
{
	struct lt_ep *ep = lt_ep_of(base);
	struct reap r = {.lt = ep->lt, .cb = cb, .arg = arg};
	int rc;

	/* The iface stays at home while a lane_ep is stopped: see maybe_leave(). */
	rc = ep->inner->ops->ep_reap(ep->inner, state, length, reap_inner, &r);
	return rc ? rc : reap_backlog(ep, &r);
}

/* ------------------------------------------------------------------ waiting */

static int lt_wait_fd(struct weft_lane_iface *base)
{
	struct lt_iface *lt = lt_of(base);

	return lt->home ? lt->inner->ops->wait_fd(lt->inner) : -EAGAIN;
}

/* A worker that sleeps polls its iface itself. */
static int lt_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns)
{
	struct lt_iface *lt = lt_of(base);

	lt_cold(lt);
	return lt->home ? lt->inner->ops->arm(lt->inner, now_ns, due_ns) : -EBUSY;
}

static void lt_disarm(struct weft_lane_iface *base)
{
	struct lt_iface *lt = lt_of(base);

	lt->inner->ops->disarm(lt->inner);
}

static void lt_beat(struct weft_lane_iface *base)
{
	struct lt_iface *lt = lt_of(base);

	if (lt->home && lt->inner->ops->beat)
		lt->inner->ops->beat(lt->inner);
}

/* ------------------------------------------------------------------ cold */

static void lt_get_address(struct weft_lane_iface *base, void *buf)
{
	lt_of(base)->inner->ops->get_address(lt_of(base)->inner, buf);
}

/* Away: ep_connect() reports what is not reachable by an event. */
static int lt_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			   size_t why_len)
{
	struct lt_iface *lt = lt_of(base);

	lt_cold(lt);
	return lt->home ? lt->inner->ops->is_reachable(lt->inner, addr, len, why, why_len) : 0;
}

static bool lt_link_up(struct weft_lane_iface *base)
{
	struct lt_iface *lt = lt_of(base);

	return !lt->home || lt->inner->ops->link_up(lt->inner);
}

static void lt_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	struct lt_ep *ep = lt_ep_of(base);

	if (ep->lt->home && ep->inner)
		ep->inner->ops->ep_print(ep->inner, buf, size);
	else
		snprintf(buf, size, "polled by a thread of its own");
}

static uint32_t lt_ep_best_msg(const struct weft_lane_ep *base)
{
	uint32_t best = atomic_load_explicit(&lt_ep_of(base)->best, memory_order_relaxed);

	return best ? best : base->max_msg;
}

/* Away: those of the last time at home are the inner driver's, which may be written now. */
static void lt_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	struct lt_iface *lt = lt_of(base);

	lt_cold(lt);
	if (lt->home)
		lt->inner->ops->counters(lt->inner, cb, arg);
}

const struct weft_lane_ops lt_conn_ops = {
	.ep_connect = lt_ep_connect,
	.ep_destroy = lt_ep_destroy,
	.ep_is_from = lt_ep_is_from,
	.ep_host = lt_ep_host,
	.ep_check = lt_ep_check,
	.ep_seen = lt_ep_seen,
	.ep_quiesce = lt_ep_quiesce,
	.ep_reap = lt_ep_reap,
	.wait_fd = lt_wait_fd,
	.arm = lt_arm,
	.disarm = lt_disarm,
	.beat = lt_beat,
	.get_address = lt_get_address,
	.is_reachable = lt_is_reachable,
	.link_up = lt_link_up,
	.ep_print = lt_ep_print,
	.ep_best_msg = lt_ep_best_msg,
	.counters = lt_counters,
};
