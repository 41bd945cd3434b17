/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "drivers/dpdk/frame/arp.h"
#include "drivers/dpdk/frame/frame.h"
#include "drivers/dpdk/frame/frame_port.h"
#include "switch/forward.h"

#define ICMP_UNREACHABLE 3
#define NO_PORT (-1)
#define VLAN_ID 0xfff

/* The headers of a frame, up to the end of its head. Pointers into the head may be unaligned. */
struct view {
	const struct rte_ether_hdr *eth;
	uint16_t type;
	int vlan; /* -1 = no tag */
	const struct rte_arp_hdr *arp;
	const struct rte_ipv4_hdr *ip;
	const struct rte_udp_hdr *udp;
	const struct rte_ipv4_hdr *quoted; /* by ICMP: a packet of a port that was not delivered */
};

static uint32_t ip_at(const void *at)
{
	rte_be32_t v;

	memcpy(&v, at, sizeof(v));
	return rte_be_to_cpu_32(v);
}

static uint16_t be16_at(const void *at)
{
	rte_be16_t v;

	memcpy(&v, at, sizeof(v));
	return rte_be_to_cpu_16(v);
}

static const struct rte_ipv4_hdr *plain_ip(const uint8_t *at, uint32_t left)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)at;

	if (left < sizeof(*ip) || ip->version_ihl != RTE_IPV4_VHL_DEF ||
	    be16_at(&ip->fragment_offset) & (RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK))
		return NULL;
	return ip;
}

static bool look_into_ip(struct view *v, const uint8_t *at, uint32_t left)
{
	const struct rte_icmp_hdr *icmp;

	v->ip = plain_ip(at, left);
	if (!v->ip)
		return false;
	at += sizeof(*v->ip);
	left -= (uint32_t)sizeof(*v->ip);
	if (v->ip->next_proto_id == IPPROTO_UDP) {
		v->udp = (const struct rte_udp_hdr *)at;
		return left >= sizeof(*v->udp);
	}
	icmp = (const struct rte_icmp_hdr *)at;
	if (v->ip->next_proto_id != IPPROTO_ICMP || left < sizeof(*icmp) ||
	    icmp->icmp_type != ICMP_UNREACHABLE)
		return true;
	left -= (uint32_t)sizeof(*icmp);
	v->quoted = plain_ip(at + sizeof(*icmp), left);
	if (v->quoted && (left < sizeof(*v->quoted) + 4 || v->quoted->next_proto_id != IPPROTO_UDP))
		v->quoted = NULL;
	return true;
}

/* @return false: cut off, or IPv4 with options or of a fragment */
static bool look(struct view *v, const uint8_t *head, uint32_t len)
{
	uint32_t at = sizeof(*v->eth);

	*v = (struct view){.eth = (const struct rte_ether_hdr *)head, .vlan = -1};
	if (len < at)
		return false;
	v->type = be16_at(&v->eth->ether_type);
	if (v->type == RTE_ETHER_TYPE_VLAN) {
		at += sizeof(struct rte_vlan_hdr);
		if (len < at)
			return false;
		v->type = be16_at(head + at - 2);
		v->vlan = be16_at(head + at - 4) & VLAN_ID;
	}
	if (v->type == RTE_ETHER_TYPE_IPV4)
		return look_into_ip(v, head + at, len - at);
	if (v->type == RTE_ETHER_TYPE_ARP) {
		v->arp = (const struct rte_arp_hdr *)(head + at);
		return len - at >= sizeof(*v->arp);
	}
	return true;
}

/* No second tag and no QinQ tag is allowed: the network may strip the first tag. */
static bool is_tag(uint16_t type)
{
	return type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ ||
	       type == RTE_ETHER_TYPE_QINQ1 || type == RTE_ETHER_TYPE_QINQ2 ||
	       type == RTE_ETHER_TYPE_QINQ3;
}

static bool vlan_is_allowed(const struct sw_plan *p, uint16_t vlan)
{
	return p->vlans[vlan / 64] >> vlan % 64 & 1;
}

static bool may_pass(const struct sw_plan *p, const struct view *v)
{
	if (is_tag(v->type))
		return false;
	return v->vlan < 0 || vlan_is_allowed(p, (uint16_t)v->vlan);
}

/* ---- addresses ------------------------------------------------------------------------------ */

void sw_plan_mac(const struct sw_plan *p, unsigned int port, uint8_t mac[6])
{
	memcpy(mac, p->mac, 6);
	if (!p->single)
		mac[5] = (uint8_t)(port + 1);
}

static int by_mac(const struct sw_plan *p, const void *mac)
{
	const uint8_t *m = mac;

	if (p->single || memcmp(m, p->mac, 5) || m[5] == 0 || m[5] > p->ports)
		return NO_PORT;
	return m[5] - 1;
}

static int by_ip(const struct sw_plan *p, uint32_t ip)
{
	unsigned int i;

	for (i = 0; i < p->ports; i++)
		if (p->up >> i & 1 && p->ip[i] == ip)
			return (int)i;
	return NO_PORT;
}

static bool is_all(const struct rte_ether_hdr *eth)
{
	return eth->dst_addr.addr_bytes[0] & 1;
}

static struct sw_route dropped(enum sw_drop why)
{
	return (struct sw_route){.drop = why};
}

static struct sw_route to_port(const struct sw_plan *p, int port)
{
	if (port == NO_PORT)
		return dropped(SW_DROP_UNKNOWN);
	if (!(p->up >> port & 1))
		return (struct sw_route){.drop = SW_DROP_UNKNOWN, .gone = p->gone >> port & 1};
	return (struct sw_route){.ports = 1ull << port};
}

static struct sw_route outside(const struct sw_plan *p)
{
	return p->uplink ? (struct sw_route){.uplink = true} : dropped(SW_DROP_UNKNOWN);
}

/* ---- ARP ------------------------------------------------------------------------------------ */

/* A probe or an announcement, which all ports need. */
static bool arp_announces(const struct rte_arp_hdr *arp)
{
	uint32_t sender = ip_at(&arp->arp_data.arp_sip);

	return sender == 0 || sender == ip_at(&arp->arp_data.arp_tip);
}

static bool is_request(const struct rte_arp_hdr *arp)
{
	return be16_at(&arp->arp_opcode) == RTE_ARP_OP_REQUEST;
}

/* ---- from a port ---------------------------------------------------------------------------- */

static bool owns_source(const struct sw_plan *p, unsigned int port, const struct view *v)
{
	uint8_t mac[6];
	uint32_t ip;

	sw_plan_mac(p, port, mac);
	if (memcmp(&v->eth->src_addr, mac, 6))
		return false;
	if (v->arp) {
		ip = ip_at(&v->arp->arp_data.arp_sip);
		return !memcmp(&v->arp->arp_data.arp_sha, mac, 6) && (ip == 0 || ip == p->ip[port]);
	}
	if (v->ip && ip_at(&v->ip->src_addr) != p->ip[port])
		return false;
	return !p->single || !v->udp ||
	       weft_port_owner(p->udp_port, p->ports, be16_at(&v->udp->src_port)) == (int)port;
}

/* With one address for all, only UDP and ARP have a destination; else Weft's own type has, too. */
static bool is_carried(const struct sw_plan *p, const struct view *v)
{
	return v->udp || v->arp || (!p->single && v->type == WEFT_FRAME_ETHERTYPE);
}

static struct sw_route arp_to_all(const struct sw_plan *p, unsigned int port, const struct view *v)
{
	int owner;

	if (p->single)
		return outside(p);
	if (arp_announces(v->arp))
		return (struct sw_route){.ports = p->up & ~(1ull << port), .uplink = p->uplink};
	owner = by_ip(p, ip_at(&v->arp->arp_data.arp_tip));
	return owner == NO_PORT ? outside(p) : to_port(p, owner);
}

struct sw_route sw_from_port(const struct sw_plan *p, unsigned int port, const uint8_t *head,
			     uint32_t len)
{
	struct view v;
	int to;

	if (!look(&v, head, len))
		return dropped(SW_DROP_SHORT);
	if (!may_pass(p, &v))
		return dropped(SW_DROP_VLAN);
	if (!is_carried(p, &v))
		return dropped(SW_DROP_KIND);
	if (!owns_source(p, port, &v))
		return dropped(SW_DROP_SOURCE);
	if (is_all(v.eth))
		return v.arp ? arp_to_all(p, port, &v) : dropped(SW_DROP_KIND);
	if (p->single)
		/* No host outside has the switch's own address. */
		return memcmp(&v.eth->dst_addr, p->mac, 6) ? outside(p) : dropped(SW_DROP_UNKNOWN);
	to = by_mac(p, &v.eth->dst_addr);
	return to == NO_PORT ? outside(p) : to_port(p, to);
}

/* ---- from the uplink ------------------------------------------------------------------------ */

/*
 * ARP has no UDP port. A reply goes to all ports, as the switch keeps no record of which port sent
 * the request. A request goes to one port only, so that it gets one reply.
 */
static struct sw_route arp_single(const struct sw_plan *p, const struct view *v)
{
	if (!is_request(v->arp) || arp_announces(v->arp))
		return (struct sw_route){.ports = p->up};
	if (ip_at(&v->arp->arp_data.arp_tip) != p->ip[0] || !p->up)
		return dropped(SW_DROP_UNKNOWN);
	return to_port(p, __builtin_ctzll(p->up));
}

static struct sw_route to_single(const struct sw_plan *p, const struct view *v)
{
	const void *port = NULL;

	if (v->arp)
		return arp_single(p, v);
	if (!v->ip || ip_at(&v->ip->dst_addr) != p->ip[0])
		return dropped(SW_DROP_UNKNOWN);
	if (v->udp)
		port = &v->udp->dst_port;
	else if (v->quoted && ip_at(&v->quoted->src_addr) == p->ip[0])
		port = v->quoted + 1;
	if (!port)
		return dropped(SW_DROP_KIND);
	return to_port(p, weft_port_owner(p->udp_port, p->ports, be16_at(port)));
}

struct sw_route sw_from_uplink(const struct sw_plan *p, const uint8_t *head, uint32_t len)
{
	struct view v;

	if (!look(&v, head, len))
		return dropped(SW_DROP_SHORT);
	if (!may_pass(p, &v))
		return dropped(SW_DROP_VLAN);
	/* A host outside must not use a port's MAC; with one address for all, none is found. */
	if (by_mac(p, &v.eth->src_addr) != NO_PORT)
		return dropped(SW_DROP_SOURCE);
	if (p->single)
		return is_all(v.eth) || !memcmp(&v.eth->dst_addr, p->mac, 6)
			       ? to_single(p, &v)
			       : dropped(SW_DROP_UNKNOWN);
	if (!is_all(v.eth))
		return to_port(p, by_mac(p, &v.eth->dst_addr));
	if (!v.arp)
		return dropped(SW_DROP_KIND);
	if (!is_request(v.arp) || arp_announces(v.arp))
		return (struct sw_route){.ports = p->up};
	return to_port(p, by_ip(p, ip_at(&v.arp->arp_data.arp_tip)));
}

/* ---- ports whose process has ended ---------------------------------------------------------- */

/*
 * The kernel reports the end of a client to the switch, which answers in its place: a frame of a
 * connection gets a farewell, as a successor at this address would send RESET. The farewell
 * contains the numbers of the frame that it answers, so no other host can send it. An ARP probe
 * makes peers without traffic send such a frame.
 */

/* HELLO gets no farewell: its sender repeats it, and a process may soon have the port again. */
static bool is_answered(const struct weft_frame_hdr *hdr)
{
	if (weft_get16(hdr->magic) != WEFT_FRAME_MAGIC || hdr->version != WEFT_FRAME_VERSION)
		return false;
	switch (hdr->type) {
	case WEFT_FRAME_HELLO:
	case WEFT_FRAME_HELLO_RETRY:
	case WEFT_FRAME_RESET:
	case WEFT_FRAME_CHALLENGE:
		return false;
	default:
		return true;
	}
}

static const struct weft_frame_hdr *lane_header(const struct view *v, const uint8_t *head,
						uint32_t len)
{
	const uint8_t *at = head + sizeof(*v->eth);

	if (v->vlan >= 0)
		at += sizeof(struct rte_vlan_hdr);
	if (v->udp)
		at = (const uint8_t *)(v->udp + 1);
	else if (v->type != WEFT_FRAME_ETHERTYPE)
		return NULL;
	if ((uint32_t)(at - head) + sizeof(struct weft_frame_hdr) > len)
		return NULL;
	return (const struct weft_frame_hdr *)at;
}

uint32_t sw_farewell(const uint8_t *head, uint32_t len, uint8_t *out)
{
	const struct weft_frame_hdr *hdr;
	struct weft_encap_addr a = {0};
	struct view v;

	if (!look(&v, head, len))
		return 0;
	hdr = lane_header(&v, head, len);
	if (!hdr || !is_answered(hdr))
		return 0;
	memcpy(a.src_mac, &v.eth->dst_addr, 6);
	memcpy(a.dst_mac, &v.eth->src_addr, 6);
	a.vlan = v.vlan > 0 ? (uint16_t)v.vlan : 0;
	a.raw_ethertype = !v.udp;
	if (v.udp) {
		a.src_ip = ip_at(&v.ip->dst_addr);
		a.dst_ip = ip_at(&v.ip->src_addr);
		a.src_port = be16_at(&v.udp->dst_port);
		a.dst_port = be16_at(&v.udp->src_port);
	}
	return weft_frame_farewell(out, &a, weft_get16(hdr->src_conn), weft_get32(hdr->dst_conn),
				   weft_get32(hdr->token));
}

uint32_t sw_probe(const struct sw_plan *p, unsigned int port, uint8_t *out)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const uint32_t len = RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN;
	struct weft_arp from = {.ip = p->ip[port]};
	struct rte_arp_hdr probe;
	uint8_t l2;

	sw_plan_mac(p, port, from.mac);
	weft_arp_probe(&from, &probe);
	memset(out, 0, len);
	l2 = weft_encap_l2(out, broadcast, from.mac, 0, RTE_ETHER_TYPE_ARP);
	memcpy(out + l2, &probe, sizeof(probe));
	return len;
}
