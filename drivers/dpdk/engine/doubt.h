/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/doubt.h
 * Something says, and proves nothing, that a peer is gone, began again or has moved: ARP of others,
 * ICMP, a frame from another MAC. Then the peer itself is asked; what it answers, or does not,
 * decides.
 */
#ifndef WEFT_ENGINE_DOUBT_H
#define WEFT_ENGINE_DOUBT_H

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

/* ARP of another host than ours, requested or not. */
void raw_doubt_arp(struct raw_iface *iface, const struct rte_arp_hdr *arp);
/* A frame of ours did not arrive, says whoever. */
void raw_doubt_icmp(struct raw_iface *iface, const struct weft_frame_view *v);
/* A frame of the connection came from another MAC than the peer's. */
void raw_doubt_source(struct raw_conn *c, const uint8_t mac[6]);
/* The peer does not know connection @p c any more: are there others that it does not know? */
void raw_doubt_siblings(struct raw_conn *c);
/* Questions that are due. May end the connection. */
void raw_doubt_timer(struct raw_conn *c);

/* To peers: somebody begins here, or is back. */
void raw_announce_begin(struct raw_iface *iface);
void raw_announce(struct raw_iface *iface);

#endif /* WEFT_ENGINE_DOUBT_H */
