/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on typed arrays: every operation and type against values written down here, arrays of
 * any length over lanes of any size, exactly once, and what is refused.
 */

#include <float.h>
#include <pthread.h>

#include "core/wire.h"
#include "mock/ep_pair.h"
#include "msg/msg.h"
#include "rma/rma.h"

#define SIZE 8192u

static _Alignas(8) uint8_t mem[SIZE], shadow[SIZE], ops[SIZE], cmps[SIZE], res[SIZE], want[SIZE];

struct rig {
	struct pair p;
	struct weft_mem *m;
	struct weft_rkey *rkey;
};

static void up(struct rig *r, const char *lanes, uint64_t seed, unsigned int rights)
{
	struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = rights);

	mock_reset();
	mock_features =
		WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64;
	mock_seed(seed + 1);
	pair_up(&r->p, lanes);
	mock_features = 0;
	assert_int_equal(weft_mem_register(r->p.ctx, mem, SIZE, &mp, &r->m), 0);
	assert_int_equal(weft_rkey_from_key(r->p.x, weft_mem_key(r->m), &r->rkey), 0);
	mock_set_order(MOCK_RANDOM);
}

static void down(struct rig *r)
{
	weft_rkey_destroy(r->rkey);
	assert_int_equal(weft_mem_deregister(r->m), 0);
	pair_down(&r->p);
}

static int run(struct rig *r, const struct weft_atomic_params *a, uint64_t at)
{
	struct weft_op_params op =
		WEFT_INIT(struct weft_op_params, .flags = a->result ? 0 : WEFT_OP_F_DELIVERED);
	struct weft_request *req;
	int rc = weft_atomic(r->p.x, a, r->rkey, at, &op, &req);

	for (int i = 0; rc > 0 && i < 3000 && weft_request_test(req, NULL) == rc; i++)
		mock_run(1, MS, r->p.a, r->p.b, NULL);
	return rc > 0 ? status_of(req) : rc;
}

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* What the operations do, in numbers that every type has: value 3, operand 2, compare 3 or 1. */
static void what_each_does(void **state)
{
	static const struct {
		unsigned int op, compare, now;
	} t[] = {
		{WEFT_ATOMIC_ADD, 0, 5},      {WEFT_ATOMIC_PROD, 0, 6},
		{WEFT_ATOMIC_MIN, 0, 2},      {WEFT_ATOMIC_MAX, 0, 3},
		{WEFT_ATOMIC_LAND, 0, 1},     {WEFT_ATOMIC_LOR, 0, 1},
		{WEFT_ATOMIC_LXOR, 0, 0},     {WEFT_ATOMIC_SWAP, 0, 2},
		{WEFT_ATOMIC_READ, 0, 3},     {WEFT_ATOMIC_CSWAP, 3, 2},
		{WEFT_ATOMIC_CSWAP, 1, 3},    {WEFT_ATOMIC_CSWAP_NE, 3, 3},
		{WEFT_ATOMIC_CSWAP_NE, 1, 2}, {WEFT_ATOMIC_CSWAP_LE, 3, 2},
		{WEFT_ATOMIC_CSWAP_LE, 4, 3}, {WEFT_ATOMIC_CSWAP_LT, 3, 3},
		{WEFT_ATOMIC_CSWAP_LT, 1, 2}, {WEFT_ATOMIC_CSWAP_GE, 3, 2},
		{WEFT_ATOMIC_CSWAP_GE, 1, 3}, {WEFT_ATOMIC_CSWAP_GT, 3, 3},
		{WEFT_ATOMIC_CSWAP_GT, 4, 2}, {WEFT_ATOMIC_AND, 0, 2},
		{WEFT_ATOMIC_OR, 0, 3},       {WEFT_ATOMIC_XOR, 0, 1},
		{WEFT_ATOMIC_MSWAP, 1, 2},
	};

	(void)state;
	for (unsigned int type = WEFT_ATOMIC_INT8; type <= WEFT_ATOMIC_DOUBLE; type++) {
		for (unsigned int i = 0; i < sizeof(t) / sizeof(*t); i++) {
			const uint64_t in[3] = {3, 2, t[i].compare};
			_Alignas(8) uint8_t v[3][8], old[8], now[8];

			for (int k = 0; k < 4; k++) {
				uint64_t n = k < 3 ? in[k] : t[i].now;
				uint8_t *to = k < 3 ? v[k] : now;
				float f = (float)n;
				double d = (double)n;

				if (type == WEFT_ATOMIC_FLOAT)
					memcpy(to, &f, 4);
				else if (type == WEFT_ATOMIC_DOUBLE)
					memcpy(to, &d, 8);
				else
					memcpy(to, &n, 8);
			}
			if (!weft_amo_known(t[i].op, type)) {
				assert_true(type >= WEFT_ATOMIC_FLOAT);
				continue;
			}
			weft_amo_do(t[i].op, type, v[0], v[1], v[2], old);
			assert_memory_equal(v[0], now, weft_amo_width(type));
		}
	}
	assert_int_equal(weft_amo_width(11), 0);
	assert_false(weft_amo_known(19, 1));
	assert_false(weft_amo_known(0, 0));
}

static void signs_count(void **state)
{
	_Alignas(8) int16_t v = -3, a = 2, old;
	_Alignas(8) uint16_t u = (uint16_t)-3, b = 2, uold;
	_Alignas(8) double d = -0.5, e = 1e300, dold;

	(void)state;
	weft_amo_do(WEFT_ATOMIC_MIN, WEFT_ATOMIC_INT16, &v, &a, NULL, &old);
	assert_int_equal(v, -3);
	weft_amo_do(WEFT_ATOMIC_MIN, WEFT_ATOMIC_UINT16, &u, &b, NULL, &uold);
	assert_int_equal(u, 2);
	weft_amo_do(WEFT_ATOMIC_MAX, WEFT_ATOMIC_DOUBLE, &d, &e, NULL, &dold);
	assert_true(d > 9e299 && dold < 0);
}

static const char *const lanes_of[] = {"mock:0;mock:1", "mock:0,short=128,bcopy=0,zcopy=0",
				       "mock:0,short=128,bcopy=200", "mock:0,native=4096"};

static void arrays_of_any_length(void **state)
{
	uint64_t s = 4711;

	(void)state;
	for (unsigned int round = 0; round < 400; round++) {
		unsigned int type = 1 + (unsigned int)(rnd(&s) % 10),
			     op = (unsigned int)(rnd(&s) % 19);
		size_t width = weft_amo_width(type);
		size_t count = 1 + rnd(&s) % (round % 5 ? 40 : SIZE / 8 - 8);
		uint64_t at = rnd(&s) % 8 * 8;
		struct weft_atomic_params a =
			WEFT_INIT(struct weft_atomic_params, .op = op, .type = type, .count = count,
				  .operands = ops, .compares = cmps);
		struct rig r;

		if (!weft_amo_known(op, type))
			continue;
		up(&r, lanes_of[round % 4], round, WEFT_MEM_F_REMOTE_ATOMIC);
		for (size_t i = 0; i < SIZE; i++) {
			/* No NaN, whose bits need not last. */
			mem[i] = type >= WEFT_ATOMIC_FLOAT ? (uint8_t)(rnd(&s) % 64)
							   : (uint8_t)rnd(&s);
			ops[i] = type >= WEFT_ATOMIC_FLOAT ? (uint8_t)(rnd(&s) % 64)
							   : (uint8_t)rnd(&s);
			cmps[i] = rnd(&s) % 2 ? mem[i] : ops[i];
		}
		memcpy(shadow, mem, SIZE);
		memset(res, 0x11, SIZE);
		memcpy(want, res, SIZE);
		a.result = round % 3 || op == WEFT_ATOMIC_READ ? res : NULL;
		for (size_t i = 0; i < count * width; i += width)
			weft_amo_do(op, type, shadow + at + i, ops + i, cmps + i, want + i);
		if (!a.result)
			memset(want, 0x11, SIZE);
		mock_set_eagain(NULL, round % 3 * 200);
		assert_int_equal(run(&r, &a, at), 0);
		assert_memory_equal(mem, shadow, SIZE);
		assert_memory_equal(res, want, SIZE);
		mock_set_eagain(NULL, 0);
		down(&r);
	}
}

static void what_is_refused(void **state)
{
	struct weft_atomic_params a = WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD,
						.type = WEFT_ATOMIC_INT32, .count = 100,
						.operands = ops, .compares = cmps);
	struct weft_op_params inject = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_INJECT);
	struct weft_atomic_params bad;
	struct rig r;

	(void)state;
	up(&r, two_nics, 1, WEFT_MEM_F_REMOTE_ATOMIC);
	memset(mem, 0, SIZE);
	memset(ops, 1, SIZE);
	for (int fetch = 0; fetch < 2; fetch++) {
		a.result = fetch ? res : NULL;
		assert_int_equal(run(&r, &a, 2), -EINVAL);
		assert_int_equal(run(&r, &a, SIZE - 4), -ERANGE);
		r.rkey->key ^= 4;
		assert_int_equal(run(&r, &a, 0), -EKEYREJECTED);
		r.rkey->key ^= 4;
	}
	bad = a;
	bad.count = 0;
	assert_int_equal(run(&r, &bad, 0), -EINVAL);
	bad.count = SIZE_MAX / 2;
	assert_int_equal(run(&r, &bad, 0), -EINVAL);
	bad = a;
	bad.type = 11;
	assert_int_equal(run(&r, &bad, 0), -EINVAL);
	bad.type = WEFT_ATOMIC_FLOAT;
	bad.op = WEFT_ATOMIC_XOR;
	assert_int_equal(run(&r, &bad, 0), -EINVAL);
	bad.op = 19;
	assert_int_equal(run(&r, &bad, 0), -EINVAL);
	bad = a;
	bad.operands = NULL;
	assert_int_equal(run(&r, &bad, 0), -EINVAL);
	bad = a;
	bad.op = WEFT_ATOMIC_CSWAP_GE;
	bad.compares = NULL;
	assert_int_equal(run(&r, &bad, 0), -EINVAL);
	bad = a;
	bad.op = WEFT_ATOMIC_READ;
	bad.result = NULL;
	assert_int_equal(run(&r, &bad, 0), -EINVAL);
	assert_int_equal(weft_atomic(r.p.x, &a, r.rkey, 0, &inject, NULL), -EINVAL);
	/* One that was compiled before there were types. */
	bad = a;
	bad.size = offsetof(struct weft_atomic_params, type);
	bad.width = 4;
	bad.operand = 7;
	assert_int_equal(run(&r, &bad, 8), 0);
	assert_int_equal(mem[8], 7);
	down(&r);
}

static void fields_of_the_message(void **state)
{
	uint8_t msg[sizeof(struct weft_wire_amov) + 1024] = {0};
	struct weft_wire_amov *a = (void *)msg;

	(void)state;
	a->type = WEFT_ATOMIC_DOUBLE;
	a->count = weft_put32(2);
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a) + 16), 0);
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a) + 15), -EBADMSG);
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a) - 1), -EBADMSG);
	a->op = WEFT_ATOMIC_CSWAP;
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a) + 32), 0);
	a->op = WEFT_ATOMIC_READ;
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a)), 0);
	a->count = weft_put32(33);
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a)), -EBADMSG);
	a->count = weft_put32(0x20000001);
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a)), -EBADMSG);
	a->count = weft_put32(1);
	a->type = 0;
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a)), -EBADMSG);
	a->type = 1;
	a->offset = weft_put64(UINT64_MAX);
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV, msg, sizeof(*a)), -EBADMSG);
	assert_int_equal(weft_wire_check(WEFT_WIRE_AMOV_REP, msg, 16), -EBADMSG);
}

/* Among threads that do the same by themselves. */
static _Alignas(8) double shared;

static void *adds(void *arg)
{
	double one = 1, old;

	for (int i = 0; i < 20000; i++)
		weft_amo_do(WEFT_ATOMIC_ADD, WEFT_ATOMIC_DOUBLE, &shared, &one, NULL, &old);
	return arg;
}

static void threads_lose_nothing(void **state)
{
	pthread_t t[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, adds, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_true(shared > 59999.5 && shared < 60000.5);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_each_does),        cmocka_unit_test(signs_count),
		CONN_TEST(arrays_of_any_length),         CONN_TEST(what_is_refused),
		cmocka_unit_test(fields_of_the_message), cmocka_unit_test(threads_lose_nothing),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("vector", tests, NULL, NULL);
}
