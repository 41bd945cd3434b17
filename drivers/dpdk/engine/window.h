/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/window.h
 * How the sender applies the result of congestion control (engine/cc.h): a limit of the bytes in
 * flight on the connection; the time of the next frame, where a window is smaller than a few
 * frames; and requests for immediate acknowledgement.
 *
 * With a fixed window (c->tx.cc NULL) a frame costs only the comparison in raw_window_sent(). With
 * a large window there is one call for each round trip that is sampled.
 */
#ifndef WEFT_ENGINE_WINDOW_H
#define WEFT_ENGINE_WINDOW_H

#include <rte_branch_prediction.h>

#include "engine/cc.h"
#include "engine/conn.h"
#include "frame/frame.h"
#include "lane.h"

/** @return true: only WEFT_WINDOW and the peer's ring limit the bytes in flight */
bool raw_window_fixed(const struct raw_iface *iface);
/**
 * The connection is up: its paths and its frame size are agreed.
 * @param rtt  ns of a round trip, as measured by the handshake; 0 = not known
 * @param ns   of a full frame, as measured; 0 = not known
 * @return 0 or -ENOMEM
 */
int raw_window_init(struct raw_conn *c, uint32_t rtt, float ns);
/** c->path_count is about to grow by one. @return 0 or -ENOMEM */
int raw_window_more(struct raw_conn *c);
void raw_window_free(struct raw_tx *tx);

/**
 * Called when win_bytes are in flight; with pacing, or while lost frames wait, win_bytes is 0.
 * @return true: a frame may leave now
 */
bool raw_window_paced(struct raw_conn *c);
/** The rest of raw_window_sent(), once c->tx.cc_left is used up. */
uint16_t raw_window_ack_req(struct raw_conn *c, uint8_t path, uint32_t bytes);
/**
 * A frame of @p bytes leaves over @p path. @return WEFT_FRAME_F_ACK_REQ or 0, for its header.
 * While windows are large this is one comparison.
 */
static inline uint16_t raw_window_sent(struct raw_conn *c, uint8_t path, uint32_t bytes)
{
	c->tx.cc_left -= (int32_t)bytes;
	return likely(c->tx.cc_left >= 0) ? 0 : raw_window_ack_req(c, path, bytes);
}

/** A frame of the peer arrived with a congestion mark: the next ACKs report it. */
void raw_window_marked(struct raw_conn *c, const struct weft_frame_view *v);
/**
 * The peer reports how many frames of this end arrived marked. The reported number may exceed the
 * number sent: marks never count for more bytes than the peer acknowledges.
 */
void raw_window_marks(struct raw_conn *c, const struct weft_frame_ecn *ecn);
/** A frame that was taken for lost is acknowledged before it was retransmitted. */
void raw_window_found(struct raw_tx *tx, struct raw_slot *slot);
/**
 * An acknowledgement was processed that has a round trip, or the window holds frames back. Other
 * acknowledgements only add their bytes to c->tx.cc_acked, which the next call reports.
 * @param hdr     of the acknowledgement: it names the frame by which @p rtt (ns; 0 = none) was
 * measured
 * @param before  bytes that were in flight
 */
void raw_window_acked(struct raw_conn *c, const struct weft_frame_hdr *hdr, uint32_t rtt,
		      uint32_t before);
/** A frame is lost. It is not in flight until it is retransmitted. */
void raw_window_lost(struct raw_conn *c, struct raw_slot *slot);
/** May a lost frame be retransmitted? If only pacing delays it, lowers @p when to its tx_clock. */
bool raw_window_again(const struct raw_tx *tx, uint64_t tx_clock, uint32_t bytes, uint64_t *when);
/** A frame is retransmitted over slot->path; its previous transmission was over @p before. */
void raw_window_resent(struct raw_conn *c, struct raw_slot *slot, uint8_t before);
/** New frames take other paths than before. */
void raw_window_paths(struct raw_conn *c);
void raw_window_timeout(struct raw_conn *c);
/** After timeouts: all frames before @p ack are acknowledged, and their slots are still in use. */
void raw_window_quiet_over(struct raw_conn *c, uint32_t ack);
void raw_window_idle(struct raw_conn *c);
/** The connection is over: nothing is outstanding any more. */
void raw_window_over(struct raw_conn *c);
/* ---------------------------------------------------------------- what holds frames back */

/** The window is full: a send is refused, until raw_limit_end(). May be called again. */
void raw_limit_begin(struct raw_conn *c);
/** Nothing holds the connection's frames back now, or the connection is over. */
void raw_limit_end(struct raw_conn *c);
/** A send may find room again. */
static inline void raw_window_open(struct raw_conn *c)
{
	c->base.tx_room = true;
	if (unlikely(c->tx.limit != 0))
		raw_limit_end(c);
}

/** Account the time since the last progress call to what held frames back in it. */
void raw_limits_account(struct raw_iface *iface);

static inline void raw_limits_progress(struct raw_iface *iface)
{
	if (iface->share.tx_held != 0)
		iface->counter[RAW_TIME_BUSY] += iface->step;
	if (unlikely(iface->limits.bits != 0))
		raw_limits_account(iface);
}

/** Reports target, window, round trips, marks and losses of a path as counters. */
void raw_window_counters(const struct raw_conn *c, unsigned int path, weft_lane_counter_cb cb,
			 void *arg);
/** Delays of a path, and what cut its window last; "" with a window that does not follow delays. */
void raw_window_delays(const struct raw_tx *tx, unsigned int path, char *buf, size_t size);
/** Writes the state of a path as text for people; "" with a fixed window. */
void raw_window_print(const struct raw_tx *tx, unsigned int path, char *buf, size_t size);

#endif /* WEFT_ENGINE_WINDOW_H */
