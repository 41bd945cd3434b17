/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets in the abstract namespace: their names go with the process, so that nothing is left
 * behind. They have no permissions: who the other end is says SO_PEERCRED.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "shm/shm.h"

#define BACKLOG 1024

static socklen_t name_of(const struct shm_addr *a, struct sockaddr_un *name)
{
	int n;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "weft-shm-%016llx",
		     (unsigned long long)weft_get64(a->iface_id));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int failed(int fd)
{
	int error = errno;

	close(fd);
	return -error;
}

int shm_socket_listen(const struct shm_addr *own)
{
	struct sockaddr_un name;
	socklen_t len = name_of(own, &name);
	int fd = new_socket();

	if (fd >= 0 && (bind(fd, (struct sockaddr *)&name, len) < 0 || listen(fd, BACKLOG) < 0))
		return failed(fd);
	return fd;
}

int shm_socket_connect(const struct shm_addr *to)
{
	struct sockaddr_un name;
	socklen_t len = name_of(to, &name);
	int fd = new_socket();

	if (fd >= 0 && connect(fd, (struct sockaddr *)&name, len) < 0)
		return failed(fd);
	return fd;
}

int shm_socket_peer(int sock, pid_t *pid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid != geteuid())
		return -EACCES;
	*pid = cred.pid;
	return 0;
}

int shm_socket_is_at(const struct shm_addr *addr, pid_t pid)
{
	int fd = shm_socket_connect(addr);
	pid_t there = -1;
	bool is;

	if (fd < 0)
		return fd == -EAGAIN ? -EAGAIN : -EACCES; /* it is there, and its queue is full */
	is = shm_socket_peer(fd, &there) == 0 && there == pid;
	close(fd);
	return is ? 0 : -EACCES;
}

bool shm_socket_peek(int sock, struct shm_hello *hello)
{
	return recv(sock, hello, sizeof(*hello), MSG_DONTWAIT | MSG_PEEK) == sizeof(*hello);
}

int shm_socket_send(int sock, const struct shm_hello *hello, const int *fds, unsigned int num)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SHM_HELLO_FDS * sizeof(int))] = "";
	struct iovec iov = {.iov_base = (void *)hello, .iov_len = sizeof(*hello)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (num > 0) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(num * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(num * sizeof(int));
		memcpy(CMSG_DATA(c), fds, num * sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Those for which there is no use are closed. */
static void take_fds(struct msghdr *msg, int fds[SHM_HELLO_FDS])
{
	unsigned int had = 0;
	struct cmsghdr *c;
	size_t i, num;
	int one;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		num = (c->cmsg_len - CMSG_LEN(0)) / sizeof(one);
		for (i = 0; i < num; i++) {
			memcpy(&one, CMSG_DATA(c) + i * sizeof(one), sizeof(one));
			if (had < SHM_HELLO_FDS)
				fds[had++] = one;
			else
				close(one);
		}
	}
}

void shm_socket_close_fds(const int fds[SHM_HELLO_FDS])
{
	for (unsigned int i = 0; i < SHM_HELLO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int shm_socket_recv(int sock, struct shm_hello *hello, int fds[SHM_HELLO_FDS])
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SHM_HELLO_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = hello, .iov_len = sizeof(*hello)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t n;

	for (unsigned int i = 0; i < SHM_HELLO_FDS; i++)
		fds[i] = -1;
	n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	take_fds(&msg, fds);
	if (n != sizeof(*hello) || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    hello->magic != SHM_HELLO_MAGIC) {
		shm_socket_close_fds(fds);
		return n == 0 ? 0 : -EPROTO;
	}
	hello->text[sizeof(hello->text) - 1] = '\0';
	return 1;
}

int shm_process_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}
