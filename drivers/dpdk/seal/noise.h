/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/noise.h
 * Noise_NNpsk0_25519_AESGCM_SHA256, of the Noise Protocol Framework, revision 34. Two messages:
 *
 *	initiator -> responder    psk, e
 *	responder -> initiator    e, ee
 *
 * A message is the sender's ephemeral X25519 key, then the sealed payload and its tag. Both ends
 * prove that they have the pre-shared key. An attacker that learns the key later can't decrypt what
 * it has recorded.
 *
 * Calls return 0; -EBADMSG for a message that was not made with this key and prologue; or the
 * errors of seal/crypto.h. After an error the state is of no more use.
 */
#ifndef WEFT_SEAL_NOISE_H
#define WEFT_SEAL_NOISE_H

#include <stddef.h>
#include <stdint.h>

#include "seal/crypto.h"

/** Bytes of a message that has no payload. */
#define WEFT_NOISE_MESSAGE (WEFT_X25519_LEN + WEFT_TAG_LEN)

/** State of one exchange. It holds keys: weft_secret_wipe() at the end. */
struct weft_noise {
	uint8_t chain[WEFT_HASH_LEN]; /**< the specification's ck */
	uint8_t hash[WEFT_HASH_LEN];  /**< of all public inputs: the specification's h */
	uint8_t key[WEFT_HASH_LEN];   /**< of the payload that comes next: k */
	uint8_t own[WEFT_X25519_LEN]; /**< our ephemeral secret */
	uint8_t peer[WEFT_X25519_LEN];
};

/** @p prologue: bytes that both ends must have in common */
int weft_noise_begin(struct weft_noise *s, const uint8_t psk[WEFT_HASH_LEN], const void *prologue,
		     size_t len);

/**
 * The initiator's message.
 * @param secret   32 random bytes, never used before
 * @param message  WEFT_NOISE_MESSAGE + @p len bytes
 */
int weft_noise_write_first(struct weft_noise *s, const uint8_t secret[WEFT_X25519_LEN],
			   const void *payload, size_t len, uint8_t *message);

/** @p payload: @p len - WEFT_NOISE_MESSAGE bytes */
int weft_noise_read_first(struct weft_noise *s, const uint8_t *message, size_t len, void *payload);

/** The responder's message, as weft_noise_write_first(). */
int weft_noise_write_second(struct weft_noise *s, const uint8_t secret[WEFT_X25519_LEN],
			    const void *payload, size_t len, uint8_t *message);
int weft_noise_read_second(struct weft_noise *s, const uint8_t *message, size_t len, void *payload);

/** Keys of both directions, after the second message. */
int weft_noise_split(const struct weft_noise *s, uint8_t initiator[WEFT_HASH_LEN],
		     uint8_t responder[WEFT_HASH_LEN]);

/**
 * A further secret for @p info: HKDF of the same chaining key as weft_noise_split(), which has an
 * empty info. @p info_len > 0
 */
int weft_noise_export(const struct weft_noise *s, const void *info, size_t info_len,
		      uint8_t secret[WEFT_HASH_LEN]);

#endif /* WEFT_SEAL_NOISE_H */
