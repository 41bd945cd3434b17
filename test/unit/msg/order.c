/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching and order of messages: items A of the behaviour list, U n = item n of the tag-matching
 * list.
 */

#include "mock/msg_util.h"
#include "mock/rounds.h"

#define BIG 20000

/* Sizes of every protocol of the default pair: short, bcopy, multi-eager, rendezvous. */
static const size_t mixed_sizes[] = {0, 8, 100, 244, 245, 900, 1012, 1013, 3000, 8192, 8193, BIG};
#define NUM_MIXED (sizeof(mixed_sizes) / sizeof(*mixed_sizes))

/*
 * @behaviour U78: streams; does not apply: streams are not offered; tagged and active messages are
 */

static void same_tag_mixed_sizes(unsigned int lanes, bool late, uint64_t seed, uint32_t seq_start)
{
	enum { N = 40 };
	struct pair p;
	struct op s[N], r[N];
	uint8_t *sbuf[N], *rbuf[N];
	size_t size[N];

	pair_defaults(&p);
	p.conf.seq_start = seq_start;
	pair_open(&p, lanes, NULL);
	for (int i = 0; i < N; i++) {
		size[i] = mixed_sizes[pair_random(&seed) % NUM_MIXED];
		sbuf[i] = malloc(BIG);
		rbuf[i] = malloc(BIG);
		pattern_fill((uint64_t)i, 0, sbuf[i], size[i]);
		if (!late)
			op_recv(&r[i], &p.w[1], rbuf[i], BIG, 77, FULL);
	}
	for (int i = 0; i < N; i++) {
		op_send(&s[i], &p.ep[0], sbuf[i], size[i], 77);
		if (pair_random(&seed) % 4 == 0 && p.num)
			pair_deliver(&p, pair_random(&seed) % p.num);
	}
	if (late)
		pair_run_random(&p, &seed);
	for (int i = 0; late && i < N; i++)
		op_recv(&r[i], &p.w[1], rbuf[i], BIG, 77, FULL);
	pair_run_random(&p, &seed);
	for (int i = 0; i < N; i++) {
		op_end(&s[i], 0);
		op_end_recv(&r[i], rbuf[i], size[i], 77, (uint64_t)i);
		free(sbuf[i]);
		free(rbuf[i]);
	}
	pair_check_empty(&p);
	pair_close(&p);
}

/*
 * @behaviour U10: same tag, same sender: order of sending, eager and rendezvous mixed
 * @behaviour A1: same tag, same source: send order, any mix of sizes, protocols and lanes
 */
static void A1_U10_same_tag_matches_in_send_order_whatever_size_and_lane(void **state)
{
	(void)state;
	for (unsigned int lanes = 1; lanes <= 4; lanes++) {
		for (uint64_t seed = 1; seed <= test_rounds(20); seed++) {
			same_tag_mixed_sizes(lanes, false, seed * 7919, 0);
			same_tag_mixed_sizes(lanes, true, seed * 104729, 0);
		}
	}
}

/* @behaviour A8: sequence wrap, 16 and 32 bits */
static void A8_messages_across_the_wrap_of_the_32_bit_sequence(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= test_rounds(20); seed++) {
		same_tag_mixed_sizes(3, false, seed * 31, UINT32_MAX - 7 - (uint32_t)seed);
		same_tag_mixed_sizes(3, true, seed * 37, UINT32_MAX - 7 - (uint32_t)seed);
	}
}

/* @behaviour A8 */
static void A8_more_messages_than_16_bits_and_than_the_sequence_window(void **state)
{
	const int n = 70000;
	struct pair p;
	uint64_t got, i;

	(void)state;
	pair_defaults(&p);
	p.conf.seq_start = UINT32_MAX - 40000;
	pair_open(&p, 2, NULL);
	for (i = 0; i < (uint64_t)n; i++) {
		struct op r;

		op_recv(&r, &p.w[1], &got, sizeof(got), 1, FULL);
		assert_int_equal(weft_tag_send(&p.ep[0], &i, sizeof(i), 1, NULL, NULL), 0);
		if (i % 64 == 63 || i == (uint64_t)n - 1)
			pair_run(&p);
		else
			while (p.num)
				pair_deliver(&p, 0);
		op_end(&r, 0);
		assert_true(got == i);
	}
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour A6: a small message overtakes a large one: matched after it */
static void A6_a_small_message_that_overtakes_a_large_one_is_matched_after_it(void **state)
{
	struct pair p;
	struct op r1, r2, s;
	static uint8_t big[6000], rbuf[6000];
	uint8_t small[4] = {1, 2, 3, 4}, got[4];

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 2, NULL);
	pattern_fill(5, 0, big, sizeof(big));
	op_recv(&r1, &p.w[1], rbuf, sizeof(rbuf), 0, 0);
	op_recv(&r2, &p.w[1], got, sizeof(got), 0, 0);
	op_send(&s, &p.ep[0], big, sizeof(big), 10);
	assert_int_equal(weft_tag_send(&p.ep[0], small, 4, 11, NULL, NULL), 0);
	pair_deliver(&p, p.num - 1); /* the small one first */
	assert_false(op_done(&r1));
	assert_false(op_done(&r2));
	pair_deliver(&p, 2); /* any piece of the large one: now both are matched, in order */
	assert_false(op_done(&r1));
	assert_true(op_done(&r2));
	pair_run(&p);
	op_end(&s, 0);
	op_end_recv(&r1, rbuf, sizeof(big), 10, 5);
	op_end(&r2, 0);
	assert_int_equal(r2.c.tag, 11);
	assert_memory_equal(got, small, 4);
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour A9: a piece of message n+1 before any of n */
static void A9_a_piece_of_the_next_message_before_any_piece_of_this_one(void **state)
{
	struct pair p;
	struct op r1, r2, s1, s2;
	static uint8_t b1[3000], b2[3000], g1[3000], g2[3000];

	(void)state;
	for (int posted = 0; posted < 2; posted++) {
		pair_defaults(&p);
		pair_open(&p, 2, NULL);
		pattern_fill(1, 0, b1, sizeof(b1));
		pattern_fill(2, 0, b2, sizeof(b2));
		if (posted) {
			op_recv(&r1, &p.w[1], g1, sizeof(g1), 3, FULL);
			op_recv(&r2, &p.w[1], g2, sizeof(g2), 3, FULL);
		}
		op_send(&s1, &p.ep[0], b1, sizeof(b1), 3);
		op_send(&s2, &p.ep[0], b2, sizeof(b2), 3);
		while (p.num)
			pair_deliver(&p, p.num - 1);
		if (!posted) {
			op_recv(&r1, &p.w[1], g1, sizeof(g1), 3, FULL);
			op_recv(&r2, &p.w[1], g2, sizeof(g2), 3, FULL);
		}
		pair_run(&p);
		op_end(&s1, 0);
		op_end(&s2, 0);
		op_end_recv(&r1, g1, sizeof(g1), 3, 1);
		op_end_recv(&r2, g2, sizeof(g2), 3, 2);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/* ------------------------------------------------------------------ permutations */

enum when { BEFORE, MIDWAY, AFTER };

/*
 * Send one message of @n pieces and deliver them in the order @perm; the receive is posted as @when
 * says.
 */
static void one_permutation(struct pair *p, const unsigned int *perm, unsigned int n,
			    enum when when, bool rndv)
{
	static uint8_t sbuf[16384], rbuf[16384];
	size_t len = rndv ? 8200 : n * 900;
	unsigned int left[16], alive = n;
	struct op s, r;

	pattern_fill(n, 0, sbuf, len);
	memset(rbuf, 0, len);
	if (when == BEFORE)
		op_recv(&r, &p->w[1], rbuf, sizeof(rbuf), 9, FULL);
	op_send(&s, &p->ep[0], sbuf, len, 9);
	if (rndv) { /* RTS there, RTR back: now the pieces lie there */
		pair_deliver(p, 0);
		pair_deliver(p, 0);
		pair_progress(p);
	}
	assert_int_equal(p->num, n);
	for (unsigned int i = 0; i < n; i++)
		left[i] = i;
	for (unsigned int i = 0; i < n; i++) {
		unsigned int at = 0;

		if (when == MIDWAY && i == n / 2)
			op_recv(&r, &p->w[1], rbuf, sizeof(rbuf), 9, FULL);
		while (left[at] != perm[i])
			at++;
		memmove(&left[at], &left[at + 1], (--alive - at) * sizeof(*left));
		pair_deliver(p, at);
	}
	if (when == AFTER)
		op_recv(&r, &p->w[1], rbuf, sizeof(rbuf), 9, FULL);
	op_end_recv(&r, rbuf, len, 9, n);
	pair_run(p);
	op_end(&s, 0);
}

static bool next_permutation(unsigned int *a, unsigned int n)
{
	unsigned int i = n - 1, j = n - 1, t;

	while (i > 0 && a[i - 1] >= a[i])
		i--;
	if (i == 0)
		return false;
	while (a[j] <= a[i - 1])
		j--;
	t = a[i - 1], a[i - 1] = a[j], a[j] = t;
	for (j = n - 1; i < j; i++, j--)
		t = a[i], a[i] = a[j], a[j] = t;
	return true;
}

static void every_permutation(enum when when)
{
	static const struct pair_lane_params lanes[2] = {
		{.max_short = 256, .max_bcopy = 900 + sizeof(struct weft_wire_frag)},
		{.max_short = 256, .max_bcopy = 900 + sizeof(struct weft_wire_frag)},
	};
	const unsigned int most = test_part() > 1 ? 6 : 8;
	struct pair p;

	pair_defaults(&p);
	pair_open(&p, 2, lanes);
	for (unsigned int n = 2; n <= most; n++) {
		unsigned int perm[8] = {0, 1, 2, 3, 4, 5, 6, 7};

		do {
			one_permutation(&p, perm, n, when, false);
		} while (next_permutation(perm, n));
	}
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour A10: every permutation of 2 to 8 pieces, receive posted before, midway, after */
static void A10_every_permutation_of_2_to_8_pieces_receive_posted_before(void **state)
{
	(void)state;
	every_permutation(BEFORE);
}

/* @behaviour A10 */
static void A10_every_permutation_of_2_to_8_pieces_receive_posted_midway(void **state)
{
	(void)state;
	every_permutation(MIDWAY);
}

/* @behaviour A10 */
static void A10_every_permutation_of_2_to_8_pieces_receive_posted_after(void **state)
{
	(void)state;
	every_permutation(AFTER);
}

/* @behaviour A10 */
static void A10_every_permutation_of_rendezvous_data(void **state)
{
	static const struct pair_lane_params lanes[2] = {
		{.max_short = 256, .max_bcopy = 1367 + sizeof(struct weft_wire_data)},
		{.max_short = 256, .max_bcopy = 1367 + sizeof(struct weft_wire_data)},
	};
	unsigned int perm[6] = {0, 1, 2, 3, 4, 5};
	struct pair p;

	(void)state;
	pair_defaults(&p);
	p.conf.rndv_scheme = WEFT_RNDV_AM; /* all pieces are there at once */
	pair_open(&p, 2, lanes);
	do {
		one_permutation(&p, perm, 6, BEFORE, true);
	} while (next_permutation(perm, 6));
	pair_check_empty(&p);
	pair_close(&p);
}

/*
 * @behaviour U6: a large message in the middle of others is delivered correctly
 * @behaviour A11: interleaved pieces of many messages, several peers
 */
static void A11_U6_interleaved_pieces_of_many_messages(void **state)
{
	enum { K = 12 };
	static uint8_t sbuf[K][9000], rbuf[K][9000];
	struct op s[K], r[K];
	struct pair p;

	(void)state;
	for (uint64_t seed = 1; seed <= test_rounds(59); seed++) {
		uint64_t x = seed * 2654435761u;

		pair_defaults(&p);
		pair_open(&p, 3, NULL);
		for (int i = 0; i < K; i++) {
			pattern_fill((uint64_t)i, 0, sbuf[i], sizeof(sbuf[i]));
			if (pair_random(&x) % 2) {
				op_recv(&r[i], &p.w[1], rbuf[i], sizeof(rbuf[i]), (uint64_t)i,
					FULL);
			} else {
				r[i].req = NULL;
			}
		}
		for (int i = 0; i < K; i++)
			op_send(&s[i], &p.ep[0], sbuf[i], i % 3 ? 8000 : 9000, (uint64_t)i);
		for (int n = 0; n < 30 && p.num; n++)
			pair_deliver(&p, pair_random(&x) % p.num);
		for (int i = 0; i < K; i++) {
			if (!r[i].req)
				op_recv(&r[i], &p.w[1], rbuf[i], sizeof(rbuf[i]), (uint64_t)i,
					FULL);
		}
		pair_run_random(&p, &x);
		for (int i = 0; i < K; i++) {
			op_end(&s[i], 0);
			op_end_recv(&r[i], rbuf[i], i % 3 ? 8000 : 9000, (uint64_t)i, (uint64_t)i);
		}
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/* @behaviour A12: late binding */
static void A12_a_receive_posted_in_the_middle_binds_at_once_and_the_rest_goes_direct(void **state)
{
	static uint8_t sbuf[4000], rbuf[4000];
	struct op s, r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	pattern_fill(3, 0, sbuf, sizeof(sbuf));
	memset(rbuf, 0xee, sizeof(rbuf));
	op_send(&s, &p.ep[0], sbuf, sizeof(sbuf), 3);
	assert_int_equal(p.num, 5);
	pair_deliver(&p, 0);
	pair_deliver(&p, 1); /* pieces 0 and 2 */
	assert_int_equal(p.w[1].msg->tag->messages.bytes, sizeof(sbuf));
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 3, FULL);
	assert_int_equal(r.rc, WEFT_INPROGRESS);
	pattern_expect(3, rbuf, 900);                         /* what had come is there */
	assert_int_equal(p.w[1].msg->tag->messages.bytes, 0); /* and its memory is gone */
	assert_int_equal(rbuf[1000], 0xee);
	pair_deliver(&p, 0); /* piece 1: direct */
	pattern_expect(3, rbuf, 2900);
	assert_false(op_done(&r));
	pair_run(&p);
	op_end(&s, 0);
	op_end_recv(&r, rbuf, sizeof(rbuf), 3, 3);
	pair_check_empty(&p);
	pair_close(&p);
}

/*
 * @behaviour U13: no bytes, NULL and garbage pointers, every path
 * @behaviour A14: no bytes through every path
 */
static void A14_U13_zero_bytes_through_every_path(void **state)
{
	void *garbage = (void *)0x1;
	struct op s, r;
	struct pair p;

	(void)state;
	for (int how = 0; how < 16; how++) {
		bool sync = how & 1, late = how & 2, wild = how & 4, rndv = how & 8;

		pair_defaults(&p);
		if (rndv)
			p.conf.rndv_thresh = 0;
		pair_open(&p, 2, NULL);
		if (!late)
			op_recv(&r, &p.w[1], how & 1 ? garbage : NULL, 0, 4, wild ? 0 : FULL);
		op_send_dt(&s, &p.ep[0], how & 1 ? NULL : garbage, 0, 4, sync, NULL);
		pair_run(&p);
		if (late)
			op_recv(&r, &p.w[1], NULL, 0, 4, wild ? 0 : FULL);
		pair_run(&p);
		op_end(&s, 0);
		op_end_recv(&r, NULL, 0, 4, 0);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/* @behaviour U9: 1000 unexpected messages, received later, in order for equal tags */
static void U9_1000_unexpected_messages_are_received_later_in_order(void **state)
{
	struct pair p;
	uint32_t i, got;
	struct op r;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 2, NULL);
	for (i = 0; i < 1000; i++)
		assert_int_equal(weft_tag_send(&p.ep[0], &i, sizeof(i), i % 2, NULL, NULL), 0);
	pair_run(&p);
	for (i = 0; i < 1000; i++) {
		op_recv(&r, &p.w[1], &got, sizeof(got), i < 500 ? 1 : 0, FULL);
		op_end(&r, 0);
		assert_int_equal(got, i < 500 ? 2 * i + 1 : 2 * (i - 500));
	}
	pair_check_empty(&p);
	pair_close(&p);
}

/* @behaviour U3, U12 */
static void U3_U12_wildcards_take_the_earliest_arrived_and_report_the_full_tag(void **state)
{
	const uint64_t tags[] = {0xaa01, 0xbb02, 0xaa03};
	struct pair p;
	struct op r;
	int got;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(weft_tag_send(&p.ep[0], &i, sizeof(i), tags[i], NULL, NULL), 0);
	pair_run(&p);
	op_recv(&r, &p.w[1], &got, sizeof(got), 0xbb00, 0xff00);
	op_end(&r, 0);
	assert_int_equal(got, 1);
	assert_int_equal(r.c.tag, 0xbb02);
	op_recv_dt(&r, &p.w[1], &p.ep[1], &got, sizeof(got), 0, 0, NULL);
	op_end(&r, 0);
	assert_int_equal(got, 0);
	assert_int_equal(r.c.tag, 0xaa01);
	assert_ptr_equal(r.c.ep, &p.ep[1]);
	assert_int_equal(r.c.source_id, 1);
	op_recv(&r, &p.w[1], &got, sizeof(got), 0xaa00, 0xff00);
	op_end(&r, 0);
	assert_int_equal(got, 2);
	pair_check_empty(&p);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A1_U10_same_tag_matches_in_send_order_whatever_size_and_lane),
		cmocka_unit_test(A6_a_small_message_that_overtakes_a_large_one_is_matched_after_it),
		cmocka_unit_test(A8_messages_across_the_wrap_of_the_32_bit_sequence),
		cmocka_unit_test(A8_more_messages_than_16_bits_and_than_the_sequence_window),
		cmocka_unit_test(A9_a_piece_of_the_next_message_before_any_piece_of_this_one),
		cmocka_unit_test(A10_every_permutation_of_2_to_8_pieces_receive_posted_before),
		cmocka_unit_test(A10_every_permutation_of_2_to_8_pieces_receive_posted_midway),
		cmocka_unit_test(A10_every_permutation_of_2_to_8_pieces_receive_posted_after),
		cmocka_unit_test(A10_every_permutation_of_rendezvous_data),
		cmocka_unit_test(A11_U6_interleaved_pieces_of_many_messages),
		cmocka_unit_test(
			A12_a_receive_posted_in_the_middle_binds_at_once_and_the_rest_goes_direct),
		cmocka_unit_test(A14_U13_zero_bytes_through_every_path),
		cmocka_unit_test(U9_1000_unexpected_messages_are_received_later_in_order),
		cmocka_unit_test(
			U3_U12_wildcards_take_the_earliest_arrived_and_report_the_full_tag),
	};

	return cmocka_run_group_tests_name("order of messages", tests, NULL, NULL);
}
