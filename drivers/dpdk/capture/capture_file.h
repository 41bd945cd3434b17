/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/capture_file.h
 * Files that captures and the flight recorder write, the comments of their frames, and the threads
 * that write them. Frames contain secrets and keys: only the owner can read a regular file.
 */
#ifndef WEFT_CAPTURE_FILE_H
#define WEFT_CAPTURE_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/platform.h"

/**
 * Create a file, or truncate an existing one. Refused are a symbolic link, another user's file or
 * FIFO (except root's FIFO or device), a file that another capture writes, and a FIFO without a
 * reader.
 * @return descriptor, or a negative errno with a sentence
 */
int weft_capture_file_open(const char *name, char *why, size_t why_len);

/** Does an open file have this name still? False: it was removed, renamed or replaced. */
bool weft_capture_file_has_name(int fd, const char *name);

/**
 * Rename NAME to NAME.1, NAME.1 to NAME.2 and so on. NAME.(@p files - 1) is replaced.
 * @return 0 or a negative errno
 */
int weft_capture_file_shift_names(const char *name, unsigned int files);

/**
 * The ns from a platform's time to the time of day. Of eight readings the shortest counts, since
 * most likely it was not interrupted. A signal handler may call this function.
 */
uint64_t weft_capture_offset(const struct weft_platform *pf);

/**
 * The comment of a captured frame: its lane, its path, and @p within if it is above 10 us.
 * @param data    the frame's first @p len bytes; without a lane header the comment has no path
 * @param within  ns, as in struct weft_capture_record
 */
void weft_capture_describe(const char *lane, const void *data, size_t len, uint64_t within,
			   char *buf, size_t size);

/**
 * Start a thread that writes files (base/thread.h). It avoids DPDK's lcores, where lanes poll, if
 * there are other cores.
 * @param[out] thread  NULL = it is detached
 * @return 0 or a negative errno
 */
int weft_capture_thread(const char *name, void *(*run)(void *arg), void *arg, pthread_t *thread);

/* ---- options --------------------------------------------------------------------------------- */

/*
 * Options of a capture: FILE[,filter=EXPR][,snaplen=N][,ring=SIZE][,size=SIZE][,files=N], as in
 * WEFT_CAPTURE and in the telemetry command. Filters are tcpdump's expressions, by libpcap.
 */

struct weft_capture_options {
	char file[512];   /**< with the process id in place of %p */
	char filter[512]; /**< in tcpdump's syntax; "" = all */
	uint32_t snaplen; /**< bytes captured of each frame; UINT32_MAX = all */
	uint64_t ring;    /**< least bytes of the ring that each interface has */
	uint64_t size;    /**< a file ends once it has this number of bytes; 0 = no limit */
	uint32_t files;   /**< files to keep, including the one that is being written; 0 = 1 */
};

/** @return 0, or -EINVAL with a sentence */
int weft_capture_options_parse(const char *text, struct weft_capture_options *o, char *why,
			       size_t why_len);

/** Copy a file name, truncated to @p size; "%p" becomes the process id, "%n" @p number. */
void weft_capture_expand(const char *name, unsigned int number, char *buf, size_t size);

struct weft_capture_filter;

/**
 * Compile a filter. The call may take seconds: host names are resolved.
 * @param[out] out  NULL for an empty expression: all frames match
 * @return 0, or a negative errno with a sentence
 */
int weft_capture_filter_make(const char *expression, struct weft_capture_filter **out, char *why,
			     size_t why_len);
/** Take another reference, to be freed as well. NULL is allowed. */
struct weft_capture_filter *weft_capture_filter_share(struct weft_capture_filter *f);
void weft_capture_filter_free(struct weft_capture_filter *f);
/** Bytes that a filter checks at most, of a frame that is not contiguous. */
#define WEFT_CAPTURE_FILTERED 2048u
/** Do @p caplen bytes of a frame of @p len bytes match? */
bool weft_capture_filter_takes_bytes(const struct weft_capture_filter *f, const void *data,
				     uint32_t caplen, uint32_t len);
/** Does the frame match? Of a chained frame the first WEFT_CAPTURE_FILTERED bytes are checked. */
bool weft_capture_filter_takes(const struct weft_capture_filter *f, const struct rte_mbuf *m);

#endif /* WEFT_CAPTURE_FILE_H */
