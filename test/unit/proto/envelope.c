/* SPDX-License-Identifier: BSD-3-Clause */
/* The lower envelope of cost lines against brute force. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/config.h"
#include "msg/msg.h"
#include "proto/proto.h"
#include "proto/select.h"
#include "mock/rounds.h"
#include "unit/proto/dice.h"

/* ------------------------------------------------------------------ envelope */

#define MAX_LINES 24
#define MAX_OUT 256

/* The rule in words: the lowest rank that is valid, of it the least time, of these the first. */
static int brute(const struct weft_env_line *l, unsigned int n, size_t x)
{
	int best = -1;

	for (unsigned int i = 0; i < n; i++) {
		double t, b;

		if (x < l[i].min || x > l[i].max)
			continue;
		if (best < 0 || l[i].rank < l[best].rank) {
			best = (int)i;
			continue;
		}
		t = weft_linear_at(l[i].f, (double)x);
		b = weft_linear_at(l[best].f, (double)x);
		if (l[i].rank == l[best].rank && t < b)
			best = (int)i;
	}
	return best;
}

static int found(const struct weft_env_range *out, int n, size_t x)
{
	for (int i = 0; i < n; i++)
		if (x <= out[i].max)
			return out[i].line;
	fail_msg("no range for %zu", x);
	return -1;
}

static int same_id(const struct weft_env_line *l, int a, int b)
{
	return a == b || (a >= 0 && b >= 0 && l[a].id == l[b].id);
}

static void check_shape(const struct weft_env_line *l, const struct weft_env_range *out, int n)
{
	assert_true(n >= 1);
	assert_true(out[n - 1].max == SIZE_MAX);
	for (int i = 1; i < n; i++) {
		assert_true(out[i].max > out[i - 1].max);
		assert_false(same_id(l, out[i].line, out[i - 1].line));
	}
}

/* Small whole numbers: doubles are exact, so every single size must agree. */
/*
 * @behaviour U58: lower envelope and intersections exact, infinite ranges, random lines equal brute
 * force
 */
static void envelope_of_exact_lines_equals_brute_force(void **state)
{
	struct weft_env_line l[MAX_LINES];
	struct weft_env_range out[MAX_OUT];

	(void)state;
	seed();
	for (unsigned int round = 0; round < test_rounds(4000); round++) {
		unsigned int num = 1 + (unsigned int)rnd(12);
		int n;

		for (unsigned int i = 0; i < num; i++) {
			size_t a = rnd(600), b = rnd(600);

			l[i] = (struct weft_env_line){
				.min = rnd(3) ? 0 : a,
				.max = rnd(3) ? SIZE_MAX : a + b,
				.f = {(double)rnd(400), (double)rnd(20)},
				.rank = (unsigned int)rnd(2),
				.id = i,
			};
			if (rnd(20) == 0)
				l[i].min = l[i].max - 1; /* almost nothing */
		}
		n = weft_envelope(l, num, out, MAX_OUT);
		check_shape(l, out, n);
		for (size_t x = 0; x < 1400; x++)
			if (found(out, n, x) != brute(l, num, x))
				fail_msg("round %u: line %d instead of %d at %zu", round,
					 found(out, n, x), brute(l, num, x), x);
		for (int k = 20; k < 64; k++) /* sizes that products of doubles hold exactly */
			assert_int_equal(found(out, n, SIZE_MAX >> k),
					 brute(l, num, SIZE_MAX >> k));
	}
}

/*
 * Real magnitudes over the whole range: around every change, and at random sizes, no protocol is
 * faster.
 */
/* @behaviour U58 */
static void envelope_of_real_lines_is_the_fastest_everywhere(void **state)
{
	struct weft_env_line l[MAX_LINES];
	struct weft_env_range out[MAX_OUT];

	(void)state;
	seed();
	for (unsigned int round = 0; round < test_rounds(5000); round++) {
		unsigned int num = 1 + (unsigned int)rnd(MAX_LINES);
		int n;

		for (unsigned int i = 0; i < num; i++) {
			size_t a = (size_t)exp_between(1, 1e9);

			l[i] = (struct weft_env_line){
				.min = rnd(4) ? 0 : a,
				.max = rnd(4) ? SIZE_MAX : a + (size_t)exp_between(1, 1e12),
				.f = {exp_between(1e-8, 1e-3), exp_between(1e-12, 1e-8)},
				.rank = rnd(5) == 0,
				.id = i,
			};
		}
		n = weft_envelope(l, num, out, MAX_OUT);
		check_shape(l, out, n);
		for (int i = 0; i < n; i++) {
			for (int d = -3; d <= 3; d++) {
				size_t x = out[i].max + (size_t)d;

				if ((d > 0 && out[i].max > SIZE_MAX - 3) ||
				    (d < 0 && out[i].max < 3))
					continue;
				/*
				 * Near a crossing rounding may call a tie either way: compare
				 * times.
				 */
				int f = found(out, n, x), b = brute(l, num, x);

				if (f == b)
					continue;
				assert_true(f >= 0 && b >= 0);
				assert_int_equal(l[f].rank, l[b].rank);
				assert_true(weft_linear_at(l[f].f, (double)x) <=
					    weft_linear_at(l[b].f, (double)x) * (1 + 1e-12));
			}
		}
		for (int k = 0; k < 50; k++) {
			size_t x = (size_t)exp_between(1, 1e18);

			assert_int_equal(found(out, n, x), brute(l, num, x));
		}
	}
}

static void equal_lines_go_to_the_first(void **state)
{
	const struct weft_env_line l[] = {
		{0, SIZE_MAX, {5, 1}, 0, 1},
		{0, SIZE_MAX, {5, 1}, 0, 2},
		{0, SIZE_MAX, {0, 2}, 0, 3}, /* equal at 5 */
	};
	struct weft_env_range out[4];

	(void)state;
	assert_int_equal(weft_envelope(l, 3, out, 4), 2);
	assert_int_equal(out[0].line, 2);
	assert_int_equal(out[0].max, 4); /* at 5 both take 10: the first */
	assert_int_equal(out[1].line, 0);
}

static void sizes_without_a_line_are_reported(void **state)
{
	const struct weft_env_line l[] = {{10, 20, {1, 1}, 0, 1}, {30, SIZE_MAX, {1, 1}, 0, 2}};
	struct weft_env_range out[8];

	(void)state;
	assert_int_equal(weft_envelope(l, 2, out, 8), 4);
	assert_int_equal(out[0].line, -1);
	assert_int_equal(out[0].max, 9);
	assert_int_equal(out[2].line, -1);
	assert_int_equal(out[2].max, 29);
	assert_int_equal(weft_envelope(l, 2, out, 3), -ENOSPC);
	assert_int_equal(weft_envelope(l, 0, out, 3), 1);
	assert_int_equal(out[0].line, -1);
	assert_true(out[0].max == SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(envelope_of_exact_lines_equals_brute_force),
		cmocka_unit_test(envelope_of_real_lines_is_the_fastest_everywhere),
		cmocka_unit_test(equal_lines_go_to_the_first),
		cmocka_unit_test(sizes_without_a_line_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
