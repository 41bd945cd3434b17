/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/suspect.h
 * A connection that may be dead: the protocol layer is told, and may stop it inside the call (look
 * at the connection's state afterwards). doc/failover.md has the whole.
 */
#ifndef WEFT_ENGINE_SUSPECT_H
#define WEFT_ENGINE_SUSPECT_H

#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "lane.h"

/* The retransmission timer has come: is the lane silent, or deaf? */
void raw_suspect_silent(struct raw_conn *c);
/* Keepalives have no answer. */
void raw_suspect_idle(struct raw_conn *c);
/* The port has lost its link. */
void raw_suspect_link(struct raw_iface *iface);
/* It is over: stopped, or else failed. */
void raw_conn_lost(struct raw_conn *c, int status, const char *text);
uint64_t raw_ep_seen(const struct weft_lane_ep *lane_ep);

#endif /* WEFT_ENGINE_SUSPECT_H */
