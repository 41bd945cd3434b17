/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rights in the registration cache: what peers may do with a key, and with which bytes. However
 * uses are mixed, a key reaches only what was offered with its right.
 */

#include <stdlib.h>
#include <sys/mman.h>

#include "mem/mem.h"
#include "mock/regcache_util.h"

/* ------------------------------------------------------------------ rights */

static void a_key_allows_what_was_requested_and_an_entry_of_other_rights_is_no_hit(void **state)
{
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	registered = 0;
	/* Sent from, without a key that leaves; then offered; then received into. */
	assert_int_equal(access_for(&s, p, 8 * PAGE, 0), LOCAL);
	assert_int_equal(access_for(&s, p, 8 * PAGE, READ), LOCAL | READ);
	assert_int_equal(registered, 2);
	assert_int_equal(access_for(&s, p, PAGE, LOCAL), LOCAL | READ);
	assert_int_equal(access_for(&s, p, PAGE, 0), LOCAL | READ);
	assert_int_equal(registered, 2);
	assert_int_equal(stats(&s)->entries, 1);
	/*
	 * A peer that may write shall not get the key with which others read, nor the other way
	 * round.
	 */
	assert_int_equal(access_for(&s, p, PAGE, WRITE), LOCAL | WRITE);
	assert_int_equal(access_for(&s, p, PAGE, READ), LOCAL | READ);
	assert_int_equal(registered, 3);
	assert_int_equal(stats(&s)->entries, 2);
	assert_int_equal(stats(&s)->bytes, 9 * PAGE);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

static void an_entry_that_is_replaced_for_its_rights_stays_for_its_user(void **state)
{
	struct weft_mem *old;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	old = get(&s, p, 8 * PAGE);
	access_for(&s, p, 8 * PAGE, READ);
	assert_int_equal(stats(&s)->entries, 1);
	assert_int_equal(seen(&s, old, p), 1);
	assert_int_equal(snapshots, 2);
	weft_mem_put(old);
	assert_int_equal(snapshots, 1);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

/* What peers with a key for a use of [addr, addr + len) get at. */
static void expect_range(struct scene *s, uint8_t *addr, size_t len, unsigned int access,
			 const uint8_t *start, const uint8_t *end)
{
	struct weft_mem *mem = get_for(s, addr, len, access);
	struct snapshot *snap = (struct snapshot *)weft_mem_lane_of(mem, mock_iface(s->w, 0));

	assert_ptr_equal(snap->addr, start);
	assert_ptr_equal((uint8_t *)snap->addr + snap->len, end);
	weft_mem_put(mem);
}

/*
 * @behaviour G3a: a cached key gives access only to bytes that were offered with its right;
 * exhausted locked memory does not cost every message a system call
 */
static void a_key_covers_nothing_that_was_not_offered(void **state)
{
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	/* Not the rest of its pages either. */
	expect_range(&s, p + 100, PAGE, READ, p + 100, p + 100 + PAGE);
	/* Nor what our own lanes have used beside it, before or after. */
	use(&s, p, 4 * PAGE);
	use(&s, p + 6 * PAGE, 2 * PAGE);
	expect_range(&s, p + 100, PAGE, READ, p + 100, p + 100 + PAGE);
	expect_range(&s, p + 5 * PAGE, 2 * PAGE, READ, p + 5 * PAGE, p + 7 * PAGE);
	/* Nor what others may write. */
	expect_range(&s, p + PAGE, PAGE, WRITE, p + PAGE, p + 2 * PAGE);
	/* What was offered in two parts that overlap is offered. */
	expect_range(&s, p + PAGE, 2 * PAGE, READ, p + 100, p + 3 * PAGE);
	expect_range(&s, p + 200, PAGE, READ, p + 100, p + 3 * PAGE);
	expect_range(&s, p + PAGE, PAGE, WRITE, p + PAGE, p + 2 * PAGE);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

/* @behaviour G3a */
static void offers_that_share_a_page_stand_side_by_side(void **state)
{
	struct scene s;
	uint8_t *p;
	int i;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 4, 1);
	registered = 0;
	for (i = 0; i < 3; i++) {
		expect_range(&s, p + 16, 5000, READ, p + 16, p + 5016);
		expect_range(&s, p + 5032, 5000, READ, p + 5032, p + 10032);
	}
	assert_int_equal(registered, 2);
	/* Both go with the page. */
	map_pages(p + PAGE, 1, 7);
	expect_range(&s, p + 16, 5000, READ, p + 16, p + 5016);
	expect_range(&s, p + 5032, 5000, READ, p + 5032, p + 10032);
	assert_int_equal(registered, 4);
	close_scene(&s);
	munmap(p, 4 * PAGE);
}

/* A range that goes must not take the watch of the page away from one that stays. */
/* @behaviour G3a */
static void an_eviction_leaves_the_page_watched_for_its_other_entries(void **state)
{
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p, *q;
	int round;

	NEEDS_UFFD();
	open_scene(&s, "2", "1g", "auto");
	p = map_pages(NULL, 1, 1);
	q = map_pages(NULL, 8, 1);
	for (round = 2; round < 20; round++) {
		access_for(&s, p, 100, READ);
		access_for(&s, p + 200, 100, round % 2 ? READ : WRITE);
		/* The first one is driven out, by an entry elsewhere or in the same page. */
		access_for(&s, round % 4 < 2 ? q + round % 8 * PAGE : p + 400, 100, READ);
		map_pages(p, 1, round);
		mem = get_for(&s, p + 200, 100, round % 2 ? READ : WRITE);
		assert_int_equal(seen(&s, mem, p + 200), round);
		weft_mem_put(mem);
	}
	assert_true(stats(&s)->evicted >= 10);
	close_scene(&s);
	munmap(p, PAGE);
	munmap(q, 8 * PAGE);
}

#define GRAIN 512
#define GRAINS (16 * PAGE / GRAIN)

/* Any uses, in any order: no key ever reaches a byte that was not offered with its right. */
/* @behaviour G3a */
static void no_mixture_of_uses_makes_a_key_reach_further(void **state)
{
	static const unsigned int rights[] = {0, LOCAL, READ, WRITE, READ | LOCAL};
	bool offered[2][GRAINS] = {0};
	unsigned int i, k, from, num, seed = 1;
	struct snapshot *snap;
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "6", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	for (i = 0; i < 3000; i++) {
		unsigned int access = rights[rand_r(&seed) % 5], put = !!(access & WRITE);

		from = (unsigned int)rand_r(&seed) % GRAINS;
		num = 1 + (unsigned int)rand_r(&seed) % (GRAINS - from);
		if (rand_r(&seed) % 64 == 0)
			map_pages(p + rand_r(&seed) % 16 * PAGE, 1, 1);
		mem = get_for(&s, p + from * GRAIN, num * GRAIN, access);
		snap = (struct snapshot *)weft_mem_lane_of(mem, mock_iface(s.w, 0));
		if (access & (READ | WRITE)) {
			memset(&offered[put][from], 1, num);
			assert_int_equal(snap->access & (READ | WRITE), access & (READ | WRITE));
			assert_int_equal(((uint8_t *)snap->addr - p) % GRAIN, 0);
			assert_int_equal(snap->len % GRAIN, 0);
			k = (unsigned int)((uint8_t *)snap->addr - p) / GRAIN;
			assert_null(memchr(&offered[put][k], 0, snap->len / GRAIN));
		}
		weft_mem_put(mem);
	}
	assert_true(stats(&s)->hits > 300 && stats(&s)->evicted > 10);
	close_scene(&s);
	munmap(p, 16 * PAGE);
}

static void what_peers_may_write_has_one_user_and_dies_when_he_wants_it(void **state)
{
	struct weft_mem *a, *b, *c;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	access_for(&s, p, 8 * PAGE, WRITE);
	registered = 0;
	a = get_for(&s, p, 2 * PAGE, WRITE);
	assert_int_equal(registered, 0);
	b = get_for(&s, p + 4 * PAGE, PAGE, WRITE);
	assert_ptr_not_equal(a, b);
	c = get(&s, p, PAGE);
	assert_ptr_not_equal(a, c);
	assert_int_equal(snapshots, 3);
	weft_mem_put_dead(a);
	assert_int_equal(snapshots, 2);
	weft_mem_put_dead(b);
	assert_int_equal(snapshots, 1);
	weft_mem_put(c);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

static void what_peers_may_read_dies_with_its_last_user_and_is_not_found_by_new_ones(void **state)
{
	struct weft_mem *a, *b, *c;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	a = get_for(&s, p, 8 * PAGE, READ);
	b = get_for(&s, p, 8 * PAGE, READ);
	assert_ptr_equal(a, b);
	weft_mem_put_dead(a);
	assert_int_equal(snapshots, 1);
	c = get_for(&s, p, 8 * PAGE, READ);
	assert_ptr_not_equal(b, c);
	weft_mem_put(b);
	assert_int_equal(snapshots, 1);
	weft_mem_put(c);
	assert_int_equal(stats(&s)->entries, 1);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

static void memory_for_reading_only_can_be_sent_but_not_received_into(void **state)
{
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 2, 1);
	read_only = p;
	assert_int_equal(access_for(&s, p, PAGE, 0), 0);
	assert_int_equal(access_for(&s, p, PAGE, READ), READ);
	assert_int_equal(weft_mem_get(s.ctx, p, PAGE, LOCAL, &mem), -EFAULT);
	assert_int_equal(weft_mem_get(s.ctx, p, PAGE, WRITE, &mem), -EFAULT);
	read_only = NULL;
	close_scene(&s);
	munmap(p, 2 * PAGE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(a_key_allows_what_was_requested_and_an_entry_of_other_rights_is_no_hit),
		CONN_TEST(an_entry_that_is_replaced_for_its_rights_stays_for_its_user),
		CONN_TEST(a_key_covers_nothing_that_was_not_offered),
		CONN_TEST(offers_that_share_a_page_stand_side_by_side),
		CONN_TEST(an_eviction_leaves_the_page_watched_for_its_other_entries),
		CONN_TEST(no_mixture_of_uses_makes_a_key_reach_further),
		CONN_TEST(what_peers_may_write_has_one_user_and_dies_when_he_wants_it),
		CONN_TEST(what_peers_may_read_dies_with_its_last_user_and_is_not_found_by_new_ones),
		CONN_TEST(memory_for_reading_only_can_be_sent_but_not_received_into),
	};

	weft_log_level = WEFT_LOG_ERROR;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("regcache, rights", tests, NULL, NULL);
}
