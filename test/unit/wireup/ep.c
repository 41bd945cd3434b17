/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life of endpoints: failing, flushing, what their calls refuse; workers and their threads.
 */

#include <pthread.h>
#include <unistd.h>

#include "mem/mem.h"
#include "mock/ep_pair.h"

/* ------------------------------------------------------------------ flush */

/*
 * @behaviour U76: flush of an endpoint and of a worker: idle, pending, no room, a peer that refuses
 * or dies
 */
static void flush_completes_in_every_situation(void **state)
{
	struct weft_op_params force =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_FORCE_REQUEST);
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
	/* Behind an unmatched rendezvous: when the peer knows of it. */
	assert_true(weft_tag_send(p.x, big, sizeof(big), 1, NULL, NULL) >= 0);
	mock_hold(NULL);
	assert_int_equal(weft_ep_flush(p.x, NULL, &req), WEFT_INPROGRESS);
	mock_run(50, MS, p.a, p.b, NULL);
	assert_int_equal(weft_request_test(req, NULL), WEFT_INPROGRESS);
	mock_release(NULL);
	mock_run(50, MS, p.a, p.b, NULL);
	assert_int_equal(status_of(req), 0);
	assert_int_equal(weft_tag_recv(p.b, NULL, in, sizeof(in), 1, UINT64_MAX, NULL, &r),
			 WEFT_INPROGRESS);
	mock_run(50, MS, p.a, p.b, NULL);
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

/*
 * @behaviour U69: a killed peer: requests end with the error, one callback, other endpoints
 * continue
 * @behaviour F3
 */
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
	if (req[0])
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

/* The log says what has happened, and not besides what the error number means in general. */
/*
 * @behaviour X17: an error is one sentence, without a general ending
 * @behaviour R47: Each error is one sentence
 */
static void a_failure_is_one_sentence(void **state)
{
	char path[] = "/tmp/weft-test-sentence-XXXXXX", text[4096];
	int fd = mkstemp(path);
	ssize_t n;
	struct pair p;

	(void)state;
	assert_true(fd >= 0);
	pair_up(&p, two_nics);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), 0);
	mock_kill(mock_iface(p.a, 0), mock_iface(p.b, 0), -ETIMEDOUT,
		  "mock:0: 10.0.0.2 answers, but a frame of 1510 bytes was not acknowledged");
	mock_run(10, MS, p.a, NULL);
	assert_int_equal(p.ex.calls, 1);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "was not acknowledged\n"));
	assert_null(strstr(text, weft_strerror(-ETIMEDOUT)));
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, "/dev/null"), 0);
	close(fd);
	unlink(path);
	pair_down(&p);
}

/* @behaviour U74: silent death without traffic is found in time */
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

/* @behaviour U71: after the error callback new operations return the error, progress continues */
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
	if (to_close)
		weft_ep_close(to_close, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	to_close = NULL;
}

/* @behaviour U71 */
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

/* @behaviour U66: a reply after the peer has ended is an error */
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

static void destroying_a_worker_notifies_its_peers(void **state)
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

/* @behaviour U67, X5 */
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

/* @behaviour U82 */
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
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	return NULL;
}

/* @behaviour U82: one worker in several threads; misuse is caught */
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
		CONN_TEST(flush_completes_in_every_situation),
		CONN_TEST(a_killed_peer_fails_its_endpoint_and_no_other),
		CONN_TEST(a_failure_is_one_sentence),
		CONN_TEST(silent_death_is_found_within_the_peer_timeout),
		CONN_TEST(an_endpoint_may_be_closed_in_its_own_error_callback),
		CONN_TEST(an_endpoint_may_be_closed_in_a_completion_on_it),
		CONN_TEST(a_reply_after_the_peer_has_gone_is_an_error),
		CONN_TEST(destroying_a_worker_notifies_its_peers),
		CONN_TEST(wrong_parameters_are_refused),
		CONN_TEST(progress_inside_a_callback_is_refused),
		CONN_TEST(a_multi_threaded_worker_serves_all_threads),
		CONN_TEST(registered_memory_follows_the_interfaces),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("ep", tests, NULL, NULL);
}
