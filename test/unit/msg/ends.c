/* SPDX-License-Identifier: BSD-3-Clause */
/* Beginning and end of endpoints as messages see them; flush, lanes: D8, U26. */

#include "mock/msg_util.h"

/* ------------------------------------------------------------------ ends */

/*
 * @behaviour U26: closing with unmatched messages frees them
 * @behaviour D8: close with posted receives and unmatched messages
 */
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
		weft_tag_probe(&p.w[1], NULL, 1, FULL, NULL, stage % 2 ? &m : NULL, NULL);
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

/* @behaviour C5 */
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
		pattern_fill(i, 0, sbuf, sizeof(sbuf));
		op_send(&s[i], &p.ep[0], sbuf, i == 1 ? 100 : 5000, i);
		pair_run(&p);
		op_end(&s[i], 0);
	}
	assert_int_equal(weft_tag_probe(&p.w[1], NULL, 2, FULL, NULL, &m, NULL), 0);
	weft_msg_ep_fini(&p.ep[1], -ECANCELED);
	p.table[1][0] = NULL;
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 0, FULL);
	op_end_recv(&r, rbuf, 5000, 0, 0);
	assert_null(r.c.ep);
	assert_int_equal(r.c.source_id, 1);
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
	op_end_recv(&r, rbuf, 100, 1, 1);
	assert_int_equal(weft_tag_msg_recv(&p.w[1], m, rbuf, sizeof(rbuf), NULL, NULL), 0);
	pattern_expect(2, rbuf, 5000);
	assert_int_equal(p.w[1].msg->credit_bytes.granted, 0); /* credit is back with the worker */
	assert_int_equal(p.w[1].msg->credit_msgs.granted, 0);
	assert_int_equal(p.w[1].msg->tag->messages.num, 0);
	pair_close(&p);
}

static void recv_from_id(struct op *op, struct pair *p, uint64_t id, void *buf, uint64_t tag)
{
	struct weft_op_params params = op_params(op, NULL);

	params.flags |= WEFT_OP_F_SOURCE_ID;
	params.source_id = id;
	op->rc = weft_tag_recv(&p->w[1], NULL, buf, 100, tag, FULL, &params, &op->req);
}

/* The peer has sent all, and its connection is gone. A receive that names it still matches. */
/* @behaviour T28 */
static void messages_stay_matchable_by_their_workers_id_after_its_endpoint_is_gone(void **state)
{
	static uint8_t sbuf[100], rbuf[100], other[100], later[100];
	struct weft_op_params by_id =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_SOURCE_ID);
	struct op s, r, none, wait;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	/* A receive by id needs no message and no endpoint, and does not end with one. */
	recv_from_id(&wait, &p, 1, later, 9);
	recv_from_id(&none, &p, 77, other, 0);
	assert_int_equal(none.rc, WEFT_INPROGRESS);
	for (uint64_t i = 0; i < 3; i++) {
		pattern_fill(i, 0, sbuf, sizeof(sbuf));
		op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), i);
		op_end(&s, 0);
	}
	pair_run(&p);
	weft_msg_ep_fini(&p.ep[1], -ECONNRESET);
	p.table[1][0] = NULL;
	assert_false(op_done(&wait));
	by_id.source_id = 77;
	assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0, 0, &by_id, NULL, NULL), -ENOMSG);
	by_id.source_id = 1;
	assert_int_equal(weft_tag_probe(&p.w[1], NULL, 0, 0, &by_id, NULL, NULL), 0);
	recv_from_id(&r, &p, 1, rbuf, 1);
	op_end_recv(&r, rbuf, 100, 1, 1);
	/* An endpoint that is made to the same worker later finds them, too. */
	assert_int_equal(weft_msg_ep_init(&p.ep[1]), 0);
	op_recv_dt(&r, &p.w[1], &p.ep[1], rbuf, sizeof(rbuf), 2, FULL, NULL);
	op_end_recv(&r, rbuf, 100, 2, 2);
	assert_int_equal(r.c.source_id, 1);
	assert_int_equal(weft_request_cancel(none.req), 0);
	op_end(&none, -ECANCELED);
	assert_int_equal(weft_request_cancel(wait.req), 0);
	op_end(&wait, -ECANCELED);
	assert_int_equal(p.w[1].msg->tag->messages.num, 1);
	pair_close(&p);
}

static void sources_without_endpoints_go_when_nothing_is_left_of_them(void **state)
{
	static uint8_t buf[100];
	struct op r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (uint64_t id = 2; id < 20000; id++) {
		recv_from_id(&r, &p, id, buf, 0);
		assert_int_equal(r.rc, WEFT_INPROGRESS);
		assert_int_equal(weft_request_cancel(r.req), 0);
		op_end(&r, -ECANCELED);
		assert_true(p.w[1].msg->tag->sources.num <= 32);
	}
	pair_close(&p);
}

static void a_source_and_a_source_id_contradict_each_other(void **state)
{
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_SOURCE_ID);
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	assert_int_equal(weft_tag_recv(&p.w[1], &p.ep[1], NULL, 0, 0, 0, &params, NULL), -EINVAL);
	assert_int_equal(weft_tag_probe(&p.w[1], &p.ep[1], 0, 0, &params, NULL, NULL), -EINVAL);
	params.size = WEFT_OP_PARAMS_LEAST;
	assert_int_equal(weft_tag_recv(&p.w[1], NULL, NULL, 0, 0, 0, &params, NULL), -EINVAL);
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
	pattern_fill(1, 0, big, sizeof(big));
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

/* @behaviour U40 */
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
	/* A rendezvous holds it up until the peer knows of it; a close until the data is there. */
	done = 0;
	op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	assert_int_equal(weft_msg_ep_flush(&p.ep[0], flushed, &done), 0);
	p.ep[0].state = WEFT_EP_CLOSING;
	assert_int_equal(weft_msg_ep_flush(&p.ep[0], flushed, &done2), 0);
	assert_int_equal(done, 0);
	pair_run(&p);
	assert_int_equal(done, 1);
	assert_int_equal(done2, 0);
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
	pair_run(&p);
	assert_int_equal(done2, 1);
	p.ep[0].state = WEFT_EP_UP;
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

/* @behaviour U37: every lane carries its part */
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
		pattern_fill(1, 0, sbuf, len);
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

/* @behaviour U54 */
static void thresholds_are_obeyed_and_can_be_queried(void **state)
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
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_LAST, 1, &info), -EINVAL);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			D8_U26_closing_with_posted_receives_and_unmatched_messages_leaks_nothing),
		cmocka_unit_test(a_failed_endpoint_ends_all_its_operations_exactly_once),
		cmocka_unit_test(
			messages_that_are_complete_stay_receivable_after_their_endpoint_is_gone),
		cmocka_unit_test(
			messages_stay_matchable_by_their_workers_id_after_its_endpoint_is_gone),
		cmocka_unit_test(sources_without_endpoints_go_when_nothing_is_left_of_them),
		cmocka_unit_test(a_source_and_a_source_id_contradict_each_other),
		cmocka_unit_test(two_closing_ends_do_not_wait_for_each_others_match),
		cmocka_unit_test(sends_before_the_connection_is_up_go_out_in_order),
		cmocka_unit_test(flush_waits_for_everything_before_it),
		cmocka_unit_test(striping_uses_every_lane_in_proportion),
		cmocka_unit_test(thresholds_are_obeyed_and_can_be_queried),
	};

	return cmocka_run_group_tests_name("ends of messages", tests, NULL, NULL);
}
