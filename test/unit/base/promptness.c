/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers without a peer that was late. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pacing.h"

#define MS 1000000ull

static unsigned int avoided(struct weft_promptness *p)
{
	unsigned int n = 0;

	while (weft_promptness_avoid(p))
		n++;
	return n;
}

static void a_prompt_peer_is_never_avoided(void **state)
{
	struct weft_promptness p = {0};

	(void)state;
	for (uint64_t t = MS; t < 100 * MS; t += MS) {
		weft_promptness_note(&p, t - MS, t);
		weft_promptness_room(&p, true, t);
		weft_promptness_room(&p, true, t + MS);
		weft_promptness_room(&p, false, t + 2 * MS);
		assert_int_equal(avoided(&p), 0);
	}
}

static void each_wait_doubles_the_transfers_without_the_peer(void **state)
{
	struct weft_promptness p = {0};
	unsigned int expected = WEFT_PROMPT_LEAST;

	(void)state;
	for (uint64_t t = 10 * MS; t < 200 * MS; t += 10 * MS) {
		weft_promptness_note(&p, t - 4 * MS, t);
		assert_int_equal(avoided(&p), expected);
		if (expected < WEFT_PROMPT_MOST)
			expected *= 2;
	}
	assert_int_equal(expected, WEFT_PROMPT_MOST);
}

static void what_waited_together_counts_once(void **state)
{
	struct weft_promptness p = {0};

	(void)state;
	for (unsigned int i = 0; i < 32; i++)
		weft_promptness_note(&p, 6 * MS, 10 * MS);
	assert_int_equal(avoided(&p), WEFT_PROMPT_LEAST);
	weft_promptness_note(&p, 11 * MS, 15 * MS);
	assert_int_equal(avoided(&p), 2 * WEFT_PROMPT_LEAST);
}

static void prompt_answers_shorten_the_next_time(void **state)
{
	struct weft_promptness p = {0};

	(void)state;
	for (uint64_t t = 10 * MS; t < 80 * MS; t += 10 * MS)
		weft_promptness_note(&p, t - 4 * MS, t);
	while (p.span)
		weft_promptness_note(&p, 90 * MS, 90 * MS);
	avoided(&p);
	weft_promptness_note(&p, 100 * MS, 104 * MS);
	assert_int_equal(avoided(&p), WEFT_PROMPT_LEAST);
}

static void a_message_without_room_waits_from_its_first_attempt(void **state)
{
	struct weft_promptness p = {0};

	(void)state;
	for (uint64_t t = 10 * MS; t < 14 * MS; t += MS / 10)
		weft_promptness_room(&p, true, t);
	assert_int_equal(avoided(&p), 0);
	weft_promptness_room(&p, false, 14 * MS);
	assert_int_equal(avoided(&p), WEFT_PROMPT_LEAST);
	weft_promptness_room(&p, false, 50 * MS);
	assert_int_equal(avoided(&p), 0);
}

/* Note @p n transfers of 2 ms, one after the other from @p t on. @return the end of the last one */
static uint64_t transfers(struct weft_promptness *p, unsigned int n, uint64_t t, uint64_t alone)
{
	for (unsigned int i = 0; i < n; i++, t += 2 * MS)
		weft_promptness_compare(p, t, t + 2 * MS, alone);
	return t;
}

static void slow_transfers_in_a_row_count_like_a_long_wait(void **state)
{
	struct weft_promptness p = {0};
	uint64_t t = 10 * MS;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		t = transfers(&p, WEFT_PROMPT_SLOW - 1, t, MS);
		t = transfers(&p, 1, t, 2 * MS); /* as fast as without the peer */
		assert_int_equal(avoided(&p), 0);
	}
	for (unsigned int expected = WEFT_PROMPT_LEAST; expected < WEFT_PROMPT_MOST;
	     expected *= 2) {
		t = transfers(&p, WEFT_PROMPT_SLOW, t, MS);
		assert_int_equal(avoided(&p), expected);
	}
	while (p.span)
		t = transfers(&p, 1, t, 2 * MS);
	transfers(&p, WEFT_PROMPT_SLOW, t, MS);
	assert_int_equal(avoided(&p), WEFT_PROMPT_LEAST);
}

static void slow_transfers_that_are_under_way_count_once(void **state)
{
	struct weft_promptness p = {0};

	(void)state;
	transfers(&p, WEFT_PROMPT_SLOW, 10 * MS, MS);
	transfers(&p, 8 * WEFT_PROMPT_SLOW, 20 * MS, MS); /* without the peer, except these */
	assert_int_equal(avoided(&p), WEFT_PROMPT_LEAST);
	for (unsigned int i = 0; i < 2 * WEFT_PROMPT_SLOW; i++) /* begun before the verdict */
		weft_promptness_compare(&p, 11 * MS, 100 * MS, MS);
	assert_int_equal(avoided(&p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_peer_is_never_avoided),
		cmocka_unit_test(each_wait_doubles_the_transfers_without_the_peer),
		cmocka_unit_test(what_waited_together_counts_once),
		cmocka_unit_test(prompt_answers_shorten_the_next_time),
		cmocka_unit_test(a_message_without_room_waits_from_its_first_attempt),
		cmocka_unit_test(slow_transfers_in_a_row_count_like_a_long_wait),
		cmocka_unit_test(slow_transfers_that_are_under_way_count_once),
	};

	return cmocka_run_group_tests_name("promptness", tests, NULL, NULL);
}
