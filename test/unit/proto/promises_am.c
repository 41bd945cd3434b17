/* SPDX-License-Identifier: BSD-3-Clause */
/* What weft.h promises of active messages whatever carries them. */

#include "unit/proto/promises.h"

/* ------------------------------------------------------------------ active messages */

struct inbox {
	unsigned int calls, fetched;
	size_t cap;
	struct op op;
	struct weft_ep *ep;
};

static int on_message(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct weft_op_params p;
	struct inbox *box = arg;

	box->calls++;
	box->ep = msg->ep;
	if (!(msg->flags & WEFT_AM_F_RNDV)) {
		pattern_expect(1, msg->data, msg->length);
		return 0;
	}
	p = op_params(&box->op, NULL);
	box->fetched++;
	box->op.rc = weft_am_recv_data(worker, msg->desc, in, box->cap, &p, &box->op.req);
	return 0;
}

static void am_send(struct op *op, struct weft_ep *ep, unsigned int flags, size_t len,
		    const struct weft_datatype *type)
{
	struct weft_am_send_params a =
		WEFT_INIT(struct weft_am_send_params, .id = 3, .flags = flags);
	struct weft_op_params p = op_params(op, type);

	op->rc = weft_am_send(ep, &a, type ? NULL : out, len, &p, &op->req);
}

static void am_open(struct stage *s, const struct way *way, struct inbox *box)
{
	stage_open(s, way);
	*box = (struct inbox){.cap = sizeof(in)};
	assert_int_equal(weft_worker_set_am_handler(s->w[1], 3, on_message, box, 0), 0);
}

/* @behaviour T29 */
static void when_pack_of_an_active_message_fails_its_receiver_has_no_part_of_it(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int k = 0; k < 2; k++) {
			struct broken b = {way->len, k ? way->len / 2 : 0};
			struct weft_datatype type =
				WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC,
					  .ops = &broken_ops, .arg = &b);
			struct inbox box;
			struct op op[2];
			struct stage s;

			am_open(&s, way, &box);
			am_send(&op[0], s.ep[0], 0, 0, &type);
			ends(&s, &op[0], -ENODATA);
			assert_int_equal(box.calls, box.fetched);
			if (box.fetched)
				ends(&s, &box.op, -ENODATA);
			am_send(&op[1], s.ep[0], 0, 100, NULL);
			ends(&s, &op[1], 0);
			run(&s, 60);
			assert_int_equal(box.calls, way->rendezvous ? 2 : 1);
			if (box.calls == 2)
				ends(&s, &box.op, 0);
			stage_close(&s);
		}
	}
}

/* @behaviour T26 */
static void data_of_an_active_message_that_is_truncated_fills_the_buffer(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		struct inbox box;
		struct stage s;
		struct op op;

		am_open(&s, way, &box);
		box.cap = way->len / 3;
		am_send(&op, s.ep[0], WEFT_AM_SEND_F_RNDV, way->len, NULL);
		ends(&s, &op, 0);
		ends(&s, &box.op, -EMSGSIZE);
		pattern_expect(1, in, box.cap);
		untouched(box.cap);
		stage_close(&s);
	}
}

/* @behaviour T23 */
static void no_handler_is_called_for_a_closed_endpoint(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		struct weft_op_params p;
		struct op op, end;
		struct inbox box;
		struct stage s;

		am_open(&s, way, &box);
		/* Its close waits for a match that comes late. */
		weft_tag_send_sync(s.ep[1], out, 8, 5, NULL, NULL);
		am_send(&op, s.ep[0], 0, way->len, NULL);
		p = op_params(&end, NULL);
		end.rc = weft_ep_close(s.ep[1], 0, &p, &end.req);
		run(&s, 100);
		assert_int_equal(box.calls, 0);
		ends(&s, &op, way->rendezvous ? -ECONNRESET : 0);
		assert_int_equal(s.w[1]->msg->count.am_closed, 1);
		weft_tag_recv(s.w[0], NULL, in, 8, 5, FULL, NULL, NULL);
		ends(&s, &end, 0);
		stage_close(&s);
	}
}

/* Whatever waits before it; before the connection is there the request tells. */
/* @behaviour T21: an eager active message that the peer's credit can never take is refused */
static void an_eager_active_message_that_can_never_go_is_refused(void **state)
{
	static const struct way few = {"", "mock:0;mock:1", {EAGER}, 0, false};
	static const char *const conf[] = {"EAGER_CREDIT=8k", "MULTI_EAGER_LIMIT=4k"};

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct way way = few;
		struct op op, late, behind, held;
		struct inbox box;
		struct stage s;

		way.conf[k & 1 ? 0 : 1] = conf[k & 1];
		if (k & 1) /* a threshold by hand would decide */
			way.conf[1] = "RNDV_THRESH=4k";
		if (k & 2)
			way.lanes = NULL;
		am_open(&s, &way, &box);
		/* Something waits before it: for the lanes, and for the peer. */
		mock_set_eagain(NULL, 1000);
		am_send(&held, s.ep[0], 0, 2000, NULL);
		am_send(&op, s.ep[0], WEFT_AM_SEND_F_EAGER, 30000, NULL);
		assert_int_equal(op.rc, -EMSGSIZE);
		op_end(&op, -EMSGSIZE);
		mock_set_eagain(NULL, 0);
		am_send(&behind, s.ep[0], WEFT_AM_SEND_F_EAGER, 2000, NULL);
		ends(&s, &held, 0);
		ends(&s, &behind, 0);
		run(&s, 50);
		assert_int_equal(box.calls, 2);
		if (!is_self(&s)) {
			weft_ep_close(s.ep[0], WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
			stage_connect(&s, 0);
			am_send(&late, s.ep[0], WEFT_AM_SEND_F_EAGER, 30000, NULL);
			assert_int_equal(late.rc, WEFT_INPROGRESS);
			am_send(&behind, s.ep[0], WEFT_AM_SEND_F_EAGER, 2000, NULL);
			ends(&s, &late, -EMSGSIZE);
			ends(&s, &behind, 0);
		}
		stage_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(when_pack_of_an_active_message_fails_its_receiver_has_no_part_of_it),
		T(data_of_an_active_message_that_is_truncated_fills_the_buffer),
		T(no_handler_is_called_for_a_closed_endpoint),
		T(an_eager_active_message_that_can_never_go_is_refused),
	};

	return cmocka_run_group_tests_name("promises of active messages", tests, NULL, NULL);
}
