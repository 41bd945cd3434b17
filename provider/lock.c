/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

struct wfi_lock wfi_the_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/*
 * With the mutex: wait until a thread that took the lock by a store releases it. Afterwards threads
 * take the lock by the mutex only.
 */
static void exclude(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/*
	 * Acquire: if wfi_lock_shared() has set it to false, this thread sees `inside` of the
	 * thread that called it, which may hold the lock by a store.
	 */
	if (atomic_load_explicit(&l->alone, memory_order_acquire)) {
		atomic_store_explicit(&l->alone, false, memory_order_relaxed);
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	}
	/* Acquire: changes that a thread made inside are visible. */
	while (atomic_load_explicit(&l->inside, memory_order_acquire))
		sched_yield();
	l->by_store = false;
	l->wanted = false;
}

void wfi_lock_any(void)
{
	pthread_mutex_lock(&wfi_the_lock.mutex);
	exclude();
}

/*
 * Another thread may enable alone mode while this one waits for the mutex. Then no other thread is
 * inside, because in this mode one thread alone takes the lock by a store.
 */
void wfi_lock_slow(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	pthread_mutex_lock(&l->mutex);
	/* Acquire: as in exclude(). */
	if (!atomic_load_explicit(&l->alone, memory_order_acquire))
		while (atomic_load_explicit(&l->inside, memory_order_acquire))
			sched_yield();
	l->by_store = false;
}

/* ------------------------------------------------------------------ registration */

/* With the mutex: has a thread been started, and not been joined? */
static bool has_thread;
static pthread_t thread;

/* Enable alone mode, if that is wanted and possible. With the mutex. */
static void enable(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	if (l->wanted && l->registered)
		/*
		 * Release: a thread that takes the lock by a store sees changes made with the
		 * mutex.
		 */
		atomic_store_explicit(&l->alone, true, memory_order_release);
}

static void *register_process(void *arg)
{
	bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;

	pthread_mutex_lock(&wfi_the_lock.mutex);
	wfi_the_lock.registered = registered;
	enable();
	pthread_mutex_unlock(&wfi_the_lock.mutex);
	return arg;
}

void wfi_unlock_alone(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	l->wanted = true;
	/* With one thread the registration takes no time. */
	if (!l->registered && __libc_single_threaded)
		l->registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
	/* One attempt: a process that cannot register keeps the mutex. */
	if (!l->registered && !has_thread)
		has_thread = weft_thread_start("weft-register", register_process, NULL, NULL,
					       &thread) == 0;
	enable();
	pthread_mutex_unlock(&l->mutex);
}

/* The mutex is locked, and released here. */
static void unlock_and_join(void)
{
	pthread_t joined = thread;
	bool join = has_thread;

	has_thread = false;
	pthread_mutex_unlock(&wfi_the_lock.mutex);
	if (join)
		pthread_join(joined, NULL);
}

void wfi_lock_join(void)
{
	pthread_mutex_lock(&wfi_the_lock.mutex);
	unlock_and_join();
}

void wfi_lock_join_at_exit(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	if (pthread_mutex_clocklock(&wfi_the_lock.mutex, CLOCK_MONOTONIC, &until) == 0)
		unlock_and_join();
}

void wfi_lock_forked(void)
{
	/* Relaxed: the child has one thread. */
	atomic_store_explicit(&wfi_the_lock.alone, false, memory_order_relaxed);
	atomic_store_explicit(&wfi_the_lock.inside, false, memory_order_relaxed);
	wfi_the_lock.by_store = false;
	wfi_the_lock.wanted = false;
	wfi_the_lock.registered = false;
	has_thread = false;
	pthread_mutex_init(&wfi_the_lock.mutex, NULL);
}
