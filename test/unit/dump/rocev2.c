/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of RoCE v2 are decoded, also cut and crafted ones. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump/decode.h"
#include "dump/frames.h"
#include "rocev2_util.h"

static struct dump_view decoded(struct packet *p)
{
	struct dump_frame frame = build(p);
	struct dump_view view;

	dump_decode(&frame, &view);
	assert_int_equal(view.what, DUMP_ROCE);
	return view;
}

/* What is printed of it. To be freed. */
static char *printed(struct packet *p, bool json)
{
	static struct dump_file file = {.name = "f", .iface = {{.name = "i"}}};
	struct dump_frame frame = build(p);
	struct dump_view view;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	dump_decode(&frame, &view);
	(json ? dump_frame_json : dump_frame_text)(out, &file, &frame, &view);
	fclose(out);
	return text;
}

static void expect_text(struct packet p, const char *text)
{
	char *all = printed(&p, false);

	if (!strstr(all, text))
		fail_msg("'%s' is not in '%s'", text, all);
	free(all);
}

/* ---- decoding ---- */

static const struct packet read_request = {
	.opcode = READ_REQUEST,
	.from = 1,
	.to = 2,
	.qp = 0x11,
	.psn = 0xabcdef,
	.ack_request = true,
	.more = {0x12, 0x34, 0, 0, 0, 0, 0x56, 0x78, 0, 0, 0, 9, 0, 1, 0, 0},
	.more_len = 16,
};

static void headers_are_read_over_ip4_ip6_and_vlan(void **state)
{
	struct packet p = read_request;
	struct dump_view v;

	(void)state;
	for (p.outer = IP4; p.outer <= VLAN; p.outer++) {
		p.ecn = 3;
		v = decoded(&p);
		assert_int_equal(v.src.kind, p.outer == IP6 ? ADDRESS_IP6 : ADDRESS_IP4);
		assert_int_equal(v.vlan, p.outer == VLAN ? 5 : 0);
		assert_int_equal(v.ecn, 3);
		assert_null(v.roce.wrong);
		assert_false(v.roce.cut);
		assert_true(v.roce.bth && v.roce.ack_request);
		assert_int_equal(v.roce.dst_qp, 0x11);
		assert_int_equal(v.roce.psn, 0xabcdef);
		assert_true(v.roce.has == (ROCEV2_REQUEST | ROCEV2_RETH));
		assert_true(v.roce.remote == 0x1234000000005678);
		assert_int_equal(v.roce.length, 65536);
		assert_int_equal(v.roce.payload_len, 0);
	}
}

static void each_kind_of_packet_has_its_line(void **state)
{
	static const struct {
		uint8_t syndrome;
		const char *text;
	} answers[] = {
		{0x1f, "RC ACKNOWLEDGE QP 0x21 PSN 7 ACK MSN 5\n"},
		{SYNDROME_RNR | 12, "RNR NAK MSN 5 timer 640 us\n"},
		{SYNDROME_RNR, "RNR NAK MSN 5 timer 655360 us\n"},
		{SYNDROME_NAK, "NAK PSN sequence MSN 5\n"},
		{SYNDROME_NAK | 1, "NAK invalid request"},
		{SYNDROME_NAK | 2, "NAK remote access"},
		{SYNDROME_NAK | 3, "NAK remote operational"},
		{SYNDROME_NAK | 4, "NAK of another kind"},
		{0x40, "NAK of another kind"},
	};
	struct packet p = read_request;

	(void)state;
	expect_text(p, "10.0.0.1:50000 > 10.0.0.2:4791 roce RC RDMA_READ_REQUEST QP 0x11 "
		       "PSN 11259375 length 65536 ACK request\n");
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		expect_text(answer_of(answers[i].syndrome), answers[i].text);
	expect_text((struct packet){.opcode = SEND_ONLY_IMM,
				    .more_len = 4,
				    .more = {1, 2, 3, 4},
				    .payload = 9,
				    .pad = 3},
		    "RC SEND_ONLY_WITH_IMMEDIATE QP 0x0 PSN 0 immediate 0x01020304 + 9 bytes\n");
	expect_text((struct packet){.opcode = FETCH_ADD, .more_len = 28},
		    "RC FETCH_ADD QP 0x0 PSN 0\n");
	expect_text((struct packet){.opcode = 0x12, .more_len = 12},
		    "RC ATOMIC_ACKNOWLEDGE QP 0x0 PSN 0 ACK MSN 0\n");
	expect_text((struct packet){.opcode = UD_SEND_ONLY,
				    .more_len = 8,
				    .more = {0, 0, 0, 1, 0, 0, 1, 2},
				    .payload = 4},
		    "UD SEND_ONLY QP 0x0 PSN 0 from QP 0x102 + 4 bytes\n");
	expect_text((struct packet){.opcode = CNP, .payload = 16, .qp = 0x33},
		    " CNP QP 0x33 PSN 0 + 16 bytes\n");
	expect_text((struct packet){.opcode = XRC_SEND_ONLY, .payload = 8}, "XRC SEND_ONLY");
	expect_text((struct packet){.opcode = 0x1f, .payload = 8}, "roce opcode 0x1f QP");
	expect_text((struct packet){.opcode = 0xff, .payload = 8}, "roce opcode 0xff QP");
}

static void each_packet_is_an_object(void **state)
{
	struct packet p = answer_of(SYNDROME_RNR | 1);
	char *text = printed(&p, true);

	(void)state;
	assert_non_null(strstr(text, "\"kind\":\"roce\",\"roce\":{\"cut\":false,\"opcode\":17,"
				     "\"transport\":\"RC\",\"operation\":\"ACKNOWLEDGE\",\"qp\":33,"
				     "\"psn\":7,"));
	assert_non_null(strstr(text, "\"answer\":\"RNR NAK\",\"msn\":5,\"timer_us\":10}}\n"));
	free(text);
}

/* Decodes the packet in memory of exactly the captured length. */
static struct dump_view cut_view(struct packet *p, uint32_t caplen)
{
	struct dump_frame frame = build(p);
	uint8_t *exact = malloc(caplen);
	struct dump_view v;

	assert_non_null(exact);
	memcpy(exact, p->bytes, caplen);
	frame.data = exact;
	frame.caplen = caplen;
	dump_decode(&frame, &v);
	free(exact);
	return v;
}

static void a_cut_packet_is_read_to_its_end(void **state)
{
	struct packet p = read_request, send = {.opcode = SEND_ONLY, .payload = 100};
	const uint32_t bth = 14 + 20 + 8;
	struct dump_view v;
	uint32_t cap;

	(void)state;
	build(&p);
	for (cap = 14; cap < p.len; cap++) {
		v = cut_view(&p, cap);
		if (cap < bth) {
			assert_int_equal(v.what, DUMP_OTHER);
			continue;
		}
		assert_int_equal(v.what, DUMP_ROCE);
		assert_null(v.roce.wrong);
		assert_int_equal(v.roce.bth, cap >= bth + 12);
		assert_int_equal(v.roce.cut, cap < bth + 28);
		assert_int_equal(v.roce.has & ROCEV2_RETH, cap < bth + 28 ? 0 : ROCEV2_RETH);
		assert_int_equal(v.roce.length, cap < bth + 28 ? 0 : 65536);
	}
	v = cut_view(&send, bth + 12 + 30);
	assert_int_equal(v.roce.payload_len, 100);
	assert_int_equal(v.roce.payload_cap, 30);
	v = cut_view(&send, bth + 12 + 102); /* a part of the ICRC */
	assert_int_equal(v.roce.payload_cap, 100);
}

static void expect_malformed(struct packet p, const char *why)
{
	struct dump_view v = decoded(&p);

	assert_non_null(v.roce.wrong);
	if (!strstr(v.roce.wrong, why))
		fail_msg("'%s' instead of '%s'", v.roce.wrong, why);
	assert_int_equal(v.roce.payload_len, 0);
	expect_text(p, "malformed: ");
}

static void lengths_that_contradict_each_other_are_malformed(void **state)
{
	struct packet p = read_request;

	(void)state;
	p.udp_len = 1; /* beyond the packet of IP */
	expect_malformed(p, "lengths in the IP and UDP headers");
	p.outer = IP6;
	expect_malformed(p, "lengths in the IP and UDP headers");
	p.udp_len = -(8 + 12 + 16 + 4) + 7; /* less than its own header */
	expect_malformed(p, "lengths in the IP and UDP headers");
	p.udp_len = -(12 + 16 + 4) + 15;
	expect_malformed(p, "too short for a BTH");
	p.udp_len = -1;
	expect_malformed(p, "too short for the headers of its opcode");
	expect_malformed((struct packet){.opcode = ACKNOWLEDGE}, "too short for the headers");
	expect_malformed((struct packet){.opcode = FETCH_ADD, .more_len = 27},
			 "too short for the headers");
	expect_malformed((struct packet){.opcode = SEND_ONLY, .pad = 3, .udp_len = -1},
			 "the padding is longer than the payload");
}

static void what_is_no_packet_of_roce_v2_stays_other(void **state)
{
	struct packet p = read_request;
	struct dump_frame frame = build(&p);
	struct dump_view v;

	(void)state;
	put16(p.bytes + 14 + 20 + 2, 4792);
	dump_decode(&frame, &v);
	assert_int_equal(v.what, DUMP_OTHER);
	frame = build(&p);
	put16(p.bytes + 14 + 6, 0x2000); /* a fragment: the rest is elsewhere */
	dump_decode(&frame, &v);
	assert_int_equal(v.what, DUMP_OTHER);
	frame = build(&p);
	p.bytes[14 + 20 + 8 + 1] = 1; /* version of the BTH */
	dump_decode(&frame, &v);
	assert_int_equal(v.what, DUMP_ROCE);
	assert_non_null(v.roce.wrong);
	assert_false(v.roce.bth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_read_over_ip4_ip6_and_vlan),
		cmocka_unit_test(each_kind_of_packet_has_its_line),
		cmocka_unit_test(each_packet_is_an_object),
		cmocka_unit_test(a_cut_packet_is_read_to_its_end),
		cmocka_unit_test(lengths_that_contradict_each_other_are_malformed),
		cmocka_unit_test(what_is_no_packet_of_roce_v2_stays_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
