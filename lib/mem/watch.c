/* SPDX-License-Identifier: BSD-3-Clause */

#include "mem/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"

/* ------------------------------------------------------------------ userfaultfd */

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

#define WANTED                                                                                   \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | \
	 UFFD_FEATURE_EVENT_UNMAP)

int weft_uffd_open(char *why, size_t why_len)
{
	struct uffdio_api api = {.api = UFFD_API, .features = WANTED};
	int fd, err;

	/* Faults are never handled, so the right to handle those of the kernel is not needed. */
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd < 0) {
		err = errno;
		snprintf(why, why_len,
			 "userfaultfd: %s (a container's seccomp profile may forbid it; a kernel "
			 "before 5.11 wants sysctl vm.unprivileged_userfaultfd=1)",
			 strerror(err));
		return -err;
	}
	if (ioctl(fd, UFFDIO_API, &api) < 0 || (api.features & WANTED) != WANTED) {
		snprintf(why, why_len,
			 "userfaultfd of this kernel lacks unmap events or write protection "
			 "(Linux 5.7 or later on x86-64)");
		close(fd);
		return -EOPNOTSUPP;
	}
	return fd;
}

int weft_uffd_watch(int fd, uintptr_t start, uintptr_t end)
{
	struct uffdio_register reg = {
		.range = {.start = start, .len = end - start},
		/* Nothing is write-protected: this mode has no effect but the events. */
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) < 0 ? -errno : 0;
}

void weft_uffd_unwatch(int fd, uintptr_t start, uintptr_t end)
{
	struct uffdio_range range = {.start = start, .len = end - start};

	/* The range may already be unmapped: then there is nothing to do. */
	(void)ioctl(fd, UFFDIO_UNREGISTER, &range);
}

bool weft_uffd_changing(int fd, uintptr_t page)
{
	struct uffdio_writeprotect wp = {
		.range = {.start = page, .len = (uint64_t)sysconf(_SC_PAGESIZE)},
	};

	/*
	 * This removes a write protection that does not exist. mm/userfaultfd.c returns -EAGAIN
	 * while its counter mmap_changing is not 0. An unmapping call increments the counter under
	 * the lock of the address space, before other calls can get the address. The counter is
	 * decremented when the event has been read.
	 */
	return ioctl(fd, UFFDIO_WRITEPROTECT, &wp) < 0;
}

static bool range_of(const struct uffd_msg *m, struct weft_uffd_range *r)
{
	switch (m->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		*r = (struct weft_uffd_range){(uintptr_t)m->arg.remove.start,
					      (uintptr_t)m->arg.remove.end};
		return true;
	case UFFD_EVENT_REMAP:
		*r = (struct weft_uffd_range){(uintptr_t)m->arg.remap.from,
					      (uintptr_t)(m->arg.remap.from + m->arg.remap.len)};
		return true;
	default:
		return false;
	}
}

/* Read up to @p max events without waiting; their threads continue. @return number of ranges */
static unsigned int read_events(int fd, struct weft_uffd_range *out, unsigned int max)
{
	struct uffd_msg msgs[16];
	unsigned int n = 0, i;
	ssize_t got;

	if (max > 16)
		max = 16;
	got = read(fd, msgs, max * sizeof(msgs[0]));
	for (i = 0; got > 0 && i < (size_t)got / sizeof(msgs[0]); i++)
		n += range_of(&msgs[i], &out[n]);
	return n;
}

/* ------------------------------------------------------------------ what is mapped */

struct mapping {
	uintptr_t start, end;
	bool anonymous;
	bool fixed; /* the heap or the stack: mremap() is not applied to them */
};

/* Parse a line of /proc/self/maps: "start-end perms offset dev inode name". */
static bool parse_line(const char *line, struct mapping *m)
{
	unsigned long start, end, inode;
	char perms[5], name[16] = "";

	if (sscanf(line, "%lx-%lx %4s %*s %*s %lu %15s", &start, &end, perms, &inode, name) < 4)
		return false; /* the rest of a long name */
	m->start = start;
	m->end = end;
	m->anonymous = perms[3] == 'p' && inode == 0;
	m->fixed = strcmp(name, "[heap]") == 0 || strcmp(name, "[stack]") == 0;
	return true;
}

bool weft_uffd_anonymous(uintptr_t start, uintptr_t end, struct weft_uffd_range *whole)
{
	uintptr_t at = start;
	struct mapping m;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	if (!f)
		return false;
	*whole = (struct weft_uffd_range){start, end};
	while (at < end && fgets(line, sizeof(line), f)) {
		if (!parse_line(line, &m) || m.end <= at)
			continue;
		if (m.start > at || !m.anonymous)
			break; /* a hole, or another kind of memory */
		if (at == start && !m.fixed)
			whole->start = m.start;
		if (m.end > end && !m.fixed)
			whole->end = m.end;
		at = m.end;
	}
	fclose(f);
	return at >= end;
}

/* ------------------------------------------------------------------ thread */

/*
 * A child that does not exec has a copy of the descriptor as long as it runs: memory would remain
 * watched after the parent closes its own, and a thread that unmaps such memory would wait forever.
 * So the child closes its copy first of all. uffds_lock is held during fork(), so that each
 * descriptor in the list is open in the child. No thread waits for events while it holds
 * uffds_lock.
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
		while ((n = read_events(w->uffd, gone, 16)) > 0)
			for (i = 0; i < n; i++)
				w->gone(w->arg, &gone[i]);
		pthread_mutex_unlock(w->lock);
	}
	/* The end of this thread unmaps its stack, and no thread reads events from here on. */
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
	/* The thread has closed the userfaultfd, if it ran in this process. */
	close_all(w);
}
