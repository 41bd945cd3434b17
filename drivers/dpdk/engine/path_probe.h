/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/path_probe.h
 * The handshake's probes when the frame size is known. They find the ports of each path. Then they
 * measure the round trip and the bandwidth of path 0 for the whole connection.
 */
#ifndef WEFT_ENGINE_PATH_PROBE_H
#define WEFT_ENGINE_PATH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "frame/parse.h"
#include "lane.h"

/* Initiator, when the paths are known. @return false: nothing is to be measured on this port */
bool raw_measure_begin(struct raw_conn *c);

/* Initiator: a PROBE_ACK in state MEASURE */
void raw_measure_ack(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_measure_timer(struct raw_conn *c);

/* Responder: a PROBE has been answered */
void raw_measure_probe(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_ep_measured(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out);

/* Initiator, when the frame size is known. @return false: one path, or no memory for more */
bool raw_paths_begin(struct raw_conn *c);
void raw_paths_send(struct raw_conn *c);
void raw_paths_ack(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind);

/* Writes the ports of the paths into READY. @return bytes */
uint32_t raw_paths_ready(const struct raw_conn *c, void *body);
/* Takes the ports of the paths from READY. @return 0, -EPROTO or -ENOMEM */
int raw_paths_take(struct raw_conn *c, const struct weft_frame_view *v);

#endif /* WEFT_ENGINE_PATH_PROBE_H */
