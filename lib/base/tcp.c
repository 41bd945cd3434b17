/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/tcp.h"

uint64_t weft_tcp_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * WEFT_TCP_SECOND + (uint64_t)ts.tv_nsec;
}

uint64_t weft_tcp_after(uint64_t now, uint64_t ns)
{
	return ns > UINT64_MAX - now ? UINT64_MAX : now + ns;
}

/* ------------------------------------------------------------------ client */

#define AGAIN_MS 50  /* pause between attempts while no server listens */
#define SLICE_MS 100 /* longest time between calls of idle() */

int weft_tcp_fail(struct weft_tcp_connect *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
	return status;
}

static bool is_stopped(struct weft_tcp_connect *c)
{
	if (!c->stopped && c->idle)
		c->stopped = c->idle(c->arg);
	return c->stopped != 0;
}

int weft_tcp_wait(struct weft_tcp_connect *c, int fd, short events, uint64_t end)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t now;
	int ms;

	for (;;) {
		now = weft_tcp_now();
		if (now >= end)
			return -ETIMEDOUT;
		ms = end - now > SLICE_MS * 1000000u ? SLICE_MS : (int)((end - now) / 1000000u) + 1;
		if (poll(&p, 1, ms) > 0)
			return 0;
		if (is_stopped(c))
			return c->stopped;
	}
}

int weft_tcp_receive(struct weft_tcp_connect *c, int fd, void *buf, size_t size, uint64_t end)
{
	size_t got = 0;
	ssize_t n;

	while (got < size) {
		int rc = weft_tcp_wait(c, fd, POLLIN, end);

		if (rc < 0)
			return rc;
		n = recv(fd, (uint8_t *)buf + got, size - got, 0);
		if (n == 0)
			return -ENODATA;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return errno == ECONNRESET ? -ENODATA : -errno;
		got += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Without a server, the kernel may choose for the client the very port to which it connects. */
static bool is_own(int fd)
{
	struct sockaddr_storage here = {0}, there = {0};
	socklen_t size = sizeof(here), other = sizeof(there);

	return getsockname(fd, (struct sockaddr *)&here, &size) == 0 &&
	       getpeername(fd, (struct sockaddr *)&there, &other) == 0 && size == other &&
	       memcmp(&here, &there, size) == 0;
}

static int open_connection(struct weft_tcp_connect *c, const struct addrinfo *ai, uint64_t end)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct linger reset = {.l_onoff = 1};
	socklen_t len = sizeof(int);
	int err;

	if (fd < 0)
		return -errno;
	err = connect(fd, ai->ai_addr, ai->ai_addrlen) ? errno : 0;
	if (err == EINPROGRESS || err == EINTR) {
		err = -weft_tcp_wait(c, fd, POLLOUT, end);
		if (err == 0)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	}
	if (err == 0 && is_own(fd)) {
		/* A reset leaves no TIME_WAIT, so a server can use the port at once. */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		err = ECONNREFUSED;
	}
	if (err == 0)
		return fd;
	close(fd);
	return -err;
}

static int unreachable(struct weft_tcp_connect *c, int rc)
{
	if (rc == -ECONNREFUSED)
		return weft_tcp_fail(c, rc, "no server listens on %s port %u: %s", c->host, c->port,
				     c->remedy);
	if (rc == -ETIMEDOUT)
		return weft_tcp_fail(c, rc,
				     "%s port %u does not respond: check that the host is up and "
				     "that no firewall drops TCP to the port",
				     c->host, c->port);
	if (rc == -ENETUNREACH || rc == -EHOSTUNREACH)
		return weft_tcp_fail(c, rc,
				     "%s port %u can't be reached: check 'ip route', that the host "
				     "is up and that no firewall refuses TCP to the port",
				     c->host, c->port);
	return weft_tcp_fail(c, rc, "cannot connect to %s port %u: %s", c->host, c->port,
			     strerror(-rc));
}

/* @param[out] far  1: no connection; 2: the host refused; 3: greet() was called */
static int try_address(struct weft_tcp_connect *c, const struct addrinfo *ai, uint64_t end,
		       unsigned int *far)
{
	int fd = open_connection(c, ai, end), rc;

	*far = fd >= 0 ? 3 : fd == -ECONNREFUSED ? 2 : 1;
	if (fd < 0)
		return c->stopped ? c->stopped : unreachable(c, fd);
	rc = c->greet(c, fd, end);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/*
 * Each address gets an equal part of the time until @p until.
 * @return the socket; or the error, with its text, of the first attempt with the largest `far`
 */
static int try_addresses(struct weft_tcp_connect *c, const struct addrinfo *list, uint64_t until)
{
	char why[sizeof(c->why)] = "";
	unsigned int left = 0, far, farthest = 0;
	int rc, error = 0;

	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next)
		left++;
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next, left--) {
		uint64_t now = weft_tcp_now(), end = until;

		if (now < end && left > 1)
			end = now + (end - now) / left;
		rc = try_address(c, ai, end, &far);
		if (rc >= 0 || c->stopped)
			return rc;
		if (far > farthest) {
			farthest = far;
			error = rc;
			memcpy(why, c->why, sizeof(why));
		}
	}
	memcpy(c->why, why, sizeof(why));
	return error;
}

static int connect_any(struct weft_tcp_connect *c, const struct addrinfo *list)
{
	uint64_t now = weft_tcp_now(), end;
	int rc;

	if (now >= c->end)
		return weft_tcp_fail(
			c, -ETIMEDOUT,
			"%s port %u: no time is left after the resolution of the name "
			"and the connects before it: connect to fewer peers at once, or "
			"raise WEFT_CONNECT_TIMEOUT",
			c->host, c->port);
	for (;;) {
		end = weft_tcp_after(now, c->timeout);
		rc = try_addresses(c, list, end < c->end ? end : c->end);
		now = weft_tcp_now();
		if (rc != -ECONNREFUSED || now >= c->again_until)
			return rc;
		if (is_stopped(c))
			return c->stopped;
		poll(NULL, 0, AGAIN_MS);
	}
}

static int resolve(struct weft_tcp_connect *c, struct addrinfo **list)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", c->port);
	rc = getaddrinfo(c->host, port, &hints, list);
	if (rc == 0)
		return 0;
	if (rc == EAI_AGAIN)
		return weft_tcp_fail(c, -EAGAIN,
				     "cannot resolve %s (port %u): the name service does not "
				     "respond; check /etc/resolv.conf, or give a numeric address",
				     c->host, c->port);
	return weft_tcp_fail(c,
			     rc == EAI_MEMORY   ? -ENOMEM
			     : rc == EAI_SYSTEM ? -EIO
						: -ENOENT,
			     "cannot resolve %s (port %u): %s; check the name, or give a numeric "
			     "address",
			     c->host, c->port, gai_strerror(rc));
}

int weft_tcp_connect(struct weft_tcp_connect *c)
{
	struct addrinfo *list;
	int rc = resolve(c, &list);

	if (rc < 0)
		return rc;
	rc = connect_any(c, list);
	freeaddrinfo(list);
	return rc;
}

/* ------------------------------------------------------------------ clients of a server */

/* Clients are not authenticated, so each resource has a bound. */

#define PLACES 16u
#define CLIENT_NS 5000000000u
#define UNREAD_MAX 4096u    /* bytes read after the server's reply */
#define PAUSE_NS 100000000u /* after accept or poll failed: no descriptor, no memory */
#define LINES_MAX 16u       /* of a server: a port scan must not fill the log */

enum place_state { PLACE_FREE, PLACE_READING, PLACE_WRITING, PLACE_LEAVING };

struct place {
	enum place_state state;
	int fd;
	uint64_t until;
	uint8_t host[8]; /* IPv4 address, or first 64 bits of an IPv6 address */
	char name[80];
	size_t got, sent, unread;
	struct weft_tcp_answer answer;
};

struct weft_tcp_server {
	struct weft_tcp_server_params p; /* p.host belongs to the caller and is not used */
	int fd, accepted;                /* accepted: to be taken; -1 = none */
	unsigned int lines;
	uint64_t accept_at;                    /* no accept before */
	atomic_uint_least64_t served, refused; /* relaxed: counters */
	struct place place[PLACES];
	uint8_t hello[]; /* p.hello bytes for each place */
};

static void place_free(struct place *p)
{
	free(p->answer.owned);
	*p = (struct place){.state = PLACE_FREE, .fd = -1};
}

static void leave(struct place *p)
{
	close(p->fd);
	place_free(p);
}

static void count_refused(struct weft_tcp_server *s, const struct place *p, const char *why)
{
	atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
	if (why[0] && s->lines < LINES_MAX)
		s->p.refused(s->p.arg, p->name, why, ++s->lines == LINES_MAX);
}

static void refuse(struct weft_tcp_server *s, struct place *p, const char *why)
{
	count_refused(s, p, why);
	leave(p);
}

static unsigned int places_of(const struct weft_tcp_server *s, const struct place *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < PLACES; i++)
		n += s->place[i].state != PLACE_FREE &&
		     memcmp(s->place[i].host, p->host, sizeof(p->host)) == 0;
	return n;
}

/*
 * When all places are in use, a client that has its reply loses its place; else the oldest one of
 * the host with the most places. A peer sends its greeting at once, so one round trip is enough.
 */
static struct place *find_place(struct weft_tcp_server *s)
{
	struct place *worst = NULL;
	unsigned int most = 0, n;

	for (unsigned int i = 0; i < PLACES; i++)
		if (s->place[i].state == PLACE_FREE)
			return &s->place[i];
	for (unsigned int i = 0; i < PLACES; i++) {
		struct place *p = &s->place[i];

		n = p->state == PLACE_LEAVING ? PLACES + 1 : places_of(s, p);
		if (n > most || (n == most && p->until < worst->until)) {
			most = n;
			worst = p;
		}
	}
	if (worst->state == PLACE_LEAVING)
		leave(worst);
	else
		refuse(s, worst, "too many clients, and no other host has more");
	return worst;
}

void weft_tcp_unmap(struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 in6 = *(const struct sockaddr_in6 *)ss;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = in6.sin6_port};

	if (ss->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	memcpy(&in.sin_addr, in6.sin6_addr.s6_addr + 12, 4);
	memcpy(ss, &in, sizeof(in));
}

static void name_place(struct place *p, struct sockaddr_storage *ss, socklen_t len)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	char host[64] = "?", port[8] = "?";

	weft_tcp_unmap(ss);
	getnameinfo((const struct sockaddr *)ss, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(p->name, sizeof(p->name), "%s port %s", host, port);
	if (ss->ss_family == AF_INET)
		memcpy(p->host, &((const struct sockaddr_in *)ss)->sin_addr, 4);
	else
		memcpy(p->host, in6->sin6_addr.s6_addr, sizeof(p->host));
}

static void accept_failed(struct weft_tcp_server *s, uint64_t now, int err)
{
	if (err != EMFILE && err != ENFILE && err != ENOBUFS && err != ENOMEM)
		return;
	/* The connection stays in the queue, so poll() would return at once. */
	s->accept_at = now + PAUSE_NS;
	if (s->p.starved)
		s->p.starved(s->p.arg, err);
}

static void accept_clients(struct weft_tcp_server *s, uint64_t now)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		struct sockaddr_storage ss = {0};
		socklen_t len = sizeof(ss);
		struct place *p;
		int fd = accept4(s->fd, (struct sockaddr *)&ss, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			accept_failed(s, now, errno);
			return;
		}
		p = find_place(s);
		*p = (struct place){
			.state = PLACE_READING,
			.fd = fd,
			.until = now + CLIENT_NS,
		};
		name_place(p, &ss, len);
	}
}

static void reply_sent(struct weft_tcp_server *s, struct place *p)
{
	if (!p->answer.accepted) {
		count_refused(s, p, p->answer.why);
	} else {
		atomic_fetch_add_explicit(&s->served, 1, memory_order_relaxed);
		if (s->p.keeps) {
			s->accepted = p->fd;
			place_free(p);
			return;
		}
	}
	shutdown(p->fd, SHUT_WR);
	p->state = PLACE_LEAVING;
}

static void write_reply(struct weft_tcp_server *s, struct place *p)
{
	ssize_t n = send(p->fd, (const uint8_t *)p->answer.reply + p->sent,
			 p->answer.length - p->sent, MSG_NOSIGNAL);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			refuse(s, p, strerror(errno));
		return;
	}
	p->sent += (size_t)n;
	if (p->sent == p->answer.length)
		reply_sent(s, p);
}

static void read_hello(struct weft_tcp_server *s, struct place *p)
{
	uint8_t *hello = s->hello + (size_t)(p - s->place) * s->p.hello;
	ssize_t n = recv(p->fd, hello + p->got, s->p.hello - p->got, 0);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			refuse(s, p, strerror(errno));
		return;
	}
	if (n == 0) {
		refuse(s, p, "it closed the connection before its greeting");
		return;
	}
	p->got += (size_t)n;
	if (s->p.judge(s->p.arg, hello, p->got, &p->answer) == -EAGAIN)
		return;
	if (p->answer.length) {
		p->state = PLACE_WRITING;
		write_reply(s, p);
	} else if (p->answer.accepted) {
		reply_sent(s, p);
	} else {
		refuse(s, p, p->answer.why);
	}
}

/* Closing a socket with unread bytes resets the connection, which would discard the reply. */
static void read_rest(struct place *p)
{
	uint8_t unread[512];
	ssize_t n = recv(p->fd, unread, sizeof(unread), 0);

	if (n > 0)
		p->unread += (size_t)n;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || p->unread > UNREAD_MAX)
		leave(p);
}

static void serve(struct weft_tcp_server *s, struct place *p, bool ready, uint64_t now)
{
	if (ready && p->state == PLACE_READING)
		read_hello(s, p);
	else if (ready && p->state == PLACE_WRITING)
		write_reply(s, p);
	else if (ready && p->state == PLACE_LEAVING)
		read_rest(p);
	if (p->state == PLACE_FREE || now < p->until)
		return;
	if (p->state == PLACE_LEAVING)
		leave(p);
	else
		refuse(s, p, "the exchange of greetings took longer than 5 s");
}

/* ------------------------------------------------------------------ server */

/* @return ms until the first deadline, rounded up, at most @p ms; -1 = no limit */
static int timeout_of(const struct weft_tcp_server *s, uint64_t now, int ms)
{
	uint64_t due = s->accept_at > now ? s->accept_at : UINT64_MAX, left;

	for (unsigned int i = 0; i < PLACES; i++)
		if (s->place[i].state != PLACE_FREE && s->place[i].until < due)
			due = s->place[i].until;
	if (due == UINT64_MAX)
		return ms;
	left = due <= now ? 0 : (due - now) / 1000000u + 1;
	return ms >= 0 && left > (uint64_t)ms ? ms : (int)left;
}

/*
 * poll() accepts no more entries than RLIMIT_NOFILE, so free places have none. If it fails all the
 * same, all descriptors count as ready after a pause.
 * @return true: @p stop is readable
 */
static bool await_events(struct weft_tcp_server *s, int stop, int ms, bool *ready, bool *clients)
{
	struct pollfd fds[PLACES + 2];
	unsigned int entry[PLACES] = {0};
	uint64_t now = weft_tcp_now(), count;
	nfds_t n = 2;

	fds[0] = (struct pollfd){.fd = stop, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = now < s->accept_at ? -1 : s->fd, .events = POLLIN};
	for (unsigned int i = 0; i < PLACES; i++) {
		if (s->place[i].state == PLACE_FREE)
			continue;
		entry[i] = (unsigned int)n;
		fds[n++] = (struct pollfd){
			.fd = s->place[i].fd,
			.events = s->place[i].state == PLACE_WRITING ? POLLOUT : POLLIN,
		};
	}
	if (poll(fds, n, timeout_of(s, now, ms)) < 0) {
		bool failed = errno != EINTR;

		if (failed)
			poll(NULL, 0, PAUSE_NS / 1000000u);
		for (unsigned int i = 0; i < n; i++)
			fds[i].revents = failed ? POLLIN : 0;
		if (failed && read(stop, &count, sizeof(count)) < 0)
			fds[0].revents = 0;
	}
	for (unsigned int i = 0; i < PLACES; i++)
		ready[i] = s->place[i].state != PLACE_FREE && fds[entry[i]].revents != 0;
	*clients = fds[1].revents != 0;
	return fds[0].revents != 0;
}

bool weft_tcp_server_run(struct weft_tcp_server *s, int stop, int ms)
{
	bool ready[PLACES], clients;
	uint64_t now;

	if (s->accepted >= 0)
		return false;
	if (await_events(s, stop, ms, ready, &clients))
		return true;
	now = weft_tcp_now();
	for (unsigned int i = 0; i < PLACES && s->accepted < 0; i++)
		if (s->place[i].state != PLACE_FREE)
			serve(s, &s->place[i], ready[i], now);
	if (clients && s->accepted < 0)
		accept_clients(s, now);
	return false;
}

int weft_tcp_server_take(struct weft_tcp_server *s)
{
	int fd = s->accepted;

	s->accepted = -1;
	return fd;
}

static int listen_on(const struct addrinfo *ai, int backlog)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, zero = 0, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* accept4() inherits it */
	/*
	 * A connection arrives with its first bytes, or after a second. So a client without a core
	 * between connect and greeting needs no place.
	 */
	setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &one, sizeof(one));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, backlog) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

static int open_socket(const struct weft_tcp_server_params *p)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV | (p->names ? 0 : AI_NUMERICHOST),
	};
	struct addrinfo *list, *ai;
	int fd = -EADDRNOTAVAIL;
	char port[8];

	snprintf(port, sizeof(port), "%u", p->port);
	if (getaddrinfo(p->host, port, &hints, &list) != 0)
		return -EINVAL;
	/* IPv6 first without a host: such a socket accepts IPv4 connections, too. */
	for (ai = list; ai && fd < 0; ai = ai->ai_next)
		if (p->host || ai->ai_family == AF_INET6)
			fd = listen_on(ai, p->backlog);
	for (ai = list; ai && fd < 0 && fd != -EADDRINUSE; ai = ai->ai_next)
		fd = listen_on(ai, p->backlog);
	freeaddrinfo(list);
	return fd;
}

int weft_tcp_server_open(const struct weft_tcp_server_params *params,
			 struct weft_tcp_server **server)
{
	struct weft_tcp_server *s;
	int fd;

	if (params->hello > WEFT_TCP_HELLO_MAX)
		return -EINVAL;
	fd = open_socket(params);
	if (fd < 0)
		return fd;
	s = calloc(1, sizeof(*s) + PLACES * params->hello);
	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->p = *params;
	s->fd = fd;
	s->accepted = -1;
	for (unsigned int i = 0; i < PLACES; i++)
		s->place[i].fd = -1;
	*server = s;
	return 0;
}

void weft_tcp_server_query(const struct weft_tcp_server *s, char *host, size_t size, uint16_t *port)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);
	char text[8] = "0";

	host[0] = '\0';
	if (getsockname(s->fd, (struct sockaddr *)&ss, &len) == 0)
		getnameinfo((const struct sockaddr *)&ss, len, host, (socklen_t)size, text,
			    sizeof(text), NI_NUMERICHOST | NI_NUMERICSERV);
	*port = (uint16_t)strtoul(text, NULL, 10);
}

uint64_t weft_tcp_server_served(const struct weft_tcp_server *s)
{
	return atomic_load_explicit(&s->served, memory_order_relaxed);
}

uint64_t weft_tcp_server_refused(const struct weft_tcp_server *s)
{
	return atomic_load_explicit(&s->refused, memory_order_relaxed);
}

void weft_tcp_server_close(struct weft_tcp_server *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < PLACES; i++)
		if (s->place[i].state != PLACE_FREE)
			leave(&s->place[i]);
	if (s->accepted >= 0)
		close(s->accepted);
	close(s->fd);
	free(s);
}
