/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of base/greeting.h: those of Noise, and the text in a third one. */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/greeting.h"
#include "base/secret.h"
#include "seal/noise.h"

#define LABEL(text) (text), sizeof(text) - 1

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

/* Noise continues behind the request, which is made again: no state is kept between the calls. */
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
