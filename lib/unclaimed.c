/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Endpoints that peers have made by connecting and nobody here has claimed. They share
 * WEFT_MAX_UNCLAIMED_EPS places, by hosts, as their lanes tell these apart: a worker's id, name
 * and interfaces are what it says of itself, and a host may say as many as it likes.
 *
 * A host may have HOST_SHARE times as many places as are left, the last one not counted: that is
 * for a host that has none. So one alone takes seven of eight, the next one seven of eight of what
 * it has left, and so on: it takes several hosts to take all. Then who has most gives its oldest
 * one, if it has two more than the new one's host. But only one that has been there for half of
 * WEFT_CONNECT_TIMEOUT, for where many connect at once their turn comes, and over which no message
 * has come: that is somebody's work.
 */

#include <errno.h>
#include <stdlib.h>

#include "config.h"
#include "wireup.h"

#define HOST_SHARE 7u

static uint64_t number_of(const struct weft_lane_ep *lep)
{
	return lep->ops->ep_host != NULL ? lep->ops->ep_host(lep) : 0;
}

static struct weft_host *find(const struct weft_conns *conns, uint64_t number)
{
	struct weft_host *host;

	LIST_FOREACH(host, &conns->hosts, entry)
		if (host->number == number)
			break;
	return host;
}

/* The oldest one that has brought nothing for long, or NULL. */
static struct weft_ep *silent_of(struct weft_worker *w, const struct weft_host *host)
{
	struct weft_ep *ep;
	unsigned int i;

	TAILQ_FOREACH(ep, &host->eps, host_entry) {
		if (w->now - ep->placed_at < w->ctx->conf->lane.connect_timeout_ns / 2)
			return NULL;
		for (i = 0; i < ep->num_lanes && i < ep->lane_room; i++)
			if (ep->lane_info[i].rx_msgs > 0)
				break;
		if (i >= ep->num_lanes || i >= ep->lane_room)
			return ep;
	}
	return NULL;
}

/* For a host that has @p mine. */
static bool make_room(struct weft_worker *w, unsigned int mine)
{
	struct weft_ep *ep = NULL, *silent;
	struct weft_host *host;
	unsigned int most = mine + 1;

	LIST_FOREACH(host, &w->conns->hosts, entry) {
		if (host->num_eps <= most)
			continue;
		silent = silent_of(w, host);
		if (silent == NULL)
			continue;
		ep = silent;
		most = host->num_eps;
	}
	if (ep == NULL)
		return false;
	weft_ep_fail(ep, -EUSERS,
		     "%s has as many connections that nobody has claimed as it takes "
		     "(WEFT_MAX_UNCLAIMED_EPS): this one makes room for another host's",
		     w->ctx->name);
	return true;
}

bool weft_unclaimed_room(struct weft_worker *w, const struct weft_lane_ep *lep)
{
	unsigned int max = w->ctx->conf->max_passive_eps, taken = w->conns->num_unclaimed;
	struct weft_host *host = find(w->conns, number_of(lep));
	unsigned int mine = host != NULL ? host->num_eps : 0;

	if (taken < max)
		return mine == 0 || mine < (uint64_t)HOST_SHARE * (max - taken - 1);
	return make_room(w, mine);
}

int weft_unclaimed_add(struct weft_ep *ep, const struct weft_lane_ep *lep)
{
	struct weft_conns *conns = ep->worker->conns;
	struct weft_host *host = find(conns, number_of(lep));

	if (host == NULL) {
		host = calloc(1, sizeof(*host));
		if (host == NULL)
			return -ENOMEM;
		host->number = number_of(lep);
		TAILQ_INIT(&host->eps);
		LIST_INSERT_HEAD(&conns->hosts, host, entry);
	}
	host->num_eps++;
	TAILQ_INSERT_TAIL(&host->eps, ep, host_entry);
	ep->host = host;
	ep->placed_at = ep->worker->now;
	conns->num_unclaimed++;
	return 0;
}

void weft_unclaimed_remove(struct weft_ep *ep)
{
	struct weft_host *host = ep->host;

	if (host == NULL)
		return;
	ep->host = NULL;
	ep->worker->conns->num_unclaimed--;
	TAILQ_REMOVE(&host->eps, ep, host_entry);
	if (--host->num_eps == 0) {
		LIST_REMOVE(host, entry);
		free(host);
	}
}
