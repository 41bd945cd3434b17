/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that notify: the handler runs once, when all bytes are in memory, whatever the order of the
 * pieces; never for what is refused; and nothing is left behind.
 */

#include "mock/rma_util.h"

#define MOST 4096
#define SIZE 200300

static const struct pair_lane_params lanes[4] = {
	{.max_short = 256, .max_bcopy = 1024},
	{.max_short = 200, .max_bcopy = 3000, .max_zcopy = 3000, .max_iov = 4},
	{.max_bcopy = 2000, .max_zcopy = 9000, .max_iov = 8, .align = 64},
	{.max_short = 128},
};

/* What the handler has seen. */
static struct {
	struct stage *s;
	unsigned int calls;
	uint64_t imm[MOST];
	struct weft_put_event last;
	uint64_t id; /* contents that must be there */
} seen;

static void on_put(struct weft_worker *worker, const struct weft_put_event *e, void *arg)
{
	assert_ptr_equal(worker, &seen.s->p.w[1]);
	assert_ptr_equal(arg, &seen);
	assert_in_range(seen.calls, 0, MOST - 1);
	seen.imm[seen.calls++] = e->imm;
	seen.last = *e;
	if (seen.id)
		pattern_expect(seen.id, seen.s->mem + e->offset, e->length);
}

static void open_on(struct stage *s, unsigned int n, const struct pair_lane_params *with)
{
	pair_defaults(&s->p);
	stage_open(s, n, with, SIZE);
	memset(&seen, 0, sizeof(seen));
	seen.s = s;
	assert_int_equal(weft_worker_set_put_handler(&s->p.w[1], on_put, &seen), 0);
}

static void close_all(struct stage *s)
{
	if (s->p.ep[1].msg->rma)
		assert_int_equal(s->p.ep[1].msg->rma->noted.num, 0);
	stage_check_empty(s);
	stage_close(s);
}

static void put(struct op *op, struct stage *s, const void *buf, size_t len, uint64_t at,
		uint64_t imm, unsigned int flags)
{
	struct weft_op_params p = rma_params(op, flags | WEFT_OP_F_IMM, NULL);

	p.imm = imm;
	p.channel = (uint16_t)(imm + 1);
	p.source_channel = (uint16_t)(imm + 2);
	op->rc = weft_put(s->ep, buf, len, s->rkey, at, &p, &op->req);
}

/*
 * @behaviour R29: A put that notifies does so once, with all bytes in memory, in whatever order
 * lanes deliver and whichever lane dies; never when a part is refused
 */
static void once_and_after_the_data_whatever_the_size(void **state)
{
	static const size_t sizes[] = {0,   1,   8,    71,   72,   73,   143,   144,   145,  199,
				       200, 201, 967,  968,  969,  2943, 2944,  2945,  8192, 30000,
				       999, 256, 1024, 4096, 8944, 8945, 65536, 200000};
	static uint8_t buf[SIZE];
	uint64_t seed = 7;

	(void)state;
	for (unsigned int n = 1; n <= 4; n++) {
		struct stage s;

		open_on(&s, n, lanes);
		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			size_t len = sizes[i];
			uint64_t at = pair_random(&seed) % 300, imm = pair_random(&seed);
			unsigned int flags = i % 3 == 0                  ? WEFT_OP_F_DELIVERED
					     : i % 3 == 1 && len <= 8192 ? WEFT_OP_F_INJECT
									 : 0;
			struct op op;

			seen.calls = 0;
			seen.id = i + 1;
			pattern_fill(i + 1, 0, buf, len);
			pair_room(&s.p, 0, (int)(i % 4) - 1);
			put(&op, &s, buf, len, at, imm, flags);
			if (flags == WEFT_OP_F_INJECT)
				memset(buf, 0, len);
			pair_room(&s.p, 0, -1);
			pair_run_random(&s.p, &seed);
			op_end(&op, 0);
			assert_int_equal(stage_flush(&s), 0);
			assert_int_equal(seen.calls, 1);
			assert_int_equal(seen.last.length, len);
			assert_int_equal(seen.last.offset, at);
			assert_true(seen.last.imm == imm);
			assert_true(seen.last.key == weft_mem_key(s.m));
			assert_int_equal(seen.last.channel, (uint16_t)(imm + 1));
			assert_int_equal(seen.last.source_channel, (uint16_t)(imm + 2));
			assert_ptr_equal(seen.last.ep, &s.p.ep[1]);
			pattern_expect(i + 1, s.mem + at, len);
		}
		assert_int_equal(s.p.w[1].msg->rma->notes, sizeof(sizes) / sizeof(*sizes));
		close_all(&s);
	}
}

/* Delivered is what the peer was notified of. */
static void delivered_and_flushed_are_after_the_handler(void **state)
{
	static uint8_t buf[30000];
	struct flushed f = {0};
	uint64_t seed = 5;

	(void)state;
	for (int flush = 0; flush < 2; flush++) {
		struct stage s;
		struct op op;

		open_on(&s, 3, lanes);
		f = (struct flushed){0};
		put(&op, &s, buf, sizeof(buf), 0, 1, flush ? 0 : WEFT_OP_F_DELIVERED);
		if (flush)
			assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &f), 0);
		while (!seen.calls) {
			assert_true(s.p.num > 0);
			assert_false(flush ? f.calls : op_done(&op));
			pair_deliver(&s.p, pair_random(&seed) % s.p.num);
			pair_progress(&s.p);
		}
		pair_run(&s.p);
		assert_int_equal(flush ? f.calls : op_done(&op), 1);
		op_end(&op, 0);
		close_all(&s);
	}
}

static void a_fence_orders_them(void **state)
{
	static uint8_t buf[20000];
	uint64_t seed = 9;
	struct op op[20];
	struct stage s;

	(void)state;
	open_on(&s, 3, lanes);
	for (unsigned int i = 0; i < 20; i++) {
		put(&op[i], &s, buf, i & 1 ? 8 : sizeof(buf), 0, i, 0);
		assert_int_equal(weft_ep_fence(s.ep), 0);
	}
	pair_run_random(&s.p, &seed);
	assert_int_equal(stage_flush(&s), 0);
	for (unsigned int i = 0; i < 20; i++) {
		op_end(&op[i], 0);
		assert_int_equal(seen.imm[i], i);
	}
	close_all(&s);
}

/* ------------------------------------------------------------------ what ends early */

/* @behaviour R29 */
static void what_is_refused_causes_no_notification(void **state)
{
	static uint8_t buf[100000];
	uint64_t seed = 11;

	(void)state;
	for (unsigned int round = 0; round < 60; round++) {
		size_t before = 0, len = round % 3 ? sizeof(buf) : 8;
		struct op op[2];
		struct stage s;
		bool first;

		open_on(&s, 1 + round % 3, lanes);
		pair_room(&s.p, 0, (int)(round % 20));
		put(&op[0], &s, buf, len, 0, 1, WEFT_OP_F_DELIVERED);
		put(&op[1], &s, buf, len, 0, 2, 0);
		for (; before < round % 7 && s.p.num; before++)
			pair_deliver(&s.p, pair_random(&seed) % s.p.num);
		before = seen.calls;
		assert_int_equal(weft_mem_deregister(s.m), 0);
		pair_room(&s.p, 0, -1);
		pair_run_random(&s.p, &seed);
		assert_int_equal(seen.calls, before);
		first = (before > 0 && seen.imm[0] == 1) || (before > 1 && seen.imm[1] == 1);
		op_end(&op[0], first ? 0 : -EKEYREJECTED);
		if (op[1].rc == WEFT_INPROGRESS)
			weft_request_free(op[1].req);
		stage_flush(&s);
		s.m = stage_register(&s, s.mem, SIZE, ALL_RIGHTS);
		close_all(&s);
	}
}

static size_t fail_at;

static void *start_pack(void *arg, const void *buffer, size_t count)
{
	(void)arg;
	(void)count;
	return (void *)(uintptr_t)buffer;
}

static size_t packed_size(void *state)
{
	(void)state;
	return 50000;
}

static ssize_t pack(void *state, size_t offset, void *dst, size_t max)
{
	(void)state;
	if (offset + max > fail_at)
		return -EDOM;
	memset(dst, 1, max);
	return (ssize_t)max;
}

static void finish(void *state)
{
	(void)state;
}

/* @behaviour R29 */
static void a_put_that_ends_early_leaves_nothing_behind(void **state)
{
	static const struct weft_generic_ops ops = {.size = sizeof(ops),
						    .start_pack = start_pack,
						    .packed_size = packed_size,
						    .pack = pack,
						    .finish = finish};
	const struct weft_datatype type =
		WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC, .ops = &ops);
	uint64_t seed = 13;

	(void)state;
	for (fail_at = 0; fail_at < 50000; fail_at += 3777) {
		struct weft_op_params p;
		struct stage s;
		struct op op;

		open_on(&s, 3, lanes);
		pair_room(&s.p, 0, (int)(fail_at % 5));
		p = rma_params(&op, WEFT_OP_F_IMM, &type);
		op.rc = weft_put(s.ep, &s, 1, s.rkey, 0, &p, &op.req);
		for (int i = 0; i < 40; i++) {
			pair_room(&s.p, 0, (int)(pair_random(&seed) >> 40) % 3);
			if (s.p.num)
				pair_deliver(&s.p, pair_random(&seed) % s.p.num);
			pair_progress(&s.p);
		}
		pair_room(&s.p, 0, -1);
		pair_run_random(&s.p, &seed);
		op_end(&op, -EDOM);
		assert_int_equal(stage_flush(&s), 0);
		assert_int_equal(seen.calls, 0);
		close_all(&s);
	}
}

static void no_handler_listens(void **state)
{
	uint8_t buf[9000];
	struct stage s;
	struct op op;

	(void)state;
	open_on(&s, 2, lanes);
	for (int closing = 0; closing < 2; closing++) {
		pattern_fill(5 + (uint64_t)closing, 0, buf, sizeof(buf));
		s.p.ep[1].msg->closing = closing;
		assert_int_equal(
			weft_worker_set_put_handler(&s.p.w[1], closing ? on_put : NULL, &seen), 0);
		put(&op, &s, buf, sizeof(buf), 10, 1, WEFT_OP_F_DELIVERED);
		pair_run(&s.p);
		op_end(&op, 0);
		pattern_expect(5 + (uint64_t)closing, s.mem + 10, sizeof(buf));
	}
	s.p.ep[1].msg->closing = false;
	assert_int_equal(seen.calls, 0);
	assert_int_equal(s.p.w[1].msg->rma->notes_dropped, 2);
	close_all(&s);
}

/* ------------------------------------------------------------------ bounds */

static void the_initiator_keeps_to_half_of_what_may_be_begun(void **state)
{
	static uint8_t buf[2000];
	unsigned int most = 0, begun;
	uint64_t seed = 17;
	struct stage s;

	(void)state;
	open_on(&s, 1, lanes);
	seen.calls = 0;
	for (unsigned int i = 0; i < 3500; i++) {
		struct weft_op_params p =
			WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_IMM, .imm = i);

		assert_in_range(weft_put(s.ep, buf, sizeof(buf), s.rkey, 0, &p, NULL), 0, 1);
	}
	/* Of each the first piece comes last. */
	for (;;) {
		for (size_t i = 0; i < s.p.num; i++) {
			const struct weft_wire_ext *x = (const void *)s.p.msgs[i].data;
			const struct weft_wire_put *w = (const void *)(x + 1);

			if (s.p.msgs[i].id == WEFT_WIRE_EXT && weft_get64(w->offset) == 0)
				continue;
			pair_deliver(&s.p, i--);
		}
		pair_progress(&s.p);
		begun = s.p.ep[1].msg->rma->noted.num;
		if (begun == most)
			break;
		most = begun;
	}
	assert_in_range(most, WEFT_WIRE_NOTES / 4, WEFT_WIRE_NOTES / 2);
	pair_run_random(&s.p, &seed);
	assert_int_equal(s.p.fail_status[0] | s.p.fail_status[1], 0);
	assert_int_equal(stage_flush(&s), 0);
	assert_int_equal(seen.calls, 3500);
	close_all(&s);
}

struct wire {
	struct weft_wire_ext x;
	struct weft_wire_put_note n;
	uint8_t bytes[100];
} __attribute__((packed));

static struct wire message(const struct stage *s, uint64_t total, uint32_t number, bool end)
{
	return (struct wire){
		.x = {.id = WEFT_WIRE_PUT,
		      .flags = end ? WEFT_EXT_F_END : WEFT_EXT_F_IMM,
		      .imm = weft_put64(end ? 0 : 7)},
		.n = {.put = {.key = weft_put64(s ? weft_mem_key(s->m) : 1)},
		      .total = weft_put64(total),
		      .number = weft_put32(number)},
	};
}

static void push(struct stage *s, struct wire w, size_t bytes)
{
	stage_push(s, 1, WEFT_WIRE_EXT, &w, offsetof(struct wire, bytes) + bytes);
}

static void a_peer_that_begins_too_many_ends(void **state)
{
	struct stage s;

	(void)state;
	open_on(&s, 1, lanes);
	for (uint32_t i = 0; i < WEFT_WIRE_NOTES; i++)
		push(&s, message(&s, 10, i, false), 9);
	assert_int_equal(s.p.fail_status[1], 0);
	push(&s, message(&s, 10, WEFT_WIRE_NOTES, false), 9);
	assert_int_equal(s.p.fail_status[1], -EPROTO);
	assert_int_equal(seen.calls, 0);
	pair_fail(&s.p, 0, -ECONNRESET);
	close_all(&s);
}

static void what_contradicts_is_counted(void **state)
{
	struct wire w;
	struct stage s;

	(void)state;
	open_on(&s, 1, lanes);
	push(&s, message(&s, 20, 1, false), 10);
	push(&s, message(&s, 21, 1, false), 10); /* another length */
	push(&s, message(&s, 20, 1, false), 11); /* too much */
	w = message(&s, 20, 1, false);
	w.n.put.key = weft_put64(1); /* another memory: refused, too */
	push(&s, w, 10);
	push(&s, message(&s, 21, 1, true), 0); /* more than there is */
	assert_int_equal(s.p.w[1].msg->count.mismatch, 4);
	assert_int_equal(s.p.ep[1].msg->rma->noted.num, 1);
	push(&s, message(&s, 15, 1, true), 0);
	push(&s, message(&s, 15, 1, true), 0);
	assert_int_equal(s.p.w[1].msg->count.mismatch, 5);
	push(&s, message(&s, 20, 1, false), 5);
	assert_int_equal(s.p.ep[1].msg->rma->noted.num, 0);
	assert_int_equal(seen.calls, 0);
	/* An end that overtakes. */
	push(&s, message(&s, 5, 2, true), 0);
	push(&s, message(&s, 20, 2, false), 5);
	assert_int_equal(s.p.ep[1].msg->rma->noted.num, 0);
	assert_int_equal(seen.calls, 0);
	/* The number is free again. */
	push(&s, message(&s, 20, 1, false), 10);
	push(&s, message(&s, 20, 1, false), 10);
	assert_int_equal(seen.calls, 1);
	pair_run(&s.p);
	close_all(&s);
}

static void ext_messages_are_checked(void **state)
{
	static const struct {
		uint64_t total;
		size_t bytes;
		unsigned int flags;
		bool ok;
	} t[] = {
		{0, 0, WEFT_EXT_F_IMM, true},
		{1, 0, WEFT_EXT_F_IMM, false},
		{0, 1, WEFT_EXT_F_IMM, false},
		{5, 5, WEFT_EXT_F_IMM, true},
		{5, 6, WEFT_EXT_F_IMM, false},
		{5, 4, WEFT_EXT_F_IMM, true},
		{5, 0, WEFT_EXT_F_END, true},
		{0, 0, WEFT_EXT_F_END, false},
		{5, 1, WEFT_EXT_F_END, false},
		{5, 5, WEFT_EXT_F_END | WEFT_EXT_F_IMM, false},
		{5, 5, 0, false},
		{5, 5, 4 | WEFT_EXT_F_IMM, false},
		{PTRDIFF_MAX, 5, WEFT_EXT_F_IMM, true},
		{1ull << 63, 5, WEFT_EXT_F_IMM, false},
	};
	size_t head = offsetof(struct wire, bytes);
	struct wire w;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		w = message(NULL, t[i].total, 1, !(t[i].flags & WEFT_EXT_F_IMM));
		w.x.flags = (uint8_t)t[i].flags;
		assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, &w, head + t[i].bytes),
				 t[i].ok ? 0 : -EBADMSG);
		assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, &w, head - 1), -EBADMSG);
	}
	/* An end has none. */
	w = message(NULL, 5, 1, true);
	w.x.imm = weft_put64(1);
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, &w, head), -EBADMSG);
	w = message(NULL, 5, 1, false);
	w.n.put.offset = weft_put64(PTRDIFF_MAX - 4ull);
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, &w, head + 4), 0);
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, &w, head + 5), -EBADMSG);
	w.n.put.offset = weft_put64(0);
	w.n.put.flags = weft_put32(1);
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, &w, head + 4), -EBADMSG);
	/* An END is for puts. */
	w = message(NULL, 5, 1, true);
	w.x.id = WEFT_WIRE_EAGER;
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, &w, head + 4), -EBADMSG);
}

static void wrong_calls(void **state)
{
	struct weft_atomic_params a =
		WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD, .width = 8);
	struct weft_op_params p;
	uint8_t buf[8];
	struct stage s;
	struct op op;

	(void)state;
	open_on(&s, 1, lanes);
	p = rma_params(&op, WEFT_OP_F_IMM, NULL);
	assert_int_equal(weft_get(s.ep, buf, 8, s.rkey, 0, &p, NULL), -EINVAL);
	assert_int_equal(weft_atomic(s.ep, &a, s.rkey, 0, &p, NULL), -EINVAL);
	assert_int_equal(weft_put(s.ep, buf, 8, s.rkey, SIZE, &p, NULL), -ERANGE);
	assert_int_equal(weft_worker_set_put_handler(NULL, on_put, NULL), -EINVAL);
	s.p.ctx.features = WEFT_FEATURE_TAG;
	assert_int_equal(weft_worker_set_put_handler(&s.p.w[1], on_put, NULL), -EOPNOTSUPP);
	assert_int_equal(s.p.sent, 0);
	close_all(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_and_after_the_data_whatever_the_size),
		cmocka_unit_test(delivered_and_flushed_are_after_the_handler),
		cmocka_unit_test(a_fence_orders_them),
		cmocka_unit_test(what_is_refused_causes_no_notification),
		cmocka_unit_test(a_put_that_ends_early_leaves_nothing_behind),
		cmocka_unit_test(no_handler_listens),
		cmocka_unit_test(the_initiator_keeps_to_half_of_what_may_be_begun),
		cmocka_unit_test(a_peer_that_begins_too_many_ends),
		cmocka_unit_test(what_contradicts_is_counted),
		cmocka_unit_test(ext_messages_are_checked),
		cmocka_unit_test(wrong_calls),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
