/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a piece for a message that arrives in many separate ranges. lib/base/container.c is
 * compiled once more for this program, so that every basic block that runs and every byte that it
 * moves is counted. The figures are the same on any machine, and unit/base/interval.c has nothing
 * to do for them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/container.h"

static uint64_t blocks_run, bytes_moved;

/*
 * GCC and clang call it in each basic block of what is compiled with -fsanitize-coverage=trace-pc.
 */
void __sanitizer_cov_trace_pc(void);
void *counted_memmove(void *to, const void *from, size_t length);
void *counted_memcpy(void *to, const void *from, size_t length);

void __sanitizer_cov_trace_pc(void)
{
	blocks_run++;
}

void *counted_memmove(void *to, const void *from, size_t length)
{
	bytes_moved += length;
	return memmove(to, from, length);
}

void *counted_memcpy(void *to, const void *from, size_t length)
{
	bytes_moved += length;
	return memcpy(to, from, length);
}

/* Where the islands of a message stand, in the order in which they come. */
typedef uint64_t (*order_fn)(uint64_t i, uint64_t num);

static uint64_t backwards(uint64_t i, uint64_t num)
{
	return num - 1 - i;
}

static uint64_t forwards(uint64_t i, uint64_t num)
{
	(void)num;
	return i;
}

/*
 * The last ones, then the first ones, to the middle: the directory grows at its end and is pushed.
 */
static uint64_t from_both_ends(uint64_t i, uint64_t num)
{
	return i & 1 ? i / 2 : num - 1 - i / 2;
}

/* num is a power of two */
static uint64_t scattered(uint64_t i, uint64_t num)
{
	return i * 40503 & (num - 1);
}

static void tear(struct weft_ivals *s, order_fn order, uint64_t num)
{
	weft_ivals_init(s);
	blocks_run = bytes_moved = 0;
	for (uint64_t i = 0; i < num; i++) {
		uint64_t at = 2 * order(i, num);

		assert_int_equal(weft_ivals_add(s, at, at + 1), 0);
	}
}

static const order_fn orders[] = {backwards, forwards, from_both_ends, scattered};

/*
 * A search in a sorted set, the rest of one block of 64 islands, and now and then the rest of the
 * directory: what the first thousand cost each is about what all of the largest set do.
 */
/* @behaviour T8, T43 */
static void each_range_costs_about_as_much_as_the_first(void **state)
{
	struct weft_ivals s;

	(void)state;
	for (size_t k = 0; k < sizeof(orders) / sizeof(*orders); k++) {
		tear(&s, orders[k], WEFT_IVAL_MAX);
		assert_int_equal(s.num, WEFT_IVAL_MAX);
		print_message(
			"# order %zu: %.1f basic blocks and %.0f bytes moved for each of %u\n", k,
			(double)blocks_run / WEFT_IVAL_MAX, (double)bytes_moved / WEFT_IVAL_MAX,
			WEFT_IVAL_MAX);
		assert_in_range(blocks_run / WEFT_IVAL_MAX, 1, 150);
		assert_in_range(bytes_moved / WEFT_IVAL_MAX, 0, 2048);
		weft_ivals_fini(&s);
	}
}

/* Nor does it cost more to fill the holes, one by one, in either direction. */
/* @behaviour T8 */
static void nor_does_what_fills_the_holes(void **state)
{
	struct weft_ivals s;

	(void)state;
	for (size_t k = 0; k < sizeof(orders) / sizeof(*orders); k++) {
		tear(&s, backwards, WEFT_IVAL_MAX);
		blocks_run = bytes_moved = 0;
		for (uint64_t i = 0; i < WEFT_IVAL_MAX; i++) {
			uint64_t at = 2 * orders[k](i, WEFT_IVAL_MAX) + 1;

			assert_int_equal(weft_ivals_add(&s, at, at + 1), 0);
		}
		assert_int_equal(s.num, 1);
		assert_in_range(blocks_run / WEFT_IVAL_MAX, 1, 150);
		assert_in_range(bytes_moved / WEFT_IVAL_MAX, 0, 2048);
		weft_ivals_fini(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_range_costs_about_as_much_as_the_first),
		cmocka_unit_test(nor_does_what_fills_the_holes),
	};

	return cmocka_run_group_tests_name("cost of pieces", tests, NULL, NULL);
}
