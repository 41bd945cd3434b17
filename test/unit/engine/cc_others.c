/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of doc/raw-lanes.md for other traffic and for jitter, one round at a time: after which
 * rounds mode share begins and ends, what the window is then, and which delay is noise.
 */

#include "cc_path.h"

#include "engine/cc_cause.h"

#define QUEUE 480000u  /* beyond the target of a small window, and less than four targets */
#define VARIES 100000u /* a constant delay would be a slow link */
#define MS 1000000u

static bool shares(const struct path *p)
{
	return p->cc.delay.mode == WEFT_CC_MODE_SHARE;
}

/* A round of @p ns, at least as long as its sample. */
static void long_round(struct path *p, uint32_t ns, uint32_t late, uint32_t acked)
{
	p->a.now += ns - RTT - late;
	after_round(p, late, acked);
}

/* @return rounds of @p ns with a delay of up to @p late until mode share begins; 0 = it does not */
static unsigned int rounds_to_share(struct path *p, uint32_t ns, uint32_t late)
{
	uint32_t before = p->cc.modes;

	for (unsigned int i = 1; i < 1000; i++) {
		long_round(p, ns, late - i % 2 * VARIES, p->cc.window);
		assert_int_equal(p->cc.modes, before + shares(p));
		if (shares(p))
			return i;
	}
	return 0;
}

/* ---------------------------------------------------------------- mode share begins and ends */

/* For 20 ms and 48 rounds, or for 40 ms and 12 rounds. */
/* @behaviour R12 */
static void a_queue_that_stays_begins_mode_share(void **state)
{
	static const struct {
		uint32_t ns;
		unsigned int rounds;
	} t[] = {{600000, 48}, {1 * MS, 41}, {4 * MS, 12}, {10 * MS, 12}};
	struct path p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		path_open(&p, RTT, 16 * FRAME);
		assert_int_equal(rounds_to_share(&p, t[i].ns, QUEUE), t[i].rounds);
		/* Half of the window before. */
		assert_int_equal(p.cc.window, 8 * FRAME);
	}
	path_open(&p, RTT, 2 * FRAME);
	assert_int_equal(rounds_to_share(&p, 4 * MS, QUEUE), 12);
	assert_int_equal(p.cc.window, 2 * FRAME);
	/* A queue of less than 1.5 targets is short enough. */
	path_open(&p, RTT, 16 * FRAME);
	assert_int_equal(rounds_to_share(&p, 4 * MS, TARGET / 2 * 3 - 1), 0);
}

/* A round with a short queue takes three rounds with a long one back. */
static void a_round_with_a_short_queue_takes_three_back(void **state)
{
	struct path p;

	(void)state;
	for (unsigned int before = 1; before < 11; before++) {
		path_open(&p, RTT, 16 * FRAME);
		for (unsigned int i = 0; i < before; i++)
			long_round(&p, 10 * MS, QUEUE, p.cc.window);
		long_round(&p, 10 * MS, TARGET, p.cc.window);
		weft_cc_apply(&p.cc, FRAME / 8);
		assert_int_equal(rounds_to_share(&p, 10 * MS, QUEUE),
				 12 - before + (before < 3 ? before : 3));
	}
}

/* BBR lets the queue run empty at times: a mean of three targets for 50 ms and 24 rounds. */
/* @behaviour R12 */
static void a_mean_beyond_three_targets_begins_mode_share(void **state)
{
	unsigned int n;
	struct path p;

	(void)state;
	for (unsigned int k = 0; k < 2; k++) {
		path_open(&p, RTT, 2 * FRAME);
		for (n = 1; n < 400 && !shares(&p); n++)
			long_round(&p, 2 * MS, n % 2 ? (k ? 8 : 5) * TARGET : 0, p.cc.window);
		if (k == 0) {
			assert_int_equal(n, 400);
			continue;
		}
		/* The mean is that of about 16 rounds. */
		assert_in_range(n, 25 + 16, 25 + 64);
		assert_true(p.cc.window >= 2 * FRAME);
	}
	/* A larger window may be the reason of such a queue. */
	path_open(&p, RTT, 64 * FRAME);
	for (n = 1; n < 400 && !shares(&p); n++) {
		long_round(&p, 2 * MS, n % 2 ? 8 * TARGET : 0, p.cc.window);
		weft_cc_apply(&p.cc, 4 * FRAME + 1);
	}
	assert_false(shares(&p));
}

static void share_open(struct path *p)
{
	path_open(p, RTT, 16 * FRAME);
	assert_int_equal(rounds_to_share(p, 4 * MS, QUEUE), 12);
}

/* Up by a frame, down to 0.7 after a loss. */
/* @behaviour R12 */
static void in_mode_share_the_window_is_that_of_tcp(void **state)
{
	uint32_t w = 8 * FRAME;
	struct path p;

	(void)state;
	share_open(&p);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(after_round(&p, QUEUE, p.cc.window), w += FRAME);
	p.a.limited = false;
	assert_int_equal(after_round(&p, QUEUE, p.cc.window), w);
	p.a.limited = true;
	for (unsigned int i = 1; i <= 3; i++) {
		lose(&p, 1);
		w = w / 10 * 7;
		assert_int_equal(after_round(&p, QUEUE, p.cc.window), w);
		/* Two rounds without a cut. */
		for (unsigned int k = 0; k < 2; k++) {
			lose(&p, 1);
			assert_int_equal(after_round(&p, QUEUE, p.cc.window), w += FRAME);
		}
	}
	assert_string_equal(weft_cc_cut_name(&p.cc), "a full queue");
	assert_true(shares(&p));
	/* A frame is left. */
	weft_cc_apply(&p.cc, FRAME + 10);
	lose(&p, 1);
	p.cc.delay.looks = 0;
	assert_int_equal(after_round(&p, QUEUE, p.cc.window), FRAME);
}

/* Each fourth loss is followed by two rounds with a sixteenth of the window, to observe others. */
static void the_fourth_loss_begins_a_dip(void **state)
{
	uint32_t w;
	struct path p;

	(void)state;
	share_open(&p);
	for (unsigned int i = 1; i <= 20; i++) {
		w = 64 * FRAME;
		weft_cc_apply(&p.cc, w);
		lose(&p, 1);
		after_round(&p, QUEUE, w);
		/* Not in the 32 rounds after the one before. */
		if (i == 4 || i == 20) {
			assert_int_equal(p.cc.window, w / 16);
			assert_string_equal(weft_cc_cut_name(&p.cc), "a test");
			assert_int_equal(after_round(&p, QUEUE, w), w / 16);
			assert_int_equal(after_round(&p, QUEUE, w), w / 10 * 7);
		} else {
			assert_int_equal(p.cc.window, w / 10 * 7);
		}
		after_round(&p, QUEUE, w);
		after_round(&p, QUEUE, w);
	}
	assert_true(shares(&p));
}

/* Three dips in a row with an empty queue: the other flows have left. */
static void three_dips_without_a_queue_end_mode_share(void **state)
{
	unsigned int dips = 0;
	struct path p;

	(void)state;
	share_open(&p);
	while (shares(&p) && dips < 10) {
		lose(&p, 1);
		after_round(&p, QUEUE, FRAME);
		if (p.cc.delay.look == 0)
			continue;
		dips++;
		after_round(&p, QUEUE, FRAME);
		/* The second one has a queue. */
		after_round(&p, dips == 2 ? TARGET / 2 : TARGET / 2 - 1, FRAME);
		p.cc.delay.share_left = 100;
	}
	assert_int_equal(dips, 5);
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
}

/* Two rounds in a row with less than half of the target. */
static void two_short_rounds_end_mode_share(void **state)
{
	struct path p;

	(void)state;
	share_open(&p);
	for (unsigned int i = 0; i < 20; i++) {
		after_round(&p, TARGET / 2 - 1, FRAME);
		assert_true(shares(&p));
		after_round(&p, TARGET / 2, FRAME);
		assert_true(shares(&p));
	}
	after_round(&p, TARGET / 2 - 1, FRAME);
	after_round(&p, TARGET / 2 - 1, FRAME);
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
	assert_int_equal(p.cc.modes, 1);
}

/* A trial comes after 256 to 511 rounds; those of several paths do not coincide. */
static void trials_of_several_paths_do_not_coincide(void **state)
{
	unsigned int least = UINT32_MAX, most = 0, n;
	struct path p;

	(void)state;
	for (unsigned int k = 0; k < 64; k++) {
		path_open(&p, RTT, 16 * FRAME);
		p.a.now += 64 * 37 * k;
		assert_int_equal(rounds_to_share(&p, 4 * MS, QUEUE), 12);
		for (n = 0; shares(&p); n++)
			after_round(&p, QUEUE, FRAME);
		assert_in_range(n, 256, 512);
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	assert_true(most - least > 200);
}

/* TCP would not lose more than a tenth of 256 frames: then all flows are of this kind. */
/* @behaviour R12 */
static void more_loss_than_that_of_tcp_ends_mode_share(void **state)
{
	unsigned int n = 0;
	struct path p;

	(void)state;
	share_open(&p);
	lose(&p, 26 * FRAME);
	after_round(&p, QUEUE, 230 * FRAME - 1);
	assert_true(shares(&p));
	after_round(&p, QUEUE, 1);
	assert_string_equal(weft_cc_mode_name(&p.cc), "delay");
	/* Not for 50 ms, and then for the rounds that begin the mode. */
	p.a.now = p.cc.delay.round.at;
	for (; !shares(&p) && n < 1000; n++)
		long_round(&p, 1 * MS, QUEUE - n % 2 * VARIES, p.cc.window);
	assert_in_range(n, 50 + 39, 50 + 43);
	/* These flows were not of this kind. So the mode ends only if a third is lost. */
	lose(&p, 85 * FRAME);
	after_round(&p, QUEUE, 171 * FRAME);
	assert_true(shares(&p));
	/* Half of what was before counts. */
	lose(&p, 86 * FRAME);
	after_round(&p, QUEUE, 170 * FRAME);
	assert_false(shares(&p));
	share_open(&p);
	lose(&p, 25 * FRAME);
	after_round(&p, QUEUE, 231 * FRAME);
	assert_true(shares(&p));
}

/* ---------------------------------------------------------------- jitter */

/* A round with samples of base and @p late ns more. The last one is @p last ns beyond base. */
static void jitter_round(struct path *p, uint32_t late, uint32_t last)
{
	uint64_t at = p->cc.delay.round.at;

	for (unsigned int i = 0; i < 8; i++) {
		p->a.now = at + 1000 * i;
		p->a.rtt = RTT + (i % 2 ? late : 0);
		p->a.acked = p->cc.window / 8;
		p->cc.ops->on_ack(&p->cc, &p->a);
	}
	p->a.now = at;
	after_round(p, last, 0);
	assert_int_not_equal(p->cc.delay.round.at, at);
}

/* Until a test halves the window: three rounds in a row are beyond the target. */
static uint32_t begin_test(struct path *p)
{
	uint32_t before = 0;

	path_open(p, RTT, WINDOW);
	for (unsigned int i = 0; i < 40; i++)
		jitter_round(p, 2 * TARGET, 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_string_not_equal(weft_cc_cut_name(&p->cc), "a test");
		before = p->cc.window;
		jitter_round(p, 2 * TARGET, 2 * TARGET);
	}
	assert_string_equal(weft_cc_cut_name(&p->cc), "a test");
	assert_int_equal(p->cc.window, before / 2);
	return before;
}

/* With half of the window the delay is the same: it is noise, and the window returns. */
static void a_delay_that_no_window_changes_is_noise(void **state)
{
	uint32_t before, target;
	struct path p;

	(void)state;
	before = begin_test(&p);
	target = p.cc.target;
	assert_int_equal(target, RTT + TARGET);
	/* The window fell in the rounds before: half of the test measures what to compare with. */
	for (unsigned int i = 1; i < 5; i++) {
		jitter_round(&p, 2 * TARGET, 2 * TARGET);
		assert_int_equal(p.cc.window, before / 2);
	}
	for (unsigned int i = 0; i < 5; i++) {
		jitter_round(&p, 2 * TARGET, 2 * TARGET);
		assert_int_equal(p.cc.window, before / 4);
	}
	jitter_round(&p, 2 * TARGET, 2 * TARGET);
	assert_int_equal(p.cc.window, before / 2);
	/* The delay is no queue any more. */
	jitter_round(&p, 2 * TARGET, 2 * TARGET);
	assert_true(p.cc.window > before / 2);
	assert_int_equal(p.cc.target, target + 2 * TARGET);
}

/* The delay shrinks with the window: it is a queue, and the window stays. */
static void a_delay_that_shrinks_with_the_window_is_a_queue(void **state)
{
	uint32_t before;
	struct path p;

	(void)state;
	before = begin_test(&p);
	for (unsigned int i = 1; i < 5; i++)
		jitter_round(&p, 2 * TARGET, 2 * TARGET);
	for (unsigned int i = 0; i < 6; i++)
		jitter_round(&p, TARGET, 0);
	assert_int_equal(p.cc.window, before / 4);
	jitter_round(&p, TARGET, 0);
	assert_int_equal(p.cc.target, RTT + TARGET);
	assert_true(p.cc.window > before / 4);
	/* A loss ends a test at once. */
	before = begin_test(&p);
	lose(&p, 1);
	jitter_round(&p, 2 * TARGET, 2 * TARGET);
	assert_int_equal(p.cc.window, before / 2 / 2);
	assert_string_equal(weft_cc_cut_name(&p.cc), "a full queue");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_that_stays_begins_mode_share),
		cmocka_unit_test(a_round_with_a_short_queue_takes_three_back),
		cmocka_unit_test(a_mean_beyond_three_targets_begins_mode_share),
		cmocka_unit_test(in_mode_share_the_window_is_that_of_tcp),
		cmocka_unit_test(the_fourth_loss_begins_a_dip),
		cmocka_unit_test(three_dips_without_a_queue_end_mode_share),
		cmocka_unit_test(two_short_rounds_end_mode_share),
		cmocka_unit_test(trials_of_several_paths_do_not_coincide),
		cmocka_unit_test(more_loss_than_that_of_tcp_ends_mode_share),
		cmocka_unit_test(a_delay_that_no_window_changes_is_noise),
		cmocka_unit_test(a_delay_that_shrinks_with_the_window_is_a_queue),
	};

	return cmocka_run_group_tests_name("cc_others", tests, NULL, NULL);
}
