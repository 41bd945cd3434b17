/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of doc/raw-lanes.md for long paths, one round at a time: when mode share begins, how
 * the window grows in it, and what a path without a measure of its links takes for a queue.
 */

#include "cc_path.h"

#include <math.h>

#include "engine/cc_cause.h"

#define MS 1000000u
#define LONG (20 * MS)
#define LONG_TARGET (1 * MS)

static bool shares(const struct path *p)
{
	return p->cc.delay.mode == WEFT_CC_MODE_SHARE;
}

/* @return rounds with a delay of @p late until mode share begins; 0 = it does not in 100 rounds */
static unsigned int long_to_share(struct path *p, uint32_t late)
{
	for (unsigned int i = 1; i <= 100; i++) {
		ack_late(p, LONG, late, p->cc.window);
		if (shares(p))
			return i;
	}
	return 0;
}

static void long_open(struct path *p, uint32_t window)
{
	path_open(p, LONG, window);
	ack_late(p, LONG, 0, window); /* a short queue: what falls from here on counts */
	p->a.limited = false;
	weft_cc_apply(&p->cc, window);
	ack_late(p, LONG, 0, window);
}

/* ---------------------------------------------------------------- mode share begins */

/* After 6 rounds with a queue that half of the window has not taken away. */
/* @behaviour R12 */
static void six_rounds_with_half_of_the_window_begin_mode_share(void **state)
{
	struct path p;

	(void)state;
	long_open(&p, WINDOW);
	assert_int_equal(long_to_share(&p, 8 * LONG_TARGET), 7);
	assert_int_equal(p.cc.window, WINDOW / 2);
	/* A slow fall needs more rounds. */
	long_open(&p, WINDOW);
	assert_in_range(long_to_share(&p, 8 * LONG_TARGET / 5), 8, 13);
	/* A queue that falls with the window is this path's own. */
	long_open(&p, WINDOW);
	for (unsigned int i = 0; i < 8; i++) {
		ack_late(&p, LONG, 3 * LONG_TARGET >> i, p.cc.window);
		assert_false(shares(&p));
	}
}

/* 24 rounds in which the queue was never short, with a quarter of the window. */
static void a_queue_that_is_never_short_begins_mode_share(void **state)
{
	const uint32_t late = LONG_TARGET / 2;
	struct path p;

	(void)state;
	long_open(&p, WINDOW);
	weft_cc_apply(&p.cc, WINDOW / 4);
	assert_int_equal(long_to_share(&p, late), 24);
	long_open(&p, WINDOW);
	weft_cc_apply(&p.cc, WINDOW / 4 + 1);
	assert_int_equal(long_to_share(&p, late), 0);
	/* A short queue begins again. */
	long_open(&p, WINDOW);
	weft_cc_apply(&p.cc, WINDOW / 4);
	for (unsigned int i = 0; i < 23; i++)
		ack_late(&p, LONG, late, FRAME);
	ack_late(&p, LONG, late - 1, FRAME);
	assert_int_equal(long_to_share(&p, late), 0);
	weft_cc_apply(&p.cc, p.cc.window / 4);
	assert_int_equal(long_to_share(&p, late), 1);
}

/* For 5 s after mode share the same flows are likely to be there: 8 rounds, or 3, are enough. */
static void soon_after_mode_share_less_is_enough(void **state)
{
	struct path p;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t left;

		long_open(&p, WINDOW);
		assert_int_equal(long_to_share(&p, 8 * LONG_TARGET), 7);
		while (shares(&p))
			ack_late(&p, LONG, 0, FRAME);
		left = p.a.now;
		weft_cc_apply(&p.cc, WINDOW);
		ack_late(&p, LONG, 0, FRAME);
		if (i == 0) {
			assert_int_equal(long_to_share(&p, 7 * LONG_TARGET / 2), 4);
			continue;
		}
		p.a.now = left + (i == 3 ? 5 : 4) * SECOND + LONG;
		ack_late(&p, LONG, 0, FRAME);
		weft_cc_apply(&p.cc, WINDOW / 4 * 3 + (i == 2));
		assert_int_equal(long_to_share(&p, LONG_TARGET / 2), i == 1 ? 8 : 0);
	}
}

/* 32 rounds and 200 ms with a delay, in which the rate is less than a quarter of the highest. */
/* @behaviour R12 */
static void a_starved_path_begins_mode_share(void **state)
{
	static const struct {
		uint32_t rtt, late;
		unsigned int part, rounds;
	} t[] = {{LONG, LONG_TARGET / 2, 8, 32},
		 {2 * MS, LONG_TARGET / 2, 8, 81},
		 {LONG, LONG_TARGET / 2, 3, 0},
		 {LONG, LONG_TARGET / 2 - 1, 8, 0}};
	unsigned int n;
	struct path p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint32_t window = WINDOW / t[i].part;

		path_open(&p, t[i].rtt, WINDOW);
		for (n = 0; n < 60; n++) {
			ack_late(&p, t[i].rtt, 0, n < 30 ? WINDOW : window);
			weft_cc_apply(&p.cc, n < 30 ? WINDOW : window);
		}
		for (n = 1; n <= 150 && !shares(&p); n++) {
			weft_cc_apply(&p.cc, window);
			ack_late(&p, t[i].rtt, t[i].late, window);
		}
		assert_int_equal(shares(&p) ? n - 1 : 0, t[i].rounds);
		if (shares(&p))
			assert_int_equal(p.cc.window, window);
	}
}

/* ---------------------------------------------------------------- growth in mode share */

static void climb_open(struct path *p)
{
	long_open(p, 2048 * FRAME);
	p->a.limited = true;
	assert_in_range(long_to_share(p, 7 * LONG_TARGET / 2), 1, 8);
}

/* By a sixth in a round, as long as a window that is larger by half carries more. */
static void a_climb_grows_by_a_sixth(void **state)
{
	uint32_t w, acked = 0;
	unsigned int n = 0;
	struct path p;

	(void)state;
	climb_open(&p);
	w = p.cc.window;
	for (unsigned int i = 0; i < 20; i++) {
		ack_late(&p, LONG, 7 * LONG_TARGET / 2, w);
		assert_int_equal(p.cc.window, w += w / 6);
		assert_true(shares(&p));
	}
	acked = w;
	for (; shares(&p) && n < 20; n++) {
		ack_late(&p, LONG, 7 * LONG_TARGET / 2, acked);
		w = p.cc.window;
	}
	/* The present stage of three rounds, and one that carries hardly more. */
	assert_in_range(n, 3, 7);
	assert_int_equal(p.cc.delay.jitter.noise, 7 * LONG_TARGET / 2);
}

/* A climb ends after 4 rounds in a row in which the window was not the limit. */
static void a_climb_needs_a_window_that_is_used(void **state)
{
	struct path p;

	(void)state;
	climb_open(&p);
	for (unsigned int i = 0; i < 12; i++) {
		uint32_t w = p.cc.window;

		p.a.limited = i % 4 == 3;
		ack_late(&p, LONG, 3 * LONG_TARGET, w);
		assert_int_equal(p.cc.window, w + (p.a.limited ? w / 6 : 0));
		assert_true(shares(&p));
	}
	p.a.limited = false;
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(shares(&p));
		ack_late(&p, LONG, 3 * LONG_TARGET, FRAME);
	}
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
}

/* RFC 9438, with C = 0.4 and a cut to 0.7. @return bytes, @p ms after the cut of @p high */
static double cubic(double high, double ms)
{
	double frames = high / FRAME, k = cbrt(frames * 0.3 / 0.4), t = ms / 1000 - k;

	return (frames + 0.4 * t * t * t) * FRAME;
}

static void lose_much(struct path *p, uint32_t late)
{
	lose(p, 100 * FRAME);
	ack_late(p, LONG, late, p->cc.window);
}

/*
 * After a loss the window grows as Cubic's does. From the eighth round on it grows by a twelfth, as
 * long as the rate grows, too.
 */
/* @behaviour R12 */
static void after_a_loss_the_window_grows_as_that_of_cubic(void **state)
{
	const uint32_t late = 7 * LONG_TARGET / 2;
	uint32_t w, high, acked, from;
	unsigned int n;
	uint64_t at;
	struct path p;

	(void)state;
	climb_open(&p);
	for (unsigned int i = 0; i < 6; i++)
		ack_late(&p, LONG, late, p.cc.window);
	high = p.cc.window;
	at = p.a.now;
	lose_much(&p, late);
	assert_int_equal(p.cc.window, high / 10 * 7);
	for (unsigned int i = 1; i < 8; i++) {
		double want;

		w = p.cc.window;
		ack_late(&p, LONG, late, w);
		want = cubic(high, (double)(p.a.now - at) / 1e6);
		want = want > w + FRAME ? want : w + FRAME;
		assert_true(fabs(p.cc.window - want) < FRAME);
	}
	for (unsigned int i = 0; i < 12; i++) {
		w = p.cc.window;
		ack_late(&p, LONG, late, w);
		assert_int_equal(p.cc.window, w + w / 12);
	}
	/* More carries no more: back to what carried more. */
	acked = from = p.cc.window;
	for (n = 0; p.cc.window >= w && n < 20; n++) {
		w = p.cc.window;
		ack_late(&p, LONG, late, acked);
	}
	assert_in_range(n, 2, 8);
	assert_in_range(p.cc.window, acked / 4 * 3, acked / 4 * 5);
	/* Then as Cubic's, from its plateau, for twice as many rounds. */
	for (unsigned int i = 1; i < 16; i++) {
		w = p.cc.window;
		ack_late(&p, LONG, late, w);
		assert_int_equal(p.cc.window, w + FRAME);
	}
	w = p.cc.window;
	ack_late(&p, LONG, late, w);
	assert_int_equal(p.cc.window, w + w / 12);
	/* The window was not the limit: the growth ends. */
	p.a.limited = false;
	ack_late(&p, LONG, late, w);
	p.a.limited = true;
	assert_true(p.cc.window <= w + w / 12);
	w = p.cc.window;
	ack_late(&p, LONG, late, w);
	assert_int_equal(p.cc.window, w + FRAME);
}

/* In a deep queue eight rounds may take longer than the 2.5 s after which a climb begins. */
static void long_rounds_do_not_delay_a_climb(void **state)
{
	const uint32_t late = 500 * MS;
	unsigned int rounds = 0;
	struct path p;

	(void)state;
	climb_open(&p);
	for (unsigned int i = 0; i < 6; i++)
		ack_late(&p, LONG, late, p.cc.window);
	lose_much(&p, late);
	for (; rounds < 8 && !p.cc.delay.climb.on; rounds++)
		ack_late(&p, LONG, late, p.cc.window);
	assert_in_range(rounds, 4, 5);
}

/* @return does a climb go on, if the rate of a stage grows by @p part of what the window does */
static bool climb_goes_on(double part)
{
	const uint32_t late = 7 * LONG_TARGET / 2;
	uint32_t from, acked = 0;
	struct weft_cc_climb *c;
	struct path p;

	climb_open(&p);
	c = &p.cc.delay.climb;
	for (unsigned int i = 0; i < 6; i++)
		ack_late(&p, LONG, late, p.cc.window);
	lose_much(&p, late);
	for (unsigned int i = 0; i < 8; i++)
		ack_late(&p, LONG, late, p.cc.window);
	assert_true(c->on && c->again);
	/* The rate of the first stage is that of its window. */
	from = c->from;
	for (unsigned int i = 0; i < 8 && c->from == from; i++) {
		acked = p.cc.window;
		ack_late(&p, LONG, late, acked);
	}
	assert_int_equal(c->from, acked);
	for (unsigned int i = 0; i < 8 && c->on && c->from == acked; i++)
		ack_late(&p, LONG, late, acked + (uint32_t)(part * (p.cc.window - acked)));
	assert_true(!c->on || c->from > acked);
	return c->on;
}

/* A Cubic flow on the same link grows, too, so the rate grows by less than half as much. */
static void a_climb_needs_two_fifths_of_its_growth(void **state)
{
	(void)state;
	assert_true(climb_goes_on(0.42));
	assert_false(climb_goes_on(0.39));
}

/* ---------------------------------------------------------------- the start */

/* A window that has doubled, and carries nearly twice as much, has no queue of its own. */
static void a_delay_next_to_a_growing_rate_does_not_end_the_start(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1u << 28, .rtt = LONG};
	struct path p = {.a = {.now = SECOND, .size = FRAME, .inflight = 1u << 27}};
	uint32_t acked = 16 * FRAME;

	(void)state;
	weft_cc_init(&p.cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	ack_late(&p, LONG, 0, 0);
	for (unsigned int i = 1; i < 6; i++, acked = acked * 15 / 8) {
		ack_late(&p, LONG, i * MS, acked);
		assert_string_equal(weft_cc_mode_name(&p.cc), "start");
		assert_int_equal(p.cc.delay.jitter.noise, i * MS);
	}
	/* Less: the window stays for one more round. */
	ack_late(&p, LONG, 8 * MS, acked);
	assert_string_equal(weft_cc_mode_name(&p.cc), "start");
	acked = p.cc.window;
	ack_late(&p, LONG, 8 * MS, 16 * FRAME);
	assert_true(p.cc.window <= acked);
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
}

/* ---------------------------------------------------------------- links and the base */

/* With two frames in flight a constant delay of 16 rounds is a slow link. */
static void a_constant_delay_of_a_small_window_is_a_link(void **state)
{
	struct path p;

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		path_open(&p, RTT, 2 * FRAME);
		p.a.limited = false;
		for (unsigned int n = 1; n <= 40 && p.cc.delay.base == RTT; n++) {
			/* A larger window; delays that vary by more, and by less; a short queue. */
			weft_cc_apply(&p.cc, 2 * FRAME + (i == 1));
			after_round(&p,
				    i == 4 ? TARGET / 2 - 1
					   : TARGET - n % 2 * 25001 * (i == 2) -
						     n % 2 * 24999 * (i == 3),
				    FRAME);
			if (n == 16)
				assert_int_equal(p.cc.delay.base, i == 0   ? RTT + TARGET
								  : i == 3 ? RTT + TARGET - 24999
									   : RTT);
		}
		if (i == 1 || i == 2 || i == 4)
			assert_int_equal(p.cc.delay.base, RTT);
	}
}

/* The handshake bounds the base: three links with the time of a full frame each, no queue. */
static void a_path_that_begins_in_a_queue_does_not_count_it(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct weft_cc_conf conf = {
			.frame = FRAME, .most = WINDOW, .rtt = RTT, .frame_ns = i ? 10000 : 0};
		struct path p = {.a = {.now = SECOND, .size = FRAME}};

		(void)state;
		weft_cc_init(&p.cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
		ack_late(&p, RTT, 200000, 0);
		assert_int_equal(p.cc.delay.base, RTT + 200000);
		/* Without a known speed of a link: no link is slower than what the path carries. */
		after_round(&p, 200000, 30 * FRAME);
		assert_int_equal(p.cc.delay.base, RTT + 30000);
		after_round(&p, 200000, 15 * FRAME);
		assert_int_equal(p.cc.delay.base, RTT + 30000);
		after_round(&p, 200000, 60 * FRAME);
		assert_int_equal(p.cc.delay.base, RTT + (i ? 30000 : 15000));
	}
}

/* For 10 s no round came near the target: the path is longer. Not after an overflow, for 60 s. */
static void a_longer_path_is_found_after_ten_seconds(void **state)
{
	for (unsigned int full = 0; full < 2; full++) {
		uint64_t from, at = 0, ns;
		struct path p;

		(void)state;
		path_open(&p, RTT, WINDOW);
		if (full)
			p.cc.delay.climb.full_at = p.a.now;
		from = p.a.now;
		/* The queue was short once in the span that ends first. */
		for (unsigned int i = 0; i < 1000 && at == 0; i++) {
			weft_cc_apply(&p.cc, WINDOW);
			p.cc.delay.mode = WEFT_CC_MODE_DELAY;
			after_round(&p, 100 * MS + i % 7 * MS, FRAME);
			if (p.cc.delay.base != RTT)
				at = p.a.now;
		}
		ns = at - from;
		assert_int_equal(p.cc.delay.base, RTT + 100 * MS);
		assert_in_range(ns / MS, full ? 70000 : 19000, full ? 70300 : 20300);
	}
}

/* Spans of 10 ms; the highest rate counts, and a span of 20 ms had a pause. */
static void the_meter_keeps_the_highest_rate(void **state)
{
	static const struct {
		uint32_t us, frames, each;
	} t[] = {{10000, 10, 909090}, {9999, 10, 909090},   {10000, 19, 666633},
		 {10000, 10, 666633}, {20000, 100, 666633}, {10000, 99, 100000}};
	const struct weft_cc_conf conf = {.frame = FRAME, .most = WINDOW, .meter = true};
	struct path p = {.a = {.now = SECOND, .rtt = RTT}};

	(void)state;
	weft_cc_init(&p.cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	p.cc.ops->on_ack(&p.cc, &p.a);
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		p.a.now += t[i].us * 1000ull;
		p.a.acked = t[i].frames * FRAME;
		p.cc.ops->on_ack(&p.cc, &p.a);
		assert_in_range(p.cc.delay.frame_ns, t[i].each - 1, t[i].each + 1);
	}
}

/* ---------------------------------------------------------------- a queue is no noise */

/* A round of many losses, with one round trip of @p top and a last one without a delay. */
static void lossy_round(struct path *p, uint32_t rtt, uint32_t top)
{
	p->a.rtt = rtt + top;
	p->a.now++;
	p->a.acked = 0;
	p->cc.ops->on_ack(&p->cc, &p->a);
	lose(p, 100 * FRAME);
	ack_late(p, rtt, 0, 100 * FRAME);
}

/* Losses at the delay of a full queue are neither noise nor the losses of the path. */
/* @behaviour R13 */
static void a_full_queue_takes_noise_and_allowance_back(void **state)
{
	static const struct {
		uint32_t rtt, full, noise, top, noise_after;
		bool by;
	} t[] = {
		{2 * MS, 2 * MS, 0, 3 * MS / 2, 0, true},
		{2 * MS, 2 * MS, 0, 3 * MS / 2 - 1, 0, false},
		{2 * MS, 2 * MS, 2 * MS, 7 * MS / 2, 7 * MS / 4, true},
		{2 * MS, 2 * MS, 2 * MS, 7 * MS / 2 - 1, 2 * MS, false},
		{2 * MS, 2 * MS, MS / 2, 7 * MS / 2, MS / 2, true},
		/* The delay of a full queue is not known yet. */
		{2 * MS, 0, 2 * MS, 2 * MS, 2 * MS, true},
		{2 * MS, 0, 2 * MS, 2 * MS - 1, 2 * MS, false},
		{2 * MS, 0, 0, 3 * MS, 0, false},
		/* Half of a round trip to four targets. */
		{2 * MS, MS, 0, MS, 0, true},
		{2 * MS, MS, 0, MS - 1, 0, false},
		{2 * MS, 2 * MS, 0, 4 * MS, 0, true},
		{2 * MS, 2 * MS, 0, 4 * MS + 1, 0, false},
		{MS, MS, 0, MS, 0, true},
		{MS - 1, MS, 0, MS, 0, false},
	};
	struct path p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		path_open(&p, t[i].rtt, WINDOW);
		p.cc.delay.full = t[i].full;
		p.cc.delay.jitter.noise = t[i].noise;
		p.cc.delay.loss_shift = 5;
		/* As before the last cut. */
		p.cc.delay.loss_before = 1 << 13;
		p.cc.delay.seen_acked = 700 * FRAME;
		lossy_round(&p, t[i].rtt, t[i].top);
		assert_int_equal(p.cc.lost_queue, t[i].by ? 100 * FRAME : 0);
		assert_int_equal(p.cc.lost_random, t[i].by ? 0 : 100 * FRAME);
		assert_int_equal(p.cc.delay.jitter.noise, t[i].noise_after);
		assert_int_equal(p.cc.delay.loss_shift, t[i].by ? 6 : 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(six_rounds_with_half_of_the_window_begin_mode_share),
		cmocka_unit_test(a_queue_that_is_never_short_begins_mode_share),
		cmocka_unit_test(soon_after_mode_share_less_is_enough),
		cmocka_unit_test(a_starved_path_begins_mode_share),
		cmocka_unit_test(a_climb_grows_by_a_sixth),
		cmocka_unit_test(a_climb_needs_a_window_that_is_used),
		cmocka_unit_test(after_a_loss_the_window_grows_as_that_of_cubic),
		cmocka_unit_test(long_rounds_do_not_delay_a_climb),
		cmocka_unit_test(a_climb_needs_two_fifths_of_its_growth),
		cmocka_unit_test(a_delay_next_to_a_growing_rate_does_not_end_the_start),
		cmocka_unit_test(a_constant_delay_of_a_small_window_is_a_link),
		cmocka_unit_test(a_path_that_begins_in_a_queue_does_not_count_it),
		cmocka_unit_test(a_longer_path_is_found_after_ten_seconds),
		cmocka_unit_test(the_meter_keeps_the_highest_rate),
		cmocka_unit_test(a_full_queue_takes_noise_and_allowance_back),
	};

	return cmocka_run_group_tests_name("cc_long", tests, NULL, NULL);
}
