/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients gave is closed by a thread of its own. A close may last: of a socket that lingers,
 * of a file that its owner serves (FUSE), of a connection in which such ones wait to be received.
 * A signal ends most of these waits; the control thread sends one after a tick.
 *
 * The queue is a pipe. It has room for 2730 jobs, and this process has at most 2048 descriptors and
 * one region for each port, so it is never full. When many jobs wait, the control thread takes
 * nothing more from clients (sw_close_is_late()).
 */

#include "switch/switch.h"

#include <errno.h>
#include <signal.h>
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

#define LATE 512u

static int queue[2];
static pthread_t closer;
static atomic_uint waiting, turn; /* jobs that are not done; jobs that were begun */
static unsigned int seen_turn;    /* control thread: of the last look */

static void do_job(const struct job *j)
{
	if (j->fd >= 0)
		close(j->fd);
	if (j->at)
		munmap(j->at, j->len);
}

static void *close_thread(void *arg)
{
	sigset_t usr2;
	struct job j;

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &usr2, NULL);
	for (;;) {
		if (read(queue[0], &j, sizeof(j)) != (ssize_t)sizeof(j))
			continue;
		atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
		do_job(&j);
		atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
	}
	return arg;
}

int sw_close_start(struct sw *s)
{
	if (pipe2(queue, O_CLOEXEC) || fcntl(queue[1], F_SETFL, O_NONBLOCK)) {
		cli_error("a pipe can't be had: %s; raise the limit of open files",
			  strerror(errno));
		return APP_FAIL;
	}
	return sw_thread_start("switch-close", close_thread, s, &closer);
}

bool sw_close_is_late(void)
{
	return atomic_load_explicit(&waiting, memory_order_relaxed) >= LATE;
}

void sw_close_watch(void)
{
	unsigned int now = atomic_load_explicit(&turn, memory_order_relaxed);

	if (now == seen_turn && atomic_load_explicit(&waiting, memory_order_relaxed) > 0)
		pthread_kill(closer, SIGUSR2);
	seen_turn = now;
}

/* A pipe of a user with too many pipes is smaller; then the control thread closes, and waits. */
static void hand_over(const struct job *j)
{
	atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
	if (write(queue[1], j, sizeof(*j)) == (ssize_t)sizeof(*j))
		return;
	do_job(j);
	atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
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
