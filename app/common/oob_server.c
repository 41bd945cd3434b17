/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of the out-of-band connection. Several unknown senders may be connected at once: the
 * first with the right greeting is accepted. A connection that sends nothing delays no other.
 */

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/oob_priv.h"
#include "common/sys.h"

#define PLACES 16u
#define BACKLOG 64
#define LEAVE_SECONDS 1.0 /* for the peer to read why it is refused */
#define LINES_MAX 16u     /* messages about unknown senders: a port scan must not fill a log */

struct place {
	struct oob *oob;
	double until; /* deadline of the greeting; when leaving: of the close */
	bool leaving;
};

struct oob_server {
	int fd;
	unsigned int lines;
	struct place place[PLACES];
};

/* ---- listening */

static int listen_on(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
			ai->ai_protocol);
	int one = 1, zero = 0, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int oob_server_open(const char *host, uint16_t port, struct oob_server **server)
{
	struct addrinfo *list, *ai;
	struct oob_server *s;
	int fd = -EADDRNOTAVAIL;

	*server = NULL;
	list = oob_resolve(host, port, AI_PASSIVE);
	if (!list)
		return -EINVAL;
	/* An IPv6 socket accepts IPv4 connections too, so it is tried first. */
	for (ai = list; ai && fd < 0; ai = ai->ai_next)
		if (host || ai->ai_family == AF_INET6)
			fd = listen_on(ai);
	for (ai = list; ai && fd < 0; ai = ai->ai_next)
		fd = listen_on(ai);
	freeaddrinfo(list);
	if (fd == -EADDRINUSE)
		cli_error("TCP port %u is in use; choose another with -p at both ends", port);
	else if (fd < 0)
		cli_error("can't listen on %s port %u: %s", host ? host : "any address", port,
			  strerror(-fd));
	if (fd < 0)
		return fd;
	s = calloc(1, sizeof(*s));
	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->fd = fd;
	*server = s;
	return 0;
}

uint16_t oob_server_port(const struct oob_server *server)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);

	if (getsockname(server->fd, (struct sockaddr *)&ss, &len))
		return 0;
	return ntohs(ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
					      : ((struct sockaddr_in *)&ss)->sin_port);
}

/* ---- connections without a greeting yet */

static void leave(struct place *p)
{
	oob_close(p->oob);
	*p = (struct place){0};
}

/* Are both from one host? Names are "HOST port N". */
static bool same_host(const struct oob *a, const struct oob *b)
{
	const char *x = oob_peer_name(a), *y = oob_peer_name(b);
	size_t n = (size_t)(strrchr(x, ' ') - x), m = (size_t)(strrchr(y, ' ') - y);

	return n == m && memcmp(x, y, n) == 0;
}

static unsigned int places_of(const struct oob_server *s, const struct oob *oob)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < PLACES; i++)
		n += s->place[i].oob && same_host(s->place[i].oob, oob);
	return n;
}

/*
 * A place for a new connection. When all are in use, a refused connection that is still open loses
 * its place; without one, the oldest connection of the host that has most. A peer sends its
 * greeting at once, so it needs a place for one round trip only.
 */
static struct place *find_place(struct oob_server *s)
{
	struct place *worst = NULL;
	unsigned int most = 0, n;

	for (unsigned int i = 0; i < PLACES; i++)
		if (!s->place[i].oob)
			return &s->place[i];
	for (unsigned int i = 0; i < PLACES; i++) {
		struct place *p = &s->place[i];

		n = p->leaving ? PLACES + 1 : places_of(s, p->oob);
		if (n > most || (n == most && p->until < worst->until)) {
			most = n;
			worst = p;
		}
	}
	leave(worst);
	return worst;
}

/* @welcome  false: the new connections will be refused */
static void newcomers(struct oob_server *s, bool welcome)
{
	struct place *p;
	int fd;

	for (unsigned int i = 0; i < PLACES; i++) {
		fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			return;
		p = find_place(s);
		p->oob = oob_new(fd);
		if (!p->oob)
			return;
		p->until = sys_seconds() + OOB_HELLO_SECONDS;
		p->leaving = false;
		if (welcome && oob_send_hello(p->oob))
			leave(p);
	}
}

static void sent_away(struct oob_server *s, const struct oob *oob, const char *why)
{
	if (s->lines < LINES_MAX)
		cli_error("refused %s: %s", oob_peer_name(oob), why);
	else if (s->lines == LINES_MAX)
		cli_error("further connections are refused without a line each");
	if (s->lines <= LINES_MAX)
		s->lines++;
}

/*
 * Closing a socket with unread bytes resets the connection, which would discard our last message.
 * So bytes are read until the other end closes.
 */
static void look_after_leaving(struct place *p)
{
	char unread[512];
	ssize_t n = recv(p->oob->fd, unread, sizeof(unread), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || sys_seconds() > p->until)
		leave(p);
}

/* @return true: it is a peer */
static bool look_after(struct oob_server *s, struct place *p)
{
	char why[300] = "it sent no greeting";
	int ret;

	if (p->leaving) {
		look_after_leaving(p);
		return false;
	}
	ret = oob_check_hello(p->oob, why, sizeof(why));
	if (ret == 0)
		return true;
	if (ret == -EAGAIN && sys_seconds() < p->until)
		return false;
	sent_away(s, p->oob, why);
	leave(p);
	return false;
}

static void wait_at_door(const struct oob_server *s, int ms)
{
	struct pollfd fds[PLACES + 1];
	nfds_t n = 0;

	fds[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
	for (unsigned int i = 0; i < PLACES; i++)
		if (s->place[i].oob)
			fds[n++] = (struct pollfd){.fd = s->place[i].oob->fd, .events = POLLIN};
	poll(fds, n, ms);
}

int oob_server_accept(struct oob_server *server, oob_idle_cb idle, void *arg, struct oob **oob)
{
	int ret;

	for (;;) {
		ret = idle ? idle(arg) : 0;
		if (ret)
			return ret;
		wait_at_door(server, 100);
		newcomers(server, true);
		for (unsigned int i = 0; i < PLACES; i++) {
			struct place *p = &server->place[i];

			if (!p->oob || !look_after(server, p))
				continue;
			*oob = p->oob;
			p->oob = NULL;
			return 0;
		}
	}
}

void oob_server_refuse(struct oob_server *server, const char *text)
{
	newcomers(server, false);
	for (unsigned int i = 0; i < PLACES; i++) {
		struct place *p = &server->place[i];

		if (!p->oob)
			continue;
		if (p->leaving) {
			look_after_leaving(p);
			continue;
		}
		oob_bye(p->oob, APP_FAIL, text);
		shutdown(p->oob->fd, SHUT_WR);
		p->leaving = true;
		p->until = sys_seconds() + LEAVE_SECONDS;
	}
}

void oob_server_close(struct oob_server *server)
{
	if (!server)
		return;
	for (unsigned int i = 0; i < PLACES; i++)
		leave(&server->place[i]);
	close(server->fd);
	free(server);
}
