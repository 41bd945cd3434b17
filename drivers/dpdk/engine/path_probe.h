/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/path_probe.h
 * Probes of the handshake that find the ports of each path, and then measure the round trip and the
 * bandwidth of path 0, for the whole connection.
 */
#ifndef WEFT_ENGINE_PATH_PROBE_H
#define WEFT_ENGINE_PATH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "frame/parse.h"
#include "lane.h"

/* Initiator, once the paths are known. @return false: this port needs no measurement */
bool raw_measure_begin(struct raw_conn *c);

/* Initiator: takes a PROBE_ACK in state MEASURE as a sample. */
void raw_measure_ack(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_measure_timer(struct raw_conn *c);

/* Responder, after it has answered a PROBE: takes a sample from PING or TRAIN. */
void raw_measure_probe(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_ep_measured(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out);

/* Initiator: starts the search for ports. @return false: the connection has one path only */
bool raw_paths_begin(struct raw_conn *c);
void raw_paths_send(struct raw_conn *c);
void raw_paths_ack(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind);

/* Writes the body of READY, with the ports of the paths. @return its bytes */
uint32_t raw_paths_ready(const struct raw_conn *c, void *body);
/* Responder: takes the ports of the paths from READY. @return 0, -EPROTO or -ENOMEM */
int raw_paths_take(struct raw_conn *c, const struct weft_frame_view *v);

#endif /* WEFT_ENGINE_PATH_PROBE_H */
