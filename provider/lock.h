/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lock.h
 * The lock of the process: of Weft's worker and of everything in this folder.
 *
 * It is a mutex. But an application that has one domain and promises to serialize its calls
 * (FI_THREAD_DOMAIN), as MPI without MPI_THREAD_MULTIPLE does, is alone, and two mutexes for each
 * message and one for each check a queue are a good part of what these cost. Alone, the lock is
 * taken by a store. Whoever else may come (another domain, the thread that makes progress, calls
 * on objects of the fabric) takes it by wfi_lock_any(), which ends that: it forbids the short way,
 * waits until nobody is inside by it, and has the mutex. From then on all use the mutex.
 *
 * Who enters stores `inside` and then checks `alone`; who ends it stores `alone` and then looks
 * at `inside`. One of both sees the other's store, if each fences in between: the one who ends it
 * does it for both, by membarrier(). Without that system call nobody is ever alone.
 */
#ifndef WFI_LOCK_H
#define WFI_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct wfi_lock {
	_Atomic bool alone;  /**< changed to true with the mutex and all else excluded */
	_Atomic bool inside; /**< somebody has the lock by a store, or tries */
	bool by_store;       /**< how who has it has taken it */
	pthread_mutex_t mutex;
};

extern struct wfi_lock wfi_the_lock;

/** For those who may meet another thread that is alone: by the mutex. */
void wfi_lock_any(void);
/** The end of wfi_lock_any(); whoever comes from now on serializes its calls. */
void wfi_unlock_alone(void);
/** In a child of fork(): another thread of the parent may have had it. */
void wfi_lock_forked(void);
/** With the lock: others may come from now on. */
static inline void wfi_lock_shared(void)
{
	/* Release: who sees it sees `inside`, which we have set if we are. */
	atomic_store_explicit(&wfi_the_lock.alone, false, memory_order_release);
}

/** Calls on objects of a domain. */
static inline void wfi_lock(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/* Relaxed: it is checked again below. */
	if (__builtin_expect(!atomic_load_explicit(&l->alone, memory_order_relaxed), 0)) {
		wfi_lock_any();
		return;
	}
	atomic_store_explicit(&l->inside, true, memory_order_relaxed);
	/* The other's membarrier() makes a fence of it. */
	atomic_signal_fence(memory_order_seq_cst);
	/* Acquire: what was done before we were alone is seen. */
	if (__builtin_expect(atomic_load_explicit(&l->alone, memory_order_acquire), 1)) {
		l->by_store = true;
		return;
	}
	atomic_store_explicit(&l->inside, false, memory_order_relaxed);
	wfi_lock_any();
}

/** The end of either. What sleepers need is wfi_unlock()'s (process.h). */
static inline void wfi_lock_release(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/* Release: who waits for us to leave sees what was done. */
	if (__builtin_expect(l->by_store, 1))
		atomic_store_explicit(&l->inside, false, memory_order_release);
	else
		pthread_mutex_unlock(&l->mutex);
}

#endif /* WFI_LOCK_H */
