/* SPDX-License-Identifier: BSD-3-Clause */
/* RoCE lanes whose device is silent, or slow: which of them is suspect, and when. */

#include "fake/roce_world.h"

#include <stdlib.h>
#include <string.h>

static struct rw_iface *f, *g;
static struct rw_end a, b;
static uint8_t *user;
static struct weft_mem_lane *mem, *there;

static int setup(void **state)
{
	char why[160];

	rw_setup(state);
	user = aligned_alloc(4096, 65536);
	memset(user, 1, 65536);
	f = rw_open(&weft_roce_driver, "mlx5_0", "qps=1", 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", "qps=1", 0);
	rw_connect(f, g, &a, &b);
	assert_int_equal(weft_roce_driver.mem_register(f->lane, user, 32768,
						       WEFT_LANE_ACCESS_LOCAL_WRITE, &mem, why,
						       sizeof(why)),
			 0);
	assert_int_equal(weft_roce_driver.mem_register(g->lane, user + 32768, 32768,
						       WEFT_LANE_ACCESS_REMOTE, &there, why,
						       sizeof(why)),
			 0);
	return 0;
}

static int teardown(void **state)
{
	rw_destroy(&a);
	rw_destroy(&b);
	rw_run(3000000000ull);
	weft_roce_driver.mem_deregister(f->lane, mem);
	weft_roce_driver.mem_deregister(g->lane, there);
	free(user);
	return rw_teardown(state);
}

/* A quick run of a long time. */
static void pass(uint64_t ms)
{
	while (ms-- > 0) {
		rw.now += 1000000;
		rw_turn();
	}
}

/* It has been so for longer than a lane remembers. */
static void works_well(size_t length)
{
	unsigned int i;

	for (i = 0; i < 24; i++) {
		pass(1000);
		assert_int_equal(rw_send(&a, length), 0);
		rw_run(1000000);
	}
	assert_int_equal(a.suspects, 0);
}

static void a_request_without_an_answer_makes_the_lane_suspect(void **state)
{
	/* One that has shown nothing has more time. */
	fake.device[1].frozen = true;
	assert_int_equal(rw_send(&a, 64), 0);
	rw_run(290000000);
	assert_int_equal(a.suspects, 0);
	fake.device[1].frozen = false;
	works_well(64);
	assert_int_equal(b.received, 25);
	fake.device[1].frozen = true;
	assert_int_equal(rw_send(&a, 64), 0);
	rw_run(50000000);
	assert_int_equal(a.suspects, 0);
	rw_run(15000000);
	assert_true(a.suspects > 0);
	assert_int_equal(a.status, 0);
	assert_non_null(strstr(a.text, "10.0.0.2 has not answered for"));
	fake.device[1].frozen = false;
	rw_run(1000000);
	a.suspects = 0;
	rw_run(200000000);
	assert_int_equal(a.suspects, 0);
	assert_int_equal(b.received, 26);
}

/* Each time slower from one moment to the next, and with more under way than ever. */
/*
 * @behaviour R39: A lane that is slow, or was deaf and recovers, is not abandoned; nor is a peer
 * that computes
 */
static void a_slow_lane_is_not_suspect_while_it_carries_what_was_sent(void **state)
{
	static const uint64_t rates[] = {125000000, 31250000, 6250000, 2500000, 6250000};
	struct iovec iov = {user, 32768};
	struct rw_comp c[4];
	unsigned int i, n;

	(void)state;
	for (i = 0; i < 3 * sizeof(rates) / sizeof(rates[0]); i++) {
		fake.device[0].rate = fake.device[1].rate = rates[i / 3];
		for (n = 0; n < 4; n++) {
			c[n] = rw_comp();
			assert_int_equal(
				a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, mem, 0,
							  weft_roce_driver.mem_key(g->lane, there),
							  &c[n].base),
				0);
		}
		for (n = 0; n < 16u << i % 3 && rw_send(&a, 8000) == 0; n++)
			;
		assert_int_equal(rw_send(&b, 8000), 0);
		rw_run(100000000);
		pass(900);
		assert_int_equal(a.suspects + b.suspects, 0);
		assert_int_equal(b.received, a.sent);
		assert_false(b.wrong);
	}
	fake.device[0].rate = fake.device[1].rate = 125000000;
	works_well(8000);
	/* Silent for good it is suspect all the same. */
	fake.device[1].frozen = true;
	for (n = 0; n < 16; n++)
		assert_int_equal(rw_send(&a, 8000), 0);
	rw_run(80000000);
	assert_true(a.suspects > 0);
	fake.device[1].frozen = false;
	fake.device[0].rate = fake.device[1].rate = 0;
	rw_run(1000000);
}

static void a_port_that_goes_down_makes_its_lanes_suspect_at_once(void **state)
{
	fake.device[0].port.state = IBV_PORT_DOWN;
	fake_event(&fake.device[0], IBV_EVENT_PORT_ERR);
	rw_run(10000000);
	assert_true(a.suspects > 0);
	assert_int_equal(a.status, 0);
	assert_int_equal(b.suspects, 0);
	fake.device[0].port.state = IBV_PORT_ACTIVE;
	fake_event(&fake.device[0], IBV_EVENT_PORT_ACTIVE);
	rw_run(10000000);
	a.suspects = 0;
	rw_run(50000000);
	assert_int_equal(a.suspects, 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_request_without_an_answer_makes_the_lane_suspect),
		CASE(a_slow_lane_is_not_suspect_while_it_carries_what_was_sent),
		CASE(a_port_that_goes_down_makes_its_lanes_suspect_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
