/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/credit_pool.h
 * How much of a worker's memory for unexpected messages each peer may use. Each peer has a
 * *window*; all peers share a *pool*. One pool counts payload bytes, another one messages
 * (msg/credit.c defines which message counts in which pool).
 *
 * Each peer has a floor that the pool never takes from it. A quarter of the pool is reserved for
 * the floors of future peers. A new peer gets a part of the remaining pool. An active peer gets
 * more: its window doubles when the peer has used half of it, up to twice the remaining pool.
 * Advertised credit cannot be taken back. Returned credit is not granted again while the pool is
 * nearly empty and the window larger than its even share. So idle peers keep their windows, and
 * active peers share the rest.
 *
 * In figures, with L = WEFT_UNEXP_LIMIT (64 MiB of bytes; one message for each 256 B of it, 2^18):
 * a floor is 1/2048 of the pool (32 KiB, 128 messages). 512 peers exhaust the pool; further peers
 * get 4 KiB and 16 messages each, beyond the limit: a job of 10,000 peers needs a floor for each. A
 * new peer gets up to 1/32 of the remaining pool, at most WEFT_EAGER_CREDIT and 4096 messages. Of
 * 128 peers the first one has 1 MiB and 4096 messages, the last one 62 KiB and 251. All windows
 * together are at most L + 4 KiB x peers.
 *
 * The memory that up to 512 hostile peers together can make a worker use
 * (test/unit/msg/hostile_bench.c):
 *
 *	short and announced messages beyond their windows         WEFT_UNEXP_MEMORY
 *	payload of messages above 256 B, and 200 B for each       1.85 x L: 118 MiB
 *	short tagged messages and ABORTs, 456 B each              114 MiB
 *	announced messages, 240 B each, 400 B with keys           100 MiB
 *	active messages, short or announced, 790 B each           198 MiB
 *	gaps in messages (WEFT_RX_RANGES_LIMIT)                     4 MiB for one peer, 30 MiB +
 *	                                                          15 KiB x peers for all
 *	replies that a peer does not take                         0.8 MiB per peer
 *	replies to gets and fetching atomics, 256 per peer        0.3 KiB each
 *	pulls, 1024 per peer                                      40 B each
 *
* Sequence numbers of received messages of one class (tags, active messages): the next number, and
 * which numbers the peer may send. Pure; numbers wrap.
 */
#ifndef WEFT_CREDIT_POOL_H
#define WEFT_CREDIT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire.h"

struct weft_credit_pool {
	uint64_t limit;   /**< of all windows together, unless peers beyond it need floors */
	uint64_t granted; /**< windows, and messages that ended endpoints have left unmatched */
	uint64_t floor;   /**< the least window of a peer */
	/** the window of a new peer when the pool is exhausted: beyond the limit */
	uint64_t least;
	uint64_t first; /**< the largest window of a new peer */
	uint64_t max;   /**< the largest window of any peer */
	uint32_t peers;
};

/** @p least > 0 */
void weft_credit_pool_init(struct weft_credit_pool *p, uint64_t limit, uint64_t least,
			   uint64_t first, uint64_t max);
/** A new peer. @return its window */
uint64_t weft_credit_pool_join(struct weft_credit_pool *p);
/** The peer is gone: free its window. */
void weft_credit_pool_leave(struct weft_credit_pool *p, uint64_t window);
/** The peer has used half of @p window. @return by how much its window grows; booked */
uint64_t weft_credit_pool_grow(struct weft_credit_pool *p, uint64_t window);
/**
 * The peer could get @p back of @p window again. @return how much of that the pool keeps; booked
 */
uint64_t weft_credit_pool_keep(struct weft_credit_pool *p, uint64_t window, uint64_t back);

struct weft_seq_window {
	uint32_t next;       /**< of the next message in sequence */
	uint32_t advertised; /**< first number not advertised to the peer; at most a window ahead */
};

/**
 * May a message with this number begin now? Smaller numbers are over, larger ones not yet allowed.
 */
static inline bool weft_seq_inside(const struct weft_seq_window *w, uint32_t seq)
{
	return seq - w->next < w->advertised - w->next;
}

/** Is it over already? */
static inline bool weft_seq_old(const struct weft_seq_window *w, uint32_t seq)
{
	return (int32_t)(seq - w->next) < 0;
}

/** The first number that the peer may not use, to be advertised. */
static inline uint32_t weft_seq_end(const struct weft_seq_window *w)
{
	return w->next + WEFT_SEQ_WINDOW;
}

/** Has the window moved enough to advertise it? */
static inline bool weft_seq_due(const struct weft_seq_window *w)
{
	return weft_seq_end(w) - w->advertised >= WEFT_SEQ_WINDOW / 4;
}

#endif /* WEFT_CREDIT_POOL_H */
