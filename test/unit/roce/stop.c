/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE lanes that die while their endpoint has others: what they hand back, and what they say of
 * reads, writes and atomics (drivers/roce/roce_end.c).
 */

#include "fake/roce_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 24

static struct rw_iface *f, *g;
static struct rw_end a, b;
static uint8_t *user;
static struct weft_mem_lane *mem, *there;

/* What was handed back. */
static struct {
	unsigned int messages, flushes;
	uint64_t number[256];
	size_t length[256];
	bool wrong;
	struct weft_lane_comp *comp[256];
} back;

static int setup(void **state)
{
	char why[160];
	size_t i;

	rw_setup(state);
	memset(&back, 0, sizeof(back));
	user = aligned_alloc(4096, 65536);
	for (i = 0; i < 65536; i++)
		user[i] = (uint8_t)(i * 13);
	f = rw_open(&weft_roce_driver, "mlx5_0", "qps=1", 0);
	g = rw_open(&weft_roce_driver, "mlx5_1", "qps=1", 0);
	rw_connect(f, g, &a, &b);
	a.stops = b.stops = true;
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

/* Every buffer is back when the lanes are gone. */
static int teardown(void **state)
{
	struct roce_iface *r = roce_iface_of(f->lane);

	g->still = false;
	if (a.lane_ep)
		rw_destroy(&a);
	if (b.lane_ep)
		rw_destroy(&b);
	rw_run(3000000000ull);
	assert_int_equal(r->tx_pool.in_use, 0);
	assert_int_equal(r->ring_pool.in_use, 0);
	assert_int_equal(r->tx_room, r->tx_total);
	assert_int_equal(r->promised, 0);
	assert_int_equal(roce_iface_of(g->lane)->promised, 0);
	weft_roce_driver.mem_deregister(f->lane, mem);
	weft_roce_driver.mem_deregister(g->lane, there);
	free(user);
	return rw_teardown(state);
}

static uint32_t qpn_of(const struct rw_end *e)
{
	return roce_lane_ep_of(e->lane_ep)->chans[0]->qp->qp_num;
}

static void give(void *arg, uint8_t am_id, const void *msg, size_t length,
		 struct weft_lane_comp *comp)
{
	unsigned int n = back.messages;

	(void)arg;
	if (!msg) {
		back.flushes++;
		comp->done(comp, 0);
		return;
	}
	assert_int_equal(am_id, 5);
	memcpy(&back.number[n], msg, 8);
	back.length[n] = length;
	back.comp[n] = comp;
	if (comp)
		back.wrong = back.wrong ||
			     memcmp((const uint8_t *)msg + HEADER, user, length - HEADER) != 0;
	back.messages++;
}

static int reap(struct rw_end *e, const struct rw_end *peer)
{
	return e->lane_ep->ops->ep_reap(e->lane_ep, peer->state, (size_t)peer->state_len, give,
					NULL);
}

static void send_zcopy(struct rw_comp *c)
{
	uint64_t header[HEADER / 8] = {a.sent++, 1, 2};
	struct iovec iov[2] = {{user, 100}, {user + 100, 3000}};

	assert_int_equal(
		a.lane_ep->ops->am_zcopy(a.lane_ep, 5, header, HEADER, iov, 2, mem, &c->base), 0);
}

static uint64_t key(void)
{
	return weft_roce_driver.mem_key(g->lane, there);
}

static void what_the_peer_has_not_processed_is_handed_back_in_order(void **state)
{
	struct rw_comp c = rw_comp(), flush = rw_comp();
	unsigned int i;

	for (i = 0; i < 5; i++)
		assert_int_equal(rw_send(&a, 8 + i), 0);
	rw_run(1000000);
	assert_int_equal(b.received, 5);
	g->still = true; /* from here on it lies in the peer's memory only */
	assert_int_equal(rw_send(&a, 64), 0);
	assert_int_equal(rw_send(&a, 5000), 0);
	send_zcopy(&c);
	assert_int_equal(rw_send(&a, 8), 0);
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &flush.base), 0);
	rw_run(1000000);
	rw_stop(&b);
	g->still = false;
	rw_run(1000000);
	assert_int_equal(b.received, 5);
	rw_stop(&a);
	rw_run(1000000);
	assert_int_equal(reap(&a, &b), 0);
	assert_int_equal(back.messages, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(back.number[i], 5 + i);
	assert_int_equal(back.length[0], 64);
	assert_int_equal(back.length[1], 5000);
	assert_int_equal(back.length[2], HEADER + 3100);
	assert_false(back.wrong);
	assert_int_equal(back.flushes, 1);
	assert_int_equal(flush.done, 1);
	assert_int_equal(c.done, 0);
	back.comp[2]->done(back.comp[2], 0);
	assert_int_equal(c.done, 1);
	assert_int_equal(reap(&b, &a), 0);
	assert_int_equal(back.messages, 4);
}

static void a_zero_copy_send_waits_for_the_device_and_for_the_other_way(void **state)
{
	struct rw_comp c[2] = {rw_comp(), rw_comp()};

	fake.device[0].frozen = true;
	send_zcopy(&c[0]);
	send_zcopy(&c[1]);
	rw_stop(&a);
	rw_stop(&b);
	assert_int_equal(reap(&a, &b), 0);
	assert_int_equal(back.messages, 2);
	back.comp[0]->done(back.comp[0], 0);
	rw_run(1000000);
	assert_int_equal(c[0].done, 0); /* its memory is the device's yet */
	fake.device[0].frozen = false;
	rw_run(1000000);
	assert_int_equal(c[0].done, 1);
	assert_int_equal(c[0].status, 0);
	assert_int_equal(c[1].done, 0);
	rw_destroy(&a);
	rw_run(100000000);
	assert_int_equal(c[1].done, 0);
	back.comp[1]->done(back.comp[1], -ECONNRESET);
	assert_int_equal(c[1].done, 1);
	assert_int_equal(c[1].status, -ECONNRESET);
}

static void what_the_peer_has_processed_ends_well_although_no_count_has_come(void **state)
{
	struct rw_comp c = rw_comp();

	send_zcopy(&c);
	rw_turn();
	fake.device[1].frozen = true; /* its counts do not get through */
	g->lane->ops->progress(g->lane, rw.now);
	assert_int_equal(c.done, 0);
	rw_stop(&b);
	rw_stop(&a);
	fake.device[1].frozen = false;
	assert_int_equal(reap(&a, &b), 0);
	assert_int_equal(back.messages, 0);
	rw_run(1000000);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.status, 0);
}

static void counts_that_cannot_be_are_refused_and_nothing_is_handed_out(void **state)
{
	struct rw_end lie = {.state_len = 4};

	assert_int_equal(rw_send(&a, 64), 0);
	assert_int_equal(rw_send(&a, 64), 0);
	rw_run(1000000);
	g->still = true;
	assert_int_equal(rw_send(&a, 64), 0);
	rw_stop(&a);
	lie.state[0] = 1;
	assert_int_equal(reap(&a, &lie), -EPROTO); /* two were acknowledged */
	lie.state[0] = 4;
	assert_int_equal(reap(&a, &lie), -EPROTO); /* three were sent */
	lie.state[0] = 2;
	lie.state_len = 3;
	assert_int_equal(reap(&a, &lie), -EPROTO);
	lie.state_len = 8;
	assert_int_equal(reap(&a, &lie), -EPROTO);
	assert_int_equal(back.messages, 0);
	lie.state_len = 4;
	assert_int_equal(reap(&a, &lie), 0);
	assert_int_equal(back.messages, 1);
	assert_int_equal(reap(&a, &lie), -EINVAL);
}

static void a_lane_that_breaks_is_reported_once_and_fails_only_if_it_is_not_stopped(void **state)
{
	fake_qp_break(qpn_of(&a));
	rw_run(20000000);
	assert_int_equal(a.suspects, 1);
	assert_int_equal(a.downs, 0);
	assert_int_equal(a.state_len, 4);
	assert_int_equal(rw_counter(f, "lanes.stopped"), 1);
	assert_int_equal(rw_counter(f, "lanes.failed"), 0);
	b.stops = false;
	fake_qp_break(qpn_of(&b));
	rw_run(20000000);
	assert_int_equal(b.suspects, 1);
	assert_int_equal(b.downs, 1);
	assert_int_equal(rw_counter(g, "lanes.failed"), 1);
}

/* A read, a write and an atomic; a second atomic that the device is not given. */
static void post_all(struct rw_comp c[4], uint64_t result[2])
{
	const struct weft_lane_ops *ops = a.lane_ep->ops;
	struct iovec iov = {user, 1000};

	for (int i = 0; i < 4; i++)
		c[i] = rw_comp();
	assert_int_equal(ops->get_zcopy(a.lane_ep, &iov, 1, mem, 0, key(), &c[0].base), 0);
	assert_int_equal(ops->put_zcopy(a.lane_ep, &iov, 1, mem, 4096, key(), &c[1].base), 0);
	assert_int_equal(ops->amo64(a.lane_ep, WEFT_LANE_AMO_ADD, 1, 0, &result[0], 8192, key(),
				    &c[2].base),
			 0);
	ops->tx_flush(f->lane);
	assert_int_equal(ops->amo64(a.lane_ep, WEFT_LANE_AMO_ADD, 1, 0, &result[1], 8192, key(),
				    &c[3].base),
			 0);
}

static void native_operations_wait_for_the_peers_state_and_may_be_done_again(void **state)
{
	static const int ends[] = {-ECANCELED, -ECANCELED, -EIO, -ECANCELED};
	uint64_t result[2] = {7, 7};
	struct rw_comp c[4];
	int i;

	fake.device[1].frozen = true;
	post_all(c, result);
	rw_stop(&a);
	rw_run(1000000);
	for (i = 0; i < 4; i++)
		assert_int_equal(c[i].done, 0);
	rw_stop(&b);
	assert_int_equal(reap(&a, &b), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(c[i].done, 1);
		assert_int_equal(c[i].status, ends[i]);
	}
	assert_int_equal(result[0], 7);
	fake.device[1].frozen = false;
}

static void so_do_those_that_the_device_gives_back_only_after_it(void **state)
{
	static const int ends[] = {-ECANCELED, -ECANCELED, -EIO, -ECANCELED};
	uint64_t result[2];
	struct rw_comp c[4];
	int i;

	fake.device[0].frozen = true;
	post_all(c, result);
	rw_stop(&a);
	rw_stop(&b);
	assert_int_equal(reap(&a, &b), 0);
	rw_destroy(&a);
	assert_int_equal(c[0].done, 0);
	fake.device[0].frozen = false;
	rw_run(1000000);
	for (i = 0; i < 4; i++) {
		assert_int_equal(c[i].done, 1);
		assert_int_equal(c[i].status, ends[i]);
	}
}

/* The peer's device has executed it, and only that it has was lost. */
/* Its owner may end the connection in any of the completions that ep_reap() runs. */
static unsigned int until_gone;

static void may_end(struct weft_lane_comp *comp, int status)
{
	struct rw_comp *c = (struct rw_comp *)comp;

	c->done++;
	c->status = status;
	if (until_gone && --until_gone == 0)
		rw_destroy(&a);
}

static void give_and_end(void *arg, uint8_t am_id, const void *msg, size_t length,
			 struct weft_lane_comp *comp)
{
	(void)arg;
	(void)am_id;
	(void)msg;
	(void)length;
	if (comp)
		comp->done(comp, 0);
	else if (until_gone && --until_gone == 0)
		rw_destroy(&a);
}

static void one_that_ends_while_it_hands_back(unsigned int at)
{
	struct iovec iov = {user, 4096};
	struct rw_comp c[8], flush = rw_comp();
	unsigned int i;
	int rc;

	flush.base.done = may_end;
	g->still = true;
	for (i = 0; i < 8; i++) {
		c[i] = rw_comp();
		c[i].base.done = may_end;
		if (i % 2) {
			send_zcopy(&c[i]);
			assert_int_equal(rw_send(&a, 64), 0);
		} else {
			assert_int_equal(a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, mem, 0,
								   key(), &c[i].base),
					 0);
		}
	}
	assert_int_equal(a.lane_ep->ops->ep_flush(a.lane_ep, &flush.base), 0);
	fake.device[1].frozen = true;
	rw_stop(&b);
	rw_stop(&a);
	fake.device[1].frozen = false;
	rw_run(1000000);
	until_gone = at;
	rc = a.lane_ep->ops->ep_reap(a.lane_ep, b.state, (size_t)b.state_len, give_and_end, NULL);
	assert_int_equal(rc, 0);
	if (a.lane_ep)
		rw_destroy(&a);
	until_gone = 0;
	rw_destroy(&b);
	g->still = false;
	rw_run(1500000000);
	for (i = 0; i < 8; i++)
		assert_int_equal(c[i].done, 1);
	assert_int_equal(flush.done, 1);
}

static void a_completion_may_end_the_lane_that_hands_back(void **state)
{
	unsigned int at;

	(void)state;
	for (at = 1; at < 20; at++) {
		one_that_ends_while_it_hands_back(at);
		rw_connect(f, g, &a, &b);
		a.stops = b.stops = true;
	}
}

static void an_atomic_without_an_answer_is_not_repeated(void **state)
{
	const struct weft_lane_ops *ops = a.lane_ep->ops;
	struct rw_comp c = rw_comp();
	uint64_t result = 7, word = 5;

	memcpy(user + 32768 + 8192, &word, 8);
	fake_qp_lose_ack(qpn_of(&a));
	assert_int_equal(
		ops->amo64(a.lane_ep, WEFT_LANE_AMO_ADD, 3, 0, &result, 8192, key(), &c.base), 0);
	rw_run(1000000);
	assert_true(a.state_len > 0);
	memcpy(&word, user + 32768 + 8192, 8);
	assert_int_equal(word, 8);
	assert_int_equal(c.done, 0);
	rw_stop(&b);
	assert_int_equal(reap(&a, &b), 0);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.status, -EIO);
}

static void those_of_a_lane_that_is_destroyed_before_are_canceled(void **state)
{
	uint64_t result[2];
	struct rw_comp c[4];
	int i;

	fake.device[1].frozen = true;
	post_all(c, result);
	rw_stop(&a);
	rw_run(1000000);
	rw_destroy(&a);
	for (i = 0; i < 4; i++) {
		assert_int_equal(c[i].done, 1);
		assert_int_equal(c[i].status, -ECANCELED);
	}
	fake.device[1].frozen = false;
}

static void an_operation_that_the_peer_refuses_keeps_its_error(void **state)
{
	struct rw_comp bad = rw_comp(), good = rw_comp();
	struct iovec iov = {user, 1000};

	assert_int_equal(
		a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, mem, 0, key() ^ 1, &bad.base), 0);
	assert_int_equal(a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, mem, 0, key(), &good.base),
			 0);
	a.lane_ep->ops->tx_flush(f->lane);
	rw_run(20000000);
	assert_int_equal(a.suspects, 1);
	assert_int_equal(bad.done, 1);
	assert_int_equal(bad.status, -EACCES);
	assert_int_equal(good.done, 0);
	assert_true(b.state_len > 0); /* its queue pair has reported it, too */
	assert_int_equal(reap(&a, &b), 0);
	assert_int_equal(good.done, 1);
	assert_int_equal(good.status, -ECANCELED);
}

/* The device answers in its place. */
static void a_process_that_is_stopped_gives_no_sign_of_life(void **state)
{
	const struct weft_lane_ops *ops = a.lane_ep->ops;
	uint64_t seen = ops->ep_seen(a.lane_ep);

	g->still = true;
	ops->ep_check(a.lane_ep);
	ops->ep_check(a.lane_ep);
	rw_run(100000000);
	assert_int_equal(ops->ep_seen(a.lane_ep), seen);
	assert_int_equal(a.suspects, 0);
	g->still = false;
	rw_run(1000000);
	assert_true(ops->ep_seen(a.lane_ep) > seen);
	assert_int_equal(b.received, 0);
	assert_int_equal(rw_send(&a, 64), 0);
	rw_run(1000000);
	assert_int_equal(b.received, 1);
	/* A question is none of the messages that are handed back. */
	g->still = true;
	ops->ep_check(a.lane_ep);
	rw_stop(&a);
	rw_stop(&b);
	assert_int_equal(reap(&a, &b), 0);
	assert_int_equal(back.messages, 0);
}

static void a_lane_of_a_device_that_is_gone_hands_back_as_well(void **state)
{
	static const int ends[] = {-ECANCELED, -ECANCELED, -EIO, -ECANCELED};
	uint64_t result[2];
	struct rw_comp c[4];
	int i;

	post_all(c, result);
	assert_int_equal(rw_send(&a, 64), 0);
	fake_remove(&fake.device[0]);
	rw_run(20000000);
	assert_true(a.state_len > 0);
	rw_stop(&b);
	assert_int_equal(reap(&a, &b), 0);
	assert_int_equal(back.messages, 1);
	rw_run(2000000000);
	for (i = 0; i < 4; i++) {
		assert_int_equal(c[i].done, 1);
		assert_int_equal(c[i].status, ends[i]);
	}
}

/* Of two lanes one is stopped again and again; the window wraps around its places. */
static void a_new_lane_takes_the_place_of_one_that_was_stopped(void **state)
{
	unsigned int round, i;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 200; i++) {
			while (rw_send(&a, 8 + i * 41 % 8000) == -EAGAIN)
				rw_run(RW_STEP_NS);
		}
		g->still = true;
		for (i = 0; i < 10; i++)
			assert_true(rw_send(&a, 8 + i * 700) != -EIO);
		rw_run(1000000);
		fake_qp_break(qpn_of(round & 1 ? &a : &b));
		g->still = false;
		rw_run(10000000);
		if (a.state_len == 0)
			rw_stop(&a);
		if (b.state_len == 0)
			rw_stop(&b);
		back.messages = 0;
		assert_int_equal(reap(&a, &b), 0);
		assert_int_equal(b.received + back.messages, a.sent);
		assert_false(b.wrong);
		rw_destroy(&a);
		rw_destroy(&b);
		rw_connect(f, g, &a, &b);
		a.stops = b.stops = true;
	}
	assert_int_equal(fake.count.rnr, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_the_peer_has_not_processed_is_handed_back_in_order),
		CASE(a_zero_copy_send_waits_for_the_device_and_for_the_other_way),
		CASE(what_the_peer_has_processed_ends_well_although_no_count_has_come),
		CASE(counts_that_cannot_be_are_refused_and_nothing_is_handed_out),
		CASE(a_lane_that_breaks_is_reported_once_and_fails_only_if_it_is_not_stopped),
		CASE(native_operations_wait_for_the_peers_state_and_may_be_done_again),
		CASE(so_do_those_that_the_device_gives_back_only_after_it),
		CASE(an_atomic_without_an_answer_is_not_repeated),
		CASE(those_of_a_lane_that_is_destroyed_before_are_canceled),
		CASE(an_operation_that_the_peer_refuses_keeps_its_error),
		CASE(a_completion_may_end_the_lane_that_hands_back),
		CASE(a_process_that_is_stopped_gives_no_sign_of_life),
		CASE(a_lane_of_a_device_that_is_gone_hands_back_as_well),
		CASE(a_new_lane_takes_the_place_of_one_that_was_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
