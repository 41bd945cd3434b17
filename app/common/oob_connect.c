/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"
#include "lib/base/text.h"
#include "common/oob_priv.h"
#include "common/sys.h"

#define OOB_VERSION 1u

struct hello {
	uint8_t version[4];
	char program[28];
};

static void name_of(const struct sockaddr_storage *ss, socklen_t len, char *buf, size_t size)
{
	char host[64] = "?", port[16] = "?";

	getnameinfo((const struct sockaddr *)ss, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(buf, size, "%s port %s", host, port);
}

/*
 * The kernel closes the connections of a dead process at once. TCP finds a dead host or a cut wire:
 * by 3 keepalive probes after 5 s of silence, or by data that is unacknowledged for 10 s.
 */
static void set_options(int fd)
{
	int one = 1, idle = 5, interval = 2, probes = 3;
	unsigned int unacked_ms = 10000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
}

struct oob *oob_new(int fd)
{
	struct oob *oob = calloc(1, sizeof(*oob));
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);

	if (!oob) {
		close(fd);
		return NULL;
	}
	oob->fd = fd;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	set_options(fd);
	getpeername(fd, (struct sockaddr *)&ss, &len);
	name_of(&ss, len, oob->name, sizeof(oob->name));
	return oob;
}

struct addrinfo *oob_resolve(const char *host, uint16_t port, int flags)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	char service[8];
	int ret;

	snprintf(service, sizeof(service), "%u", port);
	ret = getaddrinfo(host, service, &hints, &list);
	if (!ret)
		return list;
	cli_error("there is no host '%s': %s", host ? host : "any",
		  ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret));
	return NULL;
}

int oob_send_hello(struct oob *oob)
{
	struct hello mine = {0};

	oob_put32(mine.version, OOB_VERSION);
	snprintf(mine.program, sizeof(mine.program), "%s", cli_program);
	return oob_send(oob, OOB_HELLO, &mine, sizeof(mine));
}

int oob_check_hello(struct oob *oob, char *why, size_t len)
{
	struct hello theirs = {0};
	char program[sizeof(theirs.program) + 1];
	size_t length = sizeof(theirs);
	int ret;

	oob_poll(oob);
	ret = oob_take(oob, OOB_HELLO, &theirs, &length);
	if (ret == -EAGAIN)
		return ret;
	weft_text_copy(program, sizeof(program), theirs.program,
		       strnlen(theirs.program, sizeof(theirs.program)));
	if (ret == -ECONNRESET)
		snprintf(why, len, "the connection was closed at the other end");
	else if (ret == -ESHUTDOWN && oob->bye_text[0])
		snprintf(why, len, "%s", oob->bye_text);
	else if (ret || length != sizeof(theirs))
		snprintf(why, len, "the program there is not %s", cli_program);
	else if (oob_get32(theirs.version) != OOB_VERSION)
		snprintf(why, len,
			 "it has version %u of the out-of-band protocol, this program version %u",
			 oob_get32(theirs.version), OOB_VERSION);
	else if (strcmp(program, cli_program) != 0)
		snprintf(why, len, "the program there is %s", program);
	else
		return 0;
	return -EPROTO;
}

/*
 * Connect without blocking, so that neither a signal nor a silent host delays the program. @return
 * socket or negative error
 */
static int connect_to(const struct addrinfo *ai, double end, oob_idle_cb idle, void *arg)
{
	int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
			ai->ai_protocol);
	socklen_t len = sizeof(int);
	int err;

	if (fd < 0)
		return -errno;
	err = connect(fd, ai->ai_addr, ai->ai_addrlen) ? errno : 0;
	while (err == EINPROGRESS || err == EINTR) {
		int stop = idle ? idle(arg) : 0;

		if (stop) {
			close(fd);
			return stop;
		}
		if (poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 100) > 0)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
		else if (sys_seconds() > end)
			err = ETIMEDOUT;
	}
	if (!err)
		return fd;
	close(fd);
	return -err;
}

static int connect_any(const struct addrinfo *list, double wait, oob_idle_cb idle, void *arg)
{
	double end = sys_seconds() + wait;
	int fd, first;

	for (;;) {
		fd = 0;
		first = 0;
		for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
			/* A silent host gets 5 s, also with a shorter wait for the server. */
			fd = connect_to(ai, wait > 5 ? end : sys_seconds() + 5, idle, arg);
			if (fd >= 0 || fd == -EINTR)
				return fd;
			if (!first)
				first = fd;
		}
		if (first != -ECONNREFUSED || sys_seconds() > end)
			return first;
		fd = idle ? idle(arg) : 0;
		if (fd)
			return fd;
		poll(NULL, 0, 50);
	}
}

/*
 * Exchange greetings, and check that of the other side. @return 0, the error of idle, or -EPROTO
 * after an error message
 */
static int shake_hands(struct oob *oob, const char *host, uint16_t port, oob_idle_cb idle,
		       void *arg)
{
	double end = sys_seconds() + OOB_HELLO_SECONDS;
	char why[300] = "it sends no greeting";
	int ret = oob_send_hello(oob), stop;

	if (ret)
		snprintf(why, sizeof(why), "%s", strerror(-ret));
	while (!ret) {
		ret = oob_check_hello(oob, why, sizeof(why));
		if (ret != -EAGAIN || sys_seconds() > end)
			break;
		stop = idle ? idle(arg) : 0;
		if (stop)
			return stop;
		poll(&(struct pollfd){.fd = oob->fd, .events = POLLIN}, 1, 10);
		ret = 0;
	}
	if (!ret)
		return 0;
	cli_error("%s port %u is no peer: %s", host, port, why);
	return -EPROTO;
}

int oob_connect(const char *host, uint16_t port, double wait, oob_idle_cb idle, void *arg,
		struct oob **oob)
{
	struct addrinfo *list = oob_resolve(host, port, 0);
	int fd, ret;

	if (!list)
		return -EINVAL;
	fd = connect_any(list, wait, idle, arg);
	freeaddrinfo(list);
	if (fd == -EINTR)
		return fd;
	if (fd == -ECONNREFUSED)
		cli_error("no server listens on %s port %u; start it there first: %s", host, port,
			  cli_server);
	else if (fd < 0)
		cli_error("can't reach %s port %u: %s", host, port, strerror(-fd));
	if (fd < 0)
		return fd;
	*oob = oob_new(fd);
	if (!*oob)
		return -ENOMEM;
	ret = shake_hands(*oob, host, port, idle, arg);
	if (ret) {
		oob_close(*oob);
		*oob = NULL;
	}
	return ret;
}
