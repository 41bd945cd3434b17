/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receive window and SACK bitmap: word boundaries, the wrap of sequences, and a model that keeps a
 * plain array.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/rules.h"
#include "frame/frame.h"

static const uint32_t starts[] = {0,    1,           63,          64,          65,         1023,
				  1024, 0x7fffffffu, 0xffffffffu, 0xfffffc00u, 0xffffffc1u};

static bool in_sack(const uint64_t *word, uint32_t words, uint32_t bit)
{
	uint32_t pos = 0, b;

	while (weft_sack_next(word, words, &pos, &b)) {
		if (b == bit)
			return true;
	}
	return false;
}

static void mark(struct weft_rxwin *w, uint32_t seq)
{
	assert_int_equal(weft_rxwin_need(w, seq), 0);
	weft_rxwin_mark(w, seq);
}

static void in_order_needs_no_bitmap(void **state)
{
	struct weft_rxwin w;
	uint64_t word[WEFT_FRAME_SACK_WORDS];

	(void)state;
	for (size_t s = 0; s < sizeof(starts) / sizeof(*starts); s++) {
		weft_rxwin_init(&w, starts[s]);
		for (uint32_t i = 0; i < 3000; i++) {
			assert_int_equal(weft_rxwin_check(&w, starts[s] + i), WEFT_RXWIN_NEW);
			mark(&w, starts[s] + i);
			assert_int_equal(weft_rxwin_check(&w, starts[s] + i), WEFT_RXWIN_DUPLICATE);
			assert_false(weft_rxwin_has_hole(&w));
			assert_int_equal(weft_rxwin_sack(&w, word, WEFT_FRAME_SACK_WORDS), 0);
		}
		assert_int_equal(w.next, starts[s] + 3000);
		assert_null(w.bits);
	}
}

/* One frame ahead, at every distance that the window has, from every kind of start. */
static void one_ahead_sets_exactly_its_bit(void **state)
{
	uint64_t word[WEFT_FRAME_SACK_WORDS];
	uint32_t words, pos, bit;
	struct weft_rxwin w;

	(void)state;
	for (size_t s = 0; s < sizeof(starts) / sizeof(*starts); s++) {
		for (uint32_t d = 1; d < WEFT_RXWIN; d++) {
			weft_rxwin_init(&w, starts[s]);
			mark(&w, starts[s] + d);
			assert_true(weft_rxwin_has_hole(&w));
			words = weft_rxwin_sack(&w, word, WEFT_FRAME_SACK_WORDS);
			assert_int_equal(words, (d + 63) / 64);
			pos = 0;
			assert_true(weft_sack_next(word, words, &pos, &bit));
			assert_int_equal(bit, d - 1);
			assert_false(weft_sack_next(word, words, &pos, &bit));
			weft_rxwin_free(&w);
		}
	}
}

static void beyond_the_window_is_refused(void **state)
{
	struct weft_rxwin w;

	(void)state;
	for (size_t s = 0; s < sizeof(starts) / sizeof(*starts); s++) {
		weft_rxwin_init(&w, starts[s]);
		assert_int_equal(weft_rxwin_check(&w, starts[s] + WEFT_RXWIN - 1), WEFT_RXWIN_NEW);
		assert_int_equal(weft_rxwin_check(&w, starts[s] + WEFT_RXWIN), WEFT_RXWIN_BEYOND);
		assert_int_equal(weft_rxwin_check(&w, starts[s] + 0x7fffffffu), WEFT_RXWIN_BEYOND);
		assert_int_equal(weft_rxwin_check(&w, starts[s] - 1), WEFT_RXWIN_DUPLICATE);
		assert_int_equal(weft_rxwin_check(&w, starts[s] - 0x7fffffffu),
				 WEFT_RXWIN_DUPLICATE);
	}
}

static void full_window_with_a_hole_at_its_start(void **state)
{
	uint64_t word[WEFT_FRAME_SACK_WORDS];
	struct weft_rxwin w;

	(void)state;
	for (size_t s = 0; s < sizeof(starts) / sizeof(*starts); s++) {
		weft_rxwin_init(&w, starts[s]);
		for (uint32_t i = 1; i < WEFT_RXWIN; i++)
			mark(&w, starts[s] + i);
		assert_int_equal(weft_rxwin_sack(&w, word, WEFT_FRAME_SACK_WORDS),
				 WEFT_FRAME_SACK_WORDS);
		for (uint32_t i = 0; i + 1 < WEFT_RXWIN; i++)
			assert_true(in_sack(word, WEFT_FRAME_SACK_WORDS, i));
		assert_false(in_sack(word, WEFT_FRAME_SACK_WORDS, WEFT_RXWIN - 1));
		mark(&w, starts[s]);
		assert_int_equal(w.next, starts[s] + WEFT_RXWIN);
		assert_false(weft_rxwin_has_hole(&w));
		for (uint32_t i = 0; i < WEFT_RXWIN_WORDS; i++)
			assert_int_equal(w.bits[i], 0);
		/* Without a hole the ring may go, and comes again. */
		weft_rxwin_free(&w);
		mark(&w, starts[s] + WEFT_RXWIN);
		assert_null(w.bits);
		mark(&w, starts[s] + WEFT_RXWIN + 2);
		assert_int_equal(weft_rxwin_check(&w, starts[s] + WEFT_RXWIN + 2),
				 WEFT_RXWIN_DUPLICATE);
		assert_int_equal(weft_rxwin_check(&w, starts[s] + WEFT_RXWIN + 1), WEFT_RXWIN_NEW);
		weft_rxwin_free(&w);
	}
}

static void short_block_reports_the_nearest(void **state)
{
	uint64_t word[4];
	struct weft_rxwin w;

	(void)state;
	weft_rxwin_init(&w, 0xffffff80u);
	for (uint32_t i = 1; i < 500; i++)
		mark(&w, 0xffffff80u + i);
	assert_int_equal(weft_rxwin_sack(&w, word, 4), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(word[i], ~0ull);
	weft_rxwin_free(&w);
}

/* Random arrivals against a plain array. */
static void agrees_with_a_simple_model(void **state)
{
	enum { N = 20000 };
	uint64_t word[WEFT_FRAME_SACK_WORDS], rng = 88172645463325252ull;
	uint8_t *came = calloc(1, N + WEFT_RXWIN);
	const uint32_t start = 0xffffe000u;
	uint32_t next = 0, high = 0, words;
	struct weft_rxwin w;

	(void)state;
	weft_rxwin_init(&w, start);
	for (unsigned int step = 0; step < 60000 && next < N; step++) {
		rng ^= rng << 13;
		rng ^= rng >> 7;
		rng ^= rng << 17;
		uint32_t i = rng % 3 == 0 ? next : next + (uint32_t)(rng >> 32) % 300;

		assert_int_equal(weft_rxwin_check(&w, start + i),
				 came[i] ? WEFT_RXWIN_DUPLICATE : WEFT_RXWIN_NEW);
		if (came[i])
			continue;
		came[i] = 1;
		mark(&w, start + i);
		if (i + 1 > high)
			high = i + 1;
		while (came[next])
			next++;
		assert_int_equal(w.next, start + next);
		assert_int_equal(w.high, start + (high > next ? high : next));
		if (step % 64)
			continue;
		words = weft_rxwin_sack(&w, word, WEFT_FRAME_SACK_WORDS);
		for (uint32_t b = 0; b < 64 * words; b++)
			assert_int_equal(word[b / 64] >> b % 64 & 1, came[next + 1 + b]);
	}
	assert_true(next > 5000);
	weft_rxwin_free(&w);
	free(came);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_needs_no_bitmap),
		cmocka_unit_test(one_ahead_sets_exactly_its_bit),
		cmocka_unit_test(beyond_the_window_is_refused),
		cmocka_unit_test(full_window_with_a_hole_at_its_start),
		cmocka_unit_test(short_block_reports_the_nearest),
		cmocka_unit_test(agrees_with_a_simple_model),
	};

	return cmocka_run_group_tests_name("sack", tests, NULL, NULL);
}
