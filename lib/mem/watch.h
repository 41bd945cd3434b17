/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/watch.h
 * The registration cache's watch on the address space: events of memory that is unmapped, and the
 * thread that reads them.
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
 * Events of memory that is unmapped: the registration cache's use of Linux's userfaultfd(2). A
 * watched range behaves as before: nothing in it is write-protected, so no page fault waits for
 * this process. Mappings are watched as a whole, so that each remains one mapping. A thread that
 * unmaps, moves or empties a part of one waits in the kernel until the event is read.
 */

/** A range whose pages are gone. */
struct weft_uffd_range {
	uintptr_t start, end;
};

/**
 * @param why  gets the reason of an error, and its remedy
 * @return a descriptor, or a negative error
 */
int weft_uffd_open(char *why, size_t why_len);

/** Watch whole pages. @return 0, or an error: the mapping is not suitable, or has another watch */
int weft_uffd_watch(int fd, uintptr_t start, uintptr_t end);
void weft_uffd_unwatch(int fd, uintptr_t start, uintptr_t end);

/**
 * Is a thread unmapping watched memory at this moment, whose event is not read yet? A caller that
 * maps memory at an address that another thread has just unmapped gets true until then: the kernel
 * counts such calls before the address is free.
 * @param page  a watched page that stays mapped (of the caller)
 */
bool weft_uffd_changing(int fd, uintptr_t page);

/**
 * Is [@p start, @p end) all private anonymous memory? Only such memory cannot lose its pages
 * without an event (files and shared memory can be truncated or punched through other mappings).
 *
 * @param whole  out, if so: the range and the remainder of the mappings in which it begins and
 *   ends. Watching a part of a mapping splits it, and mremap() of both parts fails with EFAULT.
 */
bool weft_uffd_anonymous(uintptr_t start, uintptr_t end, struct weft_uffd_range *whole);

/* ------------------------------------------------------------------ thread */

/*
 * The registration cache's watch on the address space: a userfaultfd for cached memory, the thread
 * that reads its events, and the handling of both in fork(). mem/cache.h has the reasons.
 */

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
/** End the thread, release its resources. May be called before the start, or by a child process. */
void weft_regcache_watch_stop(struct weft_regcache_watch *w);

#endif /* WEFT_MEM_WATCH_H */
