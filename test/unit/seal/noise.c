/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include <openssl/evp.h>

#include "seal/exchange.h"
#include "seal_util.h"

/*
 * The vector of Noise_NNpsk0_25519_AESGCM_SHA256 that the implementation Cacophony publishes, which
 * others test with, too. The payloads of the first two messages are those of the exchange; the rest
 * are sealed with the keys of both directions, in turn.
 */
static const char prologue_hex[] = "4a6f686e2047616c74";
static const char psk_hex[] = "54686973206973206d7920417573747269616e20706572737065637469766521";
static const char initiator_hex[] =
	"893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a";
static const char responder_hex[] =
	"bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b";
static const char hash_hex[] = "9f3b1f9afd7767767b5b9d1069844a6154fdbdcc36dfb3e31c0fffc5c973d530";

struct message {
	const char *payload, *sealed;
};

static const struct message messages[] = {
	{"4c756477696720766f6e204d69736573",
	 "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
	 "7c37a89fc17813788d30df2d59501d6066f5f8aecc3406bbd9829f2d24a531b1"},
	{"4d757272617920526f746862617264",
	 "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
	 "2f29d79368ef9de4e1ae7a362fb05bf0ad668e026bf5714554497b3a720461"},
	{"462e20412e20486179656b", "7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6"},
	{"4361726c204d656e676572", "a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0"},
	{"4a65616e2d426170746973746520536179",
	 "6cfc49a3e65472edc2d0152abe5ce950170a8a47c959f30bd48b5f0aacf29adbfd"},
	{"457567656e2042f6686d20766f6e2042617765726b",
	 "9bc86e6d974ed21ba04604a94aa68de21677eb409ead070c0cd569b069ee19ba142aa4c1a9"},
};

/* Both ends of an exchange. */
struct ends {
	struct weft_noise i, r;
	uint8_t psk[32], prologue[64], i_secret[32], r_secret[32];
	size_t prologue_len;
	uint8_t first[128], second[128];
	size_t first_len, second_len;
};

static void ends_init(struct ends *e)
{
	memset(e, 0, sizeof(*e));
	from_hex(psk_hex, e->psk);
	e->prologue_len = from_hex(prologue_hex, e->prologue);
	from_hex(initiator_hex, e->i_secret);
	from_hex(responder_hex, e->r_secret);
	assert_int_equal(weft_noise_begin(&e->i, e->psk, e->prologue, e->prologue_len), 0);
	assert_int_equal(weft_noise_begin(&e->r, e->psk, e->prologue, e->prologue_len), 0);
}

/* Both messages with the payloads of the vector. */
static void exchange(struct ends *e)
{
	uint8_t text[64], got[64];
	size_t len = from_hex(messages[0].payload, text);

	assert_int_equal(weft_noise_write_first(&e->i, e->i_secret, text, len, e->first), 0);
	e->first_len = WEFT_NOISE_MESSAGE + len;
	assert_int_equal(weft_noise_read_first(&e->r, e->first, e->first_len, got), 0);
	assert_memory_equal(got, text, len);
	len = from_hex(messages[1].payload, text);
	assert_int_equal(weft_noise_write_second(&e->r, e->r_secret, text, len, e->second), 0);
	e->second_len = WEFT_NOISE_MESSAGE + len;
	assert_int_equal(weft_noise_read_second(&e->i, e->second, e->second_len, got), 0);
	assert_memory_equal(got, text, len);
}

/* A message after the exchange, which has no associated data. */
static void expect_transport(const uint8_t key[32], uint64_t counter, const struct message *m)
{
	uint8_t text[64], out[64 + 16], nonce[12] = {0};
	size_t len = from_hex(m->payload, text);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n;

	nonce[11] = (uint8_t)counter;
	assert_int_equal(EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce), 1);
	assert_int_equal(EVP_EncryptUpdate(ctx, out, &n, text, (int)len), 1);
	assert_int_equal(EVP_EncryptFinal_ex(ctx, out + n, &n), 1);
	assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, out + len), 1);
	EVP_CIPHER_CTX_free(ctx);
	expect_hex(out, len + 16, m->sealed);
}

static void the_exchange_is_that_of_the_published_vector(void **state)
{
	uint8_t i_keys[2][32], r_keys[2][32];
	struct ends e;

	(void)state;
	ends_init(&e);
	exchange(&e);
	expect_hex(e.first, e.first_len, messages[0].sealed);
	expect_hex(e.second, e.second_len, messages[1].sealed);
	expect_hex(e.i.hash, 32, hash_hex);
	expect_hex(e.r.hash, 32, hash_hex);
	assert_int_equal(weft_noise_split(&e.i, i_keys[0], i_keys[1]), 0);
	assert_int_equal(weft_noise_split(&e.r, r_keys[0], r_keys[1]), 0);
	assert_memory_equal(i_keys, r_keys, sizeof(i_keys));
	for (unsigned int n = 2; n < 6; n++)
		expect_transport(i_keys[n % 2], (n - 2) / 2, &messages[n]);
}

/* ------------------------------------------------------------------ refusals */

static void each_changed_bit_of_the_first_message_is_refused(void **state)
{
	struct ends e;
	uint8_t got[64];

	(void)state;
	ends_init(&e);
	exchange(&e);
	for (size_t bit = 0; bit < e.first_len * 8; bit++) {
		struct weft_noise r;

		assert_int_equal(weft_noise_begin(&r, e.psk, e.prologue, e.prologue_len), 0);
		e.first[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(weft_noise_read_first(&r, e.first, e.first_len, got), -EBADMSG);
		e.first[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void each_changed_bit_of_the_second_message_is_refused(void **state)
{
	struct ends e;
	uint8_t got[64], text[64];
	size_t len = from_hex(messages[0].payload, text);

	(void)state;
	ends_init(&e);
	exchange(&e);
	for (size_t bit = 0; bit < e.second_len * 8; bit++) {
		struct weft_noise i;

		assert_int_equal(weft_noise_begin(&i, e.psk, e.prologue, e.prologue_len), 0);
		assert_int_equal(weft_noise_write_first(&i, e.i_secret, text, len, e.first), 0);
		e.second[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(weft_noise_read_second(&i, e.second, e.second_len, got), -EBADMSG);
		e.second[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void another_key_or_prologue_is_refused(void **state)
{
	struct weft_noise r;
	struct ends e;
	uint8_t got[64];

	(void)state;
	ends_init(&e);
	exchange(&e);
	e.psk[31] ^= 0x80;
	assert_int_equal(weft_noise_begin(&r, e.psk, e.prologue, e.prologue_len), 0);
	assert_int_equal(weft_noise_read_first(&r, e.first, e.first_len, got), -EBADMSG);
	e.psk[31] ^= 0x80;
	e.prologue[0] ^= 1;
	assert_int_equal(weft_noise_begin(&r, e.psk, e.prologue, e.prologue_len), 0);
	assert_int_equal(weft_noise_read_first(&r, e.first, e.first_len, got), -EBADMSG);
	e.prologue[0] ^= 1;
	assert_int_equal(weft_noise_begin(&r, e.psk, e.prologue, e.prologue_len - 1), 0);
	assert_int_equal(weft_noise_read_first(&r, e.first, e.first_len, got), -EBADMSG);
}

static void a_short_message_is_refused(void **state)
{
	struct ends e;
	uint8_t got[64];

	(void)state;
	ends_init(&e);
	assert_int_equal(weft_noise_read_first(&e.r, e.first, WEFT_NOISE_MESSAGE - 1, got),
			 -EBADMSG);
	assert_int_equal(weft_noise_begin(&e.r, e.psk, e.prologue, 1000), -EMSGSIZE);
}

/* ------------------------------------------------------------------ exported secrets */

static void exported_secrets_agree_and_differ_by_label(void **state)
{
	uint8_t a[32], b[32], c[32], keys[2][32];
	struct ends e;

	(void)state;
	ends_init(&e);
	exchange(&e);
	assert_int_equal(weft_noise_export(&e.i, "one", 3, a), 0);
	assert_int_equal(weft_noise_export(&e.r, "one", 3, b), 0);
	assert_int_equal(weft_noise_export(&e.r, "two", 3, c), 0);
	assert_int_equal(weft_noise_split(&e.i, keys[0], keys[1]), 0);
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
	assert_memory_not_equal(a, keys[0], sizeof(a));
	assert_memory_not_equal(a, keys[1], sizeof(a));
	assert_memory_not_equal(keys[0], keys[1], sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exchange_is_that_of_the_published_vector),
		cmocka_unit_test(each_changed_bit_of_the_first_message_is_refused),
		cmocka_unit_test(each_changed_bit_of_the_second_message_is_refused),
		cmocka_unit_test(another_key_or_prologue_is_refused),
		cmocka_unit_test(a_short_message_is_refused),
		cmocka_unit_test(exported_secrets_agree_and_differ_by_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
