/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/thread.h
 * Threads of Weft's own. The library, its drivers, the provider and the programs start all their
 * threads here, so that all threads have the same properties:
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

#endif /* WEFT_THREAD_H */
