/* SPDX-License-Identifier: BSD-3-Clause */

/* Neighbour discovery: translation from and to ARP. */

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>

#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/nd.h"

#define SOLICIT 135u
#define ADVERTISE 136u
#define ANSWERS 0x40u /* flags of an advertisement: it answers; it replaces a known MAC address */
#define OVERRIDES 0x20u
#define HOPS 255u
#define OPTION_SOURCE 1u
#define OPTION_TARGET 2u
#define OPTION_UNITS 1u /* of 8 bytes */

struct nd_msg {
	uint8_t type, code;
	rte_be16_t checksum;
	uint8_t flags[4];
	uint8_t target[16];
	uint8_t option, units;
	uint8_t mac[6];
} __attribute__((packed));

/* ---------------------------------------------------------------- reading */

static bool read_solicit(const struct weft_rx_filter *conf, struct weft_hosts *hosts,
			 const struct weft_nd *nd, uint32_t *sip, uint32_t *tip)
{
	bool ours = memcmp(nd->target, conf->ip6, sizeof(conf->ip6)) == 0;

	*tip = ours ? conf->ip : weft_hosts_find(hosts, nd->target);
	*sip = 0;
	if (!nd->src)
		return *tip != 0;
	*sip = ours ? weft_hosts_number(hosts, nd->src) : weft_hosts_find(hosts, nd->src);
	return *sip != 0;
}

bool weft_nd_read(const struct weft_rx_filter *conf, struct weft_hosts *hosts,
		  const struct weft_nd *nd, struct rte_arp_hdr *arp)
{
	uint32_t sip, tip = conf->ip;

	if (nd->solicit) {
		if (!read_solicit(conf, hosts, nd, &sip, &tip))
			return false;
	} else {
		sip = weft_hosts_find(hosts, nd->target);
		if (sip == 0)
			return false;
		if (nd->to_group)
			tip = sip;
	}
	*arp = (struct rte_arp_hdr){
		.arp_opcode =
			nd->solicit ? RTE_BE16(RTE_ARP_OP_REQUEST) : RTE_BE16(RTE_ARP_OP_REPLY),
		.arp_data.arp_sip = rte_cpu_to_be_32(sip),
		.arp_data.arp_tip = rte_cpu_to_be_32(tip),
	};
	memcpy(&arp->arp_data.arp_sha, nd->mac, RTE_ETHER_ADDR_LEN);
	return true;
}

/* ---------------------------------------------------------------- writing */

/* The content of the headers of a message. */
struct way {
	const uint8_t *target;
	uint8_t dst[16], dst_mac[6];
	bool probe; /* a test for a duplicate address: the sender has none yet */
};

static bool find_way(const struct weft_rx_filter *conf, const struct weft_hosts *hosts,
		     const struct rte_arp_hdr *arp, bool request, struct way *w)
{
	uint32_t tip = rte_be_to_cpu_32(arp->arp_data.arp_tip);
	const struct in6_addr *to = weft_hosts_ip(hosts, tip);

	*w = (struct way){.target = conf->ip6};
	if (request) {
		if (!to)
			return false;
		w->probe = arp->arp_data.arp_sip == 0;
		w->target = to->s6_addr;
		weft_ip6_group(w->target, w->dst, w->dst_mac);
	} else if (tip == 0 || tip == conf->ip) {
		weft_ip6_group(NULL, w->dst, w->dst_mac);
	} else {
		if (!to)
			return false;
		memcpy(w->dst, to, sizeof(w->dst));
		memcpy(w->dst_mac, &arp->arp_data.arp_tha, sizeof(w->dst_mac));
	}
	return true;
}

static void fill_msg(const struct weft_rx_filter *conf, const struct rte_arp_hdr *arp, bool request,
		     const struct way *w, struct nd_msg *msg)
{
	uint32_t tip = rte_be_to_cpu_32(arp->arp_data.arp_tip);

	msg->type = request ? SOLICIT : ADVERTISE;
	/* An announcement changes no table: tip is our own address. */
	if (!request && tip != conf->ip)
		msg->flags[0] = tip != 0 ? ANSWERS | OVERRIDES : OVERRIDES;
	memcpy(msg->target, w->target, sizeof(msg->target));
	msg->option = request ? OPTION_SOURCE : OPTION_TARGET;
	msg->units = OPTION_UNITS;
	memcpy(msg->mac, conf->mac, sizeof(msg->mac));
}

uint32_t weft_nd_write(const struct weft_rx_filter *conf, const struct weft_hosts *hosts,
		       const struct rte_arp_hdr *arp, uint8_t *frame)
{
	bool request = arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST);
	struct rte_ipv6_hdr *ip;
	struct nd_msg *msg;
	struct way w;
	uint16_t len;
	uint8_t l2;

	if (!find_way(conf, hosts, arp, request, &w))
		return 0;
	memset(frame, 0, WEFT_ND_MAX);
	l2 = weft_encap_l2(frame, w.dst_mac, conf->mac, conf->vlan, RTE_ETHER_TYPE_IPV6);
	ip = (struct rte_ipv6_hdr *)(frame + l2);
	msg = (struct nd_msg *)(ip + 1);
	fill_msg(conf, arp, request, &w, msg);
	len = w.probe ? offsetof(struct nd_msg, option) : sizeof(*msg);
	ip->vtc_flow = RTE_BE32(6u << 28);
	ip->payload_len = rte_cpu_to_be_16(len);
	ip->proto = IPPROTO_ICMPV6;
	ip->hop_limits = HOPS;
	if (!w.probe)
		memcpy(&ip->src_addr, conf->ip6, sizeof(conf->ip6));
	memcpy(&ip->dst_addr, w.dst, sizeof(w.dst));
	msg->checksum = (uint16_t)~weft_ip6_sum(ip, msg, len);
	return l2 + (uint32_t)sizeof(*ip) + len;
}
