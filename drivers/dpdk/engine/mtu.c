/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/mtu.h"

#include <stdio.h>

#include <rte_common.h>

#include "engine/build.h"
#include "engine/iface.h"
#include "engine/mtu_search.h"
#include "engine/parts.h"
#include "engine/peer.h"
#include "engine/timer.h"
#include "frame/frame.h"
#include "lane.h"

#define AGAIN_NS 50000000ull   /* between two searches started by losses */
#define SILENCE_NS 50000000ull /* silence of the peer after which the search slows down */
#define SLOW_NS 500000000ull   /* between two rounds of a slow search, at most */
#define RAISE_NS 5000000000ull /* to the first try of a larger size; doubles */
#define RAISE_DOUBLES 6u

static uint16_t least_size(const struct raw_conn *c)
{
	return (uint16_t)(WEFT_FRAME_SIZE_MIN - RTE_VLAN_HLEN + raw_tag_len(c->iface));
}

static uint16_t present_size(const struct raw_conn *c)
{
	return RTE_MIN(c->cut, c->frame_size);
}

/* Frames of up to @p size bytes pass; longer ones, outstanding or new, are sent in parts. */
static void set_size(struct raw_conn *c, uint16_t size)
{
	c->cut = size < c->frame_size ? size : UINT16_MAX;
	c->txq_need = size < c->frame_size ? raw_parts_count(c) : 1;
	/*
	 * Room for the CRC is always reserved, so that sizes do not depend on the agreed checksum.
	 */
	c->room = size - c->encap.len - (uint32_t)sizeof(struct weft_frame_hdr) - 4;
}

/*
 * Retransmit at once, the oldest frame first: its acknowledgement shows which others are missing.
 */
static void send_again(struct raw_conn *c)
{
	if (c->timer == 0)
		return;
	c->tail = RAW_TAIL_PROBED;
	c->tail_at = 0;
	c->backoff = 0;
	c->timer = c->iface->tx_clock;
	raw_deadline_tx(c, c->timer);
}

void raw_mtu_init(struct raw_conn *c)
{
	set_size(c, c->frame_size);
	c->mtu.reported = c->frame_size;
}

/* Notify the protocol layer, which cuts messages to this size from now on. */
static void report_size(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	bool lower = present_size(c) < c->mtu.reported;
	char text[256], peer[64];

	if (present_size(c) == c->mtu.reported)
		return;
	raw_peer_text(c, peer, sizeof(peer));
	if (lower)
		snprintf(text, sizeof(text),
			 "%s: frames of %u bytes do not reach %s any more, so %u are used: has the "
			 "MTU of a link or switch between changed?",
			 iface->base.name, c->mtu.reported, peer, present_size(c));
	else
		snprintf(text, sizeof(text), "%s: frames of %u bytes reach %s again",
			 iface->base.name, present_size(c), peer);
	c->mtu.reported = present_size(c);
	raw_count(iface, lower ? RAW_MTU_LOWER : RAW_MTU_HIGHER);
	iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_SIZE, lower, text);
}

/* The search has ended: schedule the next try of a larger size. May destroy the connection. */
static void search_over(struct raw_conn *c)
{
	uint64_t live_clock = c->iface->live_clock;

	c->mtu.searching = false;
	c->mtu.raising = false;
	c->mtu.again = live_clock + AGAIN_NS;
	if (present_size(c) != c->mtu.reported)
		c->mtu.raises = 0;
	c->mtu.next = present_size(c) < c->frame_size
			      ? live_clock + (RAISE_NS << RTE_MIN(c->mtu.raises, RAISE_DOUBLES))
			      : 0;
	report_size(c);
}

static bool suspect_arrived(struct raw_conn *c)
{
	return c->mtu.suspect - c->snd_una >= c->snd_next - c->snd_una ||
	       !raw_slot(c, c->mtu.suspect)->m;
}

/* Evaluate a round or an answer. May destroy the connection. */
static void search_result(struct raw_conn *c, enum weft_mtu_result result)
{
	const struct weft_mtu_search *s = &c->search;

	if (!c->mtu.raising && s->hi != 0 && s->hi == present_size(c) && s->hi > s->least) {
		/*
		 * A frame of this size has arrived after all: its size was not the cause of the
		 * losses.
		 */
		if (suspect_arrived(c)) {
			search_over(c);
			return;
		}
		set_size(c, s->lo != 0 ? s->lo : s->least);
		send_again(c);
	}
	if (result == WEFT_MTU_FOUND && s->lo != present_size(c)) {
		set_size(c, s->lo);
		send_again(c);
	}
	if (result != WEFT_MTU_GOES_ON)
		search_over(c);
	else
		c->mtu.next = s->next;
}

static void search_begin(struct raw_conn *c, uint16_t full, uint16_t lo)
{
	/* Its ids are those of all probes, which have advanced since the last search. */
	c->search.id = c->probe_id;
	weft_mtu_search_again(&c->search, full, least_size(c),
			      (uint8_t)(RTE_ETHER_HDR_LEN + raw_tag_len(c->iface)), lo,
			      c->iface->live_clock);
	c->mtu.searching = true;
	c->mtu.raising = lo != 0;
	c->mtu.next = c->iface->live_clock;
	raw_deadline_live(c, c->mtu.next);
}

uint32_t raw_ep_best_msg(const struct weft_lane_ep *lane_ep)
{
	const struct raw_conn *c = (const struct raw_conn *)lane_ep;

	return c->room - (uint32_t)sizeof(struct weft_frame_msg);
}

void raw_mtu_suspect(struct raw_conn *c, uint32_t seq)
{
	if (!c->mtu.parts || (c->mtu.searching && !c->mtu.raising) ||
	    c->iface->live_clock < c->mtu.again || present_size(c) <= least_size(c) ||
	    raw_slot(c, seq)->bytes + c->encap.len <= least_size(c))
		return;
	c->mtu.suspect = seq;
	search_begin(c, present_size(c), 0);
}

enum weft_mtu_result raw_mtu_round(struct raw_conn *c)
{
	enum weft_mtu_result result;
	unsigned int big, small;

	result = weft_mtu_search_round(&c->search, c->iface->live_clock, &big, &small);
	c->probe_id = c->search.id;
	while (big-- > 0)
		raw_probe_send(c, c->search.size);
	while (small-- > 0)
		raw_probe_send(c, 0);
	return result;
}

void raw_mtu_timer(struct raw_conn *c)
{
	uint64_t live_clock = c->iface->live_clock, silent = live_clock - c->seen;

	if (!c->mtu.searching) {
		c->mtu.raises++;
		search_begin(c, c->frame_size, present_size(c));
	} else if (!c->mtu.raising && c->search.hi == 0 && suspect_arrived(c)) {
		search_over(c);
		return;
	}
	search_result(c, raw_mtu_round(c));
	if (c->mtu.searching && silent > SILENCE_NS)
		c->mtu.next = RTE_MAX(c->mtu.next, live_clock + RTE_MIN(silent / 2, SLOW_NS));
}

void raw_mtu_ack(struct raw_conn *c, uint16_t id, uint16_t size)
{
	if (!c->mtu.searching)
		return;
	search_result(c, weft_mtu_search_ack(&c->search, id, size, c->iface->live_clock));
	if (c->mtu.next != 0)
		raw_deadline_live(c, RTE_MAX(c->mtu.next, c->iface->live_clock + 1));
}
