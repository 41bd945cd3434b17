/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/secret.h"
#include "engine/address.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/sealed.h"
#include "engine/sealed_state.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "seal/exchange.h"
#include "seal/seal.h"

#define RESTART_NS 1000000000ull /* least ns since the offer, and since the peer's last frame */

static_assert(sizeof(struct weft_frame_hello) == WEFT_EXCHANGE_AT, "the exchange follows HELLO");
static_assert(WEFT_SEALED_SLOTS_MAX == WEFT_FRAME_PATHS_MAX, "a slot for each path");
static_assert(sizeof(struct weft_exchange_key) <= RTE_SIZEOF_FIELD(struct weft_lane_key, bytes),
	      "the driver's part");

/* The exchange, until the connection is up. It has keys, so it is overwritten before free(). */
struct raw_offer {
	struct weft_exchange x;            /* initiator: state of the exchange */
	struct weft_exchange_key key;      /* initiator of a further lane: the endpoint's key */
	uint8_t hello[WEFT_EXCHANGE_BODY]; /* initiator: without cookie; responder: as received */
	uint8_t ack[WEFT_EXCHANGE_BODY];   /* responder: the HELLO_ACK, for repeats */
	uint64_t at;                       /* initiator: live_clock when the offer was made */
	bool made;
};

/* ---------------------------------------------------------------- an iface */

int raw_seal_open(struct raw_iface *iface, const struct weft_lane_conf *conf, char *why, size_t len)
{
	struct raw_seal *s;
	int rc = -ENOMEM;

	if (!conf->job_key)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->conf = (struct weft_exchange_conf){
		.version = WEFT_FRAME_VERSION,
		.mode = conf->seal_auth ? WEFT_SEAL_AUTH : WEFT_SEAL_ENCRYPT,
		.kind = conf->seal_dh ? WEFT_EXCHANGE_NOISE : WEFT_EXCHANGE_PSK,
	};
	s->rekey_ns = conf->seal_rekey_ns;
	s->keylog = conf->keylog;
	s->cipher = weft_cipher_create(why, len);
	s->key = weft_secret_alloc(sizeof(*s->key));
	if (s->cipher && s->key)
		rc = weft_exchange_key_init(s->key, conf->job_key);
	else if (!s->cipher)
		rc = -ENOTSUP;
	iface->seal = s;
	if (rc < 0)
		raw_seal_close(iface);
	return rc;
}

void raw_seal_close(struct raw_iface *iface)
{
	struct raw_seal *s = iface->seal;

	if (!s)
		return;
	weft_cipher_destroy(s->cipher);
	weft_secret_free(s->key, sizeof(*s->key));
	weft_keyring_fini(&s->further);
	free(s);
	iface->seal = NULL;
}

/* ---------------------------------------------------------------- keys of further lanes */

static const struct weft_exchange_key *exchange_key(const struct weft_lane_key *key)
{
	return (const struct weft_exchange_key *)key->bytes;
}

int raw_ep_export(struct weft_lane_ep *lane_ep, struct weft_lane_key *key)
{
	const struct raw_conn *c = raw_conn_of(lane_ep);
	uint8_t secret[WEFT_HASH_LEN];
	int rc;

	if (!c->iface->seal)
		return -ENOTSUP;
	if (!c->sealed || !c->sealed->keys)
		return -ENOTCONN;
	weft_sealed_export(c->sealed->keys, secret);
	rc = weft_exchange_key_init((struct weft_exchange_key *)key->bytes, secret);
	weft_secret_wipe(secret, sizeof(secret));
	return rc;
}

int raw_key_accept(struct weft_lane_iface *base, const struct weft_lane_key *key)
{
	return weft_keyring_add(&raw_iface_of(base)->seal->further, exchange_key(key));
}

void raw_key_forget(struct weft_lane_iface *base, const struct weft_lane_key *key)
{
	weft_keyring_remove(&raw_iface_of(base)->seal->further, exchange_key(key));
}

bool raw_ep_has_key(const struct weft_lane_ep *lane_ep, const struct weft_lane_key *key,
		    uint8_t lane)
{
	const struct raw_sealed *s = ((const struct raw_conn *)lane_ep)->sealed;

	return s && s->further && s->lane == lane &&
	       memcmp(s->key_id, exchange_key(key)->id, WEFT_KEY_ID_LEN) == 0;
}

/* ---------------------------------------------------------------- a connection */

static bool sealed_alloc(struct raw_conn *c)
{
	struct raw_sealed *s = c->sealed;

	if (!s)
		s = c->sealed = calloc(1, sizeof(*s));
	if (s && !s->offer)
		s->offer = weft_secret_alloc(sizeof(*s->offer));
	if (s && s->offer)
		return true;
	raw_count(c->iface, RAW_NO_MEMORY);
	return false;
}

static void set_further(struct raw_sealed *s, const struct weft_exchange_key *key, uint8_t lane)
{
	s->further = true;
	s->lane = lane;
	memcpy(s->key_id, key->id, WEFT_KEY_ID_LEN);
}

bool raw_sealed_further(struct raw_conn *c, const struct weft_lane_key *key, uint8_t lane)
{
	if (!sealed_alloc(c))
		return false;
	c->sealed->offer->key = *exchange_key(key);
	set_further(c->sealed, exchange_key(key), lane);
	return true;
}

static const struct weft_exchange_key *key_of(const struct raw_conn *c)
{
	return c->sealed->further ? &c->sealed->offer->key : c->iface->seal->key;
}

static struct weft_exchange_conf conf_of(const struct raw_conn *c)
{
	struct weft_exchange_conf conf = c->iface->seal->conf;

	if (c->sealed->further) {
		conf.kind = WEFT_EXCHANGE_NEXT;
		conf.lane = c->sealed->lane;
	}
	return conf;
}

void raw_sealed_connected(struct raw_conn *c)
{
	if (!c->sealed)
		return;
	weft_secret_free(c->sealed->offer, sizeof(*c->sealed->offer));
	c->sealed->offer = NULL;
}

void raw_sealed_free(struct raw_conn *c)
{
	if (!c->sealed)
		return;
	raw_sealed_connected(c);
	weft_sealed_destroy(c->sealed->keys);
	free(c->sealed);
	c->sealed = NULL;
}

bool raw_sealed_restart(struct raw_conn *c)
{
	struct raw_offer *o = c->sealed->offer;

	if (!o || c->iface->live_clock < RTE_MAX(o->at, c->rx.seen) + RESTART_NS)
		return false;
	weft_sealed_destroy(c->sealed->keys);
	c->sealed->keys = NULL;
	o->made = false;
	c->csum = c->iface->csum_wanted;
	return true;
}

/* Frames to an end contain the connection and the token of that end's HELLO or HELLO_ACK. */
static void log_keys(const struct raw_iface *iface, const struct weft_exchange_secrets *secrets,
		     const uint8_t *hello, const uint8_t *ack)
{
	const struct weft_frame_hello *i = (const void *)hello, *r = (const void *)ack;
	const struct raw_seal *seal = iface->seal;
	unsigned int mode = seal->conf.mode;

	if (!seal->keylog)
		return;
	weft_keylog_write(*seal->keylog, mode, weft_get32(i->conn), weft_get32(i->token),
			  secrets->responder);
	weft_keylog_write(*seal->keylog, mode, weft_get32(r->conn), weft_get32(r->token),
			  secrets->initiator);
}

/* @param peer  body of the HELLO or HELLO_ACK that the peer has sent */
static int set_keys(struct raw_conn *c, struct weft_exchange_secrets *secrets, const uint8_t *peer)
{
	const struct raw_seal *seal = c->iface->seal;
	struct weft_sealed_conf conf = {
		.mode = seal->conf.mode,
		.initiator = !c->base.passive,
		.slots = c->iface->rx_filter.raw_ethertype ? 1 : WEFT_SEALED_SLOTS_MAX,
		.key_due = WEFT_SEALED_KEY_DUE,
		.key_due_ns = seal->rekey_ns,
		.bad_tags = WEFT_SEALED_BAD_TAGS,
		.now = c->iface->now,
	};
	int rc = weft_sealed_create(seal->cipher, &conf, secrets, &c->sealed->keys);

	weft_secret_wipe(secrets, sizeof(*secrets));
	c->sealed->key_from = c->tx.next;
	c->sealed->gone =
		weft_get32(((const struct weft_frame_hello *)peer)->features) & WEFT_HELLO_F_GONE;
	if (rc == 0)
		c->csum = RAW_CSUM_SEALED;
	else
		raw_count(c->iface, RAW_NO_MEMORY);
	return rc;
}

static int random_share(const struct raw_iface *iface, uint8_t share[WEFT_X25519_LEN])
{
	return iface->platform->random(iface->platform->arg, share, WEFT_X25519_LEN);
}

/* ---------------------------------------------------------------- connecting */

/* A share serves one offer: two HELLOs that differ must not contain the same share. */
static bool make_offer(struct raw_conn *c, const uint8_t body[WEFT_EXCHANGE_BODY])
{
	struct weft_exchange_conf conf = conf_of(c);
	struct raw_offer *o = c->sealed->offer;
	uint8_t share[WEFT_X25519_LEN];
	int rc = random_share(c->iface, share);

	memcpy(o->hello, body, WEFT_EXCHANGE_AT);
	if (rc == 0)
		rc = weft_exchange_offer(&o->x, key_of(c), &conf, o->hello, share);
	weft_secret_wipe(share, sizeof(share));
	o->made = rc == 0;
	o->at = c->iface->live_clock;
	return o->made;
}

uint32_t raw_sealed_hello(struct raw_conn *c, uint8_t type, uint8_t body[WEFT_EXCHANGE_BODY])
{
	struct weft_frame_hello *h = (struct weft_frame_hello *)body;
	weft_le64 cookie = h->cookie;
	struct raw_offer *o;

	if (!sealed_alloc(c))
		return 0;
	o = c->sealed->offer;
	if (type == WEFT_FRAME_HELLO_ACK) {
		memcpy(body, o->ack, WEFT_EXCHANGE_BODY);
		return WEFT_EXCHANGE_BODY;
	}
	h->cookie = weft_put64(0);
	if ((!o->made || memcmp(body, o->hello, WEFT_EXCHANGE_AT) != 0) && !make_offer(c, body))
		return 0;
	memcpy(body, o->hello, WEFT_EXCHANGE_BODY);
	h->cookie = cookie;
	return WEFT_EXCHANGE_BODY;
}

static bool same_hello(const struct raw_conn *c, const struct weft_frame_view *v)
{
	return c->sealed && c->sealed->offer && v->body_len == WEFT_EXCHANGE_BODY &&
	       memcmp(c->sealed->offer->hello + WEFT_EXCHANGE_AT, v->body + WEFT_EXCHANGE_AT,
		      WEFT_EXCHANGE_BODY - WEFT_EXCHANGE_AT) == 0;
}

bool raw_sealed_find_offer(struct raw_conn **conn, const struct weft_frame_view *v)
{
	const struct weft_frame_hello *h = (const struct weft_frame_hello *)v->body;
	struct raw_conn *c = *conn;
	bool taken = false;

	for (; c && !same_hello(c, v); c = raw_table_hello(c->iface, h, c))
		taken = taken || c->state != RAW_HALF_OPEN || c->hs->half_shown;
	*conn = c;
	return c || !taken;
}

static void count_verdict(struct raw_iface *iface, enum weft_hello_verdict verdict)
{
	static const enum raw_counter counter[WEFT_HELLO_COUNT] = {
		[WEFT_HELLO_PLAIN] = RAW_SEAL_HELLO_PLAIN, [WEFT_HELLO_LENGTH] = RAW_DROP_BAD_TYPE,
		[WEFT_HELLO_FORMAT] = RAW_DROP_BAD_TYPE,   [WEFT_HELLO_KEY] = RAW_SEAL_HELLO_KEY,
		[WEFT_HELLO_MAC] = RAW_SEAL_HELLO_MAC,     [WEFT_HELLO_MODE] = RAW_SEAL_HELLO_MODE,
		[WEFT_HELLO_KIND] = RAW_SEAL_HELLO_MODE,   [WEFT_HELLO_ENDED] = RAW_SEAL_HELLO_KEY,
	};

	raw_count(iface, counter[verdict]);
}

static void refuse(struct raw_iface *iface, const struct weft_frame_view *v,
		   enum weft_hello_verdict verdict)
{
	char ip[INET6_ADDRSTRLEN];

	count_verdict(iface, verdict);
	raw_ip_text(iface, v->src_ip, ip, sizeof(ip));
	weft_log_limited(&iface->seal->refused_log, WEFT_LOG_WARN,
			 "%s: a connection with %s is refused: %s", iface->base.name, ip,
			 weft_hello_verdict_text(verdict));
}

/* @return the job key, or for a further lane the endpoint's key; NULL: no endpoint has it */
static const struct weft_exchange_key *find_key(const struct raw_iface *iface,
						const struct weft_frame_view *v,
						struct weft_exchange_conf *conf)
{
	const struct raw_seal *seal = iface->seal;

	*conf = seal->conf;
	if (!weft_exchange_is_next(v->body, v->body_len, &conf->lane))
		return seal->key;
	conf->kind = WEFT_EXCHANGE_NEXT;
	return weft_keyring_find(&seal->further, weft_exchange_key_id(v->body, v->body_len));
}

enum weft_hello_verdict raw_sealed_check_hello(struct raw_iface *iface,
					       const struct weft_frame_view *v)
{
	struct weft_exchange_conf conf;
	const struct weft_exchange_key *key = find_key(iface, v, &conf);
	enum weft_hello_verdict verdict = WEFT_HELLO_ENDED;

	if (key)
		verdict = weft_exchange_check(key, &conf, v->body, v->body_len);
	if (verdict != WEFT_HELLO_OK)
		refuse(iface, v, verdict);
	return verdict;
}

int raw_sealed_answer(struct raw_conn *c, const struct weft_frame_view *v,
		      uint8_t ack[WEFT_EXCHANGE_BODY])
{
	struct weft_exchange_conf conf;
	const struct weft_exchange_key *key = find_key(c->iface, v, &conf);
	struct weft_exchange_secrets secrets;
	uint8_t share[WEFT_X25519_LEN];
	struct raw_offer *o;
	int rc;

	if (v->body_len != WEFT_EXCHANGE_BODY || !key)
		return -EBADMSG;
	if (!sealed_alloc(c))
		return -ENOMEM;
	o = c->sealed->offer;
	memcpy(o->hello, v->body, WEFT_EXCHANGE_BODY);
	memcpy(o->ack, ack, WEFT_EXCHANGE_AT);
	rc = random_share(c->iface, share);
	if (rc == 0)
		rc = weft_exchange_answer(key, &conf, o->hello, WEFT_EXCHANGE_BODY, o->ack, share,
					  &secrets);
	weft_secret_wipe(share, sizeof(share));
	if (rc == -EBADMSG)
		refuse(c->iface, v, WEFT_HELLO_MAC);
	if (rc < 0)
		return rc;
	if (conf.kind == WEFT_EXCHANGE_NEXT)
		set_further(c->sealed, key, conf.lane);
	log_keys(c->iface, &secrets, o->hello, o->ack);
	return set_keys(c, &secrets, o->hello);
}

bool raw_sealed_take_ack(struct raw_conn *c, const struct weft_frame_view *v)
{
	struct weft_exchange_secrets secrets;
	enum weft_hello_verdict verdict;
	int rc;

	if (!c->sealed || !c->sealed->offer || !c->sealed->offer->made)
		return false;
	verdict = weft_exchange_finish(&c->sealed->offer->x, key_of(c), v->body, v->body_len,
				       &secrets, &rc);
	if (verdict != WEFT_HELLO_OK) {
		refuse(c->iface, v, verdict);
		return false;
	}
	if (rc < 0)
		return false;
	log_keys(c->iface, &secrets, c->sealed->offer->hello, v->body);
	return set_keys(c, &secrets, v->body) == 0;
}
