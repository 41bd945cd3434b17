/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of an inner iface: the only thread that calls the inner driver. At home that is the
 * worker's thread, and callbacks go straight to the worker. Away, they become records in the ring.
 */

#include <errno.h>
#include <string.h>

#include "base/container.h"
#include "mock/lane_thread_priv.h"

/* ------------------------------------------------------------------ records */

static void *checked(void *p)
{
	if (!p)
		abort(); /* a prototype */
	return p;
}

static bool ring_put(struct lt_iface *lt, const struct lt_rec *rec)
{
	uint32_t at;

	if (!lt_may_put(&lt->rec_at, LT_RECS, &at))
		return false;
	lt->rec[at] = *rec;
	lt_put(&lt->rec_at);
	return true;
}

/* A round ends soon after the ring is full: see lane_thread_step(). */
static void push(struct lt_iface *lt, const struct lt_rec *rec)
{
	struct lt_spill *s;

	if (STAILQ_EMPTY(&lt->spill) && ring_put(lt, rec))
		return;
	s = checked(aligned_alloc(_Alignof(struct lt_spill), sizeof(*s)));
	s->rec = *rec;
	STAILQ_INSERT_TAIL(&lt->spill, s, link);
}

/* @return false: the worker has not made enough room yet */
static bool unspill(struct lt_iface *lt)
{
	struct lt_spill *s;

	while ((s = STAILQ_FIRST(&lt->spill))) {
		if (!ring_put(lt, &s->rec))
			return false;
		STAILQ_REMOVE_HEAD(&lt->spill, link);
		free(s);
	}
	return true;
}

/* ------------------------------------------------------------------ callbacks */

struct lt_ep *lt_ep_new(struct lt_iface *lt, void *user)
{
	struct lt_ep *ep = aligned_alloc(_Alignof(struct lt_ep), sizeof(*ep));

	if (!ep)
		return NULL;
	memset(ep, 0, sizeof(*ep));
	ep->base.iface = &lt->base;
	ep->base.ops = &lt->ops;
	ep->base.user = user;
	ep->lt = lt;
	ep->refs = 1;
	STAILQ_INIT(&ep->backlog);
	LIST_INIT(&ep->flushes);
	return ep;
}

/* The peer has made a connection. */
static struct lt_ep *ep_of(struct lt_iface *lt, struct weft_lane_ep *inner)
{
	struct lt_ep *ep = inner->user;

	if (ep)
		return ep;
	ep = checked(lt_ep_new(lt, NULL));
	ep->base.passive = inner->passive;
	ep->inner = inner;
	inner->user = ep;
	LIST_INSERT_HEAD(&lt->eps, ep, link);
	return ep;
}

/* A store makes the worker's copy of the cache line invalid. */
static void publish(_Atomic uint32_t *at, uint32_t value)
{
	if (atomic_load_explicit(at, memory_order_relaxed) != value)
		atomic_store_explicit(at, value, memory_order_relaxed);
}

void lt_publish(struct lt_ep *ep)
{
	const struct weft_lane_ep *inner = ep->inner;
	uint64_t seen;

	if (!inner)
		return;
	publish(&ep->taken, ep->taken_now);
	publish(&ep->queued, inner->queued);
	publish(&ep->rtt_ns, inner->rtt_ns);
	publish(&ep->max_msg, inner->max_msg);
	publish(&ep->retransmits, inner->retransmits);
	if (atomic_load_explicit(&ep->tx_room, memory_order_relaxed) != inner->tx_room)
		atomic_store_explicit(&ep->tx_room, inner->tx_room, memory_order_relaxed);
	if (inner->ops->ep_best_msg && inner->up)
		publish(&ep->best, inner->ops->ep_best_msg(inner));
	seen = inner->ops->ep_seen ? inner->ops->ep_seen(inner) : 0;
	if (atomic_load_explicit(&ep->seen, memory_order_relaxed) != seen)
		atomic_store_explicit(&ep->seen, seen, memory_order_relaxed);
}

/* @return the message is in its destination, or on its way to the worker's placed() */
static bool place(struct lt_iface *lt, struct lt_ep *ep, uint8_t am_id, const void *data,
		  size_t length)
{
	const struct lane_thread_conf *conf = &lt->conf;
	struct lt_rec rec = {.what = LT_PLACED, .am_id = am_id, .ep = ep};
	uint64_t id, offset;
	size_t hdr;

	if (!conf->places)
		return false;
	hdr = conf->where(am_id, data, length, &id, &offset);
	if (hdr == 0 || hdr > sizeof(rec.hdr) ||
	    !lane_place_copy(conf->places, conf->thread, id, offset, (const uint8_t *)data + hdr,
			     length - hdr))
		return false;
	rec.hdr_len = (uint16_t)hdr;
	rec.length = (uint32_t)(length - hdr);
	memcpy(rec.hdr, data, hdr);
	push(lt, &rec);
	return true;
}

int lt_recv(void *arg, struct weft_lane_ep *inner, uint8_t am_id, const void *data, size_t length,
	    void *desc)
{
	struct lt_iface *lt = arg;
	struct lt_ep *ep = ep_of(lt, inner);
	struct lt_rec rec = {.what = LT_MSG,
			     .am_id = am_id,
			     .ep = ep,
			     .data = data,
			     .length = (uint32_t)length,
			     .p = desc};

	if (lt->home)
		return lt_deliver(lt, ep, am_id, data, length, desc);
	if (am_id == lt->conf.home_id)
		lt->come_home = true;
	if (place(lt, ep, am_id, data, length))
		return 0;
	if (!desc) {
		rec.data = checked(malloc(length + 1));
		memcpy((void *)(uintptr_t)rec.data, data, length);
		rec.p = (void *)((uintptr_t)rec.data | 1); /* lt_buf_free() */
	}
	push(lt, &rec);
	return desc ? WEFT_LANE_KEEP : 0;
}

void lt_buf_free(struct lt_iface *lt, void *desc)
{
	if ((uintptr_t)desc & 1)
		free((void *)((uintptr_t)desc & ~(uintptr_t)1));
	else
		lt->inner->ops->release(lt->inner, desc);
}

/*
 * A lane that is certainly lost is stopped here at once, so that its state is final. The worker
 * decides whether that ends the lane.
 */
void lt_event(void *arg, struct weft_lane_ep *inner, enum weft_lane_event ev, int status,
	      const char *text)
{
	struct lt_iface *lt = arg;
	struct lt_ep *ep = ep_of(lt, inner);
	struct lt_rec rec = {.what = LT_EVENT, .ep = ep, .event = ev, .status = status};

	lt_publish(ep);
	if (lt->home) {
		lt_event_in(lt, ep, ev, status, text);
		return;
	}
	if (ev == WEFT_LANE_EV_SUSPECT && status < 0 && inner->ops->ep_quiesce)
		ep->saved_len = inner->ops->ep_quiesce(inner, ep->saved);
	rec.data = checked(strdup(text ? text : ""));
	push(lt, &rec);
	lt->come_home = true;
}

void lt_iface_event(void *arg, struct weft_lane_iface *inner, enum weft_lane_iface_event ev,
		    const char *text)
{
	struct lt_iface *lt = arg;
	struct lt_rec rec = {.what = LT_IFACE_EVENT, .status = (int32_t)ev};

	(void)inner;
	if (lt->home) {
		lt->base.attr.bandwidth = lt->inner->attr.bandwidth;
		if (lt->open.iface_event)
			lt->open.iface_event(lt->open.arg, &lt->base, ev, text);
		return;
	}
	rec.data = checked(strdup(text ? text : ""));
	push(lt, &rec);
	lt->come_home = true;
}

void lt_comp_done(struct weft_lane_comp *comp, int status)
{
	struct lt_cmd *c = container_of(comp, struct lt_cmd, own);
	struct lt_iface *lt = c->ep->lt;
	struct lt_rec rec = {.what = LT_DONE, .p = c, .status = status};

	if (lt->home)
		lt_cmd_over(lt, c, status);
	else
		push(lt, &rec);
}

/* ------------------------------------------------------------------ sends */

static ssize_t pack_cmd(void *dst, size_t max, void *arg)
{
	const struct lt_cmd *c = arg;
	uint8_t *at = dst;

	if (c->length > max)
		return -EMSGSIZE;
	memcpy(at, c->data, c->hdr_len);
	at += c->hdr_len;
	for (uint32_t i = 0; i < c->iovcnt; at += c->iov[i++].iov_len)
		memcpy(at, c->iov[i].iov_base, c->iov[i].iov_len);
	return (ssize_t)c->length;
}

static int try_send(struct lt_cmd *c, struct weft_lane_ep *inner, bool *over)
{
	const struct weft_lane_attr *attr = &inner->iface->attr;
	ssize_t rc;

	if (c->kind == LT_ZSEND && attr->features & WEFT_LANE_F_ZCOPY)
		return inner->ops->am_zcopy(inner, c->am_id, c->data, c->hdr_len, c->iov, c->iovcnt,
					    c->mem, &c->own);
	if (c->kind == LT_SEND && c->length <= attr->max_short)
		rc = inner->ops->am_short(inner, c->am_id, c->data, c->length, NULL, 0);
	else
		rc = inner->ops->am_bcopy(inner, c->am_id, pack_cmd, c);
	*over = rc >= 0;
	return rc < 0 ? (int)rc : 0;
}

int lt_try(struct lt_cmd *c)
{
	struct lt_ep *ep = c->ep;
	struct weft_lane_ep *inner = ep->inner;
	bool over = false;
	int rc;

	if (!inner)
		return -EAGAIN;
	if (c->kind == LT_FLUSH) {
		rc = inner->ops->ep_flush(inner, &c->own);
		over = rc == WEFT_LANE_IDLE;
		rc = over ? 0 : rc;
	} else {
		rc = try_send(c, inner, &over);
		if (rc == 0)
			ep->taken_now += c->length;
	}
	if (over)
		lt_comp_done(&c->own, 0);
	return rc;
}

static unsigned int serve(struct lt_ep *ep)
{
	struct lt_cmd *c;
	unsigned int n = 0;
	int rc;

	while ((c = STAILQ_FIRST(&ep->backlog))) {
		STAILQ_REMOVE_HEAD(&ep->backlog, link);
		rc = lt_try(c);
		if (rc == -EAGAIN) {
			STAILQ_INSERT_HEAD(&ep->backlog, c, link);
			break;
		}
		if (rc < 0)
			lt_comp_done(&c->own, rc);
		n++;
	}
	return n;
}

void lt_take_in(struct lt_iface *lt)
{
	struct lt_cmd *c;
	uint32_t at;

	while (lt_may_get(&lt->cmd_at, LT_CMDS, &at)) {
		c = lt->cmd[at];
		lt_got(&lt->cmd_at);
		STAILQ_INSERT_TAIL(&c->ep->backlog, c, link);
	}
	while (lt_may_get(&lt->gift_at, LT_GIFTS, &at)) {
		lt_buf_free(lt, lt->gift[at]);
		lt_got(&lt->gift_at);
	}
}

unsigned int lt_round(struct lt_iface *lt, uint64_t now)
{
	unsigned int n = 0;
	struct lt_ep *ep;

	lt_take_in(lt);
	LIST_FOREACH(ep, &lt->eps, link)
		n += serve(ep);
	n += lt->inner->ops->progress(lt->inner, now);
	LIST_FOREACH(ep, &lt->eps, link) {
		n += serve(ep);
		lt_publish(ep);
	}
	if (lt->inner->tx_open)
		lt->inner->ops->tx_flush(lt->inner);
	return n;
}

/* ------------------------------------------------------------------ the lane's thread */

unsigned int lane_thread_step(struct weft_lane_iface *base, uint64_t now)
{
	struct lt_iface *lt = lt_of(base);
	unsigned int n = 0;

	/* Acquire: what the worker did with the inner iface. */
	if (atomic_load_explicit(&lt->parked, memory_order_acquire))
		return 0;
	if (unspill(lt))
		n = lt_round(lt, now);
	/*
	 * Relaxed: a request that is missed now is seen by the next round. Records that found the
	 * ring full are handed over with the iface: the worker may wait for it to empty the ring.
	 */
	if (lt->come_home || atomic_load_explicit(&lt->ask, memory_order_relaxed)) {
		lt->come_home = false;
		/* Release: what this thread did with the inner iface; its records are written. */
		atomic_store_explicit(&lt->parked, true, memory_order_release);
	}
	return n;
}
