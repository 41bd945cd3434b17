/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives, by userfaultfd, events of watched memory that is unmapped, and notifies mem/cache.c. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "base/thread.h"
#include "mem/cache_watch.h"

/*
 * A child that does not exec has a copy of the descriptor as long as it runs. When the parent
 * closes its own, the copy would remain open, memory would remain watched, and a thread that unmaps
 * it would wait for an event that no thread reads. So the child closes its copy first of all.
 * uffds_lock: a descriptor in the list is open whenever the process is copied; it is never held
 * while waiting.
 */
static pthread_mutex_t uffds_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, weft_regcache_watch) uffds = LIST_HEAD_INITIALIZER(uffds);
static pthread_once_t uffds_once = PTHREAD_ONCE_INIT;
static int uffds_atfork;

static void before_fork(void)
{
	pthread_mutex_lock(&uffds_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&uffds_lock);
}

static void drop_uffd(struct weft_regcache_watch *w)
{
	LIST_REMOVE(w, with_uffd);
	close(w->uffd);
	w->uffd = -1;
}

static void after_fork_in_child(void)
{
	while (!LIST_EMPTY(&uffds))
		drop_uffd(LIST_FIRST(&uffds));
	pthread_mutex_unlock(&uffds_lock);
}

static void register_atfork(void)
{
	uffds_atfork = -pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static int open_uffd(struct weft_regcache_watch *w, char *why, size_t why_len)
{
	int rc;

	pthread_once(&uffds_once, register_atfork);
	if (uffds_atfork < 0) {
		snprintf(why, why_len, "out of memory");
		return uffds_atfork;
	}
	pthread_mutex_lock(&uffds_lock);
	rc = weft_uffd_open(why, why_len);
	if (rc >= 0) {
		w->uffd = rc;
		LIST_INSERT_HEAD(&uffds, w, with_uffd);
	}
	pthread_mutex_unlock(&uffds_lock);
	return rc < 0 ? rc : 0;
}

static void close_uffd(struct weft_regcache_watch *w)
{
	pthread_mutex_lock(&uffds_lock);
	if (w->uffd >= 0)
		drop_uffd(w);
	pthread_mutex_unlock(&uffds_lock);
}

/* ------------------------------------------------------------------ the monitor */

static void *monitor_thread(void *arg)
{
	struct weft_regcache_watch *w = arg;
	struct pollfd fds[2] = {{.fd = w->uffd, .events = POLLIN},
				{.fd = w->wake, .events = POLLIN}};
	struct weft_uffd_range gone[16];
	unsigned int i, n;

	while (!(fds[1].revents & POLLIN)) {
		if (poll(fds, 2, -1) < 0)
			continue; /* EINTR; signals are blocked, but not those of a debugger */
		/*
		 * The thread that unmaps memory continues once the event is read, and may look up
		 * the same address. The lock makes that look-up wait until the entries are removed.
		 */
		pthread_mutex_lock(w->lock);
		while ((n = weft_uffd_read(w->uffd, gone, 16)) > 0)
			for (i = 0; i < n; i++)
				w->gone(w->arg, &gone[i]);
		pthread_mutex_unlock(w->lock);
	}
	/* The end of a thread returns memory, too, and no thread reads events from here on. */
	close_uffd(w);
	return NULL;
}

static void close_all(struct weft_regcache_watch *w)
{
	close_uffd(w);
	if (w->wake >= 0)
		close(w->wake);
	if (w->page != 0)
		munmap((void *)w->page, w->page_size);
	w->wake = -1;
	w->page = 0;
}

static int watch_start(struct weft_regcache_watch *w, char *why, size_t why_len)
{
	void *page;
	int rc = open_uffd(w, why, why_len);

	if (rc < 0)
		return rc;
	snprintf(why, why_len, "out of memory");
	page = mmap(NULL, w->page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -ENOMEM;
	w->page = (uintptr_t)page;
	w->wake = eventfd(0, EFD_CLOEXEC);
	if (w->wake < 0)
		return -errno;
	rc = weft_uffd_watch(w->uffd, w->page, w->page + w->page_size);
	if (rc < 0 || weft_uffd_changing(w->uffd, w->page)) {
		snprintf(why, why_len, "userfaultfd of this kernel cannot watch memory: %s",
			 strerror(rc < 0 ? -rc : EAGAIN));
		return rc < 0 ? rc : -EOPNOTSUPP;
	}
	return weft_thread_start("weft-regcache", monitor_thread, w, NULL, &w->thread);
}

int weft_regcache_watch_start(struct weft_regcache_watch *w, size_t page_size, char *why,
			      size_t why_len)
{
	int rc;

	w->page_size = page_size;
	rc = watch_start(w, why, why_len);
	if (rc < 0) {
		close_all(w);
		return rc;
	}
	w->pid = getpid();
	return 0;
}

void weft_regcache_watch_stop(struct weft_regcache_watch *w)
{
	const uint64_t one = 1;

	if (w->pid != 0 && w->pid == getpid()) {
		/* A write to an eventfd with the value 0 succeeds. */
		if (write(w->wake, &one, sizeof(one)) == sizeof(one))
			pthread_join(w->thread, NULL);
	}
	/* In case the thread did not run in this process. */
	close_all(w);
}
