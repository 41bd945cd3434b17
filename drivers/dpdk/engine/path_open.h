/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/path_open.h
 * Opens paths while more of them help, and chooses UDP ports, also those of the handshake, so that
 * answers reach this worker's queue. doc/raw-lanes.md has the reasons.
 */
#ifndef WEFT_ENGINE_PATH_OPEN_H
#define WEFT_ENGINE_PATH_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "frame/parse.h"

/* In the first N tries of a handshake step, frames at another worker's queue are ignored. */
#define RAW_STEER_ROUNDS 12u

/* @return true: at one of the ends the UDP ports decide which receive queue a frame reaches */
bool raw_paths_spread(const struct raw_conn *c);

/*
 * Initiator: @return the number of HELLOs, or probes of a path, from different ports in one round,
 * one of which probably reaches the right queues of both ends.
 */
unsigned int raw_paths_hellos(const struct raw_conn *c);
void raw_paths_next(struct raw_conn *c, unsigned int path);

/*
 * @param any  the sender accepts any queue now, since no better port was found
 * @return true: the frame is to be ignored, since it arrived at another worker's queue
 */
bool raw_paths_ignored(struct raw_conn *c, bool any);

bool raw_multi_can_open(const struct raw_conn *c);

/** Either end: starts the search for a port of one more path, if one is allowed and due. */
void raw_path_open(struct raw_conn *c);

/** Initiator: starts to open a path in reserve, once the connection has had traffic. */
void raw_path_reserve(struct raw_conn *c);
void raw_path_open_timer(struct raw_conn *c);

/**
 * Initiator: repeats USE of path @p k when due.
 * @return true: USE is outstanding, and no other port is to be searched
 */
bool raw_path_using(struct raw_conn *c, uint8_t k);

/** Initiator: sends PROBE{PATH} of path @p k from a new port. @return 0 or -EAGAIN */
int raw_path_request(struct raw_conn *c, uint8_t k);

/** Responder: requests a new port for path @p k from the initiator. */
void raw_path_want(struct raw_conn *c, uint8_t k);

/** Sends a probe over path @p k by its present ports. @return 0 or -EAGAIN */
int raw_path_probe_send(struct raw_conn *c, uint8_t k);

/** Processes PROBE_ACK{PATH}: the new port works; or PROBE_ACK{USE}: the peer uses the port. */
void raw_path_answer(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind);

/** Processes a PROBE. @return true: the caller answers it over path @p over */
bool raw_path_probe(struct raw_conn *c, const struct weft_frame_view *v, uint8_t *over);

/** Sends the next pair of a trial, or starts one if c->path_busy is set and the wait is over. */
void raw_path_grow_timer(struct raw_conn *c);

#endif /* WEFT_ENGINE_PATH_OPEN_H */
