/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_close.h
 * When a queue pair whose lane has ended may go into the error state. Pure.
 *
 * A queue pair in the error state sends no acknowledgements. So if one end leaves too early, the
 * device of the other retransmits its last request until it gives up. For these seconds the other
 * end can neither free its memory nor exit. The hardware sends an acknowledgement only after the
 * receiver's completion, and drops it if the queue pair goes into the error state in between. So an
 * end that has received BYE must not leave at once for that reason alone.
 *
 * Each end sends BYE, also in reply to that of the peer. It leaves
 *  - at once, when its own BYE is acknowledged and the peer's has arrived: both ends have finished;
 *  - soon, when one of the two is missing: the peer may not close at all, or has left already;
 *  - soon, when nothing was ever received from the peer: after a connection attempt that the other
 *    end has abandoned, no peer is left that could acknowledge BYE;
 *  - else when the device gives up.
 */
#ifndef WEFT_ROCE_CLOSE_H
#define WEFT_ROCE_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * ns. Longest delay of an acknowledgement in a busy device or host. It is less than the 268 ms
 * after which a request is retransmitted, so that no retransmission goes to a queue pair that has
 * left.
 */
#define WEFT_ROCE_LINGER_NS 100000000ull
/** ns. Timeout for BYE of the peer, which need not come. */
#define WEFT_ROCE_GRACE_NS 20000000ull

/** Times are ns of the worker's clock; 0 = not yet. */
struct weft_roce_close {
	uint64_t begin;    /**< our BYE was posted */
	uint64_t give_up;  /**< the device gives up */
	uint64_t acked_at; /**< all own requests have completed */
	uint64_t seen_at;  /**< BYE of the peer arrived */
	/**
	 * a message, count or acknowledgement of the peer has arrived; or messages were sent to it
	 */
	bool received;
};

/** May the queue pair go into the error state? */
static inline bool weft_roce_close_over(const struct weft_roce_close *c, uint64_t now)
{
	if (now >= c->give_up || (c->acked_at != 0 && c->seen_at != 0))
		return true;
	if (c->acked_at != 0)
		return now - c->acked_at >= WEFT_ROCE_GRACE_NS;
	if (c->seen_at != 0)
		return now - c->seen_at >= WEFT_ROCE_LINGER_NS;
	return !c->received && now - c->begin >= WEFT_ROCE_LINGER_NS;
}

#endif /* WEFT_ROCE_CLOSE_H */
