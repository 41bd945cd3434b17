/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include "base/secret.h"
#include "seal/crypto.h"
#include "seal_util.h"

/* Test cases 1 to 3 of RFC 5869, appendix A. */
struct hkdf_case {
	const char *key, *salt, *info, *prk, *out;
};

static const struct hkdf_case hkdf_cases[] = {
	{
		"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
		"000102030405060708090a0b0c",
		"f0f1f2f3f4f5f6f7f8f9",
		"077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
		"3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
		"34007208d5b887185865",
	},
	{
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
		"202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
		"404142434445464748494a4b4c4d4e4f",
		"606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"
		"808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
		"a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
		"b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecf"
		"d0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeef"
		"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
		"06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
		"b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
		"59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
		"cc30c58179ec3e87c14c01d5c1f3434f1d87",
	},
	{
		"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
		"",
		"",
		"19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
		"8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
		"9d201395faa4b61a96c8",
	},
};

static void hkdf_is_that_of_rfc_5869(void **state)
{
	uint8_t key[128], salt[128], info[128], prk[32], out[128];

	(void)state;
	for (size_t i = 0; i < sizeof(hkdf_cases) / sizeof(hkdf_cases[0]); i++) {
		const struct hkdf_case *c = &hkdf_cases[i];
		size_t key_len = from_hex(c->key, key), salt_len = from_hex(c->salt, salt);
		size_t info_len = from_hex(c->info, info), out_len = strlen(c->out) / 2;

		assert_int_equal(
			weft_hkdf_extract(salt_len ? salt : NULL, salt_len, key, key_len, prk), 0);
		expect_hex(prk, sizeof(prk), c->prk);
		assert_int_equal(
			weft_hkdf_expand(prk, info_len ? info : NULL, info_len, out, out_len), 0);
		expect_hex(out, out_len, c->out);
	}
}

/* Test cases 2 and 6 of RFC 4231. */
static void hmac_is_that_of_rfc_4231(void **state)
{
	uint8_t key[131], mac[32];

	(void)state;
	assert_int_equal(
		weft_hmac((const uint8_t *)"Jefe", 4, "what do ya want for nothing?", 28, mac), 0);
	expect_hex(mac, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	assert_int_equal(weft_hmac(key, sizeof(key),
				   "Test Using Larger Than Block-Size Key - Hash Key First", 54,
				   mac),
			 0);
	expect_hex(mac, 32, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void sha256_is_that_of_fips_180(void **state)
{
	uint8_t hash[32];

	(void)state;
	assert_int_equal(weft_sha256("abc", 3, hash), 0);
	expect_hex(hash, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(weft_sha256("", 0, hash), 0);
	expect_hex(hash, 32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* RFC 7748, section 6.1. */
static void x25519_is_that_of_rfc_7748(void **state)
{
	uint8_t a[32], b[32], a_public[32], b_public[32], k[32];

	(void)state;
	from_hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a", a);
	from_hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb", b);
	assert_int_equal(weft_x25519_public(a, a_public), 0);
	assert_int_equal(weft_x25519_public(b, b_public), 0);
	expect_hex(a_public, 32,
		   "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
	expect_hex(b_public, 32,
		   "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
	assert_int_equal(weft_x25519(a, b_public, k), 0);
	expect_hex(k, 32, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
	memset(k, 0, sizeof(k));
	assert_int_equal(weft_x25519(b, a_public, k), 0);
	expect_hex(k, 32, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
}

/* The points of order 1, 2, 4 and 8 of the curve, as bytes. */
static void points_of_low_order_are_refused(void **state)
{
	static const char *const points[] = {
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
		"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	};
	uint8_t secret[32], point[32], k[32];
	uint64_t seed = 1;

	(void)state;
	dice(&seed, secret, sizeof(secret));
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		from_hex(points[i], point);
		assert_int_equal(weft_x25519(secret, point, k), -EBADMSG);
	}
}

/* What is sealed opens, and no longer with a changed bit anywhere. */
static void each_bit_of_a_noise_payload_counts(void **state)
{
	uint8_t key[32], ad[32], text[21], sealed[21 + WEFT_TAG_LEN], opened[21];
	uint64_t seed = 2;

	(void)state;
	dice(&seed, key, sizeof(key));
	dice(&seed, ad, sizeof(ad));
	dice(&seed, text, sizeof(text));
	assert_int_equal(weft_noise_aead_seal(key, 5, ad, text, sizeof(text), sealed), 0);
	assert_int_equal(weft_noise_aead_open(key, 5, ad, sealed, sizeof(sealed), opened), 0);
	assert_memory_equal(opened, text, sizeof(text));
	assert_int_equal(weft_noise_aead_open(key, 6, ad, sealed, sizeof(sealed), opened),
			 -EBADMSG);
	assert_int_equal(weft_noise_aead_open(key, 5, ad, sealed, WEFT_TAG_LEN - 1, opened),
			 -EBADMSG);
	for (unsigned int bit = 0; bit < sizeof(sealed) * 8; bit++) {
		sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(weft_noise_aead_open(key, 5, ad, sealed, sizeof(sealed), opened),
				 -EBADMSG);
		sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (unsigned int bit = 0; bit < 256; bit++) {
		ad[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(weft_noise_aead_open(key, 5, ad, sealed, sizeof(sealed), opened),
				 -EBADMSG);
		ad[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void secrets_are_compared_and_wiped(void **state)
{
	uint8_t a[16] = "0123456789abcde", b[16] = "0123456789abcde", zeros[16] = {0};

	(void)state;
	assert_true(weft_secret_equal(a, b, sizeof(a)));
	b[15] ^= 1;
	assert_false(weft_secret_equal(a, b, sizeof(a)));
	weft_secret_wipe(a, sizeof(a));
	assert_memory_equal(a, zeros, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hkdf_is_that_of_rfc_5869),
		cmocka_unit_test(hmac_is_that_of_rfc_4231),
		cmocka_unit_test(sha256_is_that_of_fips_180),
		cmocka_unit_test(x25519_is_that_of_rfc_7748),
		cmocka_unit_test(points_of_low_order_are_refused),
		cmocka_unit_test(each_bit_of_a_noise_payload_counts),
		cmocka_unit_test(secrets_are_compared_and_wiped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
