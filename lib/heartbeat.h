/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file heartbeat.h
 * WEFT_HEARTBEAT: a worker that does not progress, because its owner computes, has its lanes tell
 * their peers that the process lives. So the silence of a process is told from that of its host.
 *
 * One thread of the process looks after all workers. It takes a worker's lock only if nobody has
 * it, and does nothing but call the lanes' beat(): nothing is received, no callback runs. Such
 * workers take their lock in every call, as with WEFT_THREAD_MULTI; there is no cheaper way to know
 * that their owner is not just sending.
 */
#ifndef WEFT_HEARTBEAT_H
#define WEFT_HEARTBEAT_H

struct weft_worker;

/** A worker whose lanes are open. @return 0, or the error of starting the thread */
int weft_heartbeat_add(struct weft_worker *w);
/** Before its lanes are closed. */
void weft_heartbeat_remove(struct weft_worker *w);

#endif /* WEFT_HEARTBEAT_H */
