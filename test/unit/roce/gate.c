/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer that breaks the rules, or a device that does, brings about at an RC lane: the lane
 * ends with an error message, nothing of it reaches the protocol layer, and each reason has its
 * counter.
 */

#include <errno.h>

#include "fake/roce_fake.h"

static struct weft_lane_iface *iface;
static struct weft_lane_ep *lane_ep;
static struct fake_qp *qp[2];

static int begin(void **state)
{
	int i;

	fake_setup(state);
	iface = fake_open(&weft_roce_driver, "qps=2");
	lane_ep = fake_lane_ep(iface);
	for (i = 0; i < 2; i++)
		qp[i] = fake_qp_of(lane_ep, (unsigned int)i);
	assert_int_equal(fake_connect(lane_ep), 0);
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	assert_true(lane_ep->up);
	return 0;
}

static int end(void **state)
{
	fake.answers = true;
	iface->ops->close(iface);
	assert_int_equal(fake.alive, 0);
	return fake_teardown(state);
}

static void send_one(void)
{
	assert_int_equal(lane_ep->ops->am_short(lane_ep, 5, "12345678", 8, NULL, 0), 0);
}

/* The lane has ended for this reason, reported once. */
static void expect_end(const char *counter, const char *words)
{
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake.down, 1);
	assert_int_equal(fake_counter(iface, counter), 1);
	assert_int_equal(fake_counter(iface, "lanes.failed"), 1);
	assert_non_null(strstr(fake.text, "mlx5_0: "));
	assert_non_null(strstr(fake.text, "10.0.0.2"));
	assert_non_null(strstr(fake.text, words));
	assert_int_equal(qp[0]->state, IBV_QPS_ERR);
	assert_int_equal(qp[1]->state, IBV_QPS_ERR);
}

/*
 * @behaviour Y25: immediate data, counts, datagrams and addresses that break the rules: dropped,
 * each reason counted, the lane ends with an error message
 */
static void a_message_without_immediate_data_ends_the_lane(void **state)
{
	(void)state;
	fake_message(qp[0], NULL, "hello", 5);
	expect_end("drop.bad_immediate", "without immediate data");
	assert_int_equal(fake.got, 0);
}

/* @behaviour Y25, S12 */
static void an_unknown_control_message_ends_the_lane(void **state)
{
	uint32_t imm = weft_roce_imm(WEFT_ROCE_IMM_CONTROL, WEFT_ROCE_PING + 1, 0);

	(void)state;
	fake_message(qp[1], &imm, NULL, 0);
	expect_end("drop.bad_immediate", "control message");
}

/* @behaviour Y25 */
static void a_message_after_the_last_one_ends_the_lane(void **state)
{
	uint32_t bye = weft_roce_imm(WEFT_ROCE_IMM_CONTROL, WEFT_ROCE_BYE, 0);
	uint32_t imm = weft_roce_imm(0, 5, 0);

	(void)state;
	/* The other queue pair's is still to come, so the lane is not closed. */
	fake_message(qp[0], &bye, NULL, 0);
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake.gone + fake.down, 0);
	fake_message(qp[0], &imm, "hello", 5);
	expect_end("drop.bad_immediate", "after the last one");
	assert_int_equal(fake.got, 0);
}

/* Our counts can't go out any more, so the peer is to stop after its window. */
/* @behaviour Y25 */
static void more_messages_than_were_allowed_end_the_lane(void **state)
{
	uint32_t imm = weft_roce_imm(WEFT_ROCE_IMM_ACK_REQ, 5, 0);
	const struct weft_roce_credit *credit = &roce_lane_ep_of(lane_ep)->chans[0]->credit;
	unsigned int turns, i;

	(void)state;
	for (turns = 0; turns < 600 && fake.down == 0; turns++) {
		for (i = 0; i < 3; i++)
			fake_message(qp[0], &imm, "hello", 5);
		fake_turn(iface, FAKE_MS);
	}
	expect_end("drop.bad_immediate", "more messages than it was allowed");
	/* All that was reported and one window after it, no more. */
	assert_int_equal(credit->processed - credit->reported, credit->own_window);
	assert_int_equal(credit->processed, fake.got);
	assert_true(credit->reported > 0);
}

/* @behaviour Y25 */
static void a_count_of_messages_that_were_never_sent_ends_the_lane(void **state)
{
	uint32_t imm = weft_roce_imm(0, 5, 2);

	(void)state;
	send_one();
	fake_message(qp[0], &imm, "hello", 5);
	expect_end("drop.bad_count", "were not sent");
	assert_int_equal(fake.got, 0);
}

static void a_written_count_of_messages_that_were_never_sent_ends_the_lane(void **state)
{
	(void)state;
	send_one();
	*roce_lane_ep_of(lane_ep)->chans[0]->word = weft_roce_word(2);
	expect_end("drop.bad_count", "were not sent");
}

static void half_a_written_count_is_counted_and_waited_for(void **state)
{
	volatile struct weft_roce_word *word = roce_lane_ep_of(lane_ep)->chans[0]->word;
	struct weft_roce_word whole = weft_roce_word(1);

	(void)state;
	send_one();
	word->processed = whole.processed;
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake_counter(iface, "rx.torn_count"), 1);
	assert_int_equal(fake.down, 0);
	assert_int_not_equal(lane_ep->queued, 0);
	word->check = whole.check;
	fake_complete(qp[0], IBV_WC_SUCCESS);
	fake_turn(iface, FAKE_MS);
	assert_int_equal(lane_ep->queued, 0);
}

/* @behaviour Y25, S12 */
static void a_message_that_is_longer_than_its_buffer_ends_the_lane(void **state)
{
	uint32_t imm = weft_roce_imm(0, 5, 0);

	(void)state;
	fake_message(qp[0], &imm, "hello", 5);
	fake_spoil(IBV_WC_LOC_LEN_ERR);
	expect_end("drop.too_long", "");
	assert_int_equal(fake.got, 0);
}

static void what_comes_for_a_lane_that_is_over_is_dropped_and_counted(void **state)
{
	uint32_t imm = weft_roce_imm(0, 5, 0);

	(void)state;
	fake_message(qp[0], NULL, NULL, 0);
	fake_message(qp[0], &imm, "hello", 5);
	expect_end("drop.late", "");
	assert_int_equal(fake.got, 0);
}

static void a_completion_of_nothing_is_counted(void **state)
{
	(void)state;
	send_one();
	fake_complete(qp[0], IBV_WC_SUCCESS);
	fake_again();
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake_counter(iface, "drop.stray_completion"), 1);
	assert_int_equal(fake.down, 0);
}

/* @behaviour Y25 */
static void damaged_addresses_are_refused_and_counted(void **state)
{
	struct weft_lane_ep *other = fake_lane_ep(iface);
	uint8_t junk[WEFT_LANE_ADDR_MAX];

	(void)state;
	memset(junk, 0xee, sizeof(junk));
	assert_true(other->ops->ep_connect_ep(other, junk, sizeof(struct weft_roce_addr), junk,
					      sizeof(struct weft_roce_ep_addr)) < 0);
	assert_true(other->ops->ep_connect_ep(other, junk, 3, junk, 0) < 0);
	assert_int_equal(fake_counter(iface, "drop.bad_address"), 2);
	other->ops->ep_destroy(other);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		T(a_message_without_immediate_data_ends_the_lane),
		T(an_unknown_control_message_ends_the_lane),
		T(a_message_after_the_last_one_ends_the_lane),
		T(more_messages_than_were_allowed_end_the_lane),
		T(a_count_of_messages_that_were_never_sent_ends_the_lane),
		T(a_written_count_of_messages_that_were_never_sent_ends_the_lane),
		T(half_a_written_count_is_counted_and_waited_for),
		T(a_message_that_is_longer_than_its_buffer_ends_the_lane),
		T(what_comes_for_a_lane_that_is_over_is_dropped_and_counted),
		T(a_completion_of_nothing_is_counted),
		T(damaged_addresses_are_refused_and_counted),
	};

	weft_log_level = WEFT_LOG_ERROR;
	return cmocka_run_group_tests_name("RoCE, what breaks the rules", tests, NULL, NULL);
}
