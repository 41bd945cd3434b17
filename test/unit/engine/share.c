/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers that connections of a raw lane share, to the frame: how many each may hold, when a silent
 * peer loses its share, and what is taken back.
 */

#include "engine/conn.h"
#include "engine/ep.h"
#include "engine/iface.h"
#include "engine/outstanding.h"
#include "mock/raw_util.h"

#define LEN 5000u

static struct raw_iface *iface;
static struct raw_tx *tx;

static void open_connected(uint64_t seed)
{
	pair_open(&pair, &pair_fixed, seed);
	pair_connect(&pair);
	pair_run(&pair, 10000000, NULL);
	iface = raw_iface_of(A->iface);
	tx = &raw_conn_of(A->lane_ep)->tx;
}

/* Frames of one message each, of which none arrives. */
static void lose_frames(struct weft_lane_ep *lane_ep, uint32_t from, uint32_t n)
{
	A->wire.blackhole = true;
	for (uint32_t i = from; i < from + n; i++) {
		assert_int_equal(pair_send(A, lane_ep, i, LEN), 0);
		A->iface->ops->tx_flush(A->iface);
	}
}

/* The peer has acknowledged nothing for long enough. */
static void stall(struct raw_tx *t)
{
	iface->live_clock += RAW_STALL_NS;
	t->round_at = iface->live_clock - RAW_STALL_NS;
	raw_share_stalled(iface, t, 0);
	assert_int_equal(t->win_frames, RAW_SHARE_MIN);
}

static uint64_t taken(void)
{
	return pair_counter(A, RAW_TX_TAKEN_BACK);
}

/* ---------------------------------------------------------------- shares */

static bool frame_allowed(uint32_t held, uint32_t mine)
{
	iface->share.tx_held = held;
	iface->share.pressed = false;
	if (raw_share_frame(iface, mine)) {
		assert_false(iface->share.pressed);
		return true;
	}
	assert_true(iface->share.pressed);
	return false;
}

static void a_connection_holds_four_times_the_free_frames_or_its_least_share(void **state)
{
	struct raw_share before;

	(void)state;
	open_connected(51);
	before = iface->share;
	iface->share.tx_held_max = 100;
	iface->share.tx_held_hard = 150;
	assert_true(frame_allowed(90, 39));
	assert_false(frame_allowed(90, 40));
	assert_true(frame_allowed(99, RAW_SHARE_MIN - 1));
	assert_false(frame_allowed(99, RAW_SHARE_MIN));
	assert_true(frame_allowed(100, RAW_SHARE_MIN - 1));
	assert_true(frame_allowed(149, RAW_SHARE_MIN - 1));
	assert_false(frame_allowed(150, 0));
	iface->share = before;
	pair_close(&pair);
}

static bool hdrs_allowed(uint32_t held, uint32_t mine, uint32_t n)
{
	struct raw_tx t = {.hdr_held = mine};

	iface->share.hdr_held = held;
	iface->share.pressed = false;
	if (raw_share_hdrs(iface, &t, n)) {
		assert_false(iface->share.pressed);
		return true;
	}
	assert_true(iface->share.pressed);
	return false;
}

/* The least share has three for each of its frames. */
static void a_connection_holds_four_times_the_free_small_buffers(void **state)
{
	struct raw_share before;

	(void)state;
	open_connected(52);
	before = iface->share;
	iface->share.hdr_held_max = 100;
	iface->share.hdr_held_hard = 150;
	assert_true(hdrs_allowed(90, 39, 10));
	assert_false(hdrs_allowed(90, 40, 10));
	assert_false(hdrs_allowed(90, 39, 11));
	assert_true(hdrs_allowed(95, 22, 2));
	assert_true(hdrs_allowed(99, 22, 2));
	assert_false(hdrs_allowed(99, 23, 2));
	assert_true(hdrs_allowed(148, 22, 2));
	assert_false(hdrs_allowed(149, 22, 2));
	iface->share = before;
	pair_close(&pair);
}

/* ---------------------------------------------------------------- stalled connections */

/* For 10 ms and two round trips. Each acknowledged frame returns one, and the last one ends it. */
static void a_silent_peer_keeps_the_least_share(void **state)
{
	const uint32_t rtt = RAW_STALL_NS;
	uint32_t whole;

	(void)state;
	open_connected(53);
	whole = tx->win_whole;
	assert_true(whole > 2 * RAW_SHARE_MIN);
	assert_int_equal(tx->win_frames, whole);
	iface->live_clock += 3 * RAW_STALL_NS;
	tx->round_at = iface->live_clock - RAW_STALL_NS + 1;
	raw_share_stalled(iface, tx, 0);
	assert_int_equal(tx->win_frames, whole);
	tx->round_at = iface->live_clock - 2 * rtt + 1;
	raw_share_stalled(iface, tx, rtt);
	assert_int_equal(tx->win_frames, whole);
	assert_true(TAILQ_EMPTY(&iface->share.stalled));
	tx->round_at--;
	raw_share_stalled(iface, tx, rtt);
	assert_int_equal(tx->win_frames, RAW_SHARE_MIN);
	assert_ptr_equal(TAILQ_FIRST(&iface->share.stalled), tx);
	raw_share_stalled(iface, tx, rtt);
	assert_int_equal(pair_counter(A, RAW_TX_STALLED), 1);
	assert_null(TAILQ_NEXT(tx, stall_link));

	raw_share_acked(iface, tx, 3);
	assert_int_equal(tx->win_frames, RAW_SHARE_MIN + 3);
	raw_share_acked(iface, tx, whole - RAW_SHARE_MIN - 4);
	assert_int_equal(tx->win_frames, whole - 1);
	assert_false(TAILQ_EMPTY(&iface->share.stalled));
	raw_share_acked(iface, tx, 5);
	assert_int_equal(tx->win_frames, whole);
	assert_true(TAILQ_EMPTY(&iface->share.stalled));
	raw_share_acked(iface, tx, 5);
	assert_int_equal(tx->win_frames, whole);

	/* A window of the least share has nothing to give. */
	tx->win_frames = tx->win_whole = RAW_SHARE_MIN;
	tx->round_at = 0;
	raw_share_stalled(iface, tx, 0);
	assert_true(TAILQ_EMPTY(&iface->share.stalled));
	tx->win_frames = tx->win_whole = whole;
	pair_close(&pair);
}

/* ---------------------------------------------------------------- taking back */

static bool all_40(struct pair *p)
{
	return p->end[1].messages == 40;
}

/* 32 frames in one call, over all connections that are stalled. All arrive in the end. */
static void frames_of_stalled_connections_are_taken_back_in_slices(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct weft_lane_ep *first, *other;
	uint32_t held, bytes;
	struct raw_tx *tx2;

	(void)state;
	open_connected(54);
	first = A->lane_ep;
	B->iface->ops->get_address(B->iface, addr);
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &other),
			 0);
	pair_run(&pair, 100000000, NULL);
	assert_true(other->up);
	tx2 = &raw_conn_of(other)->tx;
	lose_frames(first, 0, 20);
	lose_frames(other, 20, 20);
	assert_int_equal(raw_tx_outstanding(tx), 20);
	assert_int_equal(raw_tx_outstanding(tx2), 20);
	bytes = raw_slot(tx, tx->una)->m->pkt_len;
	held = iface->share.tx_held;
	assert_int_equal(held, 40);

	/* No connection is stalled. */
	iface->share.pressed = true;
	raw_share_take_back(iface);
	assert_false(iface->share.pressed);
	assert_int_equal(taken(), 0);
	stall(tx);
	stall(tx2);
	iface->share.pressed = true;
	raw_share_take_back(iface);
	assert_false(iface->share.pressed);
	assert_int_equal(taken(), 32);
	assert_int_equal(iface->share.tx_held, held - 32);
	assert_int_equal(iface->share.taken_back, 32ull * bytes);
	assert_true(raw_slot(tx, tx->next - 1)->taken_back);
	assert_true(raw_slot(tx2, tx2->una + 11)->taken_back);
	assert_false(raw_slot(tx2, tx2->una + 12)->taken_back);
	raw_share_take_back(iface);
	assert_int_equal(taken(), 40);
	raw_share_take_back(iface);
	assert_int_equal(taken(), 40);
	assert_int_equal(iface->share.tx_held, held - 40);

	A->wire.blackhole = false;
	assert_true(pair_run(&pair, 2000000000, all_40));
	assert_int_equal(B->bad, 0);
	pair_run(&pair, 100000000, NULL);
	assert_int_equal(iface->share.taken_back, 0);
	assert_int_equal(iface->share.tx_held, 0);
	assert_int_equal(tx->win_frames, RTE_MIN(RAW_SHARE_MIN + 20, tx->win_whole));
	A->iface->ops->ep_destroy(other);
	pair_close(&pair);
}

/* Beyond the limit frames stay in their buffers. Acknowledged ones are passed over. */
static void the_memory_of_frames_taken_back_has_a_limit(void **state)
{
	uint32_t bytes;

	(void)state;
	open_connected(55);
	lose_frames(A->lane_ep, 0, 20);
	bytes = raw_slot(tx, tx->una)->m->pkt_len;
	stall(tx);
	iface->share.taken_back_max = 3ull * bytes;
	raw_share_take_back(iface);
	assert_int_equal(taken(), 3);
	assert_int_equal(iface->share.taken_back, 3ull * bytes);
	raw_share_take_back(iface);
	assert_int_equal(taken(), 3);
	iface->share.taken_back_max = 5ull * bytes - 1;
	raw_share_take_back(iface);
	assert_int_equal(taken(), 4);
	iface->share.taken_back_max = 100ull * bytes;
	/* As if the peer had acknowledged the first frames: the search begins at the oldest one. */
	tx->take_next = tx->una - 5;
	raw_share_take_back(iface);
	assert_int_equal(taken(), 20);
	assert_int_equal(tx->take_next, tx->next);
	A->wire.blackhole = false;
	pair_run(&pair, 2000000000, NULL);
	assert_int_equal(B->messages, 20);
	assert_int_equal(B->bad, 0);
	assert_int_equal(iface->share.taken_back, 0);
	pair_close(&pair);
}

/* ---------------------------------------------------------------- a lane that is given up */

static uint32_t given;
static uint8_t given_number[256];

static void note(void *arg, uint8_t am_id, const void *data, size_t length,
		 struct weft_lane_comp *comp)
{
	uint32_t n;

	(void)arg;
	(void)am_id;
	assert_null(comp);
	assert_true(length >= sizeof(n));
	memcpy(&n, data, sizeof(n));
	assert_true(n < sizeof(given_number));
	given_number[n]++;
	given++;
}

/* The peer's state has a bit for each frame behind the first missing one, in several words. */
static void messages_that_the_peer_lacks_are_given_back(void **state)
{
	const uint32_t last = 2 * 64 - 1; /* of two words */
	uint8_t own[WEFT_LANE_STATE_MAX];
	struct raw_rx_state peer = {0};
	uint32_t una;

	(void)state;
	open_connected(56);
	A->wire.blackhole = true;
	for (uint32_t i = 0; i < 140; i++) {
		assert_int_equal(pair_send(A, A->lane_ep, i, 100), 0);
		A->iface->ops->tx_flush(A->iface);
	}
	una = tx->una;
	assert_int_equal(raw_tx_outstanding(tx), 140);
	assert_true(A->iface->ops->ep_quiesce(A->lane_ep, own) > 0);
	/* 3 have arrived in order, then bits 0, 63, 64, 100 and the last one. */
	peer.next = weft_put32(una + 3);
	peer.words = weft_put16(2);
	peer.word[0] = weft_put64(1 | 1ull << 63);
	peer.word[1] = weft_put64(1 | 1ull << (100 - 64) | 1ull << (last - 64));
	memset(given_number, 0, sizeof(given_number));
	given = 0;
	assert_int_equal(A->iface->ops->ep_reap(A->lane_ep, &peer,
						offsetof(struct raw_rx_state, word) + 16, note,
						NULL),
			 0);
	assert_int_equal(given, 140 - 3 - 5);
	for (uint32_t i = 0; i < 140; i++) {
		bool arrived = i < 3 || i == 4 || i == 4 + 63 || i == 4 + 64 || i == 4 + 100 ||
			       i == 4 + last;

		assert_int_equal(given_number[i], !arrived);
	}
	pair_close(&pair);
}

/* ---------------------------------------------------------------- sleeping */

static uint64_t armed_for(void)
{
	uint64_t due = pair.now + 10000000;

	assert_int_equal(A->iface->ops->arm(A->iface, pair.now, &due), 0);
	A->iface->ops->disarm(A->iface);
	return due - pair.now;
}

/* What waits for the port, or for a buffer of another connection, is tried again after 50 us. */
static void work_that_wakes_no_owner_ends_its_sleep(void **state)
{
	struct raw_zc zc = {0};

	(void)state;
	open_connected(57);
	assert_true(armed_for() > 1000000);
	iface->share.pressed = true;
	assert_int_equal(armed_for(), 50000);
	iface->share.pressed = false;
	assert_true(armed_for() > 1000000);
	iface->txq.count = 1;
	assert_int_equal(armed_for(), 50000);
	iface->txq.count = 0;
	/* User memory that a NIC may still read: its port is queried at a time of its own. */
	iface->zc.poll_at = iface->now + 7000;
	assert_true(armed_for() > 1000000);
	LIST_INSERT_HEAD(&iface->zc.waiting, &zc, wait_link);
	assert_int_equal(armed_for(), 7000);
	iface->zc.poll_at = iface->now;
	assert_int_equal(armed_for(), 0);
	LIST_REMOVE(&zc, wait_link);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_holds_four_times_the_free_frames_or_its_least_share),
		cmocka_unit_test(a_connection_holds_four_times_the_free_small_buffers),
		cmocka_unit_test(a_silent_peer_keeps_the_least_share),
		cmocka_unit_test(frames_of_stalled_connections_are_taken_back_in_slices),
		cmocka_unit_test(the_memory_of_frames_taken_back_has_a_limit),
		cmocka_unit_test(messages_that_the_peer_lacks_are_given_back),
		cmocka_unit_test(work_that_wakes_no_owner_ends_its_sleep),
	};

	return cmocka_run_group_tests_name("shares of a raw lane", tests, NULL, NULL);
}
