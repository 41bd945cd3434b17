/* SPDX-License-Identifier: BSD-3-Clause */

#include "seal/crypto.h"

#include <errno.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "base/secret.h"

/* ------------------------------------------------------------------ hashes */

/* libcrypto queues errors per thread: an application must not find those of Weft. */
static int failed(void)
{
	ERR_clear_error();
	return -EIO;
}

int weft_sha256(const void *data, size_t len, uint8_t hash[WEFT_HASH_LEN])
{
	unsigned int hash_len;

	return EVP_Digest(data, len, hash, &hash_len, EVP_sha256(), NULL) == 1 ? 0 : failed();
}

int weft_hmac(const uint8_t *key, size_t key_len, const void *data, size_t len,
	      uint8_t mac[WEFT_HASH_LEN])
{
	unsigned int mac_len;

	return HMAC(EVP_sha256(), key, (int)key_len, data, len, mac, &mac_len) ? 0 : failed();
}

/* ------------------------------------------------------------------ HKDF */

static int hkdf(int mode, const void *key, size_t key_len, const void *salt, size_t salt_len,
		const void *info, size_t info_len, void *out, size_t len)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	char digest[] = "SHA256";
	OSSL_PARAM params[6], *p = params;
	int ok;

	*p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0);
	/* libcrypto's constructors have no const, but only read. */
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key,
						 key_len);
	if (salt)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT,
							 (void *)(uintptr_t)salt, salt_len);
	if (info)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO,
							 (void *)(uintptr_t)info, info_len);
	*p = OSSL_PARAM_construct_end();
	ok = ctx && EVP_KDF_derive(ctx, out, len, params) == 1;
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok ? 0 : failed();
}

int weft_hkdf_extract(const uint8_t *salt, size_t salt_len, const void *key, size_t key_len,
		      uint8_t prk[WEFT_HASH_LEN])
{
	static const uint8_t zeros[WEFT_HASH_LEN];

	if (!salt) {
		salt = zeros;
		salt_len = sizeof(zeros);
	}
	return hkdf(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, key, key_len, salt, salt_len, NULL, 0, prk,
		    WEFT_HASH_LEN);
}

int weft_hkdf_expand(const uint8_t prk[WEFT_HASH_LEN], const void *info, size_t info_len, void *out,
		     size_t len)
{
	return hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, prk, WEFT_HASH_LEN, NULL, 0, info, info_len, out,
		    len);
}

/* ------------------------------------------------------------------ X25519 */

int weft_x25519_public(const uint8_t secret[WEFT_X25519_LEN], uint8_t share[WEFT_X25519_LEN])
{
	EVP_PKEY *own =
		EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret, WEFT_X25519_LEN);
	size_t len = WEFT_X25519_LEN;
	int ok =
		own && EVP_PKEY_get_raw_public_key(own, share, &len) == 1 && len == WEFT_X25519_LEN;

	EVP_PKEY_free(own);
	return ok ? 0 : failed();
}

int weft_x25519(const uint8_t secret[WEFT_X25519_LEN], const uint8_t peer[WEFT_X25519_LEN],
		uint8_t shared[WEFT_HASH_LEN])
{
	EVP_PKEY *own =
		EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret, WEFT_X25519_LEN);
	EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, peer, WEFT_X25519_LEN);
	EVP_PKEY_CTX *ctx = own && other ? EVP_PKEY_CTX_new(own, NULL) : NULL;
	size_t len = WEFT_HASH_LEN;
	int rc = -EIO;

	if (ctx && EVP_PKEY_derive_init(ctx) == 1 && EVP_PKEY_derive_set_peer(ctx, other) == 1)
		/* libcrypto refuses a result of zeros, which all points of low order give. */
		rc = EVP_PKEY_derive(ctx, shared, &len) == 1 && len == WEFT_HASH_LEN ? 0 : -EBADMSG;
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(other);
	EVP_PKEY_free(own);
	if (rc < 0)
		ERR_clear_error();
	return rc;
}

/* ------------------------------------------------------------------ AES-256-GCM of Noise */

static void noise_nonce(uint64_t counter, uint8_t nonce[12])
{
	memset(nonce, 0, 4);
	for (unsigned int i = 0; i < 8; i++)
		nonce[4 + i] = (uint8_t)(counter >> (56 - 8 * i));
}

int weft_noise_aead_seal(const uint8_t key[WEFT_HASH_LEN], uint64_t counter,
			 const uint8_t ad[WEFT_HASH_LEN], const void *data, size_t len,
			 uint8_t *out)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t nonce[12];
	int n, ok;

	noise_nonce(counter, nonce);
	ok = ctx && EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
	     EVP_EncryptUpdate(ctx, NULL, &n, ad, WEFT_HASH_LEN) == 1 &&
	     (len == 0 || EVP_EncryptUpdate(ctx, out, &n, data, (int)len) == 1) &&
	     EVP_EncryptFinal_ex(ctx, out + len, &n) == 1 &&
	     EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, WEFT_TAG_LEN, out + len) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return ok ? 0 : failed();
}

int weft_noise_aead_open(const uint8_t key[WEFT_HASH_LEN], uint64_t counter,
			 const uint8_t ad[WEFT_HASH_LEN], const uint8_t *data, size_t len,
			 void *out)
{
	EVP_CIPHER_CTX *ctx;
	uint8_t nonce[12], tag[WEFT_TAG_LEN];
	int n, rc = -EIO;

	if (len < WEFT_TAG_LEN)
		return -EBADMSG;
	len -= WEFT_TAG_LEN;
	memcpy(tag, data + len, sizeof(tag));
	noise_nonce(counter, nonce);
	ctx = EVP_CIPHER_CTX_new();
	if (ctx && EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
	    EVP_DecryptUpdate(ctx, NULL, &n, ad, WEFT_HASH_LEN) == 1 &&
	    (len == 0 || EVP_DecryptUpdate(ctx, out, &n, data, (int)len) == 1) &&
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, WEFT_TAG_LEN, tag) == 1)
		/* The final call writes no bytes to tag[], as GCM has no padding. */
		rc = EVP_DecryptFinal_ex(ctx, tag, &n) == 1 ? 0 : -EBADMSG;
	EVP_CIPHER_CTX_free(ctx);
	if (rc < 0) {
		ERR_clear_error();
		weft_secret_wipe(out, len);
	}
	return rc;
}

/* ------------------------------------------------------------------ bytes */

bool weft_secret_equal(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}
