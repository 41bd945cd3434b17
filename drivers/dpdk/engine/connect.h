/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/connect.h
 * How connections are made: who provides which step. engine/handshake.c has the state machine.
 */
#ifndef WEFT_ENGINE_CONNECT_H
#define WEFT_ENGINE_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

#define RAW_HALF_OPEN_MAX 256u
#define RAW_HALF_OPEN_NS 5000000000ull
#define RAW_HS_RETRY_MIN 1000000ull
#define RAW_HS_RETRY_MAX 100000000ull
#define RAW_PLACE_NS 1000000000ull /* lt; so long a responder waits for an answer of ARP */
/* tries of a step in which handshake frames that came to another queue are not taken */
#define RAW_STEER_ROUNDS 12u

/* ---- engine/half_open.c: state for who has only said HELLO */

/*
 * May the sender of this HELLO have a half-open connection? *@shown: it has shown its address, for
 * raw_half_add(). @return false: it was answered
 */
bool raw_half_admit(struct raw_iface *iface, const struct weft_frame_view *v, bool *shown);
void raw_half_add(struct raw_conn *c, const struct weft_frame_view *v, bool shown);
/* It has answered with a cookie, or with what only HELLO_ACK tells. */
void raw_half_shown(struct raw_conn *c);
void raw_half_remove(struct raw_conn *c);

/* ---- engine/place.c: which MAC address gets the answer to a HELLO */

void raw_place_begin(struct raw_conn *c, const struct weft_frame_view *v);
/* @return it is known: c->peer_mac */
bool raw_placed(struct raw_conn *c);
/* ARP has learned an address. */
void raw_place_learned(struct raw_iface *iface);

/* ---- engine/measure.c: what the handshake finds out about the path */

/* Initiator, when the frame size is known. @return false: there is nothing to measure */
bool raw_measure_begin(struct raw_conn *c);
/* Initiator: a PROBE_ACK in state MEASURE */
void raw_measure_ack(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_measure_timer(struct raw_conn *c);
/* Responder: a PROBE has been answered */
void raw_measure_probe(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_ep_measured(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out);

/* ---- engine/path_port.c: ports from which answers come to the right queue */
/* Do ports matter? */
bool raw_paths_spread(const struct raw_conn *c);
/* Initiator: HELLO from as many ports as it takes, by now, for one to reach the right queues. */
unsigned int raw_paths_hellos(const struct raw_conn *c);
void raw_paths_next(struct raw_conn *c, unsigned int path);
uint16_t raw_paths_port(struct raw_conn *c, unsigned int path);
/*
 * Is this question of the handshake, or its answer, to be ignored, since it came to another queue?
 */
bool raw_paths_ignored(struct raw_conn *c, bool any);

/* ---- engine/paths.c: which ports each path uses */
/* Initiator, when the frame size is known. @return false: there is one path only */
bool raw_paths_begin(struct raw_conn *c);
void raw_paths_send(struct raw_conn *c);
void raw_paths_ack(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind);
/* Both: the paths that READY names. */
uint32_t raw_paths_ready(const struct raw_conn *c, void *body);
bool raw_paths_take(struct raw_conn *c, const struct weft_frame_view *v);

/* ---- engine/handshake.c: HELLO .. READY, RESET, BYE */
void raw_hs_start(struct raw_conn *c);
void raw_hs_timer(struct raw_conn *c);
void raw_hs_ready(struct raw_conn *c);
void raw_hs_enter(struct raw_conn *c, enum raw_state state);
void raw_hs_measure(struct raw_conn *c);
void raw_hs_input(struct raw_conn *c, const struct weft_frame_view *v);
/* To the initiator of a half-open connection that is placed, or of one that is up. */
void raw_hello_answer(struct raw_conn *c);
void raw_hello_input(struct raw_iface *iface, const struct weft_frame_view *v);

/* ---- engine/reset.c: the peer says that there is no such connection */
void raw_reset_input(struct raw_iface *iface, const struct weft_frame_view *v);

/* ---- engine/resolve.c: an answer of ARP, for connections that wait for it */
void raw_arp_input(struct raw_iface *iface, const struct weft_frame_view *v);

void raw_ep_waits_for(const struct weft_lane_ep *lane_ep, char *text, size_t size);

#endif /* WEFT_ENGINE_CONNECT_H */
