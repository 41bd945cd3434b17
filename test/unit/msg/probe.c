/* SPDX-License-Identifier: BSD-3-Clause */
/* Probe, matched probe, cancel: items D, U15 to U21 of the tag-matching list. */

#include "mock/msg_util.h"

static const size_t probe_lens[] = {0, 1, 200, 1000, 5000, 8192, 20000, 4u << 20};

/*
 * @behaviour U15: probe: nothing before arrival; length and tag; again the same; consumes nothing
 * @behaviour U17: a probe returns the whole length before all bytes have arrived; truncation
 * through it
 * @behaviour U18: probe of a rendezvous
 * @behaviour D1: probe: source, tag, whole length, half-arrived messages too (`ep` is NULL when it
 * is closed; `source_id` still names the worker)
 * @behaviour D2: the receive after a probe gets the probed message
 */
static void D1_D2_U15_U17_U18_probe_reports_tag_source_and_whole_length(void **state)
{
	uint8_t *sbuf = malloc(4u << 20), *rbuf = malloc(4u << 20);

	(void)state;
	for (unsigned int i = 0; i < sizeof(probe_lens) / sizeof(*probe_lens); i++) {
		struct weft_completion c = {.size = sizeof(c)};
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		pattern_fill(2, 0, sbuf, probe_lens[i]);
		op_send(&s, &p.ep[0], sbuf, probe_lens[i], 0xab);
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0xab, FULL, NULL, NULL, &c),
				 -ENOMSG);
		pair_deliver(&p, p.num - 1); /* one piece, not the first if there are more */
		for (int k = 0; k < 3;
		     k++) { /* again and again the same, and nothing is consumed */
			assert_int_equal(weft_tag_probe(&p.w[1], k ? &p.ep[1] : NULL, 0xa0, 0xf0,
							NULL, NULL, &c),
					 0);
			assert_int_equal(c.tag, 0xab);
			assert_int_equal(c.length, probe_lens[i]);
			assert_ptr_equal(c.ep, &p.ep[1]);
		}
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0xac, FULL, NULL, NULL, &c),
				 -ENOMSG);
		op_recv(&r, &p.w[1], rbuf, probe_lens[i], c.tag, FULL);
		pair_run(&p);
		op_end(&s, 0);
		op_end_recv(&r, rbuf, probe_lens[i], 0xab, 2);
		pair_check_empty(&p);
		pair_close(&p);
	}
	free(sbuf);
	free(rbuf);
}

/*
 * @behaviour U16: a message taken by a probe goes to no other receive; two of them are received in
 * any order
 * @behaviour D3: a claimed message is invisible to others; dropping frees
 */
static void D3_U16_a_message_taken_by_a_probe_belongs_to_its_handle(void **state)
{
	static uint8_t sbuf[2][20000], rbuf[2][20000];

	(void)state;
	for (unsigned int i = 0; i < 4 * 7; i++) {
		size_t len = probe_lens[i / 4];
		bool partly = i & 1, sync = i & 2;
		struct weft_message *m[2], *none;
		struct op s[2], r[2];
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		for (int k = 0; k < 2; k++) {
			pattern_fill((uint64_t)k, 0, sbuf[k], len);
			op_send_dt(&s[k], &p.ep[0], sbuf[k], len, 1, sync, NULL);
		}
		if (partly) {
			pair_deliver(&p, 0);
			pair_deliver(&p, p.num - 1);
		} else {
			pair_run(&p);
		}
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 1, FULL, NULL, &m[0], NULL), 0);
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0, 0, NULL, &m[1], NULL), 0);
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0, 0, NULL, &none, NULL), -ENOMSG);
		if (i % 3 == 0)
			pair_run(&p);          /* complete while it is held */
		for (int k = 1; k >= 0; k--) { /* in reverse order, each its own data */
			struct weft_op_params params = op_params(&r[k], NULL);

			r[k].rc =
				weft_tag_msg_recv(&p.w[1], m[k], rbuf[k], len, &params, &r[k].req);
		}
		pair_run(&p);
		for (int k = 0; k < 2; k++) {
			op_end(&s[k], 0);
			op_end_recv(&r[k], rbuf[k], len, 1, (uint64_t)k);
		}
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/* @behaviour D3 */
static void D3_a_message_taken_by_a_probe_can_be_dropped(void **state)
{
	static uint8_t sbuf[20000];

	(void)state;
	for (unsigned int i = 0; i < 4 * 7; i++) {
		size_t len = probe_lens[i / 4];
		bool partly = i & 1, sync = i & 2;
		struct weft_message *m;
		struct op s, r;
		struct pair p;
		int x = 5, y = 0;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		op_send_dt(&s, &p.ep[0], sbuf, len, 1, sync, NULL);
		if (partly)
			pair_deliver(&p, p.num - 1);
		else
			pair_run(&p);
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 1, FULL, NULL, &m, NULL), 0);
		weft_tag_msg_drop(&p.w[1], m);
		op_recv(&r, &p.w[1], &y, sizeof(y), 1, FULL);
		assert_int_equal(weft_tag_send(&p.ep[0], &x, sizeof(x), 1, NULL, NULL), 0);
		pair_run(&p);
		op_end(&s, 0);
		op_end(&r, 0);
		assert_int_equal(y, 5);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/* @behaviour U17 */
static void U17_truncation_through_a_probed_message(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (int i = 0; i < 3; i++) {
		static const size_t lens[] = {100, 5000, 20000};
		struct weft_message *m;
		struct op s, r;
		struct pair p;
		struct weft_op_params params;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		memset(rbuf, 0x11, sizeof(rbuf));
		op_send(&s, &p.ep[0], sbuf, lens[i], 1);
		pair_deliver(&p, 0);
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 1, FULL, NULL, &m, NULL), 0);
		params = op_params(&r, NULL);
		r.rc = weft_tag_msg_recv(&p.w[1], m, rbuf, 50, &params, &r.req);
		assert_int_equal(r.rc, WEFT_INPROGRESS); /* an error is never "done at once" */
		pair_run(&p);
		op_end(&s, 0);
		op_end(&r, -EMSGSIZE);
		assert_int_equal(r.c.length, lens[i]);
		assert_int_equal(rbuf[50], 0x11);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/*
 * @behaviour D4: an unsuccessful probe leaves no state
 * @behaviour U15
 */
static void D4_a_probe_that_finds_nothing_leaves_nothing(void **state)
{
	struct weft_message *m = NULL;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0, 0, NULL, &m, NULL), -ENOMSG);
	assert_int_equal(weft_tag_probe(&p.w[1], &p.ep[1], 1, FULL, NULL, &m, NULL), -ENOMSG);
	assert_null(m);
	pair_check_empty(&p);
	pair_close(&p);
}

static void cancel_one(uint64_t mask, bool directed)
{
	uint8_t first[8], second[8];
	struct op r1, r2;
	struct pair p;

	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	memset(first, 0x33, sizeof(first));
	op_recv_dt(&r1, &p.w[1], directed ? &p.ep[1] : NULL, first, 8, 1, mask, NULL);
	op_recv(&r2, &p.w[1], second, 8, 1, FULL);
	assert_int_equal(weft_request_cancel(r1.req), 0);
	assert_int_equal(r1.calls, 1);
	assert_int_equal(weft_request_cancel(r1.req), -EALREADY);
	assert_int_equal(weft_tag_send(&p.ep[0], "message", 8, 1, NULL, NULL), 0);
	pair_run(&p);
	op_end(&r1, -ECANCELED);
	op_end(&r2, 0);
	assert_string_equal((char *)second, "message");
	assert_int_equal(first[0], 0x33);
	pair_check_empty(&p);
	pair_close(&p);
}

/*
 * @behaviour U20: cancel of a posted receive: ends once, buffer untouched, the next one gets the
 * message
 * @behaviour D5: cancel of an unmatched receive; the next gets the message
 * @behaviour D7: cancel of a wildcard receive
 */
static void D5_D7_U20_a_cancelled_receive_ends_once_and_the_next_gets_the_message(void **state)
{
	(void)state;
	cancel_one(FULL, false);
	cancel_one(FULL, true);
	cancel_one(0, false);
	cancel_one(0, true);
}

/*
 * @behaviour U21: cancel after the match does nothing
 * @behaviour D6: cancel of a matched receive refuses
 */
static void D6_U21_cancel_of_a_matched_or_finished_operation_does_nothing(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t len = i ? 20000 : 5000;
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 1, NULL);
		pattern_fill(9, 0, sbuf, len);
		op_recv(&r, &p.w[1], rbuf, len, 1, FULL);
		op_send_sync(&s, &p.ep[0], sbuf, len, 1);
		pair_deliver(&p, 0);
		assert_int_equal(weft_request_cancel(r.req), -EBUSY);
		if (len > p.conf.multi_eager_limit)
			pair_deliver(&p, 0); /* a sender knows of the match once it is asked */
		assert_int_equal(weft_request_cancel(s.req), -EBUSY);
		pair_run(&p);
		assert_int_equal(weft_request_cancel(r.req), -EALREADY);
		assert_int_equal(weft_request_cancel(s.req), -EALREADY);
		op_end(&s, 0);
		op_end_recv(&r, rbuf, len, 1, 9);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(D1_D2_U15_U17_U18_probe_reports_tag_source_and_whole_length),
		cmocka_unit_test(D3_U16_a_message_taken_by_a_probe_belongs_to_its_handle),
		cmocka_unit_test(D3_a_message_taken_by_a_probe_can_be_dropped),
		cmocka_unit_test(U17_truncation_through_a_probed_message),
		cmocka_unit_test(D4_a_probe_that_finds_nothing_leaves_nothing),
		cmocka_unit_test(
			D5_D7_U20_a_cancelled_receive_ends_once_and_the_next_gets_the_message),
		cmocka_unit_test(D6_U21_cancel_of_a_matched_or_finished_operation_does_nothing),
	};

	return cmocka_run_group_tests_name("probe and cancel", tests, NULL, NULL);
}
