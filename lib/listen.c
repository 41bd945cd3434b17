/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A listener is a thread that sends the worker's address to TCP clients. For weft_ep_connect_to()
 * another thread fetches the address from a listener, and the worker creates the endpoint in its
 * next progress call.
 */

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/tcp.h"
#include "base/thread.h"
#include "context.h"
#include "core/config.h"
#include "core/worker.h"
#include "listen.h"
#include "msg/msg.h"
#include "weft_listen.h"

/* ------------------------------------------------------------------ listeners */

#define BACKLOG 64

struct weft_listener {
	struct weft_worker *worker;
	LIST_ENTRY(weft_listener) entry;
	struct weft_tcp_server *server;
	pthread_t thread;
	int stop;
	uint16_t port;
	char host[NI_MAXHOST];
	bool has_key;
	struct weft_log_limit starved;
	struct weft_hello_reply other_version; /* reply to a client that gets no address */
	size_t length;
	uint8_t reply[];
};

/* @return the keys for one exchange, in memory for secrets; NULL: no memory or no randomness */
static struct weft_greeting_key *greeting_key(const struct weft_context *ctx)
{
	struct weft_greeting_key *k = weft_secret_alloc(sizeof(*k));

	if (!k)
		return NULL;
	memcpy(k->job_key, ctx->conf->lane.job_key, sizeof(k->job_key));
	if (ctx->platform->random(ctx->platform->arg, k->random, sizeof(k->random)) == 0)
		return k;
	weft_secret_free(k, sizeof(*k));
	return NULL;
}

/* Seal the listener's reply for this client. The caller frees @p sealed, also after an error. */
static int seal_reply(const struct weft_listener *l, const uint8_t *request, uint8_t **sealed,
		      size_t *length)
{
	struct weft_hello_reply head = l->other_version;
	struct weft_greeting_key *k = greeting_key(l->worker->ctx);
	size_t text = l->length - sizeof(head);
	int rc = -ENOMEM;

	*length = l->length + WEFT_GREETING_OVERHEAD;
	head.length = htole32((uint32_t)(text + WEFT_GREETING_OVERHEAD));
	*sealed = k ? malloc(*length) : NULL;
	if (*sealed) {
		memcpy(*sealed, &head, sizeof(head));
		rc = weft_drivers_greeting()->answer(k, request, l->reply + sizeof(head), text,
						     *sealed + sizeof(head));
	}
	weft_secret_free(k, sizeof(*k));
	return rc;
}

static void judge_request(const struct weft_listener *l, const uint8_t *request,
			  struct weft_tcp_answer *answer)
{
	uint8_t *sealed = NULL;
	size_t length;
	int rc = seal_reply(l, request, &sealed, &length);

	if (rc == 0) {
		answer->accepted = true;
		answer->reply = answer->owned = sealed;
		answer->length = length;
		return;
	}
	free(sealed);
	snprintf(answer->why, sizeof(answer->why), "%s",
		 rc == -EBADMSG
			 ? "it has another job key: give both ends the same WEFT_JOB_KEY"
			 : "the reply to it cannot be sealed: no memory, or libcrypto fails");
}

/* Write why a client whose greeting has another version than the listener's is refused. */
static void explain_version(const struct weft_listener *l, uint32_t version, char *why, size_t size)
{
	bool keys = version == WEFT_HELLO_VERSION || version == WEFT_HELLO_SEALED;

	snprintf(why, size, "%s",
		 !keys        ? "it has another version of the greeting"
		 : l->has_key ? "it has no job key: give both ends the same WEFT_JOB_KEY"
			      : "it has a job key, and this end has none: give both ends the same "
				"WEFT_JOB_KEY");
}

static int judge_hello(void *arg, const void *bytes, size_t length, struct weft_tcp_answer *answer)
{
	const struct weft_listener *l = arg;
	struct weft_hello hello = {0};

	memcpy(&hello, bytes, length < sizeof(hello) ? length : sizeof(hello));
	*answer = (struct weft_tcp_answer){0};
	if (length >= sizeof(hello.magic) && le32toh(hello.magic) != WEFT_HELLO_MAGIC) {
		snprintf(answer->why, sizeof(answer->why), "it sent no greeting of Weft");
		return 0;
	}
	if (length < sizeof(hello))
		return -EAGAIN;
	answer->reply = &l->other_version;
	answer->length = sizeof(l->other_version);
	if (hello.version != l->other_version.version) {
		explain_version(l, le32toh(hello.version), answer->why, sizeof(answer->why));
	} else if (!l->has_key) {
		answer->accepted = true;
		answer->reply = l->reply;
		answer->length = l->length;
	} else if (length < sizeof(hello) + WEFT_GREETING_REQUEST) {
		return -EAGAIN;
	} else {
		judge_request(l, (const uint8_t *)bytes + sizeof(hello), answer);
	}
	return 0;
}

static void log_refused(void *arg, const char *client, const char *why, bool last)
{
	(void)arg;
	weft_info("listener: refused %s: %s%s", client, why,
		  last ? "; further refusals are not logged" : "");
}

static void log_starved(void *arg, int err)
{
	struct weft_listener *l = arg;

	weft_log_limited(&l->starved, WEFT_LOG_WARN,
			 "listener: clients wait: %s; raise the limit on open files (ulimit -n)",
			 strerror(err));
}

static void *listen_run(void *arg)
{
	struct weft_listener *l = arg;

	while (!weft_tcp_server_run(l->server, l->stop, -1))
		;
	return NULL;
}

static void log_failure(struct weft_worker *w, const char *host, unsigned int port, int rc)
{
	const char *remedy =
		rc == -EINVAL          ? "give a numeric address of this host, or none"
		: rc == -EADDRINUSE    ? "another program listens there; choose another port, or 0"
		: rc == -EADDRNOTAVAIL ? "no interface of this host has the address ('ip address')"
		: rc == -EACCES        ? "ports below 1024 need a right; choose another"
		: rc == -EAGAIN        ? "no thread can be started; raise the limit (ulimit -u)"
				       : weft_strerror(rc);

	weft_log_worker(w, WEFT_LOG_ERROR, "cannot listen on %s port %u: %s",
			host ? host : "all addresses", port, remedy);
}

/* Allocate a listener and write its reply: the worker's address does not change. */
static struct weft_listener *listener_alloc(struct weft_worker *w)
{
	bool has_key = w->ctx->conf->lane.job_key != NULL;
	struct weft_hello_reply head = {.magic = htole32(WEFT_HELLO_MAGIC),
					.version = htole32(has_key ? WEFT_HELLO_SEALED
								   : WEFT_HELLO_VERSION)};
	struct weft_listener *l = NULL;
	void *address;
	size_t length;

	if (weft_worker_get_address(w, &address, &length) < 0)
		return NULL;
	if (length <= WEFT_HELLO_ADDRESS_MAX)
		l = calloc(1, sizeof(*l) + sizeof(head) + length);
	if (l) {
		l->has_key = has_key;
		l->other_version = head;
		head.length = htole32((uint32_t)length);
		memcpy(l->reply, &head, sizeof(head));
		memcpy(l->reply + sizeof(head), address, length);
		l->length = sizeof(head) + length;
		l->worker = w;
	}
	weft_worker_release_address(w, address);
	return l;
}

static int listener_start(struct weft_listener *l, const struct weft_listener_params *p)
{
	const struct weft_tcp_server_params params = {
		.host = p->host,
		.port = p->port,
		.backlog = p->backlog ? (int)p->backlog : BACKLOG,
		.hello = sizeof(struct weft_hello) + (l->has_key ? WEFT_GREETING_REQUEST : 0),
		.judge = judge_hello,
		.refused = log_refused,
		.starved = log_starved,
		.arg = l,
	};
	int rc = weft_tcp_server_open(&params, &l->server);

	if (rc < 0)
		return rc;
	weft_tcp_server_query(l->server, l->host, sizeof(l->host), &l->port);
	l->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->stop < 0)
		rc = -errno;
	else
		rc = weft_thread_start("weft-listen", listen_run, l, NULL, &l->thread);
	if (rc == 0)
		return 0;
	if (l->stop >= 0)
		close(l->stop);
	weft_tcp_server_close(l->server);
	return rc;
}

int weft_listener_create(struct weft_worker *w, const struct weft_listener_params *params,
			 struct weft_listener **out)
{
	struct weft_listener_params p;
	struct weft_listener *l;
	int rc;

	if (!w || !out || weft_struct_in(&p, sizeof(p), params) < 0 || p.backlog > INT32_MAX)
		return -EINVAL;
	l = listener_alloc(w);
	rc = l ? listener_start(l, &p) : -ENOMEM;
	if (rc < 0) {
		log_failure(w, p.host, p.port, rc);
		free(l);
		return rc;
	}
	weft_worker_lock(w);
	LIST_INSERT_HEAD(&w->listeners, l, entry);
	weft_worker_unlock(w);
	*out = l;
	return 0;
}

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
	pthread_join(l->thread, NULL); /* takes no time: its only blocking call is poll() */
	weft_tcp_server_close(l->server);
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
	out.served = weft_tcp_server_served(l->server);
	out.refused = weft_tcp_server_refused(l->server);
	return weft_struct_out(attr, &out, sizeof(out));
}

/* ------------------------------------------------------------------ connects */

#define HOST_MAX 255u
/* The worker ends a connect this long after its limit: its thread resolves, or has not begun. */
#define LATE_NS 200000000u

struct connect {
	/* used by the thread, and by the worker when `done` is set; host and port do not change */
	char host[HOST_MAX + 1];
	struct weft_tcp_connect tcp;
	struct weft_greeting_key *key; /* NULL = without a job key */
	int status;
	size_t length;
	uint8_t *address;
	/* used by both; `lock` protects them */
	pthread_mutex_t lock;
	struct weft_worker *worker; /* NULL = abandoned */
	bool begun, done;
	/* used by the worker only */
	TAILQ_ENTRY(connect) entry;
	uint64_t deadline; /* ns, the platform's clock */
	struct weft_connect_params params;
};

/* A worker has this struct while it has connects. */
struct weft_connects {
	TAILQ_HEAD(connect_list, connect) list; /* in the order of deadlines */
	atomic_uint done;                       /* results that the worker has not taken */
};

static void connect_free(struct connect *c)
{
	pthread_mutex_destroy(&c->lock);
	weft_secret_free(c->key, sizeof(*c->key));
	free(c->address);
	free(c);
}

/* ------------------------------------------------------------------ in the other thread */

/* weft_tcp_connect.idle. @return 0; -ECANCELED: the worker has ended the connect */
static int end_abandoned(void *arg)
{
	struct connect *c = arg;
	bool is;

	pthread_mutex_lock(&c->lock);
	is = !c->worker;
	pthread_mutex_unlock(&c->lock);
	return is ? -ECANCELED : 0;
}

/* Fail because the two ends do not have the same job key. */
static int fail_key(struct weft_tcp_connect *t, const char *what)
{
	return weft_tcp_fail(t, -EACCES, "%s port %u %s: give both ends the same WEFT_JOB_KEY",
			     t->host, t->port, what);
}

static int check_reply(struct connect *c, const struct weft_hello_reply *r)
{
	uint32_t length = le32toh(r->length), version = le32toh(r->version);
	uint32_t own = c->key ? WEFT_HELLO_SEALED : WEFT_HELLO_VERSION;
	uint32_t more = c->key ? WEFT_GREETING_OVERHEAD : 0;
	struct weft_tcp_connect *t = &c->tcp;

	if (le32toh(r->magic) != WEFT_HELLO_MAGIC)
		return weft_tcp_fail(t, -EPROTO,
				     "%s port %u is no listener of Weft: check the port", t->host,
				     t->port);
	if (version != own && version == WEFT_HELLO_SEALED)
		return fail_key(t, "has a job key, and this end has none");
	if (version != own && version == WEFT_HELLO_VERSION)
		return fail_key(t, "has no job key, and this end has one");
	if (version != own)
		return weft_tcp_fail(t, -EPROTONOSUPPORT,
				     "%s port %u has version %u of the greeting, this library "
				     "version %u: install the same Weft on both hosts",
				     t->host, t->port, version, own);
	if (length == 0 && c->key)
		return fail_key(t, "has another job key");
	if (length <= more || length > WEFT_HELLO_ADDRESS_MAX + more)
		return weft_tcp_fail(t, -EPROTO,
				     "%s port %u announces an address of %u bytes, which is "
				     "impossible: check the port",
				     t->host, t->port, length);
	return 0;
}

/* Replace the sealed address by the plain one. Success proves that its sender has the job key. */
static int open_address(struct connect *c)
{
	size_t length = c->length - WEFT_GREETING_OVERHEAD;
	uint8_t *address = malloc(length);
	int rc;

	if (!address)
		return -ENOMEM;
	rc = weft_drivers_greeting()->open(c->key, c->address, c->length, address);
	free(c->address);
	c->address = address;
	c->length = length;
	return rc == -EBADMSG
		       ? fail_key(&c->tcp, "sent an address that was changed on its way, or was "
					   "made without the job key")
		       : rc;
}

static int receive_address(struct connect *c, int fd, uint64_t end)
{
	int rc;

	free(c->address); /* of an earlier attempt */
	c->address = malloc(c->length);
	if (!c->address)
		return -ENOMEM;
	rc = weft_tcp_receive(&c->tcp, fd, c->address, c->length, end);
	return rc == 0 && c->key ? open_address(c) : rc;
}

static int send_hello(const struct connect *c, int fd)
{
	struct {
		struct weft_hello hello;
		uint8_t request[WEFT_GREETING_REQUEST];
	} m = {.hello = {htole32(WEFT_HELLO_MAGIC),
			 htole32(c->key ? WEFT_HELLO_SEALED : WEFT_HELLO_VERSION)}};
	size_t length = c->key ? sizeof(m) : sizeof(m.hello);
	int rc = c->key ? weft_drivers_greeting()->request(c->key, m.request) : 0;

	/* The buffer of a new socket has room for 56 bytes. */
	if (rc == 0 && send(fd, &m, length, MSG_NOSIGNAL) != (ssize_t)length)
		rc = -ENODATA;
	return rc;
}

static int fetch(struct weft_tcp_connect *t, int fd, uint64_t end)
{
	struct connect *c = t->arg;
	struct weft_hello_reply reply;
	int rc = send_hello(c, fd);

	if (rc == 0)
		rc = weft_tcp_receive(t, fd, &reply, sizeof(reply), end);
	if (rc == 0) {
		rc = check_reply(c, &reply);
		if (rc < 0)
			return rc;
		c->length = le32toh(reply.length);
		rc = receive_address(c, fd, end);
	}
	if (rc == -EACCES) /* fail_key() has written the sentence. */
		return rc;
	if (rc == -ETIMEDOUT)
		return weft_tcp_fail(t, rc,
				     "%s port %u accepts connections but sends no worker address: "
				     "check the port, and whether the server is stopped",
				     t->host, t->port);
	if (rc == -ENODATA)
		return weft_tcp_fail(t, -EPROTO,
				     "%s port %u closed the connection before its worker address: "
				     "check the port, and try again if it is a busy listener of "
				     "Weft",
				     t->host, t->port);
	return rc < 0 ? weft_tcp_fail(t, rc, "%s port %u: %s", t->host, t->port, strerror(-rc)) : 0;
}

static void connect_run(void *arg)
{
	struct connect *c = arg;
	bool is_abandoned;
	int fd;

	pthread_mutex_lock(&c->lock);
	c->begun = true;
	is_abandoned = !c->worker;
	pthread_mutex_unlock(&c->lock);
	fd = is_abandoned ? -ECANCELED : weft_tcp_connect(&c->tcp);
	if (fd >= 0)
		close(fd);
	c->status = fd < 0 ? fd : 0;
	pthread_mutex_lock(&c->lock);
	c->done = true;
	is_abandoned = !c->worker;
	if (!is_abandoned) {
		/* Sequentially consistent: a worker about to sleep sees the count, or is nudged. */
		atomic_fetch_add(&c->worker->connects->done, 1);
		weft_wait_nudge(c->worker);
	}
	pthread_mutex_unlock(&c->lock);
	if (is_abandoned)
		connect_free(c);
}

/* ------------------------------------------------------------------ in the worker */

/*
 * The thread of the connect does not use the worker after this call.
 * @return true: the connect is done, and the caller frees it; false: its thread frees it
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
		snprintf(why, sizeof(why), "%s", c->tcp.why);
	} else {
		rc = weft_ep_create(w, &ep_params, &ep);
		if (rc < 0)
			snprintf(why, sizeof(why),
				 "no endpoint to the worker of %s port %u: %s; the log has the "
				 "lanes of both",
				 c->host, c->tcp.port, weft_strerror(rc));
	}
	p->connect_cb(w, rc < 0 ? NULL : ep, rc, why, p->connect_arg);
}

/* End a connect without its result; its thread may still run. */
static void abandon(struct weft_worker *w, struct connect *c, int status, const char *what)
{
	struct weft_connect_params p = c->params;
	char why[600];

	/* Read before detach(): the thread may free it then. Host and port do not change. */
	snprintf(why, sizeof(why), "%s port %u: %s", c->host, c->tcp.port, what);
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
	/* ns; more than a week counts as a week (604800 s), so that no time overflows */
	uint64_t wait = p->wait > 604800 ? 604800 * (uint64_t)WEFT_TCP_SECOND
			: p->wait > 0    ? (uint64_t)(p->wait * 1e9)
					 : 0;
	struct connect *c = calloc(1, sizeof(*c));
	uint64_t now = weft_tcp_now();

	if (!c)
		return NULL;
	/* A copy of the job key: the thread of an abandoned connect may outlive the context. */
	if (w->ctx->conf->lane.job_key) {
		c->key = greeting_key(w->ctx);
		if (!c->key) {
			free(c);
			return NULL;
		}
	}
	if (!w->connects) {
		w->connects = calloc(1, sizeof(*w->connects));
		if (!w->connects) {
			weft_secret_free(c->key, sizeof(*c->key));
			free(c);
			return NULL;
		}
		TAILQ_INIT(&w->connects->list);
	}
	pthread_mutex_init(&c->lock, NULL);
	snprintf(c->host, sizeof(c->host), "%s", p->host);
	c->worker = w;
	c->params = *p;
	c->params.host = NULL; /* the caller's string may be gone after the call */
	c->tcp = (struct weft_tcp_connect){
		.host = c->host,
		.port = p->port,
		.remedy = "start it first, and check the port",
		.timeout = timeout,
		.again_until = weft_tcp_after(now, wait),
		.end = weft_tcp_after(weft_tcp_after(now, wait), timeout),
		.idle = end_abandoned,
		.greet = fetch,
		.arg = c,
	};
	now = w->ctx->platform->now(w->ctx->platform->arg);
	c->deadline = weft_tcp_after(weft_tcp_after(weft_tcp_after(now, wait), timeout), LATE_NS);
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
	rc = c ? weft_blocking_run_long(connect_run, c) : w->destroying ? -EINVAL : -ENOMEM;
	if (c && rc < 0) {
		detach(w, c);
		connect_free(c);
	}
	weft_worker_unlock(w);
	return rc;
}
