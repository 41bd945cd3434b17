/* SPDX-License-Identifier: BSD-3-Clause */
/* What requests and completions tell: C5, C6, G2, U1, U2, U7. */

#include "mock/msg_util.h"

/*
 * @behaviour C7: completion counters; does not apply: counters of completions are not part of the
 * API; requests and callbacks are
 * @behaviour C8: remote immediate data; does not apply: there is no completion queue whose entries
 * could carry it; active messages have headers
 */

/*
 * @behaviour U1: a receive posted after the message has arrived gets the same data, and completes
 * at once
 */
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

/* @behaviour U2: a request freed before its end is delivered, without a callback */
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
		pattern_fill(7, 0, sbuf, len);
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
		pattern_expect(7, rbuf, len);
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

/*
 * @behaviour U7: callbacks free requests and post others, or close the endpoint
 * @behaviour G2: callbacks post sends and receives
 */
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

/* @behaviour U7 */
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
	sp.flags = rp.flags = WEFT_OP_F_FORCE_REQUEST;
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

/*
 * @behaviour C5: exactly one completion
 * @behaviour C6: source, tag and length of a completion
 */
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

/* @behaviour C6 */
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

/* A program built with an earlier header has a shorter struct, and other data behind it. */
static void completion_of_an_earlier_version_is_not_overrun(void **state)
{
	const size_t had = offsetof(struct weft_completion, channel);
	struct weft_completion c;
	struct pair p;
	struct op r;
	int got;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	op_recv(&r, &p.w[1], &got, sizeof(got), 0, 0);
	assert_int_equal(weft_tag_send(&p.ep[0], &got, sizeof(got), 5, NULL, NULL), 0);
	pair_run(&p);
	memset(&c, 0x5a, sizeof(c));
	c.size = had;
	assert_int_equal(weft_request_test(r.req, &c), 0);
	assert_int_equal(c.size, had);
	assert_int_equal(c.tag, 5);
	assert_int_equal(c.length, sizeof(got));
	for (size_t i = had; i < sizeof(c); i++)
		assert_int_equal(((uint8_t *)&c)[i], 0x5a);
	weft_request_free(r.req);
	pair_close(&p);
}

/* @behaviour U81 */
static void requests_describe_themselves_in_words(void **state)
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

/* ".flags = WEFT_OP_GET" compiles. */
static void numbers_of_operations_are_no_flags(void **state)
{
	struct weft_request *req = NULL;
	struct pair p;
	char buf[4];

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (unsigned int op = 1; op <= WEFT_OP_LAST; op++) {
		struct weft_op_params op_is = WEFT_INIT(struct weft_op_params, .flags = op);

		assert_int_equal(weft_tag_send(&p.ep[0], buf, 4, 1, &op_is, &req), -EINVAL);
		assert_int_equal(weft_tag_recv(&p.w[0], NULL, buf, 4, 1, FULL, &op_is, &req),
				 -EINVAL);
		assert_int_equal(weft_tag_probe(&p.w[0], NULL, 1, FULL, &op_is, NULL, NULL),
				 -EINVAL);
		assert_null(req);
	}
	pair_check_empty(&p);
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
		cmocka_unit_test(completion_of_an_earlier_version_is_not_overrun),
		cmocka_unit_test(requests_describe_themselves_in_words),
		cmocka_unit_test(bad_parameters_are_refused_without_a_trace),
		cmocka_unit_test(numbers_of_operations_are_no_flags),
	};

	return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
