/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/threads.h
 * Threads of the switch: their start, the wake-up thread, and threads that close descriptors.
 */
#ifndef APP_SWITCH_THREADS_H
#define APP_SWITCH_THREADS_H

#include "switch/switch.h"

/**
 * Start a thread, on other cores than the forwarder's, if that is pinned.
 * @return APP_OK or an exit code after an error message
 */
int sw_thread_start(const char *name, void *(*run)(void *arg), struct sw *s, pthread_t *thread);

/** By any thread: wake the control thread for a check. Never waits. */
void sw_control_notify(struct sw *s);

enum { SW_TAG_NOTIFY, SW_TAG_LISTEN, SW_TAG_MEMIF, SW_TAG_GRANT, SW_TAG_HALF, SW_TAG_CONN };

/** Accept the clients that wait at @p listener, at most 64 at a time, and pass them to @p take. */
void sw_accept(struct sw *s, int listener, uint64_t now,
	       void (*take)(struct sw *s, int fd, uint64_t now));

/** Add a descriptor to epoll's set with this tag. @return the descriptor, or -1 */
int sw_watch(struct sw *s, int fd, uint64_t tag);
uint64_t sw_tag(unsigned int kind, unsigned int index);

/** Start the wake-up thread. @return APP_OK or an exit code after an error message */
int sw_wake_start(struct sw *s);

/** By the forwarder: wake ports that got frames and may sleep. Never waits. */
void sw_wake(struct sw *s, uint64_t ports);

/**
 * By the control thread: set the port's eventfd; or set none, after which the old one is unused.
 */
void sw_wake_set(struct sw *s, unsigned int port, int event);
void sw_wake_forget(struct sw *s, unsigned int port);

/** By the control thread, in each tick: interrupt a write that blocks. */
void sw_wake_watch(struct sw *s);

/**
 * Prepare sw_close(), before its first call. Its threads avoid the core of the caller, if that is
 * pinned to one.
 */
void sw_close_init(void);

/** Close a descriptor, and set it to -1. -1 is allowed. */
void sw_close(int *fd);

/** sw_close() for a socket in epoll's set; the other end is notified at once. */
void sw_hang_up(struct sw *s, int *fd);

#endif /* APP_SWITCH_THREADS_H */
