/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/suspect.h"

#include <stdio.h>

#include <rte_common.h>

#include "engine/peer.h"
#include "engine/slots.h"

/*
 * Timeouts in a row, and ns without a valid frame: some tens of milliseconds. On long paths the
 * round trips count.
 */
#define SUSPECT_TIMEOUTS 5u
#define SUSPECT_NS 20000000ull
#define SUSPECT_TRIPS 3u
/*
 * Frames of the peer arrive, yet it acknowledges nothing: frames of this size may not pass any
 * more.
 */
#define DEAF_TIMEOUTS 7u
#define DEAF_NS 100000000ull
#define DEAF_TRIPS 5u
/*
 * With this round trip and more, a timeout is longer than most pauses of hosts, and so two of them
 * on one path are as much evidence as five short ones.
 */
#define LONG_NS 10000000u
/* ns between two reports: a port that takes no frames is checked every 0.2 ms. */
#define SUSPECT_AGAIN_NS 5000000ull

static void conn_suspect(struct raw_conn *c, int status, const char *text)
{
	struct raw_iface *iface = c->iface;

	c->suspect_next = iface->live_clock + SUSPECT_AGAIN_NS;
	raw_count(iface, RAW_CONN_SUSPECT);
	iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_SUSPECT, status, text);
}

/* The longest round trip of all paths, in ns; 0 = none is known */
static uint64_t longest(const struct raw_conn *c)
{
	uint64_t most = 0;

	for (unsigned int i = 0; i < c->path_count; i++)
		most = RTE_MAX(most, weft_rtt_known(&c->path[i].rtt));
	return most;
}

/* Enough timeouts in a row? @p trip: ns of a round trip */
static bool enough(const struct raw_conn *c, uint64_t trip, uint8_t timeouts)
{
	if (trip >= LONG_NS)
		timeouts = (uint8_t)RTE_MIN(timeouts, 1u + c->path_count);
	return c->backoff >= timeouts;
}

void raw_suspect_silent(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint64_t since = RTE_MAX(c->seen, c->round_at);
	uint64_t trip = longest(c);
	char text[200], peer[64];
	bool deaf = false;

	if (c->timer == 0 || c->state != RAW_UP || iface->live_clock < c->suspect_next)
		return;
	if ((enough(c, trip, SUSPECT_TIMEOUTS) || iface->txq.count > 0) &&
	    iface->live_clock - since >= RTE_MAX(SUSPECT_NS, SUSPECT_TRIPS * trip))
		snprintf(text, sizeof(text), "%s: no sign of %s for %.0f ms", iface->base.name,
			 raw_peer_text(c, peer, sizeof(peer)),
			 (double)(iface->live_clock - c->seen) / 1e6);
	else if (enough(c, trip, DEAF_TIMEOUTS) &&
		 iface->live_clock - c->round_at >= RTE_MAX(DEAF_NS, DEAF_TRIPS * trip))
		deaf = true;
	else
		return;
	if (deaf)
		snprintf(text, sizeof(text),
			 "%s: %s answers, but a frame of %u bytes was not acknowledged for %.0f ms",
			 iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
			 raw_slot(c, c->snd_una)->bytes + c->encap.len,
			 (double)(iface->live_clock - c->round_at) / 1e6);
	conn_suspect(c, deaf, text);
}

void raw_suspect_idle(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[160], peer[64];

	if (iface->live_clock < c->suspect_next)
		return;
	snprintf(text, sizeof(text), "%s: no sign of %s for %.1f s, after %u probes",
		 iface->base.name, raw_peer_text(c, peer, sizeof(peer)),
		 (double)(iface->live_clock - c->seen) / 1e9, c->pings);
	conn_suspect(c, 0, text);
}

/* The event's receiver may destroy connections; none is freed before the next progress call. */
void raw_suspect_link(struct raw_iface *iface)
{
	struct raw_conn *c;
	char text[160];

	snprintf(text, sizeof(text), "%s (%s): link lost", iface->base.name,
		 iface->base.attr.device);
	TAILQ_FOREACH(c, &iface->conns, link)
		if (c->state == RAW_UP)
			conn_suspect(c, 0, text);
}

void raw_conn_lost(struct raw_conn *c, int status, const char *text)
{
	bool up = c->state == RAW_UP;

	if (up)
		conn_suspect(c, status, text);
	if (!up || c->state == RAW_UP)
		raw_conn_fail(c, status, text);
}

uint64_t raw_ep_seen(const struct weft_lane_ep *lane_ep)
{
	const struct raw_conn *c = (const struct raw_conn *)lane_ep;

	/*
	 * A heartbeat does not count. It shows that the peer's process computes, but not which of
	 * its lanes work: a lane without a heartbeat thread gets no answer in the meantime.
	 */
	return c->seen == c->beat_at ? c->own_seen : c->seen;
}
