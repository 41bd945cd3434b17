/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a send leaves, when its buffer is free, and when it is there: WEFT_WORKER_F_SEND_NOW,
 * WEFT_OP_F_MORE, weft_worker_kick(), WEFT_OP_F_INJECT, WEFT_OP_F_DELIVERED. That a frame leaves in
 * the call over raw lanes is shown in the simulator (sim/sys_message.c).
 */

#include "common/op.h"
#include "mock/ep_pair.h"
#include "msg/msg.h"

#define MOST 8192u

static uint8_t out[300000], in[300000];

static void up(struct pair *p, const char *lanes, uint64_t seed)
{
	mock_reset();
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM | WEFT_FEATURE_RMA;
	mock_seed(seed + 1);
	pair_up(p, lanes);
	mock_features = 0;
}

static int ended(struct pair *p, struct weft_request *req)
{
	for (int i = 0; i < 5000 && weft_request_test(req, NULL) == WEFT_INPROGRESS; i++)
		mock_run(1, MS, p->a, p->b, NULL);
	return status_of(req);
}

static const size_t lens[] = {0, 1, 8, 250, 257, 1000, 4000, 4096, 5000, MOST};

#define NUM_LENS (sizeof(lens) / sizeof(*lens))

/* The buffer is overwritten at once, whatever the lanes say, connected or not. */
static void an_injected_buffer_is_free_at_once(void **state)
{
	static const char *const lanes[] = {"mock:0;mock:1", "mock:0,bcopy=0,zcopy=0",
					    "mock:0,zcopy=100000", "mock:0,short=64,bcopy=900"};
	struct pair p;

	(void)state;
	for (unsigned int i = 0; i < NUM_LENS * 16; i++) {
		size_t len = lens[i / 16], cut = len / 3;
		bool am = i & 4, iov = i & 8;
		struct iovec v[2] = {{out, cut}, {out + cut, len - cut}};
		struct weft_datatype dt = {.size = sizeof(dt), .dt_class = WEFT_DT_IOV};
		struct weft_op_params sp =
			WEFT_INIT(struct weft_op_params,
				  .flags = WEFT_OP_F_INJECT | (i & 1 ? WEFT_OP_F_IMM : 0),
				  .datatype = iov ? &dt : NULL, .imm = 5);
		struct weft_am_send_params a = WEFT_INIT(struct weft_am_send_params, .id = 1);
		struct weft_request *s, *r;
		int rc;

		up(&p, lanes[i % 4], i);
		pattern_fill(i, 0, out, len);
		/* Nearly no room at first. */
		mock_set_eagain(NULL, i % 3 * 490);
		rc = am ? weft_am_send(p.x, &a, iov ? (void *)v : out, iov ? 2 : len, &sp, &s)
			: weft_tag_send(p.x, iov ? (void *)v : out, iov ? 2 : len, 3, &sp, &s);
		assert_true(rc >= 0);
		memset(out, 0xee, len);
		memset(v, 0xff, sizeof(v));
		if (!am) {
			rc = weft_tag_recv(p.b, NULL, in, len, 3, UINT64_MAX, NULL, &r);
			assert_int_equal(rc, WEFT_INPROGRESS);
			assert_int_equal(ended(&p, r), 0);
			pattern_expect(i, in, len);
		}
		if (s)
			assert_int_equal(ended(&p, s), 0);
		pair_down(&p);
	}
}

static void injecting_has_a_bound(void **state)
{
	struct weft_op_params sp = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_INJECT);
	struct weft_am_send_params a = WEFT_INIT(struct weft_am_send_params, .id = 1);
	struct weft_request *s;
	struct pair p;

	(void)state;
	up(&p, two_nics, 0);
	assert_int_equal(weft_tag_send(p.x, out, WEFT_INJECT_MAX + 1, 1, &sp, &s), -EMSGSIZE);
	assert_int_equal(weft_am_send(p.x, &a, out, WEFT_INJECT_MAX + 1, &sp, &s), -EMSGSIZE);
	assert_int_equal(weft_tag_recv(p.b, NULL, in, 1, 1, 0, &sp, &s), -EINVAL);
	assert_int_equal(weft_ep_flush(p.x, &sp, &s), -EINVAL);
	pair_down(&p);
}

/* Done means there: a probe finds it, before that it does not end. */
static void what_is_delivered_is_found(void **state)
{
	struct weft_op_params sp = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_DELIVERED);
	struct weft_request *s;
	struct pair p;

	(void)state;
	for (unsigned int i = 0; i < NUM_LENS * 4; i++) {
		size_t len = lens[i / 4];
		int rc;

		up(&p, i % 2 ? two_nics : "mock:0,bcopy=700,zcopy=0", i);
		mock_set_order(MOCK_RANDOM);
		assert_true(weft_tag_send(p.x, out, 8, 2, NULL, NULL) >= 0);
		mock_hold(NULL);
		rc = weft_tag_send(p.x, out, len, 1, &sp, &s);
		assert_int_equal(rc, WEFT_INPROGRESS);
		mock_run(20, MS, p.a, p.b, NULL);
		assert_int_equal(weft_request_test(s, NULL), WEFT_INPROGRESS);
		mock_release(NULL);
		assert_int_equal(ended(&p, s), 0);
		assert_int_equal(weft_tag_probe(p.b, NULL, 1, UINT64_MAX, NULL, NULL, NULL), 0);
		pair_down(&p);
	}
}

static int flushes;

/* Frames are a matter of the lanes: which calls ask them to send. */
static void (*mock_flush)(struct weft_lane_iface *iface);

static void counting_flush(struct weft_lane_iface *iface)
{
	flushes++;
	mock_flush(iface);
}

static int count(struct weft_worker *w)
{
	int n = flushes;

	flushes = 0;
	w->ifaces[0]->tx_open = true;
	return n;
}

static void calls_flush_only_if_they_shall(void **state)
{
	struct weft_op_params more = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_MORE);
	struct weft_op_params wrong = WEFT_INIT(struct weft_op_params, .flags = 1u << 30);
	struct weft_am_send_params a = WEFT_INIT(struct weft_am_send_params, .id = 1);
	struct weft_lane_ops ops;
	struct weft_lane_iface *iface;
	struct pair p;

	(void)state;
	for (unsigned int now = 0; now < 2; now++) {
		up(&p, "mock:0", now);
		p.a->send_now = now;
		p.x->msg->send_now = now;
		iface = p.a->ifaces[0];
		ops = *iface->ops;
		mock_flush = ops.tx_flush;
		ops.tx_flush = counting_flush;
		iface->ops = &ops;
		count(p.a);
		weft_tag_send(p.x, out, 8, 1, NULL, NULL);
		assert_int_equal(count(p.a), now);
		weft_tag_send(p.x, out, 8, 1, &more, NULL);
		assert_int_equal(count(p.a), 0);
		weft_tag_send(p.x, out, 3000, 1, NULL, NULL);
		assert_int_equal(count(p.a), now);
		weft_tag_send(p.x, out, 3000, 1, &more, NULL);
		assert_int_equal(count(p.a), 0);
		weft_am_send(p.x, &a, out, 8, NULL, NULL);
		assert_int_equal(count(p.a), now);
		weft_am_send(p.x, &a, out, 8, &more, NULL);
		assert_int_equal(count(p.a), 0);
		weft_worker_kick(p.a);
		assert_int_equal(count(p.a), 1);
		assert_int_equal(weft_tag_send(p.x, out, 8, 1, &wrong, NULL), -EINVAL);
		flushes = 0;
		p.a->ifaces[0]->tx_open = false;
		weft_worker_kick(p.a);
		assert_int_equal(flushes, 0);
		weft_worker_kick(NULL);
		pair_down(&p);
	}
}

static int posted;

static void counting_posted(struct weft_lane_iface *iface)
{
	(void)iface;
	posted++;
}

/* A lane may let short frames wait behind a post, but not behind a kick or a progress call. */
static void a_lane_may_treat_posts_apart(void **state)
{
	struct weft_op_params more = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_MORE);
	struct weft_op_params polled = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_POLLED);
	struct weft_lane_ops ops;
	struct weft_lane_iface *iface;
	struct pair p;

	(void)state;
	up(&p, "mock:0", 1);
	p.a->send_now = p.x->msg->send_now = true;
	iface = p.a->ifaces[0];
	ops = *iface->ops;
	mock_flush = ops.tx_flush;
	ops.tx_flush = counting_flush;
	ops.tx_posted = counting_posted;
	iface->ops = &ops;
	count(p.a);
	posted = 0;
	weft_tag_send(p.x, out, 8, 1, &polled, NULL);
	assert_int_equal(posted, 1);
	weft_tag_send(p.x, out, 8, 1, &more, NULL);
	assert_int_equal(posted, 1);
	assert_int_equal(count(p.a), 0);
	weft_worker_kick(p.a);
	assert_int_equal(count(p.a), 1);
	weft_tag_send(p.x, out, 8, 1, NULL, NULL);
	assert_int_equal(posted, 1);
	assert_int_equal(count(p.a), 1);
	weft_worker_progress(p.a);
	assert_int_equal(count(p.a), 1);
	p.a->ifaces[0]->tx_open = false;
	weft_tag_send(p.x, out, 8, 1, &polled, NULL);
	assert_int_equal(posted, 1);
	pair_down(&p);
}

static void the_flag_is_a_worker_parameter(void **state)
{
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .lanes = "mock:0");
	struct weft_context *ctx = mock_context("LOG_FILE=/dev/null", NULL);
	struct weft_worker *w;

	(void)state;
	wp.flags = 2;
	assert_int_equal(weft_worker_create(ctx, &wp, &w), -EINVAL);
	wp.flags = WEFT_WORKER_F_SEND_NOW;
	assert_int_equal(weft_worker_create(ctx, &wp, &w), 0);
	assert_true(w->send_now);
	weft_worker_destroy(w);
	wp.size = offsetof(struct weft_worker_params, flags);
	assert_int_equal(weft_worker_create(ctx, &wp, &w), 0);
	assert_false(w->send_now);
	conn_destroy(ctx, w, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(an_injected_buffer_is_free_at_once),
		CONN_TEST(injecting_has_a_bound),
		CONN_TEST(what_is_delivered_is_found),
		CONN_TEST(calls_flush_only_if_they_shall),
		CONN_TEST(a_lane_may_treat_posts_apart),
		CONN_TEST(the_flag_is_a_worker_parameter),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("leave", tests, NULL, NULL);
}
