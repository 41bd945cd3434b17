/* SPDX-License-Identifier: BSD-3-Clause */

/* The functions have the names that the specification gives to its operations. */

#include "seal/noise.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/secret.h"

static const char protocol[] = "Noise_NNpsk0_25519_AESGCM_SHA256";

static_assert(sizeof(protocol) - 1 == WEFT_HASH_LEN, "the name is the first hash");

/* ------------------------------------------------------------------ the symmetric state */

/* HKDF() of the specification is that of RFC 5869 with an empty info. */
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

/*
 * Each message has one payload, whose key mix_key() has just made: the counter of the nonce is 0
 * each time.
 */
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

/* With a pre-shared key an ephemeral key is mixed into the chaining key, too. */
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
