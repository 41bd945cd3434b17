/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/foreign_fd.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/blocking.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define WITH_ONE_MESSAGE 253 /* descriptors: the kernel's SCM_MAX_FD */
#define CLOSES_MAX 512u      /* pending, while further descriptors are received */
#define CLOSE_TRIES 20

static void close_job(void *arg)
{
	close((int)(intptr_t)arg);
}

void weft_foreign_fd_close(int fd)
{
	/*
	 * If no thread can be started, the descriptor stays open: that costs a number, while a
	 * close() here could block the caller.
	 */
	(void)weft_blocking_run(close_job, (void *)(intptr_t)fd);
}

bool weft_foreign_fd_has_room(void)
{
	return weft_blocking_pending() < CLOSES_MAX;
}

static void take(struct msghdr *msg, int *fds, unsigned int num)
{
	unsigned int had = 0;
	struct cmsghdr *c;
	size_t i, here;
	int fd;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < here; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (had < num)
				fds[had++] = fd;
			else
				weft_foreign_fd_close(fd);
		}
	}
}

ssize_t weft_foreign_fd_recv(int sock, void *buf, size_t len, int *fds, unsigned int num)
{
	/*
	 * The kernel passes as many descriptors as there is room for, and closes the others in this
	 * thread.
	 */
	union {
		char bytes[CMSG_SPACE(WITH_ONE_MESSAGE * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n;

	for (unsigned int i = 0; i < num; i++)
		fds[i] = -1;
	n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	take(&msg, fds, num);
	if (!(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	for (unsigned int i = 0; i < num; i++) {
		if (fds[i] >= 0)
			weft_foreign_fd_close(fds[i]);
		fds[i] = -1;
	}
	return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : -EPROTO;
}

bool weft_socket_refuse_fds(int sock)
{
	const int off = 0;

	return setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}

void weft_socket_close_public(int sock)
{
	const struct timespec tick = {.tv_nsec = 1000000};
	unsigned int before;

	if (weft_socket_refuse_fds(sock)) {
		close(sock);
		return;
	}
	before = weft_blocking_pending();
	weft_foreign_fd_close(sock);
	/* Mostly the socket is closed at once, and its name is free when this call returns. */
	for (int i = 0; i < CLOSE_TRIES && weft_blocking_pending() > before; i++)
		nanosleep(&tick, NULL);
}
