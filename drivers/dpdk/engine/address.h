/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/address.h
 * An iface's address, as bytes and as text, and the attributes that it reports.
 */
#ifndef WEFT_ENGINE_ADDRESS_H
#define WEFT_ENGINE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_ether.h>

#include "lane.h"

struct raw_conn;
struct raw_iface;

#define RAW_ADDR_LEN 32u
#define RAW_ADDR6_LEN 56u /* with an IPv6 address */

struct raw_addr {
	uint8_t version;
	bool raw_ethertype;
	uint16_t udp_port, vlan, frame_size;
	uint32_t ip;
	uint8_t prefix, queues;
	uint8_t mac[6];
	uint64_t iface_id;
	bool six;        /* an IPv6 address, and no IPv4 address */
	uint8_t ip6[16]; /* with `six` */
};

/*
 * Reads the address of a peer of this iface. For an IPv6 address, a->ip is the number that
 * port->hosts gave it; 0: there is no room for it. @return 0; -EINVAL: too short, or of another
 * version; -EAFNOSUPPORT: the peer has an IPv6 address and this iface an IPv4 address, or the
 * reverse
 */
int raw_addr_take(const struct raw_iface *iface, const void *buf, size_t len, struct raw_addr *a);
void raw_get_address(struct weft_lane_iface *iface, void *buf);
int raw_is_reachable(struct weft_lane_iface *iface, const void *addr, size_t len, char *why,
		     size_t why_len);
int raw_next_hop(const struct raw_iface *iface, uint32_t ip, uint32_t *hop);
/* The remedy for a missing ip=; "" if ip= is given, or if no peer needs an IP address. */
const char *raw_ip_hint(const struct raw_iface *iface);

/* @p ip: IPv4, or the number of an IPv6 address in port->hosts. */
void raw_ip_text(const struct raw_iface *iface, uint32_t ip, char *buf, size_t size);
/* The end of an error text: the host's own address may be the reason why no answer comes. */
void raw_own_ip_text(const struct raw_iface *iface, char *text, size_t size);
void raw_mac_text(const uint8_t mac[6], char text[RTE_ETHER_ADDR_FMT_SIZE]);
const char *raw_peer_text(const struct raw_conn *c, char *buf, size_t size);

void raw_fill_attr(struct raw_iface *iface);

/* Sets the reported bandwidth, unless the user has set it. Called again when the link changes. */
void raw_fill_numbers(struct raw_iface *iface);

/** Boot addresses, for weft_lane_driver.boot of the drivers that open these ifaces. */
extern const struct weft_lane_boot_ops weft_raw_boot_ops;
extern const struct weft_lane_boot_ops weft_udp_boot_ops;

/** Writes an address of a raw lane as text. Needs no open iface. */
void weft_raw_print_address(const void *addr, size_t len, char *buf, size_t size);

#endif /* WEFT_ENGINE_ADDRESS_H */
