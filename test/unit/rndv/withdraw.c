/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous sends that are withdrawn before, while and after they are matched.
 */

#include "mock/rndv_util.h"

/*
 * @behaviour Y1: a rendezvous send is withdrawn before its match, and the order of match and
 * withdrawal is decided once
 */
static void a_send_without_a_match_is_withdrawn(void **state)
{
	struct op s, s2, r;
	struct pair p;

	(void)state;
	begin(&p, &s, &r, 2, false);
	op_send(&s2, &p.ep[0], sbuf, 100, 1);
	pair_run(&p);
	assert_int_equal(weft_request_cancel(s.req), 0);
	assert_int_equal(weft_request_cancel(s.req), -EBUSY);
	assert_int_equal(s.calls, 0);
	pair_run(&p);
	op_end(&s, -ECANCELED);
	/* The next message of the same tag gets the receive. */
	op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
	pair_run(&p);
	op_end_recv(&r, rbuf, 100, 1, 3);
	op_end(&s2, 0);
	assert_int_equal(mw_of(&p, 1)->count.withdrawn, 1);
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour Y1 */
static void withdrawing_and_matching_at_once_ends_one_way(void **state)
{
	/*
	 * Which is first at the receiver: RTS or WITHDRAW, and the receive before, between, after.
	 */
	(void)state;
	for (int late_rts = 0; late_rts < 2; late_rts++) {
		for (int post = 0; post < 3; post++) {
			bool matched = post == 0 ? !late_rts : post == 1 && !late_rts;
			struct op s, s2, r;
			struct pair p;

			begin(&p, &s, &r, 2, post == 0);
			assert_int_equal(weft_request_cancel(s.req), 0);
			op_send(&s2, &p.ep[0], sbuf, 100, 1);
			assert_true(p.msgs[0].id == WEFT_WIRE_RTS);
			assert_true(p.msgs[1].id == WEFT_WIRE_WITHDRAW);
			pair_deliver(&p, late_rts ? 1 : 0);
			if (post == 1)
				op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
			pair_deliver(&p, 0);
			pair_run(&p);
			if (post == 2)
				op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
			pair_run(&p);
			op_end(&s, matched ? 0 : -ECANCELED);
			op_end_recv(&r, rbuf, matched ? LEN : 100, 1, 3);
			if (matched)
				op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL), op_end(&r, 0);
			op_end(&s2, 0);
			assert_int_equal(mw_of(&p, 0)->reqs.in_use, 0);
			assert_int_equal(mw_of(&p, 1)->tag->messages.num, 0);
			assert_int_equal(mw_of(&p, 1)->count.withdrawn, !matched);
			pair_close(&p);
		}
	}
}

/* @behaviour Y1 */
static void a_withdrawn_message_ahead_of_its_turn_uses_up_its_sequence(void **state)
{
	(void)state;
	for (int with_rts = 0; with_rts < 2; with_rts++) {
		struct op first, s, last, r;
		uint8_t got[100];
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, two);
		pattern_fill(3, 0, sbuf, LEN);
		op_send(&first, &p.ep[0], sbuf, 100, 1);
		op_send(&s, &p.ep[0], sbuf, LEN, 1);
		op_send(&last, &p.ep[0], sbuf, 90, 1);
		assert_int_equal(weft_request_cancel(s.req), 0);
		if (with_rts) {
			pair_deliver(&p, 1); /* RTS */
			pair_deliver(&p, 2); /* WITHDRAW */
		} else {
			pair_deliver(&p, 3); /* WITHDRAW; the RTS comes after the rest */
			pair_deliver(&p, 0);
			pair_deliver(&p, 1);
		}
		pair_run(&p);
		op_end(&s, -ECANCELED);
		op_recv(&r, &p.w[1], got, sizeof(got), 1, FULL);
		op_end_recv(&r, got, 100, 1, 3);
		op_recv(&r, &p.w[1], got, sizeof(got), 1, FULL);
		op_end_recv(&r, got, 90, 1, 3);
		op_end(&first, 0);
		op_end(&last, 0);
		assert_int_equal(p.ep[1].msg->tag->open.num, 0);
		assert_int_equal(mw_of(&p, 1)->tag->messages.num, 0);
		pair_close(&p);
	}
}

/* @behaviour Y1 */
static void a_matched_probe_is_a_match(void **state)
{
	struct weft_message *m;
	struct op s, r;
	struct pair p;

	(void)state;
	begin(&p, &s, &r, 1, false);
	pair_run(&p);
	assert_int_equal(weft_tag_probe(&p.w[1], NULL, 1, FULL, NULL, &m, NULL), 0);
	assert_int_equal(weft_request_cancel(s.req), 0);
	pair_run(&p);
	assert_int_equal(s.calls, 0);
	r = (struct op){.c.size = sizeof(r.c)};
	{
		struct weft_op_params params = op_params(&r, NULL);

		r.rc = weft_tag_msg_recv(&p.w[1], m, rbuf, LEN, &params, &r.req);
	}
	finish(&p, &s, &r);
	pair_close(&p);
}

static void a_send_that_is_still_queued_is_cancelled_on_the_spot(void **state)
{
	struct op s[3], r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	pattern_fill(3, 0, sbuf, LEN);
	pair_room(&p, 0, 0);
	for (int i = 0; i < 3; i++)
		op_send(&s[i], &p.ep[0], sbuf, i == 1 ? 5000 : 100, 1);
	assert_int_equal(weft_request_cancel(s[1].req), 0);
	op_end(&s[1], -ECANCELED);
	pair_room(&p, 0, -1);
	for (int i = 0; i < 3; i += 2) {
		op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
		pair_run(&p);
		op_end_recv(&r, rbuf, 100, 1, 3);
		op_end(&s[i], 0);
	}
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour Y2 */
static void forged_withdrawals_are_dropped_and_counted(void **state)
{
	struct weft_wire_withdraw w = {.e = {weft_put32(0), weft_put64(1)}};
	struct op s, r;
	struct pair p;

	(void)state;
	begin(&p, &s, &r, 1, false);
	pair_run(&p);
	w.sreq = weft_request_ref(s.req);
	w.sreq.generation.v ^= 1;
	push(&p, 1, WEFT_WIRE_WITHDRAW, &w, sizeof(w)); /* names another request */
	assert_int_equal(mw_of(&p, 1)->count.mismatch, 1);
	op_recv(&r, &p.w[1], rbuf, LEN, 1, FULL);
	pair_run(&p);
	push(&p, 1, WEFT_WIRE_WITHDRAW, &w, sizeof(w)); /* over */
	finish(&p, &s, &r);
	w.e.seq = weft_put32(WEFT_SEQ_WINDOW + 5);
	push(&p, 1, WEFT_WIRE_WITHDRAW, &w, sizeof(w));
	assert_int_equal(p.fail_status[1], -EPROTO);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_without_a_match_is_withdrawn),
		cmocka_unit_test(withdrawing_and_matching_at_once_ends_one_way),
		cmocka_unit_test(a_withdrawn_message_ahead_of_its_turn_uses_up_its_sequence),
		cmocka_unit_test(a_matched_probe_is_a_match),
		cmocka_unit_test(a_send_that_is_still_queued_is_cancelled_on_the_spot),
		cmocka_unit_test(forged_withdrawals_are_dropped_and_counted),
	};

	return cmocka_run_group_tests_name("withdrawn sends", tests, NULL, NULL);
}
