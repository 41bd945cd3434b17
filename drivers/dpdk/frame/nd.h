/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/nd.h
 * Neighbour discovery of IPv6 (RFC 4861), in place of ARP. Pure: reads and writes frames.
 *
 * The rules of trust are those of ARP, and so are the table and the code: a solicitation is an ARP
 * request, and an advertisement an ARP reply, with numbers (frame/hosts.h) as addresses. The
 * functions here translate. A test for a duplicate address is an ARP probe, and an unsolicited
 * advertisement to all nodes an ARP reply that names its sender twice.
 */
#ifndef WEFT_ND_H
#define WEFT_ND_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_arp.h>
#include <rte_ether.h>

#include "frame/hosts.h"
#include "frame/parse.h"

/** Bytes of the longest frame: headers, ICMPv6 with a target, and an option. */
#define WEFT_ND_MAX \
	(RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + (uint32_t)sizeof(struct rte_ipv6_hdr) + 24u + 8u)

/**
 * Translate a message of the verdict WEFT_VERDICT_ND.
 *
 * A message about our address gives its sender a number. Others are read if both hosts have one.
 * @return false: it concerns no host of this lane
 */
bool weft_nd_read(const struct weft_rx_filter *conf, struct weft_hosts *hosts,
		  const struct weft_nd *nd, struct rte_arp_hdr *arp);

/**
 * Write the frame that takes the place of an ARP packet.
 * @param frame  room for WEFT_ND_MAX
 * @return its length; 0: a host of it has lost its number
 */
uint32_t weft_nd_write(const struct weft_rx_filter *conf, const struct weft_hosts *hosts,
		       const struct rte_arp_hdr *arp, uint8_t *frame);

#endif /* WEFT_ND_H */
