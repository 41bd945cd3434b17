/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes that die. Each side stops a lane before it sends its receive state in LANE_DOWN or
 * LANE_DOWN_ACK, so that this state is final. By the peer's state a side finds the messages that it
 * must send again. The worker with the lower id (the leader) decides. The other worker requests the
 * decision, because otherwise each could stop the lane that carries the other's LANE_DOWN. A lane
 * that is certainly lost is stopped by either worker.
 *
 *	USED --SUSPECT event--> SUSPECTED --it is alive, or no other lane is--> USED
 *	SUSPECTED --others are alive, it is not--> CLOSING (leader; else: send LANE_SUSPECT)
 *	USED or SUSPECTED --LANE_DOWN, LANE_SUSPECT, or certainly lost--> CLOSING
 *	CLOSING --LANE_DOWN or LANE_DOWN_ACK--> GONE
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/config.h"
#include "core/worker.h"
#include "msg/msg.h"
#include "wireup/codec.h"
#include "wireup/ep.h"
#include "wireup/failover.h"
#include "wireup/lane_return.h"
#include "wireup/lanes.h"
#include "wireup/peer.h"
#include "wireup/rails.h"
#include "wireup/state.h"

#define LOOK_NS 2000000ull
/* Probes without a reply after which a lane is stopped, while another lane is alive. */
#define LOOKS 4u
/* Checks after which the suspicion ends, while no lane is alive: the peer is silent. */
#define SILENT_CHECKS 8u
#define REPEAT_NS 20000000ull
#define AGAIN_MAX_NS 1000000000ull
/* A lane that was in use for longer when it failed is connected again after TRY_NS. */
#define LASTED_NS 10000000000ull

/* ------------------------------------------------------------------ state */

static uint32_t other_lanes(const struct weft_ep *ep, unsigned int n)
{
	return ep->lanes_up & ~(1u << n);
}

static bool is_up(const struct weft_ep *ep)
{
	return (ep->state == WEFT_EP_UP || ep->state == WEFT_EP_CLOSING) && ep->failover &&
	       (!ep->wireup || ep->wireup->step == WEFT_STEP_ESTABLISHED);
}

static bool can_stop(const struct weft_ep *ep, unsigned int n)
{
	return is_up(ep) && n < ep->num_lanes && ep->lanes[n].lane_ep &&
	       (ep->lanes[n].up || ep->failover->lane[n].life == WEFT_LANE_ATTACHING) &&
	       ep->lanes[n].lane_ep->ops->ep_quiesce && other_lanes(ep, n);
}

/* ------------------------------------------------------------------ out */

static void lane_down_acked(struct weft_lane_comp *comp, int status)
{
	struct weft_failover_lane *l = container_of(comp, struct weft_failover_lane, down_flush);

	l->down_flushing = false;
	l->taken += status == 0;
}

/*
 * A peer that computes does not reply, although its device may accept LANE_DOWN. Only the
 * completion of a flush shows that the peer's process has received it.
 */
static void note_taken(struct weft_failover_lane *l, struct weft_lane_ep *over)
{
	int rc;

	if (l->down_flushing)
		return;
	l->down_flush.done = lane_down_acked;
	rc = over->ops->ep_flush(over, &l->down_flush);
	l->down_flushing = rc == 0;
	l->taken += rc == WEFT_LANE_IDLE;
}

static int send_over(struct weft_ep *ep, unsigned int n, enum weft_wireup_type type, uint32_t lanes)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	struct weft_records r = {.len = 0};
	struct weft_wire_wireup h;
	int rc = -EAGAIN;

	weft_wireup_head(ep, type, n, &h);
	h.lane_epoch = weft_put16(l->epoch);
	if (type != WEFT_WIREUP_LANE_SUSPECT && l->state_len)
		weft_records_add(&r, WEFT_RECORD_RX_STATE, l->state, l->state_len);
	for (unsigned int k = 0; k < WEFT_MAX_LANES && rc < 0; k++) {
		unsigned int i = (k + l->tries) % WEFT_MAX_LANES;

		if (!(lanes >> i & 1))
			continue;
		rc = weft_wireup_send(ep->lanes[i].lane_ep, &h, r.buf, r.len);
		if (rc == 0 && type == WEFT_WIREUP_LANE_DOWN)
			note_taken(l, ep->lanes[i].lane_ep);
	}
	return rc;
}

/* Try lanes in turn, from number l->tries on; first those that are not suspect. */
static int send_notice(struct weft_ep *ep, unsigned int n, enum weft_wireup_type type)
{
	uint32_t good = other_lanes(ep, n), suspect = 0;

	for (uint32_t m = good; m; m &= m - 1)
		if (ep->failover->lane[__builtin_ctz(m)].life == WEFT_LANE_SUSPECTED)
			suspect |= m & -m;
	if (send_over(ep, n, type, good & ~suspect) == 0)
		return 0;
	return send_over(ep, n, type, suspect);
}

uint64_t weft_failover_trip(const struct weft_ep *ep)
{
	uint64_t most = 0;

	for (uint32_t m = ep->lanes_up; m; m &= m - 1) {
		const struct weft_lane_ep *lane_ep = ep->lanes[__builtin_ctz(m)].lane_ep;

		if (lane_ep->rtt_ns > most)
			most = lane_ep->rtt_ns;
	}
	return most;
}

/* Interval of the first repetitions: an answer over another lane needs a round trip. */
static uint64_t repeat_ns(const struct weft_ep *ep)
{
	uint64_t twice = 2 * weft_failover_trip(ep);

	return twice > REPEAT_NS ? twice : REPEAT_NS;
}

static void send_down(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	uint64_t wait = repeat_ns(ep) << (l->tries < 6 ? l->tries : 6);
	int rc = send_notice(ep, n, WEFT_WIREUP_LANE_DOWN);

	if (wait > AGAIN_MAX_NS)
		wait = AGAIN_MAX_NS;
	l->tries += rc == 0;
	l->look_at = ep->worker->now + (rc == 0 ? wait : LOOK_NS / 2);
	weft_ep_timer_at(ep, l->look_at);
}

static void answer_down(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	l->answer_due = send_notice(ep, n, WEFT_WIREUP_LANE_DOWN_ACK) < 0;
	if (l->answer_due)
		weft_ep_timer_at(ep, ep->worker->now + LOOK_NS / 2);
}

/* ------------------------------------------------------------------ the end of a lane */

/* At the first sign of a failure: l->since is then the time of this sign. */
static void forget_attempts(const struct weft_ep *ep, struct weft_failover_lane *l)
{
	if (ep->worker->now - l->since > LASTED_NS)
		l->returns = 0;
}

/* @return false: the lane goes on */
static bool stop_lane(struct weft_ep *ep, unsigned int n, const char *text)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep;
	int len = lane_ep->ops->ep_quiesce(lane_ep, l->state);
	bool was_up = ep->lanes[n].up;

	if (len <= 0)
		return false;
	forget_attempts(ep, l);
	l->state_len = (uint16_t)len;
	l->life = WEFT_LANE_CLOSING;
	l->since = ep->worker->now;
	l->look_at = UINT64_MAX;
	l->tries = l->taken = 0;
	l->answer_due = false;
	l->was_up = was_up;
	if (was_up) {
		WEFT_PROBE4(lane_down, ep, n, lane_ep->iface->name, text);
		ep->worker->count.lanes_lost++;
		if (weft_iface_lane_line(ep->worker, lane_ep->iface, false))
			weft_log_ep(ep, WEFT_LOG_WARN,
				    "lane %u to %s is given up: %s; the others take over", n,
				    ep->remote_name, text);
		weft_lane_format_why(ep, n, "given up: %.149s", text);
	}
	weft_lane_lost(ep, n);
	return true;
}

bool weft_failover_stop(struct weft_ep *ep, unsigned int n, const char *text)
{
	if (!can_stop(ep, n) || !stop_lane(ep, n, text))
		return false;
	if (ep->state != WEFT_EP_FAILED)
		send_down(ep, n);
	return true;
}

static void finish_lane(struct weft_ep *ep, unsigned int n, const struct weft_wireup_msg *m)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep;
	uint32_t generation = ep->generation;
	int rc = l->was_up ? -EPROTO : 0;

	weft_msg_replay_begin(ep);
	if (m->rx_state)
		rc = lane_ep->ops->ep_reap(lane_ep, m->rx_state, m->rx_state_len, weft_msg_replay,
					   ep);
	if (ep->generation != generation || ep->state == WEFT_EP_FAILED)
		return; /* a callback closed or failed the ep: its messages are gone */
	l->life = WEFT_LANE_GONE;
	l->was_up = false;
	ep->lanes_closing &= (uint16_t) ~(1u << n);
	ep->lanes[n].lane_ep = NULL;
	if (ep->wireup && ep->wireup->boot == lane_ep) {
		/* it was lane 0, over which wire-up was attaching further lanes */
		ep->wireup->boot = NULL;
		ep->wireup->msg_type = 0;
	}
	weft_lane_ep_destroy(ep->worker, lane_ep);
	weft_msg_replay_end(ep);
	if (ep->generation != generation || ep->state == WEFT_EP_FAILED)
		return;
	if (rc == -ENOMEM)
		weft_ep_fail(ep, rc,
			     "no memory to retransmit messages of lane %u, which is given up", n);
	else if (rc < 0)
		weft_ep_fail(ep, -EPROTO,
			     "%s reported an impossible receive state of lane %u, which is given "
			     "up",
			     ep->remote_name, n);
	else
		weft_lane_return_begin(ep, n);
}

/* ------------------------------------------------------------------ suspicion */

static void note_seen(struct weft_ep *ep)
{
	for (uint32_t m = ep->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		struct weft_lane_ep *lane_ep = ep->lanes[i].lane_ep;
		struct weft_failover_lane *l = &ep->failover->lane[i];
		uint64_t seen = lane_ep->ops->ep_seen ? lane_ep->ops->ep_seen(lane_ep) : l->seen;

		if (seen != l->seen)
			l->alive_at = ep->worker->now;
		l->seen = seen;
	}
}

static bool lane_lives(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_failover_lane *l = &ep->failover->lane[n];

	if (l->deaf)
		return l->caught || ep->lanes[n].lane_ep->queued < l->queued;
	return l->alive_at > l->since;
}

static bool others_live(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_failover *f = ep->failover;

	for (uint32_t m = other_lanes(ep, n); m; m &= m - 1)
		if (f->lane[__builtin_ctz(m)].alive_at > f->lane[n].since)
			return true;
	return false;
}

static void check_lanes(struct weft_ep *ep, uint32_t lanes)
{
	for (; lanes; lanes &= lanes - 1) {
		struct weft_lane_ep *lane_ep = ep->lanes[__builtin_ctz(lanes)].lane_ep;

		if (lane_ep->ops->ep_check)
			lane_ep->ops->ep_check(lane_ep);
	}
}

/* Interval of checks: at least half a round trip, so LOOKS of them take two round trips. */
static uint64_t look_ns(const struct weft_ep *ep, unsigned int n)
{
	uint64_t half = ep->lanes[n].lane_ep->rtt_ns / 2;

	return half > LOOK_NS ? half : LOOK_NS;
}

static void conclude_dead(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	if (weft_failover_leads(ep)) {
		weft_failover_stop(ep, n, l->why);
		return;
	}
	if (send_notice(ep, n, WEFT_WIREUP_LANE_SUSPECT) < 0) {
		l->look_at = ep->worker->now + LOOK_NS / 2;
		return;
	}
	l->tries++;
	l->look_at = ep->worker->now + repeat_ns(ep);
}

static void check_lane(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	note_seen(ep);
	l->look_at = ep->worker->now + look_ns(ep, n);
	if (lane_lives(ep, n) || !other_lanes(ep, n)) {
		l->life = WEFT_LANE_USED;
	} else if (others_live(ep, n)) {
		check_lanes(ep, 1u << n);
		if (++l->looks > LOOKS)
			conclude_dead(ep, n);
	} else if (++l->silent_checks > SILENT_CHECKS) {
		l->life = WEFT_LANE_USED;
	} else {
		check_lanes(ep, other_lanes(ep, n));
		l->look_at += LOOK_NS << (l->silent_checks / 2);
	}
	if (l->life == WEFT_LANE_USED)
		l->look_at = UINT64_MAX;
}

static void caught_up(struct weft_lane_comp *comp, int status)
{
	struct weft_failover_lane *l = container_of(comp, struct weft_failover_lane, caught_up);

	l->catching_up = false;
	l->caught = status == 0;
}

/* New sends may keep the deaf lane's queue from shrinking: a flush shows its recovery. */
static void wait_for_deaf(struct weft_failover_lane *l, struct weft_lane_ep *lane_ep)
{
	int rc;

	l->caught = false;
	if (l->catching_up)
		return;
	l->caught_up.done = caught_up;
	rc = lane_ep->ops->ep_flush(lane_ep, &l->caught_up);
	l->catching_up = rc == 0;
	l->caught = rc == WEFT_LANE_IDLE;
}

void weft_failover_suspect(struct weft_ep *ep, unsigned int n, int status, const char *text)
{
	struct weft_failover_lane *l;
	uint64_t at;

	if (!can_stop(ep, n))
		return;
	l = &ep->failover->lane[n];
	if (status < 0) {
		note_seen(ep);
		/* If the other lanes are silent, too, the peer may be gone. */
		if (status != -ETIMEDOUT || l->life == WEFT_LANE_ATTACHING ||
		    (l->life == WEFT_LANE_SUSPECTED && others_live(ep, n)))
			weft_failover_stop(ep, n, text);
		return;
	}
	if (l->life != WEFT_LANE_USED)
		return;
	note_seen(ep);
	snprintf(l->why, sizeof(l->why), "%s", text);
	forget_attempts(ep, l);
	l->life = WEFT_LANE_SUSPECTED;
	l->since = ep->worker->now;
	l->queued = ep->lanes[n].lane_ep->queued;
	l->deaf = status > 0;
	if (l->deaf)
		wait_for_deaf(l, ep->lanes[n].lane_ep);
	l->looks = l->silent_checks = l->tries = 0;
	at = weft_iface_suspect_at(ep->worker, ep->lanes[n].lane_ep->iface);
	if (at == l->since)
		check_lanes(ep, other_lanes(ep, n)); /* else the first check does, at l->look_at */
	l->look_at = at + LOOK_NS;
	weft_ep_timer_at(ep, l->look_at);
}

/* ------------------------------------------------------------------ in */

static void count_stale(struct weft_ep *ep)
{
	ep->worker->count.wireup_stale++;
}

static void recv_down(struct weft_ep *ep, unsigned int n, const struct weft_wireup_msg *m)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	bool is_request = m->head.type == WEFT_WIREUP_LANE_DOWN;

	if (l->life == WEFT_LANE_GONE || l->life == WEFT_LANE_CONNECTING) {
		if (is_request)
			answer_down(ep, n);
		return;
	}
	if (l->life != WEFT_LANE_CLOSING &&
	    (!is_request || !can_stop(ep, n) || !stop_lane(ep, n, "the peer has given it up"))) {
		count_stale(ep);
		return;
	}
	if (ep->state == WEFT_EP_FAILED)
		return;
	finish_lane(ep, n, m);
	if (is_request && ep->generation && ep->state != WEFT_EP_FAILED)
		answer_down(ep, n);
}

void weft_failover_recv(struct weft_ep *ep, unsigned int from, const struct weft_wireup_msg *m)
{
	uint16_t epoch = weft_get16(m->head.lane_epoch);
	unsigned int n = m->head.lane;
	struct weft_failover_lane *l;

	if (!is_up(ep) || n >= ep->num_lanes || n == from || from >= ep->num_lanes ||
	    !ep->lanes[from].up) {
		count_stale(ep);
		return;
	}
	l = &ep->failover->lane[n];
	if (m->head.type == WEFT_WIREUP_LANE_LINK) {
		if (!weft_lane_return_linked(ep, n, m))
			count_stale(ep);
		return;
	}
	/* An ATTACH of the failed connection must not be accepted any more. */
	if (l->life == WEFT_LANE_CONNECTING && epoch == l->link && !weft_failover_leads(ep))
		weft_lane_return_drop(ep, n);
	if (weft_lane_newer(epoch, l->epoch) && l->life == WEFT_LANE_GONE &&
	    m->head.type == WEFT_WIREUP_LANE_DOWN && !weft_failover_leads(ep)) {
		l->epoch = epoch;
		l->answer_due = false;
		l->state_len = 0;
	}
	if (epoch != l->epoch)
		count_stale(ep);
	else if (m->head.type != WEFT_WIREUP_LANE_SUSPECT)
		recv_down(ep, n, m);
	else if (weft_failover_leads(ep) && can_stop(ep, n))
		weft_failover_stop(ep, n, "the peer gets no acknowledgements over it");
	else
		count_stale(ep);
}

/* ------------------------------------------------------------------ time */

/* The LANE_DOWN that the peer got measure the time: all but the first six are a second apart. */
static bool too_often(const struct weft_ep *ep, const struct weft_failover_lane *l)
{
	uint64_t limit = ep->worker->ctx->conf->lane.peer_timeout_ns;

	return limit != UINT64_MAX && l->taken > 6 + limit / AGAIN_MAX_NS;
}

static void lane_step(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	switch (l->life) {
	case WEFT_LANE_SUSPECTED:
		check_lane(ep, n);
		break;
	case WEFT_LANE_CLOSING:
		if (too_often(ep, l))
			weft_ep_fail(ep, -ETIMEDOUT,
				     "%s has not reported its receive state of lane %u, which is "
				     "given up, within WEFT_PEER_TIMEOUT",
				     ep->remote_name, n);
		else
			send_down(ep, n);
		break;
	case WEFT_LANE_USED:
		l->look_at = UINT64_MAX;
		break;
	default:
		weft_lane_return_timer(ep, n);
	}
}

void weft_failover_timer(struct weft_ep *ep)
{
	uint32_t generation = ep->generation;
	uint64_t now = ep->worker->now;

	for (unsigned int n = 0; is_up(ep) && n < ep->num_lanes; n++) {
		struct weft_failover_lane *l = &ep->failover->lane[n];

		if (l->answer_due)
			answer_down(ep, n);
		if (now >= l->look_at)
			lane_step(ep, n);
		if (ep->generation != generation || ep->state == WEFT_EP_FAILED)
			return;
		if (l->look_at != UINT64_MAX)
			weft_ep_timer_at(ep, l->look_at);
	}
}
