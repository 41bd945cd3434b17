/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keepalive and the peer timeout; and the dispatch of a connection's timers: these two, the
 * retransmission timer (engine/retransmit.c), the next step of the handshake, or the end.
 * engine/deadline.c has the times.
 */

#include <errno.h>
#include <stdio.h>

#include <rte_common.h>

#include "base/container.h"
#include "engine/ack.h"
#include "engine/build.h"
#include "engine/clock.h"
#include "engine/conn.h"
#include "engine/conn_table.h"
#include "engine/connect.h"
#include "engine/hint.h"
#include "engine/iface.h"
#include "engine/link_state.h"
#include "engine/mtu.h"
#include "engine/multipath.h"
#include "engine/peer.h"
#include "engine/slots.h"
#include "engine/suspect.h"
#include "engine/timer.h"
#include "engine/txq.h"
#include "engine/window.h"
#include "frame/frame.h"

/* The protocol layer checks the lanes of an endpoint in some 100 ms (wireup/failover.c). */
#define LAST_LOOK_NS 300000000ull
#define LAST_LOOK_TRIPS 5u /* at least: each lane is queried, and then this one */

/*
 * Called by another thread, while the owner computes: the iface's times are those of its last
 * progress().
 */
void raw_beat(struct weft_lane_iface *base)
{
	struct raw_iface *iface = raw_iface_of(base);
	struct raw_conn *c;

	TAILQ_FOREACH(c, &iface->conns, link) {
		if (c->state != RAW_UP)
			continue;
		if (raw_txq_space(iface) == 0)
			raw_txq_flush(iface); /* or the last connections would never send one */
		/* Not path 0, which may be bad. */
		if (raw_ctl_send_on(c, c->next_path, WEFT_FRAME_ALIVE, 0, NULL, 0, 0) == 0)
			raw_count(iface, RAW_TX_ALIVE);
	}
	raw_txq_flush(iface);
}

/* While the peer computes, missing acknowledgements are no evidence against the path. */
void raw_alive_input(struct raw_conn *c)
{
	raw_count(c->iface, RAW_RX_ALIVE);
	c->round_at = c->iface->live_clock;
}

static uint64_t keepalive_interval(const struct raw_iface *iface)
{
	uint64_t third = iface->conf.peer_timeout_ns / 3, k = iface->conf.keepalive_ns;

	/* A peer must be queried several times before its silence counts. */
	return k == 0 ? 0 : RTE_MIN(k, third);
}

static uint64_t last_look(const struct raw_conn *c)
{
	return RTE_MAX(LAST_LOOK_NS, LAST_LOOK_TRIPS * (uint64_t)c->base.rtt_ns);
}

static void fail_dead(struct raw_conn *c)
{
	char text[256], peer[64];

	snprintf(text, sizeof(text),
		 "%s: no sign of %s for %.1f s (WEFT_PEER_TIMEOUT), probed %u times",
		 c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
		 (double)(c->iface->live_clock - c->seen) / 1e9, c->pings);
	raw_conn_lost(c, -ETIMEDOUT, text);
}

/*
 * Detects a peer that answers, but has not acknowledged one of the RAW_ROUND oldest frames for the
 * peer timeout: our frames do not reach it, or only one now and then. This is reported as an error,
 * because the lane would hang otherwise. "Answers" means that a frame came recently. If the link is
 * gone, the last acknowledgement may be a little older than the last frame, and that is silence
 * (live_timer()).
 */
static bool is_stuck(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[320], peer[64];

	if (c->timer == 0 || iface->live_clock - c->round_at < iface->conf.peer_timeout_ns ||
	    iface->live_clock - c->seen >= iface->conf.peer_timeout_ns / 2)
		return false;
	snprintf(text, sizeof(text),
		 "%s: %s answers, but a frame of %u bytes was not acknowledged for %.1f s "
		 "(WEFT_PEER_TIMEOUT): does the path between still carry frames of %u bytes?",
		 iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
		 raw_slot(c, c->snd_una)->bytes + c->encap.len,
		 (double)(iface->live_clock - c->round_at) / 1e9, c->frame_size);
	raw_conn_lost(c, -ETIMEDOUT, text);
	return true;
}

/*
 * Silence fails a connection only if the peer was queried: a peer may have nothing to send, and the
 * owner may have been away itself. Liveness time passes only while the owner polls.
 */
static void live_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint64_t every = keepalive_interval(iface), silent = iface->live_clock - c->seen;

	if (silent >= iface->conf.peer_timeout_ns && c->pings >= 3) {
		/*
		 * After a pause of the peer another lane may work: the protocol layer checks that
		 * first.
		 */
		if (c->doomed_at <= c->seen) {
			c->doomed_at = iface->live_clock;
			c->suspect_next = iface->live_clock;
			raw_suspect_idle(c);
			if (c->state == RAW_UP)
				raw_deadline_live(c, iface->live_clock + last_look(c));
			return;
		}
		if (iface->live_clock - c->doomed_at >= last_look(c))
			fail_dead(c);
		else
			raw_deadline_live(c, c->doomed_at + last_look(c));
		return;
	}
	if (c->path_count == 1 && !c->base.passive)
		raw_path_reserve(c);
	if (every == 0)
		return;
	if (silent >= every && iface->live_clock >= c->next_ping) {
		if (c->snd_una == c->snd_next)
			raw_slots_shrink(c);
		if (c->cc && c->snd_una == c->snd_next)
			raw_window_idle(c);
		if (raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) == 0)
			raw_count(iface, RAW_TX_PING);
		/*
		 * A port that accepts no frame (its link or its peer is gone) counts as silence,
		 * too.
		 */
		c->pings++;
		c->next_ping = iface->live_clock + every;
		if (c->pings >= 2) {
			if (c->path_count == 1)
				raw_path_open(c);
			raw_move_look(c);
			raw_suspect_idle(c);
		}
		if (c->state != RAW_UP)
			return; /* the protocol layer has stopped the connection */
	} else if (silent < every) {
		c->next_ping = c->seen + every;
	}
	raw_deadline_live(c, RTE_MAX(RTE_MIN(c->next_ping, c->seen + iface->conf.peer_timeout_ns +
								   RAW_LIVE_STEP_MAX),
				     iface->live_clock + 1));
}

static void up_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->bye_at != 0) {
		raw_conn_bye(c);
		return;
	}
	if (is_stuck(c))
		return;
	if (c->cc_gap != 0 && iface->tx_clock >= c->cc_next)
		c->base.tx_room = true;
	if (c->multi)
		raw_multi_timer(c);
	else if (c->path_busy && iface->paths_auto)
		raw_path_open(c);
	if (c->loss_timer != 0 && iface->tx_clock >= c->loss_timer)
		raw_loss_detect(c);
	if (c->timer != 0 && iface->tx_clock >= c->timer) {
		if (raw_timer_fire(c))
			raw_move_look(c);
		raw_suspect_silent(c);
	}
	if (c->state != RAW_UP)
		return; /* the protocol layer has stopped the connection */
	if (c->mtu.next != 0 && iface->live_clock >= c->mtu.next)
		raw_mtu_timer(c);
	if (c->state != RAW_UP)
		return;
	if (c->mtu.next != 0)
		raw_deadline_live(c, RTE_MAX(c->mtu.next, iface->live_clock + 1));
	if (c->loss_timer != 0)
		raw_deadline_tx(c, c->loss_timer);
	if (c->timer != 0)
		raw_deadline_tx(c, c->timer);
	raw_hint_timer(c);
	if (c->state == RAW_UP)
		live_timer(c);
}

static void time_wait_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (iface->live_clock >= c->hs_expire) {
		raw_conn_free(c);
		return;
	}
	if (!c->bye_done && iface->live_clock >= c->hs_next) {
		raw_bye_send(c);
		c->hs_tries++;
		c->hs_next = iface->live_clock + (RAW_HS_RETRY_MIN << RTE_MIN(c->hs_tries, 7u));
	}
	raw_deadline_live(c, c->bye_done ? c->hs_expire : RTE_MIN(c->hs_next, c->hs_expire));
}

static void half_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	raw_deadline_live(c, c->hs_expire);
	if (c->state != RAW_HALF_OPEN)
		raw_deadline_live(c, RTE_MAX(c->hs_next, iface->live_clock + 1));
	raw_hs_timer(c);
}

/*
 * Performs the actions of a connection that are due, and enters the time of its next check. It may
 * free the connection.
 */
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

/*
 * Checks the connections that are due, in the order of their times, one batch for each clock. When
 * many are due at once, after a pause or because they connected together, frames are received
 * between the batches.
 */
void raw_timers(struct raw_iface *iface)
{
	struct raw_conn *c;

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
