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
/** @return number of pieces requested */
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
/** @return length of the next native write: about weft_stripe_part(), and at most @p max */
size_t weft_rndv_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t off, uint64_t rest,
		       size_t max);
/**
 * The worker's limit becomes the sum of the endpoint's windows, if that is greater, but at most
 * WEFT_RNDV_LIMIT. The limit never falls: the rate of one of many senders is not the link's.
 */
void weft_rndv_pull_limit(struct weft_msg_ep *me);
/** The endpoint's lanes are up, or have changed. Waiting pulls of the peer leave dead lanes. */
void weft_rndv_ep_lanes(struct weft_msg_ep *me);
void weft_rndv_ep_fail(struct weft_msg_ep *me);

#endif /* WEFT_RNDV_PULL_H */
