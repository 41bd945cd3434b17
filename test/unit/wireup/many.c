/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More endpoints at once than a worker takes before its own program has claimed any: they wait, and
 * all connect in the end.
 */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "mock/unknown_sender.h"

static unsigned int in_state(struct weft_ep **eps, unsigned int n, enum weft_ep_state state)
{
	unsigned int k = 0;

	for (unsigned int i = 0; i < n; i++)
		k += eps[i]->state == state;
	return k;
}

static void run_all(unsigned int rounds, struct weft_worker **w, unsigned int n)
{
	while (rounds-- > 0) {
		for (unsigned int i = 0; i < n; i++)
			weft_worker_progress(w[i]);
		mock_now += MS;
	}
}

/* @p n workers connect to one, which connects to all of them, a little later. */
static void connect_many(struct weft_context *ctx, unsigned int n, unsigned int limit)
{
	struct weft_worker **w = calloc(n + 1, sizeof(struct weft_worker *));
	struct weft_ep **x = calloc(n, sizeof(struct weft_ep *)),
		       **y = calloc(n, sizeof(struct weft_ep *));

	for (unsigned int i = 0; i <= n; i++)
		w[i] = mock_worker(ctx, "mock:0");
	for (unsigned int i = 0; i < n; i++)
		x[i] = mock_connect(w[i], w[n]);
	run_all(20, w, n + 1);
	assert_int_equal(w[n]->conns->num_unclaimed, limit);
	assert_int_equal(in_state(x, n, WEFT_EP_UP), limit);
	assert_int_equal(in_state(x, n, WEFT_EP_CONNECTING), n - limit);
	for (unsigned int i = 0; i < n; i++)
		y[i] = mock_connect(w[n], w[i]);
	run_all(1000, w, n + 1);
	assert_int_equal(in_state(x, n, WEFT_EP_UP), n);
	assert_int_equal(in_state(y, n, WEFT_EP_UP), n);
	/* Each has met the other's, and none is left over. */
	assert_int_equal(w[n]->num_eps, n);
	assert_int_equal(w[n]->conns->num_unclaimed + w[n]->conns->by_lane_ep.num, 0);
	for (unsigned int i = 0; i <= n; i++)
		weft_worker_destroy(w[i]);
	weft_context_destroy(ctx);
	free(w);
	free(x);
	free(y);
}

static void more_than_the_bound_wait_and_all_connect(void **state)
{
	(void)state;
	connect_many(mock_context("CONNECT_TIMEOUT=30s", "MAX_UNCLAIMED_EPS=5", NULL), 40, 5);
	mock_reset();
	connect_many(mock_context("CONNECT_TIMEOUT=30s", "MAX_UNCLAIMED_EPS=50", NULL), 120, 50);
}

/* Two workers with more endpoints between them than one host may have of the default bound. */
/*
 * @behaviour T35: more than 1024 peers that connect from both sides at once connect
 * @behaviour T3
 */
static void fifteen_hundred_endpoints_at_once_with_the_default_bound(void **state)
{
	enum { N = 1500, BOUND = 1024 * 7 / 8 };
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	static struct weft_ep *x[N], *y[N];

	(void)state;
	for (unsigned int i = 0; i < N; i++)
		x[i] = mock_connect(a, b);
	mock_run(20, MS, a, b, NULL);
	assert_int_equal(b->conns->num_unclaimed, BOUND);
	assert_int_equal(in_state(x, N, WEFT_EP_CONNECTING), N - BOUND);
	for (unsigned int i = 0; i < N; i++)
		y[i] = mock_connect(b, a);
	mock_run(2000, MS, a, b, NULL);
	assert_int_equal(in_state(x, N, WEFT_EP_UP), N);
	assert_int_equal(in_state(y, N, WEFT_EP_UP), N);
	conn_destroy(ctx, a, b);
}

/* Claimed one by one, each makes room for the next: two at a time, the third is for other hosts. */
static void a_claim_makes_room_for_the_next(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=60s", "MAX_UNCLAIMED_EPS=3", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct weft_ep *x[12];

	(void)state;
	for (unsigned int i = 0; i < 12; i++)
		x[i] = mock_connect(a, b);
	mock_run(20, MS, a, b, NULL);
	for (unsigned int i = 2; i <= 12; i++) {
		assert_int_equal(in_state(x, 12, WEFT_EP_UP), i);
		mock_connect(b, a);
		mock_run(2000, MS, a, b, NULL);
	}
	assert_int_equal(in_state(x, 12, WEFT_EP_UP), 12);
	conn_destroy(ctx, a, b);
}

static void an_endpoint_that_is_never_claimed_is_refused_with_the_reason(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=2s", "MAX_UNCLAIMED_EPS=1", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct weft_ep *x[2] = {mock_connect(a, b), mock_connect(a, b)};

	(void)state;
	mock_run(1900, MS, a, b, NULL);
	assert_int_equal(in_state(x, 2, WEFT_EP_CONNECTING), 1);
	mock_run(200, MS, a, b, NULL);
	assert_int_equal(in_state(x, 2, WEFT_EP_UP), 1);
	assert_int_equal(in_state(x, 2, WEFT_EP_FAILED), 1);
	assert_int_equal(x[0]->status < 0 ? x[0]->status : x[1]->status, -EUSERS);
	conn_destroy(ctx, a, b);
}

/* The first hosts leave places, under however many names: one host, or eight. */
/*
 * @behaviour S10: a process with a worker's address can't take all its slots for unclaimed
 * endpoints, under any number of names
 * @behaviour S15, T3
 */
static void greedy_hosts_leave_places_for_others(void **state)
{
	enum { HOSTS = 8, EACH = 160, PLACES = 160, KEPT = PLACES / 16 };
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=60s", "LOG_FILE=/dev/null",
						"MAX_UNCLAIMED_EPS=160", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	static struct unknown_sender s[HOSTS * EACH];
	struct weft_wire_wireup h, ans;
	struct weft_records r;
	struct weft_ep *ep;
	unsigned int i;

	(void)state;
	for (i = 0; i < HOSTS * EACH; i++) {
		s[i] = (struct unknown_sender){.lane_ep = mock_unknown(mock_iface(b, 0)),
					       .id = 100 + i,
					       .net_addr = 500 + i / EACH};
		mock_unknown_at(s[i].lane_ep, s[i].net_addr);
		unknown_good_req(&s[i], b, &r);
		h = unknown_head(&s[i], b, WEFT_WIREUP_REQ, 0);
		unknown_send(&s[i], b, &h, &r);
		if (unknown_answer(&s[i], &ans) == WEFT_WIREUP_ERROR)
			assert_int_equal(weft_get16(ans.status), EUSERS);
		if (i % EACH == EACH - 1)
			assert_in_range(b->conns->num_unclaimed, PLACES * 7 / 8,
					PLACES - KEPT + HOSTS);
	}
	ep = mock_connect(a, b);
	mock_run(20, MS, a, b, NULL);
	assert_int_equal(ep->state, WEFT_EP_UP);
	conn_message(ep, b, 1000, 1);
	for (i = 0; i < HOSTS * EACH; i++)
		mock_unknown_close(s[i].lane_ep);
	mock_run(50, MS, a, b, NULL);
	assert_int_equal(b->num_eps, 1);
	conn_destroy(ctx, a, b);
}

/* All places are taken: in time the host with most loses the oldest over which nothing has come. */
/* @behaviour S10 */
static void the_host_with_most_makes_room_with_a_silent_one(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=60s", "LOG_FILE=/dev/null",
						"MAX_UNCLAIMED_EPS=4", NULL);
	struct weft_worker *w[4];
	struct weft_ep *x[4], *y[3];
	unsigned int i;

	(void)state;
	mock_now += 3600 * 1000 * MS; /* the worker's clock began long ago */
	for (i = 0; i < 4; i++)
		w[i] = mock_worker(ctx, "mock:0");
	for (i = 0; i < 4; i++) {
		x[i] = mock_connect(w[1], w[0]);
		run_all(20, w, 4);
	}
	/* The last place is for another host. */
	assert_int_equal(in_state(x, 3, WEFT_EP_UP), 3);
	assert_int_equal(x[3]->state, WEFT_EP_CONNECTING);
	y[0] = mock_connect(w[2], w[0]);
	run_all(20, w, 4);
	assert_int_equal(y[0]->state, WEFT_EP_UP);
	conn_message(x[0], w[0], 1000, 1);
	y[1] = mock_connect(w[3], w[0]);
	run_all(25000, w, 4);
	assert_int_equal(in_state(x, 3, WEFT_EP_UP), 3);
	assert_int_equal(y[1]->state, WEFT_EP_CONNECTING);
	run_all(8000, w, 4);
	assert_int_equal(y[1]->state, WEFT_EP_UP);
	assert_int_equal(x[0]->state, WEFT_EP_UP);
	assert_int_equal(x[1]->state, WEFT_EP_FAILED);
	assert_int_equal(x[2]->state, WEFT_EP_UP);
	/* Both have about as many now. */
	y[2] = mock_connect(w[3], w[0]);
	run_all(20, w, 4);
	assert_int_equal(y[2]->state, WEFT_EP_CONNECTING);
	assert_int_equal(w[0]->conns->num_unclaimed, 4);
	for (i = 0; i < 4; i++)
		weft_worker_destroy(w[i]);
	weft_context_destroy(ctx);
}

/*
 * ------------------------------------------------------------------ what is looked at to find one
 */

static uint64_t looks(struct weft_worker *w)
{
	return conn_counter(w, "wireup.looks");
}

/* Beside a thousand endpoints between the same two workers one more costs what the first did. */
static void one_endpoint_more_looks_at_none_of_a_thousand(void **state)
{
	enum { N = 1000, MORE = 50 };
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	static struct weft_ep *x[N + MORE], *y[N + MORE];
	uint64_t before;

	(void)state;
	for (unsigned int i = 0; i < N; i++)
		x[i] = mock_connect(a, b);
	mock_run(1000, MS, a, b, NULL);
	for (unsigned int i = 0; i < N; i++)
		y[i] = mock_connect(b, a);
	mock_run(100, MS, a, b, NULL);
	before = looks(a) + looks(b);
	for (unsigned int i = N; i < N + MORE; i++) {
		x[i] = mock_connect(a, b);
		mock_run(20, MS, a, b, NULL);
		y[i] = mock_connect(b, a);
		mock_run(20, MS, a, b, NULL);
	}
	assert_in_range(looks(a) + looks(b) - before, MORE, 40 * MORE);
	assert_int_equal(in_state(x, N + MORE, WEFT_EP_UP), N + MORE);
	assert_int_equal(in_state(y, N + MORE, WEFT_EP_UP), N + MORE);
	assert_int_equal(b->num_eps, N + MORE);
	conn_destroy(ctx, a, b);
}

/*
 * A REQ of a worker that is new may mean that another one at its address is gone: only those are
 * asked.
 */
static void a_worker_more_looks_at_none_of_the_others(void **state)
{
	enum { N = 200 };
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *to = mock_worker(ctx, "mock:0"), *w[N];
	struct weft_ep *x[N];

	(void)state;
	for (unsigned int i = 0; i < N; i++) {
		w[i] = mock_worker(ctx, "mock:0");
		x[i] = mock_connect(w[i], to);
		mock_run(10, MS, w[i], to, NULL);
	}
	assert_int_equal(in_state(x, N, WEFT_EP_UP), N);
	assert_in_range(looks(to), N, 40 * N);
	for (unsigned int i = 0; i < N; i++)
		weft_worker_destroy(w[i]);
	weft_worker_destroy(to);
	weft_context_destroy(ctx);
}

/* All places are taken, each by another host: a search without result checks a few. */
static void a_request_that_finds_no_place_looks_at_few_hosts(void **state)
{
	enum { HOSTS = 200, MORE = 100 };
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=60s", "LOG_FILE=/dev/null",
						"MAX_UNCLAIMED_EPS=200", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	static struct unknown_sender s[HOSTS + MORE];
	struct weft_wire_wireup h, ans;
	struct weft_records r;
	uint64_t before, most = 0;

	(void)state;
	for (unsigned int i = 0; i < HOSTS + MORE; i++) {
		s[i] = (struct unknown_sender){.lane_ep = mock_unknown(mock_iface(w, 0)),
					       .id = 100 + i,
					       .net_addr = 500 + i};
		mock_unknown_at(s[i].lane_ep, s[i].net_addr);
		unknown_good_req(&s[i], w, &r);
		h = unknown_head(&s[i], w, WEFT_WIREUP_REQ, 0);
		before = looks(w);
		unknown_send(&s[i], w, &h, &r);
		most = looks(w) - before > most ? looks(w) - before : most;
		assert_int_equal(unknown_answer(&s[i], &ans),
				 i < HOSTS ? WEFT_WIREUP_REP : WEFT_WIREUP_ERROR);
	}
	assert_in_range(most, 8, 32);
	for (unsigned int i = 0; i < HOSTS + MORE; i++)
		mock_unknown_close(s[i].lane_ep);
	mock_run(50, MS, w, NULL);
	assert_int_equal(w->conns->num_unclaimed, 0);
	weft_worker_destroy(w);
	weft_context_destroy(ctx);
}

/*
 * The state of a wire-up is 17 KB, and a lane of the mock has as much. In the heap the state would
 * leave gaps between what endpoints keep, which stay resident.
 */
static void the_state_of_a_wireup_is_not_in_the_heap(void **state)
{
	enum { EPS = 500 };
	struct weft_context *ctx = mock_context("LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	size_t before = mallinfo2().uordblks;

	(void)state;
	for (unsigned int i = 0; i < EPS; i++)
		assert_non_null(mock_connect(a, b)->wireup);
	assert_in_range(mallinfo2().uordblks - before, 0, EPS * 25000);
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	weft_context_destroy(ctx);
}

/* No peer answers: all request again at the same times. */
static void timers_that_are_due_at_once_come_in_slices(void **state)
{
	enum { N = 1000 };
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=2s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	static struct weft_ep *x[N];
	uint64_t before, n, most = 0, all = 0;

	(void)state;
	for (unsigned int i = 0; i < N; i++)
		x[i] = mock_connect(a, b);
	for (unsigned int i = 0; i < 3000; i++) {
		before = looks(a);
		weft_worker_progress(a);
		n = looks(a) - before;
		most = n > most ? n : most;
		all += n;
		mock_now += MS;
	}
	assert_in_range(most, WEFT_EP_TIMER_BATCH, 3 * WEFT_EP_TIMER_BATCH);
	assert_in_range(all, N, 60 * N);
	assert_int_equal(in_state(x, N, WEFT_EP_FAILED), N);
	conn_destroy(ctx, a, b);
}

/* A connection that ends is not looked for among all that say nothing. */
static void silent_connections_that_end_look_at_none_of_the_others(void **state)
{
	enum { N = 2000 };
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	static struct weft_lane_ep *s[N];
	uint64_t before;

	(void)state;
	for (unsigned int i = 0; i < N; i++)
		s[i] = mock_unknown(mock_iface(w, 0));
	mock_run(5, MS, w, NULL);
	assert_int_equal(conn_counter(w, "wireup.pending"), N);
	before = looks(w);
	for (unsigned int i = 0; i < N; i++) {
		mock_unknown_close(s[i * 37 % N]);
		mock_run(1, MS, w, NULL);
	}
	assert_int_equal(conn_counter(w, "wireup.pending"), 0);
	assert_in_range(looks(w) - before, N, 8 * N);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(more_than_the_bound_wait_and_all_connect,
						conn_setup, conn_teardown),
		cmocka_unit_test_setup_teardown(
			fifteen_hundred_endpoints_at_once_with_the_default_bound, conn_setup,
			conn_teardown),
		cmocka_unit_test_setup_teardown(a_claim_makes_room_for_the_next, conn_setup,
						conn_teardown),
		CONN_TEST(greedy_hosts_leave_places_for_others),
		CONN_TEST(the_host_with_most_makes_room_with_a_silent_one),
		CONN_TEST(one_endpoint_more_looks_at_none_of_a_thousand),
		CONN_TEST(a_worker_more_looks_at_none_of_the_others),
		CONN_TEST(silent_connections_that_end_look_at_none_of_the_others),
		CONN_TEST(a_request_that_finds_no_place_looks_at_few_hosts),
		CONN_TEST(timers_that_are_due_at_once_come_in_slices),
		CONN_TEST(the_state_of_a_wireup_is_not_in_the_heap),
		cmocka_unit_test_setup_teardown(
			an_endpoint_that_is_never_claimed_is_refused_with_the_reason, conn_setup,
			conn_teardown),
	};

	return cmocka_run_group_tests_name("wireup_many", tests, NULL, NULL);
}
