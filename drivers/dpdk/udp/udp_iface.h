/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp_iface.h
 * The interfaces of this host that can be lanes over UDP sockets, and what the kernel reports of
 * them.
 */
#ifndef WEFT_UDP_IFACE_H
#define WEFT_UDP_IFACE_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>

#include "lane.h"

/** An address of an interface. */
struct weft_udp_iface {
	char name[IF_NAMESIZE];
	unsigned int index;
	unsigned int flags; /**< IFF_* */
	uint32_t ip;        /**< host order; 0: the address is of IPv6 */
	struct in6_addr ip6;
	uint8_t prefix;
};

/**
 * List the interfaces that can be lanes: those that are up and have an IPv4 address, or an IPv6
 * address that is not link-local. Loopback is marked as "inside". Point-to-point interfaces, and
 * bridges without a device of this host are not listed; they can be opened by name.
 * @param add  called for each, as in query() of struct weft_lane_driver
 * @return 0, or a negative error
 */
int weft_udp_list(weft_lane_resource_cb add, void *arg);

/** All addresses of interfaces. @return number (list malloc()ed), or a negative error */
int weft_udp_iface_list(struct weft_udp_iface **list);

/** @param fd  any socket. @return MTU, or a negative error */
int weft_udp_iface_mtu(int fd, const char *name);
/** @param fd  any socket. @return IFF_* flags, or a negative error */
int weft_udp_iface_flags(int fd, const char *name);
/** @return bytes/s as the interface reports; 0 = not known */
double weft_udp_iface_speed(const char *name);

#endif /* WEFT_UDP_IFACE_H */
