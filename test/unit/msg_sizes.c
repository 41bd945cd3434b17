/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sizes, datatypes, truncation, completion: items B and C of the behaviour list, U n = item n of
 * the tag-matching list.
 */

#include "msg_util.h"

static const struct pair_lane_params four_lanes[4] = {
	{.max_short = 256, .max_bcopy = 1024, .max_zcopy = 4096, .max_iov = 4},
	{.max_short = 128, .max_bcopy = 2048, .latency = 2e-6, .align = 64},
	{.max_short = 256,
	 .max_bcopy = 777,
	 .max_zcopy = 1500,
	 .bandwidth = 5e9,
	 .zcopy_reg = true},
	{.max_bcopy = 512, .max_zcopy = 900},
};

/* Sizes at which something changes, for any of the lanes and the settings of pair_defaults(). */
static const size_t edges[] = {1,    64,   116,  244,  256,  512,  1004,
			       1012, 1024, 2048, 4060, 4084, 8192, 12288};

struct transfer {
	size_t len, room;
	unsigned int lanes;
	bool sync, late, rndv; /* rndv: at every size */
	uint64_t seed;
	size_t offset; /* of the buffers, besides 1 */
};

static void transfer(const struct transfer *t, const struct weft_datatype *stype, const void *sbuf,
		     size_t scount, const struct weft_datatype *rtype, void *rbuf, size_t rcount)
{
	uint64_t seed = t->seed + 1;
	struct op s, r, s2, r2;
	struct pair p;
	int next = 4711, got = 0;

	pair_defaults(&p);
	if (t->rndv)
		p.conf.rndv_thresh = 1;
	pair_open(&p, t->lanes, four_lanes);
	if (!t->late) {
		op_recv_dt(&r, &p.w[1], NULL, rbuf, rcount, 6, FULL, rtype);
		op_recv(&r2, &p.w[1], &got, sizeof(got), 6, FULL);
	}
	op_send_dt(&s, &p.ep[0], sbuf, scount, 6, t->sync, stype);
	op_send(&s2, &p.ep[0], &next, sizeof(next), 6);
	pair_run_random(&p, &seed);
	if (t->late) {
		if (t->sync)
			assert_false(op_done(&s)); /* C2, U14: not before the match */
		op_recv_dt(&r, &p.w[1], NULL, rbuf, rcount, 6, FULL, rtype);
		op_recv(&r2, &p.w[1], &got, sizeof(got), 6, FULL);
	}
	pair_run_random(&p, &seed);
	op_end(&s, 0);
	assert_int_equal(s.rc == -ENOENT, 1);
	op_end(&r, t->len > t->room ? -EMSGSIZE : 0);
	assert_int_equal(r.c.length, t->len);
	assert_int_equal(r.c.tag, 6);
	/* The next message is not affected. */
	op_end(&s2, 0);
	op_end(&r2, 0);
	assert_int_equal(got, 4711);
	pair_check_empty(&p);
	pair_close(&p);
}

/* Contiguous, with a guard behind the buffer's end. */
static void contig(const struct transfer *t)
{
	size_t at = t->offset + 1; /* B8: unaligned */
	uint8_t *sbuf = malloc(t->len + at), *rbuf = malloc(t->room + at + 64);

	fill(sbuf + at, t->len, t->len);
	memset(rbuf, 0xa5, t->room + at + 64);
	transfer(t, NULL, sbuf + at, t->len, NULL, rbuf + at, t->room);
	if (t->len <= t->room)
		check(rbuf + at, t->len, t->len);
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

				t.room = more_room < 0 ? t.len / 2 : t.len + (size_t)more_room;
				f(&t);
			}
		}
	}
}

static void B1_B8_U24_sizes_around_every_threshold_on_1_to_4_lanes(void **state)
{
	(void)state;
	each_edge(contig, 0);
}

/* The size from which everything goes by rendezvous, when nobody has set it. */
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

static void B2_U30_a_larger_buffer_gets_the_length_sent_and_no_more(void **state)
{
	(void)state;
	each_edge(contig, 1000);
}

static void B3_U8_truncation_in_every_size_class(void **state)
{
	(void)state;
	each_edge(contig, -1);
}

static void U8_U29_a_buffer_of_no_bytes_truncates_everything(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
		struct transfer t = {.len = edges[i], .room = 0, .lanes = 2, .late = i % 2};

		contig(&t);
	}
}

static void U27_a_truncated_message_ends_with_its_last_piece_and_spoils_no_other_receive(
	void **state)
{
	static uint8_t sbuf[5000], small[100], other[5000];
	struct op s, r, r2;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	fill(sbuf, sizeof(sbuf), 1);
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
	check(small, sizeof(small), 1);
	assert_false(op_done(&r2));
	for (size_t i = 0; i < sizeof(other); i++)
		assert_int_equal(other[i], 0x77);
	op_end(&s, 0);
	assert_int_equal(weft_request_cancel(r2.req), 0);
	op_end(&r2, -ECANCELED);
	pair_check_empty(&p);
	pair_close(&p);
}

/* ------------------------------------------------------------------ datatypes */

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
		((uint8_t *)dst)[i] = byte_of(gen.id, offset + i);
	return (ssize_t)n;
}

static int gen_unpack(void *state, size_t offset, const void *src, size_t length)
{
	if (offset + length > gen.fail_from)
		return gen.error;
	for (size_t i = 0; i < length; i++) {
		assert_int_equal(((const uint8_t *)src)[i], byte_of(gen.id, offset + i));
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
	fill(sbuf, t->len, t->len);
	memset(rbuf, 0, t->room + 1);
	transfer(t, types[from], sb, from == IOV ? sn : t->len, types[to], rb,
		 to == IOV ? rn : t->room);
	assert_int_equal(gen.starts, (from == GENERIC) + (to == GENERIC));
	assert_int_equal(gen.finishes, gen.starts);
	if (t->len <= t->room && to != GENERIC)
		check(rbuf, t->len, t->len);
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

static void B5_U4_U22_contig_iov_generic_on_both_sides(void **state)
{
	(void)state;
	matrix(false);
}

static void U22_contig_iov_generic_truncated(void **state)
{
	(void)state;
	matrix(true);
}

static void U4_iov_of_no_entries(void **state)
{
	struct transfer t = {.len = 0, .room = 0, .lanes = 1};
	const struct iovec empty[2] = {{NULL, 0}, {NULL, 0}};

	(void)state;
	transfer(&t, &iov_type, NULL, 0, &iov_type, NULL, 0);
	transfer(&t, &iov_type, empty, 2, &iov_type, (void *)(uintptr_t)empty, 2);
}

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
		fill(sbuf, len, 8);
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
		assert_int_equal(p.w[1].msg->messages.num, 0);
		pair_close(&p);
	}
}

static void U23_a_pack_error_before_the_first_piece_leaves_no_trace(void **state)
{
	struct op s, r;
	struct pair p;
	char got[8];

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	gen = (typeof(gen)){.len = 500, .fail_from = 0, .error = -EILSEQ};
	op_send_dt(&s, &p.ep[0], NULL, 0, 1, false, &gen_type);
	assert_int_equal(s.rc, -EILSEQ);
	op_end(&s, -EILSEQ);
	assert_int_equal(gen.finishes, 1);
	assert_int_equal(p.num, 0);
	op_recv(&r, &p.w[1], got, sizeof(got), 1, FULL);
	assert_int_equal(weft_tag_send(&p.ep[0], "ok", 3, 1, NULL, NULL), 0);
	pair_run(&p);
	op_end(&r, 0);
	assert_string_equal(got, "ok");
	pair_check_empty(&p);
	pair_close(&p);
}

/* 3 GiB out of nothing into nothing, every byte computed at one end and compared at the other. */
static uint64_t huge_bytes;

static ssize_t huge_pack(void *state, size_t offset, void *dst, size_t max)
{
	memset(dst, (int)(offset >> 20 & 0xff), max);
	*(uint8_t *)dst = (uint8_t)(offset >> 24);
	return (ssize_t)max;
}

static int huge_unpack(void *state, size_t offset, const void *src, size_t length)
{
	const uint8_t *s = src;

	if (s[0] != (uint8_t)(offset >> 24) ||
	    (length > 1 && s[length - 1] != (uint8_t)(offset >> 20)))
		return -EILSEQ;
	huge_bytes += length;
	return 0;
}

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
	fill(sbuf, 20000, 1);
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
		fill(sbuf[side], LEN, (uint64_t)side);
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

/* ------------------------------------------------------------------ completion */

static void C1_a_buffer_may_be_scribbled_on_when_its_send_is_complete(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(edges) / sizeof(*edges); i++) {
		size_t len = edges[i / 2];
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, i % 2 ? 4 : 1, four_lanes);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		fill(sbuf, len, len);
		op_send(&s, &p.ep[0], sbuf, len, 1);
		while (!op_done(&s)) {
			pair_progress(&p);
			if (p.num)
				pair_deliver(&p, 0);
		}
		memset(sbuf, 0xff, len);
		pair_run(&p);
		op_end(&s, 0);
		op_end_recv(&r, rbuf, len, 1, len);
		pair_close(&p);
	}
}

static void C2_U14_U28_a_synchronous_send_is_done_at_the_match_and_not_before(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];

	(void)state;
	for (unsigned int i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
		struct op s, r;
		struct pair p;

		pair_defaults(&p);
		pair_open(&p, 2, four_lanes);
		fill(sbuf, edges[i], 4);
		op_send_sync(&s, &p.ep[0], sbuf, edges[i], 1);
		for (int k = 0; k < 20; k++)
			pair_run(&p);
		assert_false(op_done(&s));
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 2, FULL); /* another tag: no match */
		pair_run(&p);
		assert_false(op_done(&s));
		assert_int_equal(weft_request_cancel(r.req), 0);
		op_end(&r, -ECANCELED);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		pair_run(&p);
		op_end(&s, 0);
		op_end_recv(&r, rbuf, edges[i], 1, 4);
		pair_check_empty(&p);
		pair_close(&p);
	}
}

static void C2_a_matched_multi_eager_message_acknowledges_before_it_is_complete(void **state)
{
	static uint8_t sbuf[3000], rbuf[3000];
	struct op s, r;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	fill(sbuf, sizeof(sbuf), 4);
	op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
	op_send_sync(&s, &p.ep[0], sbuf, sizeof(sbuf), 1);
	pair_deliver(&p, 1);
	assert_int_equal(pair_count(&p, 0, WEFT_WIRE_SYNC_ACK), 1);
	pair_deliver(&p, p.num - 1);
	assert_true(op_done(&s));
	assert_false(op_done(&r));
	pair_run(&p);
	op_end(&s, 0);
	op_end_recv(&r, rbuf, sizeof(rbuf), 1, 4);
	pair_check_empty(&p);
	pair_close(&p);
}

static void C4_a_send_that_returns_0_has_let_go_of_the_buffer(void **state)
{
	struct pair p;
	struct op r[3];
	char got[3][8], buf[8];

	(void)state;
	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	for (int i = 0; i < 3; i++) {
		memcpy(buf, "msg 0", 6);
		buf[4] = (char)('0' + i);
		assert_int_equal(weft_tag_send(&p.ep[0], buf, sizeof(buf), 1, NULL, NULL), 0);
		op_recv(&r[i], &p.w[1], got[i], sizeof(got[i]), 1, FULL);
	}
	memset(buf, 0, sizeof(buf));
	pair_run(&p);
	for (int i = 0; i < 3; i++) {
		op_end(&r[i], 0);
		assert_int_equal(got[i][4], '0' + i);
	}
	pair_close(&p);
}

static void C9_E6_no_room_has_no_side_effect_and_the_message_goes_later(void **state)
{
	static uint8_t sbuf[20000], rbuf[20000];
	uint64_t seed = 99;

	(void)state;
	for (unsigned int i = 0; i < 4 * sizeof(edges) / sizeof(*edges); i++) {
		size_t len = edges[i / 4];
		struct op s, r, s2, r2;
		struct pair p;
		uint32_t seq;
		int a = 77, b = 0;

		pair_defaults(&p);
		pair_open(&p, 1 + i % 4, four_lanes);
		fill(sbuf, len, 3);
		op_recv(&r, &p.w[1], rbuf, sizeof(rbuf), 1, FULL);
		op_recv(&r2, &p.w[1], &b, sizeof(b), 1, FULL);
		pair_room(&p, 0, 0);
		seq = p.ep[0].msg->tx_seq;
		op_send(&s, &p.ep[0], sbuf, len, 1);
		assert_int_equal(s.rc, WEFT_INPROGRESS);
		op_send(&s2, &p.ep[0], &a, sizeof(a), 1); /* nothing overtakes */
		assert_int_equal(s2.rc, WEFT_INPROGRESS);
		pair_progress(&p);
		assert_int_equal(p.ep[0].msg->tx_seq, seq);
		assert_int_equal(p.num, 0);
		/* Room for a few at a time, at random. */
		for (int n = 0; n < 2000 && !(op_done(&r2) && op_done(&r) && op_done(&s)); n++) {
			for (unsigned int l = 0; l < p.num_lanes; l++) {
				p.lep[0][l].room = (int)(pair_random(&seed) % 3);
				p.lep[1][l].room = (int)(pair_random(&seed) % 2);
			}
			pair_progress(&p);
			while (p.num && pair_random(&seed) % 4)
				pair_deliver(&p, pair_random(&seed) % p.num);
		}
		pair_room(&p, 0, -1);
		pair_room(&p, 1, -1);
		pair_run(&p);
		op_end(&s, 0);
		op_end(&s2, 0);
		op_end_recv(&r, rbuf, len, 1, 3);
		op_end(&r2, 0);
		assert_int_equal(b, 77);
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
			U27_a_truncated_message_ends_with_its_last_piece_and_spoils_no_other_receive),
		cmocka_unit_test(B4_U32_a_message_of_3_GiB),
		cmocka_unit_test(B5_U4_U22_contig_iov_generic_on_both_sides),
		cmocka_unit_test(U22_contig_iov_generic_truncated),
		cmocka_unit_test(U4_iov_of_no_entries),
		cmocka_unit_test(U23_an_unpack_error_ends_the_receive_and_the_sender_sees_success),
		cmocka_unit_test(
			U23_a_pack_error_ends_the_send_and_the_receive_completes_with_the_error),
		cmocka_unit_test(U23_a_pack_error_before_the_first_piece_leaves_no_trace),
		cmocka_unit_test(B6_many_outstanding_rendezvous),
		cmocka_unit_test(B7_U33_large_messages_head_to_head),
		cmocka_unit_test(C1_a_buffer_may_be_scribbled_on_when_its_send_is_complete),
		cmocka_unit_test(C2_U14_U28_a_synchronous_send_is_done_at_the_match_and_not_before),
		cmocka_unit_test(
			C2_a_matched_multi_eager_message_acknowledges_before_it_is_complete),
		cmocka_unit_test(C4_a_send_that_returns_0_has_let_go_of_the_buffer),
		cmocka_unit_test(C9_E6_no_room_has_no_side_effect_and_the_message_goes_later),
	};

	return cmocka_run_group_tests_name("sizes of messages", tests, NULL, NULL);
}
