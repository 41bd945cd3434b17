/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of base/blocking.h close descriptors that clients passed. A close may block: of a socket
 * that lingers, of a file that its owner serves (FUSE), of a connection with such descriptors in
 * its receive queue. A signal ends most of these waits; the control thread sends one after a tick.
 *
 * When many closes are pending, the control thread receives nothing more from clients
 * (weft_foreign_fd_has_room()).
 */

#include "switch/switch.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/blocking.h"

struct region {
	void *at;
	size_t len;
};

void sw_close_init(void)
{
	cpu_set_t own;
	bool pinned = sched_getaffinity(0, sizeof(own), &own) == 0 && CPU_COUNT(&own) == 1;

	weft_blocking_init(SIGUSR2, pinned ? &own : NULL);
}

void sw_close(int *fd)
{
	if (*fd >= 0)
		weft_foreign_fd_close(*fd);
	*fd = -1;
}

void sw_hang_up(struct sw *s, int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, *fd, NULL);
	shutdown(*fd, SHUT_RDWR);
	sw_close(fd);
}

static void unmap_job(void *arg)
{
	struct region *r = arg;

	munmap(r->at, r->len);
	free(r);
}

void sw_unmap(void *at, size_t len)
{
	struct region *r = at ? malloc(sizeof(*r)) : NULL;

	if (!at)
		return;
	if (r) {
		*r = (struct region){.at = at, .len = len};
		if (weft_blocking_run(unmap_job, r) == 0)
			return;
		free(r);
	}
	munmap(at, len); /* without memory or threads the control thread does it, and may block */
}
