/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_sq.h
 * The places of a send queue: when its doorbell is rung, and which requests are signaled. Pure.
 *
 * Requests are collected and posted to the device in batches, because each post costs a doorbell
 * (or, with a software device, a system call). The first request on an idle queue is posted at
 * once; the others wait until the batch is full or the worker's progress call ends. Only the last
 * request of a batch is signaled, and its completion completes all before it. So every request is
 * covered by a completion, and a stream costs one completion per batch. Requests with a completion
 * callback of their own (reads, writes, atomics) are signaled, too.
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

/** Are places left? @p reserve of them are kept for BYE and counts. */
static inline bool weft_roce_sq_room(const struct weft_roce_sq *sq, uint32_t reserve)
{
	return sq->head - sq->tail + reserve < sq->depth;
}

/** After a request was added: post now? @p idle: nothing was outstanding before it. */
static inline bool weft_roce_sq_ring(const struct weft_roce_sq *sq, bool idle)
{
	return idle || sq->head - sq->posted >= WEFT_ROCE_BATCH;
}

/**
 * A completion of request @p at has arrived. @return the number of requests that it completes; 0 =
 * it is invalid
 */
static inline uint32_t weft_roce_sq_complete(const struct weft_roce_sq *sq, uint32_t at)
{
	uint32_t n = at + 1 - sq->tail;

	return n <= sq->posted - sq->tail ? n : 0;
}

#endif /* WEFT_ROCE_SQ_H */
