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

/* live_clock; for this time a responder waits for an ARP reply */
#define RAW_HELLO_MAC_NS 1000000000ull

/*
 * Request an address, if a request is due. `theirs`: an unknown sender claims the address. @return
 * true: the request was sent
 */
bool raw_arp_request(struct raw_iface *iface, uint32_t ip, bool theirs);

void raw_hello_mac_begin(struct raw_conn *c, const struct weft_frame_view *v);

/* @return true: the MAC address is known and in c->peer_mac */
bool raw_hello_mac_known(struct raw_conn *c);

void raw_arp_input(struct raw_iface *iface, const struct weft_frame_view *v);

#endif /* WEFT_ENGINE_NEIGHBOUR_H */
