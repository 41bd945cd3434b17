/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/watch.h
 * The registration cache's watch on the address space: a userfaultfd for cached memory, the thread
 * that reads its events, and the handling of both in fork(). mem/cache.h has the reasons.
 */
#ifndef WEFT_MEM_WATCH_H
#define WEFT_MEM_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <unistd.h>

/* ------------------------------------------------------------------ userfaultfd */

/*
 * Nothing in a watched range is write-protected, so no page fault waits for this process. If
 * possible, mappings are watched as a whole, so that each remains one mapping. A thread that
 * unmaps, moves or empties watched memory waits in the kernel until the event is read.
 */

struct weft_uffd_range {
	uintptr_t start, end;
};

/** @return a descriptor, or a negative error with its reason and remedy in @p why */
int weft_uffd_open(char *why, size_t why_len);

/** Watch whole pages. @return 0, or an error: the mapping is not suitable, or has another watch */
int weft_uffd_watch(int fd, uintptr_t start, uintptr_t end);
void weft_uffd_unwatch(int fd, uintptr_t start, uintptr_t end);

/**
 * Is a thread unmapping watched memory, and its event not read yet? The kernel counts such a call
 * before the address is free. So a caller that has new memory at this address gets true until the
 * event is read.
 * @param page  a watched page, of the caller, that stays mapped
 */
bool weft_uffd_changing(int fd, uintptr_t page);

/**
 * Is [@p start, @p end) all private anonymous memory? Other memory can lose its pages without an
 * event: files and shared memory can be truncated or punched through other mappings.
 *
 * @param whole  out, if so: the range, extended to whole mappings at both ends, except in the heap
 *   and the stack. Watching a part of a mapping splits it, and mremap() of both parts fails with
 *   EFAULT.
 */
bool weft_uffd_anonymous(uintptr_t start, uintptr_t end, struct weft_uffd_range *whole);

/* ------------------------------------------------------------------ thread */

struct weft_regcache_watch {
	/* set by the owner before the start */
	pthread_mutex_t *lock; /* held while events are read and gone() runs */
	/* called for memory that is gone; must not call malloc() or free() */
	void (*gone)(void *arg, const struct weft_uffd_range *range);
	void *arg;
	/* read by the owner */
	pid_t pid; /* process that started it; 0 = not started */
	int uffd;
	uintptr_t page; /* a watched page without data, for weft_uffd_changing() */
	/* used by mem/watch.c alone */
	LIST_ENTRY(weft_regcache_watch) with_uffd; /* under uffds_lock */
	pthread_t thread;
	int wake;
	size_t page_size;
};

/** Start the thread. @return 0, or an error with the reason in @p why, and nothing is started */
int weft_regcache_watch_start(struct weft_regcache_watch *w, size_t page_size, char *why,
			      size_t why_len);
/** End the thread, release its resources. May be called before the start, or by a child process. */
void weft_regcache_watch_stop(struct weft_regcache_watch *w);

#endif /* WEFT_MEM_WATCH_H */
