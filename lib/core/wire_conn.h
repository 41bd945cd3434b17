/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/wire_conn.h
 * Structures for connecting workers: wire-up messages, worker addresses, remote keys. doc/wire.md
 * explains them byte by byte; wireup/record.c, core/address.c and rma/rkey.c validate them.
 */
#ifndef WEFT_WIRE_CONN_H
#define WEFT_WIRE_CONN_H

#include <stddef.h>

#include "core/wire_types.h"

/** Reference to an object of the receiver of the message: slot and generation, both checked. */
struct weft_wire_ref {
	weft_le32 index;
	weft_le32 generation;
} __attribute__((packed));

static_assert(sizeof(struct weft_wire_ref) == 8, "wire");

/* ------------------------------------------------------------------ wire-up */

/** WIREUP message kinds. */
enum weft_wireup_type {
	/**
	 * contains the sender's address, its ep, and its proposal (lower id) or preference (higher
	 * id) of lanes; repeated until there is a reply
	 */
	WEFT_WIREUP_REQ = 1,
	WEFT_WIREUP_REP = 2, /**< agreed lane map, the sender's ep, its first credits */
	/**
	 * first message on a further lane: the lane belongs to the receiver's ep, as lane number n
	 */
	WEFT_WIREUP_ATTACH = 3,
	WEFT_WIREUP_ATTACHED = 4,
	WEFT_WIREUP_CLOSE = 5, /**< all messages of the sender are acknowledged; its ep is gone */
	/** refused: status and text; lane 0xff = the whole endpoint, else that lane */
	WEFT_WIREUP_ERROR = 6,
	/**
	 * from the sender of REQ: the map of the REP is accepted or reduced; the other side repeats
	 * REP until ACK or data arrives
	 */
	WEFT_WIREUP_ACK = 7,
	/**
	 * the sender is closing, and CLOSE follows when all is delivered: no endpoint may adopt
	 * this ep
	 */
	WEFT_WIREUP_CLOSING = 8,
	/**
	 * the sender has stopped that lane; contains its receive state, and requests the receiver's
	 */
	WEFT_WIREUP_LANE_DOWN = 9,
	/** the same, from a sender that has the receiver's state already */
	WEFT_WIREUP_LANE_DOWN_ACK = 10,
	/**
	 * from the higher id: it gets no acknowledgements over that lane, and requests to stop it
	 */
	WEFT_WIREUP_LANE_SUSPECT = 11,
	/** of a lane that died: the address of the sender's new end of it */
	WEFT_WIREUP_LANE_LINK = 12,
	/** from a peer that has only the boot address: request for the worker address */
	WEFT_WIREUP_WHO = 13,
	/** reply to WEFT_WIREUP_WHO: the sender's worker address */
	WEFT_WIREUP_ADDRESS = 14,
};

/** Head of every WIREUP message; records (lib/wireup/wireup.c) follow, described in doc/wire.md. */
struct weft_wire_wireup {
	uint8_t type;  /**< enum weft_wireup_type */
	uint8_t major; /**< WEFT_WIRE_MAJOR of the sender */
	uint8_t minor;
	uint8_t lane;         /**< number of the lane that the message concerns */
	weft_le32 conn_sn;    /**< which of the endpoints between the two workers */
	weft_le64 src_worker; /**< sender's worker id */
	weft_le64 dst_worker; /**< receiver's worker id; a receiver with another id refuses */
	struct weft_wire_ref src_ep;
	struct weft_wire_ref dst_ep; /**< 0,0 = not known yet */
	weft_le16 status;            /**< ERROR: positive errno, < 4096 */
	weft_le16 lane_epoch; /**< of lane's connection: 0, and 1 more each time it is made again */
	weft_le16 total;      /**< bytes of records of the whole message, <= 8192 */
	/**
	 * offset of this piece's records; their length is that of the rest of the message. Pieces
	 * let a REQ fit any MTU; repetitions are byte-identical
	 */
	weft_le16 offset;
	/**
	 * the sender's secret of this endpoint: random, and sent to the peer only; 0 when it
	 * refuses a REQ
	 */
	weft_le64 src_secret;
	/**
	 * the receiver's secret of it, from the receiver's messages; in REQ the secret of the
	 * receiver's worker address
	 */
	weft_le64 dst_secret;
} __attribute__((packed));

static_assert(sizeof(struct weft_wire_wireup) == 64, "wire");
/* The bytes before are the same in every version. */
static_assert(offsetof(struct weft_wire_wireup, src_secret) == 48, "wire");

/** weft_wire_wireup.lane of an ERROR that ends the whole endpoint. */
#define WEFT_WIREUP_ALL_LANES 0xff

/** Most bytes of records of one WIREUP message, over all its pieces. */
#define WEFT_WIREUP_MAX 8192

/**
 * Records of WIREUP messages: this head, then @p length bytes. Unknown types are skipped unless bit
 * 15 of the type is set.
 */
struct weft_wire_record {
	weft_le16 type;   /**< enum weft_wire_record_type */
	weft_le16 length; /**< bytes that follow; no padding */
} __attribute__((packed));

enum weft_wire_record_type {
	/** struct weft_wire_address...: the sender's worker address, of the ifaces it offers */
	WEFT_RECORD_ADDRESS = 1,
	WEFT_RECORD_LANES = 2, /**< struct weft_wire_lane, one or more: the lane map */
	/** struct weft_wire_boot: the pair of ifaces that this connection joins */
	WEFT_RECORD_BOOT = 3,
	/** struct weft_wire_credit: first credit of the receiver of the message */
	WEFT_RECORD_CREDIT = 4,
	/**
	 * struct weft_wire_ep_addr, then the address; once per lane, only with LANES that has the
	 * lane
	 */
	WEFT_RECORD_EP_ADDR = 6,
	WEFT_RECORD_MODEL =
		7, /**< struct weft_wire_model: parameters of the sender's choice of protocols */
	WEFT_RECORD_TEXT = 5, /**< text in UTF-8, not terminated, <= 255 bytes */
	WEFT_RECORD_NEXT_SN =
		8, /**< struct weft_wire_next_sn: in ERROR(ESTALE): a number that is free */
	/** the sender's receive state of a lane: bytes of the lane's driver, 1..520 */
	WEFT_RECORD_RX_STATE = 9,
};

/** the numbers of a lane were measured on it, not stated */
#define WEFT_WIRE_LANE_F_BW 1u
#define WEFT_WIRE_LANE_F_LAT 2u

/** One lane of the map. "Lower" is the worker with the lower id. */
struct weft_wire_lane {
	/** lane number, each once; 0 = the connection that carries the message */
	uint8_t lane;
	uint8_t lower_iface; /**< iface number at the lower worker */
	uint8_t higher_iface;
	uint8_t flags;       /**< WEFT_WIRE_LANE_F_*; unknown ones mean nothing */
	weft_le32 max_frag;  /**< largest lane message that both ends take */
	weft_le32 bandwidth; /**< bytes/s, IEEE 754 single: the number that decided */
	weft_le32 latency;   /**< s, single */
} __attribute__((packed));

/**
 * Address by which the receiver's end of a lane connects to the sender's end. The driver's own
 * bytes follow, 1..64 of them.
 */
struct weft_wire_ep_addr {
	uint8_t lane;     /**< lane number in the map of the same message */
	uint8_t reserved; /**< 0 */
} __attribute__((packed));

struct weft_wire_boot {
	uint8_t src_iface; /**< iface number at the sender of the message */
	uint8_t dst_iface;
	/**
	 * counts the initiator's connections. A channel may lose and duplicate messages; the number
	 * distinguishes an older REQ from a newer one
	 */
	weft_le16 attempt;
} __attribute__((packed));

/** In REQ and REP. Both ends use the smaller of their numbers. */
struct weft_wire_model {
	weft_le32 bcopy_bw; /**< bytes/s at which a CPU copies, IEEE 754 single, > 0 */
	weft_le32 reserved; /**< 0 */
} __attribute__((packed));

/** The conn_sn of the request was used before. This number and all higher ones are free. */
struct weft_wire_next_sn {
	weft_le32 conn_sn;
} __attribute__((packed));

static_assert(sizeof(struct weft_wire_next_sn) == 4, "wire");
static_assert(sizeof(struct weft_wire_record) == 4, "wire");
static_assert(sizeof(struct weft_wire_model) == 8, "wire");
static_assert(sizeof(struct weft_wire_lane) == 16, "wire");
static_assert(sizeof(struct weft_wire_boot) == 4, "wire");
static_assert(sizeof(struct weft_wire_ep_addr) == 2, "wire");

/* ------------------------------------------------------------------ worker address */

#define WEFT_ADDRESS_MAGIC 0x54464557u /* "WEFT" */

/**
 * Head of a worker address. The first 16 bytes are the same in every version, so a reader can
 * distinguish a damaged address from one of another version.
 */
struct weft_wire_address {
	weft_le32 magic;
	uint8_t major, minor; /**< WEFT_WIRE_MAJOR, WEFT_WIRE_MINOR of its maker */
	weft_le16 length;     /**< of the whole address */
	weft_le32 crc;        /**< CRC-32C of the whole address, with this field 0 */
	weft_le32 reserved;   /**< 0 */
	weft_le64 worker_id;
	weft_le64 features;  /**< WEFT_FEATURE_* */
	uint8_t name_len;    /**< bytes of the name that follows the head, <= 63 */
	uint8_t num_ifaces;  /**< struct weft_wire_iface after the name, <= 16 */
	weft_le16 reserved2; /**< 0 */
	weft_le64 secret;    /**< random: a peer must know it to connect to the worker */
	weft_le64 host_id;   /**< of the running system: equal = the same one; 0 = not known */
} __attribute__((packed));

/**
 * One iface: this, then driver_len bytes of the driver's name, then addr_len bytes of the driver's
 * own address.
 */
struct weft_wire_iface {
	uint8_t index;
	uint8_t driver_len; /**< 1..15 */
	uint8_t addr_len;   /**< 1..64 */
	uint8_t reserved;   /**< 0 */
	weft_le64 device;   /**< equal = same hardware */
	weft_le32 features; /**< WEFT_LANE_F_* */
	/** singles: bytes/s, s, s, s, s, s/byte */
	weft_le32 bandwidth, latency, send_overhead, recv_overhead, reg_cost, reg_growth;
	weft_le32 max_short, max_bcopy, max_zcopy;
	/**
	 * bytes of an EP_ADDR record for a lane to it, 1..64; 0 = lanes connect to the address
	 * above alone
	 */
	uint8_t ep_addr_len;
	/** number of its registration domain at its owner, as in remote keys; 255 = none */
	uint8_t domain;
	weft_le16 reserved2; /**< 0 */
} __attribute__((packed));

#define WEFT_BOOT_ADDRESS_MAGIC 0x4657u /* "WF" */

/**
 * A boot address: at most as long as this struct. The last field has only the bytes that the
 * interface needs. Magic and version are at the same place in every version.
 */
struct weft_wire_boot_address {
	weft_le16 magic;
	uint8_t major; /**< WEFT_WIRE_MAJOR of its maker */
	uint8_t iface; /**< high 3 bits: enum weft_lane_boot_kind; low 5: number of the iface */
	weft_le32 crc; /**< CRC-32C of all bytes of the address, with this field 0 */
	weft_le64 worker_id;
	weft_le64 secret; /**< as in struct weft_wire_address */
	weft_le64 digest; /**< weft_address_digest() of the worker address */
	weft_le32 host;   /**< low half of host_id */
	/** low 5 bits: 1 + number of an iface inside the host, 0 = none; high 3: driver's own */
	uint8_t host_lane;
	uint8_t bytes[19]; /**< driver's own */
} __attribute__((packed));

static_assert(sizeof(struct weft_wire_boot_address) == 56, "wire");
static_assert(sizeof(struct weft_wire_address) == 52, "wire");
static_assert(sizeof(struct weft_wire_iface) == 56, "wire");

/* ------------------------------------------------------------------ remote keys */

#define WEFT_RKEY_MAGIC 0x594b5457u /* "WTKY" */

/**
 * A packed remote key, which the application carries to peers. It is validated like a worker
 * address, because its origin is not trusted.
 */
struct weft_wire_rkey {
	weft_le32 magic;
	uint8_t major, minor; /**< WEFT_WIRE_MAJOR, WEFT_WIRE_MINOR of its maker */
	weft_le16 length;     /**< of the whole blob */
	weft_le32 crc;        /**< CRC-32C of the whole blob, with this field 0 */
	weft_le32 rights;     /**< WEFT_MEM_REMOTE_* */
	weft_le64 key;        /**< random; the key in PUT, GET and AMO */
	weft_le64 size;       /**< bytes of the memory */
	/** lowest 3 bits of its address, by which peers find aligned offsets */
	uint8_t low;
	uint8_t num_domains; /**< struct weft_wire_rkey_domain that follow */
	/** number of weft_le64 that follow then: workers at which the domains' keys are valid */
	uint8_t num_workers;
	uint8_t reserved;    /**< 0 */
	weft_le32 reserved2; /**< 0 */
} __attribute__((packed));

/** Key of a registration domain whose lanes read and write remote memory themselves. */
struct weft_wire_rkey_domain {
	weft_le64 key;
	uint8_t domain; /**< as in struct weft_wire_iface */
	uint8_t reserved[7];
} __attribute__((packed));

/** Most domains, and workers, in one key. */
#define WEFT_RKEY_DOMAINS 16
#define WEFT_RKEY_WORKERS 64

static_assert(sizeof(struct weft_wire_rkey) == 40, "wire");
static_assert(sizeof(struct weft_wire_rkey_domain) == 16, "wire");

#endif /* WEFT_WIRE_CONN_H */
