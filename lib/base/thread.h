/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/thread.h
 * Threads of Weft's own, and a lock for calls by several threads. The library, its drivers, the
 * provider and the programs start all their threads here, so that all threads have the same
 * properties:
 *
 * - All signals are blocked: handlers run in the application's threads.
 * - The stack has WEFT_THREAD_STACK bytes: mlockall(MCL_FUTURE) locks a stack as a whole.
 * - A caller with a real-time policy (SCHED_FIFO, SCHED_RR) starts a thread with SCHED_OTHER.
 * - The affinity mask of the caller is not inherited. A caller with a real-time policy that is
 *   pinned would never leave its core to such a thread, so the thread gets the other cores.
 */
#ifndef WEFT_THREAD_H
#define WEFT_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WEFT_THREAD_STACK (256u << 10)

/**
 * Start a thread. It may run on all cores of the process' cpuset, without those of @p avoid and
 * those of a caller with a real-time policy. Where no core would be left, all cores are allowed.
 *
 * @param name    at most 15 bytes; ps and gdb show it
 * @param avoid   cores on which threads poll; or NULL
 * @param thread  out: to be joined by the caller; NULL = the thread is detached
 * @return 0; -EAGAIN: a limit on threads or memory is reached
 */
int weft_thread_start(const char *name, void *(*run)(void *arg), void *arg, const cpu_set_t *avoid,
		      pthread_t *thread);

/* ------------------------------------------------------------------ a recursive lock */

/*
 * For calls of some ten nanoseconds each, by several threads.
 *
 * A lock that moves to another core takes the guarded data with it: some twenty cache lines, which
 * cost more than the call. So a thread that calls again and again keeps the lock for
 * WEFT_LOCK_STREAK acquisitions while others wait, and gives way then. The shares of threads follow
 * from that bound.
 *
 * A waiting thread spins for about 15 us and sleeps then. So a thread of a real-time policy leaves
 * its core to an owner of a lower priority.
 * A child process has the lock as its parent had it at fork().
 */

#define WEFT_LOCK_STREAK 128u

/** All zero is an unlocked lock. */
struct weft_lock {
	_Atomic uint32_t owner;   /* thread that holds it; 0 = none */
	_Atomic uint32_t waiting; /* threads that spin or sleep */
	_Atomic uint32_t sleeps;  /* a thread sleeps, or is about to */
	_Atomic uint32_t yields;  /* thread that has had its time; written by the owner */
	/* of the owner */
	unsigned int depth;
	uint32_t last;       /* thread that held it before */
	unsigned int streak; /* acquisitions of `last` in sequence while others waited */
};

extern _Thread_local uint32_t weft_lock_thread __attribute__((tls_model("initial-exec")));

/* A thread's first lock. @return its number, which is not 0 */
uint32_t weft_lock_number(void);
/* The lock is taken, or others wait for it. */
void weft_lock_contended(struct weft_lock *l, uint32_t self);
/* After a release that has seen a sleeping thread. */
void weft_lock_wake(struct weft_lock *l);

static inline uint32_t weft_lock_self(void)
{
	uint32_t self = weft_lock_thread;

	return __builtin_expect(self != 0, 1) ? self : weft_lock_number();
}

/* @return the lock was free, and the caller has it */
static inline bool weft_lock_take(struct weft_lock *l, uint32_t self)
{
	uint32_t none = 0;

	/* Acquire: what the last owner wrote is read; pairs with weft_lock_release(). */
	return atomic_compare_exchange_strong_explicit(&l->owner, &none, self, memory_order_acquire,
						       memory_order_relaxed);
}

static inline void weft_lock_acquire(struct weft_lock *l)
{
	uint32_t self = weft_lock_self();

	/* Relaxed: the own number there was written by this thread. */
	if (atomic_load_explicit(&l->owner, memory_order_relaxed) != self) {
		/* Relaxed: a hint; a thread that has begun to wait is seen by a later call. */
		if (__builtin_expect(atomic_load_explicit(&l->waiting, memory_order_relaxed) != 0 ||
					     !weft_lock_take(l, self),
				     0))
			weft_lock_contended(l, self);
	}
	l->depth++;
}

/** @return true: the caller has the lock; false: another thread has it */
static inline bool weft_lock_try(struct weft_lock *l)
{
	uint32_t self = weft_lock_self();

	if (atomic_load_explicit(&l->owner, memory_order_relaxed) != self &&
	    !weft_lock_take(l, self))
		return false;
	l->depth++;
	return true;
}

static inline void weft_lock_release(struct weft_lock *l)
{
	if (--l->depth != 0)
		return;
	/* Release: pairs with weft_lock_take(). */
	atomic_store_explicit(&l->owner, 0, memory_order_release);
	/*
	 * Relaxed, without a fence behind the store: a thread that goes to sleep at this moment may
	 * be missed. It wakes by its time limit.
	 */
	if (__builtin_expect(atomic_load_explicit(&l->sleeps, memory_order_relaxed), 0))
		weft_lock_wake(l);
}

#endif /* WEFT_THREAD_H */
