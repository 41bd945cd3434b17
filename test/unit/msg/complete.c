/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a send is complete, and its buffer the caller's again: items C of the behaviour list.
 */

#include "mock/msg_transfer.h"

/*
 * @behaviour C3: delivery-complete flag; does not apply: not offered apart for messages;
 * `weft_tag_send_sync()` reports the match and `weft_ep_flush()` the delivery; puts have
 * WEFT_OP_F_DELIVERED (U40)
 */

/* @behaviour C1: complete = buffer reusable */
static void C1_a_buffer_may_be_scribbled_on_when_its_send_is_complete(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(edges) / sizeof(*edges); i++) {
		size_t len = edges[i / 2];
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, i % 2 ? 4 : 1, four_lanes);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		pattern_fill(len, 0, sbuf, len);
		op_send(&s, &p.ep[0], sbuf, len, 1);
		while (!op_done(&s)) {
			pair_progress(&p);
			if (p.num)
				pair_deliver(&p, 0);
		}
		memset(sbuf, 0xff, len);
		pair_run(&p);
		op_end(&s, 0);
		op_end_recv(&r, rbuf, len, 1, len);
		pair_close(&p);
	}
}

/*
 * @behaviour U14: a synchronous send ends at the match and not before
 * @behaviour U28: RTS expected and unexpected, synchronous
 * @behaviour C2: a synchronous send is done at the match, at every size
 */
static void C2_U14_U28_a_synchronous_send_is_done_at_the_match_and_not_before(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (unsigned int i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, four_lanes);
		pattern_fill(4, 0, sbuf, edges[i]);
		op_send_sync(&s, &p.ep[0], sbuf, edges[i], 1);
		for (int k = 0; k < 20; k++)
			pair_run(&p);
		assert_false(op_done(&s));
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 2, FULL); /* another tag: no match */
		pair_run(&p);
		assert_false(op_done(&s));
		assert_int_equal(weft_request_cancel(r.req), 0);
		op_end(&r, -ECANCELED);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		pair_run(&p);
		op_end(&s, 0);
		op_end_recv(&r, rbuf, edges[i], 1, 4);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/* @behaviour C2 */
static void C2_a_matched_multi_eager_message_acknowledges_before_it_is_complete(void **state)
{
	static uint8_t sbuf[3000], rbuf[3000];
	struct op s, r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	pattern_fill(4, 0, sbuf, sizeof(sbuf));
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
	op_send_sync(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	pair_deliver(&p, 1);
	assert_int_equal(pair_count(&p, 0, WEFT_WIRE_SYNC_ACK), 1);
	pair_deliver(&p, p.num - 1);
	assert_true(op_done(&s));
	assert_false(op_done(&r));
	pair_run(&p);
	op_end(&s, 0);
	op_end_recv(&r, rbuf, sizeof(rbuf), 1, 4);
	pair_check_empty(&p);
	pair_close(&p);
}

/*
 * @behaviour C4: inject: a send that returns 0 has released the buffer (it can fail only with its
 * endpoint, whose callback reports that)
 */
static void C4_a_send_that_returns_0_has_let_go_of_the_buffer(void **state)
{
	struct pair p;
	struct op r[3];
	char got[3][8], buf[8];

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (int i = 0; i < 3; i++) {
		memcpy(buf, "msg 0", 6);
		buf[4] = (char)('0' + i);
		assert_int_equal(weft_tag_send(&p.ep[0], buf, sizeof(buf), 1, NULL, NULL), 0);
		op_recv(&r[i], &p.w[1], got[i], sizeof(got[i]), 1, FULL);
	}
	memset(buf, 0, sizeof(buf));
	pair_run(&p);
	for (int i = 0; i < 3; i++) {
		op_end(&r[i], 0);
		assert_int_equal(got[i][4], '0' + i);
	}
	pair_close(&p);
}

/*
 * @behaviour C9: no space: no side effect, the operation succeeds later
 * @behaviour E6: a full queue in the middle of a message: no gap, no duplicate
 */
static void C9_E6_no_room_has_no_side_effect_and_the_message_goes_later(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];
	uint64_t seed = 99;

	(void)state;
	for (unsigned int i = 0; i < 4 * sizeof(edges) / sizeof(*edges); i++) {
		size_t len = edges[i / 4];
		struct op s, r, s2, r2;
		struct pair p;
		uint32_t seq;
		int a = 77, b = 0;

		pair_defaults(&p);
		pair_open(&p, 1 + i % 4, four_lanes);
		pattern_fill(3, 0, sbuf, len);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		op_recv(&r2, &p.w[1], &b, sizeof(b), 1, FULL);
		pair_room(&p, 0, 0);
		seq = p.ep[0].msg->tx_seq;
		op_send(&s, &p.ep[0], sbuf, len, 1);
		assert_int_equal(s.rc, WEFT_INPROGRESS);
		op_send(&s2, &p.ep[0], &a, sizeof(a), 1); /* nothing overtakes */
		assert_int_equal(s2.rc, WEFT_INPROGRESS);
		pair_progress(&p);
		assert_int_equal(p.ep[0].msg->tx_seq, seq);
		assert_int_equal(p.num, 0);
		/* Room for a few at a time, at random. */
		for (int n = 0; n < 2000 && !(op_done(&r2) && op_done(&r) && op_done(&s)); n++) {
			for (unsigned int l = 0; l < p.num_lanes; l++) {
				p.lane_ep[0][l].room = (int)(pair_random(&seed) % 3);
				p.lane_ep[1][l].room = (int)(pair_random(&seed) % 2);
			}
			pair_progress(&p);
			while (p.num && pair_random(&seed) % 4)
				pair_deliver(&p, pair_random(&seed) % p.num);
		}
		pair_room(&p, 0, -1);
		pair_room(&p, 1, -1);
		pair_run(&p);
		op_end(&s, 0);
		op_end(&s2, 0);
		op_end_recv(&r, rbuf, len, 1, 3);
		op_end(&r2, 0);
		assert_int_equal(b, 77);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

struct lent {
	unsigned int calls;
	struct weft_request *req;
	struct weft_completion c;
};

static void lent_ended(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct lent *l = arg;

	l->calls++;
	l->req = req;
	l->c = *c;
}

/* Each way to post a receive, with each way in which the receive ends. */
static void a_lent_request_is_free_after_its_callback_without_the_caller(void **state)
{
	enum { CANCELLED, MATCHED, CAME_BEFORE, ENDS };
	static const uint32_t flags[] = {0, WEFT_OP_F_SOURCE_ID,
					 WEFT_OP_F_SOURCE_ID | WEFT_OP_F_SOURCE_CHANNEL};
	static const uint64_t masks[] = {FULL, ~1ull << 40};
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (unsigned int i = 0; i < 3 * 2 * ENDS * sizeof(edges) / sizeof(*edges); i++) {
		size_t len = edges[i / (3 * 2 * ENDS)];
		unsigned int end = i / (3 * 2) % ENDS;
		struct weft_completion now = WEFT_INIT(struct weft_completion, .length = 0);
		struct lent l = {.req = (void *)&l};
		struct weft_op_params params =
			WEFT_INIT(struct weft_op_params, .flags = flags[i % 3] | WEFT_OP_F_LENT,
				  .cb = lent_ended, .cb_arg = &l, .completion = &now,
				  .source_id = 1);
		struct weft_request *req = NULL;
		struct op s, r;
		struct pair p;
		int rc;

		pair_defaults(&p);
		pair_open(&p, 1, four_lanes);
		op_recv(&r, &p.w[1], rbuf, 1, 99, FULL);
		op_send(&s, &p.ep[0], sbuf, 0, 99);
		pair_run(&p);
		op_end(&s, 0);
		op_end(&r, 0);
		pattern_fill(len, 0, sbuf, len);
		if (end != CANCELLED)
			op_send(&s, &p.ep[0], sbuf, len, 7);
		if (end == CAME_BEFORE)
			pair_run(&p);
		rc = weft_tag_recv(&p.w[1], NULL, rbuf, sizeof(rbuf), 7, masks[i / 3 % 2], &params,
				   &req);
		assert_int_equal(rc == 0, req == NULL);
		if (end == CANCELLED)
			assert_int_equal(weft_request_cancel(req), 0);
		pair_run(&p);
		assert_int_equal(l.calls, rc == WEFT_INPROGRESS);
		if (rc == WEFT_INPROGRESS)
			assert_null(l.req);
		else
			l.c = now;
		assert_int_equal(l.c.status, end == CANCELLED ? -ECANCELED : 0);
		if (end != CANCELLED) {
			assert_int_equal(l.c.length, len);
			assert_memory_equal(rbuf, sbuf, len);
			op_end(&s, 0);
		}
		assert_int_equal(p.w[1].msg->reqs.in_use, 0);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(C1_a_buffer_may_be_scribbled_on_when_its_send_is_complete),
		cmocka_unit_test(C2_U14_U28_a_synchronous_send_is_done_at_the_match_and_not_before),
		cmocka_unit_test(
			C2_a_matched_multi_eager_message_acknowledges_before_it_is_complete),
		cmocka_unit_test(C4_a_send_that_returns_0_has_let_go_of_the_buffer),
		cmocka_unit_test(C9_E6_no_room_has_no_side_effect_and_the_message_goes_later),
		cmocka_unit_test(a_lent_request_is_free_after_its_callback_without_the_caller),
	};

	return cmocka_run_group_tests_name("completion of messages", tests, NULL, NULL);
}
