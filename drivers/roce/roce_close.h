/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_close.h
 * When a queue pair whose lane has ended may go into the error state. Pure.
 *
 * A queue pair in the error state answers nothing, so an end that leaves too early makes the other
 * one send its last request again and again, until the device gives up: seconds in which its memory
 * and its process can't go. An acknowledgement follows the completion that the peer sees, and is
 * dropped when the queue pair goes into the error state between the two. So neither end leaves at
 * once because of what it has seen of the other alone.
 *
 * Each end says a last word, also in answer to the peer's. It leaves
 *  - at once, when its own is acknowledged and the peer's is here: then both know;
 *  - soon, when one of the two is missing: the peer may not close at all, or is gone already;
 *  - soon, when the peer has never been heard: an attempt to connect that the other end gave up has
 *    nobody to say good-bye to;
 *  - else when the device gives up.
 */
#ifndef WEFT_ROCE_CLOSE_H
#define WEFT_ROCE_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * ns. How long an acknowledgement may be under way inside a device or a machine that is busy; less
 * than the 268 ms after which a request is sent again, so that nothing is sent to who is not there.
 */
#define WEFT_ROCE_LINGER_NS 100000000ull
/** ns. How long one waits for the other's last word, which need not come. */
#define WEFT_ROCE_GRACE_NS 20000000ull

/** Times are ns of the worker's clock; 0 = it has not happened. */
struct weft_roce_close {
	uint64_t begin;    /**< the own last word was handed to the device */
	uint64_t give_up;  /**< the device's patience is over */
	uint64_t acked_at; /**< all own requests have come back */
	uint64_t seen_at;  /**< the peer's last word came */
	/**
	 * something of the peer came, ever: a message, a count, an acknowledgement; or it was sent
	 * messages
	 */
	bool heard;
};

/** May the queue pair go? */
static inline bool weft_roce_close_over(const struct weft_roce_close *c, uint64_t now)
{
	if (now >= c->give_up || (c->acked_at != 0 && c->seen_at != 0))
		return true;
	if (c->acked_at != 0)
		return now - c->acked_at >= WEFT_ROCE_GRACE_NS;
	if (c->seen_at != 0)
		return now - c->seen_at >= WEFT_ROCE_LINGER_NS;
	return !c->heard && now - c->begin >= WEFT_ROCE_LINGER_NS;
}

#endif /* WEFT_ROCE_CLOSE_H */
