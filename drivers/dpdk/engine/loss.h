/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/loss.h
 * Which frames are lost? RACK's idea, per path: a frame is lost when frames that left later **on
 * the same path** have arrived, several of them, and it has had a round trip's time itself. Two
 * paths never blame each other. Pure.
 */
#ifndef WEFT_LOSS_H
#define WEFT_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/rtt.h"

#define WEFT_LOSS_REORDER 3u      /**< orders that a frame may be late by, at first */
#define WEFT_LOSS_REORDER_MAX 64u /**< grows up to this as retransmissions prove needless */

/** What is known of one path. */
struct weft_loss {
	uint32_t acked;   /**< newest send order known to have arrived */
	uint32_t reorder; /**< threshold in orders */
	bool any;         /**< acked means something */
};

void weft_loss_init(struct weft_loss *l);

/** A retransmission was needless: the first transmission was late, not lost. Be more patient. */
void weft_loss_spurious(struct weft_loss *l);

/**
 * A frame sent as @p order at @p sent has been acknowledged at @p now.
 * @param tries  transmissions of it. When an answer to a repeated frame comes sooner than any
 *               answer ever did, an earlier transmission is what arrived, and nothing is learned
 *               about this order.
 */
static inline void weft_loss_acked(struct weft_loss *l, const struct weft_rtt *r, uint32_t order,
				   unsigned int tries, uint64_t sent, uint64_t now)
{
	if (tries > 1 && now - sent < r->min) {
		weft_loss_spurious(l);
		return;
	}
	if (!l->any || (int32_t)(order - l->acked) > 0) {
		l->acked = order;
		l->any = true;
	}
}

/** How long a frame must have been under way before it can be called lost. */
static inline uint64_t weft_loss_patience(const struct weft_rtt *r)
{
	return (uint64_t)r->srtt + r->srtt / 4;
}

/**
 * Newer frames of its path have arrived and it has not: it is a candidate, and lost once patience
 * is over.
 */
static inline bool weft_loss_suspect(const struct weft_loss *l, uint32_t order)
{
	return l->any && (int32_t)(l->acked - order) >= (int32_t)l->reorder;
}

static inline bool weft_loss_lost(const struct weft_loss *l, const struct weft_rtt *r,
				  uint32_t order, uint64_t sent, uint64_t now)
{
	return weft_loss_suspect(l, order) && now >= sent + weft_loss_patience(r);
}

#endif /* WEFT_LOSS_H */
