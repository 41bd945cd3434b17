/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests on DPDK's telemetry socket (engine/telemetry.h). */

#include "engine/telemetry.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include <rte_config.h>
#include <rte_telemetry.h>

#include "compat.h"
#include "engine/ep.h"
#include "engine/iface.h"

#define ENTRIES_MAX 250  /* of a dictionary or an array of DPDK, with some reserve */
#define TEXTS_MAX 15000  /* bytes of all strings of an answer */
#define PATIENCE_MS 1000 /* wait for a worker that does not poll */

enum question { COUNTERS, HELP, ENDPOINTS, LANES, THRESHOLDS, PATHS };

struct entry {
	char text[RTE_TEL_MAX_STRING_LEN]; /* the name, or the whole text */
	uint64_t value;
};

struct weft_telemetry {
	struct weft_telemetry_ask ask; /* first */
	atomic_bool leaving;           /* the worker waits to close: no more requests */
	uint64_t worker_id;
	struct weft_lane_report report;
	const struct raw_iface *iface;
	char lane[64];
	LIST_ENTRY(weft_telemetry) link;
	/*
	 * The request and its answer. The worker's while state is not IDLE, else DPDK's thread's.
	 */
	enum question question;
	char prefix[64];
	bool zeros; /* include counters that are 0 */
	unsigned int num, left_out;
	struct entry entries[ENTRIES_MAX];
};

/* Protects the list, and serialises all requests. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, weft_telemetry) all = LIST_HEAD_INITIALIZER(all);

/* ---- the worker's side ---------------------------------------------------------------------- */

static struct entry *new_entry(struct weft_telemetry *t)
{
	if (t->num == ENTRIES_MAX) {
		t->left_out++;
		return NULL;
	}
	return &t->entries[t->num++];
}

/*
 * A scraper needs zeros as well: the first loss is a change from 0 to 1. A PMD may have hundreds of
 * counters, of which only those above 0 are reported.
 */
static void on_counter(const char *name, uint64_t value, void *arg)
{
	struct weft_telemetry *t = arg;
	struct entry *e;

	if (strncmp(name, t->prefix, strlen(t->prefix)))
		return;
	if (value == 0 && !(t->zeros && t->report.help(name)))
		return;
	e = new_entry(t);
	if (!e)
		return;
	/* Names in DPDK have less than 64 bytes, and only letters, digits, '_' and '/'. */
	snprintf(e->text, sizeof(e->text), "%.63s", name);
	for (char *p = e->text; *p; p++)
		if (*p == '.')
			*p = '/';
		else if (*p != '/' && !(*p >= '0' && *p <= '9') &&
			 !((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z'))
			*p = '_';
	e->value = value;
}

static void on_text(const char *text, void *arg)
{
	struct entry *e = new_entry(arg);

	if (!e)
		return;
	if ((size_t)snprintf(e->text, sizeof(e->text), "%s", text) >= sizeof(e->text))
		memcpy(e->text + sizeof(e->text) - sizeof("..."), "...", sizeof("..."));
}

/* Counters of a PMD have no help text. */
static void on_help(const char *name, uint64_t value, void *arg)
{
	struct weft_telemetry *t = arg;
	const char *help;
	char text[256];

	(void)value;
	if (strncmp(name, t->prefix, strlen(t->prefix)))
		return;
	help = t->report.help(name);
	if (!help)
		return;
	snprintf(text, sizeof(text), "%s: %s", name, help);
	on_text(text, t);
}

static void answer(struct weft_telemetry *t)
{
	switch (t->question) {
	case COUNTERS:
		t->report.counters(t->report.arg, on_counter, t);
		break;
	case HELP:
		t->report.counters(t->report.arg, on_help, t);
		break;
	case ENDPOINTS:
		t->report.endpoints(t->report.arg, on_text, t);
		break;
	case LANES:
		t->report.lanes(t->report.arg, on_text, t);
		break;
	case THRESHOLDS:
		t->report.thresholds(t->report.arg, on_text, t);
		break;
	case PATHS:
		raw_paths_print(t->iface, on_text, t);
		break;
	}
}

void weft_telemetry_answer(struct weft_telemetry *t)
{
	unsigned int asked = WEFT_TELEMETRY_ASKED;

	/* Acquires the request. Its thread may have timed out in the meantime. */
	if (!atomic_compare_exchange_strong(&t->ask.state, &asked, WEFT_TELEMETRY_ANSWERING))
		return;
	t->num = t->left_out = 0;
	answer(t);
	/* Release: the answer is complete before the requesting thread reads it. */
	atomic_store_explicit(&t->ask.state, WEFT_TELEMETRY_IDLE, memory_order_release);
}

/* ---- DPDK's side ---------------------------------------------------------------------------- */

static unsigned int state_of(struct weft_telemetry *t)
{
	return atomic_load_explicit(&t->ask.state, memory_order_acquire);
}

/* Under the lock. @return true: there is an answer */
static bool wait_for_answer(struct weft_telemetry *t)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	unsigned int asked = WEFT_TELEMETRY_ASKED;
	int i;

	for (i = 0; i < PATIENCE_MS; i++) {
		if (state_of(t) == WEFT_TELEMETRY_IDLE)
			return true;
		if (atomic_load_explicit(&t->leaving, memory_order_relaxed))
			break;
		nanosleep(&ms, NULL);
	}
	/* Withdraw the request, so that it is not answered while the next one is posted. */
	return !atomic_compare_exchange_strong(&t->ask.state, &asked, WEFT_TELEMETRY_IDLE) &&
	       asked == WEFT_TELEMETRY_IDLE;
}

/* @return the worker whose id begins with @p id, if it is the only one. Under the lock. */
static struct weft_telemetry *find(const char *id, size_t len)
{
	struct weft_telemetry *t, *found = NULL;
	char text[24];

	LIST_FOREACH(t, &all, link) {
		snprintf(text, sizeof(text), "%016" PRIx64, t->worker_id);
		if (strncmp(text, id, len))
			continue;
		if (found && found->worker_id != t->worker_id)
			return NULL;
		found = t;
	}
	return found;
}

static int say(struct rte_tel_data *d, const char *text)
{
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "error", text);
	return 0;
}

/* Under the lock. @return NULL, or the reason why there is no answer */
static const char *put(struct weft_telemetry *t, enum question question, const char *prefix)
{
	/* A worker that was stopped in the middle of the last answer still writes there. */
	if (state_of(t) != WEFT_TELEMETRY_IDLE)
		return "the worker has not finished its last answer";
	t->question = question;
	t->zeros = strchr(prefix, ',') && !strcmp(strchr(prefix, ','), ",all");
	snprintf(t->prefix, sizeof(t->prefix), "%.*s", (int)strcspn(prefix, ","), prefix);
	atomic_store_explicit(&t->ask.state, WEFT_TELEMETRY_ASKED, memory_order_release);
	if (!wait_for_answer(t))
		return "the worker has not polled for a second, or is closing";
	return NULL;
}

/* The strings of an answer. DPDK sends 16 KiB, and silently omits the rest. */
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

static void add_texts(const struct weft_telemetry *t, struct texts *texts)
{
	size_t len;

	texts->left_out += t->left_out;
	for (unsigned int i = 0; i < t->num; i++) {
		len = strlen(t->entries[i].text) + sizeof("\"\", ");
		if (len > texts->room) {
			texts->left_out++;
			continue;
		}
		texts->room -= len;
		rte_tel_data_add_array_string(texts->to, t->entries[i].text);
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

static void add_counters(const struct weft_telemetry *t, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	for (unsigned int i = 0; i < t->num; i++)
		rte_tel_data_add_dict_uint(d, t->entries[i].text, t->entries[i].value);
	if (t->left_out)
		rte_tel_data_add_dict_uint(d, "left_out", t->left_out);
}

/*
 * Each lane of the worker reports its own paths. @return NULL, or the reason why there is no answer
 */
static const char *ask_lanes(uint64_t worker_id, struct rte_tel_data *d)
{
	struct texts texts = texts_begin(d);
	struct weft_telemetry *t;
	const char *why;

	LIST_FOREACH(t, &all, link) {
		if (t->worker_id != worker_id)
			continue;
		why = put(t, PATHS, "");
		if (why)
			return why;
		add_texts(t, &texts);
	}
	texts_end(&texts);
	return NULL;
}

/* One lane answers for its worker. @return NULL, or the reason why there is no answer */
static const char *ask_one(struct weft_telemetry *t, enum question question, const char *prefix,
			   struct rte_tel_data *d)
{
	struct texts texts;
	const char *why;

	if (question == PATHS)
		return ask_lanes(t->worker_id, d);
	why = put(t, question, prefix);
	if (why)
		return why;
	if (question == COUNTERS) {
		add_counters(t, d);
		return NULL;
	}
	texts = texts_begin(d);
	add_texts(t, &texts);
	texts_end(&texts);
	return NULL;
}

/* @p params  [WORKER][,PREFIX] */
static int ask(enum question question, const char *params, struct rte_tel_data *d)
{
	const char *comma, *why = "no worker has this id, or several have: see /weft/workers";
	struct weft_telemetry *t;
	size_t len;

	params = params ? params : "";
	comma = strchr(params, ',');
	len = comma ? (size_t)(comma - params) : strlen(params);
	pthread_mutex_lock(&lock);
	t = find(params, len);
	if (t)
		why = ask_one(t, question, comma ? comma + 1 : "", d);
	pthread_mutex_unlock(&lock);
	return why ? say(d, why) : 0;
}

static int on_counters(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return ask(COUNTERS, params, d);
}

static int on_help_wanted(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return ask(HELP, params, d);
}

static int on_endpoints(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return ask(ENDPOINTS, params, d);
}

static int on_lanes(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return ask(LANES, params, d);
}

static int on_thresholds(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return ask(THRESHOLDS, params, d);
}

static int on_paths(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return ask(PATHS, params, d);
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
		if (n++ == ENTRIES_MAX)
			break;
		snprintf(text, sizeof(text), "%016" PRIx64 " %s", t->worker_id, t->lane);
		rte_tel_data_add_array_string(d, text);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

/* The job number of the batch system, as set by Slurm, PBS, Grid Engine, LSF and PMIx. */
static const char *job(void)
{
	static const char *const variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID",
						"PMIX_NAMESPACE"};
	const char *text = NULL;
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]) && !text; i++)
		text = getenv(variables[i]);
	return text ? text : "";
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
	snprintf(text, sizeof(text), "%s", job());
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

struct weft_telemetry *weft_telemetry_add(const struct weft_lane_iface *iface,
					  const struct weft_lane_open *open)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct weft_telemetry *t;

	if (!open->report.counters || !open->report.help || !open->report.endpoints ||
	    !open->report.lanes || !open->report.thresholds)
		return NULL;
	t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->worker_id = open->worker_id;
	t->report = open->report;
	t->iface = (const struct raw_iface *)iface;
	snprintf(t->lane, sizeof(t->lane), "%s %s", iface->name, iface->attr.device);
	pthread_once(&once, register_once);
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&all, t, link);
	pthread_mutex_unlock(&lock);
	return t;
}

void weft_telemetry_remove(struct weft_telemetry *t)
{
	if (!t)
		return;
	/* The requesting thread holds the lock; `leaving` ends its wait for this worker. */
	atomic_store_explicit(&t->leaving, true, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	LIST_REMOVE(t, link);
	pthread_mutex_unlock(&lock);
	free(t);
}
