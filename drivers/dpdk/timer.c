/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>

#include "raw.h"

static uint64_t keepalive_interval(const struct raw_iface *iface)
{
	uint64_t third = iface->conf.peer_timeout_ns / 3, k = iface->conf.keepalive_ns;

	/* A peer must be asked several times before its silence counts. */
	return k == 0 ? 0 : RTE_MIN(k, third);
}

static void dead(struct raw_conn *c)
{
	char text[256], peer[64];

	snprintf(text, sizeof(text),
		 "%s: no sign of %s for %.1f s (WEFT_PEER_TIMEOUT), asked %u times",
		 c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
		 (double)(c->iface->lt - c->seen) / 1e9, c->pings);
	raw_conn_fail(c, -ETIMEDOUT, text);
}

/*
 * A peer that answers, but in so long a time has not acknowledged the RAW_ROUND frames that were the oldest at its
 * beginning, does not get our frames, or one now and then. It is said, and does not hang. Only a peer that was heard of late "answers": where the
 * link is gone, the last acknowledgement may be a little older than the last frame, and that is silence (live_timer()).
 */
static bool stuck(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[320], peer[64];

	if (c->timer == 0 || iface->lt - c->round_at < iface->conf.peer_timeout_ns ||
	    iface->lt - c->seen >= iface->conf.peer_timeout_ns / 2)
		return false;
	snprintf(text, sizeof(text),
		 "%s: %s answers, but a frame of %u bytes was not acknowledged for %.1f s "
		 "(WEFT_PEER_TIMEOUT): does the way between still carry frames of %u bytes?",
		 iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
		 raw_slot(c, c->snd_una)->bytes + c->encap.len,
		 (double)(iface->lt - c->round_at) / 1e9, c->frame_size);
	raw_conn_fail(c, -ETIMEDOUT, text);
	return true;
}

/*
 * Silence kills only when it was asked for: a peer that has nothing to say, or an owner that was
 * away itself, is no reason. Liveness time passes only while we poll.
 */
static void live_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint64_t every = keepalive_interval(iface), silent = iface->lt - c->seen;

	if (silent >= iface->conf.peer_timeout_ns && c->pings >= 3) {
		dead(c);
		return;
	}
	if (every == 0)
		return;
	if (silent >= every && iface->lt >= c->next_ping) {
		if (raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) == 0)
			raw_count(iface, RAW_TX_PING);
		/* A port that takes nothing (its link or its peer is gone) is silence, too. */
		c->pings++;
		c->next_ping = iface->lt + every;
	} else if (silent < every) {
		c->next_ping = c->seen + every;
	}
	raw_deadline_lt(iface, RTE_MIN(c->next_ping,
				       c->seen + iface->conf.peer_timeout_ns + RAW_LIVE_STEP_MAX));
}

static void up_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->bye_at != 0) {
		raw_conn_bye(c);
		return;
	}
	if (stuck(c))
		return;
	if (c->loss_timer != 0 && iface->et >= c->loss_timer)
		raw_loss_detect(c);
	if (c->timer != 0 && iface->et >= c->timer)
		raw_timer_fire(c);
	if (c->loss_timer != 0)
		raw_deadline_et(iface, c->loss_timer);
	if (c->timer != 0)
		raw_deadline_et(iface, c->timer);
	live_timer(c);
}

static void time_wait_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (iface->lt >= c->hs_expire) {
		raw_conn_free(c);
		return;
	}
	if (!c->bye_done && iface->lt >= c->hs_next) {
		raw_bye_send(c);
		c->hs_tries++;
		c->hs_next = iface->lt + (RAW_HS_RETRY_MIN << RTE_MIN(c->hs_tries, 7u));
	}
	raw_deadline_lt(iface, c->bye_done ? c->hs_expire : RTE_MIN(c->hs_next, c->hs_expire));
}

/* One round over all connections; computes when the next one is due. */
void raw_timers(struct raw_iface *iface)
{
	struct raw_conn *c, *next;

	iface->next_et = RAW_NEVER;
	iface->next_lt = RAW_NEVER;
	if (iface->lt >= iface->look_at)
		raw_port_look(iface);
	raw_deadline_lt(iface, iface->look_at);
	for (c = TAILQ_FIRST(&iface->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		switch (c->state) {
		case RAW_UP:
			up_timer(c);
			break;
		case RAW_TIME_WAIT:
			time_wait_timer(c);
			break;
		case RAW_DOWN:
			break;
		default:
			raw_deadline_lt(iface, RTE_MIN(c->hs_expire, RAW_NEVER - 1));
			if (c->state != RAW_HALF_OPEN)
				raw_deadline_lt(iface, RTE_MAX(c->hs_next, iface->lt + 1));
			raw_hs_timer(c);
		}
	}
}
