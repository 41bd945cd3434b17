/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What callbacks may do, and what is refused inside them; and the calls that close, cancel and
 * describe: their flags, their answers.
 */

#include "mock/ep_pair.h"

static uint8_t out[60000], in[60000];

struct ended {
	unsigned int calls;
	int status;
};

static void ended_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct ended *e = arg;

	(void)req;
	e->calls++;
	e->status = c->status;
}

/* ------------------------------------------------------------------ closing */

/* @behaviour T24: closing by force validates its flags and parameters */
static void closing_by_force_checks_flags_and_parameters(void **state)
{
	struct ended e = {0, 1};
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_FORCE_REQUEST,
					    .cb = ended_cb, .cb_arg = &e);
	struct weft_op_params bad = WEFT_INIT(struct weft_op_params, .flags = 1u << 20);
	struct weft_request *req;
	struct pair p2;

	(void)state;
	pair_up(&p2, two_nics);
	/* What is wrong closes nothing. */
	assert_int_equal(weft_ep_close(p2.x, 4, NULL, &req), -EINVAL);
	assert_int_equal(weft_ep_close(p2.x, WEFT_EP_CLOSE_F_FORCE | 4, NULL, &req), -EINVAL);
	assert_int_equal(weft_ep_close(p2.x, WEFT_EP_CLOSE_F_FORCE, &bad, &req), -EINVAL);
	assert_int_equal(weft_ep_close(p2.x, 0, &bad, &req), -EINVAL);
	bad.flags = WEFT_OP_F_DELIVERED; /* of puts */
	assert_int_equal(weft_ep_flush(p2.x, &bad, &req), -EINVAL);
	assert_int_equal(weft_worker_flush(p2.a, &bad, &req), -EINVAL);
	bad = (struct weft_op_params){.size = 8};
	assert_int_equal(weft_ep_close(p2.x, WEFT_EP_CLOSE_F_FORCE, &bad, &req), -EINVAL);
	conn_message(p2.x, p2.b, 100, 1);
	/* A request in any case, and its callback later. */
	assert_int_equal(weft_ep_close(p2.x, WEFT_EP_CLOSE_F_FORCE, &p, &req), WEFT_INPROGRESS);
	assert_int_equal(e.calls, 0);
	assert_int_equal(weft_request_test(req, NULL), WEFT_INPROGRESS);
	mock_run(10, MS, p2.a, p2.b, NULL);
	assert_int_equal(e.calls, 1);
	assert_int_equal(e.status, 0);
	assert_int_equal(status_of(req), 0);
	/* The other one has failed by now: the same. */
	assert_int_equal(p2.ey.status, -ECONNRESET);
	assert_int_equal(weft_ep_close(p2.y, 0, &p, NULL), WEFT_INPROGRESS);
	mock_run(10, MS, p2.a, p2.b, NULL);
	assert_int_equal(e.calls, 2);
	pair_down(&p2);
}

/* ------------------------------------------------------------------ cancel, test, query */

/* @behaviour T25: cancel and test return the same; requests are described correctly */
static void cancelling_and_testing_report_the_same(void **state)
{
	struct weft_op_params force =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_FORCE_REQUEST);
	struct weft_request *req;
	struct pair p;

	(void)state;
	pair_up(&p, two_nics);
	assert_int_equal(weft_tag_send(p.x, out, 8, 1, &force, &req), WEFT_INPROGRESS);
	assert_int_equal(weft_request_test(req, NULL), WEFT_INPROGRESS);
	assert_int_equal(weft_request_cancel(req), -EBUSY);
	mock_run(2, MS, p.a, p.b, NULL);
	assert_int_equal(weft_request_test(req, NULL), 0);
	assert_int_equal(weft_request_cancel(req), -EALREADY);
	weft_request_free(req);
	pair_down(&p);
}

static int keep(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	(void)worker;
	*(struct weft_am_data **)arg = msg->desc;
	return WEFT_INPROGRESS;
}

/* @behaviour T25 */
static void requests_are_described_as_what_they_are(void **state)
{
	struct weft_am_send_params am =
		WEFT_INIT(struct weft_am_send_params, .id = 0x2a, .flags = WEFT_AM_SEND_F_RNDV);
	struct weft_am_data *desc = NULL;
	struct weft_request *req, *get;
	char text[200];
	struct pair p;

	(void)state;
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM;
	pair_up(&p, two_nics);
	assert_int_equal(weft_worker_set_am_handler(p.b, 0x2a, keep, &desc, 0), 0);
	assert_int_equal(weft_am_send(p.x, &am, out, sizeof(out), NULL, &req), WEFT_INPROGRESS);
	weft_request_query(req, text, sizeof(text));
	assert_non_null(strstr(text, "active message, rndv/"));
	assert_non_null(strstr(text, "id 0x2a, 60000 bytes"));
	assert_null(strstr(text, "tag"));
	mock_run(20, MS, p.a, p.b, NULL);
	assert_non_null(desc);
	mock_hold(NULL);
	assert_int_equal(weft_am_recv_data(p.b, desc, in, sizeof(in), NULL, &get), WEFT_INPROGRESS);
	weft_request_query(get, text, sizeof(text));
	assert_non_null(strstr(text, "active message receive, id 0x2a"));
	mock_release(NULL);
	mock_run(100, MS, p.a, p.b, NULL);
	assert_int_equal(status_of(req), 0);
	assert_int_equal(status_of(get), 0);
	assert_int_equal(weft_tag_recv(p.b, NULL, in, 5, 1, WEFT_TAG_MASK_FULL, NULL, &get),
			 WEFT_INPROGRESS);
	weft_request_query(get, text, sizeof(text));
	assert_non_null(strstr(text, "tag receive, tag 0x1"));
	assert_int_equal(weft_request_cancel(get), 0);
	weft_request_free(get);
	pair_down(&p);
	mock_features = 0;
}

/* ------------------------------------------------------------------ callbacks of operations */

struct busybody {
	struct pair *p;
	unsigned int calls, progressed;
	struct weft_request *other;
};

/* Everything that is allowed, and what is refused without harm. */
static void busybody_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct busybody *b = arg;

	(void)c;
	b->calls++;
	b->progressed += weft_worker_progress(b->p->a);
	weft_worker_destroy(b->p->a);
	if (b->other) {
		struct weft_request *other = b->other;

		b->other = NULL;
		weft_request_cancel(other); /* its callback frees it */
	}
	weft_request_free(req);
}

/* The callbacks come inside these calls, on a stack that is in the middle of its work. */
/* @behaviour T32 */
static void progress_and_destroy_inside_any_callback_are_refused(void **state)
{
	struct pair p;
	struct busybody b = {.p = &p};
	struct weft_op_params op =
		WEFT_INIT(struct weft_op_params, .cb = busybody_cb, .cb_arg = &b);
	struct weft_request *req;
	unsigned int i;

	(void)state;
	pair_up(&p, two_nics);
	/* weft_request_cancel(), which cancels another one inside. */
	assert_int_equal(weft_tag_recv(p.a, NULL, in, 5, 1, WEFT_TAG_MASK_FULL, &op, &req),
			 WEFT_INPROGRESS);
	assert_int_equal(weft_tag_recv(p.a, NULL, in, 5, 2, WEFT_TAG_MASK_FULL, &op, &b.other),
			 WEFT_INPROGRESS);
	assert_int_equal(weft_request_cancel(req), 0);
	assert_int_equal(b.calls, 2);
	/* weft_ep_close(), whose endpoint is freed by the progress after it, not by one inside. */
	for (i = 0; i < 8; i++)
		assert_int_equal(weft_tag_send_sync(p.x, out, sizeof(out), i, &op, &req),
				 WEFT_INPROGRESS);
	assert_int_equal(weft_tag_recv(p.a, p.x, in, 5, 2, WEFT_TAG_MASK_FULL, &op, &req),
			 WEFT_INPROGRESS);
	assert_int_equal(weft_ep_close(p.x, WEFT_EP_CLOSE_F_FORCE, NULL, NULL), 0);
	assert_int_equal(b.calls, 11);
	assert_int_equal(b.progressed, 0);
	mock_run(5, MS, p.a, p.b, NULL);
	/* Outside they work. */
	p.x = conn_create(p.a, p.b, &p.ex);
	mock_run(50, MS, p.a, p.b, NULL);
	conn_message(p.x, p.b, 100, 1);
	pair_down(&p);
}

struct closer {
	struct weft_ep *ep;
	unsigned int flags;
	unsigned int calls;
	int rc;
};

static void closer_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct closer *k = arg;

	(void)req;
	(void)c;
	k->calls++;
	if (!k->ep)
		return;
	k->rc = weft_ep_close(k->ep, k->flags, NULL, NULL);
	k->ep = NULL;
}

/* @behaviour T32 */
static void a_completion_may_close_the_endpoint_it_is_about(void **state)
{
	static const size_t sizes[] = {8, 3000, 60000};

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		size_t len = sizes[i % 3];
		struct pair p;
		struct closer k[2];
		struct weft_op_params op = WEFT_INIT(struct weft_op_params, .cb = closer_cb);

		pair_up(&p, two_nics);
		k[0] = (struct closer){.ep = p.x, .flags = i < 3 ? WEFT_EP_CLOSE_F_FORCE : 0};
		k[1] = (struct closer){.ep = p.y, .flags = i < 3 ? 0 : WEFT_EP_CLOSE_F_FORCE};
		for (unsigned int n = 0; n < 3; n++) {
			op.cb_arg = &k[1];
			assert_int_equal(weft_tag_recv(p.b, NULL, in, len, n, WEFT_TAG_MASK_FULL,
						       &op, NULL),
					 WEFT_INPROGRESS);
			op.cb_arg = &k[0];
			assert_int_equal(weft_tag_send_sync(p.x, out, len, n, &op, NULL),
					 WEFT_INPROGRESS);
		}
		mock_run(300, MS, p.a, p.b, NULL);
		assert_int_equal(k[0].calls, 3);
		assert_true(k[1].calls >= 1);
		assert_in_range(k[0].rc, 0, 1);
		assert_in_range(k[1].rc, 0, 1);
		pair_down(&p);
	}
}

/* ------------------------------------------------------------------ callbacks of datatypes */

struct rogue {
	struct pair *p;
	struct weft_request *req; /* some operation */
	struct weft_message *msg;
	unsigned int calls, harm; /* calls that were not refused */
};

static void rogue_acts(struct rogue *r)
{
	struct weft_ep_params ep = WEFT_INIT(struct weft_ep_params, .address = out);
	struct weft_am_send_params am = WEFT_INIT(struct weft_am_send_params, .id = 1);
	struct weft_worker *a = r->p->a;
	struct weft_ep *x = r->p->x, *made;

	r->calls++;
	r->harm += weft_ep_close(x, 0, NULL, NULL) != -EBUSY;
	r->harm += weft_ep_close(x, WEFT_EP_CLOSE_F_FORCE, NULL, NULL) != -EBUSY;
	r->harm += weft_ep_create(a, &ep, &made) != -EBUSY;
	r->harm += weft_ep_flush(x, NULL, NULL) != -EBUSY;
	r->harm += weft_worker_flush(a, NULL, NULL) != -EBUSY;
	r->harm += weft_ep_fence(x) != -EBUSY;
	r->harm += weft_worker_fence(a) != -EBUSY;
	r->harm += weft_tag_send(x, out, 8, 9, NULL, NULL) != -EBUSY;
	r->harm += weft_tag_send_sync(x, out, 8, 9, NULL, NULL) != -EBUSY;
	r->harm += weft_tag_recv(a, NULL, in, 8, 9, WEFT_TAG_MASK_FULL, NULL, NULL) != -EBUSY;
	r->harm += weft_tag_probe(a, NULL, 9, WEFT_TAG_MASK_FULL, NULL, NULL, NULL) != -EBUSY;
	r->harm += weft_tag_msg_recv(r->p->b, r->msg, in, 8, NULL, NULL) != -EBUSY;
	weft_tag_msg_drop(r->p->b, r->msg);
	r->harm += weft_am_send(x, &am, out, 8, NULL, NULL) != -EBUSY;
	r->harm += weft_request_cancel(r->req) != -EBUSY;
	r->harm += weft_worker_progress(a) != 0;
	r->harm += weft_worker_wait(a, 0) != -EBUSY;
	r->harm += weft_worker_arm(a) != -EBUSY;
	weft_worker_destroy(a);
}

static void *rogue_start(void *arg, const void *buffer, size_t count)
{
	(void)buffer;
	(void)count;
	rogue_acts(arg);
	return arg;
}

static void *rogue_start_unpack(void *arg, void *buffer, size_t count)
{
	return rogue_start(arg, buffer, count);
}

static size_t rogue_size(void *state)
{
	rogue_acts(state);
	return sizeof(out);
}

static ssize_t rogue_pack(void *state, size_t off, void *dst, size_t max)
{
	rogue_acts(state);
	memcpy(dst, out + off, max);
	return (ssize_t)max;
}

static int rogue_unpack(void *state, size_t off, const void *src, size_t len)
{
	rogue_acts(state);
	return memcmp(out + off, src, len) ? -EIO : 0;
}

static const struct weft_generic_ops rogue_ops = {
	.size = sizeof(rogue_ops),
	.start_pack = rogue_start,
	.start_unpack = rogue_start_unpack,
	.packed_size = rogue_size,
	.pack = rogue_pack,
	.unpack = rogue_unpack,
	.finish = (void (*)(void *))rogue_acts,
};

/*
 * @behaviour T32: a datatype's callback that calls the library is refused without harm; completions
 * may close their endpoint
 */
static void a_datatype_that_calls_the_library_is_refused_and_harms_nothing(void **state)
{
	static const char *const thresh[] = {"RNDV_THRESH=inf", "RNDV_THRESH=1"};

	(void)state;
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM;
	for (int k = 0; k < 2; k++) {
		struct pair p;
		struct rogue r = {.p = &p};
		struct weft_datatype type =
			WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC,
				  .ops = &rogue_ops, .arg = &r);
		struct weft_op_params op = WEFT_INIT(struct weft_op_params, .datatype = &type);
		struct weft_request *req[2];

		memset(&p, 0, sizeof(p));
		p.ctx = mock_context(thresh[k], "MULTI_EAGER_LIMIT=1M", "LOG_FILE=/dev/null", NULL);
		p.a = mock_worker(p.ctx, two_nics);
		p.b = mock_worker(p.ctx, two_nics);
		p.x = conn_create(p.a, p.b, &p.ex);
		mock_run(100, MS, p.a, p.b, NULL);
		for (size_t i = 0; i < sizeof(out); i++)
			out[i] = (uint8_t)(i * 7);
		assert_int_equal(weft_tag_recv(p.a, NULL, in, 8, 77, WEFT_TAG_MASK_FULL, NULL,
					       &r.req),
				 WEFT_INPROGRESS);
		assert_in_range(weft_tag_send(p.x, out, 8, 78, NULL, NULL), 0, 1);
		mock_run(10, MS, p.a, p.b, NULL);
		assert_int_equal(
			weft_tag_probe(p.b, NULL, 78, WEFT_TAG_MASK_FULL, NULL, &r.msg, NULL), 0);
		assert_int_equal(weft_tag_recv(p.b, NULL, NULL, 0, 1, WEFT_TAG_MASK_FULL, &op,
					       &req[1]),
				 WEFT_INPROGRESS);
		assert_int_equal(weft_tag_send_sync(p.x, NULL, 0, 1, &op, &req[0]),
				 WEFT_INPROGRESS);
		mock_run(300, MS, p.a, p.b, NULL);
		assert_int_equal(status_of(req[0]), 0);
		assert_int_equal(status_of(req[1]), 0);
		assert_true(r.calls >= 8);
		assert_int_equal(r.harm, 0);
		/* All of it is as it was. */
		weft_tag_msg_drop(p.b, r.msg);
		assert_int_equal(weft_request_cancel(r.req), 0);
		weft_request_free(r.req);
		conn_message(p.x, p.b, 100, 1);
		pair_down(&p);
	}
	mock_features = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(closing_by_force_checks_flags_and_parameters),
		CONN_TEST(cancelling_and_testing_report_the_same),
		CONN_TEST(requests_are_described_as_what_they_are),
		CONN_TEST(progress_and_destroy_inside_any_callback_are_refused),
		CONN_TEST(a_completion_may_close_the_endpoint_it_is_about),
		CONN_TEST(a_datatype_that_calls_the_library_is_refused_and_harms_nothing),
	};

	return cmocka_run_group_tests_name("callbacks", tests, NULL, NULL);
}
