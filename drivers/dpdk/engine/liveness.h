/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/liveness.h
 * Does the peer still answer, and does the port still work? Keepalive and the peer timeout, events
 * of the port, and the dispatch of all timers of connections.
 *
 * A connection that may be dead is suspect: the protocol layer is notified, and may stop the
 * connection inside the call, so check its state afterwards. doc/raw-lanes.md describes the whole
 * procedure.
 */
#ifndef WEFT_ENGINE_LIVENESS_H
#define WEFT_ENGINE_LIVENESS_H

#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "lane.h"

/* Keepalives get no answer. */
void raw_suspect_idle(struct raw_conn *c);

/* Connections that one raw_timers() call checks, per clock: the others wait for the next call. */
#define RAW_TIMER_BATCH 32u
#define RAW_LOOK_UP 1000000000ull  /* live_clock between two checks of a port with a link */
#define RAW_LOOK_DOWN 100000000ull /* the same, without a link */
void raw_port_look(struct raw_iface *iface);

/* Process the connections that are due. */
void raw_timers(struct raw_iface *iface);

/* Notify all peers that the owner computes and does not poll. */
void raw_beat(struct weft_lane_iface *base);

/* The peer's owner computes and does not poll. */
void raw_alive_input(struct raw_conn *c);

#endif /* WEFT_ENGINE_LIVENESS_H */
