/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of what is asked for: guarantees, the limit, and peers that do not deliver. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/pacing.h"

#define MS 1000000ull
#define LIMIT 1000u

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/*
 * @behaviour T1: what several peers share has a share for each and a bound for all: lane buffers
 * and headers
 */
static void a_user_with_nothing_may_always_request_and_others_up_to_the_limit(void **state)
{
	struct weft_share_user u[3] = {0};
	struct weft_share s;

	(void)state;
	weft_share_init(&s, LIMIT);
	assert_true(weft_share_room(&s, &u[0], 0));
	weft_share_take(&s, &u[0], 999, 0);
	assert_true(weft_share_room(&s, &u[0], 0));
	weft_share_take(&s, &u[0], 1, 0);
	assert_false(weft_share_room(&s, &u[0], 0));
	assert_true(weft_share_room(&s, &u[1], 0));
	weft_share_take(&s, &u[1], 10, 0);
	assert_false(weft_share_room(&s, &u[1], 0));
	weft_share_done(&s, &u[0], 11, true, 1);
	assert_true(weft_share_room(&s, &u[1], 1));
	assert_int_equal(s.peak, 1010);
	weft_share_done(&s, &u[0], 989, false, 1);
	weft_share_done(&s, &u[1], 10, true, 1);
	assert_int_equal(s.used, 0);
	assert_true(TAILQ_EMPTY(&s.users));
}

/* @behaviour T1 */
static void what_a_stopped_peer_holds_goes_to_the_others(void **state)
{
	struct weft_share_user stopped = {0}, good = {0};
	struct weft_share s;

	(void)state;
	weft_share_init(&s, LIMIT);
	weft_share_take(&s, &stopped, LIMIT, 0);
	weft_share_take(&s, &good, 10, 0);
	assert_false(weft_share_room(&s, &good, 19 * MS));
	assert_true(weft_share_room(&s, &good, 20 * MS)); /* no peer delivers */
	assert_int_equal(s.used, 10);
	assert_int_equal(s.stalled, LIMIT);
	assert_int_equal(s.stalls, 1);
	assert_false(weft_share_room(&s, &stopped, 20 * MS)); /* not for the one that stalls */
	/* It goes on: one like the others after a quarter. */
	weft_share_done(&s, &stopped, 250, true, 30 * MS);
	assert_false(weft_share_room(&s, &stopped, 30 * MS));
	weft_share_done(&s, &stopped, 1, true, 30 * MS);
	assert_true(weft_share_room(&s, &stopped, 30 * MS));
	assert_int_equal(s.used, 759);
	assert_int_equal(s.stalled, 0);
}

/* Its bytes never cease to come, and they are too few. */
/*
 * @behaviour T4: a peer that trickles acknowledgements is judged by progress, not by valid frames
 */
static void one_that_trickles_is_judged_by_progress(void **state)
{
	struct weft_share_user slow = {0}, good = {0};
	struct weft_share s;
	uint64_t t;

	(void)state;
	weft_share_init(&s, LIMIT);
	weft_share_take(&s, &slow, 2 * LIMIT, 0);
	weft_share_take(&s, &good, 10, 0);
	for (t = MS; t < 400 * MS && !weft_share_room(&s, &good, t); t += MS)
		weft_share_done(&s, &slow, 1, true, t);
	assert_in_range(t, 20 * MS, 200 * MS);
	assert_true(slow.stalled && !good.stalled);
	/* With the others at work it takes less: they have delivered as much as there was. */
	weft_share_init(&s, LIMIT);
	slow = good = (struct weft_share_user){0};
	weft_share_take(&s, &slow, LIMIT, 0);
	for (t = MS; t < 400 * MS && !slow.stalled; t += MS) {
		weft_share_take(&s, &good, 100, t);
		weft_share_done(&s, &good, 100, true, t);
		weft_share_free(&s, t);
	}
	assert_in_range(t, 20 * MS, 22 * MS);
}

/* A slow link with many senders behind it: none is stalled as long as each gets its turn. */
static void incast_is_no_stall(void **state)
{
	struct weft_share_user u[10] = {0};
	struct weft_share s;

	(void)state;
	weft_share_init(&s, LIMIT);
	for (int i = 0; i < 10; i++)
		weft_share_take(&s, &u[i], 100, 0);
	/* In order, all of them within 150 ms; and what came is asked for anew. */
	for (uint64_t t = 1; t <= 1000; t++) {
		int i = (int)(t / 10 % 10);

		weft_share_done(&s, &u[i], 10, true, t * 15 * MS / 10);
		assert_true(weft_share_room(&s, &u[i], t * 15 * MS / 10));
		weft_share_take(&s, &u[i], 10, t * 15 * MS / 10);
		assert_false(weft_share_free(&s, t * 15 * MS / 10));
	}
	assert_int_equal(s.stalls, 0);
	assert_int_equal(s.used, LIMIT);
}

/* @behaviour T1 */
static void sums_hold_whatever_happens(void **state)
{
	struct weft_share_user u[20] = {0};
	uint64_t now = 0, used, stalled;
	struct weft_share s;

	(void)state;
	weft_share_init(&s, LIMIT);
	for (int k = 0; k < 200000; k++) {
		struct weft_share_user *x = &u[rnd() % 20];

		now += rnd() % (2 * MS);
		if (rnd() % 2 && x->out)
			weft_share_done(&s, x, 1 + rnd() % x->out, rnd() % 8, now);
		else if (weft_share_room(&s, x, now))
			weft_share_take(&s, x, 1 + rnd() % 50, now);
		used = stalled = 0;
		for (int i = 0; i < 20; i++) {
			used += u[i].stalled ? 0 : u[i].out;
			stalled += u[i].stalled ? u[i].out : 0;
			assert_int_equal(u[i].listed, u[i].out && !u[i].stalled);
		}
		assert_int_equal(s.used, used);
		assert_int_equal(s.stalled, stalled);
	}
	assert_true(s.stalls > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_with_nothing_may_always_request_and_others_up_to_the_limit),
		cmocka_unit_test(what_a_stopped_peer_holds_goes_to_the_others),
		cmocka_unit_test(one_that_trickles_is_judged_by_progress),
		cmocka_unit_test(incast_is_no_stall),
		cmocka_unit_test(sums_hold_whatever_happens),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
