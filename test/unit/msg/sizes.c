/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sizes and truncation: items B of the behaviour list, U n = item n of the tag-matching list.
 */

#include "mock/msg_transfer.h"
#include "mock/rounds.h"

/* Contiguous, with a guard behind the buffer's end. */
static void contig(const struct transfer *t)
{
	size_t at = t->offset + 1; /* B8: unaligned */
	uint8_t *sbuf = malloc(t->len + at), *rbuf = malloc(t->room + at + 64);

	pattern_fill(t->len, 0, sbuf + at, t->len);
	memset(rbuf, 0xa5, t->room + at + 64);
	transfer(t, NULL, sbuf + at, t->len, NULL, rbuf + at, t->room);
	if (t->len <= t->room)
		pattern_expect(t->len, rbuf + at, t->len);
	for (size_t i = t->len < t->room ? t->len : t->room; i < t->room + 64; i++)
		assert_int_equal(rbuf[at + i], 0xa5);
	for (size_t i = 0; i < at; i++)
		assert_int_equal(rbuf[i], 0xa5);
	free(sbuf);
	free(rbuf);
}

static void each_edge(void (*f)(const struct transfer *t), long more_room)
{
	for (unsigned int lanes = 1; lanes <= 4; lanes++) {
		for (unsigned int i = 0; i < 3 * sizeof(edges) / sizeof(*edges); i++) {
			for (unsigned int how = 0; how < 4; how++) {
				struct transfer t = {
					.len = edges[i / 3] - 1 + i % 3,
					.lanes = lanes,
					.sync = how & 1,
					.late = how & 2,
					.seed = i * 4 + how,
				};

				if (test_left_out(t.seed + lanes))
					continue;
				t.room = more_room < 0 ? t.len / 2 : t.len + (size_t)more_room;
				f(&t);
			}
		}
	}
}

/*
 * @behaviour U24: data and length exact around every threshold, unaligned
 * @behaviour B1: sizes around every threshold, 1 to 4 lanes
 * @behaviour B8: unaligned buffers, odd pieces
 */
static void B1_B8_U24_sizes_around_every_threshold_on_1_to_4_lanes(void **state)
{
	(void)state;
	each_edge(contig, 0);
}

/* The size from which everything goes by rendezvous, when it is not set. */
static size_t automatic_threshold(unsigned int lanes)
{
	struct weft_proto_info info = {.size = sizeof(info)};
	struct pair p;

	pair_defaults(&p);
	pair_open(&p, lanes, four_lanes);
	assert_int_equal(p.conf.rndv_thresh, WEFT_CONF_AUTO);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, SIZE_MAX, &info), 0);
	while (info.min > 0 && !strncmp(info.name, "rndv/", 5)) {
		size_t from = info.min;

		assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, from - 1, &info),
				 0);
		if (strncmp(info.name, "rndv/", 5) != 0) {
			pair_close(&p);
			return from;
		}
	}
	fail_msg("there is no threshold: %s from %zu", info.name, info.min);
	return 0;
}

/* @behaviour U31: both sides are correct across the automatic threshold */
static void U31_both_sides_are_right_across_the_automatic_threshold(void **state)
{
	(void)state;
	for (unsigned int lanes = 1; lanes <= 4; lanes++) {
		size_t thresh = automatic_threshold(lanes);

		for (unsigned int how = 0; how < 4; how++) {
			struct transfer t = {.lanes = lanes, .sync = how & 1, .late = how & 2};

			for (size_t len = thresh - 20; len <= thresh + 20; len++) {
				t.len = t.room = t.seed = len;
				contig(&t);
			}
			for (size_t len = thresh / 4; len <= thresh * 4; len += thresh / 16) {
				t.len = t.room = t.seed = len;
				contig(&t);
			}
		}
	}
}

/*
 * @behaviour U34: buffers at any offset, 512 B to 139 KB (2.5 GB and more: U32)
 * @behaviour B8
 */
static void U34_buffers_at_any_offset_by_rendezvous(void **state)
{
	static const size_t sizes[] = {512, 2000, 8000, 139000}, at[] = {63, 0, 510, 62, 2046, 7};
	uint64_t seed = 34;

	(void)state;
	for (unsigned int i = 0; i < 4 * 4 * 8; i++) {
		struct transfer t = {.len = sizes[i % 4],
				     .room = sizes[i % 4],
				     .lanes = 1 + i / 4 % 4,
				     .late = i & 1,
				     .rndv = true,
				     .seed = i};
		unsigned int k = i / 16;

		t.offset = k < 6 ? at[k] : pair_random(&seed) % 4096;
		contig(&t);
	}
}

/*
 * @behaviour U30: a larger receive: the length sent, the remainder untouched
 * @behaviour B2: a larger buffer than the message
 */
static void B2_U30_a_larger_buffer_gets_the_length_sent_and_no_more(void **state)
{
	(void)state;
	each_edge(contig, 1000);
}

/*
 * @behaviour U8: truncation: error and true length, the sender succeeds, nothing is written beyond
 * the buffer, the next message is delivered
 * @behaviour B3: truncation in every class
 */
static void B3_U8_truncation_in_every_size_class(void **state)
{
	(void)state;
	each_edge(contig, -1);
}

/*
 * @behaviour U29: a receive of no bytes: truncated, the sender succeeds
 * @behaviour U8
 */
static void U8_U29_a_buffer_of_no_bytes_truncates_everything(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
		struct transfer t = {.len = edges[i], .room = 0, .lanes = 2, .late = i % 2};

		contig(&t);
	}
}

/*
 * @behaviour U27: a truncated message of several pieces ends with its last piece and affects no
 * other receive
 */
static void U27_a_truncated_message_ends_with_its_last_piece_and_spoils_no_other_one(void **state)
{
	static uint8_t sbuf[5000], small[100], other[5000];
	struct op s, r, r2;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	pattern_fill(1, 0, sbuf, sizeof(sbuf));
	memset(other, 0x77, sizeof(other));
	op_recv(&r, &p.w[1], small, sizeof(small), 1, FULL);
	op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	assert_true(p.num > 3);
	while (p.num > 1) {
		pair_deliver(&p, 0);
		assert_false(op_done(&r));
		if (p.num == 2)
			op_recv(&r2, &p.w[1], other, sizeof(other), 1, FULL);
	}
	pair_deliver(&p, 0);
	op_end(&r, -EMSGSIZE);
	assert_int_equal(r.c.length, sizeof(sbuf));
	pattern_expect(1, small, sizeof(small));
	assert_false(op_done(&r2));
	for (size_t i = 0; i < sizeof(other); i++)
		assert_int_equal(other[i], 0x77);
	op_end(&s, 0);
	assert_int_equal(weft_request_cancel(r2.req), 0);
	op_end(&r2, -ECANCELED);
	pair_check_empty(&p);
	pair_close(&p);
}

/* ------------------------------------------------------------------ many and both ways */

/* @behaviour B6: many outstanding rendezvous */
static void B6_many_outstanding_rendezvous(void **state)
{
	enum { N = 300 };
	uint8_t *sbuf = malloc(20000), *rbuf[N];
	struct op s[N], r[N];
	uint64_t seed = 42;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 4, four_lanes);
	pattern_fill(1, 0, sbuf, 20000);
	for (int i = 0; i < N; i++)
		op_send(&s[i], &p.ep[0], sbuf, 20000, (uint64_t)i);
	pair_run(&p);
	for (int i = N; i-- > 0;) {
		rbuf[i] = malloc(20000);
		op_recv(&r[i], &p.w[1], rbuf[i], 20000, (uint64_t)i, FULL);
	}
	pair_run_random(&p, &seed);
	for (int i = 0; i < N; i++) {
		op_end(&s[i], 0);
		op_end_recv(&r[i], rbuf[i], 20000, (uint64_t)i, 1);
		free(rbuf[i]);
	}
	free(sbuf);
	pair_check_empty(&p);
	pair_close(&p);
}

/*
 * @behaviour U33: many large messages in both directions at once
 * @behaviour B7: large messages in both directions, with little space
 */
static void B7_U33_large_messages_head_to_head(void **state)
{
	enum { N = 8, LEN = 100000 };
	uint8_t *sbuf[2] = {malloc(LEN), malloc(LEN)}, *rbuf[2][N];
	struct op s[2][N], r[2][N];
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 2, NULL);
	for (int side = 0; side < 2; side++) {
		pattern_fill((uint64_t)side, 0, sbuf[side], LEN);
		for (int i = 0; i < N; i++) {
			rbuf[side][i] = malloc(LEN);
			op_recv(&r[side][i], &p.w[side], rbuf[side][i], LEN, 1, FULL);
			op_send(&s[side][i], &p.ep[side], sbuf[side], LEN, 1);
		}
	}
	/* Lanes with very little room, in both directions. */
	for (int n = 0; n < 10000 && (p.num || n < 10 || !op_done(&r[1][N - 1])); n++) {
		pair_room(&p, 0, 2);
		pair_room(&p, 1, 2);
		pair_progress(&p);
		while (p.num)
			pair_deliver(&p, 0);
	}
	pair_room(&p, 0, -1);
	pair_room(&p, 1, -1);
	pair_run(&p);
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < N; i++) {
			op_end(&s[side][i], 0);
			op_end_recv(&r[side][i], rbuf[side][i], LEN, 1, (uint64_t)!side);
			free(rbuf[side][i]);
		}
		free(sbuf[side]);
	}
	pair_check_empty(&p);
	pair_close(&p);
}

static void a_receiver_copies_each_byte_once_if_it_was_expected_else_twice(void **state)
{
	static const size_t lens[] = {8, 200, 1000, 3000};
	uint8_t sbuf[3000], rbuf[3000];
	struct op s, r;
	struct pair p;

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(lens) / sizeof(*lens); i++) {
		size_t len = lens[i / 2];
		bool late = i & 1;

		pair_defaults(&p);
		pair_open(&p, 1, four_lanes);
		if (!late)
			op_recv(&r, &p.w[1], rbuf, len, 6, FULL);
		pattern_fill(i, 0, sbuf, len);
		op_send(&s, &p.ep[0], sbuf, len, 6);
		pair_run(&p);
		if (late)
			op_recv(&r, &p.w[1], rbuf, len, 6, FULL);
		op_end(&s, 0);
		op_end(&r, 0);
		pattern_expect(i, rbuf, len);
		assert_int_equal(p.w[1].msg->count.rx_copied_bytes, late ? 2 * len : len);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/*
 * A whole message that leaves room for another one in its frame is copied, so that frames are
 * shared. A longer one is sent from user memory. Both are contiguous, and zero copy is possible.
 */
static void whole_messages_that_share_a_frame_are_copied(void **state)
{
	const struct pair_lane_params lane = {
		.max_short = 256, .max_bcopy = 9000, .max_zcopy = 9000, .max_iov = 4};
	static const size_t lens[] = {4096, 4400, 4600, 8900};
	static uint8_t sbuf[9000], rbuf[9000];
	struct op s, r;
	struct pair p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		pair_defaults(&p);
		p.conf.rndv_thresh = WEFT_CONF_INF;
		p.conf.zcopy_thresh = WEFT_CONF_AUTO;
		pair_open(&p, 1, &lane);
		op_recv(&r, &p.w[1], rbuf, lens[i], 6, FULL);
		pattern_fill(i, 0, sbuf, lens[i]);
		op_send(&s, &p.ep[0], sbuf, lens[i], 6);
		pair_run(&p);
		op_end(&s, 0);
		op_end(&r, 0);
		pattern_expect(i, rbuf, lens[i]);
		assert_int_equal(p.w[0].msg->count.copied_bytes, lens[i] < 4500 ? lens[i] : 0);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/*
 * A lane whose driver copies anyway has a length from which user memory pays. Shorter messages are
 * copied, also in a rendezvous.
 */
static void messages_below_the_least_of_a_lane_are_copied(void **state)
{
	const struct pair_lane_params lane = {.max_short = 256,
					      .max_bcopy = 9000,
					      .max_zcopy = 9000,
					      .max_iov = 4,
					      .min_zcopy = 65536};
	static const size_t lens[] = {4600, 8900, 40000, 65535, 65536, 200000};
	static uint8_t sbuf[200000], rbuf[200000];
	struct op s, r;
	struct pair p;

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(lens) / sizeof(*lens); i++) {
		size_t len = lens[i / 2];

		pair_defaults(&p);
		p.conf.rndv_thresh = i % 2 ? 0 : WEFT_CONF_INF;
		p.conf.zcopy_thresh = WEFT_CONF_AUTO;
		pair_open(&p, 1, &lane);
		op_recv(&r, &p.w[1], rbuf, len, 6, FULL);
		pattern_fill(i, 0, sbuf, len);
		op_send(&s, &p.ep[0], sbuf, len, 6);
		pair_run(&p);
		op_end(&s, 0);
		op_end(&r, 0);
		pattern_expect(i, rbuf, len);
		assert_int_equal(p.w[0].msg->count.copied_bytes, len < 65536 ? len : 0);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B1_B8_U24_sizes_around_every_threshold_on_1_to_4_lanes),
		cmocka_unit_test(U31_both_sides_are_right_across_the_automatic_threshold),
		cmocka_unit_test(U34_buffers_at_any_offset_by_rendezvous),
		cmocka_unit_test(B2_U30_a_larger_buffer_gets_the_length_sent_and_no_more),
		cmocka_unit_test(B3_U8_truncation_in_every_size_class),
		cmocka_unit_test(U8_U29_a_buffer_of_no_bytes_truncates_everything),
		cmocka_unit_test(
			U27_a_truncated_message_ends_with_its_last_piece_and_spoils_no_other_one),
		cmocka_unit_test(B6_many_outstanding_rendezvous),
		cmocka_unit_test(B7_U33_large_messages_head_to_head),
		cmocka_unit_test(a_receiver_copies_each_byte_once_if_it_was_expected_else_twice),
		cmocka_unit_test(whole_messages_that_share_a_frame_are_copied),
		cmocka_unit_test(messages_below_the_least_of_a_lane_are_copied),
	};

	return cmocka_run_group_tests_name("sizes of messages", tests, NULL, NULL);
}
