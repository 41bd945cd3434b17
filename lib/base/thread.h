/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/thread.h
 * Threads of Weft's own, and a lock for calls by several threads. The library, its drivers, the
 * provider and the programs start all their threads here, so that all threads have the same
 * properties:
 *
 * - All signals are blocked, so that handlers run in the application's threads. Only threads for
 *   blocking calls do not block the signal of weft_blocking_init().
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
 * This lock is for calls of some ten nanoseconds each, by several threads.
 *
 * When the lock moves to another core, the guarded data move, too: some twenty cache lines, which
 * cost more than the call. So a thread that calls again and again may acquire the lock
 * WEFT_LOCK_STREAK times in sequence while others wait. Then it gives way.
 *
 * A waiting thread spins for about 15 us and sleeps then. So a thread of a real-time policy leaves
 * its core to an owner of a lower priority. A child process has the lock as its parent had it at
 * fork().
 */

#define WEFT_LOCK_STREAK 128u

/** All zero is an unlocked lock. */
struct weft_lock {
	_Atomic uint32_t owner;   /* number of the thread that holds the lock; 0 = none */
	_Atomic uint32_t waiting; /* number of threads that spin or sleep */
	_Atomic uint32_t sleeps;  /* 1: a thread sleeps, or is about to */
	_Atomic uint32_t yields;  /* thread that must give way; 0 = none; written by the owner */
	/* written by the owner only */
	unsigned int depth;
	uint32_t last;       /* thread of the last contended acquisition */
	unsigned int streak; /* its further contended acquisitions, in sequence */
};

extern _Thread_local uint32_t weft_lock_thread __attribute__((tls_model("initial-exec")));

/* Give the calling thread its number, at its first lock. @return the number, which is not 0 */
uint32_t weft_lock_number(void);
/* Acquire the lock while another thread holds it or waits for it. */
void weft_lock_contended(struct weft_lock *l, uint32_t self);
/* Wake the sleeping threads, after a release that has read a set `sleeps`. */
void weft_lock_wake(struct weft_lock *l);

static inline uint32_t weft_lock_self(void)
{
	uint32_t self = weft_lock_thread;

	return __builtin_expect(self != 0, 1) ? self : weft_lock_number();
}

/* @return true: the lock was free, and the caller now has it */
static inline bool weft_lock_take(struct weft_lock *l, uint32_t self)
{
	uint32_t none = 0;

	/* Acquire: pairs with weft_lock_release(), so that the last owner's writes are read. */
	return atomic_compare_exchange_strong_explicit(&l->owner, &none, self, memory_order_acquire,
						       memory_order_relaxed);
}

static inline void weft_lock_acquire(struct weft_lock *l)
{
	uint32_t self = weft_lock_self();

	/* Relaxed: only this thread writes its own number to `owner`. */
	if (atomic_load_explicit(&l->owner, memory_order_relaxed) != self) {
		/* Relaxed: the value is a hint; a later call reads the new number. */
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
	 * Relaxed, without a fence behind the store: this may miss a thread that goes to sleep at
	 * the same moment. That thread wakes after its time limit.
	 */
	if (__builtin_expect(atomic_load_explicit(&l->sleeps, memory_order_relaxed), 0))
		weft_lock_wake(l);
}

/* ------------------------------------------------------------------ threads for blocking calls */

/*
 * Calls that may block for as long as another process chooses run in threads of their own. There
 * are up to WEFT_BLOCKING_THREADS such threads in the process; further calls wait in a queue. A
 * thread without work ends after a second. A forked child starts with an empty queue: its parent
 * runs the calls.
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
 * Call @p run with @p arg in another thread. Any thread may call this; it returns at once.
 * @return 0; or an error, and @p run is not called: -ENOMEM; -EAGAIN: there is no thread, and a
 *   limit forbids to start one
 */
int weft_blocking_run(void (*run)(void *arg), void *arg);

/**
 * weft_blocking_run() for a call that waits for the network, perhaps until its timeout. At most
 * half of the threads run such calls, so the others stay free for weft_blocking_run().
 * @return as weft_blocking_run()
 */
int weft_blocking_run_long(void (*run)(void *arg), void *arg);

/** @return calls of weft_blocking_run(), not of weft_blocking_run_long(), that run or wait */
unsigned int weft_blocking_pending(void);

/** Signal each thread whose present call was already running when this was called last. */
void weft_blocking_interrupt(void);

/* ------------------------------------------------------------------ others' descriptors */

/*
 * Descriptors and memory that come from another process.
 *
 * The sender of a descriptor controls how long its close() blocks: a TCP socket that lingers, a
 * file of FUSE, or a Unix socket in whose queue such descriptors wait. The thread that moves
 * messages must not wait for another process, so other threads close such descriptors. A receive
 * can close some, too: those for which the process has no descriptor number left.
 */

/** Close @p fd in another thread, and do not wait. If none can be started, @p fd stays open. */
void weft_foreign_fd_close(int fd);

/**
 * Unmap memory of another process's file, in another thread. The call returns at once, except where
 * no thread can be started: it then unmaps the memory itself.
 *
 * The mapping may be the last reference to the file, and the file may be larger than the mapping.
 * munmap() then frees all pages of the file, which can take seconds.
 */
void weft_foreign_unmap(void *at, size_t len);

/**
 * @return false: too many blocking calls are pending. The caller should receive no further
 *   descriptors and accept no connections until the result is true again.
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
 * Send one message with copies of @p num descriptors. The call does not wait or cause SIGPIPE.
 * @return bytes sent, or a negative errno value
 */
ssize_t weft_socket_send_fds(int sock, const void *buf, size_t len, const int *fds,
			     unsigned int num);

/**
 * Make the kernel refuse descriptors that peers send over @p sock, or over connections that @p sock
 * accepts. @return false: the kernel does not support this (it is older than Linux 6.16)
 */
bool weft_socket_refuse_fds(int sock);

/**
 * Close a socket to which any user may have connected. On kernels older than Linux 6.16, unread
 * descriptors may be in it. Another thread then closes it, and the call returns after about 20 ms
 * at most.
 */
void weft_socket_close_public(int sock);

#endif /* WEFT_THREAD_H */
