/* SPDX-License-Identifier: BSD-3-Clause */
/* Credits, memory, windows, control before data: item E of the tag-matching list. */

#include "mock/msg_util.h"
#include "mock/rounds.h"

/*
 * @behaviour E4: idle resident memory; does not apply: a measure of whole processes and not of
 * behaviour; `devtools/bench.sh memory` takes it
 * @behaviour E9: completion-queue overrun; does not apply: there is no completion queue; requests
 * hold their own completion (the RoCE lane's queues: U91, E7)
 */

/*
 * @behaviour E1: 10^5 unmatched messages never block a later matched one
 * @behaviour E3: memory of unexpected messages: payload x 1.1 + 256 B each
 */
static void E1_E7_1e5_unmatched_messages_never_block_a_later_matched_one(void **state)
{
	const uint32_t n = test_rounds(100000);
	struct pair p;
	uint32_t got;
	struct op r;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t v = i;

		assert_in_range(weft_tag_send(&p.ep[0], &v, sizeof(v), i, NULL, NULL), 0, 1);
		if (i % 1000 == 999 || i + 1 == n)
			pair_run(&p);
	}
	assert_int_equal(p.w[1].msg->tag->messages.num, n);
	/* E3: payload x 1.1 + 256 bytes per message. */
	assert_true(p.w[1].msg->tag->messages.slot_bytes <= n * (256 - 24));
	op_recv(&r, &p.w[1], &got, sizeof(got), n, FULL);
	assert_int_equal(weft_tag_send(&p.ep[0], &n, sizeof(n), n, NULL, NULL), 0);
	pair_run(&p);
	op_end(&r, 0);
	assert_int_equal(got, n);
	for (uint32_t i = n; i-- > 0;) { /* received late, in reverse order */
		uint64_t v;

		assert_int_equal(weft_tag_recv(&p.w[1], NULL, &v, sizeof(v), i, FULL, NULL, NULL),
				 0);
		assert_int_equal(v, i);
	}
	pair_run(&p);
	pair_check_empty(&p);
	pair_close(&p);
}

static void flood(struct pair *p, size_t len, uint32_t n, uint64_t most)
{
	uint8_t *buf = malloc(len), *got = malloc(len);
	struct op *s = calloc(n, sizeof(*s));

	for (uint32_t i = 0; i < n; i++) {
		pattern_fill(3, 0, buf, len);
		op_send(&s[i], &p->ep[0], buf, len, i);
		pair_run(p);
		assert_true(p->w[1].msg->tag->messages.bytes <= most);
	}
	for (uint32_t i = n; i-- > 0;) {
		struct op r;

		op_recv(&r, &p->w[1], got, len, i, FULL);
		pair_run(p);
		op_end_recv(&r, got, len, i, 3);
	}
	pair_run(p);
	for (uint32_t i = 0; i < n; i++)
		op_end(&s[i], 0);
	free(s);
	free(buf);
	free(got);
}

/* @behaviour E2: unexpected bytes stay below the cap, beyond it RTS */
static void E2_unexpected_bytes_stay_below_the_peers_credit(void **state)
{
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.eager_credit = 100000;
	pair_open(&p, 2, NULL);
	flood(&p, 1000, 1000, 100000);
	flood(&p, 7000, 300, 100000);
	flood(&p, 20000, 30, 100000);
	flood(&p, 7000, 100, 100000); /* the credit has come back */
	assert_true(p.w[0].msg->count.no_eager_credit > 0);
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour E2 */
static void E2_credit_comes_back_and_eager_goes_on(void **state)
{
	static uint8_t buf[4000];
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.eager_credit = 50000;
	pair_open(&p, 1, NULL);
	for (unsigned int i = 0; i < test_rounds(5000); i++) {
		struct op s, r;

		op_recv(&r, &p.w[1], buf, sizeof(buf), 1, FULL);
		op_send(&s, &p.ep[0], buf, sizeof(buf), 1);
		pair_run(&p);
		op_end(&r, 0);
		op_end(&s, 0);
	}
	assert_int_equal(p.w[0].msg->count.no_eager_credit, 0);
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour E2 */
static void E2_a_repeated_answer_grants_nothing_more(void **state)
{
	struct weft_wire_credit c;
	uint64_t bytes, granted;
	uint32_t small;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.unexp_limit = 400000;
	p.conf.eager_credit = 1u << 20;
	pair_open_unconnected(&p, 1, NULL);
	weft_msg_ep_grant(&p.ep[1], &c);
	bytes = weft_get64(c.bytes);
	small = weft_get32(c.small);
	granted = p.w[1].msg->credit_bytes.granted;
	assert_int_equal(granted, bytes);
	assert_in_range(bytes, 4096, 400000 / 4);
	assert_in_range(small, 16, 400000 / 256);
	weft_msg_ep_grant(&p.ep[1], &c);
	assert_int_equal(weft_get64(c.bytes), bytes);
	assert_int_equal(weft_get32(c.small), small);
	assert_int_equal(p.w[1].msg->credit_bytes.granted, granted);
	weft_msg_ep_fini(&p.ep[1], -ECANCELED);
	assert_int_equal(p.w[1].msg->credit_bytes.granted, 0);
	assert_int_equal(p.w[1].msg->credit_msgs.granted, 0);
	pair_close(&p);
}

/*
 * Short or announced, it makes no difference: a message without credit waits, and nothing is lost.
 */
/* @behaviour E2 */
static void E2_messages_without_any_credit_wait_for_it(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];
	struct pair p;

	(void)state;
	for (int big = 0; big < 2; big++) {
		size_t len = big ? sizeof(sbuf) : 8;
		struct op s[6], r;

		pair_defaults(&p);
		pair_open(&p, 1, NULL);
		p.ep[0].msg->tx_small_end = p.ep[0].msg->tx_small + 2;
		pattern_fill(7, 0, sbuf, len);
		for (uint64_t i = 0; i < 6; i++)
			op_send(&s[i], &p.ep[0], sbuf, len, i);
		pair_progress(&p);
		assert_int_equal(p.num, 2);
		assert_true(TAILQ_EMPTY(&p.w[0].msg->ready)); /* and does not even look */
		/* CREDIT says what there is, whenever it comes. */
		p.ep[1].msg->rx_small_advertised--;
		weft_credit_send(p.ep[1].msg);
		for (uint64_t i = 0; i < 6; i++) {
			op_recv(&r, &p.w[1], rbuf, len, i, FULL);
			pair_run(&p);
			op_end_recv(&r, rbuf, len, i, 7);
			op_end(&s[i], 0);
		}
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/*
 * An honest sender of far more announcements than there is credit for: all are received, in the
 * end, and what is kept at a time is bounded.
 */
/* @behaviour E2 */
static void E2_announcements_are_bounded_and_none_is_lost(void **state)
{
	enum { N = 3000 };
	static uint8_t sbuf[2000], rbuf[2000];
	struct op *s = calloc(N, sizeof(*s)), r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.unexp_limit = 100000; /* 390 messages in all */
	p.conf.eager_credit = 4096;
	pair_open(&p, 2, NULL);
	pattern_fill(5, 0, sbuf, sizeof(sbuf));
	for (uint32_t i = 0; i < N; i++)
		op_send(&s[i], &p.ep[0], sbuf, sizeof(sbuf), i);
	pair_run(&p);
	assert_in_range(p.w[1].msg->tag->messages.num, 100, 100000 / 256);
	assert_int_equal(p.fail_status[1], 0);
	for (uint32_t i = 0; i < N; i++) {
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), i, FULL);
		pair_run(&p);
		op_end_recv(&r, rbuf, sizeof(rbuf), i, 5);
		op_end(&s[i], 0);
		assert_true(p.w[1].msg->tag->messages.num <= 100000 / 256 + 2);
	}
	free(s);
	pair_check_empty(&p);
	pair_close(&p);
}

/*
 * Any number of messages that nothing receives yet, behind them one with a receive: it completes,
 * short or by rendezvous. Then all are received, and nothing is booked any more.
 */
/* @behaviour E1 */
static void a_message_with_a_receive_waits_for_no_number_of_others(void **state)
{
	static const uint32_t num[] = {10, 1000, 100000};
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (unsigned int k = 0; k < 6; k++) {
		struct op *s = calloc(num[k / 2], sizeof(*s)), last, r;
		size_t len = k % 2 ? sizeof(sbuf) : 8;
		struct pair p;
		uint32_t x;

		pair_defaults(&p);
		p.conf.unexp_limit = 65536;
		p.conf.unexp_memory = 1u << 30;
		pair_open(&p, 1, NULL);
		pattern_fill(9, 0, sbuf, len);
		for (x = 0; x < num[k / 2]; x++) {
			op_send(&s[x], &p.ep[0], x % 3 ? (void *)&x : sbuf, x % 3 ? 4 : len, 1);
			pair_run(&p);
		}
		op_send(&last, &p.ep[0], sbuf, len, 2);
		op_recv(&r, &p.w[1], rbuf, len, 2, FULL);
		pair_run(&p);
		op_end_recv(&r, rbuf, len, 2, 9);
		op_end(&last, 0);
		assert_true((p.w[1].msg->spilled > 0) == (num[k / 2] > 256));
		for (x = 0; x < num[k / 2]; x++) {
			uint32_t got = UINT32_MAX;

			op_recv(&r, &p.w[1], x % 3 ? (void *)&got : rbuf, x % 3 ? 4 : len, 1, FULL);
			pair_run(&p);
			op_end(&r, 0);
			assert_true(x % 3 == 0 || got == x);
			op_end(&s[x], 0);
		}
		assert_int_equal(p.w[1].msg->spilled, 0);
		assert_int_equal(p.ep[1].msg->rx_spilled, 0);
		free(s);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/* The bound is bytes. The endpoint that reaches it fails; what had come stays. */
/* @behaviour E1 */
static void an_endpoint_that_fills_the_memory_fails_and_its_messages_stay(void **state)
{
	enum { N = 20000 };
	struct op *s = calloc(N, sizeof(*s)), r;
	struct pair p;
	uint32_t x;

	(void)state;
	pair_defaults(&p);
	p.conf.unexp_limit = 65536;
	p.conf.unexp_memory = 1u << 20;
	pair_open(&p, 1, NULL);
	for (uint32_t i = 0; i < N; i++) {
		op_send(&s[i], &p.ep[0], &i, sizeof(i), 1);
		pair_run(&p);
		assert_true(p.w[1].msg->spilled <= 1u << 20);
		if (p.fail_status[1])
			break;
	}
	assert_int_equal(p.fail_status[1], -ENOMEM);
	assert_true(p.w[1].msg->spilled > (1u << 20) - 1024);
	pair_fail(&p, 1, -ENOMEM);
	weft_msg_ep_fini(&p.ep[1], -ENOMEM);
	p.table[1][0] = NULL;
	for (uint32_t i = 0; i < 2000; i++) {
		op_recv(&r, &p.w[1], &x, sizeof(x), 1, FULL);
		op_end(&r, 0);
		assert_int_equal(x, i);
	}
	while (weft_tag_recv(&p.w[1], NULL, &x, sizeof(x), 1, FULL, NULL, NULL) == 0)
		;
	assert_int_equal(p.w[1].msg->spilled, 0);
	assert_int_equal(p.w[1].msg->credit_msgs.granted, 0);
	pair_fail(&p, 0, -ETIMEDOUT);
	for (uint32_t i = 0; i < N; i++)
		weft_request_free(s[i].req);
	free(s);
	pair_close(&p);
}

/* More sends wait for the peer to have them than a lane has room for: none ends with -EAGAIN. */
/* @behaviour E1 */
static void delivered_sends_flush_again_when_a_lane_has_no_room_for_it(void **state)
{
	enum { N = 3 * PAIR_FLUSHES };
	struct op s[N];
	struct pair p;

	(void)state;
	for (unsigned int fail = 0; fail < 2; fail++) {
		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		for (uint32_t i = 0; i < N; i++) {
			struct weft_op_params params = op_params(&s[i], NULL);

			params.flags |= WEFT_OP_F_DELIVERED;
			s[i].rc = weft_tag_send(&p.ep[0], &i, sizeof(i), i, &params, &s[i].req);
			assert_int_equal(s[i].rc, WEFT_INPROGRESS);
		}
		pair_progress(&p);
		for (uint32_t i = 0; i < N; i++)
			assert_false(op_done(&s[i]));
		if (fail)
			pair_fail(&p, 0, -ETIMEDOUT);
		pair_run(&p);
		for (uint32_t i = 0; i < N; i++)
			op_end(&s[i], fail ? -ETIMEDOUT : 0);
		if (fail)
			pair_fail(&p, 1, -ETIMEDOUT);
		pair_close(&p);
	}
}

static void the_sender_holds_back_at_the_sequence_window(void **state)
{
	const int n = 3 * WEFT_SEQ_WINDOW;
	struct op *s = calloc((size_t)n, sizeof(*s));
	struct pair p;
	uint32_t x;

	(void)state;
	pair_defaults(&p);
	p.conf.seq_start = UINT32_MAX - 100;
	pair_open(&p, 2, NULL);
	for (int i = 0; i < n; i++) {
		x = (uint32_t)i;
		op_send(&s[i], &p.ep[0], &x, sizeof(x), (uint64_t)i);
	}
	/*
	 * The first is missing: nothing of the rest may be matched, and no more than the window is
	 * under way.
	 */
	assert_int_equal(p.num, WEFT_SEQ_WINDOW);
	while (p.num > 1)
		pair_deliver(&p, p.num - 1);
	pair_progress(&p);
	assert_int_equal(p.num, 1);
	assert_int_equal(p.w[1].msg->tag->match.num_msgs, 0);
	pair_deliver(&p, 0);
	/* U19: the flood is matched a bounded number at a time. */
	assert_int_equal(p.w[1].msg->tag->match.num_msgs, 1 + WEFT_RX_DRAIN);
	weft_msg_progress(&p.w[1]);
	assert_int_equal(p.w[1].msg->tag->match.num_msgs, 1 + 2 * WEFT_RX_DRAIN);
	for (int i = 0; i < 3 * WEFT_SEQ_WINDOW / WEFT_RX_DRAIN; i++)
		pair_run(&p);
	assert_int_equal(p.w[1].msg->tag->match.num_msgs, n);
	for (int i = 0; i < n; i++)
		op_end(&s[i], 0);
	free(s);
	pair_close(&p);
}

/* @behaviour E8: control messages with no data traffic */
static void E8_control_messages_get_through_with_no_data_traffic(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];
	struct op s, s2, r, r2;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	pattern_fill(1, 0, sbuf, sizeof(sbuf));
	op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	op_send_sync(&s2, &p.ep[0], sbuf, 10, 2);
	pair_run(&p);
	pair_room(&p, 1, 0);
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL); /* RTR finds no room */
	op_recv(&r2, &p.w[1], rbuf, 10, 2, FULL);          /* neither does SYNC_ACK */
	pair_run(&p);
	assert_false(op_done(&s));
	assert_false(op_done(&s2));
	pair_room(&p, 1, 1);
	pair_run(&p);
	pair_room(&p, 1, 1);
	pair_run(&p);
	assert_true(op_done(&s2));
	pair_room(&p, 1, -1);
	pair_run(&p);
	op_end(&s, 0);
	op_end(&s2, 0);
	op_end(&r, 0);
	op_end(&r2, 0);
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour E8 */
static void control_goes_before_queued_data(void **state)
{
	static uint8_t buf[20000];
	struct op s[20], r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	op_send_sync(&s[0], &p.ep[1], buf, 10, 1);
	pair_run(&p);
	pair_room(&p, 0, 0);
	for (int i = 1; i < 20; i++)
		op_send(&s[i], &p.ep[0], buf, 1000, 1);
	op_recv(&r, &p.w[0], buf, 10, 1, FULL);
	pair_room(&p, 0, 1);
	pair_progress(&p);
	assert_int_equal(p.num, 1);
	assert_int_equal(p.msgs[0].id, WEFT_WIRE_SYNC_ACK);
	pair_room(&p, 0, -1);
	pair_run(&p);
	for (int i = 0; i < 20; i++)
		op_end(&s[i], 0);
	op_end(&r, 0);
	pair_close(&p);
}

/* All wait for the first one. When it comes they are not all taken inside that one call. */
/* @behaviour U19 */
static void U19_what_has_waited_for_one_message_is_taken_in_bounded_portions(void **state)
{
	enum { N = 1000 };
	static uint64_t got[N];
	static struct op r[N];
	unsigned int done, before = 0, i, calls = 0;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (i = 0; i < N; i++)
		op_recv(&r[i], &p.w[1], &got[i], sizeof(got[i]), 1, FULL);
	for (uint64_t n = 0; n < N; n++)
		assert_int_equal(weft_tag_send(&p.ep[0], &n, sizeof(n), 1, NULL, NULL), 0);
	while (p.num > 1)
		pair_deliver(&p, 1);
	for (i = 0; i < N; i++)
		assert_false(op_done(&r[i]));
	pair_deliver(&p, 0);
	for (done = 0; done < N; before = done, calls++) {
		for (i = done = 0; i < N; i++)
			done += op_done(&r[i]);
		assert_in_range(done - before, 1, WEFT_RX_DRAIN + 1);
		pair_progress(&p);
	}
	for (i = 0; i < N; i++) {
		op_end(&r[i], 0);
		assert_int_equal(got[i], i);
	}
	pair_run(&p);
	pair_check_empty(&p);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(E1_E7_1e5_unmatched_messages_never_block_a_later_matched_one),
		cmocka_unit_test(E2_unexpected_bytes_stay_below_the_peers_credit),
		cmocka_unit_test(E2_credit_comes_back_and_eager_goes_on),
		cmocka_unit_test(E2_a_repeated_answer_grants_nothing_more),
		cmocka_unit_test(E2_messages_without_any_credit_wait_for_it),
		cmocka_unit_test(E2_announcements_are_bounded_and_none_is_lost),
		cmocka_unit_test(a_message_with_a_receive_waits_for_no_number_of_others),
		cmocka_unit_test(an_endpoint_that_fills_the_memory_fails_and_its_messages_stay),
		cmocka_unit_test(delivered_sends_flush_again_when_a_lane_has_no_room_for_it),
		cmocka_unit_test(the_sender_holds_back_at_the_sequence_window),
		cmocka_unit_test(U19_what_has_waited_for_one_message_is_taken_in_bounded_portions),
		cmocka_unit_test(E8_control_messages_get_through_with_no_data_traffic),
		cmocka_unit_test(control_goes_before_queued_data),
	};

	return cmocka_run_group_tests_name("flow of messages", tests, NULL, NULL);
}
