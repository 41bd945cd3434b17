/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/mtu.h
 * The path's MTU while a connection is up. It may become smaller (a route around a broken switch, a
 * tunnel), and no trustworthy message reports that. So the search follows RFC 8899 for black holes:
 * a frame that was lost several times starts a search (engine/mtu_search.h). If small probes are
 * answered and probes of the present size are not, frames are cut to the size that every path
 * carries (engine/parts.h). They stay at it until the search has found the size that passes. Later,
 * larger sizes are tried again, up to the size that was agreed when the connection was made.
 *
 * Each end does so for the frames that it sends. A probe is answered at its own size, so a size
 * must pass in both directions.
 */
#ifndef WEFT_ENGINE_MTU_H
#define WEFT_ENGINE_MTU_H

#include <stdint.h>

#include "engine/conn.h"
#include "lane.h"

/* Transmissions of a frame that are lost before its size is suspected. */
#define RAW_MTU_TRIES 3u

/* The connection is up. */
void raw_mtu_init(struct raw_conn *c);
/* The longest message that now fits one frame. */
uint32_t raw_ep_best_msg(const struct weft_lane_ep *lane_ep);
/* This frame was lost RAW_MTU_TRIES times: its size may be the cause. */
void raw_mtu_suspect(struct raw_conn *c, uint32_t seq);
/** Start the next round of a search, also while connecting: its probes leave. */
enum weft_mtu_result raw_mtu_round(struct raw_conn *c);
/* Called when live_clock has reached c->mtu.next. */
void raw_mtu_timer(struct raw_conn *c);
/* A probe of @p size was answered; 0: a small one. */
void raw_mtu_ack(struct raw_conn *c, uint16_t id, uint16_t size);

#endif /* WEFT_ENGINE_MTU_H */
