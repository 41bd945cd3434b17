/* SPDX-License-Identifier: BSD-3-Clause */

#include <netinet/in.h>
#include <string.h>

#include <rte_arp.h>

#include "capture/six.h"

#define HEAD ((uint32_t)RTE_ETHER_HDR_LEN + WEFT_IP_UDP_LEN)

/* The kernel writes the checksum. Here it is that of the whole frame, whatever is captured. */
static void fill_checksum(const struct rte_mbuf *m, const struct rte_ipv6_hdr *ip,
			  struct rte_udp_hdr *udp)
{
	uint16_t rest = 0;
	uint32_t sum;

	if (m->pkt_len > HEAD && rte_raw_cksum_mbuf(m, HEAD, m->pkt_len - HEAD, &rest))
		return;
	sum = (uint32_t)weft_pseudo6_sum(ip) + udp->dgram_len + rte_raw_cksum(udp, sizeof(*udp)) +
	      rest;
	udp->dgram_cksum = (uint16_t)~weft_csum_fold(sum);
	if (udp->dgram_cksum == 0)
		udp->dgram_cksum = UINT16_MAX;
}

static void lane_head(const struct weft_hosts *hosts, const struct rte_mbuf *m, uint32_t whole,
		      struct weft_six_head *head)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct in6_addr *src = weft_hosts_ip(hosts, weft_be32(ip->src_addr));
	const struct in6_addr *dst = weft_hosts_ip(hosts, weft_be32(ip->dst_addr));
	struct rte_ether_hdr *eth6 = (struct rte_ether_hdr *)head->bytes;
	struct rte_ipv6_hdr *ip6 = (struct rte_ipv6_hdr *)(eth6 + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip6 + 1);

	if (ip->next_proto_id != IPPROTO_UDP || !src || !dst)
		return;
	*eth6 = *eth;
	eth6->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	memcpy(udp, ip + 1, sizeof(*udp));
	*ip6 = (struct rte_ipv6_hdr){
		.vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)ip->type_of_service << 20),
		.payload_len = udp->dgram_len,
		.proto = IPPROTO_UDP,
		.hop_limits = ip->time_to_live,
	};
	memcpy(&ip6->src_addr, src, sizeof(*src));
	memcpy(&ip6->dst_addr, dst, sizeof(*dst));
	udp->dgram_cksum = 0;
	if (m->pkt_len + WEFT_IP6_MORE <= whole)
		fill_checksum(m, ip6, udp);
	head->len = (uint32_t)(sizeof(*eth6) + WEFT_IP6_UDP_LEN);
	head->skip = HEAD;
}

/* A packet of either host: its sender is the host that the frame of discovery is from. */
static void arp_head(const struct weft_hosts *hosts, const struct rte_mbuf *m,
		     struct weft_six_head *head)
{
	const struct rte_arp_hdr *arp =
		rte_pktmbuf_mtod_offset(m, const struct rte_arp_hdr *, RTE_ETHER_HDR_LEN);
	struct weft_rx_filter sender = {.ip = weft_be32(arp->arp_data.arp_sip)};
	const struct in6_addr *ip = weft_hosts_ip(hosts, sender.ip);

	if (!ip && sender.ip)
		return;
	if (ip) /* else it is a probe */
		memcpy(sender.ip6, ip, sizeof(sender.ip6));
	memcpy(sender.mac, &arp->arp_data.arp_sha, sizeof(sender.mac));
	head->len = weft_nd_write(&sender, hosts, arp, head->bytes);
	head->skip = head->len ? m->pkt_len : 0;
}

void weft_six_head(const struct weft_hosts *hosts, const struct rte_mbuf *m, uint32_t whole,
		   struct weft_six_head *head)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	head->len = head->skip = 0;
	if (m->data_len < HEAD)
		return;
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		lane_head(hosts, m, whole, head);
	else if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		arp_head(hosts, m, head);
}
