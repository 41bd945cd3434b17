/* SPDX-License-Identifier: BSD-3-Clause */

#include "cat/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A larger pipe takes fewer system calls; the kernel may refuse this size. */
#define PIPE_BYTES (1 << 20)

static enum cat_kind open_anew(int fd, bool output)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, (output ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (again < 0)
		return CAT_POLLED;
	/*
	 * Replace the old descriptor: while it is open, the pipe's other end sees no end of file.
	 */
	if (dup2(again, fd) < 0) {
		close(again);
		return CAT_POLLED;
	}
	close(again);
	return CAT_NONBLOCK;
}

void cat_io_open(struct cat_io *io, int fd, bool output)
{
	struct stat st;

	io->fd = fd;
	io->output = output;
	io->kind = CAT_PLAIN;
	if (fstat(fd, &st))
		return;
	if (S_ISSOCK(st.st_mode))
		io->kind = CAT_SOCKET;
	else if (S_ISFIFO(st.st_mode) || isatty(fd))
		io->kind = open_anew(fd, output);
	if (S_ISFIFO(st.st_mode))
		fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
}

static bool ready(const struct cat_io *io)
{
	struct pollfd pfd = {.fd = io->fd, .events = io->output ? POLLOUT : POLLIN};

	return poll(&pfd, 1, 0) > 0;
}

static ssize_t result(ssize_t n)
{
	if (n >= 0)
		return n;
	return errno == EINTR || errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

ssize_t cat_io_read(struct cat_io *io, void *buf, size_t len)
{
	if (io->kind == CAT_SOCKET)
		return result(recv(io->fd, buf, len, MSG_DONTWAIT));
	if (io->kind == CAT_POLLED && !ready(io))
		return -EAGAIN;
	return result(read(io->fd, buf, len));
}

ssize_t cat_io_write(struct cat_io *io, const void *buf, size_t len)
{
	if (io->kind == CAT_SOCKET)
		return result(send(io->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL));
	if (io->kind == CAT_POLLED) {
		if (!ready(io))
			return -EAGAIN;
		/* poll() promises space for PIPE_BUF bytes of a pipe. */
		len = len < PIPE_BUF ? len : PIPE_BUF;
	}
	return result(write(io->fd, buf, len));
}

bool cat_io_can_poll(const struct cat_io *io)
{
	return io->fd >= 0 && io->kind != CAT_PLAIN;
}

int cat_io_close(struct cat_io *io)
{
	int ret = io->fd >= 0 && close(io->fd) ? -errno : 0;

	io->fd = -1;
	return ret;
}
