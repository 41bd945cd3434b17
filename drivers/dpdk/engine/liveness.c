/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/liveness.h"

#include <errno.h>
#include <stdio.h>

#include <rte_common.h>

#include "base/container.h"
#include "engine/address.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/handshake.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/mtu.h"
#include "engine/multipath.h"
#include "engine/neighbour.h"
#include "engine/outstanding.h"
#include "engine/path_open.h"
#include "engine/reliability.h"
#include "engine/window.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "lane.h"

/* ---------------------------------------------------------------- suspicion */

/*
 * A peer is suspect after this number of timeouts in a row, or if the port takes no frames, when
 * nothing has come for these ns and these round trips. LONG_NS makes the number smaller.
 */
#define SUSPECT_TIMEOUTS 5u
#define SUSPECT_NS 20000000ull
#define SUSPECT_TRIPS 3u
/* Frames of the peer arrive, yet it acknowledges nothing: ours may be too long for the path. */
#define DEAF_TIMEOUTS 7u
#define DEAF_NS 100000000ull
#define DEAF_TRIPS 5u
/*
 * ns: with this round trip and more, a timeout is longer than most pauses of hosts. So one timeout
 * more than the connection has paths is as much evidence as five short ones.
 */
#define LONG_NS 10000000u

static void conn_suspect(struct raw_conn *c, int status, const char *text)
{
	struct raw_iface *iface = c->iface;

	raw_live_reported(&c->live, iface->live_clock);
	raw_count(iface, RAW_CONN_SUSPECT);
	iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_SUSPECT, status, text);
}

/* @return the longest known round trip of a path, in ns; 0 = none is known */
static uint64_t longest(const struct raw_conn *c)
{
	uint64_t most = 0;

	for (unsigned int i = 0; i < c->path_count; i++)
		most = RTE_MAX(most, weft_rtt_known(&c->path[i].rtt));
	return most;
}

static bool enough(const struct raw_conn *c, uint64_t trip, uint8_t timeouts)
{
	if (trip >= LONG_NS)
		timeouts = (uint8_t)RTE_MIN(timeouts, 1u + c->path_count);
	return c->tx.backoff >= timeouts;
}

static void suspect_silent(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint64_t since = RTE_MAX(c->rx.seen, c->tx.round_at);
	uint64_t trip = longest(c);
	char text[200], peer[64];
	bool deaf = false;

	if (c->tx.timer == 0 || c->state != RAW_UP ||
	    !raw_live_reports(&c->live, iface->live_clock))
		return;
	if ((enough(c, trip, SUSPECT_TIMEOUTS) || iface->txq.count > 0) &&
	    iface->live_clock - since >= RTE_MAX(SUSPECT_NS, SUSPECT_TRIPS * trip))
		snprintf(text, sizeof(text), "%s: no sign of %s for %.0f ms", iface->base.name,
			 raw_peer_text(c, peer, sizeof(peer)),
			 (double)(iface->live_clock - c->rx.seen) / 1e6);
	else if (enough(c, trip, DEAF_TIMEOUTS) &&
		 iface->live_clock - c->tx.round_at >= RTE_MAX(DEAF_NS, DEAF_TRIPS * trip))
		deaf = true;
	else
		return;
	if (deaf)
		snprintf(text, sizeof(text),
			 "%s: %s answers, but a frame of %u bytes was not acknowledged for %.0f ms",
			 iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
			 raw_slot(&c->tx, c->tx.una)->bytes + c->encap.len,
			 (double)(iface->live_clock - c->tx.round_at) / 1e6);
	conn_suspect(c, deaf, text);
}

void raw_suspect_idle(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[160], peer[64];

	if (!raw_live_reports(&c->live, iface->live_clock))
		return;
	snprintf(text, sizeof(text), "%s: no sign of %s for %.1f s, after %u probes",
		 iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
		 (double)(iface->live_clock - c->rx.seen) / 1e9, c->live.pings);
	conn_suspect(c, 0, text);
}

/* The link is lost. The event may destroy connections; raw_timers() frees them later. */
static void suspect_link(struct raw_iface *iface)
{
	struct raw_conn *c;
	char text[160];
	uint32_t at = 0;

	snprintf(text, sizeof(text), "%s (%s): link lost", iface->base.name,
		 iface->base.attr.device);
	while ((c = raw_table_next(iface, &at)))
		if (c->state == RAW_UP)
			conn_suspect(c, 0, text);
}

static void conn_lost(struct raw_conn *c, int status, const char *text)
{
	bool up = c->state == RAW_UP;

	if (up)
		conn_suspect(c, status, text);
	if (!up || c->state == RAW_UP)
		raw_conn_fail(c, status, text);
}

/* ---------------------------------------------------------------- the port */

static void report_event(struct raw_iface *iface, enum weft_lane_iface_event ev, const char *text)
{
	if (iface->iface_event)
		iface->iface_event(iface->cb_arg, &iface->base, ev, text);
}

/*
 * All connections end at once: a timeout would only hide the reason. Callbacks may destroy
 * connections, but only one that the protocol layer does not know is freed here.
 */
static void end_all(struct raw_iface *iface, const struct weft_frame_port_event *ev)
{
	struct raw_conn *c;
	char text[sizeof(iface->ended_why) + 128], peer[64];
	uint32_t at = 0;

	iface->ended = ev->status;
	snprintf(iface->ended_why, sizeof(iface->ended_why), "%s (%s): %s", iface->base.name,
		 iface->base.attr.device, ev->text);
	raw_count(iface, RAW_PORT_ENDED);
	raw_txq_end(iface);
	report_event(iface, WEFT_LANE_IFACE_EV_ENDED, ev->text);
	while ((c = raw_table_next(iface, &at))) {
		if (c->state == RAW_DOWN || c->state == RAW_QUIET || c->state == RAW_TIME_WAIT)
			continue;
		snprintf(text, sizeof(text), "%s; the connection with %s is lost", iface->ended_why,
			 raw_peer_text(c, peer, sizeof(peer)));
		conn_lost(c, ev->status, text);
	}
}

void raw_port_look(struct raw_iface *iface)
{
	struct weft_frame_port *port = iface->port;
	struct weft_frame_port_event ev = {0};
	enum weft_frame_port_what what;

	port->event = false;
	while (iface->ended == 0 && port->ops->look &&
	       (what = port->ops->look(port, &ev)) != WEFT_FRAME_PORT_NOTHING) {
		switch (what) {
		case WEFT_FRAME_PORT_LINK_DOWN:
			iface->link_up = false;
			raw_count(iface, RAW_PORT_LINK_DOWN);
			report_event(iface, WEFT_LANE_IFACE_EV_LINK_DOWN, ev.text);
			suspect_link(iface);
			break;
		case WEFT_FRAME_PORT_LINK_UP:
			iface->link_up = true;
			raw_count(iface, RAW_PORT_LINK_UP);
			raw_fill_numbers(iface);
			raw_announce_begin(iface);
			report_event(iface, WEFT_LANE_IFACE_EV_LINK_UP, ev.text);
			break;
		case WEFT_FRAME_PORT_SPEED:
			raw_fill_numbers(iface);
			report_event(iface, WEFT_LANE_IFACE_EV_SPEED, ev.text);
			break;
		default:
			end_all(iface, &ev);
		}
		ev.text[0] = '\0';
	}
	iface->look_at =
		iface->ended != 0 || !port->ops->look
			? RAW_NEVER
			: iface->live_clock + (iface->link_up ? RAW_LOOK_UP : RAW_LOOK_DOWN);
	iface->next_live_clock = RTE_MIN(iface->next_live_clock, iface->look_at);
}

/* ---------------------------------------------------------------- timers */

/* The protocol layer checks the lanes of an endpoint in some 100 ms (wireup/failover.c). */
#define LAST_LOOK_NS 300000000ull
#define LAST_LOOK_TRIPS 5u /* least round trips: other lanes are queried, and then this one */

void raw_beat(struct weft_lane_iface *base)
{
	struct raw_iface *iface = raw_iface_of(base);
	struct raw_conn *c;
	uint32_t at = 0;

	while ((c = raw_table_next(iface, &at))) {
		if (c->state != RAW_UP)
			continue;
		if (raw_txq_space(iface) == 0)
			/* otherwise the last connections would never send a heartbeat */
			raw_txq_flush(iface);
		/* Path 0 may be bad, next_path is not. */
		if (raw_ctl_send_on(c, c->next_path, WEFT_FRAME_ALIVE, 0, NULL, 0, 0) == 0)
			raw_count(iface, RAW_TX_ALIVE);
	}
	raw_txq_flush(iface);
}

/* While the peer computes, missing acknowledgements are no evidence against the path. */
void raw_alive_input(struct raw_conn *c)
{
	raw_count(c->iface, RAW_RX_ALIVE);
	c->tx.round_at = c->iface->live_clock;
}

/* With more connections of an iface than this, SOCKET_KEEPALIVE_NS has no effect. */
#define SOCKETS_FEW 64u
#define SOCKET_KEEPALIVE_NS 600000000ull

static uint64_t keepalive_interval(const struct raw_conn *c)
{
	const struct raw_iface *iface = c->iface;
	uint64_t third = iface->conf.peer_timeout_ns / 3, k = iface->conf.keepalive_ns;

	/* At this interval the end of an idle peer's process is noticed within a second. */
	if (c->live.socket && iface->conn_count <= SOCKETS_FEW)
		k = RTE_MIN(k, SOCKET_KEEPALIVE_NS);
	/* A peer must be queried several times before its silence counts. */
	return k == 0 ? 0 : RTE_MIN(k, third);
}

static void rest(struct raw_conn *c, uint64_t silent)
{
	if (silent < c->iface->conf.keepalive_ns)
		return;
	if (c->tx.una == c->tx.next && c->tx.timer == 0)
		raw_slots_drop(&c->tx);
	raw_rx_idle(&c->rx);
	if (c->tx.cc && c->tx.una == c->tx.next)
		raw_window_idle(c);
}

static uint64_t last_look(const struct raw_conn *c)
{
	return RTE_MAX(LAST_LOOK_NS, LAST_LOOK_TRIPS * (uint64_t)c->base.rtt_ns);
}

static void report_dead(struct raw_conn *c)
{
	char text[256], peer[64];

	snprintf(text, sizeof(text),
		 "%s: no sign of %s for %.1f s (WEFT_PEER_TIMEOUT), probed %u times",
		 c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
		 (double)(c->iface->live_clock - c->rx.seen) / 1e9, c->live.pings);
	conn_lost(c, -ETIMEDOUT, text);
}

static void fail_gone(struct raw_conn *c)
{
	char text[256], peer[64];

	snprintf(text, sizeof(text),
		 "%s: the process of %s is gone: its host reports that the UDP port is unused, and "
		 "nothing came for %.1f s",
		 c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
		 (double)(c->iface->live_clock - c->rx.seen) / 1e9);
	raw_hint_siblings(c);
	conn_lost(c, -ECONNRESET, text);
}

/*
 * Detects a peer that answers, but has not acknowledged the oldest frames for the peer timeout.
 * That is an error, because the lane would hang otherwise. If the link is gone, the last
 * acknowledgement may be a little older than the last frame: that is silence (check_silence()).
 */
static bool is_stuck(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[320], peer[64];
	bool deaf;
	double s;

	if (c->tx.timer == 0 || iface->live_clock - c->tx.round_at < iface->conf.peer_timeout_ns ||
	    iface->live_clock - c->rx.seen >= iface->conf.peer_timeout_ns / 2)
		return false;
	deaf = c->mtu.searching && c->search->small_acks == 0;
	s = (double)(iface->live_clock - c->tx.round_at) / 1e9;
	raw_peer_text(c, peer, sizeof(peer));
	if (deaf)
		snprintf(text, sizeof(text),
			 "%s: frames of %s arrive, but it has acknowledged none, not even small "
			 "ones, for %.1f s (WEFT_PEER_TIMEOUT): check the path to it: firewalls, "
			 "routes",
			 iface->base.name, peer, s);
	else
		snprintf(text, sizeof(text),
			 "%s: %s answers, but a frame of %u bytes was not acknowledged for %.1f s "
			 "(WEFT_PEER_TIMEOUT): does the path between still carry frames of %u "
			 "bytes?",
			 iface->base.name, peer, raw_slot(&c->tx, c->tx.una)->bytes + c->encap.len,
			 s, c->frame_size);
	conn_lost(c, -ETIMEDOUT, text);
	return true;
}

/*
 * Silence fails a connection only if the peer was queried: a peer may have nothing to send, and the
 * owner may have been away. Of a time without polls live_clock counts the time that the owner meant
 * to sleep (raw_arm()), and at most RAW_LIVE_STEP_MAX more.
 */
static void check_silence(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint64_t every = keepalive_interval(c), silent = iface->live_clock - c->rx.seen;

	if (silent >= iface->conf.peer_timeout_ns && c->live.pings >= 3) {
		/* Before it fails, the protocol layer checks whether other lanes work. */
		if (c->live.doomed_at <= c->rx.seen) {
			c->live.doomed_at = iface->live_clock;
			c->live.suspect_next = iface->live_clock;
			raw_suspect_idle(c);
			if (c->state == RAW_UP)
				raw_deadline_live(c, iface->live_clock + last_look(c));
			return;
		}
		if (iface->live_clock - c->live.doomed_at >= last_look(c))
			report_dead(c);
		else
			raw_deadline_live(c, c->live.doomed_at + last_look(c));
		return;
	}
	if (c->path_count == 1 && !c->base.passive)
		raw_path_reserve(c);
	if (every == 0)
		return;
	if (silent >= every && iface->live_clock >= c->live.next_ping) {
		rest(c, silent);
		if (raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) == 0)
			raw_count(iface, RAW_TX_PING);
		/* A port that accepts no frame (its link or its peer is gone) counts as silence. */
		c->live.pings++;
		c->live.next_ping = iface->live_clock + every;
		if (c->live.pings >= 2) {
			if (c->path_count == 1)
				raw_path_open(c);
			raw_move_look(c);
			raw_suspect_idle(c);
		}
		if (c->state != RAW_UP)
			return; /* the protocol layer has stopped the connection */
	} else if (silent < every) {
		c->live.next_ping = c->rx.seen + every;
	}
	raw_deadline_live(
		c, RTE_MAX(RTE_MIN(c->live.next_ping,
				   c->rx.seen + iface->conf.peer_timeout_ns + RAW_LIVE_STEP_MAX),
			   iface->live_clock + 1));
}

static void up_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->bye.at != 0) {
		raw_conn_bye(c);
		return;
	}
	if (is_stuck(c))
		return;
	if (c->tx.cc_gap != 0 && iface->tx_clock >= c->tx.cc_next)
		raw_window_open(c);
	if (c->multi)
		raw_multi_timer(c);
	else if (iface->paths_auto && c->path_busy)
		raw_path_open(c);
	if (c->tx.loss_timer != 0 && iface->tx_clock >= c->tx.loss_timer)
		raw_loss_detect(c);
	if (c->tx.timer != 0 && iface->tx_clock >= c->tx.timer) {
		if (raw_timer_fire(c))
			raw_move_look(c);
		suspect_silent(c);
	}
	if (c->state != RAW_UP)
		return;
	if (c->mtu_next != 0 && iface->live_clock >= c->mtu_next)
		raw_mtu_timer(c);
	if (c->state != RAW_UP)
		return;
	if (c->mtu_next != 0)
		raw_deadline_live(c, RTE_MAX(c->mtu_next, iface->live_clock + 1));
	if (c->tx.loss_timer != 0)
		raw_deadline_tx(c, c->tx.loss_timer);
	if (c->tx.timer != 0)
		raw_deadline_tx(c, c->tx.timer);
	if (raw_hint_timer(c))
		fail_gone(c);
	if (c->state == RAW_UP)
		check_silence(c);
}

static void time_wait_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (iface->live_clock >= c->hs_expire) {
		raw_conn_free(c);
		return;
	}
	if (!c->bye.done && iface->live_clock >= c->hs_next) {
		raw_bye_send(c);
		c->hs_tries++;
		c->hs_next = iface->live_clock + (RAW_HS_RETRY_MIN << RTE_MIN(c->hs_tries, 7u));
	}
	raw_deadline_live(c, c->bye.done ? c->hs_expire : RTE_MIN(c->hs_next, c->hs_expire));
}

static void half_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	raw_deadline_live(c, c->hs_expire);
	if (c->state != RAW_HALF_OPEN)
		raw_deadline_live(c, RTE_MAX(c->hs_next, iface->live_clock + 1));
	raw_hs_timer(c);
}

/* May free the connection. */
static void look_at(struct raw_conn *c)
{
	raw_count(c->iface, RAW_TIMER_LOOKS);
	switch (c->state) {
	case RAW_UP:
		up_timer(c);
		break;
	case RAW_TIME_WAIT:
		time_wait_timer(c);
		break;
	case RAW_QUIET:
	case RAW_DOWN:
		break;
	default:
		half_timer(c);
	}
}

/* One batch for each clock: when many are due at once, frames are received between the batches. */
void raw_timers(struct raw_iface *iface)
{
	struct raw_conn *c;

	raw_counts_note(iface);

	if (iface->live_clock >= iface->look_at)
		raw_port_look(iface);
	if (iface->live_clock >= iface->announce_at)
		raw_announce(iface);
	for (unsigned int n = 0;
	     n < RAW_TIMER_BATCH && weft_deadlines_first(&iface->by_tx_clock) <= iface->tx_clock;
	     n++) {
		c = iface->refs[weft_deadlines_pop(&iface->by_tx_clock)].conn;
		c->tx_clock_at = RAW_NEVER;
		look_at(c);
	}
	for (unsigned int n = 0; n < RAW_TIMER_BATCH &&
				 weft_deadlines_first(&iface->by_live_clock) <= iface->live_clock;
	     n++) {
		c = iface->refs[weft_deadlines_pop(&iface->by_live_clock)].conn;
		look_at(c);
	}
	iface->next_tx_clock = weft_deadlines_first(&iface->by_tx_clock);
	iface->next_live_clock = RTE_MIN(weft_deadlines_first(&iface->by_live_clock),
					 RTE_MIN(iface->look_at, iface->announce_at));
}

/* ---------------------------------------------------------------- clocks */

void raw_clocks_far(struct raw_iface *iface, uint64_t now)
{
	uint64_t step = now > iface->now ? now - iface->now : 0, slept = 0;

	if (iface->slept)
		slept = RTE_MIN(step, iface->sleep_max);
	iface->gap = step > slept + RAW_GAP;
	if (unlikely(iface->gap))
		raw_count(iface, RAW_GAPS);
	if (step > slept + RAW_OUTSIDE_STEP_MAX) {
		raw_gap_note(iface, step - slept);
		weft_tap_pause(iface->tap, iface->now, step - slept);
	}
	iface->step = (uint32_t)RTE_MIN(step, (uint64_t)UINT32_MAX);
	if (iface->sent_outside) {
		iface->sent_outside = false;
		iface->tx_clock += RTE_MIN(step, RAW_OUTSIDE_STEP_MAX);
	} else {
		iface->tx_clock += RTE_MIN(step, slept + RAW_STEP_MAX);
	}
	iface->now += step;
	iface->live_clock += RTE_MIN(step, slept + RAW_LIVE_STEP_MAX);
}

/* ---------------------------------------------------------------- sleeping */

/*
 * Work that does not wake the owner gets a time here: timers, acknowledgements and frames that the
 * port did not take, requests of the port itself, and a check of the port's events.
 */

/* ns between two tries of work for which the port has no room, or no buffer is free. */
#define RETRY_NS 50000u
/* Calls of tx_kick() after the last frame, by an owner that goes to sleep. */
#define KICKS 4u

int raw_wait_fd(struct weft_lane_iface *base)
{
	const struct raw_iface *iface = raw_iface_of(base);
	struct weft_frame_port *port = iface->port;

	/* Frames of other workers' queues are handed over in memory, which wakes no thread. */
	if (port->steering.handed || !port->ops->wait_fd)
		return -ENOTSUP;
	return port->ops->wait_fd(port);
}

/* Sends delayed acknowledgements: no sender is to wait for them during a long sleep. */
static void flush_acks_before_sleep(struct raw_iface *iface)
{
	if (TAILQ_EMPTY(&iface->ack_list))
		return;
	raw_rx_hurry(iface);
	raw_acks_send_due(iface);
	raw_txq_flush(iface);
}

/* @return ns from now to a time on a clock, which counts at most @p most ns of a sleep */
static uint64_t ns_until(uint64_t at, uint64_t clock, uint64_t most)
{
	if (at == RAW_NEVER)
		return RAW_NEVER;
	return at > clock ? RTE_MIN(at - clock, most) : 0;
}

/*
 * If the port can't wake the owner, a sleep longer than a clock's longest step would delay timers.
 * @return ns until the next timer is due, or until its clock would stop
 */
static uint64_t next_timer(const struct raw_iface *iface, bool wakes)
{
	return RTE_MIN(ns_until(iface->next_tx_clock, iface->tx_clock,
				wakes ? RAW_NEVER : RAW_STEP_MAX),
		       ns_until(iface->next_live_clock, iface->live_clock,
				wakes ? RAW_NEVER : RAW_LIVE_STEP_MAX));
}

/* The PMD frees sent buffers only when it is polled. It is polled KICKS times after a frame. */
static void kick_port(struct raw_iface *iface, uint64_t *within)
{
	if (!iface->tx_used || !iface->port->ops->tx_kick)
		return;
	iface->port->ops->tx_kick(iface->port);
	if (++iface->kicks < KICKS) {
		*within = RTE_MIN(*within, (uint64_t)RETRY_NS);
		return;
	}
	iface->kicks = 0;
	iface->tx_used = false;
}

int raw_arm(struct weft_lane_iface *base, uint64_t now, uint64_t *due)
{
	struct raw_iface *iface = raw_iface_of(base);
	struct weft_frame_port *port = iface->port;
	bool wakes = raw_wait_fd(base) >= 0;
	uint64_t within;
	int rc;

	raw_clocks(iface, now);
	if (!TAILQ_EMPTY(&iface->tx_list) || !STAILQ_EMPTY(&iface->zc.released) || port->event)
		return -EBUSY;
	/* A frame that came after the last poll may cause no wake-up any more. */
	if (now < iface->rest_until && iface->conn_count > 0) {
		iface->rest_until = 0;
		return -EBUSY;
	}
	flush_acks_before_sleep(iface);
	within = next_timer(iface, wakes);
	if (iface->txq.count > 0 || iface->share.pressed || !TAILQ_EMPTY(&iface->ack_list))
		within = RTE_MIN(within, (uint64_t)RETRY_NS);
	if (!LIST_EMPTY(&iface->zc.waiting))
		within = RTE_MIN(within, ns_until(iface->zc.poll_at, iface->now, RAW_NEVER));
	kick_port(iface, &within);
	if (port->ops->arm) {
		rc = port->ops->arm(port, &within);
		if (rc < 0)
			return rc;
	}
	*due = within < *due - now ? now + within : *due;
	iface->rest_until = 0; /* frames may have caused the wake-up */
	iface->slept = wakes;
	iface->sleep_max = *due - now;
	return 0;
}

void raw_disarm(struct weft_lane_iface *base)
{
	struct raw_iface *iface = raw_iface_of(base);

	if (iface->port->ops->arm)
		iface->port->ops->disarm(iface->port);
}
