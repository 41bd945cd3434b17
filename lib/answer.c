/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket of a process without raw lanes: its commands, its clients and the helper thread, and
 * the workers that answer (answer.h).
 */

#include "answer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "base/question.h"
#include "base/text.h"
#include "base/thread.h"
#include "context.h"
#include "core/worker.h"
#include "dispatch.h"
#include "weft.h"

/*
 * Guards the list. The helper thread holds it while it waits for a worker's answer, so that the
 * worker is not freed.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Serialises starting and ending the thread; taken before `lock`. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, weft_worker) workers = LIST_HEAD_INITIALIZER(workers);

/* ------------------------------------------------------------------ commands */

struct command {
	const char *name;
	/* @p params  text after the first comma, or "" */
	void (*write)(const struct command *c, const char *params, struct weft_json *j);
	enum weft_question_kind kind; /* for write_answer(); other commands query no worker */
	enum weft_json_kind json;
};

static void write_process(const struct command *c, const char *params, struct weft_json *j)
{
	(void)c;
	(void)params;
	weft_json_text(j, "version", weft_version_string());
	weft_json_text(j, "program", program_invocation_short_name);
	weft_json_text(j, "job", weft_question_job());
}

/* The loopback is listed only if it is the only lane. */
static void write_lanes(const struct weft_worker *w, struct weft_json *j)
{
	const struct weft_lane_iface *iface;
	char text[160];

	for (unsigned int i = 0; i < w->num_ifaces; i++) {
		iface = w->ifaces[i];
		if (iface->attr.features & WEFT_LANE_F_LOOPBACK && w->num_ifaces > 1)
			continue;
		snprintf(text, sizeof(text), "%016" PRIx64 " %s %s", w->id, iface->name,
			 iface->attr.device);
		weft_json_text(j, NULL, text);
	}
}

static void write_workers(const struct command *c, const char *params, struct weft_json *j)
{
	const struct weft_worker *w;

	(void)c;
	(void)params;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(w, &workers, answers)
		write_lanes(w, j);
	pthread_mutex_unlock(&lock);
}

/* The caller has `lock`. @return the worker whose id begins with @p id; NULL: none, or several */
static struct weft_worker *find_worker(const char *id, size_t len)
{
	struct weft_worker *w, *found = NULL;

	LIST_FOREACH(w, &workers, answers) {
		if (!weft_question_is_to(w->question, id, len))
			continue;
		if (found)
			return NULL;
		found = w;
	}
	return found;
}

static void write_entries(const struct weft_question *q, struct weft_json *j)
{
	for (unsigned int i = 0; i < q->num; i++)
		if (j->kind == WEFT_JSON_DICT)
			weft_json_number(j, q->entries[i].text, q->entries[i].value);
		else
			weft_json_text(j, NULL, q->entries[i].text);
	j->left_out += q->left_out;
}

/* @p params  [WORKER][,PREFIX[,all]] */
static void write_answer(const struct command *c, const char *params, struct weft_json *j)
{
	const char *why =
		"no worker, or more than one, has an id that begins like this: see /weft/workers";
	const char *comma = strchr(params, ',');
	struct weft_worker *w;

	pthread_mutex_lock(&lock);
	w = find_worker(params, comma ? (size_t)(comma - params) : strlen(params));
	if (w)
		why = weft_question_put(w->question, c->kind, comma ? comma + 1 : "");
	if (!why)
		write_entries(w->question, j);
	pthread_mutex_unlock(&lock);
	if (!why)
		return;
	/* An error is a dictionary for each command, as in the answers of DPDK's telemetry. */
	weft_json_begin(j, j->out, WEFT_ANSWER_SIZE, c->name, strlen(c->name), WEFT_JSON_DICT);
	weft_json_text(j, "error", why);
}

/* A part of the answer to a capture command: a refusal is one text, without a name. */
static void on_part(const char *name, const char *text, uint64_t number, void *arg)
{
	struct weft_json *j = arg;

	if (!name)
		j->kind = WEFT_JSON_TEXT;
	if (!name && j->out[j->len - 1] == '{')
		j->len--; /* the brace of the dictionary, which was opened in advance */
	if (text)
		weft_json_text(j, name, text);
	else
		weft_json_number(j, name, number);
}

static void write_capture(const struct command *c, const char *params, struct weft_json *j)
{
	const struct weft_lane_tap_ops *ops = weft_drivers_tap();

	(void)c;
	if (ops)
		ops->command(params, on_part, j);
	else
		on_part(NULL, "this build writes no captures: it has no DPDK", 0, j);
}

static void write_recorder(const struct command *c, const char *params, struct weft_json *j)
{
	const struct weft_lane_tap_ops *ops = weft_drivers_tap();
	char text[512] = "this build has no flight recorder";

	(void)c;
	(void)params;
	if (!ops || ops->record_command("requested by weft-info", text, sizeof(text)))
		on_part(NULL, text, 0, j);
	else
		on_part("file", text, 0, j);
}

static const struct command commands[] = {
	{"/weft/process", write_process, 0, WEFT_JSON_DICT},
	{"/weft/workers", write_workers, 0, WEFT_JSON_ARRAY},
	{"/weft/counters", write_answer, WEFT_QUERY_COUNTERS, WEFT_JSON_DICT},
	{"/weft/help", write_answer, WEFT_QUERY_HELP, WEFT_JSON_ARRAY},
	{"/weft/endpoints", write_answer, WEFT_QUERY_ENDPOINTS, WEFT_JSON_ARRAY},
	{"/weft/lanes", write_answer, WEFT_QUERY_LANES, WEFT_JSON_ARRAY},
	{"/weft/paths", write_answer, WEFT_QUERY_PATHS, WEFT_JSON_ARRAY},
	{"/weft/thresholds", write_answer, WEFT_QUERY_THRESHOLDS, WEFT_JSON_ARRAY},
	{"/weft/capture", write_capture, 0, WEFT_JSON_DICT},
	{"/weft/recorder", write_recorder, 0, WEFT_JSON_DICT},
};

static size_t answer_command(const char *command, char out[WEFT_ANSWER_SIZE])
{
	size_t len = strcspn(command, ",");
	const char *params = command[len] ? command + len + 1 : "";
	struct weft_json j;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *c = &commands[i];

		if (strlen(c->name) != len || memcmp(c->name, command, len))
			continue;
		weft_json_begin(&j, out, WEFT_ANSWER_SIZE, command, len, c->json);
		c->write(c, params, &j);
		return weft_json_end(&j);
	}
	weft_json_begin(&j, out, WEFT_ANSWER_SIZE, command, len, WEFT_JSON_TEXT);
	return weft_json_end(&j);
}

/* ------------------------------------------------------------------ socket */

#define BACKLOG 16
#define SWEEP_AGE_S 60
#define COMMAND_MAX 1024

static struct {
	int fd; /* -1 = none; does not change while the thread runs */
	struct sockaddr_un name;
	pthread_t thread;
	atomic_bool ending;
	int clients[WEFT_ANSWER_CLIENTS];
	unsigned int num;
	char out[WEFT_ANSWER_SIZE];
} server = {.fd = -1};

/* ---- the helper thread ---------------------------------------------------------------------- */

static bool is_allowed(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* @return false: the client is gone, or does not read its answers; it is to be disconnected */
static bool reply_client(int fd, size_t len)
{
	return send(fd, server.out, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/* Send the first message, in the form of DPDK's telemetry socket. */
static bool greet_client(int fd)
{
	int len = snprintf(server.out, sizeof(server.out),
			   "{\"version\":\"Weft %s\",\"pid\":%d,\"max_output_len\":%d}",
			   weft_version_string(), (int)getpid(), WEFT_ANSWER_SIZE);

	return reply_client(fd, (size_t)len);
}

static void take_client(void)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	int fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && is_allowed(fd) && greet_client(fd))
		server.clients[server.num++] = fd;
	else if (fd >= 0)
		close(fd);
	else if (errno != EAGAIN && errno != ECONNABORTED && !atomic_load(&server.ending))
		nanosleep(&pause, NULL); /* no descriptors or no memory: poll() returns at once */
}

static bool serve_client(int fd)
{
	char command[COMMAND_MAX + 1];
	ssize_t n = recv(fd, command, COMMAND_MAX, MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	command[n] = '\0';
	return reply_client(fd, answer_command(command, server.out));
}

/* In the helper thread, since many sockets of dead processes would delay the program's start. */
static void sweep_sockets(void)
{
	char folder[sizeof(server.name.sun_path)];

	memcpy(folder, server.name.sun_path, sizeof(folder));
	*strrchr(folder, '/') = '\0';
	weft_sockets_sweep(folder, WEFT_ANSWERS_PREFIX, SWEEP_AGE_S);
}

static void *run_server(void *arg)
{
	struct pollfd fds[1 + WEFT_ANSWER_CLIENTS];
	unsigned int i, num;

	(void)arg;
	sweep_sockets();
	while (!atomic_load(&server.ending)) {
		num = server.num;
		fds[0] = (struct pollfd){.fd = server.fd, .events = POLLIN};
		if (num == WEFT_ANSWER_CLIENTS)
			/* accept nothing: only shutdown() by stop_server() ends the poll */
			fds[0].events = 0;
		for (i = 0; i < num; i++)
			fds[1 + i] = (struct pollfd){.fd = server.clients[i], .events = POLLIN};
		if (poll(fds, 1 + num, -1) < 0)
			continue;
		for (i = num; i-- > 0;) {
			if (!fds[1 + i].revents || serve_client(server.clients[i]))
				continue;
			close(server.clients[i]);
			server.clients[i] = server.clients[--server.num];
		}
		if (fds[0].revents & POLLIN)
			take_client();
	}
	while (server.num > 0)
		close(server.clients[--server.num]);
	return NULL;
}

/* ---- lifetime ------------------------------------------------------------------------------- */

static int server_failed(char *why, size_t why_len)
{
	int error = errno;

	snprintf(why, why_len, "%s: %s", server.name.sun_path, strerror(error));
	if (server.fd >= 0)
		close(server.fd);
	server.fd = -1;
	return -error;
}

static int open_socket(unsigned long long id, char *why, size_t why_len)
{
	char folder[WEFT_USER_FOLDER];
	int rc = weft_user_folder_find(folder, why, why_len);

	if (rc < 0)
		return rc;
	server.name = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(server.name.sun_path, sizeof(server.name.sun_path),
		 "%s/" WEFT_ANSWERS_PREFIX "%016llx", folder, id);
	server.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server.fd < 0 ||
	    bind(server.fd, (struct sockaddr *)&server.name, sizeof(server.name)) < 0)
		return server_failed(why, why_len);
	if (listen(server.fd, BACKLOG) == 0)
		return 0;
	rc = server_failed(why, why_len);
	unlink(server.name.sun_path);
	return rc;
}

static int start_server(unsigned long long id, char *why, size_t why_len)
{
	int rc = open_socket(id, why, why_len);

	if (rc < 0)
		return rc;
	atomic_store(&server.ending, false);
	rc = weft_thread_start("weft-answers", run_server, NULL, NULL, &server.thread);
	if (rc == 0)
		return 0;
	errno = -rc;
	unlink(server.name.sun_path);
	return server_failed(why, why_len);
}

static void stop_server(void)
{
	atomic_store(&server.ending, true);
	shutdown(server.fd, SHUT_RDWR); /* poll() returns */
	pthread_join(server.thread, NULL);
	close(server.fd);
	server.fd = -1;
	unlink(server.name.sun_path);
}

static void forget_server(void)
{
	while (server.num > 0)
		close(server.clients[--server.num]);
	if (server.fd >= 0)
		close(server.fd);
	server.fd = -1;
}

/* ------------------------------------------------------------------ workers */

/* Called by the helper thread when a question is posted, and again until it is answered. */
static void wake_worker(void *arg)
{
	struct weft_worker *w = arg;

	if (!w->multi) {
		weft_wait_nudge(w);
		return;
	}
	/* Only a try: the thread with the lock may wait for an application's lock, or answer. */
	if (!weft_lock_try(&w->lock))
		return;
	if (!w->in_progress)
		weft_question_answer(w->question);
	weft_worker_unlock_armed(w);
}

static bool has_raw_lanes(const struct weft_worker *w)
{
	for (unsigned int i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i]->driver->captures)
			return true;
	return false;
}

static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&life, NULL);
	LIST_INIT(&workers);
	forget_server();
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static struct weft_question *new_question(struct weft_worker *w)
{
	struct weft_question *q = aligned_alloc(64, (sizeof(*q) + 63) / 64 * 64);
	const struct weft_lane_report report = weft_worker_report(w);

	if (!q)
		return NULL;
	weft_question_init(q, w->id, &report);
	q->wake = wake_worker;
	q->wake_arg = w;
	return q;
}

void weft_answers_add(struct weft_worker *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char why[320] = "no memory";
	int rc = -ENOMEM;
	bool first;

	if (w->ctx->platform != &weft_platform_host || has_raw_lanes(w))
		return;
	pthread_once(&once, register_fork);
	w->question = new_question(w);
	if (w->question) {
		pthread_mutex_lock(&life);
		pthread_mutex_lock(&lock);
		first = LIST_EMPTY(&workers);
		LIST_INSERT_HEAD(&workers, w, answers);
		pthread_mutex_unlock(&lock);
		rc = first ? start_server(w->id, why, sizeof(why)) : 0;
		if (rc < 0)
			LIST_REMOVE(w, answers); /* no thread uses the list */
		pthread_mutex_unlock(&life);
	}
	if (rc == 0)
		return;
	free(w->question);
	w->question = NULL;
	weft_info("weft-info can't query this process: %s", why);
}

void weft_answers_remove(struct weft_worker *w)
{
	bool last;

	if (!w->question)
		return;
	/* weft_question_leave() ends the wait of the helper thread, which may hold the lock. */
	weft_question_leave(w->question);
	pthread_mutex_lock(&life);
	pthread_mutex_lock(&lock);
	LIST_REMOVE(w, answers);
	last = LIST_EMPTY(&workers);
	pthread_mutex_unlock(&lock);
	if (last)
		stop_server();
	pthread_mutex_unlock(&life);
	free(w->question);
	w->question = NULL;
}
