/* SPDX-License-Identifier: BSD-3-Clause */

#include "seal/cipher.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <intel-ipsec-mb.h>

static_assert(sizeof(struct gcm_key_data) <= sizeof(struct weft_cipher_key), "one library's size");
static_assert(WEFT_CIPHER_NONCE_LEN == IMB_GCM_IV_DATA_LEN, "the nonce of GCM");

/* Without these the library uses tables: slow, and in a time that depends on the key. */
#define NEEDED (IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ)

struct weft_cipher {
	IMB_MGR *mgr;
	char name[96];
};

/* ------------------------------------------------------------------ a processor's functions */

static const char *arch_name(IMB_ARCH arch)
{
	switch (arch) {
	case IMB_ARCH_AVX2:
		return "AVX2";
	case IMB_ARCH_AVX512:
		return "AVX512";
	default:
		return "SSE or AVX"; /* version 2 has no name for AVX alone */
	}
}

struct weft_cipher *weft_cipher_create(char *why, size_t why_len)
{
	struct weft_cipher *c = calloc(1, sizeof(*c));
	IMB_ARCH arch = IMB_ARCH_NONE;

	if (c)
		c->mgr = alloc_mb_mgr(0);
	if (!c || !c->mgr) {
		snprintf(why, why_len, "out of memory for the cipher of sealed frames");
		goto fail;
	}
	init_mb_mgr_auto(c->mgr, &arch);
	if ((c->mgr->features & NEEDED) != NEEDED || arch == IMB_ARCH_NONE) {
		snprintf(why, why_len,
			 "this processor has no AES and PCLMULQDQ instructions, so frames can't be "
			 "sealed: run without WEFT_JOB_KEY in a network whose members you trust");
		goto fail;
	}
	snprintf(c->name, sizeof(c->name), "AES-128-GCM, libipsec-mb %s, %s%s",
		 imb_get_version_str(), arch_name(arch),
		 arch == IMB_ARCH_AVX512 && c->mgr->features & IMB_FEATURE_VAES ? " with VAES"
										: "");
	return c;

fail:
	weft_cipher_destroy(c);
	return NULL;
}

void weft_cipher_destroy(struct weft_cipher *c)
{
	if (!c)
		return;
	if (c->mgr)
		free_mb_mgr(c->mgr);
	free(c);
}

const char *weft_cipher_name(const struct weft_cipher *c)
{
	return c->name;
}

/* ------------------------------------------------------------------ frames */

static const struct gcm_key_data *schedule(const struct weft_cipher_key *key)
{
	return (const struct gcm_key_data *)key->bytes;
}

void weft_cipher_expand(const struct weft_cipher *c, const uint8_t key[WEFT_CIPHER_KEY_LEN],
			struct weft_cipher_key *out)
{
	IMB_AES128_GCM_PRE(c->mgr, key, (struct gcm_key_data *)out->bytes);
}

void weft_cipher_seal(const struct weft_cipher *c, const struct weft_cipher_key *key,
		      const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
		      size_t aad_len, const struct weft_cipher_seg *segs, unsigned int num_segs,
		      uint8_t tag[WEFT_CIPHER_TAG_LEN])
{
	struct gcm_context_data ctx;

	if (num_segs == 1) {
		IMB_AES128_GCM_ENC(c->mgr, schedule(key), &ctx, segs->out, segs->in, segs->len,
				   nonce, aad, aad_len, tag, WEFT_CIPHER_TAG_LEN);
		return;
	}
	IMB_AES128_GCM_INIT(c->mgr, schedule(key), &ctx, nonce, aad, aad_len);
	for (unsigned int i = 0; i < num_segs; i++)
		IMB_AES128_GCM_ENC_UPDATE(c->mgr, schedule(key), &ctx, segs[i].out, segs[i].in,
					  segs[i].len);
	IMB_AES128_GCM_ENC_FINALIZE(c->mgr, schedule(key), &ctx, tag, WEFT_CIPHER_TAG_LEN);
}

void weft_cipher_open(const struct weft_cipher *c, const struct weft_cipher_key *key,
		      const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
		      size_t aad_len, const struct weft_cipher_seg *segs, unsigned int num_segs,
		      uint8_t tag[WEFT_CIPHER_TAG_LEN])
{
	struct gcm_context_data ctx;

	if (num_segs == 1) {
		IMB_AES128_GCM_DEC(c->mgr, schedule(key), &ctx, segs->out, segs->in, segs->len,
				   nonce, aad, aad_len, tag, WEFT_CIPHER_TAG_LEN);
		return;
	}
	IMB_AES128_GCM_INIT(c->mgr, schedule(key), &ctx, nonce, aad, aad_len);
	for (unsigned int i = 0; i < num_segs; i++)
		IMB_AES128_GCM_DEC_UPDATE(c->mgr, schedule(key), &ctx, segs[i].out, segs[i].in,
					  segs[i].len);
	IMB_AES128_GCM_DEC_FINALIZE(c->mgr, schedule(key), &ctx, tag, WEFT_CIPHER_TAG_LEN);
}

void weft_cipher_auth(const struct weft_cipher *c, const struct weft_cipher_key *key,
		      const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
		      size_t aad_len, const struct weft_cipher_seg *segs, unsigned int num_segs,
		      uint8_t tag[WEFT_CIPHER_TAG_LEN])
{
	struct gcm_context_data ctx;

	IMB_AES128_GMAC_INIT(c->mgr, schedule(key), &ctx, nonce, WEFT_CIPHER_NONCE_LEN);
	IMB_AES128_GMAC_UPDATE(c->mgr, schedule(key), &ctx, aad, aad_len);
	for (unsigned int i = 0; i < num_segs; i++)
		IMB_AES128_GMAC_UPDATE(c->mgr, schedule(key), &ctx, segs[i].in, segs[i].len);
	IMB_AES128_GMAC_FINALIZE(c->mgr, schedule(key), &ctx, tag, WEFT_CIPHER_TAG_LEN);
}

bool weft_cipher_tag_equal(const uint8_t a[WEFT_CIPHER_TAG_LEN],
			   const uint8_t b[WEFT_CIPHER_TAG_LEN])
{
	uint64_t x[2], y[2], differ;

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	differ = (x[0] ^ y[0]) | (x[1] ^ y[1]);
	/* The compiler must not turn this into a comparison of each half. */
	__asm__("" : "+r"(differ));
	return differ == 0;
}
