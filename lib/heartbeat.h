/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file heartbeat.h
 * WEFT_HEARTBEAT: while the owner of a worker computes, the worker makes no progress. Its lanes
 * then send frames to their peers which show that the process is alive. So peers can distinguish a
 * process that computes from a host that is down.
 *
 * One thread of the process serves all workers. It takes a worker's lock only if the lock is free,
 * and does nothing but call the lanes' beat(): nothing is received, no callback runs. Such workers
 * take their lock in every call, as with WEFT_THREAD_MULTI. There is no cheaper test that the owner
 * is not sending at that moment.
 */
#ifndef WEFT_HEARTBEAT_H
#define WEFT_HEARTBEAT_H

struct weft_worker;

/** Add a worker whose lanes are open. @return 0, or the error of starting the thread */
int weft_heartbeat_add(struct weft_worker *w);
/** Remove a worker, before its lanes are closed. */
void weft_heartbeat_remove(struct weft_worker *w);

#endif /* WEFT_HEARTBEAT_H */
