/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/thread.h
 * Threads that write files. They are started by base/thread.h, on other cores than DPDK's lcores,
 * where lanes poll.
 */
#ifndef WEFT_CAPTURE_THREAD_H
#define WEFT_CAPTURE_THREAD_H

#include <pthread.h>

/**
 * @param[out] thread  NULL = it is detached
 * @return 0 or a negative errno
 */
int weft_capture_thread(const char *name, void *(*run)(void *arg), void *arg, pthread_t *thread);

#endif /* WEFT_CAPTURE_THREAD_H */
