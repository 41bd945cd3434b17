/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/rounds.h"
#include "seal/seal.h"
#include "seal_util.h"

static void numbers_in_order_are_fresh_once(void **state)
{
	struct weft_replay r = {0};

	(void)state;
	for (uint64_t n = 0; n < 3 * WEFT_REPLAY_NUMBERS; n++) {
		assert_int_equal(weft_replay_enter(&r, n), WEFT_REPLAY_FRESH);
		assert_int_equal(weft_replay_enter(&r, n), WEFT_REPLAY_SEEN);
	}
}

static void the_window_has_4096_numbers(void **state)
{
	struct weft_replay r = {0};
	uint64_t top = 1ull << 40;

	(void)state;
	assert_int_equal(weft_replay_enter(&r, top), WEFT_REPLAY_FRESH);
	assert_int_equal(weft_replay_enter(&r, top - 4096), WEFT_REPLAY_OLD);
	assert_int_equal(weft_replay_enter(&r, 0), WEFT_REPLAY_OLD);
	assert_int_equal(weft_replay_enter(&r, top - 4095), WEFT_REPLAY_FRESH);
	assert_int_equal(weft_replay_enter(&r, top - 4095), WEFT_REPLAY_SEEN);
	for (uint64_t n = top - 4094; n < top; n++)
		assert_int_equal(weft_replay_enter(&r, n), WEFT_REPLAY_FRESH);
	assert_int_equal(weft_replay_enter(&r, top + 1), WEFT_REPLAY_FRESH);
	assert_int_equal(weft_replay_enter(&r, top - 4095), WEFT_REPLAY_OLD);
	assert_int_equal(weft_replay_enter(&r, top - 4094), WEFT_REPLAY_SEEN);
}

/* A jump of each length leaves the numbers in between unseen, and those before it as they were. */
static void a_jump_forgets_nothing_that_the_window_has(void **state)
{
	(void)state;
	for (uint64_t jump = 1; jump < 4300; jump += 1 + jump / 40) {
		struct weft_replay r = {0};

		for (uint64_t n = 0; n <= 5000; n++)
			if (n % 3 != 1)
				weft_replay_enter(&r, n);
		assert_int_equal(weft_replay_enter(&r, 5000 + jump), WEFT_REPLAY_FRESH);
		for (uint64_t n = 0; n < 5000 + jump; n++) {
			enum weft_replay_verdict want = WEFT_REPLAY_FRESH;

			if (n + 4096 <= 5000 + jump)
				want = WEFT_REPLAY_OLD;
			else if (n <= 5000 && n % 3 != 1)
				want = WEFT_REPLAY_SEEN;
			assert_int_equal(weft_replay_enter(&r, n), want);
		}
	}
}

/* Against a list of all numbers that were accepted. */
static void random_numbers_are_judged_as_a_model_does(void **state)
{
	static uint8_t seen[1 << 16];
	struct weft_replay r = {0};
	uint64_t seed = 3, end = 0;

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < test_rounds(200000); i++) {
		enum weft_replay_verdict want;
		uint16_t step;
		uint64_t n;

		dice(&seed, &step, sizeof(step));
		n = end + step % 64;
		n = n > step % 5000u ? n - step % 5000u : 0;
		if (n >= sizeof(seen))
			break;
		if (n + WEFT_REPLAY_NUMBERS < end)
			want = WEFT_REPLAY_OLD;
		else
			want = seen[n] ? WEFT_REPLAY_SEEN : WEFT_REPLAY_FRESH;
		assert_int_equal(weft_replay_enter(&r, n), want);
		if (want == WEFT_REPLAY_FRESH)
			seen[n] = 1;
		if (n >= end)
			end = n + 1;
	}
	assert_true(end > 2 * WEFT_REPLAY_NUMBERS || test_part() > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_in_order_are_fresh_once),
		cmocka_unit_test(the_window_has_4096_numbers),
		cmocka_unit_test(a_jump_forgets_nothing_that_the_window_has),
		cmocka_unit_test(random_numbers_are_judged_as_a_model_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
