/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of RoCE v2, their faults and their names. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump/decode.h"
#include "dump/roce_flow.h"
#include "rocev2_util.h"

/*
 * Two ends: 10.0.0.1 with QP 0x100 and up, and 10.0.0.2 with QP 0x200 and up. The number of a
 * connection is added to both.
 */
static struct roce *roce;
static uint64_t now;

static int begin(void **state)
{
	(void)state;
	roce = roce_make();
	now = 1000000000;
	return roce ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	free(roce);
	return 0;
}

static void take(struct packet p)
{
	struct dump_frame frame = build(&p);
	struct dump_view view;

	dump_decode(&frame, &view);
	assert_int_equal(view.what, DUMP_ROCE);
	roce_packet(roce, &frame, &view, now);
	now += 1000000;
}

/* From end 1 or 2, which is the one with the requests or the one with the answers. */
static struct packet of(uint8_t from, unsigned int connection, uint8_t opcode, uint32_t psn)
{
	return (struct packet){.from = from,
			       .to = (uint8_t)(3 - from),
			       .opcode = opcode,
			       .qp = (from == 1 ? 0x200 : 0x100) + connection,
			       .psn = psn & 0xffffff};
}

static void sends(unsigned int connection, uint32_t psn, unsigned int n)
{
	while (n--)
		take(of(1, connection, SEND_ONLY, psn++));
}

static void answers(unsigned int connection, uint8_t syndrome, uint32_t psn)
{
	struct packet p = of(2, connection, ACKNOWLEDGE, psn);

	p.more[0] = syndrome;
	p.more_len = 4;
	take(p);
}

static void reads(unsigned int connection, uint32_t psn, uint16_t length)
{
	struct packet p = of(1, connection, READ_REQUEST, psn);

	p.more_len = 16;
	put16(p.more + 14, length);
	take(p);
}

static void read_part(uint8_t opcode, uint32_t psn)
{
	struct packet p = of(2, 0, opcode, psn);

	p.more_len = opcode == READ_MIDDLE ? 0 : 4;
	p.payload = opcode == READ_LAST ? 8 : 256;
	take(p);
}

static struct roce_flow *flow(uint8_t from, unsigned int connection)
{
	uint32_t qp = (from == 1 ? 0x200 : 0x100) + connection;

	for (unsigned int i = 0; i < roce->num; i++)
		if (roce->flow[i].dst_qp == qp)
			return &roce->flow[i];
	fail_msg("no flow to QP 0x%x", qp);
	return NULL;
}

static bool paired(unsigned int connection)
{
	uint32_t a = (uint32_t)(flow(1, connection) - roce->flow),
		 b = (uint32_t)(flow(2, connection) - roce->flow);

	return roce->flow[a].other == b && roce->flow[b].other == a;
}

static const char *line(unsigned int connection)
{
	static char text[1200];

	roce_fault_text(roce, (unsigned int)(flow(1, connection) - roce->flow), "f i", 1000000000,
			text, sizeof(text));
	return text;
}

static void expect_line(unsigned int connection, const char *part)
{
	if (!strstr(line(connection), part))
		fail_msg("'%s' is not in '%s'", part, line(connection));
}

static void without_a_fault_there_is_no_line(void **state)
{
	(void)state;
	sends(0, 100, 5);
	answers(0, 0x1f, 104);
	assert_true(paired(0));
	assert_int_equal(roce_faults(roce, 0) + roce_faults(roce, 1), 0);
	assert_int_equal(flow(1, 0)->requests, 5);
	assert_int_equal(flow(2, 0)->responses, 1);
	assert_int_equal(flow(1, 0)->last - flow(1, 0)->first, 4000000);
}

static void a_gap_and_what_is_sent_again_are_counted_over_the_wrap(void **state)
{
	(void)state;
	sends(0, 0xfffffe, 1); /* 0xffffff and 0 are lost */
	sends(0, 1, 2);
	answers(0, SYNDROME_NAK, 0xffffff);
	sends(0, 0xffffff, 4);
	answers(0, 0x1f, 2);
	sends(0, 1, 1); /* its receiver has it */
	assert_true(paired(0));
	assert_int_equal(flow(1, 0)->gaps, 1);
	assert_int_equal(flow(1, 0)->missing, 2);
	assert_int_equal(flow(1, 0)->again, 5);
	assert_int_equal(flow(1, 0)->arrived, 1);
	assert_int_equal(flow(2, 0)->answer[ROCEV2_NAK_SEQUENCE], 1);
	expect_line(0, "f i: RoCE 10.0.0.1 QP 0x100 and 10.0.0.2 QP 0x200; from 10.0.0.1 ");
	expect_line(0, "5 of 8 requests sent again (1 had arrived), 2 PSNs of requests missing, ");
	expect_line(0, "1 NAK for a wrong PSN; since 0.001 s after the first frame; to do: look");
}

static void a_request_that_only_the_capture_lacks_has_arrived(void **state)
{
	(void)state;
	sends(0, 7, 2);
	sends(0, 10, 1); /* 9 is missing in the capture */
	sends(0, 10, 1);
	assert_int_equal(flow(1, 0)->arrived, 0);
	answers(0, 0x1f, 10);
	sends(0, 10, 1);
	assert_int_equal(flow(1, 0)->arrived, 1);
}

static void a_request_that_met_no_buffer_had_not_arrived(void **state)
{
	(void)state;
	sends(0, 7, 1);
	answers(0, SYNDROME_RNR | 12, 7);
	sends(0, 7, 1);
	answers(0, 0x1f, 7);
	assert_int_equal(flow(1, 0)->again, 1);
	assert_int_equal(flow(1, 0)->arrived, 0);
	expect_line(0, "from 10.0.0.1 1 of 2 requests sent again, 1 RNR NAK (wait 0.64 ms); since");
	expect_line(0, "to do: let the receiver post more receive buffers");
}

/*
 * A responder as rdma_rxe is: it takes packets in the order of their arrival, and later than the
 * capture has them. Its requester goes back to the first packet without an answer, by a NAK or by a
 * timeout.
 */
struct responder {
	uint32_t psn;
	bool nak_sent;
	uint64_t duplicates;
	uint32_t queue[64], head, tail;
};

static uint32_t seed;

static bool chance(uint32_t of)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 16) % of == 0;
}

/* Take a packet. @return the PSN from which the requester continues, if it goes back */
static uint32_t responds(struct responder *d, uint32_t *first, uint32_t next)
{
	uint32_t psn = d->queue[d->tail++ % 64];

	if (psn > d->psn) {
		if (d->nak_sent)
			return next;
		d->nak_sent = true;
		answers(0, SYNDROME_NAK, d->psn);
		*first = d->psn;
		return d->psn;
	}
	d->duplicates += psn < d->psn;
	d->nak_sent = d->nak_sent && psn < d->psn;
	d->psn += psn == d->psn;
	answers(0, 0x1f, d->psn - 1);
	*first = d->psn;
	return next;
}

static void duplicates_are_those_of_a_responder_that_is_late(void **state)
{
	struct responder d = {.psn = 1000};
	uint32_t first = 1000, next = 1000;

	seed = 7;
	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		if (d.head != d.tail && (d.head - d.tail == 64 || chance(2))) {
			next = responds(&d, &first, next);
		} else if (next - first == 16 || chance(40)) {
			next = chance(4) ? first : next;
		} else {
			if (!chance(20)) {
				sends(0, next, 1);
				d.queue[d.head++ % 64] = next;
			}
			next++;
		}
	}
	while (d.head != d.tail)
		responds(&d, &first, next);
	assert_true(d.duplicates > 500);
	assert_int_equal(flow(1, 0)->arrived, d.duplicates);
}

static void each_answer_has_its_advice(void **state)
{
	static const char *const names[] = {"1 NAK for an invalid request",
					    "1 NAK for a wrong remote key or address",
					    "1 NAK for an error of the receiver",
					    "1 NAK of another kind"};

	(void)state;
	for (uint8_t i = 0; i < 4; i++) {
		sends(i, 1000u * i, 1);
		answers(i, (uint8_t)(SYNDROME_NAK | (i + 1)), 1000u * i);
		expect_line(i, names[i]);
		expect_line(i, "to do: find the program whose memory");
	}
	sends(9, 9000, 1);
	answers(9, 0x1f, 9000);
	take(of(2, 9, CNP, 0));
	assert_int_equal(flow(2, 9)->cnps, 1);
	expect_line(9, "; from 10.0.0.1 1 CNP; since");
	expect_line(9, "to do: reduce the load");
}

static void marks_are_counted(void **state)
{
	struct packet p = of(1, 0, SEND_ONLY, 1);

	(void)state;
	for (p.ecn = 0; p.ecn < 4; p.ecn++, p.psn++)
		take(p);
	assert_int_equal(flow(1, 0)->marked, 1);
}

static void a_read_takes_the_numbers_of_its_answer(void **state)
{
	(void)state;
	/* 8200 bytes are 3 packets of 4096 at least, and 33 of 256. */
	reads(0, 10, 8200);
	sends(0, 10 + 33, 1);
	assert_int_equal(flow(1, 0)->gaps, 0);
	sends(0, 10 + 33, 1);
	assert_int_equal(flow(1, 0)->arrived, 1);
	sends(0, 10 + 33 + 1, 1);
	/* With the path MTU of an answer the number is known. */
	read_part(READ_FIRST, 10);
	reads(0, 100, 520);
	sends(0, 104, 1);
	assert_int_equal(flow(1, 0)->gaps, 2); /* before 100, and 103 */
	assert_int_equal(flow(1, 0)->missing, 100 - 45 + 1);
	/* The rest of a read is read again: from a number inside of it. */
	reads(0, 102, 8);
	assert_int_equal(flow(1, 0)->again, 2);
}

static void the_rest_of_the_first_read_had_arrived(void **state)
{
	(void)state;
	/* 8200 bytes are 3 packets at least, as far as is known, and 33 of 256. */
	reads(0, 10, 8200);
	read_part(READ_FIRST, 10);
	read_part(READ_MIDDLE, 11);
	read_part(READ_MIDDLE, 12);
	read_part(READ_MIDDLE, 13); /* the others are lost */
	reads(0, 14, 8200 - 4 * 256);
	assert_int_equal(flow(1, 0)->again, 1);
	assert_int_equal(flow(1, 0)->arrived, 1);
	sends(0, 10 + 33, 1);
	assert_int_equal(flow(1, 0)->gaps, 0);
}

static void a_capture_may_begin_inside_an_answer(void **state)
{
	(void)state;
	read_part(READ_MIDDLE, 11);
	read_part(READ_LAST, 12);
	assert_int_equal(roce_faults(roce, 0), 0);
}

static void an_incomplete_answer_to_a_read_is_a_fault(void **state)
{
	(void)state;
	reads(0, 10, 1032);
	read_part(READ_FIRST, 10);
	read_part(READ_MIDDLE, 11);
	read_part(READ_MIDDLE, 12);
	read_part(READ_MIDDLE, 13);
	read_part(READ_LAST, 14);
	assert_int_equal(flow(2, 0)->read_gaps, 0);
	reads(0, 15, 520);
	read_part(READ_FIRST, 15);
	read_part(READ_LAST, 17);
	assert_int_equal(flow(2, 0)->read_gaps, 1);
	reads(0, 18, 520);
	read_part(READ_MIDDLE, 19); /* its first part is missing */
	assert_int_equal(flow(2, 0)->read_gaps, 2);
	expect_line(0, "; from 10.0.0.2 2 incomplete answers to reads; since");
}

static void connections_of_one_lane_are_distinguished(void **state)
{
	(void)state;
	/* The queue pairs of a lane begin with one PSN. */
	sends(0, 500, 10);
	sends(1, 500, 20);
	for (uint32_t i = 0; i < 3; i++)
		answers(0, 0x1f, 500 + i); /* could be of either */
	assert_int_equal(flow(2, 0)->other, ROCE_NONE);
	for (uint32_t i = 0; i < 3; i++) {
		answers(1, 0x1f, 517 + i);
		/* At first: the capture may lack the request that was answered. */
		assert_int_equal(paired(1), i == 2);
	}
	answers(0, 0x1f, 509);
	assert_true(paired(0));
	/* An answer that contradicts this ends it. */
	answers(0, 0x1f, 0x700000);
	assert_false(paired(0));
	assert_true(paired(1));
}

static void an_answer_to_no_captured_request_makes_no_connection(void **state)
{
	(void)state;
	sends(0, 500, 10);
	answers(0, 0x1f, 499);
	assert_false(paired(0));
	answers(0, 0x1f, 510);
	assert_false(paired(0));
	answers(0, 0x1f, 500);
	assert_true(paired(0));
}

static void without_a_pair_one_queue_pair_is_unknown(void **state)
{
	(void)state;
	sends(0, 5, 1);
	sends(0, 5, 1);
	expect_line(0, "RoCE 10.0.0.1 QP ? and 10.0.0.2 QP 0x200; from 10.0.0.1 1 of 2 requests");
	answers(3, SYNDROME_RNR, 77);
	roce->flow[1].dst_qp += 0x100; /* so that flow() finds it */
	expect_line(3, "RoCE 10.0.0.2 QP ? and 10.0.0.1 QP 0x203; from 10.0.0.1 1 RNR NAK");
}

static void datagrams_have_no_gaps(void **state)
{
	struct packet p = of(1, 0, UD_SEND_ONLY, 5);

	(void)state;
	p.more_len = 8;
	take(p);
	p.psn = 3;
	take(p);
	p.psn = 99;
	take(p);
	assert_int_equal(flow(1, 0)->packets, 3);
	assert_int_equal(roce_faults(roce, 0), 0);
}

/* The first message on the first queue pair of a lane, from end 1. */
static void attaches(unsigned int connection, uint8_t lane, uint32_t psn)
{
	struct packet p = of(1, connection, SEND_ONLY_IMM, psn);
	struct weft_wire_wireup w = {.type = WEFT_WIREUP_ATTACH,
				     .major = WEFT_WIRE_MAJOR,
				     .lane = lane,
				     .src_worker = weft_put64(0x11),
				     .dst_worker = weft_put64(0x22)};
	struct dump_frame frame;
	struct dump_view view;

	p.more_len = 4;
	p.more[0] = WEFT_WIRE_WIREUP << 1;
	p.payload = sizeof(w);
	frame = build(&p);
	memcpy(p.bytes + BTH_AT + 12 + 4, &w, sizeof(w));
	dump_decode(&frame, &view);
	roce_packet(roce, &frame, &view, now);
}

static void a_message_of_weft_names_the_lane(void **state)
{
	struct packet p = of(1, 0, SEND_ONLY_IMM, 6);

	(void)state;
	attaches(0, 3, 5);
	assert_int_equal(flow(1, 0)->messages, 1);
	sends(0, 5, 1);
	expect_line(0, ", lane 3 of workers 0000000000000011 and 0000000000000022; from");
	/* Another program's: the immediate data is of no message. */
	p.more_len = 4;
	p.payload = sizeof(struct weft_wire_wireup);
	take(p);
	assert_int_equal(flow(1, 0)->messages, 1);
}

/* A request of end 2 and its answer. */
static void sends_back(unsigned int connection, uint32_t psn)
{
	struct packet p = of(1, connection, ACKNOWLEDGE, psn);

	take(of(2, connection, SEND_ONLY, psn));
	p.more[0] = 0x1f;
	p.more_len = 4;
	take(p);
}

/* An object of JSON with the flow, to be freed. */
static char *json_of(uint8_t from, unsigned int connection)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct json j = {.out = out};

	assert_non_null(out);
	json_begin(&j, NULL, '{');
	roce_flow_json(&j, roce, flow(from, connection));
	json_end(&j, '}');
	fclose(out);
	return text;
}

static void expect_json(uint8_t from, unsigned int connection, const char *part)
{
	char *text = json_of(from, connection);

	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
	free(text);
}

static void expect_no_lane(unsigned int connection)
{
	char *text = json_of(1, connection);

	assert_null(strstr(text, "lane"));
	assert_null(strstr(line(connection), "lane"));
	free(text);
}

static void all_queue_pairs_of_a_lane_have_its_name(void **state)
{
	(void)state;
	attaches(0, 3, 500);
	sends_back(0, 900);
	/* The second one: the first packet is lost before the capture. */
	sends(1, 501, 1);
	sends(1, 500, 2);
	answers(1, 0x1f, 501);
	assert_true(paired(1));
	expect_line(1, ", lane 3 of workers 0000000000000011 and 0000000000000022; from");
	expect_json(1, 1,
		    "\"lane\":3,\"from_worker\":\"0x0000000000000011\",\"to_worker\":"
		    "\"0x0000000000000022\"}");
	expect_json(2, 1,
		    "\"lane\":3,\"from_worker\":\"0x0000000000000022\",\"to_worker\":"
		    "\"0x0000000000000011\"}");
	/* The third one has requests of the other end only. */
	sends_back(2, 900);
	expect_json(1, 2, "\"lane\":3,\"from_worker\":\"0x0000000000000011\"");
	expect_json(2, 2, "\"lane\":3,\"from_worker\":\"0x0000000000000022\"");
}

static void a_queue_pair_of_another_lane_does_not_get_the_name(void **state)
{
	struct packet p = of(1, 3, SEND_ONLY, 500);

	(void)state;
	attaches(0, 3, 500);
	sends_back(0, 900);
	sends(1, 600, 1); /* another PSN */
	expect_no_lane(1);
	sends(2, 500, 1); /* other than the lane in one direction */
	answers(2, 0x1f, 500);
	sends_back(2, 901);
	expect_no_lane(2);
	p.to = 9; /* another host */
	take(p);
	expect_no_lane(3);
}

static void directions_beyond_the_limit_are_counted(void **state)
{
	struct packet p = answer_of(0);
	char text[500];

	(void)state;
	for (unsigned int i = 0; i < ROCE_FLOWS + 5; i++)
		sends(i, 1, 1);
	assert_int_equal(roce->num, ROCE_FLOWS);
	assert_int_equal(roce->too_many, 5);
	sends(3, 2, 1); /* one that has its place */
	assert_int_equal(roce->too_many, 5);
	p.udp_len = -4;
	take(p);
	roce_sums_text(roce, text, sizeof(text));
	assert_non_null(strstr(text, "1024 connections of RoCE v2: 1025 packets, 0 requests"));
	assert_non_null(strstr(text, "; 1 packets without a valid header; 5 packets of directions "
				     "beyond the first 1024 are not followed"));
}

static void random_bytes_do_no_harm(void **state)
{
	struct packet p = {.from = 1, .to = 2, .payload = 40};
	uint32_t random = 1, at = BTH_AT;
	struct dump_frame frame;
	struct dump_view view;

	(void)state;
	for (unsigned int n = 0; n < 20000; n++) {
		p.from = (uint8_t)(1 + n % 2);
		p.to = (uint8_t)(2 - n % 2);
		frame = build(&p);
		for (unsigned int i = 0; i < 50; i++) {
			random = random * 1664525 + 1013904223;
			p.bytes[at + i] = (uint8_t)(random >> 24);
		}
		p.bytes[at] &= 0x1f;
		p.bytes[at + 1] &= 0xf0;
		memset(p.bytes + at + 5, 0, 2);
		frame.caplen = BTH_AT + (random >> 16) % 64;
		dump_decode(&frame, &view);
		roce_packet(roce, &frame, &view, n);
	}
	for (unsigned int i = 0; i < roce->num; i++) {
		char text[1200];

		roce_fault_text(roce, i, "f i", 0, text, sizeof(text));
		assert_true(strlen(text) < sizeof(text));
		assert_true(roce->flow[i].arrived <= roce->flow[i].requests);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_a_fault_there_is_no_line, begin, end),
		cmocka_unit_test_setup_teardown(
			a_gap_and_what_is_sent_again_are_counted_over_the_wrap, begin, end),
		cmocka_unit_test_setup_teardown(a_request_that_only_the_capture_lacks_has_arrived,
						begin, end),
		cmocka_unit_test_setup_teardown(a_capture_may_begin_inside_an_answer, begin, end),
		cmocka_unit_test_setup_teardown(a_request_that_met_no_buffer_had_not_arrived, begin,
						end),
		cmocka_unit_test_setup_teardown(duplicates_are_those_of_a_responder_that_is_late,
						begin, end),
		cmocka_unit_test_setup_teardown(each_answer_has_its_advice, begin, end),
		cmocka_unit_test_setup_teardown(marks_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_read_takes_the_numbers_of_its_answer, begin, end),
		cmocka_unit_test_setup_teardown(the_rest_of_the_first_read_had_arrived, begin, end),
		cmocka_unit_test_setup_teardown(an_incomplete_answer_to_a_read_is_a_fault, begin,
						end),
		cmocka_unit_test_setup_teardown(connections_of_one_lane_are_distinguished, begin,
						end),
		cmocka_unit_test_setup_teardown(
			an_answer_to_no_captured_request_makes_no_connection, begin, end),
		cmocka_unit_test_setup_teardown(without_a_pair_one_queue_pair_is_unknown, begin,
						end),
		cmocka_unit_test_setup_teardown(datagrams_have_no_gaps, begin, end),
		cmocka_unit_test_setup_teardown(a_message_of_weft_names_the_lane, begin, end),
		cmocka_unit_test_setup_teardown(all_queue_pairs_of_a_lane_have_its_name, begin,
						end),
		cmocka_unit_test_setup_teardown(a_queue_pair_of_another_lane_does_not_get_the_name,
						begin, end),
		cmocka_unit_test_setup_teardown(directions_beyond_the_limit_are_counted, begin,
						end),
		cmocka_unit_test_setup_teardown(random_bytes_do_no_harm, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
