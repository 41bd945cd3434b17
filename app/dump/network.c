/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "drivers/dpdk/frame/frame.h"
#include "dump/network.h"

/* ---- addresses ------------------------------------------------------------------------------ */

bool dump_address_is_none(const struct dump_address *a)
{
	static const uint8_t zeros[sizeof(a->b)];

	return memcmp(a->b, zeros, sizeof(zeros)) == 0;
}

const char *dump_address_text(const struct dump_address *a, char buf[DUMP_ADDRESS_LEN])
{
	const uint8_t *b = a->b;
	uint64_t worker;

	memcpy(&worker, b, sizeof(worker));
	switch (a->kind) {
	case ADDRESS_IP4:
		snprintf(buf, DUMP_ADDRESS_LEN, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
		break;
	case ADDRESS_IP6:
		inet_ntop(AF_INET6, b, buf, DUMP_ADDRESS_LEN);
		break;
	case ADDRESS_MAC:
		snprintf(buf, DUMP_ADDRESS_LEN, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2],
			 b[3], b[4], b[5]);
		break;
	case ADDRESS_WORKER:
		snprintf(buf, DUMP_ADDRESS_LEN, "%016" PRIx64, worker);
		break;
	default:
		snprintf(buf, DUMP_ADDRESS_LEN, "?");
	}
	return buf;
}

/* ---- ARP ------------------------------------------------------------------------------------ */

bool network_arp(const struct rte_arp_hdr *arp, uint32_t cap, struct dump_neighbour *n)
{
	const struct rte_arp_ipv4 *a = &arp->arp_data;

	if (cap < sizeof(*arp) || arp->arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
	    arp->arp_hlen != RTE_ETHER_ADDR_LEN || arp->arp_plen != sizeof(a->arp_sip))
		return false;
	*n = (struct dump_neighbour){
		.answer = arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY),
		.from = dump_address(ADDRESS_IP4, &a->arp_sip),
		.to = dump_address(ADDRESS_IP4, &a->arp_tip),
	};
	memcpy(n->mac, a->arp_sha.addr_bytes, sizeof(n->mac));
	return true;
}

/* ---- neighbour discovery -------------------------------------------------------------------- */

#define SOLICIT 135u
#define ADVERTISE 136u
#define ND_HOPS 255u /* a router would have reduced it: the sender is on this link */
#define ND_HEAD 24u  /* type, code, checksum, flags and target */
#define ND_TARGET 8u /* offset of the target address */
#define OPTION_SOURCE 1u
#define OPTION_TARGET 2u
#define OPTION_UNIT 8u /* bytes in a unit of an option's length */

/* The checksum of a message that the capture has cut is not verified. */
static bool checksum_ok6(const struct rte_ipv6_hdr *ip, uint32_t len, uint32_t cap)
{
	return cap < len || weft_ip6_sum(ip, ip + 1, len) == UINT16_MAX;
}

/*
 * Find the option with a MAC address. @param cut  the capture lacks some options
 * @return false: options contradict their lengths
 */
static bool find_mac(const uint8_t *p, uint32_t left, bool cut, uint8_t type, const uint8_t **mac)
{
	uint32_t size;

	for (; left >= OPTION_UNIT; p += size, left -= size) {
		size = p[1] * OPTION_UNIT;
		if (size == 0 || (size > left && !cut))
			return false;
		if (size > left)
			return true;
		if (p[0] == type && size == OPTION_UNIT)
			*mac = p + 2;
	}
	return cut || left == 0;
}

bool network_nd(const struct rte_ipv6_hdr *ip, uint32_t len, uint32_t cap, const uint8_t *src_mac,
		struct dump_neighbour *n)
{
	const uint8_t *p = (const uint8_t *)(ip + 1), *mac = src_mac;
	struct dump_address target, src = dump_address(ADDRESS_IP6, &ip->src_addr);
	bool answer;

	if (cap < ND_HEAD || (p[0] != SOLICIT && p[0] != ADVERTISE) || p[1] != 0 ||
	    ip->hop_limits != ND_HOPS)
		return false;
	answer = p[0] == ADVERTISE;
	target = dump_address(ADDRESS_IP6, p + ND_TARGET);
	if (target.b[0] == 0xff || dump_address_is_none(&target) || src.b[0] == 0xff ||
	    (answer && dump_address_is_none(&src)))
		return false;
	if (!find_mac(p + ND_HEAD, cap - ND_HEAD, cap < len, answer ? OPTION_TARGET : OPTION_SOURCE,
		      &mac) ||
	    !checksum_ok6(ip, len, cap))
		return false;
	*n = (struct dump_neighbour){
		.answer = answer,
		.from = answer ? target : src,
		.to = answer ? dump_address(ADDRESS_IP6, &ip->dst_addr) : target,
	};
	memcpy(n->mac, mac, sizeof(n->mac));
	return true;
}

/* ---- errors --------------------------------------------------------------------------------- */

#define ICMP_HEAD 8u /* bytes in front of the quoted packet */
#define UDP_HEAD ((uint32_t)sizeof(struct rte_udp_hdr))

static uint16_t quoted_port(const void *behind_ip)
{
	struct rte_udp_hdr udp;

	memcpy(&udp, behind_ip, sizeof(udp));
	return rte_be_to_cpu_16(udp.dst_port);
}

/* Types and codes of RFC 792, 1122, 1191 and 1812. */
static enum dump_icmp_error error_of(uint8_t type, uint8_t code)
{
	if (type == 11)
		return ICMP_ERROR_TIME;
	if (type != 3)
		return ICMP_ERROR_NONE;
	switch (code) {
	case 3:
		return ICMP_ERROR_NO_PORT;
	case 4:
		return ICMP_ERROR_TOO_LONG;
	case 9:
	case 10:
	case 13:
		return ICMP_ERROR_PROHIBITED;
	default:
		return ICMP_ERROR_UNREACHABLE;
	}
}

/* Types and codes of RFC 4443. Codes 5 and 6 are those of a policy and of a route that rejects. */
static enum dump_icmp_error error_of6(uint8_t type, uint8_t code)
{
	if (type == 2)
		return ICMP_ERROR_TOO_LONG;
	if (type == 3)
		return ICMP_ERROR_TIME;
	if (type != 1)
		return ICMP_ERROR_NONE;
	switch (code) {
	case 1:
	case 5:
	case 6:
		return ICMP_ERROR_PROHIBITED;
	case 4:
		return ICMP_ERROR_NO_PORT;
	default:
		return ICMP_ERROR_UNREACHABLE;
	}
}

bool network_icmp(const struct rte_ipv4_hdr *ip, uint32_t len, uint32_t cap, struct dump_icmp *i)
{
	const uint8_t *p = (const uint8_t *)(ip + 1);
	const struct rte_ipv4_hdr *quoted = (const struct rte_ipv4_hdr *)(p + ICMP_HEAD);

	if (cap < ICMP_HEAD + sizeof(*quoted) + UDP_HEAD || !weft_ipv4_header_ok(ip) ||
	    ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK) ||
	    quoted->version_ihl != RTE_IPV4_VHL_DEF || quoted->next_proto_id != IPPROTO_UDP ||
	    (cap >= len && rte_raw_cksum(p, len) != UINT16_MAX))
		return false;
	*i = (struct dump_icmp){
		.error = error_of(p[0], p[1]),
		.type = p[0],
		.code = p[1],
		.src = dump_address(ADDRESS_IP4, &quoted->src_addr),
		.dst = dump_address(ADDRESS_IP4, &quoted->dst_addr),
		.port = quoted_port(quoted + 1),
	};
	if (i->error == ICMP_ERROR_TOO_LONG)
		i->mtu = (uint32_t)(p[6] << 8 | p[7]);
	return i->error != ICMP_ERROR_NONE;
}

bool network_icmp6(const struct rte_ipv6_hdr *ip, uint32_t len, uint32_t cap, struct dump_icmp *i)
{
	const uint8_t *p = (const uint8_t *)(ip + 1);
	const struct rte_ipv6_hdr *quoted = (const struct rte_ipv6_hdr *)(p + ICMP_HEAD);

	if (cap < ICMP_HEAD + sizeof(*quoted) + UDP_HEAD || p[ICMP_HEAD] >> 4 != 6 ||
	    quoted->proto != IPPROTO_UDP || !checksum_ok6(ip, len, cap))
		return false;
	*i = (struct dump_icmp){
		.error = error_of6(p[0], p[1]),
		.type = p[0],
		.code = p[1],
		.src = dump_address(ADDRESS_IP6, &quoted->src_addr),
		.dst = dump_address(ADDRESS_IP6, &quoted->dst_addr),
		.port = quoted_port(quoted + 1),
	};
	if (i->error == ICMP_ERROR_TOO_LONG)
		i->mtu = (uint32_t)p[4] << 24 | (uint32_t)p[5] << 16 | (uint32_t)p[6] << 8 | p[7];
	return i->error != ICMP_ERROR_NONE;
}
