/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: tagged messages of every size over 1 to 4 lanes, matching,
 * probes, synchronous sends.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "msg/msg.h"
#include "scene.h"

/* Around every edge: classes of headers, frames, credits, thresholds. */
static const size_t sizes[] = {0,      1,       2,       7,      8,      9,      63,     64,
			       65,     255,     256,     257,    1000,   1023,   1024,   1300,
			       1390,   1400,    1410,    1420,   1430,   1440,   1450,   1460,
			       1472,   1500,    2000,    2800,   4095,   4096,   4097,   8191,
			       8192,   8193,    16383,   16384,  16385,  32767,  32768,  65535,
			       65536,  65537,   100003,  131072, 262143, 262144, 262145, 300007,
			       524288, 1000003, 1048576, 3000017};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static struct scene *open_lanes(struct sim_case *c, unsigned int lanes, const char *config,
				uint16_t frame)
{
	const struct scene_conf conf = {
		.lanes = {lanes, lanes}, .config = config, .port = {.frame_size = frame}};

	return scene_open(c, &conf);
}

/* Every size, expected and unexpected, plain and synchronous. */
static void every_size(struct sim_case *c, unsigned int lanes, const char *config, uint16_t frame)
{
	struct scene *s = open_lanes(c, lanes, config, frame);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r, *w;
	unsigned int i;

	scene_run(s, 20 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), lanes);
	for (i = 0; i < SIZES; i++) {
		r = op_recv(s, 1, sizes[i], i);
		w = op_send(e, i, sizes[i], i);
		op_expect(r, SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, i, sizes[i]);

		w = op_send(e, i, sizes[i], i);
		scene_run(s, 2 * SIM_MS);
		r = op_recv(s, 1, sizes[i] + 5, i);
		op_expect(r, SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, i, sizes[i]);

		w = op_send_sync(e, i, sizes[i], i);
		scene_run(s, 2 * SIM_MS);
		assert_false(w->done);
		r = op_recv(s, 1, sizes[i] + 5, i);
		op_expect(r, SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, i, sizes[i]);
	}
}

/* @behaviour U24 */
static void every_size_over_1_lane(struct sim_case *c)
{
	every_size(c, 1, NULL, 0);
}

static void every_size_over_2_lanes(struct sim_case *c)
{
	every_size(c, 2, NULL, 0);
}

static void every_size_over_3_lanes_of_9000(struct sim_case *c)
{
	every_size(c, 3, NULL, 9014);
}

/* @behaviour U24 */
static void every_size_over_4_lanes(struct sim_case *c)
{
	every_size(c, 4, NULL, 0);
}

/* @behaviour U28 */
static void every_size_by_rendezvous(struct sim_case *c)
{
	every_size(c, 2, "RNDV_THRESH=1", 0);
}

static void every_size_without_rendezvous(struct sim_case *c)
{
	every_size(c, 2, "RNDV_THRESH=inf MULTI_EAGER_LIMIT=1M", 0);
}

static void every_size_without_multi_eager(struct sim_case *c)
{
	every_size(c, 2, "MULTI_EAGER_LIMIT=0", 0);
}

static void every_size_without_zero_copy(struct sim_case *c)
{
	every_size(c, 2, "ZCOPY=n", 0);
}

/* ---- datatypes ------------------------------------------------------------------------------ */

static void buffer_done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct weft_completion *out = arg;

	*out = *c;
	weft_request_free(req);
}

static bool both_done(void *arg)
{
	struct weft_completion *c = arg;

	return c[0].status != WEFT_INPROGRESS && c[1].status != WEFT_INPROGRESS;
}

static void transfer(struct scene *s, struct scene_ep *e, enum buf_kind from, enum buf_kind to,
		     size_t size, bool expected, bool sync, bool truncated)
{
	/* The callbacks outlive a failing test. */
	static struct weft_completion c[2];
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = buffer_done);
	struct sim_rng dice = sim_stream(s->sim, size);
	size_t cap = truncated ? size / 2 : size + 3;
	struct buf *w = buf_send(&dice, from, size, size), *r = buf_recv(&dice, to, cap);
	const char *wrong;
	int step, ret;

	memset(c, 0, sizeof(c));
	c[0].size = c[1].size = sizeof(c[0]);
	c[0].status = c[1].status = WEFT_INPROGRESS;
	for (step = 0; step < 2; step++) {
		if ((step == 0) == expected) {
			p.datatype = buf_datatype(r);
			p.cb_arg = &c[1];
			p.completion = &c[1];
			ret = weft_tag_recv(scene_worker(s, 1), NULL, buf_pointer(r), buf_count(r),
					    9, WEFT_TAG_MASK_FULL, &p, NULL);
			if (ret != WEFT_INPROGRESS)
				c[1].status = ret;
		} else {
			p.datatype = buf_datatype(w);
			p.cb_arg = &c[0];
			p.completion = NULL;
			ret = (sync ? weft_tag_send_sync : weft_tag_send)(
				e->ep, buf_pointer(w), buf_count(w), 9, &p, NULL);
			if (ret != WEFT_INPROGRESS)
				c[0].status = ret;
		}
		scene_run(s, SIM_MS);
	}
	if (!sim_run(s->sim, SIM_S, both_done, c))
		fail_msg("%zu bytes, %d to %d: not done", size, (int)from, (int)to);
	assert_int_equal(c[0].status, 0);
	assert_int_equal(c[1].status, truncated && size / 2 < size ? -EMSGSIZE : 0);
	assert_int_equal(c[1].length, size);
	wrong = buf_verify(r, size, size);
	if (wrong)
		fail_msg("%zu bytes, %d to %d: %s", size, (int)from, (int)to, wrong);
	wrong = buf_free(w);
	if (!wrong)
		wrong = buf_free(r);
	if (wrong)
		fail_msg("%zu bytes, %d to %d: %s", size, (int)from, (int)to, wrong);
}

static void datatypes(struct sim_case *c, const char *config)
{
	static const size_t some[] = {0, 1, 100, 1400, 3000, 50000, 200000, 700001};
	struct scene *s = open_lanes(c, 2, config, 0);
	struct scene_ep *e = scene_up(s, 0, 1);
	unsigned int from, to, i, k;

	for (from = BUF_CONTIG; from <= BUF_GENERIC; from++)
		for (to = BUF_CONTIG; to <= BUF_GENERIC; to++)
			for (i = 0; i < sizeof(some) / sizeof(some[0]); i++)
				for (k = 0; k < 8; k++)
					transfer(s, e, from, to, some[i], k & 1, k & 2, k & 4);
}

/* @behaviour U22 */
static void all_datatypes_to_all_expected_sync_truncated(struct sim_case *c)
{
	datatypes(c, NULL);
}

/* @behaviour U22 */
static void all_datatypes_by_rendezvous(struct sim_case *c)
{
	datatypes(c, "RNDV_THRESH=1");
}

/* ---- order ---------------------------------------------------------------------------------- */

/* @behaviour U10 */
static void same_tag_matches_in_send_order_whatever_the_size(struct sim_case *c)
{
	static const size_t mix[] = {2000000, 1, 100000, 0, 5000, 300000, 8, 1300, 256, 70000};
	const struct scene_conf conf = {.lanes = {4, 4},
					.up = {.rate = SIM_GBIT,
					       .delay_ns = 10000,
					       .loss = 0.03,
					       .reorder = 0.2,
					       .reorder_ns = SIM_MS}};
	uint64_t first = c->seed;
	int late;

	for (; c->seed < first + 10; c->seed++) {
		for (late = 0; late < 2; late++) {
			struct scene *s = scene_open(c, &conf);
			struct scene_ep *e = scene_up(s, 0, 1);
			struct op *r[10];
			unsigned int i;

			for (i = 0; i < 10 && !late; i++)
				r[i] = op_recv(s, 1, 2000000, 1);
			for (i = 0; i < 10; i++)
				op_send(e, i, mix[i], 1);
			if (late)
				scene_run(s, 20 * SIM_MS);
			for (i = 0; i < 10 && late; i++)
				r[i] = op_recv(s, 1, 2000000, 1);
			for (i = 0; i < 10; i++) {
				op_expect(r[i], 10 * SIM_S, 0);
				op_holds(r[i], i, mix[i]);
			}
		}
	}
	c->seed = first;
}

/* @behaviour U5 */
static void two_senders_two_wildcards_get_whole_messages(struct sim_case *c)
{
	static const size_t some[] = {100, 40000, 3000000};
	const struct scene_conf conf = {.nodes = 3, .lanes = {2, 2, 2}};
	unsigned int i, late;

	for (i = 0; i < 3; i++) {
		for (late = 0; late < 2; late++) {
			struct scene *s = scene_open(c, &conf);
			struct scene_ep *a = scene_up(s, 0, 2), *b = scene_up(s, 1, 2);
			struct op *r[2] = {NULL, NULL};
			unsigned int k;

			for (k = 0; k < 2 && !late; k++)
				r[k] = op_recv_mask(s, 2, NULL, some[i], 0, 0);
			op_send(a, 1, some[i], 1);
			op_send(b, 2, some[i], 2);
			if (late)
				scene_run(s, 5 * SIM_MS);
			for (k = 0; k < 2 && late; k++)
				r[k] = op_recv_mask(s, 2, NULL, some[i], 0, 0);
			for (k = 0; k < 2; k++) {
				op_expect(r[k], 5 * SIM_S, 0);
				op_holds(r[k], r[k]->c.tag, some[i]);
			}
			assert_int_equal(r[0]->c.tag + r[1]->c.tag, 3);
		}
	}
}

/* @behaviour A12 */
static void a_late_receive_binds_in_the_middle_of_a_message(struct sim_case *c)
{
	/* Slow lanes: a message takes 20 ms. */
	const struct scene_conf conf = {.lanes = {2, 2},
					.up = {.rate = 50000000, .delay_ns = 5000},
					.config = "MULTI_EAGER_LIMIT=1M RNDV_THRESH=inf"};
	unsigned int at;

	for (at = 1; at < 20; at += 3) {
		struct scene *s = scene_open(c, &conf);
		struct scene_ep *e = scene_up(s, 0, 1);
		struct weft_completion look = {.size = sizeof(look)};
		struct op *r;

		op_send(e, 1, 250000, 1);
		scene_run(s, at * SIM_MS);
		/* A probe knows the whole length from the first piece on. */
		if (weft_tag_probe(scene_worker(s, 1), NULL, 1, WEFT_TAG_MASK_FULL, NULL, NULL,
				   &look) == 0)
			assert_int_equal(look.length, 250000);
		r = op_recv(s, 1, 300000, 1);
		op_expect(r, SIM_S, 0);
		op_holds(r, 1, 250000);
	}
}

/* Two short sends, and then the sender computes for 20 ms: when are both there? */
static void short_sends_need_no_progress_if_requested_so(struct sim_case *c)
{
	enum { AS_EVER, KICK, NOW, MORE };

	for (int how = AS_EVER; how <= MORE; how++) {
		struct scene *s = open_lanes(c, 1, NULL, 0);
		struct scene_ep *e = scene_up(s, 0, 1);
		struct weft_worker *w = scene_worker(s, 0);
		struct weft_op_params more =
			WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_MORE);
		uint64_t v = 1;
		int there;

		/* As weft_worker_create() does with WEFT_WORKER_F_SEND_NOW. */
		w->send_now = e->ep->msg->send_now = how == NOW || how == MORE;
		assert_int_equal(weft_tag_send(e->ep, &v, 8, 1, NULL, NULL), 0);
		assert_int_equal(weft_tag_send(e->ep, &v, 8, 2, how == MORE ? &more : NULL, NULL),
				 0);
		if (how == KICK)
			weft_worker_kick(w);
		sim_node_pause(s->node[0], 20 * SIM_MS);
		scene_run(s, 5 * SIM_MS);
		there = weft_tag_probe(scene_worker(s, 1), NULL, 2, WEFT_TAG_MASK_FULL, NULL, NULL,
				       NULL);
		assert_int_equal(there, how == KICK || how == NOW ? 0 : -ENOMSG);
		scene_run(s, 30 * SIM_MS);
		assert_int_equal(weft_tag_probe(scene_worker(s, 1), NULL, 2, WEFT_TAG_MASK_FULL,
						NULL, NULL, NULL),
				 0);
	}
}

enum { WINDOW = 64 };

/* A node whose sends leave in their calls: as weft_worker_create() with WEFT_WORKER_F_SEND_NOW. */
static struct scene_ep *open_send_now(struct sim_case *c, struct scene **s)
{
	struct scene_ep *e;

	*s = open_lanes(c, 1, NULL, 0);
	e = scene_up(*s, 0, 1);
	scene_worker(*s, 0)->send_now = e->ep->msg->send_now = true;
	scene_run(*s, 20 * SIM_MS);
	return e;
}

static void send_window(struct scene_ep *e, unsigned int n, uint64_t tag)
{
	struct weft_op_params polled = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_POLLED);
	uint64_t v = 1;

	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(weft_tag_send(e->ep, &v, 8, tag, &polled, NULL), 0);
}

/* @return the number of messages with this tag that the other node has, and drop them */
static unsigned int take(struct scene *s, uint64_t tag)
{
	struct weft_worker *w = scene_worker(s, 1);
	struct weft_message *m;
	unsigned int n = 0;

	while (weft_tag_probe(w, NULL, tag, WEFT_TAG_MASK_FULL, NULL, &m, NULL) == 0) {
		weft_tag_msg_drop(w, m);
		n++;
	}
	return n;
}

static uint64_t data_frames(struct scene *s)
{
	return sim_node_counter(s->node[0], "tx.data");
}

/*
 * The first messages of a window leave at once, one in each frame. The others share frames, which
 * the next progress call or a kick sends.
 */
static void a_window_of_short_sends_shares_frames(struct sim_case *c)
{
	struct scene *s;
	struct scene_ep *e = open_send_now(c, &s);
	struct weft_worker *w = scene_worker(s, 0);
	uint64_t before;

	for (unsigned int i = 0; i < 10; i++) {
		before = data_frames(s);
		send_window(e, 1, i);
		assert_int_equal(data_frames(s) - before, 1);
		send_window(e, WINDOW - 1, i);
		assert_in_range(data_frames(s) - before, 4, 7);
		if (i & 1) {
			weft_worker_kick(w);
			sim_node_pause(s->node[0], 2 * SIM_MS);
		}
		scene_run(s, SIM_MS);
		assert_int_equal(take(s, i), WINDOW);
		assert_in_range(data_frames(s) - before, 5, 7);
		scene_run(s, 5 * SIM_MS);
	}
}

/* A program that computes after its sends does not delay them for long: it is recognised. */
static void sends_before_long_computing_leave_at_once(struct sim_case *c)
{
	enum { WINDOWS = 100 };
	struct scene *s;
	struct scene_ep *e = open_send_now(c, &s);
	unsigned int late = 0;

	for (unsigned int i = 0; i < WINDOWS; i++) {
		send_window(e, WINDOW / 4, i);
		sim_node_pause(s->node[0], 2 * SIM_MS);
		scene_run(s, SIM_MS);
		late += take(s, i) < WINDOW / 4;
		scene_run(s, 5 * SIM_MS);
		take(s, i);
	}
	/* After 1, 3, 7, ... intervals without waits. */
	assert_in_range(late, 1, 7);
	assert_int_equal(sim_node_counter(s->node[0], "tx.waited_late"), late);
}

/* No call follows that would send a frame that waits. */
static void sends_that_no_call_follows_leave_at_once(struct sim_case *c)
{
	struct scene *s;
	struct scene_ep *e = open_send_now(c, &s);
	uint64_t before = data_frames(s), v = 1;

	sim_node_pause(s->node[0], 40 * SIM_MS);
	send_window(e, 16, 1);
	assert_in_range(data_frames(s) - before, 4, 7);
	before = data_frames(s);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(weft_tag_send(e->ep, &v, 8, 1, NULL, NULL), 0);
	assert_int_equal(data_frames(s) - before, 8);
	scene_run(s, SIM_MS);
	assert_int_equal(take(s, 1), 16 + 8);
}

/* Sends one after another without progress calls between them, too. */
static void slow_sends_without_progress_leave_at_once(struct sim_case *c)
{
	struct scene *s;
	struct scene_ep *e = open_send_now(c, &s);
	unsigned int late = 0;

	/* One pause: a message each 20 us, and no progress call in it. */
	sim_node_pause(s->node[0], 40 * SIM_MS);
	for (unsigned int i = 0; i < 3 * WINDOW; i++) {
		send_window(e, 1, i);
		scene_run(s, 20 * SIM_US);
		late += take(s, i) == 0;
	}
	assert_in_range(late, 1, WINDOW);
}

static void probes_take_messages_out(struct sim_case *c)
{
	struct scene *s = open_lanes(c, 2, NULL, 0);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct weft_message *m[3];
	struct weft_completion look = {.size = sizeof(look)};
	static const size_t some[3] = {10, 20000, 1500000};
	struct op *r[3], *other;
	unsigned int i;

	assert_int_equal(weft_tag_probe(scene_worker(s, 1), NULL, 1, WEFT_TAG_MASK_FULL, NULL,
					&m[0], &look),
			 -ENOMSG);
	for (i = 0; i < 3; i++)
		op_send(e, i, some[i], 1);
	scene_run(s, 20 * SIM_MS);
	for (i = 0; i < 3; i++) {
		assert_int_equal(weft_tag_probe(scene_worker(s, 1), NULL, 1, WEFT_TAG_MASK_FULL,
						NULL, NULL, &look),
				 0);
		assert_int_equal(look.length, some[i]);
		assert_int_equal(weft_tag_probe(scene_worker(s, 1), NULL, 1, WEFT_TAG_MASK_FULL,
						NULL, &m[i], &look),
				 0);
		assert_int_equal(look.length, some[i]);
	}
	/* Claimed: no other receive gets them. */
	other = op_recv(s, 1, 100, 1);
	scene_run(s, 5 * SIM_MS);
	assert_false(other->done);
	for (i = 3; i-- > 0;) {
		r[i] = op_msg_recv(s, 1, m[i], some[i]);
		op_expect(r[i], SIM_S, 0);
		op_holds(r[i], i, some[i]);
	}
	assert_int_equal(weft_request_cancel(other->req), 0);
	assert_int_equal(other->c.status, -ECANCELED);
}

/* @behaviour U39 */
static void dropped_messages_free_their_sender(struct sim_case *c)
{
	struct scene *s = open_lanes(c, 2, NULL, 0);
	struct scene_ep *e = scene_up(s, 0, 1);
	static const size_t some[3] = {10, 20000, 1500000};
	struct weft_message *m;
	struct op *w;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		w = op_send_sync(e, i, some[i], 1);
		scene_run(s, 10 * SIM_MS);
		assert_int_equal(weft_tag_probe(scene_worker(s, 1), NULL, 1, WEFT_TAG_MASK_FULL,
						NULL, &m, NULL),
				 0);
		weft_tag_msg_drop(scene_worker(s, 1), m);
		op_expect(w, SIM_S, 0);
	}
}

/* @behaviour U8 */
static void truncation_in_every_class(struct sim_case *c)
{
	struct scene *s = open_lanes(c, 2, NULL, 0);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r, *w, *next;
	unsigned int i;
	size_t k, cap;

	for (i = 1; i < SIZES; i += 2) {
		for (cap = 0; cap < sizes[i]; cap = cap * 20 + 1) {
			r = op_recv(s, 1, cap, 1);
			next = op_recv(s, 1, 100, 2);
			w = op_send(e, i, sizes[i], 1);
			op_send(e, 2, 100, 2);
			op_expect(r, SIM_S, -EMSGSIZE);
			assert_int_equal(r->c.length, sizes[i]);
			assert_int_equal(pattern_check(i, 0, r->buf, cap), cap);
			for (k = cap; k < cap + 16; k++)
				assert_int_equal(r->buf[k], 0xa5);
			op_expect(w, SIM_S, 0);
			op_expect(next, SIM_S, 0);
			op_holds(next, 2, 100);
		}
	}
}

/* @behaviour U33 */
static void large_messages_head_to_head(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *a = scene_connect(s, 0, 1), *b = scene_connect(s, 1, 0);
	struct op *r[2][20];
	unsigned int i;

	for (i = 0; i < 20; i++) {
		op_send(a, i, 1000000, i);
		op_send(b, 100 + i, 1000000, i);
	}
	for (i = 0; i < 20; i++) {
		r[0][i] = op_recv(s, 0, 1000000, i);
		r[1][i] = op_recv(s, 1, 1000000, i);
	}
	for (i = 0; i < 20; i++) {
		op_expect(r[0][i], 5 * SIM_S, 0);
		op_expect(r[1][i], 5 * SIM_S, 0);
		op_holds(r[0][i], 100 + i, 1000000);
		op_holds(r[1][i], i, 1000000);
	}
}

/* @behaviour A8, Y6, R2 */
static void message_sequences_wrap(struct sim_case *c)
{
	struct scene *s = open_lanes(c, 2, "SEQ_START=4294967200", 0);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r;
	unsigned int i;

	for (i = 0; i < 300; i++) {
		r = op_recv(s, 1, 5000, 1);
		op_send(e, i, i * 13, 1);
		if (i % 50 == 49) {
			op_expect(r, SIM_S, 0);
			op_holds(r, i, i * 13);
		}
	}
}

/* ---- progress ------------------------------------------------------------------------------- */

/*
 * A flood waits in both ports, each message striped over both. One call of progress takes one burst
 * of each and comes back: neither the other lane nor the caller waits for the flood's end.
 */
/*
 * @behaviour U19: one progress call delivers a bounded number of messages; a flood starves no other
 * peer
 */
static void U19_one_progress_delivers_a_bounded_number_and_serves_every_lane(struct sim_case *c)
{
	enum { N = 100, SIZE = 5000, BURST = 32, FRAMES = 4 };
	const struct scene_conf conf = {.lanes = {2, 2}, .config = "RNDV_THRESH=inf CC=fixed"};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	unsigned int i, calls, now, before = 0;
	struct op *r[N];

	for (i = 0; i < N; i++)
		r[i] = op_recv(s, 1, SIZE, i);
	sim_node_pause(s->node[1], SIM_S);
	for (i = 0; i < N; i++)
		op_send(e, i, SIZE, i);
	scene_run(s, 20 * SIM_MS);
	for (calls = 0; before < N / 2; calls++) {
		assert_true(calls < 100);
		weft_worker_progress(scene_worker(s, 1));
		for (i = now = 0; i < N; i++)
			now += r[i]->done;
		assert_in_range(now - before, calls == 0 ? 2 : 0, 2 * BURST / FRAMES);
		before = now;
	}
	for (i = 0; i < N; i++) {
		op_expect(r[i], 5 * SIM_S, 0);
		op_holds(r[i], i, SIZE);
	}
}

static struct sim_case cases[] = {
	SIM_CASE(U19_one_progress_delivers_a_bounded_number_and_serves_every_lane),
	SIM_CASE(every_size_over_1_lane),
	SIM_CASE(every_size_over_2_lanes),
	SIM_CASE(every_size_over_3_lanes_of_9000),
	SIM_CASE(every_size_over_4_lanes),
	SIM_CASE(every_size_by_rendezvous),
	SIM_CASE(every_size_without_rendezvous),
	SIM_CASE(every_size_without_multi_eager),
	SIM_CASE(every_size_without_zero_copy),
	SIM_CASE(all_datatypes_to_all_expected_sync_truncated),
	SIM_CASE(all_datatypes_by_rendezvous),
	SIM_CASE(same_tag_matches_in_send_order_whatever_the_size),
	SIM_CASE(two_senders_two_wildcards_get_whole_messages),
	SIM_CASE(a_late_receive_binds_in_the_middle_of_a_message),
	SIM_CASE(short_sends_need_no_progress_if_requested_so),
	SIM_CASE(a_window_of_short_sends_shares_frames),
	SIM_CASE(sends_before_long_computing_leave_at_once),
	SIM_CASE(sends_that_no_call_follows_leave_at_once),
	SIM_CASE(slow_sends_without_progress_leave_at_once),
	SIM_CASE(probes_take_messages_out),
	SIM_CASE(dropped_messages_free_their_sender),
	SIM_CASE(truncation_in_every_class),
	SIM_CASE(large_messages_head_to_head),
	SIM_CASE(message_sequences_wrap),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_message", cases, sizeof(cases) / sizeof(cases[0]));
}
