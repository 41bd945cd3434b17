/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on remote memory: every operation on every type against a model, arrays in pieces, both
 * processes on the same word, and what is refused.
 */

#include "world.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>

#define ROOM 65536
#define N 5

#define BASE 0
#define FETCH FI_FETCH_ATOMIC
#define COMPARE FI_COMPARE_ATOMIC

static const uint64_t both = FI_REMOTE_READ | FI_REMOTE_WRITE;

/* ------------------------------------------------------------------ the model */

#define VALUES(X)              \
	X(FI_INT8, int8_t)     \
	X(FI_UINT8, uint8_t)   \
	X(FI_INT16, int16_t)   \
	X(FI_UINT16, uint16_t) \
	X(FI_INT32, int32_t)   \
	X(FI_UINT32, uint32_t) \
	X(FI_INT64, int64_t)   \
	X(FI_UINT64, uint64_t) \
	X(FI_FLOAT, float)     \
	X(FI_DOUBLE, double)

/* Small values, which every type has. */
static double load(enum fi_datatype type, const void *array, int i)
{
	switch (type) {
#define LOAD(name, c) \
	case name:    \
		return (double)((const c *)array)[i];
		VALUES(LOAD)
#undef LOAD
	default:
		fail();
	}
	return 0;
}

static void store(enum fi_datatype type, void *array, int i, double value)
{
	switch (type) {
#define STORE(name, c)                      \
	case name:                          \
		((c *)array)[i] = (c)value; \
		break;
		VALUES(STORE)
#undef STORE
	default:
		fail();
	}
}

static double model(enum fi_op op, double old, double x, double compare)
{
	int64_t a = (int64_t)old, b = (int64_t)x, m = (int64_t)compare;

	switch (op) {
	case FI_MIN:
		return x < old ? x : old;
	case FI_MAX:
		return x > old ? x : old;
	case FI_SUM:
		return old + x;
	case FI_PROD:
		return old * x;
	case FI_LOR:
		return old != 0 || x != 0;
	case FI_LAND:
		return old != 0 && x != 0;
	case FI_LXOR:
		return (old != 0) != (x != 0);
	case FI_BOR:
		return (double)(a | b);
	case FI_BAND:
		return (double)(a & b);
	case FI_BXOR:
		return (double)(a ^ b);
	case FI_ATOMIC_READ:
		return old;
	case FI_ATOMIC_WRITE:
		return x;
	case FI_CSWAP:
		return compare == old ? x : old;
	case FI_CSWAP_NE:
		return compare != old ? x : old;
	case FI_CSWAP_LE:
		return compare <= old ? x : old;
	case FI_CSWAP_LT:
		return compare < old ? x : old;
	case FI_CSWAP_GE:
		return compare >= old ? x : old;
	case FI_CSWAP_GT:
		return compare > old ? x : old;
	case FI_MSWAP:
		return (double)((b & m) | (a & ~m));
	default:
		fail();
	}
	return 0;
}

static bool expected(enum fi_datatype type, enum fi_op op, uint64_t form)
{
	bool bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
	bool floating = type == FI_FLOAT || type == FI_DOUBLE;

	if (type > FI_DOUBLE || op > FI_MSWAP || (bits && floating))
		return false;
	if (op >= FI_CSWAP)
		return form == COMPARE;
	return form == FETCH || (form == BASE && op != FI_ATOMIC_READ);
}

/* ------------------------------------------------------------------ every operation */

/* All forms' arrays, of the longest type. */
struct arrays {
	double old[N], operand[N], compare[N], result[N];
};

static ssize_t call(struct world *w, struct world_region *r, struct arrays *a, enum fi_datatype t,
		    enum fi_op op, uint64_t form)
{
	if (form == BASE)
		return fi_atomic(w->ep, a->operand, N, NULL, w->peer, 64, r->key, t, op, a);
	if (form == FETCH)
		return fi_fetch_atomic(w->ep, op == FI_ATOMIC_READ ? NULL : a->operand, N, NULL,
				       a->result, NULL, w->peer, 64, r->key, t, op, a);
	return fi_compare_atomic(w->ep, a->operand, N, NULL, a->compare, NULL, a->result, NULL,
				 w->peer, 64, r->key, t, op, a);
}

/* The peer's memory is set, changed, and read back. */
static void one(struct world *w, struct world_region *r, enum fi_datatype t, enum fi_op op,
		uint64_t form, size_t width)
{
	static const double old[N] = {0, 5, 6, 3, 7}, operand[N] = {1, 0, 3, 3, 8};
	static const double compare[N] = {0, 4, 6, 9, 6};
	struct fi_cq_tagged_entry entry;
	struct arrays a;

	for (int i = 0; i < N; i++) {
		store(t, a.old, i, old[i]);
		store(t, a.operand, i, operand[i]);
		store(t, a.compare, i, compare[i]);
	}
	CHECK(fi_write(w->ep, a.old, N * width, NULL, w->peer, 64, r->key, NULL));
	world_next(w, NULL);
	CHECK(call(w, r, &a, t, op, form));
	entry = world_next(w, NULL);
	assert_ptr_equal(entry.op_context, &a);
	assert_int_equal(entry.flags & (FI_ATOMIC | FI_RMA | FI_READ | FI_WRITE),
			 FI_ATOMIC | (form == BASE ? FI_WRITE : FI_READ));
	CHECK(fi_read(w->ep, r->local, N * width, NULL, w->peer, 64, r->key, NULL));
	world_next(w, NULL);
	for (int i = 0; i < N; i++) {
		double want = model(op, old[i], operand[i], compare[i]);

		if (load(t, r->local, i) != want)
			fail_msg("type %d, op %d, element %d: %g, not %g", t, op, i,
				 load(t, r->local, i), want);
		if (form != BASE && load(t, a.result, i) != old[i])
			fail_msg("type %d, op %d, element %d: the result is %g, not %g", t, op, i,
				 load(t, a.result, i), old[i]);
	}
}

static bool is_valid(struct world *w, enum fi_datatype t, enum fi_op op, uint64_t form,
		     size_t *width)
{
	struct fi_atomic_attr attr = {0};
	size_t count = 0;
	int rc;

	rc = form == BASE    ? fi_atomicvalid(w->ep, t, op, &count)
	     : form == FETCH ? fi_fetch_atomicvalid(w->ep, t, op, &count)
			     : fi_compare_atomicvalid(w->ep, t, op, &count);
	assert_int_equal(fi_query_atomic(w->domain, t, op, &attr, form), rc);
	assert_true(rc == 0 || rc == -FI_EOPNOTSUPP);
	assert_int_equal(attr.count, count);
	assert_true(rc != 0 || count >= N);
	*width = attr.size;
	return rc == 0;
}

/* What is said to be there is what is expected, and it works; the rest is refused in the call. */
static void every_operation(void **state)
{
	static const uint64_t forms[] = {BASE, FETCH, COMPARE};
	struct world_region r;
	struct world w;
	size_t width;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_ATOMIC,
					      .tx_flags = FI_DELIVERY_COMPLETE});
	world_region_open(&w, &r, ROOM, both);
	for (int t = 0; t < FI_UINT128; t++) {
		for (int op = 0; op <= FI_ATOMIC_OP_LAST; op++) {
			for (int f = 0; f < 3; f++) {
				struct arrays a = {0};
				bool there = is_valid(&w, t, op, forms[f], &width);

				assert_int_equal(there, expected(t, op, forms[f]));
				if (there)
					one(&w, &r, t, op, forms[f], width);
				else
					assert_int_equal(call(&w, &r, &a, t, op, forms[f]),
							 -FI_EOPNOTSUPP);
			}
		}
	}
	world_region_close(&w, &r);
	world_close(&w);
}

/* ------------------------------------------------------------------ other forms */

/* Operands, compares and results each cut in other places. */
static void in_pieces(struct world *w, struct world_region *r)
{
	uint32_t operand[10], compare[10], result[10], now[10];
	struct fi_ioc iov[3] = {{operand, 4}, {operand + 4, 0}, {operand + 4, 6}};
	struct fi_ioc comparev[2] = {{compare, 7}, {compare + 7, 3}};
	struct fi_ioc resultv[3] = {{result, 1}, {result + 1, 4}, {result + 5, 5}};
	struct fi_rma_ioc at = {.addr = 128, .count = 10, .key = r->key};
	struct fi_msg_atomic msg = {
		.msg_iov = iov,
		.iov_count = 3,
		.addr = w->peer,
		.rma_iov = &at,
		.rma_iov_count = 1,
		.datatype = FI_UINT32,
		.op = FI_ATOMIC_WRITE,
	};

	for (unsigned int i = 0; i < 10; i++)
		operand[i] = 1000 + i;
	CHECK(fi_atomicmsg(w->ep, &msg, FI_COMPLETION | FI_INJECT));
	world_next(w, NULL);
	for (unsigned int i = 0; i < 10; i++) {
		compare[i] = 1000 + (i & ~1u); /* the even ones are equal */
		operand[i] = 2000 + i;
		result[i] = 0;
	}
	msg.op = FI_CSWAP;
	CHECK(fi_compare_atomicmsg(w->ep, &msg, comparev, NULL, 2, resultv, NULL, 3,
				   FI_FENCE | FI_COMPLETION));
	world_next(w, NULL);
	CHECK(fi_read(w->ep, now, sizeof(now), NULL, w->peer, 128, r->key, NULL));
	world_next(w, NULL);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(result[i], 1000 + i);
		assert_int_equal(now[i], i % 2 ? 1000 + i : 2000 + i);
	}
	at.count = 9;
	assert_int_equal(fi_atomicmsg(w->ep, &msg, 0), -FI_EOPNOTSUPP);
	msg.op = FI_SUM;
	assert_int_equal(fi_atomicmsg(w->ep, &msg, 0), -FI_EINVAL);
	at.count = 10;
	assert_int_equal(fi_atomicmsg(w->ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	assert_int_equal(fi_fetch_atomicmsg(w->ep, &msg, resultv, NULL, 2, 0), -FI_EINVAL);
	iov[0].count = SIZE_MAX;
	assert_int_equal(fi_atomicmsg(w->ep, &msg, 0), -FI_EINVAL);
}

/* All elements that fi_atomicvalid() allows, in one piece. */
static void longest(struct world *w)
{
	struct world_region r;
	size_t count = 0;
	uint8_t *operand;

	CHECK(fi_atomicvalid(w->ep, FI_UINT8, FI_SUM, &count));
	world_region_open(w, &r, count, both);
	operand = calloc(count + 1, 1);
	assert_int_equal(fi_atomic(w->ep, operand, count + 1, NULL, w->peer, 0, r.key, FI_UINT8,
				   FI_SUM, NULL),
			 -FI_EINVAL);
	CHECK(fi_atomic(w->ep, operand, count, NULL, w->peer, 0, r.key, FI_UINT8, FI_SUM, NULL));
	world_next(w, NULL);
	world_region_close(w, &r);
	free(operand);
}

/* An array of several messages; operands that are overwritten when the call has returned. */
static void long_and_injected(struct world *w, struct world_region *r)
{
	enum { LONG = 7000, INJECT = 512 };
	uint64_t *operand = (uint64_t *)r->local, *result = calloc(LONG, sizeof(*result));

	for (uint64_t i = 0; i < LONG; i++)
		operand[i] = i * i;
	for (int round = 0; round < 3; round++) {
		CHECK(fi_fetch_atomic(w->ep, operand, LONG, NULL, result, NULL, w->peer, 1024,
				      r->key, FI_UINT64, FI_SUM, NULL));
		world_next(w, NULL);
		for (uint64_t i = 0; i < LONG; i++)
			assert_int_equal(result[i], (uint64_t)round * i * i);
	}
	for (int i = 0; i < 20; i++) {
		uint64_t ones[INJECT];

		for (int k = 0; k < INJECT; k++)
			ones[k] = 1;
		CHECK(fi_inject_atomic(w->ep, ones, INJECT, w->peer, 1024, r->key, FI_UINT64,
				       FI_SUM));
		memset(ones, 0xff, sizeof(ones));
	}
	assert_int_equal(fi_inject_atomic(w->ep, operand, INJECT + 1, w->peer, 1024, r->key,
					  FI_UINT64, FI_SUM),
			 -FI_EINVAL);
	CHECK(fi_fetch_atomic(w->ep, NULL, LONG, NULL, result, NULL, w->peer, 1024, r->key,
			      FI_UINT64, FI_ATOMIC_READ, NULL));
	/* The only completion: those that were injected have none. */
	assert_int_equal(world_next(w, NULL).flags & (FI_READ | FI_WRITE), FI_READ);
	world_barrier_progress(w);
	for (uint64_t i = 0; i < LONG; i++)
		assert_int_equal(((uint64_t *)(r->memory + 1024))[i],
				 3 * i * i + (i < INJECT ? 20 : 0));
	free(result);
}

static void other_forms(void **state)
{
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_ATOMIC,
					      .tx_flags = FI_DELIVERY_COMPLETE});
	world_region_open(&w, &r, ROOM, both);
	in_pieces(&w, &r);
	long_and_injected(&w, &r);
	world_region_close(&w, &r);
	longest(&w);
	world_close(&w);
}

/* ------------------------------------------------------------------ both at once */

/* Both processes add to side 0's word: each old value is seen once. */
static void contended(void **state)
{
	enum { ROUNDS = 400 };
	struct world_region r;
	struct world w;
	uint32_t old[ROUNDS], one = 1, last = 0;
	uint64_t key;
	uint8_t seen[2 * ROUNDS] = {0};
	fi_addr_t to;

	world_open(&w, &(struct world_params){.caps = FI_ATOMIC});
	world_region_open(&w, &r, ROOM, both);
	to = w.me == 0 ? w.self : w.peer;
	key = w.me == 0 ? fi_mr_key(r.mr) : r.key;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(fi_fetch_atomic(w.ep, &one, 1, NULL, &old[i], NULL, to, 256, key, FI_UINT32,
				      FI_SUM, NULL));
		if (i % 8 == 7)
			for (int k = 0; k < 8; k++)
				world_next(&w, NULL);
	}
	world_barrier_progress(&w);
	for (int i = 0; i < ROUNDS; i++) {
		assert_true(old[i] < 2 * ROUNDS && !seen[old[i]]);
		seen[old[i]] = 1;
		last = old[i];
	}
	assert_true(last < 2 * ROUNDS);
	if (w.me == 0)
		assert_int_equal(*(uint32_t *)(r.memory + 256), 2 * ROUNDS);
	world_region_close(&w, &r);
	world_close(&w);
}

/* ------------------------------------------------------------------ refused */

static void fails(struct world *w, struct world_region *r, uint64_t offset, uint64_t key)
{
	uint64_t operand = ~0ull, result;
	struct fi_cq_err_entry error;
	ssize_t rc;

	rc = fi_fetch_atomic(w->ep, &operand, 1, NULL, &result, NULL, w->peer, offset, key,
			     FI_UINT64, FI_SUM, r);
	if (rc < 0) {
		assert_true(rc == -FI_EACCES || rc == -FI_EINVAL);
		return;
	}
	error = world_next_error(w);
	assert_true(error.err == FI_EACCES || error.err == FI_EINVAL);
	assert_ptr_equal(error.op_context, r);
	assert_true(error.flags & FI_ATOMIC);
}

/* Without the right to write, misaligned, past the end, with no such key: nothing is changed. */
static void refused(void **state)
{
	struct world_region r;
	struct world w;
	uint64_t word = 1;

	world_open(&w, &(struct world_params){.caps = FI_ATOMIC});
	world_region_open(&w, &r, ROOM, FI_REMOTE_READ);
	fails(&w, &r, 0, r.key);
	world_region_close(&w, &r);
	world_region_open(&w, &r, ROOM, both);
	fails(&w, &r, 4, r.key);
	fails(&w, &r, ROOM, r.key);
	fails(&w, &r, 0, r.key ^ 1);
	assert_int_equal(fi_atomic(w.ep, &word, 0, NULL, w.peer, 0, r.key, FI_UINT64, FI_SUM, NULL),
			 -FI_EINVAL);
	world_barrier_progress(&w);
	for (int i = 0; i < 64; i++)
		assert_int_equal(r.memory[i], 0);
	world_region_close(&w, &r);
	world_close(&w);
	world_open(&w, &(struct world_params){.caps = FI_RMA});
	assert_int_equal(fi_atomic(w.ep, &word, 1, NULL, w.peer, 0, 1, FI_UINT64, FI_SUM, NULL),
			 -FI_EOPNOTSUPP);
	world_close(&w);
}

/* The right to write memory allows every atomic on it, and still no read. */
static void written_only(void **state)
{
	uint64_t word = 5, compare = 5, result[2] = {1, 1};
	struct fi_cq_err_entry error;
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_ATOMIC,
					      .tx_flags = FI_DELIVERY_COMPLETE});
	world_region_open(&w, &r, ROOM, FI_REMOTE_WRITE);
	CHECK(fi_atomic(w.ep, &word, 1, NULL, w.peer, 8, r.key, FI_UINT64, FI_SUM, NULL));
	world_next(&w, NULL);
	CHECK(fi_fetch_atomic(w.ep, &word, 1, NULL, &result[0], NULL, w.peer, 16, r.key, FI_UINT64,
			      FI_SUM, NULL));
	world_next(&w, NULL);
	CHECK(fi_compare_atomic(w.ep, &word, 1, NULL, &compare, NULL, &result[1], NULL, w.peer, 8,
				r.key, FI_UINT64, FI_CSWAP_NE, NULL));
	world_next(&w, NULL);
	assert_int_equal(result[0], 0);
	assert_int_equal(result[1], 5);
	if (fi_read(w.ep, r.local, 8, NULL, w.peer, 8, r.key, NULL) == 0) {
		error = world_next_error(&w);
		assert_int_equal(error.err, FI_EACCES);
	}
	world_barrier_progress(&w);
	assert_int_equal(((uint64_t *)r.memory)[1], 5);
	assert_int_equal(((uint64_t *)r.memory)[2], 5);
	world_region_close(&w, &r);
	world_close(&w);
}

/* ------------------------------------------------------------------ counters */

/* What fetches is a read, what does not a write. */
static void counted(void **state)
{
	uint64_t word = 3, result;
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_ATOMIC, .counters = true});
	world_region_open(&w, &r, ROOM, both);
	CHECK(fi_atomic(w.ep, &word, 1, NULL, w.self, 0, fi_mr_key(r.mr), FI_UINT64, FI_SUM, NULL));
	CHECK(fi_cntr_wait(w.sent, 1, 20000));
	CHECK(fi_fetch_atomic(w.ep, &word, 1, NULL, &result, NULL, w.self, 0, fi_mr_key(r.mr),
			      FI_UINT64, FI_PROD, NULL));
	CHECK(fi_cntr_wait(w.sent, 2, 20000));
	assert_int_equal(result, 3);
	assert_int_equal(*(uint64_t *)r.memory, 9);
	world_region_close(&w, &r);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation), cmocka_unit_test(other_forms),
		cmocka_unit_test(contended),       cmocka_unit_test(refused),
		cmocka_unit_test(written_only),    cmocka_unit_test(counted),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("provider_atomic", tests, NULL, NULL));
}
