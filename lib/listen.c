/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners: a thread that sends the worker's address to TCP clients. Clients are not
 * authenticated, so each resource has a bound: places, bytes and time of a client, places of a
 * host, lines of the log.
 */

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/copy.h"
#include "base/log.h"
#include "base/thread.h"
#include "connect.h"
#include "core/worker.h"
#include "weft_listen.h"

#define PLACES 16u
#define BACKLOG 64
#define CLIENT_NS 5000000000u
#define UNREAD_MAX 4096u    /* bytes that a client may send after its greeting */
#define PAUSE_NS 100000000u /* without accept, after accept failed: no descriptor, no memory */
#define LINES_MAX 16u       /* of the log: a port scan must not fill it */

enum place_state { PLACE_FREE, PLACE_READING, PLACE_WRITING, PLACE_LEAVING };

struct place {
	enum place_state state;
	int fd;
	uint64_t until;
	uint8_t host[8]; /* IPv4 address, or the network of an IPv6 address */
	char name[80];
	struct weft_hello hello;
	size_t got, sent, unread, length;
};

struct weft_listener {
	struct weft_worker *worker;
	LIST_ENTRY(weft_listener) entry;
	pthread_t thread;
	int fd, stop;
	atomic_uint_least64_t served, refused;
	uint16_t port;
	char host[NI_MAXHOST];
	/* of the thread */
	unsigned int lines;
	uint64_t accept_at; /* no accept before this time */
	struct place place[PLACES];
	/* the reply */
	size_t length;
	uint8_t reply[];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ------------------------------------------------------------------ clients */

static void leave(struct place *p)
{
	close(p->fd);
	*p = (struct place){.state = PLACE_FREE, .fd = -1};
}

static void refuse(struct weft_listener *l, struct place *p, const char *why)
{
	/* Relaxed: a counter. */
	atomic_fetch_add_explicit(&l->refused, 1, memory_order_relaxed);
	if (l->lines < LINES_MAX)
		weft_info("listener: refused %s: %s%s", p->name, why,
			  ++l->lines == LINES_MAX ? "; further ones have no line each" : "");
	leave(p);
}

static unsigned int places_of(const struct weft_listener *l, const struct place *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < PLACES; i++)
		n += l->place[i].state != PLACE_FREE &&
		     memcmp(l->place[i].host, p->host, sizeof(p->host)) == 0;
	return n;
}

/*
 * When all places are in use, a client that has its reply loses its place. Without one, the oldest
 * client of the host that has most loses it. A peer sends its greeting at once, so it needs a place
 * for one round trip only.
 */
static struct place *find_place(struct weft_listener *l)
{
	struct place *worst = NULL;
	unsigned int most = 0, n;

	for (unsigned int i = 0; i < PLACES; i++)
		if (l->place[i].state == PLACE_FREE)
			return &l->place[i];
	for (unsigned int i = 0; i < PLACES; i++) {
		struct place *p = &l->place[i];

		n = p->state == PLACE_LEAVING ? PLACES + 1 : places_of(l, p);
		if (n > most || (n == most && p->until < worst->until)) {
			most = n;
			worst = p;
		}
	}
	if (worst->state == PLACE_LEAVING)
		leave(worst);
	else
		refuse(l, worst, "too many clients, and most of them from its host");
	return worst;
}

static void name_place(struct place *p, const struct sockaddr_storage *ss, socklen_t len)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	char host[64] = "?", port[8] = "?";

	getnameinfo((const struct sockaddr *)ss, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(p->name, sizeof(p->name), "%s port %s", host, port);
	if (ss->ss_family == AF_INET)
		memcpy(p->host, &((const struct sockaddr_in *)ss)->sin_addr, 4);
	else if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		memcpy(p->host, in6->sin6_addr.s6_addr + 12, 4);
	else
		memcpy(p->host, in6->sin6_addr.s6_addr, sizeof(p->host));
}

static void accept_clients(struct weft_listener *l, uint64_t now)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		struct sockaddr_storage ss = {0};
		socklen_t len = sizeof(ss);
		struct place *p;
		int fd = accept4(l->fd, (struct sockaddr *)&ss, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			/* The socket stays readable without a descriptor; poll() would spin. */
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			    errno == ENOMEM)
				l->accept_at = now + PAUSE_NS;
			return;
		}
		p = find_place(l);
		*p = (struct place){
			.state = PLACE_READING,
			.fd = fd,
			.until = now + CLIENT_NS,
		};
		name_place(p, &ss, len);
	}
}

static void write_reply(struct weft_listener *l, struct place *p)
{
	static const uint32_t zero;
	uint8_t head[sizeof(struct weft_hello_reply)];
	const uint8_t *from = l->reply;
	ssize_t n;

	if (p->length < l->length) { /* no address follows */
		memcpy(head, l->reply, sizeof(head));
		memcpy(head + offsetof(struct weft_hello_reply, length), &zero, sizeof(zero));
		from = head;
	}
	n = send(p->fd, from + p->sent, p->length - p->sent, MSG_NOSIGNAL);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			refuse(l, p, strerror(errno));
		return;
	}
	p->sent += (size_t)n;
	if (p->sent < p->length)
		return;
	if (p->length < l->length) {
		refuse(l, p, "it has another version of the greeting");
		return;
	}
	/* Relaxed: a counter. */
	atomic_fetch_add_explicit(&l->served, 1, memory_order_relaxed);
	shutdown(p->fd, SHUT_WR);
	p->state = PLACE_LEAVING;
}

static void read_hello(struct weft_listener *l, struct place *p)
{
	ssize_t n = recv(p->fd, (uint8_t *)&p->hello + p->got, sizeof(p->hello) - p->got, 0);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			refuse(l, p, strerror(errno));
		return;
	}
	p->got += (size_t)n;
	if (n == 0)
		refuse(l, p, "it closed the connection before its greeting");
	else if (p->got >= 4 && le32toh(p->hello.magic) != WEFT_HELLO_MAGIC)
		refuse(l, p, "it sent no greeting of Weft");
	else if (p->got == sizeof(p->hello)) {
		p->length = le32toh(p->hello.version) == WEFT_HELLO_VERSION
				    ? l->length
				    : sizeof(struct weft_hello_reply);
		p->state = PLACE_WRITING;
		write_reply(l, p);
	}
}

/*
 * Closing a socket with unread bytes resets the connection, which would discard the reply. So bytes
 * are read until the client closes.
 */
static void read_rest(struct place *p)
{
	uint8_t unread[512];
	ssize_t n = recv(p->fd, unread, sizeof(unread), 0);

	if (n > 0)
		p->unread += (size_t)n;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || p->unread > UNREAD_MAX)
		leave(p);
}

static void serve(struct weft_listener *l, struct place *p, bool ready, uint64_t now)
{
	if (ready && p->state == PLACE_READING)
		read_hello(l, p);
	else if (ready && p->state == PLACE_WRITING)
		write_reply(l, p);
	else if (ready && p->state == PLACE_LEAVING)
		read_rest(p);
	if (p->state == PLACE_FREE || now < p->until)
		return;
	if (p->state == PLACE_LEAVING)
		leave(p);
	else
		refuse(l, p, "it took longer than 5 s");
}

/* ------------------------------------------------------------------ thread */

/* @return ms until the first deadline, rounded up; -1 = there is none */
static int timeout_of(const struct weft_listener *l, uint64_t now)
{
	uint64_t due = l->accept_at > now ? l->accept_at : UINT64_MAX;

	for (unsigned int i = 0; i < PLACES; i++)
		if (l->place[i].state != PLACE_FREE && l->place[i].until < due)
			due = l->place[i].until;
	if (due == UINT64_MAX)
		return -1;
	return due <= now ? 0 : (int)((due - now) / 1000000u) + 1;
}

/*
 * Sleep until there is an event. poll() accepts no more entries than RLIMIT_NOFILE, so free places
 * have none. It fails if the limit falls below that; then the events are looked for after a pause.
 * @return true: the listener ends
 */
static bool await_events(struct weft_listener *l, uint64_t now, bool *ready, bool *clients)
{
	struct pollfd fds[PLACES + 2];
	unsigned int entry[PLACES] = {0};
	uint64_t count;
	nfds_t n = 2;

	fds[0] = (struct pollfd){.fd = l->stop, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = now < l->accept_at ? -1 : l->fd, .events = POLLIN};
	for (unsigned int i = 0; i < PLACES; i++) {
		if (l->place[i].state == PLACE_FREE)
			continue;
		entry[i] = (unsigned int)n;
		fds[n++] = (struct pollfd){
			.fd = l->place[i].fd,
			.events = l->place[i].state == PLACE_WRITING ? POLLOUT : POLLIN,
		};
	}
	if (poll(fds, n, timeout_of(l, now)) < 0) {
		poll(NULL, 0, PAUSE_NS / 1000000u);
		for (unsigned int i = 0; i < n; i++)
			fds[i].revents = POLLIN;
		if (read(l->stop, &count, sizeof(count)) < 0)
			fds[0].revents = 0;
	}
	for (unsigned int i = 0; i < PLACES; i++)
		ready[i] = l->place[i].state != PLACE_FREE && fds[entry[i]].revents != 0;
	*clients = fds[1].revents != 0;
	return fds[0].revents != 0;
}

static void *run(void *arg)
{
	struct weft_listener *l = arg;
	bool ready[PLACES], clients;

	while (!await_events(l, now_ns(), ready, &clients)) {
		uint64_t now = now_ns();

		for (unsigned int i = 0; i < PLACES; i++)
			if (l->place[i].state != PLACE_FREE)
				serve(l, &l->place[i], ready[i], now);
		if (clients)
			accept_clients(l, now);
	}
	return NULL;
}

/* ------------------------------------------------------------------ opening */

static int listen_on(const struct addrinfo *ai, int backlog)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, zero = 0, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* clients inherit it */
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, backlog) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

static int open_socket(const char *host, const char *port, int backlog)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
	};
	struct addrinfo *list, *ai;
	int fd = -EADDRNOTAVAIL;

	if (getaddrinfo(host, port, &hints, &list) != 0)
		return -EINVAL;
	/* An IPv6 socket accepts IPv4 connections too, so it is tried first. */
	for (ai = list; ai && fd < 0; ai = ai->ai_next)
		if (host || ai->ai_family == AF_INET6)
			fd = listen_on(ai, backlog);
	for (ai = list; ai && fd < 0 && fd != -EADDRINUSE; ai = ai->ai_next)
		fd = listen_on(ai, backlog);
	freeaddrinfo(list);
	return fd;
}

static void log_failure(struct weft_worker *w, const char *host, unsigned int port, int rc)
{
	const char *remedy =
		rc == -EINVAL          ? "give a numeric address of this host, or none"
		: rc == -EADDRINUSE    ? "another program listens there; choose another port, or 0"
		: rc == -EADDRNOTAVAIL ? "no interface of this host has the address ('ip address')"
		: rc == -EACCES        ? "ports below 1024 need a right; choose another"
				       : weft_strerror(rc);

	weft_log_worker(w, WEFT_LOG_ERROR, "cannot listen on %s port %u: %s",
			host ? host : "all addresses", port, remedy);
}

/* The reply, with the worker's address, which does not change. */
static struct weft_listener *listener_alloc(struct weft_worker *w)
{
	struct weft_hello_reply head = {.magic = htole32(WEFT_HELLO_MAGIC),
					.version = htole32(WEFT_HELLO_VERSION)};
	struct weft_listener *l = NULL;
	void *address;
	size_t length;

	if (weft_worker_get_address(w, &address, &length) < 0)
		return NULL;
	if (length <= WEFT_HELLO_ADDRESS_MAX)
		l = calloc(1, sizeof(*l) + sizeof(head) + length);
	if (l) {
		head.length = htole32((uint32_t)length);
		memcpy(l->reply, &head, sizeof(head));
		memcpy(l->reply + sizeof(head), address, length);
		l->length = sizeof(head) + length;
		l->worker = w;
		for (unsigned int i = 0; i < PLACES; i++)
			l->place[i].fd = -1;
	}
	weft_worker_release_address(w, address);
	return l;
}

static int listener_start(struct weft_listener *l)
{
	int rc;

	l->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->stop < 0)
		return -errno;
	rc = weft_thread_start("weft-listen", run, l, NULL, &l->thread);
	if (rc < 0)
		close(l->stop);
	return rc;
}

static void listens_at(struct weft_listener *l, int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);
	char port[8] = "0";

	l->fd = fd;
	l->host[0] = '\0';
	if (getsockname(fd, (struct sockaddr *)&ss, &len) == 0)
		getnameinfo((const struct sockaddr *)&ss, len, l->host, sizeof(l->host), port,
			    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	l->port = (uint16_t)strtoul(port, NULL, 10);
}

int weft_listener_create(struct weft_worker *w, const struct weft_listener_params *params,
			 struct weft_listener **out)
{
	struct weft_listener_params p;
	struct weft_listener *l;
	char port[8];
	int rc, fd;

	if (!w || !out || weft_struct_in(&p, sizeof(p), params) < 0 || p.backlog > INT32_MAX)
		return -EINVAL;
	snprintf(port, sizeof(port), "%u", p.port);
	fd = open_socket(p.host, port, p.backlog ? (int)p.backlog : BACKLOG);
	if (fd < 0) {
		log_failure(w, p.host, p.port, fd);
		return fd;
	}
	l = listener_alloc(w);
	if (l)
		listens_at(l, fd);
	rc = l ? listener_start(l) : -ENOMEM;
	if (rc < 0) {
		log_failure(w, p.host, p.port, rc);
		close(fd);
		free(l);
		return rc;
	}
	weft_worker_lock(w);
	LIST_INSERT_HEAD(&w->listeners, l, entry);
	weft_worker_unlock(w);
	*out = l;
	return 0;
}

/* ------------------------------------------------------------------ the rest of its life */

void weft_listener_destroy(struct weft_listener *l)
{
	uint64_t one = 1;
	ssize_t n;

	if (!l || !weft_context_is_ours(l->worker->ctx))
		return;
	weft_worker_lock(l->worker);
	LIST_REMOVE(l, entry);
	weft_worker_unlock(l->worker);
	n = write(l->stop, &one, sizeof(one)); /* a counter of 0 has room */
	(void)n;
	pthread_join(l->thread, NULL); /* its calls never block, except poll() */
	for (unsigned int i = 0; i < PLACES; i++)
		if (l->place[i].state != PLACE_FREE)
			leave(&l->place[i]);
	close(l->fd);
	close(l->stop);
	free(l);
}

void weft_listeners_end(struct weft_worker *w)
{
	while (!LIST_EMPTY(&w->listeners))
		weft_listener_destroy(LIST_FIRST(&w->listeners));
}

int weft_listener_query(struct weft_listener *l, struct weft_listener_attr *attr)
{
	struct weft_listener_attr out = {0};

	if (!l || !attr)
		return -EINVAL;
	out.host = l->host;
	out.port = l->port;
	/* Relaxed: counters. */
	out.served = atomic_load_explicit(&l->served, memory_order_relaxed);
	out.refused = atomic_load_explicit(&l->refused, memory_order_relaxed);
	return weft_struct_out(attr, &out, sizeof(out));
}
