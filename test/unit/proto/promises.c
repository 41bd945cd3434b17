/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What weft.h promises of messages whatever carries them: the same test over every protocol, over
 * lanes that read and write remote memory themselves, and over the loopback. Mock lanes, the whole
 * library.
 */

#include "mock/mock_lane.h"
#include "mock/msg_util.h"

#define MS 1000000ull
#define LONG 50000

/* One way that messages go. */
struct way {
	const char *name; /* protocol, as weft_ep_query_proto() tells; of a rendezvous the data's */
	const char *lanes; /* NULL: to the own worker */
	const char *conf[2];
	size_t len;
	bool asks; /* the data stays at the sender until a receive matches */
};

#define TWO "mock:0;mock:1"
#define NATIVE "mock:0,native=16384;mock:1,native=16384"
#define MIXED "mock:0,native=16384;mock:1"
#define NO_READS "mock:0,native=16384,noreads;mock:1,native=16384,noreads"
#define EAGER "RNDV_THRESH=inf", "MULTI_EAGER_LIMIT=1M"

static const struct way ways[] = {
	{"eager/short", "mock:0", {EAGER}, 100, false},
	{"eager/bcopy", "mock:0,zcopy=0", {EAGER}, 3000, false},
	{"eager/zcopy", "mock:0,bcopy=512", {EAGER}, 3000, false},
	{"multi-eager", TWO, {EAGER}, LONG, false},
	{"rndv/pull", TWO, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/pull", TWO, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, 8, true},
	{"rndv/get", NATIVE, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/get", MIXED, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/pull", NO_READS, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/put", NATIVE, {"RNDV_THRESH=1", "RNDV_SCHEME=put"}, LONG, true},
	{"rndv/put", MIXED, {"RNDV_THRESH=1", "RNDV_SCHEME=put"}, LONG, true},
	{"rndv/am", TWO, {"RNDV_THRESH=1", "RNDV_SCHEME=am"}, LONG, true},
	{"eager/short", NULL, {EAGER}, 100, false},
	{"multi-eager", NULL, {EAGER}, LONG, false},
	{"rndv/pull", NULL, {"RNDV_THRESH=1", "RNDV_SCHEME=get"}, LONG, true},
	{"rndv/am", NULL, {"RNDV_THRESH=1", "RNDV_SCHEME=am"}, LONG, true},
};

#define EACH_WAY(w)                      \
	for (const struct way *w = ways; \
	     w < ways + sizeof(ways) / sizeof(ways[0]) && (current = w) != NULL; w++)

static const struct way *current; /* for who looks at a failure in the debugger */

struct stage {
	struct weft_context *ctx;
	struct weft_worker *w[2]; /* sender, receiver; the loopback has one for both */
	struct weft_ep *ep[2];    /* to each other */
	struct mock_err err[2];
};

static uint8_t out[LONG], in[LONG + 8];

static int setup(void **state)
{
	(void)state;
	mock_reset();
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(mock_num_ifaces(), 0);
	assert_int_equal(mock_num_lane_eps(), 0);
	assert_int_equal(mock_num_kept(), 0);
	assert_int_equal(mock_num_mems(), 0);
	return 0;
}

static void run(struct stage *s, unsigned int rounds)
{
	while (rounds--) {
		mock_run(1, MS / 10, s->w[0], NULL);
		if (s->w[1] != s->w[0])
			mock_run(1, 0, s->w[1], NULL);
	}
}

static bool is_self(const struct stage *s)
{
	return s->w[0] == s->w[1];
}

static void stage_connect(struct stage *s, int from)
{
	s->ep[from] = mock_connect(s->w[from], s->w[!from]);
	s->ep[from]->err_arg = &s->err[from];
}

static void stage_open(struct stage *s, const struct way *way)
{
	memset(s, 0, sizeof(*s));
	s->ctx = mock_context(way->conf[0], way->conf[1], "REG_CACHE=off", "LOG_FILE=/dev/null",
			      "CONNECT_TIMEOUT=30s", "PEER_TIMEOUT=30s", NULL);
	s->w[0] = mock_worker(s->ctx, way->lanes ? way->lanes : "self");
	s->w[1] = way->lanes ? mock_worker(s->ctx, way->lanes) : s->w[0];
	stage_connect(s, 0);
	if (way->lanes)
		stage_connect(s, 1);
	else
		s->ep[1] = s->ep[0];
	run(s, 50);
	fill(out, sizeof(out), 1);
	memset(in, 0xee, sizeof(in));
}

static void stage_close(struct stage *s)
{
	if (!is_self(s))
		weft_worker_destroy(s->w[1]);
	weft_worker_destroy(s->w[0]);
	assert_int_equal(weft_context_destroy(s->ctx), 0);
}

static void wait_for(struct stage *s, const struct op *op)
{
	for (int i = 0; i < 3000 && !op_done(op); i++)
		run(s, 1);
}

static void ends(struct stage *s, struct op *op, int status)
{
	wait_for(s, op);
	op_end(op, status);
}

static void untouched(size_t from)
{
	for (size_t i = from; i < sizeof(in); i++)
		assert_int_equal(in[i], 0xee);
}

static bool is_there(struct stage *s, uint64_t tag)
{
	return weft_tag_probe(s->w[1], NULL, tag, FULL, NULL, NULL) == 0;
}

/* ------------------------------------------------------------------ the table itself */

static void each_way_is_the_protocol_it_is_called(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		struct weft_proto_info info = {.size = sizeof(info)};
		struct stage s;

		stage_open(&s, way);
		assert_int_equal(weft_ep_query_proto(s.ep[0], WEFT_OP_TAG_SEND, way->len, &info),
				 0);
		if (!way->asks) {
			assert_string_equal(info.name, way->name);
		} else {
			assert_memory_equal(info.name, "rndv/", 5);
			assert_int_equal(weft_ep_query_proto(s.ep[1], WEFT_OP_RNDV_DATA, way->len,
							     &info),
					 0);
		}
		stage_close(&s);
	}
}

/* ------------------------------------------------------------------ truncation */

static void a_truncated_receive_is_filled(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int k = 0; k < 8; k++) {
			size_t cap = k & 4 ? way->len / 3 : k & 2 ? 0 : way->len - 1;
			struct op snd, rcv;
			struct stage s;

			stage_open(&s, way);
			if (k & 1)
				op_recv(&rcv, s.w[1], in, cap, 7, FULL);
			op_send(&snd, s.ep[0], out, way->len, 7);
			if (!(k & 1)) {
				run(&s, 60);
				op_recv(&rcv, s.w[1], in, cap, 7, FULL);
			}
			ends(&s, &rcv, -EMSGSIZE);
			assert_int_equal(rcv.c.length, way->len);
			ends(&s, &snd, 0);
			check(in, cap, 1);
			untouched(cap);
			stage_close(&s);
		}
	}
}

/* ------------------------------------------------------------------ flush */

static void a_flush_waits_for_the_peer_and_not_for_its_receives(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int sync = 0; sync < 2; sync++) {
			struct op snd, flush = {.rc = 0}, rcv;
			struct weft_op_params p;
			struct stage s;

			stage_open(&s, way);
			op_send_dt(&snd, s.ep[0], out, way->len, 7, sync, NULL);
			p = op_params(&flush, NULL);
			flush.rc = weft_ep_flush(s.ep[0], &p, &flush.req);
			assert_int_equal(flush.rc, WEFT_INPROGRESS);
			for (int i = 0; i < 3000 && !op_done(&flush); i++)
				run(&s, 1);
			op_end(&flush, 0);
			/* It is there at that moment, and its send goes on if it must. */
			assert_true(is_there(&s, 7));
			if (sync || way->asks)
				assert_false(op_done(&snd));
			p = op_params(&flush, NULL);
			flush.rc = weft_worker_flush(s.w[0], &p, &flush.req);
			ends(&s, &flush, 0);
			op_recv(&rcv, s.w[1], in, way->len, 7, FULL);
			wait_for(&s, &rcv);
			op_end_recv(&rcv, in, way->len, 7, 1);
			ends(&s, &snd, 0);
			stage_close(&s);
		}
	}
}

static void a_close_waits_for_the_match(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int sync = 0; sync < 2; sync++) {
			struct op snd, end, rcv;
			struct weft_op_params p;
			struct stage s;

			stage_open(&s, way);
			if (is_self(&s)) { /* both ends close: see below */
				stage_close(&s);
				continue;
			}
			op_send_dt(&snd, s.ep[0], out, way->len, 7, sync, NULL);
			p = op_params(&end, NULL);
			end.rc = weft_ep_close(s.ep[0], 0, &p, &end.req);
			run(&s, 200);
			assert_int_equal(op_done(&end), !(sync || way->asks));
			op_recv(&rcv, s.w[1], in, way->len, 7, FULL);
			wait_for(&s, &rcv);
			op_end_recv(&rcv, in, way->len, 7, 1);
			ends(&s, &end, 0);
			ends(&s, &snd, 0);
			stage_close(&s);
		}
	}
}

/* ------------------------------------------------------------------ unexpected messages, closed */

enum { TAKEN = 1, FORCE = 2, SYNC = 4, ALL = 8 };

/* The handle of a message that its endpoint has taken along. */
static void handle_is_dead(struct stage *s, struct weft_message *m, bool drop)
{
	struct weft_op_params p;
	struct op rcv;

	if (drop) {
		weft_tag_msg_drop(s->w[1], m);
		return;
	}
	p = op_params(&rcv, NULL);
	rcv.rc = weft_tag_msg_recv(s->w[1], m, in, sizeof(in), &p, &rcv.req);
	assert_int_equal(rcv.rc, WEFT_INPROGRESS);
	wait_for(s, &rcv);
	assert_true(rcv.c.status == -ECONNRESET || rcv.c.status == -ECANCELED);
	op_end(&rcv, rcv.c.status);
}

static void stays(struct stage *s, const struct way *way, struct weft_message *m)
{
	struct weft_op_params p;
	struct op rcv;

	p = op_params(&rcv, NULL);
	rcv.rc = m ? weft_tag_msg_recv(s->w[1], m, in, sizeof(in), &p, &rcv.req)
		   : weft_tag_recv(s->w[1], NULL, in, sizeof(in), 7, FULL, &p, &rcv.req);
	wait_for(s, &rcv);
	op_end_recv(&rcv, in, way->len, 7, 1);
	assert_null(rcv.c.ep);
}

static void closed_with_unexpected(const struct way *way, unsigned int k)
{
	bool waits = (k & SYNC) || way->asks;
	struct weft_message *m = NULL;
	struct op snd;
	struct stage s;

	stage_open(&s, way);
	op_send_dt(&snd, s.ep[0], out, way->len, 7, k & SYNC, NULL);
	run(&s, 60);
	assert_true(is_there(&s, 7));
	if (k & TAKEN)
		assert_int_equal(weft_tag_probe(s.w[1], NULL, 7, FULL, &m, NULL), 0);
	assert_in_range(weft_ep_close(s.ep[1], k & FORCE ? WEFT_EP_CLOSE_FORCE : 0, NULL, NULL), 0,
			1);
	if (waits && !(k & FORCE)) /* at once */
		assert_false(is_there(&s, 7));
	run(&s, 100);
	if (!waits) {
		stays(&s, way, m);
		ends(&s, &snd, 0);
	} else {
		assert_false(is_there(&s, 7));
		if (m)
			handle_is_dead(&s, m, way->len & 1);
		ends(&s, &snd, is_self(&s) && (k & FORCE) ? -ECANCELED : -ECONNRESET);
	}
	if (s.w[1]->msg->tag->messages.num || s.w[1]->msg->tag->messages.bytes)
		fail_msg("%s: a message is left", way->name);
	stage_close(&s);
}

static void what_closing_does_to_unexpected_messages(void **state)
{
	(void)state;
	EACH_WAY(way)
	for (unsigned int k = 0; k < ALL; k++)
		closed_with_unexpected(way, k);
}

static void a_peer_that_ends_takes_its_synchronous_messages_along(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int sync = 0; sync < 2; sync++) {
			struct op snd, rcv;
			struct stage s;

			stage_open(&s, way);
			if (is_self(&s)) {
				stage_close(&s);
				continue;
			}
			op_send_dt(&snd, s.ep[0], out, way->len, 7, sync, NULL);
			run(&s, 60);
			assert_int_equal(weft_ep_close(s.ep[0], WEFT_EP_CLOSE_FORCE, NULL, NULL),
					 0);
			ends(&s, &snd, sync || way->asks ? -ECANCELED : 0);
			run(&s, 60);
			assert_int_equal(s.err[1].status, -ECONNRESET);
			assert_int_equal(is_there(&s, 7), !(sync || way->asks));
			if (is_there(&s, 7)) {
				op_recv(&rcv, s.w[1], in, sizeof(in), 7, FULL);
				op_end_recv(&rcv, in, way->len, 7, 1);
			}
			stage_close(&s);
		}
	}
}

/* Not with its pointer, which the application has given away. */
static void nothing_names_an_endpoint_that_is_closed(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int force = 0; force < 2; force++) {
			struct weft_completion c = {.size = sizeof(c)};
			struct op snd, rcv;
			struct stage s;

			stage_open(&s, way);
			op_recv(&rcv, s.w[1], in, sizeof(in), 7, FULL);
			op_send(&snd, s.ep[0], out, way->len, 7);
			wait_for(&s, &rcv);
			assert_ptr_equal(rcv.c.ep, s.ep[1]);
			weft_tag_send(s.ep[0], out, 8, 8, NULL, NULL);
			run(&s, 60);
			/* Its close can't end before this is over. */
			mock_hold(NULL);
			weft_tag_send(s.ep[1], out, 8, 9, NULL, NULL);
			weft_ep_close(s.ep[1], force ? WEFT_EP_CLOSE_FORCE : 0, NULL, NULL);
			c.ep = s.ep[1];
			if (weft_tag_probe(s.w[1], NULL, 8, FULL, NULL, &c) == 0)
				assert_null(c.ep);
			assert_int_equal(weft_request_test(rcv.req, &c), 0);
			assert_null(c.ep);
			mock_release(NULL);
			run(&s, 60);
			weft_request_free(rcv.req);
			weft_request_free(snd.req);
			stage_close(&s);
		}
	}
}

/* ------------------------------------------------------------------ pack() fails */

struct broken {
	size_t length, from;
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

static ssize_t broken_pack(void *state, size_t off, void *dst, size_t max)
{
	struct broken *b = state;

	if (off + max > b->from)
		return -ENODATA;
	fill(dst, max, 1);
	return (ssize_t)max;
}

static void broken_finish(void *state)
{
	(void)state;
}

static const struct weft_generic_ops broken_ops = {.size = sizeof(broken_ops),
						   .start_pack = broken_start,
						   .packed_size = broken_size,
						   .pack = broken_pack,
						   .finish = broken_finish};

static void when_pack_fails_both_ends_have_its_error(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int k = 0; k < 8; k++) {
			struct broken b = {way->len, k & 4 ? way->len / 2 : 0};
			struct weft_datatype type =
				WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC,
					  .ops = &broken_ops, .arg = &b);
			struct op snd, rcv, next[2];
			struct stage s;

			stage_open(&s, way);
			if (k & 1)
				op_recv(&rcv, s.w[1], in, sizeof(in), 7, FULL);
			op_send_dt(&snd, s.ep[0], NULL, 0, 7, k & 2, &type);
			assert_int_equal(snd.rc, WEFT_INPROGRESS);
			op_send(&next[0], s.ep[0], out, 100, 7);
			if (!(k & 1)) {
				run(&s, 60);
				op_recv(&rcv, s.w[1], in, sizeof(in), 7, FULL);
			}
			ends(&s, &rcv, -ENODATA);
			ends(&s, &snd, -ENODATA);
			op_recv(&next[1], s.w[1], in, sizeof(in), 7, FULL);
			wait_for(&s, &next[1]);
			op_end_recv(&next[1], in, 100, 7, 1);
			ends(&s, &next[0], 0);
			stage_close(&s);
		}
	}
}

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
		check(msg->data, msg->length, 1);
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
	struct weft_am_send a = WEFT_INIT(struct weft_am_send, .id = 3, .flags = flags);
	struct weft_op_params p = op_params(op, type);

	op->rc = weft_am_send(ep, &a, type ? NULL : out, len, &p, &op->req);
}

static void am_open(struct stage *s, const struct way *way, struct inbox *box)
{
	stage_open(s, way);
	*box = (struct inbox){.cap = sizeof(in)};
	assert_int_equal(weft_worker_set_am_handler(s->w[1], 3, on_message, box, 0), 0);
}

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
			assert_int_equal(box.calls, way->asks ? 2 : 1);
			if (box.calls == 2)
				ends(&s, &box.op, 0);
			stage_close(&s);
		}
	}
}

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
		am_send(&op, s.ep[0], WEFT_AM_SEND_RNDV, way->len, NULL);
		ends(&s, &op, 0);
		ends(&s, &box.op, -EMSGSIZE);
		check(in, box.cap, 1);
		untouched(box.cap);
		stage_close(&s);
	}
}

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
		ends(&s, &op, way->asks ? -ECONNRESET : 0);
		assert_int_equal(s.w[1]->msg->count.am_closed, 1);
		weft_tag_recv(s.w[0], NULL, in, 8, 5, FULL, NULL, NULL);
		ends(&s, &end, 0);
		stage_close(&s);
	}
}

/* Whatever waits before it; before the connection is there the request tells. */
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
		am_send(&op, s.ep[0], WEFT_AM_SEND_EAGER, 30000, NULL);
		assert_int_equal(op.rc, -EMSGSIZE);
		op_end(&op, -EMSGSIZE);
		mock_set_eagain(NULL, 0);
		am_send(&behind, s.ep[0], WEFT_AM_SEND_EAGER, 2000, NULL);
		ends(&s, &held, 0);
		ends(&s, &behind, 0);
		run(&s, 50);
		assert_int_equal(box.calls, 2);
		if (!is_self(&s)) {
			weft_ep_close(s.ep[0], WEFT_EP_CLOSE_FORCE, NULL, NULL);
			stage_connect(&s, 0);
			am_send(&late, s.ep[0], WEFT_AM_SEND_EAGER, 30000, NULL);
			assert_int_equal(late.rc, WEFT_INPROGRESS);
			am_send(&behind, s.ep[0], WEFT_AM_SEND_EAGER, 2000, NULL);
			ends(&s, &late, -EMSGSIZE);
			ends(&s, &behind, 0);
		}
		stage_close(&s);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_way_is_the_protocol_it_is_called),
		T(a_truncated_receive_is_filled),
		T(a_flush_waits_for_the_peer_and_not_for_its_receives),
		T(a_close_waits_for_the_match),
		T(what_closing_does_to_unexpected_messages),
		T(a_peer_that_ends_takes_its_synchronous_messages_along),
		T(nothing_names_an_endpoint_that_is_closed),
		T(when_pack_fails_both_ends_have_its_error),
		T(when_pack_of_an_active_message_fails_its_receiver_has_no_part_of_it),
		T(data_of_an_active_message_that_is_truncated_fills_the_buffer),
		T(no_handler_is_called_for_a_closed_endpoint),
		T(an_eager_active_message_that_can_never_go_is_refused),
	};

	return cmocka_run_group_tests_name("promises", tests, NULL, NULL);
}
