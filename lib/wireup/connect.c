/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first request between two endpoints, at both ends. The initiator tries pairs of interfaces in
 * their order until a connection over one of them is up, and sends the REQ over it. The responder
 * decides which endpoint a REQ is for. wireup/exchange.c has the rest of the exchange.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "wireup/codec.h"
#include "wireup/ep.h"
#include "wireup/exchange.h"
#include "wireup/lanes.h"
#include "wireup/peer.h"
#include "wireup/select.h"

/* ------------------------------------------------------------------ responder */

/* Least time between two checks: one check serves all endpoints of a peer, but may be lost. */
#define CHECK_AGAIN_NS UINT64_C(1000000000)

/*
 * A worker connects from an address to which one of our lanes to another worker leads. That other
 * worker may be gone, but the REQ is no proof of it. So our lane probes its far end. If the new
 * worker answers there, the connection does not exist at its end, and our lane fails.
 */
static void check_restarted(struct weft_worker *w, struct weft_peer *peer,
			    struct weft_lane_ep *lane_ep, const struct weft_wireup_msg *m,
			    const struct weft_address *remote)
{
	int r = weft_lanes_position(remote->ifaces, remote->num_ifaces, m->boot.src_iface);
	const struct weft_address_iface *a;
	char words[128];

	if (r < 0 || lane_ep->iface->attr.features & WEFT_LANE_F_CONTROL)
		return;
	if (peer->others_checked && w->now - peer->others_checked < CHECK_AGAIN_NS)
		return;
	peer->others_checked = w->now;
	a = &remote->ifaces[r];
	lane_ep->ops->print_address(a->addr, a->addr_len, words, sizeof(words));
	weft_peer_check_others(w, peer, lane_ep->iface->driver, words);
}

static int pair_of(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		   const struct weft_wireup_msg *m, struct weft_pair *pair)
{
	struct weft_wireup *wu = ep->wireup;
	int l = weft_lanes_position(wu->local, wu->select.num_local, m->boot.dst_iface);
	int r = weft_lanes_position(wu->remote.ifaces, wu->select.num_remote, m->boot.src_iface);

	if (l < 0 || r < 0 || ep->worker->ifaces[m->boot.dst_iface] != lane_ep->iface ||
	    !weft_address_is_of(lane_ep->iface->driver, wu->remote.ifaces[r].driver))
		return -EPROTO;
	*pair = (struct weft_pair){(uint8_t)l, (uint8_t)r};
	return 0;
}

static void send_rep(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	weft_wireup_grant(ep);
	wu->step = WEFT_STEP_REPLIED;
	wu->msg.len = 0;
	weft_lanes_record(ep, &wu->msg);
	weft_records_add(&wu->msg, WEFT_RECORD_CREDIT, &wu->credit_out, sizeof(wu->credit_out));
	weft_wireup_add_model(ep, &wu->msg);
	weft_links_record(ep, &wu->msg);
	weft_wireup_send_new(ep, WEFT_WIREUP_REP);
}

/* @return 0, or an error: the ep has failed */
static int make_map(struct weft_ep *ep, const struct weft_wireup_msg *m, struct weft_pair pair)
{
	struct weft_wireup *wu = ep->wireup;
	int rc;

	if (wu->leader) {
		weft_lanes_propose(ep, pair);
	} else if (!m->lanes || weft_lanes_accept(ep, m, pair) < 0) {
		weft_ep_fail(ep, -EPROTO,
			     "%s connected without a lane map that has this connection",
			     ep->remote_name);
		return -EPROTO;
	}
	if (wu->control && wu->map[0].max_frag == 0) {
		weft_ep_fail(ep, -EHOSTUNREACH,
			     "%s connected over %s, and no lane leads from here to it",
			     ep->remote_name, wu->boot->iface->name);
		return -EHOSTUNREACH;
	}
	rc = weft_links_create(ep);
	if (rc == 0 && !wu->leader)
		rc = weft_links_connect(ep, m, false);
	if (rc < 0)
		weft_ep_fail(ep, rc, "%s cannot be connected: %s", ep->remote_name,
			     wu->reason.text);
	return rc;
}

static void wireup_accept(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			  const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_pair pair;

	weft_pending_remove(ep->worker, lane_ep);
	if (wu->boot && wu->boot != lane_ep) {
		wu->boot->index = WEFT_NO_LANE;
		if (wu->redundant)
			weft_lane_ep_destroy(ep->worker, wu->redundant);
		wu->redundant = wu->boot;
	}
	wu->boot = NULL;
	weft_links_reset(ep);
	wu->initiator = false;
	wu->boot = lane_ep;
	wu->control = lane_ep->iface->attr.features & WEFT_LANE_F_CONTROL;
	wu->attempt_in = weft_get16(m->boot.attempt);
	lane_ep->user = ep;
	lane_ep->index = wu->control ? WEFT_NO_LANE : 0;
	ep->remote = m->head.src_ep;
	ep->remote_secret = weft_get64(m->head.src_secret);
	wu->credit_in = m->credit;
	weft_wireup_agree_model(ep, m);
	if (pair_of(ep, lane_ep, m, &pair) < 0) {
		weft_ep_fail(ep, -EPROTO,
			     "%s connected and named a pair of interfaces that does not exist",
			     ep->remote_name);
		return;
	}
	if (make_map(ep, m, pair) < 0)
		return;
	if (!wu->control)
		weft_lane_bind(ep, 0, lane_ep);
	else if (!wu->leader)
		wu->attach[0] = WEFT_ATTACH_AWAIT;
	if (!wu->leader && weft_lanes_make_key(ep) < 0)
		return;
	weft_ep_timer_at(ep, wu->deadline);
	send_rep(ep);
}

static void accept_new(struct weft_worker *w, struct weft_lane_ep *lane_ep,
		       const struct weft_wireup_msg *m, const struct weft_address *remote,
		       struct weft_peer *peer)
{
	struct weft_ep *ep, *goes;
	char text[224];

	if (!weft_unclaimed_room(w, lane_ep, &goes)) {
		snprintf(text, sizeof(text),
			 "%s has %u unclaimed connections, and this host has used its share of "
			 "them (WEFT_MAX_UNCLAIMED_EPS)",
			 w->ctx->name, w->conns->num_unclaimed);
		weft_wireup_refuse(w, lane_ep, &m->head, -EUSERS, text);
		return;
	}
	if (goes)
		weft_ep_fail(goes, -EUSERS,
			     "%s has as many unclaimed connections as WEFT_MAX_UNCLAIMED_EPS "
			     "allows: this one makes room for another host's",
			     w->ctx->name);
	ep = weft_ep_alloc(w, peer, weft_get32(m->head.conn_sn), false);
	if (!ep || weft_unclaimed_add(ep, lane_ep) < 0 || !weft_wireup_new(ep, remote)) {
		weft_wireup_refuse(w, lane_ep, &m->head, -ENOMEM, "out of memory");
		if (ep)
			weft_ep_retire(ep, -ENOMEM);
		return;
	}
	w->count.eps_accepted++;
	wireup_accept(ep, lane_ep, m);
}

static bool is_same(const struct weft_ep *ep, const struct weft_wire_wireup *h)
{
	return weft_ref_equal(ep->remote, h->src_ep) &&
	       ep->remote_secret == weft_get64(h->src_secret);
}

/*
 * A REQ for an endpoint that exists: it crossed ours, or its initiator tries another pair, or it is
 * repeated, or another endpoint of the peer uses the same number.
 */
static void accept_known(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m, const struct weft_address *remote)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_worker *w = ep->worker;

	if (!wu || wu->step == WEFT_STEP_ESTABLISHED || ep->state == WEFT_EP_FAILED ||
	    (wu->initiator && wu->step == WEFT_STEP_LINKING)) {
		/*
		 * The sender is the endpoint that we are connected with. This REQ lost the crossing
		 * and arrived late, or is a duplicate. The sender ends that connection itself.
		 */
		if (ep->state != WEFT_EP_FAILED && is_same(ep, &m->head)) {
			weft_wireup_unwanted(w, lane_ep);
			return;
		}
		weft_wireup_refuse_stale(w, lane_ep, &m->head, ep->peer,
					 "this connection number is in use already");
		return;
	}
	if (!wu->initiator) {
		if (!is_same(ep, &m->head)) {
			weft_wireup_refuse_stale(w, lane_ep, &m->head, ep->peer,
						 "another endpoint uses this connection number");
			return;
		}
		/* The initiator gave up an earlier connection before our REP arrived. */
		if (lane_ep->iface->attr.features & WEFT_LANE_F_CONTROL &&
		    (int16_t)(weft_get16(m->boot.attempt) - wu->attempt_in) <= 0) {
			w->count.wireup_stale++; /* a late duplicate */
			weft_wireup_unwanted(w, lane_ep);
			return;
		}
		weft_links_reset(ep);
		wireup_accept(ep, lane_ep, m);
		return;
	}
	if (wu->learning)
		weft_learn_from(ep, remote);
	wireup_accept(ep, lane_ep, m);
}

static bool is_same_sender(const struct weft_wire_wireup *a, const struct weft_wire_wireup *b)
{
	return weft_ref_equal(a->src_ep, b->src_ep) &&
	       weft_get64(a->src_secret) == weft_get64(b->src_secret);
}

/*
 * Two REQs crossed. This worker has the lower id, so its own connection wins. The other REQ is kept
 * in case ours fails. @return true: the REQ is kept or refused; false: there is no crossing
 */
static bool defer_req(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		      const struct weft_wire_wireup *head, const void *records, size_t len)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu || !wu->initiator || !wu->leader || wu->step != WEFT_STEP_REQUESTED)
		return false;
	if (wu->deferred && !is_same_sender(wu->deferred, head)) {
		weft_wireup_refuse_stale(ep->worker, lane_ep, head, ep->peer,
					 "another endpoint uses this connection number");
		return true;
	}
	if (wu->deferred && wu->deferred_lane_ep != lane_ep)
		weft_lane_ep_destroy(ep->worker, wu->deferred_lane_ep);
	free(wu->deferred);
	wu->deferred_len = sizeof(*head) + len;
	wu->deferred = malloc(wu->deferred_len);
	wu->deferred_lane_ep = NULL;
	if (!wu->deferred)
		return true; /* the REQ is lost, and the peer repeats it */
	memcpy(wu->deferred, head, sizeof(*head));
	memcpy((char *)wu->deferred + sizeof(*head), records, len);
	wu->deferred_lane_ep = lane_ep;
	lane_ep->user = ep;
	lane_ep->index = WEFT_NO_LANE;
	weft_pending_remove(ep->worker, lane_ep);
	return true;
}

static void req_again(struct weft_ep *ep, struct weft_lane_ep *lane_ep)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu && !wu->initiator && wu->step == WEFT_STEP_REPLIED && wu->boot == lane_ep)
		weft_wireup_resend(ep);
}

/*
 * @return the position of the sender's interface in its address, or -EACCES: the caller refuses the
 * REQ. The record BOOT must name this interface, which must have the driver of the connection. BOOT
 * must also name the interface of ours at which the connection arrived, because the connection's
 * origin authenticates the sender.
 */
static int boot_position(const struct weft_worker *w, const struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m, const struct weft_address *remote)
{
	int r = weft_lanes_position(remote->ifaces, remote->num_ifaces, m->boot.src_iface);

	if (r < 0 || !weft_address_is_of(lane_ep->iface->driver, remote->ifaces[r].driver))
		return -EACCES;
	if (m->boot.dst_iface >= w->num_ifaces || w->ifaces[m->boot.dst_iface] != lane_ep->iface)
		return -EACCES;
	return r;
}

/*
 * These checks prove only that the sender has our address, and that it is reachable at the
 * interface from which the connection comes. @return false: the REQ was refused or dropped
 */
static bool admit_req(struct weft_worker *w, struct weft_lane_ep *lane_ep,
		      const struct weft_wireup_msg *m, struct weft_address *remote)
{
	uint64_t id = weft_get64(m->head.src_worker);
	char why[192];
	int r;

	if (weft_get64(m->head.dst_secret) != w->secret) {
		w->count.wireup_denied++;
		snprintf(why, sizeof(why), "connecting to %.64s requires its whole worker address",
			 w->ctx->name);
		weft_wireup_refuse(w, lane_ep, &m->head, -EACCES, why);
		return false;
	}
	if (weft_address_unpack(remote, m->address, m->address_len, why, sizeof(why)) < 0 ||
	    remote->worker_id != id) {
		weft_wireup_bad(w, lane_ep,
				remote->worker_id != 0 && remote->worker_id != id
					? "the address is another worker's"
					: why);
		return false;
	}
	if (!weft_links_good(w, remote, m)) {
		weft_wireup_bad(w, lane_ep, "an endpoint address has the wrong length");
		weft_wireup_unwanted(w, lane_ep);
		return false;
	}
	r = boot_position(w, lane_ep, m, remote);
	if (r < 0) {
		w->count.wireup_denied++;
		weft_wireup_refuse(w, lane_ep, &m->head, -EACCES,
				   "the connection is not between the two interfaces that the "
				   "request names");
		return false;
	}
	if (!weft_lane_ep_is_from(lane_ep, &remote->ifaces[r])) {
		w->count.wireup_denied++;
		weft_wireup_refuse(w, lane_ep, &m->head, -EACCES,
				   "the connection does not come from the interface that the "
				   "address names: is there address translation in the path?");
		return false;
	}
	return true;
}

void weft_wireup_req(struct weft_worker *w, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m, const void *records, size_t len)
{
	uint32_t sn = weft_get32(m->head.conn_sn);
	struct weft_address remote;
	struct weft_peer *peer;
	struct weft_ep *ep;

	if (lane_ep->user) {
		req_again(lane_ep->user, lane_ep);
		return;
	}
	if (!admit_req(w, lane_ep, m, &remote))
		return;
	peer = weft_peer_get(w, &remote);
	if (!peer) {
		weft_wireup_refuse(w, lane_ep, &m->head, -ENOMEM, "out of memory");
		return;
	}
	check_restarted(w, peer, lane_ep, m, &remote);
	ep = weft_peer_ep(w, peer, sn);
	if (ep) {
		if (!defer_req(ep, lane_ep, &m->head, records, len))
			accept_known(ep, lane_ep, m, &remote);
	} else if (weft_peer_sn_used(peer, sn)) {
		weft_wireup_refuse_stale(w, lane_ep, &m->head, peer, "this endpoint was closed");
	} else {
		accept_new(w, lane_ep, m, &remote, peer);
	}
}

/* ------------------------------------------------------------------ initiator */

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

static void request_address(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	wu->step = WEFT_STEP_ADDRESS_REQUESTED;
	wu->msg.len = 0;
	weft_wireup_send_new(ep, WEFT_WIREUP_WHO);
}

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

/* @return 0, or the lane's error, noted as the reason */
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
		/* Some pairs only got no reply in time: try all again with twice the timeout. */
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
		wireup_accept(ep, lane_ep, &m);
	free(deferred);
}

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
	wu->pair = UINT32_MAX; /* next_pair() increments it to 0 */
	next_pair(ep);
}
