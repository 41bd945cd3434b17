/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of options: parsing, and the texts that are made from it. */

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/common/cli.h"
#include "weft.h"

struct own {
	char first[8];
	const char *file;
	uint64_t count;
	bool loud, deep;
};

static int set_file(void *options, const char *option, const char *value)
{
	struct own *o = options;

	if (strcmp(value, "none") == 0) {
		cli_error("%s: no", option);
		return APP_DATA;
	}
	o->file = value;
	return APP_OK;
}

static const struct cli_option shared[] = {
	{"deep", 0, NULL, "from a shared table", .flag = offsetof(struct own, deep)},
	{0},
};

static const struct cli_option table[] = {
	{"count", 'n', "N", "a number", .number = {offsetof(struct own, count), 2, 9}},
	{"file", 'F', "A=B", ".dot \\ path", .set = set_file},
	{.heading = "Further"},
	{"loud", 'l', NULL,
	 "many words which are certainly more than fit in one line of seventy-nine columns",
	 .flag = offsetof(struct own, loud)},
	{"a-name-that-is-long", 0, "N", "below", .number = {offsetof(struct own, count), 0, 9}},
	{.table = shared},
	{0},
};

static const struct cli_command command = {
	.name = "x", .usage = "usage: x\n", .options = table, .after = {"one\n", "two\n"}};

static int parse(struct own *o, const char *line)
{
	static char words[256];
	char *argv[16], *rest = NULL;
	int argc = 0;

	snprintf(words, sizeof(words), "x %s", line);
	for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
		argv[argc++] = w;
	argv[argc] = NULL;
	*o = (struct own){0};
	optind = 0; /* getopt starts with the first argument */
	return cli_options_parse(&command, o, argc, argv);
}

static void options_set_what_the_table_names(void **state)
{
	struct own o;

	(void)state;
	assert_int_equal(parse(&o, "-n 5 --loud --file=a host"), APP_OK);
	assert_int_equal(o.count, 5);
	assert_true(o.loud);
	assert_false(o.deep);
	assert_string_equal(o.file, "a");
	assert_int_equal(optind, 5);
	assert_int_equal(parse(&o, "--deep -ln3"), APP_OK);
	assert_true(o.deep && o.loud);
	assert_int_equal(o.count, 3);
	assert_int_equal(parse(&o, "--a-name-that-is-long 7"), APP_OK);
	assert_int_equal(o.count, 7);
}

/* @behaviour X1 */
static void wrong_options_are_named(void **state)
{
	struct own o;

	(void)state;
	assert_int_equal(parse(&o, "-n 1"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "-n takes a number from 2 to 9"));
	assert_int_equal(parse(&o, "--a-name-that-is-long 99"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "--a-name-that-is-long takes"));
	assert_int_equal(parse(&o, "--file none"), APP_DATA);
	assert_string_equal(cli_last_error(), "-F: no");
	assert_int_equal(parse(&o, "--nonsense"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "no option '--nonsense'"));
	assert_int_equal(parse(&o, "-q"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "no option '-q'"));
	assert_int_equal(parse(&o, "--loud=3"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "takes no value"));
	assert_int_equal(parse(&o, "-n"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "'-n' needs a value"));
	assert_int_equal(parse(&o, "--count"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "'--count' needs a value"));
	assert_int_equal(parse(&o, "--a-name-that-is-long"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "'--a-name-that-is-long' needs a value"));
	assert_int_equal(parse(&o, "--print-options html"), APP_USAGE);
	assert_non_null(strstr(cli_last_error(), "manual or completion"));
}

/* What the program prints; free() it. */
static char *printed(const char *line)
{
	FILE *screen = stdout;
	struct own o;
	size_t length;
	char *text;
	int ret;

	stdout = open_memstream(&text, &length);
	assert_non_null(stdout);
	ret = parse(&o, line);
	fclose(stdout);
	stdout = screen;
	assert_int_equal(ret, -1);
	return text;
}

static void the_help_has_columns_headings_and_the_texts_around(void **state)
{
	char *text = printed("-l --help");

	(void)state;
	assert_string_equal(
		text,
		"usage: x\n"
		"  -n, --count N          a number\n"
		"  -F, --file A=B         .dot \\ path\n"
		"\nFurther:\n"
		"  -l, --loud             many words which are certainly more than fit in one\n"
		"                         line of seventy-nine columns\n"
		"      --a-name-that-is-long N\n"
		"                         below\n"
		"      --deep             from a shared table\n"
		"  -h, --help             this text\n"
		"      --version          version and build\n"
		"one\ntwo\n");
	free(text);
}

static void the_version_is_that_of_the_library(void **state)
{
	char *text = printed("--version");

	(void)state;
	assert_string_equal(text, weft_build_info());
	free(text);
}

/* The program's place and letter for a common option. */
static void a_program_places_common_options(void **state)
{
	static const struct cli_option placed[] = {
		{"version", 'v', NULL, "version and build"},
		{"help", 'h', NULL, "this text"},
		{.heading = "Further"},
		{"deep", 0, NULL, "a flag", .flag = offsetof(struct own, deep)},
		{0},
	};
	struct cli_command other = {.name = "x", .usage = "", .options = placed};
	char name[] = "x", help[] = "--help", letter[] = "-v", *text;
	char *argv[] = {name, help, NULL}, *version[] = {name, letter, NULL};
	FILE *screen = stdout;
	struct own o = {0};
	size_t length;

	(void)state;
	stdout = open_memstream(&text, &length);
	optind = 0;
	assert_int_equal(cli_options_parse(&other, &o, 2, argv), -1);
	optind = 0;
	assert_int_equal(cli_options_parse(&other, &o, 2, version), -1);
	fclose(stdout);
	stdout = screen;
	assert_int_equal(strncmp(text,
				 "  -v, --version          version and build\n"
				 "  -h, --help             this text\n"
				 "\nFurther:\n"
				 "      --deep             a flag\n",
				 strlen(text) - strlen(weft_build_info())),
			 0);
	assert_string_equal(text + strlen(text) - strlen(weft_build_info()), weft_build_info());
	free(text);
}

static void a_text_that_is_not_written_is_an_error(void **state)
{
	FILE *screen = stdout;
	struct own o;
	int ret;

	(void)state;
	stdout = fopen("/dev/full", "w");
	if (!stdout) {
		stdout = screen;
		skip();
	}
	ret = parse(&o, "--help");
	fclose(stdout);
	stdout = screen;
	assert_int_equal(ret, APP_FAIL);
	assert_non_null(strstr(cli_last_error(), "No space left"));
}

static void the_manual_is_mdoc(void **state)
{
	char *text = printed("--print-options manual");

	(void)state;
	assert_string_equal(text, ".Bl -tag -width Ds\n"
				  ".It Fl n , Fl -count Ar n\na number.\n"
				  ".It Fl F , Fl -file Ar a Ns = Ns Ar b\n\\&.dot \\e path.\n"
				  ".El\n.Ss Further\n.Bl -tag -width Ds\n"
				  ".It Fl l , Fl -loud\n"
				  "many words which are certainly more than fit in one line of "
				  "seventy-nine columns.\n"
				  ".It Fl -a-name-that-is-long Ar n\nbelow.\n"
				  ".It Fl -deep\nfrom a shared table.\n"
				  ".It Fl h , Fl -help\nthis text.\n"
				  ".It Fl -version\nversion and build.\n"
				  ".El\n");
	free(text);
}

/* test/proc/options.sh runs it. */
static void the_completion_names_the_options_and_those_with_an_argument(void **state)
{
	char *text = printed("--print-options completion");

	(void)state;
	assert_non_null(strstr(text, "\n\t--count | -n | --file | -F | --a-name-that-is-long) "
				     "return 0 ;;\n"));
	assert_non_null(strstr(text, "'--count -n --file -F --loud -l --a-name-that-is-long --deep "
				     "--help -h --version '"));
	assert_null(strstr(text, "print-options"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_set_what_the_table_names),
		cmocka_unit_test(wrong_options_are_named),
		cmocka_unit_test(the_help_has_columns_headings_and_the_texts_around),
		cmocka_unit_test(the_version_is_that_of_the_library),
		cmocka_unit_test(a_program_places_common_options),
		cmocka_unit_test(a_text_that_is_not_written_is_an_error),
		cmocka_unit_test(the_manual_is_mdoc),
		cmocka_unit_test(the_completion_names_the_options_and_those_with_an_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
