/* SPDX-License-Identifier: BSD-3-Clause */
/* Owners of RoCE lanes that sleep: what comes at the worst moment is not lost. */

#include "fake/roce_world.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static struct rw_iface *f, *g;
static struct rw_end a, b;

static void connect_pair(void)
{
	f = rw_open(&weft_roce_driver, "mlx5_0", "", 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", "", 0);
	rw_connect(f, g, &a, &b);
	rw_run(1000000);
}

static bool readable(const struct rw_iface *i)
{
	struct pollfd p = {.fd = i->lane->ops->wait_fd(i->lane), .events = POLLIN};

	assert_true(p.fd >= 0);
	return poll(&p, 1, 0) == 1;
}

static int arm(struct rw_iface *i)
{
	uint64_t due = UINT64_MAX;
	int rc = i->lane->ops->arm(i->lane, rw.now, &due);

	/* What the device reports by itself is looked at in any case. */
	assert_true(due <= rw.now + 100000000);
	return rc;
}

static void disarm(struct rw_iface *i)
{
	i->lane->ops->disarm(i->lane);
}

static unsigned int progress(struct rw_iface *i)
{
	return i->lane->ops->progress(i->lane, rw.now);
}

/* As a worker does it: until nothing is left to do. */
static void arm_whole(struct rw_iface *i)
{
	unsigned int tries = 0;

	while (arm(i) != 0) {
		progress(i);
		assert_true(++tries < 10);
	}
}

/* Devices move, and the owner of @p i does not look. */
static void send_to_sleeper(struct rw_iface *i, struct rw_end *from)
{
	i->still = true;
	assert_int_equal(rw_send(from, 100), 0);
	rw_run(100000);
	i->still = false;
}

static void a_message_wakes_the_sleeper(void **state)
{
	unsigned int k;

	(void)state;
	connect_pair();
	for (k = 1; k <= 100; k++) {
		arm_whole(g);
		assert_false(readable(g));
		send_to_sleeper(g, &a);
		assert_int_equal(b.received, k - 1);
		assert_true(readable(g));
		disarm(g);
		assert_false(readable(g));
		assert_true(progress(g) > 0);
		assert_int_equal(b.received, k);
	}
}

/* Before the device is asked to tell: it tells of nothing that is there already. */
static void what_came_before_the_request_is_found(void **state)
{
	(void)state;
	connect_pair();
	send_to_sleeper(g, &a);
	assert_int_equal(arm(g), -EBUSY);
	assert_true(progress(g) > 0);
	assert_int_equal(b.received, 1);
	assert_int_equal(arm(g), 0);
	assert_false(readable(g));
	disarm(g);
}

/* Between the request and the look that follows. */
/* @behaviour U75 */
static void what_comes_with_the_request_is_found(void **state)
{
	(void)state;
	connect_pair();
	assert_int_equal(arm(g), -EBUSY);
	send_to_sleeper(g, &a);
	assert_int_equal(arm(g), -EBUSY); /* not looked yet */
	assert_true(progress(g) > 0);
	assert_int_equal(b.received, 1);
	/* Reported a second time, which does no harm. */
	assert_int_equal(arm(g), 0);
	assert_true(readable(g));
	disarm(g);
	arm_whole(g);
	assert_false(readable(g));
	disarm(g);
}

/* Counts that the peer writes make no completion: the sender looks at them. */
static void a_lane_that_awaits_a_count_polls_now_and_then(void **state)
{
	struct rw_comp c = rw_comp();
	uint64_t due = UINT64_MAX;

	(void)state;
	connect_pair();
	g->still = true;
	assert_int_equal(rw_send(&a, 100), 0);
	rw_run(100000);
	while (f->lane->ops->arm(f->lane, rw.now, &due) != 0)
		progress(f);
	assert_true(due <= rw.now + 1000000);
	disarm(f);
	g->still = false;
	rw_run(1000000);
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &c.base), WEFT_LANE_IDLE);
}

/* The peer gets the count of received messages before its owner goes to sleep. */
static void peers_are_notified_before_the_sleep(void **state)
{
	struct rw_comp c = rw_comp();

	(void)state;
	connect_pair();
	assert_int_equal(rw_send(&a, 100), 0);
	g->still = true;
	rw_run(RW_STEP_NS);
	progress(g);
	arm_whole(g);
	rw_run(100000); /* and it sleeps on */
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &c.base), WEFT_LANE_IDLE);
	disarm(g);
}

static void the_control_channel_wakes_too(void **state)
{
	struct rw_iface *u;

	(void)state;
	u = rw_open(&weft_roce_ud_driver, "mlx5_0", "", 0);
	assert_int_equal(arm(u), -EBUSY);
	progress(u);
	assert_int_equal(arm(u), 0);
	assert_false(readable(u));
	disarm(u);
}

#define WAIT(f) cmocka_unit_test_setup_teardown(f, rw_setup, rw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT(a_message_wakes_the_sleeper),
		WAIT(what_came_before_the_request_is_found),
		WAIT(what_comes_with_the_request_is_found),
		WAIT(a_lane_that_awaits_a_count_polls_now_and_then),
		WAIT(peers_are_notified_before_the_sleep),
		WAIT(the_control_channel_wakes_too),
	};

	return cmocka_run_group_tests_name("roce_wait", tests, NULL, NULL);
}
