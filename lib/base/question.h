/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/question.h
 * A question is a request of another thread for a worker's counters, endpoints, lanes, thresholds
 * or paths. A worker belongs to its own thread, so it writes the answer in its next progress call.
 * With the lock of a worker with WEFT_THREAD_MULTI or WEFT_HEARTBEAT another thread may write the
 * answer (lib/answer.c). Without an answer the requesting thread gives up after at most a second.
 *
 * DPDK's telemetry (engine/telemetry.c) posts questions to workers with raw lanes, the socket of a
 * process (lib/answer.c) to the others. Both have the same commands.
 */
#ifndef WEFT_QUESTION_H
#define WEFT_QUESTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lane_attr.h"

#define WEFT_ANSWER_ENTRIES 250 /**< DPDK's dictionaries hold up to 256 */
#define WEFT_ANSWER_TEXT 128    /**< bytes of a string in DPDK's telemetry */

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
	char text[WEFT_ANSWER_TEXT];
	uint64_t value;
};

struct weft_question {
	/**
	 * The requesting thread sets WEFT_QUESTION_POSTED, and IDLE if it gives up. The thread that
	 * answers sets ANSWERING and then IDLE
	 */
	atomic_uint state;   /* enum weft_question_state */
	atomic_bool leaving; /* the worker is closing, so no thread must wait for an answer */
	uint64_t worker_id;
	struct weft_lane_report report;
	/** Calls @p cb with each line of a WEFT_QUERY_PATHS answer; NULL: no lines. */
	void (*paths)(const void *arg, void (*cb)(const char *text, void *arg), void *cb_arg);
	const void *paths_arg;
	/** NULL: a worker that sleeps is not woken. */
	void (*wake)(void *arg);
	void *wake_arg;
	/* Written by the requesting thread, and only while `state` is IDLE, except `late`. */
	enum weft_question_kind kind;
	char prefix[64];
	bool zeros;
	bool late; /**< the requesting thread's: the last question had no answer in time */
	unsigned int num, left_out;
	struct weft_answer_entry entries[WEFT_ANSWER_ENTRIES];
};

/** @return false: @p report lacks a function that an answer needs */
bool weft_question_init(struct weft_question *q, uint64_t worker_id,
			const struct weft_lane_report *report);

/**
 * Wait for the answer: at most 1 s, or 0.1 s after a question without an answer. Only one thread at
 * a time may call this.
 * @param prefix  beginning of the names of counters; ",all" behind it includes those that are 0
 * @return NULL: the answer is in entries; or the reason why there is none
 */
const char *weft_question_put(struct weft_question *q, enum weft_question_kind kind,
			      const char *prefix);

/** @param id  @p len hexadecimal digits. @return true: the worker's id begins with them */
bool weft_question_is_to(const struct weft_question *q, const char *id, size_t len);

/** To be called by the worker's thread in progress(), or by one with the worker's lock. */
void weft_question_answer(struct weft_question *q);

/** Called by the worker's thread: a thread that waits for an answer gives up. */
static inline void weft_question_leave(struct weft_question *q)
{
	/* Relaxed: the waiting thread checks the flag every millisecond. */
	atomic_store_explicit(&q->leaving, true, memory_order_relaxed);
}

/** @p q may be NULL. */
static inline void weft_question_poll(struct weft_question *q)
{
	/* Relaxed: weft_question_answer() checks again, and acquires the question. */
	if (q && atomic_load_explicit(&q->state, memory_order_relaxed) == WEFT_QUESTION_POSTED)
		weft_question_answer(q);
}

/** The worker checks this after it has set its sleeping flag. NULL: false. */
static inline bool weft_question_is_posted(struct weft_question *q)
{
	return q && atomic_load(&q->state) == WEFT_QUESTION_POSTED;
}

/** @return the job number of the batch system: Slurm, PBS, LSF, ...; "" = none */
const char *weft_question_job(void);

#endif /* WEFT_QUESTION_H */
