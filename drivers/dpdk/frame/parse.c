/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include <rte_icmp.h>

#include "frame/frame.h"
#include "frame/parse.h"
#include "lane.h"

#define VLAN_ID 0xfff /* bits of a tag's VLAN ID; the higher bits are priority and DEI */
#define FRAGMENT RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)

struct cursor {
	const uint8_t *p;
	size_t left;
};

static const char *const verdict_names[WEFT_VERDICT_COUNT] = {
	[WEFT_VERDICT_OK] = "ok",
	[WEFT_VERDICT_ARP] = "arp",
	[WEFT_VERDICT_ND] = "nd",
	[WEFT_VERDICT_ICMP] = "icmp",
	[WEFT_VERDICT_NOT_OURS] = "not_ours",
	[WEFT_VERDICT_BAD_LENGTH] = "bad_length",
	[WEFT_VERDICT_BAD_IP] = "bad_ip",
	[WEFT_VERDICT_BAD_MAGIC] = "bad_magic",
	[WEFT_VERDICT_BAD_VERSION] = "bad_version",
	[WEFT_VERDICT_BAD_TYPE] = "bad_type",
	[WEFT_VERDICT_BAD_MESSAGE] = "bad_message",
	[WEFT_VERDICT_BAD_CSUM] = "bad_csum",
};

const char *weft_rx_verdict_name(enum weft_rx_verdict g)
{
	return g < WEFT_VERDICT_COUNT ? verdict_names[g] : "?";
}

static enum weft_rx_verdict parse_arp(struct cursor *c, struct weft_frame_view *view)
{
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)c->p;

	if (c->left < sizeof(*arp))
		return WEFT_VERDICT_BAD_LENGTH;
	if (arp->arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) ||
	    arp->arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
	    arp->arp_hlen != RTE_ETHER_ADDR_LEN || arp->arp_plen != sizeof(arp->arp_data.arp_sip))
		return WEFT_VERDICT_NOT_OURS;
	view->arp = arp;
	return WEFT_VERDICT_ARP;
}

/* ICMP is dropped unless it quotes a UDP datagram of ours. Any host can forge such a message. */
static enum weft_rx_verdict parse_icmp(const struct weft_rx_filter *conf, const struct cursor *c,
				       struct weft_frame_view *view)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)c->p, *quote;
	const struct rte_icmp_hdr *icmp = (const struct rte_icmp_hdr *)(ip + 1);
	const struct rte_udp_hdr *udp;
	uint16_t total = weft_be16(ip->total_length);
	size_t head = sizeof(*ip) + sizeof(*icmp);

	if (ip->version_ihl != RTE_IPV4_VHL_DEF || (ip->fragment_offset & FRAGMENT))
		return WEFT_VERDICT_BAD_IP;
	if (total > c->left || total < head + WEFT_IP_UDP_LEN)
		return WEFT_VERDICT_BAD_LENGTH;
	if (conf->check_ip && !weft_ipv4_header_ok(ip))
		return WEFT_VERDICT_BAD_IP;
	if (rte_raw_cksum(icmp, total - sizeof(*ip)) != UINT16_MAX)
		return WEFT_VERDICT_BAD_CSUM;
	quote = (const struct rte_ipv4_hdr *)(icmp + 1);
	udp = (const struct rte_udp_hdr *)(quote + 1);
	if (icmp->icmp_type != WEFT_ICMP_UNREACHABLE || quote->version_ihl != RTE_IPV4_VHL_DEF ||
	    quote->next_proto_id != IPPROTO_UDP || (quote->fragment_offset & FRAGMENT) ||
	    weft_be32(quote->src_addr) != conf->ip)
		return WEFT_VERDICT_NOT_OURS;
	if (!weft_rx_filter_port_ok(weft_be16(udp->src_port), conf->udp_port, &conf->range)) {
		view->dst_port = weft_be16(udp->src_port); /* perhaps a port of another queue */
		return WEFT_VERDICT_NOT_OURS;
	}
	view->src_ip = weft_be32(ip->src_addr);
	view->quote = udp;
	view->quote_len = (uint32_t)(total - head - sizeof(*quote));
	view->quote_ip = weft_be32(quote->dst_addr);
	view->icmp_code = icmp->icmp_code;
	return WEFT_VERDICT_ICMP;
}

/* Parses IPv4 and UDP. Their lengths bound the lane frame, and so cut off Ethernet padding. */
static enum weft_rx_verdict parse_ip_udp(const struct weft_rx_filter *conf, struct cursor *c,
					 struct weft_frame_view *view)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)c->p;
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	uint16_t total, udp_len;

	if (c->left < sizeof(*ip))
		return WEFT_VERDICT_BAD_LENGTH;
	if (weft_be32(ip->dst_addr) != conf->ip)
		return WEFT_VERDICT_NOT_OURS;
	if (ip->next_proto_id == IPPROTO_ICMP)
		return parse_icmp(conf, c, view);
	if (ip->next_proto_id != IPPROTO_UDP)
		return WEFT_VERDICT_NOT_OURS;
	total = weft_be16(ip->total_length);
	/* Options and fragments are dropped: no peer sends them, and the ports may be elsewhere. */
	if (ip->version_ihl != RTE_IPV4_VHL_DEF || (ip->fragment_offset & FRAGMENT))
		return WEFT_VERDICT_BAD_IP;
	if (total > c->left || total < WEFT_IP_UDP_LEN)
		return WEFT_VERDICT_BAD_LENGTH;
	if (conf->check_ip && !weft_ipv4_header_ok(ip))
		return WEFT_VERDICT_BAD_IP;
	view->dst_port = weft_be16(udp->dst_port);
	if (!weft_rx_filter_port_ok(view->dst_port, conf->udp_port, &conf->range))
		return WEFT_VERDICT_NOT_OURS;
	udp_len = weft_be16(udp->dgram_len);
	if (udp_len < sizeof(*udp) || udp_len > total - sizeof(*ip))
		return WEFT_VERDICT_BAD_LENGTH;

	view->ip = ip;
	view->ce = (ip->type_of_service & WEFT_IP_ECN) == WEFT_IP_CE;
	view->src_ip = weft_be32(ip->src_addr);
	view->src_port = weft_be16(udp->src_port);
	view->udp_csum = weft_be16(udp->dgram_cksum);
	c->p = (const uint8_t *)(udp + 1);
	c->left = udp_len - sizeof(*udp);
	return WEFT_VERDICT_OK;
}

/* ---------------------------------------------------------------- IPv6 */

#define ICMP6_UNREACHABLE 1u
#define ICMP6_NO_PORT 4u /* code of ICMP6_UNREACHABLE */
#define ICMP6_TOO_LONG 2u
#define ICMP6_SOLICIT 135u
#define ICMP6_ADVERTISE 136u
#define ND_HOPS 255u /* hop limit: a router reduces it, so the sender is on this link */
#define ND_ANSWERS 0x40u
#define ND_OPTION_SOURCE 1u
#define ND_OPTION_TARGET 2u
#define ND_OPTION_UNIT 8u

struct icmp6_hdr {
	uint8_t type, code;
	rte_be16_t checksum;
	uint8_t flags[4];
} __attribute__((packed));

static bool is_group6(const uint8_t *ip)
{
	return ip[0] == 0xff;
}

static bool is_none6(const uint8_t *ip)
{
	static const uint8_t none[16];

	return memcmp(ip, none, sizeof(none)) == 0;
}

/* Finds the MAC address in an option. @return false: lengths of options are wrong */
static bool nd_option(const uint8_t *p, size_t left, uint8_t type, const uint8_t **mac)
{
	size_t len;

	for (*mac = NULL; left >= ND_OPTION_UNIT; p += len, left -= len) {
		len = (size_t)p[1] * ND_OPTION_UNIT;
		if (len == 0 || len > left)
			return false;
		if (p[0] == type && len == ND_OPTION_UNIT)
			*mac = p + 2;
	}
	return left == 0;
}

/* Parses and checks the message as in RFC 4861, 7.1.1 and 7.1.2. */
static enum weft_rx_verdict parse_nd(const struct rte_ipv6_hdr *ip, const struct icmp6_hdr *icmp,
				     size_t len, struct weft_frame_view *view)
{
	const uint8_t *src = (const uint8_t *)&ip->src_addr, *mac;
	struct weft_nd *nd = &view->nd;

	nd->solicit = icmp->type == ICMP6_SOLICIT;
	nd->target = (const uint8_t *)(icmp + 1);
	if (len < sizeof(*icmp) + 16)
		return WEFT_VERDICT_BAD_LENGTH;
	if (ip->hop_limits != ND_HOPS || icmp->code != 0 || is_group6(nd->target) ||
	    is_none6(nd->target) || is_group6(src))
		return WEFT_VERDICT_BAD_IP;
	if (!nd_option(nd->target + 16, len - sizeof(*icmp) - 16,
		       nd->solicit ? ND_OPTION_SOURCE : ND_OPTION_TARGET, &mac))
		return WEFT_VERDICT_BAD_LENGTH;
	nd->src = is_none6(src) ? NULL : src;
	if (nd->solicit ? !nd->src && (mac || !nd->to_group)
			: !nd->src || (icmp->flags[0] & ND_ANSWERS && nd->to_group))
		return WEFT_VERDICT_BAD_IP;
	nd->mac = mac ? mac : view->src_mac;
	return WEFT_VERDICT_ND;
}

/* As parse_icmp(), and for "packet too big", which has a type of its own in ICMPv6. */
static enum weft_rx_verdict parse_icmp6_error(const struct weft_rx_filter *conf,
					      const struct icmp6_hdr *icmp, size_t len,
					      struct weft_frame_view *view)
{
	const struct rte_ipv6_hdr *quote = (const struct rte_ipv6_hdr *)(icmp + 1);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(quote + 1);

	if (len < sizeof(*icmp) + WEFT_IP6_UDP_LEN)
		return WEFT_VERDICT_BAD_LENGTH;
	if (view->nd.to_group || quote->proto != IPPROTO_UDP ||
	    memcmp(&quote->src_addr, conf->ip6, sizeof(conf->ip6)) != 0)
		return WEFT_VERDICT_NOT_OURS;
	if (!weft_rx_filter_port_ok(weft_be16(udp->src_port), conf->udp_port, &conf->range))
		return WEFT_VERDICT_NOT_OURS;
	view->quote = udp;
	view->quote_len = (uint32_t)(len - sizeof(*icmp) - sizeof(*quote));
	view->quote_ip6 = (const uint8_t *)&quote->dst_addr;
	if (icmp->type == ICMP6_TOO_LONG)
		view->icmp_code = WEFT_ICMP_TOO_LONG;
	else if (icmp->code == ICMP6_NO_PORT)
		view->icmp_code = WEFT_ICMP_NO_PORT;
	return WEFT_VERDICT_ICMP;
}

static enum weft_rx_verdict parse_icmp6(const struct weft_rx_filter *conf,
					const struct rte_ipv6_hdr *ip, size_t len,
					struct weft_frame_view *view)
{
	const struct icmp6_hdr *icmp = (const struct icmp6_hdr *)(ip + 1);
	enum weft_rx_verdict g;

	if (len < sizeof(*icmp))
		return WEFT_VERDICT_BAD_LENGTH;
	if (icmp->type != ICMP6_SOLICIT && icmp->type != ICMP6_ADVERTISE &&
	    icmp->type != ICMP6_UNREACHABLE && icmp->type != ICMP6_TOO_LONG)
		return WEFT_VERDICT_NOT_OURS;
	if (weft_ip6_sum(ip, icmp, (uint32_t)len) != UINT16_MAX)
		return WEFT_VERDICT_BAD_CSUM;
	view->nd.to_group = is_group6((const uint8_t *)&ip->dst_addr);
	if (icmp->type == ICMP6_SOLICIT || icmp->type == ICMP6_ADVERTISE)
		g = parse_nd(ip, icmp, len, view);
	else
		g = parse_icmp6_error(conf, icmp, len, view);
	if (g == WEFT_VERDICT_ND || g == WEFT_VERDICT_ICMP)
		view->ip6 = ip;
	return g;
}

/* Parses IPv6 and UDP. A frame with extension headers is dropped: no peer sends such frames. */
static enum weft_rx_verdict parse_ip6_udp(const struct weft_rx_filter *conf, struct cursor *c,
					  struct weft_frame_view *view)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)c->p;
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	uint16_t total, udp_len;

	if (c->left < sizeof(*ip))
		return WEFT_VERDICT_BAD_LENGTH;
	if ((weft_be32(ip->vtc_flow) >> 28) != 6)
		return WEFT_VERDICT_BAD_IP;
	total = weft_be16(ip->payload_len);
	if (total > c->left - sizeof(*ip))
		return WEFT_VERDICT_BAD_LENGTH;
	if (ip->proto == IPPROTO_ICMPV6)
		return parse_icmp6(conf, ip, total, view);
	if (memcmp(&ip->dst_addr, conf->ip6, sizeof(conf->ip6)) != 0)
		return WEFT_VERDICT_NOT_OURS;
	if (is_group6((const uint8_t *)&ip->src_addr) || is_none6((const uint8_t *)&ip->src_addr) ||
	    ip->proto == IPPROTO_FRAGMENT || ip->proto == IPPROTO_HOPOPTS ||
	    ip->proto == IPPROTO_ROUTING || ip->proto == IPPROTO_DSTOPTS)
		return WEFT_VERDICT_BAD_IP;
	if (ip->proto != IPPROTO_UDP)
		return WEFT_VERDICT_NOT_OURS;
	if (total < sizeof(*udp))
		return WEFT_VERDICT_BAD_LENGTH;
	view->dst_port = weft_be16(udp->dst_port);
	if (!weft_rx_filter_port_ok(view->dst_port, conf->udp_port, &conf->range))
		return WEFT_VERDICT_NOT_OURS;
	udp_len = weft_be16(udp->dgram_len);
	if (udp_len < sizeof(*udp) || udp_len > total)
		return WEFT_VERDICT_BAD_LENGTH;
	view->ip6 = ip;
	view->ce = (weft_be32(ip->vtc_flow) >> 20 & WEFT_IP_ECN) == WEFT_IP_CE;
	view->src_port = weft_be16(udp->src_port);
	view->udp_csum = weft_be16(udp->dgram_cksum);
	c->p = (const uint8_t *)(udp + 1);
	c->left = udp_len - sizeof(*udp);
	return WEFT_VERDICT_OK;
}

/* ---------------------------------------------------------------- the frame */

static enum weft_rx_verdict parse_l2(const struct weft_rx_filter *conf, struct cursor *c,
				     struct weft_frame_view *view)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)c->p;
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(eth + 1);
	rte_be16_t type;

	if (c->left < sizeof(*eth))
		return WEFT_VERDICT_BAD_LENGTH;
	/* ARP and neighbour discovery may come to a group address, other frames to ours. */
	if (!rte_is_multicast_ether_addr(&eth->dst_addr) &&
	    memcmp(&eth->dst_addr, conf->mac, RTE_ETHER_ADDR_LEN) != 0)
		return WEFT_VERDICT_NOT_OURS;
	view->src_mac = eth->src_addr.addr_bytes;
	type = eth->ether_type;
	c->p += sizeof(*eth);
	c->left -= sizeof(*eth);
	if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		if (c->left < sizeof(*tag))
			return WEFT_VERDICT_BAD_LENGTH;
		if ((weft_be16(tag->vlan_tci) & VLAN_ID) != conf->vlan)
			return WEFT_VERDICT_NOT_OURS;
		type = tag->eth_proto;
		c->p += sizeof(*tag);
		c->left -= sizeof(*tag);
	} else if (conf->vlan != 0) {
		return WEFT_VERDICT_NOT_OURS;
	}
	if (conf->raw_ethertype)
		return type == RTE_BE16(WEFT_FRAME_ETHERTYPE) ? WEFT_VERDICT_OK
							      : WEFT_VERDICT_NOT_OURS;
	if (conf->six)
		return type == RTE_BE16(RTE_ETHER_TYPE_IPV6) ? parse_ip6_udp(conf, c, view)
							     : WEFT_VERDICT_NOT_OURS;
	if (type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return parse_arp(c, view);
	if (type != RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return WEFT_VERDICT_NOT_OURS;
	return parse_ip_udp(conf, c, view);
}

#define BODY_MIN(type, body, more) [WEFT_FRAME_##type] = sizeof(struct weft_frame_##body) + (more),

/* @return bytes of the shortest body of @p type; 0xffff = unknown. Later versions append fields. */
static uint32_t body_min(uint8_t type)
{
	static const uint16_t min[WEFT_FRAME_TYPE_END] = {[0] = 0xffff,
							  [WEFT_FRAME_DATA] =
								  sizeof(struct weft_frame_msg),
							  WEFT_FRAME_BODIES(BODY_MIN)};

	return type < WEFT_FRAME_TYPE_END ? min[type] : 0xffff;
}

static enum weft_rx_verdict check_crc(const uint8_t *lane, size_t len)
{
	weft_le32 want;

	memcpy(&want, lane + len, 4);
	return (uint32_t)~weft_crc32c(WEFT_CRC32C_INIT, lane, len) == weft_get32(want)
		       ? WEFT_VERDICT_OK
		       : WEFT_VERDICT_BAD_CSUM;
}

static enum weft_rx_verdict parse_sack(struct weft_frame_view *view)
{
	const struct weft_frame_sack *sack = (const struct weft_frame_sack *)view->body;
	uint32_t size, words;

	if (view->body_len < sizeof(*sack))
		return WEFT_VERDICT_BAD_LENGTH;
	words = weft_get16(sack->words);
	size = (uint32_t)sizeof(*sack) + 8 * words;
	if (words == 0 || words > WEFT_FRAME_SACK_WORDS || size > view->body_len)
		return WEFT_VERDICT_BAD_LENGTH;
	view->sack = sack;
	view->body += size;
	view->body_len -= size;
	return WEFT_VERDICT_OK;
}

static enum weft_rx_verdict parse_ecn(struct weft_frame_view *view)
{
	const struct weft_frame_ecn *ecn = (const struct weft_frame_ecn *)view->body;
	uint32_t size, paths;

	if (view->body_len < sizeof(*ecn))
		return WEFT_VERDICT_BAD_LENGTH;
	paths = weft_get16(ecn->paths);
	size = (uint32_t)(sizeof(*ecn) + paths * sizeof(struct weft_frame_ecn_path));
	if (paths == 0 || paths > WEFT_FRAME_PATHS_MAX || size > view->body_len)
		return WEFT_VERDICT_BAD_LENGTH;
	view->ecn = ecn;
	view->body += size;
	view->body_len -= size;
	return WEFT_VERDICT_OK;
}

static enum weft_rx_verdict parse_progress(struct weft_frame_view *view)
{
	if (view->body_len < sizeof(*view->progress))
		return WEFT_VERDICT_BAD_LENGTH;
	view->progress = (const struct weft_frame_progress *)view->body;
	view->body += sizeof(*view->progress);
	view->body_len -= (uint32_t)sizeof(*view->progress);
	return WEFT_VERDICT_OK;
}

static enum weft_rx_verdict parse_blocks(struct weft_frame_view *view)
{
	enum weft_rx_verdict g = WEFT_VERDICT_OK;

	if (view->flags & WEFT_FRAME_F_SACK)
		g = parse_sack(view);
	if (g == WEFT_VERDICT_OK && view->flags & WEFT_FRAME_F_ECN)
		g = parse_ecn(view);
	if (g == WEFT_VERDICT_OK && view->flags & WEFT_FRAME_F_PROGRESS)
		g = parse_progress(view);
	return g;
}

static bool part_ok(const struct weft_frame_view *view)
{
	const struct weft_frame_part *part = (const struct weft_frame_part *)view->body;
	uint32_t offset = weft_get16(part->offset), total = weft_get16(part->total);
	uint32_t end = offset + view->body_len - (uint32_t)sizeof(*part);

	return offset % WEFT_FRAME_PART_UNIT == 0 && total <= WEFT_FRAME_SIZE_MAX &&
	       (end == total || (end < total && end % WEFT_FRAME_PART_UNIT == 0));
}

enum weft_rx_verdict weft_frame_parse_body(struct weft_frame_view *view)
{
	enum weft_rx_verdict g = parse_blocks(view);

	if (g != WEFT_VERDICT_OK)
		return g;
	if (view->body_len < body_min(view->type))
		return WEFT_VERDICT_BAD_TYPE;
	if (view->type == WEFT_FRAME_PART && !part_ok(view))
		return WEFT_VERDICT_BAD_TYPE;
	if (view->type == WEFT_FRAME_DATA && !weft_frame_messages_ok(view))
		return WEFT_VERDICT_BAD_MESSAGE;
	return WEFT_VERDICT_OK;
}

static bool never_sealed(uint8_t type)
{
	return type == WEFT_FRAME_HELLO || type == WEFT_FRAME_HELLO_ACK ||
	       type == WEFT_FRAME_HELLO_RETRY || type == WEFT_FRAME_RESET ||
	       type == WEFT_FRAME_CHALLENGE;
}

/* Checks length, type and flags of a sealed frame. Its body is checked after the decryption. */
static enum weft_rx_verdict parse_sealed(const struct cursor *c, struct weft_frame_view *view,
					 uint16_t length)
{
	const uint32_t head = sizeof(struct weft_frame_hdr) + WEFT_FRAME_NUMBER_LEN;

	if (length < head || length + WEFT_FRAME_TAG_LEN > c->left)
		return WEFT_VERDICT_BAD_LENGTH;
	if (view->flags & WEFT_FRAME_F_CRC32C || never_sealed(view->type) ||
	    view->flags & ~(WEFT_FRAME_F_KNOWN | WEFT_FRAME_F_OF_SEAL))
		return WEFT_VERDICT_BAD_TYPE;
	view->body = c->p + head;
	view->body_len = length - head;
	return WEFT_VERDICT_OK;
}

static enum weft_rx_verdict parse_lane(struct cursor *c, struct weft_frame_view *view)
{
	const struct weft_frame_hdr *hdr = (const struct weft_frame_hdr *)c->p;
	enum weft_rx_verdict g;
	uint16_t length;

	if (c->left < WEFT_FRAME_FIXED)
		return WEFT_VERDICT_BAD_LENGTH;
	if (weft_get16(hdr->magic) != WEFT_FRAME_MAGIC)
		return WEFT_VERDICT_BAD_MAGIC;
	view->hdr = hdr;
	view->type = hdr->type;
	/* RESET is the same in all versions: it reports that versions differ. */
	if (hdr->version != WEFT_FRAME_VERSION && hdr->type != WEFT_FRAME_RESET)
		return WEFT_VERDICT_BAD_VERSION;
	if (c->left < sizeof(*hdr))
		return WEFT_VERDICT_BAD_LENGTH;
	view->flags = weft_get16(hdr->flags);
	length = weft_get16(hdr->length);
	if (view->flags & WEFT_FRAME_F_SEALED)
		return parse_sealed(c, view, length);
	if (length < sizeof(*hdr) ||
	    length + (view->flags & WEFT_FRAME_F_CRC32C ? 4u : 0u) > c->left)
		return WEFT_VERDICT_BAD_LENGTH;
	if (view->flags & WEFT_FRAME_F_CRC32C) {
		g = check_crc(c->p, length);
		if (g != WEFT_VERDICT_OK)
			return g;
	}
	if (view->flags & ~WEFT_FRAME_F_KNOWN || view->type == WEFT_FRAME_GONE)
		return WEFT_VERDICT_BAD_TYPE;
	view->body = c->p + sizeof(*hdr);
	view->body_len = length - (uint32_t)sizeof(*hdr);
	return weft_frame_parse_body(view);
}

enum weft_rx_verdict weft_frame_parse(const struct weft_rx_filter *conf, const void *frame,
				      size_t len, struct weft_frame_view *view)
{
	struct cursor c = {.p = frame, .left = len};
	enum weft_rx_verdict g;

	*view = (struct weft_frame_view){0};
	g = parse_l2(conf, &c, view);
	if (g != WEFT_VERDICT_OK)
		return g;
	/* A lane frame is never sent to a group address. */
	if (rte_is_multicast_ether_addr(frame))
		return WEFT_VERDICT_NOT_OURS;
	return parse_lane(&c, view);
}

/* @return bytes of the Ethernet header, including a tag */
static uint8_t pattern_l2(const struct weft_rx_filter *conf, uint8_t *want, uint8_t *mask)
{
	static const uint8_t anybody[RTE_ETHER_ADDR_LEN];
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)mask;
	struct rte_vlan_hdr *tag = (struct rte_vlan_hdr *)(eth + 1);

	memset(&eth->dst_addr, 0xff, sizeof(eth->dst_addr));
	eth->ether_type = UINT16_MAX;
	if (conf->vlan != 0) {
		tag->vlan_tci = RTE_BE16(VLAN_ID);
		tag->eth_proto = UINT16_MAX;
	}
	return weft_encap_l2(want, conf->mac, anybody, conf->vlan,
			     conf->raw_ethertype ? WEFT_FRAME_ETHERTYPE : RTE_ETHER_TYPE_IPV4);
}

static void pattern_ip(const struct weft_rx_filter *conf, struct rte_ipv4_hdr *want,
		       struct rte_ipv4_hdr *mask)
{
	want->version_ihl = RTE_IPV4_VHL_DEF;
	mask->version_ihl = UINT8_MAX;
	/* The low bit of ECN is 0 in not-ECT and ECT(0). It is 1 in CE, the mark, and in ECT(1). */
	mask->type_of_service = WEFT_IP_CE ^ WEFT_IP_ECT0;
	mask->fragment_offset = FRAGMENT;
	want->next_proto_id = IPPROTO_UDP;
	mask->next_proto_id = UINT8_MAX;
	want->dst_addr = rte_cpu_to_be_32(conf->ip);
	mask->dst_addr = UINT32_MAX;
}

/* Bytes of the lane header in a pattern: those in front of its field `length`. */
#define LANE_PATTERN offsetof(struct weft_frame_hdr, length)

static_assert(RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + WEFT_IP_UDP_LEN + LANE_PATTERN <= WEFT_RX_PATTERN,
	      "pattern");

void weft_rx_pattern_init(struct weft_rx_pattern *p, const struct weft_rx_filter *conf, bool sealed)
{
	const struct weft_frame_hdr hdr = {.magic = weft_put16(WEFT_FRAME_MAGIC),
					   .version = WEFT_FRAME_VERSION,
					   .type = WEFT_FRAME_DATA,
					   .flags = weft_put16(sealed ? WEFT_FRAME_F_SEALED : 0)};
	const uint16_t any = WEFT_FRAME_F_ACK_REQ | (sealed ? WEFT_FRAME_F_KEY_PHASE : 0);
	struct weft_frame_hdr matters = {.flags = weft_put16((uint16_t)~any),
					 .magic = weft_put16(0xffff)};
	uint8_t at;

	*p = (struct weft_rx_pattern){
		.check_ip = conf->check_ip,
		.udp_port = conf->udp_port,
		.range = conf->range,
	};
	if (conf->six)
		return;
	at = pattern_l2(conf, p->want, p->mask);
	if (!conf->raw_ethertype) {
		p->ip = at;
		pattern_ip(conf, (struct rte_ipv4_hdr *)(p->want + at),
			   (struct rte_ipv4_hdr *)(p->mask + at));
		at += WEFT_IP_UDP_LEN;
	}
	p->lane = at;
	p->least = RTE_MAX(at + (uint32_t)(sizeof(hdr) + sizeof(struct weft_frame_msg)),
			   WEFT_RX_PATTERN);
	matters.version = matters.type = 0xff;
	memcpy(p->want + at, &hdr, LANE_PATTERN);
	memcpy(p->mask + at, &matters, LANE_PATTERN);
}

/* rte_ipv4_udptcp_cksum_verify() would take IP's length, which may exceed UDP's. */
bool weft_frame_udp_csum_ok(const struct weft_frame_view *view)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(view->ip + 1);
	uint32_t sum;

	if (view->udp_csum == 0)
		return false;
	if (view->ip6) {
		udp = (const struct rte_udp_hdr *)(view->ip6 + 1);
		return weft_ip6_sum(view->ip6, udp, weft_be16(udp->dgram_len)) == UINT16_MAX;
	}
	sum = weft_pseudo_sum(view->ip) + udp->dgram_len;
	sum += rte_raw_cksum(udp, weft_be16(udp->dgram_len));
	return weft_csum_fold(sum) == UINT16_MAX;
}
