/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Who may have a half-open connection: state for somebody who has only said HELLO.
 *
 * While there are few, everybody at once. Beyond that a HELLO makes no state unless its sender has shown that it gets
 * what is sent to its address: it is answered with a cookie, a keyed hash of its address and its numbers, which it sends
 * again. So senders of made-up addresses cost a frame each and keep nobody away. Those who have shown their address share
 * the places fairly: each has a share, and when all places are taken the oldest one of the sender that has most goes.
 */

#include <string.h>

#include "raw.h"

#define HALF_FREE 32u  /* places for those who have shown nothing */
#define HALF_SHARE 32u /* of one sender, once those are taken */
#define COOKIE_NS 8000000000ull

/* Where a HELLO comes from. An address behind a router may come by several of its MACs. */
struct source {
	uint8_t mac[6];
	uint16_t kind;
	uint32_t ip;
} __attribute__((packed));

static struct source source_of(const struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct source s = {.ip = v->src_ip};

	if (iface->gate.raw_ethertype)
		memcpy(s.mac, v->src_mac, sizeof(s.mac));
	return s;
}

/* What the sender must show, in this stretch of time. */
static uint64_t cookie(const struct raw_iface *iface, const struct weft_frame_view *v,
		       uint64_t period)
{
	const struct weft_frame_hello *h = (const struct weft_frame_hello *)v->body;
	struct source from = source_of(iface, v);
	struct weft_siphash s;

	weft_siphash_init(&s, &iface->key);
	weft_siphash_add(&s, &period, sizeof(period));
	weft_siphash_add(&s, &from, sizeof(from));
	weft_siphash_add(&s, &h->iface_id, sizeof(h->iface_id));
	weft_siphash_add(&s, &h->conn, sizeof(h->conn));
	weft_siphash_add(&s, &h->token, sizeof(h->token));
	return weft_siphash_end(&s) | 1; /* 0 = none */
}

static bool shows_cookie(const struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_hello *h = (const struct weft_frame_hello *)v->body;
	uint64_t period = iface->now / COOKIE_NS, shown = weft_le64(h->cookie);

	return shown != 0 &&
	       (shown == cookie(iface, v, period) || shown == cookie(iface, v, period - 1));
}

static uint8_t bucket_of(const struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct source from = source_of(iface, v);

	return (uint8_t)weft_siphash(&iface->key, &from, sizeof(from));
}

/*
 * Make room for one more in @p bucket. Senders in one bucket pass for one: which ones do only we know. @return false: those
 * who are there have no more than the new one would have
 */
static bool make_room(struct raw_iface *iface, uint8_t bucket)
{
	struct raw_conn *c, *most = NULL;

	TAILQ_FOREACH(c, &iface->half, half_link)
		if (most == NULL ||
		    iface->half_of[c->half_bucket] > iface->half_of[most->half_bucket])
			most = c;
	if (most == NULL || iface->half_of[most->half_bucket] <= iface->half_of[bucket] + 1u)
		return false;
	raw_count(iface, RAW_HALF_EVICTED);
	raw_conn_free(most);
	return true;
}

bool raw_half_admit(struct raw_iface *iface, const struct weft_frame_view *v)
{
	uint8_t bucket = bucket_of(iface, v);

	if (iface->half_open < HALF_FREE)
		return true;
	if (!shows_cookie(iface, v)) {
		struct weft_frame_retry r = {
			.cookie = weft_le64(cookie(iface, v, iface->now / COOKIE_NS))};

		raw_count(iface, RAW_HELLO_RETRY);
		raw_stranger_send(iface, v, WEFT_FRAME_HELLO_RETRY, &r, sizeof(r));
		return false;
	}
	if (iface->half_of[bucket] < HALF_SHARE &&
	    (iface->half_open < RAW_HALF_OPEN_MAX || make_room(iface, bucket)))
		return true;
	raw_count(iface, RAW_DROP_HALF_OPEN_FULL);
	raw_reset_send(iface, v, WEFT_RESET_BUSY);
	return false;
}

void raw_half_add(struct raw_conn *c, const struct weft_frame_view *v)
{
	struct raw_iface *iface = c->iface;

	c->half_bucket = bucket_of(iface, v);
	iface->half_of[c->half_bucket]++;
	iface->half_open++;
	TAILQ_INSERT_TAIL(&iface->half, c, half_link);
}

void raw_half_remove(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	iface->half_of[c->half_bucket]--;
	iface->half_open--;
	TAILQ_REMOVE(&iface->half, c, half_link);
}
