/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC lane_eps that end while the device's thread connects them. The peer may have its own end up by
 * then, and something under way: it is reported, and no queue pair is destroyed that still answers,
 * for that loses buffers of the shared queue and lets the peer try in vain.
 */

#include "fake/roce_fake.h"

#define QPS "qps=2"

static struct weft_lane_iface *iface;
static struct weft_lane_ep *lane_ep;
static struct fake_qp *qp[2];

static int begin(void **state)
{
	int i;

	fake_setup(state);
	iface = fake_open(&weft_roce_driver, QPS);
	lane_ep = fake_lane_ep(iface);
	for (i = 0; i < 2; i++)
		qp[i] = fake_qp_of(lane_ep, (unsigned int)i);
	assert_int_equal(fake_connect(lane_ep), 0);
	return 0;
}

static int end(void **state)
{
	fake.answers = true;
	iface->ops->close(iface);
	/* What was posted and not used came back. */
	assert_int_equal(fake.alive, 0);
	return fake_teardown(state);
}

static void expect_states(enum ibv_qp_state state)
{
	assert_int_equal(qp[0]->state, state);
	assert_int_equal(qp[1]->state, state);
}

static void control_from_peer(uint8_t id)
{
	uint32_t imm = weft_roce_imm(WEFT_ROCE_IMM_CONTROL, id, 0);

	fake_message(qp[0], &imm, NULL, 0);
	fake_message(qp[1], &imm, NULL, 0);
}

static void bye_from_peer(void)
{
	control_from_peer(WEFT_ROCE_BYE);
}

/* ------------------------------------------------------------------ destroyed */

/*
 * @behaviour Y24: a RoCE lane that ends while it connects sends its final message or goes into the
 * error state; nothing waits for it
 */
static void destroyed_while_connecting_sends_its_last_message_when_it_can(void **state)
{
	(void)state;
	lane_ep->ops->ep_destroy(lane_ep);
	/* The thread takes its time; the queue pairs are its. */
	fake_turn(iface, 3000 * FAKE_MS);
	expect_states(IBV_QPS_INIT);
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake.up, 0);
	expect_states(IBV_QPS_RTS);
	assert_int_equal(qp[0]->byes + qp[1]->byes, 2);
	/* The peer, which has its end up, has heard it and says its own. */
	fake_complete(qp[0], IBV_WC_SUCCESS);
	fake_complete(qp[1], IBV_WC_SUCCESS);
	bye_from_peer();
	fake_turn(iface, FAKE_MS);
	fake_turn(iface, FAKE_MS);
	expect_states(IBV_QPS_ERR);
	assert_false(qp[0]->destroyed);
	/* What the device had comes back meanwhile. */
	fake_turn(iface, 5 * FAKE_MS);
	assert_false(qp[0]->destroyed);
	fake_turn(iface, 10 * FAKE_MS);
	assert_true(qp[0]->destroyed && qp[1]->destroyed);
}

/* @behaviour Y24 */
static void a_ping_that_crosses_the_end_is_no_last_message(void **state)
{
	(void)state;
	lane_ep->ops->ep_destroy(lane_ep);
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	fake_complete(qp[0], IBV_WC_SUCCESS);
	fake_complete(qp[1], IBV_WC_SUCCESS);
	control_from_peer(WEFT_ROCE_PING);
	fake_turn(iface, FAKE_MS);
	fake_turn(iface, FAKE_MS);
	expect_states(IBV_QPS_RTS);
	bye_from_peer();
	fake_turn(iface, FAKE_MS);
	fake_turn(iface, FAKE_MS);
	expect_states(IBV_QPS_ERR);
}

static void destroyed_while_connecting_to_a_peer_that_is_not_there_ends_soon(void **state)
{
	(void)state;
	lane_ep->ops->ep_destroy(lane_ep);
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	fake_turn(iface, WEFT_ROCE_LINGER_NS + FAKE_MS);
	expect_states(IBV_QPS_ERR);
	fake_turn(iface, 15 * FAKE_MS);
	assert_true(qp[0]->destroyed && qp[1]->destroyed);
}

/* @behaviour Y24 */
static void destroyed_while_connecting_without_answer_goes_into_the_error_state_first(void **state)
{
	(void)state;
	lane_ep->ops->ep_destroy(lane_ep);
	fake_turn(iface, 2000 * FAKE_MS);
	fake.connect_errno = ETIMEDOUT;
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	expect_states(IBV_QPS_ERR);
	assert_int_equal(qp[0]->byes + qp[1]->byes, 0);
	/* The time for what comes back counts from now. */
	assert_false(qp[0]->destroyed);
	fake_turn(iface, 15 * FAKE_MS);
	assert_true(qp[0]->destroyed);
	assert_int_equal(fake.up + fake.down + fake.gone, 0);
}

static void destroyed_after_the_thread_was_through_but_before_anybody_looked(void **state)
{
	(void)state;
	fake_jobs();
	expect_states(IBV_QPS_RTS);
	lane_ep->ops->ep_destroy(lane_ep);
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake.up, 0);
	assert_int_equal(qp[0]->byes + qp[1]->byes, 2);
}

/* ------------------------------------------------------------------ failed */

/* @behaviour Y24 */
static void a_device_that_fails_while_connecting_leaves_no_queue_pair_that_answers(void **state)
{
	(void)state;
	fake_event(IBV_EVENT_DEVICE_FATAL, 1);
	fake_turn(iface, 10 * FAKE_MS);
	assert_int_equal(fake.down, 1);
	assert_int_equal(fake.status, -ENODEV);
	expect_states(IBV_QPS_INIT);
	fake_jobs();
	expect_states(IBV_QPS_RTS);
	fake_turn(iface, FAKE_MS);
	expect_states(IBV_QPS_ERR);
	assert_int_equal(qp[0]->byes + qp[1]->byes, 0);
	assert_int_equal(fake.up, 0);
	assert_int_equal(fake.down, 1);
}

static void failed_and_destroyed_while_connecting_goes_into_the_error_state_too(void **state)
{
	(void)state;
	fake.destroys = true;
	fake_event(IBV_EVENT_DEVICE_FATAL, 1);
	fake_turn(iface, 10 * FAKE_MS);
	fake_turn(iface, 2000 * FAKE_MS);
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	expect_states(IBV_QPS_ERR);
	assert_false(qp[0]->destroyed);
	fake_turn(iface, 15 * FAKE_MS);
	assert_true(qp[0]->destroyed);
}

/* @behaviour Y24 */
static void a_peer_that_closes_before_we_are_up_gets_its_answer(void **state)
{
	(void)state;
	/*
	 * Its last words meet queue pairs that are ready already, while the thread is not known to
	 * be through.
	 */
	bye_from_peer();
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake.gone, 1);
	assert_int_equal(qp[0]->byes + qp[1]->byes, 0);
	fake_jobs();
	fake.answers = true;
	fake_turn(iface, FAKE_MS);
	assert_int_equal(qp[0]->byes + qp[1]->byes, 2);
	fake_turn(iface, 10 * FAKE_MS);
	fake_turn(iface, 10 * FAKE_MS);
	expect_states(IBV_QPS_ERR);
	assert_int_equal(fake.up, 0);
	/* Its owner hears it, and destroys it. */
	lane_ep->ops->ep_destroy(lane_ep);
	fake_turn(iface, 15 * FAKE_MS);
	assert_true(qp[0]->destroyed);
}

static void an_owner_that_destroys_at_once_does_not_cut_the_answer_off(void **state)
{
	(void)state;
	fake.destroys = true;
	bye_from_peer();
	fake_turn(iface, FAKE_MS);
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	assert_int_equal(qp[0]->byes + qp[1]->byes, 2);
	expect_states(IBV_QPS_RTS);
}

/* @behaviour Y24 */
static void closing_waits_for_a_thread_that_is_at_it(void **state)
{
	(void)state;
	/* end() closes the iface, and looks whether everything has come back. */
	fake.jobs_at = fake.now + 10000 * FAKE_MS;
}

/* ------------------------------------------------------------------ the usual */

static void an_attempt_that_fails_ends_with_a_sentence_in_the_error_state(void **state)
{
	(void)state;
	fake.connect_errno = ETIMEDOUT;
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake.down, 1);
	assert_int_equal(fake.status, -EHOSTUNREACH);
	assert_non_null(strstr(fake.text, "10.0.0.2"));
	expect_states(IBV_QPS_ERR);
}

static void closing_when_up_sends_the_last_message_and_leaves_when_both_have_confirmed(void **state)
{
	(void)state;
	fake_jobs();
	fake_turn(iface, FAKE_MS);
	assert_int_equal(fake.up, 1);
	assert_true(lane_ep->up);
	lane_ep->ops->ep_destroy(lane_ep);
	assert_int_equal(qp[0]->byes + qp[1]->byes, 2);
	fake_complete(qp[0], IBV_WC_SUCCESS);
	fake_complete(qp[1], IBV_WC_SUCCESS);
	bye_from_peer();
	fake_turn(iface, FAKE_MS);
	fake_turn(iface, FAKE_MS);
	expect_states(IBV_QPS_ERR);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		T(destroyed_while_connecting_sends_its_last_message_when_it_can),
		T(a_ping_that_crosses_the_end_is_no_last_message),
		T(destroyed_while_connecting_to_a_peer_that_is_not_there_ends_soon),
		T(destroyed_while_connecting_without_answer_goes_into_the_error_state_first),
		T(destroyed_after_the_thread_was_through_but_before_anybody_looked),
		T(a_device_that_fails_while_connecting_leaves_no_queue_pair_that_answers),
		T(failed_and_destroyed_while_connecting_goes_into_the_error_state_too),
		T(a_peer_that_closes_before_we_are_up_gets_its_answer),
		T(an_owner_that_destroys_at_once_does_not_cut_the_answer_off),
		T(closing_waits_for_a_thread_that_is_at_it),
		T(an_attempt_that_fails_ends_with_a_sentence_in_the_error_state),
		T(closing_when_up_sends_the_last_message_and_leaves_when_both_have_confirmed),
	};

	return cmocka_run_group_tests_name("RoCE, lane_eps that end while connecting", tests, NULL,
					   NULL);
}
