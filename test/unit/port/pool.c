/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's buffers outlive it as long as a holder of one exists.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "eal.h"
#include "port/ethdev.h"
#include "port/port.h"

#define PORTS 70

struct pools {
	struct weft_port_dev dev;
	struct rte_mempool *frames[1], *hdrs[1];
};

static void count_one(struct rte_mempool *mp, void *arg)
{
	*(unsigned int *)arg += !strncmp(mp->name, "weft_", 5);
}

static unsigned int pools_there(void)
{
	unsigned int n = 0;

	rte_mempool_walk(count_one, &n);
	return n;
}

static uint16_t null_port;

static void make_port(struct pools *p)
{
	*p = (struct pools){.dev = {.port_id = null_port, .frame_size = 1514, .num_queues = 1}};
	p->dev.limits.copies_tx = true;
	p->dev.pools = p->frames;
	p->dev.hdr_pools = p->hdrs;
}

static void open_port(struct pools *p)
{
	char why[200] = "";

	make_port(p);
	if (weft_port_pools_create(&p->dev, 0, 64, 64, 31, why, sizeof(why)))
		fail_msg("%s", why);
}

static void pools_go_with_their_port(void **state)
{
	struct pools p;

	(void)state;
	open_port(&p);
	assert_int_equal(pools_there(), 2);
	weft_port_pools_free(&p.dev, 0);
	assert_int_equal(pools_there(), 0);
}

struct range {
	uintptr_t begin, end;
	unsigned int outside;
};

static void outside_of(struct rte_mempool *mp, void *arg, void *object, unsigned int index)
{
	struct range *r = arg;
	uintptr_t at = (uintptr_t)object - mp->header_size;

	(void)index;
	r->outside += at < r->begin || at + mp->header_size + mp->elt_size > r->end;
}

/* As xdp_umem_configure() of DPDK's net_af_xdp computes the memory that it registers. */
static void buffers_of_af_xdp_are_all_in_the_memory_that_the_pmd_registers(void **state)
{
	const struct rte_mempool_memhdr *mem;
	struct rte_mempool *mp;
	struct range r = {0};
	char why[200] = "";
	struct pools p;

	(void)state;
	make_port(&p);
	p.dev.limits.object_max = p.dev.limits.data_room = 4096;
	p.dev.limits.no_extbuf = true;
	p.dev.limits.rx_reserve = 2048;
	if (weft_port_pools_create(&p.dev, 0, 64, 64, 31, why, sizeof(why)))
		fail_msg("%s", why);
	mp = p.dev.pools[0];
	mem = STAILQ_FIRST(&mp->mem_list);
	r.begin = (uintptr_t)mem->addr & ~4095ul;
	r.end = (uintptr_t)mem->addr +
		(uintptr_t)mp->populated_size *
			rte_mempool_calc_obj_size(mp->elt_size, mp->flags, NULL);
	rte_mempool_obj_iter(mp, outside_of, &r);
	assert_int_equal(r.outside, 0);
	assert_int_equal(rte_mempool_calc_obj_size(mp->elt_size, mp->flags, NULL), 4096);
	weft_port_pools_free(&p.dev, 0);
	assert_int_equal(pools_there(), 0);
}

static void pools_with_a_buffer_out_go_when_it_is_back_however_many(void **state)
{
	static struct rte_mbuf *held[PORTS];
	struct pools p;

	(void)state;
	for (unsigned int i = 0; i < PORTS; i++) {
		open_port(&p);
		held[i] = rte_pktmbuf_alloc(p.frames[0]);
		assert_non_null(held[i]);
		weft_port_pools_free(&p.dev, 0);
		assert_int_equal(pools_there(), i + 1);
	}
	/* Still whole for its holder. */
	for (unsigned int i = 0; i < PORTS; i++) {
		memset(rte_pktmbuf_mtod(held[i], void *), (int)i, 1514);
		rte_pktmbuf_free(held[i]);
	}
	open_port(&p); /* looks after the late ones */
	assert_int_equal(pools_there(), 2);
	weft_port_pools_free(&p.dev, 0);
	assert_int_equal(pools_there(), 0);
}

static void a_port_without_memory_reports_how_much_it_needs(void **state)
{
	char why[256] = "";
	struct pools p;

	(void)state;
	make_port(&p);
	assert_int_equal(weft_port_pools_create(&p.dev, 0, 64, 64, 300000, why, sizeof(why)),
			 -ENOMEM);
	weft_port_pools_free(&p.dev, 0);
	assert_int_equal(pools_there(), 0);
	if (!strstr(why, "no memory for 3") || !strstr(why, " MiB with those for headers") ||
	    !strstr(why, "set WEFT_RX_BUFS lower"))
		fail_msg("it said: %s", why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools_go_with_their_port),
		cmocka_unit_test(buffers_of_af_xdp_are_all_in_the_memory_that_the_pmd_registers),
		cmocka_unit_test(pools_with_a_buffer_out_go_when_it_is_back_however_many),
		cmocka_unit_test(a_port_without_memory_reports_how_much_it_needs),
	};

	test_eal_init("512");
	if (rte_dev_probe("net_null0") || rte_eth_dev_get_port_by_name("net_null0", &null_port)) {
		puts("there is no net_null in this DPDK");
		return 77;
	}
	return cmocka_run_group_tests_name("port_pool", tests, NULL, NULL);
}
