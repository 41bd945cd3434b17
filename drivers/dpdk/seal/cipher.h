/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/cipher.h
 * AES-128-GCM of frames, by libipsec-mb, whose calls cost a quarter of libcrypto's for 64 bytes.
 * Only weft_cipher_create() allocates.
 */
#ifndef WEFT_SEAL_CIPHER_H
#define WEFT_SEAL_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft_build.h"

#define WEFT_CIPHER_KEY_LEN 16u
#define WEFT_CIPHER_NONCE_LEN 12u
#define WEFT_CIPHER_TAG_LEN 16u

/** The functions for this processor: constant, so threads may share them. */
struct weft_cipher;

/** The size depends on the library's major version. */
struct weft_cipher_key {
	uint8_t bytes[WEFT_BUILD_CIPHER_KEY];
} __attribute__((aligned(64)));

/** A contiguous part of a body. @p in and @p out are the same, or do not overlap. */
struct weft_cipher_seg {
	const uint8_t *in;
	uint8_t *out; /**< not used by weft_cipher_auth() */
	size_t len;
};

/** @return NULL, with the remedy in @p why: no AES or PCLMULQDQ instructions, or no memory */
struct weft_cipher *weft_cipher_create(char *why, size_t why_len);
void weft_cipher_destroy(struct weft_cipher *c);

/** @return e.g. "AES-128-GCM, libipsec-mb 1.3.0, AVX2", for reports */
const char *weft_cipher_name(const struct weft_cipher *c);

void weft_cipher_expand(const struct weft_cipher *c, const uint8_t key[WEFT_CIPHER_KEY_LEN],
			struct weft_cipher_key *out);

/** Encrypt. The tag covers @p aad and the result. @p aad_len > 0 */
void weft_cipher_seal(const struct weft_cipher *c, const struct weft_cipher_key *key,
		      const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
		      size_t aad_len, const struct weft_cipher_seg *segs, unsigned int num_segs,
		      uint8_t tag[WEFT_CIPHER_TAG_LEN]);

/** Decrypt, and compute the tag. The caller uses no byte before weft_cipher_tag_equal() is true. */
void weft_cipher_open(const struct weft_cipher *c, const struct weft_cipher_key *key,
		      const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
		      size_t aad_len, const struct weft_cipher_seg *segs, unsigned int num_segs,
		      uint8_t tag[WEFT_CIPHER_TAG_LEN]);

/** Compute only the tag (GMAC) over @p aad and the segments. */
void weft_cipher_auth(const struct weft_cipher *c, const struct weft_cipher_key *key,
		      const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
		      size_t aad_len, const struct weft_cipher_seg *segs, unsigned int num_segs,
		      uint8_t tag[WEFT_CIPHER_TAG_LEN]);

/** Compare tags in a time that does not depend on the bytes. */
bool weft_cipher_tag_equal(const uint8_t a[WEFT_CIPHER_TAG_LEN],
			   const uint8_t b[WEFT_CIPHER_TAG_LEN]);

#endif /* WEFT_SEAL_CIPHER_H */
