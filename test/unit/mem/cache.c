/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The registration cache on real memory and the kernel's userfaultfd: what is unmapped, moved or
 * emptied is never found again. Registrations are the mock's: it copies what is in the memory when
 * it is registered, so that a stale hit shows old content, as a NIC would.
 */

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mock/regcache_util.h"

/* ------------------------------------------------------------------ hits */

static void the_second_use_is_a_hit(void **state)
{
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 32, 1);
	registered = 0;
	assert_int_equal(use(&s, p, 32 * PAGE), 1);
	assert_int_equal(use(&s, p, 32 * PAGE), 1);
	assert_int_equal(use(&s, p + 100, 5 * PAGE), 1);
	assert_int_equal(registered, 1);
	assert_int_equal(stats(&s)->hits, 2);
	assert_int_equal(stats(&s)->entries, 1);
	assert_int_equal(stats(&s)->bytes, 32 * PAGE);
	close_scene(&s);
	munmap(p, 32 * PAGE);
}

/* All that the cache counts; it is the context's, so both workers tell the same. */
static void check_counters(struct weft_worker *w, const struct weft_regcache_stats *want)
{
	assert_int_equal(conn_counter(w, "regcache.hits"), want->hits);
	assert_int_equal(conn_counter(w, "regcache.misses"), want->misses);
	assert_int_equal(conn_counter(w, "regcache.uncached"), want->uncached);
	assert_int_equal(conn_counter(w, "regcache.evicted"), want->evicted);
	assert_int_equal(conn_counter(w, "regcache.invalidated"), want->invalidated);
	assert_int_equal(conn_counter(w, "regcache.entries_now"), want->entries);
	assert_int_equal(conn_counter(w, "regcache.bytes_now"), want->bytes);
}

static void each_worker_of_the_context_reports_the_counters(void **state)
{
	struct weft_regcache_stats want;
	struct weft_worker *other;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "2", "64k", "auto");
	other = mock_worker(s.ctx, "snap:0");
	want = *stats(&s);
	p = map_pages(NULL, 64, 1);
	use(&s, p, 3 * PAGE);
	use(&s, p, 3 * PAGE);
	use(&s, p, PAGE);
	use(&s, p + 8 * PAGE, 2 * PAGE);
	use(&s, p + 16 * PAGE, 4 * PAGE);  /* the first goes */
	use(&s, p + 32 * PAGE, 32 * PAGE); /* more than may be kept */
	want.hits += 2;
	want.misses += 3;
	want.evicted += 1;
	want.uncached += 1;
	want.entries = 2;
	want.bytes = 6 * PAGE;
	check_counters(s.w, &want);
	munmap(p, 64 * PAGE);
	want.invalidated += 2;
	want.entries = want.bytes = 0;
	check_counters(s.w, &want);
	check_counters(other, &want);
	weft_worker_destroy(other);
	close_scene(&s);
}

static void with_the_cache_off_all_is_uncached(void **state)
{
	struct scene s;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 1, 1);
	use(&s, p, PAGE);
	use(&s, p, PAGE);
	check_counters(s.w, &(struct weft_regcache_stats){.uncached = 1 + 2}); /* open_scene()'s */
	close_scene(&s);
	munmap(p, PAGE);
}

static void overlapping_uses_become_one_entry(void **state)
{
	struct weft_mem *old;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 30, 1);
	old = get(&s, p, 10 * PAGE);
	use(&s, p + 20 * PAGE, 10 * PAGE);
	assert_int_equal(stats(&s)->entries, 2);
	use(&s, p + 5 * PAGE, 20 * PAGE);
	assert_int_equal(stats(&s)->entries, 1);
	assert_int_equal(stats(&s)->bytes, 30 * PAGE);
	/* The one in use is still there for its user. */
	assert_int_equal(seen(&s, old, p), 1);
	assert_int_equal(snapshots, 2);
	weft_mem_put(old);
	assert_int_equal(snapshots, 1);
	close_scene(&s);
	munmap(p, 30 * PAGE);
}

/* ------------------------------------------------------------------ what goes away */

/*
 * @behaviour G3: registration cache: never stale after munmap, mmap over, mremap, madvise; bounded;
 * fork
 */
static void unmapped_memory_is_never_found_again(void **state)
{
	unsigned int i;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 0);
	for (i = 0; i < 2000; i++) {
		assert_int_equal(use(&s, p, 16 * PAGE), i & 0xff);
		assert_int_equal(use(&s, p, 16 * PAGE), i & 0xff);
		/* By turns: unmap and map again; map over it; unmap one page in the middle. */
		if (i % 3 == 0)
			assert_int_equal(munmap(p, 16 * PAGE), 0);
		else if (i % 3 == 2)
			assert_int_equal(munmap(p + 7 * PAGE, PAGE), 0);
		map_pages(p, 16, (i + 1) & 0xff);
	}
	assert_true(stats(&s)->hits >= 2000);
	assert_true(stats(&s)->invalidated >= 1999);
	/* What was invalidated does not stay registered. */
	weft_worker_progress(s.w);
	assert_true(snapshots <= 1);
	close_scene(&s);
	munmap(p, 16 * PAGE);
}

/* @behaviour G3 */
static void emptied_memory_is_registered_anew(void **state)
{
	struct scene s;
	uint8_t *p;
	int advice[] = {MADV_DONTNEED, MADV_FREE}, i;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	for (i = 0; i < 2; i++) {
		map_pages(p, 16, 1);
		assert_int_equal(use(&s, p, 16 * PAGE), 1);
		assert_int_equal(madvise(p, PAGE, advice[i]), 0);
		p[0] = 7;
		registered = 0;
		assert_int_equal(use(&s, p, 16 * PAGE), 7);
		assert_int_equal(registered, 1);
	}
	close_scene(&s);
	munmap(p, 16 * PAGE);
}

/* @behaviour G3 */
static void moved_memory_is_registered_at_its_new_place(void **state)
{
	uint8_t *p, *place, *q;
	struct scene s;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	place = map_pages(NULL, 16, 9);
	assert_int_equal(use(&s, p, 16 * PAGE), 1);
	assert_int_equal(use(&s, place, 16 * PAGE), 9);
	q = mremap(p, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	assert_true(q == place);
	assert_int_equal(use(&s, q, 16 * PAGE), 1);
	map_pages(p, 16, 5);
	assert_int_equal(use(&s, p, 16 * PAGE), 5);
	/* Shrunk in place. */
	q = mremap(p, 16 * PAGE, 8 * PAGE, 0);
	assert_true(q == p);
	map_pages(p + 8 * PAGE, 8, 6);
	assert_int_equal(use(&s, p + 8 * PAGE, 8 * PAGE), 6);
	close_scene(&s);
	munmap(p, 16 * PAGE);
	munmap(place, 16 * PAGE);
}

/* Pages that no other mapping touches, so that each is one mapping of its own. */
static uint8_t *map_apart(size_t pages)
{
	uint8_t *p = mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + PAGE, pages * PAGE, PROT_READ | PROT_WRITE), 0);
	memset(p + PAGE, 1, pages * PAGE);
	return p + PAGE;
}

/* A part was used, wherever it is; the program's own mremap() takes the whole. */
/* @behaviour G3 */
static void memory_of_which_a_part_was_used_can_be_moved(void **state)
{
	static const size_t first[] = {0, 100, 200}, count[] = {1, 50, 56};
	uint8_t *p, *q;
	struct scene s;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	for (unsigned int i = 0; i < 3; i++) {
		p = map_apart(256);
		assert_int_equal(use(&s, p + first[i] * PAGE, count[i] * PAGE), 1);
		q = mremap(p, 256 * PAGE, 512 * PAGE, MREMAP_MAYMOVE);
		assert_true(q != MAP_FAILED);
		q[first[i] * PAGE] = 2;
		assert_int_equal(use(&s, q + first[i] * PAGE, count[i] * PAGE), 2);
		q = mremap(q, 512 * PAGE, 64 * PAGE, 0);
		assert_true(q != MAP_FAILED);
		munmap(q, 64 * PAGE);
	}
	close_scene(&s);
}

/* By its line of /proc/self/smaps: "uw" = userfaultfd, write protection. */
static bool is_watched(const void *addr)
{
	unsigned long start = 0, end = 0, from, to;
	bool found = false;
	char line[512];
	FILE *f = fopen("/proc/self/smaps", "re");

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			start = from;
			end = to;
		} else if ((uintptr_t)addr >= start && (uintptr_t)addr < end &&
			   strncmp(line, "VmFlags:", 8) == 0) {
			found = strstr(line, " uw") != NULL;
			break;
		}
	}
	fclose(f);
	return found;
}

/* What is evicted leaves no hole in what is watched. */
/* @behaviour G3 */
static void memory_of_which_a_part_was_evicted_can_be_moved(void **state)
{
	uint8_t *p, *q, *other;
	struct scene s;

	NEEDS_UFFD();
	open_scene(&s, "2", "1g", "auto");
	p = map_apart(256);
	other = map_apart(16);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(use(&s, p + i * 32 * PAGE, 4 * PAGE), 1);
	q = mremap(p, 256 * PAGE, 512 * PAGE, MREMAP_MAYMOVE);
	assert_true(q != MAP_FAILED);
	/* The last entry of a mapping ends its watch: emptying it is no event any more. */
	assert_int_equal(use(&s, q, PAGE), 1);
	assert_int_equal(use(&s, other, PAGE), 1);
	assert_int_equal(use(&s, other + 8 * PAGE, PAGE), 1);
	assert_int_equal(stats(&s)->entries, 2);
	assert_false(is_watched(q));
	assert_true(is_watched(other + 15 * PAGE));
	munmap(q, 512 * PAGE);
	munmap(other, 16 * PAGE);
	close_scene(&s);
}

/* The mapping, used as a whole, stays one while a peer may read a page of it. */
/* @behaviour G3 */
static void memory_whose_use_as_a_whole_was_evicted_can_be_moved(void **state)
{
	uint8_t *p, *q, *other;
	struct scene s;

	NEEDS_UFFD();
	open_scene(&s, "2", "1g", "auto");
	p = map_apart(256);
	other = map_apart(16);
	assert_int_equal(use(&s, p, 256 * PAGE), 1);
	access_for(&s, p, PAGE, READ);
	assert_int_equal(use(&s, other, PAGE), 1);
	assert_int_equal(stats(&s)->evicted, 1);
	q = mremap(p, 256 * PAGE, 512 * PAGE, MREMAP_MAYMOVE);
	assert_true(q != MAP_FAILED);
	munmap(q, 512 * PAGE);
	munmap(other, 16 * PAGE);
	close_scene(&s);
}

/* @behaviour G3 */
static void a_child_process_changes_nothing_here(void **state)
{
	struct scene s;
	uint8_t *p;
	int status;
	pid_t pid;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	assert_int_equal(use(&s, p, 16 * PAGE), 1);
	pid = fork();
	if (pid == 0) {
		/* It may do with its memory what it likes, without anybody listening. */
		memset(p, 2, 16 * PAGE);
		if (use(&s, p, 16 * PAGE) != 2)
			_exit(1);
		munmap(p, 16 * PAGE);
		map_pages(p, 16, 3);
		_exit(use(&s, p, 16 * PAGE) == 3 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	registered = 0;
	assert_int_equal(use(&s, p, 16 * PAGE), 1);
	assert_int_equal(registered, 0);
	close_scene(&s);
	munmap(p, 16 * PAGE);
}

/* The child has copies of our descriptors; what was watched must not stay so with them. */
static void a_child_that_lives_on_does_not_prevent_unmapping_after_the_end(void **state)
{
	struct pollfd fd = {.events = POLLIN};
	int ends[2], status;
	struct scene s;
	uint8_t *p;
	pid_t pid;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	assert_int_equal(use(&s, p, 16 * PAGE), 1);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		/* Till the other end is closed: the parent does not wait for this process. */
		close(ends[1]);
		fd.fd = ends[0];
		_exit(poll(&fd, 1, 15000) > 0 ? 0 : 1);
	}
	close_scene(&s);
	munmap(p, 16 * PAGE);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ------------------------------------------------------------------ threads */

struct threads {
	struct scene *s;
	uint8_t *area;
	_Atomic bool stop;
	_Atomic unsigned int stale, rounds;
};

/*
 * Each thread maps the same address anew, or a neighbour's unmapping has just freed it: what it
 * registers must be its own content.
 */
static void *map_and_use(void *arg)
{
	struct threads *t = arg;
	uint8_t *p;
	uint8_t mark;

	while (!atomic_load(&t->stop)) {
		p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		mark = (uint8_t)(atomic_fetch_add(&t->rounds, 1) % 250 + 1);
		p[0] = mark;
		if (use(t->s, p, 64 * PAGE) != mark || use(t->s, p, 64 * PAGE) != mark)
			atomic_fetch_add(&t->stale, 1);
		munmap(p, 64 * PAGE);
	}
	return NULL;
}

/* @behaviour G3 */
static void threads_that_map_each_others_addresses_see_their_own_content(void **state)
{
	struct threads t = {0};
	pthread_t id[4];
	struct scene s;
	unsigned int i;

	NEEDS_UFFD();
	open_scene(&s, "64", "1g", "auto");
	t.s = &s;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&id[i], NULL, map_and_use, &t), 0);
	for (i = 0; i < 4000 && atomic_load(&t.rounds) < 20000; i++)
		usleep(1000);
	atomic_store(&t.stop, true);
	for (i = 0; i < 4; i++)
		pthread_join(id[i], NULL);
	assert_int_equal(t.stale, 0);
	assert_true(t.rounds > 100);
	close_scene(&s);
}

/* ------------------------------------------------------------------ bounds */

/* @behaviour G3 */
static void entries_and_bytes_are_bounded_and_the_longest_unused_go(void **state)
{
	struct weft_mem *held;
	struct scene s;
	unsigned int i;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "8", "64k", "auto");
	p = map_pages(NULL, 200, 1);
	held = get(&s, p, 2 * PAGE);
	for (i = 1; i < 50; i++) {
		use(&s, p + 4 * i * PAGE, PAGE);
		assert_in_range(stats(&s)->entries, 1, 8);
		assert_in_range(snapshots, 1, 8);
	}
	/* The recent ones are there, the old ones are not, and what is in use stays. */
	registered = 0;
	use(&s, p + 4 * 49 * PAGE, PAGE);
	use(&s, p, 2 * PAGE);
	assert_int_equal(registered, 0);
	use(&s, p + 4 * PAGE, PAGE);
	assert_int_equal(registered, 1);
	assert_int_equal(seen(&s, held, p), 1);
	/* 16 pages in all: a larger one is not kept; 14 more beside the 2 that are held are. */
	use(&s, p + 4 * PAGE, 17 * PAGE);
	assert_true(stats(&s)->bytes <= 16 * PAGE);
	use(&s, p + 4 * PAGE, 14 * PAGE);
	assert_int_equal(stats(&s)->bytes, 16 * PAGE);
	assert_int_equal(stats(&s)->entries, 2);
	weft_mem_put(held);
	close_scene(&s);
	munmap(p, 200 * PAGE);
}

/*
 * Evicted ranges are no longer watched: no thread waits for their events, and they can be watched
 * again.
 */
static void what_was_evicted_can_be_kept_again(void **state)
{
	struct scene s;
	unsigned int i;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "2", "1g", "auto");
	p = map_pages(NULL, 8, 1);
	for (i = 0; i < 400; i++) {
		use(&s, p + i % 4 * 2 * PAGE, PAGE);
		if (i % 7 == 0) {
			map_pages(p + i % 4 * 2 * PAGE, 1, (int)(i & 0xff));
			assert_int_equal(use(&s, p + i % 4 * 2 * PAGE, PAGE), i & 0xff);
		}
	}
	assert_true(stats(&s)->evicted > 200);
	close_scene(&s);
	munmap(p, 8 * PAGE);
}

/* ------------------------------------------------------------------ cost */

static void registering_is_measured(void **state)
{
	struct weft_iface_info info = {.size = sizeof(info)};
	struct scene s;
	unsigned int i;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 64, 1);
	reg_ns = 400;
	for (i = 0; i < 40; i++)
		use(&s, p, (1 + i % 64) * PAGE);
	reg_ns = 0;
	assert_int_equal(weft_worker_query_iface(s.w, 0, &info), 0);
	assert_in_range((int)(info.reg_cost * 1e9), 990, 1010);
	assert_in_range((int)(info.reg_growth * 1e9 * PAGE), 396, 404);
	close_scene(&s);
	munmap(p, 64 * PAGE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(the_second_use_is_a_hit),
		CONN_TEST(each_worker_of_the_context_reports_the_counters),
		CONN_TEST(with_the_cache_off_all_is_uncached),
		CONN_TEST(overlapping_uses_become_one_entry),
		CONN_TEST(unmapped_memory_is_never_found_again),
		CONN_TEST(emptied_memory_is_registered_anew),
		CONN_TEST(moved_memory_is_registered_at_its_new_place),
		CONN_TEST(memory_of_which_a_part_was_used_can_be_moved),
		CONN_TEST(memory_of_which_a_part_was_evicted_can_be_moved),
		CONN_TEST(memory_whose_use_as_a_whole_was_evicted_can_be_moved),
		CONN_TEST(a_child_process_changes_nothing_here),
		CONN_TEST(a_child_that_lives_on_does_not_prevent_unmapping_after_the_end),
		CONN_TEST(threads_that_map_each_others_addresses_see_their_own_content),
		CONN_TEST(entries_and_bytes_are_bounded_and_the_longest_unused_go),
		CONN_TEST(what_was_evicted_can_be_kept_again),
		CONN_TEST(registering_is_measured),
	};

	weft_log_level = WEFT_LOG_ERROR;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("regcache", tests, NULL, NULL);
}
