/* SPDX-License-Identifier: BSD-3-Clause */
/* Native operations that lanes give up when they die. */

#include <errno.h>

#include "mock/rma_world.h"

#define NATIVE "mock:0,native=20000,reg;mock:1,net=1,native=50000,reg,bw=5e8"

/* All of it, although a part was done; and what waits behind a fence comes after it. */
static void what_a_lane_gives_up_is_done_again(void **state)
{
	uint64_t word = 0, old = 77;
	struct op op[3];
	struct world x;

	(void)state;
	world_open(&x, 1, NATIVE, "ATOMIC_MODE=device", false);
	for (unsigned int lost = 1; lost < 12; lost++) {
		pattern_fill(lost, 0, x.buf, x.size);
		put(&x, &op[0], 0, 0, 100000);
		put(&x, &op[1], 0, 100000, 100000);
		mock_lose_native(lost, -ECANCELED);
		assert_int_equal(weft_ep_fence(x.ep[0]), 0);
		get(&x, &op[2], 0, 200000, 100000);
		for (int i = 0; i < 3; i++) {
			wait_op(&x, &op[i]);
			op_end(&op[i], 0);
		}
		assert_memory_equal(x.bytes[0], x.buf, 200000);
		assert_memory_equal(x.bytes[0] + 200000, x.buf + 200000, 100000);
		assert_int_equal(x.w->msg->rma->gets.used, 0);
		memset(x.buf, 0, x.size);
		mock_lose_native(lost, -ECANCELED);
		get(&x, &op[0], 0, 0, 200000);
		wait_op(&x, &op[0]);
		op_end(&op[0], 0);
		assert_memory_equal(x.bytes[0], x.buf, 200000);
	}
	memset(x.bytes[0], 0, 8);
	mock_lose_native(2, -ECANCELED);
	amo(&x, &op[0], 0, WEFT_ATOMIC_ADD, 5, 0, &old, 0);
	wait_op(&x, &op[0]);
	op_end(&op[0], 0);
	assert_int_equal(old, 0);
	/* Its outcome is not known. */
	mock_lose_native(1, -EIO);
	amo(&x, &op[0], 0, WEFT_ATOMIC_ADD, 1, 0, &old, 0);
	wait_op(&x, &op[0]);
	op_end(&op[0], -EIO);
	memcpy(&word, x.bytes[0], 8);
	assert_int_equal(word, 5);
	world_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_lane_gives_up_is_done_again, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
