/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wait.h
 * Waiting without spinning; and the heartbeat of workers whose owners compute.
 *
 * A worker that waits has one epoll descriptor, which contains
 *  - the descriptor of each lane that can wake its owner (lane.h, wait_fd()),
 *  - a timer, set to the earliest of: the times that lanes' arm() and the connections request, the
 *    next poll of lanes that cannot wake the worker, and the caller's own deadline,
 *  - an eventfd for weft_worker_signal() and other threads' calls.
 *
 * States: *awake*, *armed*. weft_worker_arm() first checks for signals, callbacks that are due, and
 * events of each lane. The worker is armed only if there are none. Any later event makes the epoll
 * descriptor readable. The first progress call afterwards, by any thread, disarms the worker.
 *
 * With WEFT_THREAD_MULTI several threads may sleep while others call the worker:
 *  - A thread that posts an operation rouses the sleepers, because the operation may have a
 *    deadline of its own.
 *  - A progress call that handles an event rouses them, too, because they may wait for that event.
 *    A call that handles nothing arms the worker again for them.
 *  - A thread that waits while others sleep joins them. It sets the timer to an earlier time if its
 *    deadline requires it.
 *  - Roused sleepers leave one after the other, and the descriptor stays readable until then.
 *    Another thread that is about to sleep first waits until the last of them has left (`left`). It
 *    would otherwise find the same wake-up again, and keep the core that they need.
 *
 * The last roused sleeper that leaves empties the eventfd, and so does arm() when no thread sleeps.
 * So no thread can take the event from another thread that is about to wake.
 */
#ifndef WEFT_LIB_WAIT_H
#define WEFT_LIB_WAIT_H

#include "core/worker.h"

/** Disarm the lanes of an armed worker, when a progress call begins. Locked. */
void weft_wait_disarm(struct weft_worker *w);
/**
 * A progress call that began with an armed worker has found events of its lanes. They count as a
 * lost wake-up if only the timer woke the thread. Locked.
 */
void weft_wait_found(struct weft_worker *w);
/**
 * A progress call that began with an armed worker ends, after @p n events. If @p n is 0 and nothing
 * waits, the lanes are armed again for other threads that sleep. Else the threads are roused. The
 * worker is locked.
 */
void weft_wait_after(struct weft_worker *w, unsigned int n);
/** The iface's descriptor, or a negative error: the iface cannot wake the worker. */
int weft_wait_fd_of(struct weft_lane_iface *iface);
/** The worker is destroyed. The call does nothing if no thread has waited. */
void weft_wait_close(struct weft_worker *w);

/* ------------------------------------------------------------------ heartbeat */

/*
 * WEFT_HEARTBEAT: while the owner of a worker computes, the worker makes no progress. Its lanes
 * then send frames to their peers which show that the process is alive. So peers can distinguish a
 * process that computes from a host that is down.
 *
 * One thread of the process serves all workers. It takes a worker's lock only if the lock is free,
 * and does nothing but call the lanes' beat(): nothing is received, no callback runs. Such workers
 * take their lock in every call, as with WEFT_THREAD_MULTI. There is no cheaper test that the owner
 * is not sending at that moment.
 */

/** Add a worker whose lanes are open. @return 0, or the error of starting the thread */
int weft_heartbeat_add(struct weft_worker *w);
/** Remove a worker, before its lanes are closed. */
void weft_heartbeat_remove(struct weft_worker *w);

#endif /* WEFT_LIB_WAIT_H */
