/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the socket of a process without raw lanes, and the workers that answer (answer.h). */

#include "answer.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/question.h"
#include "base/text.h"
#include "core/context.h"
#include "core/wait.h"
#include "core/worker.h"
#include "roof.h"

/*
 * Guards the list. The helper thread holds it while it waits for a worker's answer, so that the
 * worker stays.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Serialises starting and ending the thread; taken before `lock`. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, weft_worker) workers = LIST_HEAD_INITIALIZER(workers);

/* ---- commands ------------------------------------------------------------------------------- */

struct command {
	const char *name;
	/* @p params  text after the first comma, or "" */
	void (*write)(const struct command *c, const char *params, struct weft_json *j);
	enum weft_question_kind kind; /* of those for a worker */
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

/* @return the worker whose id begins with @p id, if it is the only one. Under the lock. */
static struct weft_worker *find(const char *id, size_t len)
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
	const char *why = "no worker has this id, or several have: see /weft/workers";
	const char *comma = strchr(params, ',');
	struct weft_worker *w;

	pthread_mutex_lock(&lock);
	w = find(params, comma ? (size_t)(comma - params) : strlen(params));
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

/* A refusal is one text, any other answer a dictionary. */
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
	char text[512];

	(void)c;
	(void)params;
	if (weft_recorder_write("requested by weft-info", text, sizeof(text)))
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

size_t weft_answer_write(const char *command, char out[WEFT_ANSWER_SIZE])
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

/* ---- workers -------------------------------------------------------------------------------- */

/* There is a question for the worker. Helper thread. */
static void wake(void *arg)
{
	struct weft_worker *w = arg;

	if (!w->multi) {
		weft_wait_nudge(w);
		return;
	}
	/*
	 * Only a try: a thread that has the lock may wait for an application's lock, or answers in
	 * its progress call.
	 */
	if (!weft_lock_try(&w->lock))
		return;
	if (!w->in_progress)
		weft_question_answer(w->question);
	weft_worker_unlock_armed(w);
}

/* A worker with raw lanes answers on DPDK's telemetry socket. */
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
	weft_answer_forget();
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
	q->wake = wake;
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
		rc = first ? weft_answer_listen(w->id, why, sizeof(why)) : 0;
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
	/* The helper thread holds the lock; weft_question_leave() ends its wait for this worker. */
	weft_question_leave(w->question);
	pthread_mutex_lock(&life);
	pthread_mutex_lock(&lock);
	LIST_REMOVE(w, answers);
	last = LIST_EMPTY(&workers);
	pthread_mutex_unlock(&lock);
	if (last)
		weft_answer_stop();
	pthread_mutex_unlock(&life);
	free(w->question);
	w->question = NULL;
}
