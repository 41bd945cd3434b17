/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and wake-up of the threads of the switch. */

#include "switch/switch.h"

#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/thread.h"
#include "common/cli.h"

uint64_t sw_tag(unsigned int kind, unsigned int index)
{
	return (uint64_t)kind << 32 | index;
}

int sw_watch(struct sw *s, int fd, uint64_t tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = tag};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) ? -1 : fd;
}

void sw_control_notify(struct sw *s)
{
	const uint64_t one = 1;

	/* The eventfd is non-blocking. A failed write is harmless: a full counter wakes, too. */
	if (write(s->control_event, &one, sizeof(one)) < 0)
		return;
}

int sw_thread_start(const char *name, void *(*run)(void *arg), struct sw *s, pthread_t *thread)
{
	cpu_set_t own;
	bool pinned = sched_getaffinity(0, sizeof(own), &own) == 0 && CPU_COUNT(&own) == 1;
	int rc = weft_thread_start(name, run, s, pinned ? &own : NULL, thread);

	if (rc == 0)
		return APP_OK;
	cli_error("the thread %s can't be started: %s; raise the limits on threads and memory",
		  name, strerror(-rc));
	return APP_FAIL;
}
