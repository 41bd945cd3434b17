/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that peers have made by connecting, and that the program has not claimed. They share
 * WEFT_MAX_UNCLAIMED_EPS places. The quota is per host, as lanes identify hosts. A peer chooses its
 * worker id, name and interfaces itself, and one host may invent any number of them.
 *
 * A sixteenth of the places, at least one, is reserved for hosts that have none, one place for
 * each. Of the others a host may have at most HOST_SHARE times the number that is free. So one host
 * alone gets seven of eight of all places, and the next hosts nearly all of the rest except the
 * sixteenth. To fill all places takes as many hosts as the sixteenth has places.
 *
 * When all places are taken, one of the hosts with the most endpoints loses its oldest one. It must
 * have at least two more than the host of the new endpoint. The oldest endpoint must be older than
 * half of WEFT_CONNECT_TIMEOUT, because a program that gets many connections at once needs time to
 * claim them. No message must have arrived over it, because then it is in use.
 *
 * Hosts are in a hash table by number, and in ranks by the logarithm of their number of endpoints.
 * So "most" means that no other host has twice as many. A REQ that finds no place checks at most
 * RANK_LOOKS hosts, first those whose last check is the longest ago. An endpoint over which a
 * message has arrived is not checked again.
 */

#include <errno.h>
#include <stdlib.h>

#include "core/config.h"
#include "wireup/codec.h"
#include "wireup/state.h"
#include "wireup/unclaimed.h"

#define HOST_SHARE 14u
#define NEWCOMERS 16u
#define RANK_LOOKS 8u

uint64_t weft_host_number(const struct weft_lane_ep *lane_ep)
{
	return lane_ep->ops->ep_host ? lane_ep->ops->ep_host(lane_ep) : 0;
}

static struct weft_host *find_host(struct weft_worker *w, uint64_t number)
{
	struct weft_table_node *n = weft_table_find(&w->conns->hosts, number);

	w->conns->looks += n != NULL;
	return n ? container_of(n, struct weft_host, by_number) : NULL;
}

static unsigned int rank_of(unsigned int num_eps)
{
	return 31u - (unsigned int)__builtin_clz(num_eps);
}

/* Set the number of endpoints of @p host, and move it to the rank of that number; 0 = none. */
static void set_num(struct weft_conns *conns, struct weft_host *host, unsigned int num)
{
	unsigned int before = host->num_eps;

	host->num_eps = num;
	if (before > 0 && num > 0 && rank_of(before) == rank_of(num))
		return;
	if (before > 0)
		TAILQ_REMOVE(&conns->ranks[rank_of(before)], host, rank);
	if (num > 0)
		TAILQ_INSERT_HEAD(&conns->ranks[rank_of(num)], host, rank);
}

static bool has_brought(const struct weft_ep *ep)
{
	for (unsigned int i = 0; i < ep->num_lanes && i < ep->lane_room; i++)
		if (ep->lane_info[i].rx_msgs > 0)
			return true;
	return false;
}

/*
 * The oldest endpoint of @p host that is old enough and over which no message has arrived, or NULL.
 */
static struct weft_ep *silent_of(struct weft_worker *w, struct weft_host *host)
{
	struct weft_ep *ep;

	while ((ep = TAILQ_FIRST(&host->eps))) {
		w->conns->looks++;
		if (w->now - ep->placed_at < w->ctx->conf->lane.connect_timeout_ns / 2)
			break;
		if (!has_brought(ep))
			return ep;
		TAILQ_REMOVE(&host->eps, ep, host_entry);
		TAILQ_INSERT_TAIL(&host->busy, ep, host_entry);
		ep->host_busy = true;
	}
	return NULL;
}

/* An endpoint that must make room for a host that has @p mine endpoints, or NULL. */
static struct weft_ep *pick_victim(struct weft_worker *w, unsigned int mine)
{
	struct weft_conns *conns = w->conns;
	struct weft_host *host, *next, *last;
	unsigned int looks = 0;
	struct weft_ep *ep;

	for (unsigned int r = 32; r-- > 0;) {
		last = TAILQ_LAST(&conns->ranks[r], weft_host_rank);
		for (host = TAILQ_FIRST(&conns->ranks[r]); host; host = next) {
			next = host != last ? TAILQ_NEXT(host, rank) : NULL;
			if (looks++ == RANK_LOOKS)
				return NULL;
			conns->looks++;
			/* Move it behind the hosts that were not checked. */
			TAILQ_REMOVE(&conns->ranks[r], host, rank);
			TAILQ_INSERT_TAIL(&conns->ranks[r], host, rank);
			ep = host->num_eps > mine + 1 ? silent_of(w, host) : NULL;
			if (ep)
				return ep;
		}
	}
	return NULL;
}

bool weft_unclaimed_room(struct weft_worker *w, const struct weft_lane_ep *lane_ep,
			 struct weft_ep **goes)
{
	unsigned int max = w->ctx->conf->max_passive_eps, taken = w->conns->num_unclaimed;
	struct weft_host *host = find_host(w, weft_host_number(lane_ep));
	unsigned int mine = host ? host->num_eps : 0;
	unsigned int kept = max >= NEWCOMERS ? max / NEWCOMERS : 1;

	*goes = NULL;
	if (taken < max)
		return mine == 0 ||
		       (taken + kept < max && mine < (uint64_t)HOST_SHARE * (max - taken - kept));
	*goes = pick_victim(w, mine);
	return *goes != NULL;
}

int weft_unclaimed_add(struct weft_ep *ep, const struct weft_lane_ep *lane_ep)
{
	struct weft_worker *w = ep->worker;
	uint64_t number = weft_host_number(lane_ep);
	struct weft_host *host = find_host(w, number);

	if (!host) {
		host = calloc(1, sizeof(*host));
		if (!host || weft_table_add(&w->conns->hosts, &host->by_number, number) < 0) {
			free(host);
			return -ENOMEM;
		}
		TAILQ_INIT(&host->eps);
		TAILQ_INIT(&host->busy);
	}
	set_num(w->conns, host, host->num_eps + 1);
	TAILQ_INSERT_TAIL(&host->eps, ep, host_entry);
	ep->host = host;
	ep->placed_at = w->now;
	w->conns->num_unclaimed++;
	return 0;
}

void weft_unclaimed_remove(struct weft_ep *ep)
{
	struct weft_host *host = ep->host;

	if (!host)
		return;
	ep->host = NULL;
	ep->worker->conns->num_unclaimed--;
	if (ep->host_busy)
		TAILQ_REMOVE(&host->busy, ep, host_entry);
	else
		TAILQ_REMOVE(&host->eps, ep, host_entry);
	set_num(ep->worker->conns, host, host->num_eps - 1);
	if (host->num_eps == 0) {
		weft_table_remove(&ep->worker->conns->hosts, &host->by_number);
		free(host);
	}
}

/* ------------------------------------------------------------------ no endpoint yet */

/*
 * Connections that peers have made and that have sent no message for an endpoint yet; and the end
 * of any connection. All wait for the same time, so a list has them in the order of their
 * deadlines. A hash table finds a connection when its first message removes it from the list.
 */

uint64_t weft_connect_timeout(const struct weft_worker *w)
{
	return w->ctx->conf->lane.connect_timeout_ns;
}

void weft_pending_remove(struct weft_worker *worker, const struct weft_lane_ep *lane_ep)
{
	struct weft_conns *conns = worker->conns;
	struct weft_table_node *n = weft_table_find(&conns->by_lane_ep, (uintptr_t)lane_ep);

	if (!n)
		return;
	conns->looks++;
	weft_table_remove(&conns->by_lane_ep, n);
	TAILQ_REMOVE(&conns->pending, container_of(n, struct weft_pending, entry), order);
	SLIST_INSERT_HEAD(&conns->pending_free, n, link);
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
	struct weft_table_node *n;
	struct weft_pending *p;

	if (conns->by_lane_ep.num == WEFT_MAX_PENDING)
		evict_silent(w, lane_ep->iface->name);
	n = SLIST_FIRST(&conns->pending_free);
	if (n)
		SLIST_REMOVE_HEAD(&conns->pending_free, link);
	else
		n = &conns->pending_room[conns->pending_used++].entry;
	p = container_of(n, struct weft_pending, entry);
	p->lane_ep = lane_ep;
	p->deadline = w->now + weft_connect_timeout(w);
	/* Keys are local addresses, which peers cannot choose. */
	weft_table_add(&conns->by_lane_ep, n, (uintptr_t)lane_ep);
	TAILQ_INSERT_TAIL(&conns->pending, p, order);
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
