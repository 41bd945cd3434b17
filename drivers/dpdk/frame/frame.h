/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/frame.h
 * What a raw-DPDK lane puts on the wire behind Ethernet, IPv4 and UDP headers, which are DPDK's
 * structs. doc/wire.md ("Lane frames") explains it; frame/parse.c alone validates it. The other
 * files:
 *
 *	frame/parse.c       bytes from the wire become a view that can be trusted
 *	frame/encap.c       the bytes in front of a lane header: Ethernet, VLAN tag, IPv4, UDP
 *	frame/ip.c          IPv4 addresses of lanes
 *	frame/arp.c         ARP: the table, questions, answers
 *	frame/csum.c        CRC32C, Internet checksum
 *	frame/steering.c    which UDP ports bring a connection's frames to which queue
 *	frame/frame_port.h  a port that sends and receives frames, whatever is behind it
 *
 * All fields are little-endian. A frame begins at an even address; no field of a lane header is
 * aligned: 14 + 20 + 8 bytes stand in front, so the structs are packed and a lane header is 42
 * bytes long, which puts the data of the first message of an untagged UDP frame at byte 88, a
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

/**
 * Smallest frame size a lane works with: IPv6's minimum MTU of 1280, and an Ethernet header with a
 * tag.
 */
#define WEFT_FRAME_SIZE_MIN (1280u + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
#define WEFT_FRAME_SIZE_MAX 16384u

enum weft_frame_type {
	WEFT_FRAME_HELLO = 1,     /**< "connect": struct weft_frame_hello */
	WEFT_FRAME_HELLO_ACK = 2, /**< the responder's half: struct weft_frame_hello */
	/** is a frame of this size carried? struct weft_frame_probe, zeros */
	WEFT_FRAME_PROBE = 3,
	WEFT_FRAME_PROBE_ACK = 4, /**< it is; padded to the same size */
	/** the initiator settles the frame size: struct weft_frame_ready */
	WEFT_FRAME_READY = 5,
	WEFT_FRAME_READY_ACK = 6, /**< the responder has it */
	WEFT_FRAME_DATA = 7,      /**< messages; the only type that uses up sequences */
	WEFT_FRAME_ACK = 8,       /**< no body; with WEFT_FRAME_F_ACK_REQ also the keepalive */
	WEFT_FRAME_RESET = 9,     /**< there is no such connection: struct weft_frame_reset */
	WEFT_FRAME_BYE = 10,      /**< closed in good order; seq = sequences used up in all */
	WEFT_FRAME_BYE_ACK = 11,  /**< stop repeating BYE */
	/** the answer to a HELLO that has no state here yet: struct weft_frame_retry */
	WEFT_FRAME_HELLO_RETRY = 12,
	/** is the far end there as well? struct weft_frame_challenge */
	WEFT_FRAME_CHALLENGE = 13,
	WEFT_FRAME_CHALLENGE_ACK = 14, /**< it is: struct weft_frame_challenge */
	/** bytes of the DATA frame of this sequence, which is too long: struct weft_frame_part */
	WEFT_FRAME_PART = 15,
	WEFT_FRAME_ALIVE = 16, /**< the sender's process lives and computes: it does not poll */
	WEFT_FRAME_TYPE_END,
};

#define WEFT_FRAME_F_ACK_REQ 0x0001u /**< acknowledge at once */
#define WEFT_FRAME_F_SACK 0x0002u    /**< a SACK block follows the header */
#define WEFT_FRAME_F_CRC32C 0x0004u  /**< CRC32C of header .. end of body follows the body */
/** not the first transmission of this sequence; for readers of captures */
#define WEFT_FRAME_F_RETX 0x0008u
#define WEFT_FRAME_F_ECN 0x0010u   /**< an ECN block follows header and SACK block */
#define WEFT_FRAME_F_KNOWN 0x001fu /**< other bits must be 0 in version 2 */
/* 0x0020 and 0x0040 are kept for encryption: frames with them are dropped by version 2 */

#define WEFT_FRAME_HOLD_UNIT 64u   /**< ns per unit of ts_hold */
#define WEFT_FRAME_NO_ECHO 0xffffu /**< ts_hold: ts_echo means nothing */
#define WEFT_FRAME_PATHS_MAX 16u

/**
 * Lane header. The first 26 bytes keep their meaning in all versions, so that a peer of another
 * version can be answered with a RESET that says so.
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
	/** receiver's random token of that connection; in HELLO the sender's; 0 in RESET */
	weft_le32 token;
	weft_le32 seq;      /**< DATA: sequence of this frame. Others: the next one to be used */
	weft_le32 ack;      /**< all sequences before this one have arrived and been processed */
	weft_le16 src_conn; /**< index of the sender's connection, so that a RESET finds it */
	uint8_t path;       /**< of this frame */
	uint8_t echo_path;  /**< of the frame that ts_echo is of; 0 without one */
	weft_le32 order;    /**< send order of DATA on this path, retransmissions counted */
	weft_le32 ts;       /**< sender's clock when this was sent, ns modulo 2^32 */
	weft_le32 ts_echo;  /**< ts of the newest DATA frame received */
	/** how long that one waited here, in WEFT_FRAME_HOLD_UNIT, or NO_ECHO */
	weft_le16 ts_hold;
} __attribute__((packed));

/** Bytes of the lane header that mean the same in all versions; RESET is the same as a whole. */
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
 * ECN block: what the sender of this frame has counted of the frames that came to it, path by path.
 * Entries follow; each path at most once.
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

/** In front of each message of a DATA frame. Messages stand one after the other without padding. */
struct weft_frame_msg {
	weft_le16 length; /**< of the data that follows */
	uint8_t am_id;    /**< < 32 */
	uint8_t flags;    /**< 0 */
} __attribute__((packed));

/** Sequences that every receiver remembers; how often more may be doubled, to be sensible. */
#define WEFT_FRAME_SEQS 1024u
#define WEFT_FRAME_SEQS_SHIFT 10u

/** Body of HELLO and HELLO_ACK. Later versions may append; a reader takes what it knows. */
struct weft_frame_hello {
	weft_le32 conn;       /**< sender's connection: what the other writes into dst_conn */
	weft_le32 token;      /**< and into token */
	weft_le64 worker_id;  /**< sender's worker */
	weft_le64 iface_id;   /**< sender's iface */
	weft_le64 peer_iface; /**< the iface meant: an address may outlive its owner */
	weft_le32 first_seq;  /**< of the sender's first DATA frame */
	weft_le32 rx_frames;  /**< frames that the sender's receive ring holds */
	weft_le32 rx_bufs;    /**< buffers behind it */
	weft_le16 frame_size; /**< largest frame, L2 header included, FCS not */
	uint8_t csum;         /**< enum weft_frame_csum: wanted (HELLO), agreed (HELLO_ACK) */
	uint8_t paths;        /**< that the sender would send over */
	weft_le32 features;   /**< WEFT_HELLO_F_*; what is not known means nothing */
	weft_le16 udp_port;   /**< that the sender listens on; 0 = the one that this comes from */
	uint8_t steer;        /**< WEFT_HELLO_* */
	uint8_t rx_shift;     /**< it remembers WEFT_FRAME_SEQS << rx_shift sequences */
	/** sender's, random, of this connection: what CHALLENGE is answered with */
	weft_le64 secret;
	weft_le64 cookie; /**< HELLO: from HELLO_RETRY, or 0; HELLO_ACK: 0 */
} __attribute__((packed));

/** Body of HELLO_RETRY: say HELLO again, with this. No state is kept for it. */
struct weft_frame_retry {
	weft_le64 cookie;
} __attribute__((packed));

/**
 * Body of CHALLENGE and its answer. CHALLENGE may go to somebody else than the peer: its header
 * names the connection, without the token.
 */
struct weft_frame_challenge {
	/** how many questions of this connection before (upper half), and who is asked; echoed */
	weft_le64 number;
	/**
	 * keyed hash of number, who asks, question or answer: only who has both ends' secrets knows
	 * it
	 */
	weft_le64 proof;
} __attribute__((packed));

/** hello.features: the sender counts marks, and tells them in ECN blocks */
#define WEFT_HELLO_F_MARKS 0x1u
/** hello.features: the sender takes WEFT_FRAME_PART */
#define WEFT_HELLO_F_PARTS 0x2u

/**
 * Body of PART: bytes of a DATA frame's body follow. The receiver puts it together, and takes it as
 * if it had come whole.
 */
struct weft_frame_part {
	weft_le16 offset; /**< in that body: a multiple of WEFT_FRAME_PART_UNIT */
	weft_le16 total;  /**< length of that body */
} __attribute__((packed));

/** All parts but the last one of a frame have a multiple of so many bytes. */
#define WEFT_FRAME_PART_UNIT 8u

/** hello.steer: HELLO: to be taken though it came to another queue; HELLO_ACK: it did */
#define WEFT_HELLO_ANY_QUEUE 1u

enum weft_frame_csum {
	WEFT_FRAME_CSUM_NONE = 0,
	WEFT_FRAME_CSUM_UDP = 1,
	WEFT_FRAME_CSUM_CRC32C = 2
};

/**
 * probe.frame_size of probes that measure the way: no size. What they are padded to is not echoed.
 */
#define WEFT_FRAME_PROBE_PING 1u  /**< the answer comes at once */
#define WEFT_FRAME_PROBE_TRAIN 2u /**< a full frame, one of many */
/** and that try a pair of ports for the path they come over; answered the same way back */
#define WEFT_FRAME_PROBE_PATH 3u     /**< dropped where it comes to another queue */
#define WEFT_FRAME_PROBE_PATH_ANY 4u /**< not even there */
/** the responder would like (another) port for the path in `id`; not answered */
#define WEFT_FRAME_PROBE_WANT 6u
#define WEFT_FRAME_PROBE_USE 7u  /**< small: the path has the ports that this came by */
#define WEFT_FRAME_PROBE_OVER 5u /**< small: answer over the path that this came by */

/** Body of PROBE and PROBE_ACK; zeros follow up to the size probed. */
struct weft_frame_probe {
	weft_le16 id; /**< of the try; echoed */
	/**
	 * size of the frame that this is, L2 header included; 0 = a small one; or
	 * WEFT_FRAME_PROBE_*
	 */
	weft_le16 frame_size;
} __attribute__((packed));

/** Body of READY: behind it stand the UDP ports of the initiator's paths, 2 bytes each. */
struct weft_frame_ready {
	weft_le16 frame_size; /**< from now on, both ways */
	weft_le16 paths;      /**< that were found to work; 0 = one, no ports follow */
} __attribute__((packed));

enum weft_frame_reset_reason {
	WEFT_RESET_UNKNOWN = 1, /**< no such connection here (any more) */
	WEFT_RESET_IFACE = 2,   /**< HELLO for an iface that is not this one: its owner has gone */
	WEFT_RESET_VERSION = 3, /**< version not spoken here */
	WEFT_RESET_BUSY = 4,    /**< too many half-open connections: try again */
	WEFT_RESET_REFUSED = 5, /**< no agreement on frame size or checksum, or out of memory */
};

/**
 * Body of RESET. It proves that its sender saw the frame it answers: nobody else knows these two
 * numbers.
 */
struct weft_frame_reset {
	weft_le16 reason;    /**< enum weft_frame_reset_reason */
	uint8_t version_min; /**< versions that the sender speaks */
	uint8_t version_max;
	weft_le32 echo_conn;  /**< dst_conn of the frame answered */
	weft_le32 echo_token; /**< token of it */
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

/* For the data path: x86's rte_cpu_to_be_16() is volatile assembler, which nothing optimises. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define weft_be16(x) __builtin_bswap16(x)
#define weft_be32(x) __builtin_bswap32(x)
#else
#define weft_be16(x) ((uint16_t)(x))
#define weft_be32(x) ((uint32_t)(x))
#endif

#endif /* WEFT_FRAME_H */
