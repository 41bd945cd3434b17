/* SPDX-License-Identifier: BSD-3-Clause */
/* Measured rates: what a lane delivers while it has work; and what it has outstanding. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pacing.h"
#include "msg/transmit.h"

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

static void frames_of_one_poll_contain_no_time(void **state)
{
	struct weft_rate r;
	uint64_t t = SEC;

	(void)state;
	weft_rate_init(&r, 1e8);
	/* No poll for 5 ms: eight pieces at once, then none for 2 ms. */
	for (int i = 0; i < 20; i++) {
		weft_rate_start(&r);
		t += 5 * MS;
		for (int k = 0; k < 8; k++)
			weft_rate_add(&r, 100000, t);
		t += 2 * MS;
		weft_rate_add(&r, 200000, t);
		weft_rate_pause(&r, t);
	}
	assert_true(r.rate > 0.9e8 && r.rate < 1.1e8);
}

static void short_work_is_measured_when_there_is_enough_of_it(void **state)
{
	struct weft_rate r;
	uint64_t t = SEC;

	(void)state;
	weft_rate_init(&r, 1.25e10);
	for (int i = 0; i < 1000; i++) {
		weft_rate_start(&r);
		t += MS / 10;
		weft_rate_add(&r, 50000, t);
		weft_rate_add(&r, 50000, t + MS / 20); /* 1 GB/s */
		weft_rate_pause(&r, t + MS / 20);
		t += 3 * MS;
	}
	assert_true(r.rate > 0.9e9 && r.rate < 1.5e9);
}

/* Two pieces, @p gap ns apart, the second of which is done @p gap ns behind the first. */
static void two_pieces(struct weft_lane_load *l, uint64_t *t, uint64_t given_before, uint64_t gap)
{
	uint64_t second;

	weft_load_give(l, 100000, *t);
	*t += gap;
	second = *t - given_before;
	weft_load_give(l, 100000, second);
	weft_load_done(l, 100000, true, l->since, *t);
	*t += gap;
	weft_load_done(l, 100000, true, second, *t);
	assert_int_equal(l->out, 0);
	*t += MS;
}

static void a_lane_that_waits_for_work_on_its_way_is_not_slow(void **state)
{
	struct weft_lane_load l = {0};
	uint64_t t = SEC;

	(void)state;
	weft_load_init(&l, 1e-9f, 100e-6f); /* 1 GB/s, 200 us there and back */
	for (int i = 0; i < 50; i++)
		two_pieces(&l, &t, 100000, MS); /* 100 us before the first was done */
	assert_true(l.rate.rate == l.rate.nominal);
	for (int i = 0; i < 50; i++)
		two_pieces(&l, &t, 300000, MS);
	assert_true(l.rate.rate < 1.2e8);
}

/*
 * 25 MB/s and 10 ms, with jitter that makes each round trip 50 ms: what comes in a window that is
 * too small for it is not the rate of the lane.
 */
static void a_lane_with_jitter_is_not_slow(void **state)
{
	const uint64_t piece = 16384, trip = 50 * MS, each = piece * 40; /* ns at 25 MB/s */
	struct weft_lane_load l = {0};
	uint64_t given[1024], done[1024], t = SEC, free_at = SEC, bytes = 0;
	unsigned int first = 0, num = 0;

	(void)state;
	weft_load_init(&l, 4e-8f, 5e-3f);
	weft_load_set_window(&l, 10 * MS, 16 << 20, t);
	weft_load_set_window(&l, 50 * MS, 16 << 20, t);
	while (t < 5 * SEC) {
		while (num == 0 || weft_load_room(&l, piece, piece)) {
			free_at = (t + trip > free_at ? t + trip : free_at) + each;
			weft_load_give(&l, piece, t);
			given[(first + num) % 1024] = t;
			done[(first + num++) % 1024] = free_at;
		}
		t = done[first % 1024];
		num--;
		bytes += t > 4 * SEC ? piece : 0;
		if (weft_load_done(&l, piece, true, given[first++ % 1024], t))
			weft_load_set_window(&l, 50 * MS, 16 << 20, t);
	}
	assert_true(bytes > 22000000);
}

static void a_load_has_room_up_to_its_window(void **state)
{
	struct weft_lane_load l = {0};

	(void)state;
	weft_load_init(&l, 1e-8f, 1e-6f); /* 100 MB/s, of which 1 ms are 100 kB */
	weft_load_set_window(&l, 2000, 1 << 20, SEC);
	assert_in_range(l.window, 100000, 101000);
	assert_int_equal(weft_load_room(&l, 500000, 16384), 500000); /* idle: whatever it is */
	weft_load_give(&l, 60000, SEC);
	assert_in_range(weft_load_room(&l, 500000, 16384), 40000, 41000);
	weft_load_give(&l, 30000, SEC);
	assert_int_equal(weft_load_room(&l, 500000, 16384), 0);
	assert_int_equal(weft_load_room(&l, 8, 16384), 8);
	weft_load_set_window(&l, 2000, 1000, SEC);
	assert_int_equal(weft_load_room(&l, 8, 16384), 0);
}

static void what_should_have_been_done_long_ago_makes_a_lane_late(void **state)
{
	struct weft_lane_load l = {0};

	(void)state;
	weft_load_init(&l, 1e-8f, 1e-6f);
	weft_load_give(&l, 100000, SEC);
	assert_true(weft_load_stall(&l, SEC) == 0);
	assert_true(weft_load_stall(&l, SEC + 2 * MS) == 0); /* 1 ms, and as much of slack */
	assert_true(weft_load_stall(&l, SEC + 12 * MS) > 9.9e-3f);
	weft_load_done(&l, 50000, true, SEC, SEC + 12 * MS);
	assert_true(weft_load_stall(&l, SEC + 13 * MS) == 0);
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
		cmocka_unit_test(frames_of_one_poll_contain_no_time),
		cmocka_unit_test(short_work_is_measured_when_there_is_enough_of_it),
		cmocka_unit_test(a_lane_that_waits_for_work_on_its_way_is_not_slow),
		cmocka_unit_test(a_lane_with_jitter_is_not_slow),
		cmocka_unit_test(a_load_has_room_up_to_its_window),
		cmocka_unit_test(what_should_have_been_done_long_ago_makes_a_lane_late),
	};

	return cmocka_run_group_tests_name("rates", tests, NULL, NULL);
}
