/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/loss.h
 * Loss detection as in RACK, for each path: a frame is lost when it has been in flight for a round
 * trip and several later frames **of the same path** have arrived. Frames of other paths do not
 * count. Pure.
 */
#ifndef WEFT_LOSS_H
#define WEFT_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/rtt.h"

#define WEFT_LOSS_REORDER 3u      /**< frames sent later that may overtake, at first */
#define WEFT_LOSS_REORDER_MAX 64u /**< the limit, which grows with each needless retransmission */

/** The state of one path. */
struct weft_loss {
	uint32_t acked;   /**< newest send order known to have arrived */
	uint32_t reorder; /**< threshold in orders */
	bool any;         /**< acked is valid */
};

void weft_loss_init(struct weft_loss *l);

/**
 * A retransmission was needless, as the first transmission was late and not lost: raise the
 * threshold.
 */
void weft_loss_spurious(struct weft_loss *l);

/**
 * A frame sent as @p order at @p sent has been acknowledged at @p now.
 * @param tries  its transmissions. If a retransmitted frame is answered sooner than any frame ever
 *   was, an earlier transmission has arrived, and the answer is no evidence about this order.
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

/** @return ns that a frame must have been in flight before it can be lost */
static inline uint64_t weft_loss_timeout(const struct weft_rtt *r)
{
	return (uint64_t)r->srtt + r->srtt / 4;
}

/**
 * Newer frames of its path have arrived and this one has not: it is lost once weft_loss_timeout()
 * has passed.
 */
static inline bool weft_loss_suspect(const struct weft_loss *l, uint32_t order)
{
	return l->any && (int32_t)(l->acked - order) >= (int32_t)l->reorder;
}

static inline bool weft_loss_lost(const struct weft_loss *l, const struct weft_rtt *r,
				  uint32_t order, uint64_t sent, uint64_t now)
{
	return weft_loss_suspect(l, order) && now >= sent + weft_loss_timeout(r);
}

#endif /* WEFT_LOSS_H */
