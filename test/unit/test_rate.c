/* SPDX-License-Identifier: BSD-3-Clause */
/* Measured rates: what a lane delivers while it has work. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rate.h"

#define MS 1000000ull
#define SEC 1000000000ull

/* The lane delivers @bytes_per_ms from @t on, in pieces of 10 us. @return the end */
static uint64_t deliver(struct weft_rate *r, uint64_t t, uint64_t ms, uint64_t bytes_per_ms)
{
	for (uint64_t i = 0; i < ms * 100; i++) {
		t += MS / 100;
		weft_rate_add(r, bytes_per_ms / 100, t);
	}
	return t;
}

static void a_claim_gives_way_to_what_is_measured(void **state)
{
	struct weft_rate r;

	(void)state;
	weft_rate_init(&r, 1.25e9);
	assert_true(weft_rate_get(&r, 0) == 1.25e9);
	weft_rate_start(&r);
	deliver(&r, SEC, 40, 62500); /* 62.5 MB/s */
	assert_true(r.rate > 60e6 && r.rate < 70e6);
}

static void a_cut_to_a_quarter_is_seen_within_50_ms(void **state)
{
	struct weft_rate r;
	uint64_t t;

	(void)state;
	weft_rate_init(&r, 125e6);
	weft_rate_start(&r);
	t = deliver(&r, SEC, 100, 125000);
	t = deliver(&r, t, 50, 31250);
	assert_true(r.rate < 1.05 * 31.25e6);
	/* And the way back. */
	deliver(&r, t, 50, 125000);
	assert_true(r.rate > 0.95 * 125e6);
}

static void waiting_for_work_makes_no_lane_slow(void **state)
{
	struct weft_rate r;
	uint64_t t = SEC;

	(void)state;
	weft_rate_init(&r, 125e6);
	for (int i = 0; i < 100; i++) {
		weft_rate_start(&r);
		t += MS / 10;
		weft_rate_add(&r, 1000, t);
		weft_rate_limited(&r);
		t += 5 * MS;
		weft_rate_add(&r, 1000, t);
		weft_rate_stop(&r, t);
		t += 50 * MS;
	}
	assert_true(r.rate == 125e6);
}

static void but_faster_than_thought_it_may_be(void **state)
{
	struct weft_rate r;
	uint64_t t = SEC;

	(void)state;
	weft_rate_init(&r, 10e6);
	for (int i = 0; i < 20; i++) {
		weft_rate_start(&r);
		weft_rate_limited(&r);
		t = deliver(&r, t, 3, 100000);
		weft_rate_stop(&r, t);
	}
	assert_true(r.rate > 90e6);
}

static void a_long_round_trip_is_not_a_low_rate(void **state)
{
	struct weft_rate r;

	(void)state;
	weft_rate_init(&r, 125e6);
	weft_rate_start(&r); /* asked at 1 s, first bytes 80 ms later */
	deliver(&r, SEC + 80 * MS, 20, 125000);
	assert_true(r.rate > 0.95 * 125e6);
}

static void a_peer_that_pauses_has_not_become_slow(void **state)
{
	struct weft_rate r;
	uint64_t t;

	(void)state;
	weft_rate_init(&r, 125e6);
	weft_rate_start(&r);
	t = deliver(&r, SEC, 100, 125000);
	weft_rate_add(&r, 1000, t + 10 * SEC);
	assert_true(r.rate > 0.4 * 125e6);
	deliver(&r, t + 10 * SEC, 50, 125000);
	assert_true(r.rate > 0.95 * 125e6);
}

static void an_old_measurement_drifts_back_to_the_claim(void **state)
{
	struct weft_rate r;
	uint64_t t;

	(void)state;
	weft_rate_init(&r, 125e6);
	weft_rate_start(&r);
	t = deliver(&r, SEC, 100, 1250);
	weft_rate_stop(&r, t);
	assert_true(r.rate < 2e6);
	assert_true(weft_rate_get(&r, t + WEFT_RATE_STALE / 2) < 2e6);
	for (int i = 0; i < 20; i++)
		weft_rate_get(&r, t += WEFT_RATE_STALE + 1);
	assert_true(weft_rate_get(&r, t) == 125e6);
}

static void a_dead_lane_keeps_a_floor_and_time_may_stand_still(void **state)
{
	struct weft_rate r;

	(void)state;
	weft_rate_init(&r, 0);
	assert_true(weft_rate_get(&r, 0) > 0);
	weft_rate_init(&r, 1e9);
	weft_rate_start(&r);
	for (uint64_t t = SEC; t < 5000 * SEC; t += SEC)
		weft_rate_add(&r, 1, t);
	assert_true(r.rate >= 1e9 / 1024);
	for (int i = 0; i < 1000; i++)
		assert_false(weft_rate_add(&r, 1u << 30, 4999 * SEC));
	assert_true(weft_rate_get(&r, 0) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_gives_way_to_what_is_measured),
		cmocka_unit_test(a_cut_to_a_quarter_is_seen_within_50_ms),
		cmocka_unit_test(waiting_for_work_makes_no_lane_slow),
		cmocka_unit_test(but_faster_than_thought_it_may_be),
		cmocka_unit_test(a_long_round_trip_is_not_a_low_rate),
		cmocka_unit_test(a_peer_that_pauses_has_not_become_slow),
		cmocka_unit_test(an_old_measurement_drifts_back_to_the_claim),
		cmocka_unit_test(a_dead_lane_keeps_a_floor_and_time_may_stand_still),
	};

	return cmocka_run_group_tests_name("rates", tests, NULL, NULL);
}
