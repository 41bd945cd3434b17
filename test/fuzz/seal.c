/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sealed hellos and sealed frames of a hostile peer. First byte of an input: what it is, and
 * whether key id and MAC of a hello are repaired, so that mutations get past them; the rest are the
 * bytes.
 *
 * What must hold: no read outside the bytes (AddressSanitizer); a hello without repair is never
 * valid; a frame never opens, whatever its bytes, unless the peer has sealed them.
 */

#include <stdlib.h>
#include <string.h>

#include "seal/seal.h"

#define FRAME 0x01
#define ACK 0x02
#define FIX 0x04
#define AUTH 0x08
#define KIND 0x30 /* two bits */

#define MUST(cond)               \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weft_cipher *cipher;
static struct weft_exchange_key key;
static struct weft_sealed *sealed[2]; /* by mode: auth, encrypt */
static const uint8_t job_key[32] = "the key of the fuzzer, no secret";

static void init(void)
{
	struct weft_exchange_secrets secrets;
	char why[256];

	if (cipher)
		return;
	cipher = weft_cipher_create(why, sizeof(why));
	MUST(cipher);
	MUST(weft_exchange_key_init(&key, job_key) == 0);
	memset(&secrets, 0x5a, sizeof(secrets));
	for (unsigned int i = 0; i < 2; i++) {
		const struct weft_sealed_conf conf = {
			.mode = i == 0 ? WEFT_SEAL_AUTH : WEFT_SEAL_ENCRYPT,
			.slots = 3,
			.key_due = WEFT_SEALED_KEY_DUE,
			.bad_tags = UINT64_MAX,
			.now = 1,
		};

		MUST(weft_sealed_create(cipher, &conf, &secrets, &sealed[i]) == 0);
	}
}

/* ------------------------------------------------------------------ hellos */

static struct weft_exchange_conf conf_of(uint8_t how)
{
	const struct weft_exchange_conf conf = {
		.version = 3,
		.mode = how & AUTH ? WEFT_SEAL_AUTH : WEFT_SEAL_ENCRYPT,
		.kind = 1 + (how & KIND) / 0x10 % 3,
	};

	return conf;
}

/* Key id and MAC as a member of the job would have made them. @hello: the MAC answered, or zeros */
static void fix(uint8_t *body, size_t len, uint8_t type, const uint8_t answered[WEFT_TAG_LEN])
{
	uint8_t text[2 + WEFT_TAG_LEN + WEFT_EXCHANGE_BODY_MAX] = {3, type}, mac[WEFT_HASH_LEN];
	struct weft_seal_hello *h = (struct weft_seal_hello *)(body + WEFT_EXCHANGE_AT);

	memcpy(h->key_id, key.id, sizeof(key.id));
	memset(h->mac, 0, sizeof(h->mac));
	memcpy(text + 2, answered, WEFT_TAG_LEN);
	memcpy(text + 2 + WEFT_TAG_LEN, body, len);
	memset(text + 2 + WEFT_TAG_LEN + WEFT_EXCHANGE_COOKIE, 0, 8);
	MUST(weft_hmac(key.mac, sizeof(key.mac), text, 2 + WEFT_TAG_LEN + len, mac) == 0);
	memcpy(h->mac, mac, sizeof(h->mac));
}

static bool fixable(uint8_t how, size_t len)
{
	return how & FIX && len >= WEFT_EXCHANGE_BODY && len <= WEFT_EXCHANGE_BODY_MAX;
}

static void hello(uint8_t how, uint8_t *body, size_t len)
{
	static const uint8_t zeros[WEFT_TAG_LEN];
	const struct weft_exchange_conf conf = conf_of(how);
	uint8_t ack[WEFT_EXCHANGE_BODY] = {0}, random[32] = {7};
	struct weft_exchange_secrets secrets;
	enum weft_hello_verdict v;
	int rc;

	if (fixable(how, len))
		fix(body, len, 1, zeros);
	MUST((weft_exchange_key_id(body, len) != NULL) == (len >= WEFT_EXCHANGE_BODY));
	v = weft_exchange_check(&key, &conf, body, len);
	MUST(v < WEFT_HELLO_COUNT && weft_hello_verdict_text(v));
	if (v != WEFT_HELLO_OK)
		return;
	MUST(how & FIX);
	rc = weft_exchange_answer(&key, &conf, body, len, ack, random, &secrets);
	/* A proof of Noise cannot be repaired. */
	MUST(conf.kind == WEFT_EXCHANGE_NOISE ? rc < 0 : rc == 0);
}

static void answer(uint8_t how, uint8_t *body, size_t len)
{
	const struct weft_exchange_conf conf = conf_of(how);
	uint8_t own[WEFT_EXCHANGE_BODY] = {0}, random[32] = {9};
	struct weft_exchange_secrets secrets;
	enum weft_hello_verdict v;
	struct weft_exchange x;
	int rc;

	MUST(weft_exchange_offer(&x, &key, &conf, own, random) == 0);
	if (fixable(how, len))
		fix(body, len, 2, x.hello_mac);
	v = weft_exchange_finish(&x, &key, body, len, &secrets, &rc);
	MUST(rc == 0 && v < WEFT_HELLO_COUNT);
	MUST(v != WEFT_HELLO_OK || (how & FIX && conf.kind != WEFT_EXCHANGE_NOISE));
}

/* ------------------------------------------------------------------ frames */

static void frame(uint8_t how, uint8_t *bytes, size_t len)
{
	struct weft_sealed *s = sealed[how & AUTH ? 0 : 1];
	struct weft_cipher_seg segs[2];
	struct weft_sealed_op op = {.conn = s, .head = bytes, .segs = segs, .num_segs = 2};
	size_t body, first;

	/* The engine checks this before it calls. */
	if (len < WEFT_SEALED_HEAD + WEFT_CIPHER_TAG_LEN)
		return;
	body = len - WEFT_SEALED_HEAD - WEFT_CIPHER_TAG_LEN;
	first = body * how / 256;
	segs[0] =
		(struct weft_cipher_seg){bytes + WEFT_SEALED_HEAD, bytes + WEFT_SEALED_HEAD, first};
	segs[1] = (struct weft_cipher_seg){segs[0].in + first, segs[0].out + first, body - first};
	op.tag = bytes + WEFT_SEALED_HEAD + body;
	MUST(weft_sealed_open(cipher, &op, 1, 2) == 0);
	MUST(op.verdict == WEFT_SEALED_FORMAT || op.verdict == WEFT_SEALED_TAG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact, how;

	init();
	if (size == 0)
		return 0;
	how = data[0];
	exact = malloc(size > 1 ? size - 1 : 1);
	if (!exact)
		return 0;
	memcpy(exact, data + 1, size - 1);
	if (how & FRAME)
		frame(how, exact, size - 1);
	else if (how & ACK)
		answer(how, exact, size - 1);
	else
		hello(how, exact, size - 1);
	free(exact);
	return 0;
}
