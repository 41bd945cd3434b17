/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdbool.h>

#include "core/wire_frame_def.h"
#include "mock/rounds.h"
#include "seal/seal.h"
#include "seal_util.h"

#define MS 1000000ull
#define BODY_MAX 9000u

static struct weft_cipher *cipher;

static int open_cipher(void **state)
{
	char why[256];

	(void)state;
	cipher = weft_cipher_create(why, sizeof(why));
	return cipher ? 0 : -1;
}

static int close_cipher(void **state)
{
	(void)state;
	weft_cipher_destroy(cipher);
	return 0;
}

/* ------------------------------------------------------------------ a connection */

struct pair {
	struct weft_sealed *a, *b;
};

static void secrets_init(struct weft_exchange_secrets *s, uint64_t seed)
{
	dice(&seed, s, sizeof(*s));
}

static struct weft_sealed_conf conf_of(enum weft_seal_mode mode)
{
	return (struct weft_sealed_conf){
		.mode = mode,
		.slots = 4,
		.key_due = WEFT_SEALED_KEY_DUE,
		.bad_tags = WEFT_SEALED_BAD_TAGS,
		.now = MS,
	};
}

static struct pair pair_open_conf(const struct weft_sealed_conf *from, uint64_t seed)
{
	struct weft_sealed_conf conf = *from;
	struct weft_exchange_secrets secrets;
	struct pair p;

	secrets_init(&secrets, seed);
	conf.initiator = true;
	assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &p.a), 0);
	conf.initiator = false;
	assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &p.b), 0);
	return p;
}

static struct pair pair_open(enum weft_seal_mode mode, uint64_t seed)
{
	const struct weft_sealed_conf conf = conf_of(mode);

	return pair_open_conf(&conf, seed);
}

static void pair_close(struct pair *p)
{
	weft_sealed_destroy(p->a);
	weft_sealed_destroy(p->b);
}

/* ------------------------------------------------------------------ a frame */

/* A frame with its plain text: head, body of @len bytes, tag. */
struct frame {
	uint8_t bytes[WEFT_SEALED_HEAD + BODY_MAX + WEFT_CIPHER_TAG_LEN];
	uint8_t text[BODY_MAX];
	size_t len;
};

static void frame_init(struct frame *f, size_t len, uint64_t seed)
{
	struct weft_frame_hdr *hdr = (struct weft_frame_hdr *)f->bytes;

	dice(&seed, f->bytes, WEFT_SEALED_HEAD);
	dice(&seed, f->text, len);
	hdr->flags = weft_put16(0x0001);
	memcpy(f->bytes + WEFT_SEALED_HEAD, f->text, len);
	f->len = len;
}

static struct weft_cipher_seg body_of(struct frame *f)
{
	uint8_t *body = f->bytes + WEFT_SEALED_HEAD;

	return (struct weft_cipher_seg){body, body, f->len};
}

static enum weft_sealed_verdict frame_seal(struct weft_sealed *s, struct frame *f, uint8_t slot)
{
	struct weft_cipher_seg seg = body_of(f);
	struct weft_sealed_op op = {
		.conn = s,
		.head = f->bytes,
		.segs = &seg,
		.num_segs = 1,
		.slot = slot,
		.tag = f->bytes + WEFT_SEALED_HEAD + f->len,
	};
	unsigned int n = weft_sealed_seal(cipher, &op, 1);

	assert_int_equal(n, op.verdict == WEFT_SEALED_OK);
	return op.verdict;
}

/* Open a copy: the frame stays as it came. */
static enum weft_sealed_verdict frame_open_at(struct weft_sealed *s, const struct frame *f,
					      uint64_t now)
{
	static struct frame copy;
	struct weft_cipher_seg seg;
	struct weft_sealed_op op = {
		.conn = s,
		.head = copy.bytes,
		.segs = &seg,
		.num_segs = 1,
		.tag = copy.bytes + WEFT_SEALED_HEAD + f->len,
	};
	unsigned int n;

	memcpy(copy.bytes, f->bytes, WEFT_SEALED_HEAD + f->len + WEFT_CIPHER_TAG_LEN);
	copy.len = f->len;
	seg = body_of(&copy);
	n = weft_sealed_open(cipher, &op, 1, now);
	assert_int_equal(n, op.verdict == WEFT_SEALED_OK);
	if (op.verdict == WEFT_SEALED_OK)
		assert_memory_equal(copy.bytes + WEFT_SEALED_HEAD, f->text, f->len);
	return op.verdict;
}

static enum weft_sealed_verdict frame_open(struct weft_sealed *s, const struct frame *f)
{
	return frame_open_at(s, f, MS);
}

static uint64_t number_of(const struct frame *f)
{
	uint64_t number;

	memcpy(&number, f->bytes + 42, sizeof(number));
	return le64toh(number);
}

static bool phase_of(const struct frame *f)
{
	return (f->bytes[4] & 0x40) != 0;
}

/* ------------------------------------------------------------------ sealing */

static void frames_of_all_lengths_open_at_the_peer(void **state)
{
	static struct frame f;

	(void)state;
	for (unsigned int mode = WEFT_SEAL_AUTH; mode <= WEFT_SEAL_ENCRYPT; mode++) {
		struct pair p = pair_open(mode, 1);

		for (size_t len = 0; len <= BODY_MAX; len += len < 100 ? 1 : 977) {
			frame_init(&f, len, len);
			assert_int_equal(frame_seal(p.a, &f, (uint8_t)(len % 4)), WEFT_SEALED_OK);
			if (len >= 16 && mode == WEFT_SEAL_ENCRYPT)
				assert_memory_not_equal(f.bytes + WEFT_SEALED_HEAD, f.text, len);
			if (mode == WEFT_SEAL_AUTH)
				assert_memory_equal(f.bytes + WEFT_SEALED_HEAD, f.text, len);
			assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_OK);
			frame_init(&f, len, len + 1);
			assert_int_equal(frame_seal(p.b, &f, 0), WEFT_SEALED_OK);
			assert_int_equal(frame_open(p.a, &f), WEFT_SEALED_OK);
		}
		pair_close(&p);
	}
}

/* The frame of the vectors, sealed. */
static void fixed_frame(struct weft_sealed *s, struct frame *f)
{
	for (unsigned int k = 0; k < 42; k++)
		f->bytes[k] = (uint8_t)k;
	for (unsigned int k = 0; k < 60; k++)
		f->bytes[WEFT_SEALED_HEAD + k] = (uint8_t)(k * 7);
	f->len = 60;
	assert_int_equal(frame_seal(s, f, 0), WEFT_SEALED_OK);
}

/* From an implementation of doc/sealing.md in another language: vectors.py. */
static void frames_have_the_bytes_of_the_document(void **state)
{
	static const char encrypt[] =
		"000102032405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
		"2021222324252627282900000000000000002070acde35627f32d876336cdd0a"
		"31aff012d3013258db85ebdc97adcfd0a86eaa3538b6b851bc584c8627e2858e"
		"ab14dc83c7a238ca75585621a8e543babafbb18ef27bcac8d13aa64fdb69";
	static const char auth[] =
		"000102032405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
		"20212223242526272829000000000000000000070e151c232a31383f464d545b"
		"626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b"
		"424950575e656c737a81888f969d22649b3ad331e8b78e8c610e920a5d79";
	static const char next_key[] =
		"000102036405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
		"2021222324252627282902000000000000001996860add9b3474ec066368f81f"
		"6bf6ec6e575e1a3dbf404eb65770b632b0c5f919afc3c9665a05c7de159c35c5"
		"a13280dc429034a83edeec5b52d4f0182784807797b73aa6e428d062f5b7";
	struct weft_exchange_secrets secrets = {0};
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_ENCRYPT);
	static struct frame f;
	struct weft_sealed *s;

	(void)state;
	from_hex("7caf036395f2bb422eb176fdc239c2272862c25f33ca0c84cdb798ecc072078c",
		 secrets.initiator);
	conf.initiator = true;
	conf.key_due = 2;
	assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &s), 0);
	fixed_frame(s, &f);
	expect_hex(f.bytes, WEFT_SEALED_HEAD + 60 + 16, encrypt);
	fixed_frame(s, &f);
	weft_sealed_confirm(s);
	assert_true(weft_sealed_tick(s, cipher, MS, MS));
	fixed_frame(s, &f);
	expect_hex(f.bytes, WEFT_SEALED_HEAD + 60 + 16, next_key);
	weft_sealed_destroy(s);
	conf.mode = WEFT_SEAL_AUTH;
	assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &s), 0);
	fixed_frame(s, &f);
	expect_hex(f.bytes, WEFT_SEALED_HEAD + 60 + 16, auth);
	weft_sealed_destroy(s);
}

/* In segments, into other memory, with frames of two connections in one burst. */
static void a_burst_has_frames_of_any_connection(void **state)
{
	static struct frame in[8], out[8];
	struct weft_cipher_seg segs[8][3];
	struct weft_sealed_op ops[8];
	struct pair p[2];

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		p[i] = pair_open(WEFT_SEAL_ENCRYPT, 2 + i);
	for (unsigned int i = 0; i < 8; i++) {
		size_t len = 100 + 300 * i, at = 0;
		const size_t part[3] = {1 + i, 64, len - 65 - i};

		frame_init(&in[i], len, i);
		memcpy(out[i].bytes, in[i].bytes, WEFT_SEALED_HEAD);
		memcpy(out[i].text, in[i].text, len);
		out[i].len = len;
		for (unsigned int k = 0; k < 3; at += part[k++])
			segs[i][k] = (struct weft_cipher_seg){in[i].bytes + WEFT_SEALED_HEAD + at,
							      out[i].bytes + WEFT_SEALED_HEAD + at,
							      part[k]};
		ops[i] = (struct weft_sealed_op){
			.conn = p[i % 2].a,
			.head = out[i].bytes,
			.segs = segs[i],
			.num_segs = 3,
			.slot = i % 3,
			.tag = out[i].bytes + WEFT_SEALED_HEAD + len,
		};
	}
	ops[5].slot = 9; /* no such path: the others are sealed */
	assert_int_equal(weft_sealed_seal(cipher, ops, 8), 7);
	for (unsigned int i = 0; i < 8; i++) {
		assert_memory_equal(in[i].bytes + WEFT_SEALED_HEAD, in[i].text, in[i].len);
		if (i == 5)
			assert_int_equal(ops[i].verdict, WEFT_SEALED_FORMAT);
		else
			assert_int_equal(frame_open(p[i % 2].b, &out[i]), WEFT_SEALED_OK);
	}
	pair_close(&p[0]);
	pair_close(&p[1]);
}

/* ------------------------------------------------------------------ attacks */

static void each_changed_bit_is_refused(void **state)
{
	static struct frame f;

	(void)state;
	for (unsigned int mode = WEFT_SEAL_AUTH; mode <= WEFT_SEAL_ENCRYPT; mode++) {
		struct pair p = pair_open(mode, 5);
		size_t bytes;

		frame_init(&f, 150, 1);
		assert_int_equal(frame_seal(p.a, &f, 1), WEFT_SEALED_OK);
		bytes = WEFT_SEALED_HEAD + f.len + WEFT_CIPHER_TAG_LEN;
		for (size_t bit = 0; bit < bytes * 8; bit++) {
			enum weft_sealed_verdict v;

			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			v = frame_open(p.b, &f);
			assert_true(v == WEFT_SEALED_TAG || v == WEFT_SEALED_FORMAT);
			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		/* None of them has used up the number. */
		assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_OK);
		pair_close(&p);
	}
}

static void each_truncation_is_refused(void **state)
{
	struct pair p = pair_open(WEFT_SEAL_ENCRYPT, 6);
	static struct frame f;

	(void)state;
	frame_init(&f, 150, 1);
	assert_int_equal(frame_seal(p.a, &f, 1), WEFT_SEALED_OK);
	for (f.len = 0; f.len < 150; f.len++)
		assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_TAG);
	assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_OK);
	pair_close(&p);
}

static void replays_are_refused_on_each_slot(void **state)
{
	static struct frame f[3][40];
	struct pair p = pair_open(WEFT_SEAL_ENCRYPT, 7);

	(void)state;
	for (unsigned int slot = 0; slot < 3; slot++)
		for (unsigned int i = 0; i < 40; i++) {
			frame_init(&f[slot][i], 64, i);
			assert_int_equal(frame_seal(p.a, &f[slot][i], (uint8_t)slot),
					 WEFT_SEALED_OK);
		}
	/* Reordered, then all of them again. */
	for (unsigned int slot = 0; slot < 3; slot++)
		for (unsigned int i = 40; i-- > 0;)
			assert_int_equal(frame_open(p.b, &f[slot][i]), WEFT_SEALED_OK);
	for (unsigned int slot = 0; slot < 3; slot++)
		for (unsigned int i = 0; i < 40; i++)
			assert_int_equal(frame_open(p.b, &f[slot][i]), WEFT_SEALED_SEEN);
	pair_close(&p);
}

static void a_frame_that_4096_others_overtook_is_old(void **state)
{
	struct pair p = pair_open(WEFT_SEAL_AUTH, 8);
	static struct frame late, f;

	(void)state;
	frame_init(&late, 64, 0);
	assert_int_equal(frame_seal(p.a, &late, 0), WEFT_SEALED_OK);
	for (unsigned int i = 0; i < 4096; i++) {
		frame_init(&f, 10, i);
		assert_int_equal(frame_seal(p.a, &f, 0), WEFT_SEALED_OK);
		assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_OK);
	}
	assert_int_equal(frame_open(p.b, &late), WEFT_SEALED_OLD);
	pair_close(&p);
}

/* To its sender, to another connection of the same job, to the peer's later incarnation. */
static void a_frame_opens_at_its_own_connection_only(void **state)
{
	struct pair p = pair_open(WEFT_SEAL_ENCRYPT, 9), q = pair_open(WEFT_SEAL_ENCRYPT, 10);
	struct pair other_mode = pair_open(WEFT_SEAL_AUTH, 9);
	static struct frame f;

	(void)state;
	frame_init(&f, 300, 0);
	assert_int_equal(frame_seal(p.a, &f, 0), WEFT_SEALED_OK);
	assert_int_equal(frame_open(p.a, &f), WEFT_SEALED_TAG);
	assert_int_equal(frame_open(q.a, &f), WEFT_SEALED_TAG);
	assert_int_equal(frame_open(q.b, &f), WEFT_SEALED_TAG);
	assert_int_equal(frame_open(other_mode.b, &f), WEFT_SEALED_TAG);
	assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_OK);
	pair_close(&p);
	pair_close(&q);
	pair_close(&other_mode);
}

/* Body and tag of one frame behind the head of another, and so on. */
static void spliced_frames_are_refused(void **state)
{
	struct pair p = pair_open(WEFT_SEAL_ENCRYPT, 11);
	static struct frame f[2], s;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		frame_init(&f[i], 200, i);
		assert_int_equal(frame_seal(p.a, &f[i], 0), WEFT_SEALED_OK);
	}
	s = f[0];
	memcpy(s.bytes + WEFT_SEALED_HEAD, f[1].bytes + WEFT_SEALED_HEAD, 216);
	assert_int_equal(frame_open(p.b, &s), WEFT_SEALED_TAG);
	s = f[0];
	memcpy(s.bytes + WEFT_SEALED_HEAD, f[1].bytes + WEFT_SEALED_HEAD, 200);
	assert_int_equal(frame_open(p.b, &s), WEFT_SEALED_TAG);
	s = f[0];
	memcpy(s.bytes + 42, f[1].bytes + 42, 8);
	assert_int_equal(frame_open(p.b, &s), WEFT_SEALED_TAG);
	pair_close(&p);
}

static void an_unsealed_frame_is_refused(void **state)
{
	struct pair p = pair_open(WEFT_SEAL_AUTH, 12);
	static struct frame f;

	(void)state;
	frame_init(&f, 100, 0);
	assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_FORMAT);
	assert_int_equal(frame_seal(p.a, &f, 0), WEFT_SEALED_OK);
	f.bytes[4] &= (uint8_t)~0x20;
	assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_FORMAT);
	pair_close(&p);
}

static void too_many_bad_tags_end_the_connection(void **state)
{
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_ENCRYPT);
	static struct frame f, good;
	struct pair p;

	(void)state;
	conf.bad_tags = 100;
	p = pair_open_conf(&conf, 13);
	frame_init(&good, 100, 0);
	assert_int_equal(frame_seal(p.a, &good, 0), WEFT_SEALED_OK);
	f = good;
	f.bytes[60] ^= 1;
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_TAG);
	assert_int_equal(frame_open(p.b, &good), WEFT_SEALED_SPENT);
	pair_close(&p);
}

/* ------------------------------------------------------------------ rotation */

/* Send one frame from a to b, and check its phase. */
static void pass(struct pair *p, bool phase, uint64_t now)
{
	static struct frame f;
	static uint64_t seed;

	frame_init(&f, 80, seed++);
	assert_int_equal(frame_seal(p->a, &f, 0), WEFT_SEALED_OK);
	assert_int_equal(phase_of(&f), phase);
	assert_int_equal(frame_open_at(p->b, &f, now), WEFT_SEALED_OK);
}

static void a_key_is_changed_when_due_and_confirmed(void **state)
{
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_ENCRYPT);
	struct pair p;

	(void)state;
	conf.key_due = 10;
	p = pair_open_conf(&conf, 14);
	for (unsigned int round = 0; round < 20; round++) {
		bool phase = round % 2;

		for (unsigned int i = 0; i < 9; i++) {
			pass(&p, phase, MS);
			weft_sealed_tick(p.b, cipher, MS, MS);
			assert_false(weft_sealed_tick(p.a, cipher, MS, MS));
		}
		pass(&p, phase, MS);
		/* Due, but the peer might not have the key yet. */
		assert_false(weft_sealed_tick(p.a, cipher, MS, MS));
		pass(&p, phase, MS);
		weft_sealed_confirm(p.a);
		assert_true(weft_sealed_tick(p.a, cipher, MS, MS));
		assert_false(weft_sealed_tick(p.a, cipher, MS, MS));
	}
	pair_close(&p);
}

/* Also while the next key is due: without the peer's confirmation none follows. */
static void a_key_that_is_not_confirmed_is_spent(void **state)
{
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_ENCRYPT);
	struct frame f;
	struct pair p;

	(void)state;
	conf.key_due = 5;
	conf.key_frames = 10;
	p = pair_open_conf(&conf, 18);
	for (unsigned int round = 0; round < 3; round++) {
		assert_false(weft_sealed_unsure(p.a, MS));
		for (unsigned int i = 0; i < 10; i++) {
			pass(&p, round % 2, MS);
			assert_int_equal(weft_sealed_unsure(p.a, MS), i >= 4);
			assert_false(weft_sealed_tick(p.a, cipher, MS, MS));
		}
		frame_init(&f, 80, 0);
		assert_int_equal(frame_seal(p.a, &f, 0), WEFT_SEALED_SPENT);
		weft_sealed_tick(p.b, cipher, MS, MS);
		weft_sealed_confirm(p.a);
		assert_false(weft_sealed_unsure(p.a, MS));
		assert_true(weft_sealed_tick(p.a, cipher, MS, MS));
	}
	pair_close(&p);
}

static void a_key_is_changed_when_old(void **state)
{
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_AUTH);
	struct pair p;

	(void)state;
	conf.key_due_ns = 3600 * 1000 * MS;
	p = pair_open_conf(&conf, 15);
	pass(&p, false, MS);
	weft_sealed_confirm(p.a);
	assert_false(weft_sealed_tick(p.a, cipher, 3600 * 1000 * MS, MS));
	assert_true(weft_sealed_tick(p.a, cipher, 3600 * 1000 * MS + MS, MS));
	pass(&p, true, MS);
	pair_close(&p);
}

/* A frame of the last key that was overtaken opens for keep_ns, in place and once. */
static void overtaken_frames_open_after_a_rotation(void **state)
{
	const uint64_t keep = 30 * MS;
	struct pair p;
	static struct frame late[3];

	(void)state;
	for (unsigned int mode = WEFT_SEAL_AUTH; mode <= WEFT_SEAL_ENCRYPT; mode++) {
		struct weft_sealed_conf conf = conf_of(mode);

		conf.key_due = 1;
		p = pair_open_conf(&conf, 16);
		weft_sealed_tick(p.b, cipher, MS, keep);
		for (unsigned int i = 0; i < 3; i++) {
			frame_init(&late[i], 500, i);
			assert_int_equal(frame_seal(p.a, &late[i], 1), WEFT_SEALED_OK);
		}
		weft_sealed_confirm(p.a);
		assert_true(weft_sealed_tick(p.a, cipher, MS, keep));
		pass(&p, true, MS);
		assert_int_equal(frame_open_at(p.b, &late[0], MS), WEFT_SEALED_OK);
		assert_int_equal(frame_open_at(p.b, &late[0], MS), WEFT_SEALED_SEEN);
		weft_sealed_tick(p.b, cipher, keep, keep);
		assert_int_equal(frame_open_at(p.b, &late[1], keep + MS - 1), WEFT_SEALED_OK);
		assert_int_equal(frame_open_at(p.b, &late[2], keep + MS), WEFT_SEALED_TAG);
		pass(&p, true, keep + MS);
		/* The next rotation follows while the last key is still kept. */
		weft_sealed_confirm(p.a);
		assert_true(weft_sealed_tick(p.a, cipher, MS, keep));
		pass(&p, false, MS);
		pair_close(&p);
	}
}

/* The keys of both kept generations fail first: the body must still be whole for the third. */
static void a_rotation_is_noticed_while_the_last_key_is_kept(void **state)
{
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_ENCRYPT);
	struct pair p;

	(void)state;
	conf.key_due = 1;
	p = pair_open_conf(&conf, 17);
	weft_sealed_tick(p.b, cipher, MS, 1000 * MS);
	for (unsigned int i = 0; i < 10; i++) {
		pass(&p, i % 2, MS);
		weft_sealed_confirm(p.a);
		assert_true(weft_sealed_tick(p.a, cipher, MS, MS));
	}
	pair_close(&p);
}

/* A flipped phase must not change the receiver's key. */
static void a_forged_phase_changes_nothing(void **state)
{
	struct pair p = pair_open(WEFT_SEAL_ENCRYPT, 18);
	static struct frame f;

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		frame_init(&f, 100, i);
		assert_int_equal(frame_seal(p.a, &f, 0), WEFT_SEALED_OK);
		f.bytes[4] ^= 0x40;
		assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_TAG);
		f.bytes[4] ^= 0x40;
		assert_int_equal(frame_open(p.b, &f), WEFT_SEALED_OK);
	}
	pair_close(&p);
}

/* A frame of generation 0 has the phase of generation 2. */
static void frames_of_two_keys_ago_are_refused(void **state)
{
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_ENCRYPT);
	static struct frame old;
	struct pair p;

	(void)state;
	conf.key_due = 1;
	p = pair_open_conf(&conf, 19);
	frame_init(&old, 100, 0);
	assert_int_equal(frame_seal(p.a, &old, 2), WEFT_SEALED_OK);
	for (unsigned int i = 1; i <= 2; i++) {
		weft_sealed_confirm(p.a);
		assert_true(weft_sealed_tick(p.a, cipher, MS, MS));
		pass(&p, i % 2, MS);
	}
	assert_int_equal(frame_open(p.b, &old), WEFT_SEALED_TAG);
	pair_close(&p);
}

/* ------------------------------------------------------------------ nonces */

/* Per generation of keys: all numbers of all slots differ, and they go on after a rotation. */
static void no_number_is_used_twice(void **state)
{
	enum { ROUNDS = 6, FRAMES = 300 };
	static uint64_t numbers[ROUNDS * FRAMES];
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_AUTH);
	static struct frame f;
	uint64_t seed = 20;
	unsigned int num = 0;
	struct pair p;

	(void)state;
	conf.key_due = FRAMES;
	p = pair_open_conf(&conf, 20);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < FRAMES; i++) {
			uint8_t slot;

			dice(&seed, &slot, 1);
			slot = slot % 5 == 4 ? WEFT_SEALED_SLOT_GONE : slot % 5;
			frame_init(&f, 20, i);
			assert_int_equal(frame_seal(p.a, &f, slot), WEFT_SEALED_OK);
			assert_int_equal(number_of(&f) >> 56, slot);
			numbers[num++] = number_of(&f);
		}
		weft_sealed_confirm(p.a);
		assert_true(weft_sealed_tick(p.a, cipher, MS, MS));
	}
	for (unsigned int i = 0; i < num; i++)
		for (unsigned int k = 0; k < i; k++)
			assert_int_not_equal(numbers[i], numbers[k]);
	pair_close(&p);
}

/*
 * A reconnect of the same two workers begins with number 0 again: the bytes of the same text differ
 * all the same, since key and salt are others. So do those of both directions.
 */
static void equal_numbers_of_other_connections_have_other_keys(void **state)
{
	struct weft_exchange_conf xc = {3, WEFT_SEAL_ENCRYPT, WEFT_EXCHANGE_NEXT, 1};
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_ENCRYPT);
	uint8_t hello[WEFT_EXCHANGE_BODY], ack[WEFT_EXCHANGE_BODY], random[32], job[32];
	static struct frame f[8];
	struct weft_exchange_key key;
	uint64_t seed = 21;

	(void)state;
	dice(&seed, job, sizeof(job));
	assert_int_equal(weft_exchange_key_init(&key, job), 0);
	memset(hello, 1, sizeof(hello));
	memset(ack, 2, sizeof(ack));
	for (unsigned int i = 0; i < 8; i++) {
		struct weft_exchange_secrets secrets;
		struct weft_exchange x;
		struct weft_sealed *s;

		if (i % 2 == 0) {
			dice(&seed, random, sizeof(random));
			assert_int_equal(weft_exchange_offer(&x, &key, &xc, hello, random), 0);
			dice(&seed, random, sizeof(random));
		}
		assert_int_equal(weft_exchange_answer(&key, &xc, hello, sizeof(hello), ack, random,
						      &secrets),
				 0);
		conf.initiator = i % 2;
		assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &s), 0);
		frame_init(&f[i], 200, 0);
		assert_int_equal(frame_seal(s, &f[i], 0), WEFT_SEALED_OK);
		assert_int_equal(number_of(&f[i]), 0);
		weft_sealed_destroy(s);
		for (unsigned int k = 0; k < i; k++)
			assert_memory_not_equal(f[i].bytes + WEFT_SEALED_HEAD,
						f[k].bytes + WEFT_SEALED_HEAD, 200);
	}
}

static void a_retransmission_has_another_number_and_other_bytes(void **state)
{
	struct pair p = pair_open(WEFT_SEAL_ENCRYPT, 22);
	static struct frame f[2];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		frame_init(&f[i], 200, 0);
		assert_int_equal(frame_seal(p.a, &f[i], 0), WEFT_SEALED_OK);
	}
	assert_int_equal(number_of(&f[0]), 0);
	assert_int_equal(number_of(&f[1]), 1);
	assert_memory_not_equal(f[0].bytes + WEFT_SEALED_HEAD, f[1].bytes + WEFT_SEALED_HEAD, 200);
	pair_close(&p);
}

/* Sealed when the connection came up, sent by another process much later. */
static void a_frame_for_a_helper_opens_later(void **state)
{
	struct pair p = pair_open(WEFT_SEAL_ENCRYPT, 23);
	static struct frame gone;

	(void)state;
	frame_init(&gone, 0, 0);
	assert_int_equal(frame_seal(p.a, &gone, WEFT_SEALED_SLOT_GONE), WEFT_SEALED_OK);
	assert_int_equal(number_of(&gone), 255ull << 56);
	for (unsigned int i = 0; i < 5000; i++)
		pass(&p, false, MS);
	assert_int_equal(frame_open(p.b, &gone), WEFT_SEALED_OK);
	assert_int_equal(frame_open(p.b, &gone), WEFT_SEALED_SEEN);
	pair_close(&p);
}

/* ------------------------------------------------------------------ limits */

static void bad_limits_are_refused(void **state)
{
	struct weft_exchange_secrets secrets = {0};
	struct weft_sealed_conf conf = conf_of(WEFT_SEAL_ENCRYPT);
	struct weft_sealed *s;

	(void)state;
	conf.slots = 0;
	assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &s), -EINVAL);
	conf.slots = WEFT_SEALED_SLOTS_MAX + 1;
	assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &s), -EINVAL);
	conf.slots = 1;
	conf.key_due = WEFT_SEALED_KEY_FRAMES + 1;
	assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &s), -EINVAL);
}

/* The figures of doc/sealing.md. */
static void the_memory_of_a_connection_is_as_documented(void **state)
{
	(void)state;
	assert_true(weft_sealed_size(1) <= 4096);
	assert_true(weft_sealed_size(WEFT_SEALED_SLOTS_MAX) <= 12288);
	assert_int_equal(WEFT_SEALED_OVERHEAD, 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_all_lengths_open_at_the_peer),
		cmocka_unit_test(frames_have_the_bytes_of_the_document),
		cmocka_unit_test(a_burst_has_frames_of_any_connection),
		cmocka_unit_test(each_changed_bit_is_refused),
		cmocka_unit_test(each_truncation_is_refused),
		cmocka_unit_test(replays_are_refused_on_each_slot),
		cmocka_unit_test(a_frame_that_4096_others_overtook_is_old),
		cmocka_unit_test(a_frame_opens_at_its_own_connection_only),
		cmocka_unit_test(spliced_frames_are_refused),
		cmocka_unit_test(an_unsealed_frame_is_refused),
		cmocka_unit_test(too_many_bad_tags_end_the_connection),
		cmocka_unit_test(a_key_is_changed_when_due_and_confirmed),
		cmocka_unit_test(a_key_that_is_not_confirmed_is_spent),
		cmocka_unit_test(a_key_is_changed_when_old),
		cmocka_unit_test(overtaken_frames_open_after_a_rotation),
		cmocka_unit_test(a_rotation_is_noticed_while_the_last_key_is_kept),
		cmocka_unit_test(a_forged_phase_changes_nothing),
		cmocka_unit_test(frames_of_two_keys_ago_are_refused),
		cmocka_unit_test(no_number_is_used_twice),
		cmocka_unit_test(equal_numbers_of_other_connections_have_other_keys),
		cmocka_unit_test(a_retransmission_has_another_number_and_other_bytes),
		cmocka_unit_test(a_frame_for_a_helper_opens_later),
		cmocka_unit_test(bad_limits_are_refused),
		cmocka_unit_test(the_memory_of_a_connection_is_as_documented),
	};

	return cmocka_run_group_tests(tests, open_cipher, close_cipher);
}
