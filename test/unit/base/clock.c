/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clock of the real machine: the first reading does not wait, and readings never go back while
 * the CPU's counter takes the place of clock_gettime().
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/host.h"

enum { THREADS = 4 };

#define MS 1000000ull
/* Far beyond the time after which the counter is used. */
#define READ_FOR (40 * MS)

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
	return weft_platform_host.now(weft_platform_host.arg);
}

static _Atomic uint64_t newest, backward;

/* The CPU may read its counter before an earlier load has ended: not across this. */
static inline void loads_end(void)
{
#ifdef __x86_64__
	__builtin_ia32_lfence();
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Each reading is at least the newest one that any thread had made before. */
static void *read_on(void *arg)
{
	uint64_t end = read_clock(CLOCK_MONOTONIC) + READ_FOR, before, n;

	do {
		before = atomic_load(&newest);
		loads_end();
		n = now();
		if (n < before)
			atomic_fetch_add(&backward, 1);
		while (before < n && !atomic_compare_exchange_weak(&newest, &before, n))
			;
	} while (n < end);
	return arg;
}

/*
 * Must be the first test. CPU time, because the machine may be busy: a loop for 10 ms, as there was
 * one, uses 10 ms of it unless the machine takes the core away.
 */
static void first_reading(void **state)
{
	uint64_t before = read_clock(CLOCK_THREAD_CPUTIME_ID);

	assert_true(now() > 0);
	assert_true(read_clock(CLOCK_THREAD_CPUTIME_ID) - before < 3 * MS);
}

static void never_back(void **state)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(backward, 0);
}

/* Either source has the rate of the system: 100 ms by it are 100 ms, within 1 per mille. */
static void rate(void **state)
{
	uint64_t system = read_clock(CLOCK_MONOTONIC), own = now(), before, after;
	const struct timespec moment = {.tv_nsec = 100 * MS};

	nanosleep(&moment, NULL);
	before = read_clock(CLOCK_MONOTONIC) - system;
	own = now() - own;
	after = read_clock(CLOCK_MONOTONIC) - system;
	/* The readings above were made one after the other. */
	assert_true(own + before / 1000 + MS >= before);
	assert_true(own <= after + after / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_reading),
		cmocka_unit_test(never_back),
		cmocka_unit_test(rate),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
