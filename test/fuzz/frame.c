/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frame validation of the raw-DPDK lane: weft_frame_parse() on any bytes. First byte of an input:
 * how the parser is set and which lengths and checksums are repaired, so that mutations get past
 * them; the rest is the frame.
 *
 * What must hold: no read outside the frame (AddressSanitizer), and when the parser says OK,
 * everything it promises.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_icmp.h>

#include "frame/frame.h"
#include "frame/parse.h"
#include "lane.h"

#define RAW_ETHERTYPE 0x01
#define VLAN 0x02
#define CHECK_IP 0x04
#define FIX_ADDRESS 0x08
#define FIX_IP 0x10
#define FIX_LENGTH 0x20
#define FIX_CRC 0x40
#define SIX 0x80 /* FIX_IP: ICMPv6 if that is its protocol, else UDP */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct weft_rx_filter base = {
	.udp_port = 9338,
	.ip = 0x0a000001,
	.mac = {2, 0x57, 0x46, 0, 0, 1},
	.ip6 = {0xfd, [15] = 1},
};

#define MUST(cond)               \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

/* It says that it is ICMP: then so does what is in it. */
static bool repair_icmp(struct rte_ipv4_hdr *ip, size_t len)
{
	struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(ip + 1);
	struct rte_ipv4_hdr *quote = (struct rte_ipv4_hdr *)(icmp + 1);

	if (ip->next_proto_id != IPPROTO_ICMP ||
	    len < sizeof(*ip) + sizeof(*icmp) + WEFT_IP_UDP_LEN)
		return false;
	icmp->icmp_type = WEFT_ICMP_UNREACHABLE;
	quote->version_ihl = RTE_IPV4_VHL_DEF;
	quote->next_proto_id = IPPROTO_UDP;
	quote->fragment_offset = 0;
	quote->src_addr = rte_cpu_to_be_32(base.ip);
	((struct rte_udp_hdr *)(quote + 1))->src_port = rte_cpu_to_be_16(base.udp_port);
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, len - sizeof(*ip));
	return true;
}

/* Lengths, addresses and checksums of IPv6. */
static void repair6(uint8_t how, uint8_t *f, size_t len)
{
	size_t l2 = RTE_ETHER_HDR_LEN + (how & VLAN ? RTE_VLAN_HLEN : 0), n;
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(f + l2);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(ip + 1);

	if (len < l2 + sizeof(*ip) + sizeof(*udp))
		return;
	n = len - l2 - sizeof(*ip);
	if (how & FIX_ADDRESS) {
		memcpy(f, base.mac, 6);
		if (how & VLAN)
			memcpy(f + 12, "\x81\x00\x00\x05", 4);
		memcpy(f + l2 - 2, "\x86\xdd", 2);
	}
	if (!(how & FIX_IP))
		return;
	ip->vtc_flow = (ip->vtc_flow & RTE_BE32(0x0fffffff)) | RTE_BE32(6u << 28);
	ip->payload_len = rte_cpu_to_be_16((uint16_t)n);
	memcpy(&ip->dst_addr, base.ip6, sizeof(base.ip6));
	if (ip->proto == IPPROTO_ICMPV6) {
		icmp->icmp_cksum = 0;
		icmp->icmp_cksum = (uint16_t)~weft_ip6_sum(ip, icmp, (uint32_t)n);
		return;
	}
	ip->proto = IPPROTO_UDP;
	udp->dst_port = rte_cpu_to_be_16(base.udp_port);
	udp->dgram_len = ip->payload_len;
}

/* Writes what the parser compares first, so that the bytes behind it matter. */
static void repair(uint8_t how, uint8_t *f, size_t len)
{
	size_t l2 = RTE_ETHER_HDR_LEN + (how & VLAN ? RTE_VLAN_HLEN : 0),
	       l3 = how & RAW_ETHERTYPE ? 0 : WEFT_IP_UDP_LEN, lane = l2 + l3;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(f + l2);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct weft_frame_hdr *h = (struct weft_frame_hdr *)(f + lane);
	uint16_t flags;
	weft_le32 crc;
	size_t body;

	if (len < lane + sizeof(*h))
		return;
	if (how & FIX_ADDRESS) {
		memcpy(f, base.mac, 6);
		if (how & VLAN)
			memcpy(f + 12, "\x81\x00\x00\x05", 4);
		memcpy(f + l2 - 2, how & RAW_ETHERTYPE ? "\x88\xb5" : "\x08\x00", 2);
		h->magic = weft_put16(WEFT_FRAME_MAGIC);
		h->version = WEFT_FRAME_VERSION;
	}
	if ((how & FIX_IP) && l3) {
		ip->version_ihl = RTE_IPV4_VHL_DEF;
		ip->fragment_offset = 0;
		if (!repair_icmp(ip, len - l2))
			ip->next_proto_id = IPPROTO_UDP;
		ip->total_length = rte_cpu_to_be_16((uint16_t)(len - l2));
		ip->dst_addr = rte_cpu_to_be_32(base.ip);
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
		if (ip->next_proto_id == IPPROTO_ICMP)
			return;
		udp->dst_port = rte_cpu_to_be_16(base.udp_port);
		udp->dgram_len = rte_cpu_to_be_16((uint16_t)(len - l2 - sizeof(*ip)));
	}
	flags = weft_get16(h->flags);
	body = len - lane - (flags & WEFT_FRAME_F_CRC32C && len - lane >= sizeof(*h) + 4 ? 4 : 0);
	if (how & FIX_LENGTH)
		h->length = weft_put16((uint16_t)body);
	body = weft_get16(h->length);
	if ((how & FIX_CRC) && (flags & WEFT_FRAME_F_CRC32C) && len - lane >= 4 &&
	    body <= len - lane - 4) {
		crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, h, body));
		memcpy((uint8_t *)h + body, &crc, 4);
	}
}

static void inside(const uint8_t *f, size_t len, const void *p, size_t n)
{
	MUST((const uint8_t *)p >= f && n <= len && (size_t)((const uint8_t *)p - f) <= len - n);
}

static void check_data(const struct weft_frame_view *v)
{
	const struct weft_frame_msg *m;
	uint32_t off = 0, end = 0;

	while ((m = weft_frame_msg_next(v, &off))) {
		MUST((const uint8_t *)m == v->body + end);
		MUST(off <= v->body_len && m->am_id < WEFT_LANE_AM_MAX);
		end = off;
	}
	MUST(end == v->body_len && end);
}

/* What is read of a frame goes here, so that it is read. */
static volatile uint32_t sink;

static void check_view(const uint8_t *f, size_t len, const struct weft_frame_view *v)
{
	uint32_t sum = 0, i;

	inside(f, len, v->hdr, sizeof(*v->hdr));
	inside(f, len, v->body, v->body_len);
	inside(f, len, v->src_mac, 6);
	if (v->sack)
		inside(f, len, v->sack, sizeof(*v->sack) + 8u * weft_get16(v->sack->words));
	for (i = 0; i < v->body_len; i++)
		sum += v->body[i];
	if (v->flags & WEFT_FRAME_F_SEALED)
		inside(f, len, v->body + v->body_len, WEFT_FRAME_TAG_LEN);
	else if (v->type == WEFT_FRAME_DATA)
		check_data(v);
	if (v->src_port)
		sum += weft_frame_udp_csum_ok(v);
	sink = sum;
}

/*
 * The parser of the commonest frames takes exactly what the whole one finds to be such. It reads
 * the pattern's length at once, and leaves shorter frames to the other one.
 */
static void check_quick(const struct weft_rx_filter *conf, const uint8_t *f, size_t len,
			enum weft_rx_verdict verdict, const struct weft_frame_view *v)
{
	struct weft_rx_pattern pattern;
	struct weft_frame_view q;
	bool quick;

	weft_rx_pattern_init(&pattern, conf, false);
	quick = weft_frame_parse_data(&pattern, f, (uint32_t)len, &q);
	if (conf->six) {
		MUST(!quick);
		return;
	}
	MUST(quick ==
	     (verdict == WEFT_VERDICT_OK && v->type == WEFT_FRAME_DATA && len >= pattern.least &&
	      !(v->flags & ~WEFT_FRAME_F_ACK_REQ) && !(v->ip && v->ip->type_of_service & 1)));
	MUST(!quick || (q.hdr == v->hdr && q.body == v->body && q.body_len == v->body_len &&
			q.flags == v->flags));
}

/* As check_quick(), for sealed frames. */
static void check_sealed(const struct weft_rx_filter *conf, const uint8_t *f, size_t len,
			 enum weft_rx_verdict verdict, const struct weft_frame_view *v)
{
	const uint16_t any = WEFT_FRAME_F_ACK_REQ | WEFT_FRAME_F_KEY_PHASE;
	const struct weft_frame_hdr *hdr;
	struct weft_rx_pattern pattern;
	uint32_t body_len = 0;
	bool quick;

	weft_rx_pattern_init(&pattern, conf, true);
	hdr = weft_frame_head(&pattern, f, (uint32_t)len, WEFT_FRAME_TAG_LEN, &body_len);
	quick = hdr && body_len >= WEFT_FRAME_NUMBER_LEN;
	MUST(quick == (!conf->six && verdict == WEFT_VERDICT_OK && v->type == WEFT_FRAME_DATA &&
		       len >= pattern.least && (v->flags & ~any) == WEFT_FRAME_F_SEALED &&
		       !(v->ip && v->ip->type_of_service & 1)));
	MUST(!quick || (hdr == v->hdr && body_len == v->body_len + WEFT_FRAME_NUMBER_LEN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft_rx_filter conf = base;
	struct weft_frame_view view;
	enum weft_rx_verdict g;
	uint8_t *f;

	if (!size || size > WEFT_FRAME_SIZE_MAX)
		return 0;
	conf.raw_ethertype = data[0] & RAW_ETHERTYPE;
	conf.vlan = data[0] & VLAN ? 5 : 0;
	conf.check_ip = data[0] & CHECK_IP;
	conf.six = data[0] & SIX && !conf.raw_ethertype;
	size--;
	/* Of exactly its length. */
	f = malloc(size ? size : 1);
	if (!f)
		return 0;
	memcpy(f, data + 1, size);
	if (conf.six)
		repair6(data[0], f, size);
	else
		repair(data[0], f, size);
	g = weft_frame_parse(&conf, f, size, &view);
	MUST(g < WEFT_VERDICT_COUNT && weft_rx_verdict_name(g)[0]);
	check_quick(&conf, f, size, g, &view);
	check_sealed(&conf, f, size, g, &view);
	if (g == WEFT_VERDICT_ICMP) {
		MUST(view.quote_len >= sizeof(*view.quote));
		inside(f, size, view.quote, view.quote_len);
		if (conf.six)
			inside(f, size, view.quote_ip6, 16);
	}
	if (g == WEFT_VERDICT_OK)
		check_view(f, size, &view);
	if (g == WEFT_VERDICT_ARP)
		inside(f, size, view.arp, sizeof(*view.arp));
	if (g == WEFT_VERDICT_ND) {
		inside(f, size, view.nd.target, 16);
		inside(f, size, view.nd.mac, 6);
		if (view.nd.src)
			inside(f, size, view.nd.src, 16);
	}
	if (g == WEFT_VERDICT_BAD_VERSION)
		inside(f, size, view.hdr, 26);
	free(f);
	return 0;
}
