/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines against a table that is searched whole. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/container.h"

#define ITEMS 200u

static uint64_t rnd(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static uint64_t least(const uint64_t *at)
{
	uint64_t first = WEFT_NEVER;

	for (unsigned int i = 0; i < ITEMS; i++)
		if (at[i] < first)
			first = at[i];
	return first;
}

static void random_calls_agree_with_a_table(void **state)
{
	struct weft_deadlines d = {0};
	uint64_t at[ITEMS], t, seed = 88172645463325252ull;
	uint32_t item;

	(void)state;
	for (unsigned int i = 0; i < ITEMS; i++)
		at[i] = WEFT_NEVER;
	assert_int_equal(weft_deadlines_first(&d), WEFT_NEVER);
	assert_int_equal(weft_deadlines_reserve(&d, 16), 0);
	for (unsigned int n = 0; n < 200000; n++) {
		/* It grows in the middle, as an iface's connections do. */
		if (n == 5000)
			assert_int_equal(weft_deadlines_reserve(&d, ITEMS), 0);
		item = (uint32_t)(rnd(&seed) % d.room);
		switch (rnd(&seed) % 4) {
		case 0:
			t = rnd(&seed) % 8 == 0 ? WEFT_NEVER : n + rnd(&seed) % 1000;
			weft_deadlines_by(&d, item, t);
			at[item] = t < at[item] ? t : at[item];
			break;
		case 1:
			weft_deadlines_by(&d, item, n);
			at[item] = n < at[item] ? n : at[item];
			break;
		case 2:
			weft_deadlines_remove(&d, item);
			at[item] = WEFT_NEVER;
			break;
		default:
			if (d.num == 0)
				break;
			t = least(at);
			item = weft_deadlines_pop(&d);
			assert_int_equal(at[item], t);
			at[item] = WEFT_NEVER;
		}
		assert_int_equal(weft_deadlines_first(&d), least(at));
	}
	weft_deadlines_fini(&d);
}

static void all_come_out_in_order(void **state)
{
	struct weft_deadlines d = {0};
	uint64_t seed = 2463534242, last = 0;

	(void)state;
	assert_int_equal(weft_deadlines_reserve(&d, 10000), 0);
	for (uint32_t i = 0; i < 10000; i++)
		weft_deadlines_by(&d, i, rnd(&seed) % 5000);
	for (unsigned int i = 0; i < 10000; i++) {
		assert_true(weft_deadlines_first(&d) >= last);
		last = weft_deadlines_first(&d);
		weft_deadlines_pop(&d);
	}
	assert_int_equal(weft_deadlines_first(&d), WEFT_NEVER);
	weft_deadlines_fini(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_calls_agree_with_a_table),
		cmocka_unit_test(all_come_out_in_order),
	};

	return cmocka_run_group_tests_name("deadline", tests, NULL, NULL);
}
