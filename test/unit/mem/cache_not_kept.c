/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations that are refused, cannot be kept, or make room for others. */

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mock/regcache_util.h"

/* ------------------------------------------------------------------ what is not kept */

/* @behaviour G3 */
static void what_cannot_be_watched_for_certain_is_not_kept(void **state)
{
	uint8_t *shared, *file, *hole;
	struct weft_uffd_range whole;
	struct scene s;
	FILE *f = tmpfile();

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	shared = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), 4 * PAGE), 0);
	file = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	memset(shared, 1, 4 * PAGE);
	memset(file, 2, 4 * PAGE);
	assert_int_equal(use(&s, shared, 4 * PAGE), 1);
	assert_int_equal(use(&s, file, 4 * PAGE), 2);
	assert_int_equal(stats(&s)->entries, 0);
	assert_int_equal(stats(&s)->uncached, 2);
	assert_int_equal(snapshots, 0);
	hole = map_pages(NULL, 3, 1);
	munmap(hole + PAGE, PAGE);
	assert_false(weft_uffd_anonymous((uintptr_t)hole, (uintptr_t)hole + 3 * PAGE, &whole));
	assert_true(weft_uffd_anonymous((uintptr_t)hole, (uintptr_t)hole + PAGE, &whole));
	munmap(hole, 3 * PAGE);
	munmap(shared, 4 * PAGE);
	munmap(file, 4 * PAGE);
	fclose(f);
	close_scene(&s);
}

static void off_registers_every_time(void **state)
{
	struct scene s;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 4, 1);
	registered = 0;
	use(&s, p, PAGE);
	use(&s, p, PAGE);
	assert_int_equal(registered, 2);
	assert_int_equal(snapshots, 0);
	close_scene(&s);
	munmap(p, 4 * PAGE);
}

static void a_refused_registration_is_the_callers_error(void **state)
{
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 4, 1);
	refuse = -ENOMEM;
	assert_int_equal(weft_mem_get(s.ctx, p, PAGE, 0, &mem), -ENOMEM);
	refuse = 0;
	mock_now += 2 * WEFT_BACKOFF_MIN_NS;
	assert_int_equal(use(&s, p, PAGE), 1);
	close_scene(&s);
	munmap(p, 4 * PAGE);
}

/* Lines of the log file with @p what. */
static unsigned int count_lines(const char *path, const char *what)
{
	FILE *f = fopen(path, "r");
	unsigned int n = 0;
	char line[600];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, what) != NULL;
	fclose(f);
	return n;
}

static void a_registration_that_fails_with_every_message_is_logged_once_per_reason(void **state)
{
	char path[] = "/tmp/weft-regcache-XXXXXX";
	int fd = mkstemp(path), level = weft_log_level;
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;
	int i;

	(void)state;
	assert_true(fd >= 0);
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 4, 1);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, path), 0);
	for (i = 0; i < 100; i++) {
		refuse = i % 2 ? -ENOMEM : -EPERM;
		mock_now += 2000000000; /* else it is not asked for again so soon */
		assert_int_equal(weft_mem_get(s.ctx, p, PAGE, 0, &mem), refuse);
	}
	/* A program that registers memory itself gets the error each time. */
	assert_int_equal(weft_mem_register(s.ctx, p, PAGE, NULL, &mem), refuse);
	assert_int_equal(weft_mem_register(s.ctx, p, PAGE, NULL, &mem), refuse);
	refuse = 0;
	assert_int_equal(weft_log_setup(WEFT_LOG_ERROR, "/dev/null"), 0);
	assert_int_equal(count_lines(path, "large messages"), 2);
	assert_int_equal(count_lines(path, "raise it"), 4);
	assert_int_equal(count_lines(path, "weft error"), 2);
	weft_log_level = level;
	close_scene(&s);
	munmap(p, 4 * PAGE);
	close(fd);
	unlink(path);
}

static void what_made_room_takes_no_watch_from_what_it_made_room_for(void **state)
{
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 16, 1);
	lockable = 16 * PAGE;
	use(&s, p, 10 * PAGE);
	/* The same memory and some more: only without the first one. */
	use(&s, p, 16 * PAGE);
	map_pages(p, 1, 7);
	mem = get(&s, p, 16 * PAGE);
	assert_int_equal(seen(&s, mem, p), 7);
	weft_mem_put(mem);
	lockable = 0;
	close_scene(&s);
	munmap(p, 16 * PAGE);
}

/* @behaviour G3a */
static void used_up_locked_memory_is_not_retried_with_every_message(void **state)
{
	struct weft_mem *mem, *other;
	struct scene s;
	uint8_t *p;
	int i;

	(void)state;
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 64, 1);
	lockable = 16 * PAGE;
	reg_calls = 0;
	for (i = 0; i < 1000; i++) {
		mock_now += 10000;
		assert_int_equal(weft_mem_get(s.ctx, p, 32 * PAGE, 0, &mem), -ENOMEM);
	}
	/* 10 ms: at 0, 1, 3 and 7 ms. */
	assert_in_range(reg_calls, 3, 5);
	/* Then once a second. */
	reg_calls = 0;
	for (i = 0; i < 600; i++) {
		mock_now += 100000000;
		assert_int_equal(weft_mem_get(s.ctx, p, 32 * PAGE, 0, &mem), -ENOMEM);
	}
	assert_in_range(reg_calls, 55, 75);
	/* What is smaller may go, and does not bring the larger one back. */
	reg_calls = 0;
	for (i = 0; i < 100; i++) {
		assert_int_equal(use(&s, p, 8 * PAGE), 1);
		assert_int_equal(weft_mem_get(s.ctx, p, 32 * PAGE, 0, &mem), -ENOMEM);
	}
	assert_int_equal(reg_calls, 100);
	/* A limit that was raised is noticed, and after that all is as ever. */
	lockable = 0;
	mock_now += 2000000000;
	use(&s, p, 32 * PAGE);
	reg_calls = 0;
	use(&s, p, 32 * PAGE);
	use(&s, p, 64 * PAGE);
	assert_int_equal(reg_calls, 2);
	/* Memory that was deregistered is tried at once. */
	assert_int_equal(weft_mem_register(s.ctx, p, 12 * PAGE, NULL, &other), 0);
	lockable = 16 * PAGE;
	assert_int_equal(weft_mem_get(s.ctx, p, 8 * PAGE, 0, &mem), -ENOMEM);
	reg_calls = 0;
	assert_int_equal(weft_mem_get(s.ctx, p, 8 * PAGE, 0, &mem), -ENOMEM);
	assert_int_equal(reg_calls, 0);
	weft_mem_deregister(other);
	use(&s, p, 8 * PAGE);
	lockable = 0;
	close_scene(&s);
	munmap(p, 64 * PAGE);
}

/* @behaviour G3a */
static void what_is_kept_makes_room_when_locked_memory_is_used_up(void **state)
{
	struct weft_mem *held, *mem;
	struct scene s;
	uint8_t *p;
	int i;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 256, 1);
	lockable = 16 * PAGE;
	for (i = 0; i < 20; i++)
		use(&s, p + 10 * i * PAGE, 5 * PAGE);
	assert_int_equal(stats(&s)->misses, 20 + 1);
	assert_int_equal(stats(&s)->entries, 3);
	/* What is in use stays, and what can't be had drives nothing out again and again. */
	held = get(&s, p, 8 * PAGE);
	assert_int_equal(weft_mem_get(s.ctx, p + 100 * PAGE, 64 * PAGE, 0, &mem), -ENOMEM);
	assert_int_equal(seen(&s, held, p), 1);
	use(&s, p + 30 * PAGE, 4 * PAGE);
	reg_calls = 0;
	for (i = 0; i < 100; i++)
		assert_int_equal(weft_mem_get(s.ctx, p + 100 * PAGE, 64 * PAGE, 0, &mem), -ENOMEM);
	assert_int_equal(reg_calls, 0);
	use(&s, p + 30 * PAGE, 4 * PAGE);
	assert_int_equal(reg_calls, 0);
	weft_mem_put(held);
	lockable = 0;
	close_scene(&s);
	munmap(p, 256 * PAGE);
}

/* An address that can't be registered says nothing of others. */
static void memory_that_is_bad_by_itself_stops_no_other(void **state)
{
	struct weft_mem *mem;
	struct scene s;
	uint8_t *p;

	(void)state;
	open_scene(&s, "16", "1g", "off");
	p = map_pages(NULL, 4, 1);
	read_only = p;
	assert_int_equal(weft_mem_get(s.ctx, p, PAGE, LOCAL, &mem), -EFAULT);
	assert_int_equal(use(&s, p + PAGE, PAGE), 1);
	read_only = NULL;
	close_scene(&s);
	munmap(p, 4 * PAGE);
}

/* Workers come and go; what is kept follows, and the context can be destroyed with it. */
static void kept_registrations_follow_the_interfaces(void **state)
{
	struct scene s;
	uint8_t *p;

	NEEDS_UFFD();
	open_scene(&s, "16", "1g", "auto");
	p = map_pages(NULL, 4, 1);
	use(&s, p, 4 * PAGE);
	weft_worker_destroy(s.w);
	assert_int_equal(snapshots, 0);
	s.w = mock_worker(s.ctx, "snap:0");
	assert_int_equal(snapshots, 1);
	registered = 0;
	assert_int_equal(use(&s, p, 4 * PAGE), 1);
	assert_int_equal(registered, 0);
	close_scene(&s);
	munmap(p, 4 * PAGE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(what_cannot_be_watched_for_certain_is_not_kept),
		CONN_TEST(off_registers_every_time),
		CONN_TEST(a_refused_registration_is_the_callers_error),
		CONN_TEST(a_registration_that_fails_with_every_message_is_logged_once_per_reason),
		CONN_TEST(what_made_room_takes_no_watch_from_what_it_made_room_for),
		CONN_TEST(used_up_locked_memory_is_not_retried_with_every_message),
		CONN_TEST(what_is_kept_makes_room_when_locked_memory_is_used_up),
		CONN_TEST(memory_that_is_bad_by_itself_stops_no_other),
		CONN_TEST(kept_registrations_follow_the_interfaces),
	};

	weft_log_level = WEFT_LOG_ERROR;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("regcache, not kept", tests, NULL, NULL);
}
