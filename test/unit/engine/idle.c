/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What connections cost that have nothing to do, counted and not timed: those that the timers look
 * at are those with something outstanding, and an iface says when it has to be polled next.
 */

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/liveness.h"
#include "engine/outstanding.h"
#include "common/pattern.h"
#include "mock/raw_util.h"

#define MANY 500u

static struct weft_lane_ep *lane_ep[MANY];

static bool all_up(struct pair *p)
{
	(void)p;
	for (unsigned int i = 0; i < MANY; i++)
		if (lane_ep[i] && !lane_ep[i]->up)
			return false;
	return true;
}

static void connect_many(void)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	memset(lane_ep, 0, sizeof(lane_ep));
	B->iface->ops->get_address(B->iface, addr);
	for (unsigned int i = 0; i < MANY; i++) {
		assert_int_equal(A->iface->ops->ep_connect(A->iface, addr,
							   B->iface->attr.dev_addr_len, A,
							   &lane_ep[i]),
				 0);
		if (i % 100 == 99)
			assert_true(pair_run(&pair, 1000000000, all_up));
	}
	/* What was sent last is acknowledged, what was half done is over. */
	pair_run(&pair, 50000000, NULL);
}

static void disconnect_many(void)
{
	for (unsigned int i = 0; i < MANY; i++)
		A->iface->ops->ep_destroy(lane_ep[i]);
	pair_run(&pair, 10000000, NULL);
}

static uint64_t looks(void)
{
	return pair_counter(A, RAW_TIMER_LOOKS) + pair_counter(B, RAW_TIMER_LOOKS);
}

/*
 * @behaviour T33: no cost per message or progress call grows with idle connections
 * @behaviour T40: measurement: a hop with 255 to 9999 idle endpoints (figures: `idle_bench`)
 */
static void traffic_over_one_looks_at_no_idle_connection(void **state)
{
	const unsigned int rounds = 1000, step = 100;
	uint64_t before;

	(void)state;
	pair_open(&pair, NULL, 31);
	connect_many();
	before = looks();
	for (uint32_t i = 0; i < rounds; i++) {
		assert_int_equal(pair_send(A, lane_ep[0], 1000000 + i, 8), 0);
		pair_run(&pair, step * 1000, NULL);
	}
	/*
	 * A tail probe is armed for 200 us at the earliest, so the busy connection is looked at so
	 * often at each end; and each other one may have had its turn of keepalive in these 100 ms.
	 */
	assert_in_range(looks() - before, 1, 2 * (rounds * step / 200 + MANY));
	disconnect_many();
	pair_close(&pair);
}

/* @behaviour T33 */
static void keepalives_that_are_due_at_once_come_in_slices(void **state)
{
	uint64_t before, most = 0, pings;

	(void)state;
	pair_open(&pair, NULL, 32);
	connect_many();
	pings = pair_counter(A, RAW_TX_PING);
	/* A does not poll: then all are due. */
	for (unsigned int i = 0; i < 20; i++) {
		pair.now += 100000000;
		B->iface->ops->progress(B->iface, pair.now);
	}
	for (unsigned int i = 0; i < 20000; i++) {
		before = pair_counter(A, RAW_TIMER_LOOKS);
		pair_step(&pair, 100000);
		before = pair_counter(A, RAW_TIMER_LOOKS) - before;
		most = before > most ? before : most;
	}
	assert_in_range(most, 1, 2 * RAW_TIMER_BATCH);
	assert_true(pair_counter(A, RAW_TX_PING) - pings >= MANY);
	assert_int_equal(A->downs + B->downs, 0);
	disconnect_many();
	pair_close(&pair);
}

static uint64_t conn_looks(void)
{
	return pair_counter(A, RAW_CONN_LOOKS) + pair_counter(B, RAW_CONN_LOOKS);
}

/* A HELLO may be a repeated one: which connection it is for is found without a walk over all. */
/* @behaviour T33 */
static void a_hello_looks_at_no_other_connection(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 35);
	connect_many();
	assert_int_equal(pair_counter(B, RAW_CONN_PASSIVE), MANY);
	assert_in_range(conn_looks(), 0, 4 * MANY);
	disconnect_many();
	pair_close(&pair);
}

/* More are closed than may linger: each one too many is the oldest, and that is known. */
/* @behaviour T33 */
static void closing_many_at_once_looks_at_one_each(void **state)
{
	uint64_t before;

	(void)state;
	pair_open(&pair, NULL, 36);
	connect_many();
	before = conn_looks();
	for (unsigned int i = 0; i < MANY; i++)
		A->iface->ops->ep_destroy(lane_ep[i]);
	assert_in_range(conn_looks() - before, 1, MANY);
	/* Those that went early are over with the next calls, the others stay their time. */
	pair_run(&pair, 100000000, NULL);
	assert_int_equal(raw_iface_of(A->iface)->conn_count, RAW_TIME_WAIT_MAX);
	pair_run(&pair, 3000000000ull, NULL);
	assert_int_equal(raw_iface_of(A->iface)->conn_count, 0);
	pair_close(&pair);
}

static struct raw_conn *new_conn(struct raw_iface *iface)
{
	struct raw_conn *c;

	assert_int_equal(raw_conn_new(iface, false, &c), 0);
	c->state = RAW_DOWN; /* nothing is to come of it */
	return c;
}

/* One place of many is free: it is known, and with two they take turns. */
/* @behaviour T33 */
static void a_free_index_is_found_without_a_walk(void **state)
{
	struct raw_iface *iface;
	struct raw_conn *c[512];
	uint16_t last, index;

	(void)state;
	pair_open(&pair, NULL, 37);
	iface = raw_iface_of(A->iface);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		c[i] = new_conn(iface);
	assert_int_equal(iface->refs_len, RTE_DIM(c));
	for (unsigned int n = 0; n < 1000; n++) {
		struct raw_conn **one = &c[n * 37 % RTE_DIM(c)], **two = &c[n * 41 % RTE_DIM(c)];

		last = (uint16_t)(*one)->id;
		raw_conn_free(*one);
		if (one != two)
			raw_conn_free(*two);
		*one = new_conn(iface);
		index = (uint16_t)(*one)->id;
		assert_int_equal(index, last);
		assert_ptr_equal(iface->refs[index].conn, *one);
		if (one != two)
			*two = new_conn(iface);
		assert_int_equal(iface->refs_len, RTE_DIM(c));
	}
	assert_int_equal(iface->conn_count, RTE_DIM(c));
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		raw_conn_free(c[i]);
	pair_close(&pair);
}

/* The two are polled only when one of them says so, or something is under way. */
static unsigned int sleep_until(uint64_t end)
{
	unsigned int wakes = 0;
	uint64_t at;

	while (pair.now < end) {
		pair_step(&pair, 0);
		wakes++;
		at = end;
		for (unsigned int i = 0; i < 2; i++) {
			if (pair.end[i].iface->ops->arm(pair.end[i].iface, pair.now, &at) != 0)
				at = 0;
			else
				pair.end[i].iface->ops->disarm(pair.end[i].iface);
			if (pair.end[i].queued > 0 && pair.end[i].queue[0].due < at)
				at = pair.end[i].queue[0].due;
		}
		pair.now = at > pair.now ? at : pair.now + 1;
	}
	return wakes;
}

/* @behaviour T33 */
static void polled_when_it_requests_it_it_misses_nothing(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 33);
	pair_connect(&pair);
	pair_run(&pair, 10000000, NULL);
	/* Idle: a keepalive and a look at the port a second; no step of more than 100 ms counts. */
	assert_in_range(sleep_until(pair.now + 10000000000ull), 100, 300);
	assert_int_equal(A->downs + B->downs, 0);
	/* Lost frames are sent again. */
	A->wire.blackhole = true;
	assert_int_equal(pair_send(A, A->lane_ep, 1000000, 8), 0);
	pair_step(&pair, 0);
	assert_int_equal(B->messages, 0);
	A->wire.blackhole = false;
	sleep_until(pair.now + 100000000);
	assert_int_equal(B->messages, 1);
	/* And a dead peer is found dead. */
	B->wire.blackhole = true;
	A->wire.blackhole = true;
	sleep_until(pair.now + 40000000000ull);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	pair_close(&pair);
}

/* Its sender does not wait until the receiver's owner wakes up. */
/* @behaviour T33 */
static void a_delayed_acknowledgement_is_sent_before_a_sleep(void **state)
{
	const struct raw_conn *c;
	uint64_t acks, due;

	(void)state;
	pair_open(&pair, NULL, 38);
	pair_connect(&pair);
	pair_run(&pair, 10000000, NULL);
	c = raw_conn_of(B->accepted);
	assert_int_equal(pair_send(A, A->lane_ep, 1000000, 8), 0);
	while (B->messages == 0)
		pair_step(&pair, 100);
	assert_int_equal(c->rx.ack_state, RAW_ACK_DELAYED);
	acks = pair_counter(B, RAW_TX_ACKS);
	due = pair.now + 1000000000;
	assert_int_equal(B->iface->ops->arm(B->iface, pair.now, &due), 0);
	assert_int_equal(pair_counter(B, RAW_TX_ACKS), acks + 1);
	assert_int_equal(c->rx.ack_state, RAW_ACK_NONE);
	B->iface->ops->disarm(B->iface);
	pair_close(&pair);
}

static int arm_until(struct pair_end *e, uint64_t *due)
{
	int rc;

	*due = pair.now + 1000000000;
	rc = e->iface->ops->arm(e->iface, pair.now, due);
	if (rc == 0)
		e->iface->ops->disarm(e->iface);
	return rc;
}

/* The contract of lane.h: an event before arm() makes it return -EBUSY. */
/* @behaviour T33 */
static void an_iface_with_something_to_do_refuses_to_sleep(void **state)
{
	static uint8_t user[8000];
	struct weft_lane_comp comp = {.done = on_done};
	struct {
		uint32_t n, len;
	} hdr = {3, sizeof(user)};
	struct iovec iov = {user, sizeof(user)};
	uint64_t due;

	(void)state;
	pattern_fill(3, 0, user, sizeof(user));
	pair_open(&pair, NULL, 39);
	pair_connect(&pair);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(arm_until(A, &due), 0);
	/* The first message leaves at once. The second one waits for others to share its frame. */
	assert_int_equal(pair_send(A, A->lane_ep, 1000000, 8), 0);
	assert_int_equal(pair_send(A, A->lane_ep, 1000001, 8), 0);
	assert_int_equal(arm_until(A, &due), -EBUSY);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(arm_until(A, &due), 0);
	A->port.event = true;
	assert_int_equal(arm_until(A, &due), -EBUSY);
	A->port.event = false;
	/* The port has released user memory, and the completion has not been reported. */
	done_count = 0;
	A->wire.hold_sent = A->wire.lazy = true;
	assert_int_equal(
		A->iface->ops->am_zcopy(A->lane_ep, 5, &hdr, sizeof(hdr), &iov, 1, NULL, &comp), 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 0);
	A->wire.lazy = false;
	A->port.ops->tx_kick(&A->port);
	assert_int_equal(arm_until(A, &due), -EBUSY);
	pair_step(&pair, 0);
	assert_int_equal(done_count, 1);
	assert_int_equal(arm_until(A, &due), 0);
	pair_close(&pair);
}

/* An owner that sleeps as long as it may sends what the port has refused, and gets memory back. */
/* @behaviour T33 */
static void a_busy_port_is_polled_again_soon(void **state)
{
	static uint8_t user[8000];
	struct weft_lane_comp comp = {.done = on_done};
	struct {
		uint32_t n, len;
	} hdr = {3, sizeof(user)};
	struct iovec iov = {user, sizeof(user)};
	uint64_t due, at;

	(void)state;
	pattern_fill(3, 0, user, sizeof(user));
	pair_open(&pair, NULL, 40);
	pair_connect(&pair);
	pair_run(&pair, 10000000, NULL);
	A->wire.full = true;
	assert_int_equal(pair_send(A, A->lane_ep, 1000000, 8), 0);
	pair_step(&pair, 0);
	assert_int_equal(arm_until(A, &due), 0);
	assert_in_range(due - pair.now, 1, 100000);
	A->wire.full = false;
	sleep_until(pair.now + 200000);
	assert_int_equal(B->messages, 1);
	/* The port frees buffers only when it is called. */
	done_count = 0;
	A->wire.hold_sent = true;
	assert_int_equal(
		A->iface->ops->am_zcopy(A->lane_ep, 5, &hdr, sizeof(hdr), &iov, 1, NULL, &comp), 0);
	A->iface->ops->tx_flush(A->iface);
	sleep_until(pair.now + 1000000);
	assert_int_equal(done_count, 1);
	/* What the caller needs earlier remains. */
	for (due = pair.now + 1; due < pair.now + 100; due++) {
		at = due;
		assert_int_equal(A->iface->ops->arm(A->iface, pair.now, &at), 0);
		A->iface->ops->disarm(A->iface);
		assert_int_equal(at, due);
	}
	pair_close(&pair);
}

static int arm_result;
static unsigned int armed;

static int port_wait_fd(struct weft_frame_port *port)
{
	(void)port;
	return 0;
}

static int port_arm(struct weft_frame_port *port, uint64_t *within)
{
	(void)port;
	armed += arm_result == 0;
	*within = *within < 12345 ? *within : 12345;
	return arm_result;
}

static void port_disarm(struct weft_frame_port *port)
{
	(void)port;
	armed--;
}

/* What the port needs before the sleep, and its reason not to sleep, are those of the iface. */
static void the_port_decides_with_the_iface_about_a_sleep(void **state)
{
	struct weft_frame_port_ops ops;
	uint64_t due;

	(void)state;
	pair_open(&pair, NULL, 41);
	pair_connect(&pair);
	pair_run(&pair, 10000000, NULL);
	assert_true(A->iface->ops->wait_fd(A->iface) < 0);
	ops = *A->port.ops;
	ops.wait_fd = port_wait_fd;
	ops.arm = port_arm;
	ops.disarm = port_disarm;
	A->port.ops = &ops;
	assert_int_equal(A->iface->ops->wait_fd(A->iface), 0);
	armed = 0;
	arm_result = -EBUSY;
	assert_int_equal(arm_until(A, &due), -EBUSY);
	arm_result = 0;
	assert_int_equal(arm_until(A, &due), 0);
	assert_int_equal(due, pair.now + 12345);
	assert_int_equal(armed, 0);
	pair_close(&pair);
}

/* A long sleep that the owner meant is no pause of its thread; a longer one is. */
static void only_a_sleep_that_was_meant_is_no_pause(void **state)
{
	struct weft_frame_port_ops ops;
	uint64_t due, gaps;

	(void)state;
	pair_open(&pair, NULL, 42);
	pair_connect(&pair);
	pair_run(&pair, 10000000, NULL);
	ops = *A->port.ops;
	ops.wait_fd = port_wait_fd;
	A->port.ops = &ops;
	gaps = pair_counter(A, RAW_GAPS);
	due = pair.now + 50000000;
	assert_int_equal(A->iface->ops->arm(A->iface, pair.now, &due), 0);
	assert_int_equal(due, pair.now + 50000000);
	pair.now = due;
	A->iface->ops->progress(A->iface, pair.now);
	assert_int_equal(pair_counter(A, RAW_GAPS), gaps);
	assert_int_equal(A->iface->ops->arm(A->iface, pair.now, &due), 0);
	pair.now = due + 50000000;
	A->iface->ops->progress(A->iface, pair.now);
	assert_int_equal(pair_counter(A, RAW_GAPS), gaps + 1);
	/* Without a sleep it is one, too. */
	pair.now += 50000000;
	A->iface->ops->progress(A->iface, pair.now);
	assert_int_equal(pair_counter(A, RAW_GAPS), gaps + 2);
	pair_close(&pair);
}

/* The window is for senders: a connection that does not has no room for it. */
/* @behaviour T42 */
static void slots_come_on_demand_and_go(void **state)
{
	const struct raw_conn *c;
	uint32_t n = 0;

	(void)state;
	pair_open(&pair, &pair_fixed, 34);
	pair_connect(&pair);
	c = raw_conn_of(A->lane_ep);
	assert_true(raw_slots_none(&c->tx));
	assert_true(raw_slots_none(&raw_conn_of(B->accepted)->tx));
	while (pair_send(A, A->lane_ep, 1000000 + n, 5000) == 0) {
		n++;
		A->iface->ops->tx_flush(A->iface);
	}
	assert_true(n > 2 * RAW_SLOTS_MIN);
	assert_int_equal(c->tx.next - c->tx.una, n);
	assert_in_range(c->tx.slot_mask, n - 1, 2 * n);
	B->messages = 0;
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, n);
	/* Frames that are lost while the slots grow are sent again from where they are now. */
	A->wire.loss = 0.05;
	stream(2000, 5000, 5000000000);
	A->wire.loss = 0;
	pair_run(&pair, 3000000000ull, NULL);
	assert_true(raw_slots_none(&c->tx));
	stream(300, 5000, 1000000000);
	pair_close(&pair);
}

/* @return control frames of the sender while its window was full for most of 100 ms */
static uint64_t control_frames(bool network)
{
	const struct pair_params p = {.network = network, .window = 65536};
	uint64_t before;

	pair_open(&pair, &p, 37);
	pair_connect(&pair);
	pair_run(&pair, 20000000, NULL);
	before = pair_counter(A, RAW_TX_CONTROL);
	for (uint32_t i = 0, n = 0; i < 100000; i++) {
		while (pair_send(A, A->lane_ep, n, 5000) == 0)
			n++;
		pair_step(&pair, 1000);
	}
	before = pair_counter(A, RAW_TX_CONTROL) - before;
	pair_run(&pair, 20000000, NULL);
	pair_close(&pair);
	return before;
}

/* A network may have more paths, which trials find. Memory has one. */
static void a_port_in_memory_tries_no_further_paths(void **state)
{
	(void)state;
	assert_true(control_frames(true) > 10);
	assert_int_equal(control_frames(false), 0);
}

/*
 * A poll of a port over sockets is a system call, which peers on other lanes pay for.
 * @behaviour T33
 */
static void a_port_without_connections_rests(void **state)
{
	unsigned int before;

	(void)state;
	pair_open(&pair, NULL, 36);
	B->port.idle_wait = 1000000;
	before = B->polls;
	pair_run(&pair, 20000000, NULL);
	assert_in_range(B->polls - before, 19, 21);
	/* It accepts a connection, and rests no more while it has one. */
	pair_connect(&pair);
	before = B->polls;
	pair_run(&pair, 1000000, NULL);
	assert_in_range(B->polls - before, 999, 1001);
	pair_close(&pair);
}

static bool message_came(struct pair *p)
{
	return p->end[1].messages > 0;
}

static unsigned int polls_in(uint64_t ns)
{
	unsigned int before = B->polls;

	pair_run(&pair, ns, NULL);
	return B->polls - before;
}

/*
 * The polls of idle lanes delay the messages of the busy one. A lane that sends, receives or is to
 * sleep is polled at once.
 * @behaviour T33
 */
static void an_idle_lane_beside_others_rests(void **state)
{
	uint64_t due;

	(void)state;
	pair_open(&pair, NULL, 38);
	pair_connect(&pair);
	pair_run(&pair, 20000000, NULL);
	assert_in_range(polls_in(1000000), 999, 1001);
	B->iface->beside = true;
	pair_run(&pair, 5000000, NULL);
	assert_in_range(polls_in(1000000), 250, 550);
	B->messages = 0;
	pair_send(A, A->lane_ep, 0, 8);
	A->iface->ops->tx_flush(A->iface);
	assert_true(pair_run(&pair, 20000, message_came));
	assert_in_range(polls_in(1000000), 999, 1001);
	pair_run(&pair, 10000000, NULL);
	assert_in_range(polls_in(100000), 25, 55);
	assert_int_equal(B->iface->ops->progress(B->iface, pair.now), 0);
	due = pair.now + 50000000;
	assert_int_equal(B->iface->ops->arm(B->iface, pair.now, &due), -EBUSY);
	assert_in_range(polls_in(2000), 1, 2);
	pair_send(B, B->accepted, 0, 8);
	B->iface->ops->tx_flush(B->iface);
	assert_in_range(polls_in(1000000), 999, 1001);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_over_one_looks_at_no_idle_connection),
		cmocka_unit_test(keepalives_that_are_due_at_once_come_in_slices),
		cmocka_unit_test(a_hello_looks_at_no_other_connection),
		cmocka_unit_test(closing_many_at_once_looks_at_one_each),
		cmocka_unit_test(a_free_index_is_found_without_a_walk),
		cmocka_unit_test(a_delayed_acknowledgement_is_sent_before_a_sleep),
		cmocka_unit_test(an_iface_with_something_to_do_refuses_to_sleep),
		cmocka_unit_test(a_busy_port_is_polled_again_soon),
		cmocka_unit_test(the_port_decides_with_the_iface_about_a_sleep),
		cmocka_unit_test(only_a_sleep_that_was_meant_is_no_pause),
		cmocka_unit_test(slots_come_on_demand_and_go),
		cmocka_unit_test(polled_when_it_requests_it_it_misses_nothing),
		cmocka_unit_test(a_port_in_memory_tries_no_further_paths),
		cmocka_unit_test(a_port_without_connections_rests),
		cmocka_unit_test(an_idle_lane_beside_others_rests),
	};

	return cmocka_run_group_tests_name("raw_idle", tests, NULL, NULL);
}
