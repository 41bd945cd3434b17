/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels and immediate data: with every length and protocol, in probes, receives and handlers;
 * what is without them has no byte more.
 */

#include "common/op.h"
#include "mock/ep_pair.h"
#include "msg/msg.h"

#define MOST 300000u

static uint8_t out[MOST], in[MOST];

static const size_t lens[] = {0, 1, 8, 200, 240, 250, 256, 257, 4000, 4096, 9000, 20000, MOST};

#define NUM_LENS (sizeof(lens) / sizeof(*lens))

static void up(struct pair *p, uint64_t seed)
{
	mock_reset();
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM;
	mock_seed(seed + 1);
	pair_up(p, two_nics);
	mock_set_order(MOCK_RANDOM);
	mock_set_eagain(NULL, seed % 3 * 200);
}

static void done(struct pair *p, struct weft_request *req)
{
	for (int i = 0; req && i < 3000 && weft_request_test(req, NULL) == WEFT_INPROGRESS; i++)
		mock_run(1, MS, p->a, p->b, NULL);
	assert_int_equal(req ? weft_request_test(req, NULL) : 0, 0);
	weft_request_free(req);
}

static struct weft_op_params params(uint32_t flags, uint64_t imm, uint16_t channel, uint16_t from)
{
	return WEFT_INIT(struct weft_op_params, .flags = flags, .imm = imm, .channel = channel,
			 .source_channel = from);
}

static void is(const struct weft_completion *c, bool imm, uint64_t value, uint16_t channel,
	       uint16_t from)
{
	assert_int_equal(c->flags, imm ? WEFT_COMPLETION_F_IMM : 0);
	assert_true(c->imm == (imm ? value : 0));
	assert_int_equal(c->channel, channel);
	assert_int_equal(c->source_channel, from);
}

/* ------------------------------------------------------------------ tags */

static struct weft_completion called; /* of the last receive with a callback */

static void note(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	assert_ptr_equal(arg, &called);
	called = *c;
}

static void expect_same(const struct weft_completion *a, const struct weft_completion *b)
{
	is(a, b->flags & WEFT_COMPLETION_F_IMM, b->imm, b->channel, b->source_channel);
	assert_int_equal(a->status, b->status);
	assert_true(a->size == b->size && a->length == b->length && a->tag == b->tag);
	assert_true(a->ep == b->ep && a->source_id == b->source_id);
}

static void every_length_and_protocol(void **state)
{
	struct weft_request *s, *r;
	struct pair p;

	(void)state;
	for (unsigned int i = 0; i < NUM_LENS * 16; i++) {
		bool imm = i & 1, sync = i & 2, early = i & 4, probe = i & 8;
		size_t len = lens[i / 16];
		uint16_t channel = (uint16_t)(i % 3 * 7), from = (uint16_t)(i % 5 ? 0xffff : 0);
		struct weft_op_params sp =
			params(imm ? WEFT_OP_F_IMM : 0, ~(uint64_t)i, channel, from);
		struct weft_op_params rp = params(0, 0, channel, 0);
		struct weft_completion c = WEFT_INIT(struct weft_completion), now = c;
		struct weft_message *msg = NULL;
		int rc = WEFT_INPROGRESS;

		up(&p, i);
		pattern_fill(i, 0, out, len);
		memset(in, 0, len);
		rp.completion = &now;
		rp.cb = note;
		rp.cb_arg = &called;
		if (early)
			rc = weft_tag_recv(p.b, NULL, in, len, 5, FULL, &rp, &r);
		assert_true((sync ? weft_tag_send_sync(p.x, out, len, 5, &sp, &s)
				  : weft_tag_send(p.x, out, len, 5, &sp, &s)) >= 0);
		if (!early) {
			mock_run(200, MS, p.a, p.b, NULL);
			/* Not for a probe of another channel. */
			rp.channel = (uint16_t)(channel + 1);
			rp.completion = NULL;
			assert_int_equal(weft_tag_probe(p.b, NULL, 5, FULL, &rp, NULL, NULL),
					 -ENOMSG);
			assert_int_equal(weft_tag_probe(p.b, p.y, 0, 0, &rp, NULL, NULL), -ENOMSG);
			rp.channel = channel;
			assert_int_equal(weft_tag_probe(p.b, NULL, 5, FULL, &rp,
							probe ? &msg : NULL, &c),
					 0);
			is(&c, imm, ~(uint64_t)i, channel, from);
			assert_true(c.length == len);
			rp.completion = &now;
			if (probe)
				rp.channel = 0; /* it has been decided */
			rc = probe ? weft_tag_msg_recv(p.b, msg, in, len, &rp, &r)
				   : weft_tag_recv(p.b, NULL, in, len, 5, FULL, &rp, &r);
		}
		assert_true(rc >= 0);
		for (int k = 0; rc && k < 3000 && weft_request_test(r, &now) == WEFT_INPROGRESS;
		     k++)
			mock_run(1, MS, p.a, p.b, NULL);
		is(&now, imm, ~(uint64_t)i, channel, from);
		assert_true(now.length == len && now.status == 0);
		pattern_expect(i, in, len);
		if (rc) {
			expect_same(&called, &now);
			weft_request_free(r);
		}
		done(&p, s);
		pair_down(&p);
	}
}

static void receives_get_the_messages_of_their_channels_in_order(void **state)
{
	struct weft_request *r[64];
	uint32_t got[64], sent[64];
	struct pair p;

	(void)state;
	for (unsigned int seed = 0; seed < 40; seed++) {
		unsigned int next[4] = {0};

		up(&p, seed);
		for (unsigned int i = 0; i < 64; i++) {
			struct weft_op_params sp = params(0, 0, (uint16_t)(i % 4), 9);

			sent[i] = i;
			if (seed % 2)
				assert_true(weft_tag_send(p.x, &sent[i], 4, 1, &sp, NULL) >= 0);
			if (i % 8 == 7)
				mock_run(1, MS, p.a, p.b, NULL);
		}
		if (seed % 4 == 1)
			mock_run(200, MS, p.a, p.b, NULL);
		for (unsigned int i = 0; i < 64; i++) {
			struct weft_op_params rp = params(i % 5 ? 0 : WEFT_OP_F_SOURCE_CHANNEL, 0,
							  (uint16_t)(i % 4), 9);

			assert_true(weft_tag_recv(p.b, i % 5 ? NULL : p.y, &got[i], 4, i % 3,
						  i % 3 == 1 ? FULL : 0, &rp, &r[i]) >= 0);
		}
		for (unsigned int i = 0; i < 64 && seed % 2 == 0; i++) {
			struct weft_op_params sp = params(0, 0, (uint16_t)(i % 4), 9);

			assert_true(weft_tag_send(p.x, &sent[i], 4, 1, &sp, NULL) >= 0);
		}
		for (unsigned int i = 0; i < 64; i++) {
			done(&p, r[i]);
			assert_int_equal(got[i], i % 4 + 4 * next[i % 4]++);
		}
		pair_down(&p);
	}
}

static void a_receive_may_name_the_channel_it_comes_from(void **state)
{
	struct weft_op_params want = params(WEFT_OP_F_SOURCE_CHANNEL, 0, 2, 6);
	struct weft_op_params from5 = params(0, 0, 2, 5), from6 = params(0, 0, 2, 6);
	struct weft_completion c = WEFT_INIT(struct weft_completion);
	struct weft_request *r;
	struct pair p;
	uint32_t v;

	(void)state;
	up(&p, 1);
	v = 5;
	assert_true(weft_tag_send(p.x, &v, 4, 1, &from5, NULL) >= 0);
	mock_run(50, MS, p.a, p.b, NULL);
	assert_int_equal(weft_tag_probe(p.b, p.y, 1, FULL, &want, NULL, &c), -ENOMSG);
	assert_int_equal(weft_tag_recv(p.b, p.y, in, 4, 1, FULL, &want, &r), WEFT_INPROGRESS);
	mock_run(50, MS, p.a, p.b, NULL);
	assert_int_equal(weft_request_test(r, NULL), WEFT_INPROGRESS);
	v = 6;
	assert_true(weft_tag_send(p.x, &v, 4, 1, &from6, NULL) >= 0);
	done(&p, r);
	assert_int_equal(in[0], 6);
	/* It needs a source, and room for the field. */
	assert_int_equal(weft_tag_recv(p.b, NULL, in, 4, 1, FULL, &want, &r), -EINVAL);
	assert_int_equal(weft_tag_probe(p.b, NULL, 1, FULL, &want, NULL, NULL), -EINVAL);
	want.size = WEFT_OP_PARAMS_LEAST;
	assert_int_equal(weft_tag_recv(p.b, p.y, in, 4, 1, FULL, &want, &r), -EINVAL);
	assert_int_equal(weft_tag_send(p.x, &v, 4, 1, &want, NULL), -EINVAL);
	from5.flags = WEFT_OP_F_IMM;
	assert_int_equal(weft_tag_recv(p.b, p.y, in, 4, 1, FULL, &from5, &r), -EINVAL);
	from5.flags = WEFT_OP_F_FORCE_REQUEST;
	assert_int_equal(weft_tag_probe(p.b, p.y, 1, FULL, &from5, NULL, NULL), -EINVAL);
	pair_down(&p);
}

/* A caller that was compiled before there were such fields. */
static void a_shorter_struct_is_channel_0(void **state)
{
	struct weft_op_params old = params(0, 77, 3, 4);
	struct weft_completion c = WEFT_INIT(struct weft_completion, .channel = 99);
	struct weft_request *r;
	struct pair p;

	(void)state;
	old.size = c.size = WEFT_OP_PARAMS_LEAST;
	c.size = offsetof(struct weft_completion, imm);
	up(&p, 1);
	assert_true(weft_tag_send(p.x, "abc", 4, 1, &old, NULL) >= 0);
	mock_run(50, MS, p.a, p.b, NULL);
	assert_int_equal(weft_tag_probe(p.b, NULL, 1, FULL, NULL, NULL, &c), 0);
	assert_int_equal(c.channel, 99);
	assert_true(weft_tag_recv(p.b, NULL, in, 4, 1, FULL, &old, &r) >= 0);
	assert_memory_equal(in, "abc", 4);
	pair_down(&p);
}

static void *start(void *arg, const void *buffer, size_t count)
{
	return arg;
}

static void *start_un(void *arg, void *buffer, size_t count)
{
	return arg;
}

static size_t packed(void *state)
{
	return *(size_t *)state;
}

static ssize_t pack(void *state, size_t offset, void *dst, size_t max)
{
	return -EIO;
}

static int unpack(void *state, size_t offset, const void *src, size_t length)
{
	return 0;
}

static void finish(void *state)
{
}

/* A message that its sender can't pack ends the receive of its channel, and no other. */
static void an_abort_keeps_its_channel(void **state)
{
	static const struct weft_generic_ops ops = {.size = sizeof(ops),
						    .start_pack = start,
						    .start_unpack = start_un,
						    .packed_size = packed,
						    .pack = pack,
						    .unpack = unpack,
						    .finish = finish};
	size_t len = 3000;
	struct weft_datatype dt = {
		.size = sizeof(dt), .dt_class = WEFT_DT_GENERIC, .ops = &ops, .arg = &len};
	struct weft_op_params sp = params(WEFT_OP_F_IMM, 3, 2, 0), rp = params(0, 0, 2, 0);
	struct weft_request *r0, *r2;
	struct pair p;

	(void)state;
	up(&p, 0);
	sp.datatype = &dt;
	assert_true(weft_tag_recv(p.b, NULL, in, 100, 0, 0, NULL, &r0) >= 0);
	assert_true(weft_tag_recv(p.b, NULL, in, 100, 0, 0, &rp, &r2) >= 0);
	weft_tag_send(p.x, in, 1, 1, &sp, NULL);
	mock_run(100, MS, p.a, p.b, NULL);
	assert_int_equal(weft_request_test(r2, NULL), -EIO);
	assert_int_equal(weft_request_test(r0, NULL), WEFT_INPROGRESS);
	assert_int_equal(weft_request_cancel(r0), 0);
	weft_request_free(r0);
	weft_request_free(r2);
	pair_down(&p);
}

/* ------------------------------------------------------------------ active messages */

static struct weft_am_msg seen;
static unsigned int calls;
static struct weft_am_data *desc;

static int handler(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	(void)worker;
	(void)arg;
	seen = *msg;
	calls++;
	desc = msg->desc;
	return msg->flags & WEFT_AM_F_RNDV ? WEFT_INPROGRESS : 0;
}

static void active_messages_report_theirs(void **state)
{
	struct weft_am_send_params am = WEFT_INIT(struct weft_am_send_params, .id = 9,
						  .header = "head", .header_length = 4);
	struct weft_request *s;
	struct pair p;

	(void)state;
	for (unsigned int i = 0; i < NUM_LENS * 6; i++) {
		bool imm = i % 2;
		size_t len = lens[i / 6];
		struct weft_op_params sp = params(imm ? WEFT_OP_F_IMM : 0, 1000 + i,
						  (uint16_t)(i % 3), (uint16_t)(i % 7));

		up(&p, i);
		calls = 0;
		assert_int_equal(
			weft_worker_set_am_handler(p.b, 9, handler, NULL,
						   i % 3 ? WEFT_AM_HANDLER_F_PERSISTENT_DATA : 0),
			0);
		assert_true(weft_am_send(p.x, &am, out, len, &sp, &s) >= 0);
		for (int k = 0; k < 2000 && !calls; k++)
			mock_run(1, MS, p.a, p.b, NULL);
		assert_int_equal(calls, 1);
		assert_int_equal(seen.flags & WEFT_AM_F_IMM, imm ? WEFT_AM_F_IMM : 0);
		assert_true(seen.imm == (imm ? 1000 + i : 0));
		assert_int_equal(seen.channel, i % 3);
		assert_int_equal(seen.source_channel, i % 7);
		assert_true(seen.length == len);
		if (seen.flags & WEFT_AM_F_RNDV) {
			struct weft_completion c = WEFT_INIT(struct weft_completion);
			struct weft_request *r;

			assert_true(weft_am_recv_data(p.b, desc, in, len, NULL, &r) >= 0);
			while (weft_request_test(r, &c) == WEFT_INPROGRESS)
				mock_run(1, MS, p.a, p.b, NULL);
			is(&c, imm, 1000 + i, (uint16_t)(i % 3), (uint16_t)(i % 7));
			weft_request_free(r);
		}
		done(&p, s);
		pair_down(&p);
	}
	mock_features = 0;
}

/* ------------------------------------------------------------------ bytes */

/* What a lane that died had goes in parts over one that takes less: each has EXT in front. */
static void parts_have_it_in_front(void **state)
{
	static const uint8_t ids[] = {WEFT_WIRE_EAGER, WEFT_WIRE_EAGER_SYNC, WEFT_WIRE_AM,
				      WEFT_WIRE_FRAG, WEFT_WIRE_AM_FRAG};
	static const size_t heads[] = {12, 20, 8, 28, 24};
	uint8_t room[WEFT_RECAST_ROOM + 600], part[WEFT_LANE_PIECE_ROOM];

	(void)state;
	for (unsigned int i = 0; i < sizeof(ids); i++) {
		uint8_t *msg = room + WEFT_RECAST_ROOM, *at, id;
		const struct weft_ext ext = {
			.imm = 42, .channel = 3, .source_channel = 4, .has_imm = true};
		struct weft_wire_ext x = weft_ext_to_wire(&ext, ids[i]);
		size_t length = sizeof(x) + heads[i] + 500, head;

		memset(room, 0, sizeof(room));
		memcpy(msg, &x, sizeof(x));
		if (i == 3)
			((struct weft_wire_frag *)(msg + 16))->total = weft_put64(500);
		if (i == 4)
			((struct weft_wire_am_frag *)(msg + 16))->total = weft_put64(500);
		pattern_fill(i, 0, msg + length - 500, 500);
		assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, length), 0);
		id = weft_msg_recast(WEFT_WIRE_EXT, msg, length);
		assert_int_equal(id, i < 3 ? WEFT_WIRE_EXT : 0);
		at = i < 3 ? room : msg;
		length += i < 3 ? WEFT_RECAST_ROOM : 0;
		assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, at, length), 0);
		pattern_expect(i, at + length - 500, 500);
		/* From the 200th byte of the payload on. */
		head = weft_msg_part(WEFT_WIRE_EXT, at, length - 300, part + sizeof(part));
		assert_int_equal(head, length - 500);
		assert_true(((struct weft_wire_ext *)(part + sizeof(part) - head))->imm.v ==
			    x.imm.v);
		assert_int_equal(
			weft_get16(((struct weft_wire_ext *)(part + sizeof(part) - head))->channel),
			3);
		assert_true(weft_get64(*(weft_le64 *)(part + sizeof(part) - (i == 1 ? 16 : 8))) ==
			    200);
		if (i != 2 && i != 4)
			assert_int_equal(weft_msg_split(WEFT_WIRE_EXT, at, length - 300,
							part + sizeof(part)),
					 head);
	}
}

/* Frames in several buffers are looked at before anything in them is checked. */
static void none_inside_another_is_cut(void **state)
{
	uint8_t msg[8 * 16 + 64] = {0}, part[512];
	struct weft_wire_ext *x = (void *)msg;

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		x[i].id = i < 7 ? WEFT_WIRE_EXT : WEFT_WIRE_FRAG;
	assert_int_equal(weft_msg_split(WEFT_WIRE_EXT, msg, 0, NULL), 0);
	memset(part, 0x5a, sizeof(part));
	assert_int_equal(weft_msg_split(WEFT_WIRE_EXT, msg, sizeof(msg), part + 512), 0);
	for (unsigned int i = 0; i < sizeof(part); i++)
		assert_int_equal(part[i], 0x5a);
	x[0].id = WEFT_WIRE_PUT;
	assert_int_equal(weft_msg_split(WEFT_WIRE_EXT, msg, 0, NULL), 0);
}

static void what_ext_may_not_be(void **state)
{
	uint8_t msg[64] = {0};
	struct weft_wire_ext *x = (void *)msg;

	(void)state;
	x->id = WEFT_WIRE_EAGER;
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, 28), 0);
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, 27), -EBADMSG);
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, 15), -EBADMSG);
	x->imm = weft_put64(1);
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, 28), -EBADMSG);
	x->flags = WEFT_EXT_F_IMM;
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, 28), 0);
	x->flags = 0x80;
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, 28), -EBADMSG);
	x->flags = WEFT_EXT_F_IMM;
	x->reserved = weft_put16(1);
	assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, 28), -EBADMSG);
	x->reserved = weft_put16(0);
	for (unsigned int id = 0; id < 256; id++) {
		x->id = (uint8_t)id;
		if (id == 0 || id == WEFT_WIRE_EXT || id == WEFT_WIRE_WIREUP || id >= 32 ||
		    id == WEFT_WIRE_CREDIT)
			assert_int_equal(weft_wire_check(WEFT_WIRE_EXT, msg, 64), -EBADMSG);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(every_length_and_protocol),
		CONN_TEST(receives_get_the_messages_of_their_channels_in_order),
		CONN_TEST(a_receive_may_name_the_channel_it_comes_from),
		CONN_TEST(a_shorter_struct_is_channel_0),
		CONN_TEST(an_abort_keeps_its_channel),
		CONN_TEST(active_messages_report_theirs),
		cmocka_unit_test(parts_have_it_in_front),
		cmocka_unit_test(none_inside_another_is_cut),
		cmocka_unit_test(what_ext_may_not_be),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("ext", tests, NULL, NULL);
}
