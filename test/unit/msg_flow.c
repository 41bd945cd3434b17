/* SPDX-License-Identifier: BSD-3-Clause */
/* Credits, memory, windows, control before data: item E of the tag-matching list. */

#include "msg_util.h"

static void E1_E7_1e5_unmatched_messages_never_block_a_later_matched_one(void **state)
{
	const uint32_t n = 100000;
	struct pair p;
	uint32_t got;
	struct op r;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t v = i;

		assert_in_range(weft_tag_send(&p.ep[0], &v, sizeof(v), i, NULL, NULL), 0, 1);
		if (i % 1000 == 999)
			pair_run(&p);
	}
	assert_int_equal(p.w[1].msg->messages.num, n);
	/* E3: payload x 1.1 + 256 bytes per message. */
	assert_true(p.w[1].msg->messages.slot_bytes <= n * (256 - 40));
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
		fill(buf, len, 3);
		op_send(&s[i], &p->ep[0], buf, len, i);
		pair_run(p);
		assert_true(p->w[1].msg->messages.bytes <= most);
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

static void E2_credit_comes_back_and_eager_goes_on(void **state)
{
	static uint8_t buf[4000];
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.eager_credit = 50000;
	pair_open(&p, 1, NULL);
	for (int i = 0; i < 5000; i++) {
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

static void E2_a_new_peer_gets_at_most_a_quarter_of_what_is_left(void **state)
{
	struct weft_wire_credit c;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.unexp_limit = 40000;
	p.conf.eager_credit = 1u << 20;
	pair_open_unconnected(&p, 1, NULL);
	weft_msg_ep_grant(&p.ep[1], &c);
	assert_int_equal(weft_get64(c.bytes), 10000);
	assert_int_equal(p.w[1].msg->granted, 10000);
	weft_msg_ep_grant(&p.ep[1], &c); /* a repeated answer grants nothing more */
	assert_int_equal(weft_get64(c.bytes), 10000);
	weft_msg_ep_fini(&p.ep[1], -ECANCELED);
	assert_int_equal(p.w[1].msg->granted, 0);
	pair_close(&p);
}

static void E2_small_messages_beyond_their_window_go_as_rts(void **state)
{
	struct pair p;
	struct op s, r;
	int got = 0, x = 9;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	p.ep[0].msg->tx_small_end = p.ep[0].msg->tx_small + 2;
	assert_int_equal(weft_tag_send(&p.ep[0], &x, sizeof(x), 1, NULL, NULL), 0);
	assert_int_equal(weft_tag_send(&p.ep[0], &x, sizeof(x), 1, NULL, NULL), 0);
	op_send(&s, &p.ep[0], &x, sizeof(x), 2);
	assert_int_equal(s.rc, WEFT_INPROGRESS);
	assert_int_equal(p.msgs[2].id, WEFT_WIRE_RTS);
	op_recv(&r, &p.w[1], &got, sizeof(got), 2, FULL);
	pair_run(&p);
	op_end(&s, 0);
	op_end(&r, 0);
	assert_int_equal(got, 9);
	pair_close(&p);
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
	assert_int_equal(p.w[1].msg->match.num_msgs, 0);
	pair_deliver(&p, 0);
	/* U19: the flood is matched a bounded number at a time. */
	assert_int_equal(p.w[1].msg->match.num_msgs, 1 + WEFT_RX_DRAIN);
	weft_msg_progress(&p.w[1]);
	assert_int_equal(p.w[1].msg->match.num_msgs, 1 + 2 * WEFT_RX_DRAIN);
	for (int i = 0; i < 3 * WEFT_SEQ_WINDOW / WEFT_RX_DRAIN; i++)
		pair_run(&p);
	assert_int_equal(p.w[1].msg->match.num_msgs, n);
	for (int i = 0; i < n; i++)
		op_end(&s[i], 0);
	free(s);
	pair_close(&p);
}

static void E8_control_messages_get_through_with_no_data_traffic(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];
	struct op s, s2, r, r2;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	fill(sbuf, sizeof(sbuf), 1);
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
		cmocka_unit_test(E2_a_new_peer_gets_at_most_a_quarter_of_what_is_left),
		cmocka_unit_test(E2_small_messages_beyond_their_window_go_as_rts),
		cmocka_unit_test(the_sender_holds_back_at_the_sequence_window),
		cmocka_unit_test(U19_what_has_waited_for_one_message_is_taken_in_bounded_portions),
		cmocka_unit_test(E8_control_messages_get_through_with_no_data_traffic),
		cmocka_unit_test(control_goes_before_queued_data),
	};

	return cmocka_run_group_tests_name("flow of messages", tests, NULL, NULL);
}
