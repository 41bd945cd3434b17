/* SPDX-License-Identifier: BSD-3-Clause */
/* Every counter of a worker says what it counts, in one sentence. */

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

#include "mock/counter_help.h"
#include "weft.h"

static void every_counter_has_a_description(void **state)
{
	struct weft_context_params cp = WEFT_INIT(struct weft_context_params);
	struct weft_worker_params params =
		WEFT_INIT(struct weft_worker_params, .lanes = "self;shm:host");
	struct counter_help seen = {0};
	struct weft_context *ctx;
	struct weft_worker *w;

	(void)state;
	assert_int_equal(weft_context_create(&cp, &ctx), 0);
	assert_int_equal(weft_worker_create(ctx, &params, &w), 0);
	weft_worker_counters(w, counter_help_look, &seen);
	assert_int_equal(seen.bad, 0);
	assert_true(seen.levels > 10 && seen.counters > 70);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void names_are_found_as_they_are_reported(void **state)
{
	bool level;

	(void)state;
	assert_string_equal(weft_counter_help("tag.unexpected", &level),
			    weft_counter_help("tag/unexpected", NULL));
	assert_false(level);
	assert_non_null(weft_counter_help("ep.open", &level));
	assert_true(level);
	/* An interface's name may have dots, and what other counters are called. */
	assert_non_null(weft_counter_help("shm:0000:00:05.0.conn.open", &level));
	assert_true(level);
	assert_non_null(weft_counter_help("self:tx.messages.rx.messages", NULL));
}

static void what_is_nobodys_has_no_help(void **state)
{
	static const char *const names[] = {
		"",         ":",   "self",          "self:x",          "self.",
		"self:x.",  "tag", "tag.unexpecte", "tag.unexpected.", "nobody:x.tx.messages",
		"rx.frames"};
	bool level = true;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_null(weft_counter_help(names[i], NULL));
	assert_null(weft_counter_help(NULL, &level));
	assert_false(level);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_counter_has_a_description),
		cmocka_unit_test(names_are_found_as_they_are_reported),
		cmocka_unit_test(what_is_nobodys_has_no_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
