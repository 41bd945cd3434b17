/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/blocking.h
 * Calls that may block for as long as another process chooses, in threads of their own; among them
 * the calls that close descriptors which another process has chosen.
 */
#ifndef WEFT_BLOCKING_H
#define WEFT_BLOCKING_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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
 */
int weft_blocking_run_long(void (*run)(void *arg), void *arg);

/**
 * @return calls of weft_blocking_run() that have not returned, those in the queue included. Any
 *   thread.
 */
unsigned int weft_blocking_pending(void);

/** Send the signal to each thread whose call was already under way at the last interrupt. */
void weft_blocking_interrupt(void);

/* ------------------------------------------------------------------ others' descriptors */

/*
 * Descriptors that another process has chosen.
 *
 * The sender of a descriptor controls how long its close() blocks: a TCP socket that lingers, a
 * file of FUSE, or a Unix socket in whose queue such descriptors wait. The thread that moves
 * messages must not wait for another process, so threads of base/blocking.h close each of them. A
 * receive closes, too: the kernel drops descriptors for which a process has no number left.
 */

/**
 * Close @p fd in another thread. Any thread; returns at once. Where no thread can be started, the
 * descriptor stays open.
 */
void weft_foreign_fd_close(int fd);

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
 * @return bytes of the message, 0 at the end of the connection; or a negative errno value: -EAGAIN:
 *   no message; -EMSGSIZE: the message is longer than @p len; -EPROTO: the kernel had to drop
 *   descriptors. With an error all of @p fds are -1.
 */
ssize_t weft_foreign_fd_recv(int sock, void *buf, size_t len, int *fds, unsigned int num);

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

#endif /* WEFT_BLOCKING_H */
