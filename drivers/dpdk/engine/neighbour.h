/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/neighbour.h
 * The MAC addresses of next hops by ARP, and hints that peers are gone or have moved.
 */
#ifndef WEFT_ENGINE_NEIGHBOUR_H
#define WEFT_ENGINE_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

/* ns of live_clock for which a responder waits for an ARP reply before it answers HELLO */
#define RAW_HELLO_MAC_NS 1000000000ull

/*
 * Sends an ARP request for @p ip, if one is due. @return true: it was sent
 * @param theirs  the address is that of an unknown sender
 */
bool raw_arp_request(struct raw_iface *iface, uint32_t ip, bool theirs);

void raw_hello_mac_begin(struct raw_conn *c, const struct weft_frame_view *v);

/*
 * May a HELLO be answered now, to c->peer_mac?
 * @return true: ARP has found the MAC address; or the address is the HELLO's source, since the lane
 * has no ARP, no next hop is known, or ARP has had no answer for RAW_HELLO_MAC_NS
 */
bool raw_hello_mac_known(struct raw_conn *c);

void raw_arp_input(struct raw_iface *iface, const struct weft_frame_view *v);

/*
 * Converts a frame with IPv6: its source becomes a number of port->hosts, and a message of
 * neighbour discovery becomes an ARP packet. The UDP checksum must not be 0, since the IPv6 header
 * has none. A wrong checksum is accepted if the frame has a CRC32C or a tag.
 * @param arp memory for v->arp
 */
enum weft_rx_verdict raw_ip6_input(struct raw_iface *iface, enum weft_rx_verdict g,
				   struct weft_frame_view *v, struct rte_arp_hdr *arp);

/* ---------------------------------------------------------------- peers that move */

/*
 * Hints that a peer is gone, was restarted or has moved may be forged. A hint causes a query to the
 * peer, a challenge to another MAC or a search for the MTU; the answer, or silence, decides.
 */

void raw_hint_arp(struct raw_iface *iface, const struct rte_arp_hdr *arp);
void raw_hint_icmp(struct raw_iface *iface, const struct weft_frame_view *v);
/* A frame of the connection has come from another MAC than the peer's. */
void raw_hint_source(struct raw_conn *c, const uint8_t mac[6]);
/* A RESET for a sealed connection: it may be forged. */
void raw_hint_reset(struct raw_conn *c);
/* The peer's process may be gone: plans queries of connections with the same iface of the peer. */
void raw_hint_siblings(struct raw_conn *c);
/* Sends queries that are due. @return true: the peer's process is gone: end the connection */
bool raw_hint_timer(struct raw_conn *c);

/* Announce to peers by ARP that this iface has started, or that its link is back. */
void raw_announce_begin(struct raw_iface *iface);
void raw_announce(struct raw_iface *iface);

/* The peer is silent: checks, at a bounded rate, whether it is behind another MAC now. */
void raw_move_look(struct raw_conn *c);

void raw_challenge_input(struct raw_iface *iface, const struct weft_frame_view *v);
void raw_challenge_ack_input(struct raw_conn *c, const struct weft_frame_view *v);

#endif /* WEFT_ENGINE_NEIGHBOUR_H */
