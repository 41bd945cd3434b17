/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/neighbour.h
 * The MAC addresses of next hops: ARP requests, ARP replies for the connections that wait for them,
 * and the MAC address to which the answer to a HELLO is sent.
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
 * neighbour discovery becomes an ARP packet. The IPv6 header has no checksum of its own. So the UDP
 * checksum must not be 0. It has to be right, unless the frame has a CRC32C or a tag.
 * @param arp memory for v->arp
 * @return the frame's verdict
 */
enum weft_rx_verdict raw_ip6_input(struct raw_iface *iface, enum weft_rx_verdict g,
				   struct weft_frame_view *v, struct rte_arp_hdr *arp);

/* ---------------------------------------------------------------- peers that move */

/*
 * Hints, without proof, that a peer is gone, was restarted or has moved: ARP of other hosts, ICMP,
 * RESET, a frame from another MAC. A hint only causes a query to the peer, or a challenge to the
 * other MAC. The answer, or its absence, decides. A peer that has moved proves its new MAC address
 * by the answer to a challenge.
 */

/* Processes ARP of another host, requested or not. */
void raw_hint_arp(struct raw_iface *iface, const struct rte_arp_hdr *arp);
/* ICMP reports that a frame of ours did not arrive. Any host can forge that. */
void raw_hint_icmp(struct raw_iface *iface, const struct weft_frame_view *v);
/* A frame of the connection has come from another MAC than the peer's. */
void raw_hint_source(struct raw_conn *c, const uint8_t mac[6]);
/* A RESET for a sealed connection: it may be forged. */
void raw_hint_reset(struct raw_conn *c);
/*
 * The peer has reset connection @p c, or its process is gone: plans queries of other connections
 * with the same iface of the peer, which may be gone, too.
 */
void raw_hint_siblings(struct raw_conn *c);
/* Sends queries that are due. @return true: the peer's process is gone: end the connection */
bool raw_hint_timer(struct raw_conn *c);

/* Announce to peers by ARP that this iface has started, or that its link is back. */
void raw_announce_begin(struct raw_iface *iface);
void raw_announce(struct raw_iface *iface);

/* The peer is silent: check whether it is behind another MAC now. */
void raw_move_look(struct raw_conn *c);

void raw_challenge_input(struct raw_iface *iface, const struct weft_frame_view *v);
void raw_challenge_ack_input(struct raw_conn *c, const struct weft_frame_view *v);

#endif /* WEFT_ENGINE_NEIGHBOUR_H */
