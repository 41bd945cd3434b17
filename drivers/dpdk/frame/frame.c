/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <netinet/ip.h>
#include <string.h>

#include "frame/frame.h"

/* ---------------------------------------------------------------- checksums */

#ifdef __SSE4_2__

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/*
 * The effect of LANE_BYTES zero bytes on a CRC. The effect is linear, so the results for the 32
 * single bits give the table of all byte values.
 */
#define LANE_BYTES 1024u

static uint32_t shift_table[4][256];

__attribute__((constructor)) static void shift_table_init(void)
{
	uint32_t column;

	for (unsigned int bit = 0; bit < 32; bit++) {
		column = 1u << bit;
		for (unsigned int i = 0; i < LANE_BYTES / 8; i++)
			column = (uint32_t)__builtin_ia32_crc32di(column, 0);
		for (unsigned int v = 0; v < 256; v++) {
			if (v >> (bit % 8) & 1)
				shift_table[bit / 8][v] ^= column;
		}
	}
}

static inline uint32_t shift_lane(uint32_t crc)
{
	return shift_table[0][crc & 255] ^ shift_table[1][(crc >> 8) & 255] ^
	       shift_table[2][(crc >> 16) & 255] ^ shift_table[3][crc >> 24];
}

/* The CRC instruction takes 3 cycles, but one can start in each cycle: three runs are joined. */
static uint32_t crc_block(uint32_t crc, const uint8_t *p)
{
	uint64_t a = crc, b = 0, c = 0;

	for (unsigned int i = 0; i < LANE_BYTES; i += 8) {
		a = __builtin_ia32_crc32di(a, load64(p + i));
		b = __builtin_ia32_crc32di(b, load64(p + LANE_BYTES + i));
		c = __builtin_ia32_crc32di(c, load64(p + 2 * LANE_BYTES + i));
	}
	return shift_lane(shift_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
}

uint32_t weft_crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (; len >= 3 * LANE_BYTES; p += 3 * LANE_BYTES, len -= 3 * LANE_BYTES)
		crc = crc_block(crc, p);
	for (; len >= 8; p += 8, len -= 8)
		crc = (uint32_t)__builtin_ia32_crc32di(crc, load64(p));
	for (; len > 0; p++, len--)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}

#else

uint32_t weft_crc32c(uint32_t crc, const void *data, size_t len)
{
	return weft_crc32c_soft(crc, data, len);
}

#endif

/* ---------------------------------------------------------------- encapsulation */

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

static void build_ip_udp(struct weft_encap_hdr *e, uint8_t *bytes, const struct weft_encap_addr *a)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes + e->l2_len);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->type_of_service = a->tos;
	/* Too long frames must be lost, not fragmented: the MTU search detects the loss. */
	ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	ip->time_to_live = IPDEFTTL;
	ip->next_proto_id = IPPROTO_UDP;
	ip->src_addr = rte_cpu_to_be_32(a->src_ip);
	ip->dst_addr = rte_cpu_to_be_32(a->dst_ip);
	udp->src_port = rte_cpu_to_be_16(a->src_port);
	udp->dst_port = rte_cpu_to_be_16(a->dst_port);
	e->ip_sum = rte_raw_cksum(ip, sizeof(*ip));
	e->udp_sum = weft_pseudo_sum(ip);
	e->l3_len = sizeof(*ip);
}

static void build_ip6_udp(struct weft_encap_hdr *e, uint8_t *bytes, const struct weft_encap_addr *a)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(bytes + e->l2_len);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	/* The flow label is 0: flows differ by their ports. */
	ip->vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)a->tos << 20);
	ip->proto = IPPROTO_UDP;
	ip->hop_limits = IPDEFTTL;
	memcpy(&ip->src_addr, a->src_ip6, sizeof(a->src_ip6));
	memcpy(&ip->dst_addr, a->dst_ip6, sizeof(a->dst_ip6));
	udp->src_port = rte_cpu_to_be_16(a->src_port);
	udp->dst_port = rte_cpu_to_be_16(a->dst_port);
	e->udp_sum = weft_pseudo6_sum(ip);
	e->l3_len = sizeof(*ip);
}

void weft_encap_build(struct weft_encap_hdr *e, uint8_t *bytes, const struct weft_encap_addr *a)
{
	uint16_t type = a->raw_ethertype ? WEFT_FRAME_ETHERTYPE
			: a->six         ? RTE_ETHER_TYPE_IPV6
					 : RTE_ETHER_TYPE_IPV4;

	memset(e, 0, sizeof(*e));
	memset(bytes, 0, WEFT_ENCAP_MAX);
	e->l2_len = weft_encap_l2(bytes, a->dst_mac, a->src_mac, a->vlan, type);
	e->len = e->l2_len;
	if (a->raw_ethertype)
		return;
	if (a->six)
		build_ip6_udp(e, bytes, a);
	else
		build_ip_udp(e, bytes, a);
	e->len = (uint8_t)(e->l2_len + e->l3_len + sizeof(struct rte_udp_hdr));
}

void weft_encap_patch6(const struct weft_encap_hdr *e, uint8_t *frame, uint32_t lane_len,
		       uint16_t src_port, uint16_t dst_port)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(frame + e->l2_len);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	ip->payload_len = weft_be16((uint16_t)(sizeof(*udp) + lane_len));
	udp->src_port = weft_be16(src_port);
	udp->dst_port = weft_be16(dst_port);
	udp->dgram_len = ip->payload_len;
}

void weft_encap_csum6(const struct weft_encap_hdr *e, uint8_t *frame)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(frame + e->l2_len);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	uint16_t sum;

	if (e->l3_len != sizeof(*ip))
		return;
	sum = (uint16_t)~weft_ip6_sum(ip, udp, weft_be16(udp->dgram_len));
	udp->dgram_cksum = sum == 0 ? UINT16_MAX : sum;
}

/* ---------------------------------------------------------------- whole frames */

uint32_t weft_frame_write(uint8_t *out, const struct weft_encap_addr *a,
			  const struct weft_frame_hdr *hdr, const void *body, uint32_t len)
{
	uint32_t lane_len = (uint32_t)sizeof(*hdr) + len;
	struct weft_frame_hdr head = *hdr;
	struct weft_encap_hdr encap;
	uint8_t *lane;
	weft_le32 crc;

	weft_encap_build(&encap, out, a);
	lane = out + encap.len;
	head.magic = weft_put16(WEFT_FRAME_MAGIC);
	head.version = WEFT_FRAME_VERSION;
	head.flags = weft_put16(WEFT_FRAME_F_CRC32C);
	head.length = weft_put16((uint16_t)lane_len);
	memcpy(lane, &head, sizeof(head));
	if (len > 0)
		memcpy(lane + sizeof(head), body, len);
	crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, lane, lane_len));
	memcpy(lane + lane_len, &crc, sizeof(crc));
	weft_encap_patch(&encap, out, lane_len + (uint32_t)sizeof(crc), a->src_port, a->dst_port);
	weft_encap_csum6(&encap, out);
	return encap.len + lane_len + (uint32_t)sizeof(crc);
}

static_assert(sizeof(struct weft_frame_reset) <= WEFT_FRAME_SEAL_LEN, "WEFT_FAREWELL_MAX");

uint32_t weft_frame_farewell(uint8_t *out, const struct weft_encap_addr *a, uint16_t index,
			     uint32_t conn, uint32_t token)
{
	const struct weft_frame_reset body = {
		.reason = weft_put16(WEFT_RESET_GONE),
		.version_min = WEFT_FRAME_VERSION,
		.version_max = WEFT_FRAME_VERSION,
		.echo_conn = weft_put32(conn),
		.echo_token = weft_put32(token),
	};
	const struct weft_frame_hdr hdr = {
		.type = WEFT_FRAME_RESET,
		.dst_conn = weft_put32(index),
		.ts_hold = weft_put16(WEFT_FRAME_NO_ECHO),
	};

	return weft_frame_write(out, a, &hdr, &body, sizeof(body));
}
