/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane dies at any moment, and what it gives back is longer than the lanes that are left take: it
 * is cut for them, and everything arrives once and in order. Then the next one dies, too.
 */

#include "am/am.h"
#include "mock/rma_util.h"
#include "mock/rounds.h"

#define OPS 12
#define SIZE 16000
#define MEM (OPS * SIZE)

/* Each takes less than the one before. */
static const struct pair_lane_params lanes[3] = {
	{.max_short = 256, .max_bcopy = 9000, .max_zcopy = 16384, .bandwidth = 4e9},
	{.max_short = 128, .max_bcopy = 1472, .max_zcopy = 1472},
	{.max_short = 64, .max_bcopy = 556},
};

static uint8_t src[OPS][SIZE], dst[OPS][SIZE];

/* So many allocations of more than a lane's message succeed; -1 = all. */
static int memory_left = -1;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	if (memory_left < 0 || size < 1500)
		return __real_malloc(size);
	return memory_left-- > 0 ? __real_malloc(size) : NULL;
}

enum kind { TAG, TAG_SYNC, AM, PUT, PUT_NOTE, AMO, KINDS };

struct one {
	enum kind kind;
	size_t length, header_length;
	unsigned int noted;
	uint64_t id;
	struct op send, recv;
};

static struct {
	struct stage s;
	struct one op[OPS];
	unsigned int num, next_am;
	uint64_t seed, added;
	unsigned int cut; /* messages of the sender that were longer than the lane that was left */
} run;

static const uint8_t *header_of(uint64_t id)
{
	static uint8_t header[WEFT_AM_HEADER_MAX];

	pattern_fill(id + 100, 0, header, sizeof(header));
	return header;
}

static int handler(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	const struct one *o;

	(void)worker;
	(void)arg;
	while (run.op[run.next_am].kind != AM)
		run.next_am++;
	assert_in_range(run.next_am, 0, run.num - 1);
	o = &run.op[run.next_am++];
	assert_int_equal(msg->length, o->length);
	assert_int_equal(msg->header_length, o->header_length);
	assert_memory_equal(msg->header, header_of(o->id), o->header_length);
	if (!(msg->flags & WEFT_AM_F_RNDV)) /* else it is not fetched */
		pattern_expect(o->id, msg->data, msg->length);
	return 0;
}

/* All of it is there, though it came in parts that no send had. */
static void on_put(struct weft_worker *worker, const struct weft_put_event *e, void *arg)
{
	(void)worker;
	(void)arg;
	assert_in_range(e->imm, 0, OPS - 1);
	run.op[e->imm].noted++;
	assert_int_equal(e->length, run.op[e->imm].length);
	assert_int_equal(e->offset, e->imm * SIZE);
	pattern_expect(e->imm, run.s.mem + e->offset, e->length);
}

static void put_note(struct one *o)
{
	struct weft_op_params p =
		rma_params(&o->send, WEFT_OP_F_IMM | (o->id & 1 ? WEFT_OP_F_DELIVERED : 0), NULL);

	p.imm = o->id;
	o->send.rc = weft_put(run.s.ep, src[o->id], o->length, run.s.rkey, o->id * SIZE, &p,
			      &o->send.req);
}

static uint64_t below(uint64_t n)
{
	return (pair_random(&run.seed) >> 11) % n;
}

static void am_send(struct one *o)
{
	struct weft_op_params p = op_params(&o->send, NULL);
	struct weft_am_send_params a =
		WEFT_INIT(struct weft_am_send_params, .id = 7, .header = header_of(o->id),
			  .header_length = o->header_length);

	o->send.rc = weft_am_send(run.s.ep, &a, src[o->id], o->length, &p, &o->send.req);
}

static void begin(unsigned int i)
{
	static const size_t most[] = {300, 2000, 8900, 8900};
	struct one *o = &run.op[i];

	*o = (struct one){.kind = (enum kind)below(KINDS), .id = i};
	o->length = 1 + below(most[below(4)]);
	o->header_length = below(WEFT_AM_HEADER_MAX + 1);
	pattern_fill(i, 0, src[i], o->length);
	switch (o->kind) {
	case TAG:
		op_send(&o->send, run.s.ep, src[i], o->length, 1);
		break;
	case TAG_SYNC:
		op_send_sync(&o->send, run.s.ep, src[i], o->length, 1);
		break;
	case AM:
		am_send(o);
		break;
	case PUT:
		op_put(&o->send, &run.s, src[i], o->length, (uint64_t)i * SIZE,
		       below(2) ? WEFT_OP_F_DELIVERED : 0);
		break;
	case PUT_NOTE:
		put_note(o);
		break;
	default:
		op_amo(&o->send, &run.s, WEFT_ATOMIC_ADD, 8, i + 1, 0, NULL, MEM, 0);
		run.added += i + 1;
	}
}

/* In order, though all have one tag. */
static void post(unsigned int i)
{
	if (run.op[i].kind <= TAG_SYNC)
		op_recv(&run.op[i].recv, &run.s.p.w[1], dst[i], SIZE, 1, FULL);
}

/* Nothing of what is under way arrives; the sender has it back. */
static void give_back(struct pair *p, unsigned int side, unsigned int lane)
{
	struct pair_lane_ep *l = &p->lane_ep[side][lane];
	size_t i = 0;

	weft_msg_replay_begin(&p->ep[side]);
	while (i < p->num) {
		struct pair_msg *m = &p->msgs[i];

		if (m->lane != lane || m->to == side) {
			i++;
			continue;
		}
		run.cut += m->length > lanes[lane + 1].max_bcopy;
		weft_msg_replay(&p->ep[side], m->id, m->data, m->length, m->comp);
		pair_drop(p, i);
	}
	for (unsigned int k = 0; k < l->num_flush; k++)
		weft_msg_replay(&p->ep[side], 0, NULL, 0, l->flush[k]);
	l->num_flush = 0;
	l->base.queued = 0;
	weft_msg_replay_end(&p->ep[side]);
}

static void dies(unsigned int lane)
{
	struct pair *p = &run.s.p;

	for (unsigned int s = 0; s < 2; s++) {
		p->ep[s].lanes[lane].up = false;
		p->ep[s].lanes_up = (6u << lane) & 7;
		p->ep[s].am_lane = (uint8_t)(lane + 1);
		weft_msg_ep_connected(&p->ep[s], NULL);
	}
	for (unsigned int s = 0; s < 2; s++)
		give_back(p, s, lane);
}

static void use_lane(struct pair *p, unsigned int lane)
{
	p->ep[0].lanes_up = (uint16_t)(1u << lane);
	p->ep[0].am_lane = (uint8_t)lane;
	weft_msg_ep_connected(&p->ep[0], NULL);
}

static void some_steps(unsigned int most)
{
	struct pair *p = &run.s.p;

	for (uint64_t n = below(most); n > 0; n--) {
		if (p->num)
			pair_deliver(p, below(p->num));
		if (below(2))
			pair_progress(p);
	}
}

static void set_room(int room)
{
	pair_room(&run.s.p, 0, room);
	pair_room(&run.s.p, 1, room);
}

static void one_run(uint64_t seed)
{
	uint64_t sum;

	run.seed = seed * 0x9e3779b97f4a7c15ull | 1;
	run.next_am = 0;
	run.added = 0;
	pair_defaults(&run.s.p);
	run.s.p.conf.multi_eager_limit = below(2) ? 0 : SIZE;
	run.s.p.conf.rndv_thresh = below(2) ? SIZE : WEFT_CONF_AUTO;
	stage_open(&run.s, 3, lanes, MEM + 8);
	run.s.p.ctx.features |= WEFT_FEATURE_AM;
	memset(run.s.mem + MEM, 0, 8);
	assert_int_equal(weft_worker_set_am_handler(&run.s.p.w[1], 7, handler, NULL, 0), 0);
	assert_int_equal(weft_worker_set_put_handler(&run.s.p.w[1], on_put, NULL), 0);
	run.num = OPS;
	if (below(4))
		use_lane(&run.s.p, 0);
	for (unsigned int i = 0; i < OPS; i++) {
		begin(i);
		if (!below(4))
			some_steps(3);
	}
	for (unsigned int i = 0; i < OPS; i++)
		post(i);
	some_steps(1 + (unsigned int)below(20));
	dies(0);
	/* The next one has little room, so that it dies in the middle of a message. */
	set_room((int)below(20));
	some_steps(20);
	if (below(2))
		dies(1);
	set_room(-1);
	pair_run_random(&run.s.p, &run.seed);
	assert_int_equal(run.s.p.fail_status[0] | run.s.p.fail_status[1], 0);
	assert_int_equal(stage_flush(&run.s), 0);
	for (unsigned int i = 0; i < OPS; i++) {
		struct one *o = &run.op[i];

		op_end(&o->send, 0);
		if (o->kind <= TAG_SYNC)
			op_end_recv(&o->recv, dst[i], o->length, 1, i);
		assert_int_equal(o->noted, o->kind == PUT_NOTE);
		if (o->kind == PUT || o->kind == PUT_NOTE)
			pattern_expect(i, run.s.mem + (size_t)i * SIZE, o->length);
		if (o->kind == AM)
			assert_true(run.next_am > i);
	}
	memcpy(&sum, run.s.mem + MEM, 8);
	assert_int_equal(sum, run.added);
	pair_check_empty(&run.s.p);
	stage_check_empty(&run.s);
	stage_close(&run.s);
}

/*
 * @behaviour R37: The same holds where lanes take messages of different lengths: longer messages
 * are split
 * @behaviour R29
 */
static void what_a_lane_had_goes_over_lanes_that_take_less(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= test_rounds(600); seed++)
		one_run(seed);
	assert_true(run.cut > test_rounds(600));
}

/* A flush, asked before or after, waits for every part, whatever their order. */
/* @behaviour R37 */
static void a_put_that_was_cut_is_counted_once(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= test_rounds(200); seed++) {
		struct flushed f = {0};
		struct stage s;
		struct op op[3];
		size_t puts;

		run.seed = seed * 0x9e3779b97f4a7c15ull | 1;
		pair_defaults(&s.p);
		stage_open(&s, 3, lanes, 3 * 8000);
		use_lane(&s.p, 0);
		for (unsigned int i = 0; i < 3; i++) {
			pattern_fill(i, 0, src[i], 8000);
			op_put(&op[i], &s, src[i], 8000, 8000ull * i, 0);
		}
		if (seed & 1)
			assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &f), 0);
		assert_int_equal(pair_count(&s.p, 1, WEFT_WIRE_PUT), 3);
		use_lane(&s.p, 2);
		give_back(&s.p, 0, 0);
		if (!(seed & 1))
			assert_int_equal(weft_msg_ep_flush(s.ep, flushed_cb, &f), 0);
		pair_progress(&s.p);
		for (;;) {
			puts = pair_count(&s.p, 1, WEFT_WIRE_PUT);
			if (puts == 0)
				break;
			assert_int_equal(f.calls, 0);
			assert_int_equal(pair_count(&s.p, 0, WEFT_WIRE_RMA_FLUSHED), 0);
			pair_deliver(&s.p, below(s.p.num));
			pair_progress(&s.p);
		}
		pair_run(&s.p);
		assert_int_equal(f.calls, 1);
		assert_int_equal(f.status, 0);
		for (unsigned int i = 0; i < 3; i++) {
			op_end(&op[i], 0);
			pattern_expect(i, s.mem + 8000 * i, 8000);
		}
		assert_int_equal(s.p.ep[1].msg->rma->done_part[0], 0);
		assert_int_equal(s.p.ep[1].msg->rma->done_part[1], 0);
		stage_check_empty(&s);
		stage_close(&s);
	}
}

/* For a copy, or for the second half of a PUT: the endpoint ends, and so does every operation. */
/* @behaviour R37 */
static void without_memory_the_endpoint_ends_and_nothing_is_lost_silently(void **state)
{
	(void)state;
	for (int left = 0; left <= 4 + 3 * 7; left++) {
		struct stage s;
		struct op op[4], recv;

		pair_defaults(&s.p);
		stage_open(&s, 3, lanes, 3 * 8000);
		use_lane(&s.p, 0);
		for (unsigned int i = 0; i < 3; i++)
			op_put(&op[i], &s, src[i], 8000, 8000ull * i, WEFT_OP_F_DELIVERED);
		op_recv(&recv, &s.p.w[1], dst[0], SIZE, 1, FULL);
		op_send_sync(&op[3], s.ep, src[3], 8000, 1);
		use_lane(&s.p, 1);
		memory_left = left;
		give_back(&s.p, 0, 0);
		pair_progress(&s.p);
		memory_left = -1;
		/* Four copies, and each PUT is cut into eight. */
		assert_int_equal(s.p.fail_status[0], left < 4 + 3 * 7 ? -ENOMEM : 0);
		if (s.p.fail_status[0]) {
			pair_flushed(&s.p.lane_ep[0][1], -ECANCELED); /* as the lanes end */
			pair_fail(&s.p, 1, -ECONNRESET);
			assert_int_equal(weft_request_cancel(recv.req), 0);
		} else {
			pair_run(&s.p);
		}
		for (unsigned int i = 0; i < 4; i++)
			op_end(&op[i], s.p.fail_status[0]);
		op_end(&recv, s.p.fail_status[0] ? -ECANCELED : 0);
		stage_close(&s);
	}
}

/* The lane that is left carries a PUT's header and none of its bytes, so no half of it fits. */
/* @behaviour R37 */
static void a_lane_that_carries_no_byte_of_a_put_ends_the_endpoint(void **state)
{
	const struct pair_lane_params tiny[2] = {
		lanes[0],
		{.max_short = sizeof(struct weft_wire_put),
		 .max_bcopy = sizeof(struct weft_wire_put)},
	};
	struct stage s;
	struct op op;

	(void)state;
	pair_defaults(&s.p);
	stage_open(&s, 2, tiny, 8000);
	use_lane(&s.p, 0);
	op_put(&op, &s, src[0], 8000, 0, WEFT_OP_F_DELIVERED);
	assert_int_equal(pair_count(&s.p, 1, WEFT_WIRE_PUT), 1);
	use_lane(&s.p, 1);
	give_back(&s.p, 0, 0);
	pair_progress(&s.p);
	assert_int_equal(s.p.fail_status[0], -EMSGSIZE);
	pair_flushed(&s.p.lane_ep[0][1], -ECANCELED); /* as the lane ends */
	pair_fail(&s.p, 1, -ECONNRESET);
	op_end(&op, -EMSGSIZE);
	stage_close(&s);
}

/* ------------------------------------------------------------------ cut, but not sent at once */

static void begin_imm(struct one *o)
{
	struct weft_op_params p = op_params(&o->send, NULL);
	struct weft_am_send_params a =
		WEFT_INIT(struct weft_am_send_params, .id = 7, .header = header_of(o->id),
			  .header_length = o->header_length);

	pattern_fill(o->id, 0, src[0], o->length);
	p.flags = WEFT_OP_F_IMM;
	p.imm = 42;
	if (o->kind == TAG)
		o->send.rc = weft_tag_send(run.s.ep, src[0], o->length, 1, &p, &o->send.req);
	else if (o->kind == TAG_SYNC)
		o->send.rc = weft_tag_send_sync(run.s.ep, src[0], o->length, 1, &p, &o->send.req);
	else
		o->send.rc = weft_am_send(run.s.ep, &a, src[0], o->length, &p, &o->send.req);
	assert_in_range(o->send.rc, 0, 1);
}

static void cut_before_there_is_room(enum kind kind, uint32_t seq)
{
	struct one *o = &run.op[0];

	*o = (struct one){.kind = kind, .length = 8000, .header_length = 100};
	run.num = 1;
	run.next_am = 0;
	pair_defaults(&run.s.p);
	run.s.p.conf.multi_eager_limit = 0;
	run.s.p.conf.rndv_thresh = SIZE;
	run.s.p.conf.seq_start = seq;
	stage_open(&run.s, 3, lanes, MEM);
	run.s.p.ctx.features |= WEFT_FEATURE_AM;
	assert_int_equal(weft_worker_set_am_handler(&run.s.p.w[1], 7, handler, NULL, 0), 0);
	use_lane(&run.s.p, 0);
	begin_imm(o);
	assert_int_equal(pair_count(&run.s.p, 1, WEFT_WIRE_EXT), 1);
	if (kind != AM)
		op_recv(&o->recv, &run.s.p.w[1], dst[0], SIZE, 1, FULL);
	use_lane(&run.s.p, 2);
	set_room(0);
	give_back(&run.s.p, 0, 0);
	pair_progress(&run.s.p);
	pair_progress(&run.s.p);
	assert_int_equal(run.s.p.num, 0);
	set_room(-1);
	pair_run(&run.s.p);
	assert_int_equal(run.s.p.fail_status[0] | run.s.p.fail_status[1], 0);
	op_end(&o->send, 0);
	if (kind != AM) {
		op_end_recv(&o->recv, dst[0], o->length, 1, o->id);
		assert_int_equal(o->recv.c.imm, 42);
	}
	assert_int_equal(run.next_am, kind == AM);
	pair_check_empty(&run.s.p);
	stage_check_empty(&run.s);
	stage_close(&run.s);
}

/* The header it gets may look like any other message's, by its sequence number. */
static void a_message_that_was_cut_waits_for_room_as_it_is(void **state)
{
	(void)state;
	for (uint32_t seq = 0; seq < 32; seq++)
		for (enum kind kind = TAG; kind <= AM; kind++)
			cut_before_there_is_room(kind, seq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_lane_had_goes_over_lanes_that_take_less),
		cmocka_unit_test(a_put_that_was_cut_is_counted_once),
		cmocka_unit_test(a_message_that_was_cut_waits_for_room_as_it_is),
		cmocka_unit_test(without_memory_the_endpoint_ends_and_nothing_is_lost_silently),
		cmocka_unit_test(a_lane_that_carries_no_byte_of_a_put_ends_the_endpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
