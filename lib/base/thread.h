/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/thread.h
 * Threads of Weft's own, and a lock for calls by several threads. The library, its drivers, the
 * provider and the programs start all their threads here, so that all threads have the same
 * properties:
 *
 * - All signals are blocked, except that of weft_blocking_init(): handlers run in the application's
 *   threads.
 * - The stack has WEFT_THREAD_STACK bytes, because mlockall(MCL_FUTURE) locks a stack as a whole.
 *   It has the default size where thread-local storage needs more.
 * - A caller with a real-time policy (SCHED_FIFO, SCHED_RR) starts a thread with SCHED_OTHER.
 * - The affinity mask of the caller is not inherited, except where a sandbox forbids to set it. A
 *   caller with a real-time policy that is pinned would never leave its core to such a thread, so
 *   the thread gets the other cores.
 *
 * Calls that may block for as long as another process chooses run in threads of this file.
 */
#ifndef WEFT_THREAD_H
#define WEFT_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
 * its core to an owner of a lower priority. A child process has the lock as its parent had it at
 * fork().
 */

#define WEFT_LOCK_STREAK 128u

/** All zero is an unlocked lock. */
struct weft_lock {
	_Atomic uint32_t owner;   /* thread that holds it; 0 = none */
	_Atomic uint32_t waiting; /* threads that spin or sleep */
	_Atomic uint32_t sleeps;  /* a thread sleeps, or is about to */
	_Atomic uint32_t yields;  /* thread that must give way; 0 = none; written by the owner */
	/* written by the owner only */
	unsigned int depth;
	uint32_t last;       /* thread that held it before */
	unsigned int streak; /* acquisitions of `last` in sequence while others waited */
};

extern _Thread_local uint32_t weft_lock_thread __attribute__((tls_model("initial-exec")));

/* Give the calling thread its number, at its first lock. @return the number, which is not 0 */
uint32_t weft_lock_number(void);
/* Acquire the lock when it is taken, or others wait for it. */
void weft_lock_contended(struct weft_lock *l, uint32_t self);
/* Wake the sleeping threads, after a release that has seen one. */
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

/* ------------------------------------------------------------------ threads for blocking calls */

/*
 * Calls that may block for as long as another process chooses, in threads of their own.
 *
 * Up to WEFT_BLOCKING_THREADS threads of the process run them; further calls wait in a queue. A
 * thread without work ends after a second. A forked child starts with an empty queue: calls of its
 * parent are the parent's.
 */

#define WEFT_BLOCKING_THREADS 64u

/**
 * Set up the threads, before the first call of weft_blocking_run(). A program may call it once;
 * without it no signal interrupts the threads, and they run on all cores.
 *
 * @param signo  weft_blocking_interrupt() sends it; its handler is installed without SA_RESTART
 * @param avoid  cores on which threads poll; NULL = none
 */
void weft_blocking_init(int signo, const cpu_set_t *avoid);

/**
 * Call @p run with @p arg in another thread. Any thread; returns at once.
 * @return 0; -ENOMEM; -EAGAIN: there is no thread, and a limit forbids to start one. @p run is not
 *   called then.
 */
int weft_blocking_run(void (*run)(void *arg), void *arg);

/**
 * weft_blocking_run() for a call that waits for the network, perhaps until its timeout. At most
 * half of the threads run such calls, so the others stay free for weft_blocking_run().
 * @return as weft_blocking_run()
 */
int weft_blocking_run_long(void (*run)(void *arg), void *arg);

/** @return calls of weft_blocking_run() that run or are in the queue. Any thread. */
unsigned int weft_blocking_pending(void);

/** Send the signal to each thread whose call was already under way at the last interrupt. */
void weft_blocking_interrupt(void);

/* ------------------------------------------------------------------ others' descriptors */

/*
 * Descriptors that another process has chosen.
 *
 * The sender of a descriptor controls how long its close() blocks: a TCP socket that lingers, a
 * file of FUSE, or a Unix socket in whose queue such descriptors wait. The thread that moves
 * messages must not wait for another process, so other threads close each of them. A receive
 * closes, too: the kernel drops descriptors for which a process has no number left.
 */

/** Close @p fd in another thread, without a wait. Without a thread it stays open. Any thread. */
void weft_foreign_fd_close(int fd);

/**
 * Unmap memory that another process has made, in another thread. Any thread; returns at once. Where
 * no thread can be started, the memory is unmapped here.
 *
 * The mapping may be the last reference to the file, and the file may be larger than the mapping.
 * munmap() then frees all pages of the file, which can take seconds.
 */
void weft_foreign_unmap(void *at, size_t len);

/**
 * @return false: too many closes are pending. The caller should receive no further descriptors and
 *   accept no connections until the result is true again. Any thread.
 */
bool weft_foreign_fd_has_room(void);

/**
 * Receive one message with the descriptors that come with it, without waiting for a message. The
 * call can block in the kernel while the process has no number for a descriptor.
 *
 * @param fds  out: the first @p num descriptors, close-on-exec; -1 = none. Further ones are closed.
 * @return bytes of the message, 0 at the end of the connection or of an empty message; or a
 *   negative errno value: -EAGAIN: no message; -EMSGSIZE: the message is longer than @p len;
 *   -EPROTO: the kernel had to drop descriptors. With 0 and with an error all of @p fds are -1.
 */
ssize_t weft_foreign_fd_recv(int sock, void *buf, size_t len, int *fds, unsigned int num);

/**
 * Send one message with @p num descriptors, which stay the caller's. Does not wait; no SIGPIPE.
 * @return bytes sent, or a negative errno value
 */
ssize_t weft_socket_send_fds(int sock, const void *buf, size_t len, const int *fds,
			     unsigned int num);

/**
 * No peer can pass descriptors over @p sock any more, nor over connections that it accepts.
 * @return false: the kernel is older than Linux 6.16
 */
bool weft_socket_refuse_fds(int sock);

/**
 * Close a socket to which each user may have connected. If descriptors may wait in it, another
 * thread closes it, and the call returns after at most 20 ms.
 */
void weft_socket_close_public(int sock);

#endif /* WEFT_THREAD_H */
