/* SPDX-License-Identifier: BSD-3-Clause */

#include "seal/seal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "core/wire_frame_def.h"

static_assert(WEFT_SEALED_HEAD == sizeof(struct weft_frame_hdr) + sizeof(uint64_t), "the wire");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "nonces; the cipher is for x86 only");

#define SALT_LEN WEFT_FRAME_SALT_LEN
#define COUNTER_BITS 56u
#define COUNTER_MAX ((1ull << COUNTER_BITS) - 1)

struct sender {
	struct weft_cipher_key key;
	uint8_t salt[SALT_LEN];
	uint8_t secret[WEFT_HASH_LEN]; /* source of the next key */
	bool phase;
	bool confirmed;
	uint64_t frames; /* on all slots */
	uint64_t since;
};

struct receiver {
	struct weft_cipher_key key;
	struct weft_frame_key now, last, next;
	uint8_t secret[WEFT_HASH_LEN]; /* source of the key after `next` */
	bool phase;
	bool has_last, has_next;
	uint64_t last_until;
	uint64_t bad_tags;
};

struct weft_sealed {
	struct sender tx;
	struct receiver rx;
	struct weft_sealed_conf conf;
	uint8_t exporter[WEFT_HASH_LEN];
	uint64_t keep_ns;
	/* The next frame's number, for each slot. GONE has the index conf.slots. */
	uint64_t counters[WEFT_SEALED_SLOTS_MAX + 1];
	struct weft_replay windows[];
};

/* ------------------------------------------------------------------ generations of keys */

int weft_frame_key_next(uint8_t secret[WEFT_HASH_LEN], struct weft_frame_key *key)
{
	static const char key_label[] = "weft frame key 1", next_label[] = "weft next secret 1";
	uint8_t next[WEFT_HASH_LEN];
	int rc = weft_hkdf_expand(secret, key_label, sizeof(key_label) - 1, key, sizeof(*key));

	if (rc == 0)
		rc = weft_hkdf_expand(secret, next_label, sizeof(next_label) - 1, next,
				      sizeof(next));
	if (rc == 0)
		memcpy(secret, next, sizeof(next));
	weft_secret_wipe(next, sizeof(next));
	return rc;
}

static int sender_next(struct sender *tx, const struct weft_cipher *c, uint64_t now)
{
	struct weft_frame_key key;
	int rc = weft_frame_key_next(tx->secret, &key);

	if (rc < 0)
		return rc;
	weft_cipher_expand(c, key.key, &tx->key);
	memcpy(tx->salt, key.salt, SALT_LEN);
	weft_secret_wipe(&key, sizeof(key));
	tx->frames = 0;
	tx->since = now;
	tx->confirmed = false;
	return 0;
}

/* A forged frame must not cost a derivation, so the next key is derived in advance. */
static void receiver_prepare(struct receiver *rx)
{
	rx->has_next = weft_frame_key_next(rx->secret, &rx->next) == 0;
}

static void receiver_next(struct receiver *rx, const struct weft_cipher *c, uint64_t until)
{
	rx->last = rx->now;
	rx->has_last = true;
	rx->last_until = until;
	rx->now = rx->next;
	rx->phase = !rx->phase;
	weft_cipher_expand(c, rx->now.key, &rx->key);
	receiver_prepare(rx);
}

static void forget_last(struct receiver *rx)
{
	rx->has_last = false;
	weft_secret_wipe(&rx->last, sizeof(rx->last));
}

static bool is_due(const struct weft_sealed *s, uint64_t now)
{
	const struct weft_sealed_conf *conf = &s->conf;

	return s->tx.frames >= conf->key_due ||
	       (conf->key_due_ns != 0 && now - s->tx.since >= conf->key_due_ns);
}

bool weft_sealed_unsure(const struct weft_sealed *s, uint64_t now)
{
	return !s->tx.confirmed && is_due(s, now);
}

bool weft_sealed_tick(struct weft_sealed *s, const struct weft_cipher *c, uint64_t now,
		      uint64_t keep_ns)
{
	struct sender *tx = &s->tx;

	s->keep_ns = keep_ns;
	if (s->rx.has_last && now >= s->rx.last_until)
		forget_last(&s->rx);
	if (!s->rx.has_next)
		receiver_prepare(&s->rx);
	if (!tx->confirmed || !is_due(s, now))
		return false;
	if (sender_next(tx, c, now) < 0)
		return false;
	tx->phase = !tx->phase;
	return true;
}

void weft_sealed_export(const struct weft_sealed *s, uint8_t secret[WEFT_HASH_LEN])
{
	memcpy(secret, s->exporter, WEFT_HASH_LEN);
}

void weft_sealed_confirm(struct weft_sealed *s)
{
	s->tx.confirmed = true;
}

/* ------------------------------------------------------------------ create and destroy */

size_t weft_sealed_size(unsigned int slots)
{
	return sizeof(struct weft_sealed) + (slots + 1) * sizeof(struct weft_replay);
}

static int create_keys(struct weft_sealed *s, const struct weft_cipher *c,
		       const struct weft_exchange_secrets *secrets)
{
	bool initiator = s->conf.initiator;
	int rc;

	memcpy(s->tx.secret, initiator ? secrets->initiator : secrets->responder, WEFT_HASH_LEN);
	memcpy(s->rx.secret, initiator ? secrets->responder : secrets->initiator, WEFT_HASH_LEN);
	rc = sender_next(&s->tx, c, s->conf.now);
	if (rc == 0)
		rc = weft_frame_key_next(s->rx.secret, &s->rx.now);
	if (rc == 0)
		rc = weft_frame_key_next(s->rx.secret, &s->rx.next);
	if (rc < 0)
		return rc;
	weft_cipher_expand(c, s->rx.now.key, &s->rx.key);
	s->rx.has_next = true;
	return 0;
}

int weft_sealed_create(const struct weft_cipher *c, const struct weft_sealed_conf *conf,
		       const struct weft_exchange_secrets *secrets, struct weft_sealed **sealed)
{
	uint64_t most = conf->key_frames ? conf->key_frames : WEFT_SEALED_KEY_FRAMES;
	struct weft_sealed *s;
	int rc;

	if (conf->slots == 0 || conf->slots > WEFT_SEALED_SLOTS_MAX || conf->key_due == 0 ||
	    conf->key_due > most || most > WEFT_SEALED_KEY_FRAMES)
		return -EINVAL;
	s = weft_secret_alloc(weft_sealed_size(conf->slots));
	if (!s)
		return -ENOMEM;
	s->conf = *conf;
	s->conf.key_frames = most;
	memcpy(s->exporter, secrets->exporter, sizeof(s->exporter));
	rc = create_keys(s, c, secrets);
	if (rc < 0) {
		weft_sealed_destroy(s);
		return rc;
	}
	*sealed = s;
	return 0;
}

void weft_sealed_destroy(struct weft_sealed *s)
{
	if (s)
		weft_secret_free(s, weft_sealed_size(s->conf.slots));
}

/* ------------------------------------------------------------------ numbers */

/* @return -1: the connection lacks this slot */
static int slot_index(const struct weft_sealed *s, unsigned int slot)
{
	if (slot < s->conf.slots)
		return (int)slot;
	return slot == WEFT_SEALED_SLOT_GONE ? (int)s->conf.slots : -1;
}

/*
 * The cipher loads 16 bytes at once. The load would wait for several smaller stores, so one store
 * writes all.
 */
struct nonce {
	_Alignas(16) uint8_t bytes[16];
};

static inline struct nonce make_nonce(const uint8_t salt[SALT_LEN], uint64_t number)
{
	typedef uint64_t vec __attribute__((vector_size(16)));
	uint64_t wire = htobe64(number);
	uint32_t first;
	struct nonce n;
	vec both;

	memcpy(&first, salt, sizeof(first));
	both = (vec){wire << 32 | first, wire >> 32};
	memcpy(n.bytes, &both, sizeof(both));
	return n;
}

void weft_frame_nonce(const uint8_t salt[SALT_LEN], uint64_t number,
		      uint8_t nonce[WEFT_CIPHER_NONCE_LEN])
{
	struct nonce n = make_nonce(salt, number);

	memcpy(nonce, n.bytes, WEFT_CIPHER_NONCE_LEN);
}

static struct weft_frame_hdr *header(const struct weft_sealed_op *op)
{
	return (struct weft_frame_hdr *)op->head;
}

static weft_le64 *number_of(const struct weft_sealed_op *op)
{
	return (weft_le64 *)(op->head + sizeof(struct weft_frame_hdr));
}

/* ------------------------------------------------------------------ seal */

static enum weft_sealed_verdict seal(const struct weft_cipher *c, const struct weft_sealed_op *op)
{
	int slot = slot_index(op->conn, op->slot);
	struct sender *tx = &op->conn->tx;
	struct nonce nonce;
	uint16_t flags;
	uint64_t number;

	if (slot < 0)
		return WEFT_SEALED_FORMAT;
	if (tx->frames >= op->conn->conf.key_frames || op->conn->counters[slot] > COUNTER_MAX)
		return WEFT_SEALED_SPENT;
	tx->frames++;
	number = (uint64_t)op->slot << COUNTER_BITS | op->conn->counters[slot]++;
	flags = weft_get16(header(op)->flags) & (uint16_t)~WEFT_FRAME_F_KEY_PHASE;
	header(op)->flags = weft_put16(
		(uint16_t)(flags | WEFT_FRAME_F_SEALED | (tx->phase ? WEFT_FRAME_F_KEY_PHASE : 0)));
	*number_of(op) = weft_put64(number);
	nonce = make_nonce(tx->salt, number);
	if (op->conn->conf.mode == WEFT_SEAL_ENCRYPT)
		weft_cipher_seal(c, &tx->key, nonce.bytes, op->head, WEFT_SEALED_HEAD, op->segs,
				 op->num_segs, op->tag);
	else
		weft_cipher_auth(c, &tx->key, nonce.bytes, op->head, WEFT_SEALED_HEAD, op->segs,
				 op->num_segs, op->tag);
	return WEFT_SEALED_OK;
}

unsigned int weft_sealed_seal(const struct weft_cipher *c, struct weft_sealed_op *ops,
			      unsigned int num)
{
	unsigned int sealed = 0;

	for (unsigned int i = 0; i < num; i++) {
		ops[i].verdict = seal(c, &ops[i]);
		sealed += ops[i].verdict == WEFT_SEALED_OK;
	}
	return sealed;
}

/* ------------------------------------------------------------------ open */

static bool opens(const struct weft_cipher *c, const struct weft_sealed_op *op,
		  const struct weft_cipher_key *key, const uint8_t salt[SALT_LEN])
{
	struct nonce nonce = make_nonce(salt, weft_get64(*number_of(op)));
	uint8_t tag[WEFT_CIPHER_TAG_LEN];

	if (op->conn->conf.mode == WEFT_SEAL_ENCRYPT)
		weft_cipher_open(c, key, nonce.bytes, op->head, WEFT_SEALED_HEAD, op->segs,
				 op->num_segs, tag);
	else
		weft_cipher_auth(c, key, nonce.bytes, op->head, WEFT_SEALED_HEAD, op->segs,
				 op->num_segs, tag);
	return weft_cipher_tag_equal(tag, op->tag);
}

static bool in_place(const struct weft_sealed_op *op)
{
	return op->conn->conf.mode == WEFT_SEAL_ENCRYPT && op->num_segs > 0 &&
	       op->segs[0].in == op->segs[0].out;
}

/*
 * The frame is an overtaken one of the last key, or the first of the next key. Decryption in place
 * with the wrong key changes the body, but the key stream is added: a second decryption restores
 * it.
 */
static bool opens_other(const struct weft_cipher *c, const struct weft_sealed_op *op, uint64_t now)
{
	struct weft_sealed *s = op->conn;
	struct receiver *rx = &s->rx;
	struct weft_cipher_key key;
	bool ok = false;

	if (rx->has_last && now < rx->last_until) {
		weft_cipher_expand(c, rx->last.key, &key);
		ok = opens(c, op, &key, rx->last.salt);
		if (!ok && in_place(op))
			opens(c, op, &key, rx->last.salt);
	}
	if (!ok && rx->has_next) {
		weft_cipher_expand(c, rx->next.key, &key);
		ok = opens(c, op, &key, rx->next.salt);
		if (ok)
			receiver_next(rx, c, now + s->keep_ns);
	}
	weft_secret_wipe(&key, sizeof(key));
	return ok;
}

static enum weft_sealed_verdict open_one(const struct weft_cipher *c,
					 const struct weft_sealed_op *op, uint64_t now)
{
	uint64_t number = weft_get64(*number_of(op));
	uint16_t flags = weft_get16(header(op)->flags);
	int slot = slot_index(op->conn, (unsigned int)(number >> COUNTER_BITS));
	struct receiver *rx = &op->conn->rx;
	bool ok;

	if (!(flags & WEFT_FRAME_F_SEALED) || slot < 0)
		return WEFT_SEALED_FORMAT;
	if (rx->bad_tags >= op->conn->conf.bad_tags)
		return WEFT_SEALED_SPENT;
	if (!(flags & WEFT_FRAME_F_KEY_PHASE) == !rx->phase)
		ok = opens(c, op, &rx->key, rx->now.salt);
	else
		ok = opens_other(c, op, now);
	if (!ok) {
		rx->bad_tags++;
		return WEFT_SEALED_TAG;
	}
	switch (weft_replay_enter(&op->conn->windows[slot], number & COUNTER_MAX)) {
	case WEFT_REPLAY_FRESH:
		return WEFT_SEALED_OK;
	case WEFT_REPLAY_SEEN:
		return WEFT_SEALED_SEEN;
	default:
		return WEFT_SEALED_OLD;
	}
}

unsigned int weft_sealed_open(const struct weft_cipher *c, struct weft_sealed_op *ops,
			      unsigned int num, uint64_t now)
{
	unsigned int valid = 0;

	for (unsigned int i = 0; i < num; i++) {
		ops[i].verdict = open_one(c, &ops[i], now);
		valid += ops[i].verdict == WEFT_SEALED_OK;
	}
	return valid;
}

/* ------------------------------------------------------------------ replay window */

static uint64_t *word_of(struct weft_replay *r, uint64_t number)
{
	return &r->seen[number / 64 % (WEFT_REPLAY_NUMBERS / 64)];
}

/* Enters the numbers up to @p end - 1, and clears their bits, which older numbers have set. */
static void advance(struct weft_replay *r, uint64_t end)
{
	uint64_t mask;
	unsigned int bit, num;

	if (end - r->end >= WEFT_REPLAY_NUMBERS) {
		memset(r->seen, 0, sizeof(r->seen));
		r->end = end;
		return;
	}
	while (r->end < end) {
		bit = r->end % 64;
		num = end - r->end < 64 - bit ? (unsigned int)(end - r->end) : 64 - bit;
		mask = num == 64 ? ~0ull : ((1ull << num) - 1) << bit;
		*word_of(r, r->end) &= ~mask;
		r->end += num;
	}
}

enum weft_replay_verdict weft_replay_enter(struct weft_replay *r, uint64_t number)
{
	uint64_t bit = 1ull << number % 64;

	if (number == r->end && number % 64 != 0) /* only the bit set below is reused */
		r->end++;
	else if (number >= r->end)
		advance(r, number + 1);
	else if (r->end - number > WEFT_REPLAY_NUMBERS)
		return WEFT_REPLAY_OLD;
	else if (*word_of(r, number) & bit)
		return WEFT_REPLAY_SEEN;
	*word_of(r, number) |= bit;
	return WEFT_REPLAY_FRESH;
}
