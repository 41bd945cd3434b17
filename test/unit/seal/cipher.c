/* SPDX-License-Identifier: BSD-3-Clause */

/* libipsec-mb's AES-128-GCM against published vectors, and against libcrypto's. */

#include <stdio.h>

#include <openssl/evp.h>

#include "mock/rounds.h"
#include "seal/seal.h"
#include "seal_util.h"

#define LONGEST 16384u

static struct weft_cipher *cipher;

static int open_cipher(void **state)
{
	char why[256];

	(void)state;
	cipher = weft_cipher_create(why, sizeof(why));
	if (!cipher) {
		print_message("SKIP: %s\n", why);
		return -1;
	}
	return 0;
}

static int close_cipher(void **state)
{
	(void)state;
	weft_cipher_destroy(cipher);
	return 0;
}

struct gcm_case {
	const char *key, *nonce, *aad, *text, *sealed, *tag;
};

/*
 * Test case 4 of "The Galois/Counter Mode of Operation" (McGrew, Viega), and one of NIST's CAVP
 * (gcmEncryptExtIV128.rsp).
 */
static const struct gcm_case gcm_cases[] = {
	{
		"feffe9928665731c6d6a8f9467308308",
		"cafebabefacedbaddecaf888",
		"feedfacedeadbeeffeedfacedeadbeefabaddad2",
		"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
		"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
		"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
		"21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
		"5bc94fbc3221a5db94fae95ae7121a47",
	},
	{
		"48b7f337cdf9252687ecc760bd8ec184",
		"3e894ebb16ce82a53c3e05b2",
		"7d924cfd37b3d046a96eb5e132042405c8731e06509787bbeb41f258275746495e884d69871f7763"
		"4c584bb007312234",
		"bb2bac67a4709430c39c2eb9acfabc0d456c80d30aa1734e57997d548a8f0603",
		"d263228b8ce051f67e9baf1ce7df97d10cd5f3bc972362055130c7d13c3ab2e7",
		"71446737ca1fa92e6d026d7d2ed1aa9c",
	},
};

static void frames_are_sealed_as_in_the_published_vectors(void **state)
{
	static struct weft_cipher_key key;
	uint8_t raw[16], nonce[12], aad[64], text[64], out[64], tag[16];

	(void)state;
	for (size_t i = 0; i < sizeof(gcm_cases) / sizeof(gcm_cases[0]); i++) {
		const struct gcm_case *g = &gcm_cases[i];
		size_t aad_len = from_hex(g->aad, aad), len = from_hex(g->text, text);
		struct weft_cipher_seg seg = {.in = text, .out = out, .len = len};

		from_hex(g->key, raw);
		from_hex(g->nonce, nonce);
		weft_cipher_expand(cipher, raw, &key);
		weft_cipher_seal(cipher, &key, nonce, aad, aad_len, &seg, 1, tag);
		expect_hex(out, len, g->sealed);
		expect_hex(tag, 16, g->tag);
		seg = (struct weft_cipher_seg){.in = out, .out = out, .len = len};
		memset(tag, 0, sizeof(tag));
		weft_cipher_open(cipher, &key, nonce, aad, aad_len, &seg, 1, tag);
		assert_memory_equal(out, text, len);
		expect_hex(tag, 16, g->tag);
	}
}

/* ------------------------------------------------------------------ against libcrypto */

static void reference(const uint8_t raw[16], const uint8_t nonce[12], const uint8_t *aad,
		      size_t aad_len, const uint8_t *text, size_t len, uint8_t *out,
		      uint8_t tag[16])
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n;

	assert_int_equal(EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, raw, nonce), 1);
	assert_int_equal(EVP_EncryptUpdate(ctx, NULL, &n, aad, (int)aad_len), 1);
	if (len > 0)
		assert_int_equal(EVP_EncryptUpdate(ctx, out, &n, text, (int)len), 1);
	assert_int_equal(EVP_EncryptFinal_ex(ctx, out + len, &n), 1);
	assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, tag), 1);
	EVP_CIPHER_CTX_free(ctx);
}

/* Cut @len bytes into segments of random lengths, empty ones among them. */
static unsigned int cut(uint64_t *seed, size_t len, const uint8_t *in, uint8_t *out,
			struct weft_cipher_seg *segs, unsigned int max)
{
	unsigned int num = 0;
	size_t at = 0;

	while (at < len && num < max) {
		uint16_t part;

		dice(seed, &part, sizeof(part));
		part = (uint16_t)(part % 4 == 0 ? part % 17 : part % 3000);
		if (part > len - at || num == max - 1)
			part = (uint16_t)(len - at);
		segs[num++] = (struct weft_cipher_seg){in + at, out + at, part};
		at += part;
	}
	return num;
}

static void check_length(uint64_t *seed, size_t len)
{
	static uint8_t text[LONGEST], want[LONGEST + 16], got[LONGEST], all[LONGEST + 50];
	static struct weft_cipher_key key;
	uint8_t raw[16], nonce[12], aad[50], tag[16], want_tag[16];
	struct weft_cipher_seg segs[8];
	unsigned int num;

	dice(seed, raw, sizeof(raw));
	dice(seed, nonce, sizeof(nonce));
	dice(seed, aad, sizeof(aad));
	dice(seed, text, len);
	weft_cipher_expand(cipher, raw, &key);
	reference(raw, nonce, aad, sizeof(aad), text, len, want, want_tag);
	num = cut(seed, len, text, got, segs, 8);
	weft_cipher_seal(cipher, &key, nonce, aad, sizeof(aad), segs, num, tag);
	assert_memory_equal(got, want, len);
	assert_memory_equal(tag, want_tag, 16);
	num = cut(seed, len, got, got, segs, 8);
	weft_cipher_open(cipher, &key, nonce, aad, sizeof(aad), segs, num, tag);
	assert_memory_equal(got, text, len);
	assert_memory_equal(tag, want_tag, 16);

	/* Authentication only is GCM with everything as associated data. */
	memcpy(all, aad, sizeof(aad));
	memcpy(all + sizeof(aad), text, len);
	reference(raw, nonce, all, sizeof(aad) + len, NULL, 0, want, want_tag);
	num = cut(seed, len, text, got, segs, 8);
	weft_cipher_auth(cipher, &key, nonce, aad, sizeof(aad), segs, num, tag);
	assert_memory_equal(tag, want_tag, 16);
}

static void all_lengths_and_segments_are_sealed_as_by_libcrypto(void **state)
{
	uint64_t seed = 4;

	(void)state;
	for (size_t len = 0; len <= 400; len++)
		check_length(&seed, len);
	for (unsigned int i = 0; i < test_rounds(2000); i++) {
		uint16_t len;

		dice(&seed, &len, sizeof(len));
		check_length(&seed, len % (LONGEST + 1));
	}
	check_length(&seed, LONGEST);
}

static void tags_are_equal_or_not(void **state)
{
	uint8_t a[16], b[16];
	uint64_t seed = 5;

	(void)state;
	dice(&seed, a, sizeof(a));
	memcpy(b, a, sizeof(b));
	assert_true(weft_cipher_tag_equal(a, b));
	for (unsigned int bit = 0; bit < 128; bit++) {
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(weft_cipher_tag_equal(a, b));
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void its_name_has_cipher_library_and_instructions(void **state)
{
	(void)state;
	assert_ptr_equal(strstr(weft_cipher_name(cipher), "AES-128-GCM, libipsec-mb "),
			 weft_cipher_name(cipher));
	print_message("%s\n", weft_cipher_name(cipher));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_sealed_as_in_the_published_vectors),
		cmocka_unit_test(all_lengths_and_segments_are_sealed_as_by_libcrypto),
		cmocka_unit_test(tags_are_equal_or_not),
		cmocka_unit_test(its_name_has_cipher_library_and_instructions),
	};

	return cmocka_run_group_tests(tests, open_cipher, close_cipher);
}
