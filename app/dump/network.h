/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/network.h
 * Addresses, and the protocols that find hosts and report errors: ARP, neighbour discovery of IPv6,
 * ICMP and ICMPv6. Any host can write such packets, so the functions here check all that they read.
 */
#ifndef DUMP_NETWORK_H
#define DUMP_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_ip.h>

enum dump_address_kind {
	ADDRESS_NONE,
	ADDRESS_IP4,
	ADDRESS_IP6,
	ADDRESS_MAC,
	ADDRESS_WORKER, /**< the id of a worker, for lanes without frames */
};

struct dump_address {
	uint8_t kind;  /**< enum dump_address_kind */
	uint8_t b[16]; /**< network byte order; bytes behind the address are 0 */
};

/** @param at  bytes of the address: 4, 16, 6 or 8 by its kind */
static inline struct dump_address dump_address(enum dump_address_kind kind, const void *at)
{
	static const uint8_t size[] = {
		[ADDRESS_IP4] = 4, [ADDRESS_IP6] = 16, [ADDRESS_MAC] = 6, [ADDRESS_WORKER] = 8};
	struct dump_address a = {.kind = (uint8_t)kind};

	memcpy(a.b, at, size[kind]);
	return a;
}

static inline bool dump_address_same(const struct dump_address *a, const struct dump_address *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/** Is the address no host's: none, 0.0.0.0 or "::"? */
bool dump_address_is_none(const struct dump_address *a);

#define DUMP_ADDRESS_LEN 46u /**< room for the text of any address */

/** @return buf */
const char *dump_address_text(const struct dump_address *a, char buf[DUMP_ADDRESS_LEN]);

/** A request for the MAC address of a host, or the answer to one: ARP, or neighbour discovery. */
struct dump_neighbour {
	bool answer;
	struct dump_address
		from; /**< host whose MAC address it states; 0 in a test for duplicates */
	/** of a request: the host whose MAC address is requested; of an answer: its destination */
	struct dump_address to;
	uint8_t mac[6]; /**< of @p from */
};

enum dump_icmp_error {
	ICMP_ERROR_NONE,
	ICMP_ERROR_UNREACHABLE,
	ICMP_ERROR_NO_PORT,
	ICMP_ERROR_PROHIBITED,
	ICMP_ERROR_TOO_LONG,
	ICMP_ERROR_TIME, /**< the hop limit is used up */
};

/** An error that quotes a UDP packet. */
struct dump_icmp {
	enum dump_icmp_error error;
	uint8_t type, code;           /**< of ICMP, or of ICMPv6 */
	uint32_t mtu;                 /**< of ICMP_ERROR_TOO_LONG: bytes that pass; 0 = not known */
	struct dump_address src, dst; /**< of the packet */
	uint16_t port;                /**< the packet's destination */
};

/*
 * Each function reads at most @p cap bytes: of ARP, or behind the IP header. The packet had @p len
 * bytes there. If a capture has cut it, the checksum is not verified.
 */

/** @return false: it is no ARP for IPv4 over Ethernet */
bool network_arp(const struct rte_arp_hdr *arp, uint32_t cap, struct dump_neighbour *n);

/**
 * A message of ICMPv6: a solicitation or an advertisement that RFC 4861 allows.
 * @param src_mac  of the frame. @return false: another message, or an invalid one
 */
bool network_nd(const struct rte_ipv6_hdr *ip, uint32_t len, uint32_t cap, const uint8_t *src_mac,
		struct dump_neighbour *n);

/** An error of ICMP about a UDP packet. @return false: another message, or an invalid one */
bool network_icmp(const struct rte_ipv4_hdr *ip, uint32_t len, uint32_t cap, struct dump_icmp *i);

/** network_icmp() for ICMPv6. */
bool network_icmp6(const struct rte_ipv6_hdr *ip, uint32_t len, uint32_t cap, struct dump_icmp *i);

#endif /* DUMP_NETWORK_H */
