/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages by the protocols that tags have: in pieces over all lanes, heard of once and in
 * order, whatever arrives first; and aborted ones.
 */

#include "am/am.h"
#include "mock/rma_util.h"
#include "msg/eager.h"

static const struct pair_lane_params lanes[3] = {
	{.max_short = 256, .max_bcopy = 1024, .latency = 1e-6},
	{.max_short = 200, .max_bcopy = 3000, .max_zcopy = 3000, .max_iov = 4, .latency = 2e-6},
	{.max_bcopy = 2000, .latency = 3e-6},
};

struct log {
	unsigned int calls;
	struct weft_am_msg last;
	uint8_t header[WEFT_AM_HEADER_MAX], data[8192];
	struct weft_am_data *kept;
	bool keep;
};

/* The header's first byte is the message's number and the seed of its bytes. */
static int handler(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct log *l = arg;

	(void)worker;
	l->calls++;
	l->last = *msg;
	assert_int_equal(msg->flags & WEFT_AM_F_RNDV, 0);
	assert_in_range(msg->length, 0, sizeof(l->data));
	memcpy(l->header, msg->header, msg->header_length);
	memcpy(l->data, msg->data, msg->length);
	pattern_expect(l->header[0], msg->data, msg->length);
	if (!l->keep || !msg->desc)
		return 0;
	l->kept = msg->desc;
	return WEFT_INPROGRESS;
}

static void open_stage(struct stage *s, struct log *l, unsigned int n)
{
	memset(l, 0, sizeof(*l));
	stage_open(s, n, lanes, 100);
	s->p.ctx.features |= WEFT_FEATURE_AM;
	assert_int_equal(weft_worker_set_am_handler(&s->p.w[1], 7, handler, l, 0), 0);
}

static void send(struct op *op, struct stage *s, unsigned int flags, const void *header,
		 size_t header_len, const void *buf, size_t len, const struct weft_datatype *type)
{
	struct weft_op_params p = op_params(op, type);
	struct weft_am_send_params a =
		WEFT_INIT(struct weft_am_send_params, .id = 7, .flags = flags, .header = header,
			  .header_length = header_len);

	op->rc = weft_am_send(s->ep, &a, buf, len, &p, &op->req);
}

static void medium_messages_go_over_all_lanes_and_are_delivered_once(void **state)
{
	static const size_t sizes[] = {1020, 1100, 3000, 5000, 8000};
	uint8_t header[WEFT_AM_HEADER_MAX], buf[8000];
	uint64_t seed = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (int round = 0; round < 20; round++) {
			struct stage s;
			struct log l;
			struct op op;

			pair_defaults(&s.p);
			open_stage(&s, &l, 3);
			pattern_fill(3, 0, header, sizeof(header));
			header[0] = (uint8_t)round;
			pattern_fill(header[0], 0, buf, sizes[i]);
			send(&op, &s, 0, header, 1 + (size_t)round * 13, buf, sizes[i], NULL);
			assert_true(pair_count(&s.p, 1, WEFT_WIRE_AM_FRAG) >= 2);
			if (sizes[i] >= 8000)
				for (unsigned int k = 0; k < 3; k++)
					assert_true(s.p.info[0][k].tx_bytes > 0);
			pair_run_random(&s.p, &seed);
			op_end(&op, 0);
			assert_int_equal(l.calls, 1);
			assert_int_equal(l.last.length, sizes[i]);
			assert_int_equal(l.last.header_length, 1 + round * 13);
			assert_memory_equal(l.header, header, l.last.header_length);
			assert_int_equal(l.last.flags, WEFT_AM_F_KEEPABLE);
			stage_check_empty(&s);
			stage_close(&s);
		}
	}
}

static void order_holds_between_whole_messages_pieces_and_tags(void **state)
{
	enum { N = 40 };
	static uint8_t buf[N][7000], got[7000];
	uint64_t seed = 99;

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct op op[N], tag, r;
		struct stage s;
		struct log l;

		pair_defaults(&s.p);
		s.p.conf.seq_start = UINT32_MAX - 7;
		open_stage(&s, &l, 3);
		for (uint8_t i = 0; i < N; i++) {
			size_t len = pair_random(&seed) % 2 ? pair_random(&seed) % 300
							    : pair_random(&seed) % 7000;

			pattern_fill(i, 0, buf[i], len);
			send(&op[i], &s, 0, &i, 1, buf[i], len, NULL);
			assert_in_range(op[i].rc, 0, 1);
		}
		op_recv(&r, &s.p.w[1], got, sizeof(got), 1, FULL);
		op_send(&tag, s.ep, buf[0], 7000, 1);
		for (unsigned int k = 0; s.p.num; k++) {
			unsigned int before = l.calls;

			pair_deliver(&s.p, pair_random(&seed) % s.p.num);
			/* The last one reported is the number of calls: none was left out. */
			if (l.calls > before)
				assert_int_equal(l.header[0], l.calls - 1);
			if (k % 8 == 0)
				pair_progress(&s.p);
		}
		pair_run(&s.p);
		for (int i = 0; i < N; i++)
			op_end(&op[i], 0);
		op_end(&tag, 0);
		op_end(&r, 0);
		assert_int_equal(l.calls, N);
		stage_check_empty(&s);
		stage_close(&s);
	}
}

static void what_came_in_pieces_can_be_kept(void **state)
{
	uint8_t buf[4000], header = 9;
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	open_stage(&s, &l, 2);
	l.keep = true;
	pattern_fill(header, 0, buf, sizeof(buf));
	send(&op, &s, 0, &header, 1, buf, sizeof(buf), NULL);
	pair_run(&s.p);
	op_end(&op, 0);
	assert_non_null(l.kept);
	pattern_expect(header, l.last.data, sizeof(buf));
	assert_int_equal(weft_am_data_release(&s.p.w[1], l.kept), 0);
	stage_check_empty(&s);
	stage_close(&s);
}

/* A header for which the message is a byte too long for the lane: the next protocol takes it. */
static void a_long_header_moves_the_message_to_the_next_protocol(void **state)
{
	uint8_t header[WEFT_AM_HEADER_MAX] = {4}, buf[1016];

	(void)state;
	for (size_t limit = 0; limit <= 8192; limit += 8192) {
		for (size_t n = 8; n <= sizeof(header); n += 8) {
			struct stage s;
			struct log l;
			struct op op, eager;
			size_t whole;

			pair_defaults(&s.p);
			s.p.conf.multi_eager_limit = limit;
			open_stage(&s, &l, 1);
			pattern_fill(4, 0, buf, sizeof(buf));
			whole = 1024 - sizeof(struct weft_wire_am) - n;
			send(&op, &s, 0, header, n, buf, whole, NULL);
			assert_int_equal(pair_count(&s.p, 1, WEFT_WIRE_AM), 1);
			op_end(&op, 0);
			pair_run(&s.p);
			assert_int_equal(l.calls, 1);
			send(&op, &s, 0, header, n, buf, whole + 1, NULL);
			assert_int_equal(pair_count(&s.p, 1, WEFT_WIRE_AM), 0);
			assert_int_equal(pair_count(&s.p, 1, WEFT_WIRE_AM_RTS), limit ? 0 : 1);
			send(&eager, &s, WEFT_AM_SEND_F_EAGER, header, n, buf, whole + 1, NULL);
			op_end(&eager, limit ? 0 : -EMSGSIZE);
			while (limit && s.p.num)
				pair_deliver(&s.p, 0);
			if (limit)
				assert_int_equal(l.calls, 3);
			weft_worker_set_am_handler(&s.p.w[1], 7, NULL, NULL, 0);
			pair_run(&s.p);
			op_end(&op, 0);
			stage_close(&s);
		}
	}
}

/*
 * An eager message was accepted, and then the peer, which has many peers now, takes back most of
 * its window: the message ends, and what is behind it goes on.
 */
static void an_eager_message_beyond_a_window_that_shrank_ends(void **state)
{
	enum { WINDOW = 8192 };
	static uint8_t header = 1, buf[WINDOW];
	struct op first, late, next;
	struct weft_credit_pool *p;
	struct stage s;
	struct log l;

	(void)state;
	pair_defaults(&s.p);
	s.p.conf.unexp_limit = 32 * WINDOW;
	s.p.conf.eager_credit = WINDOW;
	s.p.conf.multi_eager_limit = 1 << 20;
	open_stage(&s, &l, 2);
	l.keep = true;
	pattern_fill(header, 0, buf, sizeof(buf));
	send(&first, &s, WEFT_AM_SEND_F_EAGER, &header, 1, buf, 7000, NULL);
	pair_run(&s.p);
	op_end(&first, 0);
	assert_non_null(l.kept);
	assert_int_equal(s.p.ep[0].msg->tx_window, WINDOW);
	send(&late, &s, WEFT_AM_SEND_F_EAGER, &header, 1, buf, 6100, NULL);
	send(&next, &s, 0, &header, 1, buf, 1000, NULL);
	assert_int_equal(late.rc, WEFT_INPROGRESS);
	pair_run(&s.p);
	assert_false(op_done(&late));
	p = &s.p.w[1].msg->credit_bytes;
	for (unsigned int i = 0; i < 100; i++)
		weft_credit_pool_join(p);
	assert_int_equal(weft_am_data_release(&s.p.w[1], l.kept), 0);
	l.keep = false;
	pair_run(&s.p);
	assert_in_range(s.p.ep[1].msg->rx_window, 1, WINDOW / 2);
	op_end(&late, -EMSGSIZE);
	op_end(&next, 0);
	assert_int_equal(l.calls, 2);
	/* The call says so from now on; what fits goes, and goes on to. */
	send(&late, &s, WEFT_AM_SEND_F_EAGER, &header, 1, buf, 6100, NULL);
	op_end(&late, -EMSGSIZE);
	for (unsigned int i = 0; i < 10; i++) {
		size_t fits = s.p.ep[1].msg->rx_window * 3 / 4;

		send(&next, &s, WEFT_AM_SEND_F_EAGER, &header, 1, buf, fits, NULL);
		pair_run(&s.p);
		op_end(&next, 0);
	}
	stage_check_empty(&s);
	stage_close(&s);
}

/* ------------------------------------------------------------------ aborts */

struct broken {
	const uint8_t *buf;
	size_t length, fails_at;
};

static void *broken_start(void *arg, const void *buffer, size_t count)
{
	(void)buffer;
	(void)count;
	return arg;
}

static size_t broken_size(void *state)
{
	return ((struct broken *)state)->length;
}

static ssize_t broken_pack(void *state, size_t offset, void *dst, size_t max)
{
	struct broken *b = state;

	if (offset + max > b->fails_at)
		return -EIO;
	memcpy(dst, b->buf + offset, max);
	return (ssize_t)max;
}

static void broken_finish(void *state)
{
	(void)state;
}

static void a_pack_error_ends_the_message_and_those_behind_it_are_delivered(void **state)
{
	static const struct weft_generic_ops ops = {.size = sizeof(ops),
						    .start_pack = broken_start,
						    .packed_size = broken_size,
						    .pack = broken_pack,
						    .finish = broken_finish};
	uint8_t buf[6000], one = 1;
	uint64_t seed = 31;

	(void)state;
	pattern_fill(0, 0, buf, sizeof(buf));
	for (int round = 0; round < 60; round++) {
		struct broken b = {buf, sizeof(buf), (size_t)round % 3 * 2000};
		struct weft_datatype type = WEFT_INIT(
			struct weft_datatype, .dt_class = WEFT_DT_GENERIC, .ops = &ops, .arg = &b);
		uint64_t used;
		struct op op[2];
		struct stage s;
		struct log l;

		pair_defaults(&s.p);
		open_stage(&s, &l, 3);
		used = s.ep->msg->tx_credit - s.ep->msg->tx_used;
		send(&op[0], &s, 0, NULL, 0, NULL, 1, &type);
		pattern_fill(one, 0, buf, 1500);
		send(&op[1], &s, 0, &one, 1, buf, 1500, NULL);
		if (round & 1) /* the end before any piece */
			for (size_t i = 0; i < s.p.num; i++)
				if (s.p.msgs[i].id == WEFT_WIRE_ABORT)
					pair_deliver(&s.p, i);
		pair_run_random(&s.p, &seed);
		op_end(&op[0], -EIO);
		op_end(&op[1], 0);
		assert_int_equal(l.calls, 1);
		assert_int_equal(l.header[0], 1);
		assert_int_equal(s.p.w[1].msg->count.am_aborted, 1);
		/* Its credit has come back with the other's. */
		weft_credit_send(s.p.ep[1].msg);
		pair_run(&s.p);
		assert_int_equal(s.ep->msg->tx_credit - s.ep->msg->tx_used, used);
		pattern_fill(0, 0, buf, sizeof(buf));
		stage_close(&s);
	}
}

static void the_end_of_the_connection_frees_what_is_half_there(void **state)
{
	uint8_t buf[6000] = {0};
	struct stage s;
	struct log l;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	open_stage(&s, &l, 3);
	pair_room(&s.p, 0, 1);
	send(&op, &s, 0, NULL, 0, buf, sizeof(buf), NULL);
	assert_int_equal(op.rc, WEFT_INPROGRESS);
	while (s.p.num)
		pair_deliver(&s.p, 0);
	pair_fail(&s.p, 0, -ETIMEDOUT);
	pair_fail(&s.p, 1, -ETIMEDOUT);
	op_end(&op, -ETIMEDOUT);
	assert_int_equal(l.calls, 0);
	stage_check_empty(&s);
	stage_close(&s);
}

/* ------------------------------------------------------------------ hostile */

struct piece {
	struct weft_wire_am_frag f;
	uint8_t rest[100];
} __attribute__((packed));

static void hit(struct stage *s, uint32_t seq, uint16_t id, uint16_t header, uint64_t total,
		uint64_t offset, size_t len)
{
	struct piece *m = calloc(1, sizeof(*m));
	uint8_t *exact = malloc(sizeof(m->f) + len);

	m->f = (struct weft_wire_am_frag){{weft_put32(seq), weft_put16(id), weft_put16(header)},
					  weft_put64(total),
					  weft_put64(offset)};
	memcpy(exact, m, sizeof(m->f) + len);
	weft_msg_recv(&s->p.ep[1], 0, WEFT_WIRE_AM_FRAG, exact, sizeof(m->f) + len);
	free(exact);
	free(m);
}

static void pieces_that_contradict_each_other_are_dropped_and_counted(void **state)
{
	struct weft_msg_worker *mw;
	struct stage s;
	struct log l;

	(void)state;
	pair_defaults(&s.p);
	open_stage(&s, &l, 1);
	mw = s.p.w[1].msg;
	hit(&s, 1, 8, 4, 100, 50, 20);
	hit(&s, 1, 8, 4, 101, 70, 20); /* another length */
	hit(&s, 1, 9, 4, 100, 70, 20); /* another handler */
	hit(&s, 1, 8, 5, 100, 70, 20); /* another header */
	assert_int_equal(mw->count.mismatch, 3);
	hit(&s, 1, 8, 4, 100, 60, 20); /* again */
	assert_int_equal(mw->count.overlap, 1);
	hit(&s, 1, 8, 4, 100, 0, 4 + 50);
	hit(&s, 1, 8, 4, 100, 70, 30);
	hit(&s, 1, 8, 4, 100, 70, 30); /* it is whole, and waits for its turn */
	assert_int_equal(mw->count.mismatch, 4);
	assert_int_equal(s.p.fail_status[1], 0);
	hit(&s, 0, 8, 0, 10, 0, 10);
	assert_int_equal(mw->count.am_unknown, 2);
	hit(&s, 0, 8, 0, 10, 0, 10); /* over */
	assert_int_equal(mw->count.old_seq, 1);
	assert_int_equal(s.p.fail_status[1], 0);
	stage_close(&s);
}

/* @behaviour T6 */
static void malformed_pieces_and_floods_end_the_endpoint(void **state)
{
	static const struct {
		uint32_t seq;
		uint16_t header;
		uint64_t total, offset;
		size_t len;
	} t[] = {
		{0, 0, 100, 0, 0},
		{0, 4, 100, 0, 4},
		{0, 4, 100, 0, 3},
		{0, 257, 100, 10, 10},
		{0, 0, 100, 101, 1},
		{0, 0, 100, 95, 6},
		{0, 0, UINT64_MAX, 0, 1},
		{0, 0, 100, UINT64_MAX, 1},
		{4096, 0, 100, 0, 10},
		{0, 0, 1u << 21, 0, 10} /* more than the credit */,
		{0, 0, (uint64_t)1 << 62, 5, 10},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct stage s;
		struct log l;

		pair_defaults(&s.p);
		open_stage(&s, &l, 1);
		weft_log_level = -1;
		hit(&s, t[i].seq, 7, t[i].header, t[i].total, t[i].offset, t[i].len);
		assert_int_equal(s.p.fail_status[1], -EPROTO);
		stage_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medium_messages_go_over_all_lanes_and_are_delivered_once),
		cmocka_unit_test(order_holds_between_whole_messages_pieces_and_tags),
		cmocka_unit_test(what_came_in_pieces_can_be_kept),
		cmocka_unit_test(an_eager_message_beyond_a_window_that_shrank_ends),
		cmocka_unit_test(a_long_header_moves_the_message_to_the_next_protocol),
		cmocka_unit_test(a_pack_error_ends_the_message_and_those_behind_it_are_delivered),
		cmocka_unit_test(the_end_of_the_connection_frees_what_is_half_there),
		cmocka_unit_test(pieces_that_contradict_each_other_are_dropped_and_counted),
		cmocka_unit_test(malformed_pieces_and_floods_end_the_endpoint),
	};

	return cmocka_run_group_tests_name("active messages in pieces", tests, NULL, NULL);
}
