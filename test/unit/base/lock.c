/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of a worker: exclusion, recursion, shares of threads, threads of a real-time policy. */

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/thread.h"
#include "mock/rounds.h"

#define THREADS 3
#define WAITS 401

static struct weft_lock lock;

static void pause_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* Both change under the lock alone: a lost update shows two owners. */
static unsigned long guarded, guarded_too;

static void *count_up(void *arg)
{
	const unsigned long rounds = *(unsigned long *)arg;

	for (unsigned long i = 0; i < rounds; i++) {
		weft_lock_acquire(&lock);
		guarded++;
		weft_lock_acquire(&lock);
		guarded_too++;
		weft_lock_release(&lock);
		if (i % 64 == 0)
			pause_us(1);
		weft_lock_release(&lock);
	}
	return NULL;
}

static void one_thread_at_a_time_has_it(void **state)
{
	unsigned long rounds = test_rounds(20000);
	pthread_t thread[THREADS];

	(void)state;
	guarded = guarded_too = 0;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count_up, &rounds), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(guarded, THREADS * rounds);
	assert_int_equal(guarded_too, THREADS * rounds);
	assert_int_equal(lock.depth, 0);
	assert_int_equal(atomic_load(&lock.waiting), 0);
}

static void *try_once(void *arg)
{
	*(bool *)arg = weft_lock_try(&lock);
	if (*(bool *)arg)
		weft_lock_release(&lock);
	return NULL;
}

static bool another_thread_gets_it(void)
{
	pthread_t thread;
	bool got = false;

	assert_int_equal(pthread_create(&thread, NULL, try_once, &got), 0);
	pthread_join(thread, NULL);
	return got;
}

static void it_is_free_after_as_many_releases(void **state)
{
	(void)state;
	weft_lock_acquire(&lock);
	assert_true(weft_lock_try(&lock));
	assert_false(another_thread_gets_it());
	weft_lock_release(&lock);
	assert_false(another_thread_gets_it());
	weft_lock_release(&lock);
	assert_true(another_thread_gets_it());
}

static atomic_bool stop;
static _Atomic unsigned long acquired;

static void *acquire_without_pause(void *arg)
{
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		weft_lock_acquire(&lock);
		atomic_fetch_add_explicit(&acquired, 1, memory_order_relaxed);
		weft_lock_release(&lock);
	}
	return arg;
}

static int by_value(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return (x > y) - (x < y);
}

static unsigned long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)(t.tv_sec * 1000000 + t.tv_nsec / 1000);
}

/*
 * The lower quartile, since threads of other processes take cores away in the meantime. Where the
 * owner does not give way, a waiting thread meets a free lock by chance.
 */
static void a_waiting_thread_gets_it_in_bounded_time(void **state)
{
	static unsigned long waited[WAITS];
	unsigned long before;
	pthread_t thread;

	(void)state;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, acquire_without_pause, NULL), 0);
	while (atomic_load(&acquired) == 0)
		pause_us(100);
	for (int i = 0; i < WAITS; i++) {
		before = now_us();
		weft_lock_acquire(&lock);
		waited[i] = now_us() - before;
		weft_lock_release(&lock);
		pause_us(20);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	qsort(waited, WAITS, sizeof(waited[0]), by_value);
	assert_true(waited[WAITS / 4] <= 200);
}

static void pin_to_one_core(pthread_t thread)
{
	cpu_set_t allowed, one;
	int core = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	while (!CPU_ISSET(core, &allowed))
		core++;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	pthread_setaffinity_np(thread, sizeof(one), &one);
}

static atomic_bool held, got;

static void *hold_for_a_while(void *arg)
{
	struct timespec t;
	long end;

	pin_to_one_core(pthread_self());
	weft_lock_acquire(&lock);
	atomic_store(&held, true);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	end = t.tv_sec * 1000000000 + t.tv_nsec + 20000000;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000000000 + t.tv_nsec < end);
	weft_lock_release(&lock);
	return arg;
}

static void *acquire_once(void *arg)
{
	weft_lock_acquire(&lock);
	atomic_store(&got, true);
	weft_lock_release(&lock);
	return arg;
}

/* Without sleep the waiting thread keeps the core that the owner needs. */
static void a_thread_of_a_real_time_policy_leaves_the_core_to_the_owner(void **state)
{
	const struct sched_param first = {.sched_priority = 1};
	pthread_t owner, waiting;
	pthread_attr_t attr;

	(void)state;
	assert_int_equal(pthread_create(&owner, NULL, hold_for_a_while, NULL), 0);
	while (!atomic_load(&held))
		pause_us(100);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	if (pthread_create(&waiting, &attr, acquire_once, NULL) != 0) {
		pthread_attr_destroy(&attr);
		pthread_join(owner, NULL);
		skip(); /* no right to a real-time policy */
	}
	pthread_attr_destroy(&attr);
	pin_to_one_core(waiting);
	pthread_join(owner, NULL);
	pthread_join(waiting, NULL);
	assert_true(atomic_load(&got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_at_a_time_has_it),
		cmocka_unit_test(it_is_free_after_as_many_releases),
		cmocka_unit_test(a_waiting_thread_gets_it_in_bounded_time),
		cmocka_unit_test(a_thread_of_a_real_time_policy_leaves_the_core_to_the_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
