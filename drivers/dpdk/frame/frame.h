/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/frame.h
 * The format of a raw-DPDK lane's frames behind the Ethernet, IP and UDP headers, which are
 * DPDK's structs. core/wire.def has the types, fields and flags; here are limits and the rules that
 * a table cannot state. frame/parse.h and frame/parse.c alone validate frames. The other files:
 *
 *	frame/parse.c       bytes from the wire become a view that can be trusted
 *	frame/frame.c       checksums; the bytes in front of a lane header
 *	frame/arp.c         ARP: the table, requests, replies; addresses of lanes
 *	                    the hosts of an IPv6 lane, by numbers; neighbour discovery, as ARP
 *	frame/farewell.c    the helper that reports the end of this process to its peers
 *	frame/frame_port.h  the interface of a port that sends and receives frames
 *	frame/frame_port.c  the UDP ports that bring a connection's frames to a queue
 *
 * All fields of the lane header and behind it are little-endian. A frame begins at an even address.
 * In front of a lane header are 42 bytes (Ethernet, IPv4, UDP). So longer fields than 2 bytes may
 * be unaligned, and the structs are packed. A lane header has 42 bytes, too: the data of the first
 * message of an untagged frame over IPv4 is then at byte 88, a multiple of 8.
 */
#ifndef WEFT_FRAME_H
#define WEFT_FRAME_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "base/bytes.h"
#include "base/container.h"
#include "core/wire_frame_def.h"

#define WEFT_IP_UDP_LEN ((uint32_t)(sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr)))
#define WEFT_IP6_UDP_LEN ((uint32_t)(sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr)))
#define WEFT_ENCAP_MAX (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + WEFT_IP6_UDP_LEN)
/** Bytes by which IPv6's header exceeds IPv4's. Frame sizes on the wire do not count them. */
#define WEFT_IP6_MORE (WEFT_IP6_UDP_LEN - WEFT_IP_UDP_LEN)

/** Smallest frame size of a lane with a tag: IPv6's minimum MTU behind the Ethernet header. */
#define WEFT_FRAME_SIZE_MIN (1280u + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
#define WEFT_FRAME_SIZE_MAX 16384u
/** Least frame size of an open connection, without a tag: IPv4 hosts accept 576 bytes of IP. */
#define WEFT_FRAME_SIZE_FLOOR (576u + RTE_ETHER_HDR_LEN)

#define WEFT_FRAME_F_KNOWN 0x009fu /**< flags of a plain frame: other bits must be 0 */
/** Flags that only a sealed frame may have: SEALED always, KEY_PHASE with every second key. */
#define WEFT_FRAME_F_OF_SEAL (WEFT_FRAME_F_SEALED | WEFT_FRAME_F_KEY_PHASE)

/** Bytes of a sealed frame's number, behind the lane header, and of its tag, behind the body. */
#define WEFT_FRAME_NUMBER_LEN 8u
#define WEFT_FRAME_TAG_LEN 16u
#define WEFT_FRAME_SEAL_LEN (WEFT_FRAME_NUMBER_LEN + WEFT_FRAME_TAG_LEN)

#define WEFT_FRAME_HOLD_UNIT 64u   /**< ns per unit of ts_hold */
#define WEFT_FRAME_NO_ECHO 0xffffu /**< ts_hold: ts_echo is invalid */
#define WEFT_FRAME_PATHS_MAX 16u

/** The lane header's first bytes, and a whole RESET frame, mean the same in all versions. */
#define WEFT_FRAME_FIXED 26u
static_assert(offsetof(struct weft_frame_hdr, path) == WEFT_FRAME_FIXED, "same in every version");

#define WEFT_FRAME_SACK_WORDS 64u /**< 4096 sequences */

/** The least number of sequences that a receiver remembers: `rx_shift` of HELLO multiplies it. */
#define WEFT_FRAME_SEQS 1024u
#define WEFT_FRAME_SEQS_SHIFT 10u

/** All parts but the last one of a body (PART) have a multiple of this number of bytes. */
#define WEFT_FRAME_PART_UNIT 8u

/** hello.steer. HELLO: accept it even if it came to another queue. HELLO_ACK: the HELLO did. */
#define WEFT_HELLO_ANY_QUEUE 1u

/* The data path uses these: x86's rte_cpu_to_be_16() is volatile assembler, never optimised. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define weft_be16(x) __builtin_bswap16(x)
#define weft_be32(x) __builtin_bswap32(x)
#else
#define weft_be16(x) ((uint16_t)(x))
#define weft_be32(x) ((uint32_t)(x))
#endif

/* ---------------------------------------------------------------- checksums */

/** As weft_crc32c_soft(), with the processor's instruction if it has one. */
uint32_t weft_crc32c(uint32_t crc, const void *data, size_t len);

/**
 * The header is not all zero, and has no options.
 *
 * 2^16 is 1 modulo 65535, and so is 2^64. The ones' complement sum of all words is thus the sum of
 * longer words, with a carry of 2^64 counted as 1. 65535 divides the sum if the checksum is right,
 * in either byte order.
 */
static inline bool weft_ipv4_header_ok(const struct rte_ipv4_hdr *ip)
{
	const uint8_t *p = (const uint8_t *)ip;
	uint64_t a, b, sum;
	uint32_t c;

	memcpy(&a, p, 8);
	memcpy(&b, p + 8, 8);
	memcpy(&c, p + 16, 4);
	sum = a + b;
	sum += sum < a;
	sum += c;
	sum += sum < c;
	return sum % 65535 == 0;
}

/** Fold a sum of up to 2^16 16-bit words into 16 bits: DPDK's function is internal. */
static inline uint16_t weft_csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/** Sum of UDP's pseudo header without the length; to be added to that of rte_raw_cksum(). */
static inline uint16_t weft_pseudo_sum(const struct rte_ipv4_hdr *ip)
{
	return rte_ipv4_phdr_cksum(ip, RTE_MBUF_F_TX_TCP_SEG);
}

/** weft_pseudo_sum() of IPv6, for the protocol that @p ip names. */
static inline uint16_t weft_pseudo6_sum(const struct rte_ipv6_hdr *ip)
{
	return rte_ipv6_phdr_cksum(ip, RTE_MBUF_F_TX_TCP_SEG);
}

/** The sum over @p len contiguous bytes of UDP or ICMPv6, and over their pseudo header. */
static inline uint16_t weft_ip6_sum(const struct rte_ipv6_hdr *ip, const void *data, uint32_t len)
{
	return weft_csum_fold((uint32_t)weft_pseudo6_sum(ip) + weft_be16((uint16_t)len) +
			      rte_raw_cksum(data, len));
}

/* ---------------------------------------------------------------- encapsulation */

/* The bytes in front of a lane header: built once per connection; a send patches a copy. */

/** The two bits of ECN (RFC 3168) in the IP header's type of service, and values of them. */
#define WEFT_IP_ECN 0x3u
#define WEFT_IP_ECT0 0x2u /**< the sender is ECN-capable and respects marks */
#define WEFT_IP_CE 0x3u   /**< a queue has marked the packet */

struct weft_encap_hdr {
	uint8_t len;      /**< number of bytes in front of the lane header */
	uint8_t l2_len;   /**< bytes of the Ethernet header, with a tag */
	uint8_t l3_len;   /**< bytes of the IPv4 or IPv6 header; 0 = no IP and UDP headers */
	uint16_t ip_sum;  /**< raw sum of the IPv4 header without total length and checksum */
	uint16_t udp_sum; /**< weft_pseudo_sum(), weft_pseudo6_sum() */
};

struct weft_encap_addr {
	uint8_t src_mac[6], dst_mac[6];
	uint16_t vlan; /**< 0 = untagged */
	bool raw_ethertype;
	uint8_t tos;
	uint32_t src_ip, dst_ip; /**< host order */
	uint16_t src_port, dst_port;
	bool six; /**< IPv6, between src_ip6 and dst_ip6; else IPv4 */
	uint8_t src_ip6[16], dst_ip6[16];
};

/** Write an Ethernet header, with a tag unless @p vlan is 0. @return length of the header */
uint8_t weft_encap_l2(void *frame, const uint8_t dst[6], const uint8_t src[6], uint16_t vlan,
		      uint16_t type);

/** @param[out] bytes  room for WEFT_ENCAP_MAX */
void weft_encap_build(struct weft_encap_hdr *e, uint8_t *bytes, const struct weft_encap_addr *a);

void weft_encap_patch6(const struct weft_encap_hdr *e, uint8_t *frame, uint32_t lane_len,
		       uint16_t src_port, uint16_t dst_port);

/** Write the UDP checksum of a whole frame, which IPv6 requires. Other frames stay unchanged. */
void weft_encap_csum6(const struct weft_encap_hdr *e, uint8_t *frame);

/**
 * Patch the copy of a template at @p frame for @p lane_len bytes of lane frame (CRC included). The
 * UDP checksum stays 0, which means none; for IPv6 the caller writes it afterwards.
 */
static inline void weft_encap_patch(const struct weft_encap_hdr *e, uint8_t *frame,
				    uint32_t lane_len, uint16_t src_port, uint16_t dst_port)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + e->l2_len);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	if (e->l3_len != sizeof(*ip)) {
		if (e->l3_len != 0)
			weft_encap_patch6(e, frame, lane_len, src_port, dst_port);
		return;
	}
	ip->total_length = weft_be16((uint16_t)(WEFT_IP_UDP_LEN + lane_len));
	ip->hdr_checksum = (uint16_t)~weft_csum_fold(e->ip_sum + ip->total_length);
	udp->src_port = weft_be16(src_port);
	udp->dst_port = weft_be16(dst_port);
	udp->dgram_len = weft_be16((uint16_t)(sizeof(*udp) + lane_len));
}

/* ---------------------------------------------------------------- whole frames */

/** Most bytes of a plain frame around its lane header and body: outer headers and CRC32C. */
#define WEFT_FRAME_AROUND (WEFT_ENCAP_MAX + 4u)

/**
 * Write a plain frame that has a CRC32C. @return its length
 * @param hdr  fields of the connection; magic, version, flags and lengths are filled in
 * @param out  has room for the header, the body and WEFT_FRAME_AROUND
 */
uint32_t weft_frame_write(uint8_t *out, const struct weft_encap_addr *a,
			  const struct weft_frame_hdr *hdr, const void *body, uint32_t len);

/** Bytes of the longest farewell: a sealed GONE, which is longer than RESET(GONE). */
#define WEFT_FAREWELL_MAX \
	(WEFT_FRAME_AROUND + (uint32_t)sizeof(struct weft_frame_hdr) + WEFT_FRAME_SEAL_LEN)

/**
 * Write a farewell, RESET(GONE), with the addresses of a process that has ended.
 * @param index  the connection's number at the receiver
 * @param conn, token  the connection's number and token at the process that has ended
 * @return its length, at most WEFT_FAREWELL_MAX
 */
uint32_t weft_frame_farewell(uint8_t *out, const struct weft_encap_addr *a, uint16_t index,
			     uint32_t conn, uint32_t token);

#endif /* WEFT_FRAME_H */
