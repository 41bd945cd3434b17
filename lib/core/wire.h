/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/wire.h
 * Messages of endpoints on the wire. core/wire.def has their structures, ids and flags; here are
 * their limits, and the rules that a table cannot state. All fields are little-endian and packed.
 * Lane frames (below these messages) are in drivers/dpdk/frame/frame.h.
 *
 * Trust: weft_wire_check() (core/wire.c) checks id, length and every field that can be checked
 * without state. The length fields are trusted afterwards. References ({index, generation}) are
 * checked by the code that looks them up. There are no pointers on the wire.
 *
 * Id 0 is never used. An unknown id on a connected endpoint fails the endpoint (-EPROTO): the lane
 * has acknowledged the message, so dropping it would lose data.
 *
 * Room for later minor versions: messages that end with records in wire.def (RTS, CREDIT and
 * others) may be longer than their struct. Records {le16 type, le16 length, bytes} follow the
 * struct. Unknown types are skipped unless bit 15 of the type is set (then -EPROTO). Messages with
 * payload change only by a new id. A reference is valid only if its object belongs to the endpoint
 * that received the message.
 */
#ifndef WEFT_WIRE_H
#define WEFT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/wire_conn_def.h"
#include "core/wire_def.h"
#include "weft.h"

/** Limit of the bytes of an active message's header: with an RTS it fits into any lane message. */
#define WEFT_WIRE_AM_HEADER 256

/**
 * The bits of a PUT's flags that contain n: the message counts as 2^-n of a PUT. A PUT that was
 * counted for a lane that died may have to be split for a lane with smaller messages. Its parts
 * together count as one.
 */
#define WEFT_WIRE_PUT_SHARE 0xf8u
#define WEFT_WIRE_PUT_HALF 0x08u /**< added to the flags, it halves the message's share */

/**
 * The maximum number of puts with a notification that have arrived at the target only in part, per
 * endpoint direction. The endpoint fails if there are more. Initiators use at most half.
 */
#define WEFT_WIRE_NOTES 4096

/** The target replies with AMO_REP or AMOV_REP. Without the flag the AMO is counted as a PUT is. */
#define WEFT_WIRE_AMO_FETCH 1u
/**
 * The message is one of the odd half. Both ends count PUT and AMO messages in two halves. With each
 * RMA_FLUSH the initiator continues in the other half. So a message posted after the flush is never
 * counted in place of an earlier one that is still in flight. Counts are cumulative.
 */
#define WEFT_WIRE_RMA_ODD 2u
/**
 * The flags of a PUT contain the operation's number, modulo 2^24, from this bit on. A target that
 * refuses the PUT reports the number, so that a flush reports no errors of later operations.
 */
#define WEFT_WIRE_RMA_SHIFT 8
#define WEFT_WIRE_RMA_NUMBER 0xffffffu

/** Flag of an RMA_NAK for a counted operation. RMA_FLUSHED has the number of these NAKs. */
#define WEFT_WIRE_RMA_COUNTED 1u

/** Limit of the bytes of an AMOV's operands, and of its compares. Any lane carries such an AMOV. */
#define WEFT_WIRE_AMOV_BYTES 256

/** Limit of the bytes of a GET: initiators split longer ones. */
#define WEFT_WIRE_GET_MAX (1u << 20)

/**
 * The maximum number of replies that a target has not sent completely, per endpoint direction: to
 * GETs, and short ones without room in a lane. Replies to AMOV may be twice as many. The endpoint
 * fails if there are more. Initiators request at most half.
 */
#define WEFT_WIRE_ANSWERS 256

/**
 * Messages up to this many bytes need no byte credit (they are counted, see
 * weft_wire_credit.small, as RTS are).
 */
#define WEFT_EAGER_FREE 256

/** Messages without byte credit that may be outstanding (begun, not matched) per peer, at most. */
#define WEFT_SMALL_WINDOW (1u << 17)

/** Sequence numbers from the first one missing at the receiver on that a sender may use. */
#define WEFT_SEQ_WINDOW 4096

/** Validate what needs no state in a received message. @return 0: it is right; else -EBADMSG */
int weft_wire_check(uint8_t id, const void *data, size_t length);

/* ------------------------------------------------------------------ headers of split messages */

/** Writable bytes that weft_msg_recast() needs in front of a message. */
#define WEFT_RECAST_ROOM 16

/** A weft_lane_split_fn: write the header of a further piece of a message in several buffers. */
size_t weft_msg_split(uint8_t id, const void *msg, size_t had, void *piece);
/**
 * Converts a whole message, with a payload of at least one byte, to a piece with all of its bytes,
 * which can be split. The piece begins #WEFT_RECAST_ROOM bytes earlier. @return the piece's id; 0:
 * the message is no whole message with a form as a piece, and is not changed
 */
uint8_t weft_msg_recast(uint8_t id, void *msg, size_t length);
/**
 * As weft_msg_split(), for all messages that can be split for a lane with a lower limit. @p had 0:
 * returns the length of the message's header. The first part contains this header and at least a
 * byte of payload.
 */
size_t weft_msg_part(uint8_t id, const void *msg, size_t had, void *piece);
/** Is the message, of this id, a PUT of any kind? */
bool weft_msg_is_put(uint8_t id, const void *msg);
/**
 * Split a PUT of @p length bytes, header included, into two. Each counts as half of the PUT.
 * @param second     room for the second PUT: @p length bytes are enough
 * @param[out] rest  length of the second PUT
 * @return bytes that stay in the first PUT; 0: the PUT cannot be halved
 */
size_t weft_put_halve(uint8_t id, void *msg, size_t length, void *second, size_t *rest);

/* ------------------------------------------------------------------ connecting workers */

/*
 * Structures for connecting workers: wire-up messages, worker addresses, remote keys. core/wire.def
 * has them; here are their limits. wireup/codec.c, core/address.c and rma/rkey.c validate them.
 */

/** weft_wire_wireup.lane in an ERROR that ends the whole endpoint. */
#define WEFT_WIREUP_ALL_LANES 0xff

/** The maximum length of the records of one WIREUP message, over all its pieces. */
#define WEFT_WIREUP_MAX 8192

#define WEFT_ADDRESS_MAGIC 0x54464557u  /* "WEFT" */
#define WEFT_BOOT_ADDRESS_MAGIC 0x4657u /* "WF" */
#define WEFT_RKEY_MAGIC 0x594b5457u     /* "WTKY" */

/**
 * The maximum number of domains, and of workers, in one key. With a packed key, messages access the
 * memory over lanes of further domains.
 */
#define WEFT_RKEY_DOMAINS 16
#define WEFT_RKEY_WORKERS 64

/*
 * The bytes before these fields are the same in every version. So a peer of another version gets a
 * reply that names both versions, and an address of another version has an error of its own.
 */
static_assert(offsetof(struct weft_wire_wireup, src_secret) == 48, "same in every version");
static_assert(offsetof(struct weft_wire_address, worker_id) == 16, "same in every version");

/* ------------------------------------------------------------------ atomics */

/*
 * Atomics on typed elements: the operations of each type, and their effect on one element.
 */

/** Bytes of an element; 0 = there is no such type. @param type  enum weft_atomic_type */
size_t weft_amo_width(unsigned int type);
/** Does the type support the operation? @param op  enum weft_atomic_op */
bool weft_amo_known(unsigned int op, unsigned int type);
/** Does the operation need compares? */
bool weft_amo_compares(unsigned int op);
/** The number of arrays that the operation needs: operands, compares. */
static inline size_t weft_amo_arrays(unsigned int op)
{
	return (op == WEFT_ATOMIC_READ ? 0u : 1u) + (weft_amo_compares(op) ? 1u : 0u);
}
/**
 * Apply the operation to one element, atomically. Host order; operands need no alignment.
 * @param word  naturally aligned
 * @param old   gets the old value
 */
void weft_amo_do(unsigned int op, unsigned int type, void *word, const void *operand,
		 const void *compare, void *old);

#endif /* WEFT_WIRE_H */
