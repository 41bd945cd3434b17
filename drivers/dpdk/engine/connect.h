/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/connect.h
 * Connecting: the functions of the handshake, by the file that implements them. engine/handshake.c
 * has the state machine.
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
/* live_clock; for this time a responder waits for an ARP reply */
#define RAW_HELLO_MAC_NS 1000000000ull
/* tries of a step during which handshake frames that came to another queue are ignored */
#define RAW_STEER_ROUNDS 12u

/* ---- engine/half_open.c: admission of peers that have only sent HELLO */

/*
 * May the sender of this HELLO have a half-open connection? @p shown: the sender has proven its
 * address, for raw_half_add().
 * @return false: the HELLO has been answered
 */
bool raw_half_admit(struct raw_iface *iface, const struct weft_frame_view *v, bool *shown);
void raw_half_add(struct raw_conn *c, const struct weft_frame_view *v, bool shown);
/* The peer has proven its address: by a cookie, or by a token that only HELLO_ACK contains. */
void raw_half_shown(struct raw_conn *c);
void raw_half_remove(struct raw_conn *c);

/* ---- engine/hello_mac.c: the MAC address to which the answer to a HELLO is sent */

void raw_hello_mac_begin(struct raw_conn *c, const struct weft_frame_view *v);
/* @return true: the MAC address is known and in c->peer_mac */
bool raw_hello_mac_known(struct raw_conn *c);
/* To be called when ARP has learned an address. */
void raw_hello_mac_learned(struct raw_iface *iface);

/* ---- engine/measure.c: measurement of the path during the handshake */

/* Initiator, when the frame size is known. @return false: there is nothing to measure */
bool raw_measure_begin(struct raw_conn *c);
/* Initiator: a PROBE_ACK in state MEASURE */
void raw_measure_ack(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_measure_timer(struct raw_conn *c);
/* Responder: a PROBE has been answered */
void raw_measure_probe(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_ep_measured(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out);

/* ---- engine/path_port.c: ports from which answers come to the right queue */
/* @return true: the ports decide to which queue frames come, at one of the ends */
bool raw_paths_spread(const struct raw_conn *c);
/* Initiator: the number of ports for HELLO in this round, so that one reaches the right queues. */
unsigned int raw_paths_hellos(const struct raw_conn *c);
void raw_paths_next(struct raw_conn *c, unsigned int path);
uint16_t raw_paths_port(struct raw_conn *c, unsigned int path);
/*
 * @return true: the request or answer of the handshake is to be ignored, since it came to another
 * queue
 */
bool raw_paths_ignored(struct raw_conn *c, bool any);

/* ---- engine/paths.c: which ports each path uses */
/* Initiator, when the frame size is known. @return false: there is one path only */
bool raw_paths_begin(struct raw_conn *c);
void raw_paths_send(struct raw_conn *c);
void raw_paths_ack(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind);
/* Both ends: write and read the ports of the paths in READY. */
uint32_t raw_paths_ready(const struct raw_conn *c, void *body);
bool raw_paths_take(struct raw_conn *c, const struct weft_frame_view *v);

/* ---- engine/handshake.c: HELLO .. READY, RESET, BYE */
void raw_hs_start(struct raw_conn *c);
void raw_hs_timer(struct raw_conn *c);
void raw_hs_ready(struct raw_conn *c);
void raw_hs_enter(struct raw_conn *c, enum raw_state state);
void raw_hs_measure(struct raw_conn *c);
void raw_hs_input(struct raw_conn *c, const struct weft_frame_view *v);
/* Sends HELLO_ACK: the connection is half-open with a known MAC address, or it is up. */
void raw_hello_answer(struct raw_conn *c);
void raw_hello_input(struct raw_iface *iface, const struct weft_frame_view *v);

/* ---- engine/reset.c: RESET, by which the peer reports that it has no such connection */
void raw_reset_input(struct raw_iface *iface, const struct weft_frame_view *v);

/* ---- engine/resolve.c: ARP replies, for connections that wait for them */
void raw_arp_input(struct raw_iface *iface, const struct weft_frame_view *v);

void raw_ep_waits_for(const struct weft_lane_ep *lane_ep, char *text, size_t size);

#endif /* WEFT_ENGINE_CONNECT_H */
