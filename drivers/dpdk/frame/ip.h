/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/ip.h
 * IPv4 addresses of lanes, in host byte order. Pure.
 */
#ifndef WEFT_FRAME_IP_H
#define WEFT_FRAME_IP_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_LANE_PREFIX_LOCAL 16 /**< prefix length of link-local addresses */
#define WEFT_LANE_NEIGH_MAX 8     /**< static neighbours of a lane */

/** A neighbour whose MAC address is known without ARP. */
struct weft_lane_neigh {
	uint32_t ip;
	uint8_t mac[6];
};

/** Can a host have this address? */
bool weft_lane_is_unicast(uint32_t ip);

/**
 * The link-local address (169.254/16, RFC 3927's range) of a MAC: the same MAC gives the same
 * address. Two MACs may share one (1 in 65024): lanes then need ip=.
 */
uint32_t weft_lane_link_local(const uint8_t mac[6]);

#endif /* WEFT_FRAME_IP_H */
