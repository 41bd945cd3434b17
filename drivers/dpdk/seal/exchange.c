/* SPDX-License-Identifier: BSD-3-Clause */

#include "seal/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "base/tcp.h"

static_assert(sizeof(struct weft_seal_hello) == WEFT_EXCHANGE_BODY - WEFT_EXCHANGE_AT, "the wire");
static_assert(offsetof(struct weft_seal_hello, key_id) == 8, "the wire");
static_assert(offsetof(struct weft_seal_hello, share) == 16, "the wire");
static_assert(offsetof(struct weft_seal_hello, proof) == 48, "the wire");
static_assert(offsetof(struct weft_seal_hello, mac) == 64, "the wire");

#define COOKIE_LEN 8u

/* Types in the lane header (core/wire.def). */
#define HELLO 1u
#define HELLO_ACK 2u

/* A label ends in the version of the key schedule. Its zero byte does not count. */
#define LABEL(text) (text), sizeof(text) - 1

static struct weft_seal_hello *sealed_of(uint8_t *body)
{
	return (struct weft_seal_hello *)(body + WEFT_EXCHANGE_AT);
}

static const struct weft_seal_hello *sealed_in(const void *body)
{
	return (const struct weft_seal_hello *)((const uint8_t *)body + WEFT_EXCHANGE_AT);
}

/* ------------------------------------------------------------------ keys */

int weft_exchange_key_init(struct weft_exchange_key *key, const uint8_t secret[WEFT_HASH_LEN])
{
	int rc = weft_hkdf_extract(NULL, 0, secret, WEFT_HASH_LEN, key->root);

	if (rc == 0)
		rc = weft_hkdf_expand(key->root, LABEL("weft noise psk 1"), key->psk,
				      sizeof(key->psk));
	if (rc == 0)
		rc = weft_hkdf_expand(key->root, LABEL("weft hello mac 1"), key->mac,
				      sizeof(key->mac));
	if (rc == 0)
		rc = weft_hkdf_expand(key->root, LABEL("weft key id 1"), key->id, sizeof(key->id));
	return rc;
}

static int derive(const uint8_t prk[WEFT_HASH_LEN], const char *label, size_t label_len,
		  const uint8_t hash[WEFT_HASH_LEN], uint8_t out[WEFT_HASH_LEN])
{
	uint8_t info[64 + WEFT_HASH_LEN];

	memcpy(info, label, label_len);
	memcpy(info + label_len, hash, WEFT_HASH_LEN);
	return weft_hkdf_expand(prk, info, label_len + WEFT_HASH_LEN, out, WEFT_HASH_LEN);
}

/* ------------------------------------------------------------------ the transcript */

/*
 * Cookie, proof and MAC count as zeros, since they may be written later.
 * @param share  false: the share counts as zeros, too, because Noise hashes it itself
 */
static int hello_hash(uint8_t version, uint8_t type, const void *body, size_t len, bool share,
		      uint8_t hash[WEFT_HASH_LEN])
{
	uint8_t text[2 + WEFT_EXCHANGE_BODY_MAX] = {version, type};
	struct weft_seal_hello *h = sealed_of(text + 2);

	memcpy(text + 2, body, len);
	memset(text + 2 + WEFT_EXCHANGE_COOKIE, 0, COOKIE_LEN);
	memset(h->proof, 0, sizeof(h->proof));
	memset(h->mac, 0, sizeof(h->mac));
	if (!share)
		memset(h->share, 0, sizeof(h->share));
	return weft_sha256(text, 2 + len, hash);
}

/* @param answered  MAC of the HELLO, which binds a HELLO_ACK to it; NULL for a HELLO */
static int hello_mac(const struct weft_exchange_key *key, uint8_t version, uint8_t type,
		     const uint8_t *answered, const void *body, size_t len,
		     uint8_t mac[WEFT_TAG_LEN])
{
	uint8_t text[2 + WEFT_TAG_LEN + WEFT_EXCHANGE_BODY_MAX] = {version, type};
	uint8_t *copy = text + 2 + WEFT_TAG_LEN, full[WEFT_HASH_LEN];
	int rc;

	if (answered)
		memcpy(text + 2, answered, WEFT_TAG_LEN);
	memcpy(copy, body, len);
	memset(copy + WEFT_EXCHANGE_COOKIE, 0, COOKIE_LEN);
	memset(sealed_of(copy)->mac, 0, WEFT_TAG_LEN);
	rc = weft_hmac(key->mac, sizeof(key->mac), text, 2 + WEFT_TAG_LEN + len, full);
	memcpy(mac, full, WEFT_TAG_LEN);
	return rc;
}

/* @param from  the secrets of Noise, or the root key three times */
static int derive_secrets(const struct weft_exchange_secrets *from,
			  const uint8_t hello[WEFT_HASH_LEN], const uint8_t ack[WEFT_HASH_LEN],
			  struct weft_exchange_secrets *out)
{
	uint8_t both[2 * WEFT_HASH_LEN], hash[WEFT_HASH_LEN];
	int rc;

	memcpy(both, hello, WEFT_HASH_LEN);
	memcpy(both + WEFT_HASH_LEN, ack, WEFT_HASH_LEN);
	rc = weft_sha256(both, sizeof(both), hash);
	if (rc == 0)
		rc = derive(from->initiator, LABEL("weft initiator 1"), hash, out->initiator);
	if (rc == 0)
		rc = derive(from->responder, LABEL("weft responder 1"), hash, out->responder);
	if (rc == 0)
		rc = derive(from->exporter, LABEL("weft exporter 1"), hash, out->exporter);
	if (rc < 0)
		weft_secret_wipe(out, sizeof(*out));
	return rc;
}

static int noise_secrets(const struct weft_noise *noise, struct weft_exchange_secrets *out)
{
	int rc = weft_noise_split(noise, out->initiator, out->responder);

	return rc == 0 ? weft_noise_export(noise, LABEL("weft noise export 1"), out->exporter) : rc;
}

static void psk_secrets(const struct weft_exchange_key *key, struct weft_exchange_secrets *out)
{
	memcpy(out->initiator, key->root, WEFT_HASH_LEN);
	memcpy(out->responder, key->root, WEFT_HASH_LEN);
	memcpy(out->exporter, key->root, WEFT_HASH_LEN);
}

/* ------------------------------------------------------------------ the initiator's HELLO */

static void fill(struct weft_seal_hello *h, const struct weft_exchange_key *key,
		 const struct weft_exchange_conf *conf)
{
	*h = (struct weft_seal_hello){
		.mode = (uint8_t)conf->mode,
		.cipher = WEFT_EXCHANGE_AES128_GCM,
		.kind = (uint8_t)conf->kind,
		.lane = conf->lane,
	};
	memcpy(h->key_id, key->id, WEFT_KEY_ID_LEN);
}

/* A hello has the two parts of a Noise message in separate fields. */
static void spread(struct weft_seal_hello *h, const uint8_t message[WEFT_NOISE_MESSAGE])
{
	memcpy(h->share, message, WEFT_X25519_LEN);
	memcpy(h->proof, message + WEFT_X25519_LEN, WEFT_TAG_LEN);
}

static void gather(const struct weft_seal_hello *h, uint8_t message[WEFT_NOISE_MESSAGE])
{
	memcpy(message, h->share, WEFT_X25519_LEN);
	memcpy(message + WEFT_X25519_LEN, h->proof, WEFT_TAG_LEN);
}

int weft_exchange_offer(struct weft_exchange *x, const struct weft_exchange_key *key,
			const struct weft_exchange_conf *conf, uint8_t body[WEFT_EXCHANGE_BODY],
			const uint8_t random[WEFT_X25519_LEN])
{
	struct weft_seal_hello *h = sealed_of(body);
	uint8_t message[WEFT_NOISE_MESSAGE] = {0}, prologue[WEFT_HASH_LEN];
	int rc = 0;

	*x = (struct weft_exchange){.conf = *conf};
	fill(h, key, conf);
	if (conf->kind == WEFT_EXCHANGE_NOISE) {
		rc = hello_hash(conf->version, HELLO, body, WEFT_EXCHANGE_BODY, false, prologue);
		if (rc == 0)
			rc = weft_noise_begin(&x->noise, key->psk, prologue, sizeof(prologue));
		if (rc == 0)
			rc = weft_noise_write_first(&x->noise, random, "", 0, message);
		spread(h, message);
	} else {
		memcpy(h->share, random, WEFT_X25519_LEN);
	}
	if (rc == 0)
		rc = hello_hash(conf->version, HELLO, body, WEFT_EXCHANGE_BODY, true,
				x->hello_hash);
	if (rc == 0)
		rc = hello_mac(key, conf->version, HELLO, NULL, body, WEFT_EXCHANGE_BODY, h->mac);
	memcpy(x->hello_mac, h->mac, WEFT_TAG_LEN);
	return rc;
}

/* ------------------------------------------------------------------ validation */

const uint8_t *weft_exchange_key_id(const void *body, size_t len)
{
	return len < WEFT_EXCHANGE_BODY ? NULL : sealed_in(body)->key_id;
}

bool weft_exchange_is_next(const void *body, size_t len, uint8_t *lane)
{
	if (len < WEFT_EXCHANGE_BODY || sealed_in(body)->kind != WEFT_EXCHANGE_NEXT)
		return false;
	*lane = sealed_in(body)->lane;
	return true;
}

static bool format_ok(const struct weft_seal_hello *h)
{
	static const uint8_t zeros[WEFT_TAG_LEN];

	return h->cipher == WEFT_EXCHANGE_AES128_GCM &&
	       (h->mode == WEFT_SEAL_AUTH || h->mode == WEFT_SEAL_ENCRYPT) &&
	       h->kind >= WEFT_EXCHANGE_NOISE && h->kind <= WEFT_EXCHANGE_NEXT &&
	       (h->kind == WEFT_EXCHANGE_NEXT || h->lane == 0) &&
	       memcmp(h->reserved, zeros, sizeof(h->reserved)) == 0 &&
	       (h->kind == WEFT_EXCHANGE_NOISE || memcmp(h->proof, zeros, sizeof(h->proof)) == 0);
}

static enum weft_hello_verdict check(const struct weft_exchange_key *key,
				     const struct weft_exchange_conf *conf, uint8_t type,
				     const uint8_t *answered, const void *body, size_t len)
{
	const struct weft_seal_hello *h = sealed_in(body);
	uint8_t mac[WEFT_TAG_LEN];

	if (len < WEFT_EXCHANGE_BODY)
		return WEFT_HELLO_PLAIN;
	if (len > WEFT_EXCHANGE_BODY_MAX)
		return WEFT_HELLO_LENGTH;
	if (!format_ok(h))
		return WEFT_HELLO_FORMAT;
	if (memcmp(h->key_id, key->id, WEFT_KEY_ID_LEN) != 0)
		return WEFT_HELLO_KEY;
	if (hello_mac(key, conf->version, type, answered, body, len, mac) < 0 ||
	    !weft_secret_equal(mac, h->mac, sizeof(mac)))
		return WEFT_HELLO_MAC;
	if (h->mode != conf->mode)
		return WEFT_HELLO_MODE;
	if (h->kind != conf->kind || h->lane != conf->lane)
		return WEFT_HELLO_KIND;
	return WEFT_HELLO_OK;
}

enum weft_hello_verdict weft_exchange_check(const struct weft_exchange_key *key,
					    const struct weft_exchange_conf *conf, const void *body,
					    size_t len)
{
	return check(key, conf, HELLO, NULL, body, len);
}

const char *weft_hello_verdict_text(enum weft_hello_verdict verdict)
{
	static const char *const text[WEFT_HELLO_COUNT] = {
		[WEFT_HELLO_OK] = "the hello is valid",
		[WEFT_HELLO_PLAIN] = "the peer does not seal its frames: give both ends the same "
				     "WEFT_JOB_KEY, or none",
		[WEFT_HELLO_LENGTH] = "the hello is longer than any version's",
		[WEFT_HELLO_FORMAT] = "the hello has an unknown cipher, exchange or reserved byte: "
				      "run the same release of Weft at both ends",
		[WEFT_HELLO_KEY] = "the peer has another job key: give both ends the same "
				   "WEFT_JOB_KEY",
		[WEFT_HELLO_MAC] = "the hello was changed on its path, forged, or replayed",
		[WEFT_HELLO_MODE] = "the peer has another mode: set the same WEFT_SEAL at both "
				    "ends",
		[WEFT_HELLO_KIND] = "the peer has another exchange: set the same WEFT_SEAL_DH at "
				    "both ends",
		[WEFT_HELLO_ENDED] = "it is for a further lane of an endpoint that has ended here, "
				     "or never was",
	};

	return text[verdict];
}

/* ------------------------------------------------------------------ the responder's HELLO_ACK */

static int answer_noise(const struct weft_exchange_key *key, uint8_t version, const void *hello,
			size_t len, struct weft_seal_hello *h,
			const uint8_t random[WEFT_X25519_LEN], struct weft_exchange_secrets *out)
{
	uint8_t message[WEFT_NOISE_MESSAGE] = {0}, prologue[WEFT_HASH_LEN];
	struct weft_noise noise;
	int rc = hello_hash(version, HELLO, hello, len, false, prologue);

	gather(sealed_in(hello), message);
	if (rc == 0)
		rc = weft_noise_begin(&noise, key->psk, prologue, sizeof(prologue));
	if (rc == 0)
		rc = weft_noise_read_first(&noise, message, sizeof(message), message);
	if (rc == 0)
		rc = weft_noise_write_second(&noise, random, "", 0, message);
	if (rc == 0)
		rc = noise_secrets(&noise, out);
	spread(h, message);
	weft_secret_wipe(&noise, sizeof(noise));
	return rc;
}

int weft_exchange_answer(const struct weft_exchange_key *key, const struct weft_exchange_conf *conf,
			 const void *hello, size_t len, uint8_t ack[WEFT_EXCHANGE_BODY],
			 const uint8_t random[WEFT_X25519_LEN], struct weft_exchange_secrets *out)
{
	uint8_t offer_hash[WEFT_HASH_LEN], ack_hash[WEFT_HASH_LEN];
	struct weft_seal_hello *h = sealed_of(ack);
	struct weft_exchange_secrets from;
	int rc = 0;

	fill(h, key, conf);
	if (conf->kind == WEFT_EXCHANGE_NOISE) {
		rc = answer_noise(key, conf->version, hello, len, h, random, &from);
	} else {
		memcpy(h->share, random, WEFT_X25519_LEN);
		psk_secrets(key, &from);
	}
	if (rc == 0)
		rc = hello_hash(conf->version, HELLO, hello, len, true, offer_hash);
	if (rc == 0)
		rc = hello_hash(conf->version, HELLO_ACK, ack, WEFT_EXCHANGE_BODY, true, ack_hash);
	if (rc == 0)
		rc = hello_mac(key, conf->version, HELLO_ACK, sealed_in(hello)->mac, ack,
			       WEFT_EXCHANGE_BODY, h->mac);
	if (rc == 0)
		rc = derive_secrets(&from, offer_hash, ack_hash, out);
	weft_secret_wipe(&from, sizeof(from));
	return rc;
}

/* ------------------------------------------------------------------ the initiator's end */

static int finish_noise(const struct weft_exchange *x, const void *ack,
			struct weft_exchange_secrets *out)
{
	uint8_t message[WEFT_NOISE_MESSAGE];
	struct weft_noise noise = x->noise; /* a bad message must not end the exchange */
	int rc;

	gather(sealed_in(ack), message);
	rc = weft_noise_read_second(&noise, message, sizeof(message), message);
	if (rc == 0)
		rc = noise_secrets(&noise, out);
	weft_secret_wipe(&noise, sizeof(noise));
	return rc;
}

enum weft_hello_verdict weft_exchange_finish(const struct weft_exchange *x,
					     const struct weft_exchange_key *key, const void *ack,
					     size_t len, struct weft_exchange_secrets *out, int *rc)
{
	enum weft_hello_verdict verdict = check(key, &x->conf, HELLO_ACK, x->hello_mac, ack, len);
	struct weft_exchange_secrets from;
	uint8_t ack_hash[WEFT_HASH_LEN];

	*rc = 0;
	if (verdict != WEFT_HELLO_OK)
		return verdict;
	if (x->conf.kind == WEFT_EXCHANGE_NOISE)
		*rc = finish_noise(x, ack, &from);
	else
		psk_secrets(key, &from);
	if (*rc == 0)
		*rc = hello_hash(x->conf.version, HELLO_ACK, ack, len, true, ack_hash);
	if (*rc == 0)
		*rc = derive_secrets(&from, x->hello_hash, ack_hash, out);
	weft_secret_wipe(&from, sizeof(from));
	if (*rc == -EBADMSG) { /* the MAC is right, so the sender is a member of the job */
		*rc = 0;
		return WEFT_HELLO_MAC;
	}
	return WEFT_HELLO_OK;
}

/* ------------------------------------------------------------------ keyring */

struct entry {
	struct weft_table_node node;
	const struct weft_exchange_key *key;
};

static uint64_t number_of(const uint8_t id[WEFT_KEY_ID_LEN])
{
	uint64_t number;

	memcpy(&number, id, sizeof(number));
	return number;
}

static struct entry *find(const struct weft_keyring *r, const uint8_t id[WEFT_KEY_ID_LEN])
{
	struct weft_table_node *node = weft_table_find(&r->by_id, number_of(id));

	return node ? container_of(node, struct entry, node) : NULL;
}

int weft_keyring_add(struct weft_keyring *r, const struct weft_exchange_key *key)
{
	struct entry *e = find(r, key->id);

	if (e)
		return 0;
	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->key = key;
	if (weft_table_add(&r->by_id, &e->node, number_of(key->id)) == 0)
		return 0;
	free(e);
	return -ENOMEM;
}

const struct weft_exchange_key *weft_keyring_find(const struct weft_keyring *r,
						  const uint8_t id[WEFT_KEY_ID_LEN])
{
	const struct entry *e = find(r, id);

	return e ? e->key : NULL;
}

void weft_keyring_remove(struct weft_keyring *r, const struct weft_exchange_key *key)
{
	struct entry *e = find(r, key->id);

	if (!e || e->key != key)
		return;
	weft_table_remove(&r->by_id, &e->node);
	free(e);
}

void weft_keyring_fini(struct weft_keyring *r)
{
	struct weft_table_node *node;
	uint32_t from = 0;

	while ((node = weft_table_any(&r->by_id, &from))) {
		weft_table_remove(&r->by_id, node);
		free(container_of(node, struct entry, node));
	}
	weft_table_fini(&r->by_id);
}

/* ------------------------------------------------------------------ Noise */

/* Functions have the names of the specification. */

static const char protocol[] = "Noise_NNpsk0_25519_AESGCM_SHA256";

static_assert(sizeof(protocol) - 1 == WEFT_HASH_LEN, "the name is the first hash");

/* ------------------------------------------------------------------ the symmetric state */

/* The specification's HKDF() is RFC 5869 with an empty info. */
static int hkdf(const uint8_t chain[WEFT_HASH_LEN], const void *key, size_t len, uint8_t *out,
		unsigned int num)
{
	uint8_t prk[WEFT_HASH_LEN];
	int rc = weft_hkdf_extract(chain, WEFT_HASH_LEN, key, len, prk);

	if (rc == 0)
		rc = weft_hkdf_expand(prk, NULL, 0, out, (size_t)num * WEFT_HASH_LEN);
	weft_secret_wipe(prk, sizeof(prk));
	return rc;
}

static int mix_hash(struct weft_noise *s, const void *data, size_t len)
{
	uint8_t both[WEFT_HASH_LEN + 512];

	if (len > sizeof(both) - WEFT_HASH_LEN)
		return -EMSGSIZE;
	memcpy(both, s->hash, WEFT_HASH_LEN);
	memcpy(both + WEFT_HASH_LEN, data, len);
	return weft_sha256(both, WEFT_HASH_LEN + len, s->hash);
}

static int mix_key(struct weft_noise *s, const uint8_t key[WEFT_HASH_LEN])
{
	uint8_t out[2 * WEFT_HASH_LEN];
	int rc = hkdf(s->chain, key, WEFT_HASH_LEN, out, 2);

	memcpy(s->chain, out, WEFT_HASH_LEN);
	memcpy(s->key, out + WEFT_HASH_LEN, WEFT_HASH_LEN);
	weft_secret_wipe(out, sizeof(out));
	return rc;
}

static int mix_key_and_hash(struct weft_noise *s, const uint8_t psk[WEFT_HASH_LEN])
{
	uint8_t out[3 * WEFT_HASH_LEN];
	int rc = hkdf(s->chain, psk, WEFT_HASH_LEN, out, 3);

	memcpy(s->chain, out, WEFT_HASH_LEN);
	if (rc == 0)
		rc = mix_hash(s, out + WEFT_HASH_LEN, WEFT_HASH_LEN);
	memcpy(s->key, out + 2 * WEFT_HASH_LEN, WEFT_HASH_LEN);
	weft_secret_wipe(out, sizeof(out));
	return rc;
}

/* mix_key() makes a new key for each payload, so the nonce's counter is always 0. */
static int encrypt_and_hash(struct weft_noise *s, const void *payload, size_t len, uint8_t *out)
{
	int rc = weft_noise_aead_seal(s->key, 0, s->hash, payload, len, out);

	return rc == 0 ? mix_hash(s, out, len + WEFT_TAG_LEN) : rc;
}

static int decrypt_and_hash(struct weft_noise *s, const uint8_t *in, size_t len, void *payload)
{
	int rc = weft_noise_aead_open(s->key, 0, s->hash, in, len, payload);

	return rc == 0 ? mix_hash(s, in, len) : rc;
}

/* With a pre-shared key Noise mixes an ephemeral key into the chaining key, too. */
static int mix_ephemeral(struct weft_noise *s, const uint8_t share[WEFT_X25519_LEN])
{
	int rc = mix_hash(s, share, WEFT_X25519_LEN);

	return rc == 0 ? mix_key(s, share) : rc;
}

static int mix_ee(struct weft_noise *s)
{
	uint8_t shared[WEFT_HASH_LEN];
	int rc = weft_x25519(s->own, s->peer, shared);

	if (rc == 0)
		rc = mix_key(s, shared);
	weft_secret_wipe(shared, sizeof(shared));
	return rc;
}

/* ------------------------------------------------------------------ the two messages */

int weft_noise_begin(struct weft_noise *s, const uint8_t psk[WEFT_HASH_LEN], const void *prologue,
		     size_t len)
{
	int rc;

	memset(s, 0, sizeof(*s));
	memcpy(s->hash, protocol, WEFT_HASH_LEN);
	memcpy(s->chain, protocol, WEFT_HASH_LEN);
	rc = mix_hash(s, prologue, len);
	return rc == 0 ? mix_key_and_hash(s, psk) : rc;
}

static int write_ephemeral(struct weft_noise *s, const uint8_t secret[WEFT_X25519_LEN],
			   uint8_t *message)
{
	int rc = weft_x25519_public(secret, message);

	memcpy(s->own, secret, WEFT_X25519_LEN);
	return rc == 0 ? mix_ephemeral(s, message) : rc;
}

static int read_ephemeral(struct weft_noise *s, const uint8_t *message, size_t len)
{
	if (len < WEFT_NOISE_MESSAGE)
		return -EBADMSG;
	memcpy(s->peer, message, WEFT_X25519_LEN);
	return mix_ephemeral(s, message);
}

int weft_noise_write_first(struct weft_noise *s, const uint8_t secret[WEFT_X25519_LEN],
			   const void *payload, size_t len, uint8_t *message)
{
	int rc = write_ephemeral(s, secret, message);

	return rc == 0 ? encrypt_and_hash(s, payload, len, message + WEFT_X25519_LEN) : rc;
}

int weft_noise_read_first(struct weft_noise *s, const uint8_t *message, size_t len, void *payload)
{
	int rc = read_ephemeral(s, message, len);

	if (rc < 0)
		return rc;
	return decrypt_and_hash(s, message + WEFT_X25519_LEN, len - WEFT_X25519_LEN, payload);
}

int weft_noise_write_second(struct weft_noise *s, const uint8_t secret[WEFT_X25519_LEN],
			    const void *payload, size_t len, uint8_t *message)
{
	int rc = write_ephemeral(s, secret, message);

	if (rc == 0)
		rc = mix_ee(s);
	return rc == 0 ? encrypt_and_hash(s, payload, len, message + WEFT_X25519_LEN) : rc;
}

int weft_noise_read_second(struct weft_noise *s, const uint8_t *message, size_t len, void *payload)
{
	int rc = read_ephemeral(s, message, len);

	if (rc == 0)
		rc = mix_ee(s);
	if (rc < 0)
		return rc;
	return decrypt_and_hash(s, message + WEFT_X25519_LEN, len - WEFT_X25519_LEN, payload);
}

/* ------------------------------------------------------------------ results */

int weft_noise_split(const struct weft_noise *s, uint8_t initiator[WEFT_HASH_LEN],
		     uint8_t responder[WEFT_HASH_LEN])
{
	uint8_t out[2 * WEFT_HASH_LEN];
	int rc = hkdf(s->chain, "", 0, out, 2);

	memcpy(initiator, out, WEFT_HASH_LEN);
	memcpy(responder, out + WEFT_HASH_LEN, WEFT_HASH_LEN);
	weft_secret_wipe(out, sizeof(out));
	return rc;
}

int weft_noise_export(const struct weft_noise *s, const void *info, size_t info_len,
		      uint8_t secret[WEFT_HASH_LEN])
{
	uint8_t prk[WEFT_HASH_LEN];
	int rc = weft_hkdf_extract(s->chain, WEFT_HASH_LEN, "", 0, prk);

	if (rc == 0)
		rc = weft_hkdf_expand(prk, info, info_len, secret, WEFT_HASH_LEN);
	weft_secret_wipe(prk, sizeof(prk));
	return rc;
}

/* ------------------------------------------------------------------ greetings */

/*
 * The messages of base/tcp.h: the request is the first message of Noise. The answer is the second
 * message, then the text, sealed with the responder's key.
 */

static_assert(WEFT_GREETING_REQUEST == WEFT_NOISE_MESSAGE, "the request is the first message");
static_assert(WEFT_GREETING_OVERHEAD == WEFT_NOISE_MESSAGE + WEFT_TAG_LEN, "two tags");

static int begin(struct weft_noise *s, const struct weft_greeting_key *k)
{
	uint8_t root[WEFT_HASH_LEN], psk[WEFT_HASH_LEN];
	int rc = weft_hkdf_extract(NULL, 0, k->job_key, sizeof(k->job_key), root);

	if (rc == 0)
		rc = weft_hkdf_expand(root, LABEL("weft listener psk 1"), psk, sizeof(psk));
	if (rc == 0)
		rc = weft_noise_begin(s, psk, LABEL("weft listener 1"));
	weft_secret_wipe(root, sizeof(root));
	weft_secret_wipe(psk, sizeof(psk));
	return rc;
}

static int request(const struct weft_greeting_key *k, uint8_t message[WEFT_GREETING_REQUEST])
{
	struct weft_noise s;
	int rc = begin(&s, k);

	if (rc == 0)
		rc = weft_noise_write_first(&s, k->random, "", 0, message);
	weft_secret_wipe(&s, sizeof(s));
	return rc;
}

static int answer(const struct weft_greeting_key *k, const uint8_t request[WEFT_GREETING_REQUEST],
		  const void *text, size_t len, uint8_t *message)
{
	uint8_t key[2][WEFT_HASH_LEN], none[1];
	struct weft_noise s;
	int rc = begin(&s, k);

	if (rc == 0)
		rc = weft_noise_read_first(&s, request, WEFT_GREETING_REQUEST, none);
	if (rc == 0)
		rc = weft_noise_write_second(&s, k->random, "", 0, message);
	if (rc == 0)
		rc = weft_noise_split(&s, key[0], key[1]);
	if (rc == 0)
		rc = weft_noise_aead_seal(key[1], 0, s.hash, text, len,
					  message + WEFT_NOISE_MESSAGE);
	weft_secret_wipe(key, sizeof(key));
	weft_secret_wipe(&s, sizeof(s));
	return rc;
}

/* Makes the request again, since no state is kept between the calls. */
static int open_answer(const struct weft_greeting_key *k, const uint8_t *message, size_t len,
		       void *text)
{
	uint8_t key[2][WEFT_HASH_LEN], first[WEFT_NOISE_MESSAGE], none[1];
	struct weft_noise s;
	int rc;

	if (len < WEFT_GREETING_OVERHEAD)
		return -EBADMSG;
	rc = begin(&s, k);
	if (rc == 0)
		rc = weft_noise_write_first(&s, k->random, "", 0, first);
	if (rc == 0)
		rc = weft_noise_read_second(&s, message, WEFT_NOISE_MESSAGE, none);
	if (rc == 0)
		rc = weft_noise_split(&s, key[0], key[1]);
	if (rc == 0)
		rc = weft_noise_aead_open(key[1], 0, s.hash, message + WEFT_NOISE_MESSAGE,
					  len - WEFT_NOISE_MESSAGE, text);
	weft_secret_wipe(key, sizeof(key));
	weft_secret_wipe(&s, sizeof(s));
	return rc;
}

const struct weft_greeting_ops weft_sealed_greeting = {
	.request = request,
	.answer = answer,
	.open = open_answer,
};
