/* SPDX-License-Identifier: BSD-3-Clause */
/* RoCE lanes at the limits of a device and of locked memory. */

#include "fake/roce_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct rw_iface *f, *g;
static struct rw_end a, b;

static void connect_pair(const char *options)
{
	f = rw_open(&weft_roce_driver, "mlx5_0", options, 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", options, 0);
	rw_connect(f, g, &a, &b);
}

/* ------------------------------------------------------------------ locked memory */

/* @behaviour U89 */
static void a_lane_whose_receive_buffers_cant_be_locked_is_refused_and_the_others_go_on(
	void **state)
{
	struct rw_end more = {0};
	unsigned int i;
	int rc = 0;

	connect_pair("");
	fake.memlock = fake.pinned + 65536;
	for (i = 0; i < 20 && rc == 0; i++)
		rc = f->lane->ops->ep_create(f->lane, &more, &more.lane_ep);
	assert_int_equal(rc, -ENOMEM);
	/* What was promised is there. */
	assert_true(rw_counter(f, "rx.posted") >= rw_counter(f, "rx.promised"));
	for (i = 0; i < 500; i++) {
		rw_send(&b, 64);
		rw_run(RW_STEP_NS);
	}
	rw_run(1000000);
	assert_int_equal(a.received, b.sent);
	assert_int_equal(fake.count.rnr, 0);
	fake.memlock = UINT64_MAX;
	assert_int_equal(f->lane->ops->ep_create(f->lane, &more, &more.lane_ep), 0);
}

/* @behaviour U91 */
static void memory_that_cant_be_locked_is_not_retried_with_every_message(void **state)
{
	uint64_t before;
	unsigned int i;

	connect_pair("");
	fake.memlock = fake.pinned;
	before = fake.count.calls[FAKE_REG_MR];
	for (i = 0; i < 2000; i++) {
		assert_int_equal(rw_send(&a, 4000), -EAGAIN);
		rw_run(RW_STEP_NS);
	}
	assert_true(fake.count.calls[FAKE_REG_MR] - before < 12);
	/* Nor is it given up. */
	fake.memlock = UINT64_MAX;
	for (i = 0; i < 10000 && a.sent == 0; i++) {
		rw_send(&a, 4000);
		rw_run(RW_STEP_NS);
	}
	rw_run(1000000);
	assert_int_equal(b.received, 1);
}

/* ------------------------------------------------------------------ peers that answer nothing */

/*
 * A host is dead, and not given up yet: its lanes hold what they have, and leave the others theirs.
 */
/*
 * @behaviour S19: over RoCE a host that does not acknowledge leaves send buffers for the lanes to
 * other hosts; hosts that take all control channels leave slots for a host that has none, and hosts
 * that request cookies leave space for messages
 */
static void lanes_to_a_dead_host_leave_send_room_for_others(void **state)
{
	enum { LANES = 48 };
	static const uint8_t ip[4] = {10, 0, 0, 3};
	static struct rw_end near[LANES], far[LANES];
	struct fake_device *dead = fake_device_add("mlx5_2", ip);
	struct rw_iface *h;
	unsigned int i;

	f = rw_open(&weft_roce_driver, "mlx5_0", "window=120", 32768);
	g = rw_open(&weft_roce_driver, "mlx5_1", "window=120", 32768);
	h = rw_open(&weft_roce_driver, "mlx5_2", "window=120", 32768);
	rw_connect(f, g, &a, &b);
	for (i = 0; i < LANES; i++)
		rw_connect(f, h, &near[i], &far[i]);
	dead->frozen = true;
	for (i = 0; i < 2 * LANES; i++)
		while (rw_send(&near[i % LANES], 4000) == 0)
			;
	/* Each of them has its least share, and the first ones more; the healthy one, too. */
	for (i = 0; i < LANES; i++)
		assert_true(near[i].sent >= ROCE_SHARE_MIN);
	for (i = 0; i < ROCE_SHARE_MIN; i++)
		assert_int_equal(rw_send(&a, 4000), 0);
	for (i = 0; i < 500; i++) {
		rw_send(&a, 4000);
		rw_run(RW_STEP_NS);
	}
	assert_true(a.sent > 400);
	assert_in_range(b.received, a.sent - 10, a.sent);
	dead->frozen = false;
	rw_run(20000000);
	for (i = 0; i < LANES; i++)
		assert_int_equal(far[i].received, near[i].sent);
}

/* ------------------------------------------------------------------ devices */

/* The lane reports it, and no call requests it. */
static void a_peer_that_takes_no_reads_is_known_when_the_lane_is_up(void **state)
{
	fake.device[1].attr.max_qp_rd_atom = 0;
	connect_pair("");
	assert_true(f->lane->attr.features & WEFT_LANE_F_GET);
	assert_true(a.lane_ep->lacks & WEFT_LANE_F_GET);
	assert_true(a.lane_ep->lacks & WEFT_LANE_F_AMO64);
	assert_false(a.lane_ep->lacks & WEFT_LANE_F_PUT);
	assert_false(g->lane->attr.features & WEFT_LANE_F_GET);
	assert_int_equal(b.lane_ep->lacks, 0);
}

static void peers_that_take_reads_lack_nothing(void **state)
{
	connect_pair("");
	assert_int_equal(a.lane_ep->lacks | b.lane_ep->lacks, 0);
}

static void a_device_without_inline_data_carries_short_messages(void **state)
{
	unsigned int i;

	fake.device[0].max_inline = fake.device[1].max_inline = 0;
	connect_pair("");
	assert_true(f->lane->attr.max_short >= 64);
	for (i = 0; i < 2000; i++) {
		rw_send(&a, 64);
		rw_send(&b, 4000);
		rw_run(RW_STEP_NS);
	}
	rw_run(1000000);
	assert_true(a.sent > 500 && b.sent > 500);
	assert_int_equal(b.received, a.sent);
	assert_int_equal(a.received, b.sent);
	assert_false(a.wrong || b.wrong);
}

static void reads_have_no_more_pieces_than_the_device_scatters(void **state)
{
	struct rw_comp c = rw_comp();
	struct weft_mem_lane *here, *there;
	uint8_t *own = aligned_alloc(4096, 8192), *far = aligned_alloc(4096, 8192);
	struct iovec iov[2] = {{own, 100}, {own + 4096, 100}};
	char why[160];

	fake.device[0].attr.max_sge_rd = 1;
	connect_pair("");
	memset(far, 7, 8192);
	assert_int_equal(weft_roce_driver.mem_register(
				 f->lane, own, 8192, WEFT_LANE_ACCESS_LOCAL_WRITE, &here, why, 160),
			 0);
	assert_int_equal(weft_roce_driver.mem_register(g->lane, far, 8192,
						       WEFT_LANE_ACCESS_REMOTE_READ, &there, why,
						       160),
			 0);
	assert_int_equal(f->lane->attr.max_rma_iov, 1);
	assert_int_equal(a.lane_ep->ops->get_zcopy(a.lane_ep, iov, 2, here, 0,
						   weft_roce_driver.mem_key(g->lane, there),
						   &c.base),
			 -EINVAL);
	assert_int_equal(a.lane_ep->ops->get_zcopy(a.lane_ep, iov, 1, here, 0,
						   weft_roce_driver.mem_key(g->lane, there),
						   &c.base),
			 0);
	rw_run(1000000);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.status, 0);
	assert_int_equal(own[99], 7);
	assert_int_equal(a.downs, 0);
	weft_roce_driver.mem_deregister(f->lane, here);
	weft_roce_driver.mem_deregister(g->lane, there);
	free(own);
	free(far);
}

static void a_device_without_shared_receive_queues_is_refused_with_a_sentence(void **state)
{
	struct rw_iface *out;
	char why[320] = "";

	fake.device[0].attr.max_srq = fake.device[0].attr.max_srq_wr = 0;
	assert_true(rw_try_open(&weft_roce_driver, "mlx5_0", "", 0, &out, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "mlx5_0 has no shared receive queues"));
}

/* ------------------------------------------------------------------ places */

#define LANES 70

/* @behaviour U91 */
static void every_lane_sends_its_last_message_though_all_send_queues_are_full(void **state)
{
	static struct rw_end in[LANES], out[LANES];
	static _Alignas(4096) uint8_t here[4096], there[4096];
	static struct rw_comp puts[LANES * 128];
	struct iovec iov = {here, 64};
	struct weft_mem_lane *m, *n;
	unsigned int i, k = 0, gone = 0;
	char why[160];
	int rc;

	f = rw_open(&weft_roce_driver, "mlx5_0", "", 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", "", 0);
	for (i = 0; i < LANES; i++)
		rw_connect(f, g, &in[i], &out[i]);
	assert_int_equal(weft_roce_driver.mem_register(f->lane, here, 4096, 0, &m, why, 160), 0);
	assert_int_equal(weft_roce_driver.mem_register(g->lane, there, 4096,
						       WEFT_LANE_ACCESS_LOCAL_WRITE |
							       WEFT_LANE_ACCESS_REMOTE_WRITE,
						       &n, why, 160),
			 0);
	/*
	 * The device gives nothing back while all write what they can: their shares of the
	 * completion queue are the bound.
	 */
	fake.device[0].frozen = true;
	for (i = 0; i < LANES; i++) {
		do {
			puts[k] = rw_comp();
			rc = in[i].lane_ep->ops->put_zcopy(in[i].lane_ep, &iov, 1, m, 0,
							   weft_roce_driver.mem_key(g->lane, n),
							   &puts[k].base);
		} while (rc == 0 && ++k < LANES * 128);
		assert_int_equal(rc, -EAGAIN);
	}
	assert_true(k > 7400);
	for (i = 0; i < LANES; i++)
		rw_destroy(&in[i]);
	fake.device[0].frozen = false;
	rw_run(200000000);
	for (i = 0; i < LANES; i++)
		gone += out[i].gones;
	assert_int_equal(gone, LANES);
	while (k-- > 0)
		assert_int_equal(puts[k].done, 1);
	weft_roce_driver.mem_deregister(f->lane, m);
	weft_roce_driver.mem_deregister(g->lane, n);
}

int main(void)
{
#define T(x) cmocka_unit_test_setup_teardown(x, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(a_lane_whose_receive_buffers_cant_be_locked_is_refused_and_the_others_go_on),
		T(memory_that_cant_be_locked_is_not_retried_with_every_message),
		T(lanes_to_a_dead_host_leave_send_room_for_others),
		T(a_peer_that_takes_no_reads_is_known_when_the_lane_is_up),
		T(peers_that_take_reads_lack_nothing),
		T(a_device_without_inline_data_carries_short_messages),
		T(reads_have_no_more_pieces_than_the_device_scatters),
		T(a_device_without_shared_receive_queues_is_refused_with_a_sentence),
		T(every_lane_sends_its_last_message_though_all_send_queues_are_full),
	};

	return cmocka_run_group_tests_name("RoCE lanes at their limits", tests, NULL, NULL);
}
