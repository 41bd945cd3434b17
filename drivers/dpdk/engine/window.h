/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/window.h
 * How the sender applies the result of congestion control (engine/cc.h): a limit of the bytes in
 * flight on the connection; the time of the next frame, where a window is smaller than a few
 * frames; and requests for immediate acknowledgement. With a fixed window, c->tx.cc is NULL.
 */
#ifndef WEFT_ENGINE_WINDOW_H
#define WEFT_ENGINE_WINDOW_H

#include <rte_branch_prediction.h>

#include "engine/cc.h"
#include "engine/conn.h"
#include "frame/frame.h"
#include "lane.h"

/** @return true: the window is constant: there is no congestion control (WEFT_CC) on this port */
bool raw_window_fixed(const struct raw_iface *iface);
/**
 * The connection is up: its paths and its frame size are agreed.
 * @param rtt  ns of a round trip, as measured by the handshake; 0 = not known
 * @param ns   ns that a full frame takes, as measured by the handshake; 0 = not known
 * @return 0 or -ENOMEM
 */
int raw_window_init(struct raw_conn *c, uint32_t rtt, float ns);
/** c->path_count is about to grow by one. @return 0 or -ENOMEM */
int raw_window_more(struct raw_conn *c);
void raw_window_free(struct raw_tx *tx);

/** To be called before a send with win_bytes or more in flight. @return true: a frame may leave */
bool raw_window_paced(struct raw_conn *c);
/** The slow part of raw_window_sent(), when c->tx.cc_left has become negative. */
uint16_t raw_window_ack_req(struct raw_conn *c, uint8_t path, uint32_t bytes);
/** A new frame of @p bytes leaves over @p path. @return WEFT_FRAME_F_ACK_REQ or 0 */
static inline uint16_t raw_window_sent(struct raw_conn *c, uint8_t path, uint32_t bytes)
{
	c->tx.cc_left -= (int32_t)bytes;
	return likely(c->tx.cc_left >= 0) ? 0 : raw_window_ack_req(c, path, bytes);
}

/** A frame of the peer arrived with a congestion mark (CE): the next ACKs report the mark. */
void raw_window_marked(struct raw_conn *c, const struct weft_frame_view *v);
/** The peer reports marked frames. A false report counts for the acknowledged bytes at most. */
void raw_window_marks(struct raw_conn *c, const struct weft_frame_ecn *ecn);
/** The peer reports that it has read no frames for @p ns; 0 = there is no report. */
void raw_window_peer_gap(struct raw_conn *c, uint32_t ns);
/** A frame that counted as lost is acknowledged before it was retransmitted. */
void raw_window_found(struct raw_tx *tx, struct raw_slot *slot);
/**
 * An acknowledgement was processed that has given a round trip, or that came while the window held
 * frames back. Other acknowledgements only add their bytes to c->tx.cc_acked, which the next call
 * reports.
 * @param hdr     header of the acknowledgement; its echo is that of the frame which @p rtt measures
 * @param rtt     ns; 0 = none
 * @param before  bytes that were in flight before the acknowledgement
 */
void raw_window_acked(struct raw_conn *c, const struct weft_frame_hdr *hdr, uint32_t rtt,
		      uint32_t before);
/** A frame is lost: it does not count as in flight until it is retransmitted. */
void raw_window_lost(struct raw_conn *c, struct raw_slot *slot);
/**
 * @param when  lowered to the tx_clock at which a lost frame may leave, if only pacing delays it
 * @return true: the window lets a lost frame of @p bytes leave now
 */
bool raw_window_again(const struct raw_tx *tx, uint64_t tx_clock, uint32_t bytes, uint64_t *when);
/** A frame is retransmitted over slot->path; its previous transmission was over @p before. */
void raw_window_resent(struct raw_conn *c, struct raw_slot *slot, uint8_t before);
/** The set of paths that new frames take has changed: updates the connection's limits. */
void raw_window_paths(struct raw_conn *c);
void raw_window_timeout(struct raw_conn *c);
/** Undoes spurious timeouts. Called while the slots still have the frames before @p ack. */
void raw_window_quiet_over(struct raw_conn *c, uint32_t ack);
void raw_window_idle(struct raw_conn *c);
/** The connection has ended: no frame is lost, and no byte is in flight over a path any more. */
void raw_window_over(struct raw_conn *c);
/* ---------------------------------------------------------------- what holds frames back */

/** The window is full: time counts for this limit until raw_limit_end(), as of the first call. */
void raw_limit_begin(struct raw_conn *c);
/** No limit holds the connection's frames back any more, or the connection has ended. */
void raw_limit_end(struct raw_conn *c);
/** A send may succeed again: the window may have room. */
static inline void raw_window_open(struct raw_conn *c)
{
	c->base.tx_room = true;
	if (unlikely(c->tx.limit != 0))
		raw_limit_end(c);
}

/** Adds the ns since the last progress call to the counter of each limit that is in force. */
void raw_limits_account(struct raw_iface *iface);

static inline void raw_limits_progress(struct raw_iface *iface)
{
	if (iface->share.tx_held != 0)
		iface->counter[RAW_TIME_BUSY] += iface->step;
	if (unlikely(iface->limits.bits != 0))
		raw_limits_account(iface);
}

/** Reports target, window, round trips, marks and losses of a path; nothing with a fixed window. */
void raw_window_counters(const struct raw_conn *c, unsigned int path, weft_lane_counter_cb cb,
			 void *arg);
/** Writes delays of a path and the cause of its last cut; "" before delays are measured. */
void raw_window_delays(const struct raw_tx *tx, unsigned int path, char *buf, size_t size);
/** Writes the state of congestion control on a path as text; "" with a fixed window. */
void raw_window_print(const struct raw_tx *tx, unsigned int path, char *buf, size_t size);

#endif /* WEFT_ENGINE_WINDOW_H */
