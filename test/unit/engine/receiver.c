/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver's half of a raw connection, and the clocks of its interface: when acknowledgements
 * are due, which frames have an echo, and what a pause of the owner changes.
 */

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/liveness.h"
#include "mock/raw_util.h"

#define MS 1000000ull

static struct raw_iface *iface;
static struct raw_conn *c;

static void open_connected(uint64_t seed)
{
	pair_open(&pair, NULL, seed);
	pair_connect(&pair);
	pair_run(&pair, 100 * MS, NULL);
	iface = raw_iface_of(A->iface);
	c = raw_conn_of(A->lane_ep);
	assert_true(TAILQ_EMPTY(&iface->ack_list));
	assert_int_equal(c->rx.ack_state, RAW_ACK_NONE);
}

static void close_connected(void)
{
	raw_rx_acked(&c->rx);
	pair_close(&pair);
}

/* ---------------------------------------------------------------- acknowledgements */

static void deliver(uint32_t bytes, bool requested)
{
	raw_rx_delivered(iface, &c->rx, c->rx.win.next, bytes, requested);
}

/* A receiver without acknowledgements to send. */
static void fresh(void)
{
	raw_rx_acked(&c->rx);
	iface->acks_now = false;
	iface->acks_due = WEFT_NEVER;
}

/* After 8 frames, 64 KiB, on request, and while frames are missing; else 25 us later. */
static void an_acknowledgement_is_due_at_once_or_a_little_later(void **state)
{
	uint32_t first;

	(void)state;
	open_connected(101);
	fresh();
	iface->tx_clock += 1000;
	for (unsigned int i = 1; i < RAW_ACK_FRAMES; i++) {
		deliver(100, false);
		assert_int_equal(c->rx.ack_state, RAW_ACK_DELAYED);
		assert_int_equal(c->rx.ack_frames, i);
		assert_int_equal(c->rx.ack_bytes, 100 * i);
		assert_false(iface->acks_now);
	}
	assert_int_equal(c->rx.ack_due, iface->tx_clock + RAW_ACK_DELAY);
	assert_int_equal(iface->acks_due, c->rx.ack_due);
	assert_true(c->rx.on_ack_list);
	assert_ptr_equal(TAILQ_FIRST(&iface->ack_list), &c->rx);
	assert_null(TAILQ_NEXT(&c->rx, ack_link));
	iface->tx_clock += 500; /* the first frame counts */
	deliver(100, false);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NOW);
	assert_true(iface->acks_now);
	assert_int_equal(c->rx.ack_due, iface->tx_clock - 500 + RAW_ACK_DELAY);
	deliver(100, false);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NOW);
	fresh();
	assert_int_equal(c->rx.ack_frames + c->rx.ack_bytes, 0);
	deliver(RAW_ACK_BYTES - 1, false);
	assert_int_equal(c->rx.ack_state, RAW_ACK_DELAYED);
	deliver(1, false);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NOW);
	fresh();
	deliver(1, true);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NOW);
	fresh();
	first = c->rx.win.next;
	assert_int_equal(weft_rxwin_alloc(&c->rx.win), 0);
	raw_rx_delivered(iface, &c->rx, first + 1, 1, false);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NOW);
	assert_int_equal(c->rx.win.next, first);
	fresh();
	raw_rx_delivered(iface, &c->rx, first, 1, false);
	assert_int_equal(c->rx.ack_state, RAW_ACK_DELAYED);
	assert_int_equal(c->rx.win.next, first + 2);
	/* An earlier time of another receiver stays the next one. */
	fresh();
	iface->acks_due = 5;
	deliver(1, false);
	assert_int_equal(iface->acks_due, 5);
	close_connected();
}

/* Data carries it, unless there is more to report than the next missing sequence. */
static void data_carries_an_acknowledgement(void **state)
{
	uint32_t first;

	(void)state;
	open_connected(102);
	fresh();
	raw_rx_carried(iface, &c->rx);
	deliver(1, false);
	assert_true(iface->acks_due != WEFT_NEVER);
	raw_rx_carried(iface, &c->rx);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NONE);
	assert_true(iface->acks_due == WEFT_NEVER);
	assert_true(c->rx.on_ack_list);
	deliver(1, false);
	c->rx.mark_acks = 1;
	raw_rx_carried(iface, &c->rx);
	assert_int_equal(c->rx.ack_state, RAW_ACK_DELAYED);
	c->rx.mark_acks = 0;
	first = c->rx.win.next;
	assert_int_equal(weft_rxwin_alloc(&c->rx.win), 0);
	raw_rx_delivered(iface, &c->rx, first + 1, 1, false);
	raw_rx_carried(iface, &c->rx);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NOW);
	raw_rx_delivered(iface, &c->rx, first, 1, false);
	raw_rx_carried(iface, &c->rx);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NONE);
	/* Before a sleep, those that are delayed are due. */
	deliver(1, false);
	raw_rx_hurry(iface);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NOW);
	fresh();
	raw_rx_hurry(iface);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NONE);
	close_connected();
}

static uint64_t clock_now;

static uint64_t read_clock(void *arg)
{
	(void)arg;
	return clock_now;
}

/* Every 16th of the DATA frames, and each other frame; the wait in 64 ns, 16 bits at most. */
static void some_frames_have_an_echo(void **state)
{
	const struct weft_platform *before;
	struct weft_platform pf;
	struct weft_frame_hdr data = {.type = WEFT_FRAME_DATA}, ack = {.type = WEFT_FRAME_ACK};

	(void)state;
	open_connected(103);
	before = iface->platform;
	pf = *before;
	pf.now = read_clock;
	iface->platform = &pf;
	c->rx.ts_valid = true;
	c->rx.ts_echo = 0x12345678;
	c->rx.ts_at = 1000000;
	c->rx.echo_path = 3;
	c->rx.echo_wait = 0;
	clock_now = 1000000 + 640;
	raw_rx_stamp(iface, &c->rx, &data);
	assert_int_equal(weft_get16(data.ts_hold), 10);
	assert_int_equal(weft_get32(data.ts_echo), 0x12345678);
	assert_int_equal(weft_get32(data.ack), c->rx.win.next);
	assert_int_equal(data.echo_path, 3);
	for (unsigned int i = 1; i < RAW_ECHO_EVERY; i++) {
		raw_rx_stamp(iface, &c->rx, &data);
		assert_int_equal(weft_get16(data.ts_hold), WEFT_FRAME_NO_ECHO);
		raw_rx_stamp(iface, &c->rx, &ack);
		assert_int_equal(weft_get16(ack.ts_hold), 10);
	}
	clock_now += 63;
	raw_rx_stamp(iface, &c->rx, &data);
	assert_int_equal(weft_get16(data.ts_hold), 10);
	clock_now = 1000000 + 64ull * 0xfffe;
	assert_int_equal(raw_rx_hold(iface, &c->rx), 0xfffe);
	clock_now += 64;
	assert_int_equal(raw_rx_hold(iface, &c->rx), WEFT_FRAME_NO_ECHO);
	clock_now += 64;
	assert_int_equal(raw_rx_hold(iface, &c->rx), WEFT_FRAME_NO_ECHO);
	c->rx.ts_valid = false;
	raw_rx_stamp(iface, &c->rx, &ack);
	assert_int_equal(weft_get16(ack.ts_hold), WEFT_FRAME_NO_ECHO);
	iface->platform = before;
	close_connected();
}

/* ---------------------------------------------------------------- the peer's end */

static void a_heartbeat_is_no_frame_of_the_owner(void **state)
{
	struct raw_live live = {0};

	(void)state;
	assert_int_equal(raw_live_seen(&live, 100), 100);
	raw_live_beat(&live, 100, 200);
	assert_int_equal(raw_live_seen(&live, 200), 100);
	raw_live_beat(&live, 200, 300);
	assert_int_equal(raw_live_seen(&live, 300), 100);
	assert_int_equal(raw_live_seen(&live, 301), 301);
	raw_live_beat(&live, 301, 400);
	assert_int_equal(raw_live_seen(&live, 400), 301);
	/* Reports as suspect are 5 ms apart. */
	assert_true(raw_live_reports(&live, 0));
	raw_live_reported(&live, 1000);
	assert_false(raw_live_reports(&live, 1000 + 5 * MS - 1));
	assert_true(raw_live_reports(&live, 1000 + 5 * MS));
}

/* 2 ms for frames from before it; a repeated one begins no further wait. */
static void a_bye_waits_for_missing_frames(void **state)
{
	struct raw_bye bye = {0};

	(void)state;
	raw_bye_take(&bye, 50, 1, 1000);
	assert_true(raw_bye_waits(&bye, 49, 1000 + 2 * MS - 1));
	assert_false(raw_bye_waits(&bye, 50, 1000));
	assert_false(raw_bye_waits(&bye, 49, 1000 + 2 * MS));
	raw_bye_take(&bye, 60, 2, 5000);
	assert_int_equal(bye.seq, 50);
	assert_int_equal(bye.at, 1000 + 2 * MS);
	assert_int_equal(bye.path, 2);
}

/* ---------------------------------------------------------------- clocks */

struct clocks {
	uint64_t now, tx, live, gaps, total;
};

static struct clocks after(uint64_t step)
{
	struct clocks was = {iface->now, iface->tx_clock, iface->live_clock,
			     pair_counter(A, RAW_GAPS), iface->gaps.total};

	raw_clocks(iface, iface->now + step);
	return (struct clocks){iface->now - was.now, iface->tx_clock - was.tx,
			       iface->live_clock - was.live, pair_counter(A, RAW_GAPS) - was.gaps,
			       iface->gaps.total - was.total};
}

static void check_clocks(struct clocks is, struct clocks due)
{
	assert_int_equal(is.now, due.now);
	assert_int_equal(is.tx, due.tx);
	assert_int_equal(is.live, due.live);
	assert_int_equal(is.gaps, due.gaps);
	assert_int_equal(is.total, due.total);
}

/* Retransmission counts 2 ms of a pause, liveness 100 ms; each beyond 0.1 ms is noted. */
static void a_pause_counts_in_part(void **state)
{
	(void)state;
	open_connected(104);
	iface->slept = iface->sent_outside = false;
	check_clocks(after(0), (struct clocks){0, 0, 0, 0, 0});
	check_clocks(after(100000), (struct clocks){100000, 100000, 100000, 0, 0});
	assert_false(iface->gap);
	check_clocks(after(100001), (struct clocks){100001, 100001, 100001, 0, 100001});
	assert_false(iface->gap);
	assert_int_equal(iface->step, 100001);
	check_clocks(after(200000), (struct clocks){200000, 200000, 200000, 0, 200000});
	assert_false(iface->gap);
	check_clocks(after(200001), (struct clocks){200001, 200001, 200001, 1, 200001});
	assert_true(iface->gap);
	check_clocks(after(100), (struct clocks){100, 100, 100, 0, 0});
	assert_false(iface->gap);
	check_clocks(after(2 * MS), (struct clocks){2 * MS, 2 * MS, 2 * MS, 1, 2 * MS});
	check_clocks(after(3 * MS), (struct clocks){3 * MS, 2 * MS, 3 * MS, 1, 3 * MS});
	check_clocks(after(300 * MS), (struct clocks){300 * MS, 2 * MS, 100 * MS, 1, 300 * MS});
	check_clocks(after(5000 * MS), (struct clocks){5000 * MS, 2 * MS, 100 * MS, 1, 5000 * MS});
	assert_int_equal(iface->step, UINT32_MAX);
	/* The time of frames that were sent meanwhile is not known. */
	iface->sent_outside = true;
	check_clocks(after(3 * MS), (struct clocks){3 * MS, 100000, 3 * MS, 1, 3 * MS});
	assert_false(iface->sent_outside);
	iface->sent_outside = true;
	check_clocks(after(500), (struct clocks){500, 500, 500, 0, 0});
	assert_false(iface->sent_outside);
	/* A clock that goes back stands still. */
	check_clocks(after((uint64_t)-1000), (struct clocks){0, 0, 0, 0, 0});
	pair_close(&pair);
}

/* The time for which the owner meant to sleep counts in full. */
static void a_sleep_that_was_meant_counts(void **state)
{
	(void)state;
	open_connected(105);
	iface->sent_outside = false;
	iface->slept = true;
	iface->sleep_max = 500 * MS;
	check_clocks(after(500 * MS), (struct clocks){500 * MS, 500 * MS, 500 * MS, 0, 0});
	assert_false(iface->gap);
	check_clocks(after(500 * MS + 100000), (struct clocks){500 * MS + 100000, 500 * MS + 100000,
							       500 * MS + 100000, 0, 0});
	check_clocks(after(510 * MS), (struct clocks){510 * MS, 502 * MS, 510 * MS, 1, 10 * MS});
	check_clocks(after(700 * MS), (struct clocks){700 * MS, 502 * MS, 600 * MS, 1, 200 * MS});
	check_clocks(after(300 * MS), (struct clocks){300 * MS, 300 * MS, 300 * MS, 0, 0});
	iface->slept = false;
	pair_close(&pair);
}

/* Samples of frames that were sent since the last call err by up to the step. */
static void the_error_of_a_time_stamp_is_kept(void **state)
{
	uint32_t ts, slot;

	(void)state;
	open_connected(106);
	iface->sent = false;
	ts = (uint32_t)iface->now;
	slot = ts / 64 % RAW_STALE;
	iface->stale[slot].ts = ts + 1;
	after(700);
	assert_int_equal(iface->stale[slot].ts, ts + 1);
	iface->sent = true;
	ts = (uint32_t)iface->now;
	slot = ts / 64 % RAW_STALE;
	after(800);
	assert_int_equal(iface->stale[slot].ts, ts);
	assert_int_equal(iface->stale[slot].error, 800);
	assert_false(iface->sent);
	pair_close(&pair);
}

/* ---------------------------------------------------------------- gaps of the owner */

static struct weft_frame_progress block;

static bool take(unsigned int longest, unsigned int total)
{
	if (!raw_gap_take(c, &block))
		return false;
	assert_int_equal(weft_get16(block.longest), longest);
	assert_int_equal(weft_get16(block.total), total);
	return true;
}

/* Five frames have the longest of the gaps since the last block, in 16 us, and their sum. */
static void gaps_are_reported_five_times(void **state)
{
	(void)state;
	open_connected(107);
	iface->gaps = (struct raw_gaps){0};
	raw_gap_init(c, true);
	assert_false(take(0, 0));
	raw_gap_note(iface, 32000);
	raw_gap_note(iface, 79999);
	raw_gap_note(iface, 16000);
	for (unsigned int i = 0; i < 5; i++)
		assert_true(take(4, 7));
	assert_false(take(4, 7));
	raw_gap_note(iface, 16000);
	assert_true(take(1, 8));
	/* Of the newest 16, and one that is longer than the field. */
	raw_gap_note(iface, 10 * MS);
	for (unsigned int i = 0; i < 16; i++)
		raw_gap_note(iface, 16000);
	assert_true(take(1, 8 + 625 + 16));
	raw_gap_note(iface, 32000);
	for (unsigned int i = 0; i < 15; i++)
		raw_gap_note(iface, 16000);
	assert_true(take(2, 8 + 625 + 16 + 2 + 15));
	assert_int_equal(iface->gaps.late, 10 * MS);
	assert_int_equal(iface->gaps.stopped, 0);
	raw_gap_note(iface, 16000ull * 70000);
	assert_int_equal(iface->gaps.stopped, 16000ull * 70000);
	assert_true(raw_gap_take(c, &block));
	assert_int_equal(weft_get16(block.longest), 0xffff);
	raw_gap_init(c, false);
	raw_gap_note(iface, 16000);
	assert_false(raw_gap_take(c, &block));
	pair_close(&pair);
}

/* @return what the peer's block adds, in 16 us */
static uint64_t reported(uint16_t longest, uint16_t total)
{
	const struct weft_frame_progress b = {.longest = weft_put16(longest),
					      .total = weft_put16(total)};
	uint64_t ns = pair_counter(A, RAW_PEER_GAP_NS), gaps = pair_counter(A, RAW_PEER_GAPS);
	uint32_t gap = raw_gap_input(c, &b);

	ns = pair_counter(A, RAW_PEER_GAP_NS) - ns;
	assert_int_equal(pair_counter(A, RAW_PEER_GAPS) - gaps, ns != 0);
	assert_int_equal(gap, ns != 0 ? longest * 16000u : 0);
	assert_int_equal(ns % 16000, 0);
	return ns / 16000;
}

static void blocks_of_the_peer_count_once(void **state)
{
	(void)state;
	open_connected(108);
	c->gap.reported = false;
	c->gap.peer_total = 0;
	assert_int_equal(reported(30, 500), 30); /* the rest was before */
	assert_int_equal(reported(30, 500), 0);
	assert_int_equal(reported(20, 550), 50);
	assert_int_equal(reported(20, 500), 0); /* overtaken */
	assert_int_equal(c->gap.peer_total, 550);
	assert_int_equal(reported(10, 560), 10);
	/* The total wraps. */
	assert_int_equal(reported(5, 560 + 32767), 32767);
	assert_int_equal(reported(40000, (uint16_t)(560 + 32767 + 40000)), 40000);
	/* A gap that is longer than what the total can show. */
	c->gap.peer_total = 100;
	assert_int_equal(reported(50000, 110), 50000);
	c->gap.peer_total = 100;
	assert_int_equal(reported(40000 - 1, (uint16_t)(100 + 40000)), 40000);
	c->gap.peer_total = 100;
	assert_int_equal(reported(40000 - 2, (uint16_t)(100 + 40000)), 0);
	pair_close(&pair);
}

/* ---------------------------------------------------------------- times */

static void the_sooner_of_two_times_counts(void **state)
{
	uint64_t t;

	(void)state;
	open_connected(109);
	t = iface->tx_clock + MS;
	raw_deadlines_forget(c);
	iface->next_tx_clock = iface->next_live_clock = RAW_NEVER;
	assert_true(c->tx_clock_at == RAW_NEVER);
	raw_deadline_tx(c, t);
	assert_int_equal(c->tx_clock_at, t);
	assert_int_equal(iface->next_tx_clock, t);
	assert_int_equal(weft_deadlines_first(&iface->by_tx_clock), t);
	raw_deadline_tx(c, t + 1);
	assert_int_equal(c->tx_clock_at, t);
	raw_deadline_tx(c, t - 1);
	assert_int_equal(c->tx_clock_at, t - 1);
	assert_int_equal(iface->next_tx_clock, t - 1);
	assert_int_equal(weft_deadlines_first(&iface->by_tx_clock), t - 1);
	raw_deadline_live(c, t);
	assert_int_equal(iface->next_live_clock, t);
	assert_int_equal(weft_deadlines_first(&iface->by_live_clock), t);
	raw_deadlines_forget(c);
	assert_true(weft_deadlines_first(&iface->by_tx_clock) == WEFT_NEVER);
	assert_true(weft_deadlines_first(&iface->by_live_clock) == WEFT_NEVER);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_acknowledgement_is_due_at_once_or_a_little_later),
		cmocka_unit_test(data_carries_an_acknowledgement),
		cmocka_unit_test(some_frames_have_an_echo),
		cmocka_unit_test(a_heartbeat_is_no_frame_of_the_owner),
		cmocka_unit_test(a_bye_waits_for_missing_frames),
		cmocka_unit_test(a_pause_counts_in_part),
		cmocka_unit_test(a_sleep_that_was_meant_counts),
		cmocka_unit_test(the_error_of_a_time_stamp_is_kept),
		cmocka_unit_test(gaps_are_reported_five_times),
		cmocka_unit_test(blocks_of_the_peer_count_once),
		cmocka_unit_test(the_sooner_of_two_times_counts),
	};

	return cmocka_run_group_tests_name("receiver of a raw lane", tests, NULL, NULL);
}
