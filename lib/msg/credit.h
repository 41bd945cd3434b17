/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/credit.h
 * How much of a worker's unexpected memory each peer may use: a *window* for each, a *pool* for
 * all. There is one pool of payload bytes and one of messages (msg/credit.c says what counts in
 * which).
 *
 * Each peer has a floor that nobody takes from it, and a quarter of the pool is kept for the floors
 * of peers that are still to come. A new peer gets a part of what is left, an active one more: its
 * window doubles when it has used half of it, up to twice of what is left then. What has been told
 * cannot be taken back, but what comes back is kept while the pool is nearly empty and the window
 * larger than its even share. So peers that stand still keep what they had, and those that work
 * share the rest.
 */
#ifndef WEFT_CREDIT_H
#define WEFT_CREDIT_H

#include <stdint.h>

struct weft_credit_pool {
	uint64_t limit;   /**< of all windows together, as long as there are floors for all */
	uint64_t granted; /**< windows, and what ended endpoints have left behind */
	uint64_t floor;   /**< of each window */
	uint64_t least;   /**< what a peer gets when the pool has nothing left: beyond the limit */
	uint64_t first;   /**< a new window is at most this */
	uint64_t max;     /**< and no window ever more */
	uint32_t peers;
};

/** @p least > 0 */
void weft_credit_pool_init(struct weft_credit_pool *p, uint64_t limit, uint64_t least,
			   uint64_t first, uint64_t max);
/** A new peer. @return its window */
uint64_t weft_credit_pool_join(struct weft_credit_pool *p);
/** It is gone, with its window. */
void weft_credit_pool_leave(struct weft_credit_pool *p, uint64_t window);
/** The peer has used half of @p window. @return how much more it gets; booked */
uint64_t weft_credit_pool_grow(struct weft_credit_pool *p, uint64_t window);
/** @p back of @p window is free again. @return how much of that it does not get anew; booked */
uint64_t weft_credit_pool_keep(struct weft_credit_pool *p, uint64_t window, uint64_t back);

#endif /* WEFT_CREDIT_H */
