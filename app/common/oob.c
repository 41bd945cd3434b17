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
#include "common/oob.h"
#include "lib/base/text.h"

#define OOB_HEADER 12u
#define OOB_HELLO_SECONDS 5.0

struct oob {
	int fd;
	int status; /* 0, or the error that ended the connection */
	uint32_t barriers;
	bool bye; /* a BYE is among the buffered messages, or was taken */
	int32_t bye_code;
	char bye_text[OOB_BYE_TEXT + 1];
	char name[96];
	size_t in_length;
	uint8_t in[4 * (OOB_HEADER + OOB_MAX)];
};

static inline void oob_put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static inline uint32_t oob_get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- messages ------------------------------------------------------------------------------- */

#define OOB_MAGIC 0x4f544657u /* "WFTO" */
#define SEND_SECONDS 5.0

int oob_send(struct oob *oob, enum oob_type type, const void *data, size_t length)
{
	uint8_t out[OOB_HEADER + OOB_MAX];
	double end = sys_seconds() + SEND_SECONDS;
	size_t sent = 0;

	if (length > OOB_MAX)
		return -EMSGSIZE;
	oob_put32(out, OOB_MAGIC);
	oob_put32(out + 4, type);
	oob_put32(out + 8, (uint32_t)length);
	if (length)
		memcpy(out + OOB_HEADER, data, length);
	while (sent < OOB_HEADER + length) {
		ssize_t n = send(oob->fd, out + sent, OOB_HEADER + length - sent, MSG_NOSIGNAL);

		if (n >= 0) {
			sent += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (sys_seconds() > end)
			return -ETIMEDOUT;
		poll(&(struct pollfd){.fd = oob->fd, .events = POLLOUT}, 1, 100);
	}
	return 0;
}

/*
 * Length of the first buffered message with its header; 0 = incomplete; -EPROTO = wrong header.
 */
static ssize_t first_message(const struct oob *oob)
{
	uint32_t type, length;

	if (oob->in_length < OOB_HEADER)
		return 0;
	type = oob_get32(oob->in + 4);
	length = oob_get32(oob->in + 8);
	if (oob_get32(oob->in) != OOB_MAGIC || !type || type >= OOB_TYPES || length > OOB_MAX)
		return -EPROTO;
	return oob->in_length < OOB_HEADER + length ? 0 : (ssize_t)(OOB_HEADER + length);
}

/* A BYE takes effect when it arrives, before the messages in front of it are taken. */
static void look_for_bye(struct oob *oob)
{
	size_t at = 0;

	while (!oob->bye && oob->in_length - at >= OOB_HEADER) {
		const uint8_t *m = oob->in + at;
		size_t length = oob_get32(m + 8);

		if (length > OOB_MAX || oob->in_length - at < OOB_HEADER + length)
			return;
		if (oob_get32(m) == OOB_MAGIC && oob_get32(m + 4) == OOB_BYE && length >= 4) {
			oob->bye = true;
			oob->bye_code = (int32_t)oob_get32(m + OOB_HEADER);
			weft_text_copy(oob->bye_text, sizeof(oob->bye_text), m + OOB_HEADER + 4,
				       length - 4);
		}
		at += OOB_HEADER + length;
	}
}

int oob_poll(struct oob *oob)
{
	ssize_t n;

	if (oob->status)
		return oob->status;
	if (oob->in_length == sizeof(oob->in))
		return 0;
	n = recv(oob->fd, oob->in + oob->in_length, sizeof(oob->in) - oob->in_length, 0);
	if (n > 0) {
		oob->in_length += (size_t)n;
		if (first_message(oob) < 0)
			oob->status = -EPROTO;
		else
			look_for_bye(oob);
	} else if (n == 0) {
		oob->status = -ECONNRESET;
	} else if (errno != EAGAIN && errno != EINTR) {
		oob->status = errno == ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET;
	}
	return oob->status;
}

uint32_t oob_next(const struct oob *oob)
{
	return first_message(oob) > 0 ? oob_get32(oob->in + 4) : 0;
}

int oob_take(struct oob *oob, enum oob_type type, void *data, size_t *length)
{
	ssize_t whole = first_message(oob);
	size_t payload;

	if (whole <= 0)
		return whole < 0 ? -EPROTO : oob->status ? oob->status : -EAGAIN;
	payload = (size_t)whole - OOB_HEADER;
	if (oob_get32(oob->in + 4) != (uint32_t)type)
		return oob_get32(oob->in + 4) == OOB_BYE ? -ESHUTDOWN : -EPROTO;
	if (payload > *length)
		return -EPROTO;
	if (payload)
		memcpy(data, oob->in + OOB_HEADER, payload);
	*length = payload;
	oob->in_length -= (size_t)whole;
	memmove(oob->in, oob->in + whole, oob->in_length);
	return 0;
}

int oob_recv(struct oob *oob, enum oob_type type, void *data, size_t *length, double timeout,
	     oob_idle_cb idle, void *arg)
{
	double end = sys_seconds() + timeout;
	int ret, stop;

	for (;;) {
		oob_poll(oob);
		ret = oob_take(oob, type, data, length);
		if (ret != -EAGAIN)
			return ret;
		stop = idle ? idle(arg) : 0;
		if (stop)
			return stop;
		if (!idle)
			poll(&(struct pollfd){.fd = oob->fd, .events = POLLIN}, 1, 10);
		if (timeout > 0 && sys_seconds() > end)
			return -ETIMEDOUT;
	}
}

int oob_barrier(struct oob *oob, double timeout, oob_idle_cb idle, void *arg)
{
	uint8_t mine[4], theirs[4];
	size_t length = sizeof(theirs);
	int ret;

	oob_put32(mine, ++oob->barriers);
	ret = oob_send(oob, OOB_BARRIER, mine, sizeof(mine));
	if (!ret)
		ret = oob_recv(oob, OOB_BARRIER, theirs, &length, timeout, idle, arg);
	if (!ret && (length != sizeof(theirs) || memcmp(mine, theirs, sizeof(mine)) != 0))
		ret = -EPROTO;
	return ret;
}

int oob_peer_bye(struct oob *oob, int *code, char *text, size_t len)
{
	if (!oob->bye)
		return 0;
	if (code)
		*code = oob->bye_code;
	if (text)
		snprintf(text, len, "%s", oob->bye_text);
	return 1;
}

int oob_bye(struct oob *oob, int code, const char *text)
{
	uint8_t out[4 + OOB_BYE_TEXT];
	size_t length = strnlen(text, sizeof(out) - 4);

	oob_put32(out, (uint32_t)code);
	memcpy(out + 4, text, length);
	return oob_send(oob, OOB_BYE, out, 4 + length);
}

const char *oob_peer_name(const struct oob *oob)
{
	return oob->name;
}

int oob_fd(const struct oob *oob)
{
	return oob->fd;
}

void oob_close(struct oob *oob)
{
	if (!oob)
		return;
	close(oob->fd);
	free(oob);
}

/* ---- greeting and client -------------------------------------------------------------------- */

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

/* Make a connection of a connected socket. @return NULL: no memory, and the socket is closed */
static struct oob *oob_new(int fd)
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

/* Addresses of a host; NULL after an error message. */
static struct addrinfo *oob_resolve(const char *host, uint16_t port, int flags)
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

/* Send our greeting: OOB_HELLO with program and version. */
static int oob_send_hello(struct oob *oob)
{
	struct hello mine = {0};

	oob_put32(mine.version, OOB_VERSION);
	snprintf(mine.program, sizeof(mine.program), "%s", cli_program);
	return oob_send(oob, OOB_HELLO, &mine, sizeof(mine));
}

/*
 * Check the peer's greeting without waiting.
 * @return 0 = the same program and version, -EAGAIN = incomplete yet, or -EPROTO with a reason in
 *   @why
 */
static int oob_check_hello(struct oob *oob, char *why, size_t len)
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

/* ---- the server ----------------------------------------------------------------------------- */

/*
 * The server of the out-of-band connection. Several unknown senders may be connected at once: the
 * first with the right greeting is accepted. A connection that sends nothing delays no other.
 */

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
