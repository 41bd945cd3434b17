/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/thread.h
 * A lock for calls by several threads, and threads of Weft's own. The library, its drivers, the
 * provider and the programs start all their threads here, with these properties:
 *
 * - All signals are blocked, so that handlers run in the application's threads; only threads for
 *   blocking calls receive the signal of weft_blocking_init().
 * - The stack has WEFT_THREAD_STACK bytes, because mlockall(MCL_FUTURE) locks it as a whole; it has
 *   the default size where thread-local storage needs more.
 * - A caller with a real-time policy (SCHED_FIFO, SCHED_RR) starts a thread with SCHED_OTHER.
 * - The affinity mask of the caller is not inherited, except where a sandbox forbids to set it. A
 *   pinned caller with a real-time policy would never leave its core to the thread, so the thread
 *   gets the other cores.
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
 * The thread may run on all cores of the process' cpuset, without those of @p avoid and those of a
 * caller with a real-time policy. Where no core would be left, all cores are allowed.
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
 * When the lock moves to another core, the guarded data move, too: some twenty cache lines, which
 * cost more than the call. So a thread may acquire the lock WEFT_LOCK_STREAK times in sequence
 * while others wait. Then it gives way. A waiting thread spins for about 15 us and then sleeps, so
 * that a real-time thread leaves its core to an owner of a lower priority. A child process has the
 * lock as its parent had it at fork().
 */

#define WEFT_LOCK_STREAK 128u

/** All zero = unlocked. */
struct weft_lock {
	_Atomic uint32_t owner;   /* number of the thread that holds the lock; 0 = none */
	_Atomic uint32_t waiting; /* threads that spin or sleep */
	_Atomic uint32_t sleeps;  /* 1: a thread sleeps, or is about to */
	_Atomic uint32_t yields;  /* thread that must give way; 0 = none; written by the owner */
	/* written by the owner only */
	unsigned int depth;
	uint32_t last;       /* thread of the last contended acquisition */
	unsigned int streak; /* further contended acquisitions of `last`, in sequence */
};

extern _Thread_local uint32_t weft_lock_thread __attribute__((tls_model("initial-exec")));

/* The number is given at the thread's first lock. @return not 0 */
uint32_t weft_lock_number(void);
/* Called while another thread holds the lock or waits for it. */
void weft_lock_contended(struct weft_lock *l, uint32_t self);
/* Called after a release that has read a set `sleeps`. */
void weft_lock_wake(struct weft_lock *l);

static inline uint32_t weft_lock_self(void)
{
	uint32_t self = weft_lock_thread;

	return __builtin_expect(self != 0, 1) ? self : weft_lock_number();
}

/* @return true: the caller has got the free lock */
static inline bool weft_lock_take(struct weft_lock *l, uint32_t self)
{
	uint32_t none = 0;

	/* Acquire: pairs with weft_lock_release(). */
	return atomic_compare_exchange_strong_explicit(&l->owner, &none, self, memory_order_acquire,
						       memory_order_relaxed);
}

static inline void weft_lock_acquire(struct weft_lock *l)
{
	uint32_t self = weft_lock_self();

	/* Relaxed: only this thread writes its own number to `owner`. */
	if (atomic_load_explicit(&l->owner, memory_order_relaxed) != self) {
		/* Relaxed: only a hint. */
		if (__builtin_expect(atomic_load_explicit(&l->waiting, memory_order_relaxed) != 0 ||
					     !weft_lock_take(l, self),
				     0))
			weft_lock_contended(l, self);
	}
	l->depth++;
}

/** @return false: another thread has the lock */
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
	 * Relaxed, without a fence behind the store. A thread that goes to sleep at this moment may
	 * be missed: it wakes after its time limit.
	 */
	if (__builtin_expect(atomic_load_explicit(&l->sleeps, memory_order_relaxed), 0))
		weft_lock_wake(l);
}

/* ------------------------------------------------------------------ threads for blocking calls */

/*
 * Calls that may block for as long as another process chooses. Up to WEFT_BLOCKING_THREADS threads
 * of the process run them; further calls wait in a queue. A thread without work ends after a
 * second. A forked child starts with an empty queue: its parent runs the calls.
 */

#define WEFT_BLOCKING_THREADS 64u

/**
 * Optional, once, before the first weft_blocking_run(). Without it no signal interrupts the
 * threads, and they run on all cores.
 * @param signo  sent by weft_blocking_interrupt(); the handler is installed without SA_RESTART
 * @param avoid  cores on which threads poll; NULL = none
 */
void weft_blocking_init(int signo, const cpu_set_t *avoid);

/**
 * Any thread may call this; it returns at once.
 * @return 0: another thread calls @p run; -ENOMEM; -EAGAIN: a limit forbids to start the first one
 */
int weft_blocking_run(void (*run)(void *arg), void *arg);

/**
 * For a call that waits for the network, perhaps until its timeout. At most half of the threads run
 * such calls, so the others stay free for weft_blocking_run().
 */
int weft_blocking_run_long(void (*run)(void *arg), void *arg);

/** @return calls of weft_blocking_run(), not of weft_blocking_run_long(), that run or wait */
unsigned int weft_blocking_pending(void);

/** Signal each thread whose call was already running at the last weft_blocking_interrupt(). */
void weft_blocking_interrupt(void);

/* ------------------------------------------------------------------ others' descriptors */

/*
 * The sender of a descriptor controls how long its close() blocks: a TCP socket that lingers, a
 * file of FUSE, or a Unix socket in whose queue such descriptors wait. A thread that moves messages
 * must not wait for another process, so other threads close such descriptors. A receive can close
 * some, too: those for which the process has no descriptor number left.
 */

/** Does not wait. If no thread can be started, @p fd stays open. */
void weft_foreign_fd_close(int fd);

/**
 * Unmap memory of another process's file, in this thread only if no other one can be started. If
 * the mapping is the file's last reference, munmap() frees all its pages, which can take seconds.
 */
void weft_foreign_unmap(void *at, size_t len);

/** @return false: too many calls are pending, so receive no descriptors or connections */
bool weft_foreign_fd_has_room(void);

/**
 * Receive one message without waiting for it. The call can block in the kernel while the process
 * has no number for a descriptor.
 * @param fds  out: the first @p num descriptors, close-on-exec; -1 = none. Further ones are closed
 * @return bytes of the message, 0 at the end of the connection or of an empty message; or a
 *   negative errno value: -EAGAIN: no message; -EMSGSIZE: the message is longer than @p len;
 *   -EPROTO: the kernel had to drop descriptors. With 0 and with an error all of @p fds are -1
 */
ssize_t weft_foreign_fd_recv(int sock, void *buf, size_t len, int *fds, unsigned int num);

/** Does not wait or cause SIGPIPE. @return bytes sent, or a negative errno value */
ssize_t weft_socket_send_fds(int sock, const void *buf, size_t len, const int *fds,
			     unsigned int num);

/**
 * The kernel refuses descriptors that peers send over @p sock, or over connections that it accepts.
 * @return false: the kernel is older than Linux 6.16
 */
bool weft_socket_refuse_fds(int sock);

/**
 * Close a socket to which any user may have connected. On kernels older than Linux 6.16, unread
 * descriptors may be in it: another thread closes it, and the call returns after about 20 ms at
 * most.
 */
void weft_socket_close_public(int sock);

#endif /* WEFT_THREAD_H */
