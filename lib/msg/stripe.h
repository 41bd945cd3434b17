/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/stripe.h
 * Striping one operation over several lanes: which lane gets the next piece, and the loop that
 * hands pieces over. Multi-eager, rendezvous data, puts, gets and their replies all use it; pulls
 * use its weft_stripe_pick() (rndv/pull.c).
 *
 * A piece goes to the lane that will be done with it first. The estimate is outstanding bytes /
 * measured rate + latency, plus the time by which the lane is late already (msg/state.h). A
 * lane takes no more than its window: measured rate x (two round trips + 1 ms), at least 64 KiB, at
 * most WEFT_RNDV_WINDOW. A put or get that only one lane can do has no window but the device's.
 */
#ifndef WEFT_STRIPE_H
#define WEFT_STRIPE_H

#include "msg/state.h"

/** Input of the choice of a lane. */
struct weft_pick {
	uint32_t lanes;    /**< lanes that may carry the piece */
	uint32_t full;     /**< those of them without room now */
	enum weft_dir dir; /**< direction of the data */
	uint64_t len;      /**< approximate length of the next piece */
	uint64_t left;     /**< bytes left of the operation, including this piece */
};

/** weft_stripe_pick() for more than one lane. */
int weft_stripe_pick_of(struct weft_msg_ep *me, const struct weft_pick *p);

/**
 * The lane that will be done with the next piece first. If that lane is full, another one gets the
 * piece only in two cases: it will be done little later than the full one, or before the others
 * could finish everything that is left. Otherwise the slowest lane would delay the end of each
 * message. Equal lanes alternate. @return -1 = none now
 */
static inline int weft_stripe_pick(struct weft_msg_ep *me, const struct weft_pick *p)
{
	if ((p->lanes & (p->lanes - 1)) == 0)
		return p->lanes & ~p->full ? __builtin_ctz(p->lanes) : -1;
	return weft_stripe_pick_of(me, p);
}

/**
 * The number of bytes, of @p left, to give to a lane at a time. It is a quarter of the lane's
 * window, towards the end at most its share by its rate, and at least rndv_min_piece.
 */
uint64_t weft_stripe_part(const struct weft_msg_ep *me, uint32_t lanes, enum weft_dir dir,
			  unsigned int lane, uint64_t left);

/** Lane @p lane of @p me had no room: from now on its acknowledgements measure its rate. */
void weft_stripe_full(struct weft_msg_ep *me, unsigned int lane);
/**
 * The lane has taken a message, or (@p full) had no room: update l->room by the bytes in flight.
 */
static inline void weft_lane_took(struct weft_msg_lane *l, bool full)
{
	uint32_t queued = l->lane_ep->queued;

	if (queued != 0 && (full || (l->room != 0 && queued > l->room)))
		l->room = queued;
	if (l->room > l->room_most)
		l->room_most = l->room;
}
/** While lanes are full (me->tx_full): measure how much has been acknowledged. */
void weft_stripe_measure(struct weft_msg_ep *me);
/**
 * No message waits for room any more: end the measurement, because acknowledgements now depend on
 * what is sent.
 */
void weft_stripe_measure_end(struct weft_msg_ep *me);

/**
 * Hand over bytes [req->send.offset, end) over @p lanes.
 * @param piece  gives at most @p rest bytes at @p off to a lane. @return how many; 0 = the
 *   operation needs no more; -EAGAIN = the lane has no room; or an error
 * @return 0 all is handed over, or no more is needed; -EAGAIN; or piece's error
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
			/*
			 * A lane that fails reports this by an event; until then it appears full.
			 */
			weft_stripe_full(me, (unsigned int)lane);
			p.full |= 1u << lane;
		} else {
			return (int)rc;
		}
	}
	return 0;
}

/* ------------------------------------------------------------------ native operations */

/** A native operation in progress: a put, a get, an atomic, a rendezvous' write. */
struct weft_native {
	SLIST_ENTRY(weft_native) link;
	struct weft_lane_comp comp;
	struct weft_request *req;
	uint64_t offset, length;
	uint64_t given; /**< ns */
	uint8_t lane;
	uint8_t dir; /**< enum weft_dir */
};

/** Allocate the state of one native operation of the request. @return NULL = no memory */
struct weft_native *weft_native_new(struct weft_request *req, unsigned int lane, enum weft_dir dir);
/** The worker ends: free the state of all. */
void weft_native_fini(struct weft_msg_worker *mw);
/** The lane did not take the operation: free its state. */
void weft_native_drop(struct weft_native *n);
/** The lane has taken the operation, of @p length bytes at @p offset. */
void weft_native_given(struct weft_native *n, size_t offset, size_t length);
/** The operation has ended: count that the lane has done it, and free its state. */
void weft_native_over(struct weft_native *n, int status);
/** The measured rate of a lane has changed. */
void weft_lane_rated(struct weft_msg_ep *me, unsigned int lane, enum weft_dir dir);

/** Count bytes that a lane writes or reads natively, for statistics of lanes. */
static inline void weft_lane_wrote(struct weft_msg_ep *me, unsigned int lane, size_t length)
{
	if (!me->ep)
		return;
	me->ep->lane_info[lane].tx_bytes += length;
	me->ep->lane_info[lane].tx_msgs++;
}

static inline void weft_lane_read(struct weft_msg_ep *me, unsigned int lane, size_t length)
{
	if (!me->ep)
		return;
	me->ep->lane_info[lane].rx_bytes += length;
	me->ep->lane_info[lane].rx_msgs++;
}

#endif /* WEFT_STRIPE_H */
