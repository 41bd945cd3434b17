/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/question.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMEOUT_MS 1000 /* longest wait for an answer */
#define LATE_MS 100     /* longest wait, if the last question had no answer in time */
#define WAKE_MS 10      /* between attempts to wake the worker */

/* ---- the worker's side ---------------------------------------------------------------------- */

static struct weft_answer_entry *new_entry(struct weft_question *q)
{
	if (q->num == WEFT_ANSWER_ENTRIES) {
		q->left_out++;
		return NULL;
	}
	return &q->entries[q->num++];
}

/*
 * With `zeros`, counters with a help text are reported at 0, too, because a scraper detects the
 * first loss as a change from 0 to 1. A PMD may have hundreds without a help text.
 */
static void on_counter(const char *name, uint64_t value, void *arg)
{
	struct weft_question *q = arg;
	struct weft_answer_entry *e;

	if (strncmp(name, q->prefix, strlen(q->prefix)))
		return;
	if (value == 0 && !(q->zeros && q->report.help(name)))
		return;
	e = new_entry(q);
	if (!e)
		return;
	/* DPDK permits less than 64 bytes, and only letters, digits, '_' and '/'. */
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
	struct weft_answer_entry *e = new_entry(arg);

	if (!e)
		return;
	if ((size_t)snprintf(e->text, sizeof(e->text), "%s", text) >= sizeof(e->text))
		memcpy(e->text + sizeof(e->text) - sizeof("..."), "...", sizeof("..."));
}

static void on_help(const char *name, uint64_t value, void *arg)
{
	struct weft_question *q = arg;
	const char *help;
	char text[256];

	(void)value;
	if (strncmp(name, q->prefix, strlen(q->prefix)))
		return;
	help = q->report.help(name);
	if (!help)
		return;
	snprintf(text, sizeof(text), "%s: %s", name, help);
	on_text(text, q);
}

static void answer(struct weft_question *q)
{
	switch (q->kind) {
	case WEFT_QUERY_COUNTERS:
		q->report.counters(q->report.arg, on_counter, q);
		break;
	case WEFT_QUERY_HELP:
		q->report.counters(q->report.arg, on_help, q);
		break;
	case WEFT_QUERY_ENDPOINTS:
		q->report.endpoints(q->report.arg, on_text, q);
		break;
	case WEFT_QUERY_LANES:
		q->report.lanes(q->report.arg, on_text, q);
		break;
	case WEFT_QUERY_THRESHOLDS:
		q->report.thresholds(q->report.arg, on_text, q);
		break;
	case WEFT_QUERY_PATHS:
		if (q->paths)
			q->paths(q->paths_arg, on_text, q);
		break;
	}
}

void weft_question_answer(struct weft_question *q)
{
	unsigned int posted = WEFT_QUESTION_POSTED;

	/* The exchange acquires the question, unless the requesting thread has withdrawn it. */
	if (!atomic_compare_exchange_strong(&q->state, &posted, WEFT_QUESTION_ANSWERING))
		return;
	q->num = q->left_out = 0;
	answer(q);
	/* Release: the answer is complete before the requesting thread reads it. */
	atomic_store_explicit(&q->state, WEFT_QUESTION_IDLE, memory_order_release);
}

/* ---- the requesting thread ------------------------------------------------------------------ */

bool weft_question_init(struct weft_question *q, uint64_t worker_id,
			const struct weft_lane_report *report)
{
	if (!report->counters || !report->help || !report->endpoints || !report->lanes ||
	    !report->thresholds)
		return false;
	memset(q, 0, sizeof(*q));
	q->worker_id = worker_id;
	q->report = *report;
	return true;
}

static unsigned int state_of(struct weft_question *q)
{
	return atomic_load_explicit(&q->state, memory_order_acquire);
}

static bool wait_for_answer(struct weft_question *q)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	unsigned int posted = WEFT_QUESTION_POSTED;
	int i, most = q->late ? LATE_MS : TIMEOUT_MS;

	for (i = 0; i < most; i++) {
		if (q->wake && i % WAKE_MS == 0)
			q->wake(q->wake_arg);
		if (state_of(q) == WEFT_QUESTION_IDLE)
			return true;
		if (atomic_load_explicit(&q->leaving, memory_order_relaxed))
			break;
		nanosleep(&ms, NULL);
	}
	/* A withdrawn question is not answered while the next one is posted. */
	return !atomic_compare_exchange_strong(&q->state, &posted, WEFT_QUESTION_IDLE) &&
	       posted == WEFT_QUESTION_IDLE;
}

const char *weft_question_put(struct weft_question *q, enum weft_question_kind kind,
			      const char *prefix)
{
	/* A worker interrupted in its last answer may still write to q->entries. */
	if (state_of(q) != WEFT_QUESTION_IDLE)
		return "the worker has not finished its last answer";
	q->kind = kind;
	q->zeros = strchr(prefix, ',') && !strcmp(strchr(prefix, ','), ",all");
	snprintf(q->prefix, sizeof(q->prefix), "%.*s", (int)strcspn(prefix, ","), prefix);
	/*
	 * Sequentially consistent: either a worker that is about to sleep reads the question, or
	 * wake() reads that the worker sleeps.
	 */
	atomic_store(&q->state, WEFT_QUESTION_POSTED);
	q->late = !wait_for_answer(q);
	return q->late ? "the worker does not answer: it does not poll, or is closing" : NULL;
}

bool weft_question_is_to(const struct weft_question *q, const char *id, size_t len)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, q->worker_id);
	return strncmp(text, id, len) == 0;
}

const char *weft_question_job(void)
{
	static const char *const variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID",
						"PMIX_NAMESPACE"};
	const char *text = NULL;
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]) && !text; i++)
		text = getenv(variables[i]);
	return text ? text : "";
}
