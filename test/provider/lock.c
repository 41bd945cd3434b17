/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock that is taken by a store while no other thread comes: no two threads are ever inside. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "provider/process.h"

enum { OTHERS = 2, TIMES = 8000, MOST = 2000 * TIMES };

/* Changed with the lock only, by three instructions that others would come between. */
static uint64_t first, second;
static unsigned int met;
static atomic_uint short_way, ended;

static void inside(void)
{
	met += first != second;
	first++;
	atomic_signal_fence(memory_order_seq_cst);
	second++;
}

/* The one whose calls are serialized. */
static void *alone(void *arg)
{
	(void)arg;
	while (atomic_load(&ended) < OTHERS) {
		wfi_lock();
		if (wfi_the_lock.by_store)
			atomic_fetch_add(&short_way, 1);
		inside();
		wfi_lock_release();
	}
	return NULL;
}

/*
 * Comes and goes TIMES times, and then until the other thread has taken the lock by a store: on a
 * busy machine that thread may not run before.
 */
static void *other(void *arg)
{
	int times = wfi_the_lock.registered ? MOST : TIMES;

	for (int i = 0; i < TIMES || (i < times && !atomic_load(&short_way)); i++) {
		wfi_lock_any();
		inside();
		/* Short enough that the next one meets the short way. */
		wfi_unlock_alone();
		for (int j = i % 64; j > 0; j--)
			atomic_signal_fence(memory_order_seq_cst);
		if (i % 16 == 0)
			sched_yield();
	}
	atomic_fetch_add(&ended, 1);
	return arg;
}

static void no_thread_meets_inside(void **state)
{
	pthread_t threads[1 + OTHERS];

	(void)state;
	/* Registered before: that takes up to 16 ms, in which TIMES calls of a fast CPU may end. */
	wfi_lock_any();
	wfi_unlock_alone();
	wfi_lock_join();
	assert_int_equal(pthread_create(&threads[0], NULL, alone, NULL), 0);
	for (int i = 1; i <= OTHERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, other, NULL), 0);
	for (int i = 0; i <= OTHERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(met, 0);
	assert_int_equal(first, second);
	/* Where the system has no membarrier() it is a mutex, and that is all. */
	if (wfi_the_lock.registered)
		assert_true(atomic_load(&short_way) > 0);
}

/* A thread with the lock ends the short way: the next one, itself, too, takes the mutex. */
static void shared_means_the_mutex(void **state)
{
	(void)state;
	wfi_lock_any();
	wfi_unlock_alone();
	wfi_lock();
	wfi_lock_shared();
	wfi_lock_release();
	wfi_lock();
	assert_false(wfi_the_lock.by_store);
	assert_int_not_equal(pthread_mutex_trylock(&wfi_the_lock.mutex), 0);
	wfi_lock_release();
	assert_int_equal(pthread_mutex_trylock(&wfi_the_lock.mutex), 0);
	pthread_mutex_unlock(&wfi_the_lock.mutex);
}

static void *nothing(void *arg)
{
	return arg;
}

/* From the first thread on the C library assumes that there are several. */
static void have_threads(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
	pthread_join(thread, NULL);
}

static bool is_alone(void)
{
	return atomic_load(&wfi_the_lock.alone);
}

/*
 * A process of several threads registers by a thread, for which no caller waits; the lock works all
 * the time, and takes the short way in the end.
 */
static void enabled_by_a_thread(void **state)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	(void)state;
	have_threads();
	wfi_lock_join();
	wfi_lock_forked(); /* as if the process had not registered */
	wfi_lock_any();
	wfi_unlock_alone();
	for (int i = 0; i < 5000 && !is_alone(); i++) {
		wfi_lock();
		inside();
		wfi_lock_release();
		nanosleep(&moment, NULL);
	}
	wfi_lock_join();
	if (!wfi_the_lock.registered)
		skip(); /* no membarrier() here */
	assert_true(is_alone());
	wfi_lock();
	assert_true(wfi_the_lock.by_store);
	wfi_lock_release();
	assert_int_equal(first, second);
}

/* Another thread may come before the registration is done: then the mode stays off. */
static void not_wanted_any_more(void **state)
{
	(void)state;
	have_threads();
	for (int i = 0; i < 2; i++) {
		wfi_lock_join();
		wfi_lock_forked();
		wfi_lock_any();
		wfi_unlock_alone();
		if (i == 0) {
			wfi_lock_any();
		} else {
			wfi_lock();
			wfi_lock_shared();
		}
		wfi_lock_release();
		wfi_lock_join();
		assert_false(is_alone());
		wfi_lock();
		assert_false(wfi_the_lock.by_store);
		wfi_lock_release();
	}
}

/* A signal handler that calls exit() interrupts a thread that has the mutex: the process ends. */
static void the_end_does_not_wait_for_an_interrupted_holder(void **state)
{
	struct timespec begin, end;

	wfi_lock_any();
	clock_gettime(CLOCK_MONOTONIC, &begin);
	wfi_lock_join_at_exit();
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_in_range(end.tv_sec - begin.tv_sec, 1, 20);
	wfi_lock_release();
	wfi_lock_join_at_exit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_thread_meets_inside),
		cmocka_unit_test(shared_means_the_mutex),
		cmocka_unit_test(enabled_by_a_thread),
		cmocka_unit_test(not_wanted_any_more),
		cmocka_unit_test(the_end_does_not_wait_for_an_interrupted_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
