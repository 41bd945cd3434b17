/* SPDX-License-Identifier: BSD-3-Clause */
/* Text from outside: what reaches a terminal. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void shows(const char *in, const char *out)
{
	char buf[64];

	weft_text_copy(buf, sizeof(buf), in, strlen(in));
	assert_string_equal(buf, out);
}

static void plain_text_and_utf8_stay(void **state)
{
	(void)state;
	shows("rank 3 on node-7.example", "rank 3 on node-7.example");
	shows("M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x90\xa7",
	      "M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x90\xa7");
}

/*
 * @behaviour T10: names and text of peers reach log, error messages, standard error and weft-dump
 * without terminal control characters
 */
static void terminal_commands_are_replaced(void **state)
{
	(void)state;
	shows("\033]0;owned\007", "?]0;owned?");
	shows("a\rb\nc\td\x7f", "a?b?c?d?");
	shows("\x9b"
	      "31m",
	      "?31m"); /* CSI of 8 bits */
	shows("\xc2\x9b"
	      "31m",
	      "??31m"); /* the same in UTF-8 */
	shows("\xe2\x80\xae"
	      "exe.txt",
	      "???exe.txt"); /* right-to-left override */
}

/* @behaviour T10 */
static void malformed_utf8_is_replaced(void **state)
{
	(void)state;
	shows("\xc0\x9b", "??");           /* overlong */
	shows("\xe0\x80\x9b", "???");      /* overlong */
	shows("\xed\xa0\x80", "???");      /* surrogate */
	shows("\xf4\x90\x80\x80", "????"); /* beyond Unicode */
	shows("\xff\xfe", "??");
	shows("ab\xe2\x82", "ab??"); /* cut short */
}

static void copies_fit(void **state)
{
	char buf[4];

	(void)state;
	weft_text_copy(buf, sizeof(buf), "abcdef", 6);
	assert_string_equal(buf, "abc");
	weft_text_copy(buf, sizeof(buf), "a\xe2\x82\xac",
		       4); /* cut in the middle of a character: "a" and 2 of 3 bytes */
	assert_string_equal(buf, "a??");
	weft_text_copy(buf, sizeof(buf), "a\0b", 3);
	assert_string_equal(buf, "a?b"); /* or a name could become an empty one */
	weft_text_copy(buf, sizeof(buf), "", 0);
	assert_string_equal(buf, "");
}

/* Of all strings of two bytes, and of many of four: no control is left. */
/* @behaviour T10 */
static void no_control_is_ever_left(void **state)
{
	char buf[8];
	uint8_t in[4];

	(void)state;
	for (uint32_t v = 0; v < 1u << 24; v += v < 1u << 16 ? 1 : 37) {
		in[0] = (uint8_t)v;
		in[1] = (uint8_t)(v >> 8);
		in[2] = (uint8_t)(v >> 16);
		in[3] = 'x';
		weft_text_copy(buf, sizeof(buf), in, sizeof(in));
		for (const uint8_t *p = (const uint8_t *)buf; *p; p++) {
			assert_true(*p >= 0x20 && *p != 0x7f);
			assert_false(p[0] == 0xc2 && p[1] < 0xa0);
			/* A continuation byte has its first byte before it. */
			assert_false((*p & 0xc0) == 0x80 &&
				     (p == (const uint8_t *)buf || p[-1] < 0x80));
		}
	}
}

static void texts_of_queries_stay_and_are_bounded(void **state)
{
	const char *texts[WEFT_TEXTS_MAX + 1];
	struct weft_texts t = {0};
	char buf[16];

	(void)state;
	assert_null(weft_texts_find(&t, "0"));
	for (unsigned int i = 0; i <= WEFT_TEXTS_MAX; i++) {
		snprintf(buf, sizeof(buf), "%u", i);
		texts[i] = weft_texts_add(&t, buf);
		assert_ptr_equal(texts[i], weft_texts_add(&t, buf));
	}
	for (unsigned int i = 0; i < WEFT_TEXTS_MAX; i++) {
		snprintf(buf, sizeof(buf), "%u", i);
		assert_string_equal(texts[i], buf);
		assert_ptr_equal(weft_texts_find(&t, buf), texts[i]);
	}
	assert_non_null(strstr(texts[WEFT_TEXTS_MAX], "too many different texts"));
	assert_string_equal(weft_texts_add(&t, ""), "");
	weft_texts_free(&t);
	assert_null(weft_texts_find(&t, "0"));
	assert_string_equal(weft_texts_add(&t, "again"), "again");
	weft_texts_free(&t);
}

static void a_name_is_not_printed_twice(void **state)
{
	(void)state;
	assert_string_equal(weft_text_without_name("udp:eth0: no route", "udp:eth0"), "no route");
	assert_string_equal(weft_text_without_name("udp:eth01: no route", "udp:eth0"),
			    "udp:eth01: no route");
	assert_string_equal(weft_text_without_name("udp:eth0", "udp:eth0"), "udp:eth0");
	assert_string_equal(weft_text_without_name("", "udp:eth0"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_and_utf8_stay),
		cmocka_unit_test(terminal_commands_are_replaced),
		cmocka_unit_test(malformed_utf8_is_replaced),
		cmocka_unit_test(copies_fit),
		cmocka_unit_test(no_control_is_ever_left),
		cmocka_unit_test(texts_of_queries_stay_and_are_bounded),
		cmocka_unit_test(a_name_is_not_printed_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
