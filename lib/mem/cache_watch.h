/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/cache_watch.h
 * The registration cache's view of the address space: a userfaultfd for what is kept, the thread
 * that reads its events, and what a fork must do about both. mem/cache.h says why.
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
	void (*gone)(void *arg, const struct weft_uffd_range *range); /* no malloc(), no free() */
	void *arg;
	/* read by the owner */
	pid_t pid; /* that started it; 0 = not started */
	int uffd;
	uintptr_t page; /* one watched page of our own, for weft_uffd_changing() */
	/* its own */
	LIST_ENTRY(weft_regcache_watch) with_uffd; /* under uffds_lock */
	pthread_t thread;
	int wake;
	size_t page_size;
};

/** @return 0, or an error with the reason in @p why; then nothing stays behind */
int weft_regcache_watch_start(struct weft_regcache_watch *w, size_t page_size, char *why,
			      size_t why_len);
/** Ends the thread; descriptors and page go. Also of one that was never started, or by a child. */
void weft_regcache_watch_stop(struct weft_regcache_watch *w);

#endif /* WEFT_REGCACHE_WATCH_H */
