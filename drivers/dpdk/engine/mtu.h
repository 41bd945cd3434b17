/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/mtu.h
 * The path's MTU while a connection is up. It may become smaller (a way round a broken switch, a
 * tunnel), and nobody says so in a way that could be believed. So, as RFC 8899 has it for black
 * holes: a frame that was lost several times starts a search (engine/mtu_search.h). If small
 * probes are answered and none of the present size is, frames are cut to what every path carries
 * (engine/parts.h) until the search has found the size that passes. Later more is tried again, up
 * to what was agreed when the connection was made.
 *
 * Each end does so for what it sends; a probe is answered at its size, so a size must pass both
 * ways.
 */
#ifndef WEFT_ENGINE_MTU_H
#define WEFT_ENGINE_MTU_H

#include <stdint.h>

#include "engine/conn.h"
#include "lane.h"

/* Transmissions that are lost before the size is doubted. */
#define RAW_MTU_TRIES 3u

/* The connection is up. */
void raw_mtu_init(struct raw_conn *c);
/* The longest message that goes in one frame now. */
uint32_t raw_ep_best_msg(const struct weft_lane_ep *lane_ep);
/* This frame was lost so often that its size may be why. */
void raw_mtu_suspect(struct raw_conn *c, uint32_t seq);
/* When lt has reached c->mtu.next. */
/** The next round of a search, while connecting too: its probes leave. */
enum weft_mtu_result raw_mtu_round(struct raw_conn *c);
void raw_mtu_timer(struct raw_conn *c);
/* A probe was answered; size 0: a small one. */
void raw_mtu_ack(struct raw_conn *c, uint16_t id, uint16_t size);

#endif /* WEFT_ENGINE_MTU_H */
