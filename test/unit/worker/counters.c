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
#include "weft_msg.h"

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

struct sums {
	uint64_t sent, received;
};

static void look_at_self(const char *name, uint64_t value, void *arg)
{
	struct sums *s = arg;

	if (!strcmp(name, "self.tx.messages"))
		s->sent = value;
	else if (!strcmp(name, "self.rx.messages"))
		s->received = value;
}

/* A flush waits behind the messages in the queue of the loopback, and is no message. */
static void a_flush_is_no_message(void **state)
{
	struct weft_context_params cp = WEFT_INIT(struct weft_context_params);
	struct weft_worker_params params = WEFT_INIT(struct weft_worker_params, .lanes = "self");
	struct weft_ep_params ep_params = WEFT_INIT(struct weft_ep_params);
	struct weft_request *send, *flush;
	struct sums s = {0};
	struct weft_context *ctx;
	struct weft_worker *w;
	struct weft_ep *ep;
	void *address;
	int rc[2];

	(void)state;
	assert_int_equal(weft_context_create(&cp, &ctx), 0);
	assert_int_equal(weft_worker_create(ctx, &params, &w), 0);
	assert_int_equal(weft_worker_get_address(w, &address, &ep_params.address_length), 0);
	ep_params.address = address;
	assert_int_equal(weft_ep_create(w, &ep_params, &ep), 0);
	weft_worker_release_address(w, address);
	for (int i = 0; i < 3; i++) {
		rc[0] = weft_tag_send(ep, "8 bytes.", 8, 1, NULL, &send);
		rc[1] = weft_ep_flush(ep, NULL, &flush);
		assert_int_equal(weft_wait(w, rc[0], &send, NULL), 0);
		assert_int_equal(weft_wait(w, rc[1], &flush, NULL), 0);
	}
	for (int i = 0; i < 100; i++)
		weft_worker_progress(w);
	weft_worker_counters(w, look_at_self, &s);
	assert_true(s.received >= 3);
	assert_int_equal(s.sent, s.received);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_counter_has_a_description),
		cmocka_unit_test(names_are_found_as_they_are_reported),
		cmocka_unit_test(what_is_nobodys_has_no_help),
		cmocka_unit_test(a_flush_is_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
