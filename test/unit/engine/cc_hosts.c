/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Congestion control between hosts that are off their cores now and then, and behind a bucket of
 * tokens, which is what real ports without hardware of their own are like: over the model of a
 * queue (cc_model.h).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cc_model.h"
#include "lane.h"

#define US 1000ull
#define MS 1000000ull
#define GBIT 1000000000ull
#define FRAME 1472u

/* A handshake between hosts that waited for their cores has measured the wait. */
static void a_measure_that_was_too_long_is_corrected(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 12 * MS};
	struct weft_cc_ack a = {.acked = FRAME, .size = FRAME, .rtt = 12000, .limited = true};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (unsigned int i = 0; i < 100; i++) {
		a.now = 1000000000 + i * 12000;
		cc.ops->on_ack(&cc, &a);
	}
	assert_int_equal(cc.delay.base, 12000);
	assert_true(cc.target < 100000);
}

/* What a silence changed comes back when it was the peer's, and never for another silence. */
static void only_the_last_silence_is_undone(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20};
	struct weft_cc_ack a = {.acked = FRAME, .rtt = 10000, .inflight = 1 << 20, .limited = true};
	uint32_t large, small;
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (a.now = GBIT; a.now < GBIT + MS; a.now += 1000)
		cc.ops->on_ack(&cc, &a);
	large = cc.window;
	cc.ops->on_timeout(&cc, 1, a.now);
	cc.ops->on_timeout(&cc, 2, a.now + MS);
	small = cc.window;
	assert_true(small < large / 2);
	cc.ops->on_spurious(&cc);
	assert_int_equal(cc.window, large);
	/* An outage, and long after it a moment of silence. */
	cc.ops->on_timeout(&cc, 1, a.now + 2 * MS);
	cc.ops->on_timeout(&cc, 2, a.now + 3 * MS);
	cc.ops->on_timeout(&cc, 1, a.now + GBIT);
	cc.ops->on_spurious(&cc);
	assert_int_equal(cc.window, small);
}

/*
 * As beside BBR: the queue of others is full, empty and anything between, and was full when the
 * handshake measured. Neither ever stays for a dozen round trips.
 */
static void a_queue_that_others_fill_and_drain_is_shared(void **state)
{
	const struct weft_cc_conf conf = {
		.frame = FRAME, .most = 1 << 20, .rtt = 600000, .meter = true};
	struct weft_cc_ack a = {.now = GBIT, .acked = FRAME, .size = FRAME, .limited = true};
	uint64_t seed = 88172645463325252ull;
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	/* At first it gets what the link carries. */
	for (unsigned int i = 0; i < 300; i++) {
		a.now += 60000;
		a.rtt = 1600000;
		cc.ops->on_ack(&cc, &a);
	}
	for (unsigned int i = 0; i < 1000 && cc.modes == 0; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		a.rtt = 12000 + (uint32_t)(seed >> 40) % 1588000;
		a.now += a.rtt + cc.gap;
		cc.ops->on_ack(&cc, &a);
	}
	assert_true(cc.delay.base < 60000);
	assert_string_equal(weft_cc_mode_name(&cc), "share");
	print_message("# shares after %u ms\n", (unsigned int)((a.now - GBIT) / MS));
	assert_true(a.now - GBIT < 500 * MS);
}

/* 200 Mb/s by a bucket of two frames: single frames pass in no time, and 40 kB of queue. */
static struct model bucket(void)
{
	return (struct model){
		.rate = GBIT / 5,
		.access = GBIT,
		.base = 12 * US,
		.hint = 12 * US,
		.burst = 3200,
		.meter = true,
		.queue = 40000,
		.frame = FRAME,
		.most = 1 << 20,
		.from = 200 * MS,
		.senders = 1,
	};
}

static void a_token_bucket_is_filled_by_a_sender_without_round_trips(void **state)
{
	struct model m = bucket();

	(void)state;
	model_run(&m, WEFT_CC_DELAY, 1500 * MS);
	print_message("# bucket of tokens: %.3f of the link, %.4f dropped\n",
		      model_share(&m, -1, 1500 * MS), model_dropped(&m));
	assert_true(model_dropped(&m) < 0.01);
	assert_true(model_share(&m, -1, 1500 * MS) > 0.9);
}

/* Both hosts are off their cores for 1 to 10 ms, 10 to 30 ms apart; fixed drops a third. */
static void hosts_off_their_cores_do_not_make_the_window_small(void **state)
{
	struct model m = bucket();

	(void)state;
	m.away_every = 20 * MS;
	m.hint = 8 * MS;
	model_run(&m, WEFT_CC_DELAY, 1500 * MS);
	print_message("# off their cores: %.3f of the link, %.4f dropped\n",
		      model_share(&m, -1, 1500 * MS), model_dropped(&m));
	assert_true(model_dropped(&m) < 0.01);
	assert_true(model_share(&m, -1, 1500 * MS) > 0.6);
}

/* @p hint: what the handshake has measured. TCP's ends are kernels, which are never off. */
static void beside_tcp(uint64_t away_every, uint64_t hint, double least)
{
	struct model m = bucket();

	m.senders = 2;
	m.s[1].reno = true;
	m.away_every = away_every;
	m.hint = hint;
	model_run(&m, WEFT_CC_DELAY, 3000 * MS);
	print_message("# beside TCP: %.3f of the link, TCP %.3f, %.4f dropped\n",
		      model_share(&m, 0, 3000 * MS), model_share(&m, 1, 3000 * MS),
		      model_dropped(&m));
	assert_true(model_share(&m, 0, 3000 * MS) > least);
	assert_true(model_share(&m, 1, 3000 * MS) > 0.3);
}

static void beside_tcp_neither_starves_behind_a_bucket(void **state)
{
	(void)state;
	beside_tcp(0, 12 * US, 0.3);
}

/* On their cores for two thirds of the time. */
static void beside_tcp_hosts_off_their_cores_get_a_share(void **state)
{
	(void)state;
	beside_tcp(20 * MS, 12 * US, 0.18);
	beside_tcp(20 * MS, 8 * MS, 0.18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_measure_that_was_too_long_is_corrected),
		cmocka_unit_test(only_the_last_silence_is_undone),
		cmocka_unit_test(a_queue_that_others_fill_and_drain_is_shared),
		cmocka_unit_test(a_token_bucket_is_filled_by_a_sender_without_round_trips),
		cmocka_unit_test(hosts_off_their_cores_do_not_make_the_window_small),
		cmocka_unit_test(beside_tcp_neither_starves_behind_a_bucket),
		cmocka_unit_test(beside_tcp_hosts_off_their_cores_get_a_share),
	};

	return cmocka_run_group_tests_name("cc_hosts", tests, NULL, NULL);
}
