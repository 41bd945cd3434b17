/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/path_open.h
 * More paths on a connection that is up: whether they help, opening them, and their ports. And the
 * UDP ports from which answers come to this worker's queue, also for the handshake. The paths
 * themselves are in engine/multipath.h; doc/raw-lanes.md has the reasons.
 */
#ifndef WEFT_ENGINE_PATH_OPEN_H
#define WEFT_ENGINE_PATH_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "frame/parse.h"

/* tries of a step during which handshake frames that came to another queue are ignored */
#define RAW_STEER_ROUNDS 12u

/* @return true: the ports decide to which queue frames come, at one of the ends */
bool raw_paths_spread(const struct raw_conn *c);

/* Initiator: the number of ports for HELLO in this round, so that one reaches the right queues. */
unsigned int raw_paths_hellos(const struct raw_conn *c);
void raw_paths_next(struct raw_conn *c, unsigned int path);

/* @return true: the handshake's frame is to be ignored, since it came to another queue */
bool raw_paths_ignored(struct raw_conn *c, bool any);

bool raw_multi_can_open(const struct raw_conn *c);

/** Search a port for one more path, unless a search is in progress; at either end. */
void raw_path_open(struct raw_conn *c);

/** Initiator, now and then: opens a path in reserve if the connection has had traffic. */
void raw_path_reserve(struct raw_conn *c);
void raw_path_open_timer(struct raw_conn *c);

/** Initiator: sends USE of path @p k again when due. @return true: no other port is searched */
bool raw_path_using(struct raw_conn *c, uint8_t k);

/** Initiator: probe a new port for path @p k. @return 0 or -EAGAIN */
int raw_path_request(struct raw_conn *c, uint8_t k);

/** Responder: request a new port for path @p k. */
void raw_path_want(struct raw_conn *c, uint8_t k);

/** Probe whether a path carries frames, by its present ports. @return 0 or -EAGAIN */
int raw_path_probe_send(struct raw_conn *c, uint8_t k);

/** PROBE_ACK{PATH}: the new port works; PROBE_ACK{USE}: the peer uses it. */
void raw_path_answer(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind);

/** PROBE. @return true: it is to be answered over path @p over */
bool raw_path_probe(struct raw_conn *c, const struct weft_frame_view *v, uint8_t *over);

/** By tx_clock, while c->path_busy: start a trial, or send its next frames, if it is time. */
void raw_path_grow_timer(struct raw_conn *c);

#endif /* WEFT_ENGINE_PATH_OPEN_H */
