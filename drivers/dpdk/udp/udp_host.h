/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp_host.h
 * The hosts of an IPv6 lane. The engine knows a host by a number of 32 bits, which is the IPv4
 * address in the headers of its frames. So each IPv6 address has such a number here, which no other
 * lane sees. Pure, but for random bytes at the start.
 *
 * Any host may send a datagram, so the table is bounded. A new address replaces the one that was
 * idle for longest, but no host that a connection holds, whatever other hosts send. A number
 * contains a generation. So frames for an address that was replaced reach no other host.
 *
 * An address has WAYS places. If connections hold all of them, a new host gets no number.
 */
#ifndef WEFT_UDP_HOST_H
#define WEFT_UDP_HOST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define WEFT_UDP_HOSTS 4096u /* a power of two */

struct weft_udp_host {
	struct in6_addr ip;
	uint64_t used; /* uses of the table before the last use of this host; 0 = free */
	uint32_t held; /* connections; the lane itself holds its own address */
	uint32_t generation;
};

struct weft_udp_hosts {
	struct weft_siphash_key key; /* random: no peer can choose the host that it replaces */
	uint64_t uses;
	struct weft_udp_host host[WEFT_UDP_HOSTS];
};

/** @param own  the lane's address, which is never replaced. @return NULL: no memory */
struct weft_udp_hosts *weft_udp_hosts_new(const struct in6_addr *own);

/** @return the number of @p ip, of a new host if it has none yet; 0 = there is no room */
uint32_t weft_udp_host_number(struct weft_udp_hosts *h, const struct in6_addr *ip);

/** A connection with the host begins, or it ends: in between no other host replaces this one. */
void weft_udp_host_hold(struct weft_udp_hosts *h, uint32_t number, bool yes);

/** @return the address, or NULL: no host has this number now */
const struct in6_addr *weft_udp_host_ip(const struct weft_udp_hosts *h, uint32_t number);

#endif /* WEFT_UDP_HOST_H */
