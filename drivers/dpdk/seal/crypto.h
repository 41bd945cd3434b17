/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/crypto.h
 * Primitives of the key exchange, by libcrypto. A call costs about 1 us, an X25519 some 40 us.
 * Calls return 0, or -EIO when libcrypto fails: it lacks memory, or its configuration disables the
 * algorithm.
 */
#ifndef WEFT_SEAL_CRYPTO_H
#define WEFT_SEAL_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_HASH_LEN 32u
#define WEFT_X25519_LEN 32u
#define WEFT_TAG_LEN 16u

int weft_sha256(const void *data, size_t len, uint8_t hash[WEFT_HASH_LEN]);

int weft_hmac(const uint8_t *key, size_t key_len, const void *data, size_t len,
	      uint8_t mac[WEFT_HASH_LEN]);

/** RFC 5869. @p salt NULL: 32 zero bytes. @p key_len may be 0 */
int weft_hkdf_extract(const uint8_t *salt, size_t salt_len, const void *key, size_t key_len,
		      uint8_t prk[WEFT_HASH_LEN]);
int weft_hkdf_expand(const uint8_t prk[WEFT_HASH_LEN], const void *info, size_t info_len, void *out,
		     size_t len);

int weft_x25519_public(const uint8_t secret[WEFT_X25519_LEN], uint8_t share[WEFT_X25519_LEN]);

/** @return -EBADMSG: @p peer has low order, so the result does not depend on @p secret */
int weft_x25519(const uint8_t secret[WEFT_X25519_LEN], const uint8_t peer[WEFT_X25519_LEN],
		uint8_t shared[WEFT_HASH_LEN]);

/**
 * AESGCM of Noise: AES-256 with the nonce 0 (4 bytes), @p counter (8 bytes, big-endian).
 * @p out has @p len + WEFT_TAG_LEN bytes.
 */
int weft_noise_aead_seal(const uint8_t key[WEFT_HASH_LEN], uint64_t counter,
			 const uint8_t ad[WEFT_HASH_LEN], const void *data, size_t len,
			 uint8_t *out);

/** @p len includes the tag. @return -EBADMSG: the tag is wrong, and @p out is wiped */
int weft_noise_aead_open(const uint8_t key[WEFT_HASH_LEN], uint64_t counter,
			 const uint8_t ad[WEFT_HASH_LEN], const uint8_t *data, size_t len,
			 void *out);

/** The time does not depend on the bytes. */
bool weft_secret_equal(const void *a, const void *b, size_t len);

#endif /* WEFT_SEAL_CRYPTO_H */
