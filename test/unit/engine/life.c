/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How connections of the raw-DPDK engine live and end: pauses, silence, close, destruction.
 */

#include "engine/iface.h"
#include "frame/frame.h"
#include "mock/raw_util.h"

static void pause_of_ten_seconds_is_no_failure(void **state)
{
	(void)state;
	pair_open(&pair, &pair_fixed, 13);
	pair_connect(&pair);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(pair_send(A, A->lane_ep, 1000000 + i, 4000), 0);
	for (int i = 0; i < 100000; i++) {
		A->iface->ops->progress(A->iface, pair.now);
		pair.now += 100000;
	}
	assert_int_equal(A->downs, 0);
	assert_true(pair_counter(A, RAW_TX_RTO) < 400);
	stream(300, 4000, 1000000000);
	pair_close(&pair);
}

static void own_pause_is_no_failure(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 14);
	pair_connect(&pair);
	assert_int_equal(pair_send(A, A->lane_ep, 1000000, 4000), 0);
	pair.now += 60000000000ull;
	stream(300, 4000, 1000000000);
	assert_int_equal(A->downs + B->downs, 0);
	pair_close(&pair);
}

/* @behaviour X10 */
static void silent_peer_is_dead_after_the_timeout(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 15);
	pair_connect(&pair);
	B->wire.blackhole = true;
	for (int i = 0; i < 40000 && A->downs == 0; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	assert_int_equal(pair_send(A, A->lane_ep, 0, 8), -ETIMEDOUT);
	assert_in_range(pair.now, 5000000000ull + 29000000000ull, 5000000000ull + 34000000000ull);
	pair_close(&pair);
}

static bool a_is_down(struct pair *p)
{
	return p->end[0].downs > 0;
}

/* Of a frame that ends with the body of RESET and the checksum. */
static void put_crc(uint8_t *frame, uint32_t len)
{
	const uint32_t lane =
		(uint32_t)(sizeof(struct weft_frame_hdr) + sizeof(struct weft_frame_reset));
	weft_le32 crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, frame + len - 4 - lane, lane));

	memcpy(frame + len - 4, &crc, sizeof(crc));
}

/* What its helper sends for a killed process. */
/*
 * @behaviour R87: a killed process with lanes over packet sockets or AF_XDP is noticed within a
 * second; a stopped one is not lost, and a changed farewell ends nothing
 */
static void a_farewell_ends_the_connection_at_once(void **state)
{
	uint8_t frame[128];
	uint32_t len;

	(void)state;
	for (unsigned int type = 0; type < 2; type++) {
		const struct pair_params params = {.raw_ethertype = type, .vlan = 7};

		pair_open(&pair, &params, 117);
		pair_connect(&pair);
		stream(300, 4000, 1000000000);
		len = B->farewell_len;
		assert_true(len > 0);
		memcpy(frame, B->farewell, len);
		/* With other numbers, and a valid checksum. */
		for (unsigned int at = len - 12; at < len - 4; at++) {
			frame[at] ^= 0x40;
			put_crc(frame, len);
			pair_inject(B, frame, len);
			frame[at] ^= 0x40;
		}
		put_crc(frame, len);
		assert_memory_equal(frame, B->farewell, len);
		for (unsigned int i = 0; i < 1000; i++)
			pair_step(&pair, 1000);
		assert_int_equal(A->downs, 0);
		pair_inject(B, frame, len);
		assert_true(pair_run(&pair, 1000000, a_is_down));
		assert_int_equal(A->status, -ECONNRESET);
		assert_non_null(strstr(A->text, "its process has ended"));
		pair_close(&pair);
		assert_int_equal(A->farewell_len + B->farewell_len, 0);
	}
}

/* WEFT_PEER_TIMEOUT=inf: neither silence, nor a peer that is heard and acknowledges nothing. */
/*
 * @behaviour X19: WEFT_PEER_TIMEOUT=inf: no silence ends a connection
 * @behaviour R44
 */
static void no_time_limit_outlives_any_silence(void **state)
{
	const struct pair_params params = {.peer_timeout_ns = UINT64_MAX};

	(void)state;
	pair_open(&pair, &params, 115);
	pair_connect(&pair);
	B->wire.blackhole = true;
	assert_int_equal(pair_send(A, A->lane_ep, 1000000, 4000), 0);
	for (int i = 0; i < 400000; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(A->downs + B->downs, 0);
	B->wire.blackhole = false;
	stream(300, 4000, 1000000000);
	pair_close(&pair);
}

/* B's owner computes for two minutes; a thread of its process says so. */
/*
 * @behaviour R44: With WEFT_HEARTBEAT a process that computes for minutes does not count as dead,
 * and with WEFT_PEER_TIMEOUT=inf no silent process does
 * @behaviour X23
 */
static void a_peer_that_computes_is_waited_for(void **state)
{
	uint64_t seen = 0;

	(void)state;
	pair_open(&pair, &pair_fixed, 116);
	pair_connect(&pair);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(pair_send(A, A->lane_ep, 1000000 + i, 4000), 0);
	for (int i = 0; i < 120000; i++) {
		A->iface->ops->progress(A->iface, pair.now);
		pair.now += 1000000;
		if (i == 1000)
			seen = A->iface->ops->ep_seen(A->lane_ep);
		if (i % 5000 == 4999)
			B->iface->ops->beat(B->iface);
	}
	assert_int_equal(A->downs, 0);
	assert_int_equal(pair_counter(B, RAW_TX_ALIVE), 24);
	assert_int_equal(pair_counter(A, RAW_RX_ALIVE), 23); /* one is under way */
	/* It says nothing for this lane against one of another kind, which cannot answer either. */
	assert_int_equal(A->iface->ops->ep_seen(A->lane_ep), seen);
	stream(300, 4000, 1000000000);
	assert_true(A->iface->ops->ep_seen(A->lane_ep) > seen);
	/* Without it that is a death. */
	for (int i = 0; i < 40000 && A->downs == 0; i++) {
		A->iface->ops->progress(A->iface, pair.now);
		pair.now += 1000000;
	}
	assert_int_equal(A->downs, 1);
	pair_close(&pair);
}

static void silent_peer_behind_a_full_port_is_dead_too(void **state)
{
	uint32_t n = 0;

	(void)state;
	pair_open(&pair, &pair_fixed, 115);
	pair_connect(&pair);
	A->wire.full = true; /* as memif does when its peer has gone */
	B->wire.blackhole = true;
	for (int i = 0; i < 40000 && A->downs == 0; i++) {
		while (A->downs == 0 && pair_send(A, A->lane_ep, n, 8000) == 0)
			n++;
		pair_step(&pair, 1000000);
		B->queued = 0;
	}
	assert_in_range(n, RAW_TXQ, 2 * RAW_TXQ);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	A->wire.full = false;
	pair_close(&pair);
}

#define MS 1000000ull

static int suspect_status;

static void stop(struct pair_end *e, struct weft_lane_ep *lane_ep, int status)
{
	uint8_t state[WEFT_LANE_STATE_MAX];

	if (status == 0)
		return;
	suspect_status = status;
	assert_in_range(e->iface->ops->ep_quiesce(lane_ep, state), 8, sizeof(state));
}

/* Said in some tens of milliseconds, again while it is so, and not while the peer answers. */
static void sends_without_an_answer_make_a_lane_suspect(void **state)
{
	uint64_t seen, from;

	(void)state;
	pair_open(&pair, NULL, 23);
	pair_connect(&pair);
	pair_send(A, A->lane_ep, 0, 100);
	pair_run(&pair, 200 * MS, NULL);
	assert_int_equal(A->suspects, 0);
	seen = A->iface->ops->ep_seen(A->lane_ep);
	B->wire.blackhole = true;
	pair_send(A, A->lane_ep, 1, 100);
	from = pair.now;
	while (A->suspects == 0)
		pair_step(&pair, 100000);
	assert_in_range(pair.now - from, 20 * MS, 60 * MS);
	pair_run(&pair, 300 * MS, NULL);
	assert_in_range(A->suspects, 3, 60);
	assert_int_equal(A->iface->ops->ep_seen(A->lane_ep), seen);
	B->wire.blackhole = false;
	pair_run(&pair, 100 * MS, NULL);
	assert_true(A->iface->ops->ep_seen(A->lane_ep) > seen);
	assert_int_equal(A->downs, 0);
	pair_close(&pair);
}

/* One frame that requests an acknowledgement, which counts as a keepalive. */
static void a_check_of_a_lane_is_one_keepalive(void **state)
{
	uint64_t pings, seen;

	(void)state;
	pair_open(&pair, NULL, 25);
	pair_connect(&pair);
	pair_run(&pair, 10 * MS, NULL);
	pings = pair_counter(A, RAW_TX_PING);
	seen = A->iface->ops->ep_seen(A->lane_ep);
	A->iface->ops->ep_check(A->lane_ep);
	assert_int_equal(pair_counter(A, RAW_TX_PING), pings + 1);
	pair_run(&pair, 10 * MS, NULL);
	assert_true(A->iface->ops->ep_seen(A->lane_ep) > seen);
	pair_close(&pair);
}

/* A program that stops it inside the last warning gets no more events of it. */
static void a_lane_that_is_stopped_when_it_is_lost_does_not_fail(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 24);
	pair_connect(&pair);
	B->wire.blackhole = true;
	for (unsigned int ms = 0; ms < 29000; ms++)
		pair_step(&pair, MS);
	assert_in_range(A->suspects, 1, 60); /* idle: its keepalives have no answer */
	assert_int_equal(A->downs, 0);
	A->on_suspect = stop;
	for (unsigned int ms = 0; ms < 9000; ms++)
		pair_step(&pair, MS);
	assert_int_equal(A->downs, 0);
	assert_int_equal(suspect_status, -ETIMEDOUT);
	A->iface->ops->ep_destroy(A->lane_ep);
	A->lane_ep = NULL;
	A->on_suspect = NULL;
	pair_close(&pair);
}

static void destroy_at_second(struct pair_end *e, struct weft_lane_ep *lane_ep, const void *data,
			      size_t len)
{
	(void)data;
	(void)len;
	if (e->messages != 2)
		return;
	e->wire.blackhole = true; /* BYE is lost */
	lane_ep->ops->ep_destroy(lane_ep);
}

static void what_a_destroyed_ep_did_not_take_is_not_acknowledged(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};

	(void)state;
	pair_open(&pair, NULL, 117);
	pair_connect(&pair);
	/* One frame under way, so that the next two messages share one. */
	assert_int_equal(pair_send(A, A->lane_ep, 0, 8), 0);
	for (uint32_t i = 1; i < 3; i++)
		assert_int_equal(pair_send(A, A->lane_ep, i, 8), 0);
	done_count = 0;
	assert_int_equal(A->iface->ops->ep_flush(A->lane_ep, &comp), 0);
	B->on_message = destroy_at_second;
	while (B->messages < 2)
		pair_step(&pair, 100);
	B->wire.blackhole = false;
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, 2);
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, -ECONNRESET);
	pair_close(&pair);
}

static void flush_waits_for_acknowledgement(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};

	(void)state;
	pair_open(&pair, NULL, 20);
	pair_connect(&pair);
	done_count = 0;
	assert_int_equal(A->iface->ops->ep_flush(A->lane_ep, &comp), WEFT_LANE_IDLE);
	for (uint32_t i = 0; i < 5; i++)
		pair_send(A, A->lane_ep, i, 100);
	assert_int_equal(A->iface->ops->ep_flush(A->lane_ep, &comp), 0);
	assert_int_equal(done_count, 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 1);
	assert_int_equal(B->messages, 5);
	pair_close(&pair);
}

static void close_in_good_order_is_gone(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 21);
	pair_connect(&pair);
	stream(50, 4000, 100000000);
	A->iface->ops->ep_destroy(A->lane_ep);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->gones, 1);
	assert_int_equal(B->downs, 0);
	assert_int_equal(A->downs + A->gones, 0);
	B->iface->ops->ep_destroy(B->accepted);
	for (int i = 0; i < 3000; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(((struct raw_iface *)A->iface)->conn_count, 0);
	assert_int_equal(((struct raw_iface *)B->iface)->conn_count, 0);
	pair_close(&pair);
}

static void bye_may_overtake_data(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 29);
	pair_connect(&pair);
	pair_send(A, A->lane_ep, 0, 100);
	A->wire.delay_ns = 500000; /* the second message is slow */
	pair_send(A, A->lane_ep, 1, 8000);
	pair_step(&pair, 1000);
	A->wire.delay_ns = 2000;
	A->iface->ops->ep_destroy(A->lane_ep);
	pair_run(&pair, 300000, NULL);
	assert_int_equal(B->gones + B->downs, 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, 2);
	assert_int_equal(B->gones, 1);
	pair_close(&pair);
}

static void bye_before_lost_data_is_a_failure(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 30);
	pair_connect(&pair);
	A->wire.blackhole = true;
	pair_send(A, A->lane_ep, 0, 100);
	pair_step(&pair, 1000);
	A->wire.blackhole = false;
	A->iface->ops->ep_destroy(A->lane_ep);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->downs, 1);
	assert_int_equal(B->status, -ECONNRESET);
	assert_int_equal(B->gones, 0);
	pair_close(&pair);
}

static void closed_ep_still_acknowledges(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};

	(void)state;
	pair_open(&pair, NULL, 22);
	pair_connect(&pair);
	done_count = 0;
	/* B's acknowledgement is lost, B closes, A's repetition must still find it. */
	pair_send(A, A->lane_ep, 0, 100);
	assert_int_equal(A->iface->ops->ep_flush(A->lane_ep, &comp), 0);
	B->wire.blackhole = true;
	pair_run(&pair, 50000, NULL);
	assert_int_equal(B->messages, 1);
	B->iface->ops->ep_destroy(B->accepted);
	pair_run(&pair, 50000, NULL);
	B->wire.blackhole = false;
	pair_run(&pair, 100000000, NULL);
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, 0);
	assert_int_equal(A->gones, 1);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pause_of_ten_seconds_is_no_failure),
		cmocka_unit_test(own_pause_is_no_failure),
		cmocka_unit_test(sends_without_an_answer_make_a_lane_suspect),
		cmocka_unit_test(a_check_of_a_lane_is_one_keepalive),
		cmocka_unit_test(a_lane_that_is_stopped_when_it_is_lost_does_not_fail),
		cmocka_unit_test(silent_peer_is_dead_after_the_timeout),
		cmocka_unit_test(a_farewell_ends_the_connection_at_once),
		cmocka_unit_test(a_peer_that_computes_is_waited_for),
		cmocka_unit_test(no_time_limit_outlives_any_silence),
		cmocka_unit_test(silent_peer_behind_a_full_port_is_dead_too),
		cmocka_unit_test(what_a_destroyed_ep_did_not_take_is_not_acknowledged),
		cmocka_unit_test(flush_waits_for_acknowledgement),
		cmocka_unit_test(close_in_good_order_is_gone),
		cmocka_unit_test(bye_may_overtake_data),
		cmocka_unit_test(bye_before_lost_data_is_a_failure),
		cmocka_unit_test(closed_ep_still_acknowledges),
	};

	return cmocka_run_group_tests_name("raw_life", tests, NULL, NULL);
}
