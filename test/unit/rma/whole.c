/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory over the whole library, by messages: flush and fence of endpoints and workers,
 * loopback.
 */

#include "msg/msg.h"
#include "mock/rma_world.h"

/* @behaviour U79 */
static void U79_put_get_and_atomics_between_workers(void **state)
{
	static const size_t sizes[] = {1, 200, 5000, 100000, 300000};

	(void)state;
	for (int loopback = 0; loopback < 2; loopback++) {
		for (uint64_t seed = 1; seed <= 5; seed++) {
			struct world x;
			uint64_t old;
			struct op op;

			mock_seed(seed);
			world_open(&x, 1, "mock:0;mock:1,net=1", "ATOMIC_MODE=cpu", loopback);
			mock_set_order(MOCK_RANDOM);
			mock_set_eagain(NULL, 200);
			for (int i = 0; i < 5; i++) {
				pattern_fill(seed + (uint64_t)i, 0, x.buf, sizes[i]);
				put(&x, &op, 0, 0, sizes[i]);
				flush(&x, 0, 0);
				op_end(&op, 0);
				pattern_expect(seed + (uint64_t)i, x.bytes[0], sizes[i]);
				memset(x.buf, 0, sizes[i]);
				get(&x, &op, 0, 0, sizes[i]);
				wait_op(&x, &op);
				op_end(&op, 0);
				pattern_expect(seed + (uint64_t)i, x.buf, sizes[i]);
			}
			memset(x.bytes[0], 0, 8);
			for (uint64_t k = 0; k < 20; k++) {
				amo(&x, &op, 0, WEFT_ATOMIC_CSWAP, k + 1, k, &old, 0);
				wait_op(&x, &op);
				op_end(&op, 0);
				assert_int_equal(old, k);
			}
			mock_set_eagain(NULL, 0);
			world_close(&x);
		}
	}
}

/* @behaviour U76 */
static void U76_worker_flush_covers_every_endpoint(void **state)
{
	struct world x;
	struct op op[PEERS], none;

	(void)state;
	world_open(&x, PEERS, "mock:0;mock:1,net=1", "ATOMIC_MODE=cpu", false);
	mock_set_order(MOCK_RANDOM);
	flush(&x, -1, 0); /* nothing outstanding */
	pattern_fill(3, 0, x.buf, x.size);
	for (int i = 0; i < PEERS; i++)
		put(&x, &op[i], i, 0, x.size - 1000 * (size_t)i);
	assert_int_equal(weft_worker_flush(NULL, NULL, NULL), -EINVAL);
	flush(&x, -1, 0);
	for (int i = 0; i < PEERS; i++) {
		op_end(&op[i], 0);
		pattern_expect(3, x.bytes[i], x.size - 1000 * (size_t)i);
	}
	/* One peer has withdrawn its memory. */
	assert_int_equal(weft_mem_deregister(x.mem[1]), 0);
	for (int i = 0; i < PEERS; i++)
		assert_in_range(weft_put(x.ep[i], x.buf, 8, x.rkey[i], 0, NULL, NULL), 0, 1);
	flush(&x, -1, -EKEYREJECTED);
	flush(&x, -1, 0);
	weft_rkey_destroy(x.rkey[1]);
	share(&x, 1, x.ctx[1]);
	/* A dead peer does not stop the others' flush. */
	put(&x, &op[0], 0, 0, 100000);
	put(&x, &none, 1, 0, 100000);
	mock_kill(mock_iface(x.w, 0), mock_iface(x.peer[0], 0), -ETIMEDOUT, "pulled");
	flush(&x, 1, 0);
	world_run(&x, 50);
	flush(&x, -1, 0);
	assert_int_equal(op[0].rc == 0 ? 0 : op[0].c.status, op[0].rc == 0 ? 0 : -ETIMEDOUT);
	op_end(&op[0], op[0].rc == 0 ? 0 : -ETIMEDOUT);
	op_end(&none, 0);
	world_close(&x);
}

/* Another endpoint is closed by force while it runs: that is known, the refusal is not. */
static void a_worker_flush_reports_what_was_refused(void **state)
{
	struct weft_op_params p;
	struct op large, put_, flush_;
	struct world x;

	(void)state;
	world_open(&x, 2, "mock:0;mock:1,net=1", "ATOMIC_MODE=cpu", false);
	mock_set_order(MOCK_RANDOM);
	assert_int_equal(weft_mem_deregister(x.mem[1]), 0);
	pattern_fill(3, 0, x.buf, x.size);
	put(&x, &large, 0, 0, x.size);
	put(&x, &put_, 1, 0, 8);
	p = params(&flush_, NULL);
	flush_.rc = weft_worker_flush(x.w, &p, &flush_.req);
	assert_int_equal(flush_.rc, WEFT_INPROGRESS);
	weft_ep_close(x.ep[0], WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	wait_op(&x, &flush_);
	op_end(&large, -ECANCELED);
	op_end(&put_, 0);
	op_end(&flush_, -EKEYREJECTED);
	weft_rkey_destroy(x.rkey[1]);
	share(&x, 1, x.ctx[1]);
	world_close(&x);
}

/* @behaviour U77 */
static void a_worker_fence_orders_operations_of_different_endpoints(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		uint64_t flag = 0, data;
		struct world x;
		struct op a, b;

		mock_seed(seed);
		world_open(&x, 2, "mock:0;mock:1,net=1", "ATOMIC_MODE=cpu", false);
		mock_set_order(MOCK_RANDOM);
		mock_set_burst(2);
		pattern_fill(seed, 0, x.buf, 100000);
		put(&x, &a, 0, 0, 100000);
		assert_int_equal(weft_worker_fence(x.w), 0);
		flag = 1;
		amo(&x, &b, 1, WEFT_ATOMIC_SWAP, 1, 0, NULL, 0);
		assert_int_equal(b.rc, WEFT_INPROGRESS);
		/* A reader that sees the flag at one peer finds the data at the other. */
		for (int t = 0; t < 5000; t++) {
			memcpy(&data, x.bytes[1], 8);
			if (data == flag)
				break;
			world_run(&x, 1);
		}
		assert_int_equal(data, flag);
		pattern_expect(seed, x.bytes[0], 100000);
		mock_set_burst(0);
		flush(&x, -1, 0);
		op_end(&a, 0);
		op_end(&b, 0);
		world_close(&x);
	}
}

static void a_fence_does_not_wait_for_a_peer_that_has_failed(void **state)
{
	struct world x;
	struct op a, b;

	(void)state;
	world_open(&x, 2, "mock:0", "ATOMIC_MODE=cpu", false);
	put(&x, &a, 0, 0, 200000);
	assert_int_equal(weft_worker_fence(x.w), 0);
	put(&x, &b, 1, 0, 100);
	assert_int_equal(b.rc, WEFT_INPROGRESS);
	mock_kill(mock_iface(x.w, 0), mock_iface(x.peer[0], 0), -ETIMEDOUT, "pulled");
	wait_op(&x, &b);
	op_end(&b, 0);
	wait_op(&x, &a);
	op_end(&a, -ETIMEDOUT);
	assert_int_equal(weft_ep_fence(x.ep[0]), -ETIMEDOUT);
	world_close(&x);
}

/*
 * What a fence waits for is counted: idle endpoints are not looked at, busy ones not at each end.
 */
static void a_worker_fence_looks_at_each_busy_endpoint_a_few_times(void **state)
{
	enum { N = 200 };
	struct weft_ep *ep[N];
	uint64_t before;
	struct world x;
	struct op op;

	(void)state;
	world_open(&x, 1, "mock:0", "ATOMIC_MODE=cpu", false);
	for (int i = 0; i < N; i++)
		ep[i] = mock_connect(x.w, x.peer[0]);
	world_run(&x, 20);
	/* All have been used once, and are idle since. */
	for (unsigned int busy = N; busy > 0; busy = busy == N ? 1 : 0) {
		before = x.w->msg->count.looks;
		for (unsigned int i = 0; i < busy; i++)
			assert_in_range(weft_put(ep[i], x.buf, 8, x.rkey[0], 8 * i, NULL, NULL), 0,
					1);
		assert_int_equal(weft_worker_fence(x.w), 0);
		put(&x, &op, 0, 0, 100000);
		assert_int_equal(op.rc, WEFT_INPROGRESS);
		wait_op(&x, &op);
		op_end(&op, 0);
		flush(&x, -1, 0);
		assert_int_equal(weft_worker_fence(x.w), 0);
		assert_in_range(x.w->msg->count.looks - before, busy, 8 * busy + 8);
	}
	world_close(&x);
}

/* @behaviour U63 */
static void U63_put_then_close_delivers(void **state)
{
	struct world x;
	struct op a, c;
	struct weft_op_params p;

	(void)state;
	world_open(&x, 1, "mock:0;mock:1,net=1", "ATOMIC_MODE=cpu", false);
	mock_set_order(MOCK_RANDOM);
	pattern_fill(9, 0, x.buf, x.size);
	put(&x, &a, 0, 0, x.size);
	p = params(&c, NULL);
	c.rc = weft_ep_close(x.ep[0], 0, &p, &c.req);
	wait_op(&x, &c);
	op_end(&c, 0);
	op_end(&a, 0);
	pattern_expect(9, x.bytes[0], x.size);
	world_close(&x);
}

int main(void)
{
#define T(x) cmocka_unit_test_setup_teardown(x, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(U79_put_get_and_atomics_between_workers),
		T(U76_worker_flush_covers_every_endpoint),
		T(a_worker_flush_reports_what_was_refused),
		T(a_worker_fence_orders_operations_of_different_endpoints),
		T(a_fence_does_not_wait_for_a_peer_that_has_failed),
		T(a_worker_fence_looks_at_each_busy_endpoint_a_few_times),
		T(U63_put_then_close_delivers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
