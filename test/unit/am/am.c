/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages over lanes that deliver in any order: order, handlers, kept data, rendezvous. */

#include "am/am.h"
#include "mock/rma_util.h"

static const struct pair_lane_params lanes[3] = {
	{.max_short = 256, .max_bcopy = 1024},
	{.max_short = 200, .max_bcopy = 3000, .max_zcopy = 3000, .max_iov = 4},
	{.max_bcopy = 2000, .max_zcopy = 9000, .max_iov = 8, .align = 64},
};

/* What a handler saw, and what it shall do. */
struct log {
	unsigned int calls;
	unsigned int id;
	uint64_t order; /* the first 8 bytes of the header say which one is expected */
	struct weft_am_msg last;
	uint8_t header[WEFT_AM_HEADER_MAX], data[20000];
	int answer;
	bool receive;
	uint8_t *into;
	struct op op;
};

static int handler(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct log *l = arg;

	l->calls++;
	l->last = *msg;
	memcpy(l->header, msg->header, msg->header_length);
	if (msg->data && msg->length <= sizeof(l->data))
		memcpy(l->data, msg->data, msg->length);
	if (msg->header_length >= 8) {
		uint64_t n;

		memcpy(&n, msg->header, 8);
		assert_int_equal(n, l->order);
		l->order++;
	}
	if (l->receive && (msg->flags & WEFT_AM_F_RNDV)) {
		struct weft_op_params p = op_params(&l->op, NULL);

		l->op.rc =
			weft_am_recv_data(worker, msg->desc, l->into, msg->length, &p, &l->op.req);
		assert_int_equal(weft_am_data_release(worker, msg->desc), -EINVAL);
	}
	return l->answer;
}

static void am_open(struct stage *s, struct log *l, unsigned int n, unsigned int flags)
{
	memset(l, 0, sizeof(*l));
	stage_open(s, n, lanes, 100);
	s->p.ctx.features |= WEFT_FEATURE_AM;
	assert_int_equal(weft_worker_set_am_handler(&s->p.w[1], 7, handler, l, flags), 0);
}

static void am(struct op *op, struct stage *s, unsigned int id, unsigned int flags,
	       const void *header, size_t header_len, const void *buf, size_t len)
{
	struct weft_op_params p = op_params(op, NULL);
	struct weft_am_send_params a =
		WEFT_INIT(struct weft_am_send_params, .id = id, .flags = flags, .header = header,
			  .header_length = header_len);

	op->rc = weft_am_send(s->ep, &a, buf, len, &p, &op->req);
}

/*
 * @behaviour U41: longest header without data and with some; a longer one is refused
 * @behaviour X16
 */
static void U41_headers_up_to_the_maximum_and_no_further(void **state)
{
	uint8_t header[WEFT_AM_HEADER_MAX + 1], buf[600];
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pattern_fill(1, 0, header, sizeof(header));
	memset(header, 0, 8);
	pattern_fill(2, 0, buf, sizeof(buf));
	for (unsigned int n = 1; n <= 3; n++) {
		pair_defaults(&s.p);
		am_open(&s, &l, n, 0);
		am(&op, &s, 7, 0, header, WEFT_AM_HEADER_MAX, NULL, 0);
		pair_run(&s.p);
		op_end(&op, 0);
		assert_int_equal(l.calls, 1);
		assert_int_equal(l.last.header_length, WEFT_AM_HEADER_MAX);
		assert_int_equal(l.last.length, 0);
		assert_memory_equal(l.header, header, WEFT_AM_HEADER_MAX);
		l.order = 0;
		am(&op, &s, 7, 0, header, WEFT_AM_HEADER_MAX, buf, sizeof(buf));
		pair_run(&s.p);
		op_end(&op, 0);
		assert_memory_equal(l.data, buf, sizeof(buf));
		am(&op, &s, 7, 0, header, WEFT_AM_HEADER_MAX + 1, NULL, 0);
		op_end(&op, -EMSGSIZE);
		am(&op, &s, 7, 0, NULL, 1, NULL, 0);
		op_end(&op, -EINVAL);
		am(&op, &s, 65536, 0, NULL, 0, NULL, 0);
		op_end(&op, -EINVAL);
		assert_int_equal(l.calls, 2);
		stage_check_empty(&s);
		stage_close(&s);
	}
}

/*
 * @behaviour U42: handlers: sparse ids, any order, wrong parameters, ids beyond 65535; messages for
 * ids without a handler
 */
static void U42_handlers_are_sparse_and_checked(void **state)
{
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	am_open(&s, &l, 1, 0);
	assert_int_equal(weft_worker_set_am_handler(&s.p.w[1], 65536, handler, &l, 0), -EINVAL);
	assert_int_equal(weft_worker_set_am_handler(&s.p.w[1], 1, handler, &l, 8), -EINVAL);
	assert_int_equal(weft_worker_set_am_handler(NULL, 1, handler, &l, 0), -EINVAL);
	assert_int_equal(weft_worker_set_am_handler(&s.p.w[1], 65535, handler, &l, 0), 0);
	assert_int_equal(weft_worker_set_am_handler(&s.p.w[1], 0, handler, &l, 0), 0);
	for (unsigned int i = 0; i < 4; i++) {
		static const unsigned int id[] = {65535, 0, 7, 8};

		am(&op, &s, id[i], 0, NULL, 0, "x", 1);
		op_end(&op, 0);
		pair_run(&s.p);
		assert_int_equal(l.calls, i < 3 ? i + 1 : 3);
	}
	/*
	 * An id without a handler: dropped, counted, no peer harmed; large ones release the sender.
	 */
	assert_int_equal(s.p.w[1].msg->count.am_unknown, 1);
	am(&op, &s, 9, WEFT_AM_SEND_F_RNDV, NULL, 0, l.data, 5000);
	pair_run(&s.p);
	op_end(&op, 0);
	assert_int_equal(weft_worker_set_am_handler(&s.p.w[1], 7, NULL, NULL, 0), 0);
	am(&op, &s, 7, 0, NULL, 0, "x", 1);
	op_end(&op, 0);
	pair_run(&s.p);
	assert_int_equal(s.p.w[1].msg->count.am_unknown, 3);
	assert_int_equal(s.p.fail_status[0] | s.p.fail_status[1], 0);
	s.p.ctx.features &= ~WEFT_FEATURE_AM;
	am(&op, &s, 7, 0, NULL, 0, "x", 1);
	op_end(&op, -EOPNOTSUPP);
	stage_check_empty(&s);
	stage_close(&s);
}

/* @behaviour U44: a handler is called once, with the whole message or a descriptor for it */
static void U44_messages_are_delivered_once_and_in_send_order_whatever_size_and_lane(void **state)
{
	enum { N = 60 };
	static uint8_t buf[N][9000], into[9000];
	uint64_t seed = 17;

	(void)state;
	for (int round = 0; round < 30; round++) {
		struct stage s;
		struct log l;
		struct op op[N];

		pair_defaults(&s.p);
		s.p.conf.seq_start = UINT32_MAX - 20;
		am_open(&s, &l, 3, 0);
		l.receive = true;
		l.into = into;
		for (uint64_t i = 0; i < N; i++) {
			size_t len = pair_random(&seed) % 3 ? pair_random(&seed) % 300
							    : pair_random(&seed) % 3000;

			am(&op[i], &s, 7, 0, &i, 8, buf[i], len);
			assert_in_range(op[i].rc, 0, 1);
		}
		pair_run_random(&s.p, &seed);
		for (int i = 0; i < N; i++)
			op_end(&op[i], 0);
		assert_int_equal(l.order, N);
		stage_check_empty(&s);
		stage_close(&s);
	}
}

/* @behaviour U44 */
static void U44_large_messages_and_their_data_by_rendezvous(void **state)
{
	static const size_t sizes[] = {1, 9000, 20000, 100000};
	uint8_t *buf = malloc(100000), *into = malloc(100000);
	uint64_t seed = 3, zero = 0;
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	am_open(&s, &l, 3, 0);
	l.receive = true;
	l.into = into;
	for (int i = 0; i < 4; i++) {
		pattern_fill((uint64_t)i, 0, buf, sizes[i]);
		l.order = 0;
		am(&op, &s, 7, WEFT_AM_SEND_F_RNDV, &zero, 8, buf, sizes[i]);
		pair_run_random(&s.p, &seed);
		op_end(&op, 0);
		assert_int_equal(l.last.length, sizes[i]);
		assert_int_equal(l.op.c.length, sizes[i]);
		op_end(&l.op, 0);
		pattern_expect((uint64_t)i, into, sizes[i]);
	}
	stage_check_empty(&s);
	stage_close(&s);
	free(buf);
	free(into);
}

/*
 * @behaviour U46: flags override the threshold; rendezvous without data
 * @behaviour U53
 */
static void U46_flags_override_the_threshold(void **state)
{
	uint8_t buf[20000] = {0};
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	s.p.conf.rndv_thresh = 0;
	am_open(&s, &l, 1, 0);
	am(&op, &s, 7, WEFT_AM_SEND_F_EAGER, NULL, 0, buf, 100);
	op_end(&op, 0);
	am(&op, &s, 7, WEFT_AM_SEND_F_EAGER, NULL, 0, buf, 20000);
	op_end(&op, -EMSGSIZE);
	pair_run(&s.p);
	assert_int_equal(l.last.flags & WEFT_AM_F_RNDV, 0);
	am(&op, &s, 7, 0, NULL, 0, buf, 100);
	pair_run(&s.p);
	op_end(&op, 0);
	assert_int_equal(l.last.flags & WEFT_AM_F_RNDV, WEFT_AM_F_RNDV);
	am(&op, &s, 7, WEFT_AM_SEND_F_RNDV, NULL, 0, NULL, 0);
	assert_int_equal(op.rc, WEFT_INPROGRESS);
	pair_run(&s.p);
	op_end(&op, 0);
	assert_int_equal(l.last.flags & WEFT_AM_F_RNDV, WEFT_AM_F_RNDV);
	am(&op, &s, 7, WEFT_AM_SEND_F_RNDV | WEFT_AM_SEND_F_EAGER, NULL, 0, NULL, 0);
	op_end(&op, -EINVAL);
	stage_check_empty(&s);
	stage_close(&s);
}

/*
 * @behaviour U43: data that a handler keeps is valid until released, and holds the sender's credit
 */
static void U43_kept_data_stays_until_released_and_holds_credit(void **state)
{
	uint8_t buf[900];
	struct weft_am_data *kept[64];
	struct stage s;
	struct log l;
	struct op op;
	int n = 0;

	(void)state;
	pair_defaults(&s.p);
	s.p.conf.eager_credit = 16384;
	am_open(&s, &l, 1, WEFT_AM_HANDLER_F_PERSISTENT_DATA);
	l.answer = WEFT_INPROGRESS;
	/* Until the credit is used up: then the data stays at the sender. */
	for (;; n++) {
		assert_in_range(n, 0, 40);
		pattern_fill((uint64_t)n, 0, buf, sizeof(buf));
		am(&op, &s, 7, 0, NULL, 0, buf, sizeof(buf));
		pair_run(&s.p);
		kept[n] = l.last.desc;
		if (l.last.flags & WEFT_AM_F_RNDV)
			break;
		op_end(&op, 0);
	}
	assert_in_range(n, 15, 20);
	for (int i = 0; i < n; i++)
		pattern_expect((uint64_t)i, kept[i]->bytes, sizeof(buf));
	assert_false(op_done(&op));
	for (int i = 0; i <= n; i++)
		assert_int_equal(weft_am_data_release(&s.p.w[1], kept[i]), 0);
	pair_run(&s.p);
	op_end(&op, 0);
	am(&op, &s, 7, 0, NULL, 0, buf, sizeof(buf));
	op_end(&op, 0);
	pair_run(&s.p);
	assert_int_equal(l.last.flags & WEFT_AM_F_RNDV, 0);
	/* The last one is still there when the worker goes. */
	stage_close(&s);
}

/* What is announced and kept costs memory here, too: it has a credit until it is released. */
/* @behaviour T6 */
static void announcements_that_a_handler_keeps_hold_credit(void **state)
{
	enum { N = 1000 };
	struct op *op = calloc(N, sizeof(*op));
	const uint32_t most = 100000 / 256;
	uint8_t buf[5000] = {0};
	struct stage s;
	struct log l;

	(void)state;
	pair_defaults(&s.p);
	s.p.conf.unexp_limit = 100000;
	s.p.conf.eager_credit = 4096;
	am_open(&s, &l, 1, 0);
	l.answer = WEFT_INPROGRESS;
	for (int i = 0; i < N; i++)
		am(&op[i], &s, 7, WEFT_AM_SEND_F_RNDV, NULL, 0, buf, sizeof(buf));
	pair_run(&s.p);
	assert_in_range(l.calls, 100, most);
	/* Each that is released lets further ones come: none is lost. */
	for (unsigned int done = 0; done < N;) {
		struct weft_am_data *d = LIST_FIRST(&s.p.w[1].msg->am->kept);

		assert_non_null(d);
		assert_int_equal(weft_am_data_release(&s.p.w[1], d), 0);
		pair_run(&s.p);
		done++;
		assert_in_range(l.calls, done, done + most);
	}
	assert_int_equal(l.calls, N);
	for (int i = 0; i < N; i++)
		op_end(&op[i], 0);
	free(op);
	stage_check_empty(&s);
	stage_close(&s);
}

/* @behaviour U48: a refusal reaches the sender; dropping later is success */
static void U48_a_rejected_rendezvous_notifies_the_sender(void **state)
{
	uint8_t buf[5000] = {0};
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	am_open(&s, &l, 1, 0);
	l.answer = -ENOSPC;
	am(&op, &s, 7, WEFT_AM_SEND_F_RNDV, NULL, 0, buf, sizeof(buf));
	pair_run(&s.p);
	op_end(&op, -ENOSPC);
	l.answer = 0;
	am(&op, &s, 7, WEFT_AM_SEND_F_RNDV, NULL, 0, buf, sizeof(buf));
	pair_run(&s.p);
	op_end(&op, 0);
	/* Later: success, too. */
	l.answer = WEFT_INPROGRESS;
	am(&op, &s, 7, WEFT_AM_SEND_F_RNDV, NULL, 0, buf, sizeof(buf));
	pair_run(&s.p);
	assert_false(op_done(&op));
	assert_int_equal(weft_am_data_release(&s.p.w[1], l.last.desc), 0);
	pair_run(&s.p);
	op_end(&op, 0);
	stage_check_empty(&s);
	stage_close(&s);
}

/* @behaviour U48 */
static void U48_data_can_be_received_after_the_handler(void **state)
{
	uint8_t buf[5000], into[5000];
	struct stage s;
	struct log l;
	struct op op, r;

	(void)state;
	for (int dead = 0; dead < 2; dead++) {
		struct weft_op_params p = op_params(&r, NULL);

		pair_defaults(&s.p);
		am_open(&s, &l, 2, 0);
		l.answer = WEFT_INPROGRESS;
		pattern_fill(4, 0, buf, sizeof(buf));
		am(&op, &s, 7, WEFT_AM_SEND_F_RNDV, NULL, 0, buf, sizeof(buf));
		pair_run(&s.p);
		assert_false(op_done(&op));
		if (dead) {
			pair_fail(&s.p, 0, -ETIMEDOUT);
			pair_fail(&s.p, 1, -ETIMEDOUT);
		}
		r.rc = weft_am_recv_data(&s.p.w[1], l.last.desc, into, 4000, &p, &r.req);
		pair_run(&s.p);
		/* Too small a buffer: as with tags. */
		op_end(&r, dead ? -ECONNRESET : -EMSGSIZE);
		op_end(&op, dead ? -ETIMEDOUT : 0);
		stage_check_empty(&s);
		stage_close(&s);
	}
}

/* @behaviour U52: the header may be reused at once (always, without a flag) */
static void U52_the_header_may_be_reused_when_the_call_returns(void **state)
{
	uint64_t n;
	struct stage s;
	struct log l;
	struct op op[50];
	uint8_t buf[50] = {0};

	(void)state;
	pair_defaults(&s.p);
	am_open(&s, &l, 1, 0);
	pair_room(&s.p, 0, 10);
	for (n = 0; n < 50; n++)
		am(&op[n], &s, 7, n & 1 ? WEFT_AM_SEND_F_RNDV : 0, &n, 8, buf, sizeof(buf));
	n = 99;
	pair_room(&s.p, 0, -1);
	pair_run(&s.p);
	assert_int_equal(l.order, 50);
	for (int i = 0; i < 50; i++)
		op_end(&op[i], 0);
	stage_check_empty(&s);
	stage_close(&s);
}

/* Tries everything with a descriptor after each way to use it up. */
static int user_up(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct log *l = arg;
	struct weft_op_params p = op_params(&l->op, NULL);
	struct op again;
	uint8_t into[8];

	l->calls++;
	if (l->receive)
		l->op.rc =
			weft_am_recv_data(worker, msg->desc, l->into, msg->length, &p, &l->op.req);
	else
		assert_int_equal(weft_am_data_release(worker, msg->desc), 0);
	p = op_params(&again, NULL);
	assert_int_equal(weft_am_recv_data(worker, msg->desc, into, sizeof(into), &p, &again.req),
			 -EINVAL);
	assert_int_equal(weft_am_data_release(worker, msg->desc), -EINVAL);
	assert_int_equal(weft_am_recv_data(worker, NULL, into, sizeof(into), NULL, NULL), -EINVAL);
	assert_int_equal(weft_am_data_release(worker, NULL), -EINVAL);
	/* To keep what is used up is no error: there is nothing to keep. */
	return l->answer;
}

/* @behaviour U47: a descriptor that is used up is refused */
static void U47_a_descriptor_that_is_used_up_is_refused(void **state)
{
	uint8_t buf[5000], into[5000];
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pattern_fill(47, 0, buf, sizeof(buf));
	for (int i = 0; i < 4; i++) {
		pair_defaults(&s.p);
		am_open(&s, &l, 2, 0);
		assert_int_equal(weft_worker_set_am_handler(&s.p.w[1], 7, user_up, &l, 0), 0);
		l.receive = i & 1;
		l.answer = i & 2 ? WEFT_INPROGRESS : 0;
		l.into = into;
		memset(into, 0, sizeof(into));
		am(&op, &s, 7, WEFT_AM_SEND_F_RNDV, NULL, 0, buf, sizeof(buf));
		pair_run(&s.p);
		op_end(&op, 0);
		assert_int_equal(l.calls, 1);
		if (l.receive) {
			op_end(&l.op, 0);
			pattern_expect(47, into, sizeof(into));
		}
		stage_check_empty(&s);
		stage_close(&s);
	}
}

static struct weft_ep *reply_later;
static struct log reply_log;

static int replier(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct weft_am_send_params a = WEFT_INIT(struct weft_am_send_params, .id = 7);

	(void)worker;
	(void)arg;
	reply_later = msg->ep;
	assert_int_equal(weft_am_send(msg->ep, &a, msg->data, msg->length, NULL, NULL), 0);
	return 0;
}

/* @behaviour U45: the reply endpoint works inside the handler and after it */
static void U45_the_endpoint_answers_inside_the_handler_and_after_it(void **state)
{
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	am_open(&s, &l, 1, 0);
	assert_int_equal(weft_worker_set_am_handler(&s.p.w[1], 8, replier, NULL, 0), 0);
	assert_int_equal(weft_worker_set_am_handler(&s.p.w[0], 7, handler, &reply_log, 0), 0);
	am(&op, &s, 8, 0, NULL, 0, "hello", 5);
	op_end(&op, 0);
	pair_run(&s.p);
	assert_int_equal(reply_log.calls, 1);
	assert_memory_equal(reply_log.data, "hello", 5);
	/* The application owns this endpoint, so it may keep it. */
	assert_int_equal(weft_am_send(reply_later, &WEFT_INIT(struct weft_am_send_params, .id = 7),
				      "again", 5, NULL, NULL),
			 0);
	pair_run(&s.p);
	assert_int_equal(reply_log.calls, 2);
	assert_memory_equal(reply_log.data, "again", 5);
	stage_close(&s);
}

static void the_sender_holds_back_at_the_window(void **state)
{
	struct stage s;
	struct log l;
	uint64_t n;

	(void)state;
	pair_defaults(&s.p);
	am_open(&s, &l, 1, 0);
	for (n = 0; n < WEFT_SEQ_WINDOW + 100; n++) {
		struct weft_am_send_params a = WEFT_INIT(struct weft_am_send_params, .id = 7,
							 .header = &n, .header_length = 8);

		assert_in_range(weft_am_send(s.ep, &a, NULL, 0, NULL, NULL), 0, 1);
	}
	assert_int_equal(s.p.num, WEFT_SEQ_WINDOW);
	/* The last first: all of them wait for the others. */
	while (s.p.num > 1)
		pair_deliver(&s.p, s.p.num - 1);
	assert_int_equal(l.calls, 0);
	pair_run(&s.p);
	assert_int_equal(l.order, WEFT_SEQ_WINDOW + 100);
	assert_int_equal(s.p.fail_status[1], 0);
	stage_close(&s);
}

/* @behaviour X16 */
static void hostile_active_messages_are_refused(void **state)
{
	static const struct {
		size_t length;
		uint16_t header;
		uint32_t seq;
		bool rts, good;
	} t[] = {{8, 0, 0, false, true},      {7, 0, 0, false, false},   {8, 1, 0, false, false},
		 {300, 257, 0, false, false}, {28, 0, 0, true, true},    {28, 1, 0, true, false},
		 {30, 0, 0, true, false},     {8, 0, 4096, false, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct weft_wire_am am = {weft_put32(t[i].seq), weft_put16(9),
					  weft_put16(t[i].header)};
		struct stage s;
		struct log l;
		uint8_t *m;

		pair_defaults(&s.p);
		am_open(&s, &l, 1, 0);
		weft_log_level = -1;
		m = calloc(1, t[i].length);
		memcpy(m, &am, t[i].length < sizeof(am) ? t[i].length : sizeof(am));
		weft_msg_recv(&s.p.ep[1], 0, t[i].rts ? WEFT_WIRE_AM_RTS : WEFT_WIRE_AM, m,
			      t[i].length);
		free(m);
		assert_int_equal(s.p.fail_status[1], t[i].good ? 0 : -EPROTO);
		assert_int_equal(s.p.w[1].msg->count.malformed + s.p.w[1].msg->count.far_seq,
				 !t[i].good);
		assert_int_equal(l.calls, 0);
		stage_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(U41_headers_up_to_the_maximum_and_no_further),
		cmocka_unit_test(U42_handlers_are_sparse_and_checked),
		cmocka_unit_test(
			U44_messages_are_delivered_once_and_in_send_order_whatever_size_and_lane),
		cmocka_unit_test(U44_large_messages_and_their_data_by_rendezvous),
		cmocka_unit_test(U46_flags_override_the_threshold),
		cmocka_unit_test(U43_kept_data_stays_until_released_and_holds_credit),
		cmocka_unit_test(announcements_that_a_handler_keeps_hold_credit),
		cmocka_unit_test(U48_a_rejected_rendezvous_notifies_the_sender),
		cmocka_unit_test(U48_data_can_be_received_after_the_handler),
		cmocka_unit_test(U52_the_header_may_be_reused_when_the_call_returns),
		cmocka_unit_test(U45_the_endpoint_answers_inside_the_handler_and_after_it),
		cmocka_unit_test(U47_a_descriptor_that_is_used_up_is_refused),
		cmocka_unit_test(the_sender_holds_back_at_the_window),
		cmocka_unit_test(hostile_active_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
