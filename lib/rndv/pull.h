/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/pull.h
 * Which bytes a receiver requests next, and over which lane.
 */
#ifndef WEFT_RNDV_PULL_H
#define WEFT_RNDV_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_fetch;
struct weft_msg_ep;
struct weft_msg_worker;
struct weft_pull_range;

/** Receiver: queue a fetch of which nothing has been requested. */
void weft_rndv_pull_add(struct weft_fetch *f);
/** Receiver: request pieces as long as there is room. @return number of pieces requested */
unsigned int weft_rndv_pump(struct weft_msg_worker *mw);
bool weft_rndv_pull_requested(struct weft_fetch *f, uint64_t off, uint64_t len);
/**
 * Bytes for which weft_rndv_pull_requested() is true have come, for the first time. @return true:
 * all bytes of their PULL have come
 */
bool weft_rndv_pull_came(struct weft_fetch *f, uint64_t off, uint64_t len);
/** Receiver: a native read has ended. If not @p good, its bytes are requested again if needed. */
void weft_rndv_pull_read(struct weft_pull_range *a, bool good);
/** The fetch is over: cancel everything outstanding, except native reads (f->reads). */
void weft_rndv_pull_end(struct weft_fetch *f);
/**
 * Length of the next native write, of the @p rest bytes at @p off: about weft_stripe_part(), at
 * most @p max. A small remainder is included; otherwise the write ends at the lane's alignment,
 * unless it would become less than half as long.
 */
size_t weft_rndv_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t off, uint64_t rest,
		       size_t max);
/**
 * The endpoint's lanes are up, or have changed. Set their windows, find their ports, and insert the
 * endpoint into the list of those that may request. Waiting pulls of the peer leave dead lanes.
 */
void weft_rndv_ep_lanes(struct weft_msg_ep *me);
/** The endpoint has failed: remove it from the queues, so that it requests nothing more. */
void weft_rndv_ep_fail(struct weft_msg_ep *me);

#endif /* WEFT_RNDV_PULL_H */
