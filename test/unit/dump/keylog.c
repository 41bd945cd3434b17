/* SPDX-License-Identifier: BSD-3-Clause */
/* Key logs of sealed frames: their lines, and the frames of a capture that they open. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/secret.h"
#include "core/wire_frame_def.h"
#include "drivers/dpdk/frame/frame.h"
#include "drivers/dpdk/seal/seal.h"
#include "dump/decode.h"
#include "dump/keylog.h"

#define SECRET "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define CONN 7u
#define TOKEN 0x89abcdefu
#define BODY 600u
#define HEAD ((uint32_t)sizeof(struct weft_frame_hdr))
#define LATE_MOST 1024u

static char path[] = "/tmp/weft-keylog-XXXXXX";
static struct weft_cipher *cipher;

/* ---- the file ------------------------------------------------------------------------------- */

static void put_text(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

/* The file is refused, and the reason has this text. */
static void refused(const char *text, const char *reason)
{
	struct dump_keylog *log;
	char why[400] = "";

	put_text(text);
	log = dump_keylog_load(path, why, sizeof(why));
	if (log || !strstr(why, reason))
		fail_msg("'%s': %s, '%s'", text, log ? "loaded" : "refused", why);
}

static struct dump_keylog *loaded(const char *text)
{
	struct dump_keylog *log;
	char why[400] = "";

	put_text(text);
	log = dump_keylog_load(path, why, sizeof(why));
	if (!log)
		fail_msg("'%s': %s", text, why);
	return log;
}

static void malformed_lines_are_refused_with_their_number(void **state)
{
	static const char *const lines[] = {
		"WEFT_SEAL_1 encrypt 00000007 89abcdef\n",
		"WEFT_SEAL_1 encrypt 00000007 89abcdef \n",
		"WEFT_SEAL_1 encrypt 00000007 " SECRET "\n",
		"WEFT_SEAL_1 encrypt 00000007 89abcdeg " SECRET "\n",
		"WEFT_SEAL_1 off 00000007 89abcdef " SECRET "\n",
		"WEFT_SEAL_1 encrypted 00000007 89abcdef " SECRET "\n",
		"WEFT_SEAL_1 encrypt 000000070 89abcdef " SECRET "\n",
		"WEFT_SEAL_1 encrypt 00000007 89abcdef " SECRET "0\n",
		"WEFT_SEAL_1 encrypt 00000007 89abcdef " SECRET " more\n",
		"WEFT_SEAL_1 encrypt 00000007 89abcdef " SECRET "\r\n",
		/* A line that a full disk has cut. */
		"WEFT_SEAL_1 encrypt 00000007 89abcdef 0001",
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text),
			 "# of the nightly run\nWEFT_SEAL_1 auth 00000001 00000002 " SECRET "\n%s",
			 lines[i]);
		refused(text, ":3: this is no line of a key log");
	}
}

static void files_without_a_key_are_refused(void **state)
{
	char why[400];

	(void)state;
	refused("", "this key log contains no key");
	refused("# nothing\nWEFT_SEAL_2 later\n", "this key log contains no key");
	assert_null(dump_keylog_load("/no/file", why, sizeof(why)));
	assert_non_null(strstr(why, "/no/file: No such file"));
}

static void other_lines_mean_nothing(void **state)
{
	(void)state;
	dump_keylog_free(loaded("\n# comment\nWEFT_SEAL_2 a later version\n"
				"WEFT_SEAL_1 encrypt 00000007 89abcdef " SECRET "\n"
				"CLIENT_RANDOM of another program\n"));
	/* Without a last newline. */
	dump_keylog_free(loaded("WEFT_SEAL_1 auth 00000007 89abcdef " SECRET));
}

/* ---- frames --------------------------------------------------------------------------------- */

/* A sender, and its frames as a capture has them. */
struct sender {
	struct weft_sealed *keys;
	enum weft_seal_mode mode;
	uint64_t now;
};

struct frame {
	uint8_t bytes[WEFT_SEALED_HEAD + BODY + WEFT_CIPHER_TAG_LEN];
	uint8_t text[BODY];
	uint32_t len;
};

static struct sender sender_open(enum weft_seal_mode mode)
{
	const struct weft_sealed_conf conf = {.mode = mode,
					      .initiator = true,
					      .slots = 2,
					      .key_due = WEFT_SEALED_KEY_DUE,
					      .key_due_ns = 1,
					      .bad_tags = WEFT_SEALED_BAD_TAGS,
					      .now = 1};
	struct sender s = {.mode = mode, .now = 1};
	struct weft_exchange_secrets secrets;

	memset(&secrets, 0x55, sizeof(secrets));
	for (unsigned int i = 0; i < sizeof(secrets.initiator); i++)
		secrets.initiator[i] = (uint8_t)i; /* SECRET */
	assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &s.keys), 0);
	return s;
}

/* Its next key seals from now on. */
static void change_key(struct sender *s)
{
	weft_sealed_confirm(s->keys);
	s->now += 10;
	assert_true(weft_sealed_tick(s->keys, cipher, s->now, 1));
}

static struct frame sent(struct sender *s, uint8_t slot, uint32_t len)
{
	struct frame f = {.len = WEFT_SEALED_HEAD + len};
	struct weft_frame_hdr *hdr = (struct weft_frame_hdr *)f.bytes;
	struct weft_cipher_seg seg = {f.bytes + WEFT_SEALED_HEAD, f.bytes + WEFT_SEALED_HEAD, len};
	struct weft_sealed_op op = {.conn = s->keys,
				    .head = f.bytes,
				    .segs = &seg,
				    .num_segs = 1,
				    .slot = slot,
				    .tag = f.bytes + WEFT_SEALED_HEAD + len};

	hdr->dst_conn = weft_put32(CONN);
	hdr->token = weft_put32(TOKEN);
	hdr->magic = weft_put16(WEFT_FRAME_MAGIC);
	hdr->version = WEFT_FRAME_VERSION;
	hdr->type = WEFT_FRAME_DATA;
	hdr->length = weft_put16((uint16_t)f.len);
	for (uint32_t i = 0; i < len; i++)
		f.text[i] = (uint8_t)(i * 7 + slot);
	if (len > 4) /* one message, of PULL's kind */
		memcpy(f.text, (uint8_t[]){(uint8_t)(len - 4), (uint8_t)((len - 4) >> 8), 7, 0}, 4);
	memcpy(f.bytes + WEFT_SEALED_HEAD, f.text, len);
	assert_int_equal(weft_sealed_seal(cipher, &op, 1), 1);
	return f;
}

static enum dump_opened opened(struct dump_keylog *log, const struct frame *f, uint32_t cap,
			       const uint8_t **plain)
{
	/* A buffer of its own, so that the sanitizer finds a read beyond what was captured. */
	uint8_t *captured = malloc(cap);
	enum dump_opened result;

	memcpy(captured, f->bytes, cap);
	result = dump_keylog_open(log, captured, cap, f->len, plain);
	free(captured);
	return result;
}

/* Does it open, with its own text? */
static bool is_opened(struct dump_keylog *log, const struct frame *f)
{
	const struct weft_frame_hdr *hdr;
	const uint8_t *plain;

	if (opened(log, f, f->len + WEFT_CIPHER_TAG_LEN, &plain) != DUMP_OPENED)
		return false;
	hdr = (const struct weft_frame_hdr *)plain;
	assert_int_equal(weft_get16(hdr->flags) & WEFT_FRAME_F_SEALED, 0);
	assert_int_equal(weft_get16(hdr->length), f->len - 8);
	assert_memory_equal(plain + HEAD, f->text, f->len - WEFT_SEALED_HEAD);
	return true;
}

/* The same for one of which the capture has 100 bytes of the body. */
static bool is_opened_cut(struct dump_keylog *log, const struct frame *f)
{
	const uint8_t *plain;
	enum dump_opened result = opened(log, f, WEFT_SEALED_HEAD + 100, &plain);

	assert_int_not_equal(result, DUMP_BAD_TAG);
	return result == DUMP_OPENED && memcmp(plain + HEAD, f->text, 100) == 0;
}

static struct dump_keylog *log_of(const struct sender *s)
{
	return loaded(s->mode == WEFT_SEAL_AUTH ? "WEFT_SEAL_1 auth 00000007 89abcdef " SECRET "\n"
						: "WEFT_SEAL_1 encrypt 00000007 89abcdef " SECRET
						  "\n");
}

static void frames_open_over_changes_of_the_key(void **state)
{
	struct frame late;

	(void)state;
	for (int mode = WEFT_SEAL_AUTH; mode <= WEFT_SEAL_ENCRYPT; mode++) {
		struct sender s = sender_open((enum weft_seal_mode)mode);
		struct dump_keylog *log = log_of(&s);

		for (unsigned int i = 0; i < 5; i++) {
			struct frame a = sent(&s, 0, BODY), b = sent(&s, 1, 0);

			assert_true(is_opened(log, &a));
			late = sent(&s, 0, 20);
			change_key(&s);
			a = sent(&s, 0, 33);
			assert_true(is_opened(log, &a));
			/* They were overtaken. */
			assert_true(is_opened(log, &b));
			assert_true(is_opened(log, &late));
		}
		/* Two keys later a frame is too old. */
		late = sent(&s, 0, 1);
		for (unsigned int i = 0; i < 2; i++) {
			struct frame f;

			change_key(&s);
			f = sent(&s, 0, 2);
			assert_true(is_opened(log, &f));
		}
		assert_false(is_opened(log, &late));
		dump_keylog_free(log);
		weft_sealed_destroy(s.keys);
	}
}

/* The handshake was minutes, and many keys, before the capture. */
static void a_late_capture_finds_its_key(void **state)
{
	struct sender s = sender_open(WEFT_SEAL_ENCRYPT);
	struct dump_keylog *log = log_of(&s);
	struct frame f;

	(void)state;
	for (unsigned int i = 0; i < 101; i++)
		change_key(&s);
	f = sent(&s, 0, BODY);
	assert_false(is_opened_cut(log, &f)); /* no tag confirms any of the keys */
	assert_true(is_opened(log, &f));
	assert_true(is_opened_cut(log, &f));
	change_key(&s);
	f = sent(&s, 0, BODY);
	assert_true(is_opened(log, &f));
	dump_keylog_free(log);

	log = log_of(&s);
	for (unsigned int i = 103; i <= LATE_MOST; i++)
		change_key(&s);
	f = sent(&s, 0, BODY);
	assert_true(is_opened(log, &f));
	dump_keylog_free(log);
	log = log_of(&s);
	change_key(&s);
	f = sent(&s, 0, BODY);
	assert_false(is_opened(log, &f)); /* further than is searched */
	dump_keylog_free(log);
	weft_sealed_destroy(s.keys);
}

/* A capture with a snapshot length has the short frames whole. */
static void frames_that_the_capture_has_cut(void **state)
{
	(void)state;
	for (int mode = WEFT_SEAL_AUTH; mode <= WEFT_SEAL_ENCRYPT; mode++) {
		struct sender s = sender_open((enum weft_seal_mode)mode);
		struct dump_keylog *log = log_of(&s);

		for (unsigned int i = 0; i < 4; i++) {
			struct frame whole = sent(&s, 0, 30), cut = sent(&s, 0, BODY), next;
			struct frame other = sent(&s, 1, BODY);

			assert_true(is_opened(log, &whole));
			assert_true(is_opened_cut(log, &cut));
			change_key(&s);
			/* The first frame of the next key is cut, and an older one is late. */
			next = sent(&s, 0, BODY);
			assert_true(is_opened_cut(log, &next));
			assert_true(is_opened_cut(log, &cut));
			whole = sent(&s, 0, 30);
			assert_true(is_opened(log, &whole));
			assert_true(is_opened_cut(log, &next));
			assert_true(is_opened_cut(log, &cut));
			/* Slot 1 has no frame of this key yet. */
			assert_true(is_opened_cut(log, &other));
			whole = sent(&s, 1, 30);
			assert_true(is_opened(log, &whole));
			assert_true(is_opened_cut(log, &other));
		}
		dump_keylog_free(log);
		weft_sealed_destroy(s.keys);
	}
}

static void what_does_not_open(void **state)
{
	struct sender s = sender_open(WEFT_SEAL_ENCRYPT);
	const struct frame f = sent(&s, 0, BODY);
	struct dump_keylog *log;
	const uint8_t *plain;
	struct frame g;

	(void)state;
	/* Another connection's keys, another direction's, another mode's. */
	log = loaded("WEFT_SEAL_1 encrypt 00000008 89abcdef " SECRET "\n");
	assert_int_equal(opened(log, &f, f.len + WEFT_CIPHER_TAG_LEN, &plain), DUMP_NO_KEY);
	dump_keylog_free(log);
	log = loaded("WEFT_SEAL_1 encrypt 00000007 89abcdef "
		     "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n");
	/* More often than keys are searched. */
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(opened(log, &f, f.len + WEFT_CIPHER_TAG_LEN, &plain),
				 DUMP_BAD_TAG);
	dump_keylog_free(log);
	log = loaded("WEFT_SEAL_1 auth 00000007 89abcdef " SECRET "\n");
	assert_int_equal(opened(log, &f, f.len + WEFT_CIPHER_TAG_LEN, &plain), DUMP_BAD_TAG);
	dump_keylog_free(log);
	/* A changed bit, wherever it is behind the fields that name the key. */
	log = log_of(&s);
	for (uint32_t at = HEAD; at < f.len + WEFT_CIPHER_TAG_LEN; at++) {
		g = f;
		g.bytes[at] ^= (uint8_t)(1u << at % 8);
		assert_int_equal(opened(log, &g, g.len + WEFT_CIPHER_TAG_LEN, &plain),
				 DUMP_BAD_TAG);
	}
	assert_true(is_opened(log, &f));
	dump_keylog_free(log);
	weft_sealed_destroy(s.keys);
}

/* A connection number and token may come again, and both ends write the same line. */
static void several_keys_of_one_name(void **state)
{
	struct sender s = sender_open(WEFT_SEAL_ENCRYPT);
	struct frame f = sent(&s, 0, BODY);
	struct dump_keylog *log;

	(void)state;
	log = loaded("WEFT_SEAL_1 encrypt 00000007 89abcdef "
		     "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
		     "WEFT_SEAL_1 encrypt 00000007 89abcdef " SECRET "\n"
		     "WEFT_SEAL_1 encrypt 00000007 89abcdef " SECRET "\n"
		     "WEFT_SEAL_1 encrypt 00000007 89abcdef "
		     "fe0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n");
	assert_true(is_opened(log, &f));
	change_key(&s);
	f = sent(&s, 0, BODY);
	assert_true(is_opened(log, &f));
	dump_keylog_free(log);
	weft_sealed_destroy(s.keys);
}

/* Captures that are read twice begin with the first keys both times. */
static void a_second_pass_begins_with_the_first_keys(void **state)
{
	struct sender s = sender_open(WEFT_SEAL_ENCRYPT);
	struct dump_keylog *log = log_of(&s);
	struct frame f[4];

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		f[i] = sent(&s, 0, BODY);
		change_key(&s);
	}
	for (unsigned int pass = 0; pass < 3; pass++) {
		for (unsigned int i = 0; i < 4; i++)
			assert_true(is_opened(log, &f[i]));
		assert_false(is_opened(log, &f[0]));
		assert_true(dump_keylog_rewind(log));
	}
	assert_false(is_opened_cut(log, &f[1])); /* no whole frame of this pass */
	dump_keylog_free(log);
	weft_sealed_destroy(s.keys);
	assert_true(dump_keylog_rewind(NULL));
}

/* ---- the plain frame in a sealed one --------------------------------------------------------- */

/* Headers before the lane header: Ethernet, a VLAN, IPv4 and UDP. @return their length */
static uint32_t put_outer(uint8_t *p, bool vlan, bool udp, uint32_t lane_len)
{
	const uint16_t len = (uint16_t)(lane_len + sizeof(struct rte_udp_hdr));
	uint32_t at = 12;

	memset(p, 0x22, at);
	if (vlan) {
		memcpy(p + at, "\x81\x00\x00\x07", 4);
		at += 4;
	}
	memcpy(p + at, udp ? "\x08\x00" : "\x88\xb5", 2);
	at += 2;
	if (!udp)
		return at;
	*(struct rte_ipv4_hdr *)(p + at) = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16((uint16_t)(len + sizeof(struct rte_ipv4_hdr))),
		.next_proto_id = IPPROTO_UDP,
		.src_addr = RTE_BE32(0x0a000001),
		.dst_addr = RTE_BE32(0x0a000002)};
	((struct rte_ipv4_hdr *)(p + at))->hdr_checksum =
		rte_ipv4_cksum((struct rte_ipv4_hdr *)(p + at));
	at += (uint32_t)sizeof(struct rte_ipv4_hdr);
	*(struct rte_udp_hdr *)(p + at) =
		(struct rte_udp_hdr){.dgram_len = rte_cpu_to_be_16(len), .dgram_cksum = 0x1234};
	return at + (uint32_t)sizeof(struct rte_udp_hdr);
}

/* A sealed frame with one message, as a capture with @p snap bytes of it has it. */
static void is_plain_when_opened(struct sender *s, struct dump_keylog *log, bool vlan, bool udp,
				 uint32_t snap)
{
	const uint32_t len = WEFT_SEALED_HEAD + BODY + WEFT_CIPHER_TAG_LEN;
	struct dump_frame sealed = {.keylog = log}, plain = {0};
	uint8_t bytes[64 + sizeof(((struct frame *)0)->bytes)], *out;
	struct dump_view v;
	struct frame f;
	uint32_t outer;

	f = sent(s, 0, BODY);
	outer = put_outer(bytes, vlan, udp, len);
	memcpy(bytes + outer, f.bytes, len);
	sealed.data = bytes;
	sealed.len = outer + len;
	sealed.caplen = snap && snap < sealed.len ? snap : sealed.len;
	dump_decode(&sealed, &v);
	assert_int_equal(v.what, DUMP_LANE);
	out = malloc(sealed.caplen); /* the sanitizer finds a write beyond it */
	plain.caplen = dump_decode_plain(&sealed, &v, out, &plain.len);
	plain.data = out;
	assert_int_equal(plain.len, sealed.len - 8 - 16 + 4);
	assert_int_equal(plain.caplen, sealed.caplen < sealed.len ? sealed.caplen - 8 : plain.len);
	dump_decode(&plain, &v);
	if (v.what != DUMP_LANE)
		fail_msg("%s", v.wrong);
	assert_false(v.flags & (WEFT_FRAME_F_SEALED | WEFT_FRAME_F_KEY_PHASE));
	assert_int_equal(v.vlan, vlan ? 7 : 0);
	assert_int_equal(v.body_len, BODY);
	assert_int_equal(v.body_cap, snap ? snap - outer - WEFT_SEALED_HEAD : BODY);
	assert_memory_equal(v.body, f.text, v.body_cap);
	if (!snap) { /* its CRC32C is right: a flipped bit is found */
		out[outer + HEAD + 9] ^= 1;
		dump_decode(&plain, &v);
		assert_true(v.damaged);
	}
	assert_int_equal(dump_decode_plain(&plain, &v, bytes, &plain.len), 0);
	free(out);
}

static void an_opened_frame_is_a_plain_one(void **state)
{
	struct sender s = sender_open(WEFT_SEAL_ENCRYPT);
	struct dump_keylog *log = log_of(&s);

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		is_plain_when_opened(&s, log, i & 1, i & 2, 0);
		is_plain_when_opened(&s, log, i & 1, i & 2, 200);
		if (i == 3)
			change_key(&s);
	}
	dump_keylog_free(log);
	weft_sealed_destroy(s.keys);
}

static int set_up(void **state)
{
	char why[256];
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	cipher = weft_cipher_create(why, sizeof(why));
	return cipher ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	weft_cipher_destroy(cipher);
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_lines_are_refused_with_their_number),
		cmocka_unit_test(files_without_a_key_are_refused),
		cmocka_unit_test(other_lines_mean_nothing),
		cmocka_unit_test(frames_open_over_changes_of_the_key),
		cmocka_unit_test(a_late_capture_finds_its_key),
		cmocka_unit_test(frames_that_the_capture_has_cut),
		cmocka_unit_test(what_does_not_open),
		cmocka_unit_test(several_keys_of_one_name),
		cmocka_unit_test(a_second_pass_begins_with_the_first_keys),
		cmocka_unit_test(an_opened_frame_is_a_plain_one),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
