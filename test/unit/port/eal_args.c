/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "drivers/dpdk/port/eal.h"

/* Literals are const here, main()'s words are not. */
#define W(s) ((char *)(uintptr_t)(s))

/* @p want: the expected words with '|' between and after them. */
static void words(const char *text, const char *want)
{
	char got[256] = "", **w;
	int i, n = weft_eal_words(text, &w);

	assert_true(n >= 0);
	assert_null(w[n]);
	for (i = 0; i < n; i++) {
		strcat(got, w[i]);
		strcat(got, "|");
	}
	free(w);
	assert_string_equal(got, want);
}

static void refused(const char *text)
{
	char **w = NULL;

	assert_int_equal(weft_eal_words(text, &w), -EINVAL);
	assert_null(w);
}

static void blanks_separate(void **state)
{
	(void)state;
	words("", "");
	words("  \t\n ", "");
	words("a", "a|");
	words("a b", "a|b|");
	words("  --vdev  net_memif0,role=server\t-l 0\n", "--vdev|net_memif0,role=server|-l|0|");
}

static void quotes_and_backslash_protect(void **state)
{
	(void)state;
	words("'a b' \"c d\"", "a b|c d|");
	words("a' 'b\" \"c", "a b c|");
	words("'' \"\"", "||");
	words("a\\ b \\'", "a b|'|");
	words("'a\\b'", "a\\b|");
	words("\"a\\\"b\\\\c\\d\"", "a\"b\\c\\d|");
	words("'\"' \"'\"", "\"|'|");
}

static void open_quotes_are_refused(void **state)
{
	(void)state;
	refused("'a");
	refused("a b\"");
	refused("\"a\\\"");
	refused("a \\");
}

static void double_dash_divides_the_command_line(void **state)
{
	char *a[] = {W("prog"), W("-l"), W("0"), W("--"), W("-s"), W("8"), W("--"), W("x"), NULL};
	char **argv = a, **eal;
	int argc = 8;

	(void)state;
	assert_int_equal(weft_eal_split_args(&argc, &argv, &eal), 2);
	assert_string_equal(eal[0], "-l");
	assert_string_equal(eal[1], "0");
	assert_int_equal(argc, 5);
	assert_string_equal(argv[0], "prog");
	assert_string_equal(argv[1], "-s");
	assert_string_equal(argv[3], "--");
	assert_null(argv[5]);
}

static void without_double_dash_all_is_the_programs(void **state)
{
	char *a[] = {W("prog"), W("-s"), W("8"), NULL};
	char **argv = a, **eal;
	int argc = 3;

	(void)state;
	assert_int_equal(weft_eal_split_args(&argc, &argv, &eal), -1);
	assert_null(eal);
	assert_int_equal(argc, 3);
	assert_ptr_equal(argv, a);
}

static void nothing_before_double_dash_means_no_eal_words(void **state)
{
	char *a[] = {W("prog"), W("--"), NULL};
	char **argv = a, **eal;
	int argc = 2;

	(void)state;
	assert_int_equal(weft_eal_split_args(&argc, &argv, &eal), 0);
	assert_non_null(eal);
	assert_int_equal(argc, 1);
	assert_string_equal(argv[0], "prog");
}

static void an_open_quote_in_the_variable_is_one_sentence(void **state)
{
	struct weft_eal_conf conf = {0};
	char note[64], why[256];

	(void)state;
	assert_false(weft_eal_is_up());
	assert_int_equal(weft_eal_start("--vdev 'net", &conf, note, sizeof(note), why, sizeof(why)),
			 -EINVAL);
	assert_non_null(strstr(why, "WEFT_EAL_ARGS"));
	assert_false(weft_eal_is_up());
}

static bool no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

static void a_lack_of_memory_is_not_an_open_quote(void **state)
{
	struct weft_eal_conf conf = {0};
	char note[64], why[256];
	int rc;

	(void)state;
	no_memory = true;
	rc = weft_eal_start("--vdev net", &conf, note, sizeof(note), why, sizeof(why));
	no_memory = false;
	assert_int_equal(rc, -ENOMEM);
	assert_null(strstr(why, "quote"));
	assert_non_null(strstr(why, "memory"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blanks_separate),
		cmocka_unit_test(quotes_and_backslash_protect),
		cmocka_unit_test(open_quotes_are_refused),
		cmocka_unit_test(double_dash_divides_the_command_line),
		cmocka_unit_test(without_double_dash_all_is_the_programs),
		cmocka_unit_test(nothing_before_double_dash_means_no_eal_words),
		cmocka_unit_test(an_open_quote_in_the_variable_is_one_sentence),
		cmocka_unit_test(a_lack_of_memory_is_not_an_open_quote),
	};

	return cmocka_run_group_tests_name("eal_args", tests, NULL, NULL);
}
