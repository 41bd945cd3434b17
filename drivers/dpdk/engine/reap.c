/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/reap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "capture/tap.h"
#include "engine/conn.h"
#include "engine/flush.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "engine/share.h"
#include "engine/slots.h"
#include "engine/zcopy.h"
#include "frame/frame.h"
#include "frame/parse.h"

static_assert(sizeof(struct raw_rx_state) == 8 + 8 * WEFT_FRAME_SACK_WORDS, "state");

/* The messages of the open frame are the last to be handed out. */
static void park_open(struct raw_conn *c)
{
	struct rte_mbuf *m = c->open;

	if (c->on_tx_list)
		TAILQ_REMOVE(&c->iface->tx_list, c, tx_link);
	c->on_tx_list = false;
	c->open_room = 0;
	if (!m)
		return;
	m->data_len = (uint16_t)(c->open_pos - rte_pktmbuf_mtod(m, uint8_t *));
	m->pkt_len = m->data_len;
	*raw_slot(c, c->snd_next++) = (struct raw_slot){
		.m = m,
		.payload = m->pkt_len - c->encap.len - (uint32_t)sizeof(struct weft_frame_hdr),
	};
	c->open = NULL;
}

int raw_ep_quiesce(struct weft_lane_ep *lane_ep, void *buf)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_rx_state *state = buf;
	char text[160], peer[64];
	uint32_t words;

	if (c->state != RAW_UP)
		return -ENOTCONN;
	snprintf(text, sizeof(text), "%s: the lane to %s is given up", c->iface->base.name,
		 raw_peer_text(c, peer, sizeof(peer)));
	weft_tap_error(c->iface->tap, text);
	c->state = RAW_QUIET;
	c->base.up = false;
	c->base.tx_room = false;
	c->ack_state = RAW_ACK_NONE;
	c->timer = 0;
	c->loss_timer = 0;
	park_open(c);
	words = weft_rxwin_sack(&c->rx, state->word, WEFT_FRAME_SACK_WORDS);
	state->next = weft_put32(c->rx.next);
	state->words = weft_put16((uint16_t)words);
	state->reserved = weft_put16(0);
	return (int)(offsetof(struct raw_rx_state, word) + 8 * words);
}

static bool was_received(const struct raw_rx_state *s, uint32_t seq)
{
	uint32_t bit = seq - weft_get32(s->next) - 1;

	if (weft_seq_diff(seq, weft_get32(s->next)) < 0)
		return true;
	if (bit >= 64u * weft_get16(s->words))
		return false;
	return weft_get64(s->word[bit / 64]) >> (bit % 64) & 1;
}

/* Has the peer received all that it has acknowledged, and nothing that was not sent? */
static bool state_fits(struct raw_conn *c, const struct raw_rx_state *s, size_t length)
{
	uint32_t words = weft_get16(s->words), pos = 0, bit, seq, sent;

	/* The frame that was open when the lane stopped has never been sent. */
	sent = c->snd_next - c->snd_una;
	if (sent && raw_slot(c, c->snd_next - 1)->tries == 0)
		sent--;
	if (words > WEFT_FRAME_SACK_WORDS ||
	    length != offsetof(struct raw_rx_state, word) + 8 * words)
		return false;
	if (weft_get32(s->next) - c->snd_una > sent)
		return false;
	while (weft_sack_next(s->word, words, &pos, &bit))
		if (weft_get32(s->next) + 1 + bit - c->snd_una >= sent)
			return false;
	for (seq = c->snd_una; seq != c->snd_next; seq++)
		if (!raw_slot(c, seq)->m && !was_received(s, seq))
			return false;
	return true;
}

static void ignore_completion(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	(void)status;
}

/*
 * The completion goes with the message. The NIC may still read the memory: the registration stays
 * until the NIC has released it, and no completion waits for that.
 */
static struct weft_lane_comp *take_comp(struct raw_zc *zc)
{
	static struct weft_lane_comp none = {.done = ignore_completion};
	struct weft_lane_comp *comp;

	if (!zc || !zc->comp)
		return NULL;
	comp = zc->comp;
	zc->comp = &none;
	return comp;
}

/* @p frame from its first byte on, @p payload bytes of messages behind its lane header */
static void deliver_messages(struct raw_conn *c, const uint8_t *frame, uint32_t payload,
			     struct weft_lane_comp *comp, weft_lane_reap_cb cb, void *arg)
{
	struct weft_frame_view v = {
		.body = frame + c->encap.len + sizeof(struct weft_frame_hdr),
		.body_len = payload,
	};
	const struct weft_frame_msg *msg;
	uint32_t off = 0;

	/* A completion may destroy the connection, and the frame with it. */
	while (c->state == RAW_QUIET && (msg = weft_frame_msg_next(&v, &off))) {
		/* A frame with user memory has a single message. */
		cb(arg, msg->am_id, msg + 1, weft_get16(msg->length), comp);
		comp = NULL;
	}
}

static void give_slot(struct raw_conn *c, struct raw_slot *slot, weft_lane_reap_cb cb, void *arg)
{
	struct raw_zc *zc;

	if (slot->taken_back) {
		const uint8_t *frame = raw_copy_bytes(slot->copy, &zc);

		deliver_messages(c, frame, slot->payload, take_comp(zc), cb, arg);
		return;
	}
	zc = slot->m->nb_segs > 1 ? raw_zc_of(slot->m) : NULL;
	deliver_messages(c, rte_pktmbuf_read(slot->m, 0, slot->m->pkt_len, c->iface->scratch),
			 slot->payload, take_comp(zc), cb, arg);
}

static void give_flushes(struct raw_conn *c, uint32_t seq, weft_lane_reap_cb cb, void *arg)
{
	struct raw_flush *f;

	while (c->state == RAW_QUIET && (f = STAILQ_FIRST(&c->flushes)) &&
	       weft_seq_diff(seq, f->seq) >= 0) {
		struct weft_lane_comp *comp = f->comp;

		STAILQ_REMOVE_HEAD(&c->flushes, link);
		free(f);
		cb(arg, 0, NULL, 0, comp);
	}
}

int raw_ep_reap(struct weft_lane_ep *lane_ep, const void *state, size_t length,
		weft_lane_reap_cb cb, void *arg)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_rx_state s = {0};
	struct raw_slot *slot;
	uint32_t seq;

	if (length < offsetof(struct raw_rx_state, word) || length > sizeof(s))
		return -EPROTO;
	memcpy(&s, state, length);
	if (c->state != RAW_QUIET || !state_fits(c, &s, length))
		return -EPROTO;
	/* Frames that are still in the TX queue leave; the peer ignores them. */
	for (seq = c->snd_una; seq != c->snd_next; seq++) {
		give_flushes(c, seq, cb, arg);
		slot = c->state == RAW_QUIET ? raw_slot(c, seq) : NULL;
		if (slot && slot->m && !was_received(&s, seq))
			give_slot(c, slot, cb, arg);
		if (c->state != RAW_QUIET)
			return 0; /* a completion has destroyed it */
	}
	give_flushes(c, seq, cb, arg);
	if (c->state == RAW_QUIET)
		raw_slots_release(c);
	return 0;
}
