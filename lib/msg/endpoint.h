/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/endpoint.h
 * The boundary to the connection layer: lifetime and failure of the message half, flush, and the
 * status that an application receives for an operation that a lane could not carry out.
 */
#ifndef WEFT_MSG_ENDPOINT_H
#define WEFT_MSG_ENDPOINT_H

#include "msg/state.h"

/** Free the message half. Only weft_msg_ep_release() and a failed weft_msg_ep_init() call this. */
void weft_msg_ep_destroy(struct weft_msg_ep *me);

/** Help texts of the message layer's counters, except those of stalls and of modules. */
extern const struct weft_lane_counter weft_msg_counter_help[];

/* weft_ep_events.fail(), fail_later(): the endpoint fails, now or at the end of progress. */
void weft_msg_fail(struct weft_msg_ep *me, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void weft_msg_fail_later(struct weft_msg_ep *me, int status, const char *why);

static inline void weft_msg_ep_release(struct weft_msg_ep *me)
{
	/* A send whose buffer a lane still holds is in me->ops, and refers to the endpoint. */
	if (--me->refs == 0 && TAILQ_EMPTY(&me->ops))
		weft_msg_ep_destroy(me);
}

/**
 * The state of a module for an endpoint, if struct weft_msg_ep has no field for it. @return the
 * place of its pointer; NULL = no memory, which does not occur after a call for this endpoint that
 * succeeded
 */
void **weft_module_own(struct weft_msg_ep *me, const struct weft_module *module);

/* ------------------------------------------------------------------ lifetime, progress */

/** @return 0; -ENOMEM; -EINVAL: more than WEFT_MODULES_MAX modules; or a module's error */
int weft_msg_worker_init(struct weft_worker *worker);
/** End all receives, and drop stored messages; sends end when the lanes close. Callbacks run. */
void weft_msg_worker_stop(struct weft_worker *worker);
/** After the lanes have closed: run the last callbacks, and free the memory. */
void weft_msg_worker_fini(struct weft_worker *worker);
/** @return 0 or -ENOMEM */
int weft_msg_ep_init(struct weft_ep *ep);
/**
 * As weft_msg_ep_failed(), unless it was called before; afterwards the ep may be freed. Complete
 * unexpected messages can still be received.
 */
void weft_msg_ep_fini(struct weft_ep *ep, int status);
/**
 * The ep went UP, or its lanes have changed. The next progress serves queued sends, unless no lane
 * is left.
 * @param credit  what the peer granted; NULL when only lanes changed
 */
void weft_msg_ep_connected(struct weft_ep *ep, const struct weft_wire_credit *credit);
/** The ep's lanes are about to be destroyed: from now on it gives them no operation. */
void weft_msg_ep_down(struct weft_ep *ep);
/**
 * The ep failed: its operations end with @p status, receives of a closing ep with -ECANCELED.
 * Operations that a lane still holds end when the lane returns them. A second call has no effect.
 */
void weft_msg_ep_failed(struct weft_ep *ep, int status);
/**
 * Run callbacks that were put off, and serve the queues of endpoints. Called once per progress,
 * after the lanes. @return number of events
 */
unsigned int weft_msg_progress(struct weft_worker *worker);
/**
 * Is there work to do at once?
 * @param[in,out] soon  set to true if queues wait for something that no event may report: progress
 *   must be called again after a short sleep
 */
bool weft_msg_busy(const struct weft_worker *worker, bool *soon);
void weft_msg_report_counters(struct weft_worker *worker, weft_lane_counter_cb cb, void *arg);

/* ------------------------------------------------------------------ flush */

/**
 * Call done(arg, status) when the peer's lanes have acknowledged everything that was posted on the
 * ep before, and remote reads, writes and atomics are over. Only on a closing endpoint done() waits
 * also for the data of rendezvous, and for the match of synchronous sends.
 * @return 0 = done() will be called, WEFT_LANE_IDLE = nothing was outstanding, or an error
 */
int weft_msg_ep_flush(struct weft_ep *ep, void (*done)(void *arg, int status), void *arg);

/** To be called when sends have ended, or queues are shorter: continues flushes that waited. */
void weft_flush_check(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ status of lanes' operations */

/**
 * Translate the status that a driver passes to weft_lane_comp.done() into one for the application.
 * For operations that a key permits, weft_lane_key_status() does this.
 *
 * @param me      the operation's endpoint
 * @param status  the driver's, 0 or a negative errno value
 * @return 0, or a status that weft.h defines
 */
int weft_lane_status(const struct weft_msg_ep *me, int status);

/** weft_lane_status() for a remote read, write or atomic operation that a lane executes. */
int weft_lane_key_status(const struct weft_msg_ep *me, int status);

#endif /* WEFT_MSG_ENDPOINT_H */
