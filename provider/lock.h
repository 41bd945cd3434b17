/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/lock.h
 * The lock of the process, for Weft's worker and everything in this folder.
 *
 * It is a mutex. But an application with one domain that promises to serialize its calls
 * (FI_THREAD_DOMAIN), as MPI without MPI_THREAD_MULTIPLE does, needs no mutex. A mutex taken twice
 * for each message, and once for each poll of a queue, would be a large part of the costs. In this
 * *alone* mode the lock is taken by a store. Other threads (another domain, the progress thread,
 * calls on objects of the fabric) use wfi_lock_any(), which ends this mode: it disables the store,
 * waits until no thread is inside by it, and holds the mutex. From then on all threads use the
 * mutex.
 *
 * A thread that takes the lock by a store sets `inside` and then reads `alone`. A thread that ends
 * the mode clears `alone` and then reads `inside`. If each has a fence in between, one of them sees
 * the other's store. The thread that ends the mode issues the fence for both, by membarrier().
 * Without that system call the mode is never enabled.
 *
 * The process must register for membarrier() first. With several threads that waits until each CPU
 * has switched tasks: 8 to 16 ms. So a thread registers, and enables the mode afterwards if it is
 * still wanted; until then the mutex is the lock.
 */
#ifndef WFI_LOCK_H
#define WFI_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct wfi_lock {
	_Atomic bool alone;  /**< set to true with the mutex, when no other thread is inside */
	_Atomic bool inside; /**< a thread has the lock by a store, or tries to get it */
	bool by_store;       /**< whether the present owner took the lock by a store */
	bool wanted;         /**< the mode is to be enabled when the process is registered */
	bool registered;     /**< the process is registered for membarrier() */
	pthread_mutex_t mutex;
};

extern struct wfi_lock wfi_the_lock;

/** End alone mode, and take the mutex: for threads that may meet a thread in alone mode. */
void wfi_lock_any(void);
/**
 * Unlock after wfi_lock_any(): from now on all callers serialize their calls. Alone mode is enabled
 * now, or some ms later by a thread. Without membarrier() it is never enabled.
 */
void wfi_unlock_alone(void);
/**
 * Wait for the end of the thread that enables alone mode, since the shared object may be unloaded
 * afterwards. The caller must not hold the lock.
 */
void wfi_lock_join(void);
/**
 * wfi_lock_join() at the end of the process. A signal handler that calls exit() may interrupt a
 * call that has the lock and never continues. After 1 s without the lock the function returns.
 */
void wfi_lock_join_at_exit(void);
/** The part of wfi_lock() that takes the mutex, in or out of alone mode. */
void wfi_lock_slow(void);
/** In a child of fork(): another thread of the parent may have held the lock. */
void wfi_lock_forked(void);
/** End alone mode, with the lock held: from now on other threads may take the mutex. */
static inline void wfi_lock_shared(void)
{
	/*
	 * Release: a thread that reads this false also reads `inside`, which is set if this thread
	 * took the lock by a store.
	 */
	atomic_store_explicit(&wfi_the_lock.alone, false, memory_order_release);
	wfi_the_lock.wanted = false;
}

/** Take the lock, for calls on objects of a domain. */
static inline void wfi_lock(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/* Relaxed: `alone` is read again below. */
	if (__builtin_expect(!atomic_load_explicit(&l->alone, memory_order_relaxed), 0)) {
		wfi_lock_slow();
		return;
	}
	atomic_store_explicit(&l->inside, true, memory_order_relaxed);
	/* The membarrier() of the other thread makes a fence of this. */
	atomic_signal_fence(memory_order_seq_cst);
	/* Acquire: changes made before the mode was enabled are visible. */
	if (__builtin_expect(atomic_load_explicit(&l->alone, memory_order_acquire), 1)) {
		l->by_store = true;
		return;
	}
	atomic_store_explicit(&l->inside, false, memory_order_relaxed);
	wfi_lock_slow();
}

/**
 * Release the lock, however it was taken. wfi_unlock() also arms the worker for sleepers
 * (process.h).
 */
static inline void wfi_lock_release(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/* Release: a thread that waits for this store sees the changes. */
	if (__builtin_expect(l->by_store, 1))
		atomic_store_explicit(&l->inside, false, memory_order_release);
	else
		pthread_mutex_unlock(&l->mutex);
}

#endif /* WFI_LOCK_H */
