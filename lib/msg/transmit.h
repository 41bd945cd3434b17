/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/transmit.h
 * Sends pieces of messages and control messages: over which lane, by which call, at which length,
 * and from which memory.
 */
#ifndef WEFT_MSG_TRANSMIT_H
#define WEFT_MSG_TRANSMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "msg/state.h"

/** The longest piece after a header of @p hdr_len that the lane takes of this request; 0 = none */
size_t weft_tx_piece_max(const struct weft_request *req, unsigned int lane, size_t hdr_len);
/**
 * Send bytes [off, off + len) on one lane, by the most suitable call. @return 0; the pack
 * callback's error; -EAGAIN: the lane has no room, or fails, which an event reports
 */
int weft_tx_piece(struct weft_request *req, unsigned int lane, uint8_t id, const void *hdr,
		  size_t hdr_len, size_t off, size_t len);
/** The length of the next piece: @p max, or less for alignment or to avoid a tiny last piece. */
size_t weft_tx_cut(const struct weft_msg_ep *me, size_t off, size_t rest, size_t max, size_t align);
/**
 * Request one more completion of @p req, when the lane has delivered all that it has got so far. A
 * lane with nothing outstanding gives none.
 * @return 0, or -EAGAIN: the lane has no room. Errors go to the request's status.
 */
int weft_tx_flush_lane(struct weft_request *req, struct weft_lane_ep *lane_ep);

/* ------------------------------------------------------------------ control messages */

/**
 * Send a control message now or as soon as a lane has room. Without memory the endpoint fails at
 * the end of progress. No effect if the endpoint has failed.
 */
void weft_tx_ctl(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length);
#define WEFT_TX_ANY_LANE (-1)
/**
 * weft_tx_ctl() over lane @p lane, for a message that is valid only after earlier messages of that
 * lane. If that lane is down or takes no message of this length, any lane may carry it.
 */
void weft_tx_ctl_on(struct weft_msg_ep *me, int lane, uint8_t id, const void *data, size_t length);
/** Send control messages that wait, and CREDIT if it is due. @return number sent, without CREDIT */
unsigned int weft_tx_serve_ctl(struct weft_msg_ep *me);
void weft_tx_drop_ctl(struct weft_msg_ep *me);
/** Send a message without payload on one lane. @return 0 or -EAGAIN */
int weft_tx_envelope(struct weft_msg_ep *me, unsigned int lane, uint8_t id, const void *data,
		     size_t length);
/**
 * weft_tx_envelope() on the lowest-latency lane if it has room, else on any lane that has.
 * @return 0; -EAGAIN: no lane has room, or the endpoint is not up
 */
int weft_tx_envelope_any(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length);

/* ------------------------------------------------------------------ load of a lane */

/**
 * Each lane of a connected endpoint has its loads from here on. Endpoints with several lanes have
 * them from the start.
 * @return 0 or -ENOMEM
 */
int weft_lane_loads(struct weft_msg_ep *me);

/** Set the nominal @p per_byte and @p latency (s), and drop measured values. l->out stays. */
void weft_load_init(struct weft_lane_load *l, float per_byte, float latency);

/**
 * The rate or the round trip has changed: set the window, at most @p max, but not less than 64 KiB
 * unless @p max is the limit.
 * @param rtt_ns  a value below l->min_rtt_ns replaces it; any other, or 0 (unknown), raises it by
 *   1/1024
 */
void weft_load_set_window(struct weft_lane_load *l, uint32_t rtt_ns, uint64_t max, uint64_t now);

/**
 * @p bytes are done, or (@p good false) have failed. @param given  time when the lane got them, ns
 * @return true when the rate has changed
 */
bool weft_load_done(struct weft_lane_load *l, uint64_t bytes, bool good, uint64_t given,
		    uint64_t now);

/* ------------------------------------------------------------------ striping */

/*
 * Striping one operation over several lanes: which lane gets the next piece, and the loop that
 * hands pieces over. Multi-eager, rendezvous data, puts, gets and their replies all use it; pulls
 * use its weft_stripe_pick() (rndv/pull.c).
 *
 * A piece goes to the lane that will be done with it first. The estimate is outstanding bytes /
 * measured rate + latency, plus the time by which the lane is late already (msg/state.h).
 *
 * A lane takes messages while it has room. Of pulls, native reads and native writes it takes no
 * more than its window; an idle lane takes one in any case. A remote put or get that only one lane
 * can do has no window.
 *
 * The window is measured rate x (two measured round trips + twice the latency + 1 ms), of which the
 * 1 ms adds at most 1 MiB. The window is at least 64 KiB, at most WEFT_RNDV_WINDOW.
 */

/** Input of the choice of a lane. */
struct weft_pick {
	uint32_t lanes;    /**< lanes that may carry the piece */
	uint32_t full;     /**< those of `lanes` without room now */
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
 * The number of bytes, of @p left, to give to a lane at a time: a quarter of the lane's window, at
 * most 256 KiB, at most the lane's share by its rate. The result is never below rndv_min_piece.
 */
uint64_t weft_stripe_part(const struct weft_msg_ep *me, uint32_t lanes, enum weft_dir dir,
			  unsigned int lane, uint64_t left);

/** Lane @p lane had no room: if messages are in flight, acknowledgements measure its rate now. */
void weft_stripe_full(struct weft_msg_ep *me, unsigned int lane);
/** The lane has taken a message, or (@p full) has no room: update l->room by what is in flight. */
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
/** No message waits for room any more: acknowledgements depend on what is sent. End measuring. */
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
			/* A failed lane reports this by an event; until then it appears full. */
			weft_stripe_full(me, (unsigned int)lane);
			p.full |= 1u << lane;
		} else {
			return (int)rc;
		}
	}
	return 0;
}

/* ------------------------------------------------------------------ native operations */

/** A native operation in progress: a part of a put, a get or a rendezvous' write, or an atomic. */
struct weft_native {
	SLIST_ENTRY(weft_native) link;
	struct weft_lane_comp comp;
	struct weft_request *req;
	uint64_t offset, length;
	uint64_t given; /**< time when the lane took it, ns */
	uint8_t lane;
	uint8_t dir; /**< enum weft_dir */
};

/** Allocate the state of one native operation of the request. @return NULL = no memory */
struct weft_native *weft_native_new(struct weft_request *req, unsigned int lane, enum weft_dir dir);
/** The worker ends: release the memory of operations that are over. */
void weft_native_fini(struct weft_msg_worker *mw);
/** The lane did not take the operation: free its state. */
void weft_native_drop(struct weft_native *n);
/** The lane has taken the operation, of @p length bytes at @p offset. */
void weft_native_given(struct weft_native *n, size_t offset, size_t length);
/** The operation has ended: its bytes are no longer outstanding. Frees its state. */
void weft_native_over(struct weft_native *n, int status);
/** The measured rate or round trip of a lane has changed: set its window, if the lane is up. */
void weft_lane_rated(struct weft_msg_ep *me, unsigned int lane, enum weft_dir dir);

/** Count a native write, or read, of @p length bytes in the statistics of its lane. */
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

#endif /* WEFT_MSG_TRANSMIT_H */
