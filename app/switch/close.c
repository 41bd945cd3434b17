/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients gave is closed by a thread of its own. A close may last: of a socket that lingers,
 * of a file that its owner serves (FUSE), of a connection in which such ones wait to be received;
 * and memory of half a GiB is not unmapped at once. A pipe is the queue, so that nobody waits here.
 */

#include "switch/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "common/cli.h"

/* One of the two. The pipe hands it over whole: it is shorter than PIPE_BUF. */
struct job {
	int fd; /* -1 = none */
	void *at;
	size_t len;
};

static int queue[2];

static void do_job(const struct job *j)
{
	if (j->fd >= 0)
		close(j->fd);
	if (j->at)
		munmap(j->at, j->len);
}

static void *closer(void *arg)
{
	struct job j;

	for (;;)
		if (read(queue[0], &j, sizeof(j)) == (ssize_t)sizeof(j))
			do_job(&j);
	return arg;
}

int sw_close_start(void)
{
	int ret;

	if (pipe2(queue, O_CLOEXEC) || fcntl(queue[1], F_SETFL, O_NONBLOCK)) {
		cli_error("a pipe can't be had: %s", strerror(errno));
		return APP_FAIL;
	}
	ret = weft_thread_start("weft-sw-close", closer, NULL, NULL, NULL);
	if (ret == 0)
		return APP_OK;
	cli_error("a thread can't be started: %s", strerror(-ret));
	return APP_FAIL;
}

/* A queue of 64 KiB has room for more than there are descriptors in most processes. */
static void hand_over(const struct job *j)
{
	if (write(queue[1], j, sizeof(*j)) != (ssize_t)sizeof(*j))
		do_job(j);
}

void sw_close(int *fd)
{
	if (*fd >= 0)
		hand_over(&(struct job){.fd = *fd});
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

void sw_unmap(void *at, size_t len)
{
	if (at)
		hand_over(&(struct job){.fd = -1, .at = at, .len = len});
}
