/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trials of a spare path: what they find out from round trips, and from what is delivered.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/path_change.h"
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

/* Spans in turn, with these frames in 1 ms, until there is a result. */
static enum weft_change_next spans(struct weft_path_change *t, const uint32_t (*frames)[2])
{
	enum weft_change_next next = WEFT_CHANGE_TURN;
	struct weft_path_span s = {.ns = 1000 * US, .busy = true};

	for (unsigned int i = 0; i < 8 && next == WEFT_CHANGE_TURN; i++) {
		s.frames = frames[i][0];
		s.again = frames[i][1];
		next = weft_change_span(t, &s);
	}
	return next;
}

/* Four paths must carry 7/4 in each of two spans: next to TCP they carry 8/5 of one. */
static void a_policer_is_seen_in_two_spans(void **state)
{
	static const uint32_t police[][2] = {{100, 20}, {380, 10}, {120, 20}, {360, 9}};
	static const uint32_t tcp[][2] = {{100, 4}, {160, 6}};
	static const uint32_t once[][2] = {{100, 20}, {300, 10}, {110, 20}, {130, 9}};
	static const uint32_t chance[][2] = {{100, 20}, {190, 10}, {180, 20}};
	struct weft_path_change t;

	(void)state;
	weft_change_begin(&t, 1, false, false);
	assert_int_equal(spans(&t, police), WEFT_CHANGE_STAY);
	assert_int_equal(t.spans, 4);
	weft_change_begin(&t, 1, false, false);
	assert_int_equal(spans(&t, tcp), WEFT_CHANGE_BACK);
	weft_change_begin(&t, 1, false, false);
	assert_int_equal(spans(&t, once), WEFT_CHANGE_BACK);
	weft_change_begin(&t, 1, false, false);
	assert_int_equal(spans(&t, chance), WEFT_CHANGE_BACK);
	assert_int_equal(t.spans, 3);
}

/* A policer is known then: as much with half of the loss is enough. */
static void further_paths_may_save_losses(void **state)
{
	static const uint32_t more[][2] = {{400, 40}, {460, 40}};
	static const uint32_t saves[][2] = {{400, 40}, {390, 15}};
	static const uint32_t neither[][2] = {{400, 40}, {420, 30}};
	struct weft_path_change t;

	(void)state;
	weft_change_begin(&t, 4, false, true);
	assert_int_equal(spans(&t, more), WEFT_CHANGE_STAY);
	weft_change_begin(&t, 4, false, true);
	assert_int_equal(spans(&t, saves), WEFT_CHANGE_STAY);
	weft_change_begin(&t, 4, false, true);
	assert_int_equal(spans(&t, neither), WEFT_CHANGE_BACK);
	weft_change_begin(&t, 1, false, false);
	assert_int_equal(spans(&t, saves), WEFT_CHANGE_BACK);
}

static void fewer_paths_stay_if_they_carry_as_much(void **state)
{
	static const uint32_t less[][2] = {{400, 0}, {200, 40}};
	static const uint32_t same[][2] = {{400, 0}, {390, 0}};
	static const uint32_t loses[][2] = {{400, 0}, {380, 30}};
	struct weft_path_change t;

	(void)state;
	weft_change_begin(&t, 8, true, true);
	assert_int_equal(spans(&t, less), WEFT_CHANGE_BACK);
	weft_change_begin(&t, 8, true, true);
	assert_int_equal(spans(&t, same), WEFT_CHANGE_STAY);
	/* At first, the policers let through what they have saved up. */
	weft_change_begin(&t, 8, true, true);
	assert_int_equal(spans(&t, loses), WEFT_CHANGE_BACK);
}

static void a_change_that_hurts_ends_at_once(void **state)
{
	struct weft_path_span s = {.ns = 1000 * US, .frames = 100, .busy = true};
	struct weft_path_change t;

	(void)state;
	weft_change_begin(&t, 1, false, false);
	assert_false(weft_change_hurts(&t, &s));
	assert_int_equal(weft_change_span(&t, &s), WEFT_CHANGE_TURN);
	s.frames = 51;
	assert_false(weft_change_hurts(&t, &s));
	s.frames = 49;
	assert_true(weft_change_hurts(&t, &s));
}

/* The application was the limit, so nothing can be compared. */
static void idle_spans_change_nothing(void **state)
{
	struct weft_path_span s = {.ns = 1000 * US, .frames = 100};
	struct weft_path_change t;

	(void)state;
	weft_change_begin(&t, 1, false, false);
	assert_int_equal(weft_change_span(&t, &s), WEFT_CHANGE_BACK);
	s.busy = true;
	s.again = 12;
	assert_false(weft_span_policed(&s, false));
	s.again = 13;
	assert_true(weft_span_policed(&s, false));
	s.again = 3;
	assert_false(weft_span_policed(&s, true));
	s.again = 4;
	assert_true(weft_span_policed(&s, true));
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
		cmocka_unit_test(a_policer_is_seen_in_two_spans),
		cmocka_unit_test(further_paths_may_save_losses),
		cmocka_unit_test(fewer_paths_stay_if_they_carry_as_much),
		cmocka_unit_test(a_change_that_hurts_ends_at_once),
		cmocka_unit_test(idle_spans_change_nothing),
		cmocka_unit_test(answers_to_nothing_are_not_taken),
	};

	return cmocka_run_group_tests_name("path_trial", tests, NULL, NULL);
}
