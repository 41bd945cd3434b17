/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp_io.h
 * Sends frames as datagrams, and makes frames of received datagrams.
 */
#ifndef WEFT_UDP_IO_H
#define WEFT_UDP_IO_H

#include <netinet/ip.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "frame/frame.h"
#include "frame/parse.h"
#include "udp/udp.h"

uint16_t weft_udp_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n);

/** As alone() of frame/frame_port.h: from now on frames to this host leave one by one. */
void weft_udp_alone(struct weft_frame_port *fp, uint32_t ip);

int weft_udp_rx_init(struct weft_udp *u);
void weft_udp_rx_fini(struct weft_udp *u);
uint16_t weft_udp_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n);

/* ---- headers --------------------------------------------------------------------------------- */

/*
 * Headers and ARP packets, which the engine needs and a socket does not give. The kernel resolves
 * addresses, so the engine gets a MAC that is made from the host's IP address (IPv6: number).
 */

/** Bytes in front of the UDP payload. */
#define WEFT_UDP_HEAD ((uint32_t)(RTE_ETHER_HDR_LEN + WEFT_IP_UDP_LEN))

/** Make the locally administered MAC that the engine gets for a host. */
static inline void weft_udp_mac(uint32_t ip, uint8_t mac[6])
{
	mac[0] = 0x02;
	mac[1] = 'W';
	for (unsigned int i = 0; i < 4; i++)
		mac[2 + i] = (uint8_t)(ip >> (24 - 8 * i));
}

/** Source and destination of a datagram, in host order; IPv6 hosts by their numbers. */
struct weft_udp_way {
	uint32_t src_ip, dst_ip;
	uint16_t src_port, dst_port;
	uint8_t tos;
};

/**
 * Write the headers of a frame with @p len bytes behind them to @p head (#WEFT_UDP_HEAD bytes,
 * 2-byte aligned). The IPv4 header's checksum is right. The UDP checksum has been verified by the
 * kernel and is not known; its field has all bits set.
 */
static inline void weft_udp_head(uint8_t *head, const struct weft_udp_way *way, uint32_t len)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)head;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	uint32_t sum;

	weft_udp_mac(way->dst_ip, eth->dst_addr.addr_bytes);
	weft_udp_mac(way->src_ip, eth->src_addr.addr_bytes);
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = way->tos,
		.total_length = weft_be16((uint16_t)(WEFT_IP_UDP_LEN + len)),
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = IPDEFTTL,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = weft_be32(way->src_ip),
		.dst_addr = weft_be32(way->dst_ip),
	};
	/* The words are added in host order: the byte order of the sum is that of its words. */
	sum = (uint32_t)(RTE_IPV4_VHL_DEF << 8 | way->tos) + WEFT_IP_UDP_LEN + len +
	      RTE_IPV4_HDR_DF_FLAG + (IPDEFTTL << 8 | IPPROTO_UDP) + (way->src_ip >> 16) +
	      (way->src_ip & 0xffff) + (way->dst_ip >> 16) + (way->dst_ip & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->hdr_checksum = weft_be16((uint16_t)~sum);
	*udp = (struct rte_udp_hdr){
		.src_port = weft_be16(way->src_port),
		.dst_port = weft_be16(way->dst_port),
		.dgram_len = weft_be16((uint16_t)(sizeof(*udp) + len)),
		.dgram_cksum = UINT16_MAX,
	};
}

/** A frame that the engine sends: an ARP packet, or a lane frame and its way. */
struct weft_udp_sent {
	const struct rte_arp_hdr *arp; /**< NULL = a lane frame */
	bool data;                     /**< a lane frame with messages */
	struct weft_udp_way way;
};

/** Read the headers of a frame to be sent, whose first #WEFT_UDP_HEAD bytes are contiguous. */
static inline void weft_udp_read(const uint8_t *frame, struct weft_udp_sent *s)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);

	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP)) {
		s->arp = (const struct rte_arp_hdr *)(eth + 1);
		return;
	}
	s->arp = NULL;
	s->data = ((const struct weft_frame_hdr *)(udp + 1))->type == WEFT_FRAME_DATA;
	s->way = (struct weft_udp_way){
		.src_ip = weft_be32(ip->src_addr),
		.dst_ip = weft_be32(ip->dst_addr),
		.src_port = weft_be16(udp->src_port),
		.dst_port = weft_be16(udp->dst_port),
		.tos = ip->type_of_service,
	};
}

/** An ARP frame without padding. */
struct weft_udp_arp {
	struct rte_ether_hdr eth;
	struct rte_arp_hdr arp;
};

static_assert(sizeof(struct weft_udp_arp) == 42, "no padding: both parts have even lengths");

/** Build the reply to an ARP request. @return false: a probe, an announcement or a reply */
static inline bool weft_udp_arp_reply(const struct rte_arp_hdr *request, struct weft_udp_arp *reply)
{
	uint32_t ip = rte_be_to_cpu_32(request->arp_data.arp_tip);

	if (request->arp_opcode != RTE_BE16(RTE_ARP_OP_REQUEST) || request->arp_data.arp_sip == 0 ||
	    request->arp_data.arp_sip == request->arp_data.arp_tip)
		return false;
	reply->arp = *request;
	reply->arp.arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
	reply->arp.arp_data.arp_tha = request->arp_data.arp_sha;
	reply->arp.arp_data.arp_tip = request->arp_data.arp_sip;
	reply->arp.arp_data.arp_sip = request->arp_data.arp_tip;
	weft_udp_mac(ip, reply->arp.arp_data.arp_sha.addr_bytes);
	reply->eth.dst_addr = request->arp_data.arp_sha;
	reply->eth.src_addr = reply->arp.arp_data.arp_sha;
	reply->eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP);
	return true;
}

/* ---- ICMP ------------------------------------------------------------------------------------ */

#define WEFT_UDP_QUOTE 64u /* most quoted bytes of a lane frame, more than its header */

/** The kernel's report that a datagram of ours was not delivered. */
struct weft_udp_error {
	uint32_t from_ip; /**< sender of the ICMP packet, host order; IPv6: the destination */
	uint8_t code;
	struct weft_udp_way way; /**< addresses and ports of the datagram */
	uint8_t quote[WEFT_UDP_QUOTE];
};

/** The ICMP packet, with the beginning of the datagram. */
struct weft_udp_icmp {
	struct rte_ether_hdr eth;
	struct rte_ipv4_hdr ip;
	struct rte_icmp_hdr icmp;
	struct rte_ipv4_hdr quote_ip;
	struct rte_udp_hdr quote_udp;
	uint8_t quote[WEFT_UDP_QUOTE];
} __attribute__((packed, aligned(2)));

/** Build the ICMP packet with @p len quoted bytes. @return bytes of the frame */
static inline uint32_t weft_udp_icmp(const struct weft_udp_error *e, uint32_t len,
				     struct weft_udp_icmp *f)
{
	const struct weft_udp_way way = {.src_ip = e->from_ip, .dst_ip = e->way.src_ip};
	uint32_t size = (uint32_t)(sizeof(*f) - sizeof(f->quote)) + len;
	uint32_t behind = size - (uint32_t)offsetof(struct weft_udp_icmp, icmp);
	struct {
		uint8_t head[WEFT_UDP_HEAD];
	} __attribute__((aligned(2))) h;

	/* The two IP headers are as in a frame; behind the first one there is no UDP header. */
	weft_udp_head(h.head, &e->way, len);
	memcpy(&f->quote_ip, h.head + sizeof(f->eth), sizeof(f->quote_ip) + sizeof(f->quote_udp));
	weft_udp_head(h.head, &way, behind - (uint32_t)sizeof(struct rte_udp_hdr));
	memcpy(f, h.head, sizeof(f->eth) + sizeof(f->ip));
	f->ip.next_proto_id = IPPROTO_ICMP;
	f->ip.hdr_checksum = 0;
	f->ip.hdr_checksum = rte_ipv4_cksum(&f->ip);
	f->icmp = (struct rte_icmp_hdr){.icmp_type = WEFT_ICMP_UNREACHABLE, .icmp_code = e->code};
	memcpy(f->quote, e->quote, len);
	f->icmp.icmp_cksum = (uint16_t)~rte_raw_cksum(&f->icmp, behind);
	return size;
}

/**
 * Count the datagrams that the socket has dropped because it was full.
 * @param now  their number as the kernel counts, modulo 2^32. A datagram that waits in the socket
 *   has an older one
 */
static inline void weft_udp_sock_missed(struct weft_udp *u, struct weft_udp_sock *s, uint32_t now)
{
	if ((int32_t)(now - s->missed) <= 0)
		return;
	u->stats.rx_missed += now - s->missed;
	s->missed = now;
}

#endif /* WEFT_UDP_IO_H */
