/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A worker's connections: those that nobody has bound yet, timers, what is put together from
 * pieces; beginning and end of it all.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "wireup.h"

uint64_t weft_connect_timeout(const struct weft_worker *w)
{
	return w->ctx->conf->lane.connect_timeout_ns;
}

/*
 * ------------------------------------------------------------------ connections nobody has bound
 */

void weft_pending_remove(struct weft_worker *worker, const struct weft_lane_ep *lep)
{
	struct weft_conns *conns = worker->conns;
	unsigned int i;

	for (i = 0; i < conns->num_pending; i++) {
		if (conns->pending[i].lep == lep) {
			conns->pending[i] = conns->pending[--conns->num_pending];
			return;
		}
	}
}

/*
 * The table is full: the one that has said nothing for longest makes room. A peer that means it says
 * what it wants at once, so whoever fills the table keeps nobody out but itself.
 */
static void pending_evict(struct weft_worker *w, const char *iface)
{
	struct weft_conns *conns = w->conns;
	const struct weft_pending *oldest = conns->pending;

	for (unsigned int i = 1; i < conns->num_pending; i++)
		if (conns->pending[i].deadline < oldest->deadline)
			oldest = &conns->pending[i];
	weft_log_limited(
		&conns->limit_refused, WEFT_LOG_WARN,
		"%s: more than %d connections that name no endpoint; the oldest is refused", iface,
		WEFT_MAX_PENDING);
	weft_lep_destroy(w, oldest->lep);
}

void weft_pending_add(struct weft_worker *w, struct weft_lane_ep *lep)
{
	struct weft_conns *conns = w->conns;

	if (conns->num_pending == WEFT_MAX_PENDING)
		pending_evict(w, lep->iface->name);
	conns->pending[conns->num_pending++] =
		(struct weft_pending){lep, w->now + weft_connect_timeout(w)};
	if (w->now + weft_connect_timeout(w) < w->next_timer)
		w->next_timer = w->now + weft_connect_timeout(w);
}

void weft_lep_destroy(struct weft_worker *worker, struct weft_lane_ep *lep)
{
	weft_pending_remove(worker, lep);
	weft_partial_forget(worker->conns, lep);
	lep->user = NULL;
	lep->ops->ep_destroy(lep);
}

static void pending_timers(struct weft_worker *w)
{
	struct weft_conns *conns = w->conns;
	unsigned int i = 0;

	while (i < conns->num_pending) {
		if (w->now >= conns->pending[i].deadline) {
			weft_lep_destroy(
				w, conns->pending[i].lep); /* fills the hole with the last one */
			continue;
		}
		if (conns->pending[i].deadline < w->next_timer)
			w->next_timer = conns->pending[i].deadline;
		i++;
	}
}

void weft_wireup_bad(struct weft_worker *w, struct weft_lane_ep *lep, const char *why)
{
	char who[160];

	w->count.wireup_bad++;
	if (weft_log_level < WEFT_LOG_WARN)
		return;
	lep->ops->ep_print(lep, who, sizeof(who));
	weft_log_limited(&w->conns->limit_bad, WEFT_LOG_WARN,
			 "%s: dropped a wire-up message from %s: %s", lep->iface->name, who, why);
}

/* ------------------------------------------------------------------ time, life */

unsigned int weft_conns_timers(struct weft_worker *w)
{
	struct weft_ep *ep, *next;
	unsigned int n = 0;

	if (w->now < w->next_timer)
		return 0;
	w->next_timer = UINT64_MAX;
	pending_timers(w);
	weft_iface_timers(w);
	for (ep = LIST_FIRST(&w->conns->timers); ep != NULL; ep = next) {
		next = LIST_NEXT(ep, timer_entry);
		if (w->now < ep->timer) {
			if (ep->timer < w->next_timer)
				w->next_timer = ep->timer;
			continue;
		}
		LIST_REMOVE(ep, timer_entry);
		ep->timer = UINT64_MAX;
		n++;
		if (ep->fail_status)
			weft_ep_fail(ep, ep->fail_status, "%s", ep->fail_why);
		weft_wireup_timer(ep);
		if (ep->closing != NULL)
			weft_ep_closing_step(ep);
		/*
		 * Callbacks may have changed the list: what is left is done at the next progress.
		 */
		if (next != NULL) {
			w->next_timer = 0;
			break;
		}
	}
	return n;
}

int weft_conns_init(struct weft_worker *w)
{
	struct weft_conns *conns = calloc(1, sizeof(*conns));

	if (conns == NULL)
		return -ENOMEM;
	TAILQ_INIT(&conns->idle);
	TAILQ_INIT(&conns->partials);
	w->conns = conns;
	w->next_timer = UINT64_MAX;
	return 0;
}

void weft_conns_fini(struct weft_worker *w)
{
	struct weft_conns *conns = w->conns;
	struct weft_partial *p;

	if (conns == NULL)
		return;
	weft_conns_reap(w);
	while (conns->num_pending > 0)
		weft_lep_destroy(w, conns->pending[0].lep);
	while ((p = TAILQ_FIRST(&conns->partials)) != NULL) {
		TAILQ_REMOVE(&conns->partials, p, entry);
		free(p);
	}
	weft_peers_fini(conns);
	free(conns);
	w->conns = NULL;
}
