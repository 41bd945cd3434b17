/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows out of a pool: floors, shares, the bound. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/pacing.h"

#define MIB (1u << 20)

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* @behaviour T2: the same holds for credits, received ranges, gets, and pulls of a rendezvous */
static void the_last_of_128_peers_has_a_window_that_works(void **state)
{
	struct weft_credit_pool bytes, msgs;

	(void)state;
	weft_credit_pool_init(&bytes, 64 * MIB, 4096, MIB, MIB);
	weft_credit_pool_init(&msgs, 64 * MIB / 256, 16, 4096, 1u << 17);
	for (int i = 0; i < 128; i++) {
		uint64_t b = weft_credit_pool_join(&bytes), m = weft_credit_pool_join(&msgs);

		assert_in_range(b, i < 16 ? MIB : 48 << 10, MIB);
		assert_in_range(m, i < 16 ? 2048 : 192, 4096);
	}
	assert_true(bytes.granted <= bytes.limit && msgs.granted <= msgs.limit);
}

/* @behaviour T2 */
static void one_that_floods_gets_much_and_leaves_the_others_their_floor(void **state)
{
	struct weft_credit_pool p;
	uint64_t window, more;

	(void)state;
	weft_credit_pool_init(&p, 1u << 18, 16, 4096, 1u << 17);
	window = weft_credit_pool_join(&p);
	while ((more = weft_credit_pool_grow(&p, window)))
		window += more;
	assert_in_range(window, 100001, 1u << 17); /* 10^5 messages, as one peer always could */
	for (int i = 1; i < 512; i++) {
		uint64_t w = weft_credit_pool_join(&p);

		assert_in_range(w, 128, 4096);
		while ((more = weft_credit_pool_grow(&p, w)))
			w += more;
	}
	assert_true(p.granted <= p.limit);
	/* More than there are floors for: a little each. */
	for (int i = 0; i < 10; i++)
		assert_in_range(weft_credit_pool_join(&p), 16, 128);
	assert_true(p.granted <= p.limit + 160);
}

/* Jobs of many peers need a floor for each: it is what the bound grows by. */
/* @behaviour T2 */
static void the_bound_is_the_limit_and_a_little_for_each_peer(void **state)
{
	struct weft_credit_pool bytes, msgs;

	(void)state;
	weft_credit_pool_init(&bytes, 64 * MIB, 4096, MIB, MIB);
	weft_credit_pool_init(&msgs, 64 * MIB / 256, 16, 4096, 1u << 17);
	for (uint64_t i = 1; i <= 20000; i++) {
		assert_true(weft_credit_pool_join(&bytes) >= 4096);
		assert_true(weft_credit_pool_join(&msgs) >= 16);
		if (i <= 512)
			assert_true(bytes.granted <= bytes.limit && msgs.granted <= msgs.limit);
		assert_true(bytes.granted <= bytes.limit + i * 4096);
		assert_true(msgs.granted <= msgs.limit + i * 16);
	}
}

static void what_comes_back_is_shared_evenly(void **state)
{
	struct weft_credit_pool p;
	uint64_t w[64];

	(void)state;
	weft_credit_pool_init(&p, 1u << 18, 16, 4096, 1u << 17);
	for (int i = 0; i < 64; i++)
		w[i] = weft_credit_pool_join(&p);
	/* The first fills the pool. Then all work: what was used comes back, and is used again. */
	for (uint64_t more; (more = weft_credit_pool_grow(&p, w[0])); w[0] += more)
		;
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 64; i++) {
			uint64_t kept = weft_credit_pool_keep(&p, w[i], w[i] / 4);

			assert_true(kept <= w[i] / 4);
			w[i] -= kept;
			w[i] += weft_credit_pool_grow(&p, w[i]);
		}
		assert_true(p.granted <= p.limit);
	}
	for (int i = 0; i < 64; i++)
		assert_in_range(w[i], 1024, 8192);
	for (int i = 0; i < 64; i++)
		weft_credit_pool_leave(&p, w[i]);
	assert_int_equal(p.granted, 0);
}

static void nothing_gets_lost_whatever_happens(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		uint64_t limit = 256 + rnd() % (1u << (8 + round % 12)), sum = 0;
		struct weft_credit_pool p;
		uint64_t w[100] = {0};

		weft_credit_pool_init(&p, limit, 16, 1 + rnd() % 5000, 5000);
		for (int i = 0; i < 5000; i++) {
			uint64_t *x = &w[rnd() % 100];

			if (*x == 0) {
				*x = weft_credit_pool_join(&p);
				assert_true(*x > 0);
			} else if (rnd() % 8 == 0) {
				weft_credit_pool_leave(&p, *x);
				*x = 0;
			} else if (rnd() % 2) {
				*x += weft_credit_pool_grow(&p, *x);
			} else {
				*x -= weft_credit_pool_keep(&p, *x, rnd() % (*x + 1));
			}
			assert_true(*x <= 5000);
			assert_true(p.granted <= p.limit + 16 * p.peers);
		}
		for (int i = 0; i < 100; i++)
			sum += w[i];
		assert_int_equal(sum, p.granted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_of_128_peers_has_a_window_that_works),
		cmocka_unit_test(one_that_floods_gets_much_and_leaves_the_others_their_floor),
		cmocka_unit_test(the_bound_is_the_limit_and_a_little_for_each_peer),
		cmocka_unit_test(what_comes_back_is_shared_evenly),
		cmocka_unit_test(nothing_gets_lost_whatever_happens),
	};

	return cmocka_run_group_tests_name("credit", tests, NULL, NULL);
}
