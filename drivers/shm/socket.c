/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets in a folder that only this user may access. Names in the abstract namespace have no
 * permissions: each user of the network namespace could fill the backlog, and pass descriptors
 * whose close() blocks.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/blocking.h"
#include "base/user_folder.h"
#include "shm/shm.h"

#define BACKLOG 1024
#define PREFIX "shm-"
#define SWEEP_AGE_S 60

/* @return 0, or a negative error */
static int name_of(const struct shm_addr *a, struct sockaddr_un *name)
{
	char folder[WEFT_USER_FOLDER], why[256];
	int rc = weft_user_folder_find(folder, why, sizeof(why));

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	snprintf(name->sun_path, sizeof(name->sun_path), "%s/" PREFIX "%016llx", folder,
		 (unsigned long long)weft_get64(a->iface_id));
	return rc;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int close_failed(int fd)
{
	int error = errno;

	close(fd);
	return -error;
}

int shm_socket_listen(const struct shm_addr *own)
{
	struct sockaddr_un name;
	int fd, rc = name_of(own, &name);

	if (rc < 0)
		return rc;
	*strrchr(name.sun_path, '/') = '\0';
	weft_sockets_sweep(name.sun_path, PREFIX, SWEEP_AGE_S);
	name.sun_path[strlen(name.sun_path)] = '/';
	fd = new_socket();
	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		return close_failed(fd);
	if (listen(fd, BACKLOG) < 0) {
		unlink(name.sun_path);
		return close_failed(fd);
	}
	return fd;
}

void shm_socket_remove(const struct shm_addr *own)
{
	struct sockaddr_un name;

	if (name_of(own, &name) == 0)
		unlink(name.sun_path);
}

int shm_socket_connect(const struct shm_addr *to)
{
	struct sockaddr_un name;
	int fd, rc = name_of(to, &name);

	if (rc < 0)
		return rc;
	fd = new_socket();
	if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0) {
		/* A process that has ended in an orderly way has removed the name. */
		if (errno == ENOENT)
			errno = ECONNREFUSED;
		return close_failed(fd);
	}
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
		return fd == -EAGAIN ? -EAGAIN : -EACCES; /* it listens, and its backlog is full */
	is = shm_socket_peer(fd, &there) == 0 && there == pid;
	close(fd);
	return is ? 0 : -EACCES;
}

bool shm_socket_has_message(int sock)
{
	char byte;

	return recv(sock, &byte, sizeof(byte), MSG_DONTWAIT | MSG_PEEK) > 0;
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

int shm_socket_recv(int sock, struct shm_hello *hello, int fds[SHM_HELLO_FDS])
{
	ssize_t n = weft_foreign_fd_recv(sock, hello, sizeof(*hello), fds, SHM_HELLO_FDS);

	if (n < 0)
		return n == -EAGAIN ? -EAGAIN : -EPROTO;
	if (n != sizeof(*hello) || hello->magic != SHM_HELLO_MAGIC)
		return n == 0 ? -ECONNRESET : -EPROTO;
	hello->text[sizeof(hello->text) - 1] = '\0';
	return 0;
}

int shm_process_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}
