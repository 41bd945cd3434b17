/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft_ep_connect_to(): a call in another thread fetches the address from a listener, and the
 * worker creates the endpoint in its next progress call.
 */

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/blocking.h"
#include "base/copy.h"
#include "connect.h"
#include "core/config.h"
#include "core/worker.h"
#include "msg/msg.h"
#include "weft_listen.h"

#define HOST_MAX 255u
/* After this time the worker ends a connect whose thread still resolves the name. */
#define LATE_NS 200000000u
#define AGAIN_MS 50  /* between attempts while no server listens */
#define SLICE_MS 100 /* in which the thread notices that the worker has ended the connect */
#define SECOND 1000000000u

struct connect {
	/* of the thread, and of the worker when it is done */
	char host[HOST_MAX + 1];
	uint16_t port;
	uint64_t timeout, end, again_until; /* ns; the times are CLOCK_MONOTONIC */
	int status;
	char why[512];
	size_t length;
	uint8_t *address;
	/* of both */
	pthread_mutex_t lock;
	struct weft_worker *worker; /* NULL = abandoned */
	bool begun, done;
	/* of the worker */
	TAILQ_ENTRY(connect) entry;
	uint64_t deadline; /* the platform's time */
	struct weft_connect_params params;
};

/* The worker has one while it has connects. */
struct weft_connects {
	TAILQ_HEAD(connect_list, connect) list; /* in the order of deadlines */
	atomic_uint done;                       /* results that the worker has not taken */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static uint64_t after(uint64_t now, uint64_t ns)
{
	return ns > UINT64_MAX - now ? UINT64_MAX : now + ns;
}

static void connect_free(struct connect *c)
{
	pthread_mutex_destroy(&c->lock);
	free(c->address);
	free(c);
}

/* ------------------------------------------------------------------ in the other thread */

__attribute__((format(printf, 3, 4))) static int failed(struct connect *c, int status,
							const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
	return status;
}

static bool abandoned(struct connect *c)
{
	bool is;

	pthread_mutex_lock(&c->lock);
	is = !c->worker;
	pthread_mutex_unlock(&c->lock);
	return is;
}

/* @return 0: ready; -ETIMEDOUT; or -ECANCELED: the worker has ended the connect */
static int wait_fd(struct connect *c, int fd, short events, uint64_t end)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t now;
	int ms;

	for (;;) {
		now = now_ns();
		if (now >= end)
			return -ETIMEDOUT;
		ms = end - now > SLICE_MS * 1000000u ? SLICE_MS : (int)((end - now) / 1000000u) + 1;
		if (poll(&p, 1, ms) > 0)
			return 0;
		if (abandoned(c))
			return -ECANCELED;
	}
}

static int open_connection(struct connect *c, const struct addrinfo *ai, uint64_t end)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(int);
	int err;

	if (fd < 0)
		return -errno;
	err = connect(fd, ai->ai_addr, ai->ai_addrlen) ? errno : 0;
	if (err == EINPROGRESS || err == EINTR) {
		err = -wait_fd(c, fd, POLLOUT, end);
		if (err == 0)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	}
	if (err == 0)
		return fd;
	close(fd);
	return -err;
}

/* @return 0; -ENODATA: the connection ends before @p size bytes; or another error */
static int receive(struct connect *c, int fd, void *buf, size_t size, uint64_t end)
{
	size_t got = 0;
	ssize_t n;

	while (got < size) {
		int rc = wait_fd(c, fd, POLLIN, end);

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

static int check_reply(struct connect *c, const struct weft_hello_reply *r)
{
	if (le32toh(r->magic) != WEFT_HELLO_MAGIC)
		return failed(c, -EPROTO, "%s port %u is no listener of Weft: check the port",
			      c->host, c->port);
	if (le32toh(r->version) != WEFT_HELLO_VERSION)
		return failed(c, -EPROTONOSUPPORT,
			      "%s port %u has version %u of the greeting, this library version %u: "
			      "install the same Weft on both hosts",
			      c->host, c->port, le32toh(r->version), WEFT_HELLO_VERSION);
	c->length = le32toh(r->length);
	if (c->length == 0 || c->length > WEFT_HELLO_ADDRESS_MAX)
		return failed(c, -EPROTO, "%s port %u announces an address of %zu bytes", c->host,
			      c->port, c->length);
	return 0;
}

static int fetch(struct connect *c, int fd, uint64_t end)
{
	const struct weft_hello hello = {htole32(WEFT_HELLO_MAGIC), htole32(WEFT_HELLO_VERSION)};
	struct weft_hello_reply reply;
	int rc = 0;

	/* The buffer of a new socket has room for 8 bytes. */
	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != (ssize_t)sizeof(hello))
		rc = -ENODATA;
	if (rc == 0)
		rc = receive(c, fd, &reply, sizeof(reply), end);
	if (rc == 0) {
		rc = check_reply(c, &reply);
		if (rc < 0)
			return rc;
		c->address = malloc(c->length);
		rc = c->address ? receive(c, fd, c->address, c->length, end) : -ENOMEM;
	}
	if (rc == -ETIMEDOUT)
		return failed(c, rc,
			      "%s port %u accepts connections but sends no worker address: check "
			      "the port, and whether the server is stopped",
			      c->host, c->port);
	if (rc == -ENODATA)
		return failed(c, -EPROTO,
			      "%s port %u closed the connection before its worker address: check "
			      "the port, and try again if it is a busy listener of Weft",
			      c->host, c->port);
	return rc < 0 ? failed(c, rc, "%s port %u: %s", c->host, c->port, strerror(-rc)) : 0;
}

static int unreachable(struct connect *c, int rc)
{
	if (rc == -ECONNREFUSED)
		return failed(c, rc,
			      "no server listens on %s port %u: start it first, and check the port",
			      c->host, c->port);
	if (rc == -ETIMEDOUT)
		return failed(c, rc,
			      "%s port %u does not respond: check that the host is up and that no "
			      "firewall drops TCP to the port",
			      c->host, c->port);
	if (rc == -ENETUNREACH || rc == -EHOSTUNREACH)
		return failed(c, rc, "there is no route to %s port %u: check 'ip route'", c->host,
			      c->port);
	return failed(c, rc, "cannot connect to %s port %u: %s", c->host, c->port, strerror(-rc));
}

/*
 * All addresses in order. Each gets an equal part of the time that is left.
 * @return 0; or the error, with its text, of the attempt that came farthest, the first one of them:
 *   a connection, a refusal, nothing
 */
static int try_addresses(struct connect *c, const struct addrinfo *list, uint64_t until)
{
	char why[sizeof(c->why)] = "";
	unsigned int left = 0, far, farthest = 0;
	int fd, rc = 0, error = 0;

	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next)
		left++;
	for (const struct addrinfo *ai = list; ai && rc != -ECANCELED; ai = ai->ai_next, left--) {
		uint64_t now = now_ns(), end = until;

		if (now < end && left > 1)
			end = now + (end - now) / left;
		fd = open_connection(c, ai, end);
		far = fd >= 0 ? 3 : fd == -ECONNREFUSED ? 2 : 1;
		rc = fd < 0 ? unreachable(c, fd) : fetch(c, fd, end);
		if (fd >= 0)
			close(fd);
		if (rc == 0)
			return 0;
		free(c->address);
		c->address = NULL;
		if (far > farthest) {
			farthest = far;
			error = rc;
			memcpy(why, c->why, sizeof(why));
		}
	}
	memcpy(c->why, why, sizeof(why));
	return error;
}

/* While no server listens, all addresses are tried again. */
static int connect_any(struct connect *c, const struct addrinfo *list)
{
	uint64_t now = now_ns(), end;
	int rc;

	if (now >= c->end)
		return failed(c, -ETIMEDOUT,
			      "%s port %u: no time is left after the resolution of the name and "
			      "the connects before it: connect to fewer peers at once, or raise "
			      "WEFT_CONNECT_TIMEOUT",
			      c->host, c->port);
	for (;;) {
		end = after(now, c->timeout);
		rc = try_addresses(c, list, end < c->end ? end : c->end);
		now = now_ns();
		if (rc != -ECONNREFUSED || now >= c->again_until || abandoned(c))
			return rc;
		poll(NULL, 0, AGAIN_MS);
	}
}

static int resolve(struct connect *c, struct addrinfo **list)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", c->port);
	rc = getaddrinfo(c->host, port, &hints, list);
	if (rc == 0)
		return 0;
	if (rc == EAI_AGAIN)
		return failed(c, -EAGAIN,
			      "cannot resolve %s (port %u): the name service does not respond; "
			      "check /etc/resolv.conf, or give a numeric address",
			      c->host, c->port);
	return failed(c,
		      rc == EAI_MEMORY   ? -ENOMEM
		      : rc == EAI_SYSTEM ? -EIO
					 : -ENOENT,
		      "cannot resolve %s (port %u): %s; check the name, or give a numeric address",
		      c->host, c->port, gai_strerror(rc));
}

static void run(void *arg)
{
	struct connect *c = arg;
	struct addrinfo *list;
	bool is_abandoned;
	int rc;

	pthread_mutex_lock(&c->lock);
	c->begun = true;
	is_abandoned = !c->worker;
	pthread_mutex_unlock(&c->lock);
	rc = is_abandoned ? -ECANCELED : resolve(c, &list);
	if (rc == 0) {
		rc = connect_any(c, list);
		freeaddrinfo(list);
	}
	c->status = rc;
	pthread_mutex_lock(&c->lock);
	c->done = true;
	is_abandoned = !c->worker;
	if (!is_abandoned) {
		/*
		 * Sequentially consistent: a worker that is about to sleep sees the count, or the
		 * nudge sees its descriptor.
		 */
		atomic_fetch_add(&c->worker->connects->done, 1);
		weft_wait_nudge(c->worker);
	}
	pthread_mutex_unlock(&c->lock);
	if (is_abandoned)
		connect_free(c);
}

/* ------------------------------------------------------------------ in the worker */

/*
 * The thread of the connect does not use the worker afterwards.
 * @return true: it is done, and the result is ours; false: the thread frees it
 */
static bool detach(struct weft_worker *w, struct connect *c)
{
	bool done;

	TAILQ_REMOVE(&w->connects->list, c, entry);
	pthread_mutex_lock(&c->lock);
	c->worker = NULL;
	done = c->done;
	if (done)
		atomic_fetch_sub(&w->connects->done, 1);
	pthread_mutex_unlock(&c->lock); /* from here on the thread may free it */
	if (TAILQ_EMPTY(&w->connects->list)) {
		free(w->connects);
		w->connects = NULL;
	}
	return done;
}

static void report(struct weft_worker *w, const struct connect *c,
		   const struct weft_connect_params *p)
{
	struct weft_ep_params ep_params =
		WEFT_INIT(struct weft_ep_params, .address = c->address, .address_length = c->length,
			  .err_cb = p->err_cb, .err_arg = p->err_arg, .user_data = p->user_data);
	struct weft_ep *ep = NULL;
	char why[600] = "";
	int rc = c->status;

	if (rc < 0) {
		snprintf(why, sizeof(why), "%s", c->why);
	} else {
		rc = weft_ep_create(w, &ep_params, &ep);
		if (rc < 0)
			snprintf(why, sizeof(why),
				 "no endpoint to the worker of %s port %u: %s; the log has the "
				 "lanes of both",
				 c->host, c->port, weft_strerror(rc));
	}
	p->connect_cb(w, rc < 0 ? NULL : ep, rc, why, p->connect_arg);
}

/* End a connect before its thread has. */
static void abandon(struct weft_worker *w, struct connect *c, int status, const char *what)
{
	struct weft_connect_params p = c->params;
	char why[600];

	/* Read before detach(): the thread may free it then. It does not write host and port. */
	snprintf(why, sizeof(why), "%s port %u: %s", c->host, c->port, what);
	if (detach(w, c))
		connect_free(c);
	p.connect_cb(w, NULL, status, why, p.connect_arg);
}

static bool has_begun(struct connect *c)
{
	bool has;

	pthread_mutex_lock(&c->lock);
	has = c->begun;
	pthread_mutex_unlock(&c->lock);
	return has;
}

static struct connect *first_done(struct weft_worker *w)
{
	struct connect *c, *found = NULL;

	if (!w->connects || atomic_load(&w->connects->done) == 0)
		return NULL;
	TAILQ_FOREACH(c, &w->connects->list, entry) {
		pthread_mutex_lock(&c->lock);
		found = c->done ? c : NULL;
		pthread_mutex_unlock(&c->lock);
		if (found)
			return found;
	}
	return NULL;
}

unsigned int weft_connects_progress(struct weft_worker *w)
{
	struct connect *c;
	unsigned int n = 0;

	for (; (c = first_done(w)); n++) {
		detach(w, c);
		report(w, c, &c->params);
		connect_free(c);
	}
	for (; w->connects && (c = TAILQ_FIRST(&w->connects->list))->deadline <= w->now; n++)
		abandon(w, c, -ETIMEDOUT,
			has_begun(c)
				? "the name was not resolved within WEFT_CONNECT_TIMEOUT: check "
				  "/etc/resolv.conf, or give a numeric address"
				: "too many connects were before it for WEFT_CONNECT_TIMEOUT: "
				  "connect to fewer peers at once, or raise it");
	return n;
}

bool weft_connects_ready(struct weft_worker *w, uint64_t *due)
{
	uint64_t deadline = TAILQ_FIRST(&w->connects->list)->deadline;

	*due = deadline < *due ? deadline : *due;
	return atomic_load(&w->connects->done) != 0;
}

void weft_connects_cancel(struct weft_worker *w)
{
	while (w->connects)
		abandon(w, TAILQ_FIRST(&w->connects->list), -ECANCELED,
			"the worker is destroyed before the connection");
}

static void insert(struct weft_connects *all, struct connect *c)
{
	struct connect *before = TAILQ_LAST(&all->list, connect_list);

	while (before && before->deadline > c->deadline)
		before = TAILQ_PREV(before, connect_list, entry);
	if (before)
		TAILQ_INSERT_AFTER(&all->list, before, c, entry);
	else
		TAILQ_INSERT_HEAD(&all->list, c, entry);
}

static struct connect *connect_alloc(struct weft_worker *w, const struct weft_connect_params *p)
{
	uint64_t timeout = w->ctx->conf->lane.connect_timeout_ns;
	/* a week is for ever */
	uint64_t wait = p->wait > 604800 ? 604800 * (uint64_t)SECOND
			: p->wait > 0    ? (uint64_t)(p->wait * 1e9)
					 : 0;
	struct connect *c = calloc(1, sizeof(*c));
	uint64_t now = now_ns();

	if (!c)
		return NULL;
	if (!w->connects) {
		w->connects = calloc(1, sizeof(*w->connects));
		if (!w->connects) {
			free(c);
			return NULL;
		}
		TAILQ_INIT(&w->connects->list);
	}
	pthread_mutex_init(&c->lock, NULL);
	snprintf(c->host, sizeof(c->host), "%s", p->host);
	c->port = p->port;
	c->worker = w;
	c->params = *p;
	c->params.host = NULL; /* the caller's */
	c->timeout = timeout;
	c->again_until = after(now, wait);
	c->end = after(c->again_until, timeout);
	now = w->ctx->platform->now(w->ctx->platform->arg);
	c->deadline = after(after(after(now, wait), timeout), LATE_NS);
	insert(w->connects, c);
	return c;
}

int weft_ep_connect_to(struct weft_worker *w, const struct weft_connect_params *params)
{
	struct weft_connect_params p;
	struct connect *c;
	int rc;

	if (!w || !params || weft_struct_in(&p, sizeof(p), params) < 0 || !p.host ||
	    p.host[0] == '\0' || strlen(p.host) > HOST_MAX || p.port == 0 || !p.connect_cb)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_ep_connect_to");
	weft_worker_lock(w);
	c = w->destroying ? NULL : connect_alloc(w, &p);
	rc = c ? weft_blocking_run_long(run, c) : w->destroying ? -EINVAL : -ENOMEM;
	if (c && rc < 0) {
		detach(w, c);
		connect_free(c);
	}
	weft_worker_unlock(w);
	return rc;
}
