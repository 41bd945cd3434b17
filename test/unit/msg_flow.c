/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probe, cancel, credits, memory, flush, failure: items D and E, C5, C6, and U n of the
 * tag-matching list.
 */

#include "msg_util.h"

/* ------------------------------------------------------------------ requests */

static void U1_an_unexpected_message_is_received_at_once_without_a_request(void **state)
{
	char got[8];
	struct op r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	assert_int_equal(weft_tag_send(&p.ep[0], "hello", 6, 3, NULL, NULL), 0);
	pair_run(&p);
	op_recv(&r, &p.w[1], got, sizeof(got), 3, FULL);
	assert_int_equal(r.rc, 0);
	assert_null(r.req);
	assert_int_equal(r.calls, 0);
	assert_int_equal(r.c.length, 6);
	assert_string_equal(got, "hello");
	pair_check_empty(&p);
	pair_close(&p);
}

static void U2_a_request_freed_before_its_end_delivers_without_callback(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (int i = 0; i < 6; i++) {
		static const size_t lens[] = {100, 5000, 20000};
		size_t len = lens[i % 3];
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		fill(sbuf, len, 7);
		memset(rbuf, 0, len);
		if (i < 3)
			op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		op_send_sync(&s, &p.ep[0], sbuf, len, 1);
		weft_request_free(s.req);
		if (i >= 3) {
			pair_deliver(&p, 0);
			op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		}
		weft_request_free(r.req);
		pair_run(&p);
		check(rbuf, len, 7);
		assert_int_equal(s.calls + r.calls, 0);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

struct chain {
	struct pair *p;
	struct weft_request *req;
	int left, done;
	uint32_t buf;
};

static void chain_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct chain *ch = arg;
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .cb = chain_cb, .cb_arg = ch);
	uint32_t n;

	assert_int_equal(c->status, 0);
	assert_ptr_equal(req, ch->req);
	weft_request_free(req);
	ch->done++;
	if (ch->left-- == 0)
		return;
	n = ch->buf + 1;
	assert_int_equal(weft_tag_recv(&ch->p->w[1], NULL, &ch->buf, sizeof(ch->buf), 1, FULL,
				       &params, &ch->req),
			 WEFT_INPROGRESS);
	assert_in_range(weft_tag_send(&ch->p->ep[0], &n, sizeof(n), 1, NULL, NULL), 0, 1);
}

static void U7_G2_a_callback_frees_its_request_and_posts_sends_and_receives(void **state)
{
	struct pair p;
	struct chain ch = {.p = &p, .left = 1000};
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .cb = chain_cb, .cb_arg = &ch);
	uint32_t n = 0;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	assert_int_equal(weft_tag_recv(&p.w[1], NULL, &ch.buf, sizeof(ch.buf), 1, FULL, &params,
				       &ch.req),
			 1);
	assert_int_equal(weft_tag_send(&p.ep[0], &n, sizeof(n), 1, NULL, NULL), 0);
	pair_run(&p);
	assert_int_equal(ch.done, 1001);
	assert_int_equal(ch.buf, 1000);
	pair_check_empty(&p);
	pair_close(&p);
}

static void close_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct pair *p = arg;

	(void)c;
	weft_request_free(req);
	if (p->ep[1].msg)
		weft_msg_ep_fini(&p->ep[1], -ECANCELED);
}

static void a_callback_may_close_the_endpoint_its_message_came_from(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		static const size_t lens[] = {8, 4000, 20000};
		static uint8_t sbuf[20000], rbuf[20000];
		struct weft_request *req;
		struct pair p;
		struct weft_op_params params =
			WEFT_INIT(struct weft_op_params, .cb = close_cb, .cb_arg = &p);
		struct op r2, s;
		uint64_t x = 5;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		assert_int_equal(weft_tag_recv(&p.w[1], NULL, rbuf, sizeof(rbuf), 1, FULL, &params,
					       &req),
				 1);
		op_recv(&r2, &p.w[1], &x, sizeof(x), 2, FULL);
		op_send(&s, &p.ep[0], sbuf, lens[i], 1);
		for (int k = 0; k < 20; k++) /* waits ahead when the first comes last */
			weft_tag_send(&p.ep[0], &x, sizeof(x), 2, NULL, NULL);
		while (p.num)
			pair_deliver(&p, p.num - 1);
		pair_run(&p);
		assert_null(p.ep[1].msg);
		if (s.rc == WEFT_INPROGRESS)
			weft_request_free(s.req);
		if (!op_done(&r2))
			assert_int_equal(weft_request_cancel(r2.req), 0);
		weft_request_free(r2.req);
		pair_close(&p);
	}
}

static void force_request_never_completes_inside_the_call(void **state)
{
	struct pair p;
	struct op s, r;
	struct weft_op_params sp = op_params(&s, NULL), rp = op_params(&r, NULL);
	char got[4];

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	sp.flags = rp.flags = WEFT_OP_FORCE_REQUEST;
	s.rc = weft_tag_send(&p.ep[0], "abc", 4, 1, &sp, &s.req);
	assert_int_equal(s.rc, WEFT_INPROGRESS);
	assert_int_equal(s.calls, 0);
	assert_int_equal(weft_request_test(s.req, NULL), WEFT_INPROGRESS);
	pair_run(&p);
	op_end(&s, 0);
	r.rc = weft_tag_recv(&p.w[1], NULL, got, 4, 1, FULL, &rp, &r.req);
	assert_int_equal(r.rc, WEFT_INPROGRESS);
	assert_int_equal(r.calls, 0);
	pair_run(&p);
	op_end(&r, 0);
	assert_string_equal(got, "abc");
	pair_check_empty(&p);
	pair_close(&p);
}

static void C5_C6_one_completion_with_source_tag_and_length(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];
	static const size_t lens[] = {0, 8, 1000, 5000, 20000};

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 0, 0);
		op_send(&s, &p.ep[0], sbuf, lens[i], 0xfeedfacecafebeefull);
		for (int k = 0; k < 5; k++)
			pair_run(&p);
		op_end(&s, 0);
		op_end(&r, 0);
		assert_true(r.c.tag == 0xfeedfacecafebeefull);
		assert_int_equal(r.c.length, lens[i]);
		assert_ptr_equal(r.c.ep, &p.ep[1]);
		assert_int_equal(r.c.source_id, 1);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

static void completion_forgets_an_endpoint_that_is_closed_since(void **state)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct pair p;
	struct op r;
	int got;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	op_recv(&r, &p.w[1], &got, sizeof(got), 0, 0);
	assert_int_equal(weft_tag_send(&p.ep[0], &got, sizeof(got), 5, NULL, NULL), 0);
	pair_run(&p);
	assert_int_equal(weft_request_test(r.req, &c), 0);
	assert_ptr_equal(c.ep, &p.ep[1]);
	p.table[1][0] = NULL;
	assert_int_equal(weft_request_test(r.req, &c), 0);
	assert_null(c.ep);
	p.table[1][0] = &p.ep[1];
	p.ep[1].generation++;
	assert_int_equal(weft_request_test(r.req, &c), 0);
	assert_null(c.ep);
	weft_request_free(r.req);
	pair_close(&p);
}

static void requests_tell_about_themselves_in_words(void **state)
{
	static uint8_t buf[20000];
	char text[256];
	struct op s, r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	op_recv(&r, &p.w[1], buf, sizeof(buf), 0x10, FULL);
	assert_true(weft_request_query(r.req, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "posted"));
	op_send(&s, &p.ep[0], buf, sizeof(buf), 0x10);
	weft_request_query(s.req, text, sizeof(text));
	assert_non_null(strstr(text, "rndv/pull"));
	assert_non_null(strstr(text, "waiting for the receiver"));
	pair_run(&p);
	weft_request_query(s.req, text, sizeof(text));
	assert_int_equal(weft_request_query(s.req, NULL, 0), (int)strlen(text));
	op_end(&s, 0);
	op_end(&r, 0);
	pair_close(&p);
}

static void bad_parameters_are_refused_without_a_trace(void **state)
{
	const struct weft_datatype bad =
		WEFT_INIT(struct weft_datatype, .dt_class = (enum weft_dt_class)9);
	struct weft_op_params p1 = WEFT_INIT(struct weft_op_params, .datatype = &bad);
	struct weft_op_params p2 = {.size = 4};
	struct weft_op_params p3 = WEFT_INIT(struct weft_op_params, .flags = 1u << 30);
	const struct weft_op_params *all[] = {&p1, &p2, &p3};
	struct weft_request *req;
	struct pair p;
	char buf[4];

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(weft_tag_send(&p.ep[0], buf, 4, 1, all[i], &req), -EINVAL);
		assert_int_equal(weft_tag_recv(&p.w[0], NULL, buf, 4, 1, FULL, all[i], &req),
				 -EINVAL);
	}
	assert_int_equal(weft_tag_send(&p.ep[0], NULL, 4, 1, NULL, &req), -EINVAL);
	assert_int_equal(p.num, 0);
	pair_check_empty(&p);
	pair_close(&p);
}

/* ------------------------------------------------------------------ probe and cancel */

static const size_t probe_lens[] = {0, 1, 200, 1000, 5000, 8192, 20000, 4u << 20};

static void D1_D2_U15_U17_U18_probe_tells_tag_source_and_whole_length(void **state)
{
	uint8_t *sbuf = malloc(4u << 20), *rbuf = malloc(4u << 20);

	(void)state;
	for (unsigned int i = 0; i < sizeof(probe_lens) / sizeof(*probe_lens); i++) {
		struct weft_completion c = {.size = sizeof(c)};
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		fill(sbuf, probe_lens[i], 2);
		op_send(&s, &p.ep[0], sbuf, probe_lens[i], 0xab);
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0xab, FULL, NULL, &c), -ENOMSG);
		pair_deliver(&p, p.num - 1); /* one piece, not the first if there are more */
		for (int k = 0; k < 3;
		     k++) { /* again and again the same, and nothing is consumed */
			assert_int_equal(weft_tag_probe(&p.w[1], k ? &p.ep[1] : NULL, 0xa0, 0xf0,
							NULL, &c),
					 0);
			assert_int_equal(c.tag, 0xab);
			assert_int_equal(c.length, probe_lens[i]);
			assert_ptr_equal(c.ep, &p.ep[1]);
		}
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0xac, FULL, NULL, &c), -ENOMSG);
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
			fill(sbuf[k], len, (uint64_t)k);
			op_send_dt(&s[k], &p.ep[0], sbuf[k], len, 1, sync, NULL);
		}
		if (partly) {
			pair_deliver(&p, 0);
			pair_deliver(&p, p.num - 1);
		} else {
			pair_run(&p);
		}
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 1, FULL, &m[0], NULL), 0);
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0, 0, &m[1], NULL), 0);
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0, 0, &none, NULL), -ENOMSG);
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
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 1, FULL, &m, NULL), 0);
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
		assert_int_equal(weft_tag_probe(&p.w[1], NULL, 1, FULL, &m, NULL), 0);
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

static void D4_a_probe_that_finds_nothing_leaves_nothing(void **state)
{
	struct weft_message *m = NULL;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0, 0, &m, NULL), -ENOMSG);
	assert_int_equal(weft_tag_probe(&p.w[1], &p.ep[1], 1, FULL, &m, NULL), -ENOMSG);
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

static void D5_D7_U20_a_cancelled_receive_ends_once_and_the_next_gets_the_message(void **state)
{
	(void)state;
	cancel_one(FULL, false);
	cancel_one(FULL, true);
	cancel_one(0, false);
	cancel_one(0, true);
}

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
		fill(sbuf, len, 9);
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

/* ------------------------------------------------------------------ ends */

static void D8_U26_closing_with_posted_receives_and_unmatched_messages_leaks_nothing(void **state)
{
	static uint8_t buf[20000];

	(void)state;
	for (int stage = 0; stage < 12; stage++) {
		struct weft_message *m = NULL;
		struct op s[4], r[3];
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		op_recv(&r[0], &p.w[1], buf, sizeof(buf), 100, FULL);
		op_recv_dt(&r[1], &p.w[1], &p.ep[1], buf, sizeof(buf), 100, 0xff, NULL);
		op_recv(&r[2], &p.w[1], buf, sizeof(buf), 2, FULL);
		op_send(&s[0], &p.ep[0], buf, 10, 1);
		op_send(&s[1], &p.ep[0], buf, 5000, 1);
		op_send(&s[2], &p.ep[0], buf, 20000, 1);
		op_send_sync(&s[3], &p.ep[0], buf, 5000, 2);
		for (int i = 0; i < stage && p.num; i++)
			pair_deliver(&p, i % 3 ? p.num - 1 : 0);
		weft_tag_probe(&p.w[1], NULL, 1, FULL, stage % 2 ? &m : NULL, NULL);
		weft_msg_ep_fini(&p.ep[1], -ECANCELED);
		op_end(&r[1], -ECANCELED);
		if (op_done(&r[2]))
			op_end(&r[2], r[2].c.status ? -ECANCELED : 0);
		else
			weft_request_free(r[2].req);
		weft_request_free(r[0].req);
		for (int i = 0; i < 4; i++)
			weft_request_free(s[i].req);
		pair_close(&p);
	}
}

static void a_failed_endpoint_ends_all_its_operations_exactly_once(void **state)
{
	static uint8_t buf[20000], in[6][20000];
	static const struct pair_lane_params zlane[2] = {
		{.max_short = 256, .max_bcopy = 1024, .max_zcopy = 2048},
		{.max_short = 256, .max_bcopy = 1024, .max_zcopy = 2048},
	};

	(void)state;
	for (uint64_t seed = 1; seed < 200; seed++) {
		uint64_t x = seed * 977;
		struct op s[8], r[6], late;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, zlane);
		for (int i = 0; i < 6; i++)
			op_recv_dt(&r[i], &p.w[1], i % 2 ? &p.ep[1] : NULL, in[i], 20000,
				   (uint64_t)(i % 4), i == 5 ? 0x100 : FULL, NULL);
		if (seed % 3 == 0)
			pair_room(&p, 0, 3);
		for (int i = 0; i < 8; i++) {
			static const size_t lens[] = {8, 900, 5000, 20000};

			op_send_dt(&s[i], &p.ep[0], buf, lens[i % 4], (uint64_t)(i % 5), i & 4,
				   NULL);
		}
		for (uint64_t n = pair_random(&x) % 40; n && p.num; n--) {
			pair_deliver(&p, pair_random(&x) % p.num);
			pair_progress(&p);
		}
		pair_fail(&p, 1, -ETIMEDOUT);
		pair_fail(&p, 0, -ETIMEDOUT);
		/* The lanes give back what they had. */
		while (p.num)
			pair_deliver(&p, 0);
		for (int i = 0; i < 8; i++) {
			assert_true(op_done(&s[i]));
			if (s[i].rc == WEFT_INPROGRESS && s[i].c.status)
				op_end(&s[i], -ETIMEDOUT);
			else
				op_end(&s[i], 0);
		}
		for (int i = 0; i < 6; i++) {
			if (!op_done(&r[i])) { /* from any source, not matched: goes on */
				assert_int_equal(i % 2, 0);
				assert_int_equal(weft_request_cancel(r[i].req), 0);
				op_end(&r[i], -ECANCELED);
			} else {
				op_end(&r[i], r[i].c.status ? -ETIMEDOUT : 0);
			}
		}
		/* New ones return the error. */
		op_send_dt(&late, &p.ep[0], buf, 8, 1, false, NULL);
		assert_int_equal(late.rc, -ETIMEDOUT);
		op_recv_dt(&late, &p.w[1], &p.ep[1], buf, 8, 99, FULL, NULL);
		assert_int_equal(late.rc, -ETIMEDOUT);
		pair_close(&p);
	}
}

static void messages_that_are_complete_stay_receivable_after_their_endpoint_is_gone(void **state)
{
	static uint8_t sbuf[5000], rbuf[5000];
	struct weft_message *m;
	struct op s[3], r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (uint64_t i = 0; i < 3; i++) {
		fill(sbuf, sizeof(sbuf), i);
		op_send(&s[i], &p.ep[0], sbuf, i == 1 ? 100 : 5000, i);
		pair_run(&p);
		op_end(&s[i], 0);
	}
	assert_int_equal(weft_tag_probe(&p.w[1], NULL, 2, FULL, &m, NULL), 0);
	weft_msg_ep_fini(&p.ep[1], -ECANCELED);
	p.table[1][0] = NULL;
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 0, FULL);
	op_end_recv(&r, rbuf, 5000, 0, 0);
	assert_null(r.c.ep);
	assert_int_equal(r.c.source_id, 1);
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
	op_end_recv(&r, rbuf, 100, 1, 1);
	assert_int_equal(weft_tag_msg_recv(&p.w[1], m, rbuf, sizeof(rbuf), NULL, NULL), 0);
	check(rbuf, 5000, 2);
	assert_int_equal(p.w[1].msg->granted, 0); /* credit is back with the worker */
	assert_int_equal(p.w[1].msg->messages.num, 0);
	pair_close(&p);
}

static void two_closing_ends_do_not_wait_for_each_others_match(void **state)
{
	static uint8_t buf[20000];
	struct op s[3], r;
	struct pair p;
	int x = 1;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	op_send(&s[0], &p.ep[0], buf, 20000, 1);
	op_send_sync(&s[1], &p.ep[0], buf, 10, 1);
	pair_run(&p);
	p.ep[1].state = WEFT_EP_CLOSING;
	assert_int_equal(weft_msg_ep_flush(&p.ep[1], NULL, NULL), 0);
	op_send_sync(&s[2], &p.ep[0], buf, 5000, 1); /* arrives after */
	assert_int_equal(weft_tag_send(&p.ep[0], &x, sizeof(x), 7, NULL, NULL), 0);
	pair_run(&p);
	for (int i = 0; i < 3; i++)
		op_end(&s[i], -ECONNRESET);
	op_recv(&r, &p.w[1], &x, sizeof(x), 7, FULL); /* eager ones are still there */
	op_end(&r, 0);
	pair_check_empty(&p);
	pair_close(&p);
}

/* ------------------------------------------------------------------ flow control, memory */

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

/* ------------------------------------------------------------------ connection, flush, lanes */

static void sends_before_the_connection_is_up_go_out_in_order(void **state)
{
	static uint8_t big[20000], rbuf[4][20000];
	static const size_t lens[] = {8, 5000, 20000, 100};
	struct op s[4], r[4];
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.seq_start = UINT32_MAX - 1;
	pair_open_unconnected(&p, 2, NULL);
	fill(big, sizeof(big), 1);
	for (int i = 0; i < 4; i++) {
		op_send(&s[i], &p.ep[0], big, lens[i], 5);
		assert_int_equal(s[i].rc, WEFT_INPROGRESS);
		op_recv(&r[i], &p.w[1], rbuf[i], 20000, 5, FULL);
	}
	pair_run(&p);
	assert_int_equal(p.sent, 0);
	pair_connect(&p);
	pair_run(&p);
	for (int i = 0; i < 4; i++) {
		op_end(&s[i], 0);
		op_end_recv(&r[i], rbuf[i], lens[i], 5, 1);
	}
	pair_check_empty(&p);
	pair_close(&p);
}

static void flushed(void *arg, int status)
{
	*(int *)arg = status ? status : 1;
}

static void flush_waits_for_everything_before_it(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];
	int done = 0, done2 = 0;
	struct op s, r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 2, NULL);
	assert_int_equal(weft_msg_ep_flush(&p.ep[0], flushed, &done), WEFT_LANE_IDLE);
	assert_int_equal(weft_tag_send(&p.ep[0], sbuf, 8, 9, NULL, NULL), 0);
	assert_int_equal(weft_msg_ep_flush(&p.ep[0], flushed, &done), 0);
	assert_int_equal(done, 0);
	pair_run(&p);
	assert_int_equal(done, 1);
	/* A rendezvous holds it up until the data is there; what comes later does not. */
	done = 0;
	op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	assert_int_equal(weft_msg_ep_flush(&p.ep[0], flushed, &done), 0);
	assert_int_equal(weft_msg_ep_flush(&p.ep[0], flushed, &done2), 0);
	pair_run(&p);
	assert_int_equal(done, 0);
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
	pair_run(&p);
	assert_int_equal(done, 1);
	assert_int_equal(done2, 1);
	op_end(&s, 0);
	op_end(&r, 0);
	/* A failure ends it. */
	done = 0;
	op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	assert_int_equal(weft_msg_ep_flush(&p.ep[0], flushed, &done), 0);
	pair_fail(&p, 0, -ETIMEDOUT);
	assert_int_equal(done, -ETIMEDOUT);
	op_end(&s, -ETIMEDOUT);
	pair_close(&p);
}

static void striping_uses_every_lane_in_proportion(void **state)
{
	static const struct pair_lane_params lanes[3] = {
		{.max_short = 256, .max_bcopy = 4096, .bandwidth = 1e9},
		{.max_short = 256, .max_bcopy = 4096, .bandwidth = 2e9},
		{.max_short = 256, .max_bcopy = 4096, .bandwidth = 1e9},
	};
	const size_t len = 1u << 20;
	uint8_t *sbuf = malloc(len), *rbuf = malloc(len);
	struct op s, r;
	struct pair p;

	(void)state;
	for (int way = 0; way < 3; way++) {
		pair_defaults(&p);
		p.conf.multi_eager_limit = way ? 8192 : SIZE_MAX;
		p.conf.rndv_scheme = way == 1 ? WEFT_RNDV_AM : WEFT_RNDV_GET;
		p.conf.rndv_window = 4u << 20;
		p.conf.rndv_limit = 4u << 20;
		pair_open(&p, 3, lanes);
		fill(sbuf, len, 1);
		op_recv(&r, &p.w[1], rbuf, len, 1, FULL);
		op_send(&s, &p.ep[0], sbuf, len, 1);
		pair_run(&p);
		op_end(&s, 0);
		op_end_recv(&r, rbuf, len, 1, 1);
		for (int i = 0; i < 3; i++) {
			double share = (double)p.info[0][i].tx_bytes / (double)len;

			assert_true(share > (i == 1 ? 0.45 : 0.2) && share < (i == 1 ? 0.55 : 0.3));
		}
		pair_check_empty(&p);
		pair_close(&p);
	}
	free(sbuf);
	free(rbuf);
}

static void thresholds_are_obeyed_and_can_be_asked_for(void **state)
{
	struct weft_proto_info info = {.size = sizeof(info)};
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.rndv_thresh = 3000;
	pair_open_unconnected(&p, 2, NULL);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 1, &info), -ENOTCONN);
	pair_connect(&p);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 1, &info), 0);
	assert_string_equal(info.name, "eager/short");
	assert_int_equal(info.min, 0);
	assert_int_equal(info.max, 244);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 2999, &info), 0);
	assert_string_equal(info.name, "multi-eager");
	assert_int_equal(info.min, 1013);
	assert_int_equal(info.max, 2999);
	assert_int_equal(info.lanes, 3);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND_SYNC, 3000, &info), 0);
	assert_string_equal(info.name, "rndv/pull");
	assert_int_equal(info.max, SIZE_MAX);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], (enum weft_op)7, 1, &info), -EINVAL);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(U1_an_unexpected_message_is_received_at_once_without_a_request),
		cmocka_unit_test(U2_a_request_freed_before_its_end_delivers_without_callback),
		cmocka_unit_test(U7_G2_a_callback_frees_its_request_and_posts_sends_and_receives),
		cmocka_unit_test(a_callback_may_close_the_endpoint_its_message_came_from),
		cmocka_unit_test(force_request_never_completes_inside_the_call),
		cmocka_unit_test(C5_C6_one_completion_with_source_tag_and_length),
		cmocka_unit_test(completion_forgets_an_endpoint_that_is_closed_since),
		cmocka_unit_test(requests_tell_about_themselves_in_words),
		cmocka_unit_test(bad_parameters_are_refused_without_a_trace),
		cmocka_unit_test(D1_D2_U15_U17_U18_probe_tells_tag_source_and_whole_length),
		cmocka_unit_test(D3_U16_a_message_taken_by_a_probe_belongs_to_its_handle),
		cmocka_unit_test(D3_a_message_taken_by_a_probe_can_be_dropped),
		cmocka_unit_test(U17_truncation_through_a_probed_message),
		cmocka_unit_test(D4_a_probe_that_finds_nothing_leaves_nothing),
		cmocka_unit_test(
			D5_D7_U20_a_cancelled_receive_ends_once_and_the_next_gets_the_message),
		cmocka_unit_test(D6_U21_cancel_of_a_matched_or_finished_operation_does_nothing),
		cmocka_unit_test(
			D8_U26_closing_with_posted_receives_and_unmatched_messages_leaks_nothing),
		cmocka_unit_test(a_failed_endpoint_ends_all_its_operations_exactly_once),
		cmocka_unit_test(
			messages_that_are_complete_stay_receivable_after_their_endpoint_is_gone),
		cmocka_unit_test(two_closing_ends_do_not_wait_for_each_others_match),
		cmocka_unit_test(E1_E7_1e5_unmatched_messages_never_block_a_later_matched_one),
		cmocka_unit_test(E2_unexpected_bytes_stay_below_the_peers_credit),
		cmocka_unit_test(E2_credit_comes_back_and_eager_goes_on),
		cmocka_unit_test(E2_a_new_peer_gets_at_most_a_quarter_of_what_is_left),
		cmocka_unit_test(E2_small_messages_beyond_their_window_go_as_rts),
		cmocka_unit_test(the_sender_holds_back_at_the_sequence_window),
		cmocka_unit_test(E8_control_messages_get_through_with_no_data_traffic),
		cmocka_unit_test(control_goes_before_queued_data),
		cmocka_unit_test(sends_before_the_connection_is_up_go_out_in_order),
		cmocka_unit_test(flush_waits_for_everything_before_it),
		cmocka_unit_test(striping_uses_every_lane_in_proportion),
		cmocka_unit_test(thresholds_are_obeyed_and_can_be_asked_for),
	};

	return cmocka_run_group_tests_name("flow of messages", tests, NULL, NULL);
}
