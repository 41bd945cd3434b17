/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Admission of half-open connections, which are state for a peer that has only sent HELLO.
 *
 * While there are few half-open connections, every HELLO gets one. Beyond HALF_FREE a HELLO makes
 * no state unless its sender has proven that it receives at its address. The proof is a cookie, a
 * keyed hash of the sender's address and numbers: HELLO_RETRY contains it, and the sender repeats
 * it in the next HELLO. So a sender of forged addresses costs one frame per HELLO and keeps no
 * other peer away. An entry without a proven address does not count for any sender. It is the
 * first to be evicted for a peer with a proven address.
 *
 * Peers with proven addresses share the entries. Each address behind each MAC has a share. A
 * neighbour can prove any forged address, but all of them by its own MAC. So a MAC with more than
 * half of the entries gives way to others, however many addresses are behind it, as behind a
 * router.
 */

#include <string.h>

#include "base/hash.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/conn_state.h"
#include "engine/half_open.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "frame/frame.h"
#include "frame/parse.h"

#define HALF_FREE 32u  /* entries for peers without a proven address */
#define HALF_SHARE 32u /* entries of one sender, once HALF_FREE are taken */
#define HALF_MAC (RAW_HALF_OPEN_MAX / 2)
/* live_clock; several round trips: a live handshake has gone on by then */
#define HALF_OLD 100000000ull
#define COOKIE_NS 8000000000ull

/*
 * The source of a HELLO. The frames of an address behind a router may come from several of its
 * MACs.
 */
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

/* The cookie that the sender must repeat, for this period. */
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

/*
 * Finds the entry to evict for the sender of @p v, which has proven its address. The list has at
 * most RAW_HALF_OPEN_MAX entries.
 * @return NULL: no entry has to give way
 */
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

void raw_half_remove(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->hs->half_shown) {
		iface->half.by_source[c->hs->half_bucket]--;
		iface->half.by_mac[c->hs->half_mac]--;
	}
	iface->half.count--;
	TAILQ_REMOVE(&iface->half.list, c, hs->half_link);
}
