/* SPDX-License-Identifier: BSD-3-Clause */
/* The two sockets, the key that outlives the switch, and the lock of the path. */

#include "switch/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cli.h"

/* Clients of the predecessor try to reconnect ten times a second. */
#define RETURN_NS 1000000000ull
/* Connections that wait until the control thread accepts them. */
#define BACKLOG 1024
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static int failed(const char *path, const char *what)
{
	cli_error("%s: %s: %s", path, what, strerror(errno));
	return APP_FAIL;
}

/* Make the folder of the well-known socket; the user makes others. */
static void make_folder(const char *path)
{
	static const char known[] = "/run/weft/";

	if (!strncmp(path, known, sizeof(known) - 1) && mkdir("/run/weft", 0755) == 0)
		chmod("/run/weft", 0755);
}

/*
 * One switch for each path. The key outlives the switch, so that its successor accepts its clients.
 */
static int take_key(struct sw *s)
{
	char path[sizeof(s->path) + 8];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "%s.key", s->path);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0 || fstat(s->lock_fd, &st))
		return failed(path, "it can't be opened");
	if (st.st_uid != geteuid() || st.st_mode & 077) {
		cli_error("%s is another user's, or others can read it; give another path (-p)",
			  path);
		return APP_FAIL;
	}
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
		cli_error("another weft-switch uses %s; end it, or give another path (-p)",
			  s->path);
		return APP_FAIL;
	}
	n = pread(s->lock_fd, &s->key, sizeof(s->key), 0);
	if (n == (ssize_t)sizeof(s->key)) {
		s->grants_from = sw_now() + RETURN_NS;
		return APP_OK;
	}
	if (getrandom(&s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key) ||
	    pwrite(s->lock_fd, &s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key))
		return failed(path, "the key can't be written");
	return APP_OK;
}

/*
 * This process has the lock, so the predecessor has ended. Connections inherit the option that no
 * descriptors may be sent over them: from Linux 6.16 on the sender gets EPERM.
 */
static int listen_at(struct sw *s, const char *ext, int *fd)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const int off = 0;
	struct stat st;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s%s", s->path, ext);
	if (!lstat(un.sun_path, &st)) {
		if (!S_ISSOCK(st.st_mode)) {
			cli_error("%s exists and is no socket; give another path (-p)",
				  un.sun_path);
			return APP_FAIL;
		}
		unlink(un.sun_path);
	}
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return failed(un.sun_path, "its socket can't be made");
	/* Kernels before 6.16 refuse the option. */
	setsockopt(*fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
	if (bind(*fd, (struct sockaddr *)&un, sizeof(un)) || chmod(un.sun_path, s->mode) ||
	    listen(*fd, BACKLOG))
		return failed(un.sun_path, "it can't listen");
	return APP_OK;
}

int sw_listen(struct sw *s)
{
	mode_t mask;
	unsigned int i;
	int ret;

	for (i = 0; i < WEFT_SWITCH_PORTS; i++) {
		s->port[i].grant = -1;
		sw_conn_init(&s->port[i].conn);
	}
	for (i = 0; i < SW_HALF_OPEN; i++)
		sw_conn_init(&s->half[i]);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return failed("epoll", "it can't be created");
	make_folder(s->path);
	ret = take_key(s);
	mask = umask(0177); /* no user may connect before the sockets have their mode */
	if (!ret)
		ret = listen_at(s, "", &s->grant_fd);
	if (!ret)
		ret = listen_at(s, ".memif", &s->memif_fd);
	umask(mask);
	if (!ret && sw_watch(s, s->memif_fd, sw_tag(SW_TAG_MEMIF, 0)) < 0)
		ret = failed("epoll", "it refuses the sockets");
	return ret;
}

/* The key stays: by it a successor recognises the clients. */
void sw_unlisten(struct sw *s)
{
	char path[sizeof(s->path) + 8];

	unlink(s->path);
	snprintf(path, sizeof(path), "%s.memif", s->path);
	unlink(path);
}
