/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer must not send: B10, F7, F10 of the behaviour list. */

#include "mock/msg_util.h"

static void push(struct pair *p, uint8_t id, const void *data, size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);

	memcpy(copy, data, length);
	pair_receive(p, 1, 0, id, copy, length);
	free(copy);
}

struct frag {
	struct weft_wire_frag f;
	uint8_t payload[1000];
} __attribute__((packed));

static struct frag frag(uint32_t seq, uint64_t tag, uint64_t total, uint64_t offset)
{
	return (struct frag){
		.f = {{weft_put32(seq), weft_put64(tag)}, weft_put64(total), weft_put64(offset)}};
}

static void push_frag(struct pair *p, uint32_t seq, uint64_t tag, uint64_t total, uint64_t offset,
		      size_t len)
{
	struct frag f = frag(seq, tag, total, offset);

	memset(f.payload, (int)offset, sizeof(f.payload));
	push(p, WEFT_WIRE_FRAG, &f, sizeof(f.f) + len);
}

/* @behaviour B10: overlapping, contradicting pieces */
static void B10_overlapping_and_contradicting_pieces_are_rejected_and_counted(void **state)
{
	uint8_t rbuf[3000];
	struct op r;
	struct pair p;

	(void)state;
	for (int late = 0; late < 2; late++) {
		pair_defaults(&p);
		pair_open(&p, 1, NULL);
		if (!late)
			op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		push_frag(&p, 0, 1, 3000, 1000, 1000);
		push_frag(&p, 0, 1, 3000, 1000, 1000); /* again */
		push_frag(&p, 0, 1, 3000, 500, 1000);  /* overlaps */
		push_frag(&p, 0, 1, 3000, 1999, 1);
		assert_int_equal(p.w[1].msg->count.overlap, 3);
		push_frag(&p, 0, 1, 2999, 0, 1000); /* another total */
		push_frag(&p, 0, 2, 3000, 0, 1000); /* another tag */
		assert_int_equal(p.w[1].msg->count.mismatch, 2);
		push_frag(&p, 0, 1, 3000, 0, 1000);
		push_frag(&p, 0, 1, 3000, 2000, 1000);
		push_frag(&p, 0, 1, 3000, 2000, 1000); /* over */
		assert_int_equal(p.w[1].msg->count.old_seq, late ? 1 : 1);
		if (late)
			op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		op_end(&r, 0);
		for (int i = 0; i < 3000; i++)
			assert_int_equal(rbuf[i], (uint8_t)(i / 1000 * 1000));
		assert_int_equal(p.fail_status[1], 0);
		pair_close(&p);
	}
}

/* A hostile peer's cheapest piece: one byte, with a hole on either side. */
/*
 * @behaviour T8: the ranges of a fragmented message are bounded, and each range costs about the
 * same as the first
 */
static void a_message_fragmented_into_ranges_is_bounded(void **state)
{
	const uint64_t total = 4 * WEFT_IVAL_MAX;
	static uint8_t rbuf[4 * WEFT_IVAL_MAX];
	struct op r;
	struct pair p;

	(void)state;
	for (int two = 0; two < 2; two++) {
		uint32_t n = 0;

		pair_defaults(&p);
		pair_open(&p, 1, NULL);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		/* Backwards: each goes before all there are. Of one message, or of two in turn. */
		while (p.fail_status[1] == 0 && n < 2 * WEFT_IVAL_MAX) {
			push_frag(&p, two ? n & 1 : 0, 1, total, total - 1 - 2 * (n >> two), 1);
			n++;
		}
		assert_int_equal(p.fail_status[1], -EPROTO);
		assert_int_equal(p.w[1].msg->count.fragmented, 1);
		assert_in_range(n, WEFT_IVAL_MAX, WEFT_IVAL_MAX + 3);
		op_end(&r, -EPROTO);
		pair_close(&p);
	}
}

/*
 * What other peers have torn takes from this one's share, but not its floor: here no peer has more
 * than it.
 */
/* @behaviour S16, T2 */
static void ranges_of_all_peers_are_bounded(void **state)
{
	static const struct {
		uint32_t others, least, most;
	} cases[] = {
		{WEFT_RX_RANGES_LIMIT - 4000, WEFT_RX_RANGES_FLOOR + 4000,
		 WEFT_RX_RANGES_FLOOR + 4001},
		{WEFT_RX_RANGES_LIMIT, WEFT_RX_RANGES_FLOOR, WEFT_RX_RANGES_FLOOR + 1},
		{2 * WEFT_RX_RANGES_LIMIT, WEFT_RX_RANGES_FLOOR, WEFT_RX_RANGES_FLOOR + 1},
	};
	static uint8_t rbuf[4 * WEFT_IVAL_MAX];
	struct op r;
	struct pair p;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		uint32_t n = 0;

		pair_defaults(&p);
		pair_open(&p, 1, NULL);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		p.w[1].msg->rx_ranges = cases[i].others;
		while (p.fail_status[1] == 0 && n < WEFT_IVAL_MAX)
			push_frag(&p, 0, 1, sizeof(rbuf), 2 * n++, 1);
		/* The first is none, and the last was one too many. */
		assert_in_range(n - 2, cases[i].least, cases[i].most);
		assert_int_equal(p.w[1].msg->count.fragmented, 1);
		op_end(&r, -EPROTO);
		assert_int_equal(p.w[1].msg->rx_ranges, cases[i].others);
		pair_close(&p);
	}
}

/*
 * What waits to be received outlives its endpoint. Its ranges do not: nothing would free them.
 */
static void ranges_are_given_back_with_their_endpoint(void **state)
{
	const uint64_t total = 4096;

	(void)state;
	for (int aborted = 0; aborted < 2; aborted++) {
		const struct weft_wire_abort abort = {.e = {weft_put32(0), weft_put64(1)},
						      .total = weft_put64(total),
						      .status = weft_put32(EIO)};
		struct weft_message *m = NULL;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 1, NULL);
		for (uint64_t i = 0; i < 1000; i++)
			push_frag(&p, 0, 1, total, 2 * i, 1);
		assert_true(p.w[1].msg->rx_ranges > 0);
		if (aborted)
			push(&p, WEFT_WIRE_ABORT, &abort, sizeof(abort));
		else
			assert_int_equal(weft_tag_probe(&p.w[1], NULL, 1, FULL, NULL, &m, NULL), 0);
		weft_msg_ep_fini(&p.ep[1], -ECONNRESET);
		assert_int_equal(p.w[1].msg->rx_ranges, 0);
		if (m)
			weft_tag_msg_drop(&p.w[1], m);
		assert_int_equal(p.w[1].msg->rx_ranges, 0);
		pair_close(&p);
	}
}

static void malformed(uint8_t id, const void *data, size_t length)
{
	struct pair p;

	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	push(&p, id, data, length);
	assert_int_equal(p.fail_status[1], -EPROTO);
	assert_int_equal(p.w[1].msg->count.malformed, 1);
	pair_close(&p);
}

/* @behaviour F10 */
static void F10_malformed_messages_end_the_endpoint_and_are_counted(void **state)
{
	struct frag f;
	struct weft_wire_rts rts = {.total = weft_put64(UINT64_MAX)};
	struct weft_wire_rtr rtr = {.length = weft_put64(0)};
	struct weft_wire_ats ats = {.status = weft_put32(4096)};
	struct weft_wire_abort abort_ok = {.status = weft_put32(0)};
	struct weft_wire_data data = {.offset = weft_put64(UINT64_MAX - 3)};
	uint8_t more[sizeof(struct weft_wire_credit) + 4] = {0};

	(void)state;
	malformed(0, &rts, sizeof(rts));
	malformed(13, &rts, sizeof(rts));
	malformed(31, &rts, sizeof(rts));
	for (uint8_t id = WEFT_WIRE_EAGER; id <= WEFT_WIRE_ABORT; id++)
		malformed(id, &f, 11);
	f = frag(0, 1, 1000, 0);
	malformed(WEFT_WIRE_FRAG, &f, sizeof(f.f)); /* no bytes */
	f = frag(0, 1, 10, 0);
	malformed(WEFT_WIRE_FRAG, &f, sizeof(f.f) + 11); /* past the end */
	f = frag(0, 1, 10, UINT64_MAX);
	malformed(WEFT_WIRE_FRAG, &f, sizeof(f.f) + 11); /* wraps */
	f = frag(0, 1, UINT64_MAX, 0);
	malformed(WEFT_WIRE_FRAG, &f, sizeof(f.f) + 11);
	malformed(WEFT_WIRE_RTS, &rts, sizeof(rts));
	malformed(WEFT_WIRE_RTR, &rtr, sizeof(rtr));
	malformed(WEFT_WIRE_ATS, &ats, sizeof(ats));
	malformed(WEFT_WIRE_SYNC_ACK, &ats, sizeof(ats));
	malformed(WEFT_WIRE_ABORT, &abort_ok, sizeof(abort_ok));
	malformed(WEFT_WIRE_DATA, &data, sizeof(data));
	malformed(WEFT_WIRE_CREDIT, more, sizeof(more) - 1); /* half a record */
	more[sizeof(struct weft_wire_credit) + 1] = 0x80;
	malformed(WEFT_WIRE_CREDIT, more, sizeof(more)); /* a record that must be understood */
}

static void records_of_later_versions_are_skipped(void **state)
{
	uint8_t more[sizeof(struct weft_wire_credit) + 4 + 3] = {0};
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	more[sizeof(struct weft_wire_credit)] = 7;
	more[sizeof(struct weft_wire_credit) + 2] = 3;
	push(&p, WEFT_WIRE_CREDIT, more, sizeof(more));
	assert_int_equal(p.fail_status[1], 0);
	pair_close(&p);
}

/* Bit 15: a reader that does not know it must not go on as if it were not there. */
static void records_that_must_be_understood_end_the_endpoint(void **state)
{
	uint8_t more[sizeof(struct weft_wire_credit) + 4] = {0};
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	more[sizeof(struct weft_wire_credit)] = 0x09;
	more[sizeof(struct weft_wire_credit) + 1] = 0x80;
	push(&p, WEFT_WIRE_CREDIT, more, sizeof(more));
	assert_int_equal(p.fail_status[1], -EPROTO);
	assert_int_equal(p.w[1].msg->count.malformed, 1);
	pair_close(&p);
}

static void a_sequence_beyond_the_window_ends_the_endpoint(void **state)
{
	struct weft_wire_eager e = {weft_put32(WEFT_SEQ_WINDOW), weft_put64(1)};
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	push(&p, WEFT_WIRE_EAGER, &e, sizeof(e));
	assert_int_equal(p.fail_status[1], -EPROTO);
	assert_int_equal(p.w[1].msg->count.far_seq, 1);
	pair_close(&p);
}

/* @behaviour U51 */
static void a_message_twice_is_dropped_and_counted(void **state)
{
	struct weft_wire_eager e = {weft_put32(0), weft_put64(1)};
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	push(&p, WEFT_WIRE_EAGER, &e, sizeof(e));
	push(&p, WEFT_WIRE_EAGER, &e, sizeof(e));
	e.seq = weft_put32(5);
	push(&p, WEFT_WIRE_EAGER, &e, sizeof(e));
	push(&p, WEFT_WIRE_EAGER, &e, sizeof(e));
	assert_int_equal(p.w[1].msg->count.old_seq, 2);
	assert_int_equal(p.w[1].msg->tag->match.num_msgs, 1);
	assert_int_equal(p.fail_status[1], 0);
	pair_close(&p);
}

/*
 * @behaviour X15: stale request ids: ignored and counted
 * @behaviour F7
 */
static void F7_references_to_nothing_or_to_the_past_are_ignored_and_counted(void **state)
{
	static uint8_t buf[20000];
	struct weft_wire_rtr rtr = {.length = weft_put64(10)};
	struct weft_wire_ats ats = {.status = weft_put32(0)};
	struct {
		struct weft_wire_data d;
		uint8_t x[10];
	} __attribute__((packed)) data = {.x = {0}};
	const struct weft_wire_ref wrong[] = {
		{{0}, {0}},
		{weft_put32(0), weft_put32(77)},
		{weft_put32(UINT32_MAX), weft_put32(1)},
		{weft_put32(WEFT_REQ_CHUNK - 1), weft_put32(1)},
	};
	struct op s, r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	op_send_sync(&s, &p.ep[1], buf, 10, 1); /* a live send, but not a rendezvous */
	op_recv(&r, &p.w[1], buf, 10, 5, FULL); /* a live receive, but not matched */
	for (unsigned int i = 0; i < 6; i++) {
		struct weft_wire_ref ref =
			i < 4 ? wrong[i] : weft_request_ref(i == 4 ? s.req : r.req);

		rtr.sreq = ats.sreq = data.d.rreq = ref;
		push(&p, WEFT_WIRE_RTR, &rtr, sizeof(rtr));
		push(&p, WEFT_WIRE_ATS, &ats, sizeof(ats));
		push(&p, WEFT_WIRE_DATA, &data, sizeof(data));
	}
	assert_int_equal(p.w[1].msg->count.bad_ref + p.w[1].msg->count.mismatch, 18);
	assert_int_equal(p.fail_status[1], 0);
	assert_false(op_done(&s));
	assert_false(op_done(&r));
	weft_request_free(s.req);
	weft_request_free(r.req);
	pair_close(&p);
}

static void a_receiver_cannot_request_bytes_outside_the_message(void **state)
{
	static uint8_t buf[20000];
	struct weft_wire_rtr rtr = {.rreq = {weft_put32(0), weft_put32(1)}};
	struct op s;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	op_send(&s, &p.ep[1], buf, sizeof(buf), 1);
	rtr.sreq = weft_request_ref(s.req);
	rtr.offset = weft_put64(0);
	rtr.length = weft_put64(sizeof(buf) + 1);
	push(&p, WEFT_WIRE_RTR, &rtr, sizeof(rtr));
	rtr.offset = weft_put64(sizeof(buf));
	rtr.length = weft_put64(1);
	push(&p, WEFT_WIRE_RTR, &rtr, sizeof(rtr));
	assert_int_equal(p.w[1].msg->count.mismatch, 2);
	pair_progress(&p);
	assert_int_equal(pair_count(&p, 0, WEFT_WIRE_DATA), 0);
	/* In stretches, one after the other: allowed. */
	for (uint64_t off = 0; off < sizeof(buf); off += 5000) {
		rtr.offset = weft_put64(off);
		rtr.length = weft_put64(5000);
		push(&p, WEFT_WIRE_RTR, &rtr, sizeof(rtr));
		pair_progress(&p);
	}
	assert_true(pair_count(&p, 0, WEFT_WIRE_DATA) >= 20);
	weft_request_free(s.req);
	pair_close(&p);
}

static void credit_never_shrinks_and_never_exceeds_the_window(void **state)
{
	struct weft_wire_credit c = {weft_put64(5), weft_put32(17), weft_put32(3), {0}};
	struct weft_msg_ep *me;
	uint32_t end;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	me = p.ep[1].msg;
	end = me->tx_seq_end;
	push(&p, WEFT_WIRE_CREDIT, &c, sizeof(c)); /* an old one that was overtaken */
	assert_int_equal(me->tx_seq_end, end);
	assert_int_equal(me->tx_credit, 1u << 20);
	c.seq = weft_put32(end + 100000);
	push(&p, WEFT_WIRE_CREDIT, &c, sizeof(c));
	assert_int_equal(me->tx_seq_end, end);
	pair_close(&p);
}

/* base/container.h says what the seed is for; here is where it comes from. */
/* @behaviour T8 */
static void the_table_of_open_messages_has_the_workers_seed(void **state)
{
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	assert_int_not_equal(p.w[1].msg->tag->seed, 0);
	assert_true(p.ep[1].msg->tag->open.seed == p.w[1].msg->tag->seed);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B10_overlapping_and_contradicting_pieces_are_rejected_and_counted),
		cmocka_unit_test(a_message_fragmented_into_ranges_is_bounded),
		cmocka_unit_test(the_table_of_open_messages_has_the_workers_seed),
		cmocka_unit_test(ranges_of_all_peers_are_bounded),
		cmocka_unit_test(ranges_are_given_back_with_their_endpoint),
		cmocka_unit_test(F10_malformed_messages_end_the_endpoint_and_are_counted),
		cmocka_unit_test(records_of_later_versions_are_skipped),
		cmocka_unit_test(records_that_must_be_understood_end_the_endpoint),
		cmocka_unit_test(a_sequence_beyond_the_window_ends_the_endpoint),
		cmocka_unit_test(a_message_twice_is_dropped_and_counted),
		cmocka_unit_test(F7_references_to_nothing_or_to_the_past_are_ignored_and_counted),
		cmocka_unit_test(a_receiver_cannot_request_bytes_outside_the_message),
		cmocka_unit_test(credit_never_shrinks_and_never_exceeds_the_window),
	};

	return cmocka_run_group_tests_name("bad messages", tests, NULL, NULL);
}
