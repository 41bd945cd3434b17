/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The initiator tries pairs of interfaces in their order until a connection over one of them is up,
 * and sends the REQ over it.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wireup/wireup.h"

/* Timeout of a pair without a reply, in the first round, if there are other pairs. */
#define PAIR_TIMEOUT_NS 1000000000ull

static void add_address(struct weft_ep *ep, struct weft_records *r)
{
	struct weft_worker *w = ep->worker;
	struct weft_address a = {
		.worker_id = w->id,
		.features = w->ctx->features,
		.secret = w->secret,
		.host_id = w->host_id,
		.num_ifaces = ep->wireup->select.num_local,
	};
	uint8_t buf[WEFT_ADDRESS_MAX];

	snprintf(a.name, sizeof(a.name), "%s", w->ctx->name);
	memcpy(a.ifaces, ep->wireup->local, a.num_ifaces * sizeof(a.ifaces[0]));
	weft_records_add(r, WEFT_RECORD_ADDRESS, buf, weft_address_pack(&a, buf));
}

/* Only the peer's boot address is known: send the request for its worker address. */
static void request_address(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	wu->step = WEFT_STEP_ADDRESS_REQUESTED;
	wu->msg.len = 0;
	weft_wireup_send_new(ep, WEFT_WIREUP_WHO);
}

/* The boot connection is up: send the first request. */
void weft_wireup_boot_up(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_pair pair = wu->pairs[wu->pair];
	struct weft_wire_boot boot = {
		.src_iface = wu->local[pair.local].index,
		.dst_iface = wu->remote.ifaces[pair.remote].index,
		.attempt = weft_put16(++wu->attempt_out),
	};

	if (wu->learning) {
		request_address(ep);
		return;
	}
	if (wu->leader) {
		weft_lanes_propose(ep, pair);
		if (weft_links_create(ep) < 0) {
			weft_wireup_boot_failed(ep, true);
			return;
		}
	}
	weft_wireup_grant(ep);
	wu->step = WEFT_STEP_REQUESTED;
	wu->busy = false;
	wu->msg.len = 0;
	add_address(ep, &wu->msg);
	weft_records_add(&wu->msg, WEFT_RECORD_BOOT, &boot, sizeof(boot));
	weft_records_add(&wu->msg, WEFT_RECORD_CREDIT, &wu->credit_out, sizeof(wu->credit_out));
	weft_wireup_add_model(ep, &wu->msg);
	if (wu->leader) {
		weft_lanes_record(ep, &wu->msg);
		weft_links_record(ep, &wu->msg);
	}
	weft_wireup_send_new(ep, WEFT_WIREUP_REQ);
}

/* Connect the current pair. @return 0, or the lane's error, noted as the reason */
static int open_pair(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_pair pair = wu->pairs[wu->pair];
	struct weft_lane_iface *iface = ep->worker->ifaces[wu->local[pair.local].index];
	const struct weft_address_iface *remote = &wu->remote.ifaces[pair.remote];
	char words[128];
	int rc;

	wu->step = WEFT_STEP_BOOT;
	wu->closed = false;
	wu->msg_type = 0;
	wu->retry_at = UINT64_MAX;
	wu->pair_deadline = wu->num_pairs == 1 ? wu->deadline : ep->worker->now + wu->pair_timeout;
	iface->ops->print_address(remote->addr, remote->addr_len, words, sizeof(words));
	rc = iface->ops->ep_connect(iface, remote->addr, remote->addr_len, ep, &wu->boot);
	if (rc < 0) {
		wu->boot = NULL;
		weft_reason_set(&wu->reason, "%s to %s: %s", iface->name, words, weft_strerror(rc));
		return rc;
	}
	wu->control = iface->attr.features & WEFT_LANE_F_CONTROL;
	wu->boot->index = wu->control ? WEFT_NO_LANE : 0;
	if (wu->reason.text[0] == '\0')
		weft_reason_set(&wu->reason, "%s to %s: no answer", iface->name, words);
	weft_log_ep(ep, WEFT_LOG_DEBUG, "connecting %s to %s", iface->name, words);
	weft_ep_timer_at(ep, wu->pair_deadline);
	return 0;
}

/*
 * Connect the next pair that can be connected, from the current one on. @return 0; after a round in
 * which all pairs failed -EHOSTUNREACH, or -ECONNRESET if the peer has closed the last one
 */
static int try_pairs(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	unsigned int i, down;

	for (;;) {
		for (; wu->pair < wu->num_pairs; wu->pair++) {
			if (open_pair(ep) == 0)
				return 0;
			weft_log_ep(ep, WEFT_LOG_INFO, "%s", wu->reason.text);
			wu->pair_down[wu->pair] = true;
		}
		for (i = 0, down = 0; i < wu->num_pairs; i++)
			down += wu->pair_down[i];
		if (down == wu->num_pairs)
			return wu->closed ? -ECONNRESET : -EHOSTUNREACH;
		/* Some pairs got no reply in time: try these again with a longer timeout. */
		memset(wu->pair_down, 0, sizeof(wu->pair_down));
		wu->pair = 0;
		wu->pair_timeout *= 2;
	}
}

static void next_pair(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	int rc;

	wu->pair++;
	rc = try_pairs(ep);
	if (rc == 0)
		return;
	if (wu->num_pairs == 1)
		weft_ep_fail(ep, rc, "no connection to %s: %s", ep->remote_name, wu->reason.text);
	else
		weft_ep_fail(ep, rc,
			     "no connection to %s over any of %u pairs of interfaces; the last "
			     "one: %s",
			     ep->remote_name, wu->num_pairs, wu->reason.text);
}

int weft_wireup_start(struct weft_ep *ep, const struct weft_address *remote, bool learn)
{
	struct weft_wireup *wu = weft_wireup_new(ep, remote);

	if (!wu)
		return -ENOMEM;
	wu->initiator = true;
	wu->learning = learn;
	wu->select.any_control = learn;
	wu->pair_timeout = PAIR_TIMEOUT_NS;
	wu->num_pairs = weft_select_boot(&wu->select, wu->pairs, WEFT_MAX_BOOT_PAIRS);
	if (wu->num_pairs == 0) {
		weft_lanes_find_reachable(ep, true);
		return -EHOSTUNREACH;
	}
	weft_ep_timer_at(ep, wu->deadline);
	return try_pairs(ep);
}

/* Our connection failed before the REP: accept the REQ that crossed ours, or try another pair. */
void weft_wireup_boot_failed(struct weft_ep *ep, bool definite)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_wireup_msg m;
	struct weft_lane_ep *lane_ep;
	const char *why;
	void *deferred;

	weft_links_reset(ep);
	wu->pair_down[wu->pair] = definite;
	if (!wu->deferred) {
		next_pair(ep);
		return;
	}
	deferred = wu->deferred;
	lane_ep = wu->deferred_lane_ep;
	wu->deferred = NULL;
	wu->deferred_lane_ep = NULL;
	if (weft_wireup_parse(deferred, (char *)deferred + sizeof(m.head),
			      wu->deferred_len - sizeof(m.head), &m, &why) == 0)
		weft_wireup_accept(ep, lane_ep, &m);
	free(deferred);
}

/*
 * A responder that the application has claimed lost its initiator before it was established. It
 * becomes the initiator.
 */
void weft_wireup_restart(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	weft_wireup_drop_extra(ep);
	weft_links_reset(ep);
	memset(&ep->remote, 0, sizeof(ep->remote));
	ep->remote_secret = 0;
	wu->initiator = true;
	wu->pair_timeout = PAIR_TIMEOUT_NS;
	wu->num_pairs = weft_select_boot(&wu->select, wu->pairs, WEFT_MAX_BOOT_PAIRS);
	wu->pair = UINT32_MAX; /* next_pair() begins with 0 */
	next_pair(ep);
}
