/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as doc/wire.md says, and frames as it does not allow. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture_util.h"
#include "dump/frames.h"
#include "frame/frame.h"

#define L2 14

struct built {
	uint8_t bytes[4096];
	uint32_t len;
};

/* Over Weft's own ethertype, with CRC32C. */
static struct weft_frame_hdr *build(struct built *b, uint8_t type, uint16_t flags, const void *body,
				    size_t len)
{
	struct weft_frame_hdr *h = (void *)(b->bytes + L2);

	memset(b, 0, sizeof(*b));
	memcpy(b->bytes + 12, "\x88\xb5", 2);
	*h = (struct weft_frame_hdr){.magic = weft_put16(WEFT_FRAME_MAGIC),
				     .version = WEFT_FRAME_VERSION,
				     .type = type,
				     .flags = weft_put16(flags | WEFT_FRAME_F_CRC32C),
				     .length = weft_put16((uint16_t)(sizeof(*h) + len)),
				     .seq = weft_put32(7),
				     .ts_hold = weft_put16(WEFT_FRAME_NO_ECHO)};
	if (len)
		memcpy(h + 1, body, len);
	b->len = (uint32_t)(L2 + sizeof(*h) + len + 4);
	return h;
}

static void seal(struct built *b)
{
	const uint8_t *h = b->bytes + L2;
	weft_le32 crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, h, b->len - L2 - 4));

	memcpy(b->bytes + b->len - 4, &crc, sizeof(crc));
}

static struct dump_frame frame_of(const struct built *b, uint32_t caplen)
{
	return (struct dump_frame){.data = b->bytes, .caplen = caplen, .len = b->len, .number = 1};
}

static struct dump_view decoded(struct built *b)
{
	struct dump_frame frame = frame_of(b, b->len);
	struct dump_view view;

	seal(b);
	dump_decode(&frame, &view);
	return view;
}

/* What is printed of it. To be freed. */
static char *printed(struct built *b, bool json)
{
	static struct dump_file file = {.name = "f", .iface = {{.name = "i"}}};
	struct dump_frame frame = frame_of(b, b->len);
	struct dump_view view = decoded(b);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	(json ? dump_frame_json : dump_frame_text)(out, &file, &frame, &view);
	fclose(out);
	return text;
}

static void expect_wrong(struct built *b, const char *why)
{
	struct dump_view view = decoded(b);

	assert_int_equal(view.what, DUMP_WRONG);
	if (!strstr(view.wrong, why))
		fail_msg("'%s' instead of '%s'", view.wrong, why);
}

static const uint8_t eager[] = {16, 0, 2, 0, 7, 0, 0,   0,   8,   0,
				0,  0, 0, 0, 0, 0, 'd', 'a', 't', 'a'};

static void messages_are_printed_with_their_fields(void **state)
{
	struct built b;
	char *text;

	(void)state;
	build(&b, WEFT_FRAME_DATA, WEFT_FRAME_F_RETX, eager, sizeof(eager));
	text = printed(&b, false);
	assert_non_null(strstr(text, "type DATA"));
	assert_non_null(
		strstr(text, "\n    eager seq 0x00000007 tag 0x0000000000000008 + 4 bytes"));
	assert_non_null(strstr(text, " | CRC32C RETX\n"));
	free(text);
	text = printed(&b, true);
	assert_non_null(strstr(text, "\"messages\":[{\"name\":\"eager\",\"seq\":\"0x00000007\","
				     "\"tag\":\"0x0000000000000008\",\"bytes\":4}]}}\n"));
	free(text);
}

static void what_is_not_as_documented_is_wrong(void **state)
{
	struct weft_frame_part part = {.offset = weft_put16(4), .total = weft_put16(100)};
	struct weft_frame_hdr *h;
	uint8_t bad[sizeof(eager)];
	struct built b;

	(void)state;
	build(&b, WEFT_FRAME_ACK, 0, NULL, 0)->version = WEFT_FRAME_VERSION + 1;
	expect_wrong(&b, "another version than this weft-dump");
	build(&b, WEFT_FRAME_ACK, 0, NULL, 0)->magic = weft_put16(1);
	expect_wrong(&b, "not that of a lane frame");
	build(&b, 119, 0, NULL, 0);
	expect_wrong(&b, "the type of the frame is unknown");
	build(&b, WEFT_FRAME_ACK, 0x40, NULL, 0);
	expect_wrong(&b, "unknown flags");
	build(&b, WEFT_FRAME_HELLO, 0, eager, sizeof(eager));
	expect_wrong(&b, "too short for its type");
	build(&b, WEFT_FRAME_ACK, WEFT_FRAME_F_SACK, "\x41\0\0\0", 4);
	expect_wrong(&b, "the SACK block is malformed");
	build(&b, WEFT_FRAME_ACK, WEFT_FRAME_F_ECN, "\x01\0\0\0", 4);
	expect_wrong(&b, "the ECN block is malformed");
	build(&b, WEFT_FRAME_ACK, WEFT_FRAME_F_PROGRESS, "\x01\0\0", 3);
	expect_wrong(&b, "the progress block is malformed");
	build(&b, WEFT_FRAME_DATA, 0, eager, sizeof(eager) - 1);
	expect_wrong(&b, "the messages do not fill the body");
	memcpy(bad, eager, sizeof(eager));
	bad[2] = 32;
	build(&b, WEFT_FRAME_DATA, 0, bad, sizeof(bad));
	expect_wrong(&b, "the head of a message is malformed");
	build(&b, WEFT_FRAME_PART, 0, &part, sizeof(part));
	expect_wrong(&b, "the part does not lie in its frame");
	h = build(&b, WEFT_FRAME_HELLO_RETRY, 0, eager, 8);
	h->flags = weft_put16(0);
	expect_wrong(&b, "the frame has no CRC32C");
	h = build(&b, WEFT_FRAME_ACK, 0, NULL, 0);
	h->length = weft_put16(43 + 8);
	expect_wrong(&b, "does not fit the frame");
}

static void a_changed_bit_is_noticed(void **state)
{
	struct dump_frame frame;
	struct dump_view view;
	struct built b;

	(void)state;
	build(&b, WEFT_FRAME_DATA, 0, eager, sizeof(eager));
	seal(&b);
	b.bytes[L2 + 50] ^= 4;
	frame = frame_of(&b, b.len);
	dump_decode(&frame, &view);
	assert_int_equal(view.what, DUMP_WRONG);
	assert_true(view.damaged);
}

static void a_reset_of_another_version_is_none_of_the_wrong(void **state)
{
	const struct weft_frame_reset reset = {.reason = weft_put16(WEFT_RESET_VERSION)};
	struct built b;
	char *text;

	(void)state;
	build(&b, WEFT_FRAME_RESET, 0, &reset, sizeof(reset))->version = 9;
	assert_int_equal(decoded(&b).what, DUMP_LANE);
	text = printed(&b, false);
	assert_non_null(strstr(text, "version 9 type RESET"));
	assert_non_null(strstr(text, "reason VERSION"));
	free(text);
}

/* What the capture has cut can't be judged, and what is there is shown. */
static void a_frame_that_the_capture_cut_is_no_wrong_one(void **state)
{
	struct weft_frame_hello hello = {.conn = weft_put32(5)};
	struct dump_frame frame;
	struct dump_view view;
	struct dump_msg m;
	struct built b;
	uint32_t cap, at;

	(void)state;
	build(&b, WEFT_FRAME_DATA, 0, eager, sizeof(eager));
	seal(&b);
	for (cap = L2 + sizeof(struct weft_frame_hdr); cap < b.len; cap++) {
		frame = frame_of(&b, cap);
		dump_decode(&frame, &view);
		assert_int_equal(view.what, DUMP_LANE);
		assert_true(view.cut);
		for (at = 0; dump_msg_next(&view, &at, &m);)
			assert_null(dump_msg_wrong(&m));
	}
	build(&b, WEFT_FRAME_HELLO, 0, &hello, sizeof(hello));
	seal(&b);
	frame = frame_of(&b, L2 + sizeof(struct weft_frame_hdr) + 10);
	dump_decode(&frame, &view);
	assert_int_equal(view.what, DUMP_LANE);
}

/* @behaviour T10 */
static void text_of_a_peer_commands_no_terminal(void **state)
{
	static const char hostile[] = "\033]0;owned\007\x9b"
				      "2J\r\n\"";
	struct {
		struct weft_frame_msg msg;
		struct weft_wire_wireup w;
		struct weft_wire_record r;
		char text[sizeof(hostile) - 1];
	} __attribute__((packed)) m = {.msg = {.am_id = WEFT_WIRE_WIREUP}};
	struct built b;
	char *text;
	int json;

	(void)state;
	m.msg.length = weft_put16(sizeof(m) - sizeof(m.msg));
	m.w.type = WEFT_WIREUP_ERROR;
	m.w.major = WEFT_WIRE_MAJOR;
	m.w.total = weft_put16(sizeof(m.r) + sizeof(m.text));
	m.r.type = weft_put16(WEFT_RECORD_TEXT);
	m.r.length = weft_put16(sizeof(m.text));
	memcpy(m.text, hostile, sizeof(m.text));
	build(&b, WEFT_FRAME_DATA, 0, &m, sizeof(m));
	for (json = 0; json <= 1; json++) {
		text = printed(&b, json);
		assert_non_null(strstr(text, "\"?]0;owned??2J??"));
		for (char *p = text; *p; p++)
			assert_true((unsigned char)*p >= 0x20 || *p == '\n');
		if (json)
			assert_non_null(strstr(text, "J??\\\"\""));
		free(text);
	}
}

static void other_frames_are_not_ours(void **state)
{
	static const uint8_t arp[] = {0, 1, 8, 0, 6, 4, 0, 1};
	struct dump_frame frame;
	struct dump_view view;
	struct built b = {.len = 60};

	(void)state;
	memcpy(b.bytes + 12, "\x86\xdd", 2);
	frame = frame_of(&b, b.len);
	dump_decode(&frame, &view);
	assert_int_equal(view.what, DUMP_OTHER);
	memcpy(b.bytes + 12, "\x08\x06", 2);
	memcpy(b.bytes + 14, arp, sizeof(arp));
	dump_decode(&frame, &view);
	assert_int_equal(view.what, DUMP_ARP);
	for (frame.caplen = 0; frame.caplen < 40; frame.caplen++)
		dump_decode(&frame, &view);
}

/* ---- neighbour discovery, ICMPv6 ---- */

struct six {
	struct rte_ether_hdr eth;
	struct rte_ipv6_hdr ip;
	uint8_t body[200];
} __attribute__((packed, aligned(2)));

#define IP6(n) 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n

static const uint8_t ip6_a[] = {IP6(1)}, ip6_b[] = {IP6(2)};

/* A message of ICMPv6 from a to b, as hosts accept it. */
static struct six six_of(const void *body, uint16_t len)
{
	struct six s = {.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6),
			.eth.src_addr = {{2, 0, 0, 0, 0, 1}},
			.ip = {.vtc_flow = RTE_BE32(6u << 28),
			       .payload_len = rte_cpu_to_be_16(len),
			       .proto = 58,
			       .hop_limits = 255}};

	memcpy(&s.ip.src_addr, ip6_a, 16);
	memcpy(&s.ip.dst_addr, ip6_b, 16);
	memcpy(s.body, body, len);
	return s;
}

static void fill_checksum(struct six *s)
{
	uint16_t sum;

	memset(s->body + 2, 0, 2);
	sum = (uint16_t)~weft_ip6_sum(&s->ip, s->body, weft_be16(s->ip.payload_len));
	memcpy(s->body + 2, &sum, sizeof(sum));
}

/* The frame, in memory of exactly the captured length. */
static struct dump_view six_cut(const struct six *s, uint32_t caplen, uint32_t len)
{
	uint8_t *exact = malloc(caplen);
	struct dump_frame frame = {.data = exact, .caplen = caplen, .len = len};
	struct dump_view view;

	assert_non_null(exact);
	memcpy(exact, s, caplen);
	dump_decode(&frame, &view);
	free(exact);
	return view;
}

static struct dump_view six_view(const struct six *s, uint32_t caplen)
{
	return six_cut(s, caplen, 54u + weft_be16(s->ip.payload_len));
}

static struct dump_view six_decoded(struct six *s)
{
	fill_checksum(s);
	return six_view(s, 54u + weft_be16(s->ip.payload_len));
}

static const uint8_t solicit[32] = {135, 0, 0, 0, 0, 0, 0, 0, IP6(2), 1, 1, 2, 0, 0, 0, 0, 9};

static void neighbour_discovery_is_read_as_arp(void **state)
{
	struct dump_view view;
	struct six s;

	(void)state;
	s = six_of(solicit, sizeof(solicit));
	view = six_decoded(&s);
	assert_int_equal(view.what, DUMP_ND);
	assert_false(view.neighbour.answer);
	assert_memory_equal(view.neighbour.from.b, ip6_a, 16);
	assert_memory_equal(view.neighbour.to.b, ip6_b, 16);
	assert_int_equal(view.neighbour.mac[5], 9);
	s.body[0] = 136; /* b is at 02:00:00:00:00:09, from a */
	s.body[24] = 2;
	view = six_decoded(&s);
	assert_int_equal(view.what, DUMP_ND);
	assert_true(view.neighbour.answer);
	assert_memory_equal(view.neighbour.from.b, ip6_b, 16);
	assert_int_equal(view.neighbour.mac[5], 9);
	/* Without the option it is the MAC address of the frame. */
	s = six_of(solicit, 24);
	view = six_decoded(&s);
	assert_int_equal(view.what, DUMP_ND);
	assert_int_equal(view.neighbour.mac[5], 1);
}

static void expect_no_neighbour(struct six s)
{
	struct dump_view view = six_decoded(&s);

	assert_int_equal(view.what, DUMP_OTHER);
	assert_int_equal(view.icmp.error, ICMP_ERROR_NONE);
}

static void hosts_drop_what_is_not_read_as_neighbour_discovery(void **state)
{
	const struct six good = six_of(solicit, sizeof(solicit));
	struct six s = good;
	uint32_t cap;

	(void)state;
	s.ip.hop_limits = 254;
	expect_no_neighbour(s);
	s = good;
	s.body[1] = 1; /* code */
	expect_no_neighbour(s);
	s = good;
	s.body[8] = 0xff; /* the target is a group */
	expect_no_neighbour(s);
	s = good;
	memset(s.body + 8, 0, 16);
	expect_no_neighbour(s);
	s = good;
	s.body[25] = 0; /* an option without end */
	expect_no_neighbour(s);
	s = good;
	s.body[25] = 2; /* beyond the message */
	expect_no_neighbour(s);
	s = good;
	s.ip.payload_len = RTE_BE16(31);
	expect_no_neighbour(s);
	s = good;
	s.ip.payload_len = RTE_BE16(23); /* the target is not all there */
	expect_no_neighbour(s);
	s = good;
	s.ip.vtc_flow = RTE_BE32(5u << 28);
	expect_no_neighbour(s);
	s = good;
	fill_checksum(&s);
	s.body[31] ^= 1;
	assert_int_equal(six_view(&s, 54 + 32).what, DUMP_OTHER);
	/* One that the capture has cut behind its target is read. */
	for (cap = 14; cap < 54 + 32; cap++)
		assert_int_equal(six_view(&s, cap).what, cap < 54 + 24 ? DUMP_OTHER : DUMP_ND);
	s.ip.payload_len = RTE_BE16(33); /* beyond the frame */
	assert_int_equal(six_cut(&s, 54 + 24, 54 + 32).what, DUMP_OTHER);
}

/* A router reports that a UDP packet of b to a did not arrive. */
static struct six error_of(uint8_t type, uint8_t code)
{
	uint8_t body[8 + 40 + 8 + 20] = {type, code, 0, 0, 0, 1, 0, 2, 0x60};

	body[8 + 6] = 17;
	memcpy(body + 8 + 8, ip6_b, 16);
	memcpy(body + 8 + 24, ip6_a, 16);
	return six_of(body, sizeof(body));
}

static void errors_of_icmpv6_are_read(void **state)
{
	static const struct {
		uint8_t type, code;
		enum dump_icmp_error error;
	} of[] = {
		{1, 0, ICMP_ERROR_UNREACHABLE}, {1, 1, ICMP_ERROR_PROHIBITED},
		{1, 2, ICMP_ERROR_UNREACHABLE}, {1, 3, ICMP_ERROR_UNREACHABLE},
		{1, 4, ICMP_ERROR_NO_PORT},     {1, 5, ICMP_ERROR_PROHIBITED},
		{1, 6, ICMP_ERROR_PROHIBITED},  {2, 0, ICMP_ERROR_TOO_LONG},
		{3, 0, ICMP_ERROR_TIME},        {3, 1, ICMP_ERROR_TIME},
		{4, 0, ICMP_ERROR_NONE},        {128, 0, ICMP_ERROR_NONE},
	};
	struct dump_view view;
	struct six s;
	uint32_t cap;

	(void)state;
	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		s = error_of(of[i].type, of[i].code);
		view = six_decoded(&s);
		assert_int_equal(view.what, DUMP_OTHER);
		assert_int_equal(view.icmp.error, of[i].error);
		assert_int_equal(view.icmp.mtu, of[i].error == ICMP_ERROR_TOO_LONG ? 0x10002 : 0);
		if (of[i].error == ICMP_ERROR_NONE)
			continue;
		assert_memory_equal(view.icmp.src.b, ip6_b, 16);
		assert_memory_equal(view.icmp.dst.b, ip6_a, 16);
	}
	s = error_of(1, 1);
	fill_checksum(&s);
	for (cap = 14; cap <= 54 + 76; cap++)
		assert_int_equal(six_view(&s, cap).icmp.error,
				 cap < 54 + 56 ? ICMP_ERROR_NONE : ICMP_ERROR_PROHIBITED);
	s.body[70] ^= 1;
	assert_int_equal(six_view(&s, 54 + 76).icmp.error, ICMP_ERROR_NONE);
	s = error_of(1, 1);
	s.body[8 + 6] = 6; /* the packet is TCP's */
	assert_int_equal(six_decoded(&s).icmp.error, ICMP_ERROR_NONE);
	s = error_of(1, 1);
	s.body[8] = 0x45;
	assert_int_equal(six_decoded(&s).icmp.error, ICMP_ERROR_NONE);
}

/* ---- message records ---- */

static struct dump_view record_of(struct built *b, uint32_t caplen)
{
	struct dump_frame frame = frame_of(b, caplen);
	struct dump_view view;

	frame.record = true;
	dump_decode(&frame, &view);
	return view;
}

static struct weft_record_head *build_record(struct built *b, enum weft_record_kind kind,
					     const void *body, size_t len)
{
	struct weft_record_head *r = (void *)b->bytes;

	memset(b, 0, sizeof(*b));
	*r = (struct weft_record_head){
		.magic = weft_put16(WEFT_RECORD_MAGIC),
		.version = WEFT_RECORD_VERSION,
		.kind = (uint8_t)kind,
		.am_id = kind == WEFT_RECORD_MESSAGE ? WEFT_WIRE_EAGER : 0,
		.length = weft_put32((uint32_t)len),
		.from = weft_put64(1),
		.to = weft_put64(2),
	};
	memcpy(r + 1, body, len);
	b->len = (uint32_t)(sizeof(*r) + len);
	return r;
}

static void expect_wrong_record(struct built *b, const char *why)
{
	struct dump_view view = record_of(b, b->len);

	assert_int_equal(view.what, DUMP_WRONG);
	if (!strstr(view.wrong, why))
		fail_msg("'%s' instead of '%s'", view.wrong, why);
}

/* @behaviour Y29 */
static void a_record_is_a_message_or_an_operation(void **state)
{
	const struct weft_record_native native = {.offset = weft_put64(5)};
	struct weft_record_head *r;
	struct dump_view view;
	struct dump_msg m;
	uint32_t at = 0, seq;
	struct built b;

	(void)state;
	r = build_record(&b, WEFT_RECORD_MESSAGE, eager + 4, 16);
	view = record_of(&b, b.len);
	assert_int_equal(view.what, DUMP_RECORD);
	assert_true(dump_msg_next(&view, &at, &m));
	assert_int_equal(m.id, WEFT_WIRE_EAGER);
	assert_int_equal(m.len, 16);
	assert_null(dump_msg_wrong(&m));
	assert_false(dump_msg_next(&view, &at, &m));
	/* Both ends' records of a message are known by the same numbers; others' are not. */
	seq = weft_get32(view.made.seq);
	b.bytes[sizeof(*r)]++;
	assert_int_not_equal(weft_get32(record_of(&b, b.len).made.seq), seq);
	r->lane = 1;
	assert_int_not_equal(weft_get32(record_of(&b, b.len).made.token),
			     weft_get32(view.made.token));
	/* The other direction's names fit to this one's. */
	view = record_of(&b, b.len);
	r->from = weft_put64(2);
	r->to = weft_put64(1);
	assert_int_equal(weft_get32(view.made.dst_conn) & 0xffff,
			 weft_get16(record_of(&b, b.len).made.src_conn));
	r = build_record(&b, WEFT_RECORD_READ, &native, sizeof(native));
	r->length = weft_put32(1 << 20);
	view = record_of(&b, b.len);
	at = 0;
	assert_int_equal(view.what, DUMP_RECORD);
	assert_false(dump_msg_next(&view, &at, &m));
}

/* @behaviour Y29 */
static void what_is_no_record_is_wrong(void **state)
{
	const struct weft_record_native native = {.offset = weft_put64(5)};
	struct weft_record_head *r;
	struct dump_view view;
	struct built b;

	(void)state;
	build_record(&b, WEFT_RECORD_MESSAGE, eager + 4, 16)->magic = weft_put16(1);
	expect_wrong_record(&b, "not that of a message record");
	build_record(&b, WEFT_RECORD_MESSAGE, eager + 4, 16)->version = 9;
	expect_wrong_record(&b, "another version than this weft-dump");
	build_record(&b, WEFT_RECORD_KINDS, eager + 4, 16);
	expect_wrong_record(&b, "the kind of the record is unknown");
	build_record(&b, WEFT_RECORD_MESSAGE, eager + 4, 16)->flags = weft_put16(2);
	expect_wrong_record(&b, "unknown flags");
	build_record(&b, WEFT_RECORD_MESSAGE, eager + 4, 16)->length = weft_put32(17);
	expect_wrong_record(&b, "the length of the message differs");
	build_record(&b, WEFT_RECORD_MESSAGE, eager + 4, 16)->am_id = 32;
	expect_wrong_record(&b, "the message id is not from 1 to 31");
	build_record(&b, WEFT_RECORD_READ, &native, sizeof(native) - 1);
	expect_wrong_record(&b, "the length is not that of a native operation");
	build_record(&b, WEFT_RECORD_MESSAGE, eager + 4, 16);
	b.len = sizeof(*r) - 1;
	expect_wrong_record(&b, "too short");
	/* Cut by a snaplen: nothing is wrong with it. */
	build_record(&b, WEFT_RECORD_MESSAGE, eager + 4, 16);
	view = record_of(&b, sizeof(*r) + 3);
	assert_int_equal(view.what, DUMP_RECORD);
	assert_true(view.cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_printed_with_their_fields),
		cmocka_unit_test(what_is_not_as_documented_is_wrong),
		cmocka_unit_test(a_changed_bit_is_noticed),
		cmocka_unit_test(a_reset_of_another_version_is_none_of_the_wrong),
		cmocka_unit_test(a_frame_that_the_capture_cut_is_no_wrong_one),
		cmocka_unit_test(text_of_a_peer_commands_no_terminal),
		cmocka_unit_test(other_frames_are_not_ours),
		cmocka_unit_test(neighbour_discovery_is_read_as_arp),
		cmocka_unit_test(hosts_drop_what_is_not_read_as_neighbour_discovery),
		cmocka_unit_test(errors_of_icmpv6_are_read),
		cmocka_unit_test(a_record_is_a_message_or_an_operation),
		cmocka_unit_test(what_is_no_record_is_wrong),
	};

	return cmocka_run_group_tests_name("dump decode", tests, NULL, NULL);
}
