/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connections that peers have made and that have sent no message for an endpoint yet; and the end
 * of any connection. All wait for the same time, so a list has them in the order of their
 * deadlines. A hash table finds a connection when its first message removes it from the list.
 */

#include "core/config.h"
#include "wireup/wireup.h"

uint64_t weft_connect_timeout(const struct weft_worker *w)
{
	return w->ctx->conf->lane.connect_timeout_ns;
}

static struct weft_pending_list *bucket_of(struct weft_conns *conns,
					   const struct weft_lane_ep *lane_ep)
{
	/* A local pointer, which peers cannot choose, so the hash needs no key. */
	uint64_t h = (uint64_t)(uintptr_t)lane_ep * 0x9e3779b97f4a7c15u;

	return &conns->pending_table[h >> 32 & (WEFT_PENDING_BUCKETS - 1)];
}

static struct weft_pending *find_pending(struct weft_conns *conns,
					 const struct weft_lane_ep *lane_ep)
{
	struct weft_pending *p;

	LIST_FOREACH(p, bucket_of(conns, lane_ep), link) {
		conns->looks++;
		if (p->lane_ep == lane_ep)
			return p;
	}
	return NULL;
}

void weft_pending_remove(struct weft_worker *worker, const struct weft_lane_ep *lane_ep)
{
	struct weft_conns *conns = worker->conns;
	struct weft_pending *p = find_pending(conns, lane_ep);

	if (!p)
		return;
	LIST_REMOVE(p, link);
	TAILQ_REMOVE(&conns->pending, p, order);
	LIST_INSERT_HEAD(&conns->pending_free, p, link);
	conns->num_pending--;
}

void weft_lane_ep_destroy(struct weft_worker *worker, struct weft_lane_ep *lane_ep)
{
	weft_pending_remove(worker, lane_ep);
	weft_partial_forget(worker->conns, lane_ep);
	lane_ep->user = NULL;
	lane_ep->ops->ep_destroy(lane_ep);
}

/*
 * The table is full: the connection that has been silent for the longest time is destroyed. An
 * honest peer sends its first message at once, so a peer that fills the table excludes only itself.
 */
static void evict_silent(struct weft_worker *w, const char *iface)
{
	struct weft_conns *conns = w->conns;

	weft_log_limited(
		&conns->limit_refused, WEFT_LOG_WARN,
		"%s: more than %d connections that name no endpoint; the oldest is refused", iface,
		WEFT_MAX_PENDING);
	conns->looks++;
	weft_lane_ep_destroy(w, TAILQ_FIRST(&conns->pending)->lane_ep);
}

void weft_pending_add(struct weft_worker *w, struct weft_lane_ep *lane_ep)
{
	struct weft_conns *conns = w->conns;
	struct weft_pending *p;

	if (conns->num_pending == WEFT_MAX_PENDING)
		evict_silent(w, lane_ep->iface->name);
	p = LIST_FIRST(&conns->pending_free);
	if (p)
		LIST_REMOVE(p, link);
	else
		p = &conns->pending_room[conns->pending_used++];
	p->lane_ep = lane_ep;
	p->deadline = w->now + weft_connect_timeout(w);
	LIST_INSERT_HEAD(bucket_of(conns, lane_ep), p, link);
	TAILQ_INSERT_TAIL(&conns->pending, p, order);
	conns->num_pending++;
	if (p->deadline < w->next_timer)
		w->next_timer = p->deadline;
}

void weft_pending_timers(struct weft_worker *w)
{
	struct weft_conns *conns = w->conns;
	struct weft_pending *p;

	while ((p = TAILQ_FIRST(&conns->pending))) {
		conns->looks++;
		if (w->now < p->deadline) {
			if (p->deadline < w->next_timer)
				w->next_timer = p->deadline;
			return;
		}
		weft_lane_ep_destroy(w, p->lane_ep);
	}
}
