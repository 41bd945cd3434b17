/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/control.h
 * The control thread, output for users and telemetry, the start of threads, the wake-up thread, and
 * threads that close descriptors.
 */
#ifndef APP_SWITCH_CONTROL_H
#define APP_SWITCH_CONTROL_H

#include "switch/switch.h"

/** @return APP_OK or an exit code after an error message */
int sw_control_start(struct sw *s);

/** Register telemetry's commands, and let the control thread print counters after SIGUSR1. */
void sw_report_start(struct sw *s);

/** Takes the control thread's lock, so a forwarder that still forwards must not call it. */
void sw_report_print(struct sw *s);

/** Wake the control thread. By any thread and signal handlers; never waits. */
void sw_control_notify(struct sw *s);

enum { SW_TAG_NOTIFY, SW_TAG_LISTEN, SW_TAG_MEMIF, SW_TAG_GRANT, SW_TAG_HALF, SW_TAG_CONN };

/** Accept the clients that wait at @p listener, at most 64 at a time, and pass them to @p take. */
void sw_accept(struct sw *s, int listener, uint64_t now,
	       void (*take)(struct sw *s, int fd, uint64_t now));

/** @return the descriptor, or -1 */
int sw_watch(struct sw *s, int fd, uint64_t tag);
uint64_t sw_tag(unsigned int kind, unsigned int index);

/** @return APP_OK or an exit code after an error message */
int sw_wake_start(struct sw *s);

/** By the forwarder: wake ports that got frames and may sleep. Never waits. */
void sw_wake(struct sw *s, uint64_t ports);

/** By the control thread. After sw_wake_forget() no thread uses the port's eventfd. */
void sw_wake_set(struct sw *s, unsigned int port, int event);
void sw_wake_forget(struct sw *s, unsigned int port);

/** Before sw_close(), whose threads avoid the core of the caller, if that is pinned to one. */
void sw_close_init(void);

/** Close a descriptor, and set it to -1. -1 is allowed. */
void sw_close(int *fd);

/** sw_close() for a socket in epoll's set; the other end is notified at once. */
void sw_hang_up(struct sw *s, int *fd);

#endif /* APP_SWITCH_CONTROL_H */
