/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short messages that share a frame are received in one call. Each has the outcome that it has
 * alone, whatever the messages before it and the callbacks of the program do.
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
	assert_true(messages >= NUM);
	assert_true(frames < NUM / 3);
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
	SIM_CASE(receives_of_all_kinds),
	SIM_CASE(wildcards_take_the_first),
	SIM_CASE(a_callback_closes_the_endpoint),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_batch", cases, sizeof(cases) / sizeof(cases[0]));
}
