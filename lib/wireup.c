/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Who says what when. An endpoint's *opener* sends REQ, the *acceptor* answers REP, the opener confirms with ACK; every message may
 * come twice and nothing happens twice. Lanes keep no order, so data may overtake REP and ACK: the opener takes it as it comes, to
 * the acceptor it is as good as the ACK. The acceptor itself sends data only once it knows that the opener has the REP; so a connection
 * that dies before that has lost nothing, and the opener may try another pair of interfaces.
 *
 * States (weft_wireup.step):   opener  BOOT --up--> ASKED --REP--> JOINED      acceptor  ANSWERED --ACK or data--> JOINED
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "wireup.h"

#define RETRY_FIRST_NS 200000000ull
#define RETRY_MAX_NS   2000000000ull
#define PATIENCE_NS    1000000000ull /* for a pair that gives no answer, in the first round, when there are others */

static void next_pair(struct weft_ep *ep);
static int try_pairs(struct weft_ep *ep);
static void accept_req(struct weft_ep *ep, struct weft_lane_ep *lep, const struct weft_wireup_msg *m);

static inline uint64_t connect_timeout(const struct weft_worker *w)
{
	return w->ctx->conf->lane.connect_timeout_ns;
}

static inline struct weft_wire_ref ref_of(const struct weft_ep *ep)
{
	return (struct weft_wire_ref){weft_put32(ep->slot), weft_put32(ep->generation)};
}

static inline bool ref_equal(struct weft_wire_ref a, struct weft_wire_ref b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

void weft_wireup_head(const struct weft_ep *ep, enum weft_wireup_type type, unsigned int lane, struct weft_wire_wireup *h)
{
	*h = (struct weft_wire_wireup){
		.type = (uint8_t)type,
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.lane = (uint8_t)lane,
		.conn_sn = weft_put32(ep->conn_sn),
		.src_worker = weft_put64(ep->worker->id),
		.dst_worker = weft_put64(ep->remote_id),
		.src_ep = ref_of(ep),
		.dst_ep = ep->remote,
	};
}

/* ------------------------------------------------------------------ connections nobody has bound */

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

static void pending_add(struct weft_worker *w, struct weft_lane_ep *lep)
{
	struct weft_conns *conns = w->conns;

	if (conns->num_pending == WEFT_MAX_PENDING) {
		weft_log_limited(&conns->limit_refused, WEFT_LOG_WARN, "%s: more than %d connections that name no endpoint; refused",
				 lep->iface->name, WEFT_MAX_PENDING);
		lep->ops->ep_destroy(lep);
		return;
	}
	conns->pending[conns->num_pending++] = (struct weft_pending){lep, w->now + connect_timeout(w)};
	if (w->now + connect_timeout(w) < w->next_timer)
		w->next_timer = w->now + connect_timeout(w);
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
			weft_lep_destroy(w, conns->pending[i].lep); /* fills the hole with the last one */
			continue;
		}
		if (conns->pending[i].deadline < w->next_timer)
			w->next_timer = conns->pending[i].deadline;
		i++;
	}
}

static void bad_message(struct weft_worker *w, struct weft_lane_ep *lep, const char *why)
{
	char who[160];

	w->count.wireup_bad++;
	if (weft_log_level < WEFT_LOG_WARN)
		return;
	lep->ops->ep_print(lep, who, sizeof(who));
	weft_log_limited(&w->conns->limit_bad, WEFT_LOG_WARN, "%s: dropped a wire-up message from %s: %s", lep->iface->name, who, why);
}

/* ------------------------------------------------------------------ refusing */

static void send_error(struct weft_lane_ep *lep, const struct weft_wire_wireup *h, const char *text)
{
	struct weft_wire_wireup head = *h;
	struct weft_records r = {.len = 0};

	if (text != NULL)
		weft_records_add(&r, WEFT_RECORD_TEXT, text, strlen(text));
	/* Best effort: who asked asks again. */
	weft_wireup_send(lep, &head, r.buf, r.len);
}

/* Answer a REQ with "no". */
static void refuse(struct weft_worker *w, struct weft_lane_ep *lep, const struct weft_wire_wireup *req, int status,
		   const char *text)
{
	struct weft_wire_wireup h = {
		.type = WEFT_WIREUP_ERROR,
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.lane = WEFT_WIREUP_ALL_LANES,
		.conn_sn = req->conn_sn,
		.src_worker = weft_put64(w->id),
		.dst_worker = req->src_worker,
		.dst_ep = req->src_ep,
		.status = weft_put16((uint16_t)-status),
	};

	weft_log_limited(&w->conns->limit_refused, WEFT_LOG_INFO, "refused a connection over %s: %s", lep->iface->name, text);
	send_error(lep, &h, text);
}

void weft_wireup_send_failed(struct weft_ep *ep, int status, const char *text)
{
	struct weft_wire_wireup h;
	unsigned int i;

	if (weft_get32(ep->remote.generation) == 0)
		return;
	weft_wireup_head(ep, WEFT_WIREUP_ERROR, WEFT_WIREUP_ALL_LANES, &h);
	h.status = weft_put16((uint16_t)(status < 0 && status > -4096 ? -status : EIO));
	for (i = 0; i < ep->num_lanes; i++) {
		if (ep->lanes[i].up && ep->lanes[i].lep->up) {
			send_error(ep->lanes[i].lep, &h, text);
			return;
		}
	}
}

int weft_wireup_send_close(struct weft_ep *ep, struct weft_lane_ep *lep)
{
	struct weft_wire_wireup h;

	weft_wireup_head(ep, WEFT_WIREUP_CLOSE, 0, &h);
	return weft_wireup_send(lep, &h, NULL, 0);
}

/* ------------------------------------------------------------------ state of an ep */

static struct weft_wireup *wireup_new(struct weft_ep *ep, const struct weft_address *remote)
{
	struct weft_wireup *wu = calloc(1, sizeof(*wu));

	if (wu == NULL)
		return NULL;
	wu->authority = ep->worker->id < ep->remote_id;
	wu->deadline = ep->worker->now + connect_timeout(ep->worker);
	wu->remote = *remote;
	ep->wireup = wu;
	weft_lanes_describe_local(ep);
	weft_lanes_find_reachable(ep, false);
	memcpy(ep->remote_name, remote->name, sizeof(ep->remote_name));
	return wu;
}

/* Connections that will not become lanes. */
static void drop_extra(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu->spare != NULL)
		weft_lep_destroy(ep->worker, wu->spare);
	if (wu->stored_lep != NULL)
		weft_lep_destroy(ep->worker, wu->stored_lep);
	free(wu->stored);
	wu->spare = wu->stored_lep = NULL;
	wu->stored = NULL;
}

static void wireup_free(struct weft_ep *ep)
{
	if (ep->wireup == NULL)
		return;
	drop_extra(ep);
	free(ep->wireup);
	ep->wireup = NULL;
}

static void free_if_settled(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu != NULL && wu->step == WEFT_STEP_JOINED && wu->map_final && wu->msg_type == 0 && weft_lanes_settled(ep))
		wireup_free(ep);
}

void weft_wireup_drop(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_ep *lep;
	unsigned int i;

	/* Before lane 0 is bound the connection is known to the connecting state only. */
	if (wu != NULL && wu->boot != NULL && ep->lanes[0].lep == NULL)
		weft_lep_destroy(ep->worker, wu->boot);
	wireup_free(ep);
	ep->lanes_up = 0;
	for (i = 0; i < WEFT_MAX_LANES; i++) {
		lep = ep->lanes[i].lep;
		ep->lanes[i].lep = NULL;
		ep->lanes[i].up = false;
		if (lep != NULL)
			weft_lep_destroy(ep->worker, lep);
	}
}

/* Send, or send again, what the current step wants sent. */
static void send_current(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_wire_wireup h;
	int rc;

	weft_wireup_head(ep, wu->msg_type, 0, &h);
	rc = weft_wireup_send(wu->boot, &h, wu->msg.buf, wu->msg.len);
	if (rc == -EAGAIN) {
		wu->retry_at = 0;
	} else if (wu->msg_type == WEFT_WIREUP_ACK) {
		wu->msg_type = 0; /* sent once: a lane loses nothing */
		wu->retry_at = UINT64_MAX;
	} else {
		wu->retry_at = ep->worker->now + wu->backoff;
		wu->backoff = wu->backoff * 2 < RETRY_MAX_NS ? wu->backoff * 2 : RETRY_MAX_NS;
	}
	weft_ep_timer_at(ep, wu->retry_at);
}

static void start_sending(struct weft_ep *ep, enum weft_wireup_type type)
{
	ep->wireup->msg_type = type;
	ep->wireup->backoff = RETRY_FIRST_NS;
	send_current(ep);
}

static void grant(struct weft_ep *ep)
{
	if (!ep->wireup->granted)
		weft_msg_ep_grant(ep, &ep->wireup->credit_out);
	ep->wireup->granted = true;
}

/* ------------------------------------------------------------------ opener */

static void add_address(struct weft_ep *ep, struct weft_records *r)
{
	struct weft_worker *w = ep->worker;
	struct weft_address a = {
		.worker_id = w->id,
		.features = w->ctx->features,
		.num_ifaces = ep->wireup->select.num_local,
	};
	uint8_t buf[WEFT_ADDRESS_MAX];

	snprintf(a.name, sizeof(a.name), "%s", w->ctx->name);
	memcpy(a.ifaces, ep->wireup->local, a.num_ifaces * sizeof(a.ifaces[0]));
	weft_records_add(r, WEFT_RECORD_ADDRESS, buf, weft_address_pack(&a, buf));
}

/* The boot connection is up: ask. */
static void send_req(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_pair pair = wu->pairs[wu->pair];
	struct weft_wire_boot boot = {
		.src_iface = wu->local[pair.local].index,
		.dst_iface = wu->remote.ifaces[pair.remote].index,
	};

	grant(ep);
	wu->step = WEFT_STEP_ASKED;
	wu->msg.len = 0;
	add_address(ep, &wu->msg);
	weft_records_add(&wu->msg, WEFT_RECORD_BOOT, &boot, sizeof(boot));
	weft_records_add(&wu->msg, WEFT_RECORD_CREDIT, &wu->credit_out, sizeof(wu->credit_out));
	if (wu->authority) {
		weft_lanes_propose(ep, pair);
		weft_lanes_record(ep, &wu->msg);
	}
	start_sending(ep, WEFT_WIREUP_REQ);
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
	wu->msg_type = 0;
	wu->retry_at = UINT64_MAX;
	wu->pair_deadline = wu->num_pairs == 1 ? wu->deadline : ep->worker->now + wu->patience;
	iface->ops->print_address(remote->addr, remote->addr_len, words, sizeof(words));
	rc = iface->ops->ep_connect(iface, remote->addr, remote->addr_len, ep, &wu->boot);
	if (rc < 0) {
		wu->boot = NULL;
		snprintf(wu->reason, sizeof(wu->reason), "%s to %s: %s", iface->name, words, weft_strerror(rc));
		return rc;
	}
	wu->boot->index = 0;
	if (wu->reason[0] == '\0')
		snprintf(wu->reason, sizeof(wu->reason), "%s to %s: no answer", iface->name, words);
	weft_log_ep(ep, WEFT_LOG_DEBUG, "connecting %s to %s", iface->name, words);
	weft_ep_timer_at(ep, wu->pair_deadline);
	return 0;
}

/* From the current pair on, find one that can be connected. @return 0, or -EHOSTUNREACH after a round in which all said no */
static int try_pairs(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	unsigned int i, down;

	for (;;) {
		for (; wu->pair < wu->num_pairs; wu->pair++) {
			if (open_pair(ep) == 0)
				return 0;
			weft_log_ep(ep, WEFT_LOG_INFO, "%s", wu->reason);
			wu->pair_down[wu->pair] = true;
		}
		for (i = 0, down = 0; i < wu->num_pairs; i++)
			down += wu->pair_down[i];
		if (down == wu->num_pairs)
			return -EHOSTUNREACH;
		/* Some gave no answer in time: they get more of it. */
		memset(wu->pair_down, 0, sizeof(wu->pair_down));
		wu->pair = 0;
		wu->patience *= 2;
	}
}

static void next_pair(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	char reason[256];
	int rc;

	wu->pair++;
	rc = try_pairs(ep);
	if (rc < 0) {
		memcpy(reason, wu->reason, sizeof(reason));
		weft_ep_fail(ep, rc, "no connection to %s over any of %u pairs of interfaces; the last one: %s", ep->remote_name,
			     wu->num_pairs, reason);
	}
}

int weft_wireup_start(struct weft_ep *ep, const struct weft_address *remote)
{
	struct weft_wireup *wu = wireup_new(ep, remote);

	if (wu == NULL)
		return -ENOMEM;
	wu->opener = true;
	wu->patience = PATIENCE_NS;
	wu->num_pairs = weft_select_boot(&wu->select, wu->pairs, WEFT_MAX_BOOT_PAIRS);
	if (wu->num_pairs == 0) {
		weft_lanes_find_reachable(ep, true);
		return -EHOSTUNREACH;
	}
	weft_ep_timer_at(ep, wu->deadline);
	return try_pairs(ep);
}

/* Our connection is gone before the REP: answer the REQ that crossed ours, or try elsewhere. */
static void boot_failed(struct weft_ep *ep, bool definite)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_wireup_msg m;
	struct weft_lane_ep *lep;
	const char *why;
	void *stored;

	if (wu->boot != NULL)
		weft_lep_destroy(ep->worker, wu->boot);
	wu->boot = NULL;
	wu->pair_down[wu->pair] = definite;
	if (wu->stored == NULL) {
		next_pair(ep);
		return;
	}
	stored = wu->stored;
	lep = wu->stored_lep;
	wu->stored = NULL;
	wu->stored_lep = NULL;
	if (weft_wireup_parse(stored, (char *)stored + sizeof(m.head), wu->stored_len - sizeof(m.head), &m, &why) == 0)
		accept_req(ep, lep, &m);
	free(stored);
}

/* An acceptor that its user has claimed lost the opener before it was joined: it becomes the opener. */
static void restart(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	drop_extra(ep);
	if (ep->lanes[0].lep != NULL)
		weft_lep_destroy(ep->worker, ep->lanes[0].lep);
	ep->lanes[0].lep = wu->boot = NULL;
	memset(&ep->remote, 0, sizeof(ep->remote));
	wu->opener = true;
	wu->patience = PATIENCE_NS;
	wu->num_pairs = weft_select_boot(&wu->select, wu->pairs, WEFT_MAX_BOOT_PAIRS);
	wu->pair = UINT32_MAX; /* next_pair() begins with 0 */
	next_pair(ep);
}

/* ------------------------------------------------------------------ joined */

void weft_wireup_joined(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_worker *w = ep->worker;

	wu->step = WEFT_STEP_JOINED;
	if (wu->msg_type != WEFT_WIREUP_ACK)
		wu->msg_type = 0;
	drop_extra(ep);
	weft_lane_up(ep, 0);
	ep->state = WEFT_EP_UP;
	weft_log_ep(ep, WEFT_LOG_INFO, "connected");
	weft_msg_ep_connected(ep, &wu->credit_in);
	if (ep->state == WEFT_EP_UP && ep->closing != NULL) {
		ep->state = WEFT_EP_CLOSING;
		weft_msg_ep_flush(ep, NULL, NULL); /* it learns only here that the ep is closing */
		weft_ep_closing_step(ep);
	} else if (ep->state == WEFT_EP_UP && !ep->owned && w->accept_cb != NULL) {
		ep->owned = true;
		w->conns->num_unclaimed--;
		w->accept_cb(w, ep, ep->remote_id, ep->remote_name, w->accept_arg);
	}
}

/* Acceptor: the opener has our REP. */
static void confirm(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	weft_wireup_joined(ep);
	/* The callbacks above may have closed or failed the ep. As authority we wait for the ACK with the final map. */
	if (ep->wireup == wu && !wu->authority)
		weft_lanes_start(ep);
	free_if_settled(ep);
}

static void handle_rep(struct weft_ep *ep, struct weft_lane_ep *lep, const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu == NULL || !wu->opener || wu->step != WEFT_STEP_ASKED || lep != wu->boot)
		return; /* a second one */
	wu->msg.len = 0;
	if (weft_lanes_accept(ep, m, wu->pairs[wu->pair]) < 0) {
		weft_ep_fail(ep, -EPROTO, "%s answered with a lane map that lacks the connection it answered on", ep->remote_name);
		return;
	}
	if (!wu->authority)
		weft_lanes_record(ep, &wu->msg);
	ep->remote = m->head.src_ep;
	wu->credit_in = m->credit;
	weft_lane_bind(ep, 0, lep);
	start_sending(ep, WEFT_WIREUP_ACK);
	weft_wireup_joined(ep);
	if (ep->wireup == wu)
		weft_lanes_start(ep);
	free_if_settled(ep);
}

static void handle_ack(struct weft_ep *ep, struct weft_lane_ep *lep, const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu == NULL || wu->opener || lep != wu->boot)
		return;
	if (wu->authority && !wu->map_final && m->lanes != NULL && weft_lanes_accept(ep, m, wu->map[0].pair) < 0) {
		weft_ep_fail(ep, -EPROTO, "%s confirmed a lane map without lane 0", ep->remote_name);
		return;
	}
	if (wu->step == WEFT_STEP_ANSWERED)
		confirm(ep);
	if (ep->wireup == wu && wu->authority && !wu->map_final)
		weft_lanes_start(ep);
	free_if_settled(ep);
}

/* ------------------------------------------------------------------ acceptor */

/* A worker that connects from an address of a peer we know is that peer's successor: a port has one owner. */
static void check_restarted(struct weft_worker *w, uint64_t id, struct weft_lane_ep *lep,
			    const struct weft_address_iface *a)
{
	struct weft_ep *ep, *next;
	char words[128];
	unsigned int i;

	if (lep->ops->ep_is_from == NULL || !lep->ops->ep_is_from(lep, a->addr, a->addr_len))
		return;
	lep->ops->print_address(a->addr, a->addr_len, words, sizeof(words));
	for (ep = LIST_FIRST(&w->eps); ep != NULL; ep = next) {
		next = LIST_NEXT(ep, entry);
		if (ep->remote_id == id || ep->state == WEFT_EP_FAILED)
			continue;
		for (i = 0; i < ep->num_lanes; i++)
			if (ep->lanes[i].lep != NULL && ep->lanes[i].lep->iface->driver == lep->iface->driver &&
			    strcmp(ep->lane_info[i].remote, words) == 0)
				break;
		if (i == ep->num_lanes)
			continue;
		weft_ep_fail(ep, -ECONNRESET, "%s was restarted: its address %s now belongs to worker %016" PRIx64,
			     ep->remote_name, words, id);
		next = LIST_FIRST(&w->eps); /* callbacks may have changed the list; failed ones are skipped */
	}
}

static int position(const struct weft_address_iface *list, unsigned int n, unsigned int index)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (list[i].index == index)
			return (int)i;
	return -1;
}

/* Which pair the connection joins, by the REQ and by what we see. */
static int pair_of(struct weft_ep *ep, struct weft_lane_ep *lep, const struct weft_wireup_msg *m, struct weft_pair *pair)
{
	struct weft_wireup *wu = ep->wireup;
	int l = position(wu->local, wu->select.num_local, m->boot.dst_iface);
	int r = position(wu->remote.ifaces, wu->select.num_remote, m->boot.src_iface);

	if (l < 0 || r < 0 || ep->worker->ifaces[m->boot.dst_iface] != lep->iface ||
	    strcmp(wu->remote.ifaces[r].driver, lep->iface->driver->name) != 0)
		return -EPROTO;
	*pair = (struct weft_pair){(uint8_t)l, (uint8_t)r};
	return 0;
}

static void send_rep(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	grant(ep);
	wu->step = WEFT_STEP_ANSWERED;
	wu->msg.len = 0;
	weft_lanes_record(ep, &wu->msg);
	weft_records_add(&wu->msg, WEFT_RECORD_CREDIT, &wu->credit_out, sizeof(wu->credit_out));
	start_sending(ep, WEFT_WIREUP_REP);
}

/* Answer a REQ: @p lep becomes lane 0 of @p ep. A connection of our own that lost the crossing waits as spare. */
static void accept_req(struct weft_ep *ep, struct weft_lane_ep *lep, const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_pair pair;

	weft_pending_remove(ep->worker, lep);
	if (wu->boot != NULL && wu->boot != lep) {
		wu->boot->index = WEFT_NO_LANE;
		if (wu->spare != NULL)
			weft_lep_destroy(ep->worker, wu->spare);
		wu->spare = wu->boot;
	}
	wu->opener = false;
	wu->boot = lep;
	lep->user = ep;
	lep->index = 0;
	ep->remote = m->head.src_ep;
	wu->credit_in = m->credit;
	if (pair_of(ep, lep, m, &pair) < 0) {
		weft_ep_fail(ep, -EPROTO, "%s connected and named a pair of interfaces that does not exist", ep->remote_name);
		return;
	}
	if (wu->authority) {
		weft_lanes_propose(ep, pair);
	} else if (m->lanes == NULL || weft_lanes_accept(ep, m, pair) < 0) {
		weft_ep_fail(ep, -EPROTO, "%s connected without a lane map that has this connection", ep->remote_name);
		return;
	}
	weft_lane_bind(ep, 0, lep);
	weft_ep_timer_at(ep, wu->deadline);
	send_rep(ep);
}

/* Somebody new, or an endpoint nobody here has made yet. */
static void accept_new(struct weft_worker *w, struct weft_lane_ep *lep, const struct weft_wireup_msg *m,
		       const struct weft_address *remote, struct weft_peer *peer)
{
	struct weft_conns *conns = w->conns;
	struct weft_ep *ep;
	char text[192];

	if (conns->num_unclaimed >= w->ctx->conf->max_passive_eps) {
		snprintf(text, sizeof(text), "%s has %u connections that nobody has claimed (WEFT_MAX_UNCLAIMED_EPS)", w->ctx->name,
			 conns->num_unclaimed);
		refuse(w, lep, &m->head, -EUSERS, text);
		return;
	}
	ep = weft_ep_alloc(w, peer, weft_get32(m->head.conn_sn), false);
	if (ep == NULL || wireup_new(ep, remote) == NULL) {
		refuse(w, lep, &m->head, -ENOMEM, "out of memory");
		if (ep != NULL)
			weft_ep_retire(ep, -ENOMEM);
		return;
	}
	w->count.eps_accepted++;
	accept_req(ep, lep, m);
}

/* The REQ crossed ours, or its opener tries another pair, or it is a retry. */
static void accept_known(struct weft_ep *ep, struct weft_lane_ep *lep, const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_worker *w = ep->worker;

	if (wu == NULL || wu->step == WEFT_STEP_JOINED || ep->state == WEFT_EP_FAILED) {
		/* The very endpoint we are joined with: its REQ lost the crossing and was late. It ends that connection itself. */
		if (ep->state != WEFT_EP_FAILED && ref_equal(ep->remote, m->head.src_ep))
			return;
		refuse(w, lep, &m->head, -ESTALE, "this endpoint is connected already");
		return;
	}
	if (!wu->opener) {
		/* The opener gave its first connection up before our REP got there. */
		if (!ref_equal(ep->remote, m->head.src_ep)) {
			refuse(w, lep, &m->head, -ESTALE, "this endpoint is being connected by another one");
			return;
		}
		if (ep->lanes[0].lep != NULL)
			weft_lep_destroy(w, ep->lanes[0].lep);
		ep->lanes[0].lep = wu->boot = NULL;
		accept_req(ep, lep, m);
		return;
	}
	accept_req(ep, lep, m);
}

/* The lower id has asked too, so its own connection wins; the other REQ is kept for the case that this connection fails. */
static bool store_req(struct weft_ep *ep, struct weft_lane_ep *lep, const struct weft_wire_wireup *head, const void *records,
		      size_t len)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu == NULL || !wu->opener || !wu->authority || wu->step != WEFT_STEP_ASKED)
		return false;
	if (wu->stored != NULL && wu->stored_lep != lep)
		weft_lep_destroy(ep->worker, wu->stored_lep);
	free(wu->stored);
	wu->stored_len = sizeof(*head) + len;
	wu->stored = malloc(wu->stored_len);
	wu->stored_lep = NULL;
	if (wu->stored == NULL)
		return true; /* the peer asks again */
	memcpy(wu->stored, head, sizeof(*head));
	memcpy((char *)wu->stored + sizeof(*head), records, len);
	wu->stored_lep = lep;
	lep->user = ep;
	lep->index = WEFT_NO_LANE;
	weft_pending_remove(ep->worker, lep);
	return true;
}

/* A REQ on a connection that is bound already: a retry. */
static void req_again(struct weft_ep *ep, struct weft_lane_ep *lep)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu != NULL && !wu->opener && wu->step == WEFT_STEP_ANSWERED && wu->boot == lep)
		send_current(ep);
}

static void handle_req(struct weft_worker *w, struct weft_lane_ep *lep, const struct weft_wireup_msg *m, const void *records,
		       size_t len)
{
	uint64_t id = weft_get64(m->head.src_worker);
	uint32_t sn = weft_get32(m->head.conn_sn);
	struct weft_address remote;
	struct weft_peer *peer;
	struct weft_ep *ep;
	char why[128];
	int r;

	if (lep->user != NULL) {
		req_again(lep->user, lep);
		return;
	}
	if (weft_address_unpack(&remote, m->address, m->address_len, why, sizeof(why)) < 0 || remote.worker_id != id) {
		bad_message(w, lep, remote.worker_id != 0 && remote.worker_id != id ? "the address is another worker's" : why);
		return;
	}
	r = position(remote.ifaces, remote.num_ifaces, m->boot.src_iface);
	if (r >= 0)
		check_restarted(w, id, lep, &remote.ifaces[r]);
	peer = weft_peer_get(w->conns, id);
	if (peer == NULL) {
		refuse(w, lep, &m->head, -ENOMEM, "out of memory");
		return;
	}
	ep = weft_peer_ep(peer, sn);
	if (ep != NULL) {
		if (!store_req(ep, lep, &m->head, records, len))
			accept_known(ep, lep, m);
	} else if (weft_peer_sn_used(peer, sn)) {
		refuse(w, lep, &m->head, -ESTALE, "this endpoint was closed");
	} else {
		accept_new(w, lep, m, &remote, peer);
	}
}

/* ------------------------------------------------------------------ errors */

/* Our number was used up at the peer before we knew: take the next one and ask again. */
static bool renumber(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu == NULL || !wu->opener || wu->step != WEFT_STEP_ASKED || ep->peer == NULL || ep->worker->now >= wu->deadline)
		return false;
	ep->conn_sn = ep->peer->next_sn;
	weft_peer_sn_use(ep->peer, ep->conn_sn);
	start_sending(ep, WEFT_WIREUP_REQ);
	return true;
}

static void handle_error(struct weft_ep *ep, const struct weft_wireup_msg *m)
{
	const char *text = m->text[0] != '\0' ? m->text : weft_strerror(-(int)weft_get16(m->head.status));
	int status = -(int)weft_get16(m->head.status);
	struct weft_wireup *wu = ep->wireup;
	unsigned int n = m->head.lane;

	if (n != WEFT_WIREUP_ALL_LANES) {
		if (wu != NULL && wu->attach[n] != WEFT_ATTACH_NONE && wu->attach[n] != WEFT_ATTACH_DROP) {
			weft_lane_leave_out(ep, n, text, false);
			free_if_settled(ep);
		}
		return;
	}
	if (wu == NULL || wu->step == WEFT_STEP_JOINED)
		weft_ep_fail(ep, -ECONNRESET, "%s gave up: %s", ep->remote_name, text);
	else if (status != -ESTALE || !renumber(ep))
		weft_ep_fail(ep, status, "%s refused: %s", ep->remote_name, text);
}

/* ------------------------------------------------------------------ in */

static void other_version(struct weft_worker *w, struct weft_lane_ep *lep, const struct weft_wire_wireup *h)
{
	struct weft_ep *ep = lep->user;
	char text[128];

	w->count.wireup_bad++;
	snprintf(text, sizeof(text), "protocol version %u.%u here, %u.%u there", WEFT_WIRE_MAJOR, WEFT_WIRE_MINOR, h->major, h->minor);
	if (ep != NULL)
		weft_ep_fail(ep, -EPROTONOSUPPORT, "%s runs an incompatible Weft: %s", ep->remote_name, text);
	else if (h->type == WEFT_WIREUP_REQ)
		refuse(w, lep, h, -EPROTONOSUPPORT, text);
}

/* Which endpoint a message other than REQ is for. NULL = none that is here; counted */
static struct weft_ep *addressee(struct weft_worker *w, struct weft_lane_ep *lep, const struct weft_wire_wireup *h)
{
	struct weft_ep *ep = weft_ep_of_ref(w, h->dst_ep);
	bool bound = lep->user == ep || (lep->user == NULL && h->type == WEFT_WIREUP_ATTACH);

	if (ep != NULL && bound && ep->state != WEFT_EP_FAILED) {
		if (ep->remote_id == weft_get64(h->src_worker))
			return ep;
		/* Who refuses our REQ may be another worker than we asked for: the one that has its address now. */
		if (h->type == WEFT_WIREUP_ERROR && ep->wireup != NULL && ep->wireup->boot == lep &&
		    ep->wireup->step == WEFT_STEP_ASKED)
			return ep;
	}
	w->count.wireup_stale++;
	return NULL;
}

static void dispatch(struct weft_worker *w, struct weft_lane_ep *lep, const struct weft_wire_wireup *h, const void *records,
		     size_t len)
{
	struct weft_wireup_msg m;
	const char *why;
	struct weft_ep *ep;
	char text[160];

	if (h->major != WEFT_WIRE_MAJOR) {
		other_version(w, lep, h);
		return;
	}
	if (weft_wireup_parse(h, records, len, &m, &why) < 0) {
		bad_message(w, lep, why);
		return;
	}
	if (weft_get64(h->src_worker) == w->id) {
		bad_message(w, lep, "it claims to be from this worker");
		return;
	}
	if (weft_get64(h->dst_worker) != w->id) {
		w->count.wireup_stale++;
		snprintf(text, sizeof(text), "worker %016" PRIx64 " is not here any more; %.64s has its network address now",
			 weft_get64(h->dst_worker), w->ctx->name);
		if (h->type == WEFT_WIREUP_REQ)
			refuse(w, lep, h, -ECONNREFUSED, text);
		return;
	}
	if (h->type == WEFT_WIREUP_REQ) {
		handle_req(w, lep, &m, records, len);
		return;
	}
	ep = addressee(w, lep, h);
	if (ep == NULL)
		return;
	switch (h->type) {
	case WEFT_WIREUP_REP:
		handle_rep(ep, lep, &m);
		break;
	case WEFT_WIREUP_ACK:
		handle_ack(ep, lep, &m);
		break;
	case WEFT_WIREUP_ATTACH:
		if (ep->wireup != NULL && !ep->wireup->opener && ep->wireup->step == WEFT_STEP_ANSWERED)
			confirm(ep);
		if (ep->state != WEFT_EP_FAILED && ep->worker == w)
			weft_lanes_attach(w, ep, lep, &m);
		free_if_settled(ep);
		break;
	case WEFT_WIREUP_ATTACHED:
		weft_lanes_attached(ep, lep, &m);
		free_if_settled(ep);
		break;
	case WEFT_WIREUP_CLOSE:
		weft_ep_remote_closed(ep, "closed the connection");
		break;
	case WEFT_WIREUP_ERROR:
		handle_error(ep, &m);
		break;
	}
}

/* Data where none is due yet: it may have overtaken the message that makes it due. */
static int early_data(struct weft_worker *w, struct weft_lane_ep *lep, uint8_t am_id, const void *data, size_t length,
		      void *desc)
{
	struct weft_ep *ep = lep->user;
	unsigned int n = lep->index;

	if (ep == NULL || n >= WEFT_MAX_LANES) {
		/* The lane has acknowledged it, so it cannot be dropped in silence: end the connection. */
		w->count.unbound++;
		weft_log_limited(&w->conns->limit_bad, WEFT_LOG_WARN, "%s: data on a connection that belongs to no endpoint; connection closed",
				 lep->iface->name);
		if (ep == NULL)
			weft_lep_destroy(w, lep);
		else
			weft_wireup_event(w, lep, WEFT_LANE_EV_DOWN, -EPROTO, "data on a connection that carries no lane");
		return 0;
	}
	if (ep->state == WEFT_EP_FAILED)
		return 0;
	if (ep->wireup != NULL && ep->wireup->step == WEFT_STEP_ANSWERED)
		confirm(ep);
	else if (ep->wireup != NULL && ep->wireup->attach[n] == WEFT_ATTACH_SENT) {
		ep->wireup->attach[n] = WEFT_ATTACH_NONE;
		weft_lane_up(ep, n);
		free_if_settled(ep);
	}
	/* A callback on the way here may have closed the ep. */
	if (lep->user != ep || ep->state == WEFT_EP_FAILED)
		return 0;
	return weft_msg_recv(ep, n, am_id, data, length, desc);
}

int weft_wireup_recv(struct weft_worker *w, struct weft_lane_ep *lep, uint8_t am_id, const void *data, size_t length,
		     void *desc)
{
	struct weft_wire_wireup head;
	struct weft_partial *done;
	const void *records;
	size_t len;
	int rc;

	if (w->destroying)
		return 0;
	if (am_id != WEFT_WIRE_WIREUP)
		return early_data(w, lep, am_id, data, length, desc);
	rc = weft_partial_add(w->conns, lep, data, length, &head, &records, &len, &done);
	if (rc < 0)
		bad_message(w, lep, rc == -ENOMEM ? "out of memory" : "its length fields are wrong");
	if (rc <= 0)
		return 0;
	dispatch(w, lep, &head, records, len);
	weft_partial_done(done);
	return 0;
}

/* ------------------------------------------------------------------ events */

static void event_up(struct weft_worker *w, struct weft_lane_ep *lep, int status, const char *text)
{
	struct weft_ep *ep = lep->user;
	struct weft_wireup *wu;

	if (status > 0)
		weft_log_worker(w, WEFT_LOG_WARN, "%s: %s", lep->iface->name, text);
	if (ep == NULL) {
		pending_add(w, lep);
		return;
	}
	wu = ep->wireup;
	if (wu == NULL)
		return; /* loopback */
	if (lep == wu->boot && wu->opener && wu->step == WEFT_STEP_BOOT)
		send_req(ep);
	else if (lep->index != 0 && lep->index < WEFT_MAX_LANES)
		weft_lane_lep_up(ep, lep->index);
}

/* Drivers' sentences often begin with the iface; those that don't get it in front. */
static void note_reason(struct weft_wireup *wu, const char *iface, const char *text)
{
	bool named = strncmp(text, iface, strlen(iface)) == 0;

	snprintf(wu->reason, sizeof(wu->reason), "%s%s%s", named ? "" : iface, named ? "" : ": ", text);
}

/* A connection of an ep that is not connected yet, or one beside its lanes. @return false: it is a lane in use */
static bool connecting_lost(struct weft_ep *ep, struct weft_lane_ep *lep, bool gone, const char *text)
{
	struct weft_wireup *wu = ep->wireup;
	unsigned int n = lep->index;

	if (wu == NULL)
		return false;
	if (lep == wu->spare || lep == wu->stored_lep) {
		if (lep == wu->spare) {
			wu->spare = NULL;
		} else {
			wu->stored_lep = NULL;
			free(wu->stored);
			wu->stored = NULL;
		}
		weft_lep_destroy(ep->worker, lep);
		return true;
	}
	if (lep == wu->boot && wu->step != WEFT_STEP_JOINED) {
		note_reason(wu, lep->iface->name, gone && text[0] == '\0' ? "the peer closed the connection" : text);
		weft_log_ep(ep, WEFT_LOG_INFO, "%s", wu->reason);
		if (wu->opener)
			boot_failed(ep, true);
		else if (ep->owned)
			restart(ep);
		else
			weft_ep_retire(ep, -ECONNRESET);
		return true;
	}
	if (n < WEFT_MAX_LANES && wu->attach[n] != WEFT_ATTACH_NONE) {
		weft_lane_leave_out(ep, n, text, true);
		return true;
	}
	return false;
}

void weft_wireup_event(struct weft_worker *w, struct weft_lane_ep *lep, enum weft_lane_event ev, int status,
		       const char *text)
{
	struct weft_ep *ep = lep->user;

	if (w->destroying)
		return;
	if (text == NULL)
		text = "";
	if (ev == WEFT_LANE_EV_UP) {
		event_up(w, lep, status, text);
		return;
	}
	if (ep == NULL) {
		weft_lep_destroy(w, lep);
		return;
	}
	if (connecting_lost(ep, lep, ev == WEFT_LANE_EV_GONE, text))
		return;
	if (ev == WEFT_LANE_EV_GONE)
		weft_ep_remote_closed(ep, "closed the connection");
	else
		weft_ep_lane_down(ep, status, text);
}

/* ------------------------------------------------------------------ time */

static void timed_out(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	double s = (double)connect_timeout(ep->worker) * 1e-9;
	char reason[256];

	memcpy(reason, wu->reason, sizeof(reason));
	if (!wu->opener && !ep->owned)
		weft_ep_retire(ep, -ETIMEDOUT);
	else if (!wu->opener)
		weft_ep_fail(ep, -ETIMEDOUT, "%s connected and then did not confirm within %g s", ep->remote_name, s);
	else if (wu->step == WEFT_STEP_ASKED)
		weft_ep_fail(ep, -ETIMEDOUT, "%s is connected to %s, but its program did not answer within %g s: does it call progress?",
			     wu->boot->iface->name, ep->remote_name, s);
	else
		weft_ep_fail(ep, -ETIMEDOUT, "no connection to %s within %g s; %s", ep->remote_name, s, reason);
}

void weft_wireup_timer(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	uint64_t now = ep->worker->now;

	if (wu == NULL)
		return;
	if (wu->step != WEFT_STEP_JOINED) {
		if (now >= wu->deadline) {
			timed_out(ep);
			return;
		}
		weft_ep_timer_at(ep, wu->deadline);
		if (wu->step == WEFT_STEP_BOOT && now >= wu->pair_deadline) {
			boot_failed(ep, false);
			return;
		}
		if (wu->step == WEFT_STEP_BOOT)
			weft_ep_timer_at(ep, wu->pair_deadline);
	}
	if (wu->msg_type != 0 && now >= wu->retry_at)
		send_current(ep);
	else if (wu->msg_type != 0)
		weft_ep_timer_at(ep, wu->retry_at);
	if (wu->step == WEFT_STEP_JOINED)
		weft_lanes_timer(ep);
	free_if_settled(ep);
}

unsigned int weft_conns_timers(struct weft_worker *w)
{
	struct weft_ep *ep, *next;
	unsigned int n = 0;

	if (w->now < w->next_timer)
		return 0;
	w->next_timer = UINT64_MAX;
	pending_timers(w);
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
		weft_wireup_timer(ep);
		if (ep->closing != NULL)
			weft_ep_closing_step(ep);
		/* Callbacks may have changed the list: what is left is done at the next progress. */
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
