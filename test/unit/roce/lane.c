/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RoCE driver by the lane contract, over devices in this process that behave as mlx5 does:
 * whatever rdma_rxe, on which the guest tests run, hides.
 */

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

static void healthy(struct rw_iface *i)
{
	static const char *const names[] = {"drop.bad_immediate",    "drop.bad_count",
					    "drop.too_long",         "drop.late",
					    "drop.stray_completion", "lanes.failed"};
	size_t k;

	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		assert_int_equal(rw_counter(i, names[k]), 0);
	assert_int_equal(fake.count.rnr, 0);
}

static void messages_of_all_sizes_arrive_exactly_once_in_order_in_both_directions(void **state)
{
	static const size_t sizes[] = {8, 9, 191, 192, 193, 1024, 4096, 8320};
	unsigned int i, tries;

	connect_pair("");
	for (i = 0; i < 4000; i++) {
		for (tries = 0; rw_send(&a, sizes[i % 8]) == -EAGAIN; tries++) {
			assert_true(tries < 1000);
			rw_run(RW_STEP_NS);
		}
		for (tries = 0; rw_send(&b, sizes[(i + 3) % 8]) == -EAGAIN; tries++) {
			assert_true(tries < 1000);
			rw_run(RW_STEP_NS);
		}
	}
	rw_run(1000000);
	assert_int_equal(a.received, 4000);
	assert_int_equal(b.received, 4000);
	assert_false(a.wrong || b.wrong);
	healthy(f);
	healthy(g);
}

static void a_zero_copy_send_is_over_when_the_peers_callback_has_returned(void **state)
{
	struct rw_comp c = rw_comp();
	struct weft_mem_lane *mem;
	struct iovec iov[2];
	uint8_t *buf = aligned_alloc(4096, 8192);
	uint64_t hdr = 0;
	char why[160];
	size_t i;

	connect_pair("");
	for (i = 0; i < 8192; i++)
		buf[i] = (uint8_t)((i + 8) * 7 + ((i + 8) >> 8));
	assert_int_equal(weft_roce_driver.mem_register(f->lane, buf, 8192, 0, &mem, why, 160), 0);
	iov[0] = (struct iovec){buf, 100};
	iov[1] = (struct iovec){buf + 100, 7000};
	assert_int_equal(a.lane_ep->ops->am_zcopy(a.lane_ep, 5, &hdr, 8, iov, 2, mem, &c.base), 0);
	g->still = true;
	rw_run(50000000);
	assert_int_equal(c.done, 0); /* it lies in the peer's memory, which has not been polled */
	assert_int_equal(b.received, 0);
	g->still = false;
	rw_run(1000000);
	assert_int_equal(b.received, 1);
	assert_int_equal(b.bytes, 7108);
	assert_false(b.wrong);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.status, 0);
	weft_roce_driver.mem_deregister(f->lane, mem);
	free(buf);
}

static void send_zcopy(uint8_t *buf, struct weft_mem_lane *mem, struct rw_comp *c)
{
	const struct iovec iov = {buf, 1000};
	uint64_t hdr = 0;

	assert_int_equal(a.lane_ep->ops->am_zcopy(a.lane_ep, 5, &hdr, 8, &iov, 1, mem, &c->base),
			 0);
	f->lane->ops->tx_flush(f->lane);
}

/* The layer above destroys it when the peer closes, which comes over one of the queue pairs. */
static void what_the_peer_took_is_no_error_of_the_end(void **state)
{
	struct rw_comp taken[3] = {rw_comp(), rw_comp(), rw_comp()}, lost = rw_comp(),
		       flush = rw_comp(), late = rw_comp();
	struct weft_mem_lane *mem;
	static uint8_t buf[1000];
	char why[160];

	connect_pair("qps=2");
	assert_int_equal(
		weft_roce_driver.mem_register(f->lane, buf, sizeof(buf), 0, &mem, why, 160), 0);
	g->still = true;
	for (int i = 0; i < 3; i++)
		send_zcopy(buf, mem, &taken[i]);
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &flush.base), 0);
	rw_run(100000);
	f->still = true;
	g->still = false;
	rw_run(100000);
	g->still = true;
	send_zcopy(buf, mem, &lost);
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &late.base), 0);
	assert_int_equal(taken[0].done + taken[1].done + taken[2].done + flush.done, 0);
	rw_destroy(&a);
	f->still = g->still = false;
	rw_run(1000000);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(taken[i].done, 1);
		assert_int_equal(taken[i].status, 0);
	}
	assert_int_equal(flush.done, 1);
	assert_int_equal(flush.status, 0);
	assert_int_equal(lost.status, -ECANCELED);
	assert_int_equal(late.status, -ECANCELED);
	weft_roce_driver.mem_deregister(f->lane, mem);
}

static void a_sender_to_a_peer_that_does_not_poll_has_no_room_and_loses_nothing(void **state)
{
	unsigned int i;

	connect_pair("window=16");
	g->still = true;
	for (i = 0; i < 100000 && rw_send(&a, 64) == 0; i++)
		rw_run(RW_STEP_NS);
	assert_int_equal(a.sent, 16);
	rw_run(10000000000ull);
	assert_int_equal(a.downs, 0);
	assert_int_equal(rw_send(&a, 64), -EAGAIN);
	g->still = false;
	for (i = 0; i < 10000; i++) {
		rw_send(&a, 64);
		rw_run(RW_STEP_NS);
	}
	rw_run(1000000);
	assert_true(a.sent > 1000);
	assert_int_equal(b.received, a.sent);
	assert_false(b.wrong);
	healthy(g);
}

static void a_flush_waits_for_all_messages_before_it(void **state)
{
	struct rw_comp c = rw_comp(), idle = rw_comp();
	int i;

	connect_pair("qps=4");
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &idle.base), WEFT_LANE_IDLE);
	for (i = 0; i < 40; i++)
		assert_int_equal(rw_send(&a, 64), 0);
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &c.base), 0);
	g->still = true;
	rw_run(1000000);
	assert_int_equal(c.done, 0);
	g->still = false;
	rw_run(1000000);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.status, 0);
	assert_int_equal(b.received, 40);
	assert_int_equal(idle.done, 0);
}

struct remote {
	uint8_t *mem, *own;
	struct weft_mem_lane *there, *here;
	uint64_t key;
};

static void map(struct remote *r, unsigned int access)
{
	char why[160];

	r->mem = aligned_alloc(4096, 65536);
	r->own = aligned_alloc(4096, 65536);
	memset(r->mem, 0x11, 65536);
	memset(r->own, 0x22, 65536);
	assert_int_equal(weft_roce_driver.mem_register(g->lane, r->mem + 64, 60000, access,
						       &r->there, why, 160),
			 0);
	assert_int_equal(weft_roce_driver.mem_register(f->lane, r->own, 65536,
						       WEFT_LANE_ACCESS_LOCAL_WRITE, &r->here, why,
						       160),
			 0);
	r->key = weft_roce_driver.mem_key(g->lane, r->there);
}

static void unmap(struct remote *r)
{
	weft_roce_driver.mem_deregister(g->lane, r->there);
	weft_roce_driver.mem_deregister(f->lane, r->here);
	free(r->mem);
	free(r->own);
}

static void gets_puts_and_atomics_touch_the_bytes_they_name_and_no_others(void **state)
{
	struct rw_comp c[3] = {rw_comp(), rw_comp(), rw_comp()};
	struct iovec iov = {NULL, 1000};
	uint64_t old = 0, word = 5;
	struct remote r;

	connect_pair("");
	map(&r, WEFT_LANE_ACCESS_LOCAL_WRITE | WEFT_LANE_ACCESS_REMOTE);
	memcpy(r.mem + 64 + 4096, &word, 8);
	iov.iov_base = r.own;
	assert_int_equal(
		a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, r.here, 1000, r.key, &c[0].base), 0);
	iov.iov_base = r.own + 8192;
	assert_int_equal(
		a.lane_ep->ops->put_zcopy(a.lane_ep, &iov, 1, r.here, 9000, r.key, &c[1].base), 0);
	assert_int_equal(a.lane_ep->ops->amo64(a.lane_ep, WEFT_LANE_AMO_ADD, 7, 0, &old, 4096,
					       r.key, &c[2].base),
			 0);
	rw_run(1000000);
	assert_int_equal(c[0].done + c[1].done + c[2].done, 3);
	assert_int_equal(c[0].status | c[1].status | c[2].status, 0);
	assert_int_equal(r.own[999], 0x11);
	assert_int_equal(r.own[1000], 0x22);
	assert_int_equal(r.mem[64 + 8999], 0x11);
	assert_int_equal(r.mem[64 + 9000], 0x22);
	assert_int_equal(r.mem[64 + 9999], 0x22);
	assert_int_equal(r.mem[64 + 10000], 0x11);
	memcpy(&word, r.mem + 64 + 4096, 8);
	assert_int_equal(old, 5);
	assert_int_equal(word, 12);
	healthy(f);
	unmap(&r);
}

static void a_key_that_allows_reading_does_not_allow_writing(void **state)
{
	struct rw_comp c = rw_comp();
	struct iovec iov = {NULL, 1000};
	struct remote r;

	connect_pair("");
	map(&r, WEFT_LANE_ACCESS_REMOTE_READ);
	iov.iov_base = r.own;
	assert_int_equal(a.lane_ep->ops->put_zcopy(a.lane_ep, &iov, 1, r.here, 0, r.key, &c.base),
			 0);
	rw_run(20000000);
	assert_int_equal(c.done, 1);
	assert_true(c.status < 0);
	assert_int_equal(a.downs, 1);
	assert_int_equal(b.downs, 1);
	assert_non_null(strstr(a.text, "refused access"));
	assert_int_equal(r.mem[64], 0x11);
	unmap(&r);
}

/* ------------------------------------------------------------------ many to one */

#define PEERS 64
#define EACH 300

/* @behaviour U89, T3 */
static void sixty_four_peers_that_flood_a_slow_receiver_never_meet_an_empty_queue(void **state)
{
	static struct rw_end ends[PEERS], hub[PEERS];
	struct rw_iface *peer[PEERS], *slow;
	unsigned int i, turn, over = 0;

	slow = rw_open(&weft_roce_driver, "mlx5_0", "window=64", 1024);
	for (i = 0; i < PEERS; i++) {
		peer[i] = rw_open(&weft_roce_driver, "mlx5_1", "window=64", 256);
		rw_connect(peer[i], slow, &ends[i], &hub[i]);
	}
	for (turn = 0; over < PEERS; turn++) {
		assert_true(turn < 100000);
		/* It looks every 0.5 ms, 32 completions at a time. */
		slow->still = turn % 50 != 0;
		for (i = 0; i < PEERS; i++)
			while (ends[i].sent < EACH && rw_send(&ends[i], i % 2 ? 64 : 2000) == 0)
				;
		rw_run(RW_STEP_NS);
		for (i = 0, over = 0; i < PEERS; i++)
			over += hub[i].received == EACH;
	}
	slow->still = false;
	rw_run(1000000);
	for (i = 0; i < PEERS; i++) {
		assert_false(hub[i].wrong);
		assert_int_equal(hub[i].received, EACH);
		assert_int_equal(ends[i].downs + hub[i].downs, 0);
	}
	assert_int_equal(fake.count.rnr, 0);
	healthy(slow);
}

/* ------------------------------------------------------------------ the end */

static void a_closed_lane_ends_at_the_peer_after_all_it_had_sent(void **state)
{
	int i;

	connect_pair("");
	for (i = 0; i < 30; i++)
		assert_int_equal(rw_send(&a, 500), 0);
	rw_destroy(&a);
	rw_run(1000000);
	assert_int_equal(b.received, 30);
	assert_false(b.wrong);
	assert_int_equal(b.gones, 1);
	rw_destroy(&b);
	rw_run(200000000);
	assert_int_equal(fake.alive.qps, 0);
	assert_int_equal(rw_counter(f, "rx.promised"), 0);
	assert_int_equal(rw_counter(g, "rx.promised"), 0);
}

int main(void)
{
#define T(x) cmocka_unit_test_setup_teardown(x, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(messages_of_all_sizes_arrive_exactly_once_in_order_in_both_directions),
		T(a_zero_copy_send_is_over_when_the_peers_callback_has_returned),
		T(a_sender_to_a_peer_that_does_not_poll_has_no_room_and_loses_nothing),
		T(what_the_peer_took_is_no_error_of_the_end),
		T(a_flush_waits_for_all_messages_before_it),
		T(gets_puts_and_atomics_touch_the_bytes_they_name_and_no_others),
		T(a_key_that_allows_reading_does_not_allow_writing),
		T(sixty_four_peers_that_flood_a_slow_receiver_never_meet_an_empty_queue),
		T(a_closed_lane_ends_at_the_peer_after_all_it_had_sent),
	};

	return cmocka_run_group_tests_name("RoCE lanes, by their contract", tests, NULL, NULL);
}
