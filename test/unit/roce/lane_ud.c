/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control channel between two devices: it gets over errors, lost addresses and peers that take
 * less.
 */

#include "fake/roce_world.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

static struct rw_iface *f, *g;
static struct rw_end a, b;

static void open_pair(const char *of, const char *og)
{
	f = rw_open(&weft_roce_ud_driver, "mlx5_0", of, 0);
	g = rw_open(&weft_roce_ud_driver, "mlx5_1", og, 0);
}

static int begin_connect(void)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	memset(&a, 0, sizeof(a));
	a.iface = f;
	g->lane->ops->get_address(g->lane, addr);
	return f->lane->ops->ep_connect(f->lane, addr, g->lane->attr.dev_addr_len, &a, &a.lane_ep);
}

/* Until the first message is there and its lane_ep at the other end. */
static void connect_pair(void)
{
	time_t end = time(NULL) + 20;

	assert_int_equal(begin_connect(), 0);
	rw_wait_up(&a);
	assert_int_equal(a.ups, 1);
	memset(&b, 0, sizeof(b));
	b.iface = g;
	g->accepted = NULL;
	assert_int_equal(rw_send(&a, 64), 0);
	/* The way back is found by a thread, in real time. */
	while (!g->accepted && time(NULL) < end) {
		rw_turn();
		sched_yield();
	}
	assert_non_null(g->accepted);
	b.lane_ep = g->accepted;
	b.lane_ep->user = &b;
	a.sent = 0;
}

static void exchange(void)
{
	uint64_t before = b.received, back = a.received;

	assert_int_equal(rw_send(&a, 64), 0);
	assert_int_equal(rw_send(&b, 64), 0);
	rw_run(1000000);
	assert_int_equal(b.received, before + 1);
	assert_int_equal(a.received, back + 1);
}

static void a_request_that_fails_is_got_over_with_the_same_queue_pair(void **state)
{
	uint8_t before[WEFT_LANE_ADDR_MAX], after[WEFT_LANE_ADDR_MAX];
	unsigned int i;

	open_pair("", "");
	connect_pair();
	exchange();
	f->lane->ops->get_address(f->lane, before);
	for (i = 0; i < 3; i++) {
		fake.ud_send_error = true;
		assert_int_equal(rw_send(&a, 64), 0);
		assert_int_equal(rw_send(&a, 64), 0); /* flushed */
		rw_run(10000000);
		a.sent -= 2; /* lost, as datagrams are */
		exchange();
	}
	f->lane->ops->get_address(f->lane, after);
	assert_memory_equal(before, after, f->lane->attr.dev_addr_len);
	assert_int_equal(rw_counter(f, "qp.resets"), 3);
	assert_int_equal(a.downs + b.downs + a.gones + b.gones, 0);
	assert_false(a.wrong || b.wrong);
	assert_int_equal(fake.count.purged_recvs + fake.count.purged_sends, 0);
}

static uint32_t ud_qpn(struct rw_iface *i)
{
	struct weft_roce_addr addr;

	i->lane->ops->get_address(i->lane, &addr);
	return weft_get32(addr.qpn);
}

static void a_queue_pair_that_breaks_is_set_up_anew_with_all_its_receives(void **state)
{
	uint32_t receives;

	open_pair("", "");
	connect_pair();
	receives = fake_qp_receives(ud_qpn(g));
	fake_qp_break(ud_qpn(g));
	rw_run(50000000);
	assert_int_equal(fake_qp_state(ud_qpn(g)), IBV_QPS_RTS);
	assert_true(fake_qp_receives(ud_qpn(g)) >= receives);
	exchange();
	assert_int_equal(fake.count.purged_recvs, 0);
	/* Its completions and its event are one failure. */
	assert_int_equal(rw_counter(g, "qp.resets"), 1);
}

static void an_application_that_computes_meanwhile_is_no_failure(void **state)
{
	open_pair("", "");
	connect_pair();
	fake_qp_break(ud_qpn(g));
	rw_turn();
	rw.now += 2000000000;
	rw_run(50000000);
	assert_int_equal(fake_qp_state(ud_qpn(g)), IBV_QPS_RTS);
	exchange();
}

static void a_queue_pair_that_cant_be_set_up_ends_the_connections_with_a_sentence(void **state)
{
	open_pair("", "");
	connect_pair();
	fake_fail(FAKE_MODIFY_QP, 1, 100, EIO); /* the error state it still reaches */
	fake_qp_break(ud_qpn(f));
	rw_run(100000000);
	assert_int_equal(a.downs, 1);
	assert_int_equal(a.status, -EIO);
	assert_non_null(strstr(a.text, "a queue of the device failed"));
}

static void answers_are_cut_by_what_the_other_end_takes(void **state)
{
	/* The passive end's device carries 4096 bytes, the other one's 1024. */
	fake.device[0].port.active_mtu = IBV_MTU_1024;
	open_pair("", "");
	connect_pair();
	assert_int_equal(a.lane_ep->max_msg, 1024 - sizeof(struct weft_roce_ud_head));
	assert_int_equal(b.lane_ep->max_msg, 1024 - sizeof(struct weft_roce_ud_head));
	exchange();
}

/* @behaviour S2 */
static void the_far_end_is_known_by_its_datagrams(void **state)
{
	uint8_t af[WEFT_LANE_ADDR_MAX], ag[WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops;
	uint64_t first;
	size_t len;

	open_pair("", "");
	ops = f->lane->ops;
	len = f->lane->attr.dev_addr_len;
	ops->get_address(f->lane, af);
	ops->get_address(g->lane, ag);
	assert_int_equal(begin_connect(), 0);
	assert_false(ops->ep_is_from(a.lane_ep, ag, len)); /* nothing heard yet */
	a.lane_ep->ops->ep_destroy(a.lane_ep);
	connect_pair();
	exchange();
	assert_true(ops->ep_is_from(a.lane_ep, ag, len));
	assert_false(ops->ep_is_from(a.lane_ep, af, len));
	assert_true(ops->ep_is_from(b.lane_ep, af, len));
	assert_false(ops->ep_is_from(b.lane_ep, ag, len));
	af[4] ^= 1; /* another queue pair of that host */
	assert_false(ops->ep_is_from(b.lane_ep, af, len));
	assert_false(ops->ep_is_from(b.lane_ep, ag, 3));
	first = ops->ep_host(b.lane_ep);
	connect_pair(); /* another connection of that host */
	assert_true(ops->ep_host(b.lane_ep) == first);
}

/* Before that its sender has shown that it is where it says it is. */
/* @behaviour S9 */
static void a_message_is_accepted_after_a_cookie_and_but_once(void **state)
{
	open_pair("", "");
	connect_pair();
	rw_run(1000000);
	assert_int_equal(rw_counter(g, "tx.retry"), 1);
	assert_int_equal(rw_counter(f, "rx.retry"), 1);
	assert_int_equal(rw_counter(g, "rx.messages"), 1);
	exchange();
	assert_int_equal(rw_counter(g, "tx.retry"), 1);
	assert_int_equal(rw_counter(f, "tx.retry"), 0);
}

/* The question, its answer, or what is said again gets lost: the owner says it once more. */
/* @behaviour S9 */
static void a_lost_cookie_is_requested_again(void **state)
{
	time_t end = time(NULL) + 20;
	unsigned int i;

	open_pair("", "");
	assert_int_equal(begin_connect(), 0);
	rw_wait_up(&a);
	g->accepted = NULL;
	for (i = 0; !g->accepted && time(NULL) < end; i++) {
		fake.ud_lose = i < 3 ? 1 : 0;
		assert_int_equal(rw_send(&a, 64), 0);
		rw_run(20000000);
		sched_yield();
	}
	assert_non_null(g->accepted);
	assert_true(i > 1);
}

static void an_address_that_moves_is_used_by_new_connections(void **state)
{
	static const uint8_t own[4] = {10, 0, 0, 1};

	open_pair("", "");
	connect_pair();
	fake_gid_clear(&fake.device[0], 0);
	fake_gid_clear(&fake.device[0], 1);
	fake_event(&fake.device[0], IBV_EVENT_GID_CHANGE);
	rw_run(50000000);
	assert_int_equal(a.downs, 1);
	assert_int_equal(a.status, -EADDRNOTAVAIL);
	assert_int_equal(begin_connect(), -EADDRNOTAVAIL);
	fake_gid_set(&fake.device[0], 6, own, true);
	fake_event(&fake.device[0], IBV_EVENT_GID_CHANGE);
	rw_run(50000000);
	connect_pair();
	exchange();
}

static void a_dead_device_reaches_no_peer(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	char why[320] = "";

	open_pair("", "");
	connect_pair();
	g->lane->ops->get_address(g->lane, addr);
	fake_event(&fake.device[0], IBV_EVENT_DEVICE_FATAL);
	rw_run(50000000);
	assert_int_equal(a.downs, 1);
	assert_int_equal(f->lane->ops->is_reachable(f->lane, addr, f->lane->attr.dev_addr_len, why,
						    sizeof(why)),
			 -ENODEV);
	assert_non_null(strstr(why, "the device failed or was removed"));
}

static void datagrams_that_get_lost_are_nobodys_failure(void **state)
{
	open_pair("", "");
	connect_pair();
	fake.ud_lose = 2;
	assert_int_equal(rw_send(&a, 64), 0);
	assert_int_equal(rw_send(&b, 64), 0);
	rw_run(1000000);
	assert_int_equal(fake.count.ud_dropped, 2);
	a.sent = b.sent = 0;
	exchange();
	assert_int_equal(a.downs + b.downs, 0);
}

int main(void)
{
#define T(x) cmocka_unit_test_setup_teardown(x, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(a_request_that_fails_is_got_over_with_the_same_queue_pair),
		T(a_queue_pair_that_breaks_is_set_up_anew_with_all_its_receives),
		T(an_application_that_computes_meanwhile_is_no_failure),
		T(a_queue_pair_that_cant_be_set_up_ends_the_connections_with_a_sentence),
		T(answers_are_cut_by_what_the_other_end_takes),
		T(the_far_end_is_known_by_its_datagrams),
		T(a_message_is_accepted_after_a_cookie_and_but_once),
		T(a_lost_cookie_is_requested_again),
		T(an_address_that_moves_is_used_by_new_connections),
		T(a_dead_device_reaches_no_peer),
		T(datagrams_that_get_lost_are_nobodys_failure),
	};

	return cmocka_run_group_tests_name("RoCE's control channel between two devices", tests,
					   NULL, NULL);
}
