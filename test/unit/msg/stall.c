/* SPDX-License-Identifier: BSD-3-Clause */
/* What sends wait for, as time of progress calls. */

#include "mock/msg_util.h"
#include "msg/request.h"

#define MS 1000000u

static uint8_t sbuf[20000], rbuf[20000];

/* One progress call of the sender, some time after the last one. */
static void pass(struct pair *p, uint64_t ns)
{
	p->w[0].now += ns;
	pair_progress(p);
}

static uint64_t stalled(const struct pair *p, enum weft_stall stall)
{
	return p->w[0].msg->stalls.ns[stall];
}

static void nothing_is_stalled(const struct pair *p)
{
	const struct weft_stalls *s = &p->w[0].msg->stalls;

	assert_int_equal(s->all, 0);
	for (unsigned int i = 0; i < WEFT_STALLS; i++)
		assert_int_equal(s->num[i], 0);
}

struct look {
	const char *name;
	uint64_t value;
};

static void one_counter(const char *name, uint64_t value, void *arg)
{
	struct look *look = arg;

	if (strcmp(name, look->name) == 0)
		look->value = value;
}

static uint64_t counter(const struct pair *p, const char *name)
{
	struct look look = {.name = name};

	weft_stall_counters(&p->w[0].msg->stalls, one_counter, &look);
	return look.value;
}

static void pair_begin(struct pair *p)
{
	pair_defaults(p);
	pair_open(p, 1, NULL);
	pass(p, 0);
}

/* @behaviour T45: what sends wait for is counted as time: connection, credit, lane, receive */
static void an_announced_message_waits_for_its_receive(void **state)
{
	struct op s, r;
	struct pair p;

	(void)state;
	pair_begin(&p);
	pattern_fill(7, 0, sbuf, sizeof(sbuf));
	op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	pair_run(&p);
	assert_int_equal(p.w[0].msg->stalls.num[WEFT_STALL_RECEIVE], 1);
	pass(&p, 5 * MS);
	pass(&p, 2 * MS);
	assert_int_equal(stalled(&p, WEFT_STALL_RECEIVE), 7 * MS);
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
	pair_run(&p);
	op_end_recv(&r, rbuf, sizeof(rbuf), 1, 7);
	op_end(&s, 0);
	nothing_is_stalled(&p);
	pass(&p, MS);
	assert_int_equal(stalled(&p, WEFT_STALL_RECEIVE), 7 * MS);
	/* 20,000 bytes, 7 ms: below 4^7 us. */
	assert_int_equal(p.w[0].msg->stalls.latency[2][7], 1);
	assert_int_equal(counter(&p, "latency.size2.step7"), 1);
	assert_int_equal(counter(&p, "stall.receive_ns"), 7 * MS);
	pair_close(&p);
}

/* @behaviour T45 */
static void a_send_that_ends_early_is_no_longer_stalled(void **state)
{
	struct op s;
	struct pair p;

	(void)state;
	pair_begin(&p);
	op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	pair_run(&p);
	assert_int_equal(p.w[0].msg->stalls.num[WEFT_STALL_RECEIVE], 1);
	pair_fail(&p, 0, -ECONNRESET);
	op_end(&s, -ECONNRESET);
	nothing_is_stalled(&p);
	pair_close(&p);
}

/* @behaviour T45 */
static void a_queue_waits_for_its_lane(void **state)
{
	struct op s[2], r;
	struct pair p;

	(void)state;
	pair_begin(&p);
	pattern_fill(7, 0, sbuf, 8);
	pair_room(&p, 0, 0);
	for (uint64_t i = 0; i < 2; i++)
		op_send(&s[i], &p.ep[0], sbuf, 8, i);
	pass(&p, 3 * MS);
	assert_int_equal(stalled(&p, WEFT_STALL_LANE), 3 * MS);
	assert_int_equal(p.w[0].msg->stalls.all, 1); /* one endpoint, not two messages */
	/* The one that has not begun is taken back: the queue still waits. */
	assert_int_equal(weft_request_cancel(s[1].req), 0);
	op_end(&s[1], -ECANCELED);
	pass(&p, MS);
	assert_int_equal(stalled(&p, WEFT_STALL_LANE), 4 * MS);
	pair_room(&p, 0, -1);
	op_recv(&r, &p.w[1], rbuf, 8, 0, FULL);
	pair_run(&p);
	op_end_recv(&r, rbuf, 8, 0, 7);
	op_end(&s[0], 0);
	nothing_is_stalled(&p);
	pair_close(&p);
}

/* @behaviour T45 */
static void a_queue_waits_for_credit(void **state)
{
	struct op s[3], r;
	struct pair p;

	(void)state;
	pair_begin(&p);
	pattern_fill(7, 0, sbuf, 8);
	p.ep[0].msg->tx_small_end = p.ep[0].msg->tx_small + 2;
	for (uint64_t i = 0; i < 3; i++)
		op_send(&s[i], &p.ep[0], sbuf, 8, i);
	pass(&p, 3 * MS);
	assert_int_equal(stalled(&p, WEFT_STALL_CREDIT), 3 * MS);
	assert_int_equal(stalled(&p, WEFT_STALL_LANE), 0);
	p.ep[1].msg->rx_small_advertised--;
	weft_credit_send(p.ep[1].msg);
	for (uint64_t i = 0; i < 3; i++) {
		op_recv(&r, &p.w[1], rbuf, 8, i, FULL);
		pair_run(&p);
		op_end_recv(&r, rbuf, 8, i, 7);
		op_end(&s[i], 0);
	}
	nothing_is_stalled(&p);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_announced_message_waits_for_its_receive),
		cmocka_unit_test(a_send_that_ends_early_is_no_longer_stalled),
		cmocka_unit_test(a_queue_waits_for_its_lane),
		cmocka_unit_test(a_queue_waits_for_credit),
	};

	return cmocka_run_group_tests_name("stalls of sends", tests, NULL, NULL);
}
