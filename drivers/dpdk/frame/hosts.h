/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/hosts.h
 * The hosts of an IPv6 lane. The engine knows a host by a number of 32 bits, as by an IPv4 address.
 * So each IPv6 address has such a number here, which no other lane sees. Over UDP sockets it is
 * also the IPv4 address in the headers of the engine's frames. Pure, but for random bytes at the
 * start.
 *
 * Any host may send a frame, so the table is bounded. A new address replaces the one that was
 * idle for longest, but no host that a connection holds, whatever other hosts send. A number
 * contains a generation. So frames for an address that was replaced reach no other host.
 *
 * An address has WAYS places. If connections hold all of them, a new host gets no number.
 */
#ifndef WEFT_HOSTS_H
#define WEFT_HOSTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define WEFT_HOSTS 4096u /* a power of two */

struct weft_host {
	struct in6_addr ip;
	uint64_t used; /* number of the last use of this host, counted over all hosts; 0 = free */
	uint32_t held; /* connections; the lane itself holds its own address */
	uint32_t generation;
};

struct weft_hosts {
	struct weft_siphash_key key; /* random: no peer can choose the host that it replaces */
	uint64_t uses;
	struct weft_host host[WEFT_HOSTS];
};

/* Addresses are 16 bytes, at any position of a frame. */

/** @param own  the lane's address, which is never replaced. @return NULL: no memory */
struct weft_hosts *weft_hosts_new(const void *own);

/** @return the number of @p ip, of a new host if it has none yet; 0 = there is no room */
uint32_t weft_hosts_number(struct weft_hosts *h, const void *ip);

/** @return the number of @p ip; 0 = it has none */
uint32_t weft_hosts_find(const struct weft_hosts *h, const void *ip);

/** A connection with the host begins, or it ends: in between no other host replaces this one. */
void weft_hosts_hold(struct weft_hosts *h, uint32_t number, bool yes);

/** @return the address, or NULL: no host has this number now */
const struct in6_addr *weft_hosts_ip(const struct weft_hosts *h, uint32_t number);

#endif /* WEFT_HOSTS_H */
