/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of doc/raw-lanes.md for the delay algorithm, one round at a time: the window after a
 * round is exactly what the rule for that round makes of the window before.
 */

#include "cc_path.h"

/* ---------------------------------------------------------------- the queue */

/* Down until a quarter of the target is left. Each eighth cut also takes a part of the base. */
static void a_queue_beyond_the_target_is_reduced_to_a_quarter_of_it(void **state)
{
	const uint32_t late = 200000, all = RTT + late;
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	for (unsigned int i = 1; i <= 16; i++) {
		uint64_t less = i % 8 == 0 ? late + RTT / 8 : late - TARGET / 4;

		weft_cc_apply(&p.cc, WINDOW);
		assert_int_equal(after_round(&p, late, FRAME),
				 WINDOW - (uint32_t)(WINDOW * less / all));
	}
	assert_string_equal(weft_cc_cut_name(&p.cc), "delay");
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
	/* Four times the target still counts as this case. One cut takes at most three quarters. */
	weft_cc_apply(&p.cc, WINDOW);
	assert_int_equal(after_round(&p, 4 * TARGET, WINDOW), WINDOW / 4);
}

/* Down to the acknowledged bytes of the round and the target, by a quarter to three quarters. */
static void a_queue_far_beyond_the_target_leaves_what_was_carried(void **state)
{
	const uint32_t late = 9 * TARGET / 2;
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	assert_int_equal(after_round(&p, late, WINDOW / 64 * 97),
			 (uint64_t)(WINDOW / 64 * 97) * (RTT + TARGET) / (RTT + late));
	weft_cc_apply(&p.cc, WINDOW);
	assert_int_equal(after_round(&p, late, FRAME), WINDOW / 4);
	weft_cc_apply(&p.cc, WINDOW);
	assert_int_equal(after_round(&p, late, 8 * WINDOW), WINDOW / 4 * 3);
}

/* A window of less than four frames leaves three quarters, and waits while the queue falls. */
static void a_small_window_is_reduced_less(void **state)
{
	const uint32_t small = 3 * FRAME, late = 250000;
	const uint32_t target = TARGET + TARGET / 4; /* larger by a quarter: one frame of four */
	struct path p;

	(void)state;
	path_open(&p, RTT, small);
	assert_int_equal(after_round(&p, late, FRAME),
			 small - small * (uint64_t)(late - target / 4 * 3) / (RTT + late));
	weft_cc_apply(&p.cc, small);
	assert_int_equal(after_round(&p, late / 8 * 7 - 1, FRAME), small);
	assert_true(after_round(&p, late, FRAME) < small);
	path_open(&p, RTT, 4 * FRAME);
	assert_int_equal(after_round(&p, late, FRAME),
			 4 * FRAME - 4 * FRAME * (uint64_t)(late - TARGET / 4) / (RTT + late));
}

/* @behaviour R15 */
static void marks_take_a_quarter_of_their_share(void **state)
{
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	p.a.marked = 3 * FRAME;
	assert_int_equal(after_round(&p, TARGET / 4 + 1, 8 * FRAME), WINDOW - WINDOW / 4 / 8 * 3);
	assert_string_equal(weft_cc_cut_name(&p.cc), "marks");
	/* More marks than bytes are as many. */
	weft_cc_apply(&p.cc, WINDOW);
	assert_int_equal(after_round(&p, TARGET, FRAME), WINDOW - WINDOW / 4);
	/* The queue already drains. */
	weft_cc_apply(&p.cc, WINDOW);
	assert_int_equal(after_round(&p, TARGET / 4, FRAME), WINDOW);
	assert_int_equal(p.cc.marked, 1 + 3 * 3 * FRAME);
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
}

/* ---------------------------------------------------------------- growth */

/* By half of the unused part of the target, an eighth at most; and by the fair part. */
static void the_window_grows_by_half_of_the_unused_part(void **state)
{
	const uint32_t late = TARGET - 10000, fair = FRAME / 16;
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	assert_int_equal(after_round(&p, late, WINDOW),
			 WINDOW + fair + (uint64_t)WINDOW * 10000 / 2 / (RTT + late));
	weft_cc_apply(&p.cc, WINDOW);
	assert_int_equal(after_round(&p, 0, WINDOW), WINDOW + fair + WINDOW / 8);
	weft_cc_apply(&p.cc, WINDOW);
	assert_int_equal(after_round(&p, TARGET, WINDOW), WINDOW + fair);
	/* The window was not the limit. */
	p.a.limited = false;
	assert_int_equal(after_round(&p, 0, WINDOW), WINDOW + fair);
	p.a.inflight = WINDOW + fair - FRAME;
	assert_int_equal(after_round(&p, 0, WINDOW), WINDOW + fair);
	p.a.inflight++;
	assert_true(after_round(&p, 0, WINDOW) > WINDOW + fair);
}

/* The fair part counts round trips, and is at most half a frame. */
static void a_round_of_several_round_trips_counts_each_of_them(void **state)
{
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	for (unsigned int trips = 1; trips < 40; trips++) {
		weft_cc_apply(&p.cc, WINDOW);
		p.a.now += (uint64_t)(trips - 1) * (RTT + TARGET);
		assert_int_equal(after_round(&p, TARGET, WINDOW),
				 WINDOW + (trips < 8 ? trips * (FRAME / 16) : FRAME / 2));
	}
}

/* On a long path the target is a small part of the round trip: growth doubles in each 4 rounds. */
static void on_an_empty_long_path_growth_doubles(void **state)
{
	const uint32_t rtt = 100000000, part_of = WINDOW / 200; /* half of 1 ms of 100 ms */
	struct path p;

	(void)state;
	path_open(&p, rtt, WINDOW);
	for (unsigned int i = 1; i < 32; i++) {
		uint32_t more = part_of << i / 4;

		weft_cc_apply(&p.cc, WINDOW);
		ack_late(&p, rtt, 0, WINDOW);
		assert_in_range(p.cc.window,
				WINDOW + FRAME / 16 + (more < WINDOW / 8 ? more : WINDOW / 8),
				WINDOW + FRAME / 16 +
					(more < WINDOW / 8 ? more + (1u << i / 4) : WINDOW / 8));
	}
	/* A queue begins again. */
	weft_cc_apply(&p.cc, WINDOW);
	ack_late(&p, rtt, 200000, WINDOW);
	weft_cc_apply(&p.cc, WINDOW);
	ack_late(&p, rtt, 0, WINDOW);
	assert_in_range(p.cc.window, WINDOW + FRAME / 16 + part_of,
			WINDOW + FRAME / 16 + part_of + 1);
}

/* Each acknowledgement adds its bytes, while half of the window is used: the window doubles. */
static void the_start_doubles_once_in_a_round(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1u << 28, .rtt = RTT};
	struct path p;
	uint32_t from;

	(void)state;
	weft_cc_init(&p.cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	p.a = (struct weft_cc_ack){
		.now = SECOND, .size = FRAME, .rtt = RTT, .acked = FRAME, .inflight = 7499};
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, 15000);
	p.a.inflight++;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, 15000 + FRAME);
	p.a.inflight = 15000;
	for (unsigned int i = 0; i < 20; i++)
		p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, 30000);
	p.a.inflight = 0;
	/* Half of the target is no queue yet. */
	p.a.acked = 0;
	ack_late(&p, RTT, TARGET / 2, 0);
	assert_string_equal(weft_cc_mode_name(&p.cc), "start");
	from = p.cc.window;
	p.a.inflight = from;
	p.a.acked = UINT32_MAX;
	p.a.rtt = RTT;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, 2 * from);
	ack_late(&p, RTT, TARGET / 2 + 1, 0);
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
}

/* ---------------------------------------------------------------- losses */

/* The bucket holds 6 frames, and a 64th of the received bytes fills it. */
/* @behaviour R13 */
static void a_small_window_is_cut_when_the_bucket_is_empty(void **state)
{
	const uint32_t small = 8 * FRAME, acked = 64 * FRAME;
	struct path p;

	(void)state;
	path_open(&p, RTT, small);
	lose(&p, 3 * FRAME);
	lose(&p, 3 * FRAME);
	assert_true(after_round(&p, 0, 0) >= small);
	lose(&p, FRAME);
	assert_true(after_round(&p, 0, acked) >= small);
	assert_int_equal(p.cc.lost_random, 7 * FRAME);
	assert_string_equal(weft_cc_cut_name(&p.cc), "nothing");
	/* A byte more; the round carried little: half of the window is left. */
	weft_cc_apply(&p.cc, small);
	lose(&p, 1);
	assert_int_equal(after_round(&p, 0, 0), small / 2);
	assert_string_equal(weft_cc_cut_name(&p.cc), "other loss");
	/* Half of the bucket is full again. Two rounds without a cut follow. */
	weft_cc_apply(&p.cc, small);
	lose(&p, 3 * FRAME + 1);
	assert_true(after_round(&p, 0, 0) >= small);
	lose(&p, 3 * FRAME + 1);
	assert_true(after_round(&p, 0, 0) >= small);
	weft_cc_apply(&p.cc, small);
	lose(&p, 4 * FRAME);
	assert_int_equal(after_round(&p, 0, small / 8 * 6),
			 (uint64_t)(small / 8 * 6) * (RTT + RTT / 8) / RTT);
	assert_int_equal(p.cc.lost_queue, 0);
}

/* @return cuts in 60 rounds that lose @p lost of 640 frames, when the path has seen 60 of them */
static unsigned int cuts_with(uint32_t lost)
{
	const uint32_t small = 8 * FRAME;
	unsigned int cuts = 0;
	struct path p;

	path_open(&p, RTT, small);
	for (unsigned int i = 0; i < 120; i++) {
		weft_cc_apply(&p.cc, small);
		lose(&p, lost * FRAME);
		cuts += after_round(&p, 0, 640 * FRAME) < small && i >= 60;
	}
	return cuts;
}

/* If a cut does not make loss rarer, it is that of the network, up to an eighth. */
/* @behaviour R13 */
static void loss_that_a_cut_does_not_reduce_is_the_networks(void **state)
{
	(void)state;
	assert_int_equal(cuts_with(9), 0);
	assert_int_equal(cuts_with(19), 0);
	assert_int_equal(cuts_with(39), 0);
	assert_int_equal(cuts_with(79), 0);
	assert_in_range(cuts_with(100), 5, 20);
}

/* A cut leaves seven eighths at most, and growth is slow for 16 rounds. */
static void growth_after_a_cut_is_slow(void **state)
{
	const uint32_t from = 11 * FRAME, fair = FRAME / 16;
	struct path p;

	(void)state;
	path_open(&p, RTT, from);
	lose(&p, 7 * FRAME);
	assert_int_equal(after_round(&p, 0, from), from / 8 * 7);
	for (unsigned int i = 1; i < 16; i++) {
		weft_cc_apply(&p.cc, WINDOW);
		assert_int_equal(after_round(&p, 0, WINDOW), WINDOW + fair + WINDOW / 256);
	}
	weft_cc_apply(&p.cc, WINDOW);
	assert_int_equal(after_round(&p, 0, WINDOW), WINDOW + fair + WINDOW / 8);
}

/* Loss with a queue of the target cuts at once. The target is then half of the full queue. */
static void a_full_queue_cuts_and_halves_the_target(void **state)
{
	const uint32_t half = 60000;
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	lose(&p, 1);
	assert_true(after_round(&p, TARGET - 1, WINDOW) >= WINDOW);
	assert_int_equal(p.cc.lost_queue, 0);
	weft_cc_apply(&p.cc, WINDOW);
	lose(&p, 1);
	assert_int_equal(after_round(&p, TARGET, WINDOW / 2), WINDOW / 2);
	assert_int_equal(p.cc.lost_queue, 1);
	assert_string_equal(weft_cc_cut_name(&p.cc), "a full queue");
	/* The longest delay of three rounds is that of the full queue: that of the cut. */
	assert_int_equal(p.cc.target, RTT + TARGET);
	after_round(&p, 2 * half, FRAME);
	after_round(&p, 0, FRAME);
	after_round(&p, 0, FRAME);
	assert_int_equal(p.cc.target, RTT + TARGET);
	after_round(&p, 0, FRAME);
	assert_int_equal(p.cc.target, RTT + TARGET / 2);
	/* Loss with three quarters of that is by the queue, too. */
	weft_cc_apply(&p.cc, WINDOW);
	lose(&p, 1);
	after_round(&p, TARGET / 4 * 3 - 4, WINDOW);
	assert_int_equal(p.cc.lost_queue, 1);
	lose(&p, 1);
	after_round(&p, TARGET / 4 * 3, WINDOW);
	assert_int_equal(p.cc.lost_queue, 2);
}

/* A burst is judged for four rounds; one that each of these continues is a loss rate. */
/* @behaviour R13 */
static void a_burst_is_judged_for_four_rounds(void **state)
{
	struct path p;

	(void)state;
	for (unsigned int pause = 0; pause < 5; pause++) {
		path_open(&p, RTT, WINDOW);
		lose(&p, 32 * FRAME);
		assert_int_equal(after_round(&p, 0, 0), WINDOW);
		for (unsigned int i = 1; i <= 4; i++) {
			if (i != pause)
				lose(&p, 1);
			after_round(&p, 0, 0);
			assert_true(i == 4 || p.cc.window == WINDOW);
		}
		/* The first round may have frames of the burst itself. */
		if (pause < 2)
			assert_int_equal(p.cc.window, WINDOW / 2);
		else
			assert_true(p.cc.window >= WINDOW);
	}
	/* A longer one is no burst. */
	path_open(&p, RTT, WINDOW);
	lose(&p, 32 * FRAME + 1);
	assert_int_equal(after_round(&p, 0, 0), WINDOW / 2);
	/* Nor is one with a queue. */
	path_open(&p, RTT, WINDOW);
	lose(&p, 7 * FRAME);
	assert_int_equal(after_round(&p, TARGET / 2 + 1, 0), WINDOW / 2);
}

/* ---------------------------------------------------------------- timeouts and pauses */

/* Two timeouts halve the window, to 15000 bytes at most and a frame at least. */
static void timeouts_are_undone_when_they_were_none(void **state)
{
	static const struct {
		uint32_t before, after;
	} t[] = {{WINDOW, 15000}, {20000, 10000}, {2 * FRAME - 2, FRAME}, {FRAME / 2, FRAME / 2}};
	struct path p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		path_open(&p, RTT, t[i].before);
		p.cc.ops->on_timeout(&p.cc, 1, p.a.now);
		assert_int_equal(p.cc.window, t[i].before);
		assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
		p.cc.ops->on_timeout(&p.cc, 2, p.a.now);
		assert_int_equal(p.cc.window, t[i].after);
		p.cc.ops->on_timeout(&p.cc, 3, p.a.now);
		assert_int_equal(p.cc.window, t[i].after);
		assert_string_equal(weft_cc_mode_name(&p.cc), "start");
		assert_string_equal(weft_cc_cut_name(&p.cc), "timeouts");
		p.cc.ops->on_spurious(&p.cc);
		assert_int_equal(p.cc.window, t[i].before);
		assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
		/* It is undone once; a timeout of another silence restores nothing. */
		weft_cc_apply(&p.cc, FRAME / 4);
		p.cc.ops->on_spurious(&p.cc);
		assert_int_equal(p.cc.window, FRAME / 4);
		weft_cc_apply(&p.cc, t[i].before);
		p.cc.ops->on_timeout(&p.cc, 2, p.a.now);
		p.cc.ops->on_timeout(&p.cc, 1, p.a.now);
		p.cc.ops->on_spurious(&p.cc);
		assert_int_equal(p.cc.window, t[i].after);
	}
}

/* Mode start goes on without an end when the timeouts were none. */
static void a_start_goes_on_after_false_timeouts(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 1u << 28, .rtt = RTT};
	struct path p = {.a = {.now = SECOND, .size = FRAME, .inflight = WINDOW}};

	(void)state;
	weft_cc_init(&p.cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	for (unsigned int i = 0; i < 40; i++)
		after_round(&p, 0, i < 4 ? p.cc.window : 0);
	assert_true(p.cc.window > 100000);
	p.cc.ops->on_timeout(&p.cc, 2, p.a.now);
	p.cc.ops->on_spurious(&p.cc);
	assert_true(p.cc.window > 100000);
	for (unsigned int i = 0; i < 4; i++) {
		after_round(&p, 0, p.cc.window);
		assert_string_equal(weft_cc_mode_name(&p.cc), "start");
	}
	assert_true(p.cc.window > 800000);
}

/* Without a measure of the handshake, 32 rounds without a cut begin a dip, which measures base. */
static void a_dip_measures_the_base_again(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = 64 * FRAME};
	struct path p = {.a = {.now = SECOND, .size = FRAME}};
	unsigned int n;

	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		p.a.now = SECOND;
		weft_cc_init(&p.cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
		after_round(&p, 0, 0);
		p.a.marked = 1;
		after_round(&p, 0, FRAME);
		p.a.marked = 0;
		weft_cc_apply(&p.cc, 64 * FRAME);
		for (n = 1; n < 100 && p.cc.window == 64 * FRAME; n++) {
			/* The window is not used; or the path was shorter all the time. */
			after_round(&p, 0, (k == 1 ? 31 : 32) * FRAME);
		}
		if (k == 1) {
			assert_int_equal(n, 100);
			continue;
		}
		assert_in_range(n, 32, 34);
		assert_int_equal(p.cc.window, 32 * FRAME);
		assert_string_equal(weft_cc_cut_name(&p.cc), "a test");
		p.a.rtt = k == 0 ? RTT : RTT / 2;
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(p.cc.window, 32 * FRAME);
			p.a.now += RTT;
			p.cc.ops->on_ack(&p.cc, &p.a);
		}
		/* A path that is shorter had a queue: the window was too large. */
		assert_int_equal(p.cc.window, k == 0 ? 64 * FRAME : 32 * FRAME);
		assert_int_equal(p.cc.delay.base, p.a.rtt);
	}
}

/* Mode start ends at half of the window that timed out. */
static void a_start_after_timeouts_ends_at_half_of_the_window(void **state)
{
	struct path p;

	(void)state;
	path_open(&p, RTT, 100 * FRAME);
	p.cc.ops->on_timeout(&p.cc, 2, p.a.now);
	p.a.limited = false;
	while (p.cc.delay.mode == WEFT_CC_MODE_START) {
		assert_true(p.cc.window < 50 * FRAME);
		p.a.inflight = p.cc.window / 2;
		after_round(&p, 0, FRAME);
	}
	assert_in_range(p.cc.window, 50 * FRAME, 51 * FRAME - 1);
}

/* After a pause a quarter of the window is left, or the first window. */
static void a_pause_begins_the_start_again(void **state)
{
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	p.cc.ops->on_timeout(&p.cc, 2, p.a.now);
	weft_cc_apply(&p.cc, WINDOW);
	p.cc.ops->on_idle(&p.cc);
	assert_int_equal(p.cc.window, WINDOW / 4);
	assert_string_equal(weft_cc_mode_name(&p.cc), "start");
	/* No window is its end: that of timeouts before the pause is forgotten. */
	after_round(&p, 0, 0);
	p.a.inflight = p.cc.window;
	after_round(&p, 0, FRAME);
	assert_int_equal(p.cc.window, WINDOW / 4 + FRAME);
	assert_string_equal(weft_cc_mode_name(&p.cc), "start");
	path_open(&p, RTT, 15001);
	p.cc.ops->on_idle(&p.cc);
	assert_int_equal(p.cc.window, 15000);
	assert_string_equal(weft_cc_mode_name(&p.cc), "start");
	path_open(&p, RTT, 15000);
	p.cc.ops->on_idle(&p.cc);
	assert_int_equal(p.cc.window, 15000);
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
}

/* ---------------------------------------------------------------- without samples */

/* A round ends after two round trips. Half a window in it is slow hosts' work. */
static void rounds_without_samples_grow_by_what_is_known(void **state)
{
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	p.a.rtt = 0;
	p.a.acked = WINDOW / 2;
	p.a.now += 2 * RTT - 1;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, WINDOW);
	p.a.acked = 0;
	p.a.now++;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, WINDOW + FRAME / 16);
	weft_cc_apply(&p.cc, WINDOW);
	p.a.acked = WINDOW / 2 - 1;
	p.a.now += 2 * RTT;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, WINDOW + WINDOW / 4);
	/* The window was not the limit. */
	p.a.limited = false;
	p.a.now += 2 * RTT;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, WINDOW + WINDOW / 4);
	/* After a loss the queue may be the reason: no growth in that round, and then the least. */
	weft_cc_apply(&p.cc, WINDOW);
	p.a.limited = true;
	lose(&p, 1);
	p.a.now += 2 * RTT;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, WINDOW);
	p.a.now += 2 * RTT;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, WINDOW + FRAME / 16);
	/* Marks cut. */
	weft_cc_apply(&p.cc, WINDOW);
	p.a.acked = p.a.marked = FRAME;
	p.a.now += 2 * RTT;
	p.cc.ops->on_ack(&p.cc, &p.a);
	assert_int_equal(p.cc.window, WINDOW / 4 * 3);
}

/* ---------------------------------------------------------------- what the sender uses */

/* From four frames on the limit is the window. Below, frames leave one by one. */
static void small_windows_have_a_gap(void **state)
{
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	for (uint32_t window = FRAME / 64; window < 6 * FRAME; window += FRAME / 64) {
		uint64_t gap = (uint64_t)RTT * FRAME / window;

		weft_cc_apply(&p.cc, window);
		assert_int_equal(p.cc.window, window);
		if (window >= 4 * FRAME) {
			assert_int_equal(p.cc.limit, window);
			assert_int_equal(p.cc.gap, 0);
			continue;
		}
		assert_int_equal(p.cc.limit, (window + FRAME - 1) / FRAME * FRAME);
		assert_int_equal(p.cc.gap, gap < 2000000 ? gap : 2000000);
	}
	/* The least window is a 64th of a frame, the largest that of the buffers. */
	weft_cc_apply(&p.cc, 0);
	assert_int_equal(p.cc.window, FRAME / 64);
	weft_cc_apply(&p.cc, UINT32_MAX);
	assert_int_equal(p.cc.window, 1u << 28);
}

/* Nor does the gap follow a peer that has lost its core: base and eight targets at most. */
static void the_gap_follows_eight_targets_at_most(void **state)
{
	struct path p;

	(void)state;
	path_open(&p, RTT, WINDOW);
	for (unsigned int i = 0; i < 20; i++)
		after_round(&p, 10 * SECOND / 1000, FRAME);
	weft_cc_apply(&p.cc, 3 * FRAME);
	assert_int_equal(p.cc.gap, (RTT + 8 * TARGET) / 3);
}

/* 1.5 round trips of a small frame, at least 16 us and two frames' times, at most 1 ms. */
static void the_target_has_bounds(void **state)
{
	static const struct {
		uint32_t rtt, frame_ns, target;
	} t[] = {{100000, 0, 150000},     {10000, 0, 16000},        {10, 0, 16000},
		 {10668, 0, 16002},       {600000, 0, 900000},      {700000, 0, 1000000},
		 {50000000, 0, 1000000},  {100000, 74000, 150000},  {100000, 80000, 160000},
		 {10000, 499999, 999998}, {10000, 600000, 1000000}, {10000, 3000000000u, 1000000}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const struct weft_cc_conf conf = {
			.frame = FRAME, .most = WINDOW, .rtt = t[i].rtt, .frame_ns = t[i].frame_ns};
		struct path p = {.a = {.now = SECOND, .size = FRAME, .limited = true}};

		weft_cc_init(&p.cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
		ack_late(&p, t[i].rtt, 0, FRAME);
		ack_late(&p, t[i].rtt, 0, FRAME);
		assert_int_equal(p.cc.target, t[i].rtt + t[i].target);
	}
}

/* ---------------------------------------------------------------- samples */

/* The time that a full frame needs on the links is no queue of small ones. */
static void samples_of_small_frames_count_as_full_ones(void **state)
{
	const struct weft_cc_conf conf = {.frame = FRAME, .most = WINDOW, .rtt = RTT};
	struct path p = {.a = {.now = SECOND, .size = FRAME / 4, .limited = true}};

	(void)state;
	weft_cc_init(&p.cc, weft_cc_ops(WEFT_CC_DELAY), &conf);
	ack_late(&p, RTT, 0, FRAME);
	/* Neither small nor full. */
	p.a.size = FRAME / 4 * 3 - 1;
	ack_late(&p, RTT, 80000, 1);
	assert_int_equal(p.cc.delay.base, RTT);
	/* The first full frame sets the base, though it is longer. */
	p.a.size = FRAME / 4 * 3;
	ack_late(&p, RTT, 80000, 1);
	assert_int_equal(p.cc.delay.base, RTT + 80000);
	/* Half of a full frame needs half of the difference in addition. */
	p.a.size = FRAME / 2;
	ack_late(&p, RTT, 50000, 1);
	assert_int_equal(p.cc.delay.base, RTT + 80000);
	ack_late(&p, RTT, 30000, 1);
	assert_int_equal(p.cc.delay.base, RTT + 30000 + 80000 / 2);
	p.a.size = FRAME;
	ack_late(&p, RTT, 60000, 1);
	assert_int_equal(p.cc.delay.base, RTT + 60000);
	/* A full frame as short as a small one: no difference is known. */
	ack_late(&p, RTT, 0, 1);
	p.a.size = FRAME / 2;
	ack_late(&p, RTT, 0, 1);
	assert_int_equal(p.cc.delay.base, RTT);
}

/* If each eighth sample is below half of the handshake's measure, that one was wrong. */
static void a_wrong_handshake_is_discarded(void **state)
{
	struct path p;

	(void)state;
	for (unsigned int every = 7; every < 13; every++) {
		path_open(&p, RTT, WINDOW);
		for (unsigned int i = 1; i <= 1000; i++) {
			p.a.rtt = i % every == 0 ? 20000 : RTT;
			p.a.now += RTT;
			p.cc.ops->on_ack(&p.cc, &p.a);
			assert_true(p.cc.delay.base == RTT || p.cc.delay.base == RTT / 2 ||
				    p.cc.delay.base == 20000);
		}
		assert_int_equal(p.cc.delay.base, every < 9 ? 20000 : RTT / 2);
	}
	path_open(&p, RTT, WINDOW);
	for (unsigned int i = 1; i < 8; i++)
		ack_late(&p, 20000 + 100 * i, 0, 1);
	assert_int_equal(p.cc.delay.base, RTT / 2);
	ack_late(&p, 20500, 0, 1);
	assert_int_equal(p.cc.delay.base, 20100);
}

/* @return the base after @p n rounds with a window of two frames and a delay of @p late ns */
static uint32_t base_after(struct path *p, unsigned int n, uint32_t late)
{
	for (; n > 0; n--) {
		weft_cc_apply(&p->cc, 2 * FRAME);
		ack_late(p, RTT, late, FRAME);
	}
	return p->cc.delay.base;
}

/* With two frames in flight a delay that stays the same for 16 rounds is that of a slow link. */
static void a_constant_delay_of_a_small_window_is_the_links(void **state)
{
	const uint32_t late = 4000000, more = 600000;
	struct path p;

	(void)state;
	path_open(&p, RTT, 2 * FRAME);
	assert_int_equal(base_after(&p, 15, late), RTT);
	assert_int_equal(base_after(&p, 1, late), RTT + late);
	/* A further delay takes 16 rounds of its own. */
	assert_int_equal(base_after(&p, 15, late + more), RTT + late);
	assert_int_equal(base_after(&p, 1, late + more), RTT + late + more);
	/* The least of these rounds counts, and a fifth of it is no difference. */
	path_open(&p, RTT, 2 * FRAME);
	assert_int_equal(base_after(&p, 8, late), RTT);
	assert_int_equal(base_after(&p, 8, late + late / 5), RTT + late);
	path_open(&p, RTT, 2 * FRAME);
	base_after(&p, 8, late);
	base_after(&p, 1, late + late / 3);
	assert_int_equal(base_after(&p, 14, late + late / 3), RTT);
	assert_int_equal(base_after(&p, 1, late + late / 3), RTT + late + late / 3);
	/* A shorter delay begins the count again, too. */
	path_open(&p, RTT, 2 * FRAME);
	base_after(&p, 1, late + late / 3);
	assert_int_equal(base_after(&p, 15, late), RTT);
	assert_int_equal(base_after(&p, 1, late), RTT + late);
}

/* ---------------------------------------------------------------- gaps of the peer */

/* @return the window after a round with a queue of 4 ms, at whose end the peer reported this gap */
static uint32_t after_gap(struct path *p, uint32_t reported)
{
	path_open(p, RTT, WINDOW);
	p->cc.ops->on_peer_gap(&p->cc, reported);
	return after_round(p, 4000000, WINDOW);
}

static void a_gap_of_the_peer_is_no_queue(void **state)
{
	struct path p;

	(void)state;
	/* A gap that the target allows, and one that is shorter than the queue. */
	assert_true(after_gap(&p, TARGET) < WINDOW);
	assert_true(after_gap(&p, 3000000) < WINDOW);
	assert_int_equal(after_gap(&p, 4000000), WINDOW);
	/* The next round may contain frames of the gap, and a later one not. */
	assert_int_equal(after_round(&p, 4000000, WINDOW), WINDOW);
	assert_true(after_round(&p, 4000000, WINDOW) < WINDOW);
	/* Losses count as without the report. */
	path_open(&p, RTT, WINDOW);
	lose(&p, WINDOW / 2);
	p.cc.ops->on_peer_gap(&p.cc, 4000000);
	assert_true(after_round(&p, 4000000, WINDOW) < WINDOW);
}

/* A false report in each acknowledgement: each third cut is made. */
static void false_gaps_of_the_peer_hide_no_queue(void **state)
{
	struct path p;
	uint32_t left;

	(void)state;
	path_open(&p, RTT, WINDOW);
	for (unsigned int i = 0; i < 12; i++) {
		left = p.cc.window;
		p.cc.ops->on_peer_gap(&p.cc, SECOND);
		after_round(&p, 3 * TARGET, WINDOW);
		assert_true(i % 3 != 2 ? p.cc.window == left : p.cc.window < left);
	}
	assert_true(p.cc.window < WINDOW / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gap_of_the_peer_is_no_queue),
		cmocka_unit_test(false_gaps_of_the_peer_hide_no_queue),
		cmocka_unit_test(a_constant_delay_of_a_small_window_is_the_links),
		cmocka_unit_test(a_queue_beyond_the_target_is_reduced_to_a_quarter_of_it),
		cmocka_unit_test(a_queue_far_beyond_the_target_leaves_what_was_carried),
		cmocka_unit_test(a_small_window_is_reduced_less),
		cmocka_unit_test(marks_take_a_quarter_of_their_share),
		cmocka_unit_test(the_window_grows_by_half_of_the_unused_part),
		cmocka_unit_test(a_round_of_several_round_trips_counts_each_of_them),
		cmocka_unit_test(on_an_empty_long_path_growth_doubles),
		cmocka_unit_test(the_start_doubles_once_in_a_round),
		cmocka_unit_test(a_small_window_is_cut_when_the_bucket_is_empty),
		cmocka_unit_test(loss_that_a_cut_does_not_reduce_is_the_networks),
		cmocka_unit_test(growth_after_a_cut_is_slow),
		cmocka_unit_test(a_full_queue_cuts_and_halves_the_target),
		cmocka_unit_test(a_burst_is_judged_for_four_rounds),
		cmocka_unit_test(timeouts_are_undone_when_they_were_none),
		cmocka_unit_test(a_start_goes_on_after_false_timeouts),
		cmocka_unit_test(a_dip_measures_the_base_again),
		cmocka_unit_test(a_start_after_timeouts_ends_at_half_of_the_window),
		cmocka_unit_test(a_pause_begins_the_start_again),
		cmocka_unit_test(rounds_without_samples_grow_by_what_is_known),
		cmocka_unit_test(small_windows_have_a_gap),
		cmocka_unit_test(the_gap_follows_eight_targets_at_most),
		cmocka_unit_test(the_target_has_bounds),
		cmocka_unit_test(samples_of_small_frames_count_as_full_ones),
		cmocka_unit_test(a_wrong_handshake_is_discarded),
	};

	return cmocka_run_group_tests_name("cc_rules", tests, NULL, NULL);
}
