/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How endpoints close: in good order, from both sides at once, while they connect, by force.
 */

#include "mock/ep_pair.h"
#include "mock/rounds.h"

/* ------------------------------------------------------------------ close */

/*
 * @behaviour U63: send or put, then close at once: everything arrives; the close calls its callback
 */
static void send_then_close_delivers_everything(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	static uint8_t out[200000], in[200000];
	struct weft_request *r[9], *close;
	struct weft_worker *a, *b;
	unsigned int seed, i;
	struct weft_ep *ep;

	(void)state;
	for (seed = 1; seed <= test_rounds(60); seed++) {
		mock_seed(seed);
		mock_set_order(MOCK_RANDOM);
		mock_set_eagain(NULL, seed % 3 * 200);
		a = mock_worker(ctx, two_nics);
		b = mock_worker(ctx, two_nics);
		ep = mock_connect(a, b);
		if (seed % 2)
			mock_run(seed, MS, a, b, NULL);
		/* Short, long, rendezvous; the receives are there before or come after. */
		for (i = 0; i < 9; i++) {
			if (seed % 4 < 2)
				assert_true(weft_tag_recv(b, NULL, in, sizeof(in), i, UINT64_MAX,
							  NULL, &r[i]) >= 0);
			assert_true(weft_tag_send(ep, out,
						  i % 3 == 0   ? 8
						  : i % 3 == 1 ? 5000
							       : 200000,
						  i, NULL, NULL) >= 0);
		}
		assert_int_equal(weft_ep_close(ep, 0, NULL, &close), WEFT_INPROGRESS);
		mock_run(100, MS, a, b, NULL);
		for (i = 0; i < 9; i++)
			if (seed % 4 >= 2 &&
			    weft_tag_recv(b, NULL, in, sizeof(in), i, UINT64_MAX, NULL, &r[i]) == 0)
				r[i] = NULL;
		mock_run(3000, MS, a, b, NULL);
		for (i = 0; i < 9; i++)
			if (r[i] && status_of(r[i]) != 0)
				fail_msg("seed %u: message %u", seed, i);
		assert_int_equal(status_of(close), 0);
		assert_int_equal(a->num_eps, 0);
		assert_int_equal(b->num_eps, 0);
		mock_set_eagain(NULL, 0);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static unsigned int closed;

static void closed_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	(void)req;
	*(int *)arg = c->status;
	closed++;
}

/* @behaviour U63 */
static void close_calls_back_once(void **state)
{
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .cb = closed_cb);
	int status = 1;
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	closed = 0;
	params.cb_arg = &status;
	assert_int_equal(weft_ep_close(p.x, 0, &params, NULL), WEFT_INPROGRESS);
	mock_run(2000, MS, p.a, p.b, NULL);
	assert_int_equal(closed, 1);
	assert_int_equal(status, 0);
	assert_int_equal(p.ey.calls, 1);
	assert_int_equal(p.ey.status, -ECONNRESET);
	assert_int_equal(conn_counter(p.b, "ep.failed"), 0);
	assert_int_equal(weft_ep_close(p.y, 0, &params, NULL), 0);
	assert_int_equal(closed, 1);
	assert_int_equal(mock_num_lane_eps(), 0);
	pair_down(&p);
}

/* @behaviour U65 */
static void both_sides_close_at_once(void **state)
{
	struct weft_request *cx, *cy, *s;
	static uint8_t big[500000];
	unsigned int i;
	struct pair p;

	(void)state;
	for (i = 0; i < 40; i++) {
		mock_seed(i + 1);
		pair_up(&p, two_nics);
		mock_set_order(MOCK_RANDOM);
		/*
		 * With an unmatched rendezvous each way, which would wait for the other for ever.
		 */
		if (i % 2) {
			assert_int_equal(weft_tag_send(p.x, big, sizeof(big), 1, NULL, &s),
					 WEFT_INPROGRESS);
			weft_request_free(s);
			assert_int_equal(weft_tag_send(p.y, big, sizeof(big), 1, NULL, &s),
					 WEFT_INPROGRESS);
			weft_request_free(s);
		}
		assert_int_equal(weft_ep_close(p.x, 0, NULL, &cx), WEFT_INPROGRESS);
		mock_run(i / 2 % 5, MS, p.a, p.b, NULL);
		assert_true(weft_ep_close(p.y, 0, NULL, &cy) >= 0);
		mock_run(3000, MS, p.a, p.b, NULL);
		assert_int_equal(status_of(cx), 0);
		if (cy)
			assert_int_equal(status_of(cy), 0);
		assert_int_equal(mock_num_lane_eps(), 0);
		pair_down(&p);
		mock_reset();
	}
}

/* @behaviour U64 */
static void closing_a_never_connected_endpoint_is_harmless(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=2s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_request *req, *send;
	struct weft_ep *ep;

	(void)state;
	mock_refuse(NULL, NULL, 0, NULL);
	/* At once. */
	ep = mock_connect(a, b);
	assert_int_equal(weft_ep_close(ep, 0, NULL, &req), 0);
	assert_null(req);
	/* While it tries. */
	ep = mock_connect(a, b);
	mock_run(10, MS, a, b, NULL);
	assert_int_equal(weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL), 0);
	/* With a message that wants to be delivered: until the timeout. */
	ep = mock_connect(a, b);
	assert_int_equal(weft_tag_send_sync(ep, "x", 1, 1, NULL, &send), WEFT_INPROGRESS);
	assert_int_equal(weft_ep_close(ep, 0, NULL, &req), WEFT_INPROGRESS);
	mock_run(2500, MS, a, b, NULL);
	assert_int_equal(status_of(req), -ETIMEDOUT);
	assert_int_equal(status_of(send), -ETIMEDOUT);
	mock_run(1, MS, a, b, NULL);
	assert_int_equal(mock_num_lane_eps(), 0);
	conn_destroy(ctx, a, b);
}

/* @behaviour U63 */
static void closing_while_connecting_still_delivers(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=20s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_request *req, *r;
	static uint8_t out[300000], in[300000];
	struct weft_ep *ep;

	(void)state;
	assert_int_equal(weft_tag_recv(b, NULL, in, sizeof(in), 1, UINT64_MAX, NULL, &r),
			 WEFT_INPROGRESS);
	ep = mock_connect(a, b);
	memset(out, 5, sizeof(out));
	assert_true(weft_tag_send(ep, out, sizeof(out), 1, NULL, NULL) >= 0);
	assert_int_equal(weft_ep_close(ep, 0, NULL, &req), WEFT_INPROGRESS);
	mock_run(500, MS, a, b, NULL);
	assert_int_equal(status_of(r), 0);
	assert_int_equal(status_of(req), 0);
	assert_memory_equal(in, out, sizeof(in));
	conn_destroy(ctx, a, b);
}

/*
 * @behaviour U64: connect and disconnect again and again; disconnect of a peer that never existed
 */
static void connect_and_close_again_and_again(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=20s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x, *y;
	unsigned int i;

	(void)state;
	/* One side only. */
	for (i = 0; i < test_rounds(300); i++) {
		x = mock_connect(a, b);
		if (i % 3)
			conn_message(x, b, i, i);
		assert_int_equal(conn_close(x, b), 0);
	}
	/* Both sides; the connection that the first has begun is the second's as well. */
	for (i = 0; i < test_rounds(300); i++) {
		x = mock_connect(a, b);
		y = mock_connect(b, a);
		conn_message(x, b, i, i);
		conn_message(y, a, i, i);
		assert_int_equal(conn_close(i % 2 ? x : y, i % 2 ? b : a), 0);
		weft_ep_close(i % 2 ? y : x, 0, NULL, NULL);
		mock_run(20, MS, a, b, NULL);
		assert_int_equal(a->num_eps + b->num_eps, 0);
	}
	mock_run(20, MS, a, b, NULL);
	assert_int_equal(mock_num_lane_eps(), 0);
	conn_destroy(ctx, a, b);
}

/*
 * Endpoints made and closed by both sides at random, with and without force, while messages go to
 * and fro.
 */
/* @behaviour U65: create and close by both ends at once, with force */
static void create_and_close_by_both_sides_at_random(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=20s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w[2];
	struct weft_ep *eps[2][8];
	static uint8_t data[20000];
	unsigned int seed, i, k, side;
	uint32_t r = 1;

	(void)state;
	for (seed = 1; seed <= test_rounds(100); seed++) {
		memset(eps, 0, sizeof(eps));
		mock_seed(seed);
		mock_set_order(MOCK_RANDOM);
		mock_set_eagain(NULL, seed % 4 * 100);
		w[0] = mock_worker(ctx, two_nics);
		w[1] = mock_worker(ctx, two_nics);
		for (i = 0; i < 400; i++) {
			r = r * 1664525u + 1013904223u;
			side = r >> 31;
			k = r >> 20 & 7;
			if (!eps[side][k])
				eps[side][k] = mock_connect(w[side], w[1 - side]);
			else if ((r >> 16 & 3) == 0) {
				assert_true(weft_ep_close(eps[side][k], r >> 18 & 1, NULL, NULL) >=
					    0);
				eps[side][k] = NULL;
			} else
				weft_tag_send(eps[side][k], data, r >> 8 & 0x3fff, 1, NULL, NULL);
			weft_tag_recv(w[side], NULL, data, sizeof(data), 1, UINT64_MAX, NULL, NULL);
			mock_run(r >> 24 & 3, MS, w[r >> 28 & 1], NULL);
		}
		for (side = 0; side < 2; side++)
			for (k = 0; k < 8; k++)
				if (eps[side][k])
					weft_ep_close(eps[side][k], 0, NULL, NULL);
		mock_set_eagain(NULL, 0);
		mock_run(3000, 20 * MS, w[0], w[1], NULL);
		/* All gone, on both sides, whatever crossed. */
		if (w[0]->num_eps + w[1]->num_eps != 0 || mock_num_lane_eps() != 0)
			fail_msg("seed %u: endpoints %u %u, connections %u", seed, w[0]->num_eps,
				 w[1]->num_eps, mock_num_lane_eps());
		weft_worker_destroy(w[0]);
		weft_worker_destroy(w[1]);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour U61 */
static void many_endpoints(void **state)
{
	struct weft_context *ctx =
		mock_context("CONNECT_TIMEOUT=60s", "MAX_UNCLAIMED_EPS=2000", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	static struct weft_ep *eps[1000];
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		eps[i] = mock_connect(a, b);
	mock_run(300, MS, a, b, NULL);
	assert_int_equal(b->num_eps, 1000);
	for (i = 0; i < 1000; i += 37)
		conn_message(eps[i], b, 100, i);
	for (i = 0; i < 1000; i++)
		assert_int_equal(weft_ep_close(eps[i], WEFT_EP_CLOSE_F_FORCE, NULL, NULL), 0);
	mock_run(10, MS, a, b, NULL);
	assert_int_equal(b->num_eps, 0);
	conn_destroy(ctx, a, b);
}

/* @behaviour U70: force close cancels everything in bounded time, also during a rendezvous */
static void force_close_cancels_what_is_under_way(void **state)
{
	static uint8_t big[2000000], in[2000000];
	struct weft_request *req[6];
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	/*
	 * A rendezvous in the middle, one unmatched, a synchronous send, a directed receive, a
	 * flush.
	 */
	assert_int_equal(weft_tag_recv(p.b, NULL, in, sizeof(in), 1, UINT64_MAX, NULL, &req[5]),
			 WEFT_INPROGRESS);
	assert_int_equal(weft_tag_send(p.x, big, sizeof(big), 1, NULL, &req[0]), WEFT_INPROGRESS);
	mock_set_window(2);
	mock_run(3, MS, p.a, p.b, NULL);
	assert_int_equal(weft_tag_send(p.x, big, sizeof(big), 2, NULL, &req[1]), WEFT_INPROGRESS);
	assert_int_equal(weft_tag_send_sync(p.x, "x", 1, 3, NULL, &req[2]), WEFT_INPROGRESS);
	assert_int_equal(weft_tag_recv(p.a, p.x, in, 1, 4, UINT64_MAX, NULL, &req[3]),
			 WEFT_INPROGRESS);
	assert_int_equal(weft_ep_flush(p.x, NULL, &req[4]), WEFT_INPROGRESS);
	assert_int_equal(weft_ep_close(p.x, WEFT_EP_CLOSE_F_FORCE, NULL, NULL), 0);
	mock_run(2, MS, p.a, NULL);
	assert_int_equal(status_of(req[0]), -ECANCELED);
	assert_int_equal(status_of(req[1]), -ECANCELED);
	assert_int_equal(status_of(req[2]), -ECANCELED);
	assert_int_equal(status_of(req[3]), -ECANCELED);
	assert_int_equal(status_of(req[4]), -ECANCELED);
	mock_set_window(0);
	mock_run(10, MS, p.a, p.b, NULL);
	assert_int_equal(p.ex.calls, 0); /* its user closed it: nothing failed */
	assert_int_equal(p.ey.calls, 1);
	assert_int_equal(status_of(req[5]), -ECONNRESET);
	pair_down(&p);
}

/*
 * ------------------------------------------------------------------ what is closing is not adopted
 */

/* @behaviour T30: which endpoint is claimed when the other side is closing */
static void a_new_endpoint_does_not_adopt_one_whose_peer_is_closing(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	static uint8_t data[100];
	struct weft_request *sent, *close, *got;
	struct weft_ep *x = mock_connect(a, b), *y;
	struct mock_err err = {0};

	(void)state;
	mock_run(100, MS, a, b, NULL);
	/* The close waits for a match at b, which comes after b has made an endpoint of its own. */
	assert_int_equal(weft_tag_send_sync(x, data, sizeof(data), 1, NULL, &sent),
			 WEFT_INPROGRESS);
	assert_int_equal(weft_ep_close(x, 0, NULL, &close), WEFT_INPROGRESS);
	mock_run(100, MS, a, b, NULL);
	y = conn_create(b, a, &err);
	mock_run(100, MS, a, b, NULL);
	assert_int_equal(y->state, WEFT_EP_UP);
	assert_true(weft_tag_recv(b, NULL, data, sizeof(data), 1, UINT64_MAX, NULL, &got) >= 0);
	mock_run(3000, MS, a, b, NULL);
	assert_int_equal(status_of(sent), 0);
	assert_int_equal(status_of(close), 0);
	weft_request_free(got);
	/* The old connection is gone, the new one lives. */
	assert_int_equal(err.calls, 0);
	assert_int_equal(y->state, WEFT_EP_UP);
	conn_message(y, a, 5000, 2);
	assert_int_equal(conn_close(y, a), 0);
	conn_destroy(ctx, a, b);
}

static enum mock_verdict lose_close(const struct mock_msg_view *m, void *arg)
{
	const struct weft_wire_wireup *h = m->data;

	return m->from == arg && m->am_id == WEFT_WIRE_WIREUP && h->type == WEFT_WIREUP_CLOSE
		       ? MOCK_LATER
		       : MOCK_DELIVER;
}

static void a_peer_that_closes_before_its_last_frame_came_is_a_good_end_of_a_close(void **state)
{
	struct weft_request *close;
	struct pair p;

	(void)state;
	pair_up(&p, "mock:0");
	/* b's CLOSE does not come through; its connection ends all the same. */
	mock_set_filter(lose_close, p.b->ifaces[0]);
	assert_int_equal(weft_ep_close(p.x, 0, NULL, &close), WEFT_INPROGRESS);
	mock_set_window(1);
	weft_worker_progress(p.a);
	assert_int_equal(p.x->state, WEFT_EP_CLOSING);
	mock_kill(p.a->ifaces[0], p.b->ifaces[0], -ECONNRESET,
		  "mock:0: b closed the connection before 1 of its frames arrived");
	weft_worker_progress(p.a);
	assert_int_equal(status_of(close), 0);
	assert_int_equal(p.a->count.eps_failed, 0);
	mock_set_filter(NULL, NULL);
	mock_set_window(0);
	pair_down(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(send_then_close_delivers_everything),
		CONN_TEST(close_calls_back_once),
		CONN_TEST(both_sides_close_at_once),
		CONN_TEST(a_new_endpoint_does_not_adopt_one_whose_peer_is_closing),
		CONN_TEST(a_peer_that_closes_before_its_last_frame_came_is_a_good_end_of_a_close),
		CONN_TEST(closing_a_never_connected_endpoint_is_harmless),
		CONN_TEST(closing_while_connecting_still_delivers),
		CONN_TEST(connect_and_close_again_and_again),
		CONN_TEST(create_and_close_by_both_sides_at_random),
		CONN_TEST(many_endpoints),
		CONN_TEST(force_close_cancels_what_is_under_way),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("ep_close", tests, NULL, NULL);
}
