/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's half of congestion control, with an algorithm whose answers the test sets: limits,
 * gaps, requests for acknowledgement, and what the algorithm gets to know.
 */

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "engine/window.h"
#include "mock/raw_util.h"

#define MOST (1u << 20)

static struct raw_conn *c;
static uint32_t full; /* bytes of a full frame */

/* What the algorithm was called with, by path. */
static struct {
	unsigned int acks, timeouts, spurious, idles;
	struct weft_cc_ack ack;
	uint64_t lost;
	unsigned int tries;
} got[WEFT_FRAME_PATHS_MAX];

static uint32_t limit_is = MOST, gap_is;

static unsigned int path_of(const struct weft_cc *cc)
{
	return (unsigned int)(cc - c->tx.cc);
}

static void on_ack(struct weft_cc *cc, const struct weft_cc_ack *ack)
{
	got[path_of(cc)].acks++;
	got[path_of(cc)].ack = *ack;
	cc->limit = limit_is;
	cc->gap = gap_is;
}

static void on_loss(struct weft_cc *cc, uint32_t bytes, uint64_t now)
{
	assert_int_equal(now, c->iface->now);
	got[path_of(cc)].lost += bytes;
}

static void on_timeout(struct weft_cc *cc, unsigned int tries, uint64_t now)
{
	assert_int_equal(now, c->iface->now);
	got[path_of(cc)].timeouts++;
	got[path_of(cc)].tries = tries;
}

static void on_spurious(struct weft_cc *cc)
{
	got[path_of(cc)].spurious++;
}

static void on_idle(struct weft_cc *cc)
{
	got[path_of(cc)].idles++;
}

static const struct weft_cc_ops ops = {
	.name = "test",
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_timeout = on_timeout,
	.on_spurious = on_spurious,
	.on_idle = on_idle,
};

/* The limit and the gap of each path. */
static void set(uint32_t limit, uint32_t gap)
{
	for (unsigned int k = 0; k < c->path_count; k++) {
		c->tx.cc[k].limit = limit;
		c->tx.cc[k].gap = gap;
		c->tx.cc[k].conf.most = MOST;
	}
	raw_window_paths(c);
}

static void open_paths(uint8_t paths, uint64_t seed)
{
	const struct pair_params params = {
		.cc = WEFT_CC_DELAY, .network = true, .paths = paths, .csum = WEFT_CSUM_CRC32C};

	pair_open(&pair, &params, seed);
	pair_connect(&pair);
	pair_run(&pair, 10000000, NULL);
	c = raw_conn_of(A->lane_ep);
	assert_int_equal(c->path_count, paths);
	full = (uint32_t)c->frame_size - c->encap.len;
	for (unsigned int k = 0; k < paths; k++)
		c->tx.cc[k].ops = &ops;
	memset(got, 0, sizeof(got));
	limit_is = MOST;
	gap_is = 0;
	c->tx.cc_left = INT32_MAX;
	c->tx.inflight = 0;
	set(MOST, 0);
}

static void close_paths(void)
{
	c->tx.cc_lost = 0;
	c->tx.inflight = 0;
	c->tx.backoff = 0;
	c->tx.cc_quiet = 0;
	pair_close(&pair);
}

/* ---------------------------------------------------------------- limits */

/* A frame may leave as long as the last one still is within the limit. */
static void the_limit_counts_whole_frames(void **state)
{
	(void)state;
	open_paths(1, 81);
	assert_int_equal(c->tx.cc_limit, MOST);
	assert_int_equal(c->tx.win_bytes, MOST - full + 1);
	assert_int_equal(c->tx.cc_gap, 0);
	set(10 * full, 0);
	assert_int_equal(c->tx.win_bytes, 9 * full + 1);
	set(full - 1, 0);
	assert_int_equal(c->tx.win_bytes, 1);
	/* WEFT_WINDOW limits all paths together. */
	set(2 * MOST, 0);
	assert_int_equal(c->tx.cc_limit, MOST);
	/* Lost frames go first, and with a gap each frame is checked. */
	c->tx.cc_lost = 1;
	set(10 * full, 0);
	assert_int_equal(c->tx.win_bytes, 0);
	c->tx.cc_lost = 0;
	set(10 * full, 5000);
	assert_int_equal(c->tx.win_bytes, 0);
	assert_int_equal(c->tx.cc_gap, 5000);
	close_paths();
}

/* Of the paths in use. One without a gap sends at once. */
static void the_limits_of_paths_add_up(void **state)
{
	(void)state;
	open_paths(3, 82);
	set(10 * full, 0);
	assert_int_equal(c->tx.cc_limit, 30 * full);
	c->multi->bad = 4;
	raw_window_paths(c);
	assert_int_equal(c->tx.cc_limit, 20 * full);
	set(10 * full, 4000);
	assert_in_range(c->tx.cc_gap, 1999, 2001);
	c->tx.cc[1].gap = 0;
	raw_window_paths(c);
	assert_int_equal(c->tx.cc_gap, 0);
	c->tx.cc[2].gap = 0;
	c->tx.cc[1].gap = 4000;
	raw_window_paths(c);
	assert_in_range(c->tx.cc_gap, 1999, 2001);
	c->multi->bad = 0;
	c->tx.cc[0].limit = c->tx.cc[1].limit = c->tx.cc[2].limit = 2 * MOST;
	raw_window_paths(c);
	assert_int_equal(c->tx.cc_limit, 3 * MOST);
	close_paths();
}

static void a_frame_waits_for_room_and_for_its_time(void **state)
{
	uint64_t when = UINT64_MAX;

	(void)state;
	open_paths(1, 83);
	set(4 * full, 0);
	c->tx.cc_full = false;
	c->tx.inflight = 3 * full;
	assert_true(raw_window_paced(c));
	assert_true(c->tx.cc_full);
	assert_true(raw_window_again(&c->tx, 0, full, &when));
	assert_false(raw_window_again(&c->tx, 0, full + 1, &when));
	c->tx.inflight++;
	assert_false(raw_window_paced(c));
	assert_false(raw_window_again(&c->tx, 0, full, &when));
	/* One alone always may, however small the limit is. */
	set(1, 0);
	assert_false(raw_window_paced(c));
	c->tx.inflight = 0;
	assert_true(raw_window_paced(c));
	c->tx.cc_lost = 1;
	assert_false(raw_window_paced(c));
	c->tx.cc_lost = 0;
	/* With a gap not before its time, for which the timer is set. */
	set(4 * full, 5000);
	c->tx.cc_next = c->iface->tx_clock + 1;
	c->tx_clock_at = RAW_NEVER;
	assert_false(raw_window_paced(c));
	assert_int_equal(c->tx_clock_at, c->tx.cc_next);
	assert_false(raw_window_again(&c->tx, c->iface->tx_clock, full, &when));
	assert_int_equal(when, c->tx.cc_next);
	when = 5;
	assert_false(raw_window_again(&c->tx, c->iface->tx_clock, full, &when));
	assert_int_equal(when, 5);
	c->tx.cc_next--;
	assert_true(raw_window_paced(c));
	assert_true(raw_window_again(&c->tx, c->iface->tx_clock, full, &when));
	close_paths();
}

/* ---------------------------------------------------------------- requests */

/* Once for each quarter of a limit of less than 32 frames, and only if half of it is in use. */
static void a_small_limit_requests_acknowledgements(void **state)
{
	(void)state;
	open_paths(1, 84);
	set(32 * full, 0);
	assert_int_equal(c->path[0].ack_req_bytes, 0);
	assert_int_equal(raw_window_sent(c, 0, full), 0);
	set(32 * full - 1, 0);
	assert_int_equal(c->path[0].ack_req_bytes, (32 * full - 1) / 4);
	assert_true(c->tx.cc_left < (int32_t)(8 * full));
	c->tx.inflight = 16 * full;
	c->tx.cc_left = (int32_t)full;
	assert_int_equal(raw_window_sent(c, 0, full), 0);
	assert_int_equal(raw_window_sent(c, 0, full), WEFT_FRAME_F_ACK_REQ);
	assert_int_equal(c->tx.cc_left, (32 * full - 1) / 4 - 1);
	c->tx.cc_left = 0;
	c->tx.inflight = 16 * full - 1 - full;
	assert_int_equal(raw_window_sent(c, 0, full), 0);
	c->tx.cc_left = 0;
	c->tx.inflight++;
	assert_int_equal(raw_window_sent(c, 0, full), WEFT_FRAME_F_ACK_REQ);
	/* A quarter is a frame at least. */
	set(2 * full, 0);
	assert_int_equal(c->path[0].ack_req_bytes, full);
	/* With a gap each frame requests one. */
	set(2 * full, 5000);
	c->tx.cc_left = 0;
	c->tx.inflight = 0;
	assert_int_equal(raw_window_sent(c, 0, full), WEFT_FRAME_F_ACK_REQ);
	assert_int_equal(c->tx.cc_left, 0);
	close_paths();
}

static void each_path_requests_for_itself(void **state)
{
	(void)state;
	open_paths(2, 85);
	assert_true(c->path_watch & RAW_WATCH_MANY);
	set(8 * full, 0);
	assert_int_equal(c->path[1].ack_req_bytes, 2 * full);
	c->tx.cc_left = 0;
	assert_int_equal(raw_window_ack_req(c, 1, full), 0);
	assert_int_equal(raw_window_ack_req(c, 0, full), 0);
	assert_int_equal(raw_window_ack_req(c, 1, full - 1), 0);
	assert_int_equal(raw_window_ack_req(c, 1, 1), WEFT_FRAME_F_ACK_REQ);
	assert_int_equal(c->path[1].since_ack_req, 0);
	assert_int_equal(c->path[0].since_ack_req, full);
	c->path[0].ack_req_bytes = 0;
	assert_int_equal(raw_window_ack_req(c, 0, 4 * full), 0);
	close_paths();
}

/* A frame of half the length takes half of the gap. A late sender catches up by one frame. */
static void frames_of_a_small_window_are_paced(void **state)
{
	uint64_t now;

	(void)state;
	open_paths(1, 86);
	set(2 * full, 8000);
	now = c->iface->tx_clock;
	c->tx.cc_next = now;
	raw_window_ack_req(c, 0, full);
	assert_int_equal(c->tx.cc_next, now + 8000);
	raw_window_ack_req(c, 0, full / 2);
	assert_in_range(c->tx.cc_next, now + 11990, now + 12000);
	c->tx.cc_next = now - 5000;
	raw_window_ack_req(c, 0, full);
	assert_int_equal(c->tx.cc_next, now + 3000);
	c->tx.cc_next = now - 50000;
	raw_window_ack_req(c, 0, full);
	assert_int_equal(c->tx.cc_next, now);
	close_paths();
}

/* ---------------------------------------------------------------- what the algorithm gets */

/* As the bytes of full frames, and of no more than was acknowledged. The count of a peer wraps. */
static void marks_count_with_acknowledged_bytes(void **state)
{
	struct {
		struct weft_frame_ecn head;
		struct weft_frame_ecn_path path[2];
	} ecn = {.head.paths = weft_put16(1)};
	struct weft_frame_hdr hdr = {.echo_path = 0};
	uint64_t marked, bad;

	(void)state;
	open_paths(1, 87);
	marked = pair_counter(A, RAW_TX_MARKED);
	bad = pair_counter(A, RAW_DROP_BAD_ACK);
	c->path[0].echoed = 0xfffe;
	ecn.path[0].marked = weft_put16(1);
	raw_window_marks(c, &ecn.head);
	assert_int_equal(c->path[0].marks, 3);
	assert_int_equal(c->path[0].echoed, 1);
	ecn.path[0].marked = weft_put16(0); /* overtaken by the one before */
	raw_window_marks(c, &ecn.head);
	assert_int_equal(c->path[0].marks, 3);
	assert_int_equal(pair_counter(A, RAW_TX_MARKED), marked + 3);
	ecn.head.paths = weft_put16(2);
	ecn.path[0].marked = weft_put16(1 + 32767);
	ecn.path[1].path = 1;
	ecn.path[1].marked = weft_put16(9);
	raw_window_marks(c, &ecn.head);
	assert_int_equal(pair_counter(A, RAW_TX_MARKED), marked + 3 + 32767);
	assert_int_equal(c->path[0].marks, WEFT_FRAME_SEQS << 4); /* no more can be outstanding */
	assert_int_equal(pair_counter(A, RAW_DROP_BAD_ACK), bad + 1);
	ecn.head.paths = weft_put16(1);
	ecn.path[0].marked = weft_put16(0);
	raw_window_marks(c, &ecn.head);
	/* More than half of all numbers ahead: it is older. */
	assert_int_equal(pair_counter(A, RAW_TX_MARKED), marked + 3 + 32767);
	c->path[0].marks = 2;
	c->tx.cc_acked = 0;
	raw_window_acked(c, &hdr, 0, 0);
	assert_int_equal(got[0].ack.marked, 0);
	assert_int_equal(c->path[0].marks, 2);
	c->tx.cc_acked = 5 * full;
	raw_window_acked(c, &hdr, 0, 0);
	assert_int_equal(got[0].ack.marked, 2 * full);
	assert_int_equal(c->path[0].marks, 0);
	c->path[0].marks = 9;
	c->tx.cc_acked = 5 * full;
	raw_window_acked(c, &hdr, 0, 0);
	assert_int_equal(got[0].ack.marked, 5 * full);
	close_paths();
}

/* Limits change only when the algorithm has changed its own, or lost frames held them at 0. */
static void an_acknowledgement_reaches_the_algorithm_of_its_path(void **state)
{
	struct weft_frame_hdr hdr = {.echo_path = 0};

	(void)state;
	open_paths(1, 88);
	c->tx.cc_acked = 7000;
	c->tx.cc_full = true;
	limit_is = 20 * full;
	raw_window_acked(c, &hdr, 12345, 9000);
	assert_int_equal(got[0].acks, 1);
	assert_int_equal(got[0].ack.acked, 7000);
	assert_int_equal(got[0].ack.inflight, 9000);
	assert_int_equal(got[0].ack.rtt, 12345);
	assert_int_equal(got[0].ack.now, c->iface->now);
	assert_true(got[0].ack.limited);
	assert_int_equal(c->tx.cc_acked, 0);
	assert_false(c->tx.cc_full);
	assert_int_equal(c->tx.cc_limit, 20 * full);
	/* A sample of another path is not that of the path in use. */
	hdr.echo_path = 1;
	raw_window_acked(c, &hdr, 12345, 9000);
	assert_int_equal(got[0].ack.rtt, 0);
	assert_false(got[0].ack.limited);
	hdr.echo_path = 0;
	gap_is = 700;
	raw_window_acked(c, &hdr, 0, 0);
	assert_int_equal(c->tx.cc_gap, 700);
	gap_is = 0;
	raw_window_acked(c, &hdr, 0, 0);
	c->tx.cc_lost = 1;
	c->tx.win_bytes = 0;
	raw_window_acked(c, &hdr, 0, 0);
	assert_true(c->tx.cc_full);
	assert_int_equal(c->tx.win_bytes, 0);
	c->tx.cc_lost = 0;
	raw_window_acked(c, &hdr, 0, 0);
	assert_int_equal(c->tx.win_bytes, 19 * full + 1);
	close_paths();
}

static void each_path_gets_its_own_acknowledgements(void **state)
{
	struct weft_frame_hdr hdr = {.echo_path = 1};

	(void)state;
	open_paths(3, 89);
	c->path[0].acked = 1000;
	c->path[0].inflight = 500;
	c->path[2].marks = 1;
	raw_window_acked(c, &hdr, 777, 0);
	assert_int_equal(got[0].acks, 1);
	assert_int_equal(got[0].ack.acked, 1000);
	assert_int_equal(got[0].ack.inflight, 1500);
	assert_int_equal(got[0].ack.rtt, 0);
	assert_int_equal(c->path[0].acked, 0);
	assert_int_equal(got[1].acks, 1);
	assert_int_equal(got[1].ack.acked, 0);
	assert_int_equal(got[1].ack.rtt, 777);
	assert_int_equal(got[2].acks, 0);
	assert_int_equal(c->path[2].marks, 1);
	raw_window_acked(c, &hdr, 0, 0);
	assert_int_equal(got[0].acks + got[1].acks + got[2].acks, 2);
	c->path[0].inflight = 0;
	c->path[2].marks = 0;
	close_paths();
}

/* A lost frame is not in flight until it is sent again, or found. */
static void a_lost_frame_is_not_in_flight(void **state)
{
	struct raw_slot slot = {.bytes = 3000, .path = 1, .tries = 1};

	(void)state;
	open_paths(2, 90);
	c->tx.inflight = 10000;
	c->path[0].inflight = 3000;
	c->path[1].inflight = 7000;
	c->tx.cc_quiet = 5;
	c->tx.cc_full = false;
	raw_window_lost(c, &slot);
	assert_true(slot.lost && c->tx.cc_full);
	assert_int_equal(c->tx.cc_lost, 1);
	assert_int_equal(c->tx.cc_quiet, 0);
	assert_int_equal(c->tx.inflight, 7000);
	assert_int_equal(c->path[1].inflight, 4000);
	assert_int_equal(got[1].lost, 3000);
	assert_int_equal(got[0].lost, 0);
	assert_int_equal(c->tx.win_bytes, 0);
	/* Over the other path. */
	slot.path = 0;
	raw_window_resent(c, &slot, 1);
	assert_false(slot.lost);
	assert_int_equal(c->tx.cc_lost, 0);
	assert_int_equal(c->tx.inflight, 10000);
	assert_int_equal(c->path[0].inflight, 6000);
	assert_int_equal(c->path[1].inflight, 4000);
	assert_true(c->tx.win_bytes != 0);
	/* One that is in flight moves. */
	slot.path = 1;
	raw_window_resent(c, &slot, 0);
	assert_int_equal(c->tx.inflight, 10000);
	assert_int_equal(c->path[0].inflight, 3000);
	assert_int_equal(c->path[1].inflight, 7000);
	raw_window_lost(c, &slot);
	c->tx.cc_acked = 100;
	c->tx.cc_full = false;
	raw_window_found(&c->tx, &slot);
	assert_false(slot.lost);
	assert_true(c->tx.cc_full);
	assert_int_equal(c->tx.cc_lost, 0);
	assert_int_equal(c->tx.cc_acked, 3100);
	assert_int_equal(c->tx.inflight, 7000);
	c->tx.cc_lost = 4;
	raw_window_over(c);
	assert_int_equal(c->tx.cc_lost, 0);
	assert_int_equal(c->path[0].inflight + c->path[1].inflight, 0);
	c->tx.cc_acked = 0;
	close_paths();
}

/* With less than a quarter of the limit in flight, only the first one counts. */
static void timeouts_count_if_enough_is_in_flight(void **state)
{
	(void)state;
	open_paths(1, 91);
	set(40000, 0);
	c->tx.inflight = 9999;
	c->tx.backoff = 1;
	raw_window_timeout(c);
	assert_int_equal(c->tx.cc_quiet, c->iface->tx_clock);
	assert_int_equal(got[0].timeouts, 1);
	assert_int_equal(got[0].tries, 1);
	c->tx.cc_quiet = 77;
	c->tx.backoff = 2;
	raw_window_timeout(c);
	assert_int_equal(c->tx.cc_quiet, 77);
	assert_int_equal(got[0].timeouts, 1);
	assert_int_equal(got[0].idles, 1);
	c->tx.backoff = 3;
	raw_window_timeout(c);
	assert_int_equal(got[0].timeouts, 1);
	assert_int_equal(got[0].idles, 1);
	c->tx.inflight = 10000;
	raw_window_timeout(c);
	assert_int_equal(got[0].timeouts, 2);
	assert_int_equal(got[0].tries, 3);
	close_paths();
}

/* The oldest acknowledged frame that was sent once decides: before the silence, or after it. */
static void a_silence_that_lost_nothing_is_undone(void **state)
{
	(void)state;
	open_paths(1, 92);
	A->wire.blackhole = true;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(pair_send(A, A->lane_ep, i, 5000), 0);
		A->iface->ops->tx_flush(A->iface);
	}
	for (unsigned int i = 0; i < 3; i++)
		raw_slot(&c->tx, c->tx.una + i)->sent = 100 + i;
	c->tx.cc_quiet = 102;
	raw_window_quiet_over(c, c->tx.una);
	assert_int_equal(c->tx.cc_quiet, 102);
	raw_slot(&c->tx, c->tx.una)->tries = 2;
	raw_window_quiet_over(c, c->tx.una + 1);
	assert_int_equal(c->tx.cc_quiet, 102);
	assert_int_equal(got[0].spurious, 0);
	raw_window_quiet_over(c, c->tx.una + 2);
	assert_int_equal(c->tx.cc_quiet, 0);
	assert_int_equal(got[0].spurious, 1);
	c->tx.cc_quiet = 101;
	raw_window_quiet_over(c, c->tx.una + 3);
	assert_int_equal(c->tx.cc_quiet, 0);
	assert_int_equal(got[0].spurious, 1);
	raw_slot(&c->tx, c->tx.una)->tries = 1;
	close_paths();
}

/* ---------------------------------------------------------------- what holds frames back */

static unsigned int limit_now(void)
{
	unsigned int limit;

	raw_limit_begin(c);
	limit = c->tx.limit - 1u;
	assert_int_equal(c->iface->limits.bits, 1u << limit);
	assert_int_equal(c->iface->limits.num[limit], 1);
	raw_limit_begin(c); /* once for each connection */
	assert_int_equal(c->iface->limits.num[limit], 1);
	raw_limit_end(c);
	assert_int_equal(c->iface->limits.bits, 0);
	assert_int_equal(c->iface->limits.num[limit], 0);
	raw_limit_end(c);
	assert_int_equal(c->iface->limits.num[limit], 0);
	return limit;
}

static void the_reason_that_frames_wait_is_found(void **state)
{
	uint32_t frames, whole, next;

	(void)state;
	open_paths(1, 93);
	frames = c->tx.win_frames;
	whole = c->tx.win_whole;
	next = c->tx.next;
	set(MOST, 0);
	assert_int_equal(limit_now(), RAW_LIMIT_WINDOW);
	set(MOST - 1, 0);
	assert_int_equal(limit_now(), RAW_LIMIT_CONGESTION);
	c->tx.win_frames = c->tx.win_whole = 20;
	c->tx.next = c->tx.una + 19;
	assert_int_equal(limit_now(), RAW_LIMIT_CONGESTION);
	c->tx.next++;
	assert_int_equal(limit_now(), RAW_LIMIT_PEER);
	c->tx.win_whole++;
	assert_int_equal(limit_now(), RAW_LIMIT_SILENT);
	c->tx.win_frames = c->tx.win_whole = c->iface->share.tx_held_max;
	c->tx.next = c->tx.una + c->tx.win_whole;
	assert_int_equal(limit_now(), RAW_LIMIT_WINDOW);
	c->tx.next = next;
	c->tx.win_frames = frames;
	c->tx.win_whole = whole;
	close_paths();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_counts_whole_frames),
		cmocka_unit_test(the_limits_of_paths_add_up),
		cmocka_unit_test(a_frame_waits_for_room_and_for_its_time),
		cmocka_unit_test(a_small_limit_requests_acknowledgements),
		cmocka_unit_test(each_path_requests_for_itself),
		cmocka_unit_test(frames_of_a_small_window_are_paced),
		cmocka_unit_test(marks_count_with_acknowledged_bytes),
		cmocka_unit_test(an_acknowledgement_reaches_the_algorithm_of_its_path),
		cmocka_unit_test(each_path_gets_its_own_acknowledgements),
		cmocka_unit_test(a_lost_frame_is_not_in_flight),
		cmocka_unit_test(timeouts_count_if_enough_is_in_flight),
		cmocka_unit_test(a_silence_that_lost_nothing_is_undone),
		cmocka_unit_test(the_reason_that_frames_wait_is_found),
	};

	return cmocka_run_group_tests_name("window of a raw lane", tests, NULL, NULL);
}
