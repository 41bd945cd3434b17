/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint that has ended is *retired*: it is in no table and has no connections, and its
 * requests have ended. The memory of an endpoint is freed when no callback can be on the stack
 * (weft_conns_reap()). An endpoint may fail or be closed inside one of its own callbacks.
 */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "core/address.h"
#include "msg/msg.h"
#include "wireup/ep.h"
#include "wireup/exchange.h"
#include "wireup/lanes.h"
#include "wireup/peer.h"

/* ------------------------------------------------------------------ tables of endpoints */

static int table_grow(struct weft_worker *w)
{
	uint32_t old = w->ep_table_size, size = old ? 2 * old : 16;
	struct weft_conns *conns = w->conns;
	struct weft_ep **table;
	uint32_t *free_slots;

	/* Reserve the memory for timers, so that setting one cannot fail. */
	if (weft_deadlines_reserve(&conns->timers, size) < 0)
		return -ENOMEM;
	free_slots = realloc(conns->free_slots, size * sizeof(*free_slots));
	if (!free_slots)
		return -ENOMEM;
	conns->free_slots = free_slots;
	table = realloc(w->ep_table, size * sizeof(*table));
	if (!table)
		return -ENOMEM;
	memset(table + old, 0, (size - old) * sizeof(*table));
	w->ep_table = table;
	w->ep_table_size = size;
	while (size > old)
		free_slots[conns->num_free_slots++] = --size;
	return 0;
}

static int ep_slot_take(struct weft_ep *ep)
{
	struct weft_worker *w = ep->worker;
	struct weft_conns *conns = w->conns;

	if (conns->num_free_slots == 0 && table_grow(w) < 0)
		return -ENOMEM;
	ep->slot = conns->free_slots[--conns->num_free_slots];
	w->ep_table[ep->slot] = ep;
	if (++w->next_generation == 0) /* 0 means "not known" on the wire */
		w->next_generation = 1;
	ep->generation = w->next_generation;
	return 0;
}

static void ep_slot_give(struct weft_ep *ep)
{
	struct weft_conns *conns = ep->worker->conns;

	weft_deadlines_remove(&conns->timers, ep->slot);
	ep->timer = 0; /* weft_ep_timer_at() has no effect from now on */
	ep->worker->ep_table[ep->slot] = NULL;
	conns->free_slots[conns->num_free_slots++] = ep->slot;
	ep->generation = 0;
}

struct weft_ep *weft_ep_of_ref(const struct weft_worker *w, struct weft_wire_ref ref)
{
	uint32_t slot = weft_get32(ref.index);
	struct weft_ep *ep = slot < w->ep_table_size ? w->ep_table[slot] : NULL;

	return ep != NULL && ep->generation == weft_get32(ref.generation) ? ep : NULL;
}

/* ------------------------------------------------------------------ by time */

/*
 * A time in the past counts as now. So an endpoint that sets its timer to 0 again and again comes
 * after all timers that are due already, and delays no other endpoint.
 */
void weft_ep_timer_at(struct weft_ep *ep, uint64_t when)
{
	struct weft_worker *w = ep->worker;

	if (when >= ep->timer)
		return;
	if (when < w->now)
		when = w->now;
	if (when < ep->timer) {
		ep->timer = when;
		weft_deadlines_by(&w->conns->timers, ep->slot, when);
	}
	if (ep->timer < w->next_timer)
		w->next_timer = ep->timer;
}

/* ------------------------------------------------------------------ birth and death */

static_assert(offsetof(struct weft_ep, first_lane) <= 64, "cache line of a receive");

struct weft_ep *weft_ep_alloc(struct weft_worker *w, struct weft_peer *peer, uint32_t conn_sn,
			      bool owned)
{
	const struct weft_platform *platform = w->ctx->platform;
	struct weft_ep *ep = aligned_alloc(64, (sizeof(*ep) + 63) / 64 * 64);

	if (!ep)
		return NULL;
	memset(ep, 0, sizeof(*ep));
	ep->worker = w;
	ep->state = WEFT_EP_CONNECTING;
	ep->owned = owned;
	ep->conn_sn = conn_sn;
	ep->remote_id = peer ? peer->id : w->id;
	ep->timer = UINT64_MAX;
	ep->remote_name = "";
	if (platform->random(platform->arg, &ep->secret, sizeof(ep->secret)) < 0) {
		free(ep);
		return NULL;
	}
	ep->secret |= 1; /* 0 = not known */
	ep->lanes = &ep->first_lane;
	ep->lane_info = &ep->first_info;
	ep->lane_room = 1;
	if (!owned) {
		ep->unclaimed = calloc(1, sizeof(*ep->unclaimed));
		if (!ep->unclaimed) {
			free(ep);
			return NULL;
		}
		ep->unclaimed->ep = ep;
	}
	if (ep_slot_take(ep) < 0)
		goto no_slot;
	if (weft_msg_ep_init(ep) < 0)
		goto no_messages;
	LIST_INSERT_HEAD(&w->eps, ep, entry);
	w->num_eps++;
	if (peer) {
		weft_peer_add_ep(w->conns, peer, ep);
		weft_peer_sn_use(peer, conn_sn);
	}
	return ep;

no_messages:
	ep_slot_give(ep);
no_slot:
	free(ep->unclaimed);
	free(ep);
	return NULL;
}

/* Connections end first: their completions run, and nothing arrives any more. Then requests end. */
static void end_messages(struct weft_ep *ep, int status)
{
	ep->state = WEFT_EP_FAILED;
	ep->status = status;
	weft_msg_ep_down(ep);
	weft_wireup_drop(ep);
	weft_msg_ep_failed(ep, status);
}

void weft_ep_retire(struct weft_ep *ep, int status)
{
	struct weft_worker *w = ep->worker;

	if (ep->generation == 0)
		return; /* it is retired already, for example by a callback */
	ep_slot_give(ep);
	weft_unclaimed_remove(ep);
	weft_peer_remove_ep(w->conns, ep);
	LIST_REMOVE(ep, entry);
	LIST_INSERT_HEAD(&w->conns->dead, ep, entry);
	w->num_eps--;
	if (ep->state != WEFT_EP_FAILED)
		end_messages(ep, status);
}

void weft_ep_close_now(struct weft_ep *ep)
{
	bool closing = ep->closing != NULL;

	weft_ep_retire(ep, -ECANCELED);
	if (closing)
		weft_ep_closing_end(ep, -ECANCELED);
}

/* ------------------------------------------------------------------ failure */

static void ep_fail_text(struct weft_ep *ep, int status, const char *why, bool notify_peer)
{
	int close_status;

	if (ep->state == WEFT_EP_FAILED)
		return;
	if (status >= 0)
		status = -EIO;
	if (ep->remote_closed) {
		/* The peer has closed the endpoint, as programs do at their end: no error. */
		weft_log_ep(ep, WEFT_LOG_INFO, "%s", why);
	} else {
		ep->worker->count.eps_failed++;
		/* Only the reason: the general text of the status may contradict it. */
		weft_log_ep(ep, ep->owned ? WEFT_LOG_ERROR : WEFT_LOG_INFO, "failed: %s",
			    why[0] != '\0' ? why : weft_strerror(status));
	}
	if (notify_peer)
		weft_wireup_send_failed(ep, status, why);
	if (ep->closing) {
		/* Messages that were not flushed are lost, and the close ends with the error. */
		close_status = weft_ep_closing_status(ep, status);
		weft_ep_retire(ep, status);
		weft_ep_closing_end(ep, close_status);
		return;
	}
	if (!ep->owned) {
		weft_ep_retire(ep, status);
		return;
	}
	end_messages(ep, status);
	/* A callback of a request may have closed the endpoint: err_cb must not run. */
	if (ep->err_cb && ep->generation != 0)
		ep->err_cb(ep, status, why, ep->err_arg);
}

void weft_ep_fail_text(struct weft_ep *ep, int status, const char *why)
{
	ep_fail_text(ep, status, why, status != -ECONNRESET);
}

void weft_ep_fail(struct weft_ep *ep, int status, const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	weft_ep_fail_text(ep, status, why);
}

void weft_ep_fail_later(struct weft_ep *ep, int status, const char *why)
{
	if (ep->state == WEFT_EP_FAILED || ep->fail_status)
		return;
	ep->fail_status = status;
	ep->fail_why = why;
	weft_ep_timer_at(ep, 0);
}

void weft_ep_remote_closed(struct weft_ep *ep, const char *text)
{
	char why[160];

	if (ep->state == WEFT_EP_FAILED)
		return;
	ep->remote_closed = true;
	snprintf(why, sizeof(why), "%s %s", ep->remote_name, text);
	if (ep->closing) {
		/* Both ends close, which is no failure. Unmatched sends end with -ECONNRESET. */
		weft_ep_retire(ep, -ECONNRESET);
		weft_ep_closing_end(ep, 0);
	} else if (!ep->owned) {
		weft_log_ep(ep, WEFT_LOG_INFO, "%s", why);
		weft_ep_retire(ep, -ECONNRESET);
	} else {
		ep_fail_text(ep, -ECONNRESET, why, false);
	}
}

void weft_ep_lane_down(struct weft_ep *ep, int status, const char *text)
{
	/*
	 * This end is closing and all its messages are delivered. The peer ends the connection
	 * because it closes, too, perhaps before its last frames arrived here. No message is lost
	 * that a request waits for.
	 */
	if (status == -ECONNRESET && ep->closing && weft_ep_closing_status(ep, status) == 0) {
		weft_ep_remote_closed(ep, "closed the connection");
		return;
	}
	weft_ep_fail(ep, status < 0 ? status : -EIO, "%s",
		     text[0] != '\0' ? text : "a lane failed");
}

/* ------------------------------------------------------------------ create */

static int create_loopback(struct weft_worker *w, struct weft_ep **out)
{
	struct weft_wire_credit credit;
	struct weft_lane_iface *iface = NULL;
	uint8_t addr[WEFT_LANE_ADDR_MAX], index = 0;
	struct weft_lane_ep *lane_ep;
	struct weft_ep *ep;
	unsigned int i;
	int rc;

	for (i = 0; i < w->num_ifaces; i++) {
		if (w->ifaces[i]->attr.features & WEFT_LANE_F_LOOPBACK) {
			iface = w->ifaces[i];
			index = (uint8_t)i;
		}
	}
	if (!iface)
		return -EHOSTUNREACH;
	ep = weft_ep_alloc(w, NULL, 0, true);
	if (!ep)
		return -ENOMEM;
	weft_ep_set_remote_name(ep, w->ctx->name);
	iface->ops->get_address(iface, addr);
	rc = iface->ops->ep_connect(iface, addr, iface->attr.dev_addr_len, ep, &lane_ep);
	if (rc < 0) {
		weft_ep_retire(ep, rc);
		return rc;
	}
	lane_ep->index = 0;
	ep->remote = (struct weft_wire_ref){weft_put32(ep->slot), weft_put32(ep->generation)};
	ep->num_lanes = 1;
	ep->lanes[0] = (struct weft_ep_lane){
		.lane_ep = lane_ep,
		.bandwidth = (float)iface->attr.bandwidth,
		.latency = (float)iface->attr.latency,
		.max_frag = lane_ep->max_msg,
		.up = true,
		.remote_domain = iface->domain,
	};
	weft_lane_set_why(ep, 0, "loopback");
	weft_lane_set_remote(ep, 0, iface, addr, iface->attr.dev_addr_len);
	ep->lane_info[0].local_iface = index;
	ep->lanes_up = 1;
	weft_msg_ep_grant(ep, &credit);
	ep->state = WEFT_EP_UP;
	weft_msg_ep_connected(ep, &credit);
	w->ep_events->settled(ep);
	*out = ep;
	return 0;
}

static int create_remote(struct weft_worker *w, const struct weft_address *remote,
			 struct weft_peer *peer, bool learn, struct weft_ep **out)
{
	struct weft_ep *ep;
	int rc;

	if (!peer)
		return -ENOMEM;
	ep = weft_peer_unclaimed(w, peer);
	if (ep) {
		weft_peer_claim(ep);
		*out = ep;
		return 0;
	}
	ep = weft_ep_alloc(w, peer, peer->next_sn, true);
	if (!ep)
		return -ENOMEM;
	weft_ep_set_remote_name(ep, remote->name);
	rc = weft_wireup_start(ep, remote, learn);
	if (rc < 0) {
		weft_log_ep(ep, WEFT_LOG_ERROR, "cannot connect to %s: %s", remote->name,
			    ep->wireup && ep->wireup->reason.text[0] != '\0'
				    ? ep->wireup->reason.text
				    : weft_strerror(rc));
		weft_ep_retire(ep, rc);
		return rc;
	}
	*out = ep;
	return 0;
}

static int create_by_boot(struct weft_worker *w, const struct weft_ep_params *p,
			  struct weft_address *remote, struct weft_ep **out)
{
	struct weft_boot b;
	char why[160];
	int rc = weft_boot_unpack(&b, p->address, p->address_length, why, sizeof(why));

	if (rc < 0) {
		weft_log_worker(w, WEFT_LOG_ERROR, "no endpoint: %s", why);
		return rc;
	}
	if (b.worker_id == w->id)
		return create_loopback(w, out);
	rc = weft_learn_address(w, &b, remote);
	if (rc < 0) {
		weft_log_worker(
			w, WEFT_LOG_ERROR,
			"no endpoint: the lane address in the remote worker's boot address has an "
			"unknown format: use the same version of Weft at both ends");
		return rc;
	}
	return create_remote(w, remote, weft_peer_of_boot(w, b.worker_id, b.digest), true, out);
}

static int create_by_address(struct weft_worker *w, const struct weft_ep_params *p,
			     struct weft_address *remote, struct weft_ep **out)
{
	char why[160];
	int rc = weft_address_unpack(remote, p->address, p->address_length, why, sizeof(why));

	if (rc < 0) {
		weft_log_worker(w, WEFT_LOG_ERROR, "no endpoint: %s", why);
		return rc;
	}
	if (remote->worker_id == w->id)
		return create_loopback(w, out);
	return create_remote(w, remote, weft_peer_get(w, remote), false, out);
}

static int ep_create(struct weft_worker *w, const struct weft_ep_params *p, struct weft_ep **out)
{
	struct weft_address *remote = malloc(sizeof(*remote));
	struct weft_ep *ep = NULL;
	int rc;

	if (!remote)
		return -ENOMEM;
	rc = weft_boot_is(p->address, p->address_length) ? create_by_boot(w, p, remote, &ep)
							 : create_by_address(w, p, remote, &ep);
	free(remote);
	if (rc < 0)
		return rc;
	ep->err_cb = p->err_cb;
	ep->err_arg = p->err_arg;
	ep->user_data = p->user_data;
	w->count.eps_created++;
	*out = ep;
	return 0;
}

int weft_ep_create(struct weft_worker *worker, const struct weft_ep_params *params,
		   struct weft_ep **ep)
{
	struct weft_ep_params p;
	int rc;

	if (!worker || !ep || !params || weft_struct_in(&p, sizeof(p), params) < 0)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_ep_create");
	weft_worker_lock(worker);
	/* Outside of progress the worker's time may be long ago: timeouts begin now. */
	if (!worker->in_progress)
		worker->now = worker->ctx->platform->now(worker->ctx->platform->arg);
	rc = worker->destroying ? -EINVAL : ep_create(worker, &p, ep);
	weft_worker_unlock(worker);
	return rc;
}

static int ep_modify(struct weft_ep *ep, const struct weft_ep_modify_params *p)
{
	if (!ep->owned || ep->closing || ep->generation == 0)
		return -EINVAL;
	if (p->fields & WEFT_EP_MODIFY_F_USER_DATA)
		ep->user_data = p->user_data;
	if (p->fields & WEFT_EP_MODIFY_F_ERR_CB) {
		/* The return value reports the failure, so the new err_cb does not run. */
		ep->err_cb = ep->state == WEFT_EP_FAILED ? NULL : p->err_cb;
		ep->err_arg = p->err_arg;
	}
	return ep->state == WEFT_EP_FAILED ? ep->status : 0;
}

int weft_ep_modify(struct weft_ep *ep, const struct weft_ep_modify_params *params)
{
	struct weft_ep_modify_params p;
	struct weft_worker *worker;
	int rc;

	if (!ep || !params || weft_struct_in(&p, sizeof(p), params) < 0 ||
	    (p.fields & ~(WEFT_EP_MODIFY_F_ERR_CB | WEFT_EP_MODIFY_F_USER_DATA)))
		return -EINVAL;
	worker = ep->worker;
	weft_worker_lock(worker);
	rc = ep_modify(ep, &p);
	weft_worker_unlock(worker);
	return rc;
}

/* ------------------------------------------------------------------ query */

int weft_ep_query(struct weft_ep *ep, struct weft_ep_attr *attr)
{
	struct weft_ep_attr out = {0};

	if (!ep || !attr)
		return -EINVAL;
	weft_worker_lock(ep->worker);
	out.user_data = ep->user_data;
	out.remote_id = ep->remote_id;
	out.remote_name = weft_texts_add(&ep->texts, ep->remote_name);
	out.status = ep->state == WEFT_EP_FAILED       ? ep->status
		     : ep->state == WEFT_EP_CONNECTING ? WEFT_INPROGRESS
						       : 0;
	out.num_lanes = ep->num_lanes;
	weft_worker_unlock(ep->worker);
	return weft_struct_out(attr, &out, sizeof(out));
}

const char *weft_lane_state_name(enum weft_lane_state state)
{
	switch (state) {
	case WEFT_LANE_STATE_CONNECTING:
		return "connecting";
	case WEFT_LANE_STATE_UP:
		return "up";
	case WEFT_LANE_STATE_DOWN:
		return "down";
	}
	return "?";
}

/* Frames of all sizes have the same number of bytes around the message. */
static size_t frame_size_of(const struct weft_lane_ep *lane_ep)
{
	const struct weft_lane_attr *attr;

	if (!lane_ep || !lane_ep->up || !lane_ep->ops->ep_best_msg)
		return 0;
	attr = &lane_ep->iface->attr;
	return attr->frame_size - attr->max_bcopy + lane_ep->ops->ep_best_msg(lane_ep);
}

int weft_ep_query_lane(struct weft_ep *ep, unsigned int index, struct weft_lane_info *info)
{
	const struct weft_ep_lane_info *from;
	struct weft_lane_info out = {0};
	const struct weft_ep_lane *lane;
	char why[WEFT_LANE_WHY_MAX];

	if (!ep || !info)
		return -EINVAL;
	if (index >= ep->num_lanes)
		return -ENOENT;
	weft_worker_lock(ep->worker);
	lane = &ep->lanes[index];
	from = &ep->lane_info[index];
	out.name = ep->worker->ifaces[from->local_iface]->name;
	out.remote = weft_texts_add(&ep->texts, weft_lane_remote(ep, index));
	out.why = weft_texts_add(&ep->texts, weft_lane_why_text(ep, index, why));
	out.state = lane->up ? WEFT_LANE_STATE_UP
		    : lane->lane_ep && !(ep->lanes_closing >> index & 1)
			    ? WEFT_LANE_STATE_CONNECTING
			    : WEFT_LANE_STATE_DOWN;
	out.bandwidth_from = from->bandwidth_from ? from->bandwidth_from : "";
	out.latency_from = from->latency_from ? from->latency_from : "";
	out.bandwidth = (double)lane->bandwidth;
	out.latency = (double)lane->latency;
	out.tx_bytes = from->tx_bytes;
	out.rx_bytes = from->rx_bytes;
	out.tx_msgs = from->tx_msgs;
	out.rx_msgs = from->rx_msgs;
	out.frame_size = frame_size_of(lane->lane_ep);
	out.retransmits = lane->lane_ep ? lane->lane_ep->retransmits : 0;
	weft_worker_unlock(ep->worker);
	return weft_struct_out(info, &out, sizeof(out));
}
