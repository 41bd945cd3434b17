/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

struct wfi_lock wfi_the_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/*
 * With the mutex: wait until a thread that took the lock by a store releases it, and prevent others
 * from taking it so.
 */
static void exclude(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/*
	 * Acquire: a thread that set it to false without the mutex is seen inside
	 * (wfi_lock_shared()).
	 */
	if (atomic_load_explicit(&l->alone, memory_order_acquire)) {
		atomic_store_explicit(&l->alone, false, memory_order_relaxed);
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	}
	/* Acquire: changes of that thread are visible. */
	while (atomic_load_explicit(&l->inside, memory_order_acquire))
		sched_yield();
	l->by_store = false;
}

void wfi_lock_any(void)
{
	pthread_mutex_lock(&wfi_the_lock.mutex);
	exclude();
}

void wfi_unlock_alone(void)
{
	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0)
		/*
		 * Release: a thread that takes the lock by a store sees changes made with the
		 * mutex.
		 */
		atomic_store_explicit(&wfi_the_lock.alone, true, memory_order_release);
	pthread_mutex_unlock(&wfi_the_lock.mutex);
}

void wfi_lock_forked(void)
{
	/* Relaxed: the child has one thread. */
	atomic_store_explicit(&wfi_the_lock.alone, false, memory_order_relaxed);
	atomic_store_explicit(&wfi_the_lock.inside, false, memory_order_relaxed);
	wfi_the_lock.by_store = false;
	pthread_mutex_init(&wfi_the_lock.mutex, NULL);
}
