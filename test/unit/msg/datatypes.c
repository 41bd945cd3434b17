/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contiguous, iov and generic datatypes at both ends, errors of pack and unpack, and a message that
 * only a generic datatype can make: items of the behaviour list.
 */

#include "mock/in_place.h"
#include "mock/msg_transfer.h"
#include "mock/rounds.h"

static const struct weft_datatype iov_type =
	WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_IOV);

/* A generic type: bytes of a pattern, counted. */
static struct {
	int starts, finishes;
	size_t len;
	uint64_t id;
	uint8_t *seen;    /* how often each byte was unpacked */
	size_t fail_from; /* pack and unpack fail at and after this offset */
	int error;
} gen;

static unsigned int in_place; /* calls of unpack() while a message is received in place */

static void *gen_start_pack(void *arg, const void *buffer, size_t count)
{
	gen.starts++;
	return &gen;
}

static void *gen_start_unpack(void *arg, void *buffer, size_t count)
{
	gen.starts++;
	return &gen;
}

static size_t gen_size(void *state)
{
	return gen.len;
}

static ssize_t gen_pack(void *state, size_t offset, void *dst, size_t max)
{
	size_t n = max > 100 ? max - max / 3 : max; /* less than asked for: allowed */

	if (offset + n > gen.fail_from)
		return gen.error;
	for (size_t i = 0; i < n; i++)
		((uint8_t *)dst)[i] = pattern_byte(gen.id, offset + i);
	return (ssize_t)n;
}

/* The peer can change no byte that a callback reads. */
static int gen_unpack(void *state, size_t offset, const void *src, size_t length)
{
	const uint8_t *at = src;

	if (mock_shared) {
		in_place++;
		assert_true(at >= mock_shared + mock_shared_len || at + length <= mock_shared);
	}
	if (offset + length > gen.fail_from)
		return gen.error;
	for (size_t i = 0; i < length; i++) {
		assert_int_equal(((const uint8_t *)src)[i], pattern_byte(gen.id, offset + i));
		gen.seen[offset + i]++;
	}
	return 0;
}

static void gen_finish(void *state)
{
	gen.finishes++;
}

static const struct weft_generic_ops gen_ops =
	WEFT_INIT(struct weft_generic_ops, .start_pack = gen_start_pack,
		  .start_unpack = gen_start_unpack, .packed_size = gen_size, .pack = gen_pack,
		  .unpack = gen_unpack, .finish = gen_finish);
static const struct weft_datatype gen_type =
	WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC, .ops = &gen_ops);

static size_t make_iov(struct iovec *iov, size_t max, uint8_t *mem, size_t len, uint64_t *seed)
{
	size_t n = 0, at = 0;

	while (at < len) {
		size_t k = n + 1 < max ? pair_random(seed) % 700 : len - at;

		if (pair_random(seed) % 5 == 0 && n + 1 < max)
			k = 0;
		if (k > len - at)
			k = len - at;
		iov[n++] = (struct iovec){k ? mem + at : NULL, k};
		at += k;
	}
	if (n < max)
		iov[n++] = (struct iovec){NULL, 0};
	return n;
}

enum kind { CONTIG, IOV, GENERIC };

static void one_pairing(const struct transfer *t, enum kind from, enum kind to)
{
	uint8_t *sbuf = malloc(t->len + 1), *rbuf = malloc(t->room + 1);
	struct iovec siov[30], riov[30];
	uint64_t seed = t->seed * 77 + 5;
	size_t sn = make_iov(siov, 30, sbuf, t->len, &seed),
	       rn = make_iov(riov, 30, rbuf, t->room, &seed);
	const struct weft_datatype *types[] = {NULL, &iov_type, &gen_type};
	const void *sb = from == IOV ? (const void *)siov : sbuf;
	void *rb = to == IOV ? (void *)riov : rbuf;

	/* One generic state serves both sides: a truncated generic receive needs its own length. */
	gen = (typeof(gen)){.len = to == GENERIC ? t->room : t->len,
			    .id = t->len,
			    .fail_from = SIZE_MAX,
			    .seen = calloc(1, t->len + t->room + 1)};
	pattern_fill(t->len, 0, sbuf, t->len);
	memset(rbuf, 0, t->room + 1);
	transfer(t, types[from], sb, from == IOV ? sn : t->len, types[to], rb,
		 to == IOV ? rn : t->room);
	assert_int_equal(gen.starts, (from == GENERIC) + (to == GENERIC));
	assert_int_equal(gen.finishes, gen.starts);
	if (t->len <= t->room && to != GENERIC)
		pattern_expect(t->len, rbuf, t->len);
	for (size_t i = 0; to == GENERIC && t->len <= t->room && i < t->len; i++)
		assert_int_equal(gen.seen[i], 1);
	free(gen.seen);
	free(sbuf);
	free(rbuf);
}

static void matrix(bool truncated)
{
	static const size_t lens[] = {0, 1, 200, 1000, 3000, 8192, 9000, 40000};

	for (int from = CONTIG; from <= GENERIC; from++) {
		for (int to = CONTIG; to <= GENERIC; to++) {
			for (unsigned int i = 0; i < 8 * 4 * 2; i++) {
				struct transfer t = {
					.len = lens[i % 8],
					.room = lens[i % 8],
					.lanes = i & 32 ? 1 : 4,
					.sync = i & 8,
					.late = i & 16,
					.seed = i,
				};

				if (test_left_out(i + 2 * (unsigned int)from + (unsigned int)to))
					continue;
				if (truncated) {
					if (t.len == 0 || (from == GENERIC && to == GENERIC))
						continue;
					t.room = t.len - t.len / 3 - 1;
				}
				one_pairing(&t, (enum kind)from, (enum kind)to);
			}
		}
	}
}

/*
 * @behaviour U4: messages of several pieces are exact, contiguous and iov, with empty entries,
 * without entries
 * @behaviour U22: contiguous, iov, generic at both ends x expected, late x sync x rendezvous x
 * truncated
 * @behaviour B5: iov on both sides
 */
static void B5_U4_U22_contig_iov_generic_on_both_sides(void **state)
{
	(void)state;
	in_place = 0;
	matrix(false);
	assert_true(in_place > 0);
}

/* @behaviour U22 */
static void U22_contig_iov_generic_truncated(void **state)
{
	(void)state;
	matrix(true);
}

/* @behaviour U4 */
static void U4_iov_of_no_entries(void **state)
{
	struct transfer t = {.len = 0, .room = 0, .lanes = 1};
	const struct iovec empty[2] = {{NULL, 0}, {NULL, 0}};

	(void)state;
	transfer(&t, &iov_type, NULL, 0, &iov_type, NULL, 0);
	transfer(&t, &iov_type, empty, 2, &iov_type, (void *)(uintptr_t)empty, 2);
}

/* @behaviour U23: generic types: start and finish balanced; an error stays on its side */
static void U23_an_unpack_error_ends_the_receive_and_the_sender_sees_success(void **state)
{
	static uint8_t sbuf[40000];

	(void)state;
	for (int i = 0; i < 12; i++) {
		static const size_t lens[] = {100, 3000, 40000};
		size_t len = lens[i % 3];
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, four_lanes);
		gen = (typeof(gen)){.len = len,
				    .id = 8,
				    .fail_from = len / 2,
				    .error = -EILSEQ,
				    .seen = calloc(1, len)};
		pattern_fill(8, 0, sbuf, len);
		if (i < 6)
			op_recv_dt(&r, &p.w[1], NULL, NULL, 0, 1, FULL, &gen_type);
		op_send_dt(&s, &p.ep[0], sbuf, len, 1, i & 1, NULL);
		pair_run(&p);
		if (i >= 6)
			op_recv_dt(&r, &p.w[1], NULL, NULL, 0, 1, FULL, &gen_type);
		pair_run(&p);
		op_end(&s, 0);
		op_end(&r, -EILSEQ);
		assert_int_equal(gen.finishes, 1);
		free(gen.seen);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

/* @behaviour U23 */
static void U23_a_pack_error_ends_the_send_and_the_receive_completes_with_the_error(void **state)
{
	static uint8_t rbuf[40000];

	(void)state;
	for (int i = 0; i < 8; i++) {
		size_t len = i & 1 ? 40000 : 5000;
		bool late = i & 2, random = i & 4;
		uint64_t seed = (uint64_t)i + 3;
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 3, four_lanes);
		gen = (typeof(gen)){.len = len, .id = 8, .fail_from = 3000, .error = -EOWNERDEAD};
		if (!late)
			op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		op_send_dt(&s, &p.ep[0], NULL, 0, 1, false, &gen_type);
		assert_int_equal(s.rc, WEFT_INPROGRESS);
		random ? pair_run_random(&p, &seed) : pair_run(&p);
		if (late)
			op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		pair_run(&p);
		op_end(&s, -EOWNERDEAD);
		if (late && r.rc < 0)
			fail();
		op_end(&r, -EOWNERDEAD);
		assert_int_equal(gen.starts, gen.finishes);
		/* The endpoint lives on. */
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 2, FULL);
		assert_int_equal(weft_tag_send(&p.ep[0], "next", 5, 2, NULL, NULL), 0);
		pair_run(&p);
		op_end(&r, 0);
		assert_string_equal((char *)rbuf, "next");
		assert_int_equal(p.w[0].msg->reqs.in_use + p.w[1].msg->reqs.in_use, 0);
		assert_int_equal(p.w[1].msg->tag->messages.num, 0);
		pair_close(&p);
	}
}

/* @behaviour U23 */
static void U23_a_pack_error_before_the_first_piece_keeps_the_turn_of_the_message(void **state)
{
	struct op s, first, r;
	struct pair p;
	char got[8];

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	gen = (typeof(gen)){.len = 500, .fail_from = 0, .error = -EILSEQ};
	op_send_dt(&s, &p.ep[0], NULL, 0, 1, false, &gen_type);
	assert_int_equal(s.rc, WEFT_INPROGRESS);
	pair_run(&p);
	op_end(&s, -EILSEQ);
	assert_int_equal(gen.finishes, 1);
	op_recv(&first, &p.w[1], got, sizeof(got), 1, FULL);
	pair_run(&p);
	op_end(&first, -EILSEQ);
	op_recv(&r, &p.w[1], got, sizeof(got), 1, FULL);
	assert_int_equal(weft_tag_send(&p.ep[0], "ok", 3, 1, NULL, NULL), 0);
	pair_run(&p);
	op_end(&r, 0);
	assert_string_equal(got, "ok");
	pair_check_empty(&p);
	pair_close(&p);
}

/* ------------------------------------------------------------------ larger than memory */

/* 3 GiB out of nothing into nothing, every byte computed at one end and compared at the other. */
static uint64_t huge_bytes;

#define HUGE_UNIT ((size_t)1 << 16) /* bytes in a row that are equal */

static ssize_t huge_pack(void *state, size_t offset, void *dst, size_t max)
{
	uint8_t *at = dst, *end = at + max;
	size_t n;

	for (; at < end; at += n, offset += n) {
		n = HUGE_UNIT - offset % HUGE_UNIT;
		if (n > (size_t)(end - at))
			n = (size_t)(end - at);
		memset(at, (int)(offset / HUGE_UNIT & 0xff), n);
	}
	return (ssize_t)max;
}

static int huge_unpack(void *state, size_t offset, const void *src, size_t length)
{
	const uint8_t *s = src;

	if (s[0] != (uint8_t)(offset / HUGE_UNIT) ||
	    s[length - 1] != (uint8_t)((offset + length - 1) / HUGE_UNIT))
		return -EILSEQ;
	huge_bytes += length;
	return 0;
}

/*
 * @behaviour U32: huge and mixed sizes
 * @behaviour B4: more than 2 GiB
 */
static void B4_U32_a_message_of_3_GiB(void **state)
{
	static const struct weft_generic_ops ops =
		WEFT_INIT(struct weft_generic_ops, .start_pack = gen_start_pack,
			  .start_unpack = gen_start_unpack, .packed_size = gen_size,
			  .pack = huge_pack, .unpack = huge_unpack, .finish = gen_finish);
	const struct weft_datatype type =
		WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC, .ops = &ops);
	const struct pair_lane_params lane = {.max_short = 256, .max_bcopy = (256 << 10) + 16};
	struct op s, r;
	struct pair p;

	(void)state;
	huge_bytes = 0;
	gen = (typeof(gen)){.len = (3ull << 30) + 12345};
	pair_defaults(&p);
	p.conf.min_chunk = 1;
	pair_open(&p, 1, &lane);
	op_recv_dt(&r, &p.w[1], NULL, NULL, 0, 1, FULL, &type);
	op_send_dt(&s, &p.ep[0], NULL, 0, 1, false, &type);
	while (!op_done(&s) || !op_done(&r)) {
		pair_room(&p, 0, 8);
		pair_run(&p);
	}
	op_end(&s, 0);
	op_end(&r, 0);
	assert_true(r.c.length == gen.len);
	assert_true(huge_bytes == gen.len);
	pair_check_empty(&p);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B4_U32_a_message_of_3_GiB),
		cmocka_unit_test(B5_U4_U22_contig_iov_generic_on_both_sides),
		cmocka_unit_test(U22_contig_iov_generic_truncated),
		cmocka_unit_test(U4_iov_of_no_entries),
		cmocka_unit_test(U23_an_unpack_error_ends_the_receive_and_the_sender_sees_success),
		cmocka_unit_test(
			U23_a_pack_error_ends_the_send_and_the_receive_completes_with_the_error),
		cmocka_unit_test(
			U23_a_pack_error_before_the_first_piece_keeps_the_turn_of_the_message),
	};

	return cmocka_run_group_tests_name("datatypes of messages", tests, NULL, NULL);
}
