/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load of lanes, by figures that the test sets: windows, measured rates, and which of several
 * lanes gets the next piece of an operation.
 */

#include "mock/msg_util.h"
#include "msg/transmit.h"

#define US 1000ull
#define MS 1000000ull
#define RATE 1e9 /* bytes/s of each lane: a byte takes 1 ns */
#define PIECE 4096u

static struct pair p;
static struct weft_msg_ep *me;

/* @p n equal lanes, long after the start. */
static void open_lanes(unsigned int n)
{
	static struct pair_lane_params lanes[PAIR_LANES];

	for (unsigned int i = 0; i < n; i++)
		lanes[i] = (struct pair_lane_params){
			.max_short = 256, .max_bcopy = 4096, .bandwidth = RATE};
	pair_defaults(&p);
	p.conf.rndv_min_piece = 16384;
	p.conf.rndv_window = 16u << 20;
	pair_open(&p, n, lanes);
	p.w[0].now = 1000 * MS;
	me = p.ep[0].msg;
	assert_int_equal(weft_lane_loads(me), 0);
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int d = 0; d < 2; d++)
			weft_load_init(&me->lanes[i].load[d], (float)(1 / RATE), 0);
}

static void close_lanes(void)
{
	for (unsigned int i = 0; i < p.num_lanes; i++) {
		p.lane_ep[0][i].base.queued = 0;
		for (unsigned int d = 0; d < 2; d++)
			me->lanes[i].load[d].out = 0;
	}
	pair_close(&p);
}

static struct weft_lane_load *load(unsigned int lane)
{
	return &me->lanes[lane].load[WEFT_DIR_TX];
}

/* The lane has @p bytes of pieces outstanding, and delivered some just now. */
static void give(unsigned int lane, uint64_t bytes)
{
	load(lane)->out = bytes;
	load(lane)->moved = p.w[0].now;
}

static int pick(uint32_t lanes, uint32_t full, uint64_t left)
{
	const struct weft_pick what = {
		.lanes = lanes, .full = full, .dir = WEFT_DIR_TX, .len = PIECE, .left = left};

	return weft_stripe_pick(me, &what);
}

/* ---------------------------------------------------------------- which lane */

static void equal_lanes_take_turns(void **state)
{
	(void)state;
	open_lanes(3);
	for (unsigned int last = 0; last < 3; last++) {
		me->last_lane[WEFT_DIR_TX] = (uint8_t)last;
		assert_int_equal(pick(7, 0, PIECE), (last + 1) % 3);
		assert_int_equal(pick(1, 0, PIECE), 0);
		assert_int_equal(pick(4, 0, PIECE), 2);
	}
	assert_int_equal(pick(1, 1, PIECE), -1);
	assert_int_equal(pick(7, 7, PIECE), -1);
	close_lanes();
}

/* By pieces and messages that are outstanding, their rate, latency, and what is late. */
static void the_lane_that_is_done_first_gets_the_piece(void **state)
{
	const struct weft_pick back = {.lanes = 7, .dir = WEFT_DIR_RX, .len = PIECE, .left = PIECE};

	(void)state;
	open_lanes(3);
	give(0, 3000);
	give(1, 2000);
	give(2, 1000);
	assert_int_equal(pick(7, 0, PIECE), 2);
	assert_int_equal(pick(3, 0, PIECE), 1);
	p.lane_ep[0][2].base.queued = 1500;
	assert_int_equal(pick(7, 0, PIECE), 1);
	/* Messages of this end are no load of the other direction. */
	me->last_lane[WEFT_DIR_RX] = 1;
	assert_int_equal(weft_stripe_pick(me, &back), 2);
	load(1)->latency = 2e-6f;
	assert_int_equal(pick(7, 0, PIECE), 2);
	load(1)->latency = 0;
	load(1)->per_byte = 2e-9f;
	assert_int_equal(pick(7, 0, PIECE), 2);
	/* Late by more than 1 ms, its own bytes and two latencies. */
	give(2, 1000);
	p.lane_ep[0][2].base.queued = 0;
	load(2)->moved = p.w[0].now - MS - 1000;
	assert_int_equal(pick(7, 0, PIECE), 2);
	load(2)->moved = p.w[0].now - MS - 4000;
	assert_int_equal(pick(7, 0, PIECE), 0);
	load(2)->latency = 1e-6f;
	load(2)->moved = p.w[0].now - MS - 3000;
	assert_int_equal(pick(7, 0, PIECE), 2);
	close_lanes();
}

/* While the soonest lane is full: one that is done a little later, or before all the others. */
static void a_slow_lane_gets_no_last_piece(void **state)
{
	(void)state;
	open_lanes(3);
	/* Lane 0 takes 4.1 us: a quarter more and 50 us. */
	give(1, 51000);
	assert_int_equal(pick(3, 1, PIECE), 1);
	give(1, 52000);
	assert_int_equal(pick(3, 1, PIECE), -1);
	/* Lane 1 takes 1004 us, and all that is left as long over lane 0. */
	give(1, 1000000);
	assert_int_equal(pick(3, 1, 1000000), -1);
	assert_int_equal(pick(3, 1, 1010000), 1);
	give(0, 9000);
	assert_int_equal(pick(3, 1, 990000), -1);
	assert_int_equal(pick(3, 1, 1000000), 1);
	p.lane_ep[0][0].base.queued = 10000;
	assert_int_equal(pick(3, 1, 990000), 1);
	assert_int_equal(pick(3, 1, 980000), -1);
	/* Two lanes carry it in half of the time. */
	p.lane_ep[0][0].base.queued = 0;
	give(0, 0);
	assert_int_equal(pick(7, 5, 2000000), -1);
	assert_int_equal(pick(7, 5, 2020000), 1);
	close_lanes();
}

/* If each of the others is late, by the least of these times. */
static void a_slow_lane_helps_lanes_that_stall(void **state)
{
	(void)state;
	open_lanes(3);
	give(0, 1000);
	load(0)->moved = p.w[0].now - 3 * MS - 1000;
	give(1, 3000000);
	assert_int_equal(pick(3, 1, 900000), -1);
	assert_int_equal(pick(3, 1, 1100000), 1);
	/* Lane 2 is not late. */
	assert_int_equal(pick(7, 5, 2200000), -1);
	give(2, 1000);
	load(2)->moved = p.w[0].now - 3 * MS - 1000;
	assert_int_equal(pick(7, 5, 2200000), 1);
	assert_int_equal(pick(7, 5, 1800000), -1);
	close_lanes();
}

/* Its measured rate goes half of the way, and its window with it. */
static void a_slow_lane_is_tried_again(void **state)
{
	(void)state;
	open_lanes(2);
	load(1)->rate.rate = RATE / 16;
	load(1)->rate.seen = p.w[0].now - WEFT_RATE_STALE;
	load(1)->per_byte = (float)(16 / RATE);
	pick(3, 0, PIECE);
	assert_true(load(1)->per_byte == (float)(16 / RATE));
	load(1)->window = 1;
	load(1)->rate.seen--;
	pick(3, 0, PIECE);
	assert_true(load(1)->per_byte == (float)(8 / RATE));
	assert_int_equal(load(1)->rate.seen, p.w[0].now);
	assert_true(load(1)->window >= 65536);
	close_lanes();
}

/* A quarter of the window, 256 KiB, the lane's share of the rest; and never less than a piece. */
static void the_length_of_a_part(void **state)
{
	(void)state;
	open_lanes(2);
	load(0)->window = 400000;
	assert_int_equal(weft_stripe_part(me, 3, WEFT_DIR_TX, 0, 10000000), 100000);
	load(0)->window = 4000000;
	assert_int_equal(weft_stripe_part(me, 3, WEFT_DIR_TX, 0, 10000000), 256u << 10);
	assert_in_range(weft_stripe_part(me, 3, WEFT_DIR_TX, 0, 200000), 100000, 100002);
	assert_in_range(weft_stripe_part(me, 1, WEFT_DIR_TX, 0, 200000), 200000, 200002);
	load(0)->per_byte = (float)(4 / RATE);
	assert_in_range(weft_stripe_part(me, 3, WEFT_DIR_TX, 0, 200000), 40000, 40002);
	assert_int_equal(weft_stripe_part(me, 3, WEFT_DIR_TX, 0, 20000), 16384);
	load(0)->window = 40000;
	assert_int_equal(weft_stripe_part(me, 3, WEFT_DIR_TX, 0, 10000000), 16384);
	close_lanes();
}

/* ---------------------------------------------------------------- windows */

static bool near_bytes(uint64_t is, double due)
{
	return (double)is > due * 0.9999 - 2 && (double)is < due * 1.0001 + 2;
}

/* Two round trips and two latencies at the measured rate, and 1 ms of it, at most 1 MiB. */
static void a_window_is_what_the_lane_carries_in_its_round_trips(void **state)
{
	struct weft_lane_load l = {0};

	(void)state;
	weft_load_init(&l, (float)(1 / RATE), 5e-6f);
	weft_load_set_window(&l, 100000, UINT64_MAX, 0);
	assert_int_equal(l.min_rtt_ns, 100000);
	assert_int_equal(l.trip_ns, 100000);
	assert_true(near_bytes(l.window, 200000 + 10000 + 1000000));
	/* A longer one is no least one: that grows by a 1024th. */
	weft_load_set_window(&l, 900000, UINT64_MAX, 0);
	assert_int_equal(l.min_rtt_ns, 100097);
	assert_int_equal(l.trip_ns, 100097);
	/* Beyond 1 ms it counts instead of one of the two. */
	weft_load_set_window(&l, 2000000, UINT64_MAX, 0);
	assert_int_equal(l.min_rtt_ns, 100194);
	assert_int_equal(l.trip_ns, 2000000);
	assert_true(near_bytes(l.window, 100194 + 2000000 + 10000 + 1000000));
	weft_load_set_window(&l, 50000, UINT64_MAX, 0);
	assert_int_equal(l.min_rtt_ns, 50000);
	assert_int_equal(l.trip_ns, 50000);
	weft_load_set_window(&l, 0, UINT64_MAX, 0);
	assert_int_equal(l.min_rtt_ns, 50048);
	weft_load_set_window(&l, 50048, 70000, 0);
	assert_int_equal(l.window, 70000);
	weft_load_init(&l, 1e-10f, 0);
	weft_load_set_window(&l, 10000, UINT64_MAX, 0);
	assert_true(near_bytes(l.window, 200000 + (1 << 20)));
	weft_load_init(&l, 1e-6f, 0);
	weft_load_set_window(&l, 10000, UINT64_MAX, 0);
	assert_int_equal(l.window, 65536);
	weft_load_set_window(&l, 10000, 1000, 0);
	assert_int_equal(l.window, 1000);
}

/* All of a piece if nothing is outstanding or the window has room; else the room, if it counts. */
static void the_room_of_a_lane(void **state)
{
	struct weft_lane_load l = {.window = 100000};

	(void)state;
	weft_load_init(&l, (float)(1 / RATE), 0);
	l.window = 100000;
	assert_int_equal(weft_load_room(&l, 500000, 1000), 500000);
	weft_load_give(&l, 60000, 5 * MS);
	assert_int_equal(l.since, 5 * MS);
	assert_int_equal(l.moved, 5 * MS);
	assert_true(l.rate.running);
	weft_load_give(&l, 10000, 6 * MS);
	assert_int_equal(l.out, 70000);
	assert_int_equal(l.since, 5 * MS);
	assert_int_equal(weft_load_room(&l, 30000, 30001), 30000);
	assert_int_equal(weft_load_room(&l, 30001, 30000), 30000);
	assert_int_equal(weft_load_room(&l, 40000, 30001), 0);
	l.out = 100001;
	assert_int_equal(weft_load_room(&l, 1, 0), 0);
}

/* ---------------------------------------------------------------- rates */

static bool near_rate(double is, double due)
{
	return is > due * 0.9999 && is < due * 1.0001;
}

/* Pieces that came back within a round trip of the last ones did not keep the lane busy. */
static void only_a_busy_lane_measures_its_rate(void **state)
{
	struct weft_lane_load l = {0};

	(void)state;
	weft_load_init(&l, (float)(1 / RATE), 0);
	l.min_rtt_ns = l.trip_ns = 100000;
	weft_load_give(&l, 30000, MS);
	assert_false(weft_load_done(&l, 10000, true, MS, 2 * MS));
	assert_int_equal(l.out, 20000);
	assert_int_equal(l.moved, 2 * MS);
	assert_false(l.rate.limited);
	/* Given 100 us before the last ones came: it waited for others. */
	assert_false(weft_load_done(&l, 5000, true, 2 * MS - 100000, 2 * MS + 200000));
	assert_false(l.rate.limited);
	assert_false(weft_load_done(&l, 5000, true, 2 * MS + 100001, 2 * MS + 400000));
	assert_true(l.rate.limited);
	/* A mean of longer trips has single ones of a quarter more. */
	l.rate.limited = false;
	l.trip_ns = 400000;
	l.moved = 4 * MS;
	assert_false(weft_load_done(&l, 1000, true, 4 * MS - 500000, 2 * MS + 500000));
	assert_false(l.rate.limited);
	l.moved = 4 * MS;
	assert_false(weft_load_done(&l, 1000, true, 4 * MS - 499999, 2 * MS + 600000));
	assert_true(l.rate.limited);
	/* The last piece ends the span; with messages that wait for room it goes on. */
	l.full = true;
	weft_load_done(&l, 8000, false, MS, 2 * MS + 700000);
	assert_int_equal(l.out, 0);
	assert_true(l.rate.running);
	l.full = false;
	weft_load_give(&l, 1000, 2 * MS + 800000);
	weft_load_done(&l, 1000, false, 2 * MS + 800000, 2 * MS + 900000);
	assert_false(l.rate.running);
}

/* 3 MB in 1 ms after the first bytes: the first sample has half of the weight. */
static void a_measured_rate_changes_the_time_of_a_byte(void **state)
{
	struct weft_lane_load l = {0};

	(void)state;
	weft_load_init(&l, (float)(1 / RATE), 0);
	weft_load_give(&l, 4000000, MS);
	assert_false(weft_load_done(&l, 500000, true, MS, 2 * MS));
	assert_true(weft_load_done(&l, 3000000, true, MS, 3 * MS));
	assert_true(near_rate(l.rate.rate, 2e9));
	assert_true(near_rate((double)l.per_byte, 5e-10));
	/* Outstanding bytes stay when the lane gets other figures. */
	weft_load_init(&l, 1e-8f, 1e-6f);
	assert_int_equal(l.out, 500000);
	assert_true(l.rate.running);
	assert_true(l.per_byte == 1e-8f);
	l.out = 0;
	weft_load_init(&l, 1e-8f, 1e-6f);
	assert_false(l.rate.running);
}

/* While messages wait for room, what is acknowledged of them is measured, too. */
static void messages_that_wait_measure_the_lane(void **state)
{
	struct weft_lane_ep *lane_ep;
	struct weft_msg_lane *l;

	(void)state;
	open_lanes(2);
	l = &me->lanes[1];
	lane_ep = &p.lane_ep[0][1].base;
	weft_stripe_full(me, 1);
	assert_int_equal(me->tx_full, 0); /* nothing is in flight */
	lane_ep->queued = 50000;
	l->sent = 77;
	weft_stripe_full(me, 1);
	assert_int_equal(me->tx_full, 2);
	assert_int_equal(l->room, 50000);
	assert_int_equal(l->room_most, 50000);
	assert_int_equal(l->sent, 0);
	assert_int_equal(l->queued_seen, 50000);
	assert_true(load(1)->full && load(1)->rate.running);
	l->sent = 77;
	weft_stripe_full(me, 1);
	assert_int_equal(l->sent, 77);
	/* 77 more sent, 10077 acknowledged: the first bytes only begin the span. */
	lane_ep->queued = 40000;
	weft_stripe_measure(me);
	assert_int_equal(l->sent, 0);
	assert_int_equal(l->queued_seen, 40000);
	assert_int_equal(load(1)->rate.bytes, 0);
	weft_stripe_measure(me);
	p.w[0].now += MS / 2;
	l->sent = 1000000;
	lane_ep->queued = 40000 + 1000000;
	weft_stripe_measure(me);
	assert_int_equal(l->sent, 1000000); /* nothing has come */
	lane_ep->queued = 40000;
	weft_stripe_measure(me);
	assert_int_equal(load(1)->rate.bytes, 1000000);
	p.w[0].now += MS / 2;
	lane_ep->queued = 30000;
	weft_stripe_measure(me);
	assert_true(near_rate(load(1)->rate.rate, (RATE + 1.01e9) / 2));
	assert_true(load(1)->per_byte == (float)(1 / load(1)->rate.rate));
	weft_stripe_measure_end(me);
	assert_int_equal(me->tx_full, 0);
	assert_false(load(1)->full);
	assert_false(load(1)->rate.running);
	/* With pieces outstanding the lane goes on, and the span counts as limited. */
	lane_ep->queued = 50000;
	weft_stripe_full(me, 1);
	give(1, 1000);
	weft_stripe_measure_end(me);
	assert_true(load(1)->rate.running);
	assert_true(load(1)->rate.limited);
	close_lanes();
}

/* The room is the most that was in flight when a message found none, or later went beyond. */
static void the_room_for_messages_is_learned(void **state)
{
	struct weft_lane_ep *lane_ep;
	struct weft_msg_lane *l;

	(void)state;
	open_lanes(1);
	l = &me->lanes[0];
	l->room = l->room_most = 0;
	lane_ep = &p.lane_ep[0][0].base;
	lane_ep->queued = 5000;
	weft_lane_took(l, false);
	assert_int_equal(l->room, 0);
	weft_lane_took(l, true);
	assert_int_equal(l->room, 5000);
	lane_ep->queued = 6000;
	weft_lane_took(l, false);
	assert_int_equal(l->room, 6000);
	lane_ep->queued = 4000;
	weft_lane_took(l, false);
	assert_int_equal(l->room, 6000);
	weft_lane_took(l, true);
	assert_int_equal(l->room, 4000);
	assert_int_equal(l->room_most, 6000);
	lane_ep->queued = 0;
	weft_lane_took(l, true);
	assert_int_equal(l->room, 4000);
	close_lanes();
}

/* Loads take most of the memory of a lane, and messages need none of them. */
/* @behaviour T42 */
static void an_only_lane_has_loads_from_the_first_rendezvous_on(void **state)
{
	static uint8_t sbuf[100000], rbuf[100000];
	struct op s, r;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	me = p.ep[0].msg;
	p.lane_ep[0][0].base.queued = 5000;
	weft_stripe_full(me, 0);
	assert_int_equal(me->tx_full, 0);
	p.lane_ep[0][0].base.queued = 0;
	for (size_t length = 100; length <= sizeof(sbuf); length *= 1000) {
		assert_null(me->lanes[0].load);
		assert_null(p.ep[1].msg->lanes[0].load);
		op_recv(&r, &p.w[1], rbuf, length, 1, FULL);
		op_send(&s, &p.ep[0], sbuf, length, 1);
		pair_run(&p);
		op_end(&s, 0);
		op_end(&r, 0);
	}
	assert_non_null(p.ep[1].msg->lanes[0].load);
	assert_true(p.ep[1].msg->lanes[0].load[WEFT_DIR_RX].rate.nominal > 0);
	assert_int_equal(p.ep[1].msg->lanes[0].load[WEFT_DIR_RX].out, 0);
	pair_close(&p);
	pair_open(&p, 2, NULL);
	assert_non_null(p.ep[0].msg->lanes[1].load);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_lanes_take_turns),
		cmocka_unit_test(the_lane_that_is_done_first_gets_the_piece),
		cmocka_unit_test(a_slow_lane_gets_no_last_piece),
		cmocka_unit_test(a_slow_lane_helps_lanes_that_stall),
		cmocka_unit_test(a_slow_lane_is_tried_again),
		cmocka_unit_test(the_length_of_a_part),
		cmocka_unit_test(a_window_is_what_the_lane_carries_in_its_round_trips),
		cmocka_unit_test(the_room_of_a_lane),
		cmocka_unit_test(only_a_busy_lane_measures_its_rate),
		cmocka_unit_test(a_measured_rate_changes_the_time_of_a_byte),
		cmocka_unit_test(messages_that_wait_measure_the_lane),
		cmocka_unit_test(the_room_for_messages_is_learned),
		cmocka_unit_test(an_only_lane_has_loads_from_the_first_rendezvous_on),
	};

	return cmocka_run_group_tests_name("load of lanes", tests, NULL, NULL);
}
