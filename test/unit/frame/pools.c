/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of closed ports whose buffers come back later. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "eal.h"
#include "frame/frame_port.h"

#define PORTS 100

static void count_own(struct rte_mempool *mp, void *arg)
{
	unsigned int *n = arg;

	*n += strncmp(mp->name, "weft_late_", 10) == 0;
}

static unsigned int pools(void)
{
	unsigned int n = 0;

	rte_mempool_walk(count_own, &n);
	return n;
}

static void pools_with_buffers_in_use_are_freed_later(void **state)
{
	struct weft_frame_pools conf = {.name = "late", .frames = 32};
	struct rte_mbuf *held[PORTS];
	struct weft_frame_port port = {.frame_size = 1514};

	(void)state;
	for (int i = 0; i < PORTS; i++) {
		assert_int_equal(weft_frame_pools_make(&port, &conf), 0);
		held[i] = rte_pktmbuf_alloc(port.pool);
		assert_non_null(held[i]);
		weft_frame_pools_free(&port);
	}
	assert_int_equal(pools(), PORTS);
	rte_pktmbuf_free_bulk(held, PORTS);
	port = (struct weft_frame_port){.frame_size = 1514};
	weft_frame_pools_free(&port);
	assert_int_equal(pools(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools_with_buffers_in_use_are_freed_later),
	};

	test_eal_init("64");
	return cmocka_run_group_tests_name("frame pools", tests, NULL, NULL);
}
