/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast a CPU copies, as clocks show it that are disturbed. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/host.h"

#define ROUND_BYTES 65536.0

/* Each look at the clock is one step later; the first ones of them lose more. */
struct clock {
	uint64_t now, step, loss;
	unsigned int disturbed; /* looks */
};

static uint64_t look(void *arg)
{
	struct clock *c = arg;

	c->now += c->step;
	if (c->disturbed > 0) {
		c->disturbed--;
		c->now += c->loss;
	}
	return c->now;
}

static double measured(struct clock c)
{
	struct weft_platform platform = {.now = look, .arg = &c};

	return weft_bcopy_bw_measure(&platform);
}

static void test_preempted_in_the_first_rounds(void **state)
{
	(void)state;
	/* 20 ms each: far beyond the time that measuring may take in all. */
	assert_true(measured((struct clock){.step = 8192, .loss = 20000000, .disturbed = 24}) ==
		    ROUND_BYTES / 8192e-9);
}

static void test_quiet(void **state)
{
	(void)state;
	assert_true(measured((struct clock){.step = 4096}) == ROUND_BYTES / 4096e-9);
}

/* Stated costs do not grow with a slow copy, so an absurd figure must not decide. */
static void test_disturbed_all_the_time(void **state)
{
	(void)state;
	assert_true(measured((struct clock){.step = 4000000}) == WEFT_BCOPY_BW_LEAST);
}

static void test_clock_that_stands_still(void **state)
{
	(void)state;
	assert_true(measured((struct clock){.now = 5}) == WEFT_BCOPY_BW_DEFAULT);
}

/* Processes of one host that measure about the same rate have the same one: 4 in an octave. */
static void test_rate_is_rounded(void **state)
{
	double steps = log2(weft_bcopy_bw(&weft_platform_host)) * 4;

	(void)state;
	assert_true(fabs(steps - round(steps)) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_preempted_in_the_first_rounds),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_disturbed_all_the_time),
		cmocka_unit_test(test_clock_that_stands_still),
		cmocka_unit_test(test_rate_is_rounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
