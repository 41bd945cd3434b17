/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/stripe.h
 * One operation over several lanes: which lane gets the next piece, and the loop that hands pieces
 * over. Multi-eager, rendezvous data, puts, gets and their answers all go through it; pulls take
 * its weft_stripe_pick() (rndv/pull.c).
 *
 * A piece goes to the lane that is done with it soonest: outstanding bytes / measured rate +
 * latency, and the time by which the lane is late already (msg/lane_load.h). A lane takes no more
 * than its window: measured rate x (two round trips + 1 ms), at least 64 KiB, at most
 * WEFT_RNDV_WINDOW. A put or get that only one lane can do has no window but the device's.
 */
#ifndef WEFT_STRIPE_H
#define WEFT_STRIPE_H

#include "msg/endpoint.h"

/** Which lane? */
struct weft_pick {
	uint32_t lanes;    /**< that may carry it */
	uint32_t full;     /**< of these, the ones without room now */
	enum weft_dir dir; /**< the data's */
	uint64_t len;      /**< of the next piece, about */
	uint64_t left;     /**< of the operation, this piece included */
};

/** weft_stripe_pick() for more than one lane. */
int weft_stripe_pick_of(struct weft_msg_ep *me, const struct weft_pick *p);

/**
 * The lane that is done with the next piece soonest. When that one is full, another gets it only if
 * it is done little later than the full one would be, or before the others would have finished
 * everything that is left without it; or the slowest lane would keep the end of each message for
 * itself. Equal lanes take turns. @return -1 = none now
 */
static inline int weft_stripe_pick(struct weft_msg_ep *me, const struct weft_pick *p)
{
	if ((p->lanes & (p->lanes - 1)) == 0)
		return p->lanes & ~p->full ? __builtin_ctz(p->lanes) : -1;
	return weft_stripe_pick_of(me, p);
}

/**
 * How much of @p left bytes shall a lane be given at a time? A quarter of its window, but towards
 * the end no more than its share by its rate; at least WEFT_RNDV_MIN_PIECE.
 */
uint64_t weft_stripe_part(const struct weft_msg_ep *me, uint32_t lanes, enum weft_dir dir,
			  unsigned int lane, uint64_t left);

/** Lane @p lane of @p me had no room: from now on its messages show how fast it is. */
void weft_stripe_full(struct weft_msg_ep *me, unsigned int lane);
/** The lane has taken something, or (@p full) had no room: see how much it has under way. */
static inline void weft_lane_took(struct weft_msg_lane *l, bool full)
{
	uint32_t queued = l->lane_ep->queued;

	if (queued != 0 && (full || (l->room != 0 && queued > l->room)))
		l->room = queued;
	if (l->room > l->room_most)
		l->room_most = l->room;
}
/** While lanes were full (me->tx_full): see what has been acknowledged. */
void weft_stripe_measure(struct weft_msg_ep *me);
/** Nothing waits for room any more: what is under way says little. */
void weft_stripe_measure_end(struct weft_msg_ep *me);

/**
 * Hand over bytes [req->send.offset, end) over @p lanes.
 * @param piece  gives at most @p rest bytes at @p off to a lane. @return how many; 0 = the
 * operation wants no more; -EAGAIN = the lane has no room; or an error
 * @return 0 all is handed over, or no more is wanted; -EAGAIN; or piece's error
 */
static inline __attribute__((always_inline)) int weft_stripe(
	struct weft_request *req, uint32_t lanes, enum weft_dir dir, size_t end,
	ssize_t (*piece)(struct weft_request *req, unsigned int lane, size_t off, size_t rest))
{
	struct weft_msg_ep *me = req->me;
	struct weft_pick p = {.lanes = lanes, .dir = dir};

	while (req->send.offset < end) {
		ssize_t rc;
		int lane;

		p.left = end - req->send.offset;
		p.len = p.left < 4096 ? p.left : 4096;
		lane = weft_stripe_pick(me, &p);
		if (lane < 0)
			return -EAGAIN;
		rc = piece(req, (unsigned int)lane, req->send.offset, p.left);
		if (rc > 0) {
			me->last_lane[dir] = (uint8_t)lane;
			req->send.offset += (size_t)rc;
		} else if (rc == -EAGAIN) {
			/* A lane that fails says so by an event; until then it has no room. */
			weft_stripe_full(me, (unsigned int)lane);
			p.full |= 1u << lane;
		} else {
			return (int)rc;
		}
	}
	return 0;
}

/* ------------------------------------------------------------------ native operations */

/** A native operation under way: a put, a get, an atomic, a rendezvous' write. */
struct weft_native {
	SLIST_ENTRY(weft_native) link;
	struct weft_lane_comp comp;
	struct weft_request *req;
	uint64_t offset, length;
	uint64_t given; /**< ns */
	uint8_t lane;
	uint8_t dir; /**< enum weft_dir */
};

/**
 * A place for one native operation of the request. @return NULL = no memory
 */
struct weft_native *weft_native_new(struct weft_request *req, unsigned int lane, enum weft_dir dir);
/** The worker ends. */
void weft_native_fini(struct weft_msg_worker *mw);
/** The lane did not take it. */
void weft_native_drop(struct weft_native *n);
/** The lane has taken @p length bytes at @p offset. */
void weft_native_given(struct weft_native *n, size_t offset, size_t length);
/** It has ended: the lane is done with it, and the place is free. */
void weft_native_over(struct weft_native *n, int status);
/** The load of a lane has another rate. */
void weft_lane_rated(struct weft_msg_ep *me, unsigned int lane, enum weft_dir dir);

#endif /* WEFT_STRIPE_H */
