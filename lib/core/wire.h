/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/wire.h
 * Every structure of endpoints' messages on the wire. Structures for connecting workers are in
 * core/wire_conn.h, which this header includes. All are little-endian and packed, and their sizes
 * are asserted; doc/wire.md explains them byte by byte. Lane frames (below these messages) are in
 * drivers/dpdk/frame/frame.h.
 *
 * Trust: weft_wire_check() (core/wire.c) is the only validation. It checks id, length and every
 * field that can be checked without state. The length fields are trusted afterwards. References
 * ({index, generation}) are checked by the code that looks them up. There are no pointers on the
 * wire.
 */
#ifndef WEFT_WIRE_H
#define WEFT_WIRE_H

#include "core/wire_conn.h"
#include "core/wire_types.h"

/**
 * Active-message ids on a lane. 0 is never used. An unknown id on a connected endpoint fails the
 * endpoint (-EPROTO): the lane has acknowledged the message, so dropping it would lose data.
 *
 * Room for later minor versions: messages without payload (RTS, RTR, ATS, SYNC_ACK, CREDIT, ABORT)
 * may be longer than their struct. Records {le16 type, le16 length, bytes} follow the struct.
 * Unknown types are skipped unless bit 15 of the type is set (then -EPROTO). Messages with payload
 * change only by a new id. A reference is valid only if its object belongs to the endpoint that
 * received the message.
 *
 * EXT precedes another message and adds fields to it.
 */
enum weft_wire_id {
	/** struct weft_wire_wireup + records; all connection management (lib/wireup/wireup.c) */
	WEFT_WIRE_WIREUP = 1,
	WEFT_WIRE_EAGER = 2, /**< struct weft_wire_eager + payload: a whole message */
	/**
	 * struct weft_wire_eager_sync + payload: the same; the receiver sends SYNC_ACK at the match
	 */
	WEFT_WIRE_EAGER_SYNC = 3,
	/** struct weft_wire_frag + payload: a piece of a multi-eager message */
	WEFT_WIRE_FRAG = 4,
	WEFT_WIRE_FRAG_SYNC = 5,
	/** struct weft_wire_rts: a rendezvous message is ready at the sender */
	WEFT_WIRE_RTS = 6,
	WEFT_WIRE_RTR = 7,  /**< struct weft_wire_rtr: matched; send the bytes as DATA */
	WEFT_WIRE_DATA = 8, /**< struct weft_wire_data + payload */
	/** struct weft_wire_ats: receiver to sender: the message is finished */
	WEFT_WIRE_ATS = 9,
	WEFT_WIRE_SYNC_ACK = 10, /**< struct weft_wire_ats: the synchronous message was matched */
	/** struct weft_wire_credit: eager bytes and sequences the sender may use */
	WEFT_WIRE_CREDIT = 11,
	/**
	 * struct weft_wire_abort: the sender cannot finish message seq (its pack callback failed,
	 * ...)
	 */
	WEFT_WIRE_ABORT = 12,
	/** struct weft_wire_pull: receiver to sender: these bytes as DATA, over this lane */
	WEFT_WIRE_PULL = 13,
	/** struct weft_wire_withdraw: sender to receiver: drop the RTS, unless it is matched */
	WEFT_WIRE_WITHDRAW = 14,
	/** struct weft_wire_put_done: sender to receiver: these bytes are written */
	WEFT_WIRE_PUT_DONE = 15,
	/** struct weft_wire_am, header, payload: a whole active message */
	WEFT_WIRE_AM = 16,
	/** struct weft_wire_am_rts, header, records: the payload is ready at the sender */
	WEFT_WIRE_AM_RTS = 17,
	/** struct weft_wire_am_frag, header (with offset 0), payload: a piece of one */
	WEFT_WIRE_AM_FRAG = 18,
	/** struct weft_wire_ext, then the message that it extends, from its own header on */
	WEFT_WIRE_EXT = 19,
	/** struct weft_wire_put + payload: write it into registered memory */
	WEFT_WIRE_PUT = 20,
	/** struct weft_wire_get: request these bytes of registered memory */
	WEFT_WIRE_GET = 21,
	/** struct weft_wire_data + payload; ref and offset are the initiator's */
	WEFT_WIRE_GET_DATA = 22,
	WEFT_WIRE_AMO = 23,     /**< struct weft_wire_amo */
	WEFT_WIRE_AMO_REP = 24, /**< struct weft_wire_amo_rep: the old value */
	/** struct weft_wire_rma_nak: refused, nothing was read or written */
	WEFT_WIRE_RMA_NAK = 25,
	WEFT_WIRE_RMA_FLUSH = 26, /**< struct weft_wire_rma_flush: reply when `count` are done */
	/** struct weft_wire_rma_flushed */
	WEFT_WIRE_RMA_FLUSHED = 27,
	/** struct weft_wire_key_req: request bounds and native keys of registered memory */
	WEFT_WIRE_KEY_REQ = 28,
	WEFT_WIRE_KEY = 29, /**< struct weft_wire_key_rep, then struct weft_wire_rkey_domain */
	/** struct weft_wire_amov, operands, compares: atomics on elements of an array */
	WEFT_WIRE_AMOV = 30,
	WEFT_WIRE_AMOV_REP = 31, /**< struct weft_wire_data, then the old values */
};

/**
 * In front of ABORT, and of EAGER, FRAG, RTS, AM and their variants: the same in all pieces of a
 * message. In front of PUT it means that struct weft_wire_put_note follows.
 */
struct weft_wire_ext {
	uint8_t id;        /**< of the message that follows */
	uint8_t flags;     /**< WEFT_EXT_F_* */
	weft_le16 channel; /**< messages match within one */
	weft_le16 source_channel;
	weft_le16 reserved; /**< 0 */
	weft_le64 imm;      /**< with WEFT_EXT_F_IMM; else 0 */
} __attribute__((packed));

#define WEFT_EXT_F_IMM (1u << 0) /**< `imm` is valid */
/** PUT, instead of IMM: the put has ended early, and no handler is called */
#define WEFT_EXT_F_END (1u << 1)

/** Whole message; its length is the lane message's length less this header. */
struct weft_wire_eager {
	weft_le32 seq; /**< message sequence of this endpoint direction, tag space */
	weft_le64 tag;
} __attribute__((packed));

struct weft_wire_eager_sync {
	struct weft_wire_eager e;
	struct weft_wire_ref req; /**< sender's request, for SYNC_ACK */
} __attribute__((packed));

/** A piece. Each piece describes the message, so that the first piece that arrives is matched. */
struct weft_wire_frag {
	struct weft_wire_eager e;
	weft_le64 total;  /**< length of the message, > 0 */
	weft_le64 offset; /**< of this piece; offset + piece length <= total, piece length > 0 */
} __attribute__((packed));

struct weft_wire_frag_sync {
	struct weft_wire_frag f;
	struct weft_wire_ref req;
} __attribute__((packed));

struct weft_wire_rts {
	struct weft_wire_eager e;
	weft_le64 total;
	struct weft_wire_ref req; /**< sender's request */
	weft_le32 flags;          /**< WEFT_RTS_F_* */
} __attribute__((packed));

/** RTS flags: schemes by which the sender offers its data. It always supports DATA after RTR. */
#define WEFT_RTS_F_PULL (1u << 0) /**< it answers PULL */
#define WEFT_RTS_F_PUT (1u << 1)  /**< it writes, when RTR has keys */

/** Records behind RTS and RTR. */
enum weft_msg_record_type {
	/**
	 * struct weft_wire_keys, then struct weft_wire_key for each lane that can read (RTS) or
	 * write (RTR) the message's memory itself.
	 */
	WEFT_MSG_RECORD_KEYS = 1,
	/**
	 * CREDIT: le64, bytes that may be outstanding at a time; from a peer that has had to
	 * withdraw credit
	 */
	WEFT_MSG_RECORD_WINDOW = 2,
};

struct weft_wire_keys {
	weft_le64 offset; /**< of the message's first byte from the start of the registration */
} __attribute__((packed));

struct weft_wire_key {
	uint8_t lane;     /**< lane number; each once */
	uint8_t reserved; /**< 0 */
	weft_le64 key;
} __attribute__((packed));

/** Receiver's answer to an RTS: send bytes [offset, offset + length) as DATA. */
struct weft_wire_rtr {
	struct weft_wire_ref sreq; /**< sender's request, from the RTS */
	struct weft_wire_ref rreq; /**< receiver's request, for DATA */
	weft_le64 offset;
	weft_le64 length; /**< > 0 */
	weft_le32 flags;  /**< 0 */
} __attribute__((packed));

struct weft_wire_data {
	struct weft_wire_ref rreq;
	weft_le64 offset;
} __attribute__((packed));

/** End of a rendezvous (ATS), or of the wait of a synchronous eager send (SYNC_ACK). */
struct weft_wire_ats {
	struct weft_wire_ref sreq;
	/** 0 = fine; else a positive errno value, < 4096, for the sender's request */
	weft_le32 status;
} __attribute__((packed));

/**
 * What the sender may send, cumulative since the endpoint was made. Values only grow (compared
 * modulo 2^64 and 2^32), so a lost or reordered CREDIT does no harm.
 */
struct weft_wire_credit {
	/**
	 * sum of eager payloads (messages > WEFT_EAGER_FREE bytes only) the sender may have sent
	 */
	weft_le64 bytes;
	weft_le32 seq; /**< first message sequence that must not be sent yet */
	/**
	 * number of messages without byte credit that the sender may have begun: those of <=
	 * WEFT_EAGER_FREE bytes, and all announced ones (RTS, AM_RTS). It bounds the unexpected
	 * messages that the receiver keeps
	 */
	weft_le32 small;
	weft_le32 am_seq; /**< as seq, of active messages */
} __attribute__((packed));

/** CREDIT with its record. */
struct weft_wire_credit_window {
	struct weft_wire_credit credit;
	weft_le16 type; /**< WEFT_MSG_RECORD_WINDOW */
	weft_le16 length;
	weft_le64 window;
} __attribute__((packed));

/**
 * Sender to receiver: message @p e.seq ends with an error; the receiver consumes the sequence, a
 * matched receive ends with the status.
 */
struct weft_wire_abort {
	struct weft_wire_eager e;
	struct weft_wire_ref rreq; /**< 0,0 = no RTR seen */
	weft_le64 total;           /**< whole length of the message: its eager credit returns */
	weft_le32 status;          /**< positive errno, < 4096 */
	weft_le32 flags;           /**< WEFT_ABORT_F_AM, or 0 */
} __attribute__((packed));

/** The sequence is one of the active messages' space; the tag is the handler's id. */
#define WEFT_ABORT_F_AM (1u << 0)

/**
 * The receiver's alternative to RTR after an RTS, any number of times: send bytes [offset, offset +
 * length) as DATA over this lane. Valid until the ATS, for the bytes of this message only.
 */
struct weft_wire_pull {
	struct weft_wire_ref sreq; /**< sender's request, from the RTS */
	struct weft_wire_ref rreq; /**< receiver's request, for DATA; the same in all of them */
	weft_le64 offset;
	weft_le64 length; /**< > 0; offset + length <= total */
	weft_le16 lane;   /**< lane number; if that lane is gone, the sender uses any other */
	weft_le16 flags;  /**< WEFT_PULL_F_* */
} __attribute__((packed));

/** Other senders compete for the receiver's port: the sender should announce long messages. */
#define WEFT_PULL_F_CONTENDED (1u << 0)

/**
 * The sender has cancelled. The receiver sends ATS(ECANCELED) if no receive had matched the
 * message.
 */
struct weft_wire_withdraw {
	struct weft_wire_eager e;  /**< of the RTS */
	struct weft_wire_ref sreq; /**< of the RTS */
	weft_le32 flags;           /**< 0 */
} __attribute__((packed));

/** Bytes [offset, offset + length) are in the receiver's memory. */
struct weft_wire_put_done {
	struct weft_wire_ref rreq; /**< receiver's request, from the RTR */
	weft_le64 offset;
	weft_le64 length; /**< > 0 */
} __attribute__((packed));

/** Active message; its payload is what follows struct and header. */
struct weft_wire_am {
	weft_le32 seq; /**< of this endpoint direction, of active messages */
	weft_le16 id;
	weft_le16 header_length; /**< bytes of the user's header, <= WEFT_WIRE_AM_HEADER */
} __attribute__((packed));

/**
 * A piece of an active message. Payload follows the struct; in the piece at offset 0 the user's
 * header precedes it. Begins as struct weft_wire_am.
 */
struct weft_wire_am_frag {
	struct weft_wire_am am;
	weft_le64 total;  /**< length of the payload, > 0 */
	weft_le64 offset; /**< of this piece of it, at least one byte long */
} __attribute__((packed));

/** As RTS: RTR, PULL, DATA, ABORT and ATS move the payload. Begins as struct weft_wire_am. */
struct weft_wire_am_rts {
	weft_le32 seq;
	weft_le16 id;
	weft_le16 header_length;
	weft_le64 total;          /**< of the payload */
	struct weft_wire_ref req; /**< sender's request */
	weft_le32 flags;          /**< WEFT_RTS_F_* */
} __attribute__((packed));

/** Longest header of an active message: with an RTS it fits into any lane's message. */
#define WEFT_WIRE_AM_HEADER 256

/**
 * Remote memory over active messages. Memory is addressed by the registration's random key and a
 * byte offset from its start. `ref` is the initiator's request. 0,0 in a PUT means that no request
 * waits for it, and RMA_FLUSHED reports its errors.
 */
struct weft_wire_put {
	weft_le64 key;
	weft_le64 offset;
	struct weft_wire_ref ref; /**< for RMA_NAK only: a PUT has no reply of its own */
	/** WEFT_WIRE_RMA_ODD, or 0; its share, see WEFT_WIRE_PUT_SHARE; its number */
	weft_le32 flags;
} __attribute__((packed));

/**
 * These bits of a PUT's flags contain n: the message counts as 2^-n of a PUT. A PUT that was
 * counted for a lane that died may have to be split for a lane with smaller messages. Its parts
 * together count as one.
 */
#define WEFT_WIRE_PUT_SHARE 0xf8u
#define WEFT_WIRE_PUT_HALF 0x08u /**< added to the flags: the message counts half as much */

/** A PUT behind EXT, of a put that notifies its target when all its bytes are written. */
struct weft_wire_put_note {
	struct weft_wire_put put;
	/** bytes of the put, may be 0; with WEFT_EXT_F_END: bytes of it that have been sent, > 0 */
	weft_le64 total;
	weft_le32 number; /**< of the put: the same in all its pieces, different in other puts */
} __attribute__((packed));

/**
 * Most puts of this kind of which only a part has arrived at the target, per endpoint direction.
 * The endpoint fails if there are more. Initiators use at most half.
 */
#define WEFT_WIRE_NOTES 4096

struct weft_wire_get {
	weft_le64 key;
	weft_le64 offset;
	weft_le64 length; /**< > 0, <= WEFT_WIRE_GET_MAX */
	/** offset of the first byte at the initiator: offsets of GET_DATA begin there */
	weft_le64 local;
	struct weft_wire_ref ref;
	weft_le32 flags; /**< 0 */
} __attribute__((packed));

/** Operation of an AMO on the word; its reply is the old value. */
enum weft_wire_amo_op {
	WEFT_WIRE_AMO_ADD = 0,
	WEFT_WIRE_AMO_AND = 1,
	WEFT_WIRE_AMO_OR = 2,
	WEFT_WIRE_AMO_XOR = 3,
	WEFT_WIRE_AMO_SWAP = 4,
	WEFT_WIRE_AMO_CSWAP = 5, /**< operand is stored if the word equals compare */
};

struct weft_wire_amo {
	weft_le64 key;
	weft_le64 offset;
	weft_le64 operand;
	weft_le64 compare;        /**< CSWAP; else 0 */
	struct weft_wire_ref ref; /**< of AMO_REP, or RMA_NAK */
	uint8_t op;               /**< enum weft_wire_amo_op */
	/** 4 or 8 bytes; with 4 the upper halves of operands are ignored */
	uint8_t width;
	weft_le16 flags;  /**< WEFT_WIRE_AMO_FETCH or WEFT_WIRE_RMA_ODD, or 0 */
	weft_le32 number; /**< as a PUT's: WEFT_WIRE_RMA_NUMBER; 0 with WEFT_WIRE_AMO_FETCH */
} __attribute__((packed));

/** The target replies with AMO_REP. Without the flag the AMO is counted as a PUT is. */
#define WEFT_WIRE_AMO_FETCH 1u
/** The message is one of the odd half, see struct weft_wire_rma_flush. */
#define WEFT_WIRE_RMA_ODD 2u
/**
 * The flags of a PUT contain the operation's number, modulo 2^24, above this bit. A target that
 * refuses the PUT reports the number, so that a flush does not report errors of operations posted
 * after it.
 */
#define WEFT_WIRE_RMA_SHIFT 8
#define WEFT_WIRE_RMA_NUMBER 0xffffffu

struct weft_wire_amo_rep {
	struct weft_wire_ref ref;
	weft_le64 value;
} __attribute__((packed));

struct weft_wire_rma_nak {
	struct weft_wire_ref ref;
	/** of a GET: bytes that will not come; of a counted operation: its number; else 0 */
	weft_le64 length;
	weft_le16 status; /**< positive errno, 1..4095 */
	/**
	 * WEFT_WIRE_RMA_COUNTED, perhaps with WEFT_WIRE_RMA_ODD: the refused operation is of that
	 * half
	 */
	weft_le16 flags;
} __attribute__((packed));

/**
 * The operation has no other reply. RMA_FLUSHED contains the number of these RMA_NAK in the half.
 */
#define WEFT_WIRE_RMA_COUNTED 1u

/**
 * Both ends count PUT and AMO messages in two halves. With each RMA_FLUSH the initiator continues
 * in the other half. So a message posted after the flush is never counted in place of an earlier
 * one that is still in flight. Counts are cumulative since the endpoint was made.
 */
struct weft_wire_rma_flush {
	weft_le64 count; /**< of PUT and AMO in that half; it does not grow until the reply */
	weft_le32 flags; /**< WEFT_WIRE_RMA_ODD, or 0: which half */
} __attribute__((packed));

struct weft_wire_rma_flushed {
	weft_le64 count; /**< as requested: these are done */
	/** counted RMA_NAK sent for that half; the flush ends only after they have arrived */
	weft_le64 naks;
	weft_le64 errors; /**< PUT and AMO refused without an RMA_NAK */
	weft_le32 status; /**< of the last of those, positive errno < 4096; 0 = none */
	/** lowest and highest number of those since the last RMA_FLUSHED */
	weft_le32 first, last;
} __attribute__((packed));

/** Elements are little-endian, as the memory is: both ends must be. */
struct weft_wire_amov {
	weft_le64 key;
	weft_le64 offset;         /**< of the first element */
	struct weft_wire_ref ref; /**< of AMOV_REP, or RMA_NAK */
	weft_le64 local;          /**< offset at the initiator, returned by AMOV_REP */
	uint8_t op;               /**< enum weft_atomic_op */
	uint8_t type;             /**< enum weft_atomic_type, 1..10 */
	weft_le16 flags;          /**< as an AMO's */
	weft_le32 number;         /**< as an AMO's */
	weft_le32 count;          /**< elements, > 0 */
} __attribute__((packed));

static_assert(sizeof(struct weft_wire_amov) == 44, "wire");

/** Operands, or compares, of one AMOV: any lane carries it. */
#define WEFT_WIRE_AMOV_BYTES 256

struct weft_wire_key_req {
	weft_le64 key;
} __attribute__((packed));

/** As a packed remote key, for the workers at both ends of the endpoint. */
struct weft_wire_key_rep {
	weft_le64 key;       /**< as requested */
	weft_le64 size;      /**< bytes of the memory, > 0 */
	weft_le32 rights;    /**< WEFT_MEM_REMOTE_* */
	uint8_t low;         /**< lowest 3 bits of its address */
	uint8_t num_domains; /**< that follow, <= WEFT_RKEY_DOMAINS */
	weft_le16 reserved;  /**< 0 */
} __attribute__((packed));

static_assert(sizeof(struct weft_wire_key_req) == 8, "wire");
static_assert(sizeof(struct weft_wire_key_rep) == 24, "wire");

/** Longest GET: initiators split longer ones. */
#define WEFT_WIRE_GET_MAX (1u << 20)

/**
 * Most GETs that may wait for their reply, per endpoint direction. The endpoint fails if there are
 * more. Initiators use at most half.
 */
#define WEFT_WIRE_ANSWERS 256

/**
 * Messages up to this many bytes need no byte credit (they are counted, see
 * weft_wire_credit.small, as RTS are).
 */
#define WEFT_EAGER_FREE 256

/** Messages without byte credit that may be outstanding (begun, not matched) per peer, at most. */
#define WEFT_SMALL_WINDOW (1u << 17)

/** Sequences a sender may be ahead of the first one still missing at the receiver. */
#define WEFT_SEQ_WINDOW 4096

/**
 * Validate a received message. @return 0 if id, length and every field that can be checked without
 * state are right; else -EBADMSG
 */
int weft_wire_check(uint8_t id, const void *data, size_t length);

static_assert(sizeof(struct weft_wire_ext) == 16, "wire");
static_assert(sizeof(struct weft_wire_eager) == 12, "wire");
static_assert(sizeof(struct weft_wire_eager_sync) == 20, "wire");
static_assert(sizeof(struct weft_wire_frag) == 28, "wire");
static_assert(sizeof(struct weft_wire_frag_sync) == 36, "wire");
static_assert(sizeof(struct weft_wire_rts) == 32, "wire");
static_assert(sizeof(struct weft_wire_rtr) == 36, "wire");
static_assert(sizeof(struct weft_wire_data) == 16, "wire");
static_assert(sizeof(struct weft_wire_ats) == 12, "wire");
static_assert(sizeof(struct weft_wire_credit) == 20, "wire");
static_assert(sizeof(struct weft_wire_credit_window) == 32, "wire");
static_assert(sizeof(struct weft_wire_abort) == 36, "wire");
static_assert(sizeof(struct weft_wire_pull) == 36, "wire");
static_assert(sizeof(struct weft_wire_withdraw) == 24, "wire");
static_assert(sizeof(struct weft_wire_put_done) == 24, "wire");
static_assert(sizeof(struct weft_wire_keys) == 8, "wire");
static_assert(sizeof(struct weft_wire_key) == 10, "wire");
static_assert(sizeof(struct weft_wire_am) == 8, "wire");
static_assert(sizeof(struct weft_wire_am_frag) == 24, "wire");
static_assert(sizeof(struct weft_wire_am_rts) == 28, "wire");
static_assert(sizeof(struct weft_wire_put) == 28, "wire");
static_assert(sizeof(struct weft_wire_put_note) == 40, "wire");
static_assert(sizeof(struct weft_wire_get) == 44, "wire");
static_assert(sizeof(struct weft_wire_amo) == 48, "wire");
static_assert(sizeof(struct weft_wire_amo_rep) == 16, "wire");
static_assert(sizeof(struct weft_wire_rma_nak) == 20, "wire");
static_assert(sizeof(struct weft_wire_rma_flush) == 12, "wire");
static_assert(sizeof(struct weft_wire_rma_flushed) == 36, "wire");

#endif /* WEFT_WIRE_H */
