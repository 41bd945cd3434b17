/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What callers and peers must not do with memory: every refusal is reported, counted, and touches
 * nothing.
 */

#include "mock/rma_util.h"

/* ------------------------------------------------------------------ found in the call */

/*
 * @behaviour X13: remote addresses out of range or not registered
 * @behaviour U79
 */
static void U79_out_of_range_operations_are_refused_in_the_call(void **state)
{
	static const struct {
		uint64_t at;
		size_t len;
		int status;
	} t[] = {{0, 100, 0},       {1, 100, -ERANGE},        {100, 1, -ERANGE},
		 {101, 0, -ERANGE}, {UINT64_MAX, 1, -ERANGE}, {UINT64_MAX - 50, 100, -ERANGE},
		 {99, 1, 0},        {1ull << 63, 8, -ERANGE}};
	uint8_t buf[100] = {0};
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		op_put(&op, &s, buf, t[i].len, t[i].at, WEFT_OP_F_DELIVERED);
		pair_run(&s.p);
		op_end(&op, t[i].status);
		op_get(&op, &s, buf, t[i].len, t[i].at);
		pair_run(&s.p);
		op_end(&op, t[i].status);
	}
	op_amo(&op, &s, WEFT_ATOMIC_ADD, 8, 1, 0, NULL, 96, 0);
	op_end(&op, -ERANGE);
	op_amo(&op, &s, WEFT_ATOMIC_ADD, 8, 1, 0, NULL, UINT64_MAX - 7, 0);
	op_end(&op, -ERANGE);
	stage_check_empty(&s);
	stage_close(&s);
}

/* @behaviour U79, X13 */
static void rights_are_checked_in_the_call_and_at_the_target(void **state)
{
	static const unsigned int right[3] = {WEFT_MEM_F_REMOTE_READ, WEFT_MEM_F_REMOTE_WRITE,
					      WEFT_MEM_F_REMOTE_ATOMIC};
	uint64_t word = 0;

	(void)state;
	for (int lie = 0; lie < 2; lie++) {
		for (int i = 0; i < 3; i++) {
			uint64_t mem[4] = {1, 2, 3, 4}, old;
			struct weft_rkey *all;
			struct weft_mem *m;
			struct stage s;
			struct op op;

			pair_defaults(&s.p);
			stage_open(&s, 1, NULL, 100);
			all = s.rkey;
			m = stage_register(&s, mem, sizeof(mem), right[i]);
			s.rkey = stage_key(&s, m);
			if (lie)
				s.rkey->rights = ALL_RIGHTS;
			op_get(&op, &s, &word, 8, 0);
			pair_run(&s.p);
			op_end(&op, i == 0 ? 0 : -EACCES);
			op_put(&op, &s, &word, 8, 8, WEFT_OP_F_DELIVERED);
			pair_run(&s.p);
			op_end(&op, i == 1 ? 0 : -EACCES);
			op_amo(&op, &s, WEFT_ATOMIC_SWAP, 8, 7, 0, &old, 16, 0);
			pair_run(&s.p);
			op_end(&op, i == 2 ? 0 : -EACCES);
			assert_int_equal(s.p.w[1].msg->rma->bad_rights, lie ? 2 : 0);
			assert_int_equal(mem[1], i == 1 ? word : 2);
			assert_int_equal(mem[2], i == 2 ? 7 : 3);
			assert_int_equal(mem[0] + mem[3], 5);
			weft_rkey_destroy(s.rkey);
			assert_int_equal(weft_mem_deregister(m), 0);
			s.rkey = all;
			stage_close(&s);
		}
	}
}

static void ends_with_erange(struct stage *s, uint8_t *buf, uint64_t at, size_t len)
{
	const struct weft_msg_worker *target = s->p.w[1].msg;
	uint64_t refused = target->rma->bad_range;
	struct op op;

	op_put(&op, s, buf, len, at, WEFT_OP_F_DELIVERED);
	pair_run(&s->p);
	op_end(&op, -ERANGE);
	assert_true(target->rma->bad_range > refused);
	refused = target->rma->bad_range;
	op_get(&op, s, buf, len, at);
	pair_run(&s->p);
	op_end(&op, -ERANGE);
	assert_int_equal(target->rma->bad_range, refused + 1);
}

/* A peer that believes in a larger memory than there is. */
/* @behaviour X13 */
static void out_of_range_operations_are_refused_and_counted_at_the_target(void **state)
{
	static const struct {
		uint64_t at;
		size_t len;
	} t[] = {{2000, 1}, {1999, 2}, {2001, 1}, {PTRDIFF_MAX - 8, 8}, {4000, 3000}};
	uint8_t mem[6000], buf[3000] = {0};
	uint64_t old = 77, refused;
	struct weft_rkey *all;
	struct weft_mem *m;
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 2, NULL, 100);
	all = s.rkey;
	memset(mem, 0xa5, sizeof(mem));
	m = stage_register(&s, mem + 2000, 2000, ALL_RIGHTS);
	s.rkey = stage_key(&s, m);
	s.rkey->size = UINT64_MAX;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		ends_with_erange(&s, buf, t[i].at, t[i].len);
	refused = s.p.w[1].msg->rma->bad_range;
	op_amo(&op, &s, WEFT_ATOMIC_ADD, 8, 1, 0, &old, 2000, 0);
	pair_run(&s.p);
	op_end(&op, -ERANGE);
	assert_int_equal(old, 77);
	assert_int_equal(s.p.w[1].msg->rma->bad_range, refused + 1);
	assert_int_equal(s.p.w[1].msg->rma->puts + s.p.w[1].msg->rma->amos, 0);
	for (size_t i = 0; i < sizeof(mem); i++)
		assert_int_equal(mem[i], 0xa5);
	/* Each PUT of one that goes over the end is judged for itself. */
	ends_with_erange(&s, buf, 1, 2000);
	/* What is inside works as before. */
	op_put(&op, &s, buf, 8, 1992, WEFT_OP_F_DELIVERED);
	pair_run(&s.p);
	op_end(&op, 0);
	for (size_t i = 0; i < sizeof(mem); i++)
		if (i <= 2000 || i >= 3992)
			assert_int_equal(mem[i], i >= 3992 && i < 4000 ? 0 : 0xa5);
	assert_int_equal(s.p.fail_status[0] | s.p.fail_status[1], 0);
	stage_check_empty(&s);
	weft_rkey_destroy(s.rkey);
	assert_int_equal(weft_mem_deregister(m), 0);
	s.rkey = all;
	stage_close(&s);
}

/* No memory has such bytes: this is no mistake about a size. */
/* @behaviour X13 */
static void offsets_that_no_memory_can_have_end_the_connection(void **state)
{
	static const uint64_t at[] = {1ull << 63, PTRDIFF_MAX - 7, UINT64_MAX - 8};
	uint64_t word = 0;

	(void)state;
	weft_log_level = -1; /* on purpose */
	for (unsigned int i = 0; i < 3; i++) {
		for (int what = 0; what < 3; what++) {
			struct stage s;
			struct op op;

			pair_defaults(&s.p);
			stage_open(&s, 1, NULL, 100);
			s.rkey->size = UINT64_MAX;
			s.rkey->low = (uint8_t)-at[i]; /* aligned, as far as the initiator knows */
			if (what == 0)
				op_put(&op, &s, &word, 8, at[i], WEFT_OP_F_DELIVERED);
			else if (what == 1)
				op_get(&op, &s, &word, 8, at[i]);
			else
				op_amo(&op, &s, WEFT_ATOMIC_ADD, 8, 1, 0, NULL, at[i],
				       WEFT_OP_F_DELIVERED);
			pair_run(&s.p);
			assert_int_equal(s.p.fail_status[1], -EPROTO);
			assert_false(op_done(&op));
			pair_fail(&s.p, 0, -ECONNRESET);
			pair_run(&s.p);
			op_end(&op, -ECONNRESET);
			stage_untouched(&s);
			stage_close(&s);
		}
	}
}

static void features_that_were_not_requested_are_refused(void **state)
{
	uint64_t word = 0;
	struct weft_mem *m;
	struct stage s;
	struct op op;
	static const uint64_t only[] = {WEFT_FEATURE_TAG, WEFT_FEATURE_RMA, WEFT_FEATURE_AMO32,
					WEFT_FEATURE_AMO64};

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	for (int i = 0; i < 4; i++) {
		struct weft_mem_params mp =
			WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_ATOMIC);

		s.p.ctx.features = only[i];
		op_put(&op, &s, &word, 8, 0, 0);
		op_end(&op, i == 1 ? 0 : -EOPNOTSUPP);
		op_amo(&op, &s, WEFT_ATOMIC_ADD, 4, 0, 0, NULL, 0, 0);
		op_end(&op, i == 2 ? 0 : -EOPNOTSUPP);
		op_amo(&op, &s, WEFT_ATOMIC_ADD, 8, 0, 0, NULL, 0, 0);
		op_end(&op, i == 3 ? 0 : -EOPNOTSUPP);
		if (i >= 2)
			continue;
		assert_int_equal(weft_mem_register(&s.p.ctx, &word, 8, &mp, &m), -EOPNOTSUPP);
	}
	s.p.ctx.features = WEFT_FEATURE_TAG;
	assert_int_equal(weft_rkey_unpack(s.ep, "", 0, &s.rkey), -EOPNOTSUPP);
	s.p.ctx.features = ALL_FEATURES;
	pair_run(&s.p);
	stage_close(&s);
}

static void parameters_are_checked(void **state)
{
	struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = 8);
	struct weft_datatype dt = WEFT_INIT(struct weft_datatype, .dt_class = 9);
	struct weft_op_params p =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_SOURCE_CHANNEL);
	struct weft_rkey other;
	struct weft_mem *m;
	uint64_t word = 0;
	struct stage s;
	size_t length;
	void *blob;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	assert_int_equal(weft_mem_register(&s.p.ctx, &word, 8, &mp, &m), -EINVAL);
	assert_int_equal(weft_put(s.ep, &word, 8, s.rkey, 0, &p, NULL), -EINVAL);
	p.flags = 0;
	p.datatype = &dt;
	assert_int_equal(weft_get(s.ep, &word, 8, s.rkey, 0, &p, NULL), -EINVAL);
	assert_int_equal(weft_put(s.ep, NULL, 8, s.rkey, 0, NULL, NULL), -EINVAL);
	assert_int_equal(weft_put(s.ep, &word, 8, NULL, 0, NULL, NULL), -EINVAL);
	assert_int_equal(weft_put(NULL, &word, 8, s.rkey, 0, NULL, NULL), -EINVAL);
	assert_int_equal(weft_atomic(s.ep, NULL, s.rkey, 0, NULL, NULL), -EINVAL);
	/* A key of another worker. */
	other = *s.rkey;
	other.remote_id++;
	assert_int_equal(weft_put(s.ep, &word, 8, &other, 0, NULL, NULL), -EINVAL);
	m = stage_register(&s, &word, 8, 0);
	assert_int_equal(weft_rkey_pack(m, &blob, &length), -EACCES);
	assert_int_equal(weft_mem_deregister(m), 0);
	assert_int_equal(s.p.w[0].msg->reqs.in_use, 0);
	stage_close(&s);
}

/* ------------------------------------------------------------------ hostile messages */

/* @behaviour X16 */
static void malformed_messages_end_the_connection(void **state)
{
	static const uint8_t ids[] = {WEFT_WIRE_PUT,       WEFT_WIRE_GET,        WEFT_WIRE_GET_DATA,
				      WEFT_WIRE_AMO,       WEFT_WIRE_AMO_REP,    WEFT_WIRE_RMA_NAK,
				      WEFT_WIRE_RMA_FLUSH, WEFT_WIRE_RMA_FLUSHED};
	static const size_t sizes[] = {28, 44, 16, 48, 16, 20, 12, 36};
	uint8_t zero[64] = {0};

	(void)state;
	weft_log_level = -1; /* on purpose */
	for (unsigned int i = 0; i < sizeof(ids); i++) {
		for (size_t len = 0; len <= sizes[i]; len++) {
			/* Whole, of zeroes: a length, a status or a width that must not be 0. */
			bool good = len == sizes[i] &&
				    (ids[i] == WEFT_WIRE_AMO_REP || ids[i] >= WEFT_WIRE_RMA_FLUSH);
			struct stage s;

			pair_defaults(&s.p);
			stage_open(&s, 1, NULL, 100);
			stage_push(&s, 1, ids[i], zero, len);
			assert_int_equal(s.p.fail_status[1], good ? 0 : -EPROTO);
			stage_untouched(&s);
			stage_close(&s);
		}
	}
}

static void a_peer_that_ignores_the_window_is_cut_off(void **state)
{
	struct weft_wire_get get = {.length = weft_put64(100)};
	struct stage s;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	get.key = weft_put64(s.m->key);
	pair_room(&s.p, 1, 0);
	for (int i = 0; i < WEFT_WIRE_ANSWERS; i++)
		stage_push(&s, 1, WEFT_WIRE_GET, &get, sizeof(get));
	assert_int_equal(s.p.fail_status[1], 0);
	stage_push(&s, 1, WEFT_WIRE_GET, &get, sizeof(get));
	assert_int_equal(s.p.fail_status[1], -EPROTO);
	assert_int_equal(s.p.w[1].msg->rma->too_many, 1);
	stage_check_empty(&s);
	stage_close(&s);
}

/* @behaviour X15 */
static void answers_without_a_request_are_dropped_and_counted(void **state)
{
	struct {
		struct weft_wire_data d;
		uint8_t bytes[100];
	} __attribute__((packed)) data = {.d = {.offset = weft_put64(0)}};
	struct weft_wire_amo_rep rep = {.value = weft_put64(1)};
	struct weft_wire_rma_flushed f = {.count = weft_put64(7)};
	struct weft_msg_worker *mw;
	uint8_t buf[200];
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 200);
	mw = s.p.w[0].msg;
	memset(buf, 0x11, sizeof(buf));
	stage_push(&s, 0, WEFT_WIRE_GET_DATA, &data, sizeof(data));
	stage_push(&s, 0, WEFT_WIRE_AMO_REP, &rep, sizeof(rep));
	assert_int_equal(mw->rma->bad_ref, 2);
	stage_push(&s, 0, WEFT_WIRE_RMA_FLUSHED, &f, sizeof(f));
	assert_int_equal(mw->count.mismatch, 1);
	op_get(&op, &s, buf, 200, 0);
	data.d.rreq = rep.ref = weft_request_ref(op.req);
	stage_push(&s, 0, WEFT_WIRE_AMO_REP, &rep, sizeof(rep)); /* of another kind */
	assert_int_equal(mw->rma->bad_ref, 3);
	stage_push(&s, 0, WEFT_WIRE_GET_DATA, &data, sizeof(data));
	stage_push(&s, 0, WEFT_WIRE_GET_DATA, &data, sizeof(data)); /* twice */
	assert_int_equal(mw->count.overlap, 1);
	data.d.offset = weft_put64(150); /* past the end */
	stage_push(&s, 0, WEFT_WIRE_GET_DATA, &data, sizeof(data));
	assert_int_equal(mw->count.mismatch, 2);
	data.d.offset = weft_put64(100);
	stage_push(&s, 0, WEFT_WIRE_GET_DATA, &data, sizeof(data));
	op_end(&op, 0);
	stage_push(&s, 0, WEFT_WIRE_GET_DATA, &data, sizeof(data)); /* over */
	assert_int_equal(mw->rma->bad_ref, 4);
	assert_int_equal(s.p.fail_status[0], 0);
	stage_close(&s);
}

/* What was refused may come all the same, from a peer that wants to be paid twice. */
/* @behaviour X15 */
static void bytes_that_were_refused_and_come_are_not_counted_twice(void **state)
{
	enum { LEN = 5 << 20 };
	struct {
		struct weft_wire_data d;
		uint8_t bytes[100];
	} __attribute__((packed)) data = {.d = {.offset = weft_put64(0)}};
	struct weft_wire_rma_nak nak = {.status = weft_put16(EACCES)};
	struct weft_msg_worker *mw;
	uint8_t *buf = malloc(LEN);
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, LEN);
	mw = s.p.w[0].msg;
	op_get(&op, &s, buf, LEN, 0);
	assert_true(op.req->send.offset > 0 && op.req->send.offset < LEN);
	data.d.rreq = nak.ref = weft_request_ref(op.req);
	nak.length = weft_put64(64 << 10);
	for (uint64_t n = op.req->send.offset; n > 0; n -= 64 << 10)
		stage_push(&s, 0, WEFT_WIRE_RMA_NAK, &nak, sizeof(nak));
	assert_int_equal(mw->rma->gets.used, 0);
	stage_push(&s, 0, WEFT_WIRE_GET_DATA, &data, sizeof(data));
	assert_int_equal(mw->count.mismatch, 1);
	assert_int_equal(mw->rma->gets.used, 0);
	assert_int_equal(s.p.ep[0].msg->rma->open, 0);
	pair_run(&s.p);
	op_end(&op, -EACCES);
	assert_int_equal(mw->rma->gets.used, 0);
	free(buf);
	stage_close(&s);
}

/* @behaviour U81: requests describe themselves in every state */
static void U81_requests_describe_themselves_in_every_state(void **state)
{
	uint8_t buf[3000];
	char text[200];
	uint64_t old;
	struct stage s;
	struct op op[3];

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 3000);
	for (int room = 0; room < 2; room++) {
		pair_room(&s.p, 0, room ? -1 : 0);
		op_put(&op[0], &s, buf, 3000, 0, WEFT_OP_F_DELIVERED);
		op_get(&op[1], &s, buf, 3000, 0);
		op_amo(&op[2], &s, WEFT_ATOMIC_ADD, 8, 1, 0, &old, 0, 0);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(op[i].rc, WEFT_INPROGRESS);
			assert_true(weft_request_query(op[i].req, text, sizeof(text)) > 20);
			assert_int_equal(weft_request_cancel(op[i].req), -EBUSY);
		}
		assert_non_null(strstr(text, room ? "waiting for the peer" : "queued"));
		pair_room(&s.p, 0, -1);
		pair_run(&s.p);
		for (int i = 0; i < 3; i++) {
			assert_true(weft_request_query(op[i].req, text, sizeof(text)) > 20);
			assert_int_equal(weft_request_cancel(op[i].req), -EALREADY);
			op_end(&op[i], 0);
		}
	}
	stage_close(&s);
}

/*
 * What a peer tears into islands counts for its worker until the get is over, however that is: else
 * honest peers would end for it.
 */
static void ranges_of_a_get_that_fails_are_given_back(void **state)
{
	static uint8_t buf[4000];
	struct {
		struct weft_wire_data hdr;
		uint8_t byte;
	} __attribute__((packed)) m = {.byte = 1};
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, sizeof(buf));
	op_get(&op, &s, buf, sizeof(buf), 0);
	m.hdr.rreq = weft_request_ref(op.req);
	for (size_t off = 0; off < 1200; off += 2) {
		m.hdr.offset = weft_put64(off);
		stage_push(&s, 0, WEFT_WIRE_GET_DATA, &m, sizeof(m));
	}
	assert_int_equal(s.p.ep[0].msg->rx_ranges, 599);
	assert_int_equal(s.p.w[0].msg->rx_ranges, 599 - WEFT_RX_RANGES_FLOOR);
	pair_fail(&s.p, 0, -ECONNRESET);
	op_end(&op, -ECONNRESET);
	assert_int_equal(s.p.ep[0].msg->rx_ranges, 0);
	assert_int_equal(s.p.w[0].msg->rx_ranges, 0);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(U79_out_of_range_operations_are_refused_in_the_call),
		cmocka_unit_test(rights_are_checked_in_the_call_and_at_the_target),
		cmocka_unit_test(out_of_range_operations_are_refused_and_counted_at_the_target),
		cmocka_unit_test(offsets_that_no_memory_can_have_end_the_connection),
		cmocka_unit_test(features_that_were_not_requested_are_refused),
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(malformed_messages_end_the_connection),
		cmocka_unit_test(a_peer_that_ignores_the_window_is_cut_off),
		cmocka_unit_test(answers_without_a_request_are_dropped_and_counted),
		cmocka_unit_test(bytes_that_were_refused_and_come_are_not_counted_twice),
		cmocka_unit_test(ranges_of_a_get_that_fails_are_given_back),
		cmocka_unit_test(U81_requests_describe_themselves_in_every_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
