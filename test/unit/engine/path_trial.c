/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trials of a spare path: what they find out, from round trips alone.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/rules.h"

#define US 1000u

/* Pairs with these round trips (0 = lost), until there is a result. */
static enum weft_trial_result trial(const uint32_t (*rtt)[2], unsigned int n)
{
	struct weft_path_trial t = {0};
	enum weft_trial_result r = WEFT_TRIAL_ON;
	uint64_t now = 1000000;

	for (unsigned int i = 0; i < 1000 && r == WEFT_TRIAL_ON; i++) {
		uint16_t id = (uint16_t)(65000 + 2 * i); /* wraps */
		const uint32_t *now_rtt = rtt[i % n];

		weft_trial_send(&t, now, id, 0, 3);
		if (now_rtt[0] != 0)
			assert_true(weft_trial_answer(&t, id, 0, now + now_rtt[0]));
		if (now_rtt[1] != 0)
			assert_true(weft_trial_answer(&t, (uint16_t)(id + 1), 3, now + now_rtt[1]));
		now += 50 * US;
		r = weft_trial_result(&t);
	}
	assert_true(r != WEFT_TRIAL_ON);
	return r;
}

static void a_queue_of_one_flow_is_seen(void **state)
{
	static const uint32_t queue[][2] = {{250 * US, 20 * US}};
	static const uint32_t drops[][2] = {{30 * US, 30 * US}, {0, 30 * US}, {0, 31 * US}};

	(void)state;
	assert_int_equal(trial(queue, 1), WEFT_TRIAL_MORE);
	assert_int_equal(trial(drops, 3), WEFT_TRIAL_MORE);
}

static void what_all_share_is_no_reason(void **state)
{
	static const uint32_t same[][2] = {{250 * US, 251 * US}};
	static const uint32_t noise[][2] = {{20 * US, 23 * US}, {23 * US, 20 * US}};
	static const uint32_t dice[][2] = {{100 * US, 200 * US}, {200 * US, 100 * US}};
	static const uint32_t loss[][2] = {{0, 30 * US}, {30 * US, 0}, {30 * US, 30 * US}};
	static const uint32_t worse[][2] = {{30 * US, 300 * US}};
	static const uint32_t silent[][2] = {{0, 0}};

	(void)state;
	assert_int_equal(trial(same, 1), WEFT_TRIAL_ENDS);
	assert_int_equal(trial(noise, 2), WEFT_TRIAL_ENDS);
	assert_int_equal(trial(dice, 2), WEFT_TRIAL_ENDS);
	assert_int_equal(trial(loss, 3), WEFT_TRIAL_ENDS);
	assert_int_equal(trial(worse, 1), WEFT_TRIAL_ENDS);
	assert_int_equal(trial(silent, 1), WEFT_TRIAL_ENDS);
}

static void answers_to_nothing_are_not_taken(void **state)
{
	struct weft_path_trial t = {0};

	(void)state;
	assert_false(weft_trial_answer(&t, 0, 0, 5));
	weft_trial_send(&t, 10, 7, 1, 2);
	assert_false(weft_trial_answer(&t, 7, 2, 20));
	assert_false(weft_trial_answer(&t, 9, 1, 20));
	assert_true(weft_trial_answer(&t, 7, 1, 20));
	assert_true(weft_trial_answer(&t, 8, 2, 20));
	assert_int_equal(t.rounds, 1);
	assert_false(weft_trial_answer(&t, 8, 2, 30));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_of_one_flow_is_seen),
		cmocka_unit_test(what_all_share_is_no_reason),
		cmocka_unit_test(answers_to_nothing_are_not_taken),
	};

	return cmocka_run_group_tests_name("path_trial", tests, NULL, NULL);
}
