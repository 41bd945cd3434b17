/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_credit.h
 * The credit of a queue pair: the number of outstanding messages, and which of them the peer has
 * processed. Pure.
 *
 * Every message takes one buffer of the receiver's shared queue. The receiver promises each queue
 * pair a *window* of buffers, and has at least the sum of all windows posted. A sender has at most
 * a window of messages that the receiver has not reported as processed. So the shared queue is
 * never empty, and the hardware never delays a sender ("receiver not ready").
 *
 * "Processed" is "acknowledged" in the contract of lanes: the acknowledgement of the hardware means
 * only that the data are in the peer's memory.
 */
#ifndef WEFT_ROCE_CREDIT_H
#define WEFT_ROCE_CREDIT_H

#include "roce_wire.h"

struct weft_roce_credit {
	uint32_t sent;       /**< messages handed to the queue pair; cumulative */
	uint32_t acked;      /**< of them, processed by the peer */
	uint32_t window;     /**< promised by the peer */
	uint32_t processed;  /**< messages of the peer whose callback has returned */
	uint32_t reported;   /**< of them, reported to the peer */
	uint32_t own_window; /**< promised to the peer */
};

static inline bool weft_roce_credit_room(const struct weft_roce_credit *c)
{
	return c->sent - c->acked < c->window;
}

enum weft_roce_ack { WEFT_ROCE_ACK_OLD, WEFT_ROCE_ACK_NEW, WEFT_ROCE_ACK_BAD };

/**
 * The peer reports that it has processed @p count messages, modulo 2^25. Counts arrive in messages
 * and in the word, and may overtake each other. So an older count is no error; a count beyond the
 * number of sent messages is.
 */
static inline enum weft_roce_ack weft_roce_credit_ack(struct weft_roce_credit *c, uint32_t count)
{
	uint32_t ahead = (count - c->acked) & WEFT_ROCE_COUNT_MASK;

	if (ahead == 0)
		return WEFT_ROCE_ACK_OLD;
	if (ahead <= c->sent - c->acked) {
		c->acked += ahead;
		return WEFT_ROCE_ACK_NEW;
	}
	/* An old count is at most two windows back: it preceded the last full window. */
	if (WEFT_ROCE_COUNT_MASK + 1 - ahead <= 2 * WEFT_ROCE_WINDOW_MAX)
		return WEFT_ROCE_ACK_OLD;
	return WEFT_ROCE_ACK_BAD;
}

/**
 * The same for the word that the peer writes, which has all 32 bits. It may be arbitrarily old:
 * while messages carry the count, the word is not read.
 */
static inline enum weft_roce_ack weft_roce_credit_word(struct weft_roce_credit *c, uint32_t count)
{
	int32_t ahead = (int32_t)(count - c->acked);

	if (ahead <= 0)
		return WEFT_ROCE_ACK_OLD;
	if ((uint32_t)ahead > c->sent - c->acked)
		return WEFT_ROCE_ACK_BAD;
	c->acked = count;
	return WEFT_ROCE_ACK_NEW;
}

/** Is a report to the peer due, so that it does not run out of credit? */
static inline bool weft_roce_credit_due(const struct weft_roce_credit *c)
{
	return c->processed - c->reported >= (c->own_window + 3) / 4;
}

/**
 * The window of a new queue pair: as configured while few buffers are promised, later smaller and
 * smaller parts of what is left, so that many peers can connect.
 * @param left  buffers that are not promised to any peer
 * @return window, or 0: no more peers
 */
static inline uint32_t weft_roce_window(uint32_t wanted, uint32_t left)
{
	uint32_t w = left / 256 < wanted ? left / 256 : wanted;

	if (w < 4)
		w = 4;
	/* One more buffer is for BYE. */
	return left >= w + 1 ? w : 0;
}

/**
 * Receive buffers that can still be promised. An eighth is reserved for buffers that are being
 * processed, and buffers that the protocol layer keeps can't be posted. So posted buffers cover all
 * windows, for any number of peers.
 */
static inline uint32_t weft_roce_left(uint32_t total, uint32_t promised, uint32_t kept)
{
	uint32_t most = total - total / 8;

	return promised + kept < most ? most - promised - kept : 0;
}

#endif /* WEFT_ROCE_CREDIT_H */
