/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file answer.h
 * The socket over which weft-info queries a process whose workers have no raw lanes, and so no
 * telemetry of DPDK. The socket is answers-ID in the user's folder (base/host.h). It has the
 * same commands and answers as DPDK's telemetry socket (weft(7)).
 *
 *	weft-info -> socket -> helper thread -> question -> worker, in its next progress call
 *	weft-info <- socket <- helper thread <- entries  <-
 *
 * The process has one helper thread while it has such a worker. The thread sleeps in poll(). It
 * reads no worker, but posts questions (base/question.h). They cost the worker one load for each
 * progress call. For a worker with WEFT_THREAD_MULTI or WEFT_HEARTBEAT the helper thread writes the
 * answer itself, under the worker's lock. It only tries to take that lock, and never waits for it.
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
 * A worker was created. If there is no socket (no folder, no thread), the log has the reason, and
 * the worker works without it. Does nothing for workers with raw lanes, and those of a simulator.
 */
void weft_answers_add(struct weft_worker *w);
/** The worker ends. Worker's thread. */
void weft_answers_remove(struct weft_worker *w);

#endif /* WEFT_ANSWER_H */
