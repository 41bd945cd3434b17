/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/blocking.h
 * Calls that may block for as long as another process chooses, in threads of their own.
 *
 * Up to WEFT_BLOCKING_THREADS threads of the process run them; further calls wait in a queue. A
 * thread without work ends after a second. A forked child starts with an empty queue: calls of its
 * parent are the parent's.
 */
#ifndef WEFT_BLOCKING_H
#define WEFT_BLOCKING_H

#include <sched.h>

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

/** @return calls that have not returned, those in the queue included. Any thread. */
unsigned int weft_blocking_pending(void);

/** Send the signal to each thread whose call was already under way at the last interrupt. */
void weft_blocking_interrupt(void);

#endif /* WEFT_BLOCKING_H */
