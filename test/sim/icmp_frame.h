/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file icmp_frame.h
 * ICMP of hosts and routers that are no lanes, and of forgers. Untagged.
 */
#ifndef SIM_ICMP_FRAME_H
#define SIM_ICMP_FRAME_H

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "frame/parse.h"
#include "sim.h"

#define ICMP_QUOTE_MAX 200u

/**
 * "This has not arrived", from @p src to the sender of @p frame: the first @p n bytes of it behind
 * the Ethernet header.
 * @param src  host order; 0 = the one that @p frame went to
 */
static inline void icmp_frame_inject(struct sim_port *from, const uint8_t *dst_mac, uint32_t src,
				     const uint8_t *frame, size_t n, uint8_t code)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(frame + RTE_ETHER_HDR_LEN);
	struct {
		struct rte_ether_hdr eth;
		struct rte_ipv4_hdr ip;
		struct rte_icmp_hdr icmp;
		uint8_t quote[ICMP_QUOTE_MAX];
	} f = {
		.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.ip = {.version_ihl = RTE_IPV4_VHL_DEF,
		       .time_to_live = 64,
		       .next_proto_id = IPPROTO_ICMP,
		       .src_addr = src != 0 ? rte_cpu_to_be_32(src) : ip->dst_addr,
		       .dst_addr = ip->src_addr},
		.icmp = {.icmp_type = WEFT_ICMP_UNREACHABLE, .icmp_code = code},
	};
	size_t len = sizeof(f.ip) + sizeof(f.icmp) + n;

	memcpy(&f.eth.dst_addr, dst_mac, RTE_ETHER_ADDR_LEN);
	memcpy(&f.eth.src_addr, sim_port_mac(from), RTE_ETHER_ADDR_LEN);
	memcpy(f.quote, frame + RTE_ETHER_HDR_LEN, n);
	f.ip.total_length = rte_cpu_to_be_16((uint16_t)len);
	f.ip.hdr_checksum = rte_ipv4_cksum(&f.ip);
	f.icmp.icmp_cksum = (uint16_t)~rte_raw_cksum(&f.icmp, sizeof(f.icmp) + n);
	sim_inject(from, &f, sizeof(f.eth) + len);
}

#endif /* SIM_ICMP_FRAME_H */
