/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers, sizes and options of the programs' command lines. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "app/common/cli.h"

static void sizes_take_units_of_1024(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(cli_size("-s", "0", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(cli_size("-s", "64k", &v), 0);
	assert_int_equal(v, 65536);
	assert_int_equal(cli_size("-s", "4M", &v), 0);
	assert_int_equal(v, 4 << 20);
	assert_int_equal(cli_size("-s", "3G", &v), 0);
	assert_int_equal(v, 3ull << 30);
}

/* @behaviour X1 */
static void malformed_sizes_are_named(void **state)
{
	static const char *const wrong[] = {"",
					    "-1",
					    "+1",
					    "k",
					    "1kk",
					    "1.5k",
					    "0x10",
					    " 8",
					    "8 ",
					    "1T",
					    "99999999999999999999",
					    "18446744073709551615k"};
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_not_equal(cli_size("--size", wrong[i], &v), 0);
		assert_non_null(strstr(cli_last_error(), "--size"));
	}
}

static void counts_have_bounds(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(cli_count("-n", "10k", 1, 100000, &v), 0);
	assert_int_equal(v, 10000);
	assert_int_not_equal(cli_count("-n", "0", 1, 100000, &v), 0);
	assert_int_not_equal(cli_count("-n", "1M", 1, 100000, &v), 0);
	assert_non_null(strstr(cli_last_error(), "from 1 to 100000"));
}

static void seconds_are_finite_and_bounded(void **state)
{
	double v;

	(void)state;
	assert_int_equal(cli_seconds("-D", "0.25", 0, 10, &v), 0);
	assert_true(v == 0.25);
	assert_int_equal(cli_seconds("-D", "3s", 0, 10, &v), 0);
	assert_int_not_equal(cli_seconds("-D", "nan", 0, 10, &v), 0);
	assert_int_not_equal(cli_seconds("-D", "inf", 0, 10, &v), 0);
	assert_int_not_equal(cli_seconds("-D", "-1", 0, 10, &v), 0);
	assert_int_not_equal(cli_seconds("-D", "1m", 0, 10, &v), 0);
	assert_int_not_equal(cli_seconds("-D", "", 0, 10, &v), 0);
}

static void ports_are_1_to_65535(void **state)
{
	uint16_t port;

	(void)state;
	assert_int_equal(cli_port("-p", "65535", &port), 0);
	assert_int_equal(port, 65535);
	assert_int_not_equal(cli_port("-p", "0", &port), 0);
	assert_int_not_equal(cli_port("-p", "65536", &port), 0);
	assert_int_not_equal(cli_port("--listen", "http", &port), 0);
	assert_non_null(strstr(cli_last_error(), "--listen takes"));
}

static void lists_and_ranges_of_sizes(void **state)
{
	static const uint64_t want[] = {8, 100, 1024, 2048, 4096, 0, 1, 2};
	struct cli_sizes sizes;

	(void)state;
	assert_int_equal(cli_sizes_parse("-s", "8,100,1k:4k,0:2", &sizes), 0);
	assert_int_equal(sizes.count, sizeof(want) / sizeof(want[0]));
	assert_memory_equal(sizes.size, want, sizeof(want));
	cli_sizes_free(&sizes);
	assert_int_equal(cli_sizes_parse("-s", "8:4M", &sizes), 0);
	assert_int_equal(sizes.count, 20);
	assert_int_equal(sizes.size[19], 4 << 20);
	cli_sizes_free(&sizes);
}

static void malformed_lists_leave_nothing(void **state)
{
	static const char *const wrong[] = {"",    "8,",   ",8",    "8:", ":8",
					    "8:4", "8,,9", "1:2:3", "8;9"};
	struct cli_sizes sizes;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_not_equal(cli_sizes_parse("-s", wrong[i], &sizes), 0);
		assert_null(sizes.size);
	}
}

static void size_text_reads_back(void **state)
{
	char buf[24];

	(void)state;
	assert_string_equal(cli_size_text(0, buf, sizeof(buf)), "0");
	assert_string_equal(cli_size_text(1000, buf, sizeof(buf)), "1000");
	assert_string_equal(cli_size_text(65536, buf, sizeof(buf)), "64k");
	assert_string_equal(cli_size_text(3 << 20, buf, sizeof(buf)), "3M");
	assert_string_equal(cli_size_text(1ull << 32, buf, sizeof(buf)), "4G");
}

static void splits(const char *text, const char *host, uint16_t port)
{
	char buf[32];
	uint16_t got = 7;

	assert_int_equal(cli_host_port(text, buf, sizeof(buf), &got), 0);
	assert_string_equal(buf, host);
	assert_int_equal(got, port);
}

static void refuses(const char *text, const char *words)
{
	char buf[32];
	uint16_t got = 7;

	assert_int_equal(cli_host_port(text, buf, sizeof(buf), &got), -EINVAL);
	assert_non_null(strstr(cli_last_error(), words));
	assert_int_equal(got, 7);
}

/* @behaviour T14: `host:port` and `[v6]:port` are accepted */
static void hosts_may_have_a_port(void **state)
{
	(void)state;
	splits("node1", "node1", 7);
	splits("node1:13378", "node1", 13378);
	splits("10.0.0.1:1", "10.0.0.1", 1);
	splits("fd00::1", "fd00::1", 7);
	splits("::1", "::1", 7);
	splits("[fd00::1]", "fd00::1", 7);
	splits("[::1]:65535", "::1", 65535);
	refuses("", "no host");
	refuses(":1", "no host");
	refuses("[]:1", "no host");
	refuses("[::1", "no host");
	refuses("[::1]x", "no host");
	refuses("a-name-that-is-too-long-for-its-buffer", "no host");
	refuses("node1:", "port");
	refuses("node1:0", "port");
	refuses("node1:65536", "port");
	refuses("[::1]:x", "port");
}

/* @behaviour T10 */
static void sentences_cannot_command_a_terminal(void **state)
{
	(void)state;
	cli_error("the peer says: %s", "\033]0;x\007\x9b"
				       "2J");
	assert_string_equal(cli_last_error(), "the peer says: ?]0;x??2J");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_take_units_of_1024),
		cmocka_unit_test(malformed_sizes_are_named),
		cmocka_unit_test(counts_have_bounds),
		cmocka_unit_test(seconds_are_finite_and_bounded),
		cmocka_unit_test(ports_are_1_to_65535),
		cmocka_unit_test(lists_and_ranges_of_sizes),
		cmocka_unit_test(malformed_lists_leave_nothing),
		cmocka_unit_test(size_text_reads_back),
		cmocka_unit_test(hosts_may_have_a_port),
		cmocka_unit_test(sentences_cannot_command_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
