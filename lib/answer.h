/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file answer.h
 * The socket over which weft-info queries those workers of a process that have no raw lanes, and so
 * no telemetry of DPDK. The socket is answers-ID in the user's folder (base/host.h). It has the
 * same commands and answers as DPDK's telemetry socket (weft(7)).
 *
 *	weft-info -> socket -> helper thread -> question -> worker, in its next progress call
 *	weft-info <- socket <- helper thread <- entries  <-
 *
 * The process has one helper thread while it has such a worker. The thread sleeps in poll(). It
 * posts questions (base/question.h), which cost the worker one load for each progress call. The
 * worker answers. If it has WEFT_THREAD_MULTI or WEFT_HEARTBEAT and its lock is free, the helper
 * thread takes the lock and writes the answer itself. It never waits for that lock.
 *
 * Clients of the same user and of root can connect: only the user can search the folder, and the
 * kernel reports the user of each client. At most WEFT_ANSWER_CLIENTS are connected; further ones
 * wait in the queue of the socket. The last worker removes the socket. Processes that start later,
 * and weft-info, remove the sockets of killed processes.
 */
#ifndef WEFT_ANSWER_H
#define WEFT_ANSWER_H

#include <stddef.h>

struct weft_worker;
struct weft_json;

#define WEFT_ANSWER_CLIENTS 16
#define WEFT_ANSWER_SIZE 65000 /**< bytes of an answer; weft-info takes 65535 */

/**
 * Let weft-info query a new worker. Has no effect for workers with raw lanes, and for those of a
 * simulator. If the socket or its thread cannot be made, the log has the reason.
 */
void weft_answers_add(struct weft_worker *w);
/** Called before a worker ends, by its thread: its questions end, and the last one the socket. */
void weft_answers_remove(struct weft_worker *w);

#endif /* WEFT_ANSWER_H */
