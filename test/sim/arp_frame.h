/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arp_frame.h
 * ARP of stations that are no lanes: routers, neighbours, impostors. Untagged.
 */
#ifndef SIM_ARP_FRAME_H
#define SIM_ARP_FRAME_H

#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ether.h>

#include "sim.h"

/** @return the packet, NULL when the frame is no ARP or too short */
static inline const struct rte_arp_hdr *arp_frame(const uint8_t *data, size_t len)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)data;
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)(eth + 1);

	return len >= sizeof(*eth) + sizeof(*arp) && eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP)
		       ? arp
		       : NULL;
}

/** Is it a question? @p arp may be NULL */
static inline bool arp_is_request(const struct rte_arp_hdr *arp)
{
	return arp && arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST);
}

/** "@p sip is at @p sha", to the one at @p tha, in network byte order. */
static inline void arp_inject(struct sim_port *port, uint16_t op, const uint8_t *sha,
			      rte_be32_t sip, const uint8_t *tha, rte_be32_t tip)
{
	struct {
		struct rte_ether_hdr eth;
		struct rte_arp_hdr arp;
		uint8_t padding[18];
	} f = {
		.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP),
		.arp = {.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
			.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
			.arp_hlen = RTE_ETHER_ADDR_LEN,
			.arp_plen = sizeof(sip),
			.arp_opcode = rte_cpu_to_be_16(op),
			.arp_data.arp_sip = sip,
			.arp_data.arp_tip = tip},
	};

	memcpy(&f.eth.dst_addr, tha, RTE_ETHER_ADDR_LEN);
	memcpy(&f.eth.src_addr, sha, RTE_ETHER_ADDR_LEN);
	f.arp.arp_data.arp_sha = f.eth.src_addr;
	f.arp.arp_data.arp_tha = f.eth.dst_addr;
	sim_inject(port, (const uint8_t *)&f, sizeof(f));
}

/** The answer to @p request: it is at @p sha. */
static inline void arp_answer(struct sim_port *port, const uint8_t *sha,
			      const struct rte_arp_hdr *request)
{
	arp_inject(port, RTE_ARP_OP_REPLY, sha, request->arp_data.arp_tip,
		   request->arp_data.arp_sha.addr_bytes, request->arp_data.arp_sip);
}

#endif /* SIM_ARP_FRAME_H */
