/* SPDX-License-Identifier: BSD-3-Clause */

#include "oob.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define OOB_MAGIC 0x4f544657u /* "WFTO" */
#define OOB_VERSION 1u
#define HEADER 12u
#define HELLO_SECONDS 5.0
#define SEND_SECONDS 5.0

struct oob {
	int fd;
	int status; /* 0, or why nothing more will come */
	uint32_t barriers;
	bool bye; /* a BYE is among the kept messages, or was taken */
	int32_t bye_code;
	char bye_text[256];
	char name[96];
	size_t in_length;
	uint8_t in[4 * (HEADER + OOB_MAX)];
};

struct hello {
	uint8_t version[4];
	char program[28];
};

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- messages */

int oob_send(struct oob *oob, enum oob_type type, const void *data, size_t length)
{
	uint8_t out[HEADER + OOB_MAX];
	double end = seconds() + SEND_SECONDS;
	size_t sent = 0;

	if (length > OOB_MAX)
		return -EMSGSIZE;
	put32(out, OOB_MAGIC);
	put32(out + 4, type);
	put32(out + 8, (uint32_t)length);
	if (length)
		memcpy(out + HEADER, data, length);
	while (sent < HEADER + length) {
		ssize_t n = send(oob->fd, out + sent, HEADER + length - sent, MSG_NOSIGNAL);

		if (n >= 0) {
			sent += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (seconds() > end)
			return -ETIMEDOUT;
		poll(&(struct pollfd){.fd = oob->fd, .events = POLLOUT}, 1, 100);
	}
	return 0;
}

/*
 * Length of the first kept message with its header; 0 = not complete; -EPROTO = no message of ours.
 */
static ssize_t first_message(const struct oob *oob)
{
	uint32_t type, length;

	if (oob->in_length < HEADER)
		return 0;
	type = get32(oob->in + 4);
	length = get32(oob->in + 8);
	if (get32(oob->in) != OOB_MAGIC || !type || type >= OOB_TYPES || length > OOB_MAX)
		return -EPROTO;
	return oob->in_length < HEADER + length ? 0 : (ssize_t)(HEADER + length);
}

/* A BYE is noticed when it arrives, not when its turn comes. */
static void look_for_bye(struct oob *oob)
{
	size_t at = 0, text;

	while (!oob->bye && oob->in_length - at >= HEADER) {
		const uint8_t *m = oob->in + at;
		size_t length = get32(m + 8);

		if (length > OOB_MAX || oob->in_length - at < HEADER + length)
			return;
		if (get32(m) == OOB_MAGIC && get32(m + 4) == OOB_BYE && length >= 4) {
			oob->bye = true;
			oob->bye_code = (int32_t)get32(m + HEADER);
			text = length - 4;
			if (text >= sizeof(oob->bye_text))
				text = sizeof(oob->bye_text) - 1;
			memcpy(oob->bye_text, m + HEADER + 4, text);
			/* A terminal shall not be told what to do by a peer. */
			for (size_t i = 0; i < text; i++)
				if ((unsigned char)oob->bye_text[i] < ' ')
					oob->bye_text[i] = ' ';
		}
		at += HEADER + length;
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

int oob_take(struct oob *oob, enum oob_type type, void *data, size_t *length)
{
	ssize_t whole = first_message(oob);
	size_t payload;

	if (whole <= 0)
		return whole < 0 ? -EPROTO : oob->status ? oob->status : -EAGAIN;
	payload = (size_t)whole - HEADER;
	if (get32(oob->in + 4) != (uint32_t)type)
		return get32(oob->in + 4) == OOB_BYE ? -ESHUTDOWN : -EPROTO;
	if (payload > *length)
		return -EPROTO;
	if (payload)
		memcpy(data, oob->in + HEADER, payload);
	*length = payload;
	oob->in_length -= (size_t)whole;
	memmove(oob->in, oob->in + whole, oob->in_length);
	return 0;
}

int oob_recv(struct oob *oob, enum oob_type type, void *data, size_t *length, double timeout,
	     oob_idle_cb idle, void *arg)
{
	double end = seconds() + timeout;
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
		if (timeout > 0 && seconds() > end)
			return -ETIMEDOUT;
	}
}

int oob_barrier(struct oob *oob, double timeout, oob_idle_cb idle, void *arg)
{
	uint8_t mine[4], theirs[4];
	size_t length = sizeof(theirs);
	int ret;

	put32(mine, ++oob->barriers);
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
	uint8_t out[260];
	size_t length = strnlen(text, sizeof(out) - 4);

	put32(out, (uint32_t)code);
	memcpy(out + 4, text, length);
	return oob_send(oob, OOB_BYE, out, 4 + length);
}

/* ---- connections */

static void name_of(const struct sockaddr_storage *ss, socklen_t len, char *buf, size_t size)
{
	char host[64] = "?", port[16] = "?";

	getnameinfo((const struct sockaddr *)ss, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(buf, size, "%s port %s", host, port);
}

/*
 * The end of a dead process closes the connection at once. For a dead host or a cut wire there are
 * TCP's keepalives: 3 probes after 5 s of silence, and data that nobody acknowledges for 10 s.
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

/* Both sides say who they are and check the other. @return 0, idle's error, or -EPROTO and why */
static int shake_hands(struct oob *oob, oob_idle_cb idle, void *arg, char *why, size_t len)
{
	struct hello mine = {0}, theirs = {0};
	size_t length = sizeof(theirs);
	double end = seconds() + HELLO_SECONDS;
	int ret;

	put32(mine.version, OOB_VERSION);
	snprintf(mine.program, sizeof(mine.program), "%s", cli_program);
	ret = oob_send(oob, OOB_HELLO, &mine, sizeof(mine));
	while (!ret) {
		ret = oob_recv(oob, OOB_HELLO, &theirs, &length, 0.1, NULL, NULL);
		if (ret != -ETIMEDOUT || seconds() > end)
			break;
		ret = idle ? idle(arg) : 0;
		if (ret)
			return ret;
	}
	theirs.program[sizeof(theirs.program) - 1] = '\0';
	if (ret == -ECONNRESET)
		snprintf(why, len, "it closed the connection");
	else if (ret || length != sizeof(theirs))
		snprintf(why, len, "what answers there is not %s", cli_program);
	else if (get32(theirs.version) != OOB_VERSION)
		snprintf(
			why, len,
			"it speaks version %u of the out-of-band protocol, this program version %u",
			get32(theirs.version), OOB_VERSION);
	else if (strncmp(theirs.program, mine.program, sizeof(mine.program)) != 0)
		snprintf(why, len, "what answers there is %s", theirs.program);
	else
		return 0;
	return -EPROTO;
}

static struct addrinfo *resolve(const char *host, uint16_t port, int flags)
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

static int listen_on(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, ai->ai_protocol);
	int one = 1, zero = 0, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, 8) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int oob_listen(const char *host, uint16_t port)
{
	struct addrinfo *list = resolve(host, port, AI_PASSIVE), *ai;
	int fd = -EADDRNOTAVAIL;

	if (!list)
		return -EINVAL;
	/* An IPv6 socket takes IPv4 too, so it comes first. */
	for (ai = list; ai && fd < 0; ai = ai->ai_next)
		if (host || ai->ai_family == AF_INET6)
			fd = listen_on(ai);
	for (ai = list; ai && fd < 0; ai = ai->ai_next)
		fd = listen_on(ai);
	freeaddrinfo(list);
	if (fd == -EADDRINUSE)
		cli_error("TCP port %u is taken; choose another with -p at both ends", port);
	else if (fd < 0)
		cli_error("can't listen on %s port %u: %s", host ? host : "any address", port,
			  strerror(-fd));
	return fd;
}

uint16_t oob_listen_port(int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);

	if (getsockname(fd, (struct sockaddr *)&ss, &len))
		return 0;
	return ntohs(ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
					      : ((struct sockaddr_in *)&ss)->sin_port);
}

int oob_accept(int fd, oob_idle_cb idle, void *arg, struct oob **oob)
{
	char why[128];
	int ret, peer;

	for (;;) {
		ret = idle ? idle(arg) : 0;
		if (ret)
			return ret;
		if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 100) <= 0)
			continue;
		peer = accept(fd, NULL, NULL);
		if (peer < 0)
			continue;
		*oob = oob_new(peer);
		if (!*oob)
			return -ENOMEM;
		ret = shake_hands(*oob, idle, arg, why, sizeof(why));
		if (!ret)
			return 0;
		if (ret == -EPROTO)
			cli_error("sent %s away: %s", oob_peer_name(*oob), why);
		oob_close(*oob);
		*oob = NULL;
		if (ret != -EPROTO)
			return ret;
	}
}

/*
 * Connect without blocking, so that a signal or a silent host does not hold the program. @return
 * socket or error
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
		else if (seconds() > end)
			err = ETIMEDOUT;
	}
	if (!err)
		return fd;
	close(fd);
	return -err;
}

static int connect_any(const struct addrinfo *list, double wait, oob_idle_cb idle, void *arg)
{
	double end = seconds() + wait;
	int fd, first;

	for (;;) {
		fd = 0;
		first = 0;
		for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
			/* A host that does not answer gets 5 s even when nobody is waited for. */
			fd = connect_to(ai, wait > 5 ? end : seconds() + 5, idle, arg);
			if (fd >= 0 || fd == -EINTR)
				return fd;
			if (!first)
				first = fd;
		}
		if (first != -ECONNREFUSED || seconds() > end)
			return first;
		fd = idle ? idle(arg) : 0;
		if (fd)
			return fd;
		poll(NULL, 0, 50);
	}
}

int oob_connect(const char *host, uint16_t port, double wait, oob_idle_cb idle, void *arg,
		struct oob **oob)
{
	struct addrinfo *list = resolve(host, port, 0);
	char why[128];
	int fd, ret;

	if (!list)
		return -EINVAL;
	fd = connect_any(list, wait, idle, arg);
	freeaddrinfo(list);
	if (fd == -EINTR)
		return fd;
	if (fd == -ECONNREFUSED)
		cli_error("nobody listens on %s port %u; start the server there first: %s", host,
			  port, cli_server);
	else if (fd < 0)
		cli_error("can't reach %s port %u: %s", host, port, strerror(-fd));
	if (fd < 0)
		return fd;
	*oob = oob_new(fd);
	if (!*oob)
		return -ENOMEM;
	ret = shake_hands(*oob, idle, arg, why, sizeof(why));
	if (ret == -EPROTO)
		cli_error("%s port %u is no peer: %s", host, port, why);
	if (ret) {
		oob_close(*oob);
		*oob = NULL;
	}
	return ret;
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
