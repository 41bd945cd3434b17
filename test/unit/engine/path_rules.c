/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which path is next, and which one is silent: tables of cases.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/rules.h"

#define US 1000u
#define MS 1000000ull
#define FRAME 1500u

static void equal_paths_take_turns(void **state)
{
	struct weft_path_load load[WEFT_PATHS_MAX] = {{0}};
	unsigned int k = 0, count[WEFT_PATHS_MAX] = {0};

	(void)state;
	for (unsigned int i = 0; i < 400; i++) {
		k = weft_path_soonest(load, 0x0f, k, FRAME);
		assert_in_range(k, 0, 3);
		load[k].inflight += FRAME;
		count[k]++;
	}
	for (k = 0; k < 4; k++)
		assert_int_equal(count[k], 100);
}

static void paths_outside_the_mask_are_not_taken(void **state)
{
	struct weft_path_load load[WEFT_PATHS_MAX] = {{0}};

	(void)state;
	for (unsigned int only = 0; only < WEFT_PATHS_MAX; only++) {
		load[only].inflight = 1000 * FRAME;
		assert_int_equal(weft_path_soonest(load, (uint16_t)(1u << only), 3, FRAME), only);
	}
	assert_int_equal(weft_path_soonest(load, 0, 3, FRAME), 3);
}

static void a_long_way_gets_less(void **state)
{
	struct weft_path_load load[WEFT_PATHS_MAX] = {{.srtt = 10 * US}, {.srtt = 100 * US}};
	unsigned int k = 0, count[2] = {0};

	(void)state;
	for (unsigned int i = 0; i < 110; i++) {
		k = weft_path_soonest(load, 3, k, FRAME);
		load[k].inflight += FRAME;
		count[k]++;
	}
	assert_in_range(count[0], 98, 102);
	/* Unknown is as good as the best. */
	load[1].srtt = 0;
	load[0].inflight = load[1].inflight = 10 * FRAME;
	assert_int_equal(weft_path_soonest(load, 3, 0, FRAME), 1);
	assert_int_equal(weft_path_soonest(load, 3, 1, FRAME), 0);
}

static void a_full_window_is_passed_by(void **state)
{
	struct weft_path_load load[WEFT_PATHS_MAX] = {
		{.srtt = 10 * US, .full = true},
		{.srtt = 1000 * US, .inflight = 100 * FRAME},
		{.srtt = 10 * US, .inflight = FRAME, .full = true},
	};

	(void)state;
	assert_int_equal(weft_path_soonest(load, 7, 0, FRAME), 1);
	assert_int_equal(weft_path_soonest(load, 5, 0, FRAME), 0);
	assert_int_equal(weft_path_soonest(load, 5, 2, FRAME), 0);
}

static void the_other_path_is_the_next_one(void **state)
{
	(void)state;
	assert_int_equal(weft_path_other(0x0f, 0), 1);
	assert_int_equal(weft_path_other(0x0f, 3), 0);
	assert_int_equal(weft_path_other(0x09, 0), 3);
	assert_int_equal(weft_path_other(0x8001, 15), 0);
	assert_int_equal(weft_path_other(0x02, 1), 1);
	assert_int_equal(weft_path_other(0, 5), 5);
}

static void silence_is_detected_by_the_other_paths(void **state)
{
	const struct weft_rtt near = {.srtt = 20 * US, .var = 5 * US};
	const struct weft_rtt far = {.srtt = 4000 * US, .var = 500 * US};
	const struct {
		const struct weft_rtt *r;
		uint64_t sent, proved, other;
		enum weft_path_verdict want;
	} cases[] = {
		/* The floor of 1 ms: a path may have a queue all of a sudden. */
		{&near, 10 * MS, 9 * MS, 10 * MS + 900 * US, WEFT_PATH_WAIT},
		{&near, 10 * MS, 9 * MS, 11 * MS, WEFT_PATH_SILENT},
		/* A newer one of the same path has come: it is lost, the path is not silent. */
		{&near, 10 * MS, 10 * MS, 15 * MS, WEFT_PATH_WAIT},
		/* Nothing newer has come by another path. */
		{&near, 10 * MS, 0, 10 * MS, WEFT_PATH_WAIT},
		{&near, 10 * MS, 0, 5 * MS, WEFT_PATH_WAIT},
		/* For long nothing came by any path: an outage of all of them. */
		{&near, 10 * MS, 9 * MS, 200 * MS, WEFT_PATH_LATE},
		/* A path of a long round trip has its own time. */
		{&far, 10 * MS, 9 * MS, 15 * MS, WEFT_PATH_WAIT},
		{&far, 10 * MS, 9 * MS, 16 * MS, WEFT_PATH_SILENT},
		{&far, 10 * MS, 9 * MS, 28 * MS, WEFT_PATH_LATE},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(weft_path_judge(cases[i].r, cases[i].sent, cases[i].proved,
						 cases[i].other),
				 cases[i].want);
}

static void a_bad_path_is_probed_ever_more_seldom(void **state)
{
	uint64_t before = 0;

	(void)state;
	assert_int_equal(weft_path_wait(0), WEFT_PATH_PROBE_WAIT_MIN);
	for (unsigned int tries = 0; tries < 300; tries++) {
		assert_true(weft_path_wait(tries) >= before);
		before = weft_path_wait(tries);
	}
	assert_int_equal(before, WEFT_PATH_PROBE_WAIT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_paths_take_turns),
		cmocka_unit_test(paths_outside_the_mask_are_not_taken),
		cmocka_unit_test(a_long_way_gets_less),
		cmocka_unit_test(a_full_window_is_passed_by),
		cmocka_unit_test(the_other_path_is_the_next_one),
		cmocka_unit_test(silence_is_detected_by_the_other_paths),
		cmocka_unit_test(a_bad_path_is_probed_ever_more_seldom),
	};

	return cmocka_run_group_tests_name("path_rules", tests, NULL, NULL);
}
