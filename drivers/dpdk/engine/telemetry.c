/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/telemetry.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_config.h>
#include <rte_telemetry.h>

#include "compat.h"
#include "engine/ep.h"
#include "engine/iface.h"

#define TEXTS_MAX 15000 /* bytes of all strings of an answer, at most: see struct texts */

struct weft_telemetry {
	struct weft_question question; /* has to be the first member */
	char lane[64];
	LIST_ENTRY(weft_telemetry) link;
};

/* Protects the list, and serialises all requests. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, weft_telemetry) all = LIST_HEAD_INITIALIZER(all);

/* ---- DPDK's side ---------------------------------------------------------------------------- */

/* @return a lane of the only worker whose id begins with @p id, or NULL. The lock is held. */
static struct weft_telemetry *find_worker(const char *id, size_t len)
{
	struct weft_telemetry *t, *found = NULL;

	LIST_FOREACH(t, &all, link) {
		if (!weft_question_is_to(&t->question, id, len))
			continue;
		if (found && found->question.worker_id != t->question.worker_id)
			return NULL;
		found = t;
	}
	return found;
}

static int put_error(struct rte_tel_data *d, const char *text)
{
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "error", text);
	return 0;
}

/* The strings of an answer. DPDK sends 16 KiB at most, and silently omits further bytes. */
struct texts {
	struct rte_tel_data *to;
	size_t room;
	unsigned int left_out;
};

static struct texts texts_begin(struct rte_tel_data *d)
{
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	return (struct texts){.to = d, .room = TEXTS_MAX};
}

static void add_texts(const struct weft_question *q, struct texts *texts)
{
	size_t len;

	texts->left_out += q->left_out;
	for (unsigned int i = 0; i < q->num; i++) {
		len = strlen(q->entries[i].text) + sizeof("\"\", ");
		if (len > texts->room) {
			texts->left_out++;
			continue;
		}
		texts->room -= len;
		rte_tel_data_add_array_string(texts->to, q->entries[i].text);
	}
}

static void texts_end(struct texts *texts)
{
	char text[64];

	if (texts->left_out == 0)
		return;
	snprintf(text, sizeof(text), "%u left out", texts->left_out);
	rte_tel_data_add_array_string(texts->to, text);
}

static void add_counters(const struct weft_question *q, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	for (unsigned int i = 0; i < q->num; i++)
		rte_tel_data_add_dict_uint(d, q->entries[i].text, q->entries[i].value);
	if (q->left_out)
		rte_tel_data_add_dict_uint(d, "left_out", q->left_out);
}

static const char *query_lanes(uint64_t worker_id, struct rte_tel_data *d)
{
	struct texts texts = texts_begin(d);
	struct weft_telemetry *t;
	const char *why;

	LIST_FOREACH(t, &all, link) {
		if (t->question.worker_id != worker_id)
			continue;
		why = weft_question_put(&t->question, WEFT_QUERY_PATHS, "");
		if (why)
			return why;
		add_texts(&t->question, &texts);
	}
	texts_end(&texts);
	return NULL;
}

/* One lane answers for its worker, except about paths. */
static const char *query_one(struct weft_question *q, enum weft_question_kind kind,
			     const char *prefix, struct rte_tel_data *d)
{
	struct texts texts;
	const char *why;

	if (kind == WEFT_QUERY_PATHS)
		return query_lanes(q->worker_id, d);
	why = weft_question_put(q, kind, prefix);
	if (why)
		return why;
	if (kind == WEFT_QUERY_COUNTERS) {
		add_counters(q, d);
		return NULL;
	}
	texts = texts_begin(d);
	add_texts(q, &texts);
	texts_end(&texts);
	return NULL;
}

/* @param params  [WORKER][,PREFIX]: beginnings of the worker's id and of names */
static int handle(enum weft_question_kind kind, const char *params, struct rte_tel_data *d)
{
	const char *comma;
	const char *why =
		"no worker, or more than one, has an id that begins like this: see /weft/workers";
	struct weft_telemetry *t;
	size_t len;

	params = params ? params : "";
	comma = strchr(params, ',');
	len = comma ? (size_t)(comma - params) : strlen(params);
	pthread_mutex_lock(&lock);
	t = find_worker(params, len);
	if (t)
		why = query_one(&t->question, kind, comma ? comma + 1 : "", d);
	pthread_mutex_unlock(&lock);
	return why ? put_error(d, why) : 0;
}

static int on_counters(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return handle(WEFT_QUERY_COUNTERS, params, d);
}

static int on_help_wanted(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return handle(WEFT_QUERY_HELP, params, d);
}

static int on_endpoints(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return handle(WEFT_QUERY_ENDPOINTS, params, d);
}

static int on_lanes(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return handle(WEFT_QUERY_LANES, params, d);
}

static int on_thresholds(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return handle(WEFT_QUERY_THRESHOLDS, params, d);
}

static int on_paths(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return handle(WEFT_QUERY_PATHS, params, d);
}

static int on_workers(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct weft_telemetry *t;
	char text[RTE_TEL_MAX_STRING_LEN];
	unsigned int n = 0;

	(void)cmd;
	(void)params;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	pthread_mutex_lock(&lock);
	LIST_FOREACH(t, &all, link) {
		if (n++ == WEFT_ANSWER_ENTRIES)
			break;
		snprintf(text, sizeof(text), "%016" PRIx64 " %s", t->question.worker_id, t->lane);
		rte_tel_data_add_array_string(d, text);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int on_process(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char text[RTE_TEL_MAX_STRING_LEN];

	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(d);
	snprintf(text, sizeof(text), "%s", weft_version_string());
	rte_tel_data_add_dict_string(d, "version", text);
	snprintf(text, sizeof(text), "%s", program_invocation_short_name);
	rte_tel_data_add_dict_string(d, "program", text);
	snprintf(text, sizeof(text), "%s", weft_question_job());
	rte_tel_data_add_dict_string(d, "job", text);
	return 0;
}

static void register_once(void)
{
	rte_telemetry_register_cmd("/weft/process", on_process,
				   "Version of Weft, the program's name and its job. Takes no "
				   "parameters");
	rte_telemetry_register_cmd("/weft/workers", on_workers,
				   "Lanes of Weft's workers: the worker's id and the lane. "
				   "Takes no parameters");
	rte_telemetry_register_cmd("/weft/endpoints", on_endpoints,
				   "Endpoints of a worker. Parameters: beginning of its id, none "
				   "when there is one worker");
	rte_telemetry_register_cmd("/weft/lanes", on_lanes,
				   "Lanes of a worker, of any driver: state, device, speed, "
				   "latency, frame, address. Parameters: beginning of its id");
	rte_telemetry_register_cmd("/weft/paths", on_paths,
				   "Paths of a worker's raw lanes: round trip, window, frames, "
				   "those sent again, peer. Parameters: beginning of its id");
	rte_telemetry_register_cmd("/weft/thresholds", on_thresholds,
				   "Which protocol carries which sizes now, for each set of "
				   "endpoints with equal lanes. Parameters: beginning of its id");
	rte_telemetry_register_cmd(
		"/weft/counters", on_counters,
		"A worker's counters that are not 0. Parameters: beginning of "
		"its id, beginning of the names wanted, and 'all' for zeros, too");
	rte_telemetry_register_cmd(
		"/weft/help", on_help_wanted,
		"What a worker's counters count, a sentence each. Parameters: as "
		"for /weft/counters, names with '.'");
}

/* ---- lifetime ------------------------------------------------------------------------------- */

static void print_paths(const void *iface, void (*cb)(const char *text, void *arg), void *cb_arg)
{
	raw_paths_print(iface, cb, cb_arg);
}

struct weft_question *weft_telemetry_add(const struct weft_lane_iface *iface,
					 const struct weft_lane_open *open)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct weft_telemetry *t;

	t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	if (!weft_question_init(&t->question, open->worker_id, &open->report)) {
		free(t);
		return NULL;
	}
	t->question.paths = print_paths;
	t->question.paths_arg = iface;
	snprintf(t->lane, sizeof(t->lane), "%s %s", iface->name, iface->attr.device);
	pthread_once(&once, register_once);
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&all, t, link);
	pthread_mutex_unlock(&lock);
	return &t->question;
}

void weft_telemetry_remove(struct weft_question *q)
{
	struct weft_telemetry *t = (struct weft_telemetry *)q;

	if (!t)
		return;
	/* The requesting thread holds the lock; weft_question_leave() ends its wait. */
	weft_question_leave(q);
	pthread_mutex_lock(&lock);
	LIST_REMOVE(t, link);
	pthread_mutex_unlock(&lock);
	free(t);
}
