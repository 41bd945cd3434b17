/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_credit.h
 * How many messages may be under way on a queue pair, and which of them the peer has processed.
 * Pure.
 *
 * Every message takes one buffer of the receiver's shared queue. The receiver promises each queue
 * pair a *window* of them, and has at least the sum of all windows posted; a sender has at most a
 * window of messages that it does not know to be processed. So the shared queue never runs dry,
 * whoever sends, and nobody is ever told to wait by the hardware ("receiver not ready").
 *
 * "Processed" is also what the lane's contract calls acknowledged: the hardware's acknowledgement
 * says only that the data lies in the peer's memory.
 */
#ifndef WEFT_ROCE_CREDIT_H
#define WEFT_ROCE_CREDIT_H

#include "roce_wire.h"

struct weft_roce_credit {
	uint32_t sent;       /**< messages handed to the queue pair; cumulative */
	uint32_t acked;      /**< of them, processed by the peer */
	uint32_t window;     /**< that the peer promised */
	uint32_t processed;  /**< messages of the peer whose callback has returned */
	uint32_t told;       /**< of them, the peer was told */
	uint32_t own_window; /**< that the peer has */
};

static inline bool weft_roce_credit_room(const struct weft_roce_credit *c)
{
	return c->sent - c->acked < c->window;
}

enum weft_roce_ack { WEFT_ROCE_ACK_OLD, WEFT_ROCE_ACK_NEW, WEFT_ROCE_ACK_BAD };

/**
 * The peer says that it has processed @p count messages, modulo 2^25. Counts come by two ways and
 * may overtake each other, so an older one is no fault; one beyond what was sent is.
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
	/* At most two windows back: what was processed before the last full window was sent. */
	if (WEFT_ROCE_COUNT_MASK + 1 - ahead <= 2 * WEFT_ROCE_WINDOW_MAX)
		return WEFT_ROCE_ACK_OLD;
	return WEFT_ROCE_ACK_BAD;
}

/**
 * The same by the word that the peer writes, which holds all 32 bits. It may be as old as it likes:
 * while messages tell the count nobody checks the word.
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

/** Must the peer be told now, so that it does not stop for want of credit? */
static inline bool weft_roce_credit_due(const struct weft_roce_credit *c)
{
	return c->processed - c->told >= (c->own_window + 3) / 4;
}

/**
 * The window of a new queue pair: as wanted while few buffers are promised, then ever smaller parts
 * of what is left, so that many peers can connect.
 * @param left  buffers that are not promised to anybody
 * @return window, or 0: no more peers
 */
static inline uint32_t weft_roce_window(uint32_t wanted, uint32_t left)
{
	uint32_t w = left / 256 < wanted ? left / 256 : wanted;

	if (w < 4)
		w = 4;
	/* One more buffer is for the message that ends the lane. */
	return left >= w + 1 ? w : 0;
}

/**
 * Receive buffers that can still be promised: an eighth stays for what is being checked, and what
 * the protocol layer keeps can't be posted. So what is posted covers all promises, however many
 * peers there are.
 */
static inline uint32_t weft_roce_left(uint32_t total, uint32_t promised, uint32_t kept)
{
	uint32_t most = total - total / 8;

	return promised + kept < most ? most - promised - kept : 0;
}

#endif /* WEFT_ROCE_CREDIT_H */
