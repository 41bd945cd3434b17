/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/exchange.h
 * Keys are exchanged inside HELLO and HELLO_ACK: 80 bytes behind the body of version 2. Both ends
 * prove that they have the key. doc/sealing.md, "The exchange", has the schedule.
 *
 *	initiator                        responder
 *	weft_exchange_offer()   HELLO    weft_exchange_check(), weft_exchange_answer()
 *	weft_exchange_finish()  <------  HELLO_ACK
 *
 * An end repeats its message unchanged, apart from the cookie. A HELLO can be a replay, so the
 * responder trusts it only after a sealed frame has opened. Only these calls validate the peer's
 * bytes.
 */
#ifndef WEFT_SEAL_EXCHANGE_H
#define WEFT_SEAL_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/container.h"
#include "seal/crypto.h"

/* ------------------------------------------------------------------ Noise */

/*
 * Noise_NNpsk0_25519_AESGCM_SHA256, revision 34 of the specification, in two messages:
 *
 *	initiator -> responder    psk, e
 *	responder -> initiator    e, ee
 *
 * A message is the sender's ephemeral X25519 key, the sealed payload and its tag. An attacker that
 * learns the pre-shared key later can't decrypt what it has recorded.
 *
 * Calls return 0; -EBADMSG for a message of another key or prologue; or errors of seal/crypto.h.
 * The state is unusable after an error.
 */

/** Length of a message without a payload. */
#define WEFT_NOISE_MESSAGE (WEFT_X25519_LEN + WEFT_TAG_LEN)

/** The state holds keys, so the caller ends with weft_secret_wipe(). */
struct weft_noise {
	uint8_t chain[WEFT_HASH_LEN]; /**< the specification's ck */
	uint8_t hash[WEFT_HASH_LEN];  /**< the specification's h */
	uint8_t key[WEFT_HASH_LEN];   /**< the specification's k, for the next payload */
	uint8_t own[WEFT_X25519_LEN]; /**< ephemeral secret of this end */
	uint8_t peer[WEFT_X25519_LEN];
};

/** @param prologue  at most 512 bytes (-EMSGSIZE), the same at both ends */
int weft_noise_begin(struct weft_noise *s, const uint8_t psk[WEFT_HASH_LEN], const void *prologue,
		     size_t len);

/** @p secret: 32 random bytes, never used before. @p message: WEFT_NOISE_MESSAGE + @p len bytes */
int weft_noise_write_first(struct weft_noise *s, const uint8_t secret[WEFT_X25519_LEN],
			   const void *payload, size_t len, uint8_t *message);

/** @p payload: @p len - WEFT_NOISE_MESSAGE bytes */
int weft_noise_read_first(struct weft_noise *s, const uint8_t *message, size_t len, void *payload);

int weft_noise_write_second(struct weft_noise *s, const uint8_t secret[WEFT_X25519_LEN],
			    const void *payload, size_t len, uint8_t *message);
int weft_noise_read_second(struct weft_noise *s, const uint8_t *message, size_t len, void *payload);

/** Derive the keys of both directions. Requires the second message. */
int weft_noise_split(const struct weft_noise *s, uint8_t initiator[WEFT_HASH_LEN],
		     uint8_t responder[WEFT_HASH_LEN]);

/** A further secret by HKDF. @p info_len > 0: weft_noise_split() has the empty info */
int weft_noise_export(const struct weft_noise *s, const void *info, size_t info_len,
		      uint8_t secret[WEFT_HASH_LEN]);

/* ------------------------------------------------------------------ exchange */

enum weft_seal_mode {
	WEFT_SEAL_AUTH = 1, /**< a tag protects the body, which is readable */
	WEFT_SEAL_ENCRYPT = 2,
};

/** `kind` of struct weft_seal_hello. */
enum weft_exchange_kind {
	WEFT_EXCHANGE_NOISE = 1, /**< with X25519: forward secrecy */
	WEFT_EXCHANGE_PSK = 2,   /**< keys from the job key and random bytes of both ends */
	WEFT_EXCHANGE_NEXT = 3,  /**< as PSK, from the exported secret of another connection */
};

#define WEFT_EXCHANGE_AES128_GCM 1u
#define WEFT_KEY_ID_LEN 8u

/** A sealed HELLO or HELLO_ACK: offsets of cookie and exchange, and the least length. */
#define WEFT_EXCHANGE_COOKIE 64u
#define WEFT_EXCHANGE_AT 72u
#define WEFT_EXCHANGE_BODY 152u
/** A later version may append to the body. */
#define WEFT_EXCHANGE_BODY_MAX 512u

/** Follows the cookie in HELLO and HELLO_ACK of sealed connections. */
struct weft_seal_hello {
	uint8_t mode;
	uint8_t cipher;
	uint8_t kind;
	uint8_t lane;        /**< kind NEXT: number of the lane in its endpoint; else 0 */
	uint8_t reserved[4]; /**< 0 */
	uint8_t key_id[WEFT_KEY_ID_LEN];
	uint8_t share[WEFT_X25519_LEN]; /**< kind NOISE: ephemeral X25519 key; else random */
	uint8_t proof[WEFT_TAG_LEN];    /**< kind NOISE: the tag of the empty payload; else 0 */
	uint8_t mac[WEFT_TAG_LEN];
};

/** Configuration of one end, which must be equal at both. */
struct weft_exchange_conf {
	uint8_t version; /**< version in the lane header */
	enum weft_seal_mode mode;
	enum weft_exchange_kind kind;
	uint8_t lane;
};

/** Derived from a job key or from an exported secret. */
struct weft_exchange_key {
	uint8_t root[WEFT_HASH_LEN];
	uint8_t psk[WEFT_HASH_LEN];
	uint8_t mac[WEFT_HASH_LEN]; /**< key of HELLO's MAC */
	uint8_t id[WEFT_KEY_ID_LEN];
};

/** Equal at both ends. */
struct weft_exchange_secrets {
	uint8_t initiator[WEFT_HASH_LEN];
	uint8_t responder[WEFT_HASH_LEN];
	uint8_t exporter[WEFT_HASH_LEN]; /**< for exchanges of kind NEXT */
};

/** The initiator's state between HELLO and HELLO_ACK. */
struct weft_exchange {
	struct weft_exchange_conf conf;
	struct weft_noise noise;
	uint8_t hello_hash[WEFT_HASH_LEN];
	uint8_t hello_mac[WEFT_TAG_LEN];
};

/** Why a hello is refused. Each reason has a counter. */
enum weft_hello_verdict {
	WEFT_HELLO_OK,
	WEFT_HELLO_PLAIN,  /**< the peer does not seal */
	WEFT_HELLO_LENGTH, /**< longer than WEFT_EXCHANGE_BODY_MAX */
	WEFT_HELLO_FORMAT, /**< unknown cipher, mode or kind, or reserved bytes that are not 0 */
	WEFT_HELLO_KEY,    /**< the peer has another job key (kind NEXT: another secret) */
	WEFT_HELLO_MAC,    /**< changed on its path, forged, or a replayed HELLO_ACK */
	WEFT_HELLO_MODE,   /**< the peer has another WEFT_SEAL */
	WEFT_HELLO_KIND,   /**< the peer has another WEFT_SEAL_DH, or names another lane */
	WEFT_HELLO_ENDED,  /**< kind NEXT: no endpoint here has its key */
	WEFT_HELLO_COUNT,
};

/** @return 0 or -EIO */
int weft_exchange_key_init(struct weft_exchange_key *key, const uint8_t secret[WEFT_HASH_LEN]);

/**
 * Append struct weft_seal_hello to a HELLO.
 * @param body    the caller has set the first 72 bytes; the cookie may change later
 * @param random  32 bytes, never used before
 * @return 0 or -EIO
 */
int weft_exchange_offer(struct weft_exchange *x, const struct weft_exchange_key *key,
			const struct weft_exchange_conf *conf, uint8_t body[WEFT_EXCHANGE_BODY],
			const uint8_t random[WEFT_X25519_LEN]);

/** @return the id by which the responder finds the key of kind NEXT; NULL: @p body is not sealed */
const uint8_t *weft_exchange_key_id(const void *body, size_t len);

/** @return true: the hello is of kind NEXT, and *@p lane is the number of its lane */
bool weft_exchange_is_next(const void *body, size_t len, uint8_t *lane);

/** Costs one HMAC. Mode, kind and lane are checked last: an honest peer may have other ones. */
enum weft_hello_verdict weft_exchange_check(const struct weft_exchange_key *key,
					    const struct weft_exchange_conf *conf, const void *body,
					    size_t len);

/**
 * Write the HELLO_ACK's struct weft_seal_hello, and derive the secrets. weft_exchange_check() must
 * have accepted the HELLO.
 * @param ack  as the body of weft_exchange_offer()
 * @return 0; -EBADMSG: kind NOISE with a wrong tag or share, from a member of the job; -EIO
 */
int weft_exchange_answer(const struct weft_exchange_key *key, const struct weft_exchange_conf *conf,
			 const void *hello, size_t len, uint8_t ack[WEFT_EXCHANGE_BODY],
			 const uint8_t random[WEFT_X25519_LEN], struct weft_exchange_secrets *out);

/**
 * Validate the HELLO_ACK and derive the secrets. The replayed HELLO_ACK of another HELLO gives
 * WEFT_HELLO_MAC. After a refused HELLO_ACK a valid one may follow.
 * @param[out] rc  with WEFT_HELLO_OK: 0, or -EIO if there are no secrets
 */
enum weft_hello_verdict weft_exchange_finish(const struct weft_exchange *x,
					     const struct weft_exchange_key *key, const void *ack,
					     size_t len, struct weft_exchange_secrets *out,
					     int *rc);

/** @return reason and remedy, for this end's log */
const char *weft_hello_verdict_text(enum weft_hello_verdict verdict);

/* ------------------------------------------------------------------ keyring */

/* Keys of kind NEXT, by key id. A key belongs to its endpoint, which frees it. */

/** Zero-initialised. Ids are hashes of secrets, so the table needs no seed. */
struct weft_keyring {
	struct weft_table by_id;
};

/** @return 0, also if the ring has a key with this id; -ENOMEM */
int weft_keyring_add(struct weft_keyring *r, const struct weft_exchange_key *key);
const struct weft_exchange_key *weft_keyring_find(const struct weft_keyring *r,
						  const uint8_t id[WEFT_KEY_ID_LEN]);
void weft_keyring_remove(struct weft_keyring *r, const struct weft_exchange_key *key);
/** Does not free the keys. */
void weft_keyring_fini(struct weft_keyring *r);

#endif /* WEFT_SEAL_EXCHANGE_H */
