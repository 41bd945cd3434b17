/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket that net_af_xdp opens for a queue, and does not export. AF_XDP sockets do not report
 * the interface that they are bound to. So the port takes the socket that is new after the queue
 * was set up. poll() on it also wakes a driver that requires it (XDP_USE_NEED_WAKEUP).
 */

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "port/priv.h"

#define FDS_MAX 65536u

/* Sockets that existed before: a bit each. */
static uint8_t known[FDS_MAX / 8];

static bool is_xdp_socket(int fd)
{
	socklen_t len = sizeof(int);
	int domain = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_XDP;
}

/* Calls fn() for each socket. Without /proc there are none, and no frame wakes the owner. */
static void for_each(void (*fn)(int fd, void *arg), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	long fd;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		fd = strtol(entry->d_name, NULL, 10);
		if (entry->d_name[0] != '.' && fd >= 0 && is_xdp_socket((int)fd))
			fn((int)fd, arg);
	}
	closedir(dir);
}

static void fd_learn(int fd, void *arg)
{
	RTE_SET_USED(arg);
	if (fd < (int)FDS_MAX)
		known[fd / 8] |= (uint8_t)(1u << fd % 8);
}

struct found {
	unsigned int count;
	int fd;
};

static void fd_look(int fd, void *arg)
{
	struct found *f = arg;

	if (fd < (int)FDS_MAX && known[fd / 8] >> fd % 8 & 1)
		return;
	f->fd = fd;
	/* For numbers from FDS_MAX on it is unknown whether the socket is new. */
	f->count += fd < (int)FDS_MAX ? 1 : 2;
}

void weft_xdp_before(const struct weft_port_dev *d)
{
	if (!d->limits.xdp_queues)
		return;
	memset(known, 0, sizeof(known));
	for_each(fd_learn, NULL);
}

void weft_xdp_after(struct weft_port_dev *d, uint16_t queue)
{
	struct found f = {.fd = -1};

	if (!d->limits.xdp_queues)
		return;
	for_each(fd_look, &f);
	/*
	 * Another thread of the application may have created one, too: then the right one is
	 * unknown.
	 */
	d->xdp_socks[queue] = f.count == 1 ? f.fd : -1;
}

int weft_xdp_arm(const struct weft_port *p)
{
	struct pollfd fd = {.fd = p->sock, .events = POLLIN};

	/* The application may have closed it: the number may refer to another file. */
	return p->sock >= 0 && !weft_port_has_ended(p->dev) && poll(&fd, 1, 0) > 0 &&
			       fd.revents & POLLIN
		       ? -EBUSY
		       : 0;
}
