/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/suspect.h
 * A connection that may be dead: the protocol layer is notified, and may stop the connection inside
 * the call, so check its state afterwards. doc/raw-lanes.md describes the whole procedure.
 */
#ifndef WEFT_ENGINE_SUSPECT_H
#define WEFT_ENGINE_SUSPECT_H

#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "lane.h"

/* The retransmission timer has expired: report a silent peer, or one that acknowledges nothing. */
void raw_suspect_silent(struct raw_conn *c);
/* Keepalives get no answer. */
void raw_suspect_idle(struct raw_conn *c);
/* The port has lost its link. */
void raw_suspect_link(struct raw_iface *iface);
/* The connection is over: it was stopped by the protocol layer, or else it fails. */
void raw_conn_lost(struct raw_conn *c, int status, const char *text);
uint64_t raw_ep_seen(const struct weft_lane_ep *lane_ep);

#endif /* WEFT_ENGINE_SUSPECT_H */
