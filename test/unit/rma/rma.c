/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, gets, atomics and fences by messages, over lanes that deliver in any order. */

#include "sim/buffers.h"
#include "mock/rma_util.h"

static const struct pair_lane_params lanes[4] = {
	{.max_short = 256, .max_bcopy = 1024},
	{.max_short = 200, .max_bcopy = 3000, .max_zcopy = 3000, .max_iov = 4},
	{.max_bcopy = 2000, .max_zcopy = 9000, .max_iov = 8, .align = 64},
	{.max_short = 128},
};

static const size_t sizes[] = {0,   1,   7,    8,    100,  171,  172,   173,   227,   228,   229,
			       256, 999, 1000, 1001, 4096, 8191, 30000, 65536, 65537, 200000};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* ------------------------------------------------------------------ data */

/*
 * @behaviour U79: put and get of every size, datatype and number of lanes; no bytes; wrong keys,
 * ranges, rights
 */
static void B1_put_and_get_of_every_size_over_1_to_4_lanes(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (unsigned int n = 1; n <= 4; n++) {
		struct stage s;
		uint8_t *buf = malloc(200000);

		pair_defaults(&s.p);
		stage_open(&s, n, lanes, 200300);
		for (unsigned int i = 0; i < SIZES; i++) {
			uint64_t at = pair_random(&seed) % 300;
			struct op put, get;

			pattern_fill(i, 0, buf, sizes[i]);
			op_put(&put, &s, buf, sizes[i], at, i & 1 ? WEFT_OP_F_DELIVERED : 0);
			pair_run_random(&s.p, &seed);
			assert_true(op_done(&put));
			op_end(&put, 0);
			assert_int_equal(stage_flush(&s), 0);
			pattern_expect(i, s.mem + at, sizes[i]);
			memset(buf, 0, sizes[i]);
			op_get(&get, &s, buf, sizes[i], at);
			pair_run_random(&s.p, &seed);
			if (sizes[i])
				assert_int_equal(get.c.length, sizes[i]);
			op_end(&get, 0);
			pattern_expect(i, buf, sizes[i]);
		}
		stage_check_empty(&s);
		free(buf);
		stage_close(&s);
	}
}

/* @behaviour U79 */
static void U79_contig_iov_and_generic_local_buffers(void **state)
{
	static const size_t some[] = {1, 100, 3000, 70000};
	struct sim_rng dice = sim_rng_make(1, 2);
	uint64_t seed = 3;
	struct stage s;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 3, lanes, 80000);
	for (unsigned int kind = BUF_CONTIG; kind <= BUF_GENERIC; kind++) {
		for (unsigned int i = 0; i < 4; i++) {
			struct buf *w = buf_send(&dice, kind, i, some[i]);
			struct buf *r = buf_recv(&dice, kind, some[i]);
			struct weft_op_params p;
			struct op op;

			p = rma_params(&op, WEFT_OP_F_DELIVERED, buf_datatype(w));
			op.rc = weft_put(s.ep, buf_pointer(w), buf_count(w), s.rkey, 5, &p,
					 &op.req);
			pair_run_random(&s.p, &seed);
			op_end(&op, 0);
			p = rma_params(&op, 0, buf_datatype(r));
			op.rc = weft_get(s.ep, buf_pointer(r), buf_count(r), s.rkey, 5, &p,
					 &op.req);
			pair_run_random(&s.p, &seed);
			op_end(&op, 0);
			assert_null(buf_verify(r, i, some[i]));
			assert_null(buf_free(w));
			assert_null(buf_free(r));
		}
	}
	stage_check_empty(&s);
	stage_close(&s);
}

/* @behaviour U79 */
static void U79_zero_length_is_done_at_once(void **state)
{
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	op_put(&op, &s, NULL, 0, 100, WEFT_OP_F_DELIVERED);
	op_end(&op, 0);
	op_get(&op, &s, NULL, 0, 0);
	op_end(&op, 0);
	op_put(&op, &s, NULL, 0, 101, 0);
	op_end(&op, -ERANGE);
	assert_int_equal(s.p.sent, 0);
	op_put(&op, &s, NULL, 0, 0, WEFT_OP_F_FORCE_REQUEST);
	assert_int_equal(op.rc, WEFT_INPROGRESS);
	pair_run(&s.p);
	op_end(&op, 0);
	stage_close(&s);
}

static void a_get_sends_straight_from_registered_memory(void **state)
{
	static const struct pair_lane_params zc = {
		.max_short = 128, .max_bcopy = 256, .max_zcopy = 4096, .max_iov = 2};
	uint8_t buf[20000];
	struct stage s;
	struct op get;
	size_t zcopies = 0;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, &zc, 20000);
	pattern_fill(1, 0, s.mem, 20000);
	op_get(&get, &s, buf, sizeof(buf), 0);
	pair_deliver(&s.p, 0);
	for (size_t i = 0; i < s.p.num; i++)
		zcopies += s.p.msgs[i].comp != NULL;
	assert_in_range(zcopies, 4, 5);
	/* While lanes read it, it cannot go; its key is dead all the same. */
	assert_int_equal(weft_mem_deregister(s.m), -EBUSY);
	pair_run(&s.p);
	op_end(&get, 0);
	pattern_expect(1, buf, sizeof(buf));
	op_get(&get, &s, buf, 10, 0);
	pair_run(&s.p);
	op_end(&get, -EKEYREJECTED);
	stage_check_empty(&s);
	stage_close(&s);
}

/* @behaviour E6 */
static void E6_no_room_delays_and_nothing_is_lost(void **state)
{
	uint8_t buf[3][5000], back[3][5000];
	struct op put[3], get[3];
	uint64_t old[3] = {0}, seed = 9;
	struct op amo[3];
	struct stage s;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 3, lanes, 40000);
	memset(s.mem + 30000, 0, 8);
	pair_room(&s.p, 0, 0);
	pair_room(&s.p, 1, 0);
	for (unsigned int i = 0; i < 3; i++) {
		pattern_fill(i, 0, buf[i], 5000);
		op_put(&put[i], &s, buf[i], 5000, i * 5000, WEFT_OP_F_DELIVERED);
		op_amo(&amo[i], &s, WEFT_ATOMIC_ADD, 8, 1, 0, &old[i], 30000, 0);
		pattern_fill(10 + i, 0, s.mem + 15000 + i * 5000, 5000);
		op_get(&get[i], &s, back[i], 5000, 15000 + i * 5000);
		assert_int_equal(put[i].rc, WEFT_INPROGRESS);
	}
	for (unsigned int k = 0; k < 400; k++) {
		pair_room(&s.p, k & 1, 1);
		pair_progress(&s.p);
		pair_room(&s.p, k & 1, 0);
		if (s.p.num && pair_random(&seed) % 3)
			pair_deliver(&s.p, pair_random(&seed) % s.p.num);
	}
	pair_room(&s.p, 0, -1);
	pair_room(&s.p, 1, -1);
	pair_run(&s.p);
	for (unsigned int i = 0; i < 3; i++) {
		op_end(&put[i], 0);
		op_end(&get[i], 0);
		op_end(&amo[i], 0);
		pattern_expect(i, s.mem + i * 5000, 5000);
		pattern_expect(10 + i, back[i], 5000);
	}
	assert_int_equal(old[0] + old[1] + old[2], 3);
	stage_check_empty(&s);
	stage_close(&s);
}

/* ------------------------------------------------------------------ atomics */

static uint64_t model(enum weft_atomic_op op, uint64_t word, uint64_t operand, uint64_t compare)
{
	switch (op) {
	case WEFT_ATOMIC_ADD:
		return word + operand;
	case WEFT_ATOMIC_AND:
		return word & operand;
	case WEFT_ATOMIC_OR:
		return word | operand;
	case WEFT_ATOMIC_XOR:
		return word ^ operand;
	case WEFT_ATOMIC_SWAP:
		return operand;
	default:
		return word == compare ? operand : word;
	}
}

static void every_atomic_agrees_with_the_model(void **state)
{
	uint64_t seed = 5, word[2] = {0};
	struct stage s;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 2, lanes, 64);
	memset(s.mem, 0, 64);
	for (unsigned int k = 0; k < 2000; k++) {
		unsigned int width = k & 1 ? 8 : 4;
		enum weft_atomic_op what = pair_random(&seed) % 6;
		uint64_t mask = width == 8 ? UINT64_MAX : UINT32_MAX;
		uint64_t *w = &word[k & 1], operand = pair_random(&seed), compare, old = 0,
			 seen = 0;
		bool fetch = pair_random(&seed) & 1;
		struct op op;

		compare = pair_random(&seed) & 1 ? *w : pair_random(&seed);
		op_amo(&op, &s, what, width, operand, compare, fetch ? &old : NULL, k & 1 ? 8 : 4,
		       pair_random(&seed) & 1 ? WEFT_OP_F_DELIVERED : 0);
		if (fetch)
			assert_int_equal(op.rc, WEFT_INPROGRESS);
		pair_run_random(&s.p, &seed);
		op_end(&op, 0);
		if (fetch)
			assert_true(old == *w);
		*w = model(what, *w, operand & mask, compare & mask) & mask;
		memcpy(&seen, s.mem + (k & 1 ? 8 : 4), width);
		assert_true(seen == *w);
	}
	/* What lies beside the words is untouched. */
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(i >= 4 && i < 16 && (i < 8 || i >= 8) ? 0 : s.mem[i], 0);
	stage_check_empty(&s);
	stage_close(&s);
}

/*
 * @behaviour U80: misaligned atomics are an error, at either end
 * @behaviour X16: misaligned atomics, oversized headers, malformed messages
 */
static void U80_misaligned_atomics_are_refused_at_both_ends(void **state)
{
	struct weft_wire_amo amo = {.op = 0, .width = 8, .flags = weft_put16(WEFT_WIRE_AMO_FETCH)};
	uint64_t old, at;
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 64);
	for (at = 0; at < 16; at++) {
		op_amo(&op, &s, WEFT_ATOMIC_ADD, 8, 1, 0, &old, at, 0);
		pair_run(&s.p);
		op_end(&op, at % 8 ? -EINVAL : 0);
		op_amo(&op, &s, WEFT_ATOMIC_ADD, 4, 1, 0, NULL, at, 0);
		op_end(&op, at % 4 ? -EINVAL : 0);
	}
	op_amo(&op, &s, WEFT_ATOMIC_ADD, 2, 1, 0, NULL, 0, 0);
	op_end(&op, -EINVAL);
	op_amo(&op, &s, 6, 8, 1, 0, NULL, 0, 0);
	op_end(&op, -EINVAL);
	pair_run(&s.p);
	/* A peer that does not look. */
	amo.key = weft_put64(s.m->key);
	amo.offset = weft_put64(4);
	memset(s.mem, 7, 64);
	weft_msg_recv(&s.p.ep[1], 0, WEFT_WIRE_AMO, &amo, sizeof(amo));
	assert_int_equal(s.p.w[1].msg->rma->misaligned, 1);
	for (int i = 0; i < 64; i++)
		assert_int_equal(s.mem[i], 7);
	assert_int_equal(s.p.num, 1);
	assert_int_equal(s.p.msgs[0].id, WEFT_WIRE_RMA_NAK);
	pair_drop(&s.p, 0);
	stage_close(&s);
}

/* ------------------------------------------------------------------ order */

/*
 * @behaviour U77: fences: put, add, get over several lanes; between endpoints; native with messages
 */
static void U77_a_fence_orders_what_stands_around_it(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int round = 0; round < 50; round++) {
		uint64_t old = 0, zero = 0;
		uint8_t buf[3000], back[3000];
		struct op a, b, get, amo;
		struct stage s;

		pair_defaults(&s.p);
		stage_open(&s, 3, lanes, 4000);
		memcpy(s.mem + 3200, &zero, 8);
		pattern_fill(1, 0, buf, 3000);
		op_put(&a, &s, buf, 3000, 0, 0);
		assert_int_equal(weft_ep_fence(s.ep), 0);
		pattern_fill(2, 0, back, 3000);
		op_put(&b, &s, back, 2000, 0, 0);
		op_amo(&amo, &s, WEFT_ATOMIC_ADD, 8, 1, 0, NULL, 3200, 0);
		assert_int_equal(weft_ep_fence(s.ep), 0);
		op_get(&get, &s, back + 2000, 1000, 1500);
		assert_int_equal(b.rc, WEFT_INPROGRESS);
		/* The fetching add comes later than the counting one. */
		pair_run_random(&s.p, &seed);
		op_end(&a, 0);
		op_end(&b, 0);
		op_end(&amo, 0);
		op_end(&get, 0);
		pattern_expect(2, s.mem, 2000);
		for (size_t i = 0; i < 500; i++)
			assert_int_equal(back[2000 + i], pattern_byte(2, 1500 + i));
		for (size_t i = 500; i < 1000; i++)
			assert_int_equal(back[2000 + i], pattern_byte(1, 1500 + i));
		op_amo(&amo, &s, WEFT_ATOMIC_ADD, 8, 1, 0, &old, 3200, 0);
		pair_run_random(&s.p, &seed);
		op_end(&amo, 0);
		assert_int_equal(old, 1);
		stage_check_empty(&s);
		stage_close(&s);
	}
}

static void a_fence_with_nothing_outstanding_costs_nothing(void **state)
{
	struct stage s;
	struct op op;
	uint8_t b = 1;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 100);
	assert_int_equal(weft_ep_fence(s.ep), 0);
	op_put(&op, &s, &b, 1, 0, 0);
	op_end(&op, 0);
	assert_int_equal(stage_flush(&s), 0);
	assert_int_equal(weft_ep_fence(s.ep), 0);
	op_put(&op, &s, &b, 1, 0, 0);
	op_end(&op, 0);
	assert_int_equal(s.p.num, 1);
	pair_run(&s.p);
	stage_close(&s);
}

/* @behaviour U40 */
static void a_delivered_put_is_done_when_its_bytes_are_there(void **state)
{
	uint8_t buf[2500];
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, NULL, 4000);
	pattern_fill(3, 0, buf, sizeof(buf));
	op_put(&op, &s, buf, sizeof(buf), 0, WEFT_OP_F_DELIVERED);
	/* The question for it overtakes the last piece: no answer yet. */
	while (s.p.num > 1)
		pair_deliver(&s.p, s.p.msgs[0].id == WEFT_WIRE_PUT && s.p.num == 2 ? 1 : 0);
	assert_false(op_done(&op));
	pair_deliver(&s.p, 0);
	pattern_expect(3, s.mem, sizeof(buf));
	assert_false(op_done(&op));
	pair_run(&s.p);
	op_end(&op, 0);
	stage_close(&s);
}

/* @behaviour U40: a flush ends when the data before it is at the target, rendezvous too */
static void U40_flush_ends_when_everything_is_in_the_peers_memory(void **state)
{
	struct flushed f = {0};
	uint8_t buf[5000];
	uint64_t seed = 4;
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 3, lanes, 5000);
	pattern_fill(3, 0, buf, sizeof(buf));
	op_put(&op, &s, buf, sizeof(buf), 0, 0);
	assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &f), 0);
	while (!f.calls) {
		if (s.p.num)
			pair_deliver(&s.p, pair_random(&seed) % s.p.num);
		pair_progress(&s.p);
	}
	pattern_expect(3, s.mem, sizeof(buf));
	assert_int_equal(f.status, 0);
	pair_run(&s.p);
	op_end(&op, 0);
	stage_check_empty(&s);
	stage_close(&s);
}

/* Lanes overtake each other: what comes later says nothing of what is still on its way. */
/* @behaviour U40 */
static void what_was_overtaken_is_neither_delivered_nor_flushed(void **state)
{
	uint8_t first = 1, second = 2;

	(void)state;
	for (int round = 0; round < 6; round++) {
		struct flushed f = {0};
		struct stage s;
		struct op a, b;
		size_t late = 0;

		pair_defaults(&s.p);
		stage_open(&s, 2, lanes, 100);
		memset(s.mem, 0, 16);
		/* Both halves of the count. */
		for (int i = 0; i < round / 2; i++) {
			op_put(&a, &s, &second, 1, 8, WEFT_OP_F_DELIVERED);
			pair_run(&s.p);
			op_end(&a, 0);
		}
		if (round & 1) {
			op_amo(&a, &s, WEFT_ATOMIC_ADD, 8, 1, 0, NULL, 0, 0);
			assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &f), 0);
		} else {
			op_put(&a, &s, &first, 1, 0, WEFT_OP_F_DELIVERED);
		}
		op_put(&b, &s, &second, 1, 8, 0);
		while (s.p.num > late) {
			uint8_t id = s.p.msgs[late].id;

			if (late == 0 && (id == WEFT_WIRE_PUT || id == WEFT_WIRE_AMO))
				late = 1;
			else
				pair_deliver(&s.p, late);
			pair_progress(&s.p);
		}
		assert_int_equal(late, 1);
		assert_int_equal(s.mem[8], 2);
		assert_int_equal(s.mem[0], 0);
		assert_int_equal(f.calls, 0);
		if (!(round & 1))
			assert_false(op_done(&a));
		pair_run(&s.p);
		assert_int_equal(s.mem[0], 1);
		assert_int_equal(f.calls, round & 1);
		assert_int_equal(f.status, 0);
		op_end(&a, 0);
		op_end(&b, 0);
		stage_check_empty(&s);
		stage_close(&s);
	}
}

/* Each has a byte of its own, and there are always some under way. */
/* @behaviour U40 */
static void a_stream_of_delivered_puts_is_confirmed_in_any_order(void **state)
{
	enum { DEPTH = 5, OPS = 2000 };
	struct op op[DEPTH] = {0};
	uint8_t value[DEPTH] = {0};
	unsigned int posted = 0, over = 0;
	uint64_t seed = 17;
	struct stage s;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 4, lanes, DEPTH);
	memset(s.mem, 0, DEPTH);
	while (over < OPS) {
		unsigned int i = (unsigned int)(pair_random(&seed) % DEPTH);

		if (op[i].req && op_done(&op[i])) {
			assert_int_equal(s.mem[i], value[i]);
			op_end(&op[i], 0);
			op[i].req = NULL;
			over++;
		}
		if (!op[i].req && posted < OPS) {
			value[i]++;
			posted++;
			op_put(&op[i], &s, &value[i], 1, i, WEFT_OP_F_DELIVERED);
			assert_int_equal(op[i].rc, WEFT_INPROGRESS);
		}
		if (s.p.num)
			pair_deliver(&s.p, pair_random(&seed) % s.p.num);
		else
			pair_progress(&s.p);
	}
	stage_check_empty(&s);
	stage_close(&s);
}

static void requested_answers_stay_in_the_window(void **state)
{
	const size_t size = 20u << 20;
	uint8_t *buf = malloc(size);
	struct stage s;
	struct op big, small[100];

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 1, &lanes[2], size);
	pattern_fill(1, 0, s.mem, size);
	op_get(&big, &s, buf, size, 0);
	for (int i = 0; i < 100; i++)
		op_get(&small[i], &s, buf + i, 1, (size_t)i);
	assert_int_equal(pair_count(&s.p, 1, WEFT_WIRE_GET), WEFT_RMA_OPEN);
	pair_run(&s.p);
	op_end(&big, 0);
	for (int i = 0; i < 100; i++)
		op_end(&small[i], 0);
	pattern_expect(1, buf, size);
	stage_check_empty(&s);
	stage_close(&s);
	free(buf);
}

static void the_end_of_the_connection_ends_every_operation(void **state)
{
	uint8_t buf[3][70000];
	uint64_t old;
	struct stage s;
	struct op op[8];

	(void)state;
	for (int side = 0; side < 2; side++) {
		pair_defaults(&s.p);
		stage_open(&s, 3, lanes, 70000);
		op_put(&op[0], &s, buf[0], 70000, 0, WEFT_OP_F_DELIVERED);
		op_get(&op[1], &s, buf[1], 70000, 0);
		op_amo(&op[2], &s, WEFT_ATOMIC_ADD, 8, 1, 0, &old, 0, 0);
		weft_ep_fence(s.ep);
		op_put(&op[3], &s, buf[0], 10, 0, 0);
		op_get(&op[4], &s, buf[2], 10, 0);
		/* Each is half done: nothing that would end one is delivered. */
		for (int i = 0; i < 10; i++)
			pair_deliver(&s.p, 0);
		pair_fail(&s.p, side, -ETIMEDOUT);
		pair_fail(&s.p, !side, -ETIMEDOUT);
		pair_run(&s.p);
		for (int i = 0; i < 5; i++)
			op_end(&op[i], -ETIMEDOUT);
		op_put(&op[0], &s, buf[0], 10, 0, 0);
		op_end(&op[0], -ETIMEDOUT);
		stage_check_empty(&s);
		stage_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B1_put_and_get_of_every_size_over_1_to_4_lanes),
		cmocka_unit_test(U79_contig_iov_and_generic_local_buffers),
		cmocka_unit_test(U79_zero_length_is_done_at_once),
		cmocka_unit_test(a_get_sends_straight_from_registered_memory),
		cmocka_unit_test(E6_no_room_delays_and_nothing_is_lost),
		cmocka_unit_test(every_atomic_agrees_with_the_model),
		cmocka_unit_test(U80_misaligned_atomics_are_refused_at_both_ends),
		cmocka_unit_test(U77_a_fence_orders_what_stands_around_it),
		cmocka_unit_test(a_fence_with_nothing_outstanding_costs_nothing),
		cmocka_unit_test(a_delivered_put_is_done_when_its_bytes_are_there),
		cmocka_unit_test(U40_flush_ends_when_everything_is_in_the_peers_memory),
		cmocka_unit_test(what_was_overtaken_is_neither_delivered_nor_flushed),
		cmocka_unit_test(a_stream_of_delivered_puts_is_confirmed_in_any_order),
		cmocka_unit_test(requested_answers_stay_in_the_window),
		cmocka_unit_test(the_end_of_the_connection_ends_every_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
