/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/capture_file.h
 * Files that captures and the flight recorder write, the comments of their frames, and the threads
 * that write them. Frames contain secrets and keys: only the owner can read the file.
 */
#ifndef WEFT_CAPTURE_FILE_H
#define WEFT_CAPTURE_FILE_H

#include <pthread.h>
#include <stddef.h>

/**
 * Create a file, or truncate an existing one. Refused are a symbolic link, another user's file or
 * FIFO (except root's FIFO or device), and a file that another process writes. A FIFO needs a
 * reader.
 * @return descriptor, or a negative errno with a sentence
 */
int weft_capture_file_open(const char *name, char *why, size_t why_len);

/**
 * Rename NAME to NAME.1, that to NAME.2 and so on, up to NAME.(@p files - 1), which is replaced.
 * @return 0 or a negative errno
 */
int weft_capture_file_rotate(const char *name, unsigned int files);

/**
 * The comment of a captured frame: its lane and its path.
 * @param data  the frame's first @p len bytes, which need not be valid
 */
void weft_capture_describe(const char *lane, const void *data, size_t len, char *buf, size_t size);

/**
 * Start a thread that writes files (base/thread.h), on other cores than DPDK's lcores, where lanes
 * poll.
 * @param[out] thread  NULL = it is detached
 * @return 0 or a negative errno
 */
int weft_capture_thread(const char *name, void *(*run)(void *arg), void *arg, pthread_t *thread);

#endif /* WEFT_CAPTURE_FILE_H */
