/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mem/uffd.h"

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
	 * Removes a write protection that does not exist. mm/userfaultfd.c returns -EAGAIN while
	 * mmap_changing. An unmapping call increments it under the lock of the address space,
	 * before other calls can get the address, and it is decremented when the event has been
	 * read.
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

unsigned int weft_uffd_read(int fd, struct weft_uffd_range *out, unsigned int max)
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

/* A line of /proc/self/maps: "start-end perms offset dev inode name". */
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
