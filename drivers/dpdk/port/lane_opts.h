/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/lane_opts.h
 * Options of one raw-DPDK lane: the part behind the port in an item of WEFT_LANES, as in
 * `dpdk:0,ip=10.0.0.1/24,gw=10.0.0.254,mtu=9000`. Pure: no system calls.
 */
#ifndef WEFT_LANE_OPTS_H
#define WEFT_LANE_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame/arp.h"
#include "lane.h"

#define WEFT_MTU_MIN 1280
#define WEFT_MTU_MAX 65517     /**< a frame's length, VLAN tag included, has 16 bits */
#define WEFT_LANE_PATHS_MAX 16 /**< UDP source ports of a lane */
#define WEFT_LANE_QUEUES_MAX 64

#define WEFT_LANE_OPTS_KNOWN                                                                       \
	"ip, gw, neigh, port, mtu, vlan, paths, encap, csum, queues, dscp, ecn, role, id, bsize, " \
	"rsize"

enum weft_memif_role { WEFT_MEMIF_SERVER, WEFT_MEMIF_CLIENT };

enum weft_encap { WEFT_ENCAP_UDP, WEFT_ENCAP_ETHER };

/** 0 (or -1 where stated) = not given: the configuration, or the port, decides. Host byte order. */
struct weft_lane_opts {
	uint32_t ip; /**< own IPv4 address */
	bool six;    /**< the addresses are IPv6: ip6, gw6 and those of neigh */
	uint8_t ip6[16];
	uint8_t gw6[16]; /**< 0 = none */
	/** gateway; needs ip; on the link even outside the network of ip (clouds assign /32) */
	uint32_t gw;
	uint8_t prefix;    /**< prefix length of ip, 1..32, or of ip6, 1..128 */
	uint8_t paths;     /**< UDP source ports, 1..WEFT_LANE_PATHS_MAX */
	uint16_t udp_port; /**< UDP destination port of frames to this lane */
	uint16_t mtu;      /**< IP MTU, WEFT_MTU_MIN..WEFT_MTU_MAX */
	uint16_t vlan;     /**< VLAN id, 1..4094 */
	uint16_t queues;
	uint8_t dscp; /**< of the frames that connections send, 0..63 */
	bool no_ecn;  /**< ecn=0: no frame is marked ECN-capable */
	int8_t encap; /**< enum weft_encap; -1 = not given */
	int8_t csum;  /**< enum weft_csum_mode; -1 = not given */
	/* Of a lane over a memif socket: */
	int8_t role;    /**< enum weft_memif_role; -1 = not given */
	uint8_t rsize;  /**< log2 of the entries of a ring, 1..14 */
	uint16_t bsize; /**< bytes of a buffer */
	uint32_t id;
	uint8_t num_neigh;
	struct weft_lane_neigh neigh[WEFT_LANE_NEIGH_MAX];
};

/**
 * @param text      "ip=10.0.0.1/24,mtu=9000"; NULL or "" = none
 * @param[out] opts the given options; the others are "not given"
 * @param[out] why  on error a sentence that names the option and the values that it takes
 * @return 0 or -EINVAL
 */
int weft_lane_opts_parse(const char *text, struct weft_lane_opts *opts, char *why, size_t why_len);

#endif /* WEFT_LANE_OPTS_H */
