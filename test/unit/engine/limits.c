/* SPDX-License-Identifier: BSD-3-Clause */
/* What holds frames of a raw lane back, as time: only what is held back counts, and to the ns. */

#include "engine/conn.h"
#include "engine/iface.h"
#include "mock/raw_util.h"

#define MS 1000000u

/* Send until the lane takes no more, at the time of a progress call. */
static uint32_t fill_window(void)
{
	uint32_t n = 0;
	int err;

	A->iface->ops->progress(A->iface, pair.now);
	while ((err = pair_send(A, A->lane_ep, n, 1000)) == 0)
		n++;
	assert_int_equal(err, -EAGAIN);
	return n;
}

/* A polls, B does not. */
static void alone(unsigned int calls)
{
	for (; calls > 0; calls--) {
		pair.now += MS;
		A->iface->ops->progress(A->iface, pair.now);
	}
}

static uint64_t total(void)
{
	uint64_t sum = 0;

	for (unsigned int i = RAW_TIME_CONGESTION; i <= RAW_TIME_BUFFERS; i++)
		sum += pair_counter(A, (enum raw_counter)i);
	return sum;
}

/* @behaviour T46: what holds a raw lane's frames back is counted as time, by its cause */
static void a_full_window_is_counted_until_it_opens(void **state)
{
	struct pair_params params = pair_fixed;
	uint64_t busy;

	(void)state;
	params.window = 16384;
	pair_open(&pair, &params, 41);
	pair_connect(&pair);
	pair_run(&pair, 10 * MS, NULL);
	busy = pair_counter(A, RAW_TIME_BUSY);
	assert_int_equal(total(), 0);
	fill_window();
	alone(10);
	assert_int_equal(pair_counter(A, RAW_TIME_WINDOW), 10 * MS);
	assert_int_equal(total(), 10 * MS);
	assert_int_equal(pair_counter(A, RAW_TIME_BUSY) - busy, 10 * MS);
	pair_run(&pair, 10 * MS, NULL);
	busy = pair_counter(A, RAW_TIME_BUSY);
	assert_int_equal(pair.end[0].iface->tx_open, 0);
	/* Nothing is outstanding: neither busy nor limited. */
	alone(10);
	assert_int_equal(pair_counter(A, RAW_TIME_BUSY), busy);
	assert_in_range(total(), 10 * MS, 12 * MS);
	pair_close(&pair);
}

/* @behaviour T46 */
static void congestion_control_is_another_cause(void **state)
{
	struct pair_params params = {.cc = WEFT_CC_DELAY, .network = true};

	(void)state;
	pair_open(&pair, &params, 42);
	pair_connect(&pair);
	pair_run(&pair, 10 * MS, NULL);
	fill_window();
	alone(1);
	assert_int_equal(pair_counter(A, RAW_TIME_CONGESTION), MS);
	assert_int_equal(total(), MS);
	pair_close(&pair);
}

/* @behaviour T46 */
static void a_full_port_is_another_cause(void **state)
{
	(void)state;
	pair_open(&pair, &pair_fixed, 43);
	pair_connect(&pair);
	pair_run(&pair, 10 * MS, NULL);
	A->wire.full = true;
	assert_int_equal(pair_send(A, A->lane_ep, 0, 1000), 0);
	alone(1); /* finds out */
	alone(5);
	assert_int_equal(pair_counter(A, RAW_TIME_PORT), 5 * MS);
	A->wire.full = false;
	alone(1);
	pair_run(&pair, 10 * MS, NULL);
	assert_int_equal(pair_counter(A, RAW_TIME_PORT), 6 * MS);
	pair_close(&pair);
}

/* @behaviour T46 */
static void a_connection_that_ends_limits_nothing(void **state)
{
	struct pair_params params = pair_fixed;
	struct raw_iface *iface;

	(void)state;
	params.window = 16384;
	pair_open(&pair, &params, 44);
	pair_connect(&pair);
	iface = raw_iface_of(A->iface);
	fill_window();
	assert_int_equal(iface->limits.bits, 1u << RAW_LIMIT_WINDOW);
	A->iface->ops->ep_destroy(A->lane_ep);
	A->lane_ep = NULL;
	assert_int_equal(iface->limits.bits, 0);
	assert_int_equal(iface->limits.num[RAW_LIMIT_WINDOW], 0);
	pair_close(&pair);
}

/* ---------------------------------------------------------------- gaps of the peer */

/* B polls again after @p ns, and acknowledges a message of A, which A receives. */
static void late(uint32_t number, uint64_t ns)
{
	assert_int_equal(pair_send(A, A->lane_ep, number, 8), 0);
	pair.now += ns;
	A->iface->ops->progress(A->iface, pair.now);
	pair_run(&pair, MS, NULL);
}

static bool near_ns(uint64_t ns, uint64_t due)
{
	return ns + 20000 > due && ns < due + 20000;
}

/* @behaviour T48: a peer reports for how long it did not poll, once each */
static void a_peer_reports_its_gaps(void **state)
{
	uint64_t before;

	(void)state;
	pair_open(&pair, &pair_fixed, 45);
	pair_connect(&pair);
	pair_run(&pair, 10 * MS, NULL);
	before = pair_counter(A, RAW_PEER_GAP_NS);
	for (uint32_t i = 0; i < 10; i++)
		late(i, 0);
	assert_int_equal(pair_counter(A, RAW_PEER_GAP_NS), before);
	late(10, 5 * MS);
	assert_true(near_ns(pair_counter(A, RAW_PEER_GAP_NS) - before, 5 * MS));
	/* Frames that repeat the block count nothing. */
	for (uint32_t i = 11; i < 21; i++)
		late(i, 0);
	assert_true(near_ns(pair_counter(A, RAW_PEER_GAP_NS) - before, 5 * MS));
	late(21, 600 * MS);
	late(22, 400 * MS);
	assert_true(near_ns(pair_counter(A, RAW_PEER_GAP_NS) - before, 1005 * MS));
	assert_int_equal(pair_counter(A, RAW_PEER_GAPS), 3);
	pair_close(&pair);
}

/* @behaviour T48 */
static void a_lost_report_is_covered_by_the_next(void **state)
{
	uint64_t before;

	(void)state;
	pair_open(&pair, &pair_fixed, 46);
	pair_connect(&pair);
	late(0, MS);
	before = pair_counter(A, RAW_PEER_GAP_NS);
	B->wire.blackhole = true;
	late(1, 3 * MS);
	assert_int_equal(pair_counter(A, RAW_PEER_GAP_NS), before);
	B->wire.blackhole = false;
	pair_run(&pair, 20 * MS, NULL);
	late(2, 2 * MS);
	assert_true(near_ns(pair_counter(A, RAW_PEER_GAP_NS) - before, 5 * MS));
	pair_close(&pair);
}

/* @behaviour T48 */
static void a_peer_that_reads_no_reports_gets_none(void **state)
{
	(void)state;
	pair_open(&pair, &pair_fixed, 47);
	pair_connect(&pair);
	raw_conn_of(B->accepted)->rx.gap_reads = false;
	late(0, 5 * MS);
	late(1, 5 * MS);
	assert_int_equal(pair_counter(A, RAW_PEER_GAPS), 0);
	assert_int_equal(B->messages, 2);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_window_is_counted_until_it_opens),
		cmocka_unit_test(congestion_control_is_another_cause),
		cmocka_unit_test(a_full_port_is_another_cause),
		cmocka_unit_test(a_connection_that_ends_limits_nothing),
		cmocka_unit_test(a_peer_reports_its_gaps),
		cmocka_unit_test(a_lost_report_is_covered_by_the_next),
		cmocka_unit_test(a_peer_that_reads_no_reports_gets_none),
	};

	return cmocka_run_group_tests_name("limits of a raw lane", tests, NULL, NULL);
}
