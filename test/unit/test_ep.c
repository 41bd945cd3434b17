/* SPDX-License-Identifier: BSD-3-Clause */

/* Life of endpoints: closing, failing, flushing; workers and their threads. */

#include <pthread.h>

#include "conn_util.h"
#include "rounds.h"

static const char two_nics[] = "mock:0;mock:1";

struct pair {
	struct weft_context *ctx;
	struct weft_worker *a, *b;
	struct weft_ep *x, *y; /* a to b, b to a; both owned */
	struct mock_err ex, ey;
};

static void pair_up(struct pair *p, const char *lanes)
{
	memset(p, 0, sizeof(*p));
	p->ctx =
		mock_context("CONNECT_TIMEOUT=30s", "PEER_TIMEOUT=30s", "LOG_FILE=/dev/null", NULL);
	p->a = mock_worker(p->ctx, lanes);
	p->b = mock_worker(p->ctx, lanes);
	p->x = conn_create(p->a, p->b, &p->ex);
	p->y = conn_create(p->b, p->a, &p->ey);
	mock_run(100, MS, p->a, p->b, NULL);
	assert_int_equal(p->x->state, WEFT_EP_UP);
	assert_int_equal(p->y->state, WEFT_EP_UP);
}

static void pair_down(struct pair *p)
{
	conn_destroy(p->ctx, p->a, p->b);
}

static int status_of(struct weft_request *req)
{
	int status = weft_request_test(req, NULL);

	weft_request_free(req);
	return status;
}

/* ------------------------------------------------------------------ close */

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
			if (r[i] != NULL && status_of(r[i]) != 0)
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
	assert_int_equal(mock_num_leps(), 0);
	pair_down(&p);
}

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
		if (cy != NULL)
			assert_int_equal(status_of(cy), 0);
		assert_int_equal(mock_num_leps(), 0);
		pair_down(&p);
		mock_reset();
	}
}

/* ------------------------------------------------------------------ what is closing is not adopted */

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

static void a_peer_that_closes_before_its_last_frame_came_is_a_good_end_for_who_closes(void **state)
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
	assert_int_equal(weft_ep_close(ep, WEFT_EP_CLOSE_FORCE, NULL, NULL), 0);
	/* With a message that wants to be delivered: until the timeout. */
	ep = mock_connect(a, b);
	assert_int_equal(weft_tag_send_sync(ep, "x", 1, 1, NULL, &send), WEFT_INPROGRESS);
	assert_int_equal(weft_ep_close(ep, 0, NULL, &req), WEFT_INPROGRESS);
	mock_run(2500, MS, a, b, NULL);
	assert_int_equal(status_of(req), -ETIMEDOUT);
	assert_int_equal(status_of(send), -ETIMEDOUT);
	mock_run(1, MS, a, b, NULL);
	assert_int_equal(mock_num_leps(), 0);
	conn_destroy(ctx, a, b);
}

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

static void connect_and_close_again_and_again(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=20s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x, *y;
	unsigned int i;

	(void)state;
	/* One side only. */
	for (i = 0; i < 300; i++) {
		x = mock_connect(a, b);
		if (i % 3)
			conn_message(x, b, i, i);
		assert_int_equal(conn_close(x, b), 0);
	}
	/* Both sides; the connection that the first has begun is the second's as well. */
	for (i = 0; i < 300; i++) {
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
	assert_int_equal(mock_num_leps(), 0);
	conn_destroy(ctx, a, b);
}

/*
 * Endpoints made and closed by both sides at random, with and without force, while messages go to
 * and fro.
 */
static void create_and_close_by_both_sides_at_random(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=20s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w[2];
	struct weft_ep *eps[2][8];
	static uint8_t data[20000];
	unsigned int seed, i, k, who;
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
			who = r >> 31;
			k = r >> 20 & 7;
			if (eps[who][k] == NULL)
				eps[who][k] = mock_connect(w[who], w[1 - who]);
			else if ((r >> 16 & 3) == 0) {
				assert_true(weft_ep_close(eps[who][k], r >> 18 & 1, NULL, NULL) >=
					    0);
				eps[who][k] = NULL;
			} else
				weft_tag_send(eps[who][k], data, r >> 8 & 0x3fff, 1, NULL, NULL);
			weft_tag_recv(w[who], NULL, data, sizeof(data), 1, UINT64_MAX, NULL, NULL);
			mock_run(r >> 24 & 3, MS, w[r >> 28 & 1], NULL);
		}
		for (who = 0; who < 2; who++)
			for (k = 0; k < 8; k++)
				if (eps[who][k] != NULL)
					weft_ep_close(eps[who][k], 0, NULL, NULL);
		mock_set_eagain(NULL, 0);
		mock_run(3000, 20 * MS, w[0], w[1], NULL);
		/* All gone, on both sides, whatever crossed. */
		if (w[0]->num_eps + w[1]->num_eps != 0 || mock_num_leps() != 0)
			fail_msg("seed %u: endpoints %u %u, connections %u", seed, w[0]->num_eps,
				 w[1]->num_eps, mock_num_leps());
		weft_worker_destroy(w[0]);
		weft_worker_destroy(w[1]);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

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
		assert_int_equal(weft_ep_close(eps[i], WEFT_EP_CLOSE_FORCE, NULL, NULL), 0);
	mock_run(10, MS, a, b, NULL);
	assert_int_equal(b->num_eps, 0);
	conn_destroy(ctx, a, b);
}

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
	assert_int_equal(weft_ep_close(p.x, WEFT_EP_CLOSE_FORCE, NULL, NULL), 0);
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

/* ------------------------------------------------------------------ flush */

static void flush_completes_in_every_situation(void **state)
{
	struct weft_op_params force =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_FORCE_REQUEST);
	static uint8_t big[300000], in[300000];
	struct weft_request *req, *r;
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	/* Nothing outstanding. */
	assert_int_equal(weft_ep_flush(p.x, NULL, &req), 0);
	assert_null(req);
	/* The same, as a request. */
	assert_int_equal(weft_ep_flush(p.x, &force, &req), WEFT_INPROGRESS);
	mock_run(2, MS, p.a, p.b, NULL);
	assert_int_equal(status_of(req), 0);
	/* Behind an unmatched rendezvous: not before it is matched. */
	assert_true(weft_tag_send(p.x, big, sizeof(big), 1, NULL, NULL) >= 0);
	assert_int_equal(weft_ep_flush(p.x, NULL, &req), WEFT_INPROGRESS);
	mock_run(50, MS, p.a, p.b, NULL);
	assert_int_equal(weft_request_test(req, NULL), WEFT_INPROGRESS);
	assert_int_equal(weft_tag_recv(p.b, NULL, in, sizeof(in), 1, UINT64_MAX, NULL, &r),
			 WEFT_INPROGRESS);
	mock_run(50, MS, p.a, p.b, NULL);
	assert_int_equal(status_of(req), 0);
	assert_int_equal(status_of(r), 0);
	/* With lanes that have no room. */
	mock_set_eagain(NULL, 700);
	assert_true(weft_tag_send(p.x, big, 5000, 1, NULL, NULL) >= 0);
	assert_int_equal(weft_ep_flush(p.x, NULL, &req), WEFT_INPROGRESS);
	mock_run(200, MS, p.a, p.b, NULL);
	assert_int_equal(status_of(req), 0);
	mock_set_eagain(NULL, 0);
	/* The peer dies: the flush ends with what killed it. */
	mock_hold(NULL);
	assert_true(weft_tag_send(p.x, big, 5000, 1, NULL, NULL) >= 0);
	assert_int_equal(weft_ep_flush(p.x, NULL, &req), WEFT_INPROGRESS);
	mock_kill(NULL, NULL, -ETIMEDOUT, "no sign of life");
	mock_run(10, MS, p.a, p.b, NULL);
	assert_int_equal(status_of(req), -ETIMEDOUT);
	mock_release(NULL);
	assert_int_equal(weft_ep_flush(p.x, NULL, &req), -ETIMEDOUT);
	weft_ep_close(p.x, 0, NULL, NULL);
	weft_ep_close(p.y, 0, NULL, NULL);
	pair_down(&p);
}

/* ------------------------------------------------------------------ failure */

static void a_killed_peer_fails_its_endpoint_and_no_other(void **state)
{
	static uint8_t big[500000];
	struct weft_request *req[3];
	struct mock_err err = {0};
	struct weft_worker *c;
	struct weft_ep *z;
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	c = mock_worker(p.ctx, two_nics);
	z = conn_create(p.a, c, &err);
	mock_run(50, MS, p.a, p.b, c, NULL);
	mock_hold(NULL);
	assert_true(weft_tag_send(p.x, big, 5000, 1, NULL, &req[0]) >= 0);
	assert_int_equal(weft_tag_send(p.x, big, sizeof(big), 1, NULL, &req[1]), WEFT_INPROGRESS);
	assert_int_equal(weft_tag_recv(p.a, p.x, big, 1, 1, UINT64_MAX, NULL, &req[2]),
			 WEFT_INPROGRESS);
	mock_kill(mock_iface(p.a, 0), mock_iface(p.b, 0), -ETIMEDOUT,
		  "mock:0: peer mock-103 gave no answer in 30 s");
	mock_run(10, MS, p.a, NULL);
	mock_release(NULL);
	assert_int_equal(p.ex.calls, 1);
	assert_int_equal(p.ex.status, -ETIMEDOUT);
	assert_non_null(strstr(p.ex.why, "mock-103"));
	if (req[0] != NULL)
		assert_int_equal(status_of(req[0]), -ETIMEDOUT);
	assert_int_equal(status_of(req[1]), -ETIMEDOUT);
	assert_int_equal(status_of(req[2]), -ETIMEDOUT);
	/* New operations say so too, and the rest of the worker goes on. */
	assert_int_equal(weft_tag_send(p.x, "x", 1, 1, NULL, NULL), -ETIMEDOUT);
	mock_run(10, MS, p.a, p.b, c, NULL);
	assert_int_equal(p.ex.calls, 1);
	assert_int_equal(p.ey.calls, 1);
	assert_int_equal(err.calls, 0);
	conn_message(z, c, 100000, 7);
	assert_int_equal(weft_ep_close(p.x, 0, NULL, NULL), 0);
	assert_int_equal(weft_ep_close(p.y, 0, NULL, NULL), 0);
	assert_int_equal(conn_counter(p.a, "ep.failed"), 1);
	weft_worker_destroy(c);
	pair_down(&p);
}

static void silent_death_is_found_within_the_peer_timeout(void **state)
{
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	mock_mute(mock_iface(p.b, 0));
	mock_mute(mock_iface(p.b, 1));
	mock_run(299, 100 * MS, p.a, NULL);
	assert_int_equal(p.ex.calls, 0);
	mock_run(4, 100 * MS, p.a, NULL);
	assert_int_equal(p.ex.calls, 1);
	assert_int_equal(p.ex.status, -ETIMEDOUT);
	pair_down(&p);
}

static void close_in_the_error_callback(struct weft_ep *ep, int status, const char *why, void *arg)
{
	(void)status;
	(void)why;
	++*(unsigned int *)arg;
	assert_int_equal(weft_ep_close(ep, 0, NULL, NULL), 0);
}

static void an_endpoint_may_be_closed_in_its_own_error_callback(void **state)
{
	unsigned int calls = 0;
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	p.x->err_cb = close_in_the_error_callback;
	p.x->err_arg = &calls;
	mock_kill(NULL, NULL, -EIO, "the card is gone");
	mock_run(5, MS, p.a, p.b, NULL);
	assert_int_equal(calls, 1);
	assert_int_equal(p.a->num_eps, 0);
	pair_down(&p);
}

static struct weft_ep *to_close;

static void close_in_a_callback(struct weft_request *req, const struct weft_completion *c,
				void *arg)
{
	(void)req;
	(void)c;
	(void)arg;
	if (to_close != NULL)
		weft_ep_close(to_close, WEFT_EP_CLOSE_FORCE, NULL, NULL);
	to_close = NULL;
}

static void an_endpoint_may_be_closed_in_a_completion_on_it(void **state)
{
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .cb = close_in_a_callback);
	static uint8_t big[300000], in[300000];
	unsigned int size;
	struct pair p;

	(void)state;
	for (size = 0; size < 3; size++) {
		pair_up(&p, two_nics);
		to_close = p.y;
		weft_tag_recv(p.b, p.y, in, sizeof(in), 1, UINT64_MAX, &params, NULL);
		weft_tag_send(p.x, big,
			      size == 0   ? 8
			      : size == 1 ? 30000
					  : sizeof(big),
			      1, NULL, NULL);
		mock_run(100, MS, p.a, p.b, NULL);
		assert_null(to_close);
		assert_int_equal(p.b->num_eps, 0);
		assert_int_equal(p.ex.calls, 1);
		pair_down(&p);
		mock_reset();
	}
}

static void a_reply_after_the_peer_has_gone_is_an_error(void **state)
{
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	assert_int_equal(conn_close(p.x, p.b), 0);
	mock_run(5, MS, p.b, NULL);
	assert_int_equal(weft_tag_send(p.y, "x", 1, 1, NULL, NULL), -ECONNRESET);
	assert_int_equal(weft_ep_flush(p.y, NULL, NULL), -ECONNRESET);
	pair_down(&p);
}

static void destroying_a_worker_tells_its_peers(void **state)
{
	struct weft_request *req;
	static uint8_t big[500000];
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	assert_int_equal(weft_tag_send(p.x, big, sizeof(big), 1, NULL, NULL), WEFT_INPROGRESS);
	assert_int_equal(weft_tag_send(p.y, big, sizeof(big), 1, NULL, &req), WEFT_INPROGRESS);
	mock_run(5, MS, p.a, p.b, NULL);
	weft_worker_destroy(p.a);
	mock_run(5, MS, p.b, NULL);
	assert_int_equal(p.ey.calls, 1);
	assert_int_equal(p.ey.status, -ECONNRESET);
	assert_int_equal(status_of(req), -ECONNRESET);
	weft_worker_destroy(p.b);
	assert_int_equal(weft_context_destroy(p.ctx), 0);
}

/* ------------------------------------------------------------------ calls */

static void wrong_parameters_are_refused(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=2s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *none;
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params);
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params);
	uint8_t junk[100] = {1, 2, 3};
	struct weft_ep *ep;

	(void)state;
	assert_int_equal(weft_ep_create(a, NULL, &ep), -EINVAL);
	assert_int_equal(weft_ep_create(a, &p, &ep), -EINVAL); /* empty address */
	p.address = junk;
	p.address_length = sizeof(junk);
	assert_int_equal(weft_ep_create(a, &p, &ep), -EINVAL);
	p.size = 0;
	assert_int_equal(weft_ep_create(a, &p, &ep), -EINVAL);
	wp.lanes = "mock:0,fail";
	assert_int_equal(weft_worker_create(ctx, &wp, &none), -ENODEV);
	wp.lanes = "mock:0,busy";
	assert_int_equal(weft_worker_create(ctx, &wp, &none), -EBUSY);
	wp.lanes = "mock:*,fail";
	assert_int_equal(weft_worker_create(ctx, &wp, &none), -ENODEV);
	wp.lanes = "mok:0";
	assert_int_equal(weft_worker_create(ctx, &wp, &none), -EINVAL);
	wp.lanes = "mock:0,bandwith=3";
	assert_int_equal(weft_worker_create(ctx, &wp, &none), -EINVAL);
	assert_int_equal(weft_context_destroy(ctx), -EBUSY);
	weft_worker_destroy(a);
	weft_worker_destroy(NULL);
	assert_int_equal(weft_context_destroy(ctx), 0);
	assert_int_equal(weft_context_destroy(NULL), 0);
}

static unsigned int inner;

static void progress_in_a_callback(struct weft_request *req, const struct weft_completion *c,
				   void *arg)
{
	(void)req;
	(void)c;
	inner += weft_worker_progress(arg);
	weft_worker_destroy(arg); /* refused, too */
}

static void progress_inside_a_callback_is_refused(void **state)
{
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .cb = progress_in_a_callback);
	char in[8];
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	params.cb_arg = p.b;
	inner = 0;
	assert_int_equal(weft_tag_recv(p.b, NULL, in, 8, 1, UINT64_MAX, &params, NULL),
			 WEFT_INPROGRESS);
	weft_tag_send(p.x, "x", 1, 1, NULL, NULL);
	mock_run(5, MS, p.a, p.b, NULL);
	assert_int_equal(inner, 0);
	conn_message(p.x, p.b, 10, 2);
	pair_down(&p);
}

/* One worker, four threads: each sends to itself over its own loopback endpoint, all progress. */

#define THREADS 4
#define MESSAGES 300

struct job {
	struct weft_worker *w;
	unsigned int n;
	int failed;
};

static void *job_run(void *arg)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params);
	struct job *job = arg;
	struct weft_request *r, *s;
	uint8_t out[3000], in[3000];
	struct weft_ep *ep;
	void *address;
	unsigned int i;
	int rr, rs;

	if (weft_worker_get_address(job->w, &address, &p.address_length) < 0)
		return NULL;
	p.address = address;
	job->failed = weft_ep_create(job->w, &p, &ep);
	weft_worker_release_address(job->w, address);
	for (i = 0; i < MESSAGES && !job->failed; i++) {
		memset(out, (int)(i + job->n), sizeof(out));
		rr = weft_tag_recv(job->w, NULL, in, sizeof(in), job->n, UINT64_MAX, NULL, &r);
		rs = weft_tag_send(ep, out, sizeof(out), job->n, NULL, &s);
		while ((rr == 1 && weft_request_test(r, NULL) == 1) ||
		       (rs == 1 && weft_request_test(s, NULL) == 1))
			weft_worker_progress(job->w);
		if (rr == 1)
			weft_request_free(r);
		if (rs == 1)
			weft_request_free(s);
		job->failed |= rr < 0 || rs < 0 || memcmp(out, in, sizeof(in)) != 0;
	}
	weft_ep_close(ep, WEFT_EP_CLOSE_FORCE, NULL, NULL);
	return NULL;
}

static void a_multi_threaded_worker_serves_all_threads(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=2s", NULL);
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params,
						 .thread_mode = WEFT_THREAD_MULTI, .lanes = "self");
	struct job jobs[THREADS] = {0};
	pthread_t threads[THREADS];
	struct weft_worker *w;
	unsigned int i;

	(void)state;
	assert_int_equal(weft_worker_create(ctx, &wp, &w), 0);
	for (i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){.w = w, .n = i};
		assert_int_equal(pthread_create(&threads[i], NULL, job_run, &jobs[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(jobs[i].failed, 0);
	}
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void registered_memory_follows_the_interfaces(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=2s", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0,reg;mock:1,reg"), *b;
	struct weft_mem *mem;
	static uint8_t buf[100000];

	(void)state;
	assert_int_equal(weft_mem_register(ctx, buf, 0, NULL, &mem), -EINVAL);
	assert_int_equal(weft_mem_register(ctx, buf, sizeof(buf), NULL, &mem), 0);
	/* One registration for the domain, whatever opens and closes. */
	assert_int_equal(mock_num_mems(), 1);
	assert_non_null(weft_mem_lane_of(mem, mock_iface(a, 0)));
	assert_ptr_equal(weft_mem_lane_of(mem, mock_iface(a, 0)),
			 weft_mem_lane_of(mem, mock_iface(a, 1)));
	assert_null(weft_mem_lane_of(mem, mock_iface(a, 2))); /* self */
	b = mock_worker(ctx, "mock:0,reg");
	assert_int_equal(mock_num_mems(), 1);
	weft_worker_destroy(a);
	assert_non_null(weft_mem_lane_of(mem, mock_iface(b, 0)));
	weft_worker_destroy(b);
	assert_int_equal(mock_num_mems(), 0);
	assert_int_equal(weft_context_destroy(ctx), -EBUSY);
	mem->refs = 1;
	assert_int_equal(weft_mem_deregister(mem), -EBUSY);
	mem->refs = 0;
	assert_int_equal(weft_mem_deregister(mem), 0);
	assert_int_equal(weft_mem_deregister(NULL), 0);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(send_then_close_delivers_everything),
		CONN_TEST(close_calls_back_once),
		CONN_TEST(both_sides_close_at_once),
		CONN_TEST(a_new_endpoint_does_not_adopt_one_whose_peer_is_closing),
		CONN_TEST(
			a_peer_that_closes_before_its_last_frame_came_is_a_good_end_for_who_closes),
		CONN_TEST(closing_a_never_connected_endpoint_is_harmless),
		CONN_TEST(closing_while_connecting_still_delivers),
		CONN_TEST(connect_and_close_again_and_again),
		CONN_TEST(create_and_close_by_both_sides_at_random),
		CONN_TEST(many_endpoints),
		CONN_TEST(force_close_cancels_what_is_under_way),
		CONN_TEST(flush_completes_in_every_situation),
		CONN_TEST(a_killed_peer_fails_its_endpoint_and_no_other),
		CONN_TEST(silent_death_is_found_within_the_peer_timeout),
		CONN_TEST(an_endpoint_may_be_closed_in_its_own_error_callback),
		CONN_TEST(an_endpoint_may_be_closed_in_a_completion_on_it),
		CONN_TEST(a_reply_after_the_peer_has_gone_is_an_error),
		CONN_TEST(destroying_a_worker_tells_its_peers),
		CONN_TEST(wrong_parameters_are_refused),
		CONN_TEST(progress_inside_a_callback_is_refused),
		CONN_TEST(a_multi_threaded_worker_serves_all_threads),
		CONN_TEST(registered_memory_follows_the_interfaces),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("ep", tests, NULL, NULL);
}
