/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE lanes when something breaks: devices that refuse, lose, report or vanish, and peers that
 * leave.
 */

#include "fake/roce_world.h"

#include <errno.h>
#include <string.h>

static struct rw_iface *f, *g;
static struct rw_end a, b;

static void connect_pair(const char *options)
{
	f = rw_open(&weft_roce_driver, "mlx5_0", options, 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", options, 0);
	rw_connect(f, g, &a, &b);
}

/* The number of the lane_ep's first queue pair, as the wire has it. */
static uint32_t qpn_of(const struct rw_end *e)
{
	struct weft_roce_ep_addr addr;

	e->lane_ep->ops->ep_get_address(e->lane_ep, &addr);
	return weft_get32(addr.qpn[0]);
}

/* ------------------------------------------------------------------ queue pairs go */

/* @behaviour U88 */
static void receives_of_a_broken_queue_pair_come_back_though_its_owner_looked_away(void **state)
{
	static struct rw_end in[8], out[8];
	unsigned int i, k;

	f = rw_open(&weft_roce_driver, "mlx5_0", "", 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", "", 0);
	for (i = 0; i < 8; i++)
		rw_connect(f, g, &in[i], &out[i]);
	/*
	 * Windows of all lie in the receiver's completion queue, the last lane's behind the
	 * others'.
	 */
	g->still = true;
	for (i = 0; i < 8; i++) {
		for (k = 0; k < 40; k++)
			assert_int_equal(rw_send(&in[i], 64), 0);
		rw_run(20000);
	}
	fake_qp_break(qpn_of(&out[7]));
	g->still = false;
	rw.now += 10000000;
	rw_turn();
	assert_int_equal(out[7].downs, 1);
	rw_destroy(&out[7]);
	/* Long enough for everything, had anybody looked. */
	rw.now += 50000000;
	rw_run(2000000000);
	assert_int_equal(fake.count.purged_recvs, 0);
	assert_int_equal(fake_qp_receives(qpn_of(&out[0])), rw_counter(g, "rx.posted"));
	for (i = 0; i < 7; i++)
		assert_int_equal(out[i].received, 40);
}

static void a_device_that_never_reports_an_empty_queue_pair_does_not_hold_its_lane(void **state)
{
	fake.device[0].no_last_wqe = fake.device[1].no_last_wqe = true;
	connect_pair("");
	assert_int_equal(rw_send(&a, 64), 0);
	rw_run(1000000);
	rw_destroy(&a);
	rw_destroy(&b);
	rw_run(2000000000);
	assert_int_equal(fake.alive.qps, 0);
	assert_int_equal(fake.count.purged_recvs, 0);
}

static void a_failed_lane_ends_its_requests_and_lets_go_of_the_device(void **state)
{
	int i;

	connect_pair("");
	rw_run(1000000);
	for (i = 0; i < 20; i++)
		assert_int_equal(rw_send(&a, 64), 0);
	fake_qp_break(qpn_of(&a));
	rw_run(20000000);
	assert_int_equal(a.downs, 1);
	assert_int_equal(a.status, -EIO);
	assert_int_equal(rw_send(&a, 64), -EIO);
	rw_destroy(&a);
	rw_destroy(&b);
	rw_run(4000000000ull);
	assert_int_equal(fake.alive.qps, 0);
}

static void a_peer_whose_device_stands_still_is_given_up_when_the_device_reports_it(void **state)
{
	struct rw_comp c = rw_comp();

	connect_pair("");
	rw_run(1000000);
	fake.device[1].frozen = true;
	assert_int_equal(rw_send(&a, 64), 0);
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &c.base), 0);
	rw_run(1500000000);
	assert_int_equal(a.downs, 0);
	rw_run(1000000000);
	assert_int_equal(a.downs, 1);
	assert_int_equal(c.done, 1);
	assert_true(c.status < 0);
	assert_non_null(strstr(a.text, "10.0.0.2 gave no answer"));
	fake.device[1].frozen = false;
}

/* ------------------------------------------------------------------ calls that fail */

static void requests_that_the_device_refuses_end_the_lane_and_the_rest_comes_back(void **state)
{
	struct rw_comp c = rw_comp();
	int i;

	connect_pair("");
	rw_run(1000000);
	assert_int_equal(rw_send(&a, 64), 0); /* goes at once; the others are collected */
	for (i = 0; i < 10; i++)
		assert_int_equal(rw_send(&a, 64), 0);
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &c.base), 0);
	fake_fail(FAKE_POST_SEND, 0, 1, ENOMEM);
	fake.fail[FAKE_POST_SEND].taken = 4;
	rw_run(20000000);
	assert_int_equal(a.downs, 1);
	assert_non_null(strstr(a.text, "the device refuses"));
	assert_int_equal(b.received, 5);
	assert_int_equal(c.done, 1);
	rw_destroy(&a);
	rw_run(2000000000);
	rw_destroy(&b);
	rw_run(4000000000ull);
	assert_int_equal(fake.alive.qps, 0);
}

static void a_lane_is_refused_when_the_device_refuses_its_queue_pair(void **state)
{
	struct rw_end e = {0};

	f = rw_open(&weft_roce_driver, "mlx5_0", "qps=4", 0);
	fake_fail(FAKE_CREATE_QP, 2, 1, ENOMEM);
	assert_int_equal(f->lane->ops->ep_create(f->lane, &e, &e.lane_ep), -ENOMEM);
	assert_int_equal(rw_counter(f, "rx.promised"), 0);
	assert_int_equal(fake.alive.qps, 0);
	rw_create(f, &e);
	assert_int_equal(fake.alive.qps, 4);
}

static void a_peer_that_does_not_answer_address_resolution_ends_the_lane_with_a_sentence(
	void **state)
{
	f = rw_open(&weft_roce_driver, "mlx5_0", "", 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", "", 0);
	rw_create(f, &a);
	rw_create(g, &b);
	fake_gid_clear(&fake.device[1], 0);
	fake_gid_clear(&fake.device[1], 1);
	assert_int_equal(rw_connect_to(&a, &b), 0);
	rw_wait_up(&a);
	assert_int_equal(a.downs, 1);
	assert_int_equal(a.status, -EHOSTUNREACH);
	assert_non_null(strstr(a.text, "10.0.0.2"));
}

/* ------------------------------------------------------------------ events */

static void a_device_that_is_pulled_ends_its_lanes_and_can_be_closed(void **state)
{
	connect_pair("");
	assert_int_equal(rw_send(&a, 64), 0);
	rw_run(1000000);
	assert_int_equal(rw_send(&a, 64), 0);
	fake_remove(&fake.device[0]);
	rw_run(20000000);
	assert_int_equal(a.downs, 1);
	assert_int_equal(a.status, -ENODEV);
	assert_false(f->lane->ops->link_up(f->lane));
	rw_run(4000000000ull);
	rw_destroy(&a);
	rw_destroy(&b);
	rw_run(4000000000ull);
	assert_int_equal(fake.alive.qps, 0);
}

int main(void)
{
#define T(x) cmocka_unit_test_setup_teardown(x, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(receives_of_a_broken_queue_pair_come_back_though_its_owner_looked_away),
		T(a_device_that_never_reports_an_empty_queue_pair_does_not_hold_its_lane),
		T(a_failed_lane_ends_its_requests_and_lets_go_of_the_device),
		T(a_peer_whose_device_stands_still_is_given_up_when_the_device_reports_it),
		T(requests_that_the_device_refuses_end_the_lane_and_the_rest_comes_back),
		T(a_lane_is_refused_when_the_device_refuses_its_queue_pair),
		T(a_peer_that_does_not_answer_address_resolution_ends_the_lane_with_a_sentence),
		T(a_device_that_is_pulled_ends_its_lanes_and_can_be_closed),
	};

	return cmocka_run_group_tests_name("RoCE lanes, what breaks", tests, NULL, NULL);
}
