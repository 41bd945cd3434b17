/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "common/cli.h"
#include "common/eal_start.h"
#include "common/oob.h"
#include "common/peer.h"
#include "lib/base/secret.h"
#include "weft.h"

/* ---- reasons -------------------------------------------------------------------------------- */

/*
 * The reason of a failure in the library: its calls return a number, and its log has a sentence.
 * The user reads the log; OOB_BYE sends the sentence to the peer.
 */

#define TEXT_MAX 384

/* Protects `first`: threads of the library log, too. */
static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
static char first[2][TEXT_MAX]; /* by level: the first line of the log since reason_begin() */

static bool on_log_line(enum weft_log_level level, const char *source, const char *text, void *arg)
{
	(void)source;
	(void)arg;
	if (level > WEFT_LOG_WARN)
		return false;
	pthread_mutex_lock(&first_lock);
	if (!first[level][0])
		snprintf(first[level], TEXT_MAX, "%s", text);
	pthread_mutex_unlock(&first_lock);
	return false;
}

/* Call it before a call of the library that may fail. */
static void reason_begin(void)
{
	weft_log_set_callback(on_log_line, NULL);
	pthread_mutex_lock(&first_lock);
	first[WEFT_LOG_ERROR][0] = '\0';
	first[WEFT_LOG_WARN][0] = '\0';
	pthread_mutex_unlock(&first_lock);
}

/*
 * Report a failed call. Its reason is the first error (else the first warning) of the log since
 * reason_begin(). At this end the reason is already above the message; the message for the peer
 * includes it. @param otherwise  the reason, where the log has none
 */
static void reason_error(const char *what, const char *otherwise)
{
	char text[TEXT_MAX];

	pthread_mutex_lock(&first_lock);
	memcpy(text, first[WEFT_LOG_ERROR][0] ? first[WEFT_LOG_ERROR] : first[WEFT_LOG_WARN],
	       sizeof(text));
	pthread_mutex_unlock(&first_lock);
	if (!text[0]) {
		cli_error("%s: %s", what, otherwise);
		return;
	}
	cli_error("%s (the log above gives the reason)", what);
	cli_set_last_error(what, text);
}

/* ---- the peer ------------------------------------------------------------------------------- */

#define CLOSE_SECONDS 2.0
#define WHY_SECONDS 0.5
#define LANES_SECONDS 0.05
#define LANES_SECONDS_MAX 1.0

/* ---- termination, expected or not */

int peer_fail(struct peer *p, int exit_code)
{
	if (!p->exit_code)
		p->exit_code = exit_code;
	return p->exit_code;
}

int peer_fail_op(struct peer *p, const char *what, int status)
{
	if (p->exit_code)
		return p->exit_code;
	cli_error("%s: %s", what, weft_strerror(status));
	return peer_fail(p, status == -ECONNRESET || status == -ETIMEDOUT ? APP_PEER : APP_FAIL);
}

static const char *other(const struct peer *p)
{
	return p->server ? "client" : "server";
}

/* Writes the flight recorder, as failing lanes do: they detect the end of a process later. */
static void print_end(const struct peer *p, const char *what)
{
	char text[640], reason[160];
	int rc = -ENOENT;

	snprintf(reason, sizeof(reason), "the %s %s", other(p), what);
	if (p->worker)
		rc = weft_recorder_write(reason, text, sizeof(text));
	if (rc == -ENOENT)
		cli_error("the %s (%s) %s", other(p), oob_peer_name(p->oob), what);
	else
		cli_error("the %s (%s) %s; %s %s", other(p), oob_peer_name(p->oob), what,
			  rc ? "the flight recorder has no file:"
			     : "the flight recorder's frames are in",
			  text);
}

/* @param status  of the out-of-band connection; a BYE that has arrived takes precedence */
static int peer_lost(struct peer *p, int status)
{
	char text[OOB_BYE_TEXT + 1];
	int code;

	if (p->exit_code)
		return p->exit_code;
	if (oob_peer_bye(p->oob, &code, text, sizeof(text))) {
		if (text[0])
			cli_error("the %s gave up: %s", other(p), text);
		else if (code)
			cli_error("the %s gave up with exit code %d", other(p), code);
		else
			cli_error("the %s left before the end", other(p));
	} else if (status == -EPROTO) {
		cli_error("the %s (%s) sent an unexpected message; are both ends the same version?",
			  other(p), oob_peer_name(p->oob));
	} else if (status == -ETIMEDOUT) {
		print_end(p, "does not respond any more");
	} else {
		print_end(p, "died: its connection ended");
	}
	return peer_fail(p, APP_PEER);
}

static void refuse_others(struct peer *p)
{
	char text[160];

	snprintf(text, sizeof(text), "busy with %s", oob_peer_name(p->oob));
	oob_server_refuse(p->door, text);
}

int peer_check(struct peer *p)
{
	uint64_t now = rte_rdtsc();
	int ret;

	if (p->exit_code)
		return -ECANCELED;
	if (now < p->next_check)
		return 0;
	p->next_check = now + rte_get_tsc_hz() / 1000;
	if (sys_signal()) {
		cli_error("interrupted by signal %d", sys_signal());
		peer_fail(p, 128 + sys_signal());
		return -ECANCELED;
	}
	if (p->door && p->oob)
		refuse_others(p);
	if (p->closing || !p->oob)
		return 0;
	ret = oob_poll(p->oob);
	if (!ret && !oob_peer_bye(p->oob, NULL, NULL, 0))
		return 0;
	/* In an orderly end BYE follows a last barrier of both, so here a BYE is an error. */
	peer_lost(p, ret);
	return -ECANCELED;
}

static int peer_idle(void *arg)
{
	struct peer *p = arg;

	if (!p->worker)
		return sys_idle(NULL);
	/* Lanes measure round trips while they connect: rare progress looks like a slow peer. */
	for (int i = 0; i < 32; i++)
		weft_worker_progress(p->worker);
	/* The caller may sleep for 100 ms between two calls, so each call checks for a signal. */
	if (sys_signal()) {
		p->next_check = 0;
		return peer_check(p);
	}
	return peer_look(p);
}

#define SLEEP_NS 20000000

int peer_sleep(struct peer *p)
{
	int n = weft_worker_wait(p->worker, SLEEP_NS);

	if (n > 0)
		p->events += (unsigned int)n;
	if (n >= 0 || n == -ETIMEDOUT)
		return peer_check(p);
	cli_error("cannot sleep: %s", weft_strerror(n));
	peer_fail(p, APP_FAIL);
	return -ECANCELED;
}

/* ---- out-of-band messages */

static int oob_result(struct peer *p, int ret)
{
	if (!ret)
		return APP_OK;
	if (p->exit_code)
		return p->exit_code;
	if (ret == -EINTR || ret == -ECANCELED) {
		cli_error("interrupted by signal %d", sys_signal());
		return peer_fail(p, 128 + sys_signal());
	}
	return peer_lost(p, ret);
}

int peer_barrier(struct peer *p)
{
	return oob_result(p, oob_barrier(p->oob, 0, peer_idle, p));
}

int peer_send(struct peer *p, enum oob_type type, const void *data, size_t length)
{
	return oob_result(p, oob_send(p->oob, type, data, length));
}

int peer_recv(struct peer *p, enum oob_type type, void *data, size_t length)
{
	size_t got = length;
	int ret = oob_recv(p->oob, type, data, &got, 0, peer_idle, p);

	return oob_result(p, !ret && got != length ? -EPROTO : ret);
}

int peer_recv_some(struct peer *p, enum oob_type type, void *data, size_t *length)
{
	return oob_result(p, oob_recv(p->oob, type, data, length, 0, peer_idle, p));
}

int peer_take(struct peer *p, enum oob_type type, void *data, size_t length)
{
	size_t got = length;
	int ret = p->exit_code ? -ECANCELED : oob_take(p->oob, type, data, &got);

	if (ret == -EAGAIN)
		return ret;
	return oob_result(p, !ret && got != length ? -EPROTO : ret);
}

/* ---- stages */

/* The library has checked WEFT_JOB_KEY and WEFT_SEAL, and has refused a file that it can't read. */
static int use_job_key(const struct weft_config *config)
{
	uint8_t key[WEFT_JOB_KEY_LEN];
	char path[PATH_MAX], seal[16], why[512];
	bool remote;
	int ret;

	if (weft_config_get(config, "JOB_KEY", path, sizeof(path)) < 0 || !path[0] ||
	    weft_config_get(config, "SEAL", seal, sizeof(seal)) < 0 || strcmp(seal, "off") == 0)
		return APP_OK;
	ret = weft_job_key_load(path, key, &remote, why, sizeof(why));
	if (ret) {
		cli_error("%s", why);
		return APP_USAGE;
	}
	ret = oob_set_key(key);
	weft_secret_wipe(key, sizeof(key));
	if (!ret)
		return APP_OK;
	cli_error("the job key can't be used for the TCP connection: %s", strerror(-ret));
	return APP_FAIL;
}

int peer_init(struct peer *p, const struct peer_options *opts)
{
	struct weft_context_params params = WEFT_INIT(
		struct weft_context_params, .features = opts->features, .config = opts->config);
	int ret;

	memset(p, 0, sizeof(*p));
	p->opts = opts;
	p->server = !opts->host;
	reason_begin();
	ret = weft_context_create(&params, &p->ctx);
	if (!ret) {
		ret = use_job_key(opts->config);
		return ret ? peer_fail(p, ret) : APP_OK;
	}
	reason_error("Weft does not start", weft_strerror(ret));
	return peer_fail(p, ret == -EINVAL ? APP_USAGE : APP_FAIL);
}

int peer_listen(const struct peer_options *opts, struct oob_server **door)
{
	int ret = oob_server_open(opts->local, opts->port, door);

	if (!ret)
		return APP_OK;
	return ret == -EINVAL ? APP_USAGE : APP_FAIL;
}

static int meet_client(struct peer *p)
{
	struct oob_server *own = NULL;
	int ret;

	if (!p->door) {
		ret = peer_listen(p->opts, &own);
		if (ret)
			return peer_fail(p, ret);
	}
	fprintf(stderr, "%s: waiting for a client on TCP port %u\n", cli_program, p->opts->port);
	ret = oob_server_accept(p->door ? p->door : own, peer_idle, p, &p->oob);
	oob_server_close(own);
	return ret;
}

int peer_meet(struct peer *p)
{
	const struct peer_options *o = p->opts;
	int ret;

	if (p->server)
		ret = meet_client(p);
	else
		ret = oob_connect(o->host, o->port, o->wait, peer_idle, p, &p->oob);
	if (!ret || p->exit_code)
		return p->exit_code;
	if (ret == -EINTR || ret == -ECANCELED)
		return oob_result(p, ret);
	return peer_fail(p, APP_FAIL);
}

int peer_open(struct peer *p)
{
	int ret;

	reason_begin();
	ret = weft_worker_create(p->ctx, NULL, &p->worker);
	if (!ret)
		return APP_OK;
	reason_error(ret == -ENODEV ? "no lane could be opened" : "the lanes could not be opened",
		     weft_strerror(ret));
	return peer_fail(p, ret == -EINVAL ? APP_USAGE : APP_FAIL);
}

/* The TCP connection has the better message, but lanes may fail before it arrives. */
static bool peer_sends_reason(struct peer *p)
{
	double end = sys_seconds() + WHY_SECONDS;
	struct pollfd fd = {.fd = oob_fd(p->oob), .events = POLLIN};

	while (!oob_poll(p->oob) && !oob_peer_bye(p->oob, NULL, NULL, 0)) {
		if (sys_seconds() > end)
			return false;
		poll(&fd, 1, 10);
	}
	return true;
}

static void on_ep_error(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct peer *p = arg;

	(void)ep;
	if (p->closing || p->exit_code)
		return;
	if (peer_sends_reason(p)) {
		peer_lost(p, oob_poll(p->oob));
		return;
	}
	cli_error("the lanes to the %s failed: %s", other(p), why ? why : weft_strerror(status));
	peer_fail(p, APP_PEER);
}

static int make_ep(struct peer *p, const void *address, size_t length, struct weft_ep **ep)
{
	struct weft_ep_params params =
		WEFT_INIT(struct weft_ep_params, .address = address, .address_length = length,
			  .err_cb = on_ep_error, .err_arg = p);
	char what[64];
	int ret;

	reason_begin();
	ret = weft_ep_create(p->worker, &params, ep);
	if (!ret)
		return APP_OK;
	snprintf(what, sizeof(what),
		 ret == -EHOSTUNREACH ? "no lane here reaches a lane of the %s"
				      : "can't connect to the %s",
		 other(p));
	reason_error(what, weft_strerror(ret));
	if (ret == -EHOSTUNREACH)
		eal_hint_ports(p->opts->config);
	return peer_fail(p, APP_FAIL);
}

static int exchange_addresses(struct peer *p, void *theirs, size_t *length)
{
	size_t mine_length;
	void *mine;
	int ret = weft_worker_get_address(p->worker, &mine, &mine_length);

	if (ret)
		return peer_fail_op(p, "the worker has no address", ret);
	ret = oob_send(p->oob, OOB_ADDRESS, mine, mine_length);
	weft_worker_release_address(p->worker, mine);
	if (!ret)
		ret = oob_recv(p->oob, OOB_ADDRESS, theirs, length, 0, peer_idle, p);
	return oob_result(p, ret);
}

static int wait_until_up(struct peer *p, struct weft_ep *ep)
{
	struct weft_ep_attr attr = {.size = sizeof(attr)};
	int ret;

	for (;;) {
		ret = weft_ep_query(ep, &attr);
		if (ret || attr.status < 0)
			return peer_fail_op(p, "no connection over the lanes",
					    ret ? ret : attr.status);
		if (attr.status == 0)
			return APP_OK;
		for (int i = 0; i < 64; i++)
			if (peer_poll(p))
				return p->exit_code;
	}
}

static bool a_lane_connects(struct peer *p)
{
	struct weft_lane_info info = {.size = sizeof(info)};

	for (unsigned int i = 0; weft_ep_query_lane(p->ep, i, &info) == 0; i++)
		if (info.state == WEFT_LANE_STATE_CONNECTING)
			return true;
	return false;
}

/*
 * An endpoint is up with its first lane. The other lanes follow within one or two round trips, and
 * the passive side lists a lane only from its connection on. Output and measurements must include
 * all lanes.
 */
static int wait_for_lanes(struct peer *p)
{
	double begin = sys_seconds(), now = begin;

	while (now - begin < LANES_SECONDS ||
	       (now - begin < LANES_SECONDS_MAX && a_lane_connects(p))) {
		for (int i = 0; i < 64; i++)
			if (peer_poll(p))
				return p->exit_code;
		now = sys_seconds();
	}
	return APP_OK;
}

/* Each endpoint is a connection of its own, with its own windows on every lane. */
static int connect_more(struct peer *p, const void *address, size_t length)
{
	int ret = APP_OK;

	while (!ret && !p->server && p->num_more + 1 < p->opts->parallel) {
		ret = make_ep(p, address, length, &p->more[p->num_more]);
		if (!ret)
			ret = wait_until_up(p, p->more[p->num_more++]);
	}
	return ret;
}

int peer_connect(struct peer *p)
{
	uint8_t address[OOB_MAX];
	size_t length = sizeof(address);
	int ret = exchange_addresses(p, address, &length);

	if (!ret)
		ret = make_ep(p, address, length, &p->ep);
	if (!ret)
		ret = wait_until_up(p, p->ep);
	if (!ret)
		ret = connect_more(p, address, length);
	if (!ret)
		ret = wait_for_lanes(p);
	return ret ? ret : peer_barrier(p);
}

/* ---- teardown */

static void close_one(struct peer *p, struct weft_ep *ep, bool flush)
{
	struct weft_request *req = NULL;
	double end = sys_seconds() + CLOSE_SECONDS;
	int ret = weft_ep_close(ep, flush ? 0 : WEFT_EP_CLOSE_F_FORCE, NULL, &req);

	while (ret == WEFT_INPROGRESS && weft_request_test(req, NULL) == WEFT_INPROGRESS &&
	       sys_seconds() < end)
		weft_worker_progress(p->worker);
	if (ret == WEFT_INPROGRESS)
		weft_request_free(req);
}

static void close_ep(struct peer *p, bool flush)
{
	while (p->num_more)
		close_one(p, p->more[--p->num_more], flush);
	close_one(p, p->ep, flush);
	p->ep = NULL;
}

/*
 * The orderly end. The first barrier: no side closes before both have all data. The second: no side
 * leaves before the flush of the other is acknowledged.
 */
static int end_together(struct peer *p)
{
	int ret;

	/* The peer may have passed the barrier, and close, before this end has passed it. */
	p->closing = true;
	ret = p->ep ? peer_barrier(p) : APP_OK;
	if (ret)
		return ret;
	if (p->ep)
		close_ep(p, true);
	if (p->oob && p->worker)
		oob_barrier(p->oob, CLOSE_SECONDS, peer_idle, p);
	return APP_OK;
}

static void print_counter(const char *name, uint64_t value, void *arg)
{
	(void)arg;
	if (value != 0)
		fprintf(stderr, "  %-44s %llu\n", name, (unsigned long long)value);
}

int peer_end(struct peer *p, int exit_code)
{
	if (!exit_code)
		exit_code = p->exit_code;
	if (!exit_code)
		exit_code = end_together(p);
	/* Send the message text before the lanes go down, so that the peer can print the reason. */
	if (p->oob)
		oob_bye(p->oob, exit_code, exit_code ? cli_last_error() : "");
	p->closing = true;
	if (p->opts->counters && p->worker) {
		fprintf(stderr, "%s: counters\n", cli_program);
		weft_worker_counters(p->worker, print_counter, NULL);
	}
	if (p->ep)
		close_ep(p, false);
	weft_worker_destroy(p->worker);
	p->worker = NULL;
	oob_close(p->oob);
	p->oob = NULL;
	weft_context_destroy(p->ctx);
	p->ctx = NULL;
	return exit_code;
}
