/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include <netinet/ip.h>

#include "frame/encap.h"

uint8_t weft_encap_l2(void *frame, const uint8_t dst[6], const uint8_t src[6], uint16_t vlan,
		      uint16_t type)
{
	struct rte_ether_hdr *eth = frame;
	struct rte_vlan_hdr *tag = (struct rte_vlan_hdr *)(eth + 1);

	memcpy(&eth->dst_addr, dst, RTE_ETHER_ADDR_LEN);
	memcpy(&eth->src_addr, src, RTE_ETHER_ADDR_LEN);
	if (vlan == 0) {
		eth->ether_type = rte_cpu_to_be_16(type);
		return sizeof(*eth);
	}
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
	tag->vlan_tci = rte_cpu_to_be_16(vlan);
	tag->eth_proto = rte_cpu_to_be_16(type);
	return sizeof(*eth) + sizeof(*tag);
}

static void build_ip_udp(struct weft_encap_hdr *e, const struct weft_encap_addr *a)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(e->bytes + e->l2_len);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->type_of_service = a->tos;
	/*
	 * With a wrong MTU frames must be lost, which the probe detects, and must not be
	 * fragmented.
	 */
	ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	ip->time_to_live = IPDEFTTL;
	ip->next_proto_id = IPPROTO_UDP;
	ip->src_addr = rte_cpu_to_be_32(a->src_ip);
	ip->dst_addr = rte_cpu_to_be_32(a->dst_ip);
	udp->src_port = rte_cpu_to_be_16(a->src_port);
	udp->dst_port = rte_cpu_to_be_16(a->dst_port);
	e->ip_sum = rte_raw_cksum(ip, sizeof(*ip));
	e->udp_sum = weft_pseudo_sum(ip);
}

void weft_encap_build(struct weft_encap_hdr *e, const struct weft_encap_addr *a)
{
	memset(e, 0, sizeof(*e));
	e->len = weft_encap_l2(e->bytes, a->dst_mac, a->src_mac, a->vlan,
			       a->raw_ethertype ? WEFT_FRAME_ETHERTYPE : RTE_ETHER_TYPE_IPV4);
	e->l2_len = e->len;
	e->ip = !a->raw_ethertype;
	if (e->ip) {
		build_ip_udp(e, a);
		e->len += WEFT_IP_UDP_LEN;
	}
}
