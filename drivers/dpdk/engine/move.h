/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/move.h
 * Hints, without proof, that a peer is gone, was restarted or has moved: ARP of other hosts, ICMP,
 * a frame from another MAC. A hint only causes a query to the peer itself. The answer, or its
 * absence, decides. A peer that has moved proves its new MAC address by the answer to a challenge.
 */
#ifndef WEFT_ENGINE_MOVE_H
#define WEFT_ENGINE_MOVE_H

#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

/* ARP of another host, requested or not. */
void raw_hint_arp(struct raw_iface *iface, const struct rte_arp_hdr *arp);
/* ICMP reports that a frame of ours did not arrive. Any host can forge that. */
void raw_hint_icmp(struct raw_iface *iface, const struct weft_frame_view *v);
/* A frame of the connection has come from another MAC than the peer's. */
void raw_hint_source(struct raw_conn *c, const uint8_t mac[6]);
/*
 * The peer has reset connection @p c: queries its other connections, which it may have lost, too.
 */
void raw_hint_siblings(struct raw_conn *c);
/* Sends queries that are due. May end the connection. */
void raw_hint_timer(struct raw_conn *c);

/* Announce to peers by ARP that this iface has started, or that its link is back. */
void raw_announce_begin(struct raw_iface *iface);
void raw_announce(struct raw_iface *iface);

/* The peer is silent: check whether it is behind another MAC now. */
void raw_move_look(struct raw_conn *c);

void raw_challenge_input(struct raw_iface *iface, const struct weft_frame_view *v);
void raw_challenge_ack_input(struct raw_conn *c, const struct weft_frame_view *v);

#endif /* WEFT_ENGINE_MOVE_H */
