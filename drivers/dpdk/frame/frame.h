/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/frame.h
 * The format of a raw-DPDK lane's frames behind the Ethernet, IPv4 and UDP headers, which are
 * DPDK's structs. doc/wire.md ("Lane frames") explains it; frame/parse.h and frame/parse.c alone
 * validate it. The other files:
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

#include "core/wire_types.h"

#define WEFT_FRAME_MAGIC 0x6657u /**< bytes 'W' 'f' */
#define WEFT_FRAME_VERSION 2u
#define WEFT_FRAME_ETHERTYPE 0x88b5u /**< IEEE 802 local experimental, for links without IP */

#define WEFT_IP_UDP_LEN ((uint32_t)(sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr)))
#define WEFT_ENCAP_MAX (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + WEFT_IP_UDP_LEN)

/** Smallest frame size of a lane: IPv6's minimum MTU of 1280, and an Ethernet header with a tag. */
#define WEFT_FRAME_SIZE_MIN (1280u + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
#define WEFT_FRAME_SIZE_MAX 16384u

enum weft_frame_type {
	WEFT_FRAME_HELLO = 1,     /**< "connect": struct weft_frame_hello */
	WEFT_FRAME_HELLO_ACK = 2, /**< the responder's half: struct weft_frame_hello */
	/** does the path carry a frame of this size? struct weft_frame_probe, zeros */
	WEFT_FRAME_PROBE = 3,
	WEFT_FRAME_PROBE_ACK = 4, /**< it does; padded to the same size */
	/** the initiator sets the frame size: struct weft_frame_ready */
	WEFT_FRAME_READY = 5,
	WEFT_FRAME_READY_ACK = 6, /**< the responder has received READY */
	WEFT_FRAME_DATA = 7,      /**< messages; only DATA frames have sequences of their own */
	WEFT_FRAME_ACK = 8,       /**< no body; with WEFT_FRAME_F_ACK_REQ also the keepalive */
	WEFT_FRAME_RESET = 9,     /**< there is no such connection: struct weft_frame_reset */
	WEFT_FRAME_BYE = 10,      /**< orderly close; seq = the sequence after the last DATA */
	WEFT_FRAME_BYE_ACK = 11,  /**< stop repeating BYE */
	/** the answer to a HELLO without state at the responder: struct weft_frame_retry */
	WEFT_FRAME_HELLO_RETRY = 12,
	/** is the peer at this MAC address, too? struct weft_frame_challenge */
	WEFT_FRAME_CHALLENGE = 13,
	WEFT_FRAME_CHALLENGE_ACK = 14, /**< the peer is there: struct weft_frame_challenge */
	/** a part of the DATA frame of this sequence, which is too long: struct weft_frame_part */
	WEFT_FRAME_PART = 15,
	/** the sender's process computes and does not poll, but it is alive */
	WEFT_FRAME_ALIVE = 16,
	WEFT_FRAME_TYPE_END,
};

#define WEFT_FRAME_F_ACK_REQ 0x0001u /**< acknowledge at once */
#define WEFT_FRAME_F_SACK 0x0002u    /**< a SACK block follows the header */
#define WEFT_FRAME_F_CRC32C 0x0004u  /**< CRC32C of header .. end of body follows the body */
/** a retransmission; for readers of captures only */
#define WEFT_FRAME_F_RETX 0x0008u
#define WEFT_FRAME_F_ECN 0x0010u   /**< an ECN block follows header and SACK block */
#define WEFT_FRAME_F_KNOWN 0x001fu /**< other bits must be 0 in version 2 */
/* 0x0020 and 0x0040 are reserved for encryption: version 2 drops frames with them */

#define WEFT_FRAME_HOLD_UNIT 64u   /**< ns per unit of ts_hold */
#define WEFT_FRAME_NO_ECHO 0xffffu /**< ts_hold: ts_echo is invalid */
#define WEFT_FRAME_PATHS_MAX 16u

/**
 * Lane header. The first 26 bytes have the same meaning in all versions, so that a peer of another
 * version can be answered with RESET.
 */
struct weft_frame_hdr {
	weft_le16 magic;
	uint8_t version;
	uint8_t type;    /**< enum weft_frame_type */
	weft_le16 flags; /**< WEFT_FRAME_F_* */
	/** from the first byte of this header to the end of the body; without the CRC */
	weft_le16 length;
	/** receiver's connection: index | generation << 16; in HELLO the sender's */
	weft_le32 dst_conn;
	/** random token of that connection, the receiver's; in HELLO the sender's; 0 in RESET */
	weft_le32 token;
	weft_le32 seq;      /**< DATA: sequence of this frame. Others: sequence of the next DATA */
	weft_le32 ack;      /**< all sequences before this one have arrived and been processed */
	weft_le16 src_conn; /**< index of the sender's connection, for a RESET */
	uint8_t path;       /**< of this frame */
	uint8_t echo_path;  /**< path of the frame of ts_echo; 0 without an echo */
	weft_le32 order;    /**< send order of DATA on this path, retransmissions counted */
	weft_le32 ts;       /**< sender's clock when this was sent, ns modulo 2^32 */
	weft_le32 ts_echo;  /**< ts of the newest DATA frame received */
	/** the time for which that frame waited here, in WEFT_FRAME_HOLD_UNIT; or NO_ECHO */
	weft_le16 ts_hold;
} __attribute__((packed));

/** Bytes of the lane header that mean the same in all versions; a RESET does so as a whole. */
#define WEFT_FRAME_FIXED 26u

/**
 * SACK block: bit i of the words, counted from the low bit of the first: sequence ack + 1 + i has
 * arrived.
 */
struct weft_frame_sack {
	weft_le16 words; /**< 1 .. WEFT_FRAME_SACK_WORDS */
	weft_le16 reserved;
	weft_le64 word[];
} __attribute__((packed));

#define WEFT_FRAME_SACK_WORDS 64u /**< 4096 sequences */

/**
 * ECN block: marked frames that the sender of this frame has received, by path. Entries follow, at
 * most one for each path.
 */
struct weft_frame_ecn {
	weft_le16 paths; /**< entries, 1 .. WEFT_FRAME_PATHS_MAX */
	weft_le16 reserved;
} __attribute__((packed));

struct weft_frame_ecn_path {
	uint8_t path;
	uint8_t reserved;
	/** frames with Congestion Experienced since the connection was made, modulo 2^16 */
	weft_le16 marked;
} __attribute__((packed));

/** Header of each message in a DATA frame. Messages follow each other without padding. */
struct weft_frame_msg {
	weft_le16 length; /**< of the data that follows */
	uint8_t am_id;    /**< < 32 */
	uint8_t flags;    /**< 0 */
} __attribute__((packed));

/** Sequences that every receiver remembers; the largest valid hello.rx_shift. */
#define WEFT_FRAME_SEQS 1024u
#define WEFT_FRAME_SEQS_SHIFT 10u

/** Body of HELLO and HELLO_ACK. Later versions may append fields; a receiver ignores those. */
struct weft_frame_hello {
	weft_le32 conn;       /**< sender's connection: the peer writes it into dst_conn */
	weft_le32 token;      /**< and into token */
	weft_le64 worker_id;  /**< sender's worker */
	weft_le64 iface_id;   /**< sender's iface */
	weft_le64 peer_iface; /**< the receiver's iface: its address may outlive it */
	weft_le32 first_seq;  /**< of the sender's first DATA frame */
	weft_le32 rx_frames;  /**< frames that the sender's receive ring holds */
	weft_le32 rx_bufs;    /**< buffers in the sender's receive pool */
	weft_le16 frame_size; /**< largest frame, L2 header included, FCS not */
	uint8_t csum;         /**< enum weft_frame_csum: wanted (HELLO), agreed (HELLO_ACK) */
	uint8_t paths;        /**< number of paths that the sender wants to use */
	weft_le32 features;   /**< WEFT_HELLO_F_*; unknown bits are ignored */
	weft_le16 udp_port;   /**< port on which the sender listens; 0 = the source port of this */
	uint8_t steer;        /**< WEFT_HELLO_* */
	uint8_t rx_shift;     /**< the sender remembers WEFT_FRAME_SEQS << rx_shift sequences */
	/** the sender's random secret of this connection, which keys the proofs of CHALLENGE */
	weft_le64 secret;
	weft_le64 cookie; /**< HELLO: from HELLO_RETRY, or 0; HELLO_ACK: 0 */
} __attribute__((packed));

/**
 * Body of HELLO_RETRY: HELLO is to be sent again, with this cookie. The responder keeps no state
 * for it.
 */
struct weft_frame_retry {
	weft_le64 cookie;
} __attribute__((packed));

/**
 * Body of CHALLENGE and of its answer. CHALLENGE may reach another host than the peer: so its
 * header names the connection, but does not contain the token.
 */
struct weft_frame_challenge {
	/** counter of the connection's CHALLENGEs (upper half), hash of the MAC queried; echoed */
	weft_le64 number;
	/**
	 * keyed hash of number, direction, and whether it is CHALLENGE or the answer: only hosts
	 * with the secrets of both ends can compute it
	 */
	weft_le64 proof;
} __attribute__((packed));

/** hello.features: the sender counts marks and reports them in ECN blocks */
#define WEFT_HELLO_F_MARKS 0x1u
/** hello.features: the sender accepts WEFT_FRAME_PART */
#define WEFT_HELLO_F_PARTS 0x2u

/**
 * Body of PART: bytes of a DATA frame's body follow. The receiver assembles the body, and processes
 * it as if it had come in one frame.
 */
struct weft_frame_part {
	weft_le16 offset; /**< in that body: a multiple of WEFT_FRAME_PART_UNIT */
	weft_le16 total;  /**< length of that body */
} __attribute__((packed));

/** All parts but the last one of a frame have a multiple of this number of bytes. */
#define WEFT_FRAME_PART_UNIT 8u

/** hello.steer: HELLO: to be accepted even if it came to another queue; HELLO_ACK: it did */
#define WEFT_HELLO_ANY_QUEUE 1u

enum weft_frame_csum {
	WEFT_FRAME_CSUM_NONE = 0,
	WEFT_FRAME_CSUM_UDP = 1,
	WEFT_FRAME_CSUM_CRC32C = 2
};

/**
 * Values of probe.frame_size that are no size. Probes that measure the path; the padding is not
 * echoed:
 */
#define WEFT_FRAME_PROBE_PING 1u  /**< the answer comes at once */
#define WEFT_FRAME_PROBE_TRAIN 2u /**< a full frame, one of many */
/** Probes that try a pair of ports for their path; the answer has both ports exchanged: */
#define WEFT_FRAME_PROBE_PATH 3u     /**< dropped if it comes to another queue */
#define WEFT_FRAME_PROBE_PATH_ANY 4u /**< accepted on any queue */
/** the responder requests a port, or another one, for the path in `id`; not answered */
#define WEFT_FRAME_PROBE_WANT 6u
#define WEFT_FRAME_PROBE_USE 7u  /**< small: the path has the ports of this frame from now on */
#define WEFT_FRAME_PROBE_OVER 5u /**< small: the answer goes over the path of this frame */

/** Body of PROBE and PROBE_ACK; zeros follow up to the size probed. */
struct weft_frame_probe {
	weft_le16 id; /**< of the attempt; echoed */
	/** size of this frame, L2 header included; 0 = a small one; or WEFT_FRAME_PROBE_* */
	weft_le16 frame_size;
} __attribute__((packed));

/** Body of READY. The UDP ports of the initiator's paths follow, 2 bytes each. */
struct weft_frame_ready {
	weft_le16 frame_size; /**< from now on, in both directions */
	weft_le16 paths;      /**< number of paths that work; 0 = one, and no ports follow */
} __attribute__((packed));

enum weft_frame_reset_reason {
	WEFT_RESET_UNKNOWN = 1, /**< no such connection here (any more) */
	WEFT_RESET_IFACE = 2,   /**< HELLO for another iface than this: that one has ended */
	WEFT_RESET_VERSION = 3, /**< the receiver does not support this version */
	WEFT_RESET_BUSY = 4,    /**< too many half-open connections: try again */
	WEFT_RESET_REFUSED = 5, /**< no agreement on frame size or checksum, or out of memory */
};

/**
 * Body of RESET. It proves that its sender has received the frame that it answers: no other host
 * has these two numbers.
 */
struct weft_frame_reset {
	weft_le16 reason;    /**< enum weft_frame_reset_reason */
	uint8_t version_min; /**< versions that the sender supports */
	uint8_t version_max;
	weft_le32 echo_conn;  /**< dst_conn of the answered frame */
	weft_le32 echo_token; /**< token of the answered frame */
} __attribute__((packed));

static_assert(sizeof(struct weft_frame_hdr) == 42, "lane header");
static_assert(sizeof(struct weft_frame_sack) == 4, "sack block");
static_assert(sizeof(struct weft_frame_msg) == 4, "message header");
static_assert(sizeof(struct weft_frame_ecn) == 4, "ecn block");
static_assert(sizeof(struct weft_frame_ecn_path) == 4, "ecn entry");
static_assert(sizeof(struct weft_frame_hello) == 72, "hello");
static_assert(sizeof(struct weft_frame_retry) == 8, "retry");
static_assert(sizeof(struct weft_frame_challenge) == 16, "challenge");
static_assert(sizeof(struct weft_frame_probe) == 4, "probe");
static_assert(sizeof(struct weft_frame_part) == 4, "part");
static_assert(sizeof(struct weft_frame_ready) == 4, "ready");
static_assert(sizeof(struct weft_frame_reset) == 12, "reset");

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
