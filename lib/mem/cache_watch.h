/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/cache_watch.h
 * The registration cache's watch on the address space: a userfaultfd for cached memory, the thread
 * that reads its events, and the handling of both in fork(). mem/cache.h has the reasons.
 */
#ifndef WEFT_REGCACHE_WATCH_H
#define WEFT_REGCACHE_WATCH_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <unistd.h>

#include "mem/uffd.h"

struct weft_regcache_watch {
	/* set by the owner before the start */
	pthread_mutex_t *lock; /* held while events are read and gone() runs */
	/* called for memory that is gone; no malloc(), no free() */
	void (*gone)(void *arg, const struct weft_uffd_range *range);
	void *arg;
	/* read by the owner */
	pid_t pid; /* process that started it; 0 = not started */
	int uffd;
	uintptr_t page; /* a watched page of its own, for weft_uffd_changing() */
	/* its own */
	LIST_ENTRY(weft_regcache_watch) with_uffd; /* under uffds_lock */
	pthread_t thread;
	int wake;
	size_t page_size;
};

/** @return 0, or an error with the reason in @p why; then all resources are released */
int weft_regcache_watch_start(struct weft_regcache_watch *w, size_t page_size, char *why,
			      size_t why_len);
/**
 * End the thread, and release its resources. May be called before the start, or by a child process.
 */
void weft_regcache_watch_stop(struct weft_regcache_watch *w);

#endif /* WEFT_REGCACHE_WATCH_H */
