/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/question.h
 * A question is a request of another thread for a worker's counters, endpoints, lanes, thresholds
 * or paths. A worker belongs to its own thread. So the question is posted, and the worker writes
 * the answer in its next progress call. Only the lock of a worker with WEFT_THREAD_MULTI or
 * WEFT_HEARTBEAT permits another thread to write the answer (lib/answer.c). A worker that does not
 * poll gives no answer, and the requesting thread gives up after at most a second.
 *
 * Two interfaces post questions: DPDK's telemetry (engine/telemetry.c) for workers with raw lanes,
 * and the socket of a process for the other workers (lib/answer.c). Both have the same commands.
 */
#ifndef WEFT_QUESTION_H
#define WEFT_QUESTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lane_attr.h"

#define WEFT_ANSWER_ENTRIES 250 /**< entries of an answer; DPDK's dictionaries hold up to 256 */
#define WEFT_ANSWER_TEXT 128    /**< bytes of a string in DPDK's telemetry, with the zero byte */

enum weft_question_kind {
	WEFT_QUERY_COUNTERS,
	WEFT_QUERY_HELP,
	WEFT_QUERY_ENDPOINTS,
	WEFT_QUERY_LANES,
	WEFT_QUERY_THRESHOLDS,
	WEFT_QUERY_PATHS,
};

enum weft_question_state { WEFT_QUESTION_IDLE, WEFT_QUESTION_POSTED, WEFT_QUESTION_ANSWERING };

struct weft_answer_entry {
	char text[WEFT_ANSWER_TEXT]; /**< name of a counter, or a whole line */
	uint64_t value;
};

struct weft_question {
	/**
	 * The requesting thread sets WEFT_QUESTION_POSTED, and IDLE if it gives up. The thread that
	 * answers sets ANSWERING and then IDLE
	 */
	atomic_uint state;   /* one of enum weft_question_state */
	atomic_bool leaving; /* the worker is closing, so a thread must not wait for an answer */
	uint64_t worker_id;
	struct weft_lane_report report;
	/** Calls @p cb with each line of a WEFT_QUERY_PATHS answer; NULL: there are no lines. */
	void (*paths)(const void *arg, void (*cb)(const char *text, void *arg), void *cb_arg);
	const void *paths_arg;
	/** Wakes a worker that sleeps; NULL: it is not woken. */
	void (*wake)(void *arg);
	void *wake_arg;
	/* The requesting thread may write these only while `state` is IDLE, except `late`. */
	enum weft_question_kind kind;
	char prefix[64];
	bool zeros; /**< include counters that are 0 */
	bool late;  /**< the last question had no answer in time; of the requesting thread */
	unsigned int num, left_out;
	struct weft_answer_entry entries[WEFT_ANSWER_ENTRIES];
};

/** @return false: @p report lacks a function that an answer needs */
bool weft_question_init(struct weft_question *q, uint64_t worker_id,
			const struct weft_lane_report *report);

/**
 * Post a question and wait for the answer: at most a second, or a tenth of that after a question
 * without an answer. Only one thread at a time may call this.
 * @param prefix  beginning of the names of counters; ",all" behind it includes those that are 0
 * @return NULL: the answer is in entries; or the reason why there is none
 */
const char *weft_question_put(struct weft_question *q, enum weft_question_kind kind,
			      const char *prefix);

/** Does the worker's id, in hexadecimal, begin with the @p len digits of @p id? */
bool weft_question_is_to(const struct weft_question *q, const char *id, size_t len);

/** Answer the posted question: the worker's thread in progress(), or one with its lock. */
void weft_question_answer(struct weft_question *q);

/** The worker's thread makes a thread that waits for an answer give up. */
static inline void weft_question_leave(struct weft_question *q)
{
	/* Relaxed: the waiting thread checks the flag every millisecond. */
	atomic_store_explicit(&q->leaving, true, memory_order_relaxed);
}

/** Answer a posted question, if there is one. NULL is allowed. */
static inline void weft_question_poll(struct weft_question *q)
{
	/* Relaxed: weft_question_answer() checks again, and acquires the question. */
	if (q && atomic_load_explicit(&q->state, memory_order_relaxed) == WEFT_QUESTION_POSTED)
		weft_question_answer(q);
}

/** Is a question posted? The worker checks after it has set its sleeping flag. NULL: no. */
static inline bool weft_question_is_posted(struct weft_question *q)
{
	return q && atomic_load(&q->state) == WEFT_QUESTION_POSTED;
}

/** @return the job number that the batch system has set: Slurm, PBS, LSF, ...; "" = none */
const char *weft_question_job(void);

#endif /* WEFT_QUESTION_H */
