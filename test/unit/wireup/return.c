/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes that come back, without a network: when the leader tries again, and which connection the
 * other end accepts as the lane.
 */

#include "mock/conn_util.h"
#include "wireup/failover.h"
#include "wireup/lane_return.h"

static const char two_nics[] = "mock:0;mock:1";

static struct weft_context *ctx;
static struct weft_worker *lower, *higher;
static struct weft_ep *leader, *other;

static struct weft_failover *give_failover(struct weft_ep *ep)
{
	struct weft_failover *f = calloc(1, sizeof(*f) + WEFT_MAX_LANES * sizeof(f->lane[0]));

	assert_non_null(f);
	f->room = WEFT_MAX_LANES;
	for (unsigned int n = 0; n < WEFT_MAX_LANES; n++)
		f->lane[n].look_at = UINT64_MAX;
	free(ep->failover);
	ep->failover = f;
	return f;
}

static void open_both(void)
{
	struct weft_ep *ep;

	ctx = mock_context("CONNECT_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
	lower = mock_worker(ctx, two_nics);
	higher = mock_worker(ctx, two_nics);
	conn_order(&lower, &higher);
	ep = mock_connect(lower, higher);
	mock_run(100, MS, lower, higher, NULL);
	leader = ep;
	other = conn_first_ep(higher);
	assert_int_equal(leader->lanes_up, 3);
	assert_int_equal(other->lanes_up, 3);
	give_failover(leader);
	give_failover(other);
}

static void close_both(void)
{
	free(leader->failover);
	free(other->failover);
	leader->failover = other->failover = NULL;
	conn_destroy(ctx, lower, higher);
}

/* 0.1, 0.2 ... up to 0.5 s; also after more attempts than their counter holds. */
static void the_leader_tries_again_ever_later(void **state)
{
	struct weft_failover_lane *l;

	(void)state;
	open_both();
	l = &leader->failover->lane[1];
	weft_lane_return_begin(leader, 1);
	assert_true(l->look_at == UINT64_MAX); /* the peer's address is not known */
	l->addr_len = 1;
	for (unsigned int i = 1; i < 300; i++) {
		l->life = WEFT_LANE_CLOSING;
		weft_lane_return_begin(leader, 1);
		assert_int_equal(l->life, WEFT_LANE_GONE);
		assert_int_equal(l->look_at - lower->now, (i < 5 ? i : 5) * 100 * MS);
		assert_int_equal(l->since, lower->now);
	}
	assert_int_equal(l->returns, UINT8_MAX);
	/* The other end waits for the leader. */
	l = &other->failover->lane[1];
	l->addr_len = 1;
	weft_lane_return_begin(other, 1);
	assert_int_equal(l->life, WEFT_LANE_GONE);
	assert_true(l->look_at == UINT64_MAX);
	assert_int_equal(l->returns, 0);
	leader->failover->lane[1].life = other->failover->lane[1].life = WEFT_LANE_USED;
	leader->failover->lane[1].look_at = UINT64_MAX;
	close_both();
}

/* A lane without attempts, and those of other interfaces, wait on. */
static void a_link_that_is_back_is_tried_at_once(void **state)
{
	struct weft_failover_lane *l;
	struct weft_lane_iface *iface;

	(void)state;
	open_both();
	l = leader->failover->lane;
	iface = lower->ifaces[leader->lane_info[1].local_iface];
	for (unsigned int n = 0; n < 2; n++) {
		l[n].life = WEFT_LANE_GONE;
		l[n].returns = 7;
		l[n].look_at = lower->now + S;
	}
	weft_lane_return_link(lower, iface);
	assert_int_equal(l[1].look_at, lower->now);
	assert_int_equal(l[1].returns, 0);
	assert_int_equal(l[0].look_at, lower->now + S);
	assert_int_equal(l[0].returns, 7);
	l[1].look_at = UINT64_MAX;
	weft_lane_return_link(lower, iface);
	assert_true(l[1].look_at == UINT64_MAX);
	l[1].look_at = lower->now + S;
	l[1].life = WEFT_LANE_USED;
	weft_lane_return_link(lower, iface);
	assert_int_equal(l[1].look_at, lower->now + S);
	l[0].life = l[1].life = WEFT_LANE_USED;
	l[0].look_at = l[1].look_at = UINT64_MAX;
	close_both();
}

/* @return ATTACH number @p epoch of lane @p n is refused: it is stale */
static bool attach_is_stale(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep,
			    uint16_t epoch)
{
	const struct weft_wireup_msg m = {
		.head = {.lane = (uint8_t)n, .lane_epoch = weft_put16(epoch)}};
	uint64_t stale = ep->worker->count.wireup_stale;

	assert_true(weft_lane_return_attach(ep, lane_ep, &m));
	return ep->worker->count.wireup_stale > stale;
}

/* That of LANE_LINK with its number, once it is up; and no connection of an endpoint. */
static void only_the_connection_that_was_made_becomes_the_lane(void **state)
{
	const struct weft_wireup_msg first = {.head = {.lane = 1}};
	const struct weft_wireup_msg beyond = {.head = {.lane = 2, .lane_epoch = weft_put16(9)}};
	struct weft_lane_ep *made, *another;
	struct weft_failover_lane *l;

	(void)state;
	open_both();
	l = &other->failover->lane[1];
	made = other->lanes[1].lane_ep;
	another = other->lanes[0].lane_ep;
	l->life = WEFT_LANE_CONNECTING;
	l->epoch = 4;
	l->link = 6;
	assert_false(weft_lane_return_attach(other, made, &first));
	assert_false(weft_lane_return_attach(other, made, &beyond));
	assert_true(attach_is_stale(other, 1, made, 5));
	assert_true(attach_is_stale(other, 1, made, 7));
	assert_true(attach_is_stale(other, 1, another, 6));
	made->up = false;
	assert_true(attach_is_stale(other, 1, made, 6));
	made->up = true;
	l->life = WEFT_LANE_CLOSING;
	assert_true(attach_is_stale(other, 1, made, 6));
	/* An accepted one of a lane without LANE_LINK belongs to no endpoint yet. */
	l->life = WEFT_LANE_GONE;
	assert_true(attach_is_stale(other, 1, made, 6));
	assert_int_equal(l->epoch, 4);
	l->life = WEFT_LANE_CONNECTING;
	assert_false(attach_is_stale(other, 1, made, 6));
	assert_int_equal(l->life, WEFT_LANE_USED);
	assert_int_equal(l->epoch, 6);
	assert_int_equal(higher->count.lanes_back, 1);
	assert_string_equal(other->lane_info[1].why, "back");
	/* A repeated one gets another reply, and changes nothing. */
	assert_false(attach_is_stale(other, 1, made, 6));
	assert_int_equal(higher->count.lanes_back, 1);
	/* The end that leads accepts no ATTACH. */
	l = &leader->failover->lane[1];
	l->life = WEFT_LANE_CONNECTING;
	l->link = 6;
	assert_true(attach_is_stale(leader, 1, leader->lanes[1].lane_ep, 6));
	l->life = WEFT_LANE_USED;
	close_both();
}

/* A connection from the peer's interface to that of the lane, which no endpoint has. */
static struct weft_lane_ep *connect_again(void)
{
	struct weft_lane_iface *from = lower->ifaces[leader->lane_info[1].local_iface];
	struct weft_lane_iface *to = higher->ifaces[other->lane_info[1].local_iface];
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct weft_lane_ep *active;

	to->ops->get_address(to, addr);
	assert_int_equal(from->ops->ep_connect(from, addr, to->attr.dev_addr_len, NULL, &active),
			 0);
	for (unsigned int i = 0; i < 5; i++) {
		from->ops->progress(from, mock_now);
		mock_run(1, MS, higher, NULL);
	}
	assert_false(TAILQ_EMPTY(&higher->conns->pending));
	return TAILQ_FIRST(&higher->conns->pending)->lane_ep;
}

/* Of the lane's interfaces at both ends, with a newer number, while the lane is gone. */
static void a_new_connection_of_the_peer_becomes_the_lane(void **state)
{
	struct weft_lane_ep *before, *new;
	struct weft_lane_iface *from;
	struct weft_failover_lane *l;

	(void)state;
	open_both();
	l = other->failover->lane;
	before = other->lanes[1].lane_ep;
	new = connect_again();
	from = lower->ifaces[leader->lane_info[1].local_iface];
	for (unsigned int n = 0; n < 2; n++) {
		l[n].life = WEFT_LANE_GONE;
		l[n].epoch = 4;
		from->ops->get_address(from, l[n].addr);
		l[n].addr_len = (uint8_t)from->attr.dev_addr_len;
	}
	assert_true(attach_is_stale(other, 0, new, 5));
	assert_true(attach_is_stale(other, 1, before, 5));
	assert_true(attach_is_stale(other, 1, new, 4));
	assert_true(attach_is_stale(other, 1, new, 3));
	l[1].addr[0] ^= 1;
	assert_true(attach_is_stale(other, 1, new, 5));
	l[1].addr[0] ^= 1;
	l[1].life = WEFT_LANE_USED;
	assert_true(attach_is_stale(other, 1, new, 5));
	l[1].life = WEFT_LANE_GONE;
	other->state = WEFT_EP_FAILED;
	assert_true(attach_is_stale(other, 1, new, 5));
	other->state = WEFT_EP_UP;
	assert_ptr_equal(other->lanes[1].lane_ep, before);
	assert_false(attach_is_stale(other, 1, new, 5));
	assert_ptr_equal(other->lanes[1].lane_ep, new);
	assert_ptr_equal(new->user, other);
	assert_int_equal(new->index, 1);
	assert_int_equal(l[1].life, WEFT_LANE_USED);
	assert_true(TAILQ_EMPTY(&higher->conns->pending));
	/* The first connection still is the lane of the other worker. */
	other->lanes[1].lane_ep = before;
	new->user = NULL;
	weft_lane_ep_destroy(higher, new);
	l[0].life = WEFT_LANE_USED;
	close_both();
}

/* Only ATTACHED of a lane that is being attached, over its own connection, brings it back. */
static void only_an_attaching_lane_is_back(void **state)
{
	struct weft_failover_lane *l;
	struct weft_lane_ep *lane_ep;

	(void)state;
	open_both();
	l = &leader->failover->lane[1];
	lane_ep = leader->lanes[1].lane_ep;
	l->life = WEFT_LANE_CONNECTING;
	weft_lane_return_attached(leader, lane_ep);
	assert_int_equal(lower->count.lanes_back, 0);
	l->life = WEFT_LANE_ATTACHING;
	weft_lane_return_attached(leader, leader->lanes[0].lane_ep);
	assert_int_equal(lower->count.lanes_back, 0);
	l->map.bandwidth = 3e9;
	l->map.latency = 5e-6;
	l->map.max_frag = leader->lanes[1].max_frag;
	weft_lane_return_attached(leader, lane_ep);
	assert_int_equal(lower->count.lanes_back, 1);
	assert_int_equal(l->life, WEFT_LANE_USED);
	assert_true(l->look_at == UINT64_MAX);
	assert_true(leader->lanes[1].bandwidth == 3e9);
	assert_true(leader->lanes[1].latency == (double)5e-6f);
	close_both();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(the_leader_tries_again_ever_later),
		CONN_TEST(a_link_that_is_back_is_tried_at_once),
		CONN_TEST(only_the_connection_that_was_made_becomes_the_lane),
		CONN_TEST(a_new_connection_of_the_peer_becomes_the_lane),
		CONN_TEST(only_an_attaching_lane_is_back),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("wireup_return", tests, NULL, NULL);
}
