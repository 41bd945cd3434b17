/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "capture/tap.h"
#include "engine/address.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/ep.h"
#include "engine/handshake.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/multipath.h"
#include "engine/outstanding.h"
#include "engine/sealed.h"
#include "engine/tx.h"
#include "engine/window.h"
#include "frame/frame.h"
#include "frame/parse.h"
#include "lane.h"

int raw_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **lane_ep)
{
	return raw_ep_connect_key(base, addr, len, user, NULL, 0, lane_ep);
}

/* @param key  NULL: the connection makes its keys from the job key, if there is one */
int raw_ep_connect_key(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		       const struct weft_lane_key *key, uint8_t lane, struct weft_lane_ep **lane_ep)
{
	struct raw_iface *iface = raw_iface_of(base);
	struct raw_addr a;
	struct raw_conn *c;
	char why[160];
	uint32_t hop = 0;
	int err;

	err = raw_is_reachable(base, addr, len, why, sizeof(why));
	if (err != 0)
		return err;
	raw_addr_take(iface, addr, len, &a);
	if (!a.raw_ethertype)
		raw_next_hop(iface, a.ip, &hop);
	err = raw_conn_new(iface, false, &c);
	if (err != 0)
		return err;
	c->state = RAW_RESOLVE;
	if (key && !raw_sealed_further(c, key, lane)) {
		raw_conn_free(c);
		return -ENOMEM;
	}
	c->base.user = user;
	raw_state_peer(c, a.ip);
	c->hop_ip = hop;
	c->peer_port = a.udp_port;
	c->path[0].dport = a.udp_port;
	c->peer_queues = a.queues;
	memcpy(c->peer_mac, a.mac, 6);
	c->remote_iface = a.iface_id;
	raw_conn_template(c);
	raw_hs_start(c);
	*lane_ep = &c->base;
	return 0;
}

/*
 * Frames in the TX queue still leave; unacknowledged ones are dropped. If the peer may still send,
 * the connection stays in TIME_WAIT, to acknowledge retransmitted frames and repeat BYE.
 */
void raw_ep_destroy(struct weft_lane_ep *lane_ep)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_iface *iface = c->iface;
	bool met = c->state == RAW_UP || c->state == RAW_PROBE || c->state == RAW_PATHS ||
		   c->state == RAW_MEASURE || c->state == RAW_READY;
	bool lingers = met || c->state == RAW_DOWN;
	/* raw_ep_reap() has settled all sends */
	bool reaped = c->state == RAW_QUIET && !c->tx.slots;

	c->base.up = false;
	c->base.tx_room = false;
	c->base.user = NULL;
	if (c->tx.open)
		raw_frame_close(c, 0);
	if (met)
		raw_bye_send(c);
	else
		c->bye.done = true;
	raw_conn_linger(c, lingers);
	if (!reaped)
		raw_zc_fail(&c->tx, -ECANCELED);
	raw_conn_tx_end(c);
	raw_zc_cancel(c->iface, &c->tx);
	raw_flushes_end(&c->tx, -ECANCELED);
	raw_txq_flush(iface);
}

/*
 * Compare an address with the proven address of the peer. The peer has answered with the token of
 * our HELLO, or has sent HELLO and then the token of our answer. So the peer receives there.
 */
bool raw_ep_is_from(struct weft_lane_ep *lane_ep, const void *addr, size_t len)
{
	const struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_addr a;

	if (c->remote_token == 0 && c->remote_id == 0)
		return false; /* no peer has answered yet */
	if (raw_addr_take(c->iface, addr, len, &a) != 0 ||
	    a.raw_ethertype != c->iface->rx_filter.raw_ethertype)
		return false;
	if (a.iface_id != c->remote_iface)
		return false;
	if (a.raw_ethertype)
		return memcmp(a.mac, c->peer_mac, sizeof(a.mac)) == 0;
	return a.ip == c->peer_ip && a.udp_port == c->peer_port;
}

/* The peer's IP address, whatever ports it uses; without IP its MAC address. */
uint64_t raw_ep_host(const struct weft_lane_ep *lane_ep)
{
	const struct raw_conn *c = (const struct raw_conn *)lane_ep;
	uint64_t mac = 0;

	if (!c->iface->rx_filter.raw_ethertype)
		return c->peer_ip;
	memcpy(&mac, c->peer_mac, sizeof(c->peer_mac));
	return mac;
}

uint64_t raw_ep_seen(const struct weft_lane_ep *lane_ep)
{
	const struct raw_conn *c = (const struct raw_conn *)lane_ep;

	return raw_live_seen(&c->live, c->rx.seen);
}

void raw_ep_check(struct weft_lane_ep *lane_ep)
{
	struct raw_conn *c = raw_conn_of(lane_ep);

	if (c->state == RAW_UP && raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) == 0)
		raw_count(c->iface, RAW_TX_PING);
}

void raw_ep_print(struct weft_lane_ep *lane_ep, char *buf, size_t size)
{
	static const char *const names[] = {
		[RAW_RESOLVE] = "resolving the MAC address",
		[RAW_HELLO] = "connecting",
		[RAW_PROBE] = "probing the frame size",
		[RAW_PATHS] = "trying the ports of its paths",
		[RAW_MEASURE] = "measuring the path",
		[RAW_READY] = "connecting",
		[RAW_HALF_OPEN] = "half open",
		[RAW_UP] = "up",
		[RAW_QUIET] = "stopped",
		[RAW_DOWN] = "down",
		[RAW_TIME_WAIT] = "closed",
	};
	const struct raw_conn *c = raw_conn_of(lane_ep);
	char peer[64], window[160];
	int n;

	n = snprintf(buf, size,
		     "%s -> %s: %s, frames of %u bytes, %u outstanding (%u bytes), window %u "
		     "frames or %u bytes",
		     c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)), names[c->state],
		     c->frame_size, c->tx.next - c->tx.una, c->tx.inflight, c->tx.win_frames,
		     c->tx.win_bytes);
	for (unsigned int i = 0; i < c->path_count && n > 0 && (size_t)n < size; i++) {
		raw_window_print(&c->tx, i, window, sizeof(window));
		n += snprintf(
			buf + n, size - (size_t)n,
			"; path %u: ports %u to %u, rtt %.1f us +- %.1f, %u sent, %u resent%s%s", i,
			c->path[i].sport, c->path[i].dport, c->path[i].rtt.srtt / 1e3,
			c->path[i].rtt.var / 1e3, c->path[i].order, c->path[i].retransmits, window,
			raw_multi_text(c, i));
	}
}

/* Two lines, since DPDK's telemetry limits the length of one; one if the window is fixed. */
static void path_print(const struct raw_conn *c, unsigned int i,
		       void (*cb)(const char *text, void *arg), void *arg)
{
	char peer[64], delays[100], text[256];
	int n;

	n = snprintf(text, sizeof(text), "%s conn%u/path%u ", c->iface->base.name, c->id & 0xffff,
		     i);
	snprintf(text + n, sizeof(text) - (size_t)n,
		 "rtt %.1f us +- %.1f, window %u, %u sent, %u resent%s, to %s",
		 c->path[i].rtt.srtt / 1e3, c->path[i].rtt.var / 1e3,
		 c->tx.cc ? (unsigned int)c->tx.cc[i].window : c->tx.win_bytes, c->path[i].order,
		 c->path[i].retransmits, raw_multi_text(c, i),
		 raw_peer_text(c, peer, sizeof(peer)));
	cb(text, arg);
	raw_window_delays(&c->tx, i, delays, sizeof(delays));
	if (!delays[0])
		return;
	snprintf(text + n, sizeof(text) - (size_t)n, "%s", delays);
	cb(text, arg);
}

void raw_paths_print(const struct raw_iface *iface, void (*cb)(const char *text, void *arg),
		     void *arg)
{
	const struct raw_conn *c;
	uint32_t at = 0;

	while ((c = raw_table_next(iface, &at)))
		for (unsigned int i = 0; i < c->path_count && c->state == RAW_UP; i++)
			path_print(c, i, cb, arg);
}

static void path_record(const struct raw_conn *c, unsigned int i, struct weft_tap *tap)
{
	const struct raw_path *p = &c->path[i];
	struct weft_tap_path state = {
		.conn = c->id,
		.token = c->token,
		.path = i,
		.window = c->tx.cc ? c->tx.cc[i].window : c->tx.win_bytes,
		.in_flight = c->path_count > 1 ? p->inflight : c->tx.inflight,
		.rtt = p->rtt.srtt,
		.least = p->rtt.min,
		.mode = "",
	};

	if (c->tx.cc) {
		state.base = c->tx.cc[i].delay.base;
		state.noise = c->tx.cc[i].delay.jitter.noise;
		state.target = c->tx.cc[i].target;
		state.mode = weft_cc_mode_name(&c->tx.cc[i]);
	}
	weft_tap_path(tap, &state);
}

unsigned int raw_paths_record(const void *arg, struct weft_tap *tap, unsigned int from)
{
	const struct raw_iface *iface = arg;
	const struct raw_conn *c;
	unsigned int n = 0;
	uint32_t at = 0;

	if (iface->port->ops->missed)
		weft_tap_missed(tap, iface->port->ops->missed(iface->port));
	while ((c = raw_table_next(iface, &at)))
		for (unsigned int i = 0; i < c->path_count && c->state == RAW_UP; i++, n++) {
			if (n >= from + WEFT_TAP_PATHS)
				return n;
			if (n >= from)
				path_record(c, i, tap);
		}
	return 0;
}

/* ---------------------------------------------------------------- quiesce and reap */

static_assert(sizeof(struct raw_rx_state) == 8 + 8 * WEFT_FRAME_SACK_WORDS, "state");

static void park_open(struct raw_conn *c)
{
	struct rte_mbuf *m = c->tx.open;

	if (c->tx.on_list)
		TAILQ_REMOVE(&c->iface->tx_list, &c->tx, link);
	c->tx.on_list = false;
	c->open_room = 0;
	if (!m)
		return;
	m->data_len = (uint16_t)(c->open_pos - rte_pktmbuf_mtod(m, uint8_t *));
	m->pkt_len = m->data_len;
	*raw_slot(&c->tx, c->tx.next++) = (struct raw_slot){
		.m = m,
		.payload = m->pkt_len - c->encap.len - (uint32_t)sizeof(struct weft_frame_hdr),
	};
	c->tx.open = NULL;
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
	raw_limit_end(c);
	c->rx.ack_state = RAW_ACK_NONE;
	c->tx.timer = 0;
	c->tx.loss_timer = 0;
	park_open(c);
	words = weft_rxwin_sack(&c->rx.win, state->word, WEFT_FRAME_SACK_WORDS);
	state->next = weft_put32(c->rx.win.next);
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
static bool state_fits(const struct raw_tx *tx, const struct raw_rx_state *s, size_t length)
{
	uint32_t words = weft_get16(s->words), pos = 0, bit, seq, sent;

	/* The frame that was open when the lane stopped has never been sent. */
	sent = tx->next - tx->una;
	if (sent && raw_slot(tx, tx->next - 1)->tries == 0)
		sent--;
	if (words > WEFT_FRAME_SACK_WORDS ||
	    length != offsetof(struct raw_rx_state, word) + 8 * words)
		return false;
	if (weft_get32(s->next) - tx->una > sent)
		return false;
	while (weft_sack_next(s->word, words, &pos, &bit))
		if (weft_get32(s->next) + 1 + bit - tx->una >= sent)
			return false;
	for (seq = tx->una; seq != tx->next; seq++)
		if (!raw_slot(tx, seq)->m && !was_received(s, seq))
			return false;
	return true;
}

static void ignore_completion(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	(void)status;
}

/* The completion goes with the message. The registration stays until the NIC has released it. */
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

/* @p frame: its first byte. @p payload: bytes of messages behind its lane header. */
static void deliver_messages(struct raw_conn *c, const uint8_t *frame, uint32_t payload,
			     struct weft_lane_comp *comp, weft_lane_reap_cb cb, void *arg)
{
	struct weft_frame_view v = {
		.body = frame + c->encap.len + sizeof(struct weft_frame_hdr),
		.body_len = payload,
	};
	const struct weft_frame_msg *msg;
	uint32_t off = 0;

	/* The callback may destroy the connection, and the frame with it. */
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

	while (c->state == RAW_QUIET && (f = STAILQ_FIRST(&c->tx.flushes)) &&
	       weft_seq_diff(seq, f->seq) >= 0) {
		struct weft_lane_comp *comp = f->comp;

		STAILQ_REMOVE_HEAD(&c->tx.flushes, link);
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
	if (c->state != RAW_QUIET || !state_fits(&c->tx, &s, length))
		return -EPROTO;
	/* Frames that are still in the TX queue leave; the peer ignores them. */
	for (seq = c->tx.una; seq != c->tx.next; seq++) {
		give_flushes(c, seq, cb, arg);
		slot = c->state == RAW_QUIET ? raw_slot(&c->tx, seq) : NULL;
		if (slot && slot->m && !was_received(&s, seq))
			give_slot(c, slot, cb, arg);
		if (c->state != RAW_QUIET)
			return 0; /* a callback has destroyed the connection */
	}
	give_flushes(c, seq, cb, arg);
	if (c->state == RAW_QUIET)
		raw_conn_tx_end(c);
	return 0;
}
