/* SPDX-License-Identifier: BSD-3-Clause */

/* A worker's connections in its progress call: timers that are due; set-up and end of the state. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "msg/msg.h"
#include "wireup/failover.h"
#include "wireup/wireup.h"

static void ep_timer(struct weft_ep *ep)
{
	ep->timer = UINT64_MAX;
	if (ep->fail_status)
		weft_ep_fail(ep, ep->fail_status, "%s", ep->fail_why);
	weft_wireup_timer(ep);
	weft_failover_timer(ep);
	if (ep->closing)
		weft_ep_closing_step(ep);
}

/*
 * Run due timers in their order, a batch at most, so that received frames are handled between
 * batches.
 */
static unsigned int ep_timers(struct weft_worker *w)
{
	struct weft_deadlines *timers = &w->conns->timers;
	struct weft_ep *ep, *due[WEFT_EP_TIMER_BATCH];
	uint32_t generation[WEFT_EP_TIMER_BATCH];
	unsigned int n = 0;

	/* An endpoint that sets its timer to "at once" again is handled by the next call. */
	while (n < WEFT_EP_TIMER_BATCH && weft_deadlines_first(timers) <= w->now) {
		ep = w->ep_table[weft_deadlines_pop(timers)];
		due[n] = ep;
		generation[n++] = ep->generation;
	}
	w->conns->looks += n;
	/* Callbacks may retire other endpoints, which are not freed before this returns. */
	for (unsigned int i = 0; i < n; i++)
		if (due[i]->generation == generation[i])
			ep_timer(due[i]);
	if (weft_deadlines_first(timers) < w->next_timer)
		w->next_timer = weft_deadlines_first(timers);
	return n;
}

unsigned int weft_conns_timers(struct weft_worker *w)
{
	if (w->now < w->next_timer)
		return 0;
	w->next_timer = UINT64_MAX;
	weft_pending_timers(w);
	weft_iface_timers(w);
	return ep_timers(w);
}

void weft_conns_reap(struct weft_worker *w)
{
	struct weft_ep *ep;

	while ((ep = LIST_FIRST(&w->conns->dead))) {
		LIST_REMOVE(ep, entry);
		weft_msg_ep_fini(ep, ep->status);
		free(ep->closing);
		free(ep->lane_info);
		free(ep->failover);
		free(ep);
	}
}

int weft_conns_init(struct weft_worker *w)
{
	struct weft_conns *conns = calloc(1, sizeof(*conns));

	if (!conns)
		return -ENOMEM;
	TAILQ_INIT(&conns->idle);
	TAILQ_INIT(&conns->pending);
	for (unsigned int i = 0; i < 32; i++)
		TAILQ_INIT(&conns->ranks[i]);
	w->conns = conns;
	w->next_timer = UINT64_MAX;
	return 0;
}

void weft_conns_fini(struct weft_worker *w)
{
	struct weft_conns *conns = w->conns;

	if (!conns)
		return;
	weft_conns_reap(w);
	while (!TAILQ_EMPTY(&conns->pending))
		weft_lane_ep_destroy(w, TAILQ_FIRST(&conns->pending)->lane_ep);
	weft_partials_fini(conns);
	weft_peers_fini(conns);
	weft_deadlines_fini(&conns->timers);
	free(conns->free_slots);
	free(conns->by_sn);
	free(conns);
	w->conns = NULL;
}
