/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The raw-DPDK lane engine between two ifaces: what lane.h promises of messages, below the protocol
 * layer.
 */

#include "engine/iface.h"
#include "mock/raw_util.h"
#include "mock/rounds.h"

static void connects_and_reports_it(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 1);
	pair_connect(&pair);
	assert_int_equal(A->ups, 1);
	assert_int_equal(B->ups, 1);
	assert_true(B->accepted->passive);
	assert_null(B->accepted->user);
	assert_int_equal(A->lane_ep->max_msg, B->accepted->max_msg);
	pair_close(&pair);
}

static void first_message_leaves_at_once_and_others_share_a_frame(void **state)
{
	uint64_t frames;

	(void)state;
	pair_open(&pair, NULL, 2);
	pair_connect(&pair);
	frames = pair_counter(A, RAW_TX_DATA);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(pair_send(A, A->lane_ep, i, 8), 0);
	assert_int_equal(pair_counter(A, RAW_TX_DATA) - frames, 1);
	pair_run(&pair, 10000, NULL);
	assert_int_equal(pair_counter(A, RAW_TX_DATA) - frames, 2);
	assert_int_equal(B->messages, 50);
	assert_int_equal(B->bad, 0);
	pair_close(&pair);
}

static void delivers_all_sizes(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 3);
	pair_connect(&pair);
	stream(3000, A->lane_ep->max_msg - 8, 1000000000);
	assert_int_equal(pair_counter(A, RAW_TX_FAST) + pair_counter(A, RAW_TX_RTO), 0);
	assert_int_equal(pair_send(A, A->lane_ep, 0, A->lane_ep->max_msg - 7), -EMSGSIZE);
	pair_close(&pair);
}

static void survives_loss_duplication_and_reordering(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= test_rounds(20); seed++) {
		struct pair_params pp = {.first_seq = 0xffffffffu - 700,
					 .paths = (uint8_t)(1 + seed % 4)};

		pair_open(&pair, &pp, seed);
		for (int i = 0; i < 2; i++) {
			pair.end[i].wire.loss = 0.02;
			pair.end[i].wire.dup = 0.02;
			pair.end[i].wire.reorder = 0.05;
		}
		pair_connect(&pair);
		stream(2000, 3000, 10000000000ull);
		pair_close(&pair);
	}
}

static void survives_heavy_loss(void **state)
{
	struct pair_params pp = {.first_seq = 0xfffffff0u};

	(void)state;
	pair_open(&pair, &pp, 7);
	A->wire.loss = 0.4;
	B->wire.loss = 0.4;
	pair_connect(&pair);
	stream(500, 8000, 100000000000ull);
	pair_close(&pair);
}

static void corrupt_frames_are_dropped_with_crc32c(void **state)
{
	struct pair_params pp = {.csum = WEFT_CSUM_CRC32C};

	(void)state;
	pair_open(&pair, &pp, 8);
	A->wire.corrupt = 0.05;
	B->wire.corrupt = 0.05;
	pair_connect(&pair);
	stream(3000, 4000, 10000000000ull);
	assert_true(pair_counter(B, RAW_DROP_BAD_CSUM) > 0);
	pair_close(&pair);
}

/* How many of 100 messages arrive when the NIC says so of their frames. */
static uint64_t arrive(uint64_t verdict, double corrupt)
{
	struct pair_params pp = {.csum = WEFT_CSUM_UDP, .nic_csum = true, .cc = WEFT_CC_FIXED};
	uint64_t messages;

	pair_open(&pair, &pp, 8);
	pair_connect(&pair);
	B->rx_verdict = verdict;
	A->wire.corrupt = corrupt;
	for (uint32_t i = 0; i < 100; i++)
		pair_send(A, A->lane_ep, i, 1000);
	pair_run(&pair, 200000000, NULL);
	messages = B->messages;
	assert_int_equal(B->bad, 0);
	assert_true(messages == 100 || pair_counter(B, RAW_DROP_BAD_CSUM) > 0);
	pair_close(&pair);
	return messages;
}

/*
 * GOOD, and NONE as virtio says of what has not left memory, are believed; UNKNOWN is checked here.
 */
static void the_nics_result_of_a_checksum_counts(void **state)
{
	(void)state;
	assert_int_equal(arrive(RTE_MBUF_F_RX_L4_CKSUM_GOOD, 0), 100);
	assert_int_equal(arrive(RTE_MBUF_F_RX_L4_CKSUM_NONE, 0), 100);
	assert_int_equal(arrive(RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN, 0), 100);
	assert_int_equal(arrive(RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN, 0.2), 100);
	assert_int_equal(arrive(RTE_MBUF_F_RX_L4_CKSUM_BAD, 0), 0);
	assert_int_equal(arrive(RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_BAD, 0), 0);
}

static void works_on_ethertype_and_vlan(void **state)
{
	struct pair_params pp = {.raw_ethertype = true, .vlan = 7};

	(void)state;
	pair_open(&pair, &pp, 9);
	pair_connect(&pair);
	stream(500, 5000, 1000000000);
	pair_close(&pair);
	pp = (struct pair_params){.vlan = 9, .csum = WEFT_CSUM_UDP};
	pair_open(&pair, &pp, 9);
	pair_connect(&pair);
	stream(500, 5000, 1000000000);
	pair_close(&pair);
}

static void kept_buffers_never_stop_acknowledgements(void **state)
{
	struct pair_params pp = {.bufs = 1023, .rx_depth = 128};

	(void)state;
	pair_open(&pair, &pp, 23);
	pair_connect(&pair);
	B->keep = true;
	stream(2000, 8000, 1000000000);
	assert_true(B->kept_count > 100);
	assert_true(pair_counter(B, RAW_RX_COPY_ONLY) > 0);
	pair_close(&pair);
}

static void full_tx_ring_is_an_answer(void **state)
{
	uint32_t n = 0;

	(void)state;
	pair_open(&pair, NULL, 24);
	pair_connect(&pair);
	A->wire.full = true;
	while (pair_send(A, A->lane_ep, n, 8000) == 0)
		n++;
	assert_true(n > 1 && n < 1000);
	A->wire.full = false;
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, n);
	assert_int_equal(pair_counter(A, RAW_TX_RTO), 0);
	pair_close(&pair);
}

static void ping_pong(struct pair_end *e, struct weft_lane_ep *lane_ep, const void *data,
		      size_t len)
{
	(void)len;
	if (e->messages < 1000)
		assert_int_equal(e->iface->ops->am_short(lane_ep, 5, data, 8, NULL, 0), 0);
}

static void acknowledgements_ride_on_answers(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 28);
	pair_connect(&pair);
	A->on_message = ping_pong;
	B->on_message = ping_pong;
	pair_send(A, A->lane_ep, 0, 0);
	pair_run(&pair, 20000000, NULL);
	assert_true(A->messages >= 999);
	assert_true(pair_counter(A, RAW_TX_ACKS) < 20);
	assert_true(pair_counter(B, RAW_TX_ACKS) < 20);
	assert_int_equal(pair_counter(A, RAW_TX_FAST) + pair_counter(A, RAW_TX_PROBE) +
				 pair_counter(A, RAW_TX_RTO),
			 0);
	assert_in_range(A->lane_ep->rtt_ns, 1000, 20000);
	pair_close(&pair);
}

static uint64_t again(struct pair_end *e)
{
	return pair_counter(e, RAW_TX_FAST) + pair_counter(e, RAW_TX_PROBE) +
	       pair_counter(e, RAW_TX_RTO);
}

/* B has no core for 30 ms. */
static void pause_of_peer(bool network)
{
	struct pair_params pp = {.network = network};
	uint32_t n = 0;

	pair_open(&pair, &pp, 29);
	pair_connect(&pair);
	while (n < 10 && pair_send(A, A->lane_ep, n, 8000) == 0)
		n++;
	assert_true(n > 0);
	for (unsigned int us = 0; us < 30000; us++) {
		A->iface->ops->progress(A->iface, pair.now);
		A->iface->ops->tx_flush(A->iface);
		pair.now += 1000;
	}
	pair_run(&pair, 2000000, NULL);
	assert_int_equal(B->messages, n);
	assert_int_equal(B->bad, 0);
}

/*
 * @behaviour Y30: a descheduled peer gets no frame twice over a memory port; a frame that a
 * switch there dropped is retransmitted after one request
 */
static void peer_without_its_core_gets_no_frame_of_memory_twice(void **state)
{
	(void)state;
	pause_of_peer(false);
	assert_int_equal(again(A), 0);
	assert_int_equal(pair_counter(B, RAW_DROP_DUPLICATE), 0);
	assert_in_range(pair_counter(A, RAW_TX_QUERY), 3, 10);
	pair_close(&pair);

	pause_of_peer(true);
	assert_true(again(A) > 0);
	assert_int_equal(pair_counter(A, RAW_TX_QUERY), 0);
	pair_close(&pair);
}

static uint32_t last_lost(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)frame;
	from->wire.edit = NULL;
	return len > 4000 ? 0 : len;
}

/* A switch behind the ring had no room. */
/* @behaviour Y30 */
static void lost_tail_in_memory_comes_after_one_question(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 30);
	pair_connect(&pair);
	stream(100, 8000, 1000000000);
	pair_run(&pair, 1000000, NULL);
	A->wire.edit = last_lost;
	assert_int_equal(pair_send(A, A->lane_ep, 100, 8000), 0);
	pair_run(&pair, 600000, NULL);
	assert_int_equal(B->messages, 101);
	assert_int_equal(pair_counter(A, RAW_TX_QUERY), 1);
	assert_int_equal(pair_counter(A, RAW_TX_PROBE), 1);
	assert_int_equal(again(A), 1);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects_and_reports_it),
		cmocka_unit_test(first_message_leaves_at_once_and_others_share_a_frame),
		cmocka_unit_test(delivers_all_sizes),
		cmocka_unit_test(survives_loss_duplication_and_reordering),
		cmocka_unit_test(survives_heavy_loss),
		cmocka_unit_test(corrupt_frames_are_dropped_with_crc32c),
		cmocka_unit_test(the_nics_result_of_a_checksum_counts),
		cmocka_unit_test(works_on_ethertype_and_vlan),
		cmocka_unit_test(kept_buffers_never_stop_acknowledgements),
		cmocka_unit_test(full_tx_ring_is_an_answer),
		cmocka_unit_test(acknowledgements_ride_on_answers),
		cmocka_unit_test(peer_without_its_core_gets_no_frame_of_memory_twice),
		cmocka_unit_test(lost_tail_in_memory_comes_after_one_question),
	};

	return cmocka_run_group_tests_name("raw_engine", tests, NULL, NULL);
}
