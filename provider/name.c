/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/name.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/tcp.h"
#include "base/thread.h"
#include "provider/provider.h"

#define FETCH_NS (5ull * WEFT_TCP_SECOND)
/* A refused connect is repeated for this time, since the server may be about to start. */
#define REFUSED_NS (3ull * WEFT_TCP_SECOND)
#define GREETING_LEN 8u

static_assert(sizeof(WFI_NAME_GREETING) == GREETING_LEN + 1, "length of the greeting");

/* ------------------------------------------------------------------ the address */

/* In an address of fi_getname() the third byte of the magic differs. */
static const uint8_t magic[3] = {'W', 'e', 'n'};

/* Only this process reads it, so the numbers have its byte order and its values of AF_*. */
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

static struct name name_of(const void *addr)
{
	struct name n;

	memcpy(&n, addr, sizeof(n));
	return n;
}

bool wfi_name_is(const void *addr, size_t length)
{
	static const uint8_t zero[sizeof(((struct name *)NULL)->rest)];
	struct name n;

	if (length != sizeof(n))
		return false;
	n = name_of(addr);
	return memcmp(n.magic, magic, sizeof(magic)) == 0 &&
	       memcmp(n.rest, zero, sizeof(zero)) == 0 &&
	       ((n.length == sizeof(n.at.v4) && n.at.any.sa_family == AF_INET) ||
		(n.length == sizeof(n.at.v6) && n.at.any.sa_family == AF_INET6));
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

/* Host and port, for the functions of base/tcp.h. */
struct place {
	char host[INET6_ADDRSTRLEN + 16]; /* with a zone */
	uint16_t port;
};

static struct place place_of(const void *addr)
{
	struct name n = name_of(addr);
	struct place p = {.host = "?"};

	getnameinfo(&n.at.any, n.length, p.host, sizeof(p.host), NULL, 0, NI_NUMERICHOST);
	p.port = ntohs(n.at.any.sa_family == AF_INET ? n.at.v4.sin_port : n.at.v6.sin6_port);
	return p;
}

const char *wfi_name_text(const void *addr, char *buf, size_t size)
{
	struct place p = place_of(addr);

	snprintf(buf, size, "%s port %u", p.host, p.port);
	return buf;
}

/* ------------------------------------------------------------------ the client */

static int greet(struct weft_tcp_connect *c, int fd, uint64_t end)
{
	int rc = -EPIPE;

	/* The socket is new: its buffer has room. */
	if (send(fd, WFI_NAME_GREETING, GREETING_LEN, MSG_NOSIGNAL) == GREETING_LEN)
		rc = weft_tcp_receive(c, fd, c->arg, FI_NAME_MAX, end);
	return rc == 0 ? 0
		       : weft_tcp_fail(c, rc,
				       "no endpoint of weft listens on %s port %u: check the port",
				       c->host, c->port);
}

int wfi_name_fetch(const void *name, void *addr)
{
	struct place p = place_of(name);
	uint64_t now = weft_tcp_now();
	struct weft_tcp_connect c = {
		.host = p.host,
		.port = p.port,
		.remedy = "start the program of this endpoint",
		.timeout = FETCH_NS,
		.again_until = now + REFUSED_NS,
		.end = now + FETCH_NS,
		.greet = greet,
		.arg = addr,
	};
	int fd = weft_tcp_connect(&c);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	FI_WARN(&wfi_provider, FI_LOG_AV, "%s\n", c.why);
	return fd;
}

/* ------------------------------------------------------------------ the server */

struct wfi_name_server {
	pthread_t thread;
	bool runs;
	int stop; /* eventfd */
	struct weft_tcp_server *tcp;
	uint8_t own[FI_NAME_MAX];
};

static int judge(void *arg, const void *bytes, size_t length, struct weft_tcp_answer *answer)
{
	const struct wfi_name_server *s = arg;

	if (memcmp(bytes, WFI_NAME_GREETING, length) != 0) {
		*answer = (struct weft_tcp_answer){.why = "it is no program of libfabric"};
		return 0;
	}
	if (length < GREETING_LEN)
		return -EAGAIN;
	*answer = (struct weft_tcp_answer){
		.reply = s->own, .length = sizeof(s->own), .accepted = true};
	return 0;
}

static void refused(void *arg, const char *client, const char *why, bool last)
{
	FI_INFO(&wfi_provider, FI_LOG_AV, "%s gets no address: %s%s\n", client, why,
		last ? " (further clients have no line)" : "");
}

static void *run(void *arg)
{
	struct wfi_name_server *s = arg;

	while (!weft_tcp_server_run(s->tcp, s->stop, -1))
		;
	return NULL;
}

int wfi_name_listen(const void *name, struct wfi_name_server **server)
{
	struct place p = place_of(name);
	struct weft_tcp_server_params params = {
		.host = p.host,
		.port = p.port,
		.backlog = 64,
		.hello = GREETING_LEN,
		.judge = judge,
		.refused = refused,
	};
	struct wfi_name_server *s;
	int rc;

	*server = NULL;
	if (p.port == 0)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -FI_ENOMEM;
	params.arg = s;
	s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = s->stop < 0 ? -errno : weft_tcp_server_open(&params, &s->tcp);
	if (rc == 0) {
		*server = s;
		return 0;
	}
	FI_WARN(&wfi_provider, FI_LOG_EP_CTRL, "the endpoint cannot listen on %s port %u: %s\n",
		p.host, p.port, strerror(-rc));
	wfi_name_close(s);
	/* A program that exchanges addresses otherwise may give all its processes one port. */
	return rc == -EADDRINUSE ? 0 : rc;
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
	weft_tcp_server_close(s->tcp);
	if (s->stop >= 0)
		close(s->stop);
	free(s);
}
