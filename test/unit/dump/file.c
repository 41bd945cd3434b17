/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures as they are and as they should not be: nothing is believed that was not checked. */

#include <byteswap.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture_util.h"

static const uint8_t bytes[61] = {1, 2, 3};

static void three_frames(struct capture *c)
{
	capture_begin(c, "dpdk:0 (net_memif0)");
	capture_frame(c, 1000000007, DUMP_OUT, bytes, 60);
	capture_frame(c, 2000000000, DUMP_IN, bytes, 61);
	capture_frame(c, 1500000000, DUMP_WAY_UNKNOWN, bytes, 1);
}

/* Frames that were read of the first @p len bytes, and what was said. */
static unsigned int frames_of(const struct capture *c, size_t len, char *why, size_t why_len)
{
	struct dump_file *file = capture_open(c, len, why, why_len);
	struct dump_frame frame;
	unsigned int n = 0;

	if (!file)
		return 0;
	while (dump_file_next(file, &frame))
		n++;
	snprintf(why, why_len, "%s", file->why);
	dump_file_close(file);
	return n;
}

static void frames_have_time_length_interface_and_direction(void **state)
{
	static struct capture c;
	struct dump_frame frame;
	struct dump_file *file;
	char why[400];

	(void)state;
	three_frames(&c);
	file = capture_open(&c, c.len, why, sizeof(why));
	assert_non_null(file);
	assert_true(dump_file_next(file, &frame));
	assert_int_equal(frame.time, 1000000007);
	assert_int_equal(frame.way, DUMP_OUT);
	assert_int_equal(frame.len, 60);
	assert_int_equal(frame.number, 1);
	assert_memory_equal(frame.data, bytes, 60);
	assert_string_equal(file->iface[frame.iface].name, "dpdk:0 (net_memif0)");
	assert_true(dump_file_next(file, &frame));
	assert_int_equal(frame.way, DUMP_IN);
	assert_int_equal(frame.caplen, 61);
	assert_true(dump_file_next(file, &frame));
	/* Times that run backwards are times. */
	assert_int_equal(frame.time, 1500000000);
	assert_false(dump_file_next(file, &frame));
	assert_string_equal(file->why, "");
	dump_file_close(file);
}

static void a_capture_cut_short_anywhere_is_read_as_far_as_it_is_whole(void **state)
{
	static struct capture c;
	size_t len, ends[4];
	unsigned int i, n;
	char why[400];

	(void)state;
	capture_begin(&c, "x");
	ends[0] = c.len;
	for (i = 1; i < 4; i++) {
		capture_frame(&c, i, DUMP_IN, bytes, 20 + i);
		ends[i] = c.len;
	}
	for (len = 1; len <= c.len; len++) {
		why[0] = '\0';
		n = frames_of(&c, len, why, sizeof(why));
		for (i = 0; i < 3 && ends[i + 1] <= len; i++)
			;
		assert_int_equal(n, i);
		/* A cut between two blocks cannot be detected. */
		if (len != 28 && len != ends[0] && len != ends[1] && len != ends[2] &&
		    len != ends[3])
			assert_non_null(strstr(why, "cut short"));
		else
			assert_string_equal(why, "");
	}
	assert_int_equal(n, 3);
}

static void no_changed_byte_is_more_than_a_damage(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	static struct capture c, changed;
	char why[400];
	unsigned int i;
	size_t at;

	(void)state;
	three_frames(&c);
	for (at = 0; at < c.len; at++) {
		for (i = 0; i < sizeof(values); i++) {
			changed = c;
			changed.data[at] = values[i];
			assert_true(frames_of(&changed, changed.len, why, sizeof(why)) <= 3);
		}
	}
}

static void expect_damage(const struct capture *c, const char *what)
{
	char why[400] = "";

	frames_of(c, c->len, why, sizeof(why));
	if (!strstr(why, what))
		fail_msg("'%s' instead of '%s'", why, what);
}

static void blocks_that_contradict_themselves_are_reported(void **state)
{
	static struct capture c;
	uint32_t body[8] = {0}, *last;

	(void)state;
	capture_begin(&c, "x");
	capture_block(&c, 6, body, 12);
	expect_damage(&c, "a packet block has only 24 bytes");
	capture_begin(&c, "x");
	body[3] = 1 << 20;
	capture_block(&c, 6, body, 24);
	expect_damage(&c, "a packet claims 1048576 bytes in a block of 36");
	capture_begin(&c, "x");
	body[3] = 0;
	body[0] = 7;
	capture_block(&c, 6, body, 24);
	expect_damage(&c, "a packet claims interface 7, and there are 1");
	capture_begin(&c, "x");
	capture_block(&c, 3, body, 0);
	expect_damage(&c, "a simple packet block has only 12 bytes");
	capture_begin(&c, "x");
	capture_block(&c, 1, body, 4);
	expect_damage(&c, "an interface block has only 16 bytes");
	/* Without the interface block, which follows the section header of 28 bytes. */
	c.len = 28;
	capture_block(&c, 3, body, 8);
	expect_damage(&c, "a simple packet block is before any interface block");
	three_frames(&c);
	last = (uint32_t *)(c.data + c.len - 4);
	*last += 4;
	expect_damage(&c, "has another length at its end");
	three_frames(&c);
	memcpy(c.data + 28 + 4, "\x0d\0\0\0", 4);
	expect_damage(&c, "a block claims 13 bytes");
	three_frames(&c);
	memcpy(c.data + 28 + 4, "\xfc\xff\xff\xff", 4);
	expect_damage(&c, "a block claims 4294967292 bytes");
	c.len = 0;
	capture_block(&c, 6, body, 24);
	expect_damage(&c, "no capture");
	memcpy(c.data, "\x0a\x0d\x0d\x0a\x1c\0\0\0nope", 12);
	c.len = 28;
	expect_damage(&c, "without its magic");
}

static void other_files_are_reported(void **state)
{
	static struct capture c;
	char why[400];

	(void)state;
	assert_null(capture_open(&c, 0, why, sizeof(why)));
	assert_non_null(strstr(why, "an empty file"));
	c.len = (size_t)snprintf((char *)c.data, sizeof(c.data), "#!/bin/sh\necho no capture\n");
	assert_null(capture_open(&c, c.len, why, sizeof(why)));
	assert_non_null(strstr(why, "neither pcapng nor pcap"));
	assert_null(dump_file_open("/nowhere/x.pcapng", 0, why, sizeof(why)));
	assert_string_equal(why, "/nowhere/x.pcapng: No such file or directory");
}

static void a_pcap_is_read_by_libpcap(void **state)
{
	static const uint32_t head[] = {0xa1b23c4d, 4 << 16 | 2, 0, 0, 65535, 1, 7, 9, 4, 60};
	static struct capture c;
	struct dump_frame frame;
	struct dump_file *file;
	char why[400];

	(void)state;
	memcpy(c.data, head, sizeof(head));
	c.len = sizeof(head) + 4;
	file = capture_open(&c, c.len, why, sizeof(why));
	assert_non_null(file);
	assert_true(dump_file_next(file, &frame));
	assert_int_equal(frame.time, 7000000009);
	assert_int_equal(frame.caplen, 4);
	assert_int_equal(frame.len, 60);
	assert_int_equal(frame.way, DUMP_WAY_UNKNOWN);
	assert_false(dump_file_next(file, &frame));
	assert_string_equal(file->why, "");
	dump_file_close(file);
	assert_int_equal(frames_of(&c, c.len - 1, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "damaged after frame 0"));
}

/* The reader turns a file of the other byte order, word by word as pcapng has them. */
static void the_other_byte_order_is_read(void **state)
{
	const uint32_t section[] = {bswap_32(0x0a0d0d0a), bswap_32(28), bswap_32(0x1a2b3c4d),
				    bswap_32(0x00010000), UINT32_MAX,   UINT32_MAX,
				    bswap_32(28)};
	const uint32_t iface[] = {bswap_32(1), bswap_32(20), bswap_32(0x00010000), 0, bswap_32(20)};
	const uint32_t packet[] = {bswap_32(6), bswap_32(36),      0,
				   0,           bswap_32(5000001), bswap_32(4),
				   bswap_32(4), 0x04030201,        bswap_32(36)};
	static struct capture c;
	struct dump_frame frame;
	struct dump_file *file;
	char why[400];

	(void)state;
	memcpy(c.data, section, sizeof(section));
	memcpy(c.data + 28, iface, sizeof(iface));
	memcpy(c.data + 48, packet, sizeof(packet));
	file = capture_open(&c, 84, why, sizeof(why));
	assert_non_null(file);
	assert_true(dump_file_next(file, &frame));
	/* No if_tsresol: microseconds. */
	assert_int_equal(frame.time, 5000001000ull);
	assert_int_equal(frame.caplen, 4);
	dump_file_close(file);
}

/* @behaviour T10 */
static void what_the_writer_lost_is_reported(void **state)
{
	struct {
		uint32_t iface, high, low, caplen, len, data;
		uint16_t code, opt_len;
		uint64_t dropped;
	} __attribute__((packed))
	packet = {.caplen = 4, .len = 9000, .code = 4, .opt_len = 8, .dropped = 17};
	static struct capture c;
	struct dump_frame frame;
	struct dump_file *file;
	char why[400];

	(void)state;
	capture_begin(&c, "\033]0;owned\007");
	capture_block(&c, 6, &packet, sizeof(packet));
	file = capture_open(&c, c.len, why, sizeof(why));
	assert_non_null(file);
	assert_true(dump_file_next(file, &frame));
	assert_int_equal(frame.len, 9000);
	assert_int_equal(dump_file_dropped(file), 17);
	/* What names an interface commands no terminal. */
	assert_string_equal(file->iface[0].name, "?]0;owned?");
	dump_file_close(file);
}

/* Others than us say at the end only what they have lost: dumpcap, say. */
static void losses_in_statistics_are_reported_once(void **state)
{
	struct {
		uint32_t iface, high, low;
		uint16_t if_code, if_len;
		uint64_t by_interface;
		uint16_t os_code, os_len;
		uint64_t by_system;
	} __attribute__((packed))
	statistics = {.if_code = 5, .if_len = 8, .os_code = 7, .os_len = 8};
	struct {
		uint32_t iface, high, low, caplen, len, data;
		uint16_t code, opt_len;
		uint64_t dropped;
	} __attribute__((packed))
	packet = {.caplen = 4, .len = 4, .code = 4, .opt_len = 8, .dropped = 2};
	static struct capture c, other;
	struct dump_frame frame;
	struct dump_file *file;
	char why[400];

	(void)state;
	capture_begin(&c, "i");
	capture_block(&c, 6, &packet, sizeof(packet));
	/* Totals: the last one counts, and has what frames have reported. */
	statistics.by_interface = 3;
	capture_block(&c, 5, &statistics, sizeof(statistics));
	statistics.by_interface = 5;
	statistics.by_system = 1;
	capture_block(&c, 5, &statistics, sizeof(statistics));
	/* Of an interface that is not there: nothing. */
	statistics.iface = 7;
	capture_block(&c, 5, &statistics, sizeof(statistics));
	/* Another section, with an interface 0 of its own. */
	capture_begin(&other, "i");
	capture_block(&other, 6, &packet, sizeof(packet));
	memcpy(c.data + c.len, other.data, other.len);
	file = capture_open(&c, c.len + other.len, why, sizeof(why));
	assert_non_null(file);
	while (dump_file_next(file, &frame))
		;
	assert_string_equal(file->why, "");
	assert_int_equal(dump_file_dropped(file), 5 + 1 + 2);
	dump_file_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_have_time_length_interface_and_direction),
		cmocka_unit_test(a_capture_cut_short_anywhere_is_read_as_far_as_it_is_whole),
		cmocka_unit_test(no_changed_byte_is_more_than_a_damage),
		cmocka_unit_test(blocks_that_contradict_themselves_are_reported),
		cmocka_unit_test(other_files_are_reported),
		cmocka_unit_test(a_pcap_is_read_by_libpcap),
		cmocka_unit_test(the_other_byte_order_is_read),
		cmocka_unit_test(what_the_writer_lost_is_reported),
		cmocka_unit_test(losses_in_statistics_are_reported_once),
	};

	return cmocka_run_group_tests_name("dump file", tests, NULL, NULL);
}
