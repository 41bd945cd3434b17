/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short messages that share a frame, or have one to themselves, are received by a callback for
 * batches. Each has the outcome that it has by the general way, whatever the messages before it and
 * the callbacks of the program do.
 */

#include <errno.h>
#include <string.h>

#include "scene.h"

#define NUM 60

/* Two hosts; a lane between them whose frames hold 1,400 bytes. */
static struct scene *two_hosts(struct sim_case *c, struct scene_ep **e, struct scene_ep **back)
{
	const struct scene_conf conf = {.lazy = true};
	struct scene *s = scene_open(c, &conf);

	s->accept = true;
	scene_start(s, 0);
	scene_start(s, 1);
	*e = scene_up(s, 0, 1);
	scene_run(s, 5 * SIM_MS);
	*back = s->accepted[1];
	assert_non_null(*back);
	return s;
}

/* One after the other without progress: they leave in as few frames as hold them. */
static void send_all(struct scene_ep *e, struct op **w)
{
	for (uint64_t i = 0; i < NUM; i++)
		w[i] = op_send(e, i, 8, i);
}

/* The messages of this test did share frames. */
static void shared_frames(const struct scene *s, uint64_t frames, uint64_t messages)
{
	frames = sim_node_counter(s->node[1], "rx.frames") - frames;
	messages = sim_node_counter(s->node[1], "rx.messages") - messages;
	/* Some are the workers' own. Second deliveries would be dropped above the lane. */
	assert_in_range(messages, NUM, NUM + NUM / 4);
	assert_true(frames < NUM / 3);
}

/* Each message has had its receive. */
static void nothing_left(const struct scene *s)
{
	assert_int_equal(sim_node_counter(s->node[1], "tag.unexpected_now"), 0);
}

/* Expected, unexpected, too long for the buffer, with a wildcard: in any mixture. */
static void receives_of_all_kinds(struct sim_case *c)
{
	struct scene_ep *e, *back;
	struct scene *s = two_hosts(c, &e, &back);
	struct op *w[NUM], *r[NUM] = {NULL};
	uint64_t frames = sim_node_counter(s->node[1], "rx.frames");
	uint64_t messages = sim_node_counter(s->node[1], "rx.messages");

	for (uint64_t i = 0; i < NUM; i++) {
		if (i % 7 == 3)
			continue; /* posted later */
		r[i] = i % 11 == 5 ? op_recv(s, 1, 4, i) : op_recv(s, 1, 8, i);
	}
	send_all(e, w);
	scene_run(s, 5 * SIM_MS);
	shared_frames(s, frames, messages);
	for (uint64_t i = 0; i < NUM; i++) {
		if (!r[i])
			r[i] = op_recv(s, 1, 8, i);
		op_expect(w[i], SIM_S, 0);
		op_expect(r[i], SIM_S, i % 7 != 3 && i % 11 == 5 ? -EMSGSIZE : 0);
		if (r[i]->c.status == 0)
			op_holds(r[i], i, 8);
		assert_int_equal(r[i]->c.tag, i);
		assert_ptr_equal(r[i]->c.ep, back->ep);
	}
	nothing_left(s);
}

/* Two receives for tag @p i, posted in this order: an exact one of any source, and another. */
static void two_receives(struct scene *s, struct scene_ep *e, const struct scene_ep *back,
			 uint64_t i)
{
	bool wild = i % 4 == 1, exact_first = i % 4 == 2;
	uint64_t mask = wild ? ~(1ull << 40) : WEFT_TAG_MASK_FULL;
	struct op *r[2], *w;

	r[!exact_first] = NULL;
	if (exact_first)
		r[0] = op_recv(s, 1, 8, i);
	r[exact_first] = op_recv_mask(s, 1, wild ? NULL : back->ep, 8, i, mask);
	if (!exact_first)
		r[1] = op_recv(s, 1, 8, i);
	for (uint64_t k = 0; k < 2; k++) {
		assert_false(r[k]->done);
		w = op_send(e, 2 * i + k, 8, i);
		op_expect(w, SIM_S, 0);
		op_expect(r[k], SIM_S, 0);
		op_holds(r[k], 2 * i + k, 8);
		scene_run(s, SIM_MS);
	}
}

/* Expected, unexpected, or too long for the buffer. */
static void one_receive(struct scene *s, struct scene_ep *e, const struct scene_ep *back,
			uint64_t i)
{
	struct op *r = NULL, *w;

	if (i % 3 > 0)
		r = op_recv(s, 1, i % 3 == 1 ? 4 : 8, i);
	w = op_send(e, i, 8, i);
	scene_run(s, SIM_MS);
	if (!r)
		r = op_recv(s, 1, 8, i);
	op_expect(w, SIM_S, 0);
	op_expect(r, SIM_S, i % 3 == 1 ? -EMSGSIZE : 0);
	if (i % 3 != 1)
		op_holds(r, i, 8);
	assert_int_equal(r->c.tag, i);
	assert_int_equal(r->c.length, 8);
	assert_ptr_equal(r->c.ep, back->ep);
}

/* A message that has its frame to itself has the same outcomes. */
static void alone_in_its_frame(struct sim_case *c)
{
	struct scene_ep *e, *back;
	struct scene *s = two_hosts(c, &e, &back);
	struct op *w, *far;
	uint64_t frames = sim_node_counter(s->node[1], "rx.frames");

	for (uint64_t i = 0; i < NUM; i++)
		one_receive(s, e, back, i);
	for (uint64_t i = NUM; i < 2 * NUM; i++)
		two_receives(s, e, back, i);
	/* The same beside a receive with a wildcard that no message has matched. */
	far = op_recv_mask(s, 1, NULL, 8, 1 << 20, 1 << 20);
	for (uint64_t i = 2 * NUM; i < 3 * NUM; i++) {
		one_receive(s, e, back, i);
		two_receives(s, e, back, i);
	}
	assert_true(sim_node_counter(s->node[1], "rx.frames") - frames >= 6 * NUM);
	w = op_send(e, 7, 8, 1 << 20);
	op_expect(w, SIM_S, 0);
	op_expect(far, SIM_S, 0);
	op_holds(far, 7, 8);
	nothing_left(s);
}

struct poster {
	struct weft_worker *worker;
	uint64_t buf;
	unsigned int calls;
};

static void post_next(struct weft_request *req, const struct weft_completion *cpl, void *arg)
{
	struct poster *p = arg;
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .cb = post_next, .cb_arg = p);

	assert_null(req);
	assert_int_equal(cpl->status, 0);
	assert_int_equal(cpl->tag, p->calls);
	assert_int_equal(cpl->length, 8);
	assert_int_equal(pattern_check(p->calls, 0, &p->buf, 8), 8);
	if (++p->calls < NUM)
		assert_int_equal(weft_tag_recv(p->worker, NULL, &p->buf, 8, p->calls,
					       WEFT_TAG_MASK_FULL, &params, NULL),
				 WEFT_INPROGRESS);
}

/* The callback of each receive posts the next one, in the memory of its request. */
static void callbacks_post_the_next(struct sim_case *c)
{
	struct scene_ep *e, *back;
	struct scene *s = two_hosts(c, &e, &back);
	struct poster p = {.worker = scene_worker(s, 1)};
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .cb = post_next, .cb_arg = &p);
	uint64_t messages = sim_node_counter(s->node[1], "rx.messages");
	struct op *w[NUM];

	assert_int_equal(weft_tag_recv(p.worker, NULL, &p.buf, 8, 0, WEFT_TAG_MASK_FULL, &params,
				       NULL),
			 WEFT_INPROGRESS);
	send_all(e, w);
	scene_run(s, 50 * SIM_MS);
	assert_int_equal(p.calls, NUM);
	for (uint64_t i = 0; i < NUM; i++)
		op_expect(w[i], SIM_S, 0);
	nothing_left(s);
	messages = sim_node_counter(s->node[1], "rx.messages") - messages;
	assert_in_range(messages, NUM, NUM + NUM / 4);
}

/* Without a checksum a frame with one message takes a path of its own, if none is missing. */
static void alone_beside_loss(struct sim_case *c)
{
	const struct scene_conf conf = {
		.config = "CSUM=none",
		.up = {.rate = 10 * SIM_GBIT,
		       .delay_ns = 5000,
		       .loss = 0.05,
		       .dup = 0.1,
		       .reorder = 0.1,
		       .reorder_ns = 50000},
	};
	struct scene *s = scene_open(c, &conf);
	struct op *w[4], *r[4];
	struct scene_ep *e;

	s->accept = true;
	e = scene_up(s, 0, 1);
	for (uint64_t i = 0; i < 20 * NUM; i++) {
		/* Every seventh message comes before its receive. */
		r[i % 4] = i % 7 == 3 ? NULL : op_recv(s, 1, 8, i);
		w[i % 4] = op_send(e, i, 8, i);
		scene_run(s, 8 * SIM_US);
		if (!r[i % 4])
			r[i % 4] = op_recv(s, 1, 8, i);
		for (uint64_t k = 0; i % 4 == 3 && k < 4; k++) {
			op_expect(w[k], SIM_S, 0);
			op_expect(r[k], SIM_S, 0);
			op_holds(r[k], i - 3 + k, 8);
		}
	}
	assert_true(sim_node_counter(s->node[1], "drop.duplicate") > NUM);
	assert_true(sim_node_counter(s->node[0], "tx.data") >= 10 * NUM);
	nothing_left(s);
}

static void wildcards_take_the_first(struct sim_case *c)
{
	struct scene_ep *e, *back;
	struct scene *s = two_hosts(c, &e, &back);
	struct op *w[NUM], *r[NUM];

	for (uint64_t i = 0; i < NUM; i++)
		r[i] = i % 5 == 2 ? op_recv_mask(s, 1, NULL, 8, 0, 0)
				  : op_recv(s, 1, 8, i % 2 ? NUM - 1 - i : i);
	send_all(e, w);
	/* Each message has the receive that was posted first of those that match. */
	scene_run(s, 5 * SIM_MS);
	for (uint64_t i = 0, wild = 0; i < NUM; i++) {
		if (i % 5 != 2 || !r[i]->done)
			continue;
		op_holds(r[i], r[i]->c.tag, 8);
		assert_true(wild++ == 0 || r[i]->c.tag > r[i - 5]->c.tag);
	}
}

struct closer {
	struct scene_ep *back;
	unsigned int calls, close_at;
	struct weft_request *close;
};

static void count_or_close(struct weft_request *req, const struct weft_completion *cpl, void *arg)
{
	struct weft_op_params p =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_FORCE_REQUEST);
	struct closer *k = arg;

	(void)req;
	if (cpl->status == 0 && ++k->calls == k->close_at) {
		assert_true(weft_ep_close(k->back->ep, WEFT_EP_CLOSE_F_FORCE, &p, &k->close) >= 0);
		k->back->ep = NULL;
	}
}

/* The endpoint ends in the callback of the 20th message: the others are not received twice. */
static void a_callback_closes_the_endpoint(struct sim_case *c)
{
	struct scene_ep *e, *back;
	struct scene *s = two_hosts(c, &e, &back);
	struct closer k = {.back = back, .close_at = 20};
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = count_or_close,
					    .cb_arg = &k, .flags = WEFT_OP_F_FORCE_REQUEST);
	uint64_t buf[NUM];
	struct op *w[NUM];

	for (uint64_t i = 0; i < NUM; i++)
		assert_true(weft_tag_recv(scene_worker(s, 1), NULL, &buf[i], 8, i,
					  WEFT_TAG_MASK_FULL, &p, NULL) >= 0);
	send_all(e, w);
	scene_run(s, 50 * SIM_MS);
	assert_true(k.calls >= 20 && k.calls <= NUM);
	assert_non_null(k.close);
	assert_int_equal(weft_request_test(k.close, NULL), 0);
	weft_request_free(k.close);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(pattern_check(i, 0, &buf[i], 8), 8);
}

static struct sim_case cases[] = {
	SIM_CASE(receives_of_all_kinds),    SIM_CASE(alone_in_its_frame),
	SIM_CASE(callbacks_post_the_next),  SIM_CASE(alone_beside_loss),
	SIM_CASE(wildcards_take_the_first), SIM_CASE(a_callback_closes_the_endpoint),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_batch", cases, sizeof(cases) / sizeof(cases[0]));
}
