/* SPDX-License-Identifier: BSD-3-Clause */

#include "seal/exchange.h"
#include "seal_util.h"

#define KEYS 500u

static struct weft_exchange_key keys[KEYS];

static void make_keys(void)
{
	uint8_t secret[WEFT_HASH_LEN];
	uint64_t seed = 7;

	for (unsigned int i = 0; i < KEYS; i++) {
		dice(&seed, secret, sizeof(secret));
		assert_int_equal(weft_exchange_key_init(&keys[i], secret), 0);
	}
}

static void each_key_is_found_by_its_id_while_it_is_there(void **state)
{
	struct weft_keyring r = {0};

	(void)state;
	make_keys();
	assert_null(weft_keyring_find(&r, keys[0].id));
	for (unsigned int i = 0; i < KEYS; i++) {
		assert_null(weft_keyring_find(&r, keys[i].id));
		assert_int_equal(weft_keyring_add(&r, &keys[i]), 0);
		assert_int_equal(weft_keyring_add(&r, &keys[i]), 0);
	}
	for (unsigned int i = 0; i < KEYS; i++)
		assert_ptr_equal(weft_keyring_find(&r, keys[i].id), &keys[i]);
	for (unsigned int i = 0; i < KEYS; i += 2) {
		weft_keyring_remove(&r, &keys[i]);
		weft_keyring_remove(&r, &keys[i]);
	}
	for (unsigned int i = 0; i < KEYS; i++)
		assert_ptr_equal(weft_keyring_find(&r, keys[i].id), i % 2 ? &keys[i] : NULL);
	weft_keyring_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_is_found_by_its_id_while_it_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
