/* SPDX-License-Identifier: BSD-3-Clause */
/* When the delay algorithm takes others for TCP, with samples alone. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/cc.h"
#include "engine/cc_delay.h"
#include "lane.h"

#define MS 1000000ull
#define FRAME 1472u

/* ms until mode share begins: of a queue that stays, with one sample in each @p round ns. */
static uint64_t shares_after(uint64_t round)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 10000};
	struct weft_cc_ack a = {.acked = FRAME, .rtt = 10000, .inflight = 1 << 20, .limited = true};
	struct weft_cc cc;

	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (a.now = 1000 * MS; a.now < 1100 * MS; a.now += 10000)
		cc.ops->on_ack(&cc, &a);
	assert_int_equal(cc.modes, 0);
	a.rtt = 210000;
	for (; a.now < 1300 * MS && cc.modes == 0; a.now += round)
		cc.ops->on_ack(&cc, &a);
	return a.now / MS - 1100;
}

/* Windows of a small part of a frame have long rounds, and many of them a queue for so long. */
static void few_rounds_do_not_show_that_others_keep_the_queue(void **state)
{
	(void)state;
	assert_in_range(shares_after(220000), 20, 22);
	assert_in_range(shares_after(1500000), 40, 43);
	assert_in_range(shares_after(10000000), 110, 140);
}

/* A queue that others kept for long, and left: nothing in it says that they are back. */
static void an_empty_queue_is_nobodys(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 4 * FRAME, .rtt = 10000};
	struct weft_cc_ack a = {.acked = FRAME, .rtt = 10000, .limited = true};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (a.now = 1000 * MS; a.now < 1100 * MS; a.now += 10000)
		cc.ops->on_ack(&cc, &a);
	a.rtt = 1000000;
	for (; a.now < 1300 * MS && cc.modes == 0; a.now += a.rtt)
		cc.ops->on_ack(&cc, &a);
	assert_int_equal(cc.modes, 1);
	a.rtt = 10000;
	a.limited = false;
	for (unsigned int i = 0; i < 200; i++, a.now += 2 * MS)
		cc.ops->on_ack(&cc, &a);
	assert_int_equal(cc.modes, 1);
}

static void no_product_overflows(void **state)
{
	(void)state;
	assert_int_equal(part(1u << 26, 1ull << 40, 1ull << 40), 1u << 26);
	assert_int_equal(part(100, 3, 4), 75);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_rounds_do_not_show_that_others_keep_the_queue),
		cmocka_unit_test(an_empty_queue_is_nobodys),
		cmocka_unit_test(no_product_overflows),
	};

	return cmocka_run_group_tests_name("cc_share", tests, NULL, NULL);
}
