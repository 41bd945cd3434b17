/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash table, and the window of those that may come (msg/state.h). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/container.h"
#include "msg/state.h"

#define NUM 4096

static struct weft_table_node nodes[NUM];

/* Which messages a peer leaves open is its choice: at a stride of any table's size, too. */
/* @behaviour T8 */
static void what_a_peer_leaves_open_does_not_meet_in_one_bucket(void **state)
{
	static const unsigned int strides[] = {0, 2, 4, 8, 12, 16, 20};
	struct weft_table_node *node;

	(void)state;
	for (unsigned int s = 0; s < 7; s++) {
		struct weft_table t = {.seed = 0x5a5a5a5a5a5a5a5au};
		unsigned int longest = 0, len;

		for (uint32_t i = 0; i < NUM; i++)
			assert_int_equal(weft_table_add(&t, &nodes[i], i << strides[s]), 0);
		assert_int_equal(t.num, NUM);
		for (uint32_t i = 0; (node = weft_table_any(&t, &i)); i++) {
			for (len = 0; node; node = SLIST_NEXT(node, link))
				len++;
			longest = len > longest ? len : longest;
		}
		assert_in_range(longest, 1, 64);
		weft_table_fini(&t);
	}
}

/* However often the table has grown since. */
static void of_equal_keys_the_newest_is_found(void **state)
{
	struct weft_table t = {.seed = 12345};

	(void)state;
	for (uint32_t i = 0; i < NUM; i++) {
		assert_int_equal(weft_table_add(&t, &nodes[i], i / 2), 0);
		for (uint32_t k = 1; k <= i; k += 2)
			assert_ptr_equal(weft_table_find(&t, k / 2), &nodes[k]);
	}
	weft_table_fini(&t);
}

static void what_is_in_is_found_and_what_is_not_is_not(void **state)
{
	struct weft_table t = {.seed = 12345};
	uint32_t from = 0, first = UINT32_MAX - NUM / 2, n = 0;

	(void)state;
	assert_null(weft_table_find(&t, 0));
	assert_null(weft_table_any(&t, &from));
	for (uint32_t i = 0; i < NUM; i++)
		assert_int_equal(weft_table_add(&t, &nodes[i], first + i), 0);
	for (uint32_t i = 0; i < NUM; i += 2)
		weft_table_remove(&t, &nodes[i]);
	assert_int_equal(t.num, NUM / 2);
	for (uint32_t i = 0; i < NUM; i++)
		assert_ptr_equal(weft_table_find(&t, first + i), i % 2 ? &nodes[i] : NULL);
	assert_null(weft_table_find(&t, first + NUM));
	assert_null(weft_table_find(&t, first - 1));
	/* Each of the rest once. */
	for (from = 0;; n++) {
		struct weft_table_node *node = weft_table_any(&t, &from);

		if (!node)
			break;
		assert_int_equal((node - nodes) % 2, 1);
		weft_table_remove(&t, node);
	}
	assert_int_equal(n, NUM / 2);
	assert_int_equal(t.num, 0);
	weft_table_fini(&t);
}

/* Keys may be hashes, so two entries may have the same one, also after the table has grown. */
static void entries_with_equal_keys_are_all_in_the_bucket_of_the_key(void **state)
{
	static const uint64_t keys[] = {0, 1, UINT32_MAX, 1ull << 32, 1ull << 63, UINT64_MAX};
	struct weft_table t = {0};
	struct weft_table_node *node;
	unsigned int same;

	(void)state;
	assert_null(weft_table_bucket(&t, keys[0]));
	assert_int_equal(weft_table_reserve(&t), 0);
	assert_null(weft_table_bucket(&t, keys[0]));
	for (unsigned int i = 0; i < 600; i++)
		assert_int_equal(weft_table_add(&t, &nodes[i], keys[i % 6]), 0);
	for (unsigned int k = 0; k < 6; k++) {
		same = 0;
		for (node = weft_table_bucket(&t, keys[k]); node; node = SLIST_NEXT(node, link))
			same += node->key == keys[k];
		assert_int_equal(same, 100);
	}
	for (unsigned int i = 0; i < 600; i++)
		if (i != 302)
			weft_table_remove(&t, &nodes[i]);
	assert_ptr_equal(weft_table_find(&t, keys[302 % 6]), &nodes[302]);
	assert_null(weft_table_find(&t, keys[303 % 6]));
	weft_table_fini(&t);
}

/* Without a seed, too, local numbers such as addresses of objects are spread. */
static void addresses_of_objects_are_spread_without_a_seed(void **state)
{
	static const uint64_t strides[] = {16, 64, 192, 4096, 1 << 20};
	struct weft_table_node *node;
	unsigned int longest, len;

	(void)state;
	for (unsigned int s = 0; s < 5; s++) {
		struct weft_table t = {0};

		longest = 0;
		for (uint64_t i = 0; i < NUM; i++)
			assert_int_equal(
				weft_table_add(&t, &nodes[i], 0x7f1234560000 + i * strides[s]), 0);
		for (uint32_t i = 0; (node = weft_table_any(&t, &i)); i++) {
			for (len = 0; node; node = SLIST_NEXT(node, link))
				len++;
			longest = len > longest ? len : longest;
		}
		assert_in_range(longest, 1, 16);
		weft_table_fini(&t);
	}
}

static void a_window_lets_in_what_was_allowed_and_not_yet_passed(void **state)
{
	static const uint32_t starts[] = {0, 5, UINT32_MAX - 2, 0x7fffffff};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct weft_seq_window w = {.next = starts[i], .advertised = starts[i] + 10};

		assert_false(weft_seq_inside(&w, starts[i] - 1));
		assert_true(weft_seq_old(&w, starts[i] - 1));
		assert_true(weft_seq_inside(&w, starts[i]));
		assert_false(weft_seq_old(&w, starts[i]));
		assert_true(weft_seq_inside(&w, starts[i] + 9));
		assert_false(weft_seq_inside(&w, starts[i] + 10));
		assert_false(weft_seq_old(&w, starts[i] + 10));
		/* All that was allowed has come. */
		w.next = w.advertised;
		assert_false(weft_seq_inside(&w, w.next));
		assert_false(weft_seq_inside(&w, w.next - 1));
	}
}

static void the_peer_is_notified_when_a_quarter_of_the_window_has_passed(void **state)
{
	struct weft_seq_window w = {.next = 7};

	(void)state;
	w.advertised = weft_seq_end(&w);
	w.next += WEFT_SEQ_WINDOW / 4 - 1;
	assert_false(weft_seq_due(&w));
	w.next++;
	assert_true(weft_seq_due(&w));
	w.advertised = weft_seq_end(&w);
	assert_false(weft_seq_due(&w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_peer_leaves_open_does_not_meet_in_one_bucket),
		cmocka_unit_test(of_equal_keys_the_newest_is_found),
		cmocka_unit_test(what_is_in_is_found_and_what_is_not_is_not),
		cmocka_unit_test(entries_with_equal_keys_are_all_in_the_bucket_of_the_key),
		cmocka_unit_test(addresses_of_objects_are_spread_without_a_seed),
		cmocka_unit_test(a_window_lets_in_what_was_allowed_and_not_yet_passed),
		cmocka_unit_test(the_peer_is_notified_when_a_quarter_of_the_window_has_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
