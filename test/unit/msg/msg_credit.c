/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer may send unrequested: every kind of message that is kept here costs it credit, and a
 * peer that takes no answers gets none.
 */

#include "mock/rndv_util.h"

/* The cost in credit: bytes, or MESSAGE for one that counts as a message. */
#define MESSAGE 0
/* Long enough to take bytes. */
#define LONG 300
#define AM_ID 9

/* @behaviour T6 */
static void more_bytes_than_granted_end_the_endpoint(void **state)
{
	struct {
		struct weft_wire_frag f;
		uint8_t payload[1000];
	} __attribute__((packed))
	m = {.f = {.e = {.tag = weft_put64(1)}, .total = weft_put64(2000)}};
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.eager_credit = 2500;
	pair_open(&p, 1, NULL);
	push(&p, 1, WEFT_WIRE_FRAG, &m, sizeof(m));
	assert_int_equal(p.fail_status[1], 0);
	m.f.e.seq = weft_put32(1);
	m.f.total = weft_put64(600);
	push(&p, 1, WEFT_WIRE_FRAG, &m, sizeof(m.f) + 600);
	assert_int_equal(p.fail_status[1], -EPROTO);
	assert_int_equal(p.w[1].msg->count.no_credit, 1);
	pair_close(&p);
}

/* ---- messages ------------------------------------------------------------------------------- */

/* Message @i of a kind; @return its length */
typedef size_t (*make_fn)(void *buf, uint32_t i);

static struct weft_wire_eager envelope(uint32_t i)
{
	return (struct weft_wire_eager){weft_put32(i), weft_put64(1)};
}

static size_t make_rts(void *buf, uint32_t i)
{
	struct weft_wire_rts *rts = buf;

	*rts = (struct weft_wire_rts){.e = envelope(i),
				      .total = weft_put64(1u << 20),
				      .req = {weft_put32(i), weft_put32(1)}};
	return sizeof(*rts);
}

static size_t make_withdraw(void *buf, uint32_t i)
{
	struct weft_wire_withdraw *w = buf;

	*w = (struct weft_wire_withdraw){.e = envelope(i), .sreq = {weft_put32(i), weft_put32(1)}};
	return sizeof(*w);
}

static size_t make_abort(void *buf, uint32_t i)
{
	struct weft_wire_abort *a = buf;

	*a = (struct weft_wire_abort){
		.e = envelope(i), .total = weft_put64(5), .status = weft_put32(5)};
	return sizeof(*a);
}

static size_t make_long_abort(void *buf, uint32_t i)
{
	struct weft_wire_abort *a = buf;
	size_t length = make_abort(buf, i);

	a->total = weft_put64(LONG);
	return length;
}

static size_t make_am_abort(void *buf, uint32_t i)
{
	struct weft_wire_abort *a = buf;
	size_t length = make_abort(buf, i);

	a->flags = weft_put32(WEFT_ABORT_F_AM);
	return length;
}

static size_t make_short(void *buf, uint32_t i)
{
	struct weft_wire_eager *e = buf;

	*e = envelope(i);
	return sizeof(*e);
}

static size_t make_long(void *buf, uint32_t i)
{
	size_t length = make_short(buf, i);

	memset((uint8_t *)buf + length, 0, LONG);
	return length + LONG;
}

static size_t make_sync(void *buf, uint32_t i)
{
	struct weft_wire_eager_sync *e = buf;

	*e = (struct weft_wire_eager_sync){.e = envelope(i), .req = {weft_put32(i), weft_put32(1)}};
	return sizeof(*e);
}

/* The first byte of a message of @total, whose rest never comes. */
static size_t make_piece(void *buf, uint32_t i, uint64_t total)
{
	struct weft_wire_frag *f = buf;

	*f = (struct weft_wire_frag){.e = envelope(i), .total = weft_put64(total)};
	*(uint8_t *)(f + 1) = 0;
	return sizeof(*f) + 1;
}

static size_t make_frag(void *buf, uint32_t i)
{
	return make_piece(buf, i, 2);
}

static size_t make_long_frag(void *buf, uint32_t i)
{
	return make_piece(buf, i, LONG);
}

static size_t make_am(void *buf, uint32_t i)
{
	struct weft_wire_am *am = buf;

	*am = (struct weft_wire_am){.seq = weft_put32(i), .id = weft_put16(AM_ID)};
	return sizeof(*am);
}

static size_t make_long_am(void *buf, uint32_t i)
{
	size_t length = make_am(buf, i);

	memset((uint8_t *)buf + length, 0, LONG);
	return length + LONG;
}

static size_t make_am_frag(void *buf, uint32_t i)
{
	struct weft_wire_am_frag *f = buf;

	*f = (struct weft_wire_am_frag){.am = {.seq = weft_put32(i), .id = weft_put16(AM_ID)},
					.total = weft_put64(LONG)};
	*(uint8_t *)(f + 1) = 0;
	return sizeof(*f) + 1;
}

static size_t make_am_rts(void *buf, uint32_t i)
{
	struct weft_wire_am_rts *r = buf;

	*r = (struct weft_wire_am_rts){.seq = weft_put32(i),
				       .id = weft_put16(AM_ID),
				       .total = weft_put64(1u << 20),
				       .req = {weft_put32(i), weft_put32(1)},
				       .flags = weft_put32(WEFT_RTS_F_PULL)};
	return sizeof(*r);
}

/* A handler that keeps what it gets. */
static int keep(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	(void)worker;
	(void)arg;
	assert_non_null(msg->desc);
	return WEFT_INPROGRESS;
}

static void open_keeping(struct pair *p)
{
	pair_open(p, 1, NULL);
	p->ctx.features |= WEFT_FEATURE_AM;
	assert_int_equal(weft_worker_set_am_handler(&p->w[1], AM_ID, keep, NULL,
						    WEFT_AM_HANDLER_F_PERSISTENT_DATA),
			 0);
}

/* ---- what waits ----------------------------------------------------------------------------- */

static const struct kind {
	uint8_t id;
	make_fn make;
	uint32_t bytes; /* of credit */
	bool in_turn;   /* it waits (else only what is ahead does) */
} kinds[] = {
	{WEFT_WIRE_RTS, make_rts, MESSAGE, true},
	{WEFT_WIRE_WITHDRAW, make_withdraw, MESSAGE, false},
	{WEFT_WIRE_ABORT, make_abort, MESSAGE, true},
	{WEFT_WIRE_ABORT, make_long_abort, LONG, true},
	{WEFT_WIRE_ABORT, make_am_abort, MESSAGE, false},
	{WEFT_WIRE_EAGER, make_short, MESSAGE, true},
	{WEFT_WIRE_EAGER, make_long, LONG, true},
	{WEFT_WIRE_EAGER_SYNC, make_sync, MESSAGE, true},
	{WEFT_WIRE_FRAG, make_frag, MESSAGE, true},
	{WEFT_WIRE_FRAG, make_long_frag, LONG, true},
	{WEFT_WIRE_AM, make_am, MESSAGE, true},
	{WEFT_WIRE_AM, make_long_am, LONG, true},
	{WEFT_WIRE_AM_FRAG, make_am_frag, LONG, true},
	{WEFT_WIRE_AM_RTS, make_am_rts, MESSAGE, true},
};

/* In turn, or all ahead of one that does not come: more than was granted ends the endpoint. */
static void wait_for_the_end(const struct kind *k, bool ahead)
{
	const uint32_t limit = 1u << 18, most = limit / (k->bytes ? k->bytes : 256);
	uint8_t buf[512];
	struct pair p;
	uint32_t i;

	pair_defaults(&p);
	p.conf.unexp_limit = limit;
	open_keeping(&p);
	p.null = true;
	for (i = 0; i <= most && p.fail_status[1] == 0; i++)
		push(&p, 1, k->id, buf, k->make(buf, i + ahead));
	if (i < 16 || i > most || p.w[1].msg->count.no_credit != 1)
		fail_msg("message %u%s: %u of them, %u at most, %u over", k->id,
			 ahead ? " ahead" : "", i, most, (unsigned int)p.w[1].msg->count.no_credit);
	assert_int_equal(p.fail_status[1], -EPROTO);
	pair_close(&p);
}

/*
 * @behaviour T6: every kind of message that waits here has consumed credit: RTS, WITHDRAW before
 * its RTS, ABORT, eager, synchronous, first pieces, active messages and theirs
 * @behaviour T43: measurement: memory and CPU per hostile message (figures: `hostile_bench`)
 */
static void every_kind_of_message_that_waits_is_bounded_by_credit(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		if (kinds[k].in_turn)
			wait_for_the_end(&kinds[k], false);
		wait_for_the_end(&kinds[k], true);
	}
}

/* ---- answers -------------------------------------------------------------------------------- */

/*
 * A peer that makes us answer and takes no answer gets no credit, and can go on no longer than it
 * has.
 * @param receive  a receive is there for each
 * @param trickle  it takes one answer for 64 messages: that must not be the one that gives credit
 */
static void answer_unknown(uint8_t id, make_fn make, bool receive, bool trickle)
{
	static uint8_t into[1u << 20];
	uint32_t i, most = 0;
	uint8_t buf[64];
	struct pair p;

	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	pair_room(&p, 1, 0);
	for (i = 0; i < 100000 && p.fail_status[1] == 0; i++) {
		struct op r = {.req = NULL};

		if (receive)
			op_recv(&r, &p.w[1], into, sizeof(into), 1, FULL);
		if (trickle && i % 64 == 63)
			pair_room(&p, 1, 1);
		push(&p, 1, id, buf, make(buf, i));
		if (p.fail_status[1] == 0)
			most = p.ep[1].msg->num_ctl;
		if (r.req)
			weft_request_free(r.req);
	}
	assert_int_equal(p.fail_status[1], -EPROTO);
	assert_in_range(i, WEFT_SEQ_WINDOW, 2 * WEFT_SEQ_WINDOW);
	assert_in_range(most, WEFT_CTL_HELD, WEFT_CTL_HELD + 4 * WEFT_SEQ_WINDOW);
	pair_close(&p);
}

/*
 * @behaviour T7: outstanding replies that a peer requests and does not receive are bounded
 * @behaviour T43
 */
static void answers_that_a_peer_does_not_take_are_bounded(void **state)
{
	(void)state;
	for (int trickle = 0; trickle < 2; trickle++) {
		answer_unknown(WEFT_WIRE_EAGER_SYNC, make_sync, true, trickle); /* SYNC_ACK */
		answer_unknown(WEFT_WIRE_RTS, make_rts, true,
			       trickle); /* RTR: it offers nothing else */
		answer_unknown(WEFT_WIRE_AM_RTS, make_am_rts, false, trickle); /* ATS: no handler */
		answer_unknown(WEFT_WIRE_WITHDRAW, make_withdraw, false,
			       trickle); /* ATS: withdrawn */
	}
}

/*
 * Whole messages that their lane copies need no request, and take their bytes of credit. Without
 * credit they are announced.
 */
static void copied_messages_take_bytes_and_no_request(void **state)
{
	const struct pair_lane_params lane = {.max_short = 2000, .max_bcopy = 2000};
	struct op announced, behind, r[4];
	static uint8_t in[4][1000];
	uint8_t out[1000];
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.eager_credit = 2500;
	p.conf.rndv_thresh = 1u << 20;
	pair_open(&p, 1, &lane);
	for (unsigned int i = 0; i < 2; i++) {
		pattern_fill(i, 0, out, sizeof(out));
		assert_int_equal(weft_tag_send(&p.ep[0], out, sizeof(out), i, NULL, NULL), 0);
		assert_int_equal(mw_of(&p, 0)->reqs.in_use, 0);
	}
	assert_int_equal(p.ep[0].msg->tx_used, 2000);
	pattern_fill(2, 0, out, sizeof(out));
	op_send(&announced, &p.ep[0], out, sizeof(out), 2);
	op_send(&behind, &p.ep[0], "3", 1, 3);
	assert_int_equal(pair_count(&p, 1, WEFT_WIRE_EAGER), 3);
	assert_int_equal(pair_count(&p, 1, WEFT_WIRE_RTS), 1);
	for (unsigned int i = 0; i < 4; i++)
		op_recv(&r[i], &p.w[1], in[i], sizeof(in[i]), i, FULL);
	pair_run(&p);
	op_end(&announced, 0);
	op_end(&behind, 0);
	for (unsigned int i = 0; i < 3; i++)
		op_end_recv(&r[i], in[i], sizeof(in[i]), i, i);
	assert_int_equal(in[3][0], '3');
	weft_request_free(r[3].req);
	assert_int_equal(p.ep[0].msg->tx_used, 2000);
	assert_int_equal(p.w[1].msg->count.no_credit, 0);
	pair_close(&p);
}

/* What is idle has all of its credit, and both ends know the same. */
static void check_credit(const struct pair *p, uint64_t other_bytes, uint64_t other_msgs)
{
	const struct weft_msg_ep *tx = p->ep[0].msg, *rx = p->ep[1].msg;

	assert_int_equal(rx->rx_allowed - rx->rx_used, rx->rx_window);
	assert_int_equal(rx->rx_small_allowed - rx->rx_small, rx->rx_small_window);
	assert_int_equal(tx->tx_used, rx->rx_used);
	assert_int_equal(tx->tx_small, rx->rx_small);
	assert_int_equal(tx->tx_credit, rx->rx_advertised);
	assert_int_equal(tx->tx_small_end, rx->rx_small_advertised);
	/* A quarter of a window that is free is advertised. */
	assert_true(rx->rx_allowed - rx->rx_advertised <= rx->rx_window / 4);
	assert_true(rx->rx_small_allowed - rx->rx_small_advertised <= rx->rx_small_window / 4);
	assert_in_range(tx->tx_window, tx->tx_credit - tx->tx_used, UINT64_MAX);
	if (rx->rx_shrunk)
		assert_int_equal(tx->tx_window, rx->rx_window_advertised);
	assert_int_equal(p->w[1].msg->credit_bytes.granted, rx->rx_window + other_bytes);
	assert_int_equal(p->w[1].msg->credit_msgs.granted, rx->rx_small_window + other_msgs);
	assert_int_equal(p->w[1].msg->spilled, 0);
	assert_int_equal(rx->rx_spilled, 0);
}

/* @behaviour T6 */
static void credit_is_neither_lost_nor_made(void **state)
{
	enum { MOST = 60, LENGTH = 3000 };
	static uint8_t out[LENGTH], in[MOST][LENGTH];
	static struct op s[MOST], r[MOST];
	uint64_t seed = 88172645463325252ull, bytes, msgs;
	struct pair p;

	(void)state;
	for (unsigned int limit = 0; limit < 3; limit++) {
		bytes = msgs = 0;
		pair_defaults(&p);
		p.conf.eager_credit = 20000;
		p.conf.unexp_limit = limit == 2 ? 16384 : 1u << (17 + 9 * limit);
		p.conf.unexp_memory = limit == 2 ? 1u << 24 : 0;
		pair_open(&p, 2, NULL);
		for (unsigned int round = 0; round < 60; round++) {
			unsigned int n = 1 + (unsigned int)(pair_random(&seed) % MOST);

			/* Other peers join: this one does not get all of its window again. */
			for (unsigned int i = 0; limit == 0 && round == 30 && i < 30; i++) {
				bytes += weft_credit_pool_join(&p.w[1].msg->credit_bytes);
				msgs += weft_credit_pool_join(&p.w[1].msg->credit_msgs);
			}
			for (unsigned int i = 0; i < n; i++) {
				size_t len = pair_random(&seed) % (i % 3 ? LENGTH : 300);

				op_send(&s[i], &p.ep[0], out, len, i);
			}
			if (round % 2)
				pair_run_random(&p, &seed);
			for (unsigned int i = 0; i < n; i++)
				op_recv(&r[i], &p.w[1], in[i], LENGTH, i, FULL);
			pair_run_random(&p, &seed);
			pair_run(&p);
			for (unsigned int i = 0; i < n; i++) {
				op_end(&s[i], 0);
				op_end(&r[i], 0);
			}
			check_credit(&p, bytes, msgs);
		}
		assert_int_equal(p.ep[1].msg->rx_shrunk, limit == 0);
		assert_int_equal(p.w[1].msg->count.no_credit, 0);
		pair_close(&p);
	}
}

/* CREDIT messages may overtake each other, and allow a window ahead of what is sent at most. */
/* @behaviour T6 */
static void credit_only_grows_and_never_beyond_a_window(void **state)
{
	static const struct {
		int64_t bytes;
		uint32_t seq, small, am_seq;
		unsigned int taken; /* a bit for each of seq, small, am_seq */
	} t[] = {
		{1000, 10, 10, 10, 7},
		{-1, 9, 9, 9, 0},
		{0, 11, 10, 10, 1},
		{0, 11, 11, 10, 2},
		{0, 11, 11, 11, 4},
		{0, WEFT_SEQ_WINDOW + 1, WEFT_SMALL_WINDOW + 1, WEFT_SEQ_WINDOW + 1, 0},
		{1, WEFT_SEQ_WINDOW, WEFT_SMALL_WINDOW, WEFT_SEQ_WINDOW, 7},
		{INT64_MIN, 1u << 31, 1u << 31, 1u << 31, 0},
	};
	struct weft_msg_ep *me;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	me = p.ep[0].msg;
	me->tx_seq_end = me->tx_seq;
	me->tx_am_seq_end = me->tx_am_seq;
	me->tx_small_end = me->tx_small;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t bytes = me->tx_credit;
		uint32_t seq = me->tx_seq_end, small = me->tx_small_end, am = me->tx_am_seq_end;
		struct weft_wire_credit c = {.bytes = weft_put64(bytes + (uint64_t)t[i].bytes),
					     .seq = weft_put32(me->tx_seq + t[i].seq),
					     .small = weft_put32(me->tx_small + t[i].small),
					     .am_seq = weft_put32(me->tx_am_seq + t[i].am_seq)};

		push(&p, 0, WEFT_WIRE_CREDIT, &c, sizeof(c));
		assert_int_equal(me->tx_credit, bytes + (t[i].bytes > 0 ? t[i].bytes : 0));
		assert_int_equal(me->tx_seq_end, t[i].taken & 1 ? me->tx_seq + t[i].seq : seq);
		assert_int_equal(me->tx_small_end,
				 t[i].taken & 2 ? me->tx_small + t[i].small : small);
		assert_int_equal(me->tx_am_seq_end,
				 t[i].taken & 4 ? me->tx_am_seq + t[i].am_seq : am);
		/* Without a record of it the window is the largest that was ever free. */
		assert_int_equal(me->tx_window, me->tx_credit - me->tx_used);
	}
	pair_close(&p);
}

/* A smaller window is that of the later message, if the total is the same. */
static void a_smaller_window_is_reported_in_order(void **state)
{
	static const struct {
		uint64_t bytes, window, want;
	} t[] = {{1000, 700, 700}, {1000, 800, 700},   {1000, 600, 600},
		 {999, 100, 600},  {1001, 5000, 5000}, {1001, 4999, 4999}};
	struct weft_wire_credit_window c = {.type = weft_put16(WEFT_MSG_RECORD_WINDOW),
					    .length = weft_put16(sizeof(c.window))};
	struct weft_msg_ep *me;
	uint64_t base;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	me = p.ep[0].msg;
	base = me->tx_credit;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		c.credit.bytes = weft_put64(base + t[i].bytes);
		c.window = weft_put64(t[i].window);
		push(&p, 0, WEFT_WIRE_CREDIT, &c, sizeof(c));
		assert_int_equal(me->tx_window, t[i].want);
	}
	/* A record that is none: what is free counts. */
	for (unsigned int i = 0; i < 3; i++) {
		base = me->tx_credit;
		me->tx_window = 1;
		me->tx_used = base - 300;
		c.credit.bytes = weft_put64(base + 10000);
		c.type = weft_put16((uint16_t)(WEFT_MSG_RECORD_WINDOW + (i == 0)));
		c.length = weft_put16((uint16_t)(sizeof(c.window) - (i == 1)));
		push(&p, 0, WEFT_WIRE_CREDIT, &c, i == 2 ? sizeof(c.credit) : sizeof(c) - (i == 1));
		assert_int_equal(me->tx_window, 10300);
	}
	me->tx_used = 0;
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_bytes_than_granted_end_the_endpoint),
		cmocka_unit_test(every_kind_of_message_that_waits_is_bounded_by_credit),
		cmocka_unit_test(answers_that_a_peer_does_not_take_are_bounded),
		cmocka_unit_test(copied_messages_take_bytes_and_no_request),
		cmocka_unit_test(credit_is_neither_lost_nor_made),
		cmocka_unit_test(credit_only_grows_and_never_beyond_a_window),
		cmocka_unit_test(a_smaller_window_is_reported_in_order),
	};

	return cmocka_run_group_tests_name("credit of messages", tests, NULL, NULL);
}
