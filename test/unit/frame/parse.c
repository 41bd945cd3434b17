/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frame validation, encapsulation and the checksums: a good frame passes, everything that is wrong
 * with it is named.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame/frame.h"
#include "frame/parse.h"

static const struct weft_encap_addr addr = {
	.src_mac = {2, 0, 0, 0, 0, 1},
	.dst_mac = {2, 0, 0, 0, 0, 2},
	.src_ip = 0x0a000001,
	.dst_ip = 0x0a000002,
	.src_port = 0xc123,
	.dst_port = 9338,
};

static const struct weft_rx_filter filter = {
	.check_ip = true,
	.udp_port = 9338,
	.ip = 0x0a000002,
	.mac = {2, 0, 0, 0, 0, 2},
};

struct built {
	uint8_t *bytes; /* of exactly this length, so that ASan sees one byte too far */
	size_t len;
	uint8_t *lane;
};

enum { MSG_A = 17, MSG_B = 0, MSG_C = 300 };

#define ECN_PATHS 3
#define ECN_SIZE (sizeof(struct weft_frame_ecn) + ECN_PATHS * sizeof(struct weft_frame_ecn_path))

static uint8_t *ecn_block(uint8_t *p)
{
	struct weft_frame_ecn ecn = {.paths = weft_put16(ECN_PATHS)};

	memcpy(p, &ecn, sizeof(ecn));
	p += sizeof(ecn);
	for (uint8_t i = 0; i < ECN_PATHS; i++, p += sizeof(struct weft_frame_ecn_path)) {
		struct weft_frame_ecn_path path = {.path = i, .marked = weft_put16(0xff00u + i)};

		memcpy(p, &path, sizeof(path));
	}
	return p;
}

static const struct weft_frame_progress progress = {.longest = {0x107}, .total = {0x209}};

/* A DATA frame of three messages, optionally with SACK, ECN, progress block and CRC. */
static struct built build(const struct weft_encap_addr *a, uint16_t flags, uint32_t sack_words)
{
	static const uint16_t lens[] = {MSG_A, MSG_B, MSG_C};
	uint8_t head[WEFT_ENCAP_MAX] __rte_aligned(2);
	struct weft_encap_hdr e;
	struct weft_frame_hdr *h;
	struct built b;
	uint32_t lane_len = sizeof(*h) + 3 * sizeof(struct weft_frame_msg) + MSG_A + MSG_B + MSG_C;
	weft_le32 crc;
	uint8_t *p;

	if (flags & WEFT_FRAME_F_SACK)
		lane_len += (uint32_t)sizeof(struct weft_frame_sack) + 8 * sack_words;
	if (flags & WEFT_FRAME_F_ECN)
		lane_len += (uint32_t)ECN_SIZE;
	if (flags & WEFT_FRAME_F_PROGRESS)
		lane_len += (uint32_t)sizeof(progress);
	weft_encap_build(&e, head, a);
	b.len = e.len + lane_len + (flags & WEFT_FRAME_F_CRC32C ? 4 : 0);
	b.bytes = malloc(b.len);
	memset(b.bytes, 0xa5, b.len);
	memcpy(b.bytes, head, e.len);
	b.lane = b.bytes + e.len;
	h = (struct weft_frame_hdr *)b.lane;
	*h = (struct weft_frame_hdr){
		.magic = weft_put16(WEFT_FRAME_MAGIC),
		.version = WEFT_FRAME_VERSION,
		.type = WEFT_FRAME_DATA,
		.flags = weft_put16(flags),
		.length = weft_put16((uint16_t)lane_len),
		.dst_conn = weft_put32(0x70001),
		.seq = weft_put32(42),
	};
	p = (uint8_t *)(h + 1);
	if (flags & WEFT_FRAME_F_SACK) {
		struct weft_frame_sack *s = (struct weft_frame_sack *)p;

		s->words = weft_put16((uint16_t)sack_words);
		s->reserved = weft_put16(0);
		p += sizeof(*s) + 8 * sack_words;
	}
	if (flags & WEFT_FRAME_F_ECN)
		p = ecn_block(p);
	if (flags & WEFT_FRAME_F_PROGRESS) {
		memcpy(p, &progress, sizeof(progress));
		p += sizeof(progress);
	}
	for (int i = 0; i < 3; i++) {
		struct weft_frame_msg m = {.length = weft_put16(lens[i]),
					   .am_id = (uint8_t)(i + 1)};

		memcpy(p, &m, sizeof(m));
		memset(p + sizeof(m), i, lens[i]);
		p += sizeof(m) + lens[i];
	}
	weft_encap_patch(&e, b.bytes, lane_len + (flags & WEFT_FRAME_F_CRC32C ? 4 : 0), a->src_port,
			 a->dst_port);
	if (flags & WEFT_FRAME_F_CRC32C) {
		crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, b.lane, lane_len));
		memcpy(p, &crc, 4);
	}
	return b;
}

/* As parse_both() for the commonest sealed frames, whose tag lies behind the length. */
static void expect_sealed(const struct weft_rx_filter *g, const void *bytes, uint32_t len,
			  enum weft_rx_verdict verdict, const struct weft_frame_view *v)
{
	const uint16_t any = WEFT_FRAME_F_ACK_REQ | WEFT_FRAME_F_KEY_PHASE;
	const struct weft_frame_hdr *hdr;
	struct weft_rx_pattern pattern;
	uint32_t body_len = 0;
	bool quick;

	weft_rx_pattern_init(&pattern, g, true);
	hdr = weft_frame_head(&pattern, bytes, len, WEFT_FRAME_TAG_LEN, &body_len);
	quick = hdr && body_len >= WEFT_FRAME_NUMBER_LEN;
	assert_int_equal(quick, verdict == WEFT_VERDICT_OK && v->type == WEFT_FRAME_DATA &&
					(v->flags & ~any) == WEFT_FRAME_F_SEALED &&
					!(v->ip && v->ip->type_of_service & 1));
	if (quick) {
		assert_ptr_equal(hdr, v->hdr);
		assert_int_equal(body_len, v->body_len + WEFT_FRAME_NUMBER_LEN);
	}
}

/* The parser of the commonest frames takes exactly what the whole one finds to be such. */
static enum weft_rx_verdict parse_both(const struct weft_rx_filter *g, const void *bytes,
				       size_t len, struct weft_frame_view *v)
{
	enum weft_rx_verdict verdict = weft_frame_parse(g, bytes, len, v);
	struct weft_rx_pattern pattern;
	struct weft_frame_view q;
	bool quick;

	weft_rx_pattern_init(&pattern, g, false);
	quick = weft_frame_parse_data(&pattern, bytes, (uint32_t)len, &q);
	assert_int_equal(quick, verdict == WEFT_VERDICT_OK && v->type == WEFT_FRAME_DATA &&
					(v->flags & ~WEFT_FRAME_F_ACK_REQ) == 0 &&
					!(v->ip && v->ip->type_of_service & 1));
	if (quick) {
		assert_ptr_equal(q.hdr, v->hdr);
		assert_int_equal(q.flags, v->flags);
		assert_ptr_equal(q.body, v->body);
		assert_int_equal(q.body_len, v->body_len);
		assert_int_equal(q.type, v->type);
		assert_int_equal(q.flags, v->flags);
		assert_ptr_equal(q.sack, v->sack);
	}
	expect_sealed(g, bytes, (uint32_t)len, verdict, v);
	return verdict;
}

static enum weft_rx_verdict parse(const struct weft_rx_filter *g, const struct built *b,
				  struct weft_frame_view *v)
{
	return parse_both(g, b->bytes, b->len, v);
}

static void good_frame_passes_with_all_its_messages(void **state)
{
	static const uint16_t flags[] = {0,
					 WEFT_FRAME_F_CRC32C,
					 WEFT_FRAME_F_SACK,
					 WEFT_FRAME_F_SACK | WEFT_FRAME_F_CRC32C,
					 WEFT_FRAME_F_ECN,
					 WEFT_FRAME_F_ECN | WEFT_FRAME_F_CRC32C,
					 WEFT_FRAME_F_ECN | WEFT_FRAME_F_SACK | WEFT_FRAME_F_CRC32C,
					 WEFT_FRAME_F_PROGRESS,
					 WEFT_FRAME_F_PROGRESS | WEFT_FRAME_F_ECN |
						 WEFT_FRAME_F_SACK | WEFT_FRAME_F_CRC32C};
	const struct weft_frame_msg *m;
	struct weft_frame_view v;
	uint32_t off;

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		struct built b = build(&addr, flags[i], 5);

		assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
		assert_int_equal(v.type, WEFT_FRAME_DATA);
		assert_int_equal(v.src_ip, 0x0a000001);
		assert_int_equal(v.src_port, 0xc123);
		assert_int_equal(v.sack != NULL, (flags[i] & WEFT_FRAME_F_SACK) != 0);
		if (flags[i] & WEFT_FRAME_F_PROGRESS)
			assert_memory_equal(v.progress, &progress, sizeof(progress));
		off = 0;
		m = weft_frame_msg_next(&v, &off);
		assert_int_equal(weft_get16(m->length), MSG_A);
		assert_int_equal(m->am_id, 1);
		m = weft_frame_msg_next(&v, &off);
		assert_int_equal(weft_get16(m->length), MSG_B);
		m = weft_frame_msg_next(&v, &off);
		assert_int_equal(weft_get16(m->length), MSG_C);
		assert_int_equal(((const uint8_t *)(m + 1))[MSG_C - 1], 2);
		assert_null(weft_frame_msg_next(&v, &off));
		free(b.bytes);
	}
}

/* A sender of a later version may echo congestion marks: the block is checked, and skipped. */
static void an_ecn_block_is_checked_and_skipped(void **state)
{
	static const struct {
		int at; /* in the block, right behind the lane's header */
		uint8_t value;
		enum weft_rx_verdict want;
	} t[] = {
		{0, ECN_PATHS, WEFT_VERDICT_OK},
		{6, 0x55, WEFT_VERDICT_OK}, /* any number of marks */
		{0, 0, WEFT_VERDICT_BAD_LENGTH},
		{0, WEFT_FRAME_PATHS_MAX + 1, WEFT_VERDICT_BAD_LENGTH},
		{1, 1, WEFT_VERDICT_BAD_LENGTH},
		{0, ECN_PATHS - 1, WEFT_VERDICT_BAD_MESSAGE}, /* the last one would be a message */
	};
	struct weft_frame_view v;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct built b = build(&addr, WEFT_FRAME_F_ECN, 0);
		uint32_t off = 0;
		enum weft_rx_verdict g;

		b.lane[sizeof(struct weft_frame_hdr) + (size_t)t[i].at] = t[i].value;
		g = parse(&filter, &b, &v);
		if (g != t[i].want)
			fail_msg("byte %d = %u: %s", t[i].at, t[i].value, weft_rx_verdict_name(g));
		if (g == WEFT_VERDICT_OK) {
			assert_ptr_equal(v.body, b.lane + sizeof(struct weft_frame_hdr) + ECN_SIZE);
			assert_int_equal(weft_get16(weft_frame_msg_next(&v, &off)->length), MSG_A);
		}
		free(b.bytes);
	}
}

static void first_message_of_a_udp_frame_is_aligned(void **state)
{
	struct built b = build(&addr, 0, 0);
	struct weft_frame_view v;

	(void)state;
	assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
	assert_int_equal((v.body + sizeof(struct weft_frame_msg) - b.bytes) % 8, 0);
	free(b.bytes);
}

static void ethernet_padding_is_not_part_of_the_frame(void **state)
{
	struct built b = build(&addr, WEFT_FRAME_F_CRC32C, 0);
	struct weft_frame_view v;
	size_t len = b.len;

	(void)state;
	b.bytes = realloc(b.bytes, len + 18);
	memset(b.bytes + len, 0xff, 18);
	b.len = len + 18;
	assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
	free(b.bytes);
}

/* @behaviour X11 */
static void every_truncation_is_refused(void **state)
{
	static const uint16_t flags[] = {0, WEFT_FRAME_F_SACK | WEFT_FRAME_F_CRC32C,
					 WEFT_FRAME_F_SACK | WEFT_FRAME_F_ECN,
					 WEFT_FRAME_F_PROGRESS};
	struct weft_encap_addr variant[3] = {addr, addr, addr};
	struct weft_rx_filter g[3] = {filter, filter, filter};
	struct weft_frame_view v;

	(void)state;
	variant[1].vlan = g[1].vlan = 7;
	variant[2].raw_ethertype = g[2].raw_ethertype = true;
	for (int k = 0; k < 3; k++) {
		for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
			struct built b = build(&variant[k], flags[i], 3);

			assert_int_equal(parse(&g[k], &b, &v), WEFT_VERDICT_OK);
			for (size_t len = 0; len < b.len; len++) {
				uint8_t *cut = malloc(len ? len : 1);

				memcpy(cut, b.bytes, len);
				assert_int_not_equal(parse_both(&g[k], cut, len, &v),
						     WEFT_VERDICT_OK);
				free(cut);
			}
			free(b.bytes);
		}
	}
}

/* Bytes that a single change must turn into one particular reason. */
/* @behaviour X11 */
static void each_wrong_field_is_named(void **state)
{
	enum { ANY = WEFT_VERDICT_COUNT };
	static const struct {
		int at;
		uint8_t value;
		unsigned int want;
	} t[] = {
		{0, 0x04, WEFT_VERDICT_NOT_OURS},    /* MAC of another host */
		{0, 0xff, WEFT_VERDICT_NOT_OURS},    /* group address */
		{13, 0x06, ANY},                     /* ARP type: not ARP inside */
		{13, 0xdd, WEFT_VERDICT_NOT_OURS},   /* another protocol */
		{14, 0x46, WEFT_VERDICT_BAD_IP},     /* IP options */
		{14, 0x65, WEFT_VERDICT_BAD_IP},     /* version 6 */
		{20, 0x20, WEFT_VERDICT_BAD_IP},     /* more fragments */
		{21, 0x01, WEFT_VERDICT_BAD_IP},     /* fragment offset */
		{22, 63, WEFT_VERDICT_BAD_IP},       /* TTL changed, checksum not */
		{23, 6, WEFT_VERDICT_NOT_OURS},      /* TCP */
		{33, 9, WEFT_VERDICT_NOT_OURS},      /* other IP address */
		{36, 0, WEFT_VERDICT_NOT_OURS},      /* other port */
		{38, 0xff, WEFT_VERDICT_BAD_LENGTH}, /* UDP longer than IP */
		{38, 0, ANY},                        /* UDP shorter: lane header does not fit */
		{42, 0, WEFT_VERDICT_BAD_MAGIC},
		{44, 1, WEFT_VERDICT_BAD_VERSION},
		{44, 3, WEFT_VERDICT_BAD_VERSION},
		{45, 0, WEFT_VERDICT_BAD_TYPE},
		{45, 15, WEFT_VERDICT_BAD_TYPE}, /* messages are no part of a frame */
		{45, 17, WEFT_VERDICT_BAD_TYPE}, /* GONE is sealed only */
		{45, 18, WEFT_VERDICT_BAD_TYPE}, /* nothing yet */
		{45, 200, WEFT_VERDICT_BAD_TYPE},
		{46, 0x24, ANY},                   /* sealed, with a CRC and without a tag */
		{46, 0x40, WEFT_VERDICT_BAD_TYPE}, /* a key's phase, and not sealed */
		{46, 0x10,
		 WEFT_VERDICT_BAD_LENGTH}, /* ECN flag, but a message where the block should be */
		{47, 0x80, WEFT_VERDICT_BAD_TYPE},
		/* SACK flag, but a message where the block should be: what is left does not tile */
		{46, 0x02, WEFT_VERDICT_BAD_MESSAGE},
		{48, 41, ANY},                       /* shorter than a header */
		{49, 0xff, WEFT_VERDICT_BAD_LENGTH}, /* longer than the frame */
		{84, 12, WEFT_VERDICT_BAD_MESSAGE},  /* message lengths do not tile the body */
		{85, 0xff, WEFT_VERDICT_BAD_MESSAGE},
		{86, 32, WEFT_VERDICT_BAD_MESSAGE}, /* am_id */
		{87, 1, WEFT_VERDICT_BAD_MESSAGE},  /* message flags */
	};
	struct weft_frame_view v;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct built b = build(&addr, 0, 0);
		enum weft_rx_verdict g;

		b.bytes[t[i].at] = t[i].value;
		g = parse(&filter, &b, &v);
		if (t[i].want != ANY && g != t[i].want)
			fail_msg("byte %d = %u: %s", t[i].at, t[i].value, weft_rx_verdict_name(g));
		assert_int_not_equal(g, WEFT_VERDICT_OK);
		free(b.bytes);
	}
}

/* The bytes of a part lie in the frame that it is of, in units of 8 but at its end. */
/*
 * @behaviour X21: parts of frames arrive in any order, twice, cut again; malformed parts are
 * dropped, and retained parts have a bound for each peer and for all
 */
static void parts_lie_in_their_frames(void **state)
{
	enum { LEN = 3 * sizeof(struct weft_frame_msg) + MSG_A + MSG_B + MSG_C - 4 };
	static const struct {
		uint32_t offset, total;
		bool good;
	} t[] = {
		{0, LEN, true},
		{8, LEN + 8, true},
		{8 * 100, LEN + 8 * 100, true},
		{4, LEN + 4, false},
		{0, LEN - 1, false},
		{0, 0, false},
		{8, LEN, false},
		{0, LEN + 8, LEN % 8 == 0},
		{0xfff8, 0xffff, false},
		{WEFT_FRAME_SIZE_MAX, WEFT_FRAME_SIZE_MAX + LEN, false},
	};
	struct weft_frame_view v;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct built b = build(&addr, 0, 0);
		struct weft_frame_part part = {.offset = weft_put16((uint16_t)t[i].offset),
					       .total = weft_put16((uint16_t)t[i].total)};

		b.bytes[45] = WEFT_FRAME_PART;
		memcpy(b.bytes + 84, &part, sizeof(part));
		assert_int_equal(parse(&filter, &b, &v),
				 t[i].good ? WEFT_VERDICT_OK : WEFT_VERDICT_BAD_TYPE);
		free(b.bytes);
	}
}

static void any_flipped_bit_is_seen_by_the_crc(void **state)
{
	struct built b = build(&addr, WEFT_FRAME_F_SACK | WEFT_FRAME_F_CRC32C, 2);
	struct weft_frame_view v;
	size_t lane = (size_t)(b.lane - b.bytes);

	(void)state;
	for (size_t bit = 8 * lane; bit < 8 * b.len; bit++) {
		/* A flip of the CRC flag itself turns the check off: the connection, which knows
		 * what was agreed, sees that. */
		if (bit == 8 * (lane + 4) + 2)
			continue;
		b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
		b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
	free(b.bytes);
}

static void garbage_never_passes_and_never_reads_too_far(void **state)
{
	struct weft_frame_view v;
	uint64_t rng = 1;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		struct built b = build(&addr, i & 1 ? WEFT_FRAME_F_SACK : 0, 1);
		int hits = i % 7;

		while (hits-- >= 0) {
			rng = rng * 6364136223846793005ull + 1442695040888963407ull;
			b.bytes[(rng >> 33) % b.len] = (uint8_t)(rng >> 25);
		}
		if (parse(&filter, &b, &v) == WEFT_VERDICT_OK && v.type == WEFT_FRAME_DATA &&
		    !(v.flags & WEFT_FRAME_F_SEALED)) {
			const struct weft_frame_msg *m;
			uint32_t off = 0;

			while ((m = weft_frame_msg_next(&v, &off)))
				assert_true((const uint8_t *)(m + 1) + weft_get16(m->length) <=
					    b.bytes + b.len);
		}
		free(b.bytes);
	}
}

/* Of a sealed frame only lengths and type are checked: number, body and tag lie inside of it. */
static void a_sealed_frame_has_room_for_number_and_tag(void **state)
{
	static const uint8_t never[] = {WEFT_FRAME_HELLO, WEFT_FRAME_HELLO_ACK, WEFT_FRAME_RESET,
					WEFT_FRAME_HELLO_RETRY, WEFT_FRAME_CHALLENGE};
	static const uint16_t flags[] = {WEFT_FRAME_F_KEY_PHASE | WEFT_FRAME_F_SACK,
					 WEFT_FRAME_F_KEY_PHASE | WEFT_FRAME_F_ACK_REQ, 0};
	struct weft_frame_view v;
	struct built b = build(&addr, 0, 60);
	struct weft_frame_hdr *h = (struct weft_frame_hdr *)(b.bytes + 42);
	uint16_t whole = weft_get16(h->length);

	(void)state;
	for (uint16_t length = 42; length <= whole; length++) {
		h->flags = weft_put16(WEFT_FRAME_F_SEALED | flags[length % 3]);
		h->length = weft_put16(length);
		if (length < 50 || length > whole - 16) {
			assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_BAD_LENGTH);
			continue;
		}
		assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
		assert_ptr_equal(v.body, b.bytes + 42 + 50);
		assert_int_equal(v.body_len, length - 50);
		assert_null(v.sack);
	}
	h->length = weft_put16(50);
	h->flags = weft_put16(WEFT_FRAME_F_SEALED | WEFT_FRAME_F_CRC32C);
	assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_BAD_TYPE);
	h->flags = weft_put16(WEFT_FRAME_F_SEALED);
	for (size_t i = 0; i < sizeof(never); i++) {
		h->type = never[i];
		assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_BAD_TYPE);
	}
	free(b.bytes);
}

static void vlan_must_be_the_own_one(void **state)
{
	struct weft_encap_addr a = addr;
	struct weft_rx_filter g = filter;
	struct weft_frame_view v;
	struct built b;

	(void)state;
	a.vlan = 7;
	b = build(&a, 0, 0);
	assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_NOT_OURS);
	g.vlan = 7;
	assert_int_equal(parse(&g, &b, &v), WEFT_VERDICT_OK);
	b.bytes[14] |= 0xe0; /* priority bits say nothing about whose it is */
	assert_int_equal(parse(&g, &b, &v), WEFT_VERDICT_OK);
	g.vlan = 8;
	assert_int_equal(parse(&g, &b, &v), WEFT_VERDICT_NOT_OURS);
	free(b.bytes);
}

static void arp_is_recognised(void **state)
{
	uint8_t f[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,
			 1,    0x08, 0x06, 0,    1,    8,    0, 6, 4, 0, 1};
	struct weft_frame_view v;

	(void)state;
	assert_int_equal(parse_both(&filter, f, sizeof(f), &v), WEFT_VERDICT_ARP);
	assert_non_null(v.arp);
	assert_int_equal(parse_both(&filter, f, 41, &v), WEFT_VERDICT_BAD_LENGTH);
	f[18] = 8;
	assert_int_equal(parse_both(&filter, f, sizeof(f), &v), WEFT_VERDICT_NOT_OURS);
}

static void ip_header_checksum_is_right_for_all_lengths(void **state)
{
	struct weft_encap_hdr e;
	uint8_t f[WEFT_ENCAP_MAX] __rte_aligned(2), head[WEFT_ENCAP_MAX] __rte_aligned(2);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(f + RTE_ETHER_HDR_LEN);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	(void)state;
	weft_encap_build(&e, head, &addr);
	for (uint32_t len = 42; len < 9000; len++) {
		memcpy(f, head, e.len);
		weft_encap_patch(&e, f, len, (uint16_t)(0xc000 + len), addr.dst_port);
		assert_int_equal(rte_ipv4_cksum(ip), 0);
		assert_true(weft_ipv4_header_ok(ip));
		f[14 + len % 20] ^= 0x10;
		assert_false(weft_ipv4_header_ok(ip));
		f[14 + len % 20] ^= 0x10;
		assert_int_equal(rte_be_to_cpu_16(ip->total_length), 28 + len);
		assert_int_equal(rte_be_to_cpu_16(udp->dgram_len), 8 + len);
	}
}

/* Header checksums are right with any DSCP, and of all values of ECN one is a mark. */
static void a_mark_of_a_queue_is_seen(void **state)
{
	struct weft_frame_view v;

	(void)state;
	for (unsigned int tos = 0; tos < 256; tos++) {
		struct weft_encap_addr a = addr;
		struct built b;

		a.tos = (uint8_t)tos;
		b = build(&a, 0, 0);
		assert_int_equal(b.bytes[15], tos);
		assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
		assert_int_equal(v.ce, (tos & 3) == 3);
		free(b.bytes);
	}
}

static void marks_are_reported_path_by_path(void **state)
{
	const struct weft_frame_ecn_path *e;
	struct built b = build(&addr, WEFT_FRAME_F_ECN, 0);
	struct weft_frame_view v;

	(void)state;
	assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
	assert_int_equal(weft_get16(v.ecn->paths), ECN_PATHS);
	e = (const struct weft_frame_ecn_path *)(v.ecn + 1);
	assert_int_equal(e[1].path, 1);
	assert_int_equal(weft_get16(e[1].marked), 0xff01);
	free(b.bytes);
	b = build(&addr, 0, 0);
	assert_int_equal(parse(&filter, &b, &v), WEFT_VERDICT_OK);
	assert_null(v.ecn);
	free(b.bytes);
}

static void a_udp_checksum_covers_the_length_in_udp(void **state)
{
	struct built b = build(&addr, 0, 0);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(b.bytes + RTE_ETHER_HDR_LEN);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct weft_frame_view v;

	(void)state;
	assert_int_equal(weft_frame_parse(&filter, b.bytes, b.len, &v), WEFT_VERDICT_OK);
	assert_false(weft_frame_udp_csum_ok(&v)); /* there is none */
	udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
	assert_int_equal(weft_frame_parse(&filter, b.bytes, b.len, &v), WEFT_VERDICT_OK);
	assert_true(weft_frame_udp_csum_ok(&v));
	/* IP's length says that there is more: no part of UDP's. */
	b.bytes = realloc(b.bytes, b.len + 3);
	assert_non_null(b.bytes);
	memset(b.bytes + b.len, 0x77, 3);
	ip = (struct rte_ipv4_hdr *)(b.bytes + RTE_ETHER_HDR_LEN);
	ip->total_length = rte_cpu_to_be_16((uint16_t)(b.len + 3 - RTE_ETHER_HDR_LEN));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	assert_int_equal(weft_frame_parse(&filter, b.bytes, b.len + 3, &v), WEFT_VERDICT_OK);
	assert_true(weft_frame_udp_csum_ok(&v));
	for (uint8_t *p = b.bytes + 42; p < b.bytes + b.len; p++) {
		*p ^= 1;
		assert_false(weft_frame_udp_csum_ok(&v));
		*p ^= 1;
	}
	ip->src_addr ^= 1;
	assert_false(weft_frame_udp_csum_ok(&v));
	free(b.bytes);
}

static void crc32c_known_answers(void **state)
{
	static uint8_t buf[20000];
	uint32_t whole;

	(void)state;
	assert_int_equal(~weft_crc32c(WEFT_CRC32C_INIT, "123456789", 9), 0xe3069283u);
	memset(buf, 0, 32);
	assert_int_equal(~weft_crc32c(WEFT_CRC32C_INIT, buf, 32), 0x8a9136aau); /* RFC 3720 B.4 */
	memset(buf, 0xff, 32);
	assert_int_equal(~weft_crc32c(WEFT_CRC32C_INIT, buf, 32), 0x62a8ab43u);
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 31 + i / 7);
	for (size_t len = 0; len < 7000; len += 13)
		assert_int_equal(weft_crc32c(WEFT_CRC32C_INIT, buf + len % 9, len),
				 weft_crc32c_soft(WEFT_CRC32C_INIT, buf + len % 9, len));
	whole = weft_crc32c(WEFT_CRC32C_INIT, buf, sizeof(buf));
	for (size_t cut = 0; cut < sizeof(buf); cut += 997)
		assert_int_equal(weft_crc32c(weft_crc32c(WEFT_CRC32C_INIT, buf, cut), buf + cut,
					     sizeof(buf) - cut),
				 whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_frame_passes_with_all_its_messages),
		cmocka_unit_test(an_ecn_block_is_checked_and_skipped),
		cmocka_unit_test(first_message_of_a_udp_frame_is_aligned),
		cmocka_unit_test(ethernet_padding_is_not_part_of_the_frame),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(each_wrong_field_is_named),
		cmocka_unit_test(parts_lie_in_their_frames),
		cmocka_unit_test(any_flipped_bit_is_seen_by_the_crc),
		cmocka_unit_test(garbage_never_passes_and_never_reads_too_far),
		cmocka_unit_test(a_sealed_frame_has_room_for_number_and_tag),
		cmocka_unit_test(vlan_must_be_the_own_one),
		cmocka_unit_test(arp_is_recognised),
		cmocka_unit_test(ip_header_checksum_is_right_for_all_lengths),
		cmocka_unit_test(a_mark_of_a_queue_is_seen),
		cmocka_unit_test(marks_are_reported_path_by_path),
		cmocka_unit_test(a_udp_checksum_covers_the_length_in_udp),
		cmocka_unit_test(crc32c_known_answers),
	};

	return cmocka_run_group_tests_name("frame_parse", tests, NULL, NULL);
}
