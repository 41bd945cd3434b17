/* SPDX-License-Identifier: BSD-3-Clause */
/* When the delay algorithm takes others for TCP, with samples alone. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/cc.h"
#include "engine/cc_cause.h"
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

#define LONG (20 * MS)

/* Rounds of one sample each, in which a whole window comes back, at most @p most bytes of it. */
static void long_rounds(struct weft_cc *cc, struct weft_cc_ack *a, unsigned int n, uint64_t rtt,
			uint32_t most)
{
	for (unsigned int i = 0; i < n; i++) {
		a->now += rtt;
		a->rtt = (uint32_t)rtt;
		a->acked = min32(cc->window, most);
		a->inflight = a->limited ? cc->window : a->acked;
		cc->ops->on_ack(cc, a);
	}
}

/*
 * On a long path the window grows by stages of half as much again, as long as each stage carries
 * more. A single round carries hardly more than the round before it, and does not end the growth.
 */
static void a_climb_ends_when_the_link_is_full(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 28, .rtt = LONG};
	struct weft_cc_ack a = {.now = 1000 * MS, .size = FRAME, .limited = true};
	struct weft_cc cc;
	uint32_t from;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	long_rounds(&cc, &a, 8, LONG, UINT32_MAX);
	for (unsigned int i = 0; i < 100 && cc.modes == 0; i++)
		long_rounds(&cc, &a, 1, LONG + 5 * MS, 8 * FRAME);
	assert_int_equal(cc.modes, 1);
	from = cc.window;
	long_rounds(&cc, &a, 24, LONG + 5 * MS, UINT32_MAX);
	assert_int_equal(cc.delay.mode, WEFT_CC_MODE_SHARE);
	assert_true(cc.window > 16 * from);
	/* No more bytes come back: the delay counts as noise. */
	for (unsigned int i = 0; i < 24 && cc.delay.mode == WEFT_CC_MODE_SHARE; i++)
		long_rounds(&cc, &a, 1, LONG + 5 * MS, cc.window / 2);
	assert_int_equal(cc.delay.mode, WEFT_CC_MODE_DELAY);
	assert_in_range(cc.delay.jitter.noise, 4 * MS, 6 * MS);
	/* It is gone after 64 rounds without it: delays of the climb do not count any more. */
	long_rounds(&cc, &a, 63, LONG, UINT32_MAX);
	assert_true(cc.delay.jitter.noise > 4 * MS);
	long_rounds(&cc, &a, 2, LONG, UINT32_MAX);
	assert_int_equal(cc.delay.jitter.noise, 0);
}

/*
 * Jitter that a test has found is forgotten after 64 rounds without it. The delays before the test
 * do not count any more.
 */
static void noise_that_has_gone_is_forgotten(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 100000};
	struct weft_cc_ack a = {.now = 1000 * MS, .acked = FRAME, .size = FRAME, .limited = true};
	struct weft_cc_noise *n;
	unsigned int rounds = 0;
	uint32_t seed = 1;
	struct weft_cc cc;
	uint64_t at;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	n = &cc.delay.jitter;
	for (unsigned int i = 0; i < 5000 && (n->noise == 0 || n->ref_window != 0); i++) {
		seed = seed * 1664525u + 1013904223u;
		a.now += 50000;
		a.rtt = 100000 + seed / 65536 % 13 * 50000;
		a.inflight = cc.window;
		cc.ops->on_ack(&cc, &a);
	}
	assert_true(n->noise > 50000);
	assert_int_equal(n->ref_window, 0);
	a.rtt = 100000;
	for (at = cc.delay.round.at; rounds < 66; at = cc.delay.round.at) {
		a.now += 50000;
		cc.ops->on_ack(&cc, &a);
		rounds += cc.delay.round.at != at;
	}
	assert_int_equal(n->noise, 0);
}

/*
 * Requests of 64 bytes on a long path with jitter: their window fell to what a round carried, and
 * one request left in each round trip.
 */
static void few_bytes_keep_the_first_window(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = LONG};
	struct weft_cc_ack a = {.now = 1000 * MS, .size = 64};
	uint32_t seed = 1;
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (unsigned int i = 0; i < 1000; i++) {
		seed = seed * 1664525u + 1013904223u;
		long_rounds(&cc, &a, 1, LONG + seed / 65536 % 20 * MS, 64);
	}
	assert_int_not_equal(cc.delay.mode, WEFT_CC_MODE_START);
	assert_true(cc.window >= 10 * FRAME);
}

static void no_product_overflows(void **state)
{
	(void)state;
	assert_int_equal(part(1u << 26, 1ull << 40, 1ull << 40), 1u << 26);
	assert_int_equal(part(100, 3, 4), 75);
}

/* The clock goes back behind the begin of a stage, in which the window has grown by half. */
static void a_stage_may_end_before_it_began(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 64 * FRAME, .rtt = 2 * MS};
	struct weft_cc_ack a = {.acked = FRAME, .rtt = 2 * MS, .size = FRAME, .limited = true};
	struct weft_cc cc;

	(void)state;
	for (uint64_t before = 0; before < 3; before++) {
		weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
		a.now = 1000 * MS;
		cc.ops->on_ack(&cc, &a);
		cc.delay.mode = WEFT_CC_MODE_SHARE;
		cc.delay.share_left = 10;
		weft_cc_climb_begin(&cc);
		cc.delay.climb.at = 1000 * MS;
		cc.delay.climb.from = cc.window / 2;
		/* A round that ends before the stage began. */
		a.now = 1000 * MS - before - 2 * MS;
		cc.ops->on_ack(&cc, &a);
		a.now += 2 * MS;
		cc.ops->on_ack(&cc, &a);
		assert_int_equal(cc.delay.climb.at, 0);
		assert_in_range(cc.window, FRAME, 64 * FRAME);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_rounds_do_not_show_that_others_keep_the_queue),
		cmocka_unit_test(an_empty_queue_is_nobodys),
		cmocka_unit_test(a_climb_ends_when_the_link_is_full),
		cmocka_unit_test(noise_that_has_gone_is_forgotten),
		cmocka_unit_test(few_bytes_keep_the_first_window),
		cmocka_unit_test(no_product_overflows),
		cmocka_unit_test(a_stage_may_end_before_it_began),
	};

	return cmocka_run_group_tests_name("cc_share", tests, NULL, NULL);
}
