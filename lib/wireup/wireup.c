/* SPDX-License-Identifier: BSD-3-Clause */

#include "wireup/wireup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/config.h"
#include "msg/msg.h"
#include "wireup/codec.h"
#include "wireup/ep.h"
#include "wireup/exchange.h"
#include "wireup/failover.h"
#include "wireup/lane_return.h"
#include "wireup/lanes.h"
#include "wireup/peer.h"
#include "wireup/rails.h"

/* ------------------------------------------------------------------ errors */

/*
 * After the first ESTALE the REQ is repeated at once with a free number. If the peer refuses again,
 * the REQ is repeated as seldom as for a peer that does not reply.
 */
static bool renumber_ep(struct weft_ep *ep, const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu || !wu->initiator || wu->step != WEFT_STEP_REQUESTED || !ep->peer ||
	    ep->worker->now >= wu->deadline)
		return false;
	if (weft_get32(m->head.conn_sn) != ep->conn_sn)
		return true; /* this ERROR is about a number that the ep had before */
	if (m->have_next_sn)
		weft_peer_sn_skip(ep->peer, m->next_sn);
	weft_ep_renumber(ep, ep->peer->next_sn);
	if (wu->renumbered++ == 0)
		weft_wireup_send_new(ep, WEFT_WIREUP_REQ);
	return true;
}

/*
 * The peer has reached its limit of unclaimed connections. This is temporary if many workers
 * connect to each other at once and the peer's program has not claimed them yet. So the REQ is
 * repeated, as without a reply, until WEFT_CONNECT_TIMEOUT.
 */
static bool wait_for_room(struct weft_ep *ep, const char *text)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu->initiator || wu->step != WEFT_STEP_REQUESTED || ep->worker->now >= wu->deadline)
		return false;
	wu->busy = true;
	weft_reason_set(&wu->reason, "%s", text);
	return true;
}

static void handle_error(struct weft_ep *ep, const struct weft_wireup_msg *m)
{
	const char *text =
		m->text[0] != '\0' ? m->text : weft_strerror(-(int)weft_get16(m->head.status));
	int status = -(int)weft_get16(m->head.status);
	struct weft_wireup *wu = ep->wireup;
	unsigned int n = m->head.lane;

	if (n != WEFT_WIREUP_ALL_LANES) {
		if (wu && wu->attach[n] != WEFT_ATTACH_NONE && wu->attach[n] != WEFT_ATTACH_DROP) {
			weft_lane_leave_out(ep, n, text, false);
			weft_wireup_finalize(ep);
		}
		return;
	}
	if (!wu || wu->step == WEFT_STEP_ESTABLISHED)
		weft_ep_fail(ep, -ECONNRESET, "%s gave up: %s", ep->remote_name, text);
	else if (status == -EUSERS && wait_for_room(ep, text))
		return;
	else if (status != -ESTALE || !renumber_ep(ep, m))
		weft_ep_fail(ep, status, "%s refused: %s", ep->remote_name, text);
}

/* ------------------------------------------------------------------ the whole address */

/*
 * An endpoint that was created with a boot address requests the whole address from the worker:
 * WEFT_WIREUP_WHO and ADDRESS, over the connection to the interface of the boot address. Afterwards
 * everything is as if the whole address had been given, and the same connection carries REQ.
 *
 *	initiator  BOOT --up--> ADDRESS_REQUESTED --ADDRESS--> REQUESTED ...
 *
 * A REQ of that worker has the same effect as ADDRESS. Its sender is at the interface of the boot
 * address, or it has all the data of which the digest is made. The endpoint becomes its responder.
 */

static void send_address(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m)
{
	struct weft_wire_wireup h = {
		.type = WEFT_WIREUP_ADDRESS,
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.conn_sn = m->head.conn_sn,
		.src_worker = weft_put64(w->id),
		.dst_worker = m->head.src_worker,
		.dst_ep = m->head.src_ep,
		.dst_secret = m->head.src_secret,
	};
	struct weft_records r = {.len = 0};
	uint8_t buf[WEFT_ADDRESS_MAX];
	struct weft_address a;

	if (lane_ep->user)
		return; /* bound: the reply has arrived, and the peer has continued */
	if (weft_get64(m->head.dst_secret) != w->secret) {
		w->count.wireup_denied++;
		weft_wireup_refuse(w, lane_ep, &m->head, -EACCES,
				   "a request for a worker's address must have its secret");
		return;
	}
	weft_address_of_worker(w, &a);
	weft_records_add(&r, WEFT_RECORD_ADDRESS, buf, weft_address_pack(&a, buf));
	/* Best effort: the peer repeats its request. */
	weft_wireup_send(lane_ep, &h, r.buf, r.len);
}

static bool find_pair(struct weft_wireup *wu, unsigned int local, unsigned int remote)
{
	wu->num_pairs = weft_select_boot(&wu->select, wu->pairs, WEFT_MAX_BOOT_PAIRS);
	memset(wu->pair_down, 0, sizeof(wu->pair_down));
	for (wu->pair = 0; wu->pair < wu->num_pairs; wu->pair++) {
		struct weft_pair p = wu->pairs[wu->pair];

		if (wu->local[p.local].index == local &&
		    wu->remote.ifaces[p.remote].index == remote)
			return true;
	}
	return false;
}

static void recv_address(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_address remote;
	struct weft_pair pair;
	unsigned int l, r;
	char why[160];

	if (!wu || wu->step != WEFT_STEP_ADDRESS_REQUESTED || lane_ep != wu->boot)
		return; /* a duplicate */
	if (weft_address_unpack(&remote, m->address, m->address_len, why, sizeof(why)) < 0) {
		weft_wireup_bad(ep->worker, lane_ep, why);
		return;
	}
	if (remote.worker_id != ep->remote_id || weft_address_digest(&remote) != ep->peer->digest ||
	    weft_peer_get(ep->worker, &remote) != ep->peer) {
		weft_ep_fail(ep, -ECONNREFUSED,
			     "the worker at the boot address of %s has another address: get its "
			     "boot address again",
			     ep->remote_name);
		return;
	}
	pair = wu->pairs[wu->pair];
	l = wu->local[pair.local].index;
	r = wu->remote.ifaces[pair.remote].index;
	weft_learn_from(ep, &remote);
	if (find_pair(wu, l, r))
		weft_wireup_boot_up(ep);
	else
		weft_wireup_restart(ep);
}

/* ------------------------------------------------------------------ in */

static void other_version(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			  const struct weft_wire_wireup *h)
{
	struct weft_ep *ep = lane_ep->user;
	char text[128];

	w->count.wireup_bad++;
	snprintf(text, sizeof(text), "protocol version %u.%u here, %u.%u there", WEFT_WIRE_MAJOR,
		 WEFT_WIRE_MINOR, h->major, h->minor);
	if (ep)
		weft_ep_fail(ep, -EPROTONOSUPPORT, "%s runs an incompatible Weft: %s",
			     ep->remote_name, text);
	else if (h->type == WEFT_WIREUP_REQ || h->type == WEFT_WIREUP_WHO)
		weft_wireup_refuse(w, lane_ep, h, -EPROTONOSUPPORT, text);
}

/*
 * REP is the first message with the secret of the peer's endpoint. A peer that sends ADDRESS, or
 * refuses a REQ by ERROR, has no endpoint yet, and so no secret.
 */
static bool proves_secret(const struct weft_ep *ep, uint8_t type, uint64_t src)
{
	if (ep->remote_secret != 0)
		return src == ep->remote_secret;
	return type == WEFT_WIREUP_REP ? src != 0
				       : type == WEFT_WIREUP_ERROR || type == WEFT_WIREUP_ADDRESS;
}

/*
 * The message must arrive over a connection of the endpoint, or be the ATTACH of a new one. The
 * secrets in the message must prove that the sender is the endpoint's other end. @return NULL:
 * there is no such endpoint; the message is counted
 */
static struct weft_ep *addressed_ep(struct weft_worker *w, struct weft_lane_ep *lane_ep,
				    const struct weft_wire_wireup *h)
{
	struct weft_ep *ep = weft_ep_of_ref(w, h->dst_ep);
	bool bound =
		lane_ep->user == ep || (lane_ep->user == NULL && h->type == WEFT_WIREUP_ATTACH);
	uint64_t src = weft_get64(h->src_secret);

	if (ep && bound && ep->state != WEFT_EP_FAILED && weft_get64(h->dst_secret) == ep->secret) {
		if (ep->remote_id == weft_get64(h->src_worker) && proves_secret(ep, h->type, src))
			return ep;
		/* A worker that now has the network address may have refused our REQ. */
		if (h->type == WEFT_WIREUP_ERROR && ep->wireup && ep->wireup->boot == lane_ep &&
		    weft_wireup_awaits_reply(ep->wireup))
			return ep;
	}
	w->count.wireup_stale++;
	return NULL;
}

static bool admit_message(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			  const struct weft_wire_wireup *h, const void *records, size_t len,
			  struct weft_wireup_msg *m)
{
	const char *why;
	char text[160];

	if (h->major != WEFT_WIRE_MAJOR) {
		other_version(w, lane_ep, h);
		return false;
	}
	if (weft_wireup_parse(h, records, len, m, &why) < 0) {
		weft_wireup_bad(w, lane_ep, why);
		return false;
	}
	if (weft_get64(h->src_worker) == w->id) {
		weft_wireup_bad(w, lane_ep, "it claims to be from this worker");
		return false;
	}
	if (weft_get64(h->dst_worker) == w->id)
		return true;
	w->count.wireup_stale++;
	snprintf(text, sizeof(text),
		 "worker %016" PRIx64 " is not here any more; %.64s has its network address now",
		 weft_get64(h->dst_worker), w->ctx->name);
	if (h->type == WEFT_WIREUP_REQ || h->type == WEFT_WIREUP_WHO)
		weft_wireup_refuse(w, lane_ep, h, -ECONNREFUSED, text);
	return false;
}

static void dispatch_message(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			     const struct weft_wire_wireup *h, const void *records, size_t len)
{
	struct weft_wireup_msg m;
	struct weft_ep *ep;

	if (!admit_message(w, lane_ep, h, records, len, &m))
		return;
	if (h->type == WEFT_WIREUP_REQ) {
		weft_wireup_req(w, lane_ep, &m, records, len);
		return;
	}
	if (h->type == WEFT_WIREUP_WHO) {
		send_address(w, lane_ep, &m);
		return;
	}
	ep = addressed_ep(w, lane_ep, h);
	if (!ep)
		return;
	switch (h->type) {
	case WEFT_WIREUP_REP:
		weft_wireup_rep(ep, lane_ep, &m);
		break;
	case WEFT_WIREUP_ADDRESS:
		recv_address(ep, lane_ep, &m);
		break;
	case WEFT_WIREUP_ACK:
		weft_wireup_ack(ep, lane_ep, &m);
		break;
	case WEFT_WIREUP_ATTACH:
		if (ep->wireup && !ep->wireup->initiator && !ep->wireup->control &&
		    ep->wireup->step == WEFT_STEP_REPLIED)
			weft_wireup_confirm(ep);
		if (ep->state != WEFT_EP_FAILED && ep->worker == w &&
		    !weft_lane_return_attach(ep, lane_ep, &m))
			weft_lanes_attach(w, ep, lane_ep, &m);
		weft_wireup_finalize(ep);
		break;
	case WEFT_WIREUP_ATTACHED:
		weft_lane_return_attached(ep, lane_ep);
		weft_lanes_attached(ep, lane_ep, &m);
		weft_wireup_finalize(ep);
		break;
	case WEFT_WIREUP_LANE_DOWN:
	case WEFT_WIREUP_LANE_DOWN_ACK:
	case WEFT_WIREUP_LANE_SUSPECT:
	case WEFT_WIREUP_LANE_LINK:
		weft_failover_recv(ep, lane_ep->index, &m);
		break;
	case WEFT_WIREUP_CLOSING:
		ep->remote_closing = true;
		break;
	case WEFT_WIREUP_CLOSE:
		weft_ep_remote_closed(ep, "closed the connection");
		break;
	case WEFT_WIREUP_ERROR:
		handle_error(ep, &m);
		break;
	}
}

/* Data means the same as the ACK or ATTACHED that it has overtaken. */
static void early_lane(struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n)
{
	struct weft_wireup *wu = ep->wireup;

	weft_lane_return_attached(ep, lane_ep);
	if (wu && wu->step == WEFT_STEP_REPLIED && !wu->control) {
		weft_wireup_confirm(ep);
	} else if (wu && wu->attach[n] == WEFT_ATTACH_SENT) {
		weft_link_attached(ep, n);
		weft_wireup_finalize(ep);
	}
}

/* Data before the lane is attached: it may have overtaken the message that attaches the lane. */
static void early_data(struct weft_worker *w, struct weft_lane_ep *lane_ep, uint8_t am_id,
		       const void *data, size_t length)
{
	struct weft_ep *ep = lane_ep->user;
	unsigned int n = lane_ep->index;

	if (!ep || n >= ep->lane_room) {
		/* The lane has acknowledged the data: a silent drop would lose it. */
		w->count.unbound++;
		weft_log_limited(
			&w->conns->limit_bad, WEFT_LOG_WARN,
			"%s: data on a connection that belongs to no endpoint; connection closed",
			lane_ep->iface->name);
		if (!ep)
			weft_lane_ep_destroy(w, lane_ep);
		else
			weft_wireup_event(w, lane_ep, WEFT_LANE_EV_DOWN, -EPROTO,
					  "data on a connection that carries no lane");
		return;
	}
	if (ep->state == WEFT_EP_FAILED)
		return;
	early_lane(ep, lane_ep, n);
	/* A callback of early_lane() may have closed the ep. */
	if (lane_ep->user != ep || ep->state == WEFT_EP_FAILED)
		return;
	w->ep_events->recv(ep, n, am_id, data, length);
}

int weft_wireup_recv(struct weft_worker *w, struct weft_lane_ep *lane_ep, uint8_t am_id,
		     const void *data, size_t length)
{
	struct weft_wire_wireup head;
	struct weft_partial *done;
	const void *records;
	size_t len;
	int rc;

	if (w->destroying)
		return 0;
	if (am_id != WEFT_WIRE_WIREUP) {
		if (lane_ep->iface->attr.features & WEFT_LANE_F_CONTROL)
			weft_wireup_bad(w, lane_ep, "data on a control channel");
		else
			early_data(w, lane_ep, am_id, data, length);
		return 0;
	}
	rc = weft_partial_add(w->conns, lane_ep, data, length, &head, &records, &len, &done);
	if (rc < 0)
		weft_wireup_bad(w, lane_ep,
				rc == -ENOMEM ? "out of memory" : "its length fields are wrong");
	if (rc <= 0)
		return 0;
	dispatch_message(w, lane_ep, &head, records, len);
	weft_partial_done(done);
	return 0;
}

/* ------------------------------------------------------------------ events */

static void event_up(struct weft_worker *w, struct weft_lane_ep *lane_ep, int status,
		     const char *text)
{
	struct weft_ep *ep = lane_ep->user;
	struct weft_wireup *wu;

	/* A connection that was accepted has no endpoint yet. */
	if (status > 0 || (!ep && text[0] != '\0'))
		weft_log_worker(w, status > 0 ? WEFT_LOG_WARN : WEFT_LOG_INFO, "%s: %s",
				lane_ep->iface->name,
				weft_text_without_name(text, lane_ep->iface->name));
	if (!ep) {
		weft_pending_add(w, lane_ep);
		return;
	}
	if (status == 0 && text[0] != '\0')
		weft_log_ep(ep, WEFT_LOG_INFO, "%s", text);
	if (weft_lane_return_event(ep, lane_ep, WEFT_LANE_EV_UP, text))
		return;
	wu = ep->wireup;
	if (!wu)
		return; /* loopback */
	if (lane_ep == wu->boot && wu->initiator && wu->step == WEFT_STEP_BOOT)
		weft_wireup_boot_up(ep);
	else if (lane_ep != wu->boot && lane_ep->index < WEFT_MAX_LANES)
		weft_lane_ep_up(ep, lane_ep->index);
}

/* Texts of drivers often begin with the iface; the name is added to those that do not. */
static void note_reason(struct weft_wireup *wu, const char *iface, const char *text)
{
	bool named = strncmp(text, iface, strlen(iface)) == 0;

	weft_reason_set(&wu->reason, "%s%s%s", named ? "" : iface, named ? "" : ": ", text);
}

/*
 * A network may lose the last message of a close, and the lane then reports a reset. Inside a host
 * no message is lost, so a reset there means that the peer has died.
 */
static bool has_closed(const struct weft_lane_ep *lane_ep, bool gone, int status)
{
	return gone ||
	       (status == -ECONNRESET && !(lane_ep->iface->attr.features & WEFT_LANE_F_HOST));
}

/* @return false: the connection is a lane in use, or is not being connected */
static bool connecting_lost(struct weft_ep *ep, struct weft_lane_ep *lane_ep, bool gone, int status,
			    const char *text)
{
	struct weft_wireup *wu = ep->wireup;
	unsigned int n = lane_ep->index;

	if (!wu)
		return false;
	if (lane_ep == wu->redundant || lane_ep == wu->deferred_lane_ep) {
		if (lane_ep == wu->redundant) {
			wu->redundant = NULL;
		} else {
			wu->deferred_lane_ep = NULL;
			free(wu->deferred);
			wu->deferred = NULL;
		}
		weft_lane_ep_destroy(ep->worker, lane_ep);
		return true;
	}
	if (lane_ep == wu->boot && wu->step == WEFT_STEP_LINKING) {
		/* The exchange is over. If our ACK was lost, the timeout ends the attempt. */
		wu->boot = NULL;
		wu->msg_type = 0;
		weft_lane_ep_destroy(ep->worker, lane_ep);
		return true;
	}
	if (wu->step != WEFT_STEP_ESTABLISHED && (lane_ep == wu->boot || n == 0)) {
		note_reason(wu, lane_ep->iface->name,
			    gone && text[0] == '\0' ? "the peer closed the connection" : text);
		weft_log_ep(ep, WEFT_LOG_INFO, "%s", wu->reason.text);
		wu->closed = has_closed(lane_ep, gone, status);
		if (wu->initiator)
			weft_wireup_boot_failed(ep, true);
		else if (ep->owned)
			weft_wireup_restart(ep);
		else
			weft_ep_retire(ep, -ECONNRESET);
		return true;
	}
	if (n < ep->lane_room && !ep->lanes[n].up) {
		weft_lane_leave_out(ep, n, text, true);
		return true;
	}
	return false;
}

/* Cut further messages to the size that the path now carries best. */
static void event_size(struct weft_ep *ep, int status, const char *text)
{
	if (!ep)
		return;
	weft_log_ep(ep, status > 0 ? WEFT_LOG_WARN : WEFT_LOG_INFO, "%s", text);
	if (ep->state == WEFT_EP_UP || ep->state == WEFT_EP_CLOSING)
		weft_msg_ep_connected(ep, NULL);
}

void weft_wireup_event(struct weft_worker *w, struct weft_lane_ep *lane_ep, enum weft_lane_event ev,
		       int status, const char *text)
{
	struct weft_ep *ep = lane_ep->user;

	if (w->destroying)
		return;
	if (!text)
		text = "";
	if (ev == WEFT_LANE_EV_UP) {
		event_up(w, lane_ep, status, text);
		return;
	}
	if (ev == WEFT_LANE_EV_SUSPECT) {
		if (ep && lane_ep->index < ep->lane_room &&
		    ep->lanes[lane_ep->index].lane_ep == lane_ep)
			weft_failover_suspect(ep, lane_ep->index, status, text);
		return;
	}
	if (ev == WEFT_LANE_EV_SIZE) {
		event_size(ep, status, text);
		return;
	}
	if (!ep) {
		weft_lane_ep_destroy(w, lane_ep);
		return;
	}
	if (weft_lane_return_event(ep, lane_ep, ev, text))
		return;
	if (connecting_lost(ep, lane_ep, ev == WEFT_LANE_EV_GONE, status, text))
		return;
	if (ev == WEFT_LANE_EV_GONE)
		weft_ep_remote_closed(ep, "closed the connection");
	else
		weft_ep_lane_down(ep, status, text);
}

void weft_iface_event(void *arg, struct weft_lane_iface *iface, enum weft_lane_iface_event ev,
		      const char *text)
{
	struct weft_worker *w = arg;

	if (weft_rails_event(w, iface, ev, text))
		weft_lane_return_link(w, iface);
}

/* ------------------------------------------------------------------ timers, set-up and end */

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

/* Received frames are handled between batches of timers. */
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
		weft_lanes_free(ep);
		free(ep->unclaimed);
		free(ep->failover);
		weft_texts_free(&ep->texts);
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
	/* Hosts can influence their numbers, so the hash has a random seed. */
	conns->hosts.seed = w->hash_key.k0;
	/* Adding an entry cannot fail then. After an error the caller calls weft_conns_fini(). */
	if (weft_table_reserve(&conns->by_sn) || weft_table_reserve(&conns->by_lane_ep))
		return -ENOMEM;
	return weft_peers_init(conns);
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
	weft_table_fini(&conns->by_sn);
	weft_table_fini(&conns->by_lane_ep);
	weft_table_fini(&conns->hosts);
	free(conns);
	w->conns = NULL;
}
