/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/credit_pool.h
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
 *
 * In figures, with L = WEFT_UNEXP_LIMIT (64 MiB of bytes; a message for each 256 B of it, 2^18): a
 * floor is 1/2048 of the pool (32 KiB, 128 messages). When all is given out, which takes 512 peers,
 * further ones get 4 KiB and 16 messages each, beyond the limit: a job of 10,000 peers needs a
 * floor for each. A new peer gets up to a 32nd of what is left, at most WEFT_EAGER_CREDIT and 4096
 * messages: of 128 peers the first has 1 MiB and 4096 messages, the last 62 KiB and 251. All
 * windows together are at most L + 4 KiB x peers.
 *
 * What up to 512 hostile peers together can make a worker keep (test/unit/msg/hostile_bench.c):
 *
 *	short and announced messages beyond their windows         WEFT_UNEXP_MEMORY
 *	payload of messages above 256 B, and 200 B beside each    1.85 x L: 118 MiB
 *	short tagged messages and ABORTs, 456 B each              114 MiB
 *	announced messages, 240 B each, 400 B with keys           100 MiB
 *	active messages, short or announced, 790 B each           198 MiB
 *	gaps in messages (WEFT_ISLANDS_LIMIT)                     4 MiB for one peer, 30 MiB +
 *	                                                          15 KiB x peers for all
 *	answers that a peer does not take                         0.8 MiB per peer
 *	answers to gets and fetching atomics, 256 per peer        0.3 KiB each
 *	pulls, 1024 per peer                                      40 B each
 */
#ifndef WEFT_CREDIT_POOL_H
#define WEFT_CREDIT_POOL_H

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
/** @p back of @p window is free again. @return how much of that it does not get again; booked */
uint64_t weft_credit_pool_keep(struct weft_credit_pool *p, uint64_t window, uint64_t back);

#endif /* WEFT_CREDIT_POOL_H */
