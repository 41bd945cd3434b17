/* SPDX-License-Identifier: BSD-3-Clause */
/* Intervals against a bitmap, and iov cursors against flat memory. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/container.h"
#include "msg/request.h"

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void check_against(const struct weft_ivals *s, const uint8_t *map, size_t size)
{
	struct weft_ival_pos pos = {0};
	uint8_t *again = calloc(1, size);
	uint64_t covered = 0, end = 0;
	const struct weft_ival *v;
	uint32_t n = 0;

	for (; (v = weft_ivals_next(s, &pos)); n++) {
		assert_true(v->lo < v->hi);
		if (n)
			assert_true(end < v->lo);
		end = v->hi;
		memset(again + v->lo, 1, v->hi - v->lo);
		covered += v->hi - v->lo;
	}
	assert_int_equal(n, s->num);
	assert_int_equal(covered, s->covered);
	assert_memory_equal(again, map, size);
	free(again);
}

/* @behaviour B10 */
static void B10_random_pieces_agree_with_a_bitmap(void **state)
{
	enum { SIZE = 300 };

	(void)state;
	for (int round = 0; round < 500; round++) {
		uint8_t map[SIZE] = {0};
		struct weft_ivals s;

		weft_ivals_init(&s);
		for (int i = 0; i < 60; i++) {
			uint64_t lo = rnd() % SIZE, hi = lo + 1 + rnd() % (round % 20 + 1);
			int rc, expect = 0;

			if (hi > SIZE)
				hi = SIZE;
			for (uint64_t b = lo; b < hi; b++)
				expect = map[b] ? -EEXIST : expect;
			rc = weft_ivals_add(&s, lo, hi);
			assert_int_equal(rc, expect);
			if (rc == 0)
				memset(map + lo, 1, hi - lo);
			check_against(&s, map, SIZE);
		}
		weft_ivals_fini(&s);
	}
}

static void pieces_in_order_never_allocate(void **state)
{
	struct weft_ivals s;

	(void)state;
	weft_ivals_init(&s);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(weft_ivals_add(&s, i * 10, i * 10 + 10), 0);
	assert_int_equal(s.blocks, 0);
	assert_int_equal(s.num, 1);
	assert_int_equal(s.covered, 10000);
}

/* Many islands, in blocks that split and join: bytes at random, and runs that fill what is left. */
static void many_ranges_agree_with_a_bitmap(void **state)
{
	enum { SIZE = 20000 };
	static uint8_t map[SIZE];

	(void)state;
	for (int round = 0; round < 20; round++) {
		uint64_t step = 2 + rnd() % 3;
		struct weft_ivals s;

		memset(map, 0, sizeof(map));
		weft_ivals_init(&s);
		for (int i = 0; i < 30000; i++) {
			uint64_t lo = rnd() % SIZE / step * step;
			uint64_t hi = i < 20000 ? lo + 1 : lo + 1 + rnd() % (2 * step);
			int rc, expect = 0;

			hi = hi > SIZE ? SIZE : hi;
			for (uint64_t b = lo; b < hi; b++)
				expect = map[b] ? -EEXIST : expect;
			rc = weft_ivals_add(&s, lo, hi);
			assert_int_equal(rc, expect);
			if (rc == 0)
				memset(map + lo, 1, hi - lo);
			if (i % 1000 == 0)
				check_against(&s, map, SIZE);
		}
		for (uint64_t lo = 0, hi; lo < SIZE; lo = hi) {
			for (hi = lo; hi < SIZE && map[hi] == map[lo]; hi++)
				;
			if (!map[lo])
				assert_int_equal(weft_ivals_add(&s, lo, hi), 0);
			/* Memory follows what is left: a block for each 16 islands at most. */
			assert_true(s.blocks <= s.num / 16 + 2);
		}
		assert_int_equal(s.num, 1);
		assert_int_equal(s.covered, SIZE);
		weft_ivals_fini(&s);
	}
}

/* Backwards is the worst order: each piece goes before all there are. */
static void ranges_are_bounded(void **state)
{
	struct weft_ivals s;

	(void)state;
	weft_ivals_init(&s);
	for (uint64_t i = WEFT_IVAL_MAX; i-- > 0;)
		assert_int_equal(weft_ivals_add(&s, 3 + 2 * i, 4 + 2 * i), 0);
	assert_int_equal(weft_ivals_add(&s, 1, 2), -E2BIG);
	assert_int_equal(s.num, WEFT_IVAL_MAX);
	assert_true(s.blocks <= WEFT_IVAL_MAX / 16);
	assert_int_equal(weft_ivals_add(&s, 2, 3), 0); /* joined to the first: no island more */
	weft_ivals_fini(&s);
	assert_int_equal(weft_ivals_add(&s, 0, 1), 0);
	assert_int_equal(s.blocks, 0);
}

/* @behaviour B5 */
static void B5_iov_gives_the_same_bytes_at_any_offset(void **state)
{
	uint8_t flat[1000], mem[1000], out[1000];
	struct iovec iov[40];
	const struct weft_datatype type = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_IOV);

	(void)state;
	for (int round = 0; round < 300; round++) {
		size_t n = 0, total = 0;
		struct weft_dt dt;

		/* With empty entries at every place, the ends included. */
		while (n < 40 && total < sizeof(mem)) {
			size_t len = rnd() % 3 ? rnd() % 50 : 0;

			if (len > sizeof(mem) - total)
				len = sizeof(mem) - total;
			iov[n++] = (struct iovec){len ? mem + total : NULL, len};
			total += len;
		}
		for (size_t i = 0; i < total; i++)
			flat[i] = mem[i] = (uint8_t)rnd();
		assert_int_equal(weft_dt_init(&dt, &type, iov, n, false), 0);
		assert_int_equal(dt.length, total);
		for (int i = 0; i < 50 && total; i++) {
			size_t off = rnd() % total, len = 1 + rnd() % (total - off);
			struct iovec pieces[64];
			unsigned int k;
			size_t at = 0;

			assert_int_equal(weft_dt_pack(&dt, off, out, len), 0);
			assert_memory_equal(out, flat + off, len);
			k = weft_dt_iov(&dt, off, len, pieces, 64);
			assert_true(k > 0);
			for (unsigned int j = 0; j < k; j++) {
				assert_memory_equal(pieces[j].iov_base, flat + off + at,
						    pieces[j].iov_len);
				at += pieces[j].iov_len;
			}
			assert_int_equal(at, len);
			for (size_t j = 0; j < len; j++)
				out[j] = flat[off + j] = (uint8_t)rnd();
			assert_int_equal(weft_dt_unpack(&dt, off, out, len), 0);
			assert_memory_equal(mem, flat, total);
		}
	}
}

static void an_iov_whose_lengths_overflow_is_refused(void **state)
{
	const struct weft_datatype type = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_IOV);
	const struct iovec iov[2] = {{NULL, SIZE_MAX}, {NULL, 2}};
	struct weft_dt dt;

	(void)state;
	assert_int_equal(weft_dt_init(&dt, &type, iov, 2, false), -EINVAL);
	assert_int_equal(weft_dt_init(&dt, &type, NULL, 2, false), -EINVAL);
	assert_int_equal(weft_dt_init(&dt, NULL, NULL, 2, false), -EINVAL);
	assert_int_equal(weft_dt_init(&dt, NULL, NULL, 0, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B10_random_pieces_agree_with_a_bitmap),
		cmocka_unit_test(pieces_in_order_never_allocate),
		cmocka_unit_test(many_ranges_agree_with_a_bitmap),
		cmocka_unit_test(ranges_are_bounded),
		cmocka_unit_test(B5_iov_gives_the_same_bytes_at_any_offset),
		cmocka_unit_test(an_iov_whose_lengths_overflow_is_refused),
	};

	return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
