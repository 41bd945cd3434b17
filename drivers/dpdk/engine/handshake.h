/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/handshake.h
 * Connecting: HELLO .. READY, and RESET, by which the peer reports that it has no such connection.
 */
#ifndef WEFT_ENGINE_HANDSHAKE_H
#define WEFT_ENGINE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

void raw_hs_start(struct raw_conn *c);
void raw_hs_timer(struct raw_conn *c);
void raw_hs_ready(struct raw_conn *c);
void raw_hs_enter(struct raw_conn *c, enum raw_state state);
void raw_hs_measure(struct raw_conn *c);
void raw_hs_input(struct raw_conn *c, const struct weft_frame_view *v);
/* Sends HELLO_ACK: the connection is half-open with a known MAC address, or it is up. */
void raw_hello_answer(struct raw_conn *c);
void raw_hello_input(struct raw_iface *iface, const struct weft_frame_view *v);

void raw_reset_input(struct raw_iface *iface, const struct weft_frame_view *v);

void raw_ep_waits_for(const struct weft_lane_ep *lane_ep, char *text, size_t size);

#endif /* WEFT_ENGINE_HANDSHAKE_H */
