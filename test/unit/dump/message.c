/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages followed over the lanes, frame by frame, in captures of one host and of both. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "dump/follow.h"
#include "dump/message.h"

#define BEGIN 1700000000000000000ull
#define US 1000ull
#define HDR_AT 14
#define AWAITED_US 100010 /* a missing transmission is awaited for a shorter time */

static struct msg over[64];
static unsigned int num_over;

static void is_over(void *arg, struct trace *t, const struct msg *m)
{
	if (num_over < 64)
		over[num_over++] = *m;
}

static struct trace *begin(unsigned int files)
{
	struct trace *t = trace_make(files);

	assert_non_null(t);
	num_over = 0;
	t->follow->over = is_over;
	return t;
}

/* A lane frame under Weft's own ethertype; dir 0 goes from host 0 to host 1. */
struct built {
	uint8_t bytes[9000];
	uint32_t len;
};

static struct weft_frame_hdr *hdr_of(struct built *b)
{
	return (void *)(b->bytes + HDR_AT);
}

static struct built build(unsigned int lane, unsigned int dir, uint8_t type, uint32_t seq)
{
	struct built b = {.len = HDR_AT + sizeof(struct weft_frame_hdr)};

	b.bytes[4] = b.bytes[10] = (uint8_t)lane;
	b.bytes[5] = (uint8_t)(2 - dir);
	b.bytes[11] = (uint8_t)(1 + dir);
	memcpy(b.bytes + 12, "\x88\xb5", 2);
	*hdr_of(&b) = (struct weft_frame_hdr){
		.magic = weft_put16(WEFT_FRAME_MAGIC),
		.version = WEFT_FRAME_VERSION,
		.type = type,
		.length = weft_put16(sizeof(struct weft_frame_hdr)),
		.dst_conn = weft_put32(0x10000 + 2 * lane + !dir),
		.token = weft_put32(77 + 2 * lane + dir),
		.src_conn = weft_put16((uint16_t)(2 * lane + dir)),
		.seq = weft_put32(seq),
		.order = weft_put32(seq),
		.ts_hold = weft_put16(WEFT_FRAME_NO_ECHO),
	};
	return b;
}

static void add(struct built *b, uint8_t id, const void *head, size_t head_len, uint32_t payload)
{
	struct weft_frame_msg *m = (void *)(b->bytes + b->len);

	m->length = weft_put16((uint16_t)(head_len + payload));
	m->am_id = id;
	memcpy(m + 1, head, head_len);
	b->len += (uint32_t)(sizeof(*m) + head_len + payload);
	assert_true(b->len <= sizeof(b->bytes));
	hdr_of(b)->length = weft_put16((uint16_t)(b->len - HDR_AT));
}

static void seen(struct trace *t, const struct built *b, uint8_t file, uint8_t way, uint64_t us)
{
	struct dump_frame frame = {
		.data = b->bytes, .caplen = b->len, .len = b->len, .file = file, .way = way};
	struct dump_view view;

	dump_decode(&frame, &view);
	if (view.wrong)
		print_error("%s\n", view.wrong);
	assert_int_equal(view.what, DUMP_LANE);
	trace_frame(t, &frame, &view, BEGIN + us * US);
}

/* It is sent, and comes 5 us later, if it does. */
static void carried(struct trace *t, struct built *b, unsigned int dir, uint64_t us, bool comes)
{
	hdr_of(b)->ts = weft_put32((uint32_t)(BEGIN + us * US));
	seen(t, b, (uint8_t)dir, DUMP_OUT, us);
	if (comes)
		seen(t, b, (uint8_t)!dir, DUMP_IN, us + 5);
}

static void again(struct built *b)
{
	hdr_of(b)->flags = weft_put16(WEFT_FRAME_F_RETX);
	hdr_of(b)->order = weft_put32(weft_get32(hdr_of(b)->order) + 100);
}

static void acked(struct trace *t, unsigned int lane, unsigned int dir, uint32_t ack, uint64_t us)
{
	struct built b = build(lane, !dir, WEFT_FRAME_ACK, 0);

	hdr_of(&b)->ack = weft_put32(ack);
	carried(t, &b, !dir, us, true);
}

static struct built frag(unsigned int lane, uint32_t frame, uint32_t seq, uint64_t offset)
{
	struct built b = build(lane, 0, WEFT_FRAME_DATA, frame);
	struct weft_wire_frag f = {.e = {weft_put32(seq), weft_put64(0x101)},
				   .total = weft_put64(4000),
				   .offset = weft_put64(offset)};

	add(&b, WEFT_WIRE_FRAG, &f, sizeof(f), 1000);
	return b;
}

/* Both directions of two lanes are known. */
static void open_lanes(struct trace *t, uint32_t first)
{
	unsigned int lane;

	for (lane = 0; lane < 2; lane++) {
		acked(t, lane, 0, first, 0);
		acked(t, lane, 1, first, 1);
	}
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void pieces_over_two_lanes_are_one_message(void **state)
{
	struct trace *t = begin(2);
	const struct msg_lane *last;
	struct built b;
	uint64_t by;

	open_lanes(t, 0xfffffffeu);
	b = frag(0, 0xfffffffeu, 7, 0);
	carried(t, &b, 0, 10, true);
	b = frag(0, 0xffffffffu, 7, 1000);
	carried(t, &b, 0, 11, true);
	b = frag(1, 0xfffffffeu, 7, 2000);
	carried(t, &b, 0, 10, false);
	b = frag(1, 0xffffffffu, 7, 3000);
	carried(t, &b, 0, 11, true);
	acked(t, 0, 0, 0, 30);
	assert_int_equal(num_over, 0);
	b = frag(1, 0xfffffffeu, 7, 2000);
	again(&b);
	carried(t, &b, 0, 1010, true);
	assert_int_equal(num_over, 0); /* may still be sent again */
	acked(t, 1, 0, 0, 1020);
	assert_int_equal(num_over, 0); /* its first transmission may yet come */
	acked(t, 0, 0, 0, 1020 + AWAITED_US);
	assert_int_equal(num_over, 1);
	assert_int_equal(over[0].total, 4000);
	assert_int_equal(over[0].bytes, 4000);
	assert_int_equal(over[0].num_lanes, 2);
	assert_int_equal(over[0].again, 1);
	assert_int_equal(over[0].lost, 1);
	assert_int_equal(over[0].repair, 1005 * US);
	assert_true(over[0].seen & MSG_BY_TIMEOUT);
	assert_int_equal(msg_took(&over[0]), 1005 * US);
	assert_string_equal(msg_protocol(&over[0]), "multi-eager");
	last = msg_last_lane(&over[0], &by);
	assert_int_equal(last->bytes, 2000);
	assert_int_equal(last->lost, 1);
	assert_int_equal(by, 999 * US);
	/* A needless retransmission of what is over begins nothing. */
	again(&b);
	carried(t, &b, 0, 1100 + AWAITED_US, true);
	trace_end(t);
	assert_int_equal(num_over, 1);
	assert_int_equal(t->follow->unfinished, 0);
	trace_free(t);
}

static void what_is_only_late_was_not_lost(void **state)
{
	struct trace *t = begin(2);
	struct built b, first = frag(0, 0, 7, 0);

	open_lanes(t, 0);
	b = first;
	carried(t, &first, 0, 10, false);
	again(&b);
	carried(t, &b, 0, 1010, false);
	seen(t, &first, 1, DUMP_IN, 1020);
	seen(t, &b, 1, DUMP_IN, 1021);
	acked(t, 0, 0, 1, 1030);
	trace_end(t);
	assert_int_equal(num_over, 1);
	assert_int_equal(over[0].again, 1);
	assert_int_equal(over[0].lost, 0);
	assert_int_equal(over[0].repair, 0);
	assert_int_equal(over[0].bytes, 1000);
	trace_free(t);
}

/* Lanes over UDP sockets have one for each path, which are read one after the other. */
static void what_was_read_after_a_later_transmission_was_not_lost(void **state)
{
	struct trace *t = begin(2);
	struct built b[3];
	unsigned int i;

	open_lanes(t, 0);
	b[0] = frag(0, 0, 7, 0);
	carried(t, &b[0], 0, 10, false);
	for (i = 1; i < 3; i++) {
		b[i] = b[i - 1];
		again(&b[i]);
		carried(t, &b[i], 0, 10 + 1000 * i, false);
	}
	seen(t, &b[1], 1, DUMP_IN, 3000);
	seen(t, &b[0], 1, DUMP_IN, 3000);
	acked(t, 0, 0, 1, 3030);
	trace_end(t);
	assert_int_equal(num_over, 1);
	assert_int_equal(over[0].again, 2);
	assert_int_equal(over[0].lost, 0);
	assert_int_equal(over[0].repair, 0);
	trace_free(t);
}

/* Two retransmissions arrive, the first transmission never does. */
static void what_arrived_twice_was_lost_once(void **state)
{
	struct trace *t = begin(2);
	struct built b[3];
	unsigned int i;

	open_lanes(t, 0);
	b[0] = frag(0, 0, 7, 0);
	carried(t, &b[0], 0, 10, false);
	for (i = 1; i < 3; i++) {
		b[i] = b[i - 1];
		again(&b[i]);
		carried(t, &b[i], 0, 10 + 1000 * i, false);
	}
	seen(t, &b[2], 1, DUMP_IN, 3000);
	seen(t, &b[1], 1, DUMP_IN, 3000);
	acked(t, 0, 0, 1, 3030);
	trace_end(t);
	assert_int_equal(num_over, 1);
	assert_int_equal(over[0].lost, 1);
	assert_int_equal(over[0].repair, 2990 * US);
	trace_free(t);
}

/* A retransmission is acknowledged before the first transmission comes. */
static void what_comes_behind_the_acknowledgement_was_not_lost(void **state)
{
	static const uint64_t after_us[] = {10, AWAITED_US};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct trace *t = begin(2);
		struct built first = frag(0, 0, 7, 0), b = first;

		open_lanes(t, 0);
		carried(t, &first, 0, 10, false);
		again(&b);
		carried(t, &b, 0, 1010, true);
		acked(t, 0, 0, 1, 1030);
		acked(t, 0, 0, 1, 1030 + after_us[i]);
		seen(t, &first, 1, DUMP_IN, 1031 + after_us[i]);
		trace_end(t);
		assert_int_equal(num_over, 1);
		assert_int_equal(over[0].again, 1);
		assert_int_equal(over[0].lost, i);
		assert_int_equal(over[0].lane[0].lost, i);
		assert_int_equal(over[0].repair, i * 1005 * US);
		trace_free(t);
	}
}

/* The captures of the receiver alone: the flag of the frame shows that it was sent before. */
static void what_the_receiver_gets_later_was_not_lost(void **state)
{
	unsigned int comes;

	for (comes = 0; comes < 2; comes++) {
		struct trace *t = begin(1);
		struct built first = frag(0, 0, 7, 0), b = first, ack;

		again(&b);
		seen(t, &b, 0, DUMP_IN, 10);
		ack = build(0, 1, WEFT_FRAME_ACK, 0);
		hdr_of(&ack)->ack = weft_put32(1);
		seen(t, &ack, 0, DUMP_OUT, 20);
		if (comes)
			seen(t, &first, 0, DUMP_IN, 30);
		trace_end(t);
		assert_int_equal(num_over, 1);
		assert_int_equal(over[0].again, 1);
		assert_int_equal(over[0].lost, !comes);
		trace_free(t);
	}
}

/* The first transmission is lost; the second one and a needless third one arrive. */
static void a_needless_transmission_is_no_lost_one(void **state)
{
	struct trace *t = begin(2);
	struct built b[3];
	unsigned int i;

	open_lanes(t, 0);
	b[0] = frag(0, 0, 7, 0);
	carried(t, &b[0], 0, 10, false);
	for (i = 1; i < 3; i++) {
		b[i] = b[i - 1];
		again(&b[i]);
		carried(t, &b[i], 0, 10 + 1000 * i, true);
	}
	acked(t, 0, 0, 1, 3030);
	trace_end(t);
	assert_int_equal(num_over, 1);
	assert_int_equal(over[0].again, 2);
	assert_int_equal(over[0].lost, 1);
	trace_free(t);
}

static void one_host_has_the_acknowledgement_instead(void **state)
{
	struct trace *t = begin(1);
	struct built b, ack = build(0, 1, WEFT_FRAME_ACK, 0);

	seen(t, &ack, 0, DUMP_IN, 0);
	b = frag(0, 5, 7, 0);
	seen(t, &b, 0, DUMP_OUT, 10);
	b = frag(0, 6, 7, 1000);
	seen(t, &b, 0, DUMP_OUT, 11);
	hdr_of(&ack)->ack = weft_put32(7);
	seen(t, &ack, 0, DUMP_IN, 50);
	trace_end(t);
	assert_int_equal(num_over, 1);
	assert_int_equal(over[0].bytes, 2000);
	assert_int_equal(over[0].done, BEGIN + 50 * US);
	assert_false(msg_complete(&over[0]));
	assert_int_equal(t->follow->unfinished, 1);
	assert_int_equal(t->flow[1].most_frames, 2);
	trace_free(t);
}

static void a_rendezvous_is_tied_together_by_its_requests(void **state)
{
	struct weft_wire_rts rts = {.e = {weft_put32(9), weft_put64(0x202)},
				    .total = weft_put64(2000),
				    .req = {weft_put32(3), weft_put32(4)}};
	struct weft_wire_pull pull = {.sreq = rts.req,
				      .rreq = {weft_put32(5), weft_put32(6)},
				      .length = weft_put64(2000)};
	struct weft_wire_data data = {.rreq = pull.rreq};
	struct weft_wire_ats ats = {.sreq = rts.req};
	struct trace *t = begin(2);
	struct built b;

	open_lanes(t, 0);
	b = build(0, 0, WEFT_FRAME_DATA, 0);
	add(&b, WEFT_WIRE_RTS, &rts, sizeof(rts), 0);
	carried(t, &b, 0, 10, true);
	b = build(1, 1, WEFT_FRAME_DATA, 0);
	add(&b, WEFT_WIRE_PULL, &pull, sizeof(pull), 0);
	carried(t, &b, 1, 315, true); /* over the other lane */
	b = build(1, 0, WEFT_FRAME_DATA, 0);
	add(&b, WEFT_WIRE_DATA, &data, sizeof(data), 1500);
	carried(t, &b, 0, 325, true);
	data.offset = weft_put64(1500);
	b = build(0, 0, WEFT_FRAME_DATA, 1);
	add(&b, WEFT_WIRE_DATA, &data, sizeof(data), 500);
	carried(t, &b, 0, 326, true);
	b = build(0, 1, WEFT_FRAME_DATA, 0);
	add(&b, WEFT_WIRE_ATS, &ats, sizeof(ats), 0);
	carried(t, &b, 1, 340, true);
	/* Of a message that began before the capture. */
	data.rreq.index = weft_put32(99);
	b = build(0, 0, WEFT_FRAME_DATA, 2);
	add(&b, WEFT_WIRE_DATA, &data, sizeof(data), 500);
	carried(t, &b, 0, 350, true);
	trace_end(t);
	assert_int_equal(num_over, 1);
	assert_string_equal(msg_protocol(&over[0]), "rndv/pull");
	assert_int_equal(over[0].bytes, 2000);
	assert_int_equal(over[0].num_lanes, 2);
	assert_int_equal(msg_match(&over[0]), 300 * US);
	assert_int_equal(msg_took(&over[0]), 321 * US);
	assert_true(msg_complete(&over[0]));
	assert_int_equal(t->follow->strays, 1);
	trace_free(t);
}

static void a_get_is_its_answers(void **state)
{
	struct weft_wire_get get = {.length = weft_put64(1000),
				    .ref = {weft_put32(1), weft_put32(2)}};
	struct weft_wire_data data = {.rreq = get.ref};
	struct trace *t = begin(2);
	struct built b;

	open_lanes(t, 0);
	b = build(0, 0, WEFT_FRAME_DATA, 0);
	add(&b, WEFT_WIRE_GET, &get, sizeof(get), 0);
	carried(t, &b, 0, 10, true);
	b = build(0, 1, WEFT_FRAME_DATA, 0);
	add(&b, WEFT_WIRE_GET_DATA, &data, sizeof(data), 1000);
	carried(t, &b, 1, 20, true);
	trace_end(t);
	assert_int_equal(num_over, 1);
	assert_string_equal(msg_protocol(&over[0]), "get");
	assert_int_equal(msg_took(&over[0]), 15 * US);
	assert_int_equal(over[0].bytes, 1000);
	trace_free(t);
}

/* Announced and never answered: more than there is room for. */
static void open_messages_have_a_bound(void **state)
{
	struct weft_wire_rts rts = {.total = weft_put64(1000)};
	struct trace *t = begin(1);
	struct built b;
	uint32_t i;

	for (i = 0; i < MSG_OPEN + 100; i++) {
		rts.e.seq = weft_put32(i);
		rts.req.index = weft_put32(i);
		b = build(0, 0, WEFT_FRAME_DATA, i);
		add(&b, WEFT_WIRE_RTS, &rts, sizeof(rts), 0);
		seen(t, &b, 0, DUMP_OUT, i);
	}
	assert_int_equal(t->follow->forced, 100);
	assert_int_equal(over[0].number, 1);
	assert_true(over[0].seen & MSG_FORCED);
	trace_end(t);
	assert_int_equal(t->follow->messages, MSG_OPEN + 100);
	assert_int_equal(t->follow->unfinished, MSG_OPEN);
	trace_free(t);
}

#define CRAFTED 16384u

/*
 * Messages that stay open, over four lanes. Crafted ones meet in a few buckets where hashes are
 * known: sequences differ by the number of buckets, or have one sum.
 * @return CPU time, ns
 */
static uint64_t follow_many(bool crafted)
{
	struct weft_wire_frag f = {.e.tag = weft_put64(0x101), .total = weft_put64(4000)};
	struct trace *t = begin(2);
	struct timespec from, to;
	struct built b;
	uint32_t i, seq;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (i = 0; i < CRAFTED; i++) {
		seq = crafted ? i / 4 << 19 : i / 4;
		b = build(i % 4, 0, WEFT_FRAME_DATA, seq);
		hdr_of(&b)->ack = weft_put32(crafted ? -seq : 0);
		f.e.seq = weft_put32(crafted ? i << 17 : i);
		add(&b, WEFT_WIRE_FRAG, &f, sizeof(f), 1000);
		seen(t, &b, 0, DUMP_OUT, i);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_int_equal(t->follow->messages, CRAFTED);
	trace_end(t);
	trace_free(t);
	return (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u +
	       (uint64_t)(to.tv_nsec - from.tv_nsec);
}

/* The writer of a capture knows weft-dump's sources, and chooses its content. */
static void a_crafted_capture_takes_no_longer(void **state)
{
	uint64_t plain = follow_many(false), crafted = follow_many(true);

	plain = plain > 1000000 ? plain : 1000000;
	print_message("%llu us, crafted %llu us\n", (unsigned long long)plain / 1000,
		      (unsigned long long)crafted / 1000);
	assert_true(crafted < 8 * plain);
}

static void round_trips_are_without_the_hold_time(void **state)
{
	struct trace *t = begin(2);
	struct built b, ack;

	open_lanes(t, 0);
	b = frag(0, 0, 1, 0);
	carried(t, &b, 0, 10, true);
	ack = build(0, 1, WEFT_FRAME_ACK, 0);
	hdr_of(&ack)->ack = weft_put32(1);
	hdr_of(&ack)->ts_echo = hdr_of(&b)->ts;
	hdr_of(&ack)->ts_hold = weft_put16((uint16_t)(64 * US / WEFT_FRAME_HOLD_UNIT));
	carried(t, &ack, 1, 10 + 5 + 64, true);
	trace_end(t);
	assert_int_equal(t->flow[1].rtt.count, 1);
	assert_in_range(hist_quantile(&t->flow[1].rtt, 0.5), 9 * US, 10 * US);
	trace_free(t);
}

static void quantiles_are_within_an_eighth(void **state)
{
	static struct hist h;
	uint64_t v;

	for (v = 1; v <= 100000; v++)
		hist_add(&h, v);
	assert_in_range(hist_quantile(&h, 0.5), 50000 - 6250, 50000 + 6250);
	assert_in_range(hist_quantile(&h, 0.99), 99000 - 12375, 100000);
	hist_add(&h, UINT64_MAX);
	assert_true(hist_quantile(&h, 1) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_over_two_lanes_are_one_message),
		cmocka_unit_test(what_is_only_late_was_not_lost),
		cmocka_unit_test(what_was_read_after_a_later_transmission_was_not_lost),
		cmocka_unit_test(what_arrived_twice_was_lost_once),
		cmocka_unit_test(what_comes_behind_the_acknowledgement_was_not_lost),
		cmocka_unit_test(what_the_receiver_gets_later_was_not_lost),
		cmocka_unit_test(a_needless_transmission_is_no_lost_one),
		cmocka_unit_test(one_host_has_the_acknowledgement_instead),
		cmocka_unit_test(a_rendezvous_is_tied_together_by_its_requests),
		cmocka_unit_test(a_get_is_its_answers),
		cmocka_unit_test(open_messages_have_a_bound),
		cmocka_unit_test(a_crafted_capture_takes_no_longer),
		cmocka_unit_test(round_trips_are_without_the_hold_time),
		cmocka_unit_test(quantiles_are_within_an_eighth),
	};

	return cmocka_run_group_tests_name("dump_message", tests, NULL, NULL);
}
