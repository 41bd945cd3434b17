/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/window.h
 * What congestion control (engine/cc.h) says, as the sender obeys it: a limit of bytes in flight
 * for the connection, the time of the next frame where windows are smaller than a few of them,
 * and when the peer is asked to acknowledge at once.
 *
 * With a fixed window (c->cc NULL) nothing here is called per frame, with large windows one
 * function per round trip that is told.
 */
#ifndef WEFT_ENGINE_WINDOW_H
#define WEFT_ENGINE_WINDOW_H

#include <rte_branch_prediction.h>

#include "engine/cc.h"
#include "engine/conn.h"
#include "frame/frame.h"
#include "lane.h"

/** Nothing but WEFT_WINDOW and the peer's ring limits what is in flight. */
bool raw_window_fixed(const struct raw_iface *iface);
/** The connection is up: its paths and its frame size are agreed. @return 0 or -ENOMEM */
int raw_window_init(struct raw_conn *c);
/** c->path_count is about to grow by one. @return 0 or -ENOMEM */
int raw_window_more(struct raw_conn *c);
void raw_window_free(struct raw_conn *c);

/** The limit is reached, or each frame has its time. @return true: one may leave all the same */
bool raw_window_paced(struct raw_conn *c);
/** raw_window_sent() where c->cc_left is used up. */
uint16_t raw_window_ask(struct raw_conn *c, uint8_t path, uint32_t bytes);
/**
 * A frame of @p bytes leaves over @p path. @return WEFT_FRAME_F_ACK_REQ or 0, for its header.
 * While windows are large this is one comparison.
 */
static inline uint16_t raw_window_sent(struct raw_conn *c, uint8_t path, uint32_t bytes)
{
	c->cc_left -= (int32_t)bytes;
	return likely(c->cc_left >= 0) ? 0 : raw_window_ask(c, path, bytes);
}

/** A frame of the peer came marked: the next ACKs tell it. */
void raw_window_marked(struct raw_conn *c, const struct weft_frame_view *v);
/**
 * The peer tells how many of our frames came marked. It may tell more than were ever sent: what
 * counts is never more than what it acknowledges.
 */
void raw_window_marks(struct raw_conn *c, const struct weft_frame_ecn *ecn);
/** A frame that was taken for lost, and is not sent again yet, is acknowledged. */
void raw_window_found(struct raw_conn *c, struct raw_slot *slot);
/**
 * An acknowledgement has been taken which tells a round trip, or a window is in the way:
 * c->cc_acked is what has been acknowledged since the last call. Between two calls nobody requests
 * more.
 * @param hdr     that it came with: it tells which frame the round trip @p rtt (ns; 0 = none) is of
 * @param before  bytes that were in flight
 */
void raw_window_acked(struct raw_conn *c, const struct weft_frame_hdr *hdr, uint32_t rtt,
		      uint32_t before);
/** A frame is lost: it is no more in flight, until it is sent again. */
void raw_window_lost(struct raw_conn *c, struct raw_slot *slot);
/**
 * May a lost frame be sent again now? @p when is set to when (et) if that is only a matter of
 * time.
 */
bool raw_window_again(struct raw_conn *c, uint32_t bytes, uint64_t *when);
/** A frame is sent again, over slot->path; it was sent over @p before. */
void raw_window_resent(struct raw_conn *c, struct raw_slot *slot, uint8_t before);
/** New frames take other paths than before. */
void raw_window_paths(struct raw_conn *c);
void raw_window_timeout(struct raw_conn *c);
/** After timeouts all before @p ack are acknowledged, and their slots still there. */
void raw_window_heard(struct raw_conn *c, uint32_t ack);
void raw_window_idle(struct raw_conn *c);
/** Nothing is outstanding any more, since the connection is over. */
void raw_window_over(struct raw_conn *c);
/** target, window, round trips, marks and losses of a path, as counters. */
void raw_window_counters(const struct raw_conn *c, unsigned int path, weft_lane_counter_cb cb,
			 void *arg);
/** For people: what there is to say of a path; "" with a fixed window. */
void raw_window_print(const struct raw_conn *c, unsigned int path, char *buf, size_t size);

#endif /* WEFT_ENGINE_WINDOW_H */
