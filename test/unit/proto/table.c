/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine knows no protocol by name: this program has a table of its own (instead of
 * lib/dispatch.c) with a protocol that the library has never heard of. It is chosen where it says
 * that it is fastest, carries messages, receives their ends, and the events of new lanes.
 */

#include "dispatch.h"
#include "mock/msg_util.h"
#include "msg/eager.h"

/* ------------------------------------------------------------------ the protocol */

static struct {
	int progress, abort, reset;
	int abort_status;
	int answer;   /* of reset() */
	bool stopped; /* one piece, and no more */
} seen;

/* Pieces of 100 bytes, over the lane with the highest number. */
static int odd_progress(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	unsigned int lane = 31 - (unsigned int)__builtin_clz(me->lanes_up);
	struct weft_head h;
	int rc;

	seen.progress++;
	while (req->send.offset < req->length) {
		size_t rest = req->length - req->send.offset, len = rest < 100 ? rest : 100;

		if (seen.stopped && (req->flags & WEFT_REQ_STARTED))
			return -EAGAIN;
		weft_head_piece(req, &h);
		rc = weft_tx_piece(req, lane, h.id, h.bytes, h.length, req->send.offset, len);
		if (rc)
			return rc;
		if (!(req->flags & WEFT_REQ_STARTED))
			weft_tx_take_seq(req, true);
		req->send.offset += len;
	}
	return 0;
}

static void odd_abort(struct weft_request *req, int status)
{
	seen.abort++;
	seen.abort_status = status;
	if (req->flags & WEFT_REQ_STARTED)
		weft_tx_abort(req, (struct weft_wire_ref){{0}, {0}}, status);
}

static int odd_reset(struct weft_request *req)
{
	(void)req;
	seen.reset++;
	return seen.answer;
}

static int odd_cost(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		    struct weft_curve *cv)
{
	(void)key;
	weft_curve_begin(cv, 300, 799);
	weft_curve_lanes(cv, m, lanes);
	weft_curve_once(cv, WEFT_STAGE_WIRE, (struct weft_linear){1e-9, 0}, "says so", NULL);
	weft_curve_end(cv);
	return 0;
}

static const struct weft_proto odd = {
	.name = "test/odd",
	.desc = "pieces of 100 bytes",
	.ops = WEFT_OP_BIT(WEFT_OP_TAG_SEND),
	.classes = 1u << WEFT_DT_CONTIG,
	.lanes = &weft_lanes_eager,
	.cost = odd_cost,
	.progress = odd_progress,
	.abort = odd_abort,
	.reset = odd_reset,
};

static const struct weft_proto *const protos[] = {
	&weft_proto_eager_bcopy, &odd, &weft_proto_multi_eager, &weft_proto_rndv_pull,
	&weft_proto_data_pull,   NULL,
};

static struct weft_tables tables;

/* ------------------------------------------------------------------ tests */

static uint8_t src[2000], dst[2000];

static void start(struct pair *p, unsigned int lanes)
{
	memset(&seen, 0, sizeof(seen));
	seen.answer = 1;
	pair_defaults(p);
	tables = weft_tables;
	tables.protos = protos;
	p->ctx.tables = &tables;
	pair_open(p, lanes, NULL);
}

static void it_is_chosen_where_it_is_fastest_and_carries_messages(void **state)
{
	static const size_t sizes[] = {299, 300, 555, 799, 800, 2000};
	struct weft_proto_info info = {.size = sizeof(info)};
	uint64_t seed = 3;
	struct pair p;

	(void)state;
	start(&p, 2);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		bool its = sizes[i] >= 300 && sizes[i] < 800;
		struct op s, r;

		assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, sizes[i], &info),
				 0);
		assert_int_equal(strcmp(info.name, "test/odd") == 0, its);
		pattern_fill(i, 0, src, sizes[i]);
		seen.progress = 0;
		op_recv(&r, &p.w[1], dst, sizeof(dst), i, FULL);
		op_send(&s, &p.ep[0], src, sizes[i], i);
		assert_int_equal(seen.progress != 0, its);
		if (its)
			assert_int_equal(pair_count(&p, 1, WEFT_WIRE_FRAG), (sizes[i] + 99) / 100);
		pair_run_random(&p, &seed);
		op_end(&s, 0);
		op_end_recv(&r, dst, sizes[i], i, i);
	}
	/* Nor does it do what it has not said that it does. */
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND_SYNC, 500, &info), 0);
	assert_string_equal(info.name, "eager/bcopy");
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_PUT, 500, &info), -EOPNOTSUPP);
	assert_int_equal(seen.abort + seen.reset, 0);
	pair_check_empty(&p);
	pair_close(&p);
}

static void its_abort_is_called_when_the_endpoint_ends(void **state)
{
	struct op s[2];
	struct pair p;

	(void)state;
	start(&p, 1);
	seen.stopped = true;
	op_send(&s[0], &p.ep[0], src, 500, 1); /* a part of it has left */
	op_send(&s[1], &p.ep[0], src, 500, 2); /* waits behind */
	pair_run(&p);
	assert_int_equal(seen.abort, 0);
	pair_fail(&p, 0, -ETIMEDOUT);
	assert_int_equal(seen.abort, 1);
	assert_int_equal(seen.abort_status, -ETIMEDOUT);
	op_end(&s[0], -ETIMEDOUT);
	op_end(&s[1], -ETIMEDOUT);
	pair_close(&p);
}

static void its_reset_is_called_when_lanes_come_while_it_is_under_way(void **state)
{
	struct op s[2], r[2];
	struct pair p;

	(void)state;
	start(&p, 2);
	for (int i = 0; i < 2; i++) {
		p.ep[i].lanes_up = 1;
		weft_msg_ep_connected(&p.ep[i], NULL);
	}
	seen.stopped = true;
	for (uint64_t i = 0; i < 2; i++) {
		pattern_fill(i, 0, src + 500 * i, 500);
		op_recv(&r[i], &p.w[1], dst + 500 * i, 500, i, FULL);
		op_send(&s[i], &p.ep[0], src + 500 * i, 500, i);
	}
	weft_msg_ep_connected(&p.ep[0], NULL); /* the same lanes */
	assert_int_equal(seen.reset, 0);
	for (int i = 0; i < 2; i++) {
		p.ep[i].lanes_up = 3;
		weft_msg_ep_connected(&p.ep[i], NULL);
	}
	/* The one that has begun; the other is selected anew all the same. */
	assert_int_equal(seen.reset, 1);
	seen.stopped = false;
	pair_run(&p);
	for (uint64_t i = 0; i < 2; i++) {
		op_end(&s[i], 0);
		op_end_recv(&r[i], dst + 500 * i, 500, i, i);
	}
	assert_true(p.info[0][1].tx_bytes > 0);
	pair_check_empty(&p);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_chosen_where_it_is_fastest_and_carries_messages),
		cmocka_unit_test(its_abort_is_called_when_the_endpoint_ends),
		cmocka_unit_test(its_reset_is_called_when_lanes_come_while_it_is_under_way),
	};

	return cmocka_run_group_tests_name("a protocol from outside", tests, NULL, NULL);
}
