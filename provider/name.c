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
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/tcp.h"
#include "base/thread.h"
#include "provider/provider.h"

#define FETCH_NS (5ull * WEFT_TCP_SECOND)
/* A refused connect is repeated for this time, since the server may start in the meantime. */
#define REFUSED_NS (3ull * WEFT_TCP_SECOND)
#define GREETING_LEN 8u

static_assert(sizeof(WFI_NAME_GREETING) == GREETING_LEN + 1, "length of the greeting");
static_assert(sizeof(WFI_NAME_SEALED) == GREETING_LEN + 1, "length of the greeting");

/* Weak: a build that cannot seal lacks this symbol. It refuses job keys. */
#pragma weak weft_sealed_greeting

/* ------------------------------------------------------------------ the address */

/* The magic of addresses by node and service. That of fi_getname() has another third byte. */
static const uint8_t magic[3] = {'W', 'e', 'n'};

/*
 * An address by node and service. Only the process that made it reads it, so its numbers have host
 * byte order, and the values of AF_* are the host's.
 */
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
	char host[INET6_ADDRSTRLEN + 16]; /* numeric; IPv6 may have a zone, as fe80::1%eth0 */
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

/* ------------------------------------------------------------------ addresses as text */

#define PREFIX "fi_weft://"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

static_assert(PREFIX_LEN + (FI_NAME_MAX * 8 + 5) / 6 < WFI_TEXT_MAX, "any address has a text");
static_assert(PREFIX_LEN + sizeof(((struct place *)NULL)->host) + sizeof("[]:65535") < WFI_TEXT_MAX,
	      "any host has a text");

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t encode(const uint8_t *bytes, char *text)
{
	size_t n = FI_NAME_MAX, length = 0;
	unsigned int bits = 0;
	uint32_t value = 0;

	while (n > 0 && bytes[n - 1] == 0)
		n--;
	for (size_t i = 0; i < n; i++) {
		value = value << 8 | bytes[i];
		for (bits += 8; bits >= 6; bits -= 6)
			text[length++] = digits[value >> (bits - 6) & 63];
	}
	if (bits > 0)
		text[length++] = digits[value << (6 - bits) & 63];
	text[length] = '\0';
	return length;
}

/* Decode base64url. Missing bytes are 0; bits behind the last byte must be 0. */
static bool decode(const char *text, size_t length, uint8_t bytes[FI_NAME_MAX])
{
	unsigned int bits = 0;
	const char *digit;
	uint32_t value = 0;
	size_t n = 0;

	memset(bytes, 0, FI_NAME_MAX);
	for (size_t i = 0; i < length; i++) {
		digit = memchr(digits, text[i], sizeof(digits) - 1);
		if (!digit)
			return false;
		value = value << 6 | (uint32_t)(digit - digits);
		bits += 6;
		if (bits < 8)
			continue;
		if (n == FI_NAME_MAX)
			return false;
		bits -= 8;
		bytes[n++] = (uint8_t)(value >> bits);
	}
	return bits < 6 && (value & ((1u << bits) - 1)) == 0;
}

/* Read HOST:PORT or [HOST]:PORT, with a zero byte. Changes the text. IPv6 needs the brackets. */
static bool read_place(char *text, bool resolve, void *addr)
{
	char *port = strrchr(text, ':'), *host = text;
	size_t length = strlen(port + 1);

	*port++ = '\0';
	if (length == 0 || length != strspn(port, "0123456789") || strtoul(port, NULL, 10) > 65535)
		return false;
	length = strlen(host);
	if (host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		host++;
	} else if (strchr(host, ':')) {
		return false;
	}
	return host[0] != '\0' && wfi_name_make(host, port, false, !resolve, addr);
}

size_t wfi_text_make(const void *addr, char text[WFI_TEXT_MAX])
{
	struct place p;

	memcpy(text, PREFIX, PREFIX_LEN);
	if (!wfi_name_is(addr, FI_NAME_MAX))
		return PREFIX_LEN + encode(addr, text + PREFIX_LEN) + 1;
	p = place_of(addr);
	return (size_t)snprintf(text, WFI_TEXT_MAX,
				strchr(p.host, ':') ? PREFIX "[%s]:%u" : PREFIX "%s:%u", p.host,
				p.port) +
	       1;
}

/* An address has one text. Programs that compare texts would take two texts for two peers. */
static bool is_text_of(const char *text, size_t length, const void *addr)
{
	char canonical[WFI_TEXT_MAX];

	return wfi_text_make(addr, canonical) == length + 1 && memcmp(text, canonical, length) == 0;
}

bool wfi_text_read(const char *text, size_t size, bool resolve, void *addr)
{
	size_t length = strnlen(text, size < WFI_TEXT_MAX ? size : WFI_TEXT_MAX);
	char copy[WFI_TEXT_MAX];
	bool place;

	if (length <= PREFIX_LEN || length == WFI_TEXT_MAX || memcmp(text, PREFIX, PREFIX_LEN) != 0)
		return false;
	memcpy(copy, text + PREFIX_LEN, length - PREFIX_LEN);
	copy[length - PREFIX_LEN] = '\0';
	place = strchr(copy, ':') != NULL;
	if (!(place ? read_place(copy, resolve, addr) : decode(copy, length - PREFIX_LEN, addr)))
		return false;
	return (place && resolve) || is_text_of(text, length, addr);
}

bool wfi_text_is(const char *text)
{
	return strstr(text, "://") != NULL;
}

bool wfi_address_read(uint32_t format, const void *in, size_t length, void *addr)
{
	if (format == FI_ADDR_STR)
		return wfi_text_read(in, length, false, addr);
	if (length != FI_NAME_MAX)
		return false;
	memcpy(addr, in, FI_NAME_MAX);
	return true;
}

size_t wfi_address_write(uint32_t format, const void *addr, char out[WFI_TEXT_MAX])
{
	if (format == FI_ADDR_STR)
		return wfi_text_make(addr, out);
	memcpy(out, addr, FI_NAME_MAX);
	return FI_NAME_MAX;
}

/* ------------------------------------------------------------------ both ends */

/* @return the key for one exchange, in memory for keys; NULL: there is no memory or randomness */
static struct weft_greeting_key *greeting_key(const uint8_t *job_key)
{
	struct weft_greeting_key *k = weft_secret_alloc(sizeof(*k));

	if (!k)
		return NULL;
	memcpy(k->job_key, job_key, sizeof(k->job_key));
	/* A request of at most 256 bytes is never cut short. */
	if (getrandom(k->random, sizeof(k->random), 0) == sizeof(k->random))
		return k;
	weft_secret_free(k, sizeof(*k));
	return NULL;
}

/* ------------------------------------------------------------------ the client */

struct fetch {
	struct weft_greeting_key *key; /* NULL: without a job key */
	void *addr;
};

static int fail_key(struct weft_tcp_connect *c, const char *what)
{
	return weft_tcp_fail(c, -EACCES,
			     "the endpoint on %s port %u %s: give both ends the same job key "
			     "(WEFT_JOB_KEY or auth_key)",
			     c->host, c->port, what);
}

static int receive_sealed(struct weft_tcp_connect *c, int fd, uint64_t end)
{
	uint8_t answer[FI_NAME_MAX + WEFT_GREETING_OVERHEAD];
	const struct fetch *f = c->arg;
	int rc = weft_tcp_receive(c, fd, answer, sizeof(answer), end);

	if (rc == -ENODATA)
		return fail_key(c, "has another job key");
	if (rc == 0)
		rc = weft_sealed_greeting.open(f->key, answer, sizeof(answer), f->addr);
	return rc == -EBADMSG ? fail_key(c, "sent an address that was changed on its way, or was "
					    "made without the job key")
			      : rc;
}

/* Without a job key the reply begins with the address itself. */
static int receive_address(struct weft_tcp_connect *c, int fd, uint64_t end)
{
	const struct fetch *f = c->arg;
	uint8_t head[GREETING_LEN];
	int rc = weft_tcp_receive(c, fd, head, sizeof(head), end);

	if (rc < 0)
		return rc;
	if (memcmp(head, f->key ? WFI_NAME_GREETING : WFI_NAME_SEALED, sizeof(head)) == 0)
		return fail_key(c, f->key ? "has no job key, and this end has one"
					  : "has a job key, and this end has none");
	if (f->key)
		return memcmp(head, WFI_NAME_SEALED, sizeof(head)) == 0 ? receive_sealed(c, fd, end)
									: -EPROTO;
	memcpy(f->addr, head, sizeof(head));
	return weft_tcp_receive(c, fd, (uint8_t *)f->addr + sizeof(head),
				FI_NAME_MAX - sizeof(head), end);
}

static int send_greeting(const struct fetch *f, int fd)
{
	uint8_t m[GREETING_LEN + WEFT_GREETING_REQUEST];
	size_t length = f->key ? sizeof(m) : GREETING_LEN;
	int rc = f->key ? weft_sealed_greeting.request(f->key, m + GREETING_LEN) : 0;

	memcpy(m, f->key ? WFI_NAME_SEALED : WFI_NAME_GREETING, GREETING_LEN);
	/* The socket is new: its buffer has room. */
	if (rc == 0 && send(fd, m, length, MSG_NOSIGNAL) != (ssize_t)length)
		rc = -EPIPE;
	return rc;
}

static int greet(struct weft_tcp_connect *c, int fd, uint64_t end)
{
	int rc = send_greeting(c->arg, fd);

	if (rc == 0)
		rc = receive_address(c, fd, end);
	if (rc == 0 || rc == -EACCES) /* fail_key() has written the error text */
		return rc;
	return weft_tcp_fail(c, rc,
			     "%s port %u did not answer as an endpoint of Weft: check the port",
			     c->host, c->port);
}

int wfi_name_fetch(const void *name, const uint8_t *job_key, void *addr)
{
	struct fetch f = {.key = job_key ? greeting_key(job_key) : NULL, .addr = addr};
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
		.arg = &f,
	};
	int fd;

	if (job_key && !f.key)
		return -FI_ENOMEM;
	fd = weft_tcp_connect(&c);
	weft_secret_free(f.key, sizeof(*f.key));
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
	const uint8_t *job_key; /* NULL: without a key */
	uint8_t own[FI_NAME_MAX];
};

/* Make the sealed answer to a client's request. The server frees it. @return 0 or an error */
static int seal_own(const struct wfi_name_server *s, const uint8_t *request,
		    struct weft_tcp_answer *answer)
{
	struct weft_greeting_key *k = greeting_key(s->job_key);
	size_t length = GREETING_LEN + sizeof(s->own) + WEFT_GREETING_OVERHEAD;
	uint8_t *reply = k ? malloc(length) : NULL;
	int rc = -ENOMEM;

	if (reply) {
		memcpy(reply, WFI_NAME_SEALED, GREETING_LEN);
		rc = weft_sealed_greeting.answer(k, request, s->own, sizeof(s->own),
						 reply + GREETING_LEN);
	}
	weft_secret_free(k, sizeof(*k));
	if (rc < 0) {
		free(reply);
		return rc;
	}
	answer->reply = answer->owned = reply;
	answer->length = length;
	answer->accepted = true;
	return 0;
}

/* Answer a sealed request. A client that is refused gets the greeting only. */
static void judge_request(const struct wfi_name_server *s, const uint8_t *request,
			  struct weft_tcp_answer *answer)
{
	int rc = seal_own(s, request, answer);

	if (rc < 0)
		snprintf(answer->why, sizeof(answer->why), "%s",
			 rc == -EBADMSG ? "it has another job key"
					: "its reply cannot be sealed: no memory, or libcrypto "
					  "fails");
}

static int judge(void *arg, const void *bytes, size_t length, struct weft_tcp_answer *answer)
{
	const struct wfi_name_server *s = arg;
	const char *own = s->job_key ? WFI_NAME_SEALED : WFI_NAME_GREETING;
	size_t head = length < GREETING_LEN ? length : GREETING_LEN;
	bool is_plain = memcmp(bytes, WFI_NAME_GREETING, head) == 0;
	bool is_sealed = memcmp(bytes, WFI_NAME_SEALED, head) == 0;

	*answer = (struct weft_tcp_answer){0};
	if (!is_plain && !is_sealed) {
		snprintf(answer->why, sizeof(answer->why), "it is no program of libfabric");
		return 0;
	}
	if (length < GREETING_LEN)
		return -EAGAIN;
	answer->reply = own;
	answer->length = GREETING_LEN;
	if (memcmp(bytes, own, GREETING_LEN) != 0) {
		snprintf(answer->why, sizeof(answer->why), "%s",
			 s->job_key ? "it has no job key, and this end has one"
				    : "it has a job key, and this end has none");
	} else if (!s->job_key) {
		*answer = (struct weft_tcp_answer){
			.reply = s->own, .length = sizeof(s->own), .accepted = true};
	} else if (length < GREETING_LEN + WEFT_GREETING_REQUEST) {
		return -EAGAIN;
	} else {
		judge_request(s, (const uint8_t *)bytes + GREETING_LEN, answer);
	}
	return 0;
}

/* With a job key this is a warning: the client may be an attacker, or a rank without the key. */
static void refused(void *arg, const char *client, const char *why, bool last)
{
	const struct wfi_name_server *s = arg;

	FI_LOG(&wfi_provider, s->job_key ? FI_LOG_WARN : FI_LOG_INFO, FI_LOG_AV,
	       "%s gets no address: %s%s\n", client, why,
	       last ? " (further clients have no line)" : "");
}

static void *run(void *arg)
{
	struct wfi_name_server *s = arg;

	while (!weft_tcp_server_run(s->tcp, s->stop, -1))
		;
	return NULL;
}

int wfi_name_listen(const void *name, const uint8_t *job_key, struct wfi_name_server **server)
{
	struct place p = place_of(name);
	struct weft_tcp_server_params params = {
		.host = p.host,
		.port = p.port,
		.backlog = 64,
		.hello = GREETING_LEN + (job_key ? WEFT_GREETING_REQUEST : 0),
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
	s->job_key = job_key;
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
		FI_INFO(&wfi_provider, FI_LOG_EP_CTRL,
			"%llu clients got the endpoint's address, %llu were refused\n",
			(unsigned long long)weft_tcp_server_served(s->tcp),
			(unsigned long long)weft_tcp_server_refused(s->tcp));
	}
	weft_tcp_server_close(s->tcp);
	if (s->stop >= 0)
		close(s->stop);
	free(s);
}
