/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/peer.h
 * The peer's addresses, and the MAC address behind them.
 */
#ifndef WEFT_ENGINE_PEER_H
#define WEFT_ENGINE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_ether.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

/* ---- engine/address.c: addresses of ifaces */
#define RAW_ADDR_LEN 32u

struct raw_addr {
	uint8_t version;
	bool raw_ethertype;
	uint16_t udp_port, vlan, frame_size;
	uint32_t ip;
	uint8_t prefix, queues;
	uint8_t mac[6];
	uint64_t iface_id;
};

int raw_addr_read(const void *buf, size_t len, struct raw_addr *a);
void raw_get_address(struct weft_lane_iface *iface, void *buf);
int raw_is_reachable(struct weft_lane_iface *iface, const void *addr, size_t len, char *why,
		     size_t why_len);
int raw_next_hop(const struct raw_iface *iface, uint32_t ip, uint32_t *hop);
/* The remedy for a missing ip=; "" if there is one, or if no peer needs it. */
const char *raw_ip_hint(const struct raw_iface *iface);

void raw_mac_text(const uint8_t mac[6], char text[RTE_ETHER_ADDR_FMT_SIZE]);
/* The peer's address, human-readable. @return @p buf */
const char *raw_peer_text(const struct raw_conn *c, char *buf, size_t size);

/* ---- engine/neighbour.c: ARP requests */

/*
 * Request an address, if a request is due. `theirs`: an unknown sender claims the address. @return
 * true: the request was sent
 */
bool raw_arp_request(struct raw_iface *iface, uint32_t ip, bool theirs);

/* ---- engine/move.c: the peer's MAC address may have changed */

/* The peer is silent: check whether it is behind another MAC now. */
void raw_move_look(struct raw_conn *c);
/* Check whether the peer is behind this MAC. */
void raw_move_challenge(struct raw_conn *c, const uint8_t mac[6]);
void raw_challenge_input(struct raw_iface *iface, const struct weft_frame_view *v);
void raw_challenge_ack_input(struct raw_conn *c, const struct weft_frame_view *v);

#endif /* WEFT_ENGINE_PEER_H */
