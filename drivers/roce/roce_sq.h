/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_sq.h
 * A send queue's places, when its doorbell is rung and which requests request a completion. Pure.
 *
 * Requests are collected and handed to the device in batches: each hand-over costs a doorbell (or,
 * with a software device, a system call). The first on an idle queue goes at once; the others wait
 * until the batch is full or the worker's turn ends. Only the last request of a batch requests a
 * completion, which completes all before it: so no request ever waits for a completion that nobody
 * requested, and a stream costs one completion per batch. Requests whose end somebody waits for by
 * itself (reads, writes, atomics) request their own.
 */
#ifndef WEFT_ROCE_SQ_H
#define WEFT_ROCE_SQ_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_ROCE_BATCH 16 /**< requests per doorbell at most */

struct weft_roce_sq {
	uint32_t depth;  /**< places; a power of 2 */
	uint32_t head;   /**< next request; cumulative */
	uint32_t posted; /**< handed to the device: head - posted are collected */
	uint32_t tail;   /**< first one that is not complete */
};

/** Places left. @p reserve of them are for the caller's last words. */
static inline bool weft_roce_sq_room(const struct weft_roce_sq *sq, uint32_t reserve)
{
	return sq->head - sq->tail + reserve < sq->depth;
}

/** After a request was added: hand over now? @p idle: nothing was under way before it. */
static inline bool weft_roce_sq_ring(const struct weft_roce_sq *sq, bool idle)
{
	return idle || sq->head - sq->posted >= WEFT_ROCE_BATCH;
}

/**
 * A completion of request @p at arrived. @return how many requests are complete with it; 0 = it
 * can't be
 */
static inline uint32_t weft_roce_sq_complete(const struct weft_roce_sq *sq, uint32_t at)
{
	uint32_t n = at + 1 - sq->tail;

	return n <= sq->posted - sq->tail ? n : 0;
}

#endif /* WEFT_ROCE_SQ_H */
