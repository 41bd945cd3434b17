/* SPDX-License-Identifier: BSD-3-Clause */
/* How a sweep judges what was measured. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "app/perf/sweep.h"

static void add(struct sweep_proto *p, const char *name, const double *us, unsigned int num)
{
	strcpy(p->name, name);
	for (unsigned int i = 0; i < num; i++)
		sweep_add(p, us[i] * 1e-6);
}

static bool near_to(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void the_rival_is_the_best_of_the_others(void **state)
{
	struct sweep_point pt = {.num = 3, .chosen = 1};

	(void)state;
	add(&pt.proto[0], "a", (double[]){3, 3, 3}, 3);
	add(&pt.proto[1], "b", (double[]){1, 1, 1}, 3);
	add(&pt.proto[2], "c", (double[]){9, 2, 2}, 3);
	sweep_rival(&pt);
	assert_int_equal(pt.rival, 2);
	pt.num = 1;
	pt.chosen = 0;
	sweep_rival(&pt);
	assert_int_equal(pt.rival, 0);
	sweep_judge(&pt);
	assert_true(sweep_good(&pt) && near_to(pt.loss, 0));
}

/* The cores move apart in the middle: both take three times as long, and the comparison stands. */
static void a_machine_that_changes_its_speed_changes_no_verdict(void **state)
{
	struct sweep_point pt = {.num = 2, .chosen = 0, .rival = 1};

	(void)state;
	add(&pt.proto[0], "a", (double[]){1.1, 1.1, 3.3, 3.3, 3.3}, 5);
	add(&pt.proto[1], "b", (double[]){1.0, 1.0, 3.0, 3.0, 3.0}, 5);
	sweep_judge(&pt);
	assert_int_equal(pt.best, 1);
	assert_true(near_to(pt.loss, 0.1));
	assert_true(near_to(pt.spread, 0));
	assert_true(sweep_good(&pt));
}

static void a_loss_beyond_spread_and_limit_is_reported(void **state)
{
	struct sweep_point pt = {.num = 2, .chosen = 0, .rival = 1};

	(void)state;
	add(&pt.proto[0], "a", (double[]){1.3, 1.3, 1.3}, 3);
	add(&pt.proto[1], "b", (double[]){1, 1, 1}, 3);
	sweep_judge(&pt);
	assert_true(near_to(pt.loss, 0.3));
	assert_false(sweep_good(&pt));
	/* The same loss within a wide spread says nothing. */
	memset(&pt.proto, 0, sizeof(pt.proto));
	add(&pt.proto[0], "a", (double[]){1.0, 1.3, 1.6}, 3);
	add(&pt.proto[1], "b", (double[]){1, 1, 1}, 3);
	sweep_judge(&pt);
	assert_true(near_to(pt.spread, 0.3));
	assert_true(sweep_good(&pt));
}

static void a_faster_choice_loses_nothing(void **state)
{
	struct sweep_point pt = {.num = 2, .chosen = 0, .rival = 1};

	(void)state;
	add(&pt.proto[0], "a", (double[]){1, 1, 1}, 3);
	add(&pt.proto[1], "b", (double[]){2, 2, 2}, 3);
	sweep_judge(&pt);
	assert_int_equal(pt.best, 0);
	assert_true(near_to(pt.loss, 0));
}

static void crossings_lie_between_the_sizes_where_the_order_turns(void **state)
{
	struct sweep_point a = {.size = 1000, .num = 2}, b = {.size = 2000, .num = 2};

	(void)state;
	add(&a.proto[0], "x", (double[]){10}, 1);
	add(&a.proto[1], "y", (double[]){14}, 1);
	add(&b.proto[0], "x", (double[]){20}, 1);
	add(&b.proto[1], "y", (double[]){16}, 1);
	assert_true(near_to(sweep_crossing(&a, &b, "x", "y", false), 1500));
	assert_true(sweep_crossing(&a, &b, "y", "x", false) < 0);
	assert_true(sweep_crossing(&a, &b, "x", "z", false) < 0);
}

static void more_trials_than_there_is_room_for_are_left_out(void **state)
{
	struct sweep_proto p = {.trials = 0};

	(void)state;
	for (unsigned int i = 0; i < 2 * SWEEP_TRIALS_MAX; i++)
		sweep_add(&p, i);
	assert_int_equal(p.trials, SWEEP_TRIALS_MAX);
	assert_true(near_to(sweep_stat(&p).median, (SWEEP_TRIALS_MAX - 1) / 2.0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rival_is_the_best_of_the_others),
		cmocka_unit_test(a_machine_that_changes_its_speed_changes_no_verdict),
		cmocka_unit_test(a_loss_beyond_spread_and_limit_is_reported),
		cmocka_unit_test(a_faster_choice_loses_nothing),
		cmocka_unit_test(crossings_lie_between_the_sizes_where_the_order_turns),
		cmocka_unit_test(more_trials_than_there_is_room_for_are_left_out),
	};

	return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
