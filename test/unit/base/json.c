/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers in JSON: escapes, text that is not printable, and what does not fit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static char out[512];
static struct weft_json j;

static void begin(enum weft_json_kind kind)
{
	memset(out, 'x', sizeof(out));
	weft_json_begin(&j, out, 300, "/a", 2, kind);
}

static void members_have_names_and_items_have_none(void **state)
{
	size_t len;

	(void)state;
	begin(WEFT_JSON_DICT);
	weft_json_text(&j, "t", "a \"b\" \\c\n\x1b[2J");
	weft_json_number(&j, "n", UINT64_MAX);
	len = weft_json_end(&j);
	assert_int_equal(len, strlen(out));
	assert_string_equal(out, "{\"/a\":{\"t\":\"a \\\"b\\\" \\\\c??[2J\","
				 "\"n\":18446744073709551615}}");
	begin(WEFT_JSON_ARRAY);
	weft_json_text(&j, NULL, "a");
	weft_json_number(&j, NULL, 0);
	weft_json_end(&j);
	assert_string_equal(out, "{\"/a\":[\"a\",0]}");
}

static void a_value_may_be_one_text_or_none(void **state)
{
	(void)state;
	begin(WEFT_JSON_TEXT);
	weft_json_text(&j, NULL, "no");
	weft_json_end(&j);
	assert_string_equal(out, "{\"/a\":\"no\"}");
	begin(WEFT_JSON_TEXT);
	weft_json_end(&j);
	assert_string_equal(out, "{\"/a\":null}");
}

static void members_that_do_not_fit_are_counted(void **state)
{
	unsigned int n = 0;

	(void)state;
	begin(WEFT_JSON_ARRAY);
	for (int i = 0; i < 100; i++)
		weft_json_text(&j, NULL, "12345678");
	assert_in_range(weft_json_end(&j), 200, 299);
	for (const char *p = out; (p = strstr(p, "\"12345678\"")); p++)
		n++;
	assert_in_range(n, 15, 27);
	assert_int_equal(atoi(strstr(out, " left out\"]}") - 2), 100 - n);
	assert_int_equal(out[300], 'x');
	begin(WEFT_JSON_DICT);
	for (int i = 0; i < 100; i++)
		weft_json_number(&j, "number", 7);
	weft_json_end(&j);
	assert_non_null(strstr(out, ",\"left_out\":"));
	assert_int_equal(out[300], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_have_names_and_items_have_none),
		cmocka_unit_test(a_value_may_be_one_text_or_none),
		cmocka_unit_test(members_that_do_not_fit_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
