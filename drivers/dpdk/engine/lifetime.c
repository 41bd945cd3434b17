/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/container.h"
#include "engine/address.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/mtu.h"
#include "engine/multipath.h"
#include "engine/outstanding.h"
#include "engine/path_open.h"
#include "engine/reliability.h"
#include "engine/sealed.h"
#include "engine/window.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "lane.h"

static void half_remove(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->hs->half_shown) {
		iface->half.by_source[c->hs->half_bucket]--;
		iface->half.by_mac[c->hs->half_mac]--;
	}
	iface->half.count--;
	TAILQ_REMOVE(&iface->half.list, c, hs->half_link);
}

int raw_conn_new(struct raw_iface *iface, bool passive, struct raw_conn **conn)
{
	const struct weft_platform *pf = iface->platform;
	struct raw_conn *c;
	struct {
		uint64_t secret;
		uint32_t token, seq;
	} rnd;
	uint32_t index;
	int rc = pf->random(pf->arg, &rnd, sizeof(rnd));

	if (rc == 0)
		rc = raw_table_take(iface, &index);
	if (rc != 0)
		return rc;
	c = aligned_alloc(64, sizeof(*c));
	if (!c) {
		raw_table_give(iface, index);
		raw_count(iface, RAW_NO_MEMORY);
		return -ENOMEM;
	}
	memset(c, 0, sizeof(*c));
	c->base.iface = &iface->base;
	c->base.ops = iface->base.ops;
	c->base.passive = passive;
	c->iface = iface;
	/* The generation is a permuted number: a peer cannot derive those of other connections. */
	c->id = index | (uint32_t)raw_generation(&iface->key, (uint16_t)iface->generation++) << 16;
	c->token = rnd.token;
	c->secret = rnd.secret;
	c->tx_clock_at = RAW_NEVER;
	c->tx.next = iface->set_first_seq ? iface->first_seq : rnd.seq;
	c->tx.una = c->tx.next;
	c->tx.sack_high = c->tx.next;
	c->csum = iface->csum_wanted;
	c->paths = 1;
	c->path_count = 1;
	c->rx.seen = iface->live_clock;
	c->state = RAW_HALF_OPEN;
	if (raw_state_init(c) != 0) {
		free(c);
		raw_table_give(iface, index);
		return -ENOMEM;
	}
	c->hs->started = iface->live_clock;
	raw_timer_learn(c);
	LIST_INIT(&c->tx.zc);
	STAILQ_INIT(&c->tx.flushes);
	iface->refs[index] = (struct raw_ref){.id = c->id, .token = c->token, .conn = c};
	iface->conn_count++;
	iface->rest_until = 0;
	raw_count(iface, passive ? RAW_CONN_PASSIVE : RAW_CONN_ACTIVE);
	*conn = c;
	return 0;
}

void raw_conn_tx_end(struct raw_conn *c)
{
	c->open_room = 0;
	c->base.queued = 0;
	raw_parts_forget(c);
	raw_limit_end(c);
	raw_window_over(c);
	raw_slots_release(c->iface, &c->tx);
}

/* Keeps the peer's address, so that RESET can answer the peer's later frames: see answers_for(). */
static void remember_peer(struct raw_conn *c)
{
	struct raw_gone *gone = &c->iface->gone[c->id & 0xffff];
	bool half = c->state == RAW_HALF_OPEN;

	/* A half-open connection does not overwrite the peer of a former established one. */
	if (half && gone->known && !gone->half)
		return;
	*gone = (struct raw_gone){.ip = c->peer_ip, .known = true, .half = half};
	memcpy(gone->mac, c->peer_mac, 6);
}

static void set_time_wait(struct raw_conn *c, bool yes)
{
	struct raw_iface *iface = c->iface;

	if (c->lingers == yes)
		return;
	c->lingers = yes;
	if (yes) {
		iface->time_wait++;
		TAILQ_INSERT_TAIL(&iface->closed, c, wait_link);
	} else {
		iface->time_wait--;
		TAILQ_REMOVE(&iface->closed, c, wait_link);
	}
}

void raw_conn_free(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	remember_peer(c);
	raw_farewell_remove(c);
	raw_conn_tx_end(c);
	if (c->tx.on_list)
		TAILQ_REMOVE(&iface->tx_list, &c->tx, link);
	raw_rx_free(iface, &c->rx);
	if (c->state == RAW_HALF_OPEN)
		half_remove(c);
	raw_table_resolving(c, false);
	set_time_wait(c, false);
	raw_table_hello_remove(c);
	raw_table_hop_remove(c);
	raw_deadlines_forget(c);
	raw_table_give(iface, c->id & 0xffff);
	iface->conn_count--;
	raw_window_free(&c->tx);
	raw_multi_free(c);
	raw_sealed_free(c);
	raw_state_free(c);
	free(c);
}

/*
 * The fixed window is the configured one, in frames at most half of the peer's receive ring: one
 * sender alone must not overrun the ring. With congestion control it is an upper bound only: most
 * of a long path's window is in the network, not in the ring.
 */
static int make_window(struct raw_conn *c)
{
	const struct raw_hs *hs = c->hs;
	struct raw_iface *iface = c->iface;
	bool fixed = raw_window_fixed(iface);
	uint64_t frames = fixed ? RTE_MIN(hs->peer_rx_frames / 2, RAW_WIN_FRAMES)
				: (uint64_t)RAW_WIN_RINGS * hs->peer_rx_frames;

	frames = RTE_MIN(frames, RTE_MIN(hs->peer_rx_seqs, WEFT_RXWIN));
	frames = RTE_MIN(frames, iface->share.tx_held_max);
	c->tx.win_frames = RTE_MAX((uint32_t)frames, 1u);
	c->tx.win_bytes = iface->conf.window != 0
				  ? (uint32_t)RTE_MIN(iface->conf.window, (size_t)INT32_MAX)
			  : fixed ? RAW_WIN_BYTES
				  : RAW_WIN_BYTES_MAX;
	c->tx.win_whole = c->tx.win_frames;
	raw_slots_drop(&c->tx);
	if (raw_multi_init(c) != 0)
		return -ENOMEM;
	return raw_window_init(c, c->measured.rtt, hs->measure.best);
}

/* @return true: the connection is worse than configured, which is worth a warning */
static bool up_text(const struct raw_conn *c, char *text, size_t size)
{
	const char *name = c->iface->base.name;
	char peer[64];

	raw_peer_text(c, peer, sizeof(peer));
	if (c->search && c->frame_size < c->search->full)
		snprintf(text, size,
			 "%s: frames of %u bytes do not reach %s, so %u are used: check the MTU of "
			 "every link and switch between",
			 name, c->search->full, peer, c->frame_size);
	else if (c->elsewhere)
		snprintf(text, size,
			 "%s: no UDP port was found by which frames between %s and us come to the "
			 "right queue at both ends, so they go through another worker of the port, "
			 "slower and only while that one polls: use fewer queues=, or a port for "
			 "each worker",
			 name, peer);
	else if (!c->base.passive && c->path_count < RTE_MAX(c->iface->paths, c->hs->peer_paths))
		snprintf(text, size,
			 "%s: %u of %u paths to %s are used, the next one has no answer: does a "
			 "firewall between stop UDP from other ports than %u, or its answers?",
			 name, c->path_count, RTE_MAX(c->iface->paths, c->hs->peer_paths), peer,
			 c->iface->rx_filter.udp_port);
	else
		return snprintf(text, size, "%s: connected with %s, frames of %u bytes, %s", name,
				peer, c->frame_size,
				c->csum == RAW_CSUM_SEALED          ? "sealed"
				: c->csum == WEFT_FRAME_CSUM_CRC32C ? "CRC32C"
				: c->csum == WEFT_FRAME_CSUM_UDP    ? "UDP checksum"
								    : "no checksum") < 0;
	return true;
}

/* Until there are samples, timers follow the round trip that the handshake has measured. */
static void first_trip(struct raw_conn *c)
{
	uint32_t trip;

	/* A responder has waited for answers to HELLO_ACK and PROBE_ACK: two round trips. */
	if (c->base.passive)
		weft_rtt_first(&c->path[0].rtt, (c->iface->live_clock - c->hs->started) / 2);
	trip = c->measured.rtt != 0 ? c->measured.rtt : c->path[0].rtt.first;
	for (unsigned int i = 0; i < c->path_count; i++)
		c->path[i].rtt.first = trip;
	/* On short paths samples come before the protocol layer needs the round trip. */
	if (2ull * trip > WEFT_RTO_INITIAL)
		c->base.rtt_ns = trip;
	raw_timer_learn(c);
}

void raw_conn_up(struct raw_conn *c, uint16_t frame_size)
{
	struct raw_iface *iface = c->iface;
	uint64_t look;
	char text[400];
	bool worse;

	c->frame_size = frame_size;
	c->paths = RTE_MIN(iface->paths, c->path_count);
	if (make_window(c) != 0) {
		raw_conn_fail(c, -ENOMEM, "out of memory for a connection's send window");
		return;
	}
	if (c->state == RAW_HALF_OPEN)
		half_remove(c);
	raw_mtu_init(c);
	first_trip(c);
	c->base.max_msg = c->tx.room - (uint32_t)sizeof(struct weft_frame_msg);
	c->state = RAW_UP;
	/* When HELLO comes it is too early for this: its source address may be forged. */
	if (!c->live.socket && iface->port->ops->alone)
		iface->port->ops->alone(iface->port, c->peer_ip);
	raw_table_resolving(c, false);
	raw_table_hop_add(c);
	c->base.up = true;
	c->base.tx_room = true;
	c->rx.seen = iface->live_clock;
	c->live.next_ping = iface->live_clock + iface->conf.keepalive_ns;
	look = RTE_MIN(c->live.next_ping, iface->live_clock + iface->conf.peer_timeout_ns);
	if (raw_multi_can_open(c) && !c->base.passive)
		look = RTE_MIN(look, iface->live_clock + RAW_RESERVE_NS);
	raw_deadline_live(c, look);
	raw_count(iface, RAW_CONN_UP);
	worse = up_text(c, text, sizeof(text));
	raw_sealed_connected(c);
	raw_state_connected(c);
	raw_farewell_enter(c);
	iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_UP, worse, text);
}

/* Zero-copy sends still in use get the error. The caller ends flushes, then reports the event. */
static void go_down(struct raw_conn *c, int error)
{
	if (c->state == RAW_HALF_OPEN)
		half_remove(c);
	c->state = RAW_DOWN;
	raw_sealed_connected(c);
	raw_state_connected(c);
	raw_table_hop_remove(c);
	c->error = error;
	c->base.up = false;
	c->base.tx_room = false;
	c->rx.ack_state = RAW_ACK_NONE;
	raw_zc_fail(&c->tx, error);
	raw_conn_tx_end(c);
}

void raw_conn_fail(struct raw_conn *c, int status, const char *text)
{
	struct raw_iface *iface = c->iface;
	bool known = c->state != RAW_HALF_OPEN; /* the protocol layer has a reference */
	bool was_up = c->base.up;

	raw_count(iface, RAW_CONN_FAILED);
	go_down(c, status);
	if (!known) {
		raw_conn_free(c);
		return;
	}
	raw_flushes_end(&c->tx, status);
	/* A failed attempt to connect leaves nothing for the flight recorder to examine. */
	if (was_up)
		weft_tap_error(iface->tap, text);
	if (c->state == RAW_DOWN)
		iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_DOWN, status, text);
}

/*
 * The peer has closed the connection. If all its frames have arrived, the connection has ended in
 * good order, although our unacknowledged sends end with an error. Otherwise BYE may have overtaken
 * frames: they have RAW_BYE_GRACE to arrive. After that messages are lost, since the peer has
 * released them, and the lane has failed.
 */
void raw_conn_bye(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[256], peer[64];

	if (raw_bye_waits(&c->bye, c->rx.win.next, iface->live_clock)) {
		raw_deadline_live(c, c->bye.at);
		return;
	}
	raw_ctl_send_on(c, c->bye.path, WEFT_FRAME_BYE_ACK, 0, NULL, 0, 0);
	c->bye.done = true;
	raw_peer_text(c, peer, sizeof(peer));
	if (c->rx.win.next != c->bye.seq) {
		snprintf(text, sizeof(text),
			 "%s: %s closed the connection before %u of its frames arrived",
			 iface->base.name, peer, c->bye.seq - c->rx.win.next);
		raw_conn_fail(c, -ECONNRESET, text);
		return;
	}
	raw_count(iface, RAW_CONN_GONE);
	snprintf(text, sizeof(text), "%s: %s closed the connection", iface->base.name, peer);
	go_down(c, -ECONNRESET);
	raw_flushes_end(&c->tx, -ECONNRESET);
	if (c->state == RAW_DOWN)
		iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_GONE, 0, text);
}

void raw_conn_bye_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	raw_bye_take(&c->bye, weft_get32(v->hdr->seq), raw_came_over(c, v), c->iface->live_clock);
	raw_conn_bye(c);
}

void raw_conn_gone_input(struct raw_conn *c)
{
	char text[160], peer[64];

	if (c->state == RAW_TIME_WAIT)
		c->bye.done = true;
	if (c->state != RAW_UP && c->state != RAW_READY) {
		raw_count(c->iface, RAW_DROP_STATE);
		return;
	}
	raw_count(c->iface, RAW_RESET_IN);
	snprintf(text, sizeof(text), "%s: %s answers that its process has ended",
		 c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)));
	raw_conn_fail(c, -ECONNRESET, text);
}

/* The timers free the connection, since the caller may be walking over the connections. */
static void expire_oldest(struct raw_iface *iface)
{
	struct raw_conn *c = TAILQ_FIRST(&iface->closed);

	raw_count(iface, RAW_CONN_LOOKS);
	set_time_wait(c, false);
	c->hs_expire = iface->live_clock;
	raw_deadline_live(c, iface->live_clock);
}

void raw_conn_linger(struct raw_conn *c, bool lingers)
{
	struct raw_iface *iface = c->iface;

	raw_table_resolving(c, false);
	raw_table_hop_remove(c);
	if (lingers && iface->time_wait >= RAW_TIME_WAIT_MAX)
		expire_oldest(iface);
	set_time_wait(c, lingers);
	c->state = RAW_TIME_WAIT;
	raw_sealed_connected(c);
	raw_state_connected(c);
	c->hs_tries = 0;
	c->hs_next = iface->live_clock + RAW_HS_RETRY_MIN;
	c->hs_expire = iface->live_clock + (lingers ? RAW_TIME_WAIT_NS : 0);
	raw_deadline_live(c, lingers ? c->hs_next : iface->live_clock);
}

/* ---------------------------------------------------------------- half-open connections */

/*
 * Admission of half-open connections, which are state for a peer that has only sent HELLO.
 *
 * Beyond HALF_FREE entries a HELLO makes no state unless its sender has proven that it receives at
 * its address. The proof is a cookie, a keyed hash of the sender's address and numbers: HELLO_RETRY
 * contains it, and the sender repeats it in the next HELLO. So a sender of forged addresses costs
 * one frame per HELLO. An entry without a proven address counts for no sender. It is the first to
 * be evicted for a peer with a proven address.
 *
 * Each proven address behind each MAC has a share of the entries. A neighbour can prove any forged
 * address, but all of them by its own MAC. So a MAC with more than half of the entries gives way to
 * others, however many addresses are behind it (a router).
 */

#define HALF_FREE 32u
#define HALF_SHARE 32u /* most entries of one sender, once HALF_FREE are taken */
#define HALF_MAC (RAW_HALF_OPEN_MAX / 2)
/* live_clock: an entry of this age may be evicted: a live handshake has ended by then */
#define HALF_OLD 100000000ull
#define COOKIE_NS 8000000000ull

/* The source of a HELLO. In a cookie with IP the MAC is 0: a router may have several MACs. */
struct source {
	uint8_t mac[6];
	uint16_t kind;
	uint32_t ip;
} __attribute__((packed));

static struct source source_of(const struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct source s = {.ip = v->src_ip};

	if (iface->rx_filter.raw_ethertype)
		memcpy(s.mac, v->src_mac, sizeof(s.mac));
	return s;
}

static uint64_t cookie_of(struct raw_iface *iface, const struct weft_frame_view *v, uint64_t period)
{
	const struct weft_frame_hello *h = (const struct weft_frame_hello *)v->body;
	struct source from = source_of(iface, v);
	struct weft_siphash s;

	raw_count(iface, RAW_COOKIE_HASHES);
	weft_siphash_init(&s, &iface->key);
	weft_siphash_add(&s, &period, sizeof(period));
	weft_siphash_add(&s, &from, sizeof(from));
	weft_siphash_add(&s, &h->iface_id, sizeof(h->iface_id));
	weft_siphash_add(&s, &h->conn, sizeof(h->conn));
	weft_siphash_add(&s, &h->token, sizeof(h->token));
	return weft_siphash_end(&s) | 1; /* 0 = none */
}

static bool shows_cookie(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_hello *h = (const struct weft_frame_hello *)v->body;
	uint64_t period = iface->now / COOKIE_NS, shown = weft_get64(h->cookie);

	return shown != 0 &&
	       (shown == cookie_of(iface, v, period) || shown == cookie_of(iface, v, period - 1));
}

/* Senders in one bucket count as one. The hash is keyed, so no sender can choose its bucket. */
struct buckets {
	uint8_t sender, mac;
};

static struct buckets buckets_of(const struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct source from = {.ip = v->src_ip};

	memcpy(from.mac, v->src_mac, sizeof(from.mac));
	return (struct buckets){
		.sender = (uint8_t)weft_siphash(&iface->key, &from, sizeof(from)),
		.mac = (uint8_t)weft_siphash(&iface->key, from.mac, sizeof(from.mac)),
	};
}

static bool is_big(const struct raw_iface *iface, uint8_t mac)
{
	return iface->half.by_mac[mac] > HALF_MAC;
}

/* The entry with the highest rank is evicted first among those with a proven address. */
static uint32_t eviction_rank(const struct raw_conn *c)
{
	const struct raw_iface *iface = c->iface;

	return (uint32_t)is_big(iface, c->hs->half_mac) << 31 |
	       (uint32_t)iface->half.by_source[c->hs->half_bucket] << 16 |
	       iface->half.by_mac[c->hs->half_mac];
}

static bool same_address(const struct raw_conn *c, const struct weft_frame_view *v)
{
	return c->iface->rx_filter.raw_ethertype ? memcmp(c->peer_mac, v->src_mac, 6) == 0
						 : c->peer_ip == v->src_ip;
}

/* Finds the entry to evict for the sender of @p v, which has proven its address; NULL: none. */
static struct raw_conn *pick_victim(struct raw_iface *iface, const struct weft_frame_view *v,
				    struct buckets of)
{
	struct raw_conn *c, *not_shown = NULL, *most = NULL;

	TAILQ_FOREACH(c, &iface->half.list, hs->half_link) {
		if (c->hs->half_shown) {
			if (!most || eviction_rank(c) > eviction_rank(most))
				most = c;
		} else if (!not_shown || (same_address(c, v) && !same_address(not_shown, v))) {
			not_shown = c;
		}
	}
	if (not_shown || !most)
		return not_shown;
	if (is_big(iface, most->hs->half_mac) && most->hs->half_mac != of.mac)
		return most;
	if (iface->half.by_source[most->hs->half_bucket] > iface->half.by_source[of.sender] + 1u)
		return most;
	return iface->live_clock + RAW_HALF_OPEN_NS > most->hs_expire + HALF_OLD ? most : NULL;
}

static bool make_room(struct raw_iface *iface, const struct weft_frame_view *v, struct buckets of)
{
	struct raw_conn *c;

	if (iface->half.count < RAW_HALF_OPEN_MAX)
		return true;
	c = pick_victim(iface, v, of);
	if (!c)
		return false;
	raw_count(iface, RAW_HALF_EVICTED);
	raw_conn_free(c);
	return true;
}

bool raw_half_admit(struct raw_iface *iface, const struct weft_frame_view *v, bool *shown)
{
	struct buckets of = buckets_of(iface, v);

	*shown = shows_cookie(iface, v);
	if (iface->half.count < HALF_FREE)
		return true;
	if (!*shown) {
		struct weft_frame_retry r = {
			.cookie = weft_put64(cookie_of(iface, v, iface->now / COOKIE_NS))};

		raw_count(iface, RAW_HELLO_RETRY);
		raw_unknown_sender_reply(iface, v, WEFT_FRAME_HELLO_RETRY, &r, sizeof(r));
		return false;
	}
	if (iface->half.by_source[of.sender] < HALF_SHARE && make_room(iface, v, of))
		return true;
	raw_count(iface, RAW_DROP_HALF_OPEN_FULL);
	raw_reset_send(iface, v, WEFT_RESET_BUSY);
	return false;
}

void raw_half_add(struct raw_conn *c, const struct weft_frame_view *v, bool shown)
{
	struct raw_iface *iface = c->iface;
	struct buckets of = buckets_of(iface, v);

	c->hs->half_bucket = of.sender;
	c->hs->half_mac = of.mac;
	iface->half.count++;
	TAILQ_INSERT_TAIL(&iface->half.list, c, hs->half_link);
	if (shown)
		raw_half_shown(c);
}

void raw_half_shown(struct raw_conn *c)
{
	if (c->hs->half_shown)
		return;
	c->hs->half_shown = true;
	c->iface->half.by_source[c->hs->half_bucket]++;
	c->iface->half.by_mac[c->hs->half_mac]++;
}
