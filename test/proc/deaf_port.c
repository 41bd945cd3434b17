/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded: no port wakes a worker that sleeps. The first descriptor in a worker's epoll set is
 * its timer, the second its eventfd. Those of the lanes follow, and the kernel does not get them.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SETS 1024

/* What a set has. It is a worker's if the first descriptor is a timer. */
static enum { NOTHING, TIMER, EVENT, OTHERS } has[SETS];

static bool is_timer(int fd)
{
	char path[40], to[40];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	return strstr(to, "timerfd") != NULL;
}

static int begin(int set)
{
	if (set >= 0 && set < SETS)
		has[set] = NOTHING;
	return set;
}

int epoll_create(int size)
{
	return begin(((int (*)(int))dlsym(RTLD_NEXT, "epoll_create"))(size));
}

int epoll_create1(int flags)
{
	return begin(((int (*)(int))dlsym(RTLD_NEXT, "epoll_create1"))(flags));
}

int epoll_ctl(int set, int op, int fd, struct epoll_event *ev)
{
	int (*real)(int, int, int, struct epoll_event *) =
		(int (*)(int, int, int, struct epoll_event *))dlsym(RTLD_NEXT, "epoll_ctl");

	if (op != EPOLL_CTL_ADD || set < 0 || set >= SETS)
		return real(set, op, fd, ev);
	if (has[set] == EVENT)
		return 0;
	if (has[set] == NOTHING)
		has[set] = is_timer(fd) ? TIMER : OTHERS;
	else if (has[set] == TIMER)
		has[set] = EVENT;
	return real(set, op, fd, ev);
}
