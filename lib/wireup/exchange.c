/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange of wire-up messages. An endpoint's *initiator* sends REQ, the *responder* replies
 * with REP, and the initiator confirms with ACK. Every message may arrive twice, and a duplicate
 * has no effect. Lanes keep no order, so data may overtake the ACK, and to the responder such data
 * means the same as the ACK. The responder sends data only after a message has shown that the
 * initiator has the REP. So a connection that dies before that has lost nothing, and the initiator
 * may try another pair of interfaces.
 *
 * States (weft_wireup.step):
 *	initiator  BOOT --up--> REQUESTED --REP--> ESTABLISHED
 *	responder  REPLIED --ACK, ATTACH or data--> ESTABLISHED
 *
 * A control channel loses, duplicates and reorders messages. Lane 0 is then a connection of its
 * own, whose addresses the exchange carries. Neither end is established before a message has
 * arrived over lane 0 (wireup/lanes.c):
 *	initiator  BOOT --up--> REQUESTED --REP--> LINKING
 *		   LINKING --ATTACH or ATTACHED on lane 0--> ESTABLISHED
 *	responder  REPLIED --ACK--> LINKING --ATTACHED--> ESTABLISHED  (the leader)
 *	responder  REPLIED --ATTACH on lane 0--> ESTABLISHED           (the other one)
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/host.h"
#include "base/log.h"
#include "core/config.h"
#include "msg/msg.h"
#include "wireup/codec.h"
#include "wireup/ep.h"
#include "wireup/exchange.h"
#include "wireup/lanes.h"
#include "wireup/peer.h"
#include "wireup/rails.h"
#include "wireup/select.h"

#define RETRY_FIRST_NS 200000000ull
/* over a control channel: only a repetition recovers from a loss */
#define RETRY_CONTROL_NS 20000000ull
#define RETRY_MAX_NS 2000000000ull

/* ------------------------------------------------------------------ state of an ep */

/*
 * The state has pages of its own. In the heap it would lie between blocks that the endpoints keep,
 * so the 20 KiB of each of a thousand endpoints that connect at once would stay resident.
 */
struct weft_wireup *weft_wireup_new(struct weft_ep *ep, const struct weft_address *remote)
{
	struct weft_wireup *wu =
		mmap(NULL, sizeof(*wu), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (wu == MAP_FAILED)
		return NULL;
	wu->leader = ep->worker->id < ep->remote_id;
	wu->deadline = ep->worker->now + weft_connect_timeout(ep->worker);
	wu->remote = *remote;
	ep->wireup = wu;
	weft_lanes_describe_local(ep);
	weft_lanes_find_reachable(ep, false);
	weft_ep_set_remote_name(ep, remote->name);
	return wu;
}

void weft_wireup_drop_extra(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu->redundant)
		weft_lane_ep_destroy(ep->worker, wu->redundant);
	if (wu->deferred_lane_ep)
		weft_lane_ep_destroy(ep->worker, wu->deferred_lane_ep);
	free(wu->deferred);
	wu->redundant = wu->deferred_lane_ep = NULL;
	wu->deferred = NULL;
}

static void wireup_free(struct weft_ep *ep)
{
	if (!ep->wireup)
		return;
	weft_wireup_drop_extra(ep);
	munmap(ep->wireup, sizeof(*ep->wireup));
	ep->wireup = NULL;
}

void weft_wireup_finalize(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	if (wu && wu->step == WEFT_STEP_ESTABLISHED && wu->map_final && wu->msg_type == 0 &&
	    weft_lanes_settled(ep) && !wu->too_few) {
		if (!weft_rails_settled(ep)) {
			/* Fail from the timer, because the caller may be processing a message. */
			wu->too_few = true;
			weft_ep_timer_at(ep, 0);
			return;
		}
		wireup_free(ep);
		ep->worker->ep_events->settled(ep);
	}
}

void weft_wireup_drop(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_ep *lane_ep;
	unsigned int i;

	/* Only the connecting state refers to a connection that is not, or not yet, lane 0. */
	if (wu && wu->boot && ep->lanes[0].lane_ep != wu->boot)
		weft_lane_ep_destroy(ep->worker, wu->boot);
	wireup_free(ep);
	weft_lanes_drop_key(ep);
	ep->lanes_up = 0;
	for (i = 0; i < ep->lane_room; i++) {
		lane_ep = ep->lanes[i].lane_ep;
		if (ep->lanes[i].up)
			WEFT_PROBE4(lane_down, ep, i, lane_ep->iface->name,
				    (const char *)"the endpoint ends");
		ep->lanes[i].lane_ep = NULL;
		ep->lanes[i].up = false;
		if (lane_ep)
			weft_lane_ep_destroy(ep->worker, lane_ep);
	}
}

void weft_wireup_resend(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_wire_wireup h;
	int rc;

	weft_wireup_head(ep, wu->msg_type, 0, &h);
	rc = weft_wireup_send(wu->boot, &h, wu->msg.buf, wu->msg.len);
	if (rc == -EAGAIN) {
		wu->retry_at = 0;
	} else if (wu->msg_type == WEFT_WIREUP_ACK) {
		wu->msg_type = 0; /* ACK is sent once: if it is lost, the peer repeats REP */
		wu->retry_at = UINT64_MAX;
	} else {
		wu->retry_at = ep->worker->now + wu->backoff;
		wu->backoff = wu->backoff * 2 < RETRY_MAX_NS ? wu->backoff * 2 : RETRY_MAX_NS;
	}
	weft_ep_timer_at(ep, wu->retry_at);
}

void weft_wireup_send_new(struct weft_ep *ep, enum weft_wireup_type type)
{
	ep->wireup->msg_type = type;
	ep->wireup->backoff = ep->wireup->control ? RETRY_CONTROL_NS : RETRY_FIRST_NS;
	weft_wireup_resend(ep);
}

void weft_wireup_grant(struct weft_ep *ep)
{
	if (!ep->wireup->granted)
		weft_msg_ep_grant(ep, &ep->wireup->credit_out);
	ep->wireup->granted = true;
}

/* ------------------------------------------------------------------ established */

static void wireup_established(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_worker *w = ep->worker;

	wu->step = WEFT_STEP_ESTABLISHED;
	if (wu->msg_type != WEFT_WIREUP_ACK)
		wu->msg_type = 0;
	if (wu->control) {
		wu->msg_type = 0;
		if (wu->boot)
			weft_lane_ep_destroy(w, wu->boot);
		wu->boot = NULL;
	}
	weft_wireup_drop_extra(ep);
	weft_lane_up(ep, 0);
	ep->state = WEFT_EP_UP;
	weft_log_ep(ep, WEFT_LOG_INFO, "connected");
	weft_msg_ep_connected(ep, &wu->credit_in);
	if (ep->state == WEFT_EP_UP && ep->closing) {
		ep->state = WEFT_EP_CLOSING;
		/* Notify the message layer that the ep is closing, if flush_close() has not. */
		weft_msg_ep_flush(ep, NULL, NULL);
		weft_ep_closing_step(ep);
	} else if (ep->state == WEFT_EP_UP && !ep->owned && w->accept_cb) {
		weft_peer_claim(ep);
		w->accept_cb(w, ep, ep->remote_id, ep->remote_name, w->accept_arg);
	}
}

void weft_wireup_confirm(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	wireup_established(ep);
	/* The callbacks above may have ended the ep. A leader opens lanes after the ACK. */
	if (ep->wireup == wu && !wu->leader)
		weft_lanes_start(ep);
	weft_wireup_finalize(ep);
}

void weft_wireup_linked(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	wireup_established(ep);
	if (ep->wireup == wu)
		weft_lanes_start(ep);
	weft_wireup_finalize(ep);
}

/* @return 0, or lane 0's error */
static int link_initiator(struct weft_ep *ep, const struct weft_wireup_msg *m)
{
	int rc = 0;

	if (!ep->wireup->leader)
		rc = weft_links_create(ep);
	return rc < 0 ? rc : weft_links_connect(ep, m, ep->wireup->leader);
}

static void link_after_rep(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	wu->msg_type = 0;
	if (!wu->leader)
		weft_wireup_send_new(ep, WEFT_WIREUP_ACK);
	weft_links_begin(ep);
}

void weft_wireup_rep(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu || !wu->initiator || lane_ep != wu->boot)
		return; /* a duplicate */
	if (wu->step == WEFT_STEP_LINKING && !wu->leader)
		weft_wireup_send_new(ep, WEFT_WIREUP_ACK); /* the last ACK may be lost */
	if (wu->step != WEFT_STEP_REQUESTED)
		return;
	if (!weft_links_good(ep->worker, &wu->remote, m)) {
		weft_wireup_bad(ep->worker, lane_ep, "an endpoint address has the wrong length");
		return;
	}
	wu->msg.len = 0;
	if (weft_lanes_accept(ep, m, wu->pairs[wu->pair]) < 0) {
		weft_ep_fail(ep, -EPROTO,
			     "%s answered with a lane map that lacks the connection it answered on",
			     ep->remote_name);
		return;
	}
	if (link_initiator(ep, m) < 0) {
		weft_wireup_boot_failed(ep, true);
		return;
	}
	if (!wu->leader) {
		weft_lanes_record(ep, &wu->msg);
		weft_links_record(ep, &wu->msg);
	}
	ep->remote = m->head.src_ep;
	ep->remote_secret = weft_get64(m->head.src_secret);
	wu->credit_in = m->credit;
	weft_wireup_agree_model(ep, m);
	if (wu->control) {
		link_after_rep(ep);
		return;
	}
	weft_lane_bind(ep, 0, lane_ep);
	weft_wireup_send_new(ep, WEFT_WIREUP_ACK);
	wireup_established(ep);
	if (ep->wireup == wu)
		weft_lanes_start(ep);
	weft_wireup_finalize(ep);
}

/* @return false: the ep has failed or the ACK is dropped */
static bool take_ack(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;

	if (!weft_links_good(ep->worker, &wu->remote, m)) {
		weft_wireup_bad(ep->worker, lane_ep, "an endpoint address has the wrong length");
		return false;
	}
	if (weft_lanes_accept(ep, m, wu->map[0].pair) < 0) {
		weft_ep_fail(ep, -EPROTO,
			     "%s confirmed a lane map without a valid lane 0: use one version of "
			     "Weft at both ends",
			     ep->remote_name);
		return false;
	}
	if (weft_links_connect(ep, m, true) < 0) {
		weft_ep_fail(ep, -EHOSTUNREACH, "%s cannot be connected: %s", ep->remote_name,
			     wu->reason.text);
		return false;
	}
	return true;
}

void weft_wireup_ack(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu || wu->initiator || lane_ep != wu->boot)
		return;
	if (wu->control) {
		if (!wu->leader || wu->step != WEFT_STEP_REPLIED || !m->lanes)
			return;
		if (take_ack(ep, lane_ep, m)) {
			wu->msg_type = 0;
			weft_links_begin(ep);
		}
		return;
	}
	if (wu->leader && !wu->map_final && m->lanes && !take_ack(ep, lane_ep, m))
		return;
	if (wu->step == WEFT_STEP_REPLIED)
		weft_wireup_confirm(ep);
	if (ep->wireup == wu && wu->leader && !wu->map_final)
		weft_lanes_start(ep);
	weft_wireup_finalize(ep);
}

/* ------------------------------------------------------------------ time */

/*
 * The lane has this timeout, too, and its message names the reason. The lane's clock does not count
 * time without polling, so the lane may expire later, and is queried for the reason now.
 */
static void what_is_missing(const struct weft_wireup *wu, struct weft_reason *why)
{
	const struct weft_lane_ep *boot = wu->step == WEFT_STEP_BOOT ? wu->boot : NULL;

	why->text[0] = '\0';
	if (boot && boot->ops->ep_waits_for)
		boot->ops->ep_waits_for(boot, why->text, sizeof(why->text));
	if (why->text[0] == '\0')
		*why = wu->reason;
}

static void timed_out(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	double s = (double)weft_connect_timeout(ep->worker) * 1e-9;
	struct weft_reason reason;

	what_is_missing(wu, &reason);
	if (!wu->initiator && !ep->owned)
		weft_ep_retire(ep, -ETIMEDOUT);
	else if (!wu->initiator)
		weft_ep_fail(
			ep, -ETIMEDOUT,
			"%s connected and then did not confirm within %g s: does its program call "
			"progress?",
			ep->remote_name, s);
	else if (wu->step == WEFT_STEP_LINKING)
		weft_ep_fail(
			ep, -ETIMEDOUT,
			"%s answered, but the lane %s to it did not come up within %g s: check the "
			"network between the two interfaces",
			ep->remote_name, ep->lanes[0].lane_ep->iface->name, s);
	else if (wu->step == WEFT_STEP_REQUESTED && wu->busy)
		weft_ep_fail(ep, -EUSERS, "%s refused for %g s: %s", ep->remote_name, s,
			     wu->reason.text);
	else if (weft_wireup_awaits_reply(wu) && wu->control)
		weft_ep_fail(
			ep, -ETIMEDOUT,
			"no answer from %s within %g s, sent over %s, which does not report "
			"whether the peer is there: check that its program runs, and the network",
			ep->remote_name, s, wu->boot->iface->name);
	else if (weft_wireup_awaits_reply(wu))
		weft_ep_fail(ep, -ETIMEDOUT,
			     "%s is connected to %s, but its program did not answer within %g s: "
			     "does it call progress?",
			     wu->boot->iface->name, ep->remote_name, s);
	else
		weft_ep_fail(ep, -ETIMEDOUT, "no connection to %s within %g s; %s", ep->remote_name,
			     s, reason.text);
}

static bool waits_for_pair(const struct weft_wireup *wu)
{
	return wu->step == WEFT_STEP_BOOT || (weft_wireup_awaits_reply(wu) && wu->control);
}

static void fail_too_few(struct weft_ep *ep)
{
	const struct weft_wireup *wu = ep->wireup;
	unsigned int i, n = 0;

	for (i = 0; i < ep->num_lanes; i++)
		n += ep->lanes[i].up;
	weft_ep_fail(ep, -ENETDOWN, "%u lane%s to %s, WEFT_MIN_LANES requires %u%s%s", n,
		     n == 1 ? "" : "s", ep->remote_name, ep->worker->ctx->conf->min_lanes,
		     wu->reason.text[0] != '\0' ? "; " : ": this worker has no other interface",
		     wu->reason.text);
}

void weft_wireup_timer(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	uint64_t now = ep->worker->now;

	if (!wu)
		return;
	if (wu->too_few) {
		fail_too_few(ep);
		return;
	}
	if (wu->step != WEFT_STEP_ESTABLISHED) {
		if (now >= wu->deadline) {
			timed_out(ep);
			return;
		}
		weft_ep_timer_at(ep, wu->deadline);
		if (waits_for_pair(wu) && now >= wu->pair_deadline) {
			weft_wireup_boot_failed(ep, false);
			return;
		}
		if (waits_for_pair(wu))
			weft_ep_timer_at(ep, wu->pair_deadline);
	}
	if (wu->msg_type != 0 && now >= wu->retry_at)
		weft_wireup_resend(ep);
	else if (wu->msg_type != 0)
		weft_ep_timer_at(ep, wu->retry_at);
	if (wu->step == WEFT_STEP_ESTABLISHED || wu->step == WEFT_STEP_LINKING)
		weft_lanes_timer(ep);
	weft_wireup_finalize(ep);
}

/* ------------------------------------------------------------------ refusals, failure, close */

void weft_wireup_bad(struct weft_worker *w, struct weft_lane_ep *lane_ep, const char *why)
{
	char sender[160];

	w->count.wireup_bad++;
	if (weft_log_level < WEFT_LOG_WARN)
		return;
	lane_ep->ops->ep_print(lane_ep, sender, sizeof(sender));
	weft_log_limited(&w->conns->limit_bad, WEFT_LOG_WARN,
			 "%s: dropped a wire-up message from %s: %s", lane_ep->iface->name, sender,
			 why);
}

static void send_error(struct weft_lane_ep *lane_ep, const struct weft_wire_wireup *h,
		       const struct weft_wire_next_sn *next, const char *text)
{
	struct weft_wire_wireup head = *h;
	struct weft_records r = {.len = 0};

	if (next)
		weft_records_add(&r, WEFT_RECORD_NEXT_SN, next, sizeof(*next));
	if (text)
		weft_records_add(&r, WEFT_RECORD_TEXT, text, strnlen(text, 255));
	/* Best effort: the sender of a refused REQ repeats it. */
	weft_wireup_send(lane_ep, &head, r.buf, r.len);
}

/* A duplicate may make a connection that its sender never ends. */
void weft_wireup_unwanted(struct weft_worker *w, struct weft_lane_ep *lane_ep)
{
	if (!lane_ep->user && lane_ep->iface->attr.features & WEFT_LANE_F_CONTROL)
		weft_lane_ep_destroy(w, lane_ep);
}

static void send_refusal(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			 const struct weft_wire_wireup *req, int status,
			 const struct weft_wire_next_sn *next, const char *text)
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
		.dst_secret = req->src_secret,
		.status = weft_put16((uint16_t)-status),
	};

	weft_log_limited(&w->conns->limit_refused, WEFT_LOG_INFO,
			 "refused a connection over %s: %s", lane_ep->iface->name, text);
	send_error(lane_ep, &h, next, text);
	weft_wireup_unwanted(w, lane_ep);
}

void weft_wireup_refuse(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			const struct weft_wire_wireup *req, int status, const char *text)
{
	send_refusal(w, lane_ep, req, status, NULL, text);
}

void weft_wireup_refuse_stale(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			      const struct weft_wire_wireup *req, const struct weft_peer *peer,
			      const char *text)
{
	struct weft_wire_next_sn next = {.conn_sn = weft_put32(peer->next_sn)};

	send_refusal(w, lane_ep, req, -ESTALE, &next, text);
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
		if (ep->lanes[i].up && ep->lanes[i].lane_ep->up) {
			send_error(ep->lanes[i].lane_ep, &h, NULL, text);
			return;
		}
	}
	if (ep->wireup && ep->wireup->control && ep->wireup->boot)
		send_error(ep->wireup->boot, &h, NULL, text);
}

int weft_wireup_send_close(struct weft_ep *ep, enum weft_wireup_type type)
{
	struct weft_wire_wireup h;

	weft_wireup_head(ep, type, 0, &h);
	return weft_lane_any(ep) ? weft_wireup_send(weft_lane_any(ep), &h, NULL, 0) : -ENOTCONN;
}

/* ------------------------------------------------------------------ the copy rate of both ends */

static float own_bcopy_bw(const struct weft_ep *ep)
{
	const struct weft_context *ctx = ep->worker->ctx;

	return (float)(ctx->conf->bcopy_bw > 0 ? ctx->conf->bcopy_bw
					       : weft_bcopy_bw(ctx->platform));
}

void weft_wireup_add_model(struct weft_ep *ep, struct weft_records *r)
{
	struct weft_wire_model model = {.bcopy_bw = weft_put_single(own_bcopy_bw(ep))};

	weft_records_add(r, WEFT_RECORD_MODEL, &model, sizeof(model));
}

void weft_wireup_agree_model(struct weft_ep *ep, const struct weft_wireup_msg *m)
{
	float own = own_bcopy_bw(ep);

	/* No CPU copies at less than a megabyte per second: ignore an impossible number. */
	ep->bcopy_bw = m->bcopy_bw >= 1e6f && m->bcopy_bw < own ? m->bcopy_bw : own;
}
