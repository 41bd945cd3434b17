/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/frame.h
 * The format of a raw-DPDK lane's frames behind the Ethernet, IPv4 and UDP headers, which are
 * DPDK's structs. core/wire.def has the types, fields and flags; here are limits and the rules that
 * a table cannot state. frame/parse.h and frame/parse.c alone validate frames. The other files:
 *
 *	frame/parse.c       bytes from the wire become a view that can be trusted
 *	frame/encap.c       the bytes in front of a lane header: Ethernet, VLAN tag, IPv4, UDP
 *	frame/ip.c          IPv4 addresses of lanes
 *	frame/arp.c         ARP: the table, requests, replies
 *	frame/csum.c        CRC32C, Internet checksum
 *	frame/steering.c    the UDP ports that bring a connection's frames to a queue
 *	frame/frame_port.h  the interface of a port that sends and receives frames
 *
 * All fields are little-endian. A frame begins at an even address. No field of a lane header is
 * aligned, because 14 + 20 + 8 bytes are in front of it, so the structs are packed. A lane header
 * has 42 bytes: the data of the first message of an untagged UDP frame is then at byte 88, a
 * multiple of 8.
 */
#ifndef WEFT_FRAME_H
#define WEFT_FRAME_H

#include <assert.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "core/wire_frame_def.h"
#include "core/wire_types.h"

#define WEFT_IP_UDP_LEN ((uint32_t)(sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr)))
#define WEFT_ENCAP_MAX (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + WEFT_IP_UDP_LEN)

/** Smallest frame size of a lane: IPv6's minimum MTU of 1280, and an Ethernet header with a tag. */
#define WEFT_FRAME_SIZE_MIN (1280u + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
#define WEFT_FRAME_SIZE_MAX 16384u

#define WEFT_FRAME_F_KNOWN 0x001fu /**< other bits must be 0 in version 2 */
/* 0x0020, 0x0040 and 0x0080 are reserved: version 2 drops frames with them */

#define WEFT_FRAME_HOLD_UNIT 64u   /**< ns per unit of ts_hold */
#define WEFT_FRAME_NO_ECHO 0xffffu /**< ts_hold: ts_echo is invalid */
#define WEFT_FRAME_PATHS_MAX 16u

/**
 * Bytes of the lane header that mean the same in all versions, so that a peer of another version
 * can be answered with RESET; a RESET means the same as a whole.
 */
#define WEFT_FRAME_FIXED 26u
static_assert(offsetof(struct weft_frame_hdr, path) == WEFT_FRAME_FIXED, "same in every version");

#define WEFT_FRAME_SACK_WORDS 64u /**< 4096 sequences */

/** Sequences that every receiver remembers; the largest valid hello.rx_shift. */
#define WEFT_FRAME_SEQS 1024u
#define WEFT_FRAME_SEQS_SHIFT 10u

/**
 * All parts but the last one of a frame have a multiple of this number of bytes. The receiver
 * assembles the body, and processes it as if it had come in one frame.
 */
#define WEFT_FRAME_PART_UNIT 8u

/** hello.steer: HELLO: to be accepted even if it came to another queue; HELLO_ACK: it did */
#define WEFT_HELLO_ANY_QUEUE 1u

/*
 * For the data path: x86's rte_cpu_to_be_16() is volatile assembler, which compilers do not
 * optimise.
 */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define weft_be16(x) __builtin_bswap16(x)
#define weft_be32(x) __builtin_bswap32(x)
#else
#define weft_be16(x) ((uint16_t)(x))
#define weft_be32(x) ((uint32_t)(x))
#endif

#endif /* WEFT_FRAME_H */
