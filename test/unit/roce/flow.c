/* SPDX-License-Identifier: BSD-3-Clause */
/* What bounds a RoCE lane: credits, the send queue, and which end may leave when. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "drivers/roce/roce_wire.h"

/* ------------------------------------------------------------------ credits */

static void a_window_bounds_what_is_under_way(void **state)
{
	struct weft_roce_credit c = {.window = 4};
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_true(weft_roce_credit_room(&c));
		c.sent++;
	}
	assert_false(weft_roce_credit_room(&c));
	assert_int_equal(weft_roce_credit_ack(&c, 1), WEFT_ROCE_ACK_NEW);
	assert_true(weft_roce_credit_room(&c));
}

static void counts_may_come_twice_and_late_but_not_early(void **state)
{
	struct weft_roce_credit c = {.window = 64, .sent = 50};

	(void)state;
	assert_int_equal(weft_roce_credit_ack(&c, 0), WEFT_ROCE_ACK_OLD);
	assert_int_equal(weft_roce_credit_ack(&c, 30), WEFT_ROCE_ACK_NEW);
	assert_int_equal(weft_roce_credit_ack(&c, 30), WEFT_ROCE_ACK_OLD);
	assert_int_equal(weft_roce_credit_ack(&c, 12), WEFT_ROCE_ACK_OLD);
	assert_int_equal(c.acked, 30);
	assert_int_equal(weft_roce_credit_ack(&c, 51), WEFT_ROCE_ACK_BAD);
	assert_int_equal(weft_roce_credit_ack(&c, WEFT_ROCE_COUNT_MASK / 2), WEFT_ROCE_ACK_BAD);
	assert_int_equal(c.acked, 30);
	assert_int_equal(weft_roce_credit_word(&c, 51), WEFT_ROCE_ACK_BAD);
	assert_int_equal(weft_roce_credit_ack(&c, 50), WEFT_ROCE_ACK_NEW);
	assert_int_equal(c.acked, 50);
}

static void counts_in_the_word_may_be_as_old_as_they_like(void **state)
{
	struct weft_roce_credit c = {.window = 64, .sent = 5020, .acked = 5000};

	(void)state;
	/*
	 * Messages have reported all meanwhile; the word is from long ago, farther back than any
	 * window.
	 */
	assert_int_equal(weft_roce_credit_word(&c, 7), WEFT_ROCE_ACK_OLD);
	assert_int_equal(weft_roce_credit_word(&c, 5000), WEFT_ROCE_ACK_OLD);
	assert_int_equal(weft_roce_credit_word(&c, 5021), WEFT_ROCE_ACK_BAD);
	assert_int_equal(c.acked, 5000);
	assert_int_equal(weft_roce_credit_word(&c, 5020), WEFT_ROCE_ACK_NEW);
	assert_int_equal(c.acked, 5020);
	c.acked = UINT32_MAX - 3;
	c.sent = 8;
	assert_int_equal(weft_roce_credit_word(&c, 4), WEFT_ROCE_ACK_NEW);
	assert_int_equal(c.acked, 4);
}

static void counts_wrap(void **state)
{
	struct weft_roce_credit c = {.window = 64};
	uint32_t starts[] = {WEFT_ROCE_COUNT_MASK - 10, UINT32_MAX - 10};
	unsigned int i, k;

	(void)state;
	for (k = 0; k < 2; k++) {
		c.acked = c.sent = starts[k];
		for (i = 0; i < 40; i++) {
			c.sent++;
			assert_int_equal(weft_roce_credit_ack(&c, c.sent & WEFT_ROCE_COUNT_MASK),
					 WEFT_ROCE_ACK_NEW);
			assert_int_equal(c.acked, c.sent);
			assert_int_equal(weft_roce_credit_ack(&c,
							      (c.sent - 20) & WEFT_ROCE_COUNT_MASK),
					 WEFT_ROCE_ACK_OLD);
		}
	}
}

/*
 * A random exchange: the sender never has more than a window under way, and never stops for good.
 */
static void a_stream_never_stops_and_never_overruns(void **state)
{
	struct weft_roce_credit tx = {.window = 5}, rx = {.own_window = 5};
	uint32_t flight = 0, done = 0;
	unsigned int steps = 0;

	(void)state;
	srandom(7);
	while (done < 20000) {
		assert_true(++steps < 400000);
		if (random() % 3 && weft_roce_credit_room(&tx)) {
			tx.sent++;
			flight++;
		}
		assert_true(tx.sent - rx.processed <= 5);
		if (random() % 2 && flight > 0) {
			flight--;
			rx.processed++;
			done++;
		}
		if (weft_roce_credit_due(&rx)) {
			rx.reported = rx.processed;
			assert_int_equal(weft_roce_credit_ack(&tx,
							      rx.reported & WEFT_ROCE_COUNT_MASK),
					 WEFT_ROCE_ACK_NEW);
		}
	}
}

static void the_peer_is_notified_before_it_must_stop(void **state)
{
	struct weft_roce_credit c = {.own_window = 64};

	(void)state;
	c.processed = 15;
	assert_false(weft_roce_credit_due(&c));
	c.processed = 16;
	assert_true(weft_roce_credit_due(&c));
	c.own_window = 1;
	c.reported = 15;
	assert_true(weft_roce_credit_due(&c));
}

static void windows_shrink_so_that_many_peers_fit(void **state)
{
	uint32_t left = 14336, w;
	unsigned int peers = 0;

	(void)state;
	assert_int_equal(weft_roce_window(64, left), 56);
	assert_int_equal(weft_roce_window(8, left), 8);
	while ((w = weft_roce_window(64, left)) != 0) {
		assert_true(w >= 4 && left >= w + 1);
		left -= w + 1;
		peers++;
	}
	assert_true(peers > 700);
	assert_true(left < 5);
}

/* ------------------------------------------------------------------ closing */

/*
 * @behaviour Y22: closing a RoCE lane causes no retries: an end stays until the other end is
 * notified
 */
static void an_end_leaves_at_once_only_when_both_have_confirmed(void **state)
{
	const uint64_t ms = 1000000;
	struct weft_roce_close c = {.begin = 1000 * ms, .give_up = 2900 * ms, .received = true};

	(void)state;
	/* Only what both have said and know ends it at once. */
	assert_false(weft_roce_close_over(&c, 2899 * ms));
	assert_true(weft_roce_close_over(&c, 2900 * ms));
	c.acked_at = c.seen_at = 1003 * ms;
	assert_true(weft_roce_close_over(&c, 1003 * ms));
	/*
	 * The peer's final message alone: ours, or the acknowledgement of its one, may not have
	 * left the device.
	 */
	c.acked_at = 0;
	assert_false(weft_roce_close_over(&c, 1003 * ms));
	assert_true(weft_roce_close_over(&c, 1003 * ms + WEFT_ROCE_LINGER_NS));
	/* Ours alone: the peer's may be on its way, or never come. */
	c.acked_at = 1003 * ms;
	c.seen_at = 0;
	assert_false(weft_roce_close_over(&c, 1003 * ms));
	assert_true(weft_roce_close_over(&c, 1003 * ms + WEFT_ROCE_GRACE_NS));
}

/* @behaviour Y22 */
static void to_a_peer_that_never_answered_nothing_is_sent_twice(void **state)
{
	const uint64_t resend = 4096ull << 16; /* the default time-out */
	struct weft_roce_close c = {.begin = 77, .give_up = 7 * resend};

	(void)state;
	assert_false(weft_roce_close_over(&c, 78));
	assert_true(weft_roce_close_over(&c, 77 + resend - 1));
	/* One that was heard, and does not answer, gets what the device does for it. */
	c.received = true;
	assert_false(weft_roce_close_over(&c, 77 + 6 * resend));
}

/* An end of the model below. Times in us. */
struct closer {
	struct weft_roce_close c;
	bool bye_sent, gone, bye_queued;
	uint64_t close_at, polls_at, bye_at, ack_at;
};

static uint64_t draw(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

static void closer_poll(struct closer *me, uint64_t now, uint32_t *seed)
{
	/*
	 * The completion is seen; the acknowledgement leaves a moment later, if the queue pair
	 * lives then.
	 */
	if (me->bye_queued && me->c.seen_at == 0)
		me->c.seen_at = now * 1000;
	if (!me->bye_sent && (now >= me->close_at || me->c.seen_at != 0)) {
		me->bye_sent = true;
		me->c.begin = now * 1000;
		me->c.give_up = (now + 1900000) * 1000;
		me->bye_at = now + 1 + draw(seed, 200);
	}
	if (me->ack_at != 0 && now >= me->ack_at && me->c.acked_at == 0)
		me->c.acked_at = now * 1000;
	me->gone = me->bye_sent && weft_roce_close_over(&me->c, now * 1000);
}

/*
 * What the device does on its own: deliver, acknowledge, or nothing for a queue pair that has gone.
 */
static void closer_device(struct closer *me, struct closer *peer, uint64_t now, uint32_t *seed,
			  uint64_t *ack_leaves)
{
	if (me->gone)
		return;
	if (me->bye_at != 0 && now >= me->bye_at && !peer->gone && !peer->bye_queued) {
		peer->bye_queued = true;
		*ack_leaves = now + draw(seed, 300);
	}
	if (*ack_leaves != 0 && now >= *ack_leaves && me->ack_at == 0 && !peer->gone)
		me->ack_at = now + 1;
}

/* @behaviour Y22 */
static void no_end_waits_for_one_that_has_left(void **state)
{
	uint32_t seed = 1;
	unsigned int round, k;
	uint64_t now;

	(void)state;
	for (round = 0; round < 300; round++) {
		struct closer e[2] = {{.c.received = true}, {.c.received = true}};
		uint64_t ack[2] = {0, 0};

		e[1].close_at = draw(&seed, 2) ? draw(&seed, 400) : 1000000000;
		for (now = 1; !e[0].gone || !e[1].gone; now++) {
			for (k = 0; k < 2; k++) {
				closer_device(&e[k], &e[!k], now, &seed, &ack[k]);
				if (now < e[k].polls_at || e[k].gone)
					continue;
				closer_poll(&e[k], now, &seed);
				e[k].polls_at = now + 1 + draw(&seed, draw(&seed, 8) ? 5 : 3000);
			}
			/*
			 * Neither waits longer than a lost acknowledgement is worth: nothing is
			 * ever sent again.
			 */
			for (k = 0; k < 2; k++)
				if (e[k].bye_sent && !e[k].gone)
					assert_true(now * 1000 - e[k].c.begin < 268000000);
		}
	}
}

/* ------------------------------------------------------------------ batches */

/*
 * Peers come and go while the application keeps buffers: what is posted covers what is promised,
 * always.
 */
static void promises_never_exceed_the_shared_queue_whatever_is_kept(void **state)
{
	const uint32_t total = 2048;
	uint32_t window[1024], num = 0, promised = 0, kept = 0, seed = 1, refused = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint32_t left, w;

		seed = seed * 1664525u + 1013904223u;
		switch (seed >> 24 & 3) {
		case 0:
		case 1:
			left = weft_roce_left(total, promised, kept);
			w = num < 1024 ? weft_roce_window(64, left) : 0;
			refused += w == 0;
			if (w) {
				window[num++] = w;
				promised += w + 1;
			}
			break;
		case 2:
			if (num && seed >> 16 & 1)
				promised -= window[--num] + 1;
			break;
		case 3:
			/* As the driver allows: roce_srq_may_keep(). */
			if ((seed >> 8 & 7) && kept + promised + 64 < total)
				kept++;
			else
				kept -= kept > 0;
			break;
		}
		assert_true(promised + kept <= total);
	}
	assert_true(refused > 0);
}

static void the_first_goes_at_once_and_the_others_share_a_doorbell(void **state)
{
	struct weft_roce_sq sq = {.depth = 128};
	unsigned int rings = 0, i;

	(void)state;
	for (i = 0; i < 65; i++) {
		sq.head++;
		if (weft_roce_sq_ring(&sq, sq.head - sq.tail == 1)) {
			rings++;
			sq.posted = sq.head;
			assert_true(i == 0 || (i % WEFT_ROCE_BATCH) == 0);
		}
	}
	assert_int_equal(rings, 1 + 4);
}

static void places_are_bounded_and_some_stay_for_last_words(void **state)
{
	struct weft_roce_sq sq = {.depth = 8, .head = UINT32_MAX - 3, .tail = UINT32_MAX - 3};
	unsigned int n = 0;

	(void)state;
	while (weft_roce_sq_room(&sq, 2)) {
		sq.head++;
		n++;
	}
	assert_int_equal(n, 6);
	assert_true(weft_roce_sq_room(&sq, 1));
	sq.head++;
	assert_true(weft_roce_sq_room(&sq, 0));
	sq.head++;
	assert_false(weft_roce_sq_room(&sq, 0));
}

static void a_completion_completes_all_before_it(void **state)
{
	struct weft_roce_sq sq = {.depth = 8, .head = 12, .posted = 10, .tail = 5};

	(void)state;
	assert_int_equal(weft_roce_sq_complete(&sq, 5), 1);
	assert_int_equal(weft_roce_sq_complete(&sq, 9), 5);
	/* Not handed over, over already, from nowhere. */
	assert_int_equal(weft_roce_sq_complete(&sq, 10), 0);
	assert_int_equal(weft_roce_sq_complete(&sq, 4), 0);
	assert_int_equal(weft_roce_sq_complete(&sq, 1000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_bounds_what_is_under_way),
		cmocka_unit_test(counts_may_come_twice_and_late_but_not_early),
		cmocka_unit_test(counts_in_the_word_may_be_as_old_as_they_like),
		cmocka_unit_test(counts_wrap),
		cmocka_unit_test(a_stream_never_stops_and_never_overruns),
		cmocka_unit_test(the_peer_is_notified_before_it_must_stop),
		cmocka_unit_test(windows_shrink_so_that_many_peers_fit),
		cmocka_unit_test(an_end_leaves_at_once_only_when_both_have_confirmed),
		cmocka_unit_test(to_a_peer_that_never_answered_nothing_is_sent_twice),
		cmocka_unit_test(no_end_waits_for_one_that_has_left),
		cmocka_unit_test(promises_never_exceed_the_shared_queue_whatever_is_kept),
		cmocka_unit_test(the_first_goes_at_once_and_the_others_share_a_doorbell),
		cmocka_unit_test(places_are_bounded_and_some_stay_for_last_words),
		cmocka_unit_test(a_completion_completes_all_before_it),
	};

	return cmocka_run_group_tests_name("roce flow", tests, NULL, NULL);
}
