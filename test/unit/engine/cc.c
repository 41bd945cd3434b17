/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Congestion control without a network: each algorithm over a model of a queue (cc_model.h), and
 * what a bad peer or a bad clock may tell it.
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

/* The network that incast is measured on: 10 Gb/s, RTT 10 us, 150 kB of queue. */
static struct model rack(unsigned int senders)
{
	struct model m = {
		.rate = 10 * GBIT,
		.access = 10 * GBIT,
		.base = 10 * US,
		.hint = 11 * US,
		.queue = 150000,
		.frame = FRAME,
		.most = 1 << 20,
		.from = 5 * MS,
		.noise = 3000,
		.senders = senders,
	};

	for (unsigned int i = 0; i < senders; i++)
		m.s[i].start = i * 300;
	return m;
}

/* A bottleneck of 200 Mb/s with a queue of 40 kB, behind faster links. */
static struct model narrow(unsigned int senders)
{
	return (struct model){
		.rate = GBIT / 5,
		.access = GBIT,
		.base = 200 * US,
		.hint = 205 * US,
		.queue = 40000,
		.frame = FRAME,
		.most = 1 << 20,
		.from = 200 * MS,
		.senders = senders,
	};
}

/* ---------------------------------------------------------------- all algorithms */

static void every_number_has_an_algorithm_and_every_one_a_name(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20};
	struct weft_cc cc;

	(void)state;
	for (unsigned int i = WEFT_CC_AUTO; i < WEFT_CC_COUNT; i++) {
		weft_cc_init(&cc, weft_cc_ops(i), &conf);
		assert_true(strlen(cc.ops->name) > 0);
		assert_true(cc.limit > 0 && cc.limit <= conf.most);
		assert_non_null(weft_cc_mode_name(&cc));
	}
	assert_string_equal(weft_cc_ops(WEFT_CC_FIXED)->name, "fixed");
	assert_string_equal(weft_cc_ops(WEFT_CC_DELAY)->name, "delay");
	/* A number that is none does no harm. */
	assert_non_null(weft_cc_ops(12345));
}

static void fixed_stays_whatever_happens(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20};
	const struct weft_cc_ack a = {.now = MS, .acked = FRAME, .rtt = 999999, .marked = FRAME};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_FIXED), &conf);
	for (int i = 0; i < 100; i++) {
		cc.ops->on_ack(&cc, &a);
		cc.ops->on_loss(&cc, FRAME, MS);
		cc.ops->on_timeout(&cc, 5, MS);
		cc.ops->on_idle(&cc);
		assert_int_equal(cc.limit, 1 << 20);
		assert_int_equal(cc.gap, 0);
	}
	assert_int_equal(cc.marked, 100 * FRAME);
	assert_int_equal(cc.lost_random, 100 * FRAME);
	assert_int_equal(cc.lost_queue, 0);
}

/* Times, sizes and order of events that no network makes; under the sanitizers, too. */
static void nonsense_leaves_a_window_that_sends(void **state)
{
	static const uint32_t value[] = {0,    1,     2,       63,        1472,
					 8972, 65535, 1 << 20, INT32_MAX, UINT32_MAX};
	static const uint64_t time[] = {0, 1, 1000, 999999999, 1000000000, 1ull << 40, UINT64_MAX};
	static const struct weft_cc_conf conf[] = {
		{.frame = FRAME, .most = 1 << 20},
		{.frame = 1, .most = 1},
		{.frame = 8972, .most = 1024, .rtt = 1},
		{.frame = FRAME, .most = INT32_MAX, .rtt = UINT32_MAX},
	};
	uint64_t seed = 42;
	struct weft_cc cc;

	(void)state;
	for (unsigned int k = 0; k < sizeof(conf) / sizeof(conf[0]); k++) {
		weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf[k]);
		for (unsigned int i = 0; i < 200000; i++) {
			uint64_t r = seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			struct weft_cc_ack a = {
				.now = time[(r >> 32) % 7] + (r >> 50),
				.acked = value[(r >> 36) % 10],
				.marked = (r >> 13) % 3 == 0 ? value[(r >> 40) % 10] : 0,
				.rtt = value[(r >> 44) % 10],
				.inflight = value[(r >> 48) % 10],
				.limited = r >> 52 & 1,
			};

			cc.ops->on_ack(&cc, &a);
			if ((r >> 20) % 5 == 0)
				cc.ops->on_loss(&cc, value[(r >> 28) % 10], a.now);
			if ((r >> 22) % 31 == 0)
				cc.ops->on_timeout(&cc, (unsigned int)(r >> 24) % 20, a.now);
			if ((r >> 25) % 61 == 0)
				cc.ops->on_idle(&cc);
			assert_in_range(cc.window, 1, conf[k].most);
			assert_true(cc.limit >= 1);
		}
	}
}

/* ---------------------------------------------------------------- one flow */

/*
 * @behaviour R10: A flow finds the rate of its path within 20 round trips and leaves the queue
 * short
 */
static void start_finds_the_rate_within_twenty_round_trips(void **state)
{
	struct model m = {
		.rate = 25 * GBIT,
		.access = 25 * GBIT,
		.base = MS,
		.queue = 150000,
		.frame = FRAME,
		.most = 8 << 20,
		.from = 20 * MS,
		.senders = 1,
	};

	(void)state;
	model_run(&m, WEFT_CC_DELAY, 60 * MS);
	assert_true(model_share(&m, -1, 60 * MS) > 0.9);
	assert_true(model_dropped(&m) < 0.01);
}

/* @behaviour R10 */
static void one_flow_fills_a_link_and_leaves_its_queue_short(void **state)
{
	struct model m = narrow(1);

	(void)state;
	model_run(&m, WEFT_CC_DELAY, 1500 * MS);
	assert_true(model_share(&m, -1, 1500 * MS) > 0.95);
	assert_true(model_dropped(&m) < 0.01);
	assert_true(m.mean_queue < 400e3);
}

/* @behaviour R13: Random loss is distinguished from loss by a queue */
static void random_loss_does_not_shrink_the_window(void **state)
{
	static const struct {
		double loss, least;
	} t[] = {{0.001, 0.95}, {0.01, 0.9}, {0.05, 0.8}};

	(void)state;
	for (unsigned int r = 0; r < 2; r++)
		for (unsigned int i = 0; i < 3; i++) {
			struct model m = {
				.rate = GBIT / 2,
				.access = GBIT,
				.base = r ? MS : 100 * US,
				.queue = 1000000,
				.frame = FRAME,
				.most = 1 << 20,
				.from = 100 * MS,
				.loss = t[i].loss,
				.senders = 1,
			};

			model_run(&m, WEFT_CC_DELAY, 1000 * MS);
			assert_true(model_share(&m, -1, 1000 * MS) > t[i].least);
		}
}

/*
 * Full frames of 9000 bytes take 144 us more than the small ones of the handshake, on a link that
 * is twenty times slower than the sender's own: no queue.
 */
static void a_slow_link_behind_a_fast_one_is_no_queue(void **state)
{
	struct model m = {
		.rate = GBIT / 2,
		.access = 10 * GBIT,
		.base = 40 * US,
		.hint = 40 * US,
		.frame_ns = 7200,
		.queue = 4 << 20,
		.frame = 8972,
		.most = 1 << 20,
		.from = 50 * MS,
		.noise = 2000,
		.senders = 1,
	};

	(void)state;
	model_run(&m, WEFT_CC_DELAY, 500 * MS);
	assert_true(model_share(&m, -1, 500 * MS) > 0.92);
	assert_true(m.mean_queue < 400e3);
	assert_int_equal(m.s[0].cc.modes, 0);
}

/* @behaviour R15: Marks keep the queue shorter than delay alone */
static void marks_keep_a_queue_shorter_than_delay_would(void **state)
{
	struct model m = narrow(2), e = narrow(2);

	(void)state;
	e.mark = 3000;
	model_run(&m, WEFT_CC_DELAY, 1000 * MS);
	model_run(&e, WEFT_CC_DELAY, 1000 * MS);
	assert_true(e.s[0].cc.marked > 0);
	assert_int_equal(m.s[0].cc.marked, 0);
	assert_true(e.mean_queue < m.mean_queue);
	assert_true(model_share(&e, -1, 1000 * MS) > 0.75);
}

/* ---------------------------------------------------------------- many flows */

/*
 * @behaviour R11: Many senders to one drop little after their start; a later sender gets the same
 * share
 */
static void incast_drops_little_after_its_start(void **state)
{
	static const struct {
		unsigned int senders;
		double share, jain, dropped, queue;
	} t[] = {
		{4, 0.95, 0.95, 0.001, 20e3}, {8, 0.9, 0.95, 0.001, 20e3},
		{16, 0.9, 0.95, 0.001, 40e3}, {32, 0.86, 0.95, 0.001, 40e3},
		{64, 0.85, 0.9, 0.08, 120e3},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct model m = rack(t[i].senders);

		model_run(&m, WEFT_CC_DELAY, 60 * MS);
		print_message(
			"# %u senders: %.3f of the link, jain %.3f, %.4f dropped, queue %.1f us\n",
			t[i].senders, model_share(&m, -1, 60 * MS), model_jain(&m),
			model_dropped(&m), m.mean_queue / 1e3);
		assert_true(model_dropped(&m) < t[i].dropped);
		assert_true(model_share(&m, -1, 60 * MS) > t[i].share);
		assert_true(model_jain(&m) > t[i].jain);
		assert_true(m.mean_queue < t[i].queue);
	}
}

/* @behaviour R11 */
static void a_later_sender_gets_as_much(void **state)
{
	struct model m = rack(32);

	(void)state;
	for (unsigned int i = 0; i < 32; i++)
		m.s[i].start = i * MS;
	m.from = 40 * MS;
	model_run(&m, WEFT_CC_DELAY, 100 * MS);
	assert_true(model_jain(&m) > 0.9);
	assert_true(model_dropped(&m) < 0.001);
}

static void fixed_would_have_dropped_most(void **state)
{
	struct model m = rack(32);

	(void)state;
	model_run(&m, WEFT_CC_FIXED, 20 * MS);
	assert_true(model_dropped(&m) > 0.3);
}

/* ---------------------------------------------------------------- others */

/* @behaviour R12: Neither TCP nor Weft starves where both share a queue */
static void beside_tcp_neither_starves(void **state)
{
	struct model m = rack(2);

	(void)state;
	m.noise = 0;
	m.from = 20 * MS;
	m.s[1].reno = true;
	model_run(&m, WEFT_CC_DELAY, 300 * MS);
	print_message("# beside TCP: %.3f of the link, TCP %.3f\n", model_share(&m, 0, 300 * MS),
		      model_share(&m, 1, 300 * MS));
	assert_true(m.s[0].cc.modes > 0);
	assert_true(model_share(&m, 0, 300 * MS) > 0.1);
	assert_true(model_share(&m, 1, 300 * MS) > 0.3);
}

/* @behaviour R12 */
static void when_tcp_has_gone_the_queue_is_short_again(void **state)
{
	struct model m = narrow(3);

	(void)state;
	m.s[2].reno = true;
	m.s[2].stop = 1000 * MS;
	m.from = 2000 * MS;
	model_run(&m, WEFT_CC_DELAY, 3000 * MS);
	print_message("# after TCP: queue %.1f us, %.3f and %.3f of the link\n", m.mean_queue / 1e3,
		      model_share(&m, 0, 3000 * MS), model_share(&m, 1, 3000 * MS));
	assert_true(m.mean_queue < 500e3);
	assert_true(model_share(&m, -1, 3000 * MS) > 0.9);
	assert_true(model_share(&m, 0, 3000 * MS) > 0.2);
	assert_true(model_share(&m, 1, 3000 * MS) > 0.2);
}

/* ---------------------------------------------------------------- clocks and ends */

static void timeouts_shrink_only_when_there_are_two(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20};
	struct weft_cc_ack a = {.acked = FRAME, .rtt = 10000, .inflight = 1 << 20, .limited = true};
	struct weft_cc cc;
	uint32_t before;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (unsigned int i = 0; i < 1000; i++) {
		a.now = 1000000000 + i * 1000;
		cc.ops->on_ack(&cc, &a);
	}
	before = cc.window;
	assert_true(before > 20 * FRAME);
	cc.ops->on_timeout(&cc, 1, a.now + MS);
	assert_int_equal(cc.window, before);
	cc.ops->on_timeout(&cc, 2, a.now + 3 * MS);
	assert_true(cc.window <= 15000);
	/* It comes back by doubling. */
	for (unsigned int i = 0; i < 200; i++) {
		a.now += 1000;
		cc.ops->on_ack(&cc, &a);
	}
	assert_true(cc.window > 100000);
}

/* Its round trips are a thousand times what a queue could be: the gap must not follow them. */
static void a_peer_off_its_core_does_not_stop_the_sender(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 10000};
	struct weft_cc_ack a = {.acked = FRAME, .inflight = 1 << 20, .limited = true};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	a.now = 1000000000;
	for (unsigned int i = 0; i < 200; i++) {
		a.rtt = i < 10 ? 10000 : 20 * MS;
		a.now += a.rtt;
		cc.ops->on_ack(&cc, &a);
		assert_true(cc.gap <= 10 * MS);
	}
}

/* @p size, @p later: of the frames, before and after it does; 0 = not reported */
static void becomes_longer(uint32_t size, uint32_t later)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 10000};
	struct weft_cc_ack a = {.acked = FRAME, .rtt = 10000, .inflight = 1 << 20, .limited = true};
	struct weft_cc cc;

	a.size = size;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (a.now = 1000000000; a.now < 1100000000; a.now += 10000)
		cc.ops->on_ack(&cc, &a);
	assert_int_equal(cc.delay.base, 10000);
	a.size = later;
	for (; a.now < 1200000000; a.now += 10000)
		cc.ops->on_ack(&cc, &a);
	a.rtt = 5000000;
	for (; a.now < 32000000000; a.now += 1000000)
		cc.ops->on_ack(&cc, &a);
	assert_int_equal(cc.delay.base, 5000000);
}

static void a_way_that_became_longer_is_learned(void **state)
{
	(void)state;
	becomes_longer(0, 0);
	becomes_longer(FRAME, FRAME);
	becomes_longer(FRAME, FRAME / 16);
}

/* ---------------------------------------------------------------- no round trips */

/* A delay algorithm without delay samples has losses to go by. */
static void without_round_trips_a_short_queue_is_not_overrun(void **state)
{
	struct model m = narrow(1);

	(void)state;
	m.blind = true;
	model_run(&m, WEFT_CC_DELAY, 1500 * MS);
	print_message("# no round trips: %.3f of the link, %.4f dropped\n",
		      model_share(&m, -1, 1500 * MS), model_dropped(&m));
	assert_true(model_dropped(&m) < 0.05);
	assert_true(model_share(&m, -1, 1500 * MS) > 0.7);
}

static void acks_without_round_trips_double_the_start_once_a_round(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 100000};
	struct weft_cc_ack a = {.acked = FRAME, .inflight = 1 << 20, .limited = true};
	struct weft_cc cc;
	uint32_t first;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	first = cc.window;
	for (unsigned int i = 0; i < 100; i++) {
		a.now = 1000000000 + i * 1000;
		cc.ops->on_ack(&cc, &a);
	}
	assert_in_range(cc.window, first + 1, 2 * first);
	for (unsigned int i = 0; i < 300; i++) {
		a.now += 1000;
		cc.ops->on_ack(&cc, &a);
	}
	assert_in_range(cc.window, 2 * first + 1, 8 * first);
}

static void losses_without_round_trips_shrink_the_window(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 10000};
	struct weft_cc_ack a = {.acked = FRAME, .rtt = 10000, .inflight = 1 << 20, .limited = true};
	struct weft_cc cc;
	uint32_t before;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (a.now = 1000000000; a.now < 1001000000; a.now += 1000)
		cc.ops->on_ack(&cc, &a);
	before = cc.window;
	a.rtt = 0;
	for (; a.now < 1002000000; a.now += 1000) {
		cc.ops->on_ack(&cc, &a);
		cc.ops->on_loss(&cc, FRAME, a.now);
	}
	assert_true(cc.window < before / 4);
	assert_string_equal(weft_cc_mode_name(&cc), "delay");
}

/* Rounds of 10 us with @p lost frames each. @return the smallest window */
static uint32_t rounds(struct weft_cc *cc, struct weft_cc_ack *a, unsigned int num,
		       unsigned int lost)
{
	uint32_t least = UINT32_MAX;

	for (unsigned int i = 0; i < num; i++) {
		for (unsigned int k = 0; k < lost; k++)
			cc->ops->on_loss(cc, FRAME, a->now);
		for (unsigned int k = 0; k < 40; k++, a->now += 250)
			cc->ops->on_ack(cc, a);
		least = cc->window < least ? cc->window : least;
	}
	return least;
}

/* A burst that is longer than any allowance, and then the same loss in each round. */
/* @behaviour R13 */
static void one_burst_of_losses_does_not_shrink_the_window(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 40 * FRAME, .rtt = 10000};
	struct weft_cc_ack a = {.acked = FRAME, .rtt = 10000, .inflight = 1 << 20, .limited = true};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	a.now = 1000000000;
	rounds(&cc, &a, 10, 0);
	rounds(&cc, &a, 2, 20); /* the start is over */
	rounds(&cc, &a, 500, 0);
	assert_string_equal(weft_cc_mode_name(&cc), "delay");
	assert_int_equal(cc.window, conf.most);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(rounds(&cc, &a, 1, 20), conf.most);
		assert_int_equal(rounds(&cc, &a, 60, 0), conf.most);
	}
	assert_true(rounds(&cc, &a, 10, 8) < conf.most / 8 * 7 + FRAME);
	assert_true(cc.lost_random > 0 && cc.lost_queue == 0);
}

static void timeouts_leave_a_frame_and_bound_the_start(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 10000};
	struct weft_cc_ack a = {
		.now = 1000000000, .acked = FRAME, .inflight = 1 << 20, .limited = true};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (unsigned int i = 0; i < 200; i++) {
		cc.ops->on_timeout(&cc, 1 + i % 2, a.now);
		a.now += MS;
	}
	assert_int_equal(cc.window, FRAME);
	/* What the window was is not doubled to again: from there on it grows bit by bit. */
	for (unsigned int i = 0; i < 1000; i++) {
		a.now += 1000;
		cc.ops->on_ack(&cc, &a);
	}
	assert_string_equal(weft_cc_mode_name(&cc), "delay");
	assert_in_range(cc.window, 10 * FRAME, 20 * FRAME);
}

/* An end that loses its core between clock and port tells round trips of nothing. */
static void no_round_trip_is_far_below_what_was_measured(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .rtt = 10000};
	struct weft_cc_ack a = {.acked = FRAME, .size = FRAME, .rtt = 12000, .limited = true};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (unsigned int i = 0; i < 100; i++) {
		a.now = 1000000000 + i * 3000;
		a.rtt = i == 50 ? 1 : 12000;
		cc.ops->on_ack(&cc, &a);
	}
	assert_in_range(cc.delay.base, 5000, 12000);
}

/* Bytes of the time before do not count: 10 frames less a byte have the time of 10 frames. */
static void the_meter_begins_anew_each_time(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1 << 20, .meter = true};
	struct weft_cc_ack a = {.now = 1000 * MS, .rtt = 200 * US};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	cc.ops->on_ack(&cc, &a);
	a.now += 10 * MS;
	a.acked = 10 * FRAME - 1;
	cc.ops->on_ack(&cc, &a);
	assert_int_equal(cc.delay.frame_ns, MS);
}

/* A bucket of tokens lets the first frames through at once: its rate tells what a frame takes. */
static void the_target_is_two_frames_of_the_measured_rate(void **state)
{
	const struct weft_cc_conf conf = {
		.frame = FRAME, .most = 1 << 20, .rtt = 14000, .frame_ns = 60000};
	struct weft_cc_ack a = {.acked = FRAME, .size = FRAME, .rtt = 20000, .limited = true};
	struct weft_cc cc;

	(void)state;
	weft_cc_init(&cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (unsigned int i = 0; i < 100; i++) {
		a.now = 1000000000 + i * 3000;
		cc.ops->on_ack(&cc, &a);
	}
	assert_true(cc.target >= 20000 + 2 * 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_has_an_algorithm_and_every_one_a_name),
		cmocka_unit_test(fixed_stays_whatever_happens),
		cmocka_unit_test(nonsense_leaves_a_window_that_sends),
		cmocka_unit_test(start_finds_the_rate_within_twenty_round_trips),
		cmocka_unit_test(one_flow_fills_a_link_and_leaves_its_queue_short),
		cmocka_unit_test(random_loss_does_not_shrink_the_window),
		cmocka_unit_test(a_slow_link_behind_a_fast_one_is_no_queue),
		cmocka_unit_test(marks_keep_a_queue_shorter_than_delay_would),
		cmocka_unit_test(incast_drops_little_after_its_start),
		cmocka_unit_test(a_later_sender_gets_as_much),
		cmocka_unit_test(fixed_would_have_dropped_most),
		cmocka_unit_test(beside_tcp_neither_starves),
		cmocka_unit_test(when_tcp_has_gone_the_queue_is_short_again),
		cmocka_unit_test(timeouts_shrink_only_when_there_are_two),
		cmocka_unit_test(a_peer_off_its_core_does_not_stop_the_sender),
		cmocka_unit_test(a_way_that_became_longer_is_learned),
		cmocka_unit_test(without_round_trips_a_short_queue_is_not_overrun),
		cmocka_unit_test(acks_without_round_trips_double_the_start_once_a_round),
		cmocka_unit_test(losses_without_round_trips_shrink_the_window),
		cmocka_unit_test(one_burst_of_losses_does_not_shrink_the_window),
		cmocka_unit_test(timeouts_leave_a_frame_and_bound_the_start),
		cmocka_unit_test(no_round_trip_is_far_below_what_was_measured),
		cmocka_unit_test(the_meter_begins_anew_each_time),
		cmocka_unit_test(the_target_is_two_frames_of_the_measured_rate),
	};

	return cmocka_run_group_tests_name("cc", tests, NULL, NULL);
}
