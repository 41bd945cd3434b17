/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/name.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "provider/provider.h"

#define FETCH_MS 5000
#define REFUSED_MS 3000 /* a server that is about to start */
#define AGAIN_MS 100
#define CLIENT_MS 2000
#define CLIENTS 16u
#define GREETING_LEN 8u

static_assert(sizeof(WFI_NAME_GREETING) == GREETING_LEN + 1, "length of the greeting");

/* ------------------------------------------------------------------ the address */

/* In an address of fi_getname() the third byte of the magic differs. */
static const uint8_t magic[3] = {'W', 'e', 'n'};

/* Only this process reads it, so numbers are those of its headers. */
struct name {
	uint8_t magic[3];
	uint8_t pad;
	uint32_t length;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at;
	uint8_t rest[28];
};

static_assert(sizeof(struct name) == FI_NAME_MAX, "addresses have one size");

bool wfi_name_is(const void *addr, size_t length)
{
	static const uint8_t zero[sizeof(((struct name *)NULL)->rest)];
	const struct name *n = addr;

	return length == sizeof(*n) && memcmp(n->magic, magic, sizeof(magic)) == 0 &&
	       memcmp(n->rest, zero, sizeof(zero)) == 0 &&
	       ((n->length == sizeof(n->at.v4) && n->at.any.sa_family == AF_INET) ||
		(n->length == sizeof(n->at.v6) && n->at.any.sa_family == AF_INET6));
}

bool wfi_name_make(const char *node, const char *service, bool source, bool numeric, void *out)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = (source ? AI_PASSIVE : 0) | (numeric ? AI_NUMERICHOST : 0),
	};
	struct name n = {.length = 0};
	struct addrinfo *found = NULL;

	memcpy(n.magic, magic, sizeof(magic));
	if (getaddrinfo(node, service, &hints, &found) != 0)
		return false;
	if (found->ai_addrlen <= sizeof(n.at)) {
		n.length = (uint32_t)found->ai_addrlen;
		memcpy(&n.at, found->ai_addr, found->ai_addrlen);
	}
	freeaddrinfo(found);
	memcpy(out, &n, sizeof(n));
	return wfi_name_is(out, FI_NAME_MAX);
}

static struct name name_of(const void *addr)
{
	struct name n;

	memcpy(&n, addr, sizeof(n));
	return n;
}

const char *wfi_name_text(const void *addr, char *buf, size_t size)
{
	struct name n = name_of(addr);
	char host[INET6_ADDRSTRLEN + 16] = "?", port[8] = "?";

	getnameinfo(&n.at.any, n.length, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(buf, size, "%s port %s", host, port);
	return buf;
}

/* ------------------------------------------------------------------ the client */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* @return 0 or a negative errno: -ETIMEDOUT after @p end */
static int await(int fd, short events, int64_t end)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t left;

	for (;;) {
		left = end - now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)left) > 0)
			return 0;
	}
}

static int connect_by(int fd, const struct name *n, int64_t end)
{
	socklen_t size = sizeof(int);
	int err = 0;

	if (connect(fd, &n->at.any, n->length) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	err = await(fd, POLLOUT, end);
	if (err == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0)
		err = errno;
	return err > 0 ? -err : err;
}

static int read_all(int fd, void *buf, size_t size, int64_t end)
{
	size_t at = 0;
	ssize_t n;
	int err;

	while (at < size) {
		err = await(fd, POLLIN, end);
		if (err < 0)
			return err;
		n = recv(fd, (char *)buf + at, size - at, MSG_DONTWAIT);
		if (n == 0)
			return -EPROTO;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int fetch_once(const struct name *n, void *addr, int64_t end)
{
	int fd = socket(n->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	err = connect_by(fd, n, end);
	if (err == 0 && send(fd, WFI_NAME_GREETING, GREETING_LEN, MSG_NOSIGNAL) != GREETING_LEN)
		err = -EPROTO;
	if (err == 0)
		err = read_all(fd, addr, FI_NAME_MAX, end);
	close(fd);
	return err;
}

int wfi_name_fetch(const void *name, void *addr)
{
	const struct timespec again = {.tv_nsec = AGAIN_MS * 1000000L};
	int64_t begin = now_ms();
	struct name n = name_of(name);
	char text[80];
	int err;

	for (;;) {
		err = fetch_once(&n, addr, begin + FETCH_MS);
		if (err != -ECONNREFUSED || now_ms() - begin > REFUSED_MS)
			break;
		nanosleep(&again, NULL);
	}
	if (err == 0)
		return 0;
	FI_WARN(&wfi_provider, FI_LOG_AV, "no endpoint of weft listens at %s: %s\n",
		wfi_name_text(name, text, sizeof(text)), strerror(-err));
	return err;
}

/* ------------------------------------------------------------------ the server */

struct client {
	int64_t end;
	size_t got;
	char greeting[GREETING_LEN];
};

struct wfi_name_server {
	pthread_t thread;
	bool runs;
	int stop; /* eventfd */
	unsigned int clients;
	struct pollfd fd[2 + CLIENTS]; /* stop, socket, clients */
	struct client client[CLIENTS];
	uint8_t own[FI_NAME_MAX];
};

static void drop(struct wfi_name_server *s, unsigned int i)
{
	close(s->fd[2 + i].fd);
	s->clients--;
	s->fd[2 + i] = s->fd[2 + s->clients];
	s->client[i] = s->client[s->clients];
}

/* With all places taken the longest waiting client goes. */
static void accept_one(struct wfi_name_server *s)
{
	int fd = accept4(s->fd[1].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	unsigned int oldest = 0;

	if (fd < 0) {
		/* The socket stays readable without a descriptor, and poll() would spin. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			poll(&s->fd[0], 1, AGAIN_MS);
		return;
	}
	for (unsigned int i = 1; i < s->clients; i++)
		if (s->client[i].end < s->client[oldest].end)
			oldest = i;
	if (s->clients == CLIENTS)
		drop(s, oldest);
	s->fd[2 + s->clients] = (struct pollfd){.fd = fd, .events = POLLIN};
	s->client[s->clients++] = (struct client){.end = now_ms() + CLIENT_MS};
}

/* @return true: the client is done */
static bool answer(struct wfi_name_server *s, unsigned int i)
{
	struct client *c = &s->client[i];
	int fd = s->fd[2 + i].fd;
	ssize_t n = recv(fd, c->greeting + c->got, GREETING_LEN - c->got, MSG_DONTWAIT);

	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	c->got += (size_t)n;
	if (n > 0 && c->got < GREETING_LEN)
		return false;
	/* The socket is new: its buffer has room. */
	if (c->got == GREETING_LEN && memcmp(c->greeting, WFI_NAME_GREETING, GREETING_LEN) == 0 &&
	    send(fd, s->own, sizeof(s->own), MSG_NOSIGNAL) < 0)
		FI_INFO(&wfi_provider, FI_LOG_AV, "a client has left without the address\n");
	return true;
}

static void *run(void *arg)
{
	struct wfi_name_server *s = arg;
	unsigned int i;

	while (!s->fd[0].revents) {
		if (poll(s->fd, 2 + s->clients, s->clients > 0 ? CLIENT_MS / 4 : -1) < 0)
			continue;
		for (i = s->clients; i-- > 0;)
			if ((s->fd[2 + i].revents && answer(s, i)) || s->client[i].end < now_ms())
				drop(s, i);
		if (s->fd[1].revents)
			accept_one(s);
	}
	while (s->clients > 0)
		drop(s, 0);
	return NULL;
}

static int bound(const struct name *n)
{
	int fd = socket(n->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, err;

	if (fd < 0)
		return -errno;
	/* A port of which old connections are left is free. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, &n->at.any, n->length) == 0 && listen(fd, 64) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int wfi_name_listen(const void *name, struct wfi_name_server **server)
{
	struct name n = name_of(name);
	struct wfi_name_server *s;
	char text[80];
	int fd;

	*server = NULL;
	if (n.at.any.sa_family == AF_INET ? n.at.v4.sin_port == 0 : n.at.v6.sin6_port == 0)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -FI_ENOMEM;
	s->stop = eventfd(0, EFD_CLOEXEC);
	fd = s->stop < 0 ? -errno : bound(&n);
	s->fd[0] = (struct pollfd){.fd = s->stop, .events = POLLIN};
	s->fd[1] = (struct pollfd){.fd = fd, .events = POLLIN};
	if (fd >= 0) {
		*server = s;
		return 0;
	}
	FI_WARN(&wfi_provider, FI_LOG_EP_CTRL, "the endpoint cannot listen at %s: %s\n",
		wfi_name_text(name, text, sizeof(text)), strerror(-fd));
	wfi_name_close(s);
	/* Programs with another exchange of addresses may have one port for all processes. */
	return fd == -EADDRINUSE ? 0 : fd;
}

int wfi_name_serve(struct wfi_name_server *s, const void *own)
{
	memcpy(s->own, own, sizeof(s->own));
	s->runs = weft_thread_start("weft-name", run, s, NULL, &s->thread) == 0;
	return s->runs ? 0 : -FI_EAGAIN;
}

void wfi_name_close(struct wfi_name_server *s)
{
	if (!s)
		return;
	if (s->runs) {
		eventfd_write(s->stop, 1);
		pthread_join(s->thread, NULL);
	}
	if (s->fd[1].fd >= 0)
		close(s->fd[1].fd);
	if (s->stop >= 0)
		close(s->stop);
	free(s);
}
